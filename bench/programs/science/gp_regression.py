"""The marginal likelihood of a Gaussian process in its kernel's settings.

Source: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning (2006), algorithm 2.1.
"""

import numpy as np

sizes = {"small": (40, 3), "medium": (300, 8), "large": (1000, 16)}
gradient = 0


def make(size, rng):
    n, width = sizes[size]
    x = rng.randn(n, width)
    return np.array([0.5, 0.1, -1.0]), x, np.sin(x.sum(1)) + 0.1 * rng.randn(n)


def kernel(xp, settings, x):
    scale, height, noise = xp.exp(settings)
    square = (x**2).sum(1)
    apart = square[:, None] - 2 * x @ x.T + square
    eye = xp.eye(len(x), dtype=x.dtype)
    return height * xp.exp(-apart / (2 * scale**2)) + noise * eye


def program(xp, settings, x, y):
    k = kernel(xp, settings, x)
    lower = xp.linalg.cholesky(k)
    fit = y @ xp.linalg.solve(k, y)
    logdet = 2 * xp.log(xp.diagonal(lower)).sum()
    return (fit + logdet + len(y) * 1.8378770664093453) / 2


def torch_form(torch, settings, x, y):
    return program(torch, settings, x, y)
