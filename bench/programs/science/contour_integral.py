"""Eigenvectors of a polynomial problem by a contour integral: solves at points of two circles.

Source: W.-J. Beyn, Linear Algebra and its Applications 436 (2012); moments 0 and 1 of
Y P(z)^-1 for P(z) = sum of z^k H_k, k from -1 to 1.
"""

import numpy as np

sizes = {"small": (24, 8), "medium": (100, 16), "large": (300, 24)}


def make(size, rng):
    n, points = sizes[size]

    def complexes(*shape):
        return rng.randn(*shape) + 1j * rng.randn(*shape)

    hams = complexes(3, n, n)
    hams[1] += 3 * n * np.eye(n)
    circle = np.exp(2j * np.pi * (np.arange(points) + 0.5) / points)
    return hams, complexes(n, n // 3), np.concatenate([3.0 * circle, circle / 3.0])


def numpy_form(hams, y, points):
    zero, first = np.zeros_like(y), np.zeros_like(y)
    for z in points:
        x = np.linalg.solve(hams[0] / z + hams[1] + hams[2] * z, y)
        x = x if abs(z) > 1 else -x
        zero = zero + x
        first = first + z * x
    return zero, first


def jax_form(jax, hams, y, points):
    jnp = jax.numpy
    polynomial = hams[0] / points[:, None, None] + hams[1] + hams[2] * points[:, None, None]
    x = jax.vmap(lambda a: jnp.linalg.solve(a, y))(polynomial)
    x = jnp.where(jnp.abs(points)[:, None, None] > 1, x, -x)
    return x.sum(0), (points[:, None, None] * x).sum(0)


def torch_form(torch, hams, y, points):
    z = points[:, None, None]
    x = torch.linalg.solve(hams[0] / z + hams[1] + hams[2] * z, y)
    x = torch.where(abs(z) > 1, x, -x)
    return x.sum(0), (z * x).sum(0)
