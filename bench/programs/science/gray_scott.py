"""Reaction and diffusion of two substances on a torus, a two-dimensional stencil.

Source: J. Pearson, Complex Patterns in a Simple System, Science 261 (1993).
"""

import numpy as np

sizes = {"small": (48, 10), "medium": (256, 50), "large": (1024, 60)}


def make(size, rng):
    n, steps = sizes[size]
    u = np.ones((n, n)) + 0.02 * rng.rand(n, n)
    v = 0.02 * rng.rand(n, n)
    u[n // 3 : n // 2, n // 3 : n // 2] = 0.5
    v[n // 3 : n // 2, n // 3 : n // 2] = 0.25
    return u.astype("f"), v.astype("f"), steps


def laplacian(xp, a):
    return xp.roll(a, 1, 0) + xp.roll(a, -1, 0) + xp.roll(a, 1, 1) + xp.roll(a, -1, 1) - 4 * a


def react(xp, u, v):
    uvv = u * v * v
    du = 0.16 * laplacian(xp, u) - uvv + 0.035 * (1 - u)
    dv = 0.08 * laplacian(xp, v) + uvv - 0.095 * v
    return u + du, v + dv


def numpy_form(u, v, steps):
    for _ in range(steps):
        u, v = react(np, u, v)
    return u, v


def jax_form(jax, u, v, steps):
    return jax.lax.fori_loop(0, steps, lambda _, state: react(jax.numpy, *state), (u, v))


def torch_form(torch, u, v, steps):
    for _ in range(steps):
        u, v = react(torch, u, v)
    return u, v
