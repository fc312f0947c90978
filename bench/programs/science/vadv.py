"""Implicit vertical advection of a weather model: a tridiagonal system in each column of air.

Source: the Crank-Nicolson scheme of COSMO (G. Doms and M. Baldauf, Dynamics and Numerics, 2011).
"""

import numpy as np

sizes = {"small": (10, 12, 8), "medium": (64, 64, 40), "large": (180, 180, 80)}


def make(size, rng):
    i, j, k = sizes[size]
    wind = 0.2 * (rng.rand(k + 1, i, j) - 0.5)
    return wind.astype("f"), rng.rand(k, i, j).astype("f")


def rows(xp, wind, field):
    """The three diagonals and the right sides, level by level."""
    down, up = 0.25 * wind[:-1], 0.25 * wind[1:]
    low, high = -down, up
    below = xp.concatenate([field[:1], field[:-1]])
    above = xp.concatenate([field[1:], field[-1:]])
    right = field - (up * (above - field) + down * (field - below))
    return low, 1 + down - up, high, right


def numpy_form(wind, field):
    low, mid, high, right = rows(np, wind, field)
    c, d = np.zeros_like(field), np.zeros_like(field)
    c[0], d[0] = high[0] / mid[0], right[0] / mid[0]
    for k in range(1, len(field)):
        scale = 1 / (mid[k] - low[k] * c[k - 1])
        c[k] = high[k] * scale
        d[k] = (right[k] - low[k] * d[k - 1]) * scale
    for k in range(len(field) - 2, -1, -1):
        d[k] -= c[k] * d[k + 1]
    return d


def jax_form(jax, wind, field):
    jnp, lax = jax.numpy, jax.lax

    def forward(state, row):
        (c, d), (low, mid, high, right) = state, row
        scale = 1 / (mid - low * c)
        found = high * scale, (right - low * d) * scale
        return found, found

    def backward(above, cd):
        x = cd[1] - cd[0] * above
        return x, x

    zero = jnp.zeros_like(field[0])
    _, cd = lax.scan(forward, (zero, zero), rows(jnp, wind, field))
    return lax.scan(backward, zero, cd, reverse=True)[1]
