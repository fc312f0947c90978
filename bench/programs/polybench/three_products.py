"""3mm: G := (A B)(C D), three products of matrices."""

sizes = {"small": 96, "medium": 400, "large": 1000}


def make(size, rng):
    n = sizes[size]
    a, b = rng.rand(n, n + 10), rng.rand(n + 10, n - 10)
    return a, b, rng.rand(n - 10, n + 20), rng.rand(n + 20, n + 5)


def program(xp, a, b, c, d):
    return (a @ b) @ (c @ d)


def torch_form(torch, *inputs):
    return program(torch, *inputs)
