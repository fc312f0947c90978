"""nussinov: the most base pairs that an RNA folds into (R. Nussinov and others, 1978).

best[i, j] is the largest of best[i, j - 1], best[i + 1, j], best[i + 1, j - 1] plus one if i and j
pair and are not neighbours, and best[i, k] + best[k + 1, j] over all k between.
"""

import numpy as np

sizes = {"small": 36, "medium": 100, "large": 240}


def make(size, rng):
    return (rng.randint(0, 4, sizes[size]).astype(np.int32),)


def numpy_form(bases):
    n = len(bases)
    best = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            pair = j - i > 1 and bases[i] + bases[j] == 3
            found = max(best[i, j - 1], best[i + 1, j], best[i + 1, j - 1] + pair)
            if j - i > 1:
                found = max(found, np.max(best[i, i + 1 : j] + best[i + 2 : j + 1, j]))
            best[i, j] = found
    return best


def jax_form(jax, bases):
    jnp, lax = jax.numpy, jax.lax
    n = len(bases)
    places = jnp.arange(n)

    def cell(i, j, best):
        pair = (j - i > 1) & (bases[i] + bases[j] == 3)
        below = best[i + 1]
        found = jnp.maximum(jnp.maximum(best[i, j - 1], below[j]), below[j - 1] + pair)
        between = (places > i) & (places < j)
        splits = jnp.where(between, best[i] + jnp.roll(best[:, j], -1), 0)
        return best.at[i, j].set(jnp.maximum(found, jnp.max(splits)))

    def row(step, best):
        i = n - 1 - step
        return lax.fori_loop(i + 1, n, lambda j, best: cell(i, j, best), best)

    return lax.fori_loop(0, n, row, jnp.zeros((n, n), jnp.int32))


def loops(bases):
    n = len(bases)
    best = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            found = max(best[i, j - 1], best[i + 1, j])
            pair = 1 if j - i > 1 and bases[i] + bases[j] == 3 else 0
            found = max(found, best[i + 1, j - 1] + pair)
            for k in range(i + 1, j):
                found = max(found, best[i, k] + best[k + 1, j])
            best[i, j] = found
    return best
