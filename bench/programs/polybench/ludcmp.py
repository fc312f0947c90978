"""ludcmp: solve A x = b by A = L U without pivots, then L y = b and U x = y (Golub, Van Loan, 3.2).

The factors come row by row (Doolittle's order), as do the two substitutions.
"""

import numpy as np

sizes = {"small": 50, "medium": 200, "large": 600}


def make(size, rng):
    n = sizes[size]
    return rng.rand(n, n) + n * np.eye(n), rng.rand(n)


def numpy_form(a, b):
    a, x = a.copy(), b.copy()
    n = len(b)
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]
    for i in range(1, n):
        x[i] -= a[i, :i] @ x[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def jax_form(jax, a, b):
    jnp, lax = jax.numpy, jax.lax
    n = len(b)
    places = jnp.arange(n)

    def eliminate(k, a):
        column = jnp.where(places > k, a[:, k] / a[k, k], 0)
        a = a - column[:, None] * jnp.where(places > k, a[k], 0)
        return a.at[:, k].set(jnp.where(places > k, column, a[:, k]))

    def forward(i, x):
        return x.at[i].add(-jnp.sum(jnp.where(places < i, a[i] * x, 0)))

    def backward(step, x):
        i = n - 1 - step
        return x.at[i].set((x[i] - jnp.sum(jnp.where(places > i, a[i] * x, 0))) / a[i, i])

    a = lax.fori_loop(0, n - 1, eliminate, a)
    return lax.fori_loop(0, n, backward, lax.fori_loop(1, n, forward, b))


def loops(a, b):
    a, x = a.copy(), b.copy()
    n = len(b)
    for k in range(n - 1):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    for i in range(1, n):
        for j in range(i):
            x[i] -= a[i, j] * x[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    return x
