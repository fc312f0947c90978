"""atax: y := A' (A x), as in the normal equations of least squares."""

sizes = {"small": 120, "medium": 1000, "large": 3000}


def make(size, rng):
    n = sizes[size]
    return rng.rand(n, n + 20), rng.rand(n + 20)


def program(xp, a, x):
    return a.T @ (a @ x)


def torch_form(torch, *inputs):
    return program(torch, *inputs)


def loops(a, x):
    m, n = a.shape
    y = 0 * x
    for i in range(m):
        total = 0.0
        for j in range(n):
            total += a[i, j] * x[j]
        for j in range(n):
            y[j] += a[i, j] * total
    return y
