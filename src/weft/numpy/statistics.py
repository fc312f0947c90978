"""Quantiles, medians and the elements of a rank that they need, and covariances.

Means and variances are in reductions.py, counts and histograms in histograms.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.core.trace import Tracer
from weft.errors import DtypeError, ShapeError
from weft.numpy import ufuncs
from weft.numpy.choice import clip, where
from weft.numpy.elementwise import abs, ceil, conj, floor, mod, real, rint
from weft.numpy.indexing import take_along_axis
from weft.numpy.manipulation import broadcast_to, concatenate, convert_together, moveaxis
from weft.numpy.products import matmul
from weft.numpy.promotion import (
    as_array,
    as_inexact,
    axes_of,
    broadcast_operands,
    promote_operands,
    refuse_out,
)  # fmt: skip
from weft.numpy.ranks import select_ranks
from weft.numpy.reductions import (
    all,
    any,
    average,
    broadcast_weights,
    subtract_least,
    sum,
    widen_dtype,
)  # fmt: skip
from weft.primitives import elementwise as ops
from weft.primitives.reshard import compute_freely
from weft.primitives.slicing import slice_in_dim
from weft.run.operation import operation
from weft.util import check_option, memoize, name_function
from weft.xla.array import ArrayImpl
from weft.xla.typing import Array, ArrayLike, Axis, DTypeLike, ShardingLike

# --- quantiles ------------------------------------------------------------------------------


class ArrayFunctions:
    """NumPy's names of the functions that compute places, for arrays."""

    floor, ceil, rint, clip, mod = map(staticmethod, (floor, ceil, rint, clip, mod))
    where, float64 = staticmethod(where), None


def place_by_plotting(low: float, high: float) -> Callable:
    """Return the rule of Hyndman and Fan with plotting positions low and high."""
    return lambda xp, n, q: n * q + (low + q * (1 - low - high) - 1)


def find_linear_place(xp: Any, n: Any, q: Any) -> Any:
    """Return the place of quantile q of n elements: 0 is the first, 1 the last."""
    return (n - 1) * q


def find_nearest_even(xp: Any, n: Any, q: Any) -> Any:
    """Return the place of the observation nearest to nq; of two, the even one, counted from 1."""
    h = n * q - 1.5
    down = (h == xp.floor(h)) & (xp.mod(xp.floor(h), 2) == 1)
    return xp.where(down, h, xp.floor(h) + 1)


def find_averaged_place(xp: Any, n: Any, q: Any) -> Any:
    """Return the place of the first observation with nq elements up to it, or between two such."""
    h = n * q - 1
    return xp.where(h == xp.floor(h), h + 0.5, xp.ceil(h))


# The place of quantile q among n sorted elements, counted from 0: numpy.quantile's methods.
METHODS: dict[str, Callable] = {
    "linear": find_linear_place,
    "lower": lambda xp, n, q: xp.floor(find_linear_place(xp, n, q)),
    "higher": lambda xp, n, q: xp.ceil(find_linear_place(xp, n, q)),
    "nearest": lambda xp, n, q: xp.rint(find_linear_place(xp, n, q)),
    "midpoint": lambda xp, n, q: (
        0.5 * (xp.floor(find_linear_place(xp, n, q)) + xp.ceil(find_linear_place(xp, n, q)))
    ),
    "inverted_cdf": lambda xp, n, q: xp.ceil(n * q - 1),
    "averaged_inverted_cdf": find_averaged_place,
    "closest_observation": find_nearest_even,
    "interpolated_inverted_cdf": place_by_plotting(0, 1),
    "hazen": place_by_plotting(0.5, 0.5),
    "weibull": place_by_plotting(0, 0),
    "median_unbiased": place_by_plotting(1 / 3, 1 / 3),
    "normal_unbiased": place_by_plotting(3 / 8, 3 / 8),
}
STATIC = "axis", "out", "overwrite_input", "method", "keepdims"


def find_places(xp: Any, method: str, n: Any, q: Any) -> tuple[Any, Any]:
    """Return the place before quantile q of n elements, and the share of the way to the next."""
    h = xp.clip(METHODS[method](xp, n, q), 0, n - 1)
    low = xp.floor(h)
    return low, h - low


def make_quantile(name: str, whole: int, skip_nan: bool, doc: str) -> Callable:
    """Return a function of quantiles q, where `whole` stands for all of the elements."""

    def fun(
        a: ArrayLike,
        q: ArrayLike,
        axis: Axis = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: ArrayLike | None = None,
    ) -> Array:
        check_fresh(name, out, overwrite_input)
        return find_quantiles(name, a, q, whole, axis, method, keepdims, weights, skip_nan)

    return operation(name_function(fun, name, doc), known=2, static=STATIC)


quantile = make_quantile(
    "quantile",
    1,
    False,
    """Return quantiles: values that the share `q` of the elements does not exceed.

    The elements of the ranks are selected in a few passes over the data, instead of a sort: on a
    CPU, one million elements take about 10 ms.

    The derivative with respect to `a` goes to the two elements that a quantile is between; of equal
    elements, one receives it. The derivative with respect to `q` is the slope between these two.

    Args:
      a: an array of a real dtype with at least one element over `axis`. Integers and booleans are
        converted to floats.
      q: the shares of the elements, in [0, 1]: a scalar or an array of any shape. Numbers and NumPy
        arrays are known when the program is written, and checked. A weft array may be traced; it
        has the accuracy of its dtype, and values out of range give the first or last element.
      axis: one axis or several; None takes all axes. Static under `jit`, as are the next four.
      out: must be None.
      overwrite_input: must be False.
      method: the rule for a quantile between two elements, as in `numpy.quantile`: "linear"
        interpolates, "lower", "higher", "nearest" and "midpoint" choose; "inverted_cdf",
        "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
        "weibull", "median_unbiased" and "normal_unbiased" are the other definitions of Hyndman and
        Fan.
      keepdims: if True, the reduced axes stay, with size 1.
      weights: the weights of the elements, of the shape of `a`, or a vector along the one axis.
        They need the method "inverted_cdf".

    Returns:
      The quantiles, of the shape `q.shape` followed by the shape of `a` without the reduced axes.
      The dtype is the dtype of `a`, or the default float dtype for integers. If one of the elements
      is NaN, the result is NaN.

    Raises:
      ValueError: if a number `q` is out of range, or if `method` is not one of these.
      DtypeError: if `a` is complex, or if `q` is not real.
      ShapeError: if `a` has no elements over `axis`.
      NotImplementedError: if `weights` are used with another method, or if `overwrite_input` is
        True.

    >>> x = jnp.array([3.0, 1.0, 2.0, 4.0])
    >>> jnp.quantile(x, 0.25)
    Array(1.75, dtype=float32)
    >>> print(jnp.quantile(x, jnp.array([0.25, 0.5])), jnp.quantile(x, 0.25, method="lower"))
    [1.75 2.5 ] 1.0
    >>> w = jnp.array([1., 1., 5., 1.])
    >>> print(jnp.quantile(x, 0.5, weights=w, method="inverted_cdf"))
    2.0
    """,
)
nanquantile = make_quantile(
    "nanquantile",
    1,
    True,
    """Return quantiles of the elements that are not NaN.

    Derivatives and accuracy are as in `quantile`.

    Args:
      a: an array of a real dtype with at least one element over `axis`. Integers and booleans are
        converted to floats.
      q: the shares of the elements, in [0, 1]: a scalar or an array of any shape. Numbers and NumPy
        arrays are known when the program is written, and checked. A weft array may be traced; it
        has the accuracy of its dtype, and values out of range give the first or last element.
      axis: one axis or several; None takes all axes. Static under `jit`, as are the next four.
      out: must be None.
      overwrite_input: must be False.
      method: the rule for a quantile between two elements, as in `numpy.quantile`: "linear"
        interpolates, "lower", "higher", "nearest" and "midpoint" choose; "inverted_cdf",
        "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
        "weibull", "median_unbiased" and "normal_unbiased" are the other definitions of Hyndman and
        Fan.
      keepdims: if True, the reduced axes stay, with size 1.
      weights: the weights of the elements, of the shape of `a`, or a vector along the one axis.
        They need the method "inverted_cdf".

    Returns:
      The quantiles, of the shape `q.shape` followed by the shape of `a` without the reduced axes.
      The dtype is the dtype of `a`, or the default float dtype for integers. If all the elements
      are NaN, the result is NaN.

    Raises:
      ValueError: if a number `q` is out of range, or if `method` is not one of these.
      DtypeError: if `a` is complex, or if `q` is not real.
      ShapeError: if `a` has no elements over `axis`.
      NotImplementedError: if `weights` are used with another method, or if `overwrite_input` is
        True.

    >>> print(jnp.nanquantile(jnp.array([3.0, 1.0, jnp.nan, 4.0]), 0.5))
    3.0
    """,
)
nanpercentile = make_quantile(
    "nanpercentile",
    100,
    True,
    """Return percentiles of the elements that are not NaN.

    Derivatives and accuracy are as in `quantile`.

    Args:
      a: an array of a real dtype with at least one element over `axis`. Integers and booleans are
        converted to floats.
      q: the percentages of the elements, in [0, 100]: a scalar or an array of any shape. Numbers
        and NumPy arrays are known when the program is written, and checked. A weft array may be
        traced; it has the accuracy of its dtype, and values out of range give the first or last
        element.
      axis: one axis or several; None takes all axes. Static under `jit`, as are the next four.
      out: must be None.
      overwrite_input: must be False.
      method: the rule for a quantile between two elements, as in `numpy.quantile`: "linear"
        interpolates, "lower", "higher", "nearest" and "midpoint" choose; "inverted_cdf",
        "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
        "weibull", "median_unbiased" and "normal_unbiased" are the other definitions of Hyndman and
        Fan.
      keepdims: if True, the reduced axes stay, with size 1.
      weights: the weights of the elements, of the shape of `a`, or a vector along the one axis.
        They need the method "inverted_cdf".

    Returns:
      The percentiles, of the shape `q.shape` followed by the shape of `a` without the reduced axes.
      The dtype is the dtype of `a`, or the default float dtype for integers. If all the elements
      are NaN, the result is NaN.

    Raises:
      ValueError: if a number `q` is out of range, or if `method` is not one of these.
      DtypeError: if `a` is complex, or if `q` is not real.
      ShapeError: if `a` has no elements over `axis`.
      NotImplementedError: if `weights` are used with another method, or if `overwrite_input` is
        True.

    >>> print(jnp.nanpercentile(jnp.array([3.0, 1.0, jnp.nan, 4.0]), 50))
    3.0
    """,
)


@operation(known=2, static=STATIC)
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return percentiles: quantiles with `q` in percent.

    Derivatives and accuracy are as in `quantile`.

    Args:
      a: an array of a real dtype with at least one element over `axis`. Integers and booleans are
        converted to floats.
      q: the percentages of the elements, in [0, 100]: a scalar or an array of any shape. Numbers
        and NumPy arrays are known when the program is written, and checked. A weft array may be
        traced; it has the accuracy of its dtype, and values out of range give the first or last
        element.
      axis: one axis or several; None takes all axes. Static under `jit`, as are the next four.
      out: must be None.
      overwrite_input: must be False.
      method: the rule for a quantile between two elements, as in `numpy.quantile`: "linear"
        interpolates, "lower", "higher", "nearest" and "midpoint" choose; "inverted_cdf",
        "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
        "weibull", "median_unbiased" and "normal_unbiased" are the other definitions of Hyndman and
        Fan.
      keepdims: if True, the reduced axes stay, with size 1.
      weights: the weights of the elements, of the shape of `a`, or a vector along the one axis.
        They need the method "inverted_cdf".
      out_sharding: the sharding of the result over explicit axes of a mesh. None derives it from
        the operands. Static under `jit`.

    Returns:
      The percentiles, of the shape `q.shape` followed by the shape of `a` without the reduced axes.
      The dtype is the dtype of `a`, or the default float dtype for integers. If one of the elements
      is NaN, the result is NaN.

    Raises:
      ValueError: if a number `q` is out of range, or if `method` is not one of these.
      DtypeError: if `a` is complex, or if `q` is not real.
      ShapeError: if `a` has no elements over `axis`.
      NotImplementedError: if `weights` are used with another method, or if `overwrite_input` is
        True.

    >>> print(jnp.percentile(jnp.array([3.0, 1.0, 2.0, 4.0]), 25))
    1.75
    """
    check_fresh("percentile", out, overwrite_input)
    find = lambda a, q, w: find_quantiles("percentile", a, q, 100, axis, method, keepdims, w, False)
    return compute_freely("percentile", out_sharding, find, a, q, weights)


def make_median(name: str, skip_nan: bool, doc: str) -> Callable:
    """Return `median` or `nanmedian`."""

    def fun(
        a: ArrayLike,
        axis: Axis = None,
        out: None = None,
        overwrite_input: bool = False,
        keepdims: bool = False,
    ) -> Array:
        check_fresh(name, out, overwrite_input)
        return find_quantiles(name, a, 0.5, 1, axis, "linear", keepdims, None, skip_nan)

    return operation(
        name_function(fun, name, doc), static=("axis", "out", "overwrite_input", "keepdims")
    )


median = make_median(
    "median",
    False,
    """Return medians: the middle element in ascending order, or the mean of the middle two.

    The derivative goes to the middle element, or half of it to each of the middle two. Of equal
    elements, one receives it.

    Args:
      a: an array of a real dtype with at least one element over `axis`. Integers and booleans are
        converted to floats.
      axis: one axis or several; None takes all axes. Static under `jit`, as are the next three.
      out: must be None.
      overwrite_input: must be False.
      keepdims: if True, the reduced axes stay, with size 1.

    Returns:
      The medians, of the shape of `a` without the reduced axes. The dtype is the dtype of `a`, or
      the default float dtype for integers. If one of the elements is NaN, the result is NaN.

    Raises:
      DtypeError: if `a` is complex.
      ShapeError: if `a` has no elements over `axis`.
      NotImplementedError: if `overwrite_input` is True.

    >>> x = jnp.array([[3., 1.], [4., 2.]])
    >>> print(jnp.median(x), jnp.median(x, axis=0))
    2.5 [3.5 1.5]
    >>> print(weft.grad(jnp.median)(jnp.array([1., 2., 2., 5.])))
    [0.  0.5 0.5 0. ]
    """,
)
nanmedian = make_median(
    "nanmedian",
    True,
    """Return medians of the elements that are not NaN.

    Args:
      a: an array of a real dtype with at least one element over `axis`. Integers and booleans are
        converted to floats.
      axis: one axis or several; None takes all axes. Static under `jit`, as are the next three.
      out: must be None.
      overwrite_input: must be False.
      keepdims: if True, the reduced axes stay, with size 1.

    Returns:
      The medians, of the shape of `a` without the reduced axes. The dtype is the dtype of `a`, or
      the default float dtype for integers. If all the elements are NaN, the result is NaN.

    Raises:
      DtypeError: if `a` is complex.
      ShapeError: if `a` has no elements over `axis`.
      NotImplementedError: if `overwrite_input` is True.

    >>> print(jnp.nanmedian(jnp.array([3.0, 1.0, jnp.nan])))
    2.0
    """,
)


def check_fresh(op: str, out: Any, overwrite_input: bool) -> None:
    """Refuse to write to arrays."""
    refuse_out(op, out)
    if overwrite_input:
        raise NotImplementedError(
            f"{op}: overwrite_input must be False, for arrays do not change; got True."
        )


def find_quantiles(
    op: str,
    a: Any,
    q: Any,
    whole: int,
    axis: Axis,
    method: str,
    keepdims: bool,
    weights: Any,
    skip_nan: bool,
) -> Any:
    """Compute quantiles; the host finds the places if q and the number of elements are known."""
    check_option(op, "method", method, *METHODS)
    x = as_array(a, op)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"{op}: operands must be real; got {x.aval}. Hint: jnp.real(x).")
    axes = axes_of(op, axis, x.ndim)
    n = math.prod([x.shape[i] for i in axes])
    if not n:
        raise ShapeError(f"{op}: needs at least one element; got {x.aval} over axes {axes}.")
    if weights is not None:
        if method != "inverted_cdf":
            raise NotImplementedError(
                f'{op}: with weights, method must be "inverted_cdf"; got {method!r}.'
            )
        weights = broadcast_weights(op, x, as_array(weights, op), axes, axis)
    if isinstance(q, Tracer | ArrayImpl):
        q = as_inexact(op, q) / whole
        share = None
    else:
        known = 0 if skip_nan or weights is not None or type(n) is not int else n
        numbers = q if type(q) in (int, float) else read_quantiles(op, q)
        find = find_place if numbers is q else find_places_on_host
        q, share = find(op, method, known, numbers, whole)
    return compute_quantiles(x, q, share, weights, axes, method, bool(keepdims), skip_nan)


def find_places_on_host(op: str, method: str, n: int, q: Any, whole: int) -> tuple[Any, Any]:
    """Compute `find_places` of known values; only q if the number is unknown, and n is 0."""
    share = q / whole
    if not np.all((share >= 0) & (share <= 1)):
        raise ValueError(f"{op}: q must be in [0, {whole}]; got {q}.")
    if not n:
        return share, None
    low, share = find_places(np, method, n, share)
    return np.asarray(low, np.int32), share


@memoize  # a program asks for the same few, and NumPy takes 10 us
def find_place(op: str, method: str, n: int, q: float, whole: int) -> tuple[Any, Any]:
    """Compute `find_places_on_host` of a Python number, as Python numbers."""
    low, share = find_places_on_host(op, method, n, q, whole)
    return (low, None) if share is None else (int(low), float(share))


def read_quantiles(op: str, q: Any) -> Any:
    """Read q as NumPy does, and check that it is numbers."""
    host = np.asarray(q)
    if host.dtype == bool or not np.issubdtype(host.dtype, np.number) or np.iscomplexobj(host):
        raise DtypeError(f"{op}: q must be real numbers; got {q!r:.60}.")
    return host.astype(np.float64)


@operation(static=("axes", "method", "keepdims", "skip_nan"), numbers=(1, 2), name="quantile")
def compute_quantiles(
    x: Any,
    q: Any,
    share: Any,
    weights: Any,
    axes: tuple[int, ...],
    method: str,
    keepdims: bool,
    skip_nan: bool,
) -> Any:
    """Compute quantiles over axes; with `share`, q is the place before each quantile."""
    dtype = dtypes.canonicalize(dtypes.inexact_dtype(x.dtype, "quantile"))
    (x,) = convert_together("quantile", [x], dtype)
    shape = x.shape
    x = flatten_axes(x, axes)
    q = as_array(q)
    lead, flat = q.shape, lax.reshape(q, (q.size,))
    nan = x != x
    if weights is not None:
        y = select_by_weight(x, flat, flatten_axes(weights, axes), nan, skip_nan)
    else:
        if share is None:
            flat = ops.convert(flat, np.promote_types(flat.dtype, np.float32))
            n = x.shape[-1] - sum(nan, -1, keepdims=True) if skip_nan else x.shape[-1]
            n = ops.convert(as_array(n), flat.dtype)
            flat = lax.broadcast_to_rank(flat, n.ndim) if n.ndim else flat
            low, share = find_places(ArrayFunctions, method, n, flat)
        else:
            low, share = flat, lax.reshape(share, (flat.size,))
        y = interpolate_ranks(x, low, share)
    missing = all(nan, -1, keepdims=True) if skip_nan else any(nan, -1, keepdims=True)
    y = where(missing, math.nan, y)
    kept = [1 if i in axes else n for i, n in enumerate(shape)] if keepdims else x.shape[:-1]
    return lax.reshape(moveaxis(y, -1, 0), (*lead, *kept))


def flatten_axes(x: Any, axes: tuple[int, ...]) -> Any:
    """Move the elements over `axes` to one last axis."""
    others = [i for i in range(x.ndim) if i not in axes]
    kept = [x.shape[i] for i in others]
    moved = lax.transpose(x, (*others, *axes))
    return lax.reshape(moved, (*kept, math.prod([x.shape[i] for i in axes])))


def interpolate_ranks(x: Any, low: Any, share: Any) -> Any:
    """Return the values at a place among sorted elements, and a share of the way to the next."""
    shape = (*x.shape[:-1], low.shape[-1])
    here, following = select_ranks(x, broadcast_to(ops.convert(low, np.int32), shape))
    wide = np.promote_types(x.dtype, np.float32)
    share = lax.broadcast_to_rank(ops.convert(share, wide), x.ndim)
    here, following = ops.convert(here, wide), ops.convert(following, wide)
    following = where(share == 0, 0, following)  # 0 * inf would be NaN
    between_ = here * (1 - share) + following * share
    return ops.convert(where(share != share, share, between_), x.dtype)


def select_by_weight(x: Any, q: Any, weights: Any, nan: Any, skip_nan: bool) -> Any:
    """Select the first elements, in ascending order, where weights reach the share q of all."""
    weights = as_inexact("quantile", weights)
    weights = where(nan, 0, weights) if skip_nan else weights
    x, weights = lax.sort((x, weights), -1, num_keys=1)
    reached = lax.cumsum(weights, x.ndim - 1)
    # Elements of weight 0 do not reach the share 0.
    q = lax.broadcast_to_rank(q[:, None], x.ndim + 1)
    enough = q * reached[..., None, -1:]
    before = (reached[..., None, :] < enough) | (reached[..., None, :] == 0)
    place = clip(sum(before, -1), 0, x.shape[-1] - 1)
    return take_along_axis(x, place, -1)


# --- covariances ----------------------------------------------------------------------------


@operation(static=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return the covariance matrix of variables.

    Element (i, j) is the covariance of variables i and j, and the diagonal holds the variances. For
    complex variables, the second factor is conjugated.

    Args:
      m: a matrix with variables in its rows and observations in its columns, or one variable (n,).
        Integers and booleans are converted to floats.
      y: more variables with the same observations. None adds no variables.
      rowvar: if False, the columns of `m` and `y` are the variables. Static under `jit`.
      bias: if True, sums are divided by n, else by n - 1, for n observations. Static under `jit`.
      ddof: a number; sums are divided by n - ddof. It replaces `bias`; None leaves the choice to
        it.
      fweights: how often each observation is repeated, integers (n,). None stands for once.
      aweights: the relative importance of each observation, (n,). None stands for equal importance.
      dtype: the dtype of the result. None stands for the promoted float or complex dtype of the
        operands.

    Returns:
      The covariances (k, k) of k variables; a scalar for one variable. It is NaN for one
      observation.

    Raises:
      ShapeError: if an operand has more than two axes, or if the numbers of observations differ.
      DtypeError: if `fweights` are not integers.

    >>> jnp.cov(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    >>> print(jnp.cov(jnp.array([1., 2., 3.])), jnp.cov(jnp.array([1., 2., 3.]), ddof=0))
    1.0 0.6666667
    """
    tables = [as_array(v, "cov") for v in (m, y) if v is not None]
    if max([v.ndim for v in tables], default=3) > 2:
        got = ", ".join(str(v.aval) for v in tables)
        raise ShapeError(f"cov: operands must have 2 axes at most; got {got}.")
    worths = [] if aweights is None else [as_array(aweights, "cov")]
    found = choose_table_dtype("cov", tables + worths, dtype)
    tables = [
        lax.reshape(v, (1, v.size)) if v.ndim < 2 else v if rowvar or kept else v.T
        # a row `y` is one variable either way, as NumPy has it
        for v, kept in zip(tables, (False, tables[-1].shape[:1] == (1,)))
    ]
    wide = widen_dtype(found)
    tables = convert_together("cov", [subtract_least(v, (1,), wide) for v in tables], wide)
    if len({v.shape[1] for v in tables}) > 1:
        got = ", ".join(str(v.aval) for v in tables)
        raise ShapeError(f"cov: operands must have as many observations each; got {got}.")
    x = concatenate(tables) if len(tables) > 1 else tables[0]
    n = x.shape[1]
    if not x.shape[0]:
        return ops.convert(lax.reshape(x, (0, 0)), found)
    ddof = (0 if bias else 1) if ddof is None else as_array(ddof, "cov")
    weights, divisor = combine_weights(x, fweights, aweights, ddof)
    if n:  # far from zero, the mean would be rounded by more than the distances to it
        first = ops.stop_gradient_p.apply(slice_in_dim(x, 0, 1, 1, 1))[0]
        x = ops.sub(*broadcast_operands("cov", x, first))
    center, total = average(x, 1, weights, True)
    divisor = (n - ddof if n else math.nan) if weights is None else divisor(total[0])
    x = x - center[:, None]
    right = x if weights is None else x * weights[None]
    products = matmul(x, conj(right).T)
    return convert_together("cov", [(products / divisor).squeeze()], found)[0]


def choose_table_dtype(op: str, tables: list, dtype: Any) -> np.dtype:
    """Return the dtype of covariances of `tables`."""
    if dtype is not None:
        return dtypes.check_user_dtype(dtype, op)
    return promote_operands(op, *tables, inexact=True, shaped=False)[0].dtype


def combine_weights(
    x: Any, fweights: Any, aweights: Any, ddof: float
) -> tuple[Any, Callable | None]:
    """Return the weights of observations, or None, and the divisor as a function of the total."""
    n = x.shape[1]
    counts, worths = (None if w is None else as_array(w, "cov") for w in (fweights, aweights))
    for name, w in (("fweights", counts), ("aweights", worths)):
        if w is not None and w.shape != (n,):
            raise ShapeError(f"cov: {name} must be a vector of length {n}; got {w.aval}.")
    if counts is not None and not dtypes.is_integer(counts.dtype):
        raise DtypeError(f"cov: fweights must be integers; got {counts.aval}.")
    if counts is not None:  # integers by their meaning, whatever the others are
        counts = ops.convert(abs(counts), (x if worths is None else worths).dtype)
    if worths is None:
        return counts, None if counts is None else lambda total: total - ddof
    worths = abs(worths)
    weights = worths if counts is None else worths * counts
    if ddof == 0:
        return weights, lambda total: total
    return weights, lambda total: total - ddof * sum(weights * worths) / total


@operation(static=("rowvar", "dtype"))
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Return the correlation matrix of variables: covariances divided by standard deviations.

    Args:
      x: a matrix with variables in its rows and observations in its columns, or one variable (n,).
        Integers and booleans are converted to floats.
      y: more variables with the same observations. None adds no variables.
      rowvar: if False, the columns of `x` and `y` are the variables. Static under `jit`, as is
        `dtype`.
      dtype: the dtype of the result. None stands for the promoted float or complex dtype of the
        operands.

    Returns:
      The correlations (k, k) of k variables, in [-1, 1]; a scalar for one variable. They are NaN
      for a variable with equal values.

    Raises:
      ShapeError: if an operand has more than two axes, or if the numbers of observations differ.

    >>> print(jnp.corrcoef(jnp.array([[1., 2., 3.], [1., 3., 2.]])))
    [[1.  0.5]
     [0.5 1. ]]
    """
    tables = [as_array(v, "corrcoef") for v in (x, y) if v is not None]
    found = choose_table_dtype("corrcoef", tables, dtype)
    c = cov(x, y, rowvar, dtype=widen_dtype(found))
    return ops.convert(divide_by_deviations(c), found)


def divide_by_deviations(c: Any) -> Any:
    """Return correlations of covariances."""
    if not c.ndim:
        return c / c
    deviation = ufuncs.sqrt(real(c.diagonal()))
    deviation = ops.convert(deviation, c.dtype)
    c = c / deviation[:, None] / deviation[None]
    if dtypes.is_complex(c.dtype):
        return ops.complex(clip(c.real, -1, 1), clip(c.imag, -1, 1))
    return clip(c, -1, 1)
