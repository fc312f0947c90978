"""Gamma, its logarithm and derivatives, beta, their incomplete forms, factorials, zeta, Bernoulli.

The formulas are in primitives/special/gamma.py.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.core.aval import check_extent, typeof
from weft.core.facts import Cost
from weft.core.form import Form
from weft.errors import DtypeError
from weft.numpy.choice import where as select
from weft.numpy.promotion import as_operand
from weft.primitives.elementwise import no_derivative
from weft.primitives.expr import Expr
from weft.primitives.special import gamma as gammas
from weft.primitives.special import tables
from weft.primitives.special.formula import (
    Pair,
    choose,
    cos_pi,
    equal,
    exp_pair,
    floor,
    is_doubled,
    is_odd,
    log,
    log1p,
    log_pair,
    nearest,
    series,
    sin_pi,
    to_pair,
    where,
)
from weft.primitives.special.functions import beta_slope
from weft.run.operation import operation
from weft.scipy.special import definitions
from weft.xla.array import put
from weft.xla.typing import Array, ArrayLike

psi = lax.digamma
_LOG_2PI = Fraction("1.8378770664093454835606594728112352797227949472755668256343030809")


def find_poles(a: Expr, b: Expr) -> tuple[Expr, Expr, Expr]:
    """Return where a or b is a pole of gamma, and there the parts of (-1)**b beta(1 - a - b, b).

    The parts are the sign and 1 - a - b. The limit exists for integer b in between; elsewhere 1 - a
    - b is returned as 0, and beta is inf.
    """
    swapped = (b <= 0) & gammas.is_whole(b)
    low, other = where(swapped, b, a), where(swapped, a, b)
    pole = (low <= 0) & gammas.is_whole(low)
    rest = 1 - low - other
    good = pole & gammas.is_whole(other) & (rest > 0) & (other > 0)
    sign = where(is_odd(other), a.like(-1.0), 1.0)
    return pole, sign, where(good, rest, 0.0)


def signed_log_beta(a: Expr, b: Expr) -> tuple[Expr, Pair]:
    """The sign of beta(a, b), and the logarithm of its size."""
    pole, sign, rest = find_poles(a, b)
    whole = rest > 0
    swapped = (b <= 0) & gammas.is_whole(b)
    sa = where(whole, rest, a)
    sb = where(whole & swapped, a, b)
    positive = (sa > 0) & (sb > 0)
    high, low = where(sa > sb, sa, sb), where(sa > sb, sb, sa)
    limit = 1e5 if is_doubled(a) else 1e4
    large = positive & (high > low * (1e10 if is_doubled(a) else limit)) & (high > limit)
    tiny = low < 1e-25
    large = large & ~tiny if is_doubled(a) else large
    total = a + b
    digits = float(a.finfo.eps)  # all that the dtype has, for the differences
    given = sa, sb, where(positive, sa + sb, total)
    la, lb, lt = (gammas.log_gamma(Expr(v.hlo, v.value, digits)) for v in given)
    near = other = la + lb - lt
    if is_doubled(a):  # else the dtype is wider than the result's
        ca, cb = (where(positive & ~large, v, 1.0) for v in (sa, sb))
        exponent, factor = gammas.inverse_beta_parts(ca, cb)
        # 1 / beta is a b / (a + b) of a tiny number, whose products would underflow
        tiny = positive & tiny
        exponent = where(tiny, to_pair(-log1p(low / high)), exponent)
        near = -(exponent + log_pair(where(tiny, to_pair(low), factor)))
    far = where(sa > sb, lb, la) - low * log(high) - low * (low - 1) / (2 * high)
    none = ~positive & (total <= 0) & gammas.is_whole(total)
    out = where(positive, where(large, far, to_pair(near)), where(none, -math.inf, other))
    out = where(pole & ~whole, math.inf, out)
    signs = gammas.gamma_sign(a) * gammas.gamma_sign(b)
    signs = where(none, 1.0, signs * gammas.gamma_sign(where(none, 1.0, total)))
    return choose(signs, (whole, sign), ((pole & ~whole) | (a > 0) & (b > 0), 1.0)), out


def beta_value(a: Expr, b: Expr) -> Expr:
    """beta(a, b)."""
    sign, exponent = signed_log_beta(a, b)
    return sign * exp_pair(exponent)


def far_limit(x: Expr) -> float:
    """Return the size above which log gamma has too few digits for a ratio; powers have them."""
    return 1e10 if is_doubled(x) else 1e7


# Factors above `far_limit` that no dtype can hold the product of.
MANY_FACTORS = 30


def pochhammer(z: Expr, m: Expr) -> Expr:
    """gamma(z + m) / gamma(z), by reflection where an argument is not positive."""
    top = to_pair(z) + m
    up, low = top.value > 0, z > 0
    # reflected arguments are 1 - z, 1 - z - m
    et, dt = gammas.gamma_parts(where(up, top, 1 - top))
    eb, db = gammas.gamma_parts(where(low, z, 1 - to_pair(z)))
    sin_low = sin_pi(z)
    sin_up = sin_pi(top.hi) + cos_pi(top.hi) * math.pi * top.lo
    whole = gammas.is_whole(m)
    ratio = where(
        whole,
        where(is_odd(floor(m)), z.like(-1.0), 1.0),
        sin_low / where(up | equal(sin_up, 0), 1.0, sin_up),
    )
    plain = exp_pair(et - eb) * (db / dt).value
    reflected = exp_pair(eb - et) * (dt / db).value * ratio
    crossing = exp_pair(et + eb) / (dt * db).value * (sin_low / math.pi)
    below = where(equal(sin_up, 0), 1.0, sin_up)
    falling = (dt * db).value / exp_pair(et + eb) * (math.pi / below)
    out = where(low, where(up, plain, falling), where(up, crossing, reflected))
    pole = ~up & gammas.is_whole(top.value) & ~(whole & ~low & gammas.is_whole(z))
    few = where(abs(m) < MANY_FACTORS, m, 0.0)
    far = gammas.power(abs(z), m) * (1 + few * (few - 1) / (2 * z))
    far = where(low, far, where(equal(ratio, 0), 0.0, far * ratio))
    is_far = (abs(z) > far_limit(z)) & (abs(m) < abs(z) / far_limit(z) + MANY_FACTORS)
    return choose(out, (is_far, far), (pole, math.inf), (equal(m, 0), 1.0))


def combinations(n: Expr, k: Expr) -> Expr:
    """gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1)), 0 for k < 0 or k > n."""
    good = (k >= 0) & (k <= n) & (n >= 0)
    sn, sk = where(good, n, 1.0), where(good, k, 1.0)
    (en, dn), (ek, dk) = gammas.gamma_parts(to_pair(sn) + 1), gammas.gamma_parts(to_pair(sk) + 1)
    er, dr = gammas.gamma_parts((to_pair(sn) - sk) + 1)
    out = exp_pair(en - ek - er) * (dk * dr / dn).value
    far = (n > far_limit(n)) & (k < 30)
    out = where(far, gammas.power(n - (k - 1) * 0.5, k) / gammas.positive_gamma(sk + 1), out)
    whole = gammas.is_whole(n) & gammas.is_whole(k) & (out < 2.0**52)
    return where(good, where(whole, nearest(out), out), 0.0)


def factorial_value(n: Expr) -> Expr:
    """gamma(n + 1), 0 for n < 0; of whole numbers a whole number."""
    out = gammas.positive_gamma(to_pair(where(n < 0, 1.0, n)) + 1)
    whole = gammas.is_whole(n) & (out < 2.0**52)
    return where(n < 0, 0.0, where(whole, nearest(out), out))


def riemann(x: Expr) -> Expr:
    """zeta(x), by a series about 1, the sum beyond it, and reflection for negative x."""
    low = x < -1e-30  # the result is -1/2 in between
    reflected = 1 - to_pair(where(low, x, 0.0))
    y = where(low, reflected.value, x)
    near = series(y, tables.ZETA) / where(low, -x, y - 1)
    up = where(y < 2, near, gammas.hurwitz(where(y < 2, 2.0, y), y.like(1.0)))
    # 2 (2 pi)**-y sin(pi x / 2) gamma(y) zeta(y)
    held = where(reflected.hi < 300, reflected, 300.0)
    exponent, divisor = gammas.gamma_parts(held)
    scale = 2 * exp_pair(exponent - held * _LOG_2PI) / divisor.value
    return choose(up, (low, scale * sin_pi(x * 0.5) * up), (equal(x, 1), math.inf))


psi_gap_p = definitions.define_primitive(
    "psi_gap",
    lambda a, b: gammas.write_digamma(a) - gammas.write_digamma(a + b),
    [
        lambda t, y, a, b: t * (lax.polygamma(one_like(a), a) - lax.polygamma(one_like(a), a + b)),
        lambda t, y, a, b: -t * lax.polygamma(one_like(a), a + b),
    ],
    "psi(a) - psi(a + b), which cancels for a small b: in float64 for all dtypes.",
)


def one_like(x: Any) -> Any:
    """1 in the dtype of x."""
    return lax.full_like(x, 1)


def psi_gap(a: Any, b: Any) -> Any:
    """psi(a) - psi(a + b)."""
    return psi_gap_p.apply(a, b)[0]


beta_p, beta = definitions.define_pair(
    "beta",
    beta_value,
    [lambda t, y, a, b: t * y * psi_gap(a, b), lambda t, y, a, b: t * y * psi_gap(b, a)],
    """Compute the beta function `gamma(a) gamma(b) / gamma(a + b)`.

    >>> jnp.array([1.0, 2.0]), 3.0
    [0.3333 0.0833]
    """,
    strong=True,
)
betaln_p, betaln = definitions.define_pair(
    "betaln",
    lambda a, b: signed_log_beta(a, b)[1].value,
    [lambda t, y, a, b: t * psi_gap(a, b), lambda t, y, a, b: t * psi_gap(b, a)],
    """Compute the logarithm of |beta(a, b)|.

    It is not the difference of three logarithms, which would cancel for a large a or b.

    >>> jnp.array([1.0, 1e6]), 3.0
    [ -1.0986 -40.7534]
    """,
)
gamma_p = definitions.define_primitive(
    "gamma", gammas.gamma, [lambda t, y, x: t * y * psi(x)], "The gamma function."
)
gammasgn_p = definitions.define_primitive(
    "gammasgn", gammas.gamma_sign, [None], "The sign of gamma(x).", wide=False
)


def poch_slope(y: Any, z: Any, m: Any) -> Any:
    """The derivative of y = poch(z, m) in z, y (psi(z + m) - psi(z)).

    At the poles of psi(z) it is the limit, by reflection: psi(z) = psi(1 - z) - pi cot(pi z), and
    y pi cot(pi z) = gamma(z + m) gamma(1 - z) cos(pi z). If z + m is a pole too, y is not 0 and the
    cotangents cancel.
    """
    pole = (z <= 0) & (lax.floor(z) == z)
    both = pole & (z + m <= 0) & (lax.floor(m) == m)
    at = select(pole, z, 0)
    top = select(both, 1 - z - m, select(pole, z + m, 1))
    sizes = gamma_p.apply(top)[0] * gamma_p.apply(1 - at)[0]
    limit = y * (psi(top) - psi(1 - at)) + select(both, 0, sizes * lax.cos(math.pi * at))
    return select(pole, limit, -y * psi_gap(select(pole, 1, z), m))


poch_p, poch = definitions.define_pair(
    "poch",
    pochhammer,
    [lambda t, y, z, m: t * poch_slope(y, z, m), lambda t, y, z, m: t * y * psi(z + m)],
    """Compute the rising factorial `gamma(z + m) / gamma(z)`, Pochhammer's symbol.

    For a whole m it is `z (z + 1) ... (z + m - 1)`.

    z: the first factor.
    m: the number of factors, which need not be whole.

    >>> 3.0, jnp.array([0.0, 1.0, 2.0])
    [ 1.  3. 12.]
    """,
    strong=True,
)


def subtract_psi(y: Any, a: Any, b: Any) -> Any:
    """psi(a) - psi(b), but 0 where y is: out of the domain of comb, where both may be poles."""
    return psi(select(y == 0, 1, a)) - psi(select(y == 0, 1, b))


comb_p = definitions.define_primitive(
    "comb",
    combinations,
    [
        lambda t, y, n, k: t * y * subtract_psi(y, n + 1, n - k + 1),
        lambda t, y, n, k: t * y * subtract_psi(y, n - k + 1, k + 1),
    ],
    "The number of ways to choose k of n things.",
)
factorial_p = definitions.define_primitive(
    "factorial",
    factorial_value,
    [lambda t, y, n: t * y * psi(select(y == 0, 1, n + 1))],
    "gamma(n + 1), 0 for negative n.",
)


# --- complex gamma --------------------------------------------------------------------------

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def stirling_series(z: Any) -> Any:
    """log gamma(z) far from 0 and from the negative axis."""
    inverse = 1 / z
    square = inverse * inverse
    total = square * 0
    for c in reversed(_STIRLING):
        total = total * square + c
    return (z - 0.5) * lax.log(z) - z + 0.5 * math.log(2 * math.pi) + total * inverse


# (-1)**k zeta(k) / k for k = 2, 3, ...: the powers of w in log gamma(1 + w) from w**2 on
_ZETA_POWERS = (
    0.8224670334241132, -0.40068563438653143, 0.27058080842778454, -0.20738555102867398,
    0.1695571769974082, -0.1440498967688461, 0.12550966952474304, -0.11133426586956469,
    0.1000994575127818, -0.09095401714582904, 0.083353840546109, -0.0769325164113522,
    0.07143294629536133, -0.06666870588242046, 0.06250095514121304, -0.058823978658684585,
    0.055555767627403614, -0.05263167937961666, 0.05000004769810169, -0.047619070330142226,
    0.04545455629320467, -0.04347826605304026, 0.04166666915034121, -0.04000000119214014,
)  # fmt: skip
_EULER = 0.5772156649015329
_ZETA_REACH = 0.2  # of |w|: then the first power that is left out is below 1e-18


def loggamma_by_powers(w: Any) -> Any:
    """log gamma(1 + w) near its zero."""
    total = w * 0
    for c in reversed(_ZETA_POWERS):
        total = total * w + c
    return (total * w - _EULER) * w


def complex_sin_pi(z: Any) -> Any:
    """sin(pi z) by the distance of z from a whole number, so that it is exact near its zeros."""
    x, y = lax.real(z), lax.imag(z) * math.pi
    whole = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    rest = (x - whole) * math.pi
    # by parts: XLA's sine of complex numbers loses the digits of a small imaginary part
    sine = lax.complex(lax.sin(rest) * lax.cosh(y), lax.cos(rest) * lax.sinh(y))
    odd = whole - 2 * lax.floor(whole * 0.5)
    return lax.select(odd == 0, sine, -sine)


def complex_loggamma(z: Any) -> Any:
    """The principal branch of log gamma (Hare 1997): Stirling's formula, shifted or reflected.

    Near its zeros 1 and 2 by powers; NaN at its poles.
    """
    x, y = lax.real(z), lax.imag(z)
    pole = (x <= 0) & (y == 0) & (lax.floor(x) == x)
    z = lax.select(pole, z * 0 + 3, z)
    near = [lax.abs(z - k) < _ZETA_REACH for k in (1, 2)]
    far = (x > 9) | (lax.abs(y) > 9)
    left = (x < 0.1) & ~far
    u = lax.select(left, 1 - z, z)
    shift = lax.select(far, u * 0 + 10, u)
    logs = lax.log(shift)
    for k in range(1, 9):
        logs = logs + lax.log(shift + k)
    shifted = stirling_series(shift + 9) - logs
    right = lax.select(far, stirling_series(lax.select(far, u, u * 0 + 10)), shifted)
    sine = complex_sin_pi(lax.select(left, z, z * 0 + 0.5))
    turn = lax.select(y < 0, x * 0 - 1, x * 0 + 1) * (2 * math.pi) * lax.floor(0.5 * x + 0.25)
    reflected = lax.complex(x * 0 + math.log(math.pi), turn) - lax.log(sine) - right
    w = lax.select(near[0], z - 1, lax.select(near[1], z - 2, z * 0))
    powers = loggamma_by_powers(w)
    out = lax.select(left, reflected, right)
    out = lax.select(near[0], powers, lax.select(near[1], powers + lax.log1p(w), out))
    return lax.select(pole, z * 0 + math.nan, out)  # z * nan would have the derivative NaN anywhere


# --- the functions --------------------------------------------------------------------------


@operation
def gamma(x: ArrayLike) -> Array:
    """Compute the gamma function.

    Real x: it is NaN at negative whole numbers, inf at 0 and -inf at -0. `gammaln` stays finite
    where it overflows. Complex x: it is NaN at 0 as well, since it grows in every direction there.

    Args:
      x: an array of floats or complex numbers, or a number. Integers and bools become floats first.

    Returns:
      An array of the shape of the operand, of floats or complex numbers.

    Raises:
      DtypeError: the operand is not an array or a number.

    >>> from weft.scipy import special
    >>> print(special.gamma(jnp.array([0.5, 1.0, 5.0])))
    [ 1.7724539  1.        24.       ]
    """
    (x,) = definitions.promote_floats("gamma", x, strong=True, takes_complex=True)
    if dtypes.is_complex(x.dtype):
        return definitions.compute_wide(lambda z: lax.exp(complex_loggamma(z)), x)
    return gamma_p.apply(x)[0]


@operation
def loggamma(x: ArrayLike) -> Array:
    """Compute the principal branch of the logarithm of the gamma function.

    For positive x it equals `gammaln`. For negative real x it is NaN, since the result would be
    complex; complex operands have it.

    Args:
      x: an array of floats or complex numbers, or a number. Integers and bools become floats first.

    Returns:
      An array of the shape of the operand, of floats or complex numbers.

    Raises:
      DtypeError: the operand is not an array or a number.

    >>> from weft.scipy import special
    >>> print(np.asarray(special.loggamma(jnp.array([5.0, -0.5 + 0j]))).round(4))
    [3.1781+0.j     1.2655-3.1416j]
    """
    (x,) = definitions.promote_floats("loggamma", x, takes_complex=True)
    if dtypes.is_complex(x.dtype):
        return definitions.compute_wide(complex_loggamma, x)
    return select(x < 0, float("nan"), lax.lgamma(select(x < 0, 1, x)))


def check_order(op: str, n: Any) -> Any:
    """An argument that has to be an array of integers."""
    n = as_operand(op, n)
    if not dtypes.is_integer(typeof(n).dtype):
        raise DtypeError(f"{op}: n must be integers; got {typeof(n)}. Hint: n.astype(int).")
    return n


@operation
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute the derivative of order n of the digamma function.

    `polygamma(0, x)` is `digamma(x)`, and `polygamma(1, x)` is the trigamma function.

    Args:
      n: an array of integers, or an int: the order, not negative.
      x: an array of floats, or a number. Integers and bools become floats first. The operands
        broadcast together.

    Returns:
      An array of floats, of the broadcast shape.

    Raises:
      DtypeError: n is not of integers, or x is complex.

    >>> from weft.scipy import special
    >>> print(np.asarray(special.polygamma(1, jnp.array([1.0, 2.0]))).round(4))
    [1.6449 0.6449]
    """
    return lax.polygamma(*definitions.promote_floats("polygamma", check_order("polygamma", n), x))


@operation(static=("repetition",))
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Compute the number of ways to choose k of N things, the binomial coefficient.

    Numbers that are not whole are interpolated by gamma functions. The result is 0 where k < 0 or k
    > N.

    Args:
      N: an array of numbers, or a number: the number of things.
      k: an array of numbers, or a number: the number that is chosen. The operands broadcast
        together.
      repetition: if True, a thing may be chosen more than once. The default is False. It must be
        static under `jit`.

    Returns:
      An array of floats, of the broadcast shape.

    Raises:
      DtypeError: an operand is complex, or not an array or a number.

    >>> from weft.scipy import special
    >>> print(special.comb(5, jnp.arange(4)), special.comb(5, 2, repetition=True))
    [ 1.  5. 10. 10.] 15.0
    """
    n, k = definitions.promote_floats("comb", N, k)
    if not repetition:
        return comb_p.apply(n, k)[0]
    out = comb_p.apply(n + k - 1, k)[0]
    return select((n == 0) & (k == 0), 1, out)


@operation(static=("exact",))
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Compute the factorial n!, interpolated by gamma(n + 1) for n that are not whole.

    Args:
      n: an array of numbers, or a number. Integers and bools become floats first.
      exact: it must be False, the default. `math.factorial` gives exact Python integers.

    Returns:
      An array of floats, of the shape of the operand. It is 0 for negative n.

    Raises:
      NotImplementedError: `exact` is True.
      DtypeError: the operand is complex, or not an array or a number.

    >>> from weft.scipy import special
    >>> print(special.factorial(jnp.array([0, 3, 5, -1])))
    [  1.   6. 120.   0.]
    """
    if exact:
        raise NotImplementedError(
            "factorial: exact must be False; got True. Hint: math.factorial(n)."
        )
    return factorial_p.apply(*definitions.promote_floats("factorial", n))[0]


@operation(static=("d",))
def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """Compute the logarithm of the multivariate gamma function.

    It normalizes Wishart distributions of d x d matrices. For d = 1 it is `gammaln`.

    Args:
      a: an array of floats, or a number, greater than (d - 1) / 2.
      d: the dimension, a Python int of at most 2**16. It must be static under `jit`.

    Returns:
      An array of floats, of the shape of `a`.

    Raises:
      TypeError: d is not an integer.
      ValueError: d is larger than 2**16.
      DtypeError: `a` is complex, or not an array or a number.

    >>> from weft.scipy import special
    >>> print(np.asarray(special.multigammaln(jnp.array([2.0, 5.0]), 2)).round(4))
    [0.4516 6.2042]
    """
    try:
        d = int(d) if isinstance(d, float) and d.is_integer() else operator.index(d)
    except TypeError:
        raise TypeError(f"multigammaln: d must be a Python integer; got {d!r}.") from None
    if d > 2**16:  # a term each
        raise ValueError(f"multigammaln: d must be at most 2**16; got {d}.")
    (a,) = definitions.promote_floats("multigammaln", a, strong=True)
    out = a * 0 + d * (d - 1) / 4 * math.log(math.pi)
    for j in range(d):
        out = out + lax.lgamma(a - j / 2)
    return out


zeta_one_p = definitions.define_primitive("zeta_one", riemann, [None], "Riemann's zeta function.")
zeta_one_p.form = Form.ZETA


@operation
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Compute Hurwitz's zeta function, the sum of `(k + q)**-x` over k = 0, 1, 2 and so on.

    Without q it is Riemann's zeta function, for all real x except the pole at 1, where it is inf.

    Args:
      x: an array of floats, or a number: the exponent. Integers and bools become floats first.
      q: an array of floats, or a number. None, the default, is Riemann's function. The operands
        broadcast together.

    Returns:
      An array of floats, of the broadcast shape.

    Raises:
      DtypeError: an operand is complex, or not an array or a number.

    >>> from weft.scipy import special
    >>> print(np.asarray(special.zeta(jnp.array([2.0, 4.0]), 1.0)).round(4))
    [1.6449 1.0823]
    >>> print(special.zeta(jnp.array([0.0, -2.0, 1.0])))
    [-0.5 -0.   inf]
    """
    if q is not None:
        return lax.zeta(*definitions.promote_floats("zeta", x, q))
    (x,) = definitions.promote_floats("zeta", x)
    return zeta_one_p.apply(x)[0]


def bernoulli_numbers(n: int) -> list[float]:
    """B_0 ... B_n, rounded once, by tangent numbers (Brent and Harvey 2013)."""
    half = n // 2
    tangents = [0, 1] + [0] * half
    for k in range(2, half + 1):
        tangents[k] = (k - 1) * tangents[k - 1]
    for k in range(2, half + 1):
        for j in range(k, half + 1):
            tangents[j] = (j - k) * tangents[j - 1] + (j - k + 2) * tangents[j]
    out = [1.0, -0.5] + [0.0] * max(n - 1, 0)
    for k in range(1, half + 1):
        value = Fraction((-1) ** (k - 1) * 2 * k * tangents[k], 4**k * (4**k - 1))
        try:
            out[2 * k] = float(value)
        except OverflowError:
            out[2 * k] = math.inf if value > 0 else -math.inf
    return out[: n + 1]


@operation(arrays=0)
def bernoulli(n: int) -> Array:
    """Compute the Bernoulli numbers B_0, B_1, ..., B_n, with B_1 = -1/2.

    Each is computed as a fraction and rounded once.

    Args:
      n: the last index, a Python int that is not negative. It must be static under `jit`.

    Returns:
      An array of shape (n + 1,) of the default float dtype.

    Raises:
      TypeError: n is not an integer.
      ValueError: n is negative.

    >>> from weft.scipy import special
    >>> special.bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334],      dtype=float32)
    """
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"bernoulli: n must be a Python integer; got {n!r}.") from None
    if n < 0:
        raise ValueError(f"bernoulli: n must not be negative; got {n}.")
    check_extent((n + 1,), np.dtype(object))
    known = bernoulli_numbers(min(n, 300))
    known += [0.0 if k % 2 else (-1) ** (k // 2 - 1) * math.inf for k in range(301, n + 1)]
    with np.errstate(over="ignore"):  # in float32, from number 66 on
        return put(np.array(known).astype(dtypes.default_float()))


gammaln = definitions.define_function(
    "gammaln",
    lambda x: lax.lgamma(x),
    """Compute `log |gamma(x)|`, the logarithm of the size of the gamma function.

    It stays finite where `gamma` overflows. It is inf at 0 and at negative whole numbers.

    >>> jnp.array([0.5, 5.0, 100.0])
    [  0.5724   3.1781 359.1342]
    """,
)
digamma = definitions.define_function(
    "digamma",
    lambda x: lax.digamma(x),
    """Compute the derivative of `gammaln`, the digamma function.

    It is NaN at negative whole numbers. Its derivative is `polygamma(1, x)`.

    >>> jnp.array([1.0, 10.0])
    [-0.5772  2.2518]
    """,
)
gammainc = definitions.define_function(
    "gammainc",
    lambda a, x: lax.igamma(a, x),
    """Compute the regularized lower incomplete gamma function P(a, x).

    It is the integral of `t**(a-1) exp(-t)` from 0 to x, divided by gamma(a): the distribution
    function of a gamma distribution. Both operands have derivatives; that of a is a series, for a
    below 1e6.

    a: the shape, positive.
    x: the upper end of the integral, not negative.

    >>> 2.0, jnp.array([0.0, 1.0, 5.0])
    [0.     0.2642 0.9596]
    """,
)
gammaincc = definitions.define_function(
    "gammaincc",
    lambda a, x: lax.igammac(a, x),
    """Compute the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    It keeps its relative accuracy where it is small. Both operands have derivatives.

    a: the shape, positive.
    x: the lower end of the integral, not negative.

    >>> 2.0, jnp.array([0.0, 1.0, 5.0])
    [1.     0.7358 0.0404]
    """,
)
betainc = definitions.define_function(
    "betainc",
    lambda a, b, x: lax.betainc(a, b, x),
    """Compute the regularized incomplete beta function I(x; a, b).

    It is the integral of `t**(a-1) (1-t)**(b-1)` from 0 to x, divided by beta(a, b): the
    distribution function of a beta distribution.

    a: the first shape, positive.
    b: the second shape, positive.
    x: the upper end of the integral, in [0, 1].

    >>> 2.0, 3.0, jnp.array([0.0, 0.5, 1.0])
    [0.     0.6875 1.    ]
    """,
)


def define_log_beta(name: str, upper: bool) -> Callable:
    """Return the function log I(x; a, b) of a, b and x, or with `upper` log(1 - I(x; a, b)).

    It is finite where the probability underflows. It has a derivative in x.
    """
    fixed = [no_derivative(name, operand) for operand in "ab"]
    slope_p = definitions.define_primitive(
        f"{name}_slope",
        functools.partial(gammas.log_beta_slope, upper=upper),
        [*fixed, lambda t, y, a, b, x: t * y * ((a - 1) / x - (b - 1) / (1 - x) - y)],
        f"The derivative of {name} in x.",
    )

    def find_slope(a: Any, b: Any, x: Any) -> Any:
        edge = (x == 0) | (x == 1)  # where the probability is 1
        density = beta_slope(a, b, select(edge, x, 0.5))
        inner = slope_p.apply(a, b, select(edge, 0.5, x))[0]
        return select(edge, -density if upper else density, inner)

    prim = definitions.define_primitive(
        name,
        functools.partial(gammas.log_incomplete_beta, upper=upper),
        [*fixed, lambda t, y, a, b, x: t * find_slope(a, b, x)],
        "The logarithm of a probability of the beta distribution.",
    )
    prim.cost = slope_p.cost = Cost.ITERATIVE
    return lambda a, b, x: prim.apply(*definitions.promote_floats(name, a, b, x))[0]


log_beta_lower = define_log_beta("log_beta_lower", upper=False)
log_beta_upper = define_log_beta("log_beta_upper", upper=True)
gammasgn = definitions.define_function(
    "gammasgn",
    lambda x: gammasgn_p.apply(x)[0],
    """Compute the sign of gamma(x): 1 or -1, and NaN at negative whole numbers.

    Together with `gammaln` it gives `gamma` without overflow.

    >>> jnp.array([2.5, -0.5, -1.5])
    [ 1. -1.  1.]
    """,
    strong=True,
)
