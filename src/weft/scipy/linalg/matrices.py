"""Matrices of a known form: toeplitz, hankel, hilbert and others.

The host computes matrices that depend only on a size. The other functions take vectors along the
last axis, with any axes before it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft import dtypes
from weft import numpy as jnp
from weft.core.aval import check_extent
from weft.errors import ShapeError
from weft.numpy.promotion import as_array, as_inexact, broadcast_shapes
from weft.primitives.families import check_integer
from weft.primitives.layout import broadcast_to_rank
from weft.run.operation import operation
from weft.util import SymbolicSize, check_option
from weft.xla.typing import Array, ArrayLike, DTypeLike

# --- of vectors -----------------------------------------------------------------------------


def check_vectors(op: str, x: Any, least: int = 1) -> Any:
    """An array of vectors; a number is a vector of one."""
    x = as_array(x, op)
    x = x if x.ndim else jnp.reshape(x, (1,))
    if x.shape[-1] < least:
        raise ShapeError(f"{op}: vectors must have at least {least} elements; got {x.aval}.")
    return x


def join_vectors(x: Any, y: Any) -> Any:
    """Vectors one after the other, their leading axes broadcast."""
    lead = broadcast_shapes(x.shape[:-1], y.shape[:-1])
    parts = [jnp.broadcast_to(v, (*lead, v.shape[-1])) for v in (x, y)]
    return jnp.concatenate(parts, -1)


def grid_indices(m: Any, n: Any) -> tuple[Any, Any]:
    """The number of its row, and of its column, for each place of a matrix."""
    if isinstance(m, SymbolicSize) or isinstance(n, SymbolicSize):
        return jnp.arange(m)[:, None], jnp.arange(n)[None]
    return np.ogrid[:m, :n]


def read_order(op: str, n: Any) -> int:
    """The number of rows of a square matrix, which the host computes in Python's objects."""
    n = check_integer(op, "n", n, 0, math.inf)
    check_extent((n, n), np.dtype(object))
    return n


def choose_entries(mask: Any, x: Any, y: Any) -> Any:
    """Return matrices with entries of x where a mask of one matrix or row is True, else of y."""
    rank = max(np.ndim(x), np.ndim(y))
    lifted = (v if np.ndim(v) == 0 else broadcast_to_rank(v, rank) for v in (mask, x, y))
    return jnp.where(*lifted)


@operation
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return a Toeplitz matrix: its diagonals are constant.

    It is the matrix of a convolution, or the covariance of a stationary series.

    Args:
      c: the first column, an array (..., m). Leading axes are a batch.
      r: the first row, an array (..., n); r[..., 0] is not read. By default conj(c).

    Returns:
      An array (..., m, n) of the dtype of c and r.

    Raises:
      ShapeError: a vector has no elements.

    >>> from weft.scipy.linalg import toeplitz
    >>> print(toeplitz(jnp.array([1, 2, 3])))
    [[1 2 3]
     [2 1 2]
     [3 2 1]]
    >>> print(toeplitz(jnp.array([1, 2, 3]), jnp.array([1, 5])))
    [[1 5]
     [2 1]
     [3 2]]
    """
    c = check_vectors("toeplitz", c)
    r = jnp.conj(c) if r is None else check_vectors("toeplitz", r)
    m, n = c.shape[-1], r.shape[-1]
    i, j = grid_indices(m, n)
    return join_vectors(c[..., ::-1], r[..., 1:])[..., m - 1 - i + j]


@operation
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return a Hankel matrix: its antidiagonals are constant.

    It arises from delays of a series, for example.

    Args:
      c: the first column, an array (..., m). Leading axes are a batch.
      r: the last row, an array (..., n); r[..., 0] is not read. By default zeros of the size of c.

    Returns:
      An array (..., m, n) of the dtype of c and r.

    Raises:
      ShapeError: a vector has no elements.

    >>> from weft.scipy.linalg import hankel
    >>> print(hankel(jnp.array([1, 2, 3])))
    [[1 2 3]
     [2 3 0]
     [3 0 0]]
    >>> print(hankel(jnp.array([1, 2, 3]), jnp.array([3, 4])))
    [[1 2]
     [2 3]
     [3 4]]
    """
    c = check_vectors("hankel", c)
    r = jnp.zeros_like(c) if r is None else check_vectors("hankel", r)
    i, j = grid_indices(c.shape[-1], r.shape[-1])
    return join_vectors(c, r[..., 1:])[..., i + j]


@operation
def circulant(c: ArrayLike) -> Array:
    """Return a circulant matrix: each column is the column before it, rotated down by one.

    Its product with a vector is a circular convolution.

    Args:
      c: the first column, an array (..., n). Leading axes are a batch.

    Returns:
      An array (..., n, n) of the dtype of c.

    Raises:
      ShapeError: a vector has no elements.

    >>> from weft.scipy.linalg import circulant
    >>> print(circulant(jnp.array([1, 2, 3])))
    [[1 3 2]
     [2 1 3]
     [3 2 1]]
    """
    c = check_vectors("circulant", c)
    n = c.shape[-1]
    i, j = grid_indices(n, n)
    return c[..., (i - j) % n]


@operation
def companion(a: ArrayLike) -> Array:
    """Return the companion matrix of a polynomial: its eigenvalues are the roots.

    The polynomial is a[0] x**n + ... + a[n]. The first row is -a[1:] / a[0], and there are ones
    below the diagonal.

    Args:
      a: the coefficients, highest power first, an array (..., n + 1) with at least two of them.
        Leading axes are a batch. a[..., 0] must not be 0.

    Returns:
      An array (..., n, n). It has the dtype of a; integers become the default float.

    Raises:
      ShapeError: there are fewer than two coefficients.

    >>> from weft.scipy.linalg import companion
    >>> print(companion(jnp.array([1.0, -3.0, 2.0])))
    [[ 3. -2.]
     [ 1.  0.]]
    """
    a = as_inexact("companion", check_vectors("companion", a, 2))
    return combine_first_row(-a[..., 1:] / a[..., :1], np.ones(a.shape[-1] - 2))


def combine_first_row(row: Any, below: Any) -> Any:
    """Return matrices with a given first row and a given first subdiagonal."""
    n = row.shape[-1]
    i, j = grid_indices(n, n)
    below = jnp.asarray(below, row.dtype)[..., None, :] if n > 1 else jnp.zeros((1, 1), row.dtype)
    wide = jnp.concatenate([below, jnp.zeros((*below.shape[:-1], 1), row.dtype)], -1)[..., :n]
    return choose_entries(i == 0, row[..., None, :], choose_entries(i == j + 1, wide, 0))


@operation
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Return a Leslie matrix, the model of a population with age classes.

    Its product with the numbers in each class gives the numbers a step later.

    Args:
      f: the births per member of each class, an array (..., n). Leading axes are a batch.
      s: the share of each class that survives to the next, an array (..., n - 1).

    Returns:
      An array (..., n, n): f is its first row, s is below the diagonal. The dtype is the promoted
      dtype of f and s.

    Raises:
      ShapeError: s is not one element shorter than f.

    >>> from weft.scipy.linalg import leslie
    >>> print(leslie(jnp.array([0.0, 2.0, 1.0]), jnp.array([0.5, 0.25])))
    [[0.   2.   1.  ]
     [0.5  0.   0.  ]
     [0.   0.25 0.  ]]
    """
    f, s = check_vectors("leslie", f), check_vectors("leslie", s)
    if s.shape[-1] != f.shape[-1] - 1:
        raise ShapeError(f"leslie: s must be one element shorter than f; got {f.aval}, {s.aval}.")
    f, s = f.astype(dtypes.result_type(f, s)), s.astype(dtypes.result_type(f, s))
    return combine_first_row(f, s)


@operation(static=("n", "mode"))
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Return the matrix of a convolution: C @ v is jnp.convolve(a, v, mode).

    Args:
      a: the kernel, an array (..., m). Leading axes are a batch.
      n: the length of v, a positive integer. Static under `jit`.
      mode: "full", "valid" or "same", as for `jnp.convolve`. By default "full". Static under `jit`.

    Returns:
      An array (..., k, n) of the dtype of a. k is the length of the convolution: m + n - 1 for
      "full".

    Raises:
      ShapeError: n is less than 1, or a has no elements.
      TypeError: n is not an integer.
      ValueError: `mode` is another name.
      TracerIntegerConversionError: n is traced; it must be static under `jit`.

    >>> from weft.scipy.linalg import convolution_matrix
    >>> print(convolution_matrix(jnp.array([1, 2, 3]), 2))
    [[1 0]
     [2 1]
     [3 2]
     [0 3]]
    """
    a, n = check_vectors("convolution_matrix", a), check_integer("convolution_matrix", "n", n, 1)
    m = a.shape[-1]
    check_option("convolution_matrix", "mode", mode, "full", "valid", "same")
    size = {"full": m + n - 1, "same": max(m, n), "valid": max(m, n) - min(m, n) + 1}[mode]
    start = {"full": 0, "same": (min(m, n) - 1) // 2, "valid": min(m, n) - 1}[mode]
    i, j = grid_indices(size, n)
    k = i + start - j
    return choose_entries((k >= 0) & (k < m), a[..., np.clip(k, 0, m - 1)], 0)


@operation
def fiedler(a: ArrayLike) -> Array:
    """Return the symmetric matrix whose entry (i, j) is |a[i] - a[j]|.

    Args:
      a: an array (..., n). Leading axes are a batch.

    Returns:
      An array (..., n, n) of the dtype of a.

    Raises:
      ShapeError: a vector has no elements.

    >>> from weft.scipy.linalg import fiedler
    >>> print(fiedler(jnp.array([1, 4, 9])))
    [[0 3 8]
     [3 0 5]
     [8 5 0]]
    """
    a = check_vectors("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


@operation
def fiedler_companion(a: ArrayLike) -> Array:
    """Return the Fiedler companion matrix of a polynomial: its eigenvalues are the roots.

    The polynomial is a[0] x**n + ... + a[n]. Unlike `companion`, the matrix has five diagonals
    only. Source: Fiedler, A note on companion matrices (2003).

    Args:
      a: the coefficients, highest power first, an array (..., n + 1). Leading axes are a batch.
        a[..., 0] must not be 0.

    Returns:
      An array (..., n, n). It has the dtype of a; integers become the default float. For a
      constant polynomial it is empty, of shape (0,).

    Raises:
      ShapeError: a vector has no elements.

    >>> from weft.scipy.linalg import fiedler_companion
    >>> print(fiedler_companion(jnp.array([1.0, -6.0, 11.0, -6.0])))
    [[  6. -11.   1.]
     [  1.   0.   0.]
     [  0.   6.   0.]]
    """
    a = as_inexact("fiedler_companion", check_vectors("fiedler_companion", a))
    a = a / a[..., :1]
    n = a.shape[-1] - 1
    if n == 0:
        return jnp.zeros((0,), a.dtype)
    i, j = grid_indices(n, n)
    # Coefficients are left and right of the diagonal in every other row.
    own = ((i == 0) & (j < 2)) | ((i % 2 == 0) & (i > 0) & ((j == i - 1) | (j == i + 1)))
    which = np.where(j < i, j + 2, j + 1)
    one = ((i % 2 == 0) & (j == i + 2)) | ((i % 2 == 1) & (j == i - 2)) | ((i == 1) & (j == 0))
    return choose_entries(own, -a[..., np.clip(which, 0, n)], jnp.asarray(one, a.dtype))


@operation
def block_diag(*arrs: ArrayLike) -> Array:
    """Return a matrix with the given matrices along its diagonal and zeros elsewhere.

    Args:
      arrs: arrays of up to two axes. A vector is a matrix of one row, a scalar a matrix (1, 1).

    Returns:
      An array with the sums of the operands' numbers of rows and of columns, of the
      promoted dtype. Without operands it has shape (1, 0).

    Raises:
      ShapeError: an operand has more than two axes.

    >>> from weft.scipy.linalg import block_diag
    >>> print(block_diag(jnp.ones((1, 2)), 3.0))
    [[1. 1. 0.]
     [0. 0. 3.]]
    """
    arrs = arrs or (np.zeros((1, 0), np.float32),)
    parts = [jnp.atleast_2d(as_array(a, "block_diag")) for a in arrs]
    for a in parts:
        if a.ndim != 2:
            raise ShapeError(f"block_diag: operands must have 2 axes at most; got {a.aval}.")
    dtype = dtypes.result_type(*parts)
    total, done, rows = sum(a.shape[1] for a in parts), 0, []
    for a in parts:
        after = total - done - a.shape[1]
        rows.append(jnp.pad(a.astype(dtype), ((0, 0), (done, after))))
        done += a.shape[1]
    return jnp.concatenate(rows)


# --- of a size ------------------------------------------------------------------------------


def as_floats(x: Any) -> Any:
    """Numbers in the default float dtype."""
    return jnp.asarray(np.asarray(x, np.float64), dtypes.default_float())


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Return the matrix of the discrete Fourier transform of n points.

    dft(n) @ x is jnp.fft.fft(x), up to rounding.

    Args:
      n: the number of rows and columns, an integer, not negative.
      scale: None, the default: no factor; "n": the matrix is divided by n; "sqrtn": by the square
        root of n, so that it is unitary.
      dtype: the dtype of the result. By default complex64, with enable_x64 complex128.

    Returns:
      An array (n, n).

    Raises:
      ShapeError: n is negative.
      TypeError: n is not an integer.
      TracerIntegerConversionError: n is traced; it must be static under `jit`.
      ValueError: `scale` is another name.

    >>> from weft.scipy.linalg import dft
    >>> print(jnp.allclose(dft(4) @ jnp.arange(4.0), jnp.fft.fft(jnp.arange(4.0)), atol=1e-5))
    True
    """
    n = check_integer("dft", "n", n, 0)
    check_option("dft", "scale", scale, None, "sqrtn", "n")
    i, j = grid_indices(n, n)
    x = np.exp(-2j * np.pi * ((i * j) % max(n, 1)) / max(n, 1))
    x = x / {None: 1, "n": max(n, 1), "sqrtn": math.sqrt(max(n, 1))}[scale]
    return jnp.asarray(x, dtypes.complex_dtype(dtypes.default_float()) if dtype is None else dtype)


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Return the Hadamard matrix of n rows: entries 1 and -1, and orthogonal rows.

    Sylvester's construction is used.

    Args:
      n: the number of rows and columns, a power of 2.
      dtype: the dtype of the result. By default the default integer.

    Returns:
      An array (n, n).

    Raises:
      ShapeError: n is not a positive power of 2.
      TypeError: n is not an integer.
      TracerIntegerConversionError: n is traced; it must be static under `jit`.

    >>> from weft.scipy.linalg import hadamard
    >>> print(hadamard(4))
    [[ 1  1  1  1]
     [ 1 -1  1 -1]
     [ 1  1 -1 -1]
     [ 1 -1 -1  1]]
    """
    n = check_integer("hadamard", "n", n, most=math.inf)
    if isinstance(n, SymbolicSize) or n < 1 or n & (n - 1):
        raise ShapeError(f"hadamard: n must be a positive power of 2; got {n}.")
    x = np.ones((1, 1), np.int32)
    while len(x) < n:
        x = np.block([[x, x], [x, -x]])
    return jnp.asarray(x, dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Return the Helmert matrix, whose rows are orthonormal contrasts.

    Each row compares an element with the mean of the elements before it. The rows sum to 0.

    Args:
      n: the number of rows and columns, an integer, not negative.
      full: if True, the constant row 1 / sqrt(n) comes first, so that the matrix is orthogonal. By
        default False.

    Returns:
      An array (n - 1, n), or (n, n) with `full`, of the default float.

    Raises:
      ShapeError: n is negative.
      TypeError: n is not an integer.
      TracerIntegerConversionError: n is traced; it must be static under `jit`.

    >>> from weft.scipy.linalg import helmert
    >>> print(np.asarray(helmert(3)).round(2))
    [[ 0.71 -0.71  0.  ]
     [ 0.41  0.41 -0.82]]
    """
    n = check_integer("helmert", "n", n, 0)
    i, j = grid_indices(n, n)
    x = np.where(j < i, 1.0, np.where(j == i, -i, 0.0)) / np.sqrt(np.maximum(i * (i + 1), 1))
    x[:1] = 1 / math.sqrt(max(n, 1))
    return as_floats(x if full else x[1:])


def hilbert(n: int) -> Array:
    """Return the Hilbert matrix: its entry (i, j) is 1 / (i + j + 1).

    It is a classic example of an ill-conditioned matrix.

    Args:
      n: the number of rows and columns, an integer, not negative.

    Returns:
      An array (n, n) of the default float.

    Raises:
      ShapeError: n is negative.
      TypeError: n is not an integer.
      TracerIntegerConversionError: n is traced; it must be static under `jit`.

    >>> from weft.scipy.linalg import hilbert
    >>> print(np.asarray(hilbert(2)).round(2))
    [[1.   0.5 ]
     [0.5  0.33]]
    """
    i, j = grid_indices(*[read_order("hilbert", n)] * 2)
    return as_floats(1 / (i + j + 1))


def invhilbert(n: int) -> Array:
    """Return the inverse of the Hilbert matrix.

    Its entries are integers. They are computed exactly and then rounded to floats.

    Args:
      n: the number of rows and columns, an integer, not negative.

    Returns:
      An array (n, n) of the default float.

    Raises:
      ShapeError: n is negative.
      TypeError: n is not an integer.
      TracerIntegerConversionError: n is traced; it must be static under `jit`.

    >>> from weft.scipy.linalg import invhilbert
    >>> print(invhilbert(3))
    [[   9.  -36.   30.]
     [ -36.  192. -180.]
     [  30. -180.  180.]]
    """
    n = read_order("invhilbert", n)
    comb = math.comb

    def element(i: int, j: int) -> int:
        size = (i + j + 1) * comb(n + i, n - j - 1) * comb(n + j, n - i - 1) * comb(i + j, i) ** 2
        return -size if (i + j) % 2 else size

    return as_floats([[element(i, j) for j in range(n)] for i in range(n)]).reshape(n, n)


def pascal(n: int, kind: str | None = None) -> Array:
    """Return a Pascal matrix, which holds binomial coefficients.

    SciPy returns integers; here the result is of a float dtype.

    Args:
      n: the number of rows and columns, an integer, not negative.
      kind: "symmetric", the default (also None): entry (i, j) is the binomial coefficient of i + j
        over i; "lower": of i over j; "upper": the transpose of the latter.

    Returns:
      An array (n, n) of the default float.

    Raises:
      ShapeError: n is negative.
      TypeError: n is not an integer.
      TracerIntegerConversionError: n is traced; it must be static under `jit`.
      ValueError: `kind` is another name.

    >>> from weft.scipy.linalg import pascal
    >>> print(pascal(3))
    [[1. 1. 1.]
     [1. 2. 3.]
     [1. 3. 6.]]
    >>> print(pascal(3, "lower"))
    [[1. 0. 0.]
     [1. 1. 0.]
     [1. 2. 1.]]
    """
    return pascal_matrix("pascal", n, kind, 1)


def invpascal(n: int, kind: str | None = None) -> Array:
    """Return the inverse of a Pascal matrix.

    Its entries are integers. They are computed exactly and then rounded to floats.

    Args:
      n: the number of rows and columns, an integer, not negative.
      kind: the kind of the Pascal matrix, "symmetric" (the default, also None), "lower" or "upper",
        as for `pascal`.

    Returns:
      An array (n, n) of the default float.

    Raises:
      ShapeError: n is negative.
      TypeError: n is not an integer.
      TracerIntegerConversionError: n is traced; it must be static under `jit`.
      ValueError: `kind` is another name.

    >>> from weft.scipy.linalg import invpascal
    >>> print(invpascal(3, "lower"))
    [[ 1.  0.  0.]
     [-1.  1.  0.]
     [ 1. -2.  1.]]
    """
    return pascal_matrix("invpascal", n, kind, -1)


def pascal_matrix(op: str, n: int, kind: str | None, sign: int) -> Any:
    """Pascal's matrices and, where `sign` is -1, their inverses."""
    n = read_order(op, n)
    check_option(op, "kind", kind, "symmetric", "lower", "upper", None)
    x = np.array([[sign ** (i + j) * math.comb(i, j) for j in range(n)] for i in range(n)], object)
    x = x.reshape(n, n)
    if kind in (None, "symmetric"):
        x = x @ x.T if sign > 0 else x.T @ x
    return as_floats(x.T if kind == "upper" else x)
