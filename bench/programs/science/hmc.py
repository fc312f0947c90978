"""Hamiltonian Monte Carlo on the posterior of a logistic regression.

Source: R. Neal, MCMC using Hamiltonian dynamics (2011), figure 2. The random numbers are inputs,
so that all forms draw the same.
"""

import numpy as np

sizes = {"small": (50, 4, 5, 5), "medium": (500, 20, 50, 10), "large": (5000, 50, 100, 20)}

STEP = 0.02


def make(size, rng):
    n, width, draws, leaps = sizes[size]
    x = rng.randn(n, width) / width**0.5
    y = (x @ rng.randn(width) + 0.3 * rng.randn(n) > 0).astype("f")
    momenta, uniform = rng.randn(draws, width), rng.rand(draws)
    return x.astype("f"), y, momenta.astype("f"), uniform.astype("f"), leaps


def energy(xp, x, y, q):
    """Minus the logarithm of the posterior with a standard normal prior."""
    logits = x @ q
    return (xp.logaddexp(logits, xp.zeros_like(logits)) - y * logits).sum() + (q**2).sum() / 2


def slope_numpy(x, y, q):
    return x.T @ (1 / (1 + np.exp(-(x @ q))) - y) + q


def numpy_form(x, y, momenta, uniform, leaps):
    q = np.zeros_like(momenta[0])
    draws = np.empty_like(momenta)
    for i, p in enumerate(momenta):
        start = energy(np, x, y, q) + (p**2).sum() / 2
        new, p = q, p - STEP / 2 * slope_numpy(x, y, q)
        for leap in range(leaps):
            new = new + STEP * p
            p = p - (STEP if leap < leaps - 1 else STEP / 2) * slope_numpy(x, y, new)
        end = energy(np, x, y, new) + (p**2).sum() / 2
        if uniform[i] < np.exp(start - end):
            q = new
        draws[i] = q
    return draws


def jax_form(jax, x, y, momenta, uniform, leaps):
    jnp, lax = jax.numpy, jax.lax

    def potential(q):
        return energy(jnp, x, y, q)

    slope = jax.grad(potential)

    def leap(_, state):
        q, p = state
        q = q + STEP * p
        return q, p - STEP * slope(q)

    def draw(q, numbers):
        p, u = numbers
        start = potential(q) + (p**2).sum() / 2
        new, p = lax.fori_loop(0, leaps, leap, (q, p - STEP / 2 * slope(q)))
        p = p + STEP / 2 * slope(new)
        end = potential(new) + (p**2).sum() / 2
        q = jnp.where(u < jnp.exp(start - end), new, q)
        return q, q

    return lax.scan(draw, jnp.zeros_like(momenta[0]), (momenta, uniform))[1]


tolerance = 1e-3
