"""Poisson's equation by conjugate gradients, the operator being a function.

Source: M. Hestenes and E. Stiefel, J. Res. NBS 49 (1952).
"""

import numpy as np

sizes = {"small": 24, "medium": 128, "large": 500}

TOLERANCE = 1e-6


def make(size, rng):
    n = sizes[size]
    return (rng.rand(n, n),)


def apply(xp, u):
    """Minus the Laplacian with zeros around, and a small shift that bounds the iterations."""
    p = xp.pad(u, 1)
    return 4.05 * u - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]


def advance(xp, x, r, p, rr):
    ap = apply(xp, p)
    alpha = rr / (p * ap).sum()
    x, r = x + alpha * p, r - alpha * ap
    new = (r * r).sum()
    return x, r, r + new / rr * p, new


def numpy_form(b):
    x, r, p = np.zeros_like(b), b, b
    start = rr = (b * b).sum()
    while rr > TOLERANCE**2 * start:
        x, r, p, rr = advance(np, x, r, p, rr)
    return x


def jax_form(jax, b):
    jnp = jax.numpy
    start = (b * b).sum()

    def more(state):
        return state[3] > TOLERANCE**2 * start

    def step(state):
        return advance(jnp, *state)

    return jax.lax.while_loop(more, step, (jnp.zeros_like(b), b, b, start))[0]
