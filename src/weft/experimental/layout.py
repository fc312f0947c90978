"""The layouts of arrays in memory, under the names of `jax.experimental.layout`.

A compiled function says it of its arguments and results: `input_formats`, `output_formats`.
"""

from __future__ import annotations

from typing import Any

from weft.core.aval import typeof
from weft.errors import ShapeError
from weft.primitives.annotations import constrain_layout
from weft.pytrees import broadcast_prefix, flatten, is_none, unflatten
from weft.util import list_public
from weft.xla.layouts import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]
__dir__ = list_public(__name__)


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Return arrays unchanged, and have the compiled program store them in memory in a given
    layout.

    It applies within the program: the results of the program have XLA's default layout. Values do
    not change. A layout can be of use to a kernel that reads memory in a certain order.

    Args:
      x: a pytree of arrays.
      layouts: a `Layout`, or a pytree prefix of `x` that holds them. Only `major_to_minor` counts.

    Returns:
      A pytree of the same arrays.

    Raises:
      PytreeError: `layouts` is not a prefix of `x`.
      TypeError: an entry of `layouts` is not a `Layout`.
      ShapeError: a layout does not name each axis of its array once.

    >>> by_columns = weft.jit(lambda x: with_layout_constraint(x, Layout((1, 0))).sum())
    >>> by_columns(jnp.ones((2, 3)))
    Array(6., dtype=float32)
    """
    leaves, tree = flatten(x)
    names = ("layouts", "x")
    found = broadcast_prefix(layouts, x, is_none, op="with_layout_constraint", names=names)
    for layout, leaf in zip(found, leaves, strict=True):
        if not isinstance(layout, Layout):
            raise TypeError(
                f"with_layout_constraint: layouts must hold Layouts; got {layout!r}. "
                "Hint: Layout((1, 0))."
            )
        aval = typeof(leaf, "with_layout_constraint")
        if sorted(layout.major_to_minor) != list(range(aval.ndim)):
            raise ShapeError(
                "with_layout_constraint: a layout must name each axis of the array once; got "
                f"{layout.major_to_minor} for {aval}."
            )
    pairs = zip(leaves, found, strict=True)
    return unflatten(tree, [constrain_layout(y, s.major_to_minor) for y, s in pairs])
