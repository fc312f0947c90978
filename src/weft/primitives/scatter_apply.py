"""`scatter_apply`: a function of one element, applied within windows of an array.

The scatter family and its dimension numbers are in indexing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr
from weft.core.stage import stage
from weft.errors import DtypeError
from weft.primitives import families, layout
from weft.primitives.indexing import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    read_numbers,
    scatter_p,
)
from weft.util import keep_cache
from weft.xla.typing import Array, ArrayLike

# The programs of scatter_apply by their text, so that equal functions share kernels and types.
_APPLIED: dict[str, Jaxpr] = keep_cache("functions that scatter applies", {})


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Return an array with a function applied to the elements of windows.

    An element that is in several windows is changed several times. It is not differentiable.

    Args:
      operand: an array of any dtype.
      scatter_indices: an integer array whose last axis holds the position of a window.
      func: a function of one element, a scalar, that returns a scalar.
      dimension_numbers: a `ScatterDimensionNumbers`.
      update_shape: the shape that the updates of `scatter` would have, ints.
      indices_are_sorted: if True, the caller promises that the positions are in ascending order.
        The default is False.
      unique_indices: if True, the caller promises that no two windows overlap. The default is
        False.
      mode: what happens to a window that reaches out of the operand: "clip" moves it inside, any
        other mode leaves it out.

    Returns:
      An array of the shape and dtype of the operand.

    >>> one = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> f = lambda x: x + 1
    >>> x, places = jnp.zeros(3), jnp.array([[0], [0]])
    >>> print(lax.scatter_apply(x, places, f, one, update_shape=(2,)))
    [2. 0. 0.]
    """
    if not callable(func):
        raise TypeError(f"scatter_apply: func must be a function; got {func!r}.")
    update_shape = families.index_tuple(update_shape, "scatter_apply", "update_shape")
    aval = typeof(operand)
    cell = ShapedArray((), aval.dtype)
    program, consts = stage(lambda a, b: [func(a)], [cell, cell])
    if consts or program.out_avals[0].strong() is not cell:
        raise DtypeError(
            "scatter_apply: func must map a scalar to one of its dtype and close over no arrays; "
            f"got {program.out_avals[0]} for {cell}, closing over {len(consts)} arrays."
        )
    program = _APPLIED.setdefault(str(program), program)
    return scatter_p.apply(
        operand,
        scatter_indices,
        layout.fill(update_shape, 0, aval.dtype),
        dimension_numbers=read_numbers("scatter_apply", ScatterDimensionNumbers, dimension_numbers),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
        update_jaxpr=program,
        update_consts=(),
    )[0]
