"""The private names of `jax.experimental.sparse.linalg` with which libraries copy LOBPCG."""

from __future__ import annotations

from typing import Any

from weft.errors import ShapeError
from weft.lax import Precision
from weft.numpy import matmul, shape
from weft.numpy.linalg import eigh
from weft.util import list_public

__all__: list[str] = []
__dir__ = list_public(__name__)


def _mm(a: Any, b: Any, precision: Any = Precision.HIGHEST) -> Any:
    """Return the product of two matrices, with full precision."""
    return matmul(a, b, precision=precision)


def _eigh_ascending(A: Any) -> tuple[Any, Any]:
    """Return eigenvalues, the largest first as JAX's function does, and their eigenvectors."""
    values, vectors = eigh(A)
    return values[::-1], vectors[:, ::-1]


def _check_inputs(A: Any, X: Any) -> None:
    """Raise for vectors [n, k] that are too many, or that a linear function does not map."""
    n, k = shape(X)
    if not 0 < 5 * k < n:
        raise ShapeError(f"lobpcg_standard: X must be [n, k] with 0 < 5 k < n; got {shape(X)}.")
    made = A(X)
    if shape(made) != (n, k) or made.dtype != X.dtype:
        raise ShapeError(f"lobpcg_standard: A must map X to its own type; got {made.aval}.")
