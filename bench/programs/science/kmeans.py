"""Clusters by Lloyd's algorithm (S. Lloyd, IEEE Trans. Inf. Theory 28, 1982)."""

import numpy as np

sizes = {"small": (200, 3, 4, 5), "medium": (5000, 8, 16, 20), "large": (100_000, 16, 32, 20)}


def make(size, rng):
    n, width, clusters, steps = sizes[size]
    centres = 5 * rng.randn(clusters, width)
    points = centres[rng.randint(0, clusters, n)] + rng.randn(n, width)
    return points.astype("f"), points[:clusters].astype("f"), steps


def assign(points, centres):
    apart = (points**2).sum(1, keepdims=True) - 2 * points @ centres.T + (centres**2).sum(1)
    return apart.argmin(1)


def numpy_form(points, centres, steps):
    for _ in range(steps):
        labels = assign(points, centres)
        sums = np.zeros_like(centres)
        np.add.at(sums, labels, points)
        counts = np.bincount(labels, minlength=len(centres)).astype("f")
        centres = sums / np.maximum(counts, 1)[:, None]
    return centres


def jax_form(jax, points, centres, steps):
    jnp = jax.numpy

    def step(_, centres):
        labels = assign(points, centres)
        sums = jax.ops.segment_sum(points, labels, len(centres))
        counts = jnp.bincount(labels, length=len(centres)).astype("f")
        return sums / jnp.maximum(counts, 1)[:, None]

    return jax.lax.fori_loop(0, steps, step, centres)


def torch_form(torch, points, centres, steps):
    for _ in range(steps):
        labels = assign(points, centres)
        sums = torch.zeros_like(centres).index_add(0, labels, points)
        counts = torch.bincount(labels, minlength=len(centres)).float()
        centres = sums / torch.clamp(counts, min=1)[:, None]
    return centres


tolerance = 1e-3
