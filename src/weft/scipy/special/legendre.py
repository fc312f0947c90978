"""Associated Legendre functions and spherical harmonics, by recurrence in the degree.

The functions carry Condon and Shortley's phase (-1)**m.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from weft.errors import ShapeError, TracerError
from weft.numpy.choice import where
from weft.numpy.manipulation import broadcast_to, stack
from weft.numpy.promotion import as_array
from weft.primitives import elementwise as ops
from weft.primitives.families import check_integer
from weft.primitives.transcendental import cos, sin, sqrt
from weft.run.operation import operation
from weft.scipy.special.definitions import promote_floats
from weft.xla.typing import Array, ArrayLike


def recur_degrees(size: int, z: Any, sine: Any, normalized: bool) -> list:
    """P[l] of z for l up to `size`, with an axis of orders up to `size` in front; 0 for l < m."""
    by_order = lambda x: np.asarray(x, z.dtype).reshape(-1, *[1] * z.ndim)
    orders = by_order(range(size + 1))
    diagonal = z * 0 + (math.sqrt(1 / (4 * math.pi)) if normalized else 1.0)
    out = [where(orders == 0, diagonal[None], z[None] * 0)]
    for n in range(1, size + 1):
        m, first, back = np.arange(n), np.zeros(size + 1), np.zeros(size + 1)
        if normalized:
            first[:n] = np.sqrt((4 * n * n - 1) / (n * n - m * m))
            back[:n] = np.sqrt(np.abs(((n - 1) ** 2 - m * m) / (4 * (n - 1) ** 2 - 1)))
            factor = math.sqrt((2 * n + 1) / (2 * n))
        else:
            first[:n], back[:n] = (2 * n - 1) / (n - m), (n + m - 1) / (2 * n - 1)
            factor = 2 * n - 1.0
        last = out[-1] * z[None]
        last = last - by_order(back) * out[-2] if n > 1 else last
        diagonal = diagonal * sine * -factor
        out.append(where(orders == n, diagonal[None], by_order(first) * last))
    return out


def check_orders(op: str, m: Any, n: Any) -> int:
    """The order and degree of a table, which have to be one integer."""
    try:
        m, n = operator.index(m), operator.index(n)
    except TypeError:
        raise TypeError(f"{op}: m and n must be Python integers; got {m!r}, {n!r}.") from None
    if m != n or m < 0:
        raise NotImplementedError(f"{op}: m and n must be equal and >= 0; got {m}, {n}.")
    return m


def check_argument(op: str, z: Any) -> Any:
    """The array of arguments, of one axis."""
    (z,) = promote_floats(op, z, strong=True)
    if z.ndim > 1:
        raise ShapeError(f"{op}: z must be a scalar or have one axis; got {z.aval}.")
    return z.reshape(-1)


@operation(static=("m", "n", "is_normalized"))
def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """Compute the associated Legendre functions of all orders and degrees up to a bound.

    Args:
      m: the largest order, a Python int. It must be static under `jit`.
      n: the largest degree, a Python int. It must equal m.
      z: a float array of shape (K,), or a number, with values in [-1, 1].
      is_normalized: if True, the functions are multiplied by the factors that make spherical
        harmonics orthonormal.

    Returns:
      An array of shape (m + 1, n + 1, K). Entry [i, j, k] is the function of order i and degree j
      at z[k]. It is 0 where i > j.

    Raises:
      NotImplementedError: m and n differ, or are negative.
      ShapeError: z has more than one axis.

    >>> from weft.scipy import special
    >>> values = special.lpmn_values(1, 1, jnp.array([0.5]), False)
    >>> print(np.asarray(values[:, :, 0]).round(3))
    [[ 1.     0.5  ]
     [ 0.    -0.866]]
    """
    size, z = check_orders("lpmn_values", m, n), check_argument("lpmn_values", z)
    return stack(recur_degrees(size, z, sqrt((1 - z) * (1 + z)), bool(is_normalized)), 1)


@operation(static=("m", "n"))
def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """Compute the associated Legendre functions up to a bound, with derivatives.

    Args:
      m: the largest order, a Python int. It must be static under `jit`.
      n: the largest degree, a Python int. It must equal m.
      z: a float array of shape (K,), or a number, with values in (-1, 1).

    Returns:
      A pair of arrays of shape (m + 1, n + 1, K): the values (entry [i, j, k] has order i
      and degree j at z[k]), and their derivatives in z. Both are 0 where i > j.

    Raises:
      NotImplementedError: m and n differ, or are negative.
      ShapeError: z has more than one axis.

    >>> from weft.scipy import special
    >>> values, slopes = special.lpmn(1, 1, jnp.array([0.5]))
    >>> print(np.asarray(slopes[1, :, 0]).round(3))
    [0.    0.577]
    """
    size, z = check_orders("lpmn", m, n), check_argument("lpmn", z)
    values = recur_degrees(size, z, sqrt((1 - z) * (1 + z)), False)
    table, before = stack(values, 1), stack([values[0] * 0, *values[:-1]], 1)
    degree = np.arange(size + 1, dtype=z.dtype)[None, :, None]
    order = np.arange(size + 1, dtype=z.dtype)[:, None, None]
    z = z[None, None]
    slopes = (degree * z * table - (degree + order) * before) / ((z - 1) * (z + 1))
    return table, where(degree >= order, slopes, z * 0)


def largest_degree(n: Any, n_max: Any) -> int:
    """The largest degree that is needed."""
    if n_max is not None:
        return check_integer("sph_harm_y", "n_max", n_max, 0)
    try:
        degrees = np.asarray(as_array(n, "sph_harm_y"))
        return int(np.max(degrees, initial=0, where=np.isfinite(degrees)))  # of others it is 0
    except TracerError:
        raise TypeError(
            "sph_harm_y: n_max must be given where n is traced; got None. "
            "Hint: sph_harm_y(n, m, theta, phi, n_max=4)."
        ) from None


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Compute the spherical harmonic of degree n and order m.

    The harmonics are orthonormal on the sphere. The order of the arguments and the angles are those
    of SciPy's `sph_harm_y`.

    Args:
      n: an array of integers, or an int: the degree.
      m: an array of integers, or an int: the order, with |m| <= n.
      theta: an array of floats, or a number: the polar angle, from 0 to pi.
      phi: an array of floats, or a number: the azimuth, from 0 to 2 pi. The four broadcast
        together.
      diff_n: it must be None, the default. `jvp` and `grad` give derivatives.
      n_max: the largest degree, an int. None, the default, takes it from n. It must be given where
        n is traced, as under `jit`.

    Returns:
      An array of complex numbers, of the broadcast shape.

    Raises:
      NotImplementedError: `diff_n` is not None.
      TypeError: n is traced and `n_max` is None.

    >>> from weft.scipy import special
    >>> print(np.asarray(special.sph_harm_y(1, jnp.array([0, 1]), 0.5, 1.0)).round(4))
    [ 0.4288+0.j     -0.0895-0.1394j]
    """
    if diff_n is not None:
        raise NotImplementedError(
            f"sph_harm_y: diff_n must be None; got {diff_n!r}. Hint: weft.jvp(sph_harm_y, ...)."
        )
    return evaluate_harmonic(n, m, theta, phi, largest_degree(n, n_max))


@operation(static=("size",))
def evaluate_harmonic(n: Any, m: Any, theta: Any, phi: Any, size: int) -> Any:
    """sph_harm_y with all degrees at most `size`."""
    n, m = as_array(n, "sph_harm_y"), as_array(m, "sph_harm_y")
    theta, phi = promote_floats("sph_harm_y", theta, phi, strong=True)
    shape = np.broadcast_shapes(n.shape, m.shape, theta.shape, phi.shape)
    n, m, theta, phi = (broadcast_to(v, shape) for v in (n, m, theta, phi))
    order = ops.abs(m)
    # |sin|: Legendre functions are of cos(theta), and even in theta, as SciPy's
    values = recur_degrees(size, cos(theta), ops.abs(sin(theta)), True)
    out = theta * 0
    mine = order[None] == np.arange(size + 1).reshape(-1, *[1] * order.ndim)
    for degree, value in enumerate(values):
        out = where(n == degree, where(mine, value, theta[None] * 0).sum(0), out)
    out = where((m < 0) & (order % 2 == 1), -out, out)
    angle = ops.convert(m, phi.dtype) * phi
    return ops.complex(out * cos(angle), out * sin(angle))
