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
    """(codes, distances): for each observation the index of the nearest centre, and how far it is.

    obs[M, N] are observations and code_book[K, N] centres, in Euclidean distance; of equally near
    ones the first is taken. Vectors [M] and [K] hold observations of one feature. The distances are
    differentiable, with derivative 0 where one is 0. `check_finite` is
    taken as in SciPy and changes nothing.

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
