"""Polynomials as vectors of their coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.core.trace import Tracer
from weft.errors import ConcretizationTypeError, ShapeError
from weft.numpy.choice import literal_like, where
from weft.numpy.convolution import convolve
from weft.numpy.creation import arange, zeros
from weft.numpy.elementwise import conj, real
from weft.numpy.grids import vander
from weft.numpy.linalg import eigvals, inv, lstsq
from weft.numpy.manipulation import concatenate
from weft.numpy.products import matmul
from weft.numpy.promotion import (
    as_array,
    as_arrays_together,
    as_inexact,
    drop_weak_type,
    promote_operands,
)
from weft.numpy.reductions import sum
from weft.numpy.sorting import argsort
from weft.numpy.ufuncs import sqrt
from weft.primitives import elementwise as ops
from weft.primitives.families import check_integer
from weft.primitives.layout import literal
from weft.run.operation import operation
from weft.util import SymbolicSize
from weft.xla.array import host_view
from weft.xla.typing import Array, ArrayLike


def promote_coefficients(op: str, *ps: Any, inexact: bool = False) -> list:
    """Polynomials in their common dtype; a number is a constant one."""
    arrays = as_arrays_together(op, *ps)
    if any(p.ndim > 1 for p in arrays):
        got = ", ".join(str(p.aval) for p in arrays)
        raise ShapeError(f"{op}: polynomials must be vectors; got {got}.")
    arrays = [lax.reshape(p, (1,)) if not p.ndim else p for p in arrays]
    return promote_operands(op, *arrays, inexact=inexact, shaped=False)


def strip_leading_zeros(op: str, p: Any) -> Any:
    """A polynomial without coefficients 0 in front, which have to be known."""
    return p[count_leading_zeros(op, p) :]


def count_leading_zeros(op: str, p: Any, end: int = 1) -> int:
    """Return how many coefficients, from the front or with end=-1 from the back, are 0."""
    if isinstance(p, Tracer):
        p = p.concrete(ConcretizationTypeError, op, f"keep zeros: jnp.{op}(..., {KEEPING[op]}).")
    found = np.flatnonzero(host_view(p)[::end])
    return int(found[0]) if found.size else p.size


KEEPING = {
    "polymul": "trim_leading_zeros=False",
    "polydiv": "trim_leading_zeros=False",
    "roots": "strip_zeros=False",
}


# --- arithmetic -----------------------------------------------------------------------------


@operation
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Add two polynomials.

    A polynomial is a vector of its coefficients, the highest power first.

    Args:
      a1: vector of n coefficients, or a number, of any dtype.
      a2: vector of m coefficients, or a number, of any dtype.

    Returns:
      A vector of max(n, m) coefficients, of the common dtype of the operands.

    Raises:
      ShapeError: if a polynomial has more than one axis.

    >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([1, 0]))
    Array([1, 3, 3], dtype=int32)
    """
    x, y = promote_coefficients("polyadd", a1, a2)
    n = max(x.size, y.size)
    x, y = (lax.pad(p, literal(0, p.dtype), [(n - p.size, 0, 0)]) for p in (x, y))
    return ops.add(x, y)


@operation
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Subtract a polynomial from another.

    A polynomial is a vector of its coefficients, the highest power first.

    Args:
      a1: vector of n coefficients, or a number, of any dtype.
      a2: vector of m coefficients, or a number, of any dtype.

    Returns:
      A vector of max(n, m) coefficients of a1 - a2, of the common dtype of the operands.

    Raises:
      ShapeError: if a polynomial has more than one axis.

    >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([1, 0]))
    Array([1, 1, 3], dtype=int32)
    """
    x, y = promote_coefficients("polysub", a1, a2)
    return polyadd(x, ops.neg(y))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Multiply two polynomials.

    A polynomial is a vector of its coefficients, the highest power first. The product is a
    convolution. Integers are converted to floats, and leading zeros stay by default; NumPy keeps
    integers and drops leading zeros.

    Args:
      a1: vector of n coefficients, or a number.
      a2: vector of m coefficients, or a number.
      trim_leading_zeros: drop leading zeros of both factors first. False by default. The size of
        the result then depends on values, so they must be concrete: not arguments of `jit`.

    Returns:
      A vector of n + m - 1 coefficients, of the common inexact dtype of the operands.

    Raises:
      ShapeError: if a polynomial has more than one axis.

    >>> jnp.polymul(jnp.array([0, 1, 2]), jnp.array([1, 3]))
    Array([0., 1., 5., 6.], dtype=float32)
    >>> jnp.polymul(jnp.array([0, 1, 2]), jnp.array([1, 3]), trim_leading_zeros=True)
    Array([1., 5., 6.], dtype=float32)
    """
    x, y = promote_coefficients("polymul", a1, a2, inexact=True)
    if trim_leading_zeros:
        x, y = (strip_leading_zeros("polymul", p) for p in (x, y))
    x, y = (p if p.size else zeros(1, p.dtype) for p in (x, y))
    return convolve(x, y)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Divide two polynomials: u = quotient * v + remainder.

    A polynomial is a vector of its coefficients, the highest power first. The first coefficient of
    `v` must not be 0. The remainder keeps its leading zeros by default; NumPy drops them.

    Args:
      u: vector of n coefficients, or a number: the dividend.
      v: vector of m coefficients, or a number: the divisor.
      trim_leading_zeros: drop leading zeros of the remainder. False by default. The size of the
        result then depends on values, so they must be concrete: not arguments of `jit`.

    Returns:
      A pair (quotient, remainder) of vectors of the common inexact dtype of the operands, of
      max(n - m + 1, 1) and of n coefficients.

    Raises:
      ShapeError: if a polynomial has more than one axis.
      ConcretizationTypeError: if leading zeros are dropped under a transformation such as `jit`.

    >>> u, v = jnp.array([1., 5., 7.]), jnp.array([1., 2.])
    >>> jnp.polydiv(u, v)
    (Array([1., 3.], dtype=float32), Array([0., 0., 1.], dtype=float32))
    >>> jnp.polydiv(u, v, trim_leading_zeros=True)
    (Array([1., 3.], dtype=float32), Array([1.], dtype=float32))
    """
    x, y = promote_coefficients("polydiv", u, v, inexact=True)
    quotient, rest = divide_vectors(x, y)
    return quotient, strip_leading_zeros("polydiv", rest) if trim_leading_zeros else rest


@operation(name="polydiv")
def divide_vectors(x: Any, y: Any) -> tuple[Any, Any]:
    """`polydiv` of vectors."""
    steps = x.size - y.size + 1
    if steps < 1:
        return zeros(1, x.dtype), x
    room = lax.pad(y, literal(0, y.dtype), [(0, x.size - y.size, 0)])

    def step(rest: Any, _: Any) -> tuple:
        """Eliminate with the first coefficient, and rotate it to the end."""
        factor = rest[0] / y[0]
        rest = rest - factor * room
        return concatenate([rest[1:], rest[:1] * 0]), factor

    rest, quotient = lax.scan(step, x, None, length=steps)
    return drop_weak_type(quotient), lax.pad(
        rest[: y.size - 1], literal_like(0, rest), [(steps, 0, 0)]
    )


# --- calculus and values --------------------------------------------------------------------


@operation(static=("m",))
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Differentiate a polynomial.

    A polynomial is a vector of its coefficients, the highest power first.

    Args:
      p: vector of n coefficients, or a number. Integers are converted to floats.
      m: how often to differentiate, 0 or more; 1 by default. A Python value, static under tracing.

    Returns:
      A vector of max(n - m, 0) coefficients, of the inexact dtype of `p`.

    Raises:
      ShapeError: if `p` has more than one axis, or `m` is negative.

    >>> jnp.polyder(jnp.array([1, 2, 3]))
    Array([2., 2.], dtype=float32)
    >>> jnp.polyder(jnp.array([1, 2, 3]), m=2)
    Array([2.], dtype=float32)
    """
    (p,) = promote_coefficients("polyder", p, inexact=True)
    m = check_integer("polyder", "m", m, 0)
    if not isinstance(p.size, SymbolicSize):
        m = min(m, p.size)
    elif not p.size >= m:
        raise ShapeError(
            f"polyder: m must be at most the number of coefficients; got {m} for {p.aval}."
        )
    return lax.slice_in_dim(p, 0, p.size - m) * list_factors(p.size - m, m, p.dtype)


def list_factors(size: Any, m: int, dtype: np.dtype) -> Any:
    """Return (i + 1) (i + 2) ... (i + m) for i = size - 1, ..., 1, 0."""
    if not isinstance(size, SymbolicSize):
        numbers = np.arange(size - 1, -1, -1.0) + np.arange(1, m + 1).reshape(m, 1)
        return ops.convert(np.prod(numbers, axis=0), dtype)
    i = lax.rev(lax.broadcasted_iota(dtypes.real_dtype(dtype), (size,), 0), (0,))
    out = lax.full((size,), 1, i.dtype)
    for k in range(1, m + 1):
        out = out * (i + k)
    return ops.convert(out, dtype)


@operation(static=("m",))
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """Integrate a polynomial.

    A polynomial is a vector of its coefficients, the highest power first.

    Args:
      p: vector of n coefficients, or a number. Integers are converted to floats.
      m: how often to integrate, 0 or more; 1 by default. A Python value, static under tracing.
      k: the constants of integration: a number for all, or a vector of m, the first integral's
        first. None (default) stands for 0.

    Returns:
      A vector of n + m coefficients, of the common inexact dtype of `p` and `k`.

    Raises:
      ShapeError: if `p` has more than one axis, `m` is negative, or `k` has another shape.

    >>> jnp.polyint(jnp.array([3, 2, 1]))
    Array([1., 1., 1., 0.], dtype=float32)
    >>> jnp.polyint(jnp.array([6., 2.]), m=2, k=jnp.array([1., 2.]))
    Array([1., 1., 1., 2.], dtype=float32)
    """
    m = check_integer("polyint", "m", m, 0)
    if k is None:
        (p,) = promote_coefficients("polyint", p, inexact=True)
        k = zeros((), p.dtype)
    else:
        k = as_array(k, "polyint")
        if k.shape not in ((), (1,), (m,)):
            raise ShapeError(f"polyint: k must be a number, or a vector of {m}; got {k.aval}.")
        p, k = promote_coefficients("polyint", p, k, inexact=True)
    k = lax.broadcast_in_dim(k, (m,), range(k.ndim)) if k.shape != (m,) else k
    if not m:
        return p
    below = np.array([np.prod(np.arange(1.0, m - i)) for i in range(m)])  # factorials
    whole = list_factors(p.size, m, p.dtype)
    return concatenate([p / whole, k / ops.convert(below, p.dtype)])


@operation(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Evaluate a polynomial at points x, by Horner's rule.

    Args:
      p: array of n coefficients along the first axis, the highest power first. Further axes
        broadcast against `x`: they hold several polynomials.
      x: array of any shape, or a number.
      unroll: the number of steps of the loop over coefficients that are compiled in sequence, 16 by
        default. A Python value, static under tracing.

    Returns:
      An array of the shape of `x` (broadcast against p.shape[1:]), of the common dtype of the
      operands. Integers stay integers.

    Raises:
      ShapeError: if `p` is a number.

    >>> jnp.polyval(jnp.array([1, 0, 2]), jnp.array([1, 3]))
    Array([ 3, 11], dtype=int32)
    """
    p, x = as_arrays_together("polyval", p, x)
    if not p.ndim:
        raise ShapeError(f"polyval: p must be a vector of coefficients; got {p.aval}.")
    p, x = map(drop_weak_type, promote_operands("polyval", p, x, shaped=False))
    if dtypes.is_bool(p.dtype):
        return ops.convert(polyval(*(ops.convert(v, np.int32) for v in (p, x))), p.dtype)
    start = x * 0 + (p[0] if p.shape[0] else 0)
    if p.shape[0] <= 2:
        return start * x + p[1] if p.shape[0] == 2 else start
    return lax.scan(lambda y, c: (y * x + c, None), start, p[1:], unroll=unroll)[0]


# --- roots ----------------------------------------------------------------------------------


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Find the roots of a polynomial, as the eigenvalues of its companion matrix.

    Leading coefficients that are 0 lower the degree and so the number of roots. By default they are
    counted, so the coefficients must be concrete. Under `jit` use strip_zeros=False.

    Args:
      p: vector of n coefficients, the highest power first. Integers are converted to floats.
      strip_zeros: True (default) drops leading zeros. False returns n - 1 roots always, and NaN in
        place of those that do not exist.

    Returns:
      A complex vector of the roots: n - 1 of them, less one for each leading zero.

    Raises:
      ShapeError: if `p` has more than one axis.
      ConcretizationTypeError: under a transformation such as `jit`, if strip_zeros is True.

    >>> jnp.roots(jnp.array([1., -3., 2.]))
    Array([2.+0.j, 1.+0.j], dtype=complex64)
    >>> weft.jit(lambda p: jnp.roots(p, strip_zeros=False))(jnp.array([0., 1., -3.])).real
    Array([ 3., nan], dtype=float32)
    """
    (p,) = promote_coefficients("roots", p, inexact=True)
    if strip_zeros:
        first = count_leading_zeros("roots", p)
        last = p.size - count_leading_zeros("roots", p, -1) if first < p.size else p.size
        p, zero = p[first:last], p.size - last
        return concatenate(
            [find_companion_eigenvalues(p), zeros(zero, dtypes.complex_dtype(p.dtype))]
        )
    return find_roots_of_any(p)


def find_companion_eigenvalues(p: Any) -> Any:
    """The roots of a polynomial whose first coefficient is not 0."""
    n = max(p.size - 1, 0)
    if not n:
        return zeros(0, dtypes.complex_dtype(p.dtype))
    below = np.eye(n - 1, n).astype(p.dtype)
    matrix = concatenate([(-p[1:] / p[0])[None], as_array(below)])
    return eigvals(matrix)


@operation(name="eigvals")
def find_roots_of_any(p: Any) -> Any:
    """Roots where zeros in front are not known: put behind they are roots 0, shown as NaN."""
    n = max(p.size - 1, 0)
    if not n:
        return find_companion_eigenvalues(p)
    leading = sum(ops.convert(lax.cumsum(ops.convert(p != 0, np.int32)) == 0, np.int32))
    found = find_companion_eigenvalues(p[(arange(p.size) + leading) % p.size])
    found = found[argsort(-abs(found))]
    return where(arange(n) < n - leading, found, np.nan)


@operation(name="poly")
def multiply_roots(zeros_: Any) -> Any:
    """The polynomial with the given roots."""
    n = zeros_.size

    def step(p: Any, zero: Any) -> tuple:
        return p - zero * concatenate([p[:1] * 0, p[:-1]]), None

    return lax.scan(step, as_array(np.eye(1, n + 1).astype(zeros_.dtype)[0]), zeros_)[0]


def poly(seq_of_zeros: ArrayLike) -> Array:
    """Compute the polynomial that has the given roots, or the characteristic one of a matrix.

    Args:
      seq_of_zeros: vector of n roots, or a square matrix of shape (n, n), whose eigenvalues are the
        roots. Integers are converted to floats.

    Returns:
      A vector of n + 1 coefficients, the highest power first, whose first is 1. It has the inexact
      dtype of the roots, and is complex for a matrix, also where NumPy returns floats. Without
      roots the result is the number 1.

    Raises:
      ShapeError: if the operand is a matrix that is not square, or has more axes.

    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    >>> jnp.poly(jnp.array([[2.0, 0.0], [0.0, 3.0]])).real
    Array([ 1., -5.,  6.], dtype=float32)
    """
    x = as_inexact("poly", seq_of_zeros)
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.size:
        x = eigvals(x)
    elif x.ndim > 1:
        raise ShapeError(f"poly: roots must be a vector, or a square matrix; got {x.aval}.")
    elif not x.ndim:
        x = lax.reshape(x, (1,))
    return multiply_roots(x) if x.size else as_array(np.ones((), x.dtype))


# --- fits -----------------------------------------------------------------------------------


@operation(static=("deg", "rcond", "full", "cov"))
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """Fit a polynomial to points by least squares.

    Args:
      x: vector of n coordinates.
      y: vector of n values, or matrix of shape (n, k): each column is fitted.
      deg: the degree, 0 or more. A Python value, static under tracing.
      rcond: singular values below rcond times the largest count as 0. None (default) stands for
        n * eps of the dtype. A Python value, static under tracing.
      full: return more of the solution, see below. False by default.
      w: vector of n weights of the residuals (not of their squares); None (default) for ones.
      cov: True returns the covariance of the coefficients as well, scaled by the residuals;
        "unscaled" returns it without this factor. False by default; ignored with `full`.

    Returns:
      p, the coefficients, the highest power first, of shape (deg + 1,) or (deg + 1, k). With `full`
      a tuple (p, residuals, rank, singular values, rcond). With `cov` a pair (p, covariance), of
      shape (deg + 1, deg + 1), and a last axis if `y` is a matrix. The dtype is the common inexact
      dtype of `x` and `y`.

    Raises:
      ValueError: if `deg` is negative, or there are too few points to scale the covariance.
      ShapeError: if the operands do not have the shapes above.

    >>> x, y = jnp.array([0., 1., 2., 3.]), jnp.array([1., 3., 5., 7.])
    >>> bool(jnp.allclose(jnp.polyfit(x, y, 1), jnp.array([2., 1.]), atol=1e-4))
    True
    >>> p, covariance = jnp.polyfit(x, y, 1, cov=True)
    >>> p.shape, covariance.shape
    ((2,), (2, 2))
    """
    deg = check_integer("polyfit", "deg", deg)
    if deg < 0:
        raise ValueError(f"polyfit: deg must not be negative; got {deg}.")
    x, y = promote_operands(
        "polyfit", as_array(x, "polyfit"), as_array(y, "polyfit"), inexact=True, shaped=False
    )
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or y.shape[0] != x.size:
        raise ShapeError(
            "polyfit: x must be a vector, and y one as long or a matrix of as many rows; "
            f"got {x.aval}, {y.aval}."
        )
    rcond = x.size * float(dtypes.finfo(x.dtype).eps) if rcond is None else rcond
    left, right = vander(x, deg + 1), y
    if w is not None:
        w = as_array(w, "polyfit")
        if w.shape != x.shape:
            raise ShapeError(f"polyfit: w must have the shape of x; got {w.aval}, {x.aval}.")
        w = w if dtypes.is_inexact(w.dtype) else ops.convert(w, x.dtype)
        left = left * w[:, None]
        right = right * (w if y.ndim == 1 else w[:, None])
    scale = sqrt(sum(real(left * conj(left)), 0))
    c, residuals, rank, s = lstsq(left / scale[None].astype(left.dtype), right, rcond)
    c = c / scale[:, None].astype(c.dtype) if y.ndim == 2 else c / scale.astype(c.dtype)
    if full:
        return c, residuals, rank, s, rcond
    if not cov:
        return c
    normal = left / scale[None].astype(left.dtype)
    base = inv(matmul(conj(normal).T, normal)) / (scale[:, None] * scale[None]).astype(left.dtype)
    if cov == "unscaled":
        factor = literal(1, residuals.dtype)
    else:
        if x.size <= deg + 1:
            raise ValueError(
                "polyfit: to scale the covariance there must be more points than coefficients; "
                f'got {x.size} and {deg + 1}. Hint: cov="unscaled".'
            )
        factor = residuals / (x.size - deg - 1)
    if y.ndim == 1:
        return c, base * lax.broadcast_to_rank(factor, 2)
    return c, base[:, :, None] * lax.broadcast_to_rank(factor, 3)
