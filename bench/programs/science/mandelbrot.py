"""The Mandelbrot set: the steps of z := z^2 + c until each point of a grid leaves |z| < 2.

Masks freeze the points that have left (B. Mandelbrot, 1980).
"""

import numpy as np

sizes = {"small": (40, 20), "medium": (300, 60), "large": (1000, 100)}


def make(size, rng):
    n, steps = sizes[size]
    x, y = np.linspace(-2.05, 0.55, n), np.linspace(-1.27, 1.23, n)
    return (x + 1j * y[:, None]).astype("complex64"), steps


def numpy_form(c, steps):
    z, count = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(steps):
        inside = z.real**2 + z.imag**2 < 4
        z[inside] = z[inside] ** 2 + c[inside]
        count[inside] += 1
    return count


def jax_form(jax, c, steps):
    jnp = jax.numpy

    def step(_, state):
        z, count = state
        inside = z.real**2 + z.imag**2 < 4
        return jnp.where(inside, z * z + c, z), jnp.where(inside, count + 1, count)

    start = jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)
    return jax.lax.fori_loop(0, steps, step, start)[1]


def torch_form(torch, c, steps):
    z, count = torch.zeros_like(c), torch.zeros(c.shape, dtype=torch.int32)
    for _ in range(steps):
        inside = z.real**2 + z.imag**2 < 4
        z = torch.where(inside, z * z + c, z)
        count += inside
    return count


def loops(c, steps):
    count = np.zeros(c.shape, np.int32)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            z = np.complex64(0)
            for _ in range(steps):
                if z.real * z.real + z.imag * z.imag >= 4:
                    break
                z = z * z + c[i, j]
                count[i, j] += 1
    return count


def differs(got, expected):
    """Points at the edge may leave a step apart, as products of complex numbers round apart."""
    return (got != expected).mean() > 0.01
