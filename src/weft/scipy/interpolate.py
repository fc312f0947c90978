"""`RegularGridInterpolator`: values between the points of a rectangular grid."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft import numpy as jnp
from weft.core.trace import Tracer
from weft.errors import ShapeError
from weft.numpy.promotion import as_array, promote_operands
from weft.run.operation import operation
from weft.scipy.ndimage import sum_weighted
from weft.util import check_option, list_public

__all__ = ["RegularGridInterpolator"]
__dir__ = list_public(__name__)


class RegularGridInterpolator:
    """A function that interpolates values on a rectangular grid, which need not be evenly spaced.

    It serves for tables of measured or computed values in any number of dimensions. The result is
    differentiable with respect to the points of evaluation, the values and the grid.

    Args:
      points: a sequence of N vectors: the coordinates of the grid along each axis, strictly
        ascending or descending. Traced vectors must ascend; they are not checked.
      values: an array with at least N axes. Its first N axes are the grid's; further axes
        are components of the values.
      method: "linear", the default, or "nearest" for the value at the nearest grid point. At equal
        distances "nearest" takes the lower point.
      bounds_error: must be False, the default: compiled code cannot raise an error. SciPy's default
        is True.
      fill_value: the result outside of the grid, a scalar. By default NaN. None extrapolates.

    Raises:
      ValueError: `method` is another name, or a vector of points neither ascends nor descends.
      NotImplementedError: `bounds_error` is True.
      ShapeError: the vectors of points do not fit the axes of `values`.

    >>> from weft.scipy.interpolate import RegularGridInterpolator
    >>> x, y = jnp.array([0.0, 1.0, 3.0]), jnp.array([0.0, 2.0])
    >>> f = RegularGridInterpolator((x, y), x[:, None] + y)
    >>> print(f(jnp.array([[0.5, 1.0], [2.0, 2.0], [9.0, 0.0]])))
    [1.5 4.  nan]
    >>> print(f(jnp.array([0.4, 1.5]), method="nearest"))
    [2.]

    Extrapolation, and coordinates as separate arrays:

    >>> f = RegularGridInterpolator((x, y), x[:, None] + y, fill_value=None)
    >>> print(f((jnp.array([0.5, 9.0]), 0.0)))
    [0.5 9. ]
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = np.nan,
    ):
        op = "RegularGridInterpolator"
        check_option("RegularGridInterpolator", "method", method, "linear", "nearest")
        if bounds_error:
            raise NotImplementedError(
                f"{op}: bounds_error must be False, for compiled code raises nothing; got "
                f"{bounds_error}. Hint: bounds_error=False gives fill_value outside of the grid."
            )
        self.method = method
        self.bounds_error = bounds_error
        self.fill_value = None if fill_value is None else jnp.asarray(fill_value)
        values = as_array(values, op)
        if len(points) > values.ndim:
            raise ShapeError(
                f"{op}: values must have an axis for each of the points; got {values.aval} "
                f"for {len(points)} vectors of points."
            )
        grid = []
        for axis, p in enumerate(points):
            p = as_array(p, op)
            if p.ndim != 1 or p.shape[0] != values.shape[axis]:
                raise ShapeError(
                    f"{op}: points[{axis}] must be a vector as long as axis {axis} of values; "
                    f"got {p.aval}, {values.aval}."
                )
            if check_descending(axis, p):
                p, values = jnp.flip(p), jnp.flip(values, axis)
            grid.append(p)
        self.grid = tuple(grid)
        self.values = values

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """Return the interpolated values at points.

        Args:
          xi: a real array (..., N) of points; or a tuple of N arrays of coordinates, which
            broadcast together to the shape (...).
          method: "linear" or "nearest". By default the method of the interpolator.

        Returns:
          An array of shape (...), followed by the further axes of `values`. A single point (N,)
          gives a result with a leading axis of size 1. A point with a NaN coordinate gives NaN.

        Raises:
          ShapeError: the last axis of `xi` does not have size N.
          ValueError: `method` is another name.

        >>> from weft.scipy.interpolate import RegularGridInterpolator
        >>> f = RegularGridInterpolator((jnp.array([0.0, 1.0, 3.0]),), jnp.array([0.0, 10.0, 20.0]))
        >>> print(f(jnp.array([0.5, 2.0])))
        [ 5. 15.]
        """
        method = self.method if method is None else method
        check_option("RegularGridInterpolator", "method", method, "linear", "nearest")
        return evaluate_points(self.grid, self.values, xi, self.fill_value, method)

    def __repr__(self) -> str:
        grid = ", ".join(str(p.aval) for p in self.grid)
        return f"RegularGridInterpolator(({grid}), {self.values.aval}, method={self.method!r})"


def check_descending(axis: int, p: Any) -> bool:
    """Return True if the points of an axis descend; an error where they do neither."""
    if isinstance(p, Tracer) or p.size < 2:
        return False
    steps = np.diff(np.asarray(p))
    if not (np.all(steps > 0) or np.all(steps < 0)):
        raise ValueError(
            f"RegularGridInterpolator: points[{axis}] must be strictly ascending or descending; "
            f"got {np.asarray(p)}. Hint: sort them, and values with them."
        )
    return bool(steps[0] < 0)


@operation(static=("method",), name="interpolate")
def evaluate_points(grid: tuple, values: Any, xi: Any, fill_value: Any, method: str) -> Any:
    """An interpolator at points in any form."""
    if isinstance(xi, tuple | list):
        xi = jnp.stack(jnp.broadcast_arrays(*[jnp.asarray(c) for c in xi]), -1)
    xi = as_array(xi, "RegularGridInterpolator")
    if xi.ndim == 1:
        xi = xi[:, None] if len(grid) == 1 else xi[None]
    if not xi.ndim or xi.shape[-1] != len(grid):
        raise ShapeError(
            "RegularGridInterpolator: the last axis of xi must have a coordinate for each axis of "
            f"the grid, {len(grid)}; got {xi.aval}."
        )
    extra = values.ndim - len(grid)
    corners, weights, outside, unknown = [], [], [], []
    for axis, points in enumerate(grid):
        p, x = promote_operands("interpolate", points, xi[..., axis], inexact=True, shaped=False)
        last = p.shape[0] - 1
        low = jnp.clip(jnp.searchsorted(p, x, side="right") - 1, 0, max(last - 1, 0))
        high = jnp.minimum(low + 1, last)
        width = p[high] - p[low]
        share = (x - p[low]) / jnp.where(width == 0, 1, width)
        outside.append((x < p[0]) | (x > p[last]))
        unknown.append(jnp.isnan(x))
        if method == "linear":
            corners.append((low, high))
            weights.append(
                [jnp.expand_dims(w, trailing_axes(w, extra)) for w in (1 - share, share)]
            )
        else:
            corners.append((jnp.where(share <= 0.5, low, high),))
            weights.append([None])

    def value(*choice: int) -> Any:
        return values[tuple([pair[k] for pair, k in zip(corners, choice, strict=True)])]

    def marked(flags: Sequence[Any], x: Any, out: Any) -> Any:
        """`out` with x where one of the flags of a point holds."""
        flag = functools.reduce(operator.or_, flags)
        return jnp.where(jnp.expand_dims(flag, trailing_axes(flag, extra)), x, out)

    out = sum_weighted(value, weights)
    if fill_value is not None:
        out = marked(outside, fill_value, out)
    return marked(unknown, np.nan, out) if dtypes.is_inexact(out.dtype) else out


def trailing_axes(x: Any, count: int) -> tuple[int, ...]:
    """Return the axes at which `expand_dims` appends `count` axes to x."""
    return tuple(range(x.ndim, x.ndim + count))
