"""A particle filter with systematic resampling (N. Gordon and others, IEE Proc. F 140, 1993).

The model is the paper's growth model; its random numbers are inputs.
"""

import numpy as np

sizes = {"small": (100, 10), "medium": (2000, 100), "large": (50_000, 200)}


def make(size, rng):
    n, steps = sizes[size]
    noise = rng.randn(steps, n).astype("f")
    return rng.randn(n).astype("f"), noise, rng.rand(steps).astype("f"), 5 * rng.rand(steps)


def move(xp, x, t, noise):
    return 0.5 * x + 25 * x / (1 + x**2) + 8 * xp.cos(1.2 * t) + 3.2 * noise


def weigh(xp, x, y):
    log = -((y - x**2 / 20) ** 2) / 2
    most = log.max()
    weights = xp.exp(log - most)
    total = weights.sum()
    return weights / total, most + xp.log(total / len(x))


def resample(xp, x, weights, u):
    places = (xp.arange(len(x)) + u) / len(x)
    return x[xp.clip(xp.searchsorted(xp.cumsum(weights), places), 0, len(x) - 1)]


def numpy_form(x, noise, uniform, ys):
    x, means, total = x.astype(float), np.empty(len(ys)), 0.0
    for t, y in enumerate(ys):
        x = move(np, x, t, noise[t])
        weights, fit = weigh(np, x, y)
        means[t], total = (weights * x).sum(), total + fit
        x = resample(np, x, weights, uniform[t])
    return means, total


def jax_form(jax, x, noise, uniform, ys):
    jnp = jax.numpy

    def step(x, numbers):
        t, noise, u, y = numbers
        x = move(jnp, x, t, noise)
        weights, fit = weigh(jnp, x, y)
        return resample(jnp, x, weights, u), ((weights * x).sum(), fit)

    inputs = jnp.arange(len(ys)), noise, uniform, ys
    _, (means, fits) = jax.lax.scan(step, x.astype(float), inputs)
    return means, fits.sum()


tolerance = 1e-5
