"""Reductions: max, min, prod, and, or, xor, argmax, argmin, and `reduce` for a user's function.

`reduce_sum` is in layout.py, the adjoint of broadcasting; reductions over windows are in window.py,
running ones in cumulative.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.element import Apply, Number, Select, reduce_over, sum_over
from weft.core.facts import Cost, Elements
from weft.core.form import Form
from weft.core.jaxpr import Jaxpr, Literal, bodies_of
from weft.core.primitive import Axes, Primitive, Zero, mark_moving, tangents_of
from weft.core.stage import stage
from weft.core.trace import Tracer, current
from weft.errors import DtypeError, PytreeError, ShapeError
from weft.primitives import families, layout
from weft.primitives.constant import stage_whole
from weft.primitives.elementwise import (
    add,
    add_p,
    and_p,
    bitwise_not,
    bitwise_or,
    convert,
    div,
    eq,
    imag,
    max_p,
    min_p,
    mul,
    mul_p,
    name_function,
    ne,
    ne_p,
    or_p,
    real,
    select,
    xor_p,
)
from weft.primitives.elementwise import complex as join_parts
from weft.primitives.expr import Expr, order_bits
from weft.primitives.reshard import lay_out
from weft.primitives.slicing import concatenate, fill_to_power, slice_in_dim
from weft.primitives.tokens import keep_p
from weft.pytrees import flatten, unflatten
from weft.util import SymbolicSize, check_function, is_below, memoize, unzip2
from weft.xla.hlo import i64s
from weft.xla.lower import lower_jaxpr
from weft.xla.typing import Array, ArrayLike, DTypeLike

MAX_EXACT = 1 << 24  # float32 represents all integers up to this number


def spread_back(y: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """Repeat the result of a reduction over `axes` along them, to `shape`."""
    return layout.broadcast_in_dim(y, shape, tuple(i for i in range(len(shape)) if i not in axes))


def lowest_value(dtype: np.dtype) -> Any:
    """The least value of a dtype: -inf where there is one. The identity of max."""
    return _extreme_value(dtype, -1)


def highest_value(dtype: np.dtype) -> Any:
    """The greatest value of a dtype: inf where there is one. The identity of min."""
    return _extreme_value(dtype, 1)


@memoize
def _extreme_value(dtype: np.dtype, side: int) -> Any:
    if dtypes.is_bool(dtype):
        return side > 0
    if dtypes.is_complex(dtype):
        return complex(side * np.inf, side * np.inf)
    if dtypes.is_integer(dtype):
        info = ml_dtypes.iinfo(dtype)
        return int(info.max if side > 0 else info.min)
    if not dtypes.is_inexact(dtype):
        name = "min" if side > 0 else "max"
        raise DtypeError(f"{name}: elements must be numbers; got {dtype}.")
    inf = np.asarray(side * np.inf).astype(dtype)
    if np.isinf(inf.astype(np.float64)):
        return side * np.inf
    info = ml_dtypes.finfo(dtype)
    return float(info.max if side > 0 else info.min)


def all_ones(dtype: np.dtype) -> Any:
    """The value with every bit set. The identity of and."""
    return -1 if dtypes.is_signed(dtype) else highest_value(dtype)


class Reduction(families.ByCombination, families.OverAxes, families.Discrete):
    """A family: out = the elements of x along `axes`, which are removed, combined by `combine`.

    `combine` is the elementwise primitive, `identity(dtype)` the result for no elements.
    Dtypes: as `takes` says; the result has x's. Source: StableHLO, reduce.
    """

    cost = Cost.REDUCTION
    form = Form.LOGICAL
    answer = ""  # of truth values: "any" or "all" of them are true

    def abstract_eval(self, x, *, axes):
        families.check_ascending_axes(self.name, axes, x.ndim)
        families.check_kind(self.name, self.takes, x)
        return [ShapedArray(families.drop_axes(x.shape, axes), x.dtype, x.weak_type)]

    def element(self, i, x, *, axes, **params):
        sizes = [x.shape[a] for a in axes]
        return [self.combine_over(sizes, x.dtype, self.read_over(i, axes, x))]

    def lower(self, hlo, x, *, axes):
        cell = ShapedArray((), x.aval.dtype)
        init = hlo.constant(self.identity(cell.dtype), cell)
        return lower_reduce(hlo, [x], [init], axes, lambda a, b: self.combine.lower(hlo, a, b))


def lower_reduce(
    hlo: Any, xs: Sequence[Any], inits: Sequence[Any], axes: Sequence[int], combine: Callable
) -> list:
    """Write the reduction over `axes` of several arrays together; `combine` writes the body."""
    outs = [ShapedArray(families.drop_axes(x.aval.shape, axes), x.aval.dtype) for x in xs]
    body = hlo.block([i.aval for i in (*inits, *inits)], combine)
    return hlo.op("stablehlo.reduce", [*xs, *inits], outs, [body], dimensions=i64s(axes))


class Extremum(Reduction):
    """The reductions max and min. Elements that tie for the result share the derivative equally.

    `nan` is the treatment of NaN: with "keep" it is the result; with "skip" it counts only if all
    elements are NaN; "any" permits both, and XLA has faster ways to compute it and fuses it.
    """

    elements = Elements.CHOSEN
    form = Form.EXTREMUM

    @property
    def largest(self) -> bool:
        """Return True if it is the maximum, not the minimum."""
        return self.combine is max_p

    def abstract_eval(self, x, *, axes, nan="keep"):
        return super().abstract_eval(x, axes=axes)

    def element(self, i, x, *, axes, nan="keep"):
        if nan != "skip" or not dtypes.is_inexact(x.dtype):
            return super().element(i, x, axes=axes)
        sizes, read = [x.shape[a] for a in axes], self.read_over(i, axes, x)
        lost, true = lambda *k: Apply(ne_p, (read(*k),) * 2, {}), np.dtype(bool)
        least = Number(self.identity(x.dtype), x.dtype)
        best = self.combine_over(sizes, x.dtype, lambda *k: Select(lost(*k), least, read(*k)))
        every = reduce_over(and_p, Number(True, true), sizes, lost)
        return [Select(every, Number(math.nan, x.dtype), best)]

    def lower(self, hlo, x, *, axes, nan="keep"):
        if nan == "skip" and dtypes.is_float(x.aval.dtype):
            skip = lambda x: [self.skip_nan(x, axes)]
            return lower_jaxpr(hlo, stage_whole(skip, [x.aval]), [x])
        return super().lower(hlo, x, axes=axes)

    def lower_by_order(self, hlo: Any, x: Any, reduce: Callable[[Any], Any]) -> Any:
        """Write the extremum of floats by way of integers in their order, which `reduce` takes.

        The libraries that reduce over several devices lose NaN. Here NaN is the integer that the
        reduction keeps.
        """
        x = Expr(hlo, x)
        wide = x if x.dtype.itemsize > 1 else x.convert(np.dtype(np.float32))
        key = order_bits(wide.bitcast(f"int{8 * wide.dtype.itemsize}"))
        info = dtypes.iinfo(key.dtype)
        last = key.like(int(info.max if self.largest else info.min))
        key = Expr(hlo, reduce(wide.compare("NE", wide).select(last, key).value))
        return order_bits(key).bitcast(wide.dtype).convert(x.dtype).value

    def reduce_parts(self, x: Any, axes: tuple[int, ...]) -> Any:
        """The extremum of complex numbers by reductions of floats, as operations.

        XLA combines what several devices have found by its own functions, which take no complex
        numbers.
        """
        parts, shape = (real(x), imag(x)), typeof(x).shape
        (best,) = self.apply(parts[0], axes=axes)
        least = layout.literal(self.identity(typeof(best).dtype), typeof(best).dtype)
        tied = select(eq(parts[0], spread_back(best, shape, axes)), parts[1], least)
        (second,) = self.apply(tied, axes=axes)
        lost = reduce_or(ne(x, x), axes)
        best, second = (select(lost, layout.full_like(y, math.nan), y) for y in (best, second))
        return join_parts(best, second)

    def jvp(self, primals, tangents, *, axes, **params):
        (x,), (t,) = primals, tangents
        (kept,) = keep_p.apply(x)  # else XLA may round x in two ways
        (out,) = self.apply(x, axes=axes, **params)
        hit = eq(kept, spread_back(out, typeof(x).shape, axes))
        share = convert(hit, typeof(t).dtype)
        total, count = layout.reduce_sum(mul(t, share), axes), layout.reduce_sum(share, axes)
        if params.get("nan") == "skip":  # where all is NaN, none is hit
            count = add(count, convert(eq(count, 0), typeof(count).dtype))
        return [out], [div(total, count)]

    def skip_nan(self, x: Any, axes: tuple[int, ...]) -> Any:
        """Return the maximum or minimum of the elements that are not NaN, as operations."""
        aval, nan = typeof(x), ne(x, x)
        fill = layout.literal(self.identity(aval.dtype), aval.dtype)
        y = self.apply(select(nan, fill, x), axes=axes, nan="any")[0]
        return select(reduce_and(nan, axes), layout.literal(math.nan, aval.dtype), y)


def write_keeping_nan(hlo: Any, combine: Primitive) -> Callable:
    """Return a writer of the body of a reduction by max or min, which keeps NaN.

    XLA:CPU gives large reductions to a library that loses NaN; the library does not know this body.
    """
    one = lambda a, b: combine.lower(hlo, a, b)
    return lambda a, b: one(*one(a, b), *one(b, a))


class Product(Reduction):
    """The reduction by multiplication. Its derivative multiplies in pairs, so zeros do no harm."""

    form = Form.REDUCED_PRODUCT

    def jvp(self, primals, tangents, *, axes):
        (x,), (t,) = primals, tangents
        (out,) = self.apply(x, axes=axes)
        shape = typeof(out).shape
        if typeof(x).size == 0:
            return [out], [layout.zeros(typeof(out))]
        pair = join_axes(axes, x, t)
        if isinstance(typeof(pair[0]).shape[0], SymbolicSize):
            pair = [fill_to_power(y, 0, value) for y, value in zip(pair, (1, 0), strict=True)]
        _, dot = reduce_in_pairs(multiply_pairs, pair)
        return [out], [layout.reshape(dot, shape)]


def multiply_pairs(xs: Sequence[Any], ys: Sequence[Any]) -> list:
    """The product of two numbers with their tangents."""
    (x, dx), (y, dy) = xs, ys
    return [mul(x, y), add(mul(dx, y), mul(x, dy))]


def join_axes(axes: Sequence[int], *arrays: Any) -> list:
    """Each array with `axes` made one axis, in front."""
    shape = typeof(arrays[0]).shape
    order = (*axes, *(i for i in range(len(shape)) if i not in axes))
    rest = families.drop_axes(shape, axes)
    n = math.prod(shape[a] for a in axes)
    return [layout.reshape(layout.transpose(x, order), (n, *rest)) for x in arrays]


def reduce_in_pairs(combine: Callable, xs: Sequence[Any]) -> list:
    """Reduce lists of arrays along their first axis, not empty, which stays with size 1.

    `combine(lefts, rights)` is associative; it is applied to neighbours, log2(n) times.
    """
    while (n := typeof(xs[0]).shape[0]) > 1:
        lefts = [slice_in_dim(x, 0, n - n % 2, 2) for x in xs]
        rights = [slice_in_dim(x, 1, n, 2) for x in xs]
        rest = [slice_in_dim(x, n - 1, n) for x in xs] if n % 2 else None
        xs = combine(lefts, rights)
        if rest:
            xs = [concatenate([x, r], 0) for x, r in zip(xs, rest, strict=True)]
    return list(xs)


reduce_max_p = Extremum(
    "reduce_max", max_p, lowest_value, "any", "The maximum over `axes`; NaN where there is one."
)
reduce_min_p = Extremum(
    "reduce_min", min_p, highest_value, "any", "The minimum over `axes`; NaN where there is one."
)
reduce_prod_p = Product("reduce_prod", mul_p, lambda dtype: 1, "number")
reduce_and_p = Reduction("reduce_and", and_p, all_ones, "bool or integer")
reduce_or_p = Reduction("reduce_or", or_p, lambda dtype: 0, "bool or integer")
reduce_xor_p = Reduction("reduce_xor", xor_p, lambda dtype: 0, "bool or integer")
reduce_and_p.answer, reduce_or_p.answer = "all", "any"


class SumOfNumbers(families.OverAxes):
    """The sum over `axes`, which are removed, of all elements that are not NaN, or their number.

    Dtypes: floats, also if it `counts`: then it rounds once. An empty sum is 0.
    """

    name = "reduce_nansum"
    cost = Cost.REDUCTION
    form = Form.SUM_OF_NUMBERS

    def abstract_eval(self, x, *, axes, counts):
        families.check_ascending_axes(self.name, axes, x.ndim)
        families.check_kind(self.name, "float", x)
        return [ShapedArray(families.drop_axes(x.shape, axes), x.dtype, x.weak_type)]

    def element(self, i, x, *, axes, counts):
        read, (zero, one) = self.read_over(i, axes, x), (Number(k, x.dtype) for k in (0, 1))
        lost = lambda *k: Apply(ne_p, (read(*k),) * 2, {})
        term = lambda *k: Select(lost(*k), zero, one if counts else read(*k))
        return [sum_over([x.shape[a] for a in axes], x.dtype, term)]

    def lower(self, hlo, x, *, axes, counts):
        add = lambda x: [self.add(x, axes, counts)]
        return lower_jaxpr(hlo, stage_whole(add, [x.aval]), [x])

    def add(self, x: Any, axes: tuple[int, ...], counts: bool) -> Any:
        """The result, as operations."""
        aval, nan = typeof(x), ne(x, x)
        if not counts:
            return layout.reduce_sum(select(nan, layout.literal(0, aval.dtype), x), axes)
        # XLA adds floats of long rows quicker than integers, and of short ones in twice the time
        each = math.prod(aval.shape[a] for a in axes)
        few = type(each) is int and 128 <= each < MAX_EXACT and aval.dtype.itemsize >= 4
        ones = convert(bitwise_not(nan), aval.dtype if few else dtypes.default_int())
        return convert(layout.reduce_sum(ones, axes), aval.dtype)

    def jvp(self, primals, tangents, *, axes, counts):
        (x,), (t,) = primals, tangents
        (out,) = self.apply(x, axes=axes, counts=counts)
        if counts:
            return [out], families.zero_tangents([out])
        moved = select(ne(x, x), layout.literal(0, typeof(t).dtype), t)
        return [out], [layout.reduce_sum(moved, axes)]


reduce_nansum_p = SumOfNumbers()


REDUCER_DOC = """{first}

    {more}

    Args:
      operand: an array of {takes}.
      axes: the axes to reduce over, distinct ints. They are removed.

    Returns:
      An array of the operand's dtype, without the axes.

    Raises:
      DtypeError: the dtype of the operand is not allowed.
      ShapeError: the operand does not have the axes.

    >>> print(lax.{name}(jnp.array({x}), (0,)))
    {result}
    """


def define_reducer(
    prim: Reduction, first: str, more: str, takes: str, x: str, result: str
) -> Callable[[Any, Sequence[int]], Any]:
    """Return the function of a reduction, `prim.apply(x, axes=axes)[0]`.

    The other parameters are parts of its documentation; x and `result` are an example.
    """

    def fun(operand: ArrayLike, axes: Sequence[int]) -> Array:
        axes = families.sort_axes(axes, prim.name)
        if not axes:
            return operand
        return current.trace.process(prim, (operand,), {"axes": axes})[0]

    named = name_function(fun, prim)
    doc = REDUCER_DOC
    if prim.takes == "any":
        doc = doc.replace("      DtypeError: the dtype of the operand is not allowed.\n", "")
    named.__doc__ = doc.format(
        first=first, more=more, takes=takes, name=prim.name, x=x, result=result
    )
    return named


REDUCTIONS = (reduce_max_p, reduce_min_p, reduce_prod_p, reduce_and_p, reduce_or_p, reduce_xor_p)
reduce_max = define_reducer(
    reduce_max_p,
    "Return the largest element over axes of an array.",
    "The result is NaN if an element is. Of no elements it is -inf or the smallest integer.\n    "
    "Elements that are equally large share the derivative equally.",
    "numbers or bools",
    "[[1.0, 5.0], [3.0, 2.0]]",
    "[3. 5.]",
)
reduce_min = define_reducer(
    reduce_min_p,
    "Return the smallest element over axes of an array.",
    "The result is NaN if an element is. Of no elements it is inf or the largest integer.\n    "
    "Elements that are equally small share the derivative equally.",
    "numbers or bools",
    "[[1.0, 5.0], [3.0, 2.0]]",
    "[1. 2.]",
)
reduce_prod = define_reducer(
    reduce_prod_p,
    "Return the product of the elements over axes of an array.",
    "The product of nothing is 1. The derivative is exact where elements are zero.",
    "numbers",
    "[[1.0, 5.0], [3.0, 2.0]]",
    "[ 3. 10.]",
)
reduce_and = define_reducer(
    reduce_and_p,
    'Return the logical or bitwise "and" of the elements over axes of an array.',
    "The result for no elements is True, or -1 for integers.",
    "bools or integers",
    "[[6, 1], [3, 1]]",
    "[2 1]",
)
reduce_or = define_reducer(
    reduce_or_p,
    'Return the logical or bitwise "or" of the elements over axes of an array.',
    "The result for no elements is False, or 0 for integers.",
    "bools or integers",
    "[[6, 1], [3, 1]]",
    "[7 1]",
)
reduce_xor = define_reducer(
    reduce_xor_p,
    'Return the logical or bitwise "exclusive or" of the elements over axes of an array.',
    "The result for no elements is False, or 0 for integers.",
    "bools or integers",
    "[[6, 1], [3, 1]]",
    "[5 0]",
)


# --- the place of an extremum ---------------------------------------------------------------

MAX_PAIRS = 64  # up to this many elements, one reduction over pairs beats two over numbers


class ArgExtremum(families.OverAxes, families.Discrete):
    """out = the index along `axes` (one axis) of the maximum or minimum; the first one on ties.

    A NaN counts as the extremum. Dtypes: real operands; the result is `index_dtype`.
    Errors: where the axis has no elements.
    """

    cost = Cost.REDUCTION
    form = Form.ARG_EXTREMUM

    def __init__(self, name: str, extremum: Extremum, better: str):
        self.name = name
        self.extremum = extremum
        self.better = better
        self.largest = extremum.largest

    def abstract_eval(self, x, *, axes, index_dtype):
        families.check_ascending_axes(self.name, axes, x.ndim)
        if not dtypes.is_integer(index_dtype):
            raise DtypeError(
                f"{self.name}: index_dtype must be an integer type; got {index_dtype}."
            )
        families.check_kind(self.name, "real", x)
        if len(axes) != 1 or x.shape[axes[0]] == 0:
            raise ShapeError(
                f"{self.name}: needs one axis that has elements; got axes {axes} for {x}."
            )
        return [ShapedArray(families.drop_axes(x.shape, axes), index_dtype)]

    def lower(self, hlo, x, *, axes, index_dtype):
        if not is_below(x.aval.shape[axes[0]], MAX_PAIRS + 1):
            find = lambda x: [self.find_by_value(x, axes, index_dtype)]
            return lower_jaxpr(hlo, stage_whole(find, [x.aval]), [x])
        x = hlo.convert(x, dtypes.whole_byte_dtype(x.aval.dtype))
        index = ShapedArray(x.aval.shape, np.dtype(np.int32))
        (place,) = hlo.op("stablehlo.iota", [], [index], iota_dimension=f"{axes[0]} : i64")
        return [hlo.convert(self.lower_pairs(hlo, x, place, axes), index_dtype)]

    def lower_pairs(self, hlo: Any, x: Any, place: Any, axes: tuple) -> Any:
        """One reduction over pairs (value, index)."""

        def better(*cells: Any) -> list:
            x, i, y, j = (Expr(hlo, v) for v in cells)
            takes_x = x.compare(self.better, y)
            if dtypes.is_inexact(x.dtype):
                takes_x = takes_x | x.compare("NE", x)
            first = takes_x | x.compare("EQ", y) & (i < j)
            return [takes_x.select(x, y).value, first.select(i, j).value]

        inits = [
            hlo.constant(self.extremum.identity(x.aval.dtype), ShapedArray((), x.aval.dtype)),
            hlo.constant(0, ShapedArray((), np.dtype(np.int32))),
        ]
        return lower_reduce(hlo, [x, place], inits, axes, better)[1]

    def find_by_value(self, x: Any, axes: tuple[int, ...], index_dtype: np.dtype) -> Any:
        """Return the least index that has the extremum, by two plain reductions: vectorized."""
        shape = typeof(x).shape
        (best,) = self.extremum.apply(x, axes=axes)
        hit = eq(x, spread_back(best, shape, axes))
        if dtypes.is_inexact(typeof(x).dtype):
            hit = bitwise_or(hit, ne(x, x))
        place = layout.broadcasted_iota(np.dtype(np.int32), shape, axes[0])
        place = select(hit, place, layout.literal_size(shape[axes[0]] - 1, place))
        return convert(reduce_min(place, axes), index_dtype)


argmax_p = ArgExtremum("argmax", reduce_max_p, "GT")
argmin_p = ArgExtremum("argmin", reduce_min_p, "LT")


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the index of the largest element along an axis, which is removed.

    Of equal elements it is the first one; if there is a NaN, it is the index of the first NaN.

    Args:
      operand: an array of integers or floats.
      axis: the axis, an int.
      index_dtype: the dtype of the result, an integer dtype.

    Returns:
      An array of `index_dtype` without the axis.

    Raises:
      DtypeError: `index_dtype` is not an integer dtype.
      ShapeError: the array does not have the axis, or the axis is empty.

    >>> print(lax.argmax(jnp.array([[1, 5, 2], [7, 0, 7]]), 1, np.int32))
    [1 0]
    """
    dtype = dtypes.canonicalize(index_dtype, "argmax")
    return argmax_p.apply(
        operand, axes=(families.check_integer("argmax", "axis", axis),), index_dtype=dtype
    )[0]


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the index of the smallest element along an axis, which is removed.

    Of equal elements it is the first one; if there is a NaN, it is the index of the first NaN.

    Args:
      operand: an array of integers or floats.
      axis: the axis, an int.
      index_dtype: the dtype of the result, an integer dtype.

    Returns:
      An array of `index_dtype` without the axis.

    Raises:
      DtypeError: `index_dtype` is not an integer dtype.
      ShapeError: the array does not have the axis, or the axis is empty.

    >>> print(lax.argmin(jnp.array([[1, 5, 2], [7, 0, 7]]), 1, np.int32))
    [0 1]
    """
    dtype = dtypes.canonicalize(index_dtype, "argmin")
    return argmin_p.apply(
        operand, axes=(families.check_integer("argmin", "axis", axis),), index_dtype=dtype
    )[0]


# --- any function ---------------------------------------------------------------------------


class HoldsProgram(Primitive):
    """A family: a program that a user's function was staged to is a parameter, `program`."""

    cost = Cost.REDUCTION
    memoize_type = False
    program = "jaxpr"

    def impl(self, *args, **params):
        return current.trace.run_compiled(self, args, params, params[self.program])

    def split_as(self, avals: Sequence, outs: list, **params: Any) -> list:
        """The types of results, which are not remembered, split as operands are."""
        lies = next((a.sharded for a in avals if a.sharded is not None), None)
        return outs if lies is None else lies.lay_out(self, avals, outs, params)

    def label_axes(self, avals, outs, **params):
        return families.along_each_other(avals, outs)


class Reduce(HoldsProgram):
    """The elements of several arrays along `dimensions` combined by the program `jaxpr`.

    Operands are n arrays and n scalars that start the reduction; `jaxpr` takes n + n scalars to n
    and must be associative. The derivative applies it to whole arrays, in pairs.
    Source: StableHLO, reduce.
    """

    name = "reduce"
    multiple_results = True

    def abstract_eval(self, *avals, jaxpr, dimensions):
        xs, _ = split_halves(avals)
        families.check_equal_shapes(self.name, xs)
        families.check_axes(self.name, dimensions, xs[0].ndim)
        shape = families.drop_axes(xs[0].shape, dimensions)
        outs = [ShapedArray(shape, a.dtype, a.weak_type) for a in jaxpr.out_avals]
        return self.split_as(avals, outs, dimensions=dimensions)

    def label_axes(self, avals, outs, *, dimensions):
        kept = [i for i in range(avals[0].ndim) if i not in dimensions]
        return Axes([range(a.ndim) for a in avals], [kept] * len(outs))

    def lower(self, hlo, *args, jaxpr, dimensions):
        xs, inits = split_halves(args)
        return lower_reduce(
            hlo, xs, inits, dimensions, lambda *cells: lower_jaxpr(hlo, jaxpr, cells)
        )

    def jvp(self, primals, tangents, *, jaxpr, dimensions):
        xs, inits = split_halves(primals)
        outs = self.apply(*primals, jaxpr=jaxpr, dimensions=dimensions)
        combine, with_dots = lift_to_tangents(jaxpr, [typeof(x) for x in xs])
        dots, init_dots = split_halves(tangents)
        pairs = with_dots(xs, dots)
        shape = typeof(outs[0]).shape
        total = [layout.broadcast_in_dim(y, (1, *shape), ()) for y in with_dots(inits, init_dots)]
        if typeof(xs[0]).size:
            total = combine(total, reduce_in_pairs(combine, join_axes(dimensions, *pairs)))
        moved = [dtypes.is_inexact(typeof(y).dtype) for y in outs]
        return outs, tangents_of(outs, [layout.reshape(t, shape) for t in total[len(xs) :]], moved)

    def batch(self, axis, args, dims, *, jaxpr, dimensions):
        (xs, inits), (x_dims, init_dims) = split_halves(args), split_halves(dims)
        xs = [layout.batched_at_front(x, d, axis.size) for x, d in zip(xs, x_dims, strict=True)]
        moved = tuple(a + 1 for a in dimensions)
        if all(d is None for d in init_dims):
            outs = self.apply(*xs, *inits, jaxpr=jaxpr, dimensions=moved)
            return outs, [0] * len(outs)
        shape = families.drop_axes(typeof(xs[0]).shape, moved)
        outs = [
            layout.broadcast_in_dim(i, (1, *shape), () if d is None else (1,))
            for i, d in zip(inits, init_dims, strict=True)
        ]
        if typeof(xs[0]).size:
            reduced = reduce_in_pairs(lambda a, b: jaxpr(*a, *b), join_axes(moved, *xs))
            outs = jaxpr(*outs, *reduced)
        return [layout.reshape(y, shape) for y in outs], [0] * len(outs)


def split_halves(xs: Sequence[Any]) -> tuple[list, list]:
    """The first half of a list and the second."""
    return list(xs[: len(xs) // 2]), list(xs[len(xs) // 2 :])


def lift_to_tangents(jaxpr: Jaxpr, avals: Sequence[ShapedArray]) -> tuple[Callable, Callable]:
    """A program (a..., b...) -> c... made one on lists of numbers and then their tangents.

    Returned are that function of two such lists, and the function that makes a list of values and
    their tangents; integers have none.
    """
    n = len(avals)
    moves = [dtypes.is_inexact(a.dtype) for a in avals]

    def listed(values: Sequence[Any], tangents: Sequence[Any]) -> list:
        dots = [layout.instantiate(t) for t, m in zip(tangents, moves, strict=True) if m]
        return [*values, *dots]

    def combine(lefts: Sequence[Any], rights: Sequence[Any]) -> list:
        tangents = []
        for xs in (lefts, rights):
            tangents += tangents_of(xs[:n], xs[n:], moves)
        return listed(*push_forward(jaxpr, [*lefts[:n], *rights[:n]], tangents))

    return combine, listed


def push_forward(
    jaxpr: Jaxpr, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list, list]:
    """A scalar program applied to arrays of one shape, and the tangents of its results."""
    shape = typeof(primals[0]).shape
    env = dict(zip(jaxpr.invars, zip(primals, tangents, strict=True), strict=True))

    def read(atoms: Sequence[Any]) -> tuple[list, list]:
        return unzip2(
            (a.read(), Zero(a.aval.to_tangent())) if type(a) is Literal else env[a] for a in atoms
        )

    for eqn in jaxpr.eqns:
        ins, dots = read(eqn.invars)
        if any(mark_moving(dots)):
            outs, out_dots = eqn.primitive.jvp(ins, dots, **eqn.params)
        else:
            outs = eqn.primitive.apply(*ins, **eqn.params)
            out_dots = families.zero_tangents(outs)
        env.update(zip(eqn.outvars, zip(outs, out_dots, strict=True), strict=True))
    outs, dots = read(jaxpr.outvars)
    spread = lambda x: x if typeof(x).shape else layout.broadcast_in_dim(x, shape, ())
    outs = [*map(spread, outs)]
    zero = lambda y: Zero(typeof(y).to_tangent())
    pairs = zip(outs, dots, strict=True)
    return outs, [zero(y) if isinstance(t, Zero) else spread(t) for y, t in pairs]


reduce_p = Reduce()


class Monoid(NamedTuple):
    """An elementwise primitive, the reduction by it, and its identity."""

    combine: Primitive
    reduction: Primitive
    identity: Callable[[np.dtype], Any]


# What a function of one equation is recognized as.
MONOIDS = (
    Monoid(add_p, layout.reduce_sum_p, lambda dtype: 0),
    *(Monoid(r.combine, r, r.identity) for r in REDUCTIONS),
)


def stage_reducer(op: str, computation: Callable, avals: Sequence[ShapedArray], tree: Any) -> Jaxpr:
    """The program of a user's function of two scalars (or two trees of them), checked."""
    check_function(op, "computation", computation)
    n = len(avals)

    def flat(*cells: Any) -> list:
        out = computation(unflatten(tree, cells[:n]), unflatten(tree, cells[n:]))
        leaves, out_tree = flatten(out)
        if out_tree != tree:
            raise PytreeError(
                f"{op}: the computation must return a tree like one operand's, {tree}; "
                f"got {out_tree}."
            )
        return leaves

    cells = [ShapedArray((), a.dtype) for a in avals]
    jaxpr, consts = stage(flat, cells + cells)
    if consts:
        raise DtypeError(
            f"{op}: the computation must not use arrays from outside; "
            f"got {', '.join(str(typeof(c)) for c in consts)}. Hint: use Python numbers."
        )
    if [a.strong() for a in jaxpr.out_avals] != cells:
        raise DtypeError(
            f"{op}: the computation must return scalars of the operands' dtypes, "
            f"{families.show_types(cells)}; got {families.show_types(jaxpr.out_avals)}."
        )
    return jaxpr


def find_monoid(jaxpr: Jaxpr) -> Monoid | None:
    """The monoid that a program of two scalars is, if it is one."""
    while len(jaxpr.eqns) == 1 and len(jaxpr.invars) == 2:
        (eqn,) = jaxpr.eqns
        if list(eqn.outvars) != jaxpr.outvars or set(map(id, eqn.invars)) != set(
            map(id, jaxpr.invars)
        ):
            return None
        if not any(b.names_flow_in for b in bodies_of(eqn)):
            return next((m for m in MONOIDS if m.combine is eqn.primitive), None)
        jaxpr = eqn.params["jaxpr"]
    return None


def find_monoids(jaxpr: Jaxpr) -> list[Monoid]:
    """For a program of n + n scalars that combines each pair apart, its monoids; else nothing."""
    n = len(jaxpr.outvars)
    makers = {v: e for e in jaxpr.eqns for v in e.outvars}
    found = []
    for x, y, out in zip(jaxpr.invars[:n], jaxpr.invars[n:], jaxpr.outvars, strict=True):
        eqn = None if type(out) is Literal else makers.get(out)
        monoid = None if eqn is None else find_monoid(Jaxpr((), [x, y], [out], [eqn]))
        if monoid is None:
            return []
        found.append(monoid)
    return found


def starting_value(x: Any, dtype: np.dtype) -> Any:
    """Return an initial value of a reduction in `dtype` if it is a Python number.

    A float is an integer's initial value where it changes nothing or loses nothing: an infinity is
    the end of the dtype's range, 0.0 and 1.0 are 0 and 1.
    """
    if type(x) not in dtypes.NUMBERS:
        return x
    if type(x) is float and not dtypes.is_inexact(dtype):
        if math.isinf(x):
            return layout.literal(_extreme_value(dtype, 1 if x > 0 else -1), dtype)
        if x in (0.0, 1.0):
            return layout.literal(dtypes.scalar_type_of(dtype)(x), dtype)
    return layout.literal(x, dtype)


def starting_values(op: str, xs: Sequence[Any], init_values: Any, tree: Any) -> list:
    """The scalars that start a reduction of `xs`, of their dtypes."""
    inits, init_tree = flatten(init_values)
    if init_tree != tree:
        raise PytreeError(
            f"{op}: there must be one initial value for each operand, in a like tree; "
            f"got {init_tree} for {tree}."
        )
    inits = [starting_value(i, typeof(x).dtype) for i, x in zip(inits, xs, strict=True)]
    for x, i in zip(xs, inits, strict=True):
        if typeof(i).shape or typeof(i).dtype != typeof(x).dtype:
            raise DtypeError(
                f"{op}: an initial value must be a scalar of its operand's dtype; "
                f"got {typeof(i)} for {typeof(x)}."
            )
    return inits


def is_identity(value: Any, identity: Any) -> bool:
    """Return True if an initial value is known to change nothing."""
    return not isinstance(value, Tracer) and bool(np.asarray(value) == identity)


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Reduce arrays over axes by a function of the user.

    If the function is one of weft's own, such as `lax.add` or `lax.max`, the fast reduction of that
    name runs. So does a function that applies such a function to each array of a pytree.

    Args:
      operands: an array, or a pytree of arrays of one shape that are reduced together.
      init_values: a scalar of the operand's dtype, or a pytree of scalars like `operands`. It must
        be the neutral element of the computation.
      computation: a function `computation(a, b)` of two scalars, or two pytrees of scalars, that
        returns one. It must be associative and commutative, as the order is not fixed.
      dimensions: the axes to reduce over, ints. They are removed.
      out_sharding: the sharding of the results over explicit axes of a mesh. By default it follows
        from the operands.

    Returns:
      An array, or a pytree of arrays like `operands`, without the axes.

    Raises:
      DtypeError: an initial value is not a scalar of its operand's dtype.

    >>> print(lax.reduce(jnp.arange(6).reshape(2, 3), 0, lax.add, (0,)))
    [3 5 7]
    >>> def add_and_multiply(a, b):
    ...     return a[0] + b[0], a[1] * b[1]
    >>> x = jnp.array([1.0, 2.0, 4.0])
    >>> total, product = lax.reduce((x, x), (0.0, 1.0), add_and_multiply, (0,))
    >>> print(total, product)
    7.0 8.0
    """
    xs, tree = flatten(operands)
    if not xs:
        raise PytreeError(f"reduce: there must be at least one operand; got {tree}.")
    inits = starting_values("reduce", xs, init_values, tree)
    dimensions = families.sort_axes(dimensions, "reduce", "dimensions")
    jaxpr = stage_reducer("reduce", computation, [typeof(x) for x in xs], tree)
    monoids = find_monoids(jaxpr)
    if not monoids or len({typeof(x).shape for x in xs}) > 1:
        outs = reduce_p.apply(*xs, *inits, jaxpr=jaxpr, dimensions=dimensions)
        return unflatten(tree, [lay_out("reduce", y, out_sharding) for y in outs])
    outs = []
    for monoid, x, init in zip(monoids, xs, inits, strict=True):
        if isinstance(monoid.reduction, families.LinearPrimitive) and out_sharding is not None:
            out = layout.reduce_sum(x, dimensions, out_sharding=out_sharding)
        else:
            (out,) = monoid.reduction.apply(x, axes=dimensions)
            out = lay_out("reduce", out, out_sharding)
        if not is_identity(init, monoid.identity(typeof(out).dtype)):
            (out,) = monoid.combine.apply(init, out)
        outs.append(out if len(xs) == 1 else convert(out, typeof(x).dtype))  # as reduce_p has it
    return unflatten(tree, outs)
