"""jacobi-2d: repeated means of five neighbours on a square (Jacobi's relaxation)."""

sizes = {"small": (48, 10), "medium": (250, 50), "large": (1200, 100)}


def make(size, rng):
    n, steps = sizes[size]
    return rng.rand(n, n), steps


def mean(a):
    """The inner points after a step."""
    return 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])


def numpy_form(a, steps):
    a = a.copy()
    for _ in range(steps):
        a[1:-1, 1:-1] = mean(a)
    return a


def jax_form(jax, a, steps):
    return jax.lax.fori_loop(0, steps, lambda _, a: a.at[1:-1, 1:-1].set(mean(a)), a)


def torch_form(torch, a, steps):
    a = a.clone()
    for _ in range(steps):
        a[1:-1, 1:-1] = mean(a)
    return a


def loops(a, steps):
    a, b = a.copy(), a.copy()
    m, n = a.shape
    for _ in range(steps):
        for i in range(1, m - 1):
            for j in range(1, n - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])
        a, b = b, a
    return a
