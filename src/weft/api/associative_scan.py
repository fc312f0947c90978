"""`associative_scan`: all prefixes of arrays, combined in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.api.functions import avals_of, check_callable, leaf_names
from weft.api.while_loop import while_loop
from weft.core.aval import typeof
from weft.core.source import boundary
from weft.errors import PytreeError, ShapeError
from weft.primitives.cumulative import reduce_running
from weft.primitives.dynamic_slicing import dynamic_slice_in_dim
from weft.primitives.elementwise import ge, lt, select, sub
from weft.primitives.families import normalize_axis
from weft.primitives.layout import broadcasted_iota, rev
from weft.primitives.slicing import concatenate
from weft.pytrees import flatten, structure, unflatten
from weft.util import fun_name


@boundary
def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Combine all prefixes of arrays along an axis by an associative function, in parallel.

    The result at i combines the elements 0 to i, as `cumsum` does for the sum. `fn` is called about
    2 log2(n) times on many elements at once, so the depth is O(log n) and the work O(n). It is for
    recurrences whose step is associative, such as linear ones; for others use `scan`. Along an axis
    of a symbolic size `fn` is called in a loop, on all elements each time: the work is O(n log n).

    Args:
      fn: a function `fn(a, b)` of two pytrees like `elems` that returns a pytree like them. It
        must be associative, and act on each element along the axis separately: its operands are
        slices with many elements. `a` precedes `b`.
      elems: a pytree of arrays that are equally long along `axis`.
      reverse: if True, the result at i combines the elements i to n - 1, from the end: `fn(a, b)`
        then gets the later elements as `a`. The default is False.
      axis: the axis to go along, an int; the default is the first. Negative axes count from the
        end.

    Returns:
      A pytree of arrays like `elems`, of the same shapes and dtypes.

    Raises:
      PytreeError: `fn` returns another structure than `elems` has.
      ShapeError: the arrays differ in length along the axis, or do not have the axis; `fn` returns
        another shape or dtype.

    References:
      Guy Blelloch, "Prefix sums and their applications", 1990.

    >>> print(lax.associative_scan(jnp.maximum, jnp.array([1, 3, 2, 4])))
    [1 3 3 4]

    The recurrence y[i] = a[i] y[i-1] + b[i] composes affine maps:

    >>> def compose(first, second):
    ...     return first[0] * second[0], second[0] * first[1] + second[1]
    >>> a, b = jnp.full(4, 0.5), jnp.ones(4)
    >>> print(lax.associative_scan(compose, (a, b))[1])
    [1.    1.5   1.75  1.875]
    """
    check_callable("associative_scan", fn)
    leaves, tree = flatten(elems)
    avals = avals_of("associative_scan", leaves, structure(((elems,), {})), fn)
    if not avals:
        return elems
    axes = [normalize_axis("associative_scan", axis, a.ndim) for a in avals]
    sizes = [a.shape[d] for a, d in zip(avals, axes, strict=True)]
    for name, a, n in zip(leaf_names("elems", tree), avals, sizes, strict=True):
        if n != sizes[0]:
            raise ShapeError(
                f"associative_scan: arrays must be equally long along axis {axis}; "
                f"got {avals[0]} at {leaf_names('elems', tree)[0]} and {a} at {name}."
            )

    def combine(xs: Sequence[Any], ys: Sequence[Any]) -> list:
        out, out_tree = flatten(fn(unflatten(tree, xs), unflatten(tree, ys)))
        if out_tree != tree:
            raise PytreeError(
                f"associative_scan: {fun_name(fn)} must return the structure of elems, {tree}; "
                f"got {out_tree}."
            )
        for name, x, y in zip(leaf_names("elems", tree), xs, out, strict=True):
            if typeof(x).strong() is not typeof(y).strong():
                raise ShapeError(
                    f"associative_scan: {fun_name(fn)} must return the type that it is given; "
                    f"got {typeof(y)} for {typeof(x)} at {name}."
                )
        return out

    flip = (lambda x, d: rev(x, (d,))) if reverse else (lambda x, d: x)
    xs = [flip(x, d) for x, d in zip(leaves, axes, strict=True)]
    ys = (reduce_running if type(sizes[0]) is int else reduce_doubling)(combine, xs, axes)
    return unflatten(tree, [flip(y, d) for y, d in zip(ys, axes, strict=True)])


def reduce_doubling(combine: Callable, xs: Sequence[Any], axes: Sequence[int]) -> list:
    """The running reduction of arrays whose size along the axes is symbolic.

    Each step combines elements with those `reach` before them, and doubles the reach, so that the
    steps have the same shapes, and only their number depends on the size (Hillis and Steele, "Data
    parallel algorithms", 1986).
    """
    n = typeof(xs[0]).shape[axes[0]]

    def step(carry: Any) -> tuple:
        reach, ys = carry

        def shift(y: Any, axis: int) -> Any:
            """The elements `reach` before each; the first have the last ones, unused."""
            return dynamic_slice_in_dim(concatenate([y, y], axis), sub(n, reach), n, axis)

        both = combine([shift(y, axis) for y, axis in zip(ys, axes, strict=True)], ys)
        found = []
        for y, z, axis in zip(ys, both, axes, strict=True):
            place = broadcasted_iota(np.int32, typeof(y).shape, axis)
            found.append(select(ge(place, reach), z, y))
        return reach * 2, found

    return while_loop(lambda carry: lt(carry[0], n), step, (np.int32(1), list(xs)))[1]
