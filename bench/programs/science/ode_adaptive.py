"""Coupled oscillators by an adaptive Runge-Kutta method of orders 5 and 4.

Source: J. Dormand and P. Prince, J. Comp. Appl. Math. 6 (1980); van der Pol's equation for each.
"""

import numpy as np

sizes = {"small": 8, "medium": 200, "large": 20_000}

RTOL, ATOL, END = 1e-6, 1e-8, 5.0
STAGES = [
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]


def make(size, rng):
    n = sizes[size]
    return rng.randn(2, n), 1 + rng.rand(n)


def slope(xp, y, mu):
    x, v = y
    return xp.stack([v, mu * (1 - x**2) * v - x + 0.1 * (xp.roll(x, 1) - x)])


def attempt(xp, y, first, h, mu):
    """The state after a step of h, its slope, and the size of the error (1 is the most allowed)."""
    slopes = [first]
    for weights in STAGES:
        new = y + h * sum(w * k for w, k in zip(weights, slopes) if w)
        slopes.append(slope(xp, new, mu))
    error = h * sum(w * k for w, k in zip(ERROR, slopes) if w)
    scale = ATOL + RTOL * xp.maximum(abs(y), abs(new))
    return new, slopes[-1], xp.sqrt(((error / scale) ** 2).mean())


def numpy_form(y, mu):
    t, h, k, steps = 0.0, 0.01, slope(np, y, mu), 0
    while t < END:
        h = min(h, END - t)
        new, last, error = attempt(np, y, k, h, mu)
        if error <= 1:
            t, y, k = t + h, new, last
        h *= min(5.0, max(0.2, 0.9 * (error + 1e-12) ** -0.2))
        steps += 1
    return y, steps


def jax_form(jax, y, mu):
    jnp, lax = jax.numpy, jax.lax

    def step(state):
        t, h, y, k, steps = state
        h = jnp.minimum(h, END - t)
        new, last, error = attempt(jnp, y, k, h, mu)
        good = error <= 1
        y, k = jnp.where(good, new, y), jnp.where(good, last, k)
        factor = jnp.clip(0.9 * (error + 1e-12) ** -0.2, 0.2, 5.0)
        return jnp.where(good, t + h, t), h * factor, y, k, steps + 1

    start = jnp.zeros(()), jnp.full((), 0.01), y, slope(jnp, y, mu), 0
    _, _, y, _, steps = lax.while_loop(lambda state: state[0] < END, step, start)
    return y, steps


tolerance = 1e-6
