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
from weft.numpy.promotion import as_array, as_inexact, drop_weak_type, promote_operands
from weft.numpy.reductions import sum
from weft.numpy.sorting import argsort
from weft.numpy.ufuncs import sqrt
from weft.primitives import elementwise as ops
from weft.primitives.families import check_integer
from weft.primitives.layout import literal
from weft.run.operation import operation
from weft.xla.array import host_view
from weft.xla.typing import Array, ArrayLike


def promote_coefficients(op: str, *ps: Any, inexact: bool = False) -> list:
    """Polynomials in their common dtype; a number is a constant one."""
    arrays = [as_array(p, op) for p in ps]
    if any(p.ndim > 1 for p in arrays):
        got = ", ".join(str(p.aval) for p in arrays)
        raise ShapeError(f"{op}: polynomials must be vectors; got {got}.")
    arrays = [lax.reshape(p, (1,)) if not p.ndim else p for p in arrays]
    return promote_operands(op, *arrays, inexact=inexact, shaped=False)


def strip_leading_zeros(op: str, p: Any) -> Any:
    """A polynomial without coefficients 0 in front, which have to be known."""
    return p[count_leading_zeros(op, p) :]


def count_leading_zeros(op: str, p: Any, end: int = 1) -> int:
    """How many coefficients, from the front or with end=-1 from the back, are 0."""
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
    """The sum of two polynomials.

    >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([1, 0]))
    Array([1, 3, 3], dtype=int32)
    """
    x, y = promote_coefficients("polyadd", a1, a2)
    n = max(x.size, y.size)
    x, y = (lax.pad(p, literal(0, p.dtype), [(n - p.size, 0, 0)]) for p in (x, y))
    return ops.add(x, y)


@operation
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials."""
    x, y = promote_coefficients("polysub", a1, a2)
    return polyadd(x, ops.neg(y))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials, in floats.

    Args:
      trim_leading_zeros: leave out zeros in front of the factors, which must be known now.
    """
    x, y = promote_coefficients("polymul", a1, a2, inexact=True)
    if trim_leading_zeros:
        x, y = (strip_leading_zeros("polymul", p) for p in (x, y))
    x, y = (p if p.size else zeros(1, p.dtype) for p in (x, y))
    return convolve(x, y)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and remainder of two polynomials: u = quotient * v + remainder.

    The remainder has as many coefficients as u.

    Args:
      trim_leading_zeros: leave out zeros in front of the remainder, which must be known now.
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
        """Take away what the first coefficient says, and turn it to the end."""
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
    """The derivative of a polynomial, taken m times, in floats."""
    (p,) = promote_coefficients("polyder", p, inexact=True)
    m = check_integer("polyder", "m", m, 0)
    m = min(m, p.size)
    n = p.size - m
    powers = np.arange(n - 1, -1, -1.0)
    factors = np.prod(powers + np.arange(1, m + 1).reshape(m, 1), axis=0)
    return p[:n] * ops.convert(factors, p.dtype)


@operation(static=("m",))
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The integral of a polynomial, taken m times, in floats.

    `k` are the constants, first that of the first integral; a single one stands for all.
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
    powers = np.arange(p.size + m - 1, -1, -1.0)  # of the result
    below = np.concatenate([np.full(p.size, m), np.arange(m, 0, -1) - 1]).astype(int)
    factors = [np.prod(n - np.arange(b)) for n, b in zip(powers, below, strict=True)]
    out = concatenate([p, k])
    return out / ops.convert(np.asarray(factors), p.dtype) if m else p


@operation(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial at x, by Horner's rule.

    `p` may have further axes, which broadcast against x. `unroll` is how many steps of the loop
    over coefficients are written out.

    >>> jnp.polyval(jnp.array([1, 0, 2]), jnp.array([1, 3]))
    Array([ 3, 11], dtype=int32)
    """
    p, x = as_array(p, "polyval"), as_array(x, "polyval")
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
    """The roots of a polynomial, complex, as the eigenvalues of its companion matrix.

    Coefficients 0 in front, which lower the degree, have to be known; with strip_zeros=False, as
    jit needs, there are as many roots as coefficients but one, and NaN where there are fewer.
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
    """The polynomial with the given roots and first coefficient 1; of a matrix, its own.

    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
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
    """The polynomial of degree `deg` nearest to points (x, y) by squares, weighted by w.

    y may be a matrix, each column of which is fitted. With `full` it gives (p, residuals, rank,
    singular values, rcond); with `cov` (p, covariance of p), scaled unless that is "unscaled".
    Singular values below rcond times the largest count as 0, by default x.size * eps.
    """
    deg = check_integer("polyfit", "deg", deg)
    if deg < 0:
        raise ValueError(f"polyfit: deg must not be negative; got {deg}.")
    x, y = promote_operands("polyfit", as_array(x), as_array(y), inexact=True, shaped=False)
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
