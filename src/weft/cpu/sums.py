"""Sums over axes, answers to comparisons, inner products, and reductions of long rows.

XLA:CPU has a library for sums of floats (YNNPACK), and loops of its own. Either is slow for some
shapes. Here are other forms for these shapes; the kernels are in native/sum.cc and compare.cc.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import LIGHT, Elements
from weft.core.jaxpr import Atom, Eqn, Literal, bodies_of
from weft.core.primitive import Primitive
from weft.cpu.broadcasts import find_sources, sum_in_rows
from weft.cpu.calls import call_kernel
from weft.cpu.cheap_programs import describe_view
from weft.cpu.elements import find_direction
from weft.cpu.folds import choose_fold, may_fold
from weft.cpu.formula import Formula, apply_formula, apply_plainly
from weft.cpu.kernels import are_floats
from weft.cpu.rewriting import Reading, Replacement
from weft.cpu.scope import Scope
from weft.optimize.views import View, find_views, view_whole
from weft.primitives.dot import product_dtypes
from weft.primitives.elementwise import Elementwise, add_p, mul
from weft.primitives.expr import Expr
from weft.primitives.families import drop_axes
from weft.primitives.kernels import Called
from weft.primitives.layout import convert, reduce_sum, reshape
from weft.primitives.reduction import Reduction
from weft.primitives.tokens import optimization_barrier
from weft.util import is_below
from weft.xla.hlo import i64s

BOOL, INT32, UINT32, F16, F32, F64 = map(np.dtype, ("?", "int32", "uint32", "e", "f", "d"))
FLOATS = F32, F64
COMPLEX = np.dtype(np.complex64), np.dtype(np.complex128)
BYTES = BOOL, np.dtype(np.int8), np.dtype(np.uint8)
SMALL = (*BYTES, F16, np.dtype(dtypes.bfloat16))
MIN_SUM_SIZE = 1 << 15  # elements: for fewer, the call of a kernel does not pay
MIN_BYTE_SUM_SIZE = 1 << 12  # the same, of elements of one byte, and of comparisons
MIN_WAKING_SIZE = 1000  # elements that XLA gives to another thread, which takes long to wake
MIN_SMALL_ROW = 16  # elements, or lanes, of rows of a sum of so few elements
MIN_PARTS = 8  # parts that an array is large enough for, so that XLA divides a loop by its size
MIN_STEPS_SIZE = 1 << 18  # elements of one row: shorter rows are not reduced in three steps
MIN_SLOW_LANES = 24576  # YNNPACK takes 2 to 5 times the kernel's time for rows so long, and longer
MAX_SHORT_ROW = 8  # elements of a row: XLA's loop takes rows so short at once, and several of them
MAX_REPEATED_ROW = 32  # the same, of a row that is computed from smaller arrays
MAX_UNROLLED = 140  # operations on such a row; LLVM unrolls loops of no more, and writes vectors
MIN_SHORT_ROWS = 256  # rows: for fewer, it does not matter
MAX_CHEAP_STEPS = 16  # operations that XLA computes within the loop of a sum of short rows
COMPARED = frozenset(map(np.dtype, "?bhiqBHIQfd"))  # the dtypes that the kernel compares


class SumKind(enum.IntEnum):
    """The kinds of sum that the kernel computes.

    ALL adds every element, FINITE skips NaN, COUNT counts the elements that are not NaN, PRODUCT
    multiplies along rows.
    """

    ALL = 0
    FINITE = 1
    COUNT = 2
    PRODUCT = 3


# --- sums -----------------------------------------------------------------------------------


def choose_sum(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Add up by a kernel, by a loop of XLA's in place of its library's, or in several steps."""
    (atom,), axes = eqn.invars, eqn.params["axes"]
    x = atom.aval
    if not axes or type(x.size) is not int:
        return None
    out = reduced_type(x, axes)
    found: Replacement | None = call_sum(atom, axes, out, SumKind.ALL, scope)
    found = found or add_small(atom, axes, out, scope) or choose_fold(eqn, add_p, 0, scope)
    if found is None and x.dtype in FLOATS:
        found = sum_in_rows(atom, axes, scope)
    if found is not None:
        return found
    if x.dtype in FLOATS:
        short = are_few(x, axes) or are_short(atom, axes, scope)
        if short and not scope.target.devices:
            return lambda x: apply_formula(write_sum_by_loop, [x], [out], axes)
        if out.size == 1 and out.shape:  # an axis of size 1 costs ten times the time
            row = [x.shape[a] for a in axes]
            return lambda x: [reshape(reduce_sum(reshape(x, row), range(len(row))), out.shape)]
    if x.dtype.kind not in "iuc":
        return None
    return reduce_beside(atom, axes, eqn.primitive, False, scope)


def reduced_type(x: ShapedArray, axes: Sequence[int]) -> ShapedArray:
    """Return the type of a reduction over axes, which are removed."""
    return ShapedArray(drop_axes(x.shape, axes), x.dtype)


def write_sum_by_loop(hlo: Any, x: Any, axes: Sequence[int]) -> list:
    """Write a sum as a + b in a way that YNNPACK does not know: a - -b.

    YNNPACK takes 7 ms for the 16 rows of (16, 100000), and XLA's own loop 0.09 ms. For thousands of
    rows the loop takes 10 times as long as YNNPACK, except for short rows a fifth to a tenth.
    """
    cell = ShapedArray((), x.aval.dtype)
    body = hlo.block([cell, cell], lambda a, b: [(Expr(hlo, a) - -Expr(hlo, b)).value])
    given = [x, hlo.constant(0, cell)], [reduced_type(x.aval, axes)], [body]
    return hlo.op("stablehlo.reduce", *given, dimensions=i64s(axes))


def call_sum(
    atom: Atom, axes: Sequence[int], out: ShapedArray, kind: SumKind, scope: Scope
) -> Callable[..., list] | Reading | None:
    """Return the call of the kernel that adds up, if it is quicker.

    It is for arguments of the program; XLA may compute all else within its loop. It is for sums of
    wide columns too. It is not quicker for short rows. It is for any operand of a small sum for
    which XLA would wake a thread.
    """
    x = atom.aval
    small = scope.light and is_below(x.size, MIN_SUM_SIZE)
    kinds = {*FLOATS, *(INT32, UINT32) * small}
    if kind in (SumKind.ALL, SumKind.PRODUCT):
        kinds.update(COMPLEX)
    if out.dtype != x.dtype:
        kinds.update(SMALL)
    least = MIN_SUM_SIZE if x.dtype.itemsize > 1 else MIN_BYTE_SUM_SIZE
    least = MIN_WAKING_SIZE if small else least
    if not axes or x.dtype not in kinds or type(x.size) is not int or x.size < least:
        return None
    _, n, lanes = sizes = sizes_around(x.shape, axes)
    few = are_few(x, axes)
    plain = kind is SumKind.ALL and x.dtype in FLOATS  # at which XLA is quick, too
    long = n >= (512 if plain else 128) if lanes == 1 else lanes >= 64
    long = long or (small and n >= MIN_SMALL_ROW and (lanes == 1 or lanes >= MIN_SMALL_ROW))
    if (few and kind is not SumKind.ALL) or (lanes > 1 and kind is SumKind.PRODUCT):
        return None
    worth = are_near(axes) and long and x.size >= 8 * out.size
    stored = small or (plain and lanes >= MIN_SLOW_LANES and not few)
    if not worth or not scope.target.kernels or not (stored or is_given(atom, scope)):
        return None
    call = lambda x: call_reduction("weft_sum", [x], sizes, out, {"what": int(kind)})
    return read_part(call, atom, scope) if small else call


def read_part(call: Callable[..., list], atom: Atom, scope: Scope) -> Callable[..., list] | Reading:
    """Return a reduction of an operand that, as a small part of a large array, a kernel reads.

    XLA divides the loop that copies a part by the bytes of the whole array, and wakes a thread.
    """
    aval, makers, whole = atom.aval, [], atom
    while (maker := scope.maker(whole)) is not None and len(maker.invars) == 1:
        makers.append(maker)
        (whole,) = maker.invars
    if not makers or is_below(whole.aval.size, MIN_PARTS * aval.size):
        return call
    views: dict[Any, View] = {whole: view_whole(whole)}
    for maker in reversed(makers):
        found = find_views(maker, views)
        if found is None:
            return call
        views.update(zip(maker.outvars, found, strict=True))
    attributes = describe_view(aval, views[atom])
    if not attributes:
        return call
    part = aval.strong()
    return Reading(lambda x: call(*call_kernel("weft_view", [x], [part], attributes)), [whole])


def is_given(atom: Atom, scope: Scope) -> bool:
    """Return True if an operand is an argument of the program, or one under another shape."""
    maker = scope.maker(atom)
    if maker is not None and len(maker.invars) == 1 and maker.invars[0].aval.size == atom.aval.size:
        views = find_views(maker, {maker.invars[0]: view_whole(maker.invars[0])})
        if views and views[0].is_contiguous:
            (atom,) = maker.invars
    return scope.is_argument(atom)


def add_small(
    atom: Atom, axes: Sequence[int], out: ShapedArray, scope: Scope
) -> Replacement | None:
    """Return the sum of the 8 or 16 bits that an operand was converted from, rounded once."""
    x, maker = atom.aval, scope.maker(atom)
    wide = x.dtype in FLOATS
    if maker is None or maker.primitive.elements is not Elements.CONVERTED:
        return None
    if not (wide or x.dtype in (INT32, UINT32)) or x.size < MIN_BYTE_SUM_SIZE:
        return None
    (given,) = maker.invars
    kind = given.aval.dtype
    rows, n, lanes = sizes_around(x.shape, axes)
    if kind not in SMALL:
        return None
    if kind not in BYTES:  # YNNPACK is as quick for one row of bfloat16
        fits = x.dtype == F32 and (kind == F16 or rows * lanes > 1)
        call = call_sum(given, axes, out, SumKind.ALL, scope) if fits else None
        return call if call is None or isinstance(call, Reading) else Reading(call, [given])
    if wide and n << 8 * (kind != BOOL) >= 1 << 31:
        return None
    whole = ShapedArray(out.shape, INT32) if wide else out
    found: Replacement | None = call_sum(given, axes, whole, SumKind.ALL, scope)
    if found is None and whole.dtype == INT32:
        found = call_comparison(given, axes, whole, "count", scope)
    if found is not None:
        fun, atoms = found if isinstance(found, Reading) else (found, [given])
        return Reading(lambda *xs: [convert(y, out.dtype) for y in fun(*xs)], atoms)
    exact = wide and lanes == 1 and x.size >= MIN_SUM_SIZE and not scope.target.devices
    if not exact or not split_row(n, ShapedArray(x.shape, INT32), rows == 1)[1]:
        return None
    return Reading(lambda x: [convert(reduce_sum(convert(x, INT32), axes), out.dtype)], [given])


def are_short(atom: Atom, axes: Sequence[int], scope: Scope) -> bool:
    """Return True if rows are short, and XLA's loop may compute their elements too.

    XLA computes within the loop all that is elementwise before it, once more and slower: a formula
    of a sine in that loop took 3 times as long. What it computes in loops of its own does no harm.
    """
    rows, n, lanes = sizes_around(atom.aval.shape, axes)
    if lanes != 1 or not 2 <= n <= MAX_REPEATED_ROW or rows < MIN_SHORT_ROWS:
        return False
    if n > MAX_SHORT_ROW:
        made = find_sources(atom, scope)
        return made is not None and n * (1 + made.count_steps()) <= MAX_UNROLLED
    left, seen = [scope.maker(atom)], set[int]()
    while left:
        eqn = left.pop()
        if eqn is None or id(eqn) in seen:
            continue
        if is_cheap(eqn):
            seen.add(id(eqn))
            if len(seen) > MAX_CHEAP_STEPS:
                return False
            left += map(scope.maker, eqn.invars)
        elif not is_apart(eqn):
            return False
    return True


def is_cheap(eqn: Eqn) -> bool:
    """Return True if XLA computes an equation within any loop, as fast as by itself.

    That is so, too, of functions that are an operation of XLA's, which it vectorizes.
    """
    prim = eqn.primitive
    kernel, operation = getattr(prim, "kernel", None), getattr(prim, "operation", "")
    vectorized = kernel is not None and kernel.float32 is Called.ALONE_LARGE and operation
    return prim.cost in LIGHT or bool(vectorized)


def is_apart(eqn: Eqn) -> bool:
    """Return True if XLA computes an equation in a loop of its own, not within another."""
    if any(body.names_flow_in for body in bodies_of(eqn)):  # a function, which XLA inlines
        return False
    if isinstance(eqn.primitive, Formula):
        return all(a.aval.shape != eqn.outvars[0].aval.shape for a in eqn.invars)
    return not isinstance(eqn.primitive, Elementwise)


# --- answers to comparisons -----------------------------------------------------------------


def choose_logical(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Answer a comparison by a kernel, which stops early; else combine elements side by side."""
    (atom,), axes, prim = eqn.invars, eqn.params["axes"], cast(Reduction, eqn.primitive)
    out = reduced_type(atom.aval, axes)
    if prim.answer and (found := call_comparison(atom, axes, out, prim.answer, scope)):
        return found
    return reduce_beside(atom, axes, prim, True, scope)


def call_comparison(
    atom: Atom, axes: Sequence[int], out: ShapedArray, answer: str, scope: Scope
) -> Reading | None:
    """Return the call of the kernel that answers if, or how often, a comparison holds.

    `answer` is "any", "all" or "count". It is for arguments of the program, also one and a number,
    and stops where the answer is known.
    """
    x = atom.aval
    if x.dtype != BOOL or not axes or type(x.size) is not int or x.size < MIN_BYTE_SUM_SIZE:
        return None
    _, n, lanes = sizes = sizes_around(x.shape, axes)
    if not are_near(axes) or (n < 128 if lanes == 1 else lanes < 64) or not scope.target.kernels:
        return None
    maker = scope.maker(atom)
    direction = find_direction(maker)
    false = Literal(np.False_, ShapedArray((), BOOL))
    given = maker.invars if maker and direction else [false, atom]
    operands = [a for a in (find_operand(a, scope) for a in given) if a is not None]
    if len(operands) < 2 or any(a.aval.dtype not in COMPARED for a in operands):
        return None
    if not any(a.aval.shape for a in operands):
        return None
    attributes = {"direction": direction or "NE", "answer": answer}
    return Reading(lambda *xs: call_reduction("weft_compare", xs, sizes, out, attributes), operands)


def find_operand(atom: Atom, scope: Scope) -> Atom | None:
    """Return an operand of a comparison that its kernel can read: an argument or one number."""
    atom = scope.find_repeated(atom)
    return atom if not atom.aval.shape or scope.is_argument(atom) else None


# --- inner products -------------------------------------------------------------------------


def choose_inner_products(eqn: Eqn, scope: Scope) -> Callable[..., list] | None:
    """Compute sums of products along axes by the kernel of sums.

    It is for a `dot_general` without free axes. XLA multiplies and adds one after the other, which
    takes 3 to 4 times the kernel's time for a million products.
    """
    lhs, rhs, params = eqn.invars[0].aval, eqn.invars[1].aval, eqn.params
    out, ((lc, rc), (lb, rb)) = eqn.outvars[0].aval, params["dimension_numbers"]
    order = sorted(lb), sorted(lc)
    if not ([*lb], [*lc]) == ([*rb], [*rc]) == order or len(lb) != out.ndim or not lc:
        return None
    kinds, made, _ = product_dtypes(lhs, rhs, out, params)
    x = ShapedArray(lhs.shape, kinds[0])
    if made != out.dtype or not are_floats(x, ShapedArray(rhs.shape, kinds[1]), out):
        return None
    _, n, lanes = sizes = sizes_around(lhs.shape, lc)
    if lhs.size == n and may_fold(x, scope):
        return lambda *xs: [reduce_sum(mul(*map(convert, xs, kinds)), lc)]
    if lhs.size < MIN_SUM_SIZE or not are_near(lc) or not scope.target.kernels:
        return None
    if n < (512 if lanes == 1 else 16) or 1 < lanes < 64:
        return None
    plain = ShapedArray(out.shape, out.dtype)

    def multiply(*xs: Any) -> list:
        given = [convert(x, kind) for x, kind in zip(xs, kinds, strict=True)]
        return call_reduction("weft_sum", given, sizes, plain, {"what": int(SumKind.ALL)})

    return multiply


# --- reductions in steps --------------------------------------------------------------------


def reduce_beside(
    atom: Atom, axes: Sequence[int], prim: Primitive, deeply: bool, scope: Scope
) -> Callable[..., list] | None:
    """Return a reduction of long rows that combines neighbouring elements as a vector.

    XLA:CPU combines elements one by one, except for floats that its library adds or compares.

    Args:
      atom: the operand.
      axes: the axes that are reduced.
      prim: the reduction.
      deeply: True if it pays to combine any number of elements in one loop.
      scope: where the operand is computed.
    """
    x = atom.aval
    if scope.target.devices or not axes or type(x.size) is not int or x.size < MIN_SUM_SIZE:
        return None
    rows, n, lanes = sizes_around(x.shape, axes)
    if lanes != 1 or not are_near(axes):
        return None
    # elements of 8 bytes are as quick a row at a time, unless integers are converted to them
    small = x.dtype.itemsize <= 4 or (x.dtype.kind != "c" and not scope.is_argument(atom))
    deep, side = split_row(n, x, rows == 1) if small or rows == 1 else (0, 0)
    if not side:
        side = find_divisor(n, 128, 16) if deeply and n >= 1024 else 0
        deep = n // max(side, 1)
    if not side:
        return None
    shape = reduced_type(x, axes).shape

    def reduce(x: Any, *sizes: int) -> Any:
        return apply_plainly(prim, reshape(x, sizes), axes=(1,))[0]

    def in_steps(x: Any) -> list:
        # the barriers keep XLA from computing a step within the one that follows it
        y = reduce(x, x.size // (deep * side), deep, side)
        if n > deep * side:
            y = reduce(optimization_barrier(y), 1, n // (deep * side), side)
        y = optimization_barrier(y)
        return [reshape(reduce(y, *typeof(y).shape), shape)]

    return in_steps


def split_row(n: int, aval: ShapedArray, single: bool) -> tuple[int, int]:
    """Return how many elements of each of n to combine at once, and how many of these side by side.

    Up to 32: of more in a loop XLA computes the operand first, and takes two to four times as long.
    So it does where a third step has to follow, except for a `single` row. (0, 0) if there is no
    such number.
    """
    for deep in range(32 if aval.dtype.itemsize <= 4 else 10, 7, -1):
        side = find_divisor(n // deep, 128, 16) if n % deep == 0 else 0
        if side and (n == deep * side or (single and n >= MIN_STEPS_SIZE)):
            return deep, side
    return 0, 0


def find_divisor(n: int, most: int, least: int) -> int:
    """Return the largest divisor of n in a range; 0 if there is none."""
    return next((d for d in range(most, least - 1, -1) if n % d == 0), 0)


# --- shapes ---------------------------------------------------------------------------------


def are_near(axes: Sequence[int]) -> bool:
    """Return True if axes in order are next to each other."""
    return axes[-1] - axes[0] == len(axes) - 1


def sizes_around(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, int, int]:
    """Return how many elements there are before axes, along them, and behind them."""
    before, behind = shape[: axes[0]], shape[axes[-1] + 1 :]
    return math.prod(before), math.prod(shape[a] for a in axes), math.prod(behind)


def are_few(x: ShapedArray, axes: Sequence[int]) -> bool:
    """Return True if a reduction combines few rows, which are long: YNNPACK takes long for them."""
    lanes = math.prod(x.shape[axes[-1] + 1 :]) if axes and type(x.size) is int else 0
    return lanes >= 8192 and math.prod(x.shape[a] for a in axes) <= min(256, lanes // 128)


def call_reduction(
    kernel: str, xs: Sequence[Any], sizes: tuple, out: ShapedArray, attributes: Mapping[str, Any]
) -> list:
    """Call a kernel that reduces arrays, reshaped to `sizes`, along the second axis.

    Some kernels take a number in place of an array.
    """
    values = [reshape(x, sizes) if typeof(x).shape else x for x in xs]
    (y,) = call_kernel(kernel, values, [ShapedArray((sizes[0], sizes[2]), out.dtype)], attributes)
    return [reshape(y, out.shape)]
