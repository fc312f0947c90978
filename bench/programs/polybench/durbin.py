"""durbin: the Yule-Walker equations by the Levinson-Durbin recursion (Golub and Van Loan, 4.7).

Solves T y = -r for the symmetric Toeplitz matrix T of (1, r[0], r[1], ...).
"""

import numpy as np

sizes = {"small": 120, "medium": 1000, "large": 3000}


def make(size, rng):
    return (0.5 ** np.arange(1, sizes[size] + 1) + 1e-3 * rng.rand(sizes[size]),)


def numpy_form(r):
    n = len(r)
    y = np.zeros_like(r)
    y[0] = alpha = -r[0]
    beta = 1.0
    for k in range(1, n):
        beta *= 1 - alpha * alpha
        alpha = -(r[k] + r[k - 1 :: -1] @ y[:k]) / beta
        y[:k] += alpha * y[k - 1 :: -1]
        y[k] = alpha
    return y


def jax_form(jax, r):
    jnp, lax = jax.numpy, jax.lax

    def step(k, state):
        y, alpha, beta = state
        beta = beta * (1 - alpha * alpha)
        alpha = -(r[k] + jnp.dot(jnp.roll(r[::-1], k), y)) / beta  # y is zero from k on
        y = y + alpha * jnp.roll(y[::-1], k)
        return y.at[k].set(alpha), alpha, beta

    start = jnp.zeros_like(r).at[0].set(-r[0]), -r[0], jnp.ones_like(r[0])
    return lax.fori_loop(1, len(r), step, start)[0]


def loops(r):
    n = len(r)
    y, z = np.zeros_like(r), np.zeros_like(r)
    y[0] = alpha = -r[0]
    beta = 1.0
    for k in range(1, n):
        beta *= 1 - alpha * alpha
        total = r[k]
        for i in range(k):
            total += r[k - 1 - i] * y[i]
        alpha = -total / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - 1 - i]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return y
