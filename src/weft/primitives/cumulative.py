"""Running reductions along an axis: cumsum, cumprod, cummax, cummin, cumlogsumexp.

They are lowered to log2(n) steps on shifted arrays; CPUs have loops that carry a running value
(cpu/running.py). `lax.associative_scan`, for any function, is api/'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost, Elements
from weft.core.form import Form
from weft.core.primitive import Primitive
from weft.primitives import elementwise, families
from weft.primitives.constant import stage_whole
from weft.primitives.expr import Expr
from weft.primitives.kernels import Called, Kernel
from weft.primitives.layout import convert, literal, rev
from weft.primitives.reduction import highest_value, lowest_value, multiply_pairs
from weft.primitives.slicing import concatenate, fill_to_power, pad, slice_in_dim
from weft.primitives.transcendental import exp, log1p, logistic
from weft.util import SymbolicSize, is_below
from weft.xla.lower import lower_jaxpr
from weft.xla.typing import Array, ArrayLike


class Cumulative(families.ByCombination, families.AlongAxis):
    """A family: out[i] = x[0] * ... * x[i] along `axis`, by an associative *.

    If `reverse`, the run starts at the end.
    `combine` is *, an elementwise primitive, `identity(dtype)` its identity. `step(xs, ys)` maps
    two pairs (value, tangent) to one. Shapes and dtypes: as x, of `takes`.
    """

    cost = Cost.REDUCTION
    form = Form.RUNNING
    # The dtypes that our kernel computes; cumlogsumexp is quicker in vectorized loops of XLA's.
    called: frozenset[np.dtype] = frozenset()

    def __init__(
        self, name: str, combine: Primitive, identity: Callable, step: Any, takes: str, doc: str
    ):
        super().__init__(name, combine, identity, takes, doc)
        self.step = step

    def abstract_eval(self, x, *, axis, reverse):
        families.check_axes(self.name, (axis,), x.ndim)
        families.check_kind(self.name, self.takes, x)
        return [x]

    def lower(self, hlo, x, *, axis, reverse):
        shape = x.aval.shape
        n = shape[axis]
        if is_below(n, 2) or x.aval.size == 0:
            return [x]
        rows, lanes = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        y = Expr(hlo, hlo.convert(x, running_dtype(x.aval.dtype))).reshape((rows, n, lanes))
        y = run_by_shifts(y, self.write_pair, self.identity(y.dtype), reverse)
        return [y.reshape(shape).convert(x.aval.dtype).value]

    def write_pair(self, x: Expr, y: Expr) -> Expr:
        """Write x * y."""
        jaxpr = stage_whole(self.combine.apply, [x.aval, y.aval])
        return x.new(lower_jaxpr(x.hlo, jaxpr, [x.value, y.value])[0])

    def element(self, i, x, *, axis, reverse):
        read = lambda k: x[(*i[:axis], i[axis] + k if reverse else k, *i[axis + 1 :])]
        count = x.shape[axis] - i[axis] if reverse else i[axis] + 1
        return [self.combine_over([count], x.dtype, read)]

    def jvp(self, primals, tangents, *, axis, reverse):
        (x,), (t,) = primals, tangents
        (out,) = self.apply(x, axis=axis, reverse=reverse)
        pair = [rev(x, (axis,)), rev(t, (axis,))] if reverse else [x, t]
        n = typeof(x).shape[axis]
        if isinstance(n, SymbolicSize):
            pair = [fill_to_power(y, axis, 0) for y in pair]
        _, dot = reduce_running(self.step, pair, (axis, axis))
        if isinstance(n, SymbolicSize):
            dot = slice_in_dim(dot, 0, n, axis=axis)
        return [out], [rev(dot, (axis,)) if reverse else dot]


class CumulativeSum(Cumulative, families.LinearPrimitive):
    """The running sum, which is linear; its transpose runs the other way."""

    jvp = families.LinearPrimitive.jvp

    def transpose(self, cts, x, *, axis, reverse):
        return self.apply(cts[0], axis=axis, reverse=not reverse)


def reduce_running(combine: Callable, xs: Sequence[Any], axes: Sequence[int]) -> list:
    """The running reduction of arrays, each along its axis: of neighbours in pairs, then between.

    `combine(lefts, rights)` is associative; it is applied 2 log2(n) times to 2 n elements in all.
    """
    n = typeof(xs[0]).shape[axes[0]]
    if n < 2:
        return list(xs)

    def part(arrays: Sequence[Any], start: int, stop: int, step: int = 1) -> list:
        pairs = zip(arrays, axes, strict=True)
        return [slice_in_dim(x, start, stop, step, axis) for x, axis in pairs]

    odd = reduce_running(combine, combine(part(xs, 0, n - 1, 2), part(xs, 1, n, 2)), axes)
    even = part(xs, 0, 1)
    if n > 2:
        later = combine(part(odd, 0, (n - 1) // 2), part(xs, 2, n, 2))
        even = [concatenate(pair, axis) for *pair, axis in zip(even, later, axes, strict=True)]
    return [interleave(*each) for each in zip(even, odd, axes, strict=True)]


def no_addend(dtype: np.dtype) -> Any:
    """Return the number that added to x gives x, also for x = -0.0."""
    return dtype.type(
        complex(-0.0, -0.0) if dtypes.is_complex(dtype) else -0.0 if dtypes.is_inexact(dtype) else 0
    )


def interleave(x: Any, y: Any, axis: int) -> Any:
    """Return the elements of x and y in turn along an axis. x may have one more than y."""
    n, m, dtype = typeof(x).shape[axis], typeof(y).shape[axis], typeof(x).dtype
    zero = literal(no_addend(dtype), dtype)

    def spread(z: Any, low: int, high: int) -> Any:
        config = [(0, 0, 0)] * typeof(z).ndim
        config[axis] = (low, high, 1)
        return pad(z, zero, config)

    join = elementwise.bitwise_or if dtypes.is_bool(dtype) else elementwise.add
    return join(spread(x, 0, int(n == m)), spread(y, 1, int(n > m)))


# --- lowering -------------------------------------------------------------------------------


def running_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype that a running reduction is computed in: float32 for smaller floats.

    There are platforms without such arithmetic, which would convert the array at every step.
    """
    narrow = dtypes.is_float(dtype) and dtype.itemsize < 4
    return np.dtype(np.float32) if narrow else dtype


LARGEST_SIZE = 2**31  # of an axis; what an index in int32 can name


def run_by_shifts(
    x: Expr, combine: Callable[[Expr, Expr], Expr], identity: Any, reverse: bool
) -> Expr:
    """Write a running reduction along the middle axis in log2(n) steps.

    Each step combines the whole array with itself, moved. A reduction over windows would be slow on
    XLA:CPU, and has a wrong answer there (docs/design).
    """
    distance = 1
    # A size may be symbolic: then there are steps for all sizes, which change nothing beyond it.
    while distance < LARGEST_SIZE and not is_below(x.shape[1], distance + 1):
        x = combine(shift(x, distance, identity, reverse), x)
        distance *= 2
    return x


def shift(x: Expr, distance: int, identity: Any, reverse: bool) -> Expr:
    """Move elements `distance` places on, in the direction of the run; identities come in."""
    low, high = (-distance, distance) if reverse else (distance, -distance)
    return x.pad((0, low, 0), (0, high, 0), identity)


# --- the members ----------------------------------------------------------------------------


def derive_step(prim: Primitive) -> Callable:
    """Combine pairs (value, tangent) by a primitive of two operands."""

    def step(xs: Sequence[Any], ys: Sequence[Any]) -> list:
        (out,), (dot,) = prim.jvp((xs[0], ys[0]), (xs[1], ys[1]))
        return [out, dot]

    return step


def log_of_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), by the larger of the two; complex ones by their real parts.

    Floats of 16 bits and fewer are computed in float32: their terms would be rounded before they
    cancel.
    """
    dtype = typeof(x).dtype
    if dtypes.is_float(dtype) and dtype.itemsize < 4:
        return convert(log_of_sum(*(convert(v, np.dtype(np.float32)) for v in (x, y))), dtype)
    if dtypes.is_complex(typeof(x).dtype):
        larger = elementwise.ge(elementwise.real(x), elementwise.real(y))
        top, low = elementwise.select(larger, x, y), elementwise.select(larger, y, x)
        apart = subtract_infinities(low, top)
    else:  # a minimum in place of the difference's size would keep XLA from a vector loop
        top = elementwise.max(x, y)
        apart = elementwise.neg(elementwise.abs(subtract_infinities(x, y)))
    return elementwise.add(top, log1p(exp(apart)))


def subtract_infinities(x: Any, y: Any) -> Any:
    """x - y, which is 0 also for equal infinities."""
    return elementwise.select(
        elementwise.eq(x, y), literal(0, typeof(x).dtype), elementwise.sub(x, y)
    )


def share_of_sum(x: Any, y: Any, z: Any) -> Any:
    """exp(x - z) for z = log(exp(x) + exp(y)); a half where the two are one infinity.

    Of real numbers it is the logistic function of x - y, whose derivatives do not cancel.
    exp(x - z) is rounded to 1 where z is rounded to x, and its derivative to 0.
    """
    if not dtypes.is_complex(typeof(x).dtype):
        apart = elementwise.sub(x, y)
        nan = elementwise.ne(apart, apart)  # unlike a tie, which has derivatives
        same = elementwise.bitwise_and(nan, elementwise.eq(x, y))
        return logistic(elementwise.select(same, literal(0, typeof(x).dtype), apart))
    half, one = (literal(v, typeof(x).dtype) for v in (0.5, 1))
    lost = elementwise.select(elementwise.eq(x, y), half, one)
    return elementwise.select(elementwise.eq(x, z), lost, exp(subtract_infinities(x, z)))


def lower_log_of_sum(hlo: Any, aval: ShapedArray, x: Any, y: Any) -> Any:
    """Write `log_of_sum`."""
    jaxpr = stage_whole(lambda x, y: [log_of_sum(x, y)], [aval, aval])
    return lower_jaxpr(hlo, jaxpr, [x, y])[0]


# A primitive, since max and min would lose the second derivative where x and y tie.
logaddexp_p = elementwise.Costly(
    "logaddexp",
    lower_log_of_sum,
    [
        lambda t, z, x, y: elementwise.mul(t, share_of_sum(x, y, z)),
        lambda t, z, x, y: elementwise.mul(t, share_of_sum(y, x, z)),
    ],
    takes="inexact",
    doc="log(exp(x) + exp(y)), exact where exp overflows; infinities of one sign give themselves.",
)
logaddexp_p.form, logaddexp_p.kernel = Form.LOG_OF_SUM, Kernel(66, Called.ANYWHERE)
logaddexp = elementwise.binary_op(logaddexp_p)

cumsum_p = CumulativeSum(
    "cumsum",
    elementwise.add_p,
    no_addend,
    None,
    "number",
    "out[i] = x[0] + ... + x[i] along `axis`.",
)
cumprod_p = Cumulative(
    "cumprod",
    elementwise.mul_p,
    lambda dtype: 1,
    multiply_pairs,
    "number",
    "out[i] = x[0] * ... * x[i] along `axis`.",
)
cummax_p = Cumulative(
    "cummax",
    elementwise.max_p,
    lowest_value,
    derive_step(elementwise.max_p),
    "number",
    "The maximum of x[0] ... x[i] along `axis`.",
)
cummin_p = Cumulative(
    "cummin",
    elementwise.min_p,
    highest_value,
    derive_step(elementwise.min_p),
    "number",
    "The minimum of x[0] ... x[i] along `axis`.",
)
cummax_p.elements = cummin_p.elements = Elements.CHOSEN
cumprod_p.called = cummax_p.called = cummin_p.called = frozenset(
    map(np.dtype, ("i4", "i8", "f4", "f8"))
)
cumsum_p.called = cumprod_p.called | {*map(np.dtype, ("c8", "c16"))}
cumlogsumexp_p = Cumulative(
    "cumlogsumexp",
    logaddexp_p,
    lambda dtype: -np.inf,
    derive_step(logaddexp_p),
    "inexact",
    "out[i] = log(exp(x[0]) + ... + exp(x[i])) along `axis`.",
)


CUMULATIVE_DOC = """{first}

    Args:
      operand: an array of {takes}.
      axis: the axis, an int. The default is the first.
      reverse: if True, the run starts at the end of the axis. The default is False.

    Returns:
      An array of the shape and dtype of the operand{note}.

    Raises:
      DtypeError: the operand is of another dtype.
      ShapeError: the operand does not have the axis.

    >>> x = jnp.array([2.0, 1.0, 3.0])
    >>> print(lax.{name}(x))
    {example[0]}
    >>> print(lax.{name}(x, reverse=True))
    {example[1]}
    """


def define_cumulative(
    prim: Cumulative, first: str, example: Sequence[str], takes: str = "numbers", note: str = ""
) -> Callable[..., Any]:
    """Return the function of a running reduction.

    The other parameters are parts of its documentation; `first` is the first line.
    """

    def fun(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        axis = families.check_integer(prim.name, "axis", axis)
        return prim.apply(operand, axis=axis, reverse=bool(reverse))[0]

    named = elementwise.name_function(fun, prim)
    named.__doc__ = CUMULATIVE_DOC.format(
        first=first, takes=takes, note=note, name=prim.name, example=example
    )
    return named


cumsum = define_cumulative(
    cumsum_p,
    "Return the running sums along an axis: the sum of the elements up to each position.",
    ("[2. 3. 6.]", "[6. 4. 3.]"),
    note=": unlike with `jnp.cumsum`, small integers are not promoted",
)
cumprod = define_cumulative(
    cumprod_p,
    "Return the running products along an axis: the product of the elements up to each position.",
    ("[2. 2. 6.]", "[6. 3. 3.]"),
)
cummax = define_cumulative(
    cummax_p,
    "Return the running maxima along an axis: the largest element up to each position.",
    ("[2. 2. 3.]", "[3. 3. 3.]"),
    note=". NaN stays NaN from its position on",
)
cummin = define_cumulative(
    cummin_p,
    "Return the running minima along an axis: the smallest element up to each position.",
    ("[2. 1. 1.]", "[1. 1. 3.]"),
    note=". NaN stays NaN from its position on",
)
cumlogsumexp = define_cumulative(
    cumlogsumexp_p,
    "Return log(exp(x[0]) + ... + exp(x[i])) for each position i of an axis, without overflow.",
    ("[2.        2.3132617 3.4076061]", "[3.4076061 3.126928  3.       ]"),
    takes="floats or complex numbers",
)
