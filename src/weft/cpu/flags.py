"""The flags that XLA:CPU compiles a program with, as a function of its equations.

The program is the one that is lowered, after the passes of this folder. Flags that users give come
later, and win.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import numpy as np
from jaxlib.version import __version__ as jaxlib_version

from weft import dtypes
from weft.core.facts import Cost, Elements, Runs
from weft.core.form import Form
from weft.core.jaxpr import Eqn, Jaxpr, bodies_of
from weft.cpu.calls import CpuCall
from weft.cpu.formula import Formula
from weft.cpu.rewriting import running_bodies
from weft.primitives.dot import DotGeneral
from weft.primitives.elementwise import Elementwise
from weft.primitives.layout import Reshape, Squeeze, Transpose
from weft.primitives.slicing import Concatenate, Slice, Tile
from weft.xla.compile import Flags

# XLA compiles a while loop as one function if an iteration touches no more bytes than this. Its own
# limit, 1024, is too low for sixty scalars. Far above, matrix products in loops get slower.
SMALL_LOOP = ("xla_cpu_small_while_loop_byte_threshold", "32768")
# Tiles are stored twice, and loops over them take twice the time, except for transposes.
NO_TILES = ("xla_cpu_disable_tiled_emitter", "true")
# Vectors of 512 bits take 0.6 of the time for functions, but more for products. Arc tangents are
# wrong with them.
WIDE = ("xla_cpu_prefer_vector_width", 512)
# YNNPACK fuses what is computed before a product or a sum, and then saturates integers of 8 bits.
# With this flag it is given products by themselves.
NO_FUSION = ("xla_cpu_experimental_ynn_fusion_type", "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT")
# The older of the two ways in which XLA writes loops takes half the time to compile. Its loops are
# as fast on few elements and slower on many, except for vectors and short rows that the cores
# cannot share evenly, and for one concatenation.
OLDER_LOOPS = ("xla_cpu_use_fusion_emitters", False)
ONE_MODULE = ("xla_cpu_parallel_codegen_split_count", 1)
QUICK = (OLDER_LOOPS, ONE_MODULE)

MAX_QUICK_ELEMENTS = 4096  # of an array that counts as few elements
MAX_SHORT_ROW = 32  # elements of a row, up to which the older loops are quicker for uneven rows
MIN_ROWS_ELEMENTS = 1 << 16  # of an array of such rows
MAX_TRANSPOSE_STEPS = 2  # operations beside a transpose of the last axis, up to which tiles pay

DEFAULT = Flags(extra=(SMALL_LOOP, NO_TILES))  # of programs of which nothing is known

# Operations of StableHLO that the two ways round differently.
ROUNDED_DIFFERENTLY = frozenset(
    ("stablehlo.tan", "stablehlo.cbrt", "stablehlo.atan2", "chlo.atan", "chlo.tan")
)
BYTES = frozenset(map(np.dtype, (np.int8, np.uint8)))
# What a program may have beside a transpose, for XLA to use tiles.
BESIDE_TILES = (CpuCall, Reshape, Squeeze, Transpose)
ARC_TANGENTS = frozenset(("chlo.atan", "chlo.atanh", "stablehlo.atan2"))


def choose_flags(jaxpr: Jaxpr, partitioned: bool) -> Flags:
    """Return the flags for a program that is lowered for CPUs.

    Args:
      jaxpr: the program, after the passes for CPUs.
      partitioned: whether XLA splits it over devices.
    """
    facts = ProgramFacts(jaxpr)
    overrides = () if partitioned else choose_quick_flags(facts)
    given = os.environ.get("XLA_FLAGS", "")
    if not facts.multiplies and not facts.has_arc_tangent and WIDE[0] not in given:
        overrides = (*overrides, WIDE)
    if facts.computes_bytes:
        overrides = (*overrides, NO_FUSION)
    return Flags(overrides, (SMALL_LOOP,) if facts.transposes else (SMALL_LOOP, NO_TILES))


def choose_quick_flags(facts: ProgramFacts) -> tuple[tuple[str, object], ...]:
    """Return the flags by which a program compiles in half the time, if it runs as fast."""
    given = os.environ.get("XLA_FLAGS", "")
    if OLDER_LOOPS[0] in given or not jaxlib_version.startswith("0.10."):
        return ()  # later releases have one way
    if facts.is_rounded_differently or (facts.draws and facts.has_functions):
        return ()
    large = [s for s in facts.shapes if math.prod(s) > MAX_QUICK_ELEMENTS]
    if not large:
        return QUICK
    vectors = {*map(len, large)} == {1}
    rows = all(math.prod(rest) < MAX_SHORT_ROW for _, *rest in large) and not facts.multiplies
    rows = rows and max(map(math.prod, large)) >= MIN_ROWS_ELEMENTS
    uneven = (vectors or rows) and any(n % (os.cpu_count() or 1) for n, *_ in large)
    return (OLDER_LOOPS,) if facts.joins_once or (uneven and not facts.reshapes) else ()


class ProgramFacts:
    """What the flags depend on.

    Attributes:
      shapes: the shapes of all arrays.
      multiplies: the program has products of matrices that XLA computes.
      has_arc_tangent: it has an arc tangent that XLA computes.
      computes_bytes: it computes integers of 8 bits, rather than only reading or moving them.
      transposes: it is a transpose with little beside, or has products of transposed batches. XLA's
        tiles are quicker for these.
      is_rounded_differently: its results may depend on the way in which XLA writes loops.
      draws: it has random numbers, whose bits are documented.
      has_functions: it has functions such as exp, which the two ways may round differently.
      joins_once: it is one concatenation, of slices or operands.
      reshapes: it has reshapes, or tiles, which are lowered with one.
    """

    def __init__(self, jaxpr: Jaxpr):
        eqns = [*iter_equations(jaxpr)]
        avals = [a.aval for e in eqns for a in (*e.invars, *e.outvars)]
        avals += [v.aval for v in (*jaxpr.constvars, *jaxpr.invars)]
        odd = any(dtypes.is_complex(a.dtype) or type(a.size) is not int for a in avals)
        operations = {e.primitive.operation for e in eqns if isinstance(e.primitive, Elementwise)}
        others = [e for e in eqns if not isinstance(e.primitive, BESIDE_TILES)]
        self.shapes = {a.shape for a in avals if a.shape}
        self.multiplies = any(map(multiplies, eqns))
        self.has_arc_tangent = not ARC_TANGENTS.isdisjoint(operations)
        self.computes_bytes = any(map(computes_bytes, eqns))
        self.is_rounded_differently = (
            odd or not ROUNDED_DIFFERENTLY.isdisjoint(operations) or any(map(may_loop, eqns))
        )
        self.draws = any(map(draws_bits, eqns))
        self.has_functions = any(map(is_function, eqns))
        self.reshapes = any(isinstance(e.primitive, Reshape | Squeeze | Tile) for e in eqns)
        joins = [e for e in eqns if isinstance(e.primitive, Concatenate)]
        parts = [e for e in eqns if isinstance(e.primitive, Slice)]
        self.joins_once = len(joins) == 1 and len(joins) + len(parts) == len(eqns)
        if self.multiplies:
            self.transposes = any(map(moves_batch, eqns))
        else:
            few = len(others) <= MAX_TRANSPOSE_STEPS and all(e.primitive.by_element for e in others)
            moved = few and any(map(moves_last_axis, eqns))
            self.transposes = not others or moved or transposes_one_matrix(jaxpr)


def iter_equations(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """Yield the equations of a program, and of the programs that it runs on arrays."""
    for eqn in jaxpr.eqns:
        yield eqn
        if not eqn.primitive.memoize_type:
            for body in running_bodies(eqn):
                yield from iter_equations(body.jaxpr)


def is_opaque(eqn: Eqn) -> bool:
    """Return True if nothing is known of what an equation is written as: an exported program."""
    return eqn.primitive.cost is Cost.UNKNOWN and eqn.primitive.memoize_type


def multiplies(eqn: Eqn) -> bool:
    """Return True if XLA computes products of matrices for an equation, or may."""
    return isinstance(eqn.primitive, DotGeneral) or is_opaque(eqn)


def may_loop(eqn: Eqn) -> bool:
    """Return True if an equation is a loop or a scatter, which the older way is slower for."""
    prim = eqn.primitive
    if prim.form is Form.SCATTER or is_opaque(eqn):
        return True
    if isinstance(prim, Elementwise):
        return not prim.by_element
    return any(body.runs is Runs.LOOP for body in bodies_of(eqn))


def computes_bytes(eqn: Eqn) -> bool:
    """Return True if an equation computes integers of 8 bits."""
    moved = eqn.primitive.elements is Elements.MOVED
    return not moved and any(v.aval.dtype in BYTES for v in eqn.outvars)


def draws_bits(eqn: Eqn) -> bool:
    """Return True if an equation draws random bits, or takes parts of them."""
    prim = eqn.primitive
    if prim.elements is Elements.RANDOM:
        return True
    shifts = isinstance(prim, Elementwise) and prim.operation == "stablehlo.shift_right_logical"
    return shifts and dtypes.is_unsigned(eqn.outvars[0].aval.dtype)


def is_function(eqn: Eqn) -> bool:
    """Return True if an equation computes a function such as exp of each element."""
    prim = eqn.primitive
    by_element = eqn.params["by_element"] if isinstance(prim, Formula) else prim.by_element
    return by_element and prim.cost is Cost.TRANSCENDENTAL


def moves_batch(eqn: Eqn) -> bool:
    """Return True if a batch is not in front, as heads of attention are, or is moved there."""
    if isinstance(eqn.primitive, Transpose):
        return tuple(eqn.params["permutation"]) == (0, 2, 1, 3)
    if not isinstance(eqn.primitive, DotGeneral):
        return False
    _, batches = eqn.params["dimension_numbers"]
    return any(tuple(b[:2]) not in ((), (0,), (0, 1)) for b in batches)


def moves_last_axis(eqn: Eqn) -> bool:
    """Return True if an equation is a transpose of the last axis of an array of three to five."""
    if not isinstance(eqn.primitive, Transpose):
        return False
    *order, last = eqn.params["permutation"]
    return 2 <= len(order) <= 4 and last != len(order)


def transposes_one_matrix(jaxpr: Jaxpr) -> bool:
    """Return True if a program has one operand, uses it once, and transposes a matrix."""
    if len(jaxpr.invars) != 1:
        return False
    reads = [a for e in jaxpr.eqns for a in e.invars if a is jaxpr.invars[0]]
    turned = any(
        isinstance(e.primitive, Transpose) and tuple(e.params["permutation"]) == (1, 0)
        for e in jaxpr.eqns
    )
    return turned and len(reads) == 1
