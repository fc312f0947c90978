"""seidel-2d: means of nine neighbours in place, so that each point sees those already new.

The new points of a row are a first-order recurrence along it (Gauss and Seidel's relaxation).
"""

sizes = {"small": (32, 3), "medium": (120, 10), "large": (400, 20)}


def make(size, rng):
    n, steps = sizes[size]
    return rng.rand(n, n), steps


def numpy_form(a, steps):
    a = a.copy()
    m, n = a.shape
    for _ in range(steps):
        for i in range(1, m - 1):
            a[i, 1:-1] += a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i, 2:]
            a[i, 1:-1] += a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            for j in range(1, n - 1):
                a[i, j] = (a[i, j] + a[i, j - 1]) / 9
    return a


def jax_form(jax, a, steps):
    jnp, lax = jax.numpy, jax.lax

    def relax(left, total):
        new = (total + left) / 9
        return new, new

    def row(above, rows):
        here, below = rows
        total = here[1:-1] + here[2:] + above[:-2] + above[1:-1] + above[2:]
        total = total + below[:-2] + below[1:-1] + below[2:]
        _, inner = lax.scan(relax, here[0], total)
        new = here.at[1:-1].set(inner)
        return new, new

    def step(_, a):
        _, rows = lax.scan(row, a[0], (a[1:-1], a[2:]))
        return jnp.concatenate([a[:1], rows, a[-1:]])

    return lax.fori_loop(0, steps, step, a)


def loops(a, steps):
    a = a.copy()
    m, n = a.shape
    for _ in range(steps):
        for i in range(1, m - 1):
            for j in range(1, n - 1):
                total = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                total += a[i, j - 1] + a[i, j] + a[i, j + 1]
                a[i, j] = (total + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]) / 9
    return a
