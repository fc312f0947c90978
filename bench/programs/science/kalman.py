"""A Kalman filter and the likelihood of its observations (R. Kalman, J. Basic Eng. 82, 1960)."""

import numpy as np

sizes = {"small": (4, 2, 20), "medium": (12, 4, 300), "large": (40, 10, 1000)}
gradient = 0


def make(size, rng):
    state, seen, steps = sizes[size]
    motion = 0.9 * np.eye(state) + 0.1 * rng.randn(state, state) / state**0.5
    return motion, rng.randn(seen, state), rng.randn(steps, seen)


def advance(xp, a, h, x, p, y):
    """State and covariance after an observation, and minus its log-likelihood."""
    x, p = a @ x, a @ p @ a.T + 0.1 * xp.eye(len(a), dtype=a.dtype)
    s = h @ p @ h.T + 0.5 * xp.eye(len(h), dtype=a.dtype)
    error = y - h @ x
    gain = xp.linalg.solve(s, h @ p).T
    fit = error @ xp.linalg.solve(s, error) + xp.linalg.slogdet(s)[1]
    return x + gain @ error, p - gain @ h @ p, fit / 2


def numpy_form(a, h, ys):
    x, p, total = np.zeros(len(a)), np.eye(len(a)), 0.0
    for y in ys:
        x, p, fit = advance(np, a, h, x, p, y)
        total += fit
    return total


def jax_form(jax, a, h, ys):
    jnp = jax.numpy

    def step(state, y):
        x, p, fit = advance(jnp, a, h, *state, y)
        return (x, p), fit

    start = jnp.zeros(len(a), a.dtype), jnp.eye(len(a), dtype=a.dtype)
    return jax.lax.scan(step, start, ys)[1].sum()


def torch_form(torch, a, h, ys):
    x, p, total = torch.zeros(len(a), dtype=a.dtype), torch.eye(len(a), dtype=a.dtype), 0.0
    for y in ys:
        x, p, fit = advance(torch, a, h, x, p, y)
        total = total + fit
    return total
