"""deriche: smooth an image by Deriche's recursive filter (IJCV 1, 1987).

A second-order recursion runs along each axis in both directions; the two results are added.
"""

import math

import numpy as np

sizes = {"small": (64, 80), "medium": (400, 480), "large": (1600, 1800)}

ALPHA = 0.25
DECAY = math.exp(-ALPHA)
SCALE = (1 - DECAY) ** 2 / (1 + 2 * ALPHA * DECAY - DECAY**2)
A1, A2 = SCALE, SCALE * DECAY * (ALPHA - 1)
A3, A4 = SCALE * DECAY * (ALPHA + 1), -SCALE * DECAY**2
B1, B2 = 2 * DECAY, -(DECAY**2)


def make(size, rng):
    return (rng.rand(*sizes[size]),)


def smooth_rows(image):
    """Filter along the first axis, down and up."""
    down, up = np.zeros_like(image), np.zeros_like(image)
    x1 = y1 = y2 = np.zeros_like(image[0])
    for i in range(len(image)):
        down[i] = A1 * image[i] + A2 * x1 + B1 * y1 + B2 * y2
        x1, y1, y2 = image[i], down[i], y1
    x1 = x2 = y1 = y2 = np.zeros_like(image[0])
    for i in range(len(image) - 1, -1, -1):
        up[i] = A3 * x1 + A4 * x2 + B1 * y1 + B2 * y2
        x1, x2, y1, y2 = image[i], x1, up[i], y1
    return down + up


def numpy_form(image):
    return smooth_rows(smooth_rows(image.T).T)


def jax_form(jax, image):
    jnp, lax = jax.numpy, jax.lax

    def smooth(image):
        def down(state, x):
            x1, y1, y2 = state
            y = A1 * x + A2 * x1 + B1 * y1 + B2 * y2
            return (x, y, y1), y

        def up(state, x):
            x1, x2, y1, y2 = state
            y = A3 * x1 + A4 * x2 + B1 * y1 + B2 * y2
            return (x, x1, y, y1), y

        zero = jnp.zeros_like(image[0])
        lower = lax.scan(down, (zero,) * 3, image)[1]
        return lower + lax.scan(up, (zero,) * 4, image, reverse=True)[1]

    return smooth(smooth(image.T).T)


def loops(image):
    m, n = image.shape
    middle, out = np.zeros_like(image), np.zeros_like(image)
    for i in range(m):
        x1 = y1 = y2 = 0.0
        for j in range(n):
            y = A1 * image[i, j] + A2 * x1 + B1 * y1 + B2 * y2
            x1, y2, y1 = image[i, j], y1, y
            middle[i, j] = y
        x1 = x2 = y1 = y2 = 0.0
        for j in range(n - 1, -1, -1):
            y = A3 * x1 + A4 * x2 + B1 * y1 + B2 * y2
            x2, x1, y2, y1 = x1, image[i, j], y1, y
            middle[i, j] += y
    for j in range(n):
        x1 = y1 = y2 = 0.0
        for i in range(m):
            y = A1 * middle[i, j] + A2 * x1 + B1 * y1 + B2 * y2
            x1, y2, y1 = middle[i, j], y1, y
            out[i, j] = y
        x1 = x2 = y1 = y2 = 0.0
        for i in range(m - 1, -1, -1):
            y = A3 * x1 + A4 * x2 + B1 * y1 + B2 * y2
            x2, x1, y2, y1 = x1, middle[i, j], y1, y
            out[i, j] += y
    return out
