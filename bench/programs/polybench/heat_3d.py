"""heat-3d: the heat equation in a cube, a stencil of seven points."""

sizes = {"small": (16, 5), "medium": (64, 20), "large": (160, 30)}


def make(size, rng):
    n, steps = sizes[size]
    return rng.rand(n, n, n), steps


def spread(a):
    """The inner points after a step."""
    inner = a[1:-1, 1:-1, 1:-1]
    return (
        inner
        + 0.125 * (a[2:, 1:-1, 1:-1] - 2 * inner + a[:-2, 1:-1, 1:-1])
        + 0.125 * (a[1:-1, 2:, 1:-1] - 2 * inner + a[1:-1, :-2, 1:-1])
        + 0.125 * (a[1:-1, 1:-1, 2:] - 2 * inner + a[1:-1, 1:-1, :-2])
    )


def numpy_form(a, steps):
    a = a.copy()
    for _ in range(steps):
        a[1:-1, 1:-1, 1:-1] = spread(a)
    return a


def jax_form(jax, a, steps):
    def step(_, a):
        return a.at[1:-1, 1:-1, 1:-1].set(spread(a))

    return jax.lax.fori_loop(0, steps, step, a)


def torch_form(torch, a, steps):
    a = a.clone()
    for _ in range(steps):
        a[1:-1, 1:-1, 1:-1] = spread(a)
    return a


def loops(a, steps):
    a, b = a.copy(), a.copy()
    n = len(a)
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    c = a[i, j, k]
                    b[i, j, k] = c + 0.125 * (
                        (a[i + 1, j, k] - 2 * c + a[i - 1, j, k])
                        + (a[i, j + 1, k] - 2 * c + a[i, j - 1, k])
                        + (a[i, j, k + 1] - 2 * c + a[i, j, k - 1])
                    )
        a, b = b, a
    return a
