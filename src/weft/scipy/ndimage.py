"""`map_coordinates`: the values of an array between its elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from weft import dtypes
from weft import numpy as jnp
from weft.core.source import boundary
from weft.errors import DtypeError, ShapeError
from weft.numpy.promotion import as_array, as_inexact
from weft.options import config
from weft.primitives.families import check_integer, check_parameter
from weft.run.operation import operation
from weft.util import list_public
from weft.xla.typing import Array, ArrayLike

__all__ = ["map_coordinates"]
__dir__ = list_public(__name__)


def mirror_index(i: Any, n: int) -> Any:
    """Reflection at the centres of the outermost elements: c b | a b c | b a."""
    period = max(2 * (n - 1), 1)
    i = jnp.mod(i, period)
    return jnp.minimum(i, period - i)


def reflect_index(i: Any, n: int) -> Any:
    """Reflection at the outer edges of the outermost elements: b a | a b c | c b."""
    i = jnp.mod(i, 2 * n)
    return jnp.minimum(i, 2 * n - 1 - i)


# For each mode, the element for an index out of range; None if the mode uses a fill value.
EXTENSIONS: dict[str, Callable[[Any, int], Any] | None] = {
    "constant": None, "nearest": lambda i, n: jnp.clip(i, 0, n - 1),
    "wrap": lambda i, n: jnp.mod(i, n), "mirror": mirror_index, "reflect": reflect_index,
    "grid-constant": None, "grid-wrap": lambda i, n: jnp.mod(i, n), "grid-mirror": reflect_index,
}  # fmt: skip


@boundary
def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[Any],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Return the values of an array at coordinates between its elements, by interpolation.

    It resamples images and fields: a rotation, a change of resolution, a path through a volume. The
    result is differentiable with respect to the array and the coordinates. The derivative with
    respect to a coordinate is the slope between its neighbors; for order 0 it is 0.

    The modes differ from SciPy in two names. Here "constant" and "wrap" are the modes that SciPy
    calls "grid-constant" and "grid-wrap": the array is extended by `cval`, or repeated with its
    size as the period, and interpolation goes on beyond the edges.

    Args:
      input: an array with N axes, of any numeric dtype.
      coordinates: a sequence of N real arrays, the indices along each axis, which broadcast
        together; or one array with N such arrays along its first axis.
      order: 0 takes the nearest element, 1 interpolates linearly between neighbors. Static.
      mode: the extension beyond the edges. "constant", the default: `cval`. "nearest": the last
        element. "wrap": the array is repeated. "mirror": it is reflected about the center of the
        last element. "reflect": it is reflected about the outer edge of the last element.
        "grid-constant", "grid-wrap" and "grid-mirror" are other names of "constant", "wrap" and
        "reflect". Static.
      cval: the value beyond the edges for "constant", a scalar. By default 0.

    Returns:
      An array of the broadcast shape of the coordinates, of the dtype of `input`. For integers the
      interpolated value is rounded to the nearest integer, halves away from 0.

    Raises:
      ShapeError: there is not one array of coordinates for each axis, or `input` has no elements
        and `mode` needs them.
      DtypeError: the coordinates are complex.
      TypeError: `coordinates` is not a sequence, or `order` is not an integer.
      NotImplementedError: `order` is not 0 or 1, or `mode` is another name.

    >>> from weft.scipy.ndimage import map_coordinates
    >>> x = jnp.array([[0.0, 1.0], [2.0, 3.0]])
    >>> print(map_coordinates(x, [jnp.array([0.5, 1.0]), jnp.array([0.5, 2.0])], 1, "nearest"))
    [1.5 3. ]

    Beyond the edges:

    >>> x, at = jnp.array([0.0, 10.0, 20.0]), [jnp.array([-1.0, 0.5, 3.0])]
    >>> for mode in ("constant", "nearest", "wrap", "mirror", "reflect"):
    ...     print(mode, map_coordinates(x, at, 1, mode))
    constant [0. 5. 0.]
    nearest [ 0.  5. 20.]
    wrap [20.  5.  0.]
    mirror [10.  5. 10.]
    reflect [ 0.  5. 20.]
    """
    op = "map_coordinates"
    x = as_array(input, op)
    what = "a sequence of an array for each axis of input"
    points = check_parameter(
        op, "coordinates", coordinates, what, lambda cs: [jnp.asarray(c) for c in cs]
    )
    if len(points) != x.ndim:
        raise ShapeError(
            f"{op}: coordinates must be one array for each axis of input; got {len(points)} "
            f"for {x.aval}."
        )
    for c in points:
        if dtypes.is_complex(c.dtype):
            raise DtypeError(f"{op}: coordinates must be real; got {c.aval}.")
    if not isinstance(mode, str) or mode not in EXTENSIONS:
        raise NotImplementedError(
            f"{op}: mode must be one of {', '.join(EXTENSIONS)}; got {mode!r}."
        )
    if check_integer(op, "order", order) not in (0, 1):
        raise NotImplementedError(f"{op}: order must be 0 or 1; got {order}.")
    if 0 in x.shape and EXTENSIONS[mode] is not None:
        raise ShapeError(f"{op}: input must have elements; got {x.aval}. Hint: mode='constant'.")
    return map_points(x, points, cval, order=int(order), mode=mode)


@operation(static=("order", "mode"), name="map_coordinates")
def map_points(x: Any, points: list, cval: Any, order: int, mode: str) -> Any:
    """`map_coordinates` of checked arguments."""
    extend = EXTENSIONS[mode]
    neighbours, inside = [], []
    for c, n in zip(points, x.shape, strict=True):
        steps = find_neighbours(as_inexact("map_coordinates", c), order)
        inside.append([(i >= 0) & (i < n) if extend is None else None for i, _ in steps])
        clipped = EXTENSIONS["nearest"] if extend is None else extend
        neighbours.append([(clipped(i, n), w) for i, w in steps])
    cval = jnp.asarray(cval).astype(x.dtype)
    wide = x.dtype  # of the elements times their weights
    with config.scope(numpy_dtype_promotion="standard"):
        for _, weight in sum(neighbours, []) if order else ():
            wide = dtypes.promote_types(wide, weight.dtype)

    def value(*choice: int) -> Any:
        valid = [flags[k] for flags, k in zip(inside, choice, strict=True) if flags[k] is not None]
        if 0 in x.shape:
            return cval
        y = x[tuple([pairs[k][0] for pairs, k in zip(neighbours, choice, strict=True)])]
        for flags in valid:
            y = jnp.where(flags, y, cval)
        return y.astype(wide) if order else y

    out = sum_weighted(
        value, [[w.astype(wide) if order else None for _, w in pairs] for pairs in neighbours]
    )
    if dtypes.is_integer(x.dtype):  # halves away from 0, as SciPy rounds
        out = jnp.trunc(out + jnp.copysign(0.5, out)) if order else out
    return out.astype(x.dtype)


def find_neighbours(c: Any, order: int) -> list[tuple[Any, Any]]:
    """(index, weight) for each element that takes part at a coordinate."""
    count = dtypes.default_int()
    if order == 0:
        return [(jnp.floor(c + 0.5).astype(count), None)]
    low = jnp.floor(c)
    i, above = low.astype(count), c - low
    return [(i, 1 - above), (i + 1, above)]


def sum_weighted(value: Callable, weights: Sequence[Sequence[Any]]) -> Any:
    """The sum over corners of `value(k, l, ...)` times the weights of these choices, one an axis.

    A weight None is 1.
    """
    total = None
    for choice in itertools.product(*[range(len(w)) for w in weights]):
        term = value(*choice)
        for factor in [w[k] for w, k in zip(weights, choice, strict=True)]:
            term = term if factor is None else term * factor
        total = term if total is None else total + term
    return total
