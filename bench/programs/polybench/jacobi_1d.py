"""jacobi-1d: repeated means of three neighbours on a line (Jacobi's relaxation)."""

sizes = {"small": (400, 20), "medium": (4000, 100), "large": (200_000, 200)}


def make(size, rng):
    n, steps = sizes[size]
    return rng.rand(n), steps


def numpy_form(a, steps):
    a = a.copy()
    for _ in range(steps):
        a[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
    return a


def jax_form(jax, a, steps):
    def step(_, a):
        return a.at[1:-1].set((a[:-2] + a[1:-1] + a[2:]) / 3)

    return jax.lax.fori_loop(0, steps, step, a)


def loops(a, steps):
    a, b = a.copy(), a.copy()
    for _ in range(steps):
        for i in range(1, len(a) - 1):
            b[i] = (a[i - 1] + a[i] + a[i + 1]) / 3
        a, b = b, a
    return a
