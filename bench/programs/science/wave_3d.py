"""Waves in a cube with an absorbing layer: leapfrog in time, a stencil of thirteen points.

Source: B. Fornberg, Math. Comp. 51 (1988), for the weights of fourth order; the layer damps as in
C. Cerjan and others, Geophysics 50 (1985).
"""

import numpy as np

sizes = {"small": (16, 5), "medium": (64, 20), "large": (128, 40)}


def make(size, rng):
    n, steps = sizes[size]
    edge = np.minimum(np.arange(n), np.arange(n)[::-1])
    line = np.exp(-((0.1 * np.maximum(6 - edge, 0)) ** 2))
    damp = line[:, None, None] * line[:, None] * line
    speed = 0.2 + 0.05 * rng.rand(n, n, n)
    u = np.zeros((n, n, n))
    u[n // 2, n // 2, n // 2] = 1.0
    return u.astype("f"), (speed**2).astype("f"), damp.astype("f"), steps


def laplacian(u):
    """The sum of second derivatives at points two from the edge."""
    n = len(u)
    inner = slice(2, n - 2)
    total = -7.5 * u[inner, inner, inner]
    for shift, weight in ((-2, -1 / 12), (-1, 4 / 3), (1, 4 / 3), (2, -1 / 12)):
        moved = slice(2 + shift, n - 2 + shift)
        near = u[moved, inner, inner] + u[inner, moved, inner] + u[inner, inner, moved]
        total = total + weight * near
    return total


def numpy_form(u, speed, damp, steps):
    before = u.copy()
    for _ in range(steps):
        after = 2 * u - before
        after[2:-2, 2:-2, 2:-2] += speed[2:-2, 2:-2, 2:-2] * laplacian(u)
        before, u = u * damp, after * damp
    return u


def jax_form(jax, u, speed, damp, steps):
    def step(_, state):
        before, u = state
        change = speed[2:-2, 2:-2, 2:-2] * laplacian(u)
        after = (2 * u - before).at[2:-2, 2:-2, 2:-2].add(change)
        return u * damp, after * damp

    return jax.lax.fori_loop(0, steps, step, (u, u))[1]


def torch_form(torch, u, speed, damp, steps):
    before = u
    for _ in range(steps):
        after = 2 * u - before
        after[2:-2, 2:-2, 2:-2] += speed[2:-2, 2:-2, 2:-2] * laplacian(u)
        before, u = u * damp, after * damp
    return u
