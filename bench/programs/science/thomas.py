"""Many tridiagonal systems at once by Thomas' algorithm (L. Thomas, 1949)."""

import numpy as np

sizes = {"small": (32, 16), "medium": (512, 200), "large": (4000, 500)}


def make(size, rng):
    systems, n = sizes[size]
    low, high, right = (rng.rand(n, systems) for _ in range(3))
    return low, 2 + rng.rand(n, systems), high, right


def numpy_form(low, mid, high, right):
    c, d = np.empty_like(mid), np.empty_like(mid)
    c[0], d[0] = high[0] / mid[0], right[0] / mid[0]
    for i in range(1, len(mid)):
        scale = mid[i] - low[i] * c[i - 1]
        c[i] = high[i] / scale
        d[i] = (right[i] - low[i] * d[i - 1]) / scale
    for i in range(len(mid) - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


def jax_form(jax, low, mid, high, right):
    jnp, lax = jax.numpy, jax.lax

    def forward(state, row):
        (c, d), (low, mid, high, right) = state, row
        scale = mid - low * c
        found = high / scale, (right - low * d) / scale
        return found, found

    def backward(above, cd):
        x = cd[1] - cd[0] * above
        return x, x

    zero = jnp.zeros_like(mid[0])
    _, cd = lax.scan(forward, (zero, zero), (low, mid, high, right))
    return lax.scan(backward, zero, cd, reverse=True)[1]


loops = numpy_form
