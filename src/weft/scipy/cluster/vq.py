"""Vector quantization: the nearest of a number of centres for each observation."""

from __future__ import annotations

from typing import Any

from weft import numpy as jnp
from weft.errors import ShapeError
from weft.numpy.promotion import as_array, promote_operands
from weft.run.operation import operation
from weft.util import list_public
from weft.xla.typing import Array, ArrayLike

__all__ = ["vq"]
__dir__ = list_public(__name__)


@operation(static=("check_finite",))
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Assign each observation to its nearest centre, in Euclidean distance.

    It is the assignment step of k-means. The distances can be differentiated. The derivative is 0
    where a distance is 0.

    Args:
      obs: the observations, a float array of shape (M, N), or (M,) for one feature.
      code_book: the centres, of shape (K, N), or (K,).
      check_finite: accepted as in SciPy; it has no effect. The default is True.

    Returns:
      A pair (codes, distances) of arrays of shape (M,): the index of the nearest centre, the first
      of equally near ones, and its distance.

    >>> codes, distances = vq(jnp.array([[0.0, 3.0], [4.0, 1.0]]), jnp.array([[0, 0], [4, 0]]))
    >>> print(codes, distances)
    [0 1] [3. 1.]
    """
    x, centres = (as_array(a, "vq") for a in (obs, code_book))
    if x.ndim != centres.ndim or x.ndim not in (1, 2):
        raise ShapeError(
            f"vq: obs and code_book must both be vectors or matrices; got {x.aval}, {centres.aval}."
        )
    if x.shape[1:] != centres.shape[1:]:
        raise ShapeError(
            "vq: obs and code_book must have the same number of features, their last axis; "
            f"got {x.aval}, {centres.aval}."
        )
    if not centres.shape[0]:
        raise ShapeError(f"vq: code_book must have a centre at least; got {centres.aval}.")
    x, centres = promote_operands("vq", x, centres, inexact=True, shaped=False)
    if x.ndim == 1:
        x, centres = x[:, None], centres[:, None]
    codes = jnp.argmin(squared_norms(x[:, None] - centres[None]), axis=-1)
    square = squared_norms(x - centres[codes])
    apart = square != 0  # a root has no derivative at 0
    return codes, jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1)), 0)


def squared_norms(x: Any) -> Any:
    """The sum of squares along the last axis."""
    return jnp.sum(jnp.real(x * jnp.conj(x)), axis=-1)
