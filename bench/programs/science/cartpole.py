"""Many poles on carts under a linear policy, and the policy's gradient through the simulation.

Source: A. Barto, R. Sutton and C. Anderson, IEEE Trans. SMC 13 (1983), with a continuous force.
"""

import numpy as np

sizes = {"small": (8, 20), "medium": (256, 200), "large": (4096, 400)}
gradient = 0

GRAVITY, CART, POLE, HALF, FORCE, DT = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


def make(size, rng):
    carts, steps = sizes[size]
    state = 0.05 * rng.randn(4, carts)
    return np.array([0.1, 0.3, 2.0, 0.5], "f"), state.astype("f"), steps


def advance(xp, policy, x, v, angle, turn):
    force = FORCE * xp.tanh(policy[0] * x + policy[1] * v + policy[2] * angle + policy[3] * turn)
    sin, cos = xp.sin(angle), xp.cos(angle)
    push = (force + POLE * HALF * turn**2 * sin) / (CART + POLE)
    bend = (GRAVITY * sin - cos * push) / (HALF * (4 / 3 - POLE * cos**2 / (CART + POLE)))
    pull = push - POLE * HALF * bend * cos / (CART + POLE)
    return x + DT * v, v + DT * pull, angle + DT * turn, turn + DT * bend


def numpy_form(policy, state, steps):
    state, cost = tuple(state), 0.0
    for _ in range(steps):
        state = advance(np, policy, *state)
        cost += (state[2] ** 2 + 0.1 * state[0] ** 2).mean()
    return cost / steps


def jax_form(jax, policy, state, steps):
    def step(state, _):
        state = advance(jax.numpy, policy, *state)
        return state, (state[2] ** 2 + 0.1 * state[0] ** 2).mean()

    return jax.lax.scan(step, tuple(state), None, length=steps)[1].mean()


def torch_form(torch, policy, state, steps):
    state, cost = tuple(state), 0.0
    for _ in range(steps):
        state = advance(torch, policy, *state)
        cost = cost + (state[2] ** 2 + 0.1 * state[0] ** 2).mean()
    return cost / steps
