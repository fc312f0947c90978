"""Periodic flow in a channel that is pushed, until the velocity no longer changes.

Source: as in cavity_flow.py, with a constant force; the flow comes near Poiseuille's parabola.
"""

import numpy as np

sizes = {"small": 21, "medium": 41, "large": 81}

FORCE, TOLERANCE = 1.0, 1e-3


def make(size, rng):
    n = sizes[size]
    u = 0.1 * rng.rand(n, 2 * n)
    u[0] = u[-1] = 0
    return (u,)


def advance(xp, u):
    """Inner rows after a step: advection by u itself, the force, and viscosity."""
    d = 2.0 / (len(u) - 1)
    dt = 0.2 * d * d
    west, east = xp.roll(u, 1, 1), xp.roll(u, -1, 1)
    inner = u[1:-1]
    bend = (west + east)[1:-1] + u[2:] + u[:-2] - 4 * inner
    return inner - dt / d * inner * (inner - west[1:-1]) + dt / d**2 * bend + dt * FORCE


def numpy_form(u):
    u, change, steps = u.copy(), 1.0, 0
    while change > TOLERANCE:
        before = u.sum()
        u[1:-1] = advance(np, u)
        total = u.sum()
        change, steps = abs(total - before) / total, steps + 1
    return u, steps


def jax_form(jax, u):
    def step(state):
        u, _, steps = state
        new = u.at[1:-1].set(advance(jax.numpy, u))
        total = new.sum()
        return new, abs(total - u.sum()) / total, steps + 1

    u, _, steps = jax.lax.while_loop(lambda state: state[1] > TOLERANCE, step, (u, 1.0, 0))
    return u, steps
