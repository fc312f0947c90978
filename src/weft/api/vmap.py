"""`vmap`: map a function over an axis of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.api.axes import Mapping
from weft.api.flat import (
    FlatFun,
    check_callable,
)
from weft.core.source import boundary
from weft.transforms.batch import Axis, batch

__all__ = ["vmap"]


def vmap(
    fun: Callable,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[..., Any]:
    """Map `fun` over an axis of its arguments, pushing the loop into its operations.

    Args:
      in_axes: which axis of each argument to map: an int, None (the same for every call), or a
        tuple with one entry an argument, each a pytree prefix of it. Keyword arguments map axis 0.
      out_axes: where the mapped axis goes in the results, as a pytree prefix of them.
      axis_name: a name for the axis, for collectives such as `lax.psum`.
      axis_size: its size, needed where no argument is mapped.
      spmd_axis_name: the axis of a mesh, or a tuple of such, that sharding constraints and
        shard_maps within `fun` are to split the mapped axis over.

    >>> import weft.numpy as jnp
    >>> vmap(lambda x, y: x @ y, in_axes=(0, None))(jnp.ones((3, 2)), jnp.ones(2))
    Array([2., 2., 2.], dtype=float32)
    """
    check_callable("vmap", fun, wraps=True)
    mapping = Mapping("vmap", fun, in_axes, out_axes, axis_size)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree, dims, size = mapping.arguments(args, kwargs)
        flat = FlatFun(fun, in_tree, "vmap")
        outs, out_dims = batch(flat, leaves, dims, Axis(size, axis_name, spmd=spmd_axis_name))
        return flat.result(mapping.results(outs, out_dims, flat.out_tree, size))

    return boundary(wrapped, fun)
