"""Burgers' equation on a ring, a one-dimensional stencil: upwind advection and diffusion.

Source: R. LeVeque, Finite Volume Methods for Hyperbolic Problems (2002), sections 4 and 11.
"""

import numpy as np

sizes = {"small": (256, 20), "medium": (4096, 200), "large": (100_000, 200)}


def make(size, rng):
    n, steps = sizes[size]
    return (1 + 0.5 * np.sin(np.linspace(0, 6.28, n)) + 0.01 * rng.rand(n)).astype("f"), steps


def advance(xp, u):
    left, right = xp.roll(u, 1), xp.roll(u, -1)
    return u - 0.1 * u * (u - left) + 0.05 * (left - 2 * u + right)


def numpy_form(u, steps):
    for _ in range(steps):
        u = advance(np, u)
    return u


def jax_form(jax, u, steps):
    return jax.lax.fori_loop(0, steps, lambda _, u: advance(jax.numpy, u), u)


def torch_form(torch, u, steps):
    for _ in range(steps):
        u = advance(torch, u)
    return u


def loops(u, steps):
    n = len(u)
    u, new = u.copy(), u.copy()
    for _ in range(steps):
        for i in range(n):
            left, right = u[i - 1], u[i + 1 if i + 1 < n else 0]
            change = 0.05 * (left - 2 * u[i] + right) - 0.1 * u[i] * (u[i] - left)
            new[i] = u[i] + change
        u, new = new, u
    return u
