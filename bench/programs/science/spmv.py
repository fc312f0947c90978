"""A product of a sparse matrix in compressed rows and a vector, row by row, as a loop.

Source: Y. Saad, Iterative Methods for Sparse Linear Systems (2003), section 3.4.
"""

import numpy as np

sizes = {"small": (200, 20), "medium": (4000, 40), "large": (40_000, 80)}


def make(size, rng):
    n, most = sizes[size]
    counts = rng.randint(0, most, n)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    total = starts[-1]
    columns = rng.randint(0, n, total + most).astype(np.int32)  # room for a slice at the end
    return starts, columns, rng.rand(total + most), rng.rand(n), most


def numpy_form(starts, columns, values, x, most):
    y = np.empty(len(x))
    for i in range(len(x)):
        row = slice(starts[i], starts[i + 1])
        y[i] = values[row] @ x[columns[row]]
    return y


def jax_form(jax, starts, columns, values, x, most):
    jnp, lax = jax.numpy, jax.lax
    places = jnp.arange(most)

    def step(i, y):
        begin = starts[i]
        row = lax.dynamic_slice(columns, (begin,), (most,))
        data = lax.dynamic_slice(values, (begin,), (most,))
        inside = places < starts[i + 1] - begin
        return y.at[i].set(jnp.sum(jnp.where(inside, data * x[row], 0)))

    return lax.fori_loop(0, len(x), step, jnp.zeros_like(x))


def loops(starts, columns, values, x, most):
    y = np.zeros_like(x)
    for i in range(len(x)):
        for k in range(starts[i], starts[i + 1]):
            y[i] += values[k] * x[columns[k]]
    return y
