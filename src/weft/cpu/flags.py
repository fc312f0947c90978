"""The flags that XLA:CPU compiles a program with, as a function of its equations.

The program is the one that is lowered, after the passes of this folder. Flags that users give come
later, and win.
"""

from __future__ import annotations

import collections
import math
import os

import numpy as np
from jaxlib.version import __version__ as jaxlib_version

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.facts import Cost, Elements, Runs
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal
from weft.core.primitive import Primitive
from weft.cpu.calls import CpuCall
from weft.cpu.elements import computes_by_element, is_fused
from weft.cpu.formula import Formula
from weft.cpu.rewriting import running_bodies
from weft.cpu.unrolling import MIN_OPERATIONS, runs_rolled
from weft.errors import DtypeError
from weft.primitives.elementwise import Elementwise, SelectN
from weft.primitives.layout import Iota, Reshape, Squeeze, Transpose
from weft.primitives.slicing import Concatenate, Pad, Slice, Tile
from weft.primitives.transcendental import IntegerPow
from weft.xla.compile import Flags

# XLA compiles a while loop as one function of one thread if an iteration touches no more bytes than
# this, as XLA counts: each operand of each operation, several times what is read. The limit of XLA
# 0.10, 1024, is too low for sixty scalars, and 0.12 has none, so that one thread computes stencils
# of a million elements. On two cores, one function is as fast as threads for iterations of about
# 0.4 ms (reaction and diffusion on 256 x 256, 0.76 of the time), and compiles in half the time.
# XLA never does so for loops with matrix products. More cores have not been measured: the limit is
# about 0.1 ms there, which is what waking threads takes.
BYTES_BY_CORES = {1: 1 << 40, 2: 1 << 24}
MANY_CORES_BYTES = 1 << 22
SMALL_LOOP = (
    "xla_cpu_small_while_loop_byte_threshold",
    str(BYTES_BY_CORES.get(os.cpu_count() or 1, MANY_CORES_BYTES)),
)
# XLA counts the bytes of whole arrays, also if an iteration replaces one row. So for a loop that
# computes few elements at a time, the limit is beyond any array: threads would only wait for each
# other. Several threads also take five times the work of one to join vectors, as a roll does.
LIGHT_LOOP = (SMALL_LOOP[0], str(1 << 40))
# An iteration of a filter on 4 x 4 matrices takes a tenth so. For larger matrices the functions of
# products that XLA calls are faster than the loops that it writes.
MAX_LIGHT_ELEMENTS = 4096  # of an array that an iteration of such a loop computes
MAX_LIGHT_FACTOR = 256  # elements of an operand of a product in it
# The time to compile one function grows with the square of its length. It is twice the time of
# many functions for a loop of 280 equations, and seven times for 1,000. So longer loops have the
# limit of XLA 0.10.
MAX_SMALL_LOOP_EQUATIONS = 240
# A loop of 200 equations takes one thread 1.4 to 1.6 s to compile as one function, and two threads
# 0.9 s as many. On 8,640 elements neither is clearly faster; on 17,280, one function takes 0.75 of
# the time. So loops of more than MAX_QUICK_EQUATIONS on up to MAX_SPLIT_ELEMENTS are split.
MAX_QUICK_EQUATIONS, MAX_SPLIT_ELEMENTS = 120, 10_000
LONG_LOOP = (SMALL_LOOP[0], "1024")
RESHAPES = (Reshape, Squeeze, Tile)
# LLVM unrolls no loops then, so programs compile in 0.5 to 0.9 of the time (unrolling.py).
ROLLED = ("xla_cpu_disable_loop_unrolling", "true")
NOT_LOOPS = (CpuCall, Reshape, Squeeze, Transpose)  # operations that XLA writes no loops for
# Tiles are stored twice, and loops over them take twice the time, except for transposes.
NO_TILES = ("xla_cpu_disable_tiled_emitter", "true")
# Vectors of 512 bits reduce the time of functions to 60 %, but products take longer, and arc
# tangents are wrong.
WIDE = ("xla_cpu_prefer_vector_width", 512)
# YNNPACK fuses operations before a product or a sum into it, and then saturates integers of 8 bits.
# With this flag YNNPACK computes only the products.
NO_FUSION = ("xla_cpu_experimental_ynn_fusion_type", "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT")
# XLA writes loops in two ways. The older one compiles in half the time. Its loops are as fast on
# few elements and slower on many, except for vectors and short rows that cannot be split evenly
# over the cores, and for one concatenation.
OLDER_LOOPS = ("xla_cpu_use_fusion_emitters", False)
HAS_OLDER_LOOPS = jaxlib_version.startswith("0.10.")  # later releases have only one way
ONE_MODULE = ("xla_cpu_parallel_codegen_split_count", 1)
QUICK = (OLDER_LOOPS, ONE_MODULE)

MAX_QUICK_ELEMENTS = 4096  # of an array that counts as few elements
# Elements of an array if the program only moves, adds and multiplies arrays of more than
# MAX_QUICK_ELEMENTS: both ways make the same vector instructions of that.
MAX_PLAIN_ELEMENTS = 16384
# Elements of any other operation in a loop, where no overhead of a call hides its time: the
# older loops take 2 to 3 times as long for comparisons, reductions and updates of 2048 elements.
MAX_LOOP_ELEMENTS = 64
# Elements of functions in a program with products: up to this many, the older loops are as fast.
# With them, tanh of a product takes 1.1 times as long for 48 by 48 elements, 1.6 for 64 by 64.
MAX_QUICK_FUNCTION = 2048
MAX_SHORT_ROW = 32  # elements of a row: below it, the older loops are faster for uneven rows
MIN_ROWS_ELEMENTS = 1 << 16  # of an array of such rows
# The newer way compiles equal loops once, as in equal layers and in their optimizer:
# Adam's step on 32 matrices of one shape takes a sixth of the older way's time. So it is quicker
# for programs of at least this many loops, if most have an equal.
MIN_REPEATED_LOOPS = 8
# For a reduction over several axes, the older way unrolls all loops of some arrays: a sum of 32 by
# 32 elements compiles in 560 ms, and in 80 ms in the newer way. It does so for up to this many
# elements and rows if lengths are powers of two, and for 32 rows. Below, the times are equal.
UNROLLED_ELEMENTS = range(384, 1025)
# It also unrolls all of a matrix with rows of 64, 96 or 128 elements, or three rows of 256, if it
# has one of these numbers of rows: 20 by 128 elements compile in 3,900 ms, and in 98 ms in the
# newer way. It does so for none of 2, 4, 6, 10, 12, 24, 28, 30, 33 and 40 rows of these lengths.
UNROLLED_ROWS = {64: (8, 16, 20, 32), 96: (8, 16, 20, 32), 128: (8, 16, 20, 32), 256: (3,)}
MIN_UNROLLED_TERMS = 128  # of one result
MAX_UNROLLED_ROWS = 32
MAX_TRANSPOSE_STEPS = 2  # operations beside a transpose of the last axis: up to 2, tiles pay

DEFAULT = Flags(extra=(SMALL_LOOP, NO_TILES))  # if nothing is known about a program

# Operations of StableHLO that the two ways round differently.
ROUNDED_DIFFERENTLY = frozenset(
    ("stablehlo.tan", "stablehlo.cbrt", "stablehlo.atan2", "chlo.atan", "chlo.tan")
)
# Operations of elements that both ways write with the same vector instructions.
PLAIN = frozenset(
    f"stablehlo.{name}" for name in ("add", "subtract", "multiply", "divide", "negate", "sqrt")
)
BYTES = frozenset(map(np.dtype, (np.int8, np.uint8)))
COMPLEX = frozenset(map(np.dtype, (np.complex64, np.complex128)))
ARC_TANGENTS = frozenset(("chlo.atan", "chlo.atanh", "stablehlo.atan2"))


def choose_flags(jaxpr: Jaxpr, partitioned: bool) -> Flags:
    """Return the flags for a program that is lowered for CPUs.

    Args:
      jaxpr: the program, after the passes for CPUs.
      partitioned: whether XLA splits it over devices.

    Raises:
      DtypeError: XLA splits a program over devices that has elements of less than 4 bits. XLA 0.10
        gathers such elements as bytes: it gives zeros, or writes beyond the end of a buffer.
    """
    facts = ProgramFacts()
    facts.survey(jaxpr)
    if partitioned and (narrow := [d for d in facts.packed if dtypes.itemsize_bits(d) < 4]):
        raise DtypeError(
            "jit: elements of less than 4 bits must not be on several CPU devices, between which "
            f"XLA moves them wrongly; got {narrow[0]}. Hint: x.astype(jnp.int8) before."
        )
    given = os.environ.get("XLA_FLAGS", "")
    overrides = choose_quick_flags(facts, partitioned, given)
    if not facts.multiplies and not facts.has_arc_tangent and WIDE[0] not in given:
        overrides = (*overrides, WIDE)
    if facts.computes_bytes:
        overrides = (*overrides, NO_FUSION)
    if facts.multiplies:
        tiled = facts.moves_batch
    else:
        few = facts.moves_last_axis and len(facts.others) <= MAX_TRANSPOSE_STEPS
        tiled = not facts.others or (few and all(map(computes_by_element, facts.others)))
        tiled = tiled or (facts.transposes_matrix and reads_once(jaxpr))
    loops = LIGHT_LOOP if facts.loops and facts.has_light_loops else SMALL_LOOP
    split = facts.loop_length > MAX_QUICK_EQUATIONS and facts.loop_elements <= MAX_SPLIT_ELEMENTS
    if facts.loop_length > MAX_SMALL_LOOP_EQUATIONS or (split and loops is SMALL_LOOP):
        loops = LONG_LOOP
    rolled = not (HAS_OLDER_LOOPS or partitioned) and len(facts.others) >= MIN_OPERATIONS
    rolled = rolled and runs_rolled(jaxpr)
    return Flags(overrides, (loops, *(NO_TILES,) * (not tiled), *(ROLLED,) * rolled))


def choose_quick_flags(
    facts: ProgramFacts, partitioned: bool, given: str
) -> tuple[tuple[str, object], ...]:
    """Return flags that halve the compile time of a program, if it still runs as fast.

    `given` are the flags of the environment. They win, except if they would end the process.
    """
    if not HAS_OLDER_LOOPS:
        return ()
    if facts.packed:  # the older way ends the process
        return ((OLDER_LOOPS[0], True),)
    if OLDER_LOOPS[0] in given or partitioned:
        return ()
    if facts.is_rounded_differently or (facts.draws and (facts.has_functions or facts.loops)):
        return ()
    if facts.repeats_loops or facts.unrolls_reduction:
        return ()
    large = [s for s in facts.shapes if math.prod(s) > MAX_QUICK_ELEMENTS]
    if facts.loops:
        return () if large or facts.slow_elements > MAX_LOOP_ELEMENTS else QUICK
    if large and facts.slow_elements <= MAX_QUICK_ELEMENTS:
        large = [s for s in large if math.prod(s) > MAX_PLAIN_ELEMENTS]
    if not large:
        slow = facts.multiplies and facts.function_elements > MAX_QUICK_FUNCTION
        return (ONE_MODULE,) if slow else QUICK
    vectors = {*map(len, large)} == {1}
    rows = all(math.prod(rest) < MAX_SHORT_ROW for _, *rest in large) and not facts.multiplies
    rows = rows and max(map(math.prod, large)) >= MIN_ROWS_ELEMENTS
    uneven = (vectors or rows) and any(n % (os.cpu_count() or 1) for n, *_ in large)
    joins_once = facts.join_count == 1 and not facts.has_more_than_joins
    return (OLDER_LOOPS,) if joins_once or (uneven and not facts.reshapes) else ()


class ProgramFacts:
    """The facts that the flags depend on.

    Attributes:
      shapes: the shapes of all arrays.
      packed: the dtypes of arrays whose elements are of less than a byte, which XLA packs.
      multiplies: the program has products of matrices that XLA computes.
      moves_batch: it has products with batch axes that are not first, or transposes such axes, as
        attention does with its heads.
      moves_last_axis: it has a transpose that moves the last axis of an array of three to five.
      transposes_matrix: it has a transpose of a matrix.
      others: the equations that tiles do not make faster.
      has_arc_tangent: the program has an arc tangent that XLA computes.
      computes_bytes: it computes integers of 8 bits, rather than only reading or moving them.
      is_rounded_differently: its results may depend on the way in which XLA writes loops.
      draws: it has random numbers, whose bits are documented.
      has_functions: it has functions such as exp, which the two ways may round differently.
      function_elements: the number of elements of the largest array of such functions.
      slow_elements: the number of elements of the largest array of an operation that the older
        loops may compute more slowly.
      loops: it has loops.
      loop_length: the number of equations of its longest loop, of all steps in the body.
      loop_elements: the number of elements of the largest array that a loop computes, rather than
        replaces a part of.
      factor_elements: the number of elements of the largest operand of a product in a loop.
      joins_vectors: a loop has a concatenation of vectors.
      join_count: the number of its concatenations.
      has_more_than_joins: it has other equations than concatenations and slices.
      reshapes: it has reshapes, or tiles, which are lowered with one.
      unrolls_reduction: the older way would unroll a reduction over several axes.
      loop_kinds: the number of loops that XLA writes, for each expression that they compute.
      reduced: the operand and the axes of each reduction, by its result.
    """

    def __init__(self) -> None:
        self.shapes: set[tuple[int, ...]] = set()
        self.packed: set[np.dtype] = set()
        self.multiplies = self.moves_batch = self.moves_last_axis = self.transposes_matrix = False
        self.has_arc_tangent = self.computes_bytes = False
        self.is_rounded_differently = self.draws = self.has_functions = False
        self.has_more_than_joins = self.reshapes = self.loops = False
        self.unrolls_reduction = False
        self.others: list[Eqn] = []
        self.join_count = self.function_elements = self.slow_elements = self.loop_length = 0
        self.loop_elements = self.factor_elements = 0
        self.joins_vectors = False
        self.loop_kinds: collections.Counter[int] = collections.Counter()
        self.reduced: dict[Atom, tuple[Primitive, ShapedArray, tuple[int, ...]]] = {}

    @property
    def has_light_loops(self) -> bool:
        """True if one thread computes its loops faster than several."""
        light = self.loop_elements <= MAX_LIGHT_ELEMENTS or self.joins_vectors
        return light and self.factor_elements <= MAX_LIGHT_FACTOR

    @property
    def repeats_loops(self) -> bool:
        """True if XLA writes many loops, and most have an equal."""
        total = self.loop_kinds.total()
        return total >= MIN_REPEATED_LOOPS and total > 2 * len(self.loop_kinds)

    def survey(self, jaxpr: Jaxpr, looping: bool = False) -> None:
        """Note the facts of a program, which a loop may run, and of those it runs on arrays."""
        variables = [*jaxpr.constvars, *jaxpr.invars]
        for eqn in jaxpr.eqns:
            prim = eqn.primitive
            variables += eqn.outvars
            if isinstance(prim, Transpose):
                self.note_transpose(*eqn.params["permutation"])
            elif isinstance(prim, RESHAPES):
                self.reshapes = True
            if not isinstance(prim, NOT_LOOPS):
                self.others.append(eqn)
            if isinstance(prim, Concatenate):
                self.join_count += 1
            elif not isinstance(prim, Slice):
                self.has_more_than_joins = True
            if isinstance(prim, Elementwise):
                self.note_function(eqn)
            elif isinstance(prim, Formula):
                if eqn.params["by_element"]:
                    self.add_function(eqn)
            elif prim.form is Form.PRODUCT:
                self.multiplies = True
                _, batches = eqn.params["dimension_numbers"]
                if any(tuple(b[:2]) not in ((), (0,), (0, 1)) for b in batches):
                    self.moves_batch = True
            elif prim.form is Form.SCATTER:
                self.is_rounded_differently = True
            elif prim.elements is Elements.RANDOM:
                self.draws = True
            elif prim.cost is Cost.REDUCTION and self.note_reduction(eqn):
                self.unrolls_reduction = True
            elif prim.cost is Cost.UNKNOWN and prim.memoize_type:  # such as an exported program
                self.multiplies = self.is_rounded_differently = True
            moved = prim.elements is Elements.MOVED
            if not moved and eqn.outvars and eqn.outvars[0].aval.dtype in BYTES:
                self.computes_bytes = True
            if not prim.memoize_type:
                for body in running_bodies(eqn):
                    if body.runs is Runs.LOOP:
                        self.loops = True
                        length = len(body.jaxpr.eqns) * eqn.params.get("unroll", 1)
                        self.loop_length = max(self.loop_length, length)
                    self.survey(body.jaxpr, looping or body.runs is Runs.LOOP)
                continue
            if not is_plain(eqn):
                self.add_slow(eqn)
            if looping:
                self.note_in_loop(eqn)
        for aval in {v.aval for v in variables}:
            if aval.shape:
                self.shapes.add(aval.shape)
            if aval.dtype in dtypes.PACKED:
                self.packed.add(aval.dtype)
            if aval.dtype in COMPLEX or type(aval.size) is not int:
                self.is_rounded_differently = True
        if len(jaxpr.eqns) >= MIN_REPEATED_LOOPS:
            self.count_loops(jaxpr)

    def count_loops(self, jaxpr: Jaxpr) -> None:
        """Count the loops that XLA writes for the operations of a program that it fuses.

        Such a loop ends with a result of the program or an operand of another kind of operation.
        Its kind is the expression that it computes, with the types of what it reads. A loop reads
        constants, which XLA computes beforehand, and functions such as exp that others read too:
        XLA does not compute these again.
        """
        constants = {*map(id, jaxpr.constvars)}
        kept = {id(v) for v in jaxpr.outvars}
        kept.update(id(a) for eqn in jaxpr.eqns if not is_fused(eqn) for a in eqn.invars)
        kinds: dict[int, int] = {}
        for eqn in jaxpr.eqns:
            cost = eqn.primitive.cost
            if not eqn.outvars or not (is_fused(eqn) or cost is Cost.LOOKUP):
                continue
            out = eqn.outvars[0]
            varying = [a for a in eqn.invars if type(a) is not Literal and id(a) not in constants]
            if not varying and any(type(a) is not Literal for a in eqn.invars):
                constants.add(id(out))
                continue
            operands = (
                a.val if type(a) is Literal else kinds.get(id(a), a.aval) for a in eqn.invars
            )
            kind = hash((eqn.primitive, out.aval, *operands))
            if id(out) in kept:
                self.loop_kinds[kind] += 1
            if id(out) not in kept or cost is not Cost.TRANSCENDENTAL:
                kinds[id(out)] = kind

    def note_reduction(self, eqn: Eqn) -> bool:
        """Note a reduction, and return True if the older way of XLA unrolls it.

        XLA makes one reduction of two, also if the first result is multiplied by a number.
        """
        prim, operand, axes = eqn.primitive, eqn.invars[0], eqn.params.get("axes")
        aval = operand.aval
        if axes is None:  # it reduces windows, or rows by their numbers
            return is_unrolled(eqn, aval, ())
        found = None if type(operand) is Literal else self.reduced.get(operand)
        if found is not None and found[0] is prim:
            _, aval, before = found
            left = [i for i in range(aval.ndim) if i not in before]
            axes = (*before, *[left[i] for i in axes])
        self.reduced[eqn.outvars[0]] = prim, aval, axes
        return is_unrolled(eqn, aval, axes)

    def note_transpose(self, *order: int) -> None:
        """Note a transpose, by its permutation."""
        self.transposes_matrix = self.transposes_matrix or order == (1, 0)
        self.moves_batch = self.moves_batch or order == (0, 2, 1, 3)
        if 3 <= len(order) <= 5 and order[-1] != len(order) - 1:
            self.moves_last_axis = True

    def add_function(self, eqn: Eqn) -> None:
        """Count the elements of a function such as exp."""
        self.has_functions = True
        for v in eqn.outvars:
            if type(v.aval.size) is int:
                self.function_elements = max(self.function_elements, v.aval.size)

    def add_slow(self, eqn: Eqn) -> None:
        """Count the elements of an operation that the older loops may compute more slowly."""
        for v in (*eqn.invars, *eqn.outvars):
            if type(v.aval.size) is int and v.aval.size > self.slow_elements:
                self.slow_elements = v.aval.size

    def note_in_loop(self, eqn: Eqn) -> None:
        """Note an operation of an iteration of a loop."""
        sizes = lambda atoms: [a.aval.size for a in atoms if type(a.aval.size) is int]
        if eqn.primitive.elements is not Elements.PLACED:
            self.loop_elements = max(self.loop_elements, *sizes(eqn.outvars), 0)
        if eqn.primitive.cost is Cost.CONTRACTION:
            self.factor_elements = max(self.factor_elements, *sizes(eqn.invars), 0)
        if isinstance(eqn.primitive, Concatenate) and eqn.outvars[0].aval.ndim == 1:
            self.joins_vectors = True

    def note_function(self, eqn: Eqn) -> None:
        """Note a function of elements, by the operation of StableHLO that it is."""
        operation = getattr(eqn.primitive, "operation", "")
        if operation == "stablehlo.multiply":
            out = eqn.outvars[0]
            for a in eqn.invars:
                found = None if type(a) is Literal else self.reduced.get(a)
                if found is not None and a.aval.shape == out.aval.shape:  # not one number
                    self.reduced[out] = found
        if operation in ROUNDED_DIFFERENTLY or eqn.primitive.cost is Cost.ITERATIVE:
            self.is_rounded_differently = True
        if operation in ARC_TANGENTS:
            self.has_arc_tangent = True
        if eqn.primitive.cost is Cost.TRANSCENDENTAL:
            self.add_function(eqn)
        elif operation == "stablehlo.shift_right_logical":  # takes parts of random bits
            self.draws = self.draws or dtypes.is_unsigned(eqn.outvars[0].aval.dtype)


def is_plain(eqn: Eqn) -> bool:
    """Return True if XLA's two ways to write loops compute an operation equally fast."""
    prim = eqn.primitive
    if isinstance(prim, CpuCall):
        return True  # not a loop of XLA's
    for v in eqn.outvars:
        if v.aval.dtype.itemsize < 4 and v.aval.dtype.kind != "b":
            return False  # short floats and integers
    if prim.elements in (Elements.MOVED, Elements.CONVERTED):
        return prim.cost is not Cost.JOIN  # a join is up to 1.15 times slower
    return isinstance(prim, Iota | Pad | SelectN | IntegerPow) or (
        getattr(prim, "operation", "") in PLAIN
    )


def is_unrolled(eqn: Eqn, operand: ShapedArray, axes: tuple[int, ...]) -> bool:
    """Return True if the older way of XLA unrolls all loops of a reduction.

    Reductions of integers, and maxima, become a few instructions on vectors instead.
    """
    if operand.dtype.kind in "iu" or eqn.primitive.form is Form.EXTREMUM:
        return False
    lengths = [n for n in operand.shape if n != 1]
    reduced = [n for n in map(operand.shape.__getitem__, axes) if n != 1]
    if len(reduced) < 2 or type(operand.size) is not int:
        return False
    rows = lengths[0]
    if len(lengths) == 2 and rows in UNROLLED_ROWS.get(lengths[1], ()):
        return True
    even = rows == MAX_UNROLLED_ROWS or all(n & (n - 1) == 0 for n in lengths)
    enough = operand.size in UNROLLED_ELEMENTS and math.prod(reduced) >= MIN_UNROLLED_TERMS
    return even and enough and rows <= MAX_UNROLLED_ROWS


def reads_once(jaxpr: Jaxpr) -> bool:
    """Return True if a program has one operand, and uses it once."""
    if len(jaxpr.invars) != 1:
        return False
    return [a is jaxpr.invars[0] for e in jaxpr.eqns for a in e.invars].count(True) == 1
