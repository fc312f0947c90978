"""lu: A = L U without pivots, by outer products (Golub and Van Loan, 3.2.5); L and U share A."""

import numpy as np

sizes = {"small": 60, "medium": 300, "large": 900}


def make(size, rng):
    n = sizes[size]
    return (rng.rand(n, n) + n * np.eye(n),)


def numpy_form(a):
    a = a.copy()
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]
    return a


def jax_form(jax, a):
    jnp, lax = jax.numpy, jax.lax
    places = jnp.arange(len(a))

    def step(k, a):
        column = jnp.where(places > k, a[:, k] / a[k, k], 0)
        row = jnp.where(places > k, a[k], 0)
        a = a - column[:, None] * row
        return a.at[:, k].set(jnp.where(places > k, column, a[:, k]))

    return lax.fori_loop(0, len(a) - 1, step, a)


def loops(a):
    a = a.copy()
    n = len(a)
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a
