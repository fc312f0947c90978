"""`ravel_pytree`: all numbers of a pytree as one vector, and the way back.

For solvers and samplers that know vectors only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.errors import DtypeError, ShapeError
from weft.numpy.promotion import as_array
from weft.primitives.elementwise import convert
from weft.primitives.layout import empty, reshape
from weft.primitives.slicing import concatenate, split
from weft.pytrees import PyTreeDef, flatten, unflatten
from weft.run.operation import operation
from weft.util import Record, list_public

__all__ = ["ravel_pytree"]
__dir__ = list_public(__name__)


def ravel_pytree(pytree: Any) -> tuple[Any, Unravel]:
    """Flatten a pytree of arrays into one vector, and return the function back.

    Solvers and samplers that know only vectors can treat the parameters of a model this way. It
    works under `jit`, and both directions can be differentiated.

    Args:
      pytree: a pytree of arrays and numbers.

    Returns:
      A pair (flat, unravel). `flat` is a vector of all elements, in the order of `tree.flatten`.
      Its dtype is the common dtype of the leaves. A tree without leaves gives an
      empty vector of the default float. `unravel(vector)` takes a vector of that shape and dtype,
      and returns a pytree whose leaves have their own shapes and dtypes. If all leaves have one
      dtype, `unravel` also takes vectors of other dtypes, and the leaves keep the dtype of the
      vector.

    >>> flat, unravel = ravel_pytree({"a": 1.0, "b": (2.0, 3.0)})
    >>> print(flat, weft.tree.map(float, unravel(flat * 2)))
    [1. 2. 3.] {'a': 2.0, 'b': (4.0, 6.0)}
    """
    leaves, tree = flatten(pytree)
    arrays = [as_array(x, "ravel_pytree") for x in leaves]
    flat = ravel_arrays(arrays)
    avals = tuple(ShapedArray(x.shape, x.dtype) for x in arrays)
    return flat, Unravel(tree, avals, ShapedArray(flat.shape, flat.dtype))


@operation
def ravel_arrays(arrays: Sequence[Any]) -> Any:
    """Arrays end to end, in the dtype they promote to."""
    if not arrays:
        return empty((0,), dtypes.default_float())
    if len({x.dtype for x in arrays}) > 1:
        dtype, _ = dtypes.promote(tuple([(x.dtype, False) for x in arrays]), "ravel_pytree")
        arrays = [convert(x, dtype) for x in arrays]
    pieces = [reshape(x, (x.size,)) for x in arrays]
    return concatenate(pieces, 0) if len(pieces) > 1 else pieces[0]


@operation(static=("avals", "convert_all"))
def unravel_arrays(flat: Any, avals: tuple[ShapedArray, ...], convert_all: bool) -> list:
    """The arrays that `ravel_arrays` made a vector of."""
    sizes = [a.size for a in avals]
    pieces = split(flat, sizes) if len(sizes) > 1 else [flat] * len(sizes)
    shaped = [reshape(p, a.shape) for p, a in zip(pieces, avals, strict=True)]
    if not convert_all:
        return shaped
    return [convert(x, a.dtype) for x, a in zip(shaped, avals, strict=True)]


class Unravel(Record):
    """Convert a vector to the pytree it was made of. Equal to another that does the same."""

    __slots__ = ("avals", "flat", "tree")

    def __init__(self, tree: PyTreeDef, avals: tuple[ShapedArray, ...], flat: ShapedArray):
        self.tree = tree
        self.avals = avals
        self.flat = flat

    def __repr__(self) -> str:
        return f"Unravel({self.flat} -> {self.tree})"

    def __call__(self, flat: Any) -> Any:
        """Return the pytree with the elements of a vector."""
        x = as_array(flat, "unravel")
        if x.shape != self.flat.shape:
            raise ShapeError(
                f"unravel: the vector must be of the shape that ravel_pytree made, "
                f"{self.flat.str_short(True)}; got {x.aval}."
            )
        one_dtype = all(a.dtype == self.flat.dtype for a in self.avals)
        if not one_dtype and x.dtype != self.flat.dtype:
            raise DtypeError(
                f"unravel: the vector must be of the dtype that ravel_pytree made, "
                f"{self.flat.dtype}; got {x.aval}. Hint: flat.astype(jnp.{self.flat.dtype})."
            )
        return unflatten(self.tree, unravel_arrays(x, self.avals, not one_dtype))
