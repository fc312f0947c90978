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
from weft.numpy.promotion import as_array, as_inexact, axes_of, refuse_out
from weft.numpy.ranks import select_ranks
from weft.numpy.reductions import (
    all,
    any,
    average,
    broadcast_weights,
    sum,
    widen_dtype,
)  # fmt: skip
from weft.primitives import elementwise as ops
from weft.primitives.reshard import compute_freely
from weft.run.operation import operation
from weft.util import check_option, memoize, name_function
from weft.xla.array import ArrayImpl
from weft.xla.typing import Array, ArrayLike, Axis, DTypeLike, ShardingLike

# --- quantiles ------------------------------------------------------------------------------


class ArrayFunctions:
    """NumPy's names of what places are computed with, for arrays."""

    floor, ceil, rint, clip, mod = map(staticmethod, (floor, ceil, rint, clip, mod))
    where, float64 = staticmethod(where), None


def place_by_plotting(low: float, high: float) -> Callable:
    """Where quantile q of n elements is, by Hyndman and Fan: plotting positions low and high."""
    return lambda xp, n, q: n * q + (low + q * (1 - low - high) - 1)


def find_linear_place(xp: Any, n: Any, q: Any) -> Any:
    """Where quantile q of n elements is: 0 is the first, 1 the last."""
    return (n - 1) * q


def find_nearest_even(xp: Any, n: Any, q: Any) -> Any:
    """The observation nearest to nq; of two, that of even number, counted from 1."""
    h = n * q - 1.5
    down = (h == xp.floor(h)) & (xp.mod(xp.floor(h), 2) == 1)
    return xp.where(down, h, xp.floor(h) + 1)


def find_averaged_place(xp: Any, n: Any, q: Any) -> Any:
    """The first observation that at least nq are not above; between two if just nq are."""
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
    """The place before quantile q of n elements, and the share of the way to the next one."""
    h = xp.clip(METHODS[method](xp, n, q), 0, n - 1)
    low = xp.floor(h)
    return low, h - low


def make_quantile(name: str, whole: int, skip_nan: bool, doc: str) -> Callable:
    """A function of quantiles q, `whole` being all of the elements."""

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
    """The value that the share q of the elements over `axis` does not exceed; NaN where one is.

    `method` is any of numpy.quantile's; `weights`, of a's shape or along the one axis, need
    "inverted_cdf". The axes of q come first in the result. Numbers q are exact; arrays q have the
    accuracy of their dtype, and beyond [0, 1] give the first or last element.
    It takes a few passes over the data where others sort: on a CPU 1e6 elements take 10 ms.

    >>> jnp.quantile(jnp.array([3.0, 1.0, 2.0, 4.0]), 0.25)
    Array(1.75, dtype=float32)
    """,
)
nanquantile = make_quantile(
    "nanquantile", 1, True, "As quantile, of what is not NaN; NaN where all is."
)
nanpercentile = make_quantile(
    "nanpercentile", 100, True, "As percentile, of what is not NaN; NaN where all is."
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
    """As quantile, with q in percent, split over explicit axes of a mesh as `out_sharding` says."""
    check_fresh("percentile", out, overwrite_input)
    find = lambda a, q, w: find_quantiles("percentile", a, q, 100, axis, method, keepdims, w, False)
    return compute_freely("percentile", out_sharding, find, a, q, weights)


def make_median(name: str, skip_nan: bool, doc: str) -> Callable:
    """`median` or `nanmedian`."""

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
    "median", False, "The middle element over `axis`, or the mean of the two; NaN where one is."
)
nanmedian = make_median("nanmedian", True, "As median, of what is not NaN; NaN where all is.")


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
    """What all quantiles do: places are found by the host where q and the number are known."""
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
    """`find_places` where all is known; q alone where the number of elements is not, and n is 0."""
    share = q / whole
    if not np.all((share >= 0) & (share <= 1)):
        raise ValueError(f"{op}: q must be in [0, {whole}]; got {q}.")
    if not n:
        return share, None
    low, share = find_places(np, method, n, share)
    return np.asarray(low, np.int32), share


@memoize  # a program asks for the same few, and NumPy takes 10 us
def find_place(op: str, method: str, n: int, q: float, whole: int) -> tuple[Any, Any]:
    """`find_places_on_host` of a Python number, as Python numbers."""
    low, share = find_places_on_host(op, method, n, q, whole)
    return (low, None) if share is None else (int(low), float(share))


def read_quantiles(op: str, q: Any) -> Any:
    """q as NumPy reads it, if that is numbers."""
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
    """Quantiles of an array over axes; with `share`, q is the place before each of them."""
    (x,) = convert_together("quantile", [x], dtypes.canonicalize(dtypes.inexact_dtype(x.dtype)))
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
    """The elements over `axes` as the last axis."""
    others = [i for i in range(x.ndim) if i not in axes]
    kept = [x.shape[i] for i in others]
    moved = lax.transpose(x, (*others, *axes))
    return lax.reshape(moved, (*kept, math.prod([x.shape[i] for i in axes])))


def interpolate_ranks(x: Any, low: Any, share: Any) -> Any:
    """The value at a place among sorted elements, and a share of the way to the next one."""
    shape = (*x.shape[:-1], low.shape[-1])
    here, following = select_ranks(x, broadcast_to(ops.convert(low, np.int32), shape))
    wide = np.promote_types(x.dtype, np.float32)
    share = lax.broadcast_to_rank(ops.convert(share, wide), x.ndim)
    here, following = ops.convert(here, wide), ops.convert(following, wide)
    following = where(share == 0, 0, following)  # 0 * inf would be NaN
    between_ = here * (1 - share) + following * share
    return ops.convert(where(share != share, share, between_), x.dtype)


def select_by_weight(x: Any, q: Any, weights: Any, nan: Any, skip_nan: bool) -> Any:
    """The first elements, in ascending order, up to which weights come to the share q of all."""
    weights = as_inexact("quantile", weights)
    weights = where(nan, 0, weights) if skip_nan else weights
    x, weights = lax.sort((x, weights), -1, num_keys=1)
    reached = lax.cumsum(weights, x.ndim - 1)
    # none of the weight is reached by what has no weight
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
    """The covariances of variables: the rows of m (and of y), or with rowvar=False its columns.

    Sums are divided by n - ddof, by default n - 1, or n with `bias`. `fweights` counts how often
    each observation is repeated, `aweights` how much it is worth.

    >>> jnp.cov(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    tables = [as_array(v, "cov") for v in (m, y) if v is not None]
    if max([v.ndim for v in tables], default=3) > 2:
        got = ", ".join(str(v.aval) for v in tables)
        raise ShapeError(f"cov: operands must have 2 axes at most; got {got}.")
    found = choose_table_dtype("cov", tables, dtype)
    tables = convert_together("cov", tables, widen_dtype(found))
    tables = [
        lax.reshape(v, (1, v.size)) if v.ndim < 2 else v if rowvar or kept else v.T
        # a row `y` is one variable either way, as NumPy has it
        for v, kept in zip(tables, (False, tables[-1].shape[:1] == (1,)))
    ]
    if len({v.shape[1] for v in tables}) > 1:
        got = ", ".join(str(v.aval) for v in tables)
        raise ShapeError(f"cov: operands must have as many observations each; got {got}.")
    x = concatenate(tables) if len(tables) > 1 else tables[0]
    n = x.shape[1]
    if not x.shape[0]:
        return ops.convert(lax.reshape(x, (0, 0)), found)
    ddof = (0 if bias else 1) if ddof is None else as_array(ddof, "cov")
    weights, divisor = combine_weights(x, fweights, aweights, ddof)
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
    return dtypes.canonicalize(dtypes.inexact_dtype(dtypes.result_type(*tables)))


def combine_weights(
    x: Any, fweights: Any, aweights: Any, ddof: float
) -> tuple[Any, Callable | None]:
    """The weights of observations, or None, and what their total says to divide by."""
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
    """The correlations of variables, in [-1, 1]: their covariances over standard deviations."""
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
