"""Azimuthal integration of a detector's image: mean intensities by bins of the radius.

Source: J. Kieffer and D. Karkoulis, J. Phys. Conf. Ser. 425 (2013), the histogram method.
"""

import numpy as np

sizes = {"small": (10_000, 50), "medium": (300_000, 500), "large": (4_000_000, 1000)}


def make(size, rng):
    n, bins = sizes[size]
    return rng.rand(n), rng.rand(n), bins


def numpy_form(values, radius, bins):
    edges = np.linspace(radius.min(), radius.max(), bins + 1)
    weighted = np.histogram(radius, edges, weights=values)[0]
    return weighted / np.histogram(radius, edges)[0]


def jax_form(jax, values, radius, bins):
    jnp = jax.numpy
    edges = jnp.linspace(radius.min(), radius.max(), bins + 1)
    weighted = jnp.histogram(radius, edges, weights=values)[0]
    return weighted / jnp.histogram(radius, edges)[0]


def loops(values, radius, bins):
    low, high = radius.min(), radius.max()
    weighted, count = np.zeros(bins), np.zeros(bins)
    for i in range(len(radius)):
        place = min(int((radius[i] - low) / (high - low) * bins), bins - 1)
        weighted[place] += values[i]
        count[place] += 1
    return weighted / count


def differs(got, expected):
    """A value on an edge may be in either bin, which changes a mean by its share."""
    return (abs(got - expected) > 1e-6 * expected).mean() > 0.02
