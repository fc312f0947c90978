"""Bessel functions: modified ones of orders 0 and 1, and the first kind of integer order."""

from __future__ import annotations

import operator
from typing import Any

from weft.numpy.manipulation import stack
from weft.primitives.expr import Expr
from weft.primitives.special import bessel as bessel_formulas
from weft.primitives.special import functions as special
from weft.primitives.special.formula import choose, equal, exp, repeat, where
from weft.run.operation import operation
from weft.scipy.special.definitions import define_function, define_primitive, promote_floats
from weft.xla.typing import Array, ArrayLike


def undo_scaling(part: Expr, x: Expr, odd: bool = False) -> Expr:
    """Multiply a function that is scaled by exp(-|x|) by exp(|x|), which may overflow itself."""
    half = exp(abs(x) * 0.5)
    endless = equal(half, float("inf"))  # the part is 0 there, too small for its dtype
    return where(endless, where(x < 0, -half, half) if odd else half, part * half * half)


i0_p = define_primitive(
    "bessel_i0",
    lambda x: undo_scaling(bessel_formulas.i0e(x), x),
    [lambda t, y, x: t * i1_p.apply(x)[0]],
    "The modified Bessel function of order 0.",
)
i1_p = define_primitive(
    "bessel_i1",
    lambda x: undo_scaling(bessel_formulas.i1e(x), x, odd=True),
    [lambda t, y, x: t * (i0_p.apply(x)[0] - special.divide_i1(x, y))],
    "The modified Bessel function of order 1.",
)
i0 = define_function(
    "i0",
    lambda x: i0_p.apply(x)[0],
    """Compute the modified Bessel function of the first kind of order 0.

    It overflows where |x| is large; `i0e` does not.

    >>> jnp.array([0.0, 1.0, 5.0])
    [ 1.      1.2661 27.2399]
    """,
)
i1 = define_function(
    "i1",
    lambda x: i1_p.apply(x)[0],
    """Compute the modified Bessel function of the first kind of order 1.

    It overflows where |x| is large; `i1e` does not.

    >>> jnp.array([0.0, 1.0, 5.0])
    [ 0.      0.5652 24.3356]
    """,
)
i0e = define_function(
    "i0e",
    lambda x: special.bessel_i0e(x),
    """Compute `exp(-|x|) i0(x)`, the scaled modified Bessel function of order 0.

    It stays finite where `i0` overflows. Densities on a circle such as von Mises' need it.

    >>> jnp.array([0.0, 1.0, 100.0])
    [1.     0.4658 0.0399]
    """,
)
i1e = define_function(
    "i1e",
    lambda x: special.bessel_i1e(x),
    """Compute `exp(-|x|) i1(x)`, the scaled modified Bessel function of order 1.

    It stays finite where `i1` overflows.

    >>> jnp.array([0.0, 1.0, 100.0])
    [0.     0.2079 0.0397]
    """,
)


def recur_down(z: Expr, *, v: int, n_iter: int) -> Expr:
    """J_v(z) by Miller's backward recurrence from the order `n_iter`, rescaled as it grows.

    A loop, since XLA computes the two terms that a step takes anew for each of them.
    """
    y = abs(z)
    safe = where(equal(y, 0), 1.0, y)
    steps = max(n_iter, v + 2) // 2

    def step(n: Expr, *state: Expr) -> list:
        high, low, total, out = state
        for i in range(2):  # low is of the order 2j, then 2j - 1, then 2j - 2
            order = 2.0 * (steps + 1.0 - n) - i
            high, low = low, low * (2.0 * order / safe) - high
            if (v + 1 + i) % 2 == 0:
                out = where(equal(order, v + 1), low, out)
            if i:
                total = total + low * where(equal(order, 1), 1.0, order.like(2.0))
            scale = where(abs(low) > 1e15, 1e-15, z.like(1.0))
            high, low, total, out = (value * scale for value in (high, low, total, out))
        return [y > 0, high, low, total, out]

    start = [z.like(0.0), z.like(1e-30), z.like(0.0), z.like(0.0)]
    *_, total, out = repeat(step, start, y > 0, steps)
    value = choose(out / total, (equal(y, 0), 1.0 if v == 0 else 0.0))
    return where(z < 0, -value, value) if v % 2 else value


jn_p = define_primitive(
    "bessel_jn", recur_down, [lambda t, y, z, **how: t * jn_derivative(z, **how)], "J_v(z)."
)


def jn_derivative(z: Any, *, v: int, n_iter: int) -> Any:
    """The derivative of J_v: (J_(v-1) - J_(v+1)) / 2, -J_1 of J_0."""
    below = jn_p.apply(z, v=abs(v - 1), n_iter=n_iter)[0]
    above = jn_p.apply(z, v=v + 1, n_iter=n_iter)[0]
    return -above if v == 0 else 0.5 * (below - above)


@operation(static=("v", "n_iter"))
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Compute the Bessel functions of the first kind J_0(z), ..., J_v(z).

    The values come from a recurrence from order `n_iter` down. They are exact to rounding while
    `n_iter` is larger than |z| by about 20, and larger than v.

    Args:
      z: an array of floats, or a number. Integers and bools become floats first.
      v: the largest order, a Python int that is not negative. It must be static under `jit`.
      n_iter: the order where the recurrence starts, a Python int. The default is 50.

    Returns:
      An array of floats of shape (v + 1, *z.shape).

    Raises:
      TypeError: v or `n_iter` is not an integer.
      ValueError: v is negative, or one of the two is larger than 2**16.

    >>> from weft.scipy import special
    >>> print(np.asarray(special.bessel_jn(jnp.array([0.0, 1.0]), v=2)).round(4))
    [[1.     0.7652]
     [0.     0.4401]
     [0.     0.1149]]
    """
    try:
        v, n_iter = operator.index(v), operator.index(n_iter)
    except TypeError:
        raise TypeError(
            f"bessel_jn: v and n_iter must be integers; got {v!r}, {n_iter!r}."
        ) from None
    if v < 0:
        raise ValueError(f"bessel_jn: v must not be negative; got {v}.")
    if max(v, n_iter) > 2**16:  # steps of a loop, which cannot be interrupted
        raise ValueError(f"bessel_jn: v and n_iter must be at most 2**16; got {v}, {n_iter}.")
    (z,) = promote_floats("bessel_jn", z, strong=True)
    return stack([jn_p.apply(z, v=k, n_iter=n_iter)[0] for k in range(v + 1)])
