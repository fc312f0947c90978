"""Linear algebra of sparse matrices: `spsolve`, `lobpcg_standard`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft import numpy as jnp
from weft.api.callbacks import pure_callback
from weft.api.shape_struct import ShapeDtypeStruct
from weft.errors import DtypeError, ShapeError
from weft.numpy.promotion import as_array, as_inexact
from weft.primitives.sparse import coo_dot, expand_rows
from weft.util import check_option, list_public

__all__ = ["lobpcg_standard", "spsolve"]
__dir__ = list_public(__name__)


def solve_on_host(
    data: Any, indices: Any, indptr: Any, b: Any, *, transpose: bool, order: str
) -> np.ndarray:
    """The solutions of sparse systems [*batch, ...] by SciPy's SuperLU; NaN for a singular matrix.

    Axes of batches are of size 1 where operands are the same for all; a matrix is factored once.
    """
    import scipy.sparse.linalg

    data, indices, indptr, b = (np.asarray(x) for x in (data, indices, indptr, b))
    n = indptr.shape[-1] - 1
    dtype = np.complex128 if np.iscomplexobj(b) or np.iscomplexobj(data) else np.float64
    one_right = [x.reshape(-1, x.shape[-1]) for x in (data, indices, indptr)]
    count = max(len(x) for x in one_right)
    lead = np.broadcast_shapes(data.shape[:-1], indptr.shape[:-1], b.shape[:-2])
    b = np.broadcast_to(b, (*lead, *b.shape[-2:]))
    columns = np.moveaxis(b.reshape(-1, n, b.shape[-1]), 0, 1)  # [n, batch, rights]
    out = np.full(columns.shape, np.nan, dtype)
    for i in range(count):
        values, places, starts = (x[i % len(x)] for x in one_right)
        stop = starts[-1]
        kept = places[:stop] < n
        ends = np.concatenate([[0], np.cumsum(kept)])[starts]
        given = values[:stop][kept].astype(dtype), places[:stop][kept], ends
        matrix = scipy.sparse.csr_array(given, shape=(n, n)).tocsc()
        mine = slice(None) if count == 1 else slice(i, i + 1)
        right = columns[:, mine].astype(dtype)
        try:
            factors = scipy.sparse.linalg.splu(matrix, permc_spec=order)
        except RuntimeError:  # exactly singular
            continue
        found = factors.solve(right.reshape(n, -1), "T" if transpose else "N")
        out[:, mine] = found.reshape(right.shape)
    return np.moveaxis(out, 1, 0).reshape(b.shape).astype(b.dtype)


def spsolve(
    data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1
) -> Any:
    """Solve A x = b for a square sparse matrix A in the arrays of a BCSR.

    The matrix is factored on the host by SciPy's SuperLU, in float64 or complex128, on all
    platforms. Within `vmap` over b it is factored once. Derivatives in `data` and in b are
    solutions of the same system, or of its transpose.

    Args:
      data, indices, indptr: the matrix of shape (n, n), as in `BCSR.fromdense(A)`.
      b: the right-hand side, of shape (n,), or (n, k) for k systems.
      tol: accepted for compatibility; it has no effect.
      reorder: 0 keeps the order of the columns. 1, the default, 2 and 3 choose an order with fewer
        entries in the factors.

    Returns:
      The solution, of the shape of b. It is NaN for a singular matrix.

    >>> from weft.experimental.sparse.linalg import spsolve
    >>> A = sparse.BCSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> print(spsolve(A.data, A.indices, A.indptr, jnp.array([2.0, 9.0])))
    [1. 2.]
    """
    data, b = (as_inexact("spsolve", x) for x in (data, b))
    indices, indptr = (as_array(x, "spsolve") for x in (indices, indptr))
    check_option("spsolve", "reorder", reorder, 0, 1, 2, 3)
    n = indptr.shape[0] - 1 if indptr.ndim == 1 else -1
    if data.ndim != 1 or indices.shape != data.shape or n < 0 or b.shape[:1] != (n,) or b.ndim > 2:
        raise ShapeError(
            "spsolve: data and indices must be [nse], indptr [n + 1] and b [n] or [n, k]; got "
            f"{data.aval}, {indices.aval}, {indptr.aval}, {b.aval}."
        )
    if not (dtypes.is_integer(indices.dtype) and dtypes.is_integer(indptr.dtype)):
        raise DtypeError(
            f"spsolve: indices and indptr must be integers; got {indices.aval}, {indptr.aval}."
        )
    dtype = jnp.promote_types(data.dtype, b.dtype)
    data, right = data.astype(dtype), b.astype(dtype).reshape(n, -1 if b.size else b[:1].size)
    places = expand_rows(indices, indptr)

    def solve(_: Callable, y: Any, transpose: bool) -> Any:
        fun = functools.partial(
            solve_on_host, transpose=transpose, order="COLAMD" if reorder else "NATURAL"
        )
        like = ShapeDtypeStruct(y.shape, y.dtype)
        return pure_callback(fun, like, data, indices, indptr, y, vmap_method="expand_dims")

    x = lax.custom_linear_solve(
        lambda x: coo_dot(data, x, places, n),
        right,
        functools.partial(solve, transpose=False),
        functools.partial(solve, transpose=True),
    )
    return x.reshape(b.shape)


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: Any = None) -> tuple[Any, Any, Any]:
    """Compute the largest eigenvalues of a Hermitian matrix and their eigenvectors, by LOBPCG.

    Source: Knyazev, Toward the optimal preconditioned eigensolver, 2001, without a preconditioner;
    the basis of each step is made orthonormal by QR (Hetmaniuk and Lehoucq 2006).

    Args:
      A: the matrix [n, n], dense or sparse, or a function that multiplies it by an array [n, k].
      X: the initial vectors, [n, k]; 3 k is at most n.
      m: the largest number of steps. The default is 100.
      tol: the iteration ends when each residual is at most tol * n * (the largest eigenvalue's
        size). By default it is the precision of the dtype.

    Returns:
      The eigenvalues [k] in descending order, the eigenvectors [n, k], and the number of steps.

    >>> from weft.experimental.sparse.linalg import lobpcg_standard
    >>> A = sparse.BCOO.fromdense(jnp.diag(jnp.arange(10.0)))
    >>> theta, U, steps = lobpcg_standard(A, random.normal(random.key(0), (10, 2)))
    >>> print(jnp.round(theta, 3))
    [9. 8.]
    """
    X = as_inexact("lobpcg_standard", X)
    if X.ndim != 2 or not 0 < 3 * X.shape[1] <= X.shape[0]:
        raise ShapeError(f"lobpcg_standard: X must be [n, k] with 0 < 3 k <= n; got {X.aval}.")
    n, k = X.shape
    multiply = A if callable(A) else lambda x: A @ x
    made = jnp.shape(multiply(X))
    if made != X.shape:
        raise ShapeError(f"lobpcg_standard: A must be [{n}, {n}]; got {made} as A @ X.")
    tol = dtypes.finfo(X.dtype).eps if tol is None else tol

    def project(basis: Any) -> tuple[Any, Any]:
        """The largest eigenvalues of A in the span of a basis, and their coordinates."""
        inner = basis.conj().T @ multiply(basis)
        values, vectors = jnp.linalg.eigh((inner + inner.conj().T) / 2)
        return values[::-1][:k], vectors[:, ::-1][:, :k]

    residual = lambda x, theta: multiply(x) - x * theta[None]

    def goes_on(state: tuple) -> Any:
        step, theta, _, _, r = state
        scale = jnp.max(jnp.abs(theta)) * n
        return (step < m) & jnp.any(jnp.linalg.norm(r, axis=0) > tol * scale)

    def advance(state: tuple) -> tuple:
        step, _, x, p, r = state
        # The first k columns of Q span x, and the others the additions of r and p.
        q = jnp.linalg.qr(jnp.concatenate([x, r, p], axis=1))[0]
        theta, c = project(q)
        found = q @ c
        p = q[:, k:] @ c[k:]
        return step + 1, theta, found, p, residual(found, theta)

    start = jnp.linalg.qr(X)[0]
    theta, c = project(start)
    x = start @ c
    state = (jnp.int32(0), theta, x, jnp.zeros_like(x), residual(x, theta))
    step, theta, x, _, _ = lax.while_loop(goes_on, advance, state)
    return theta, x, step
