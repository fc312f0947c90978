"""2mm: D := alpha A B C + beta D, two products of matrices."""

sizes = {"small": 96, "medium": 400, "large": 1000}


def make(size, rng):
    n = sizes[size]
    a, b, c = rng.rand(n, n + 10), rng.rand(n + 10, n - 10), rng.rand(n - 10, n + 20)
    return 1.5, 1.2, a, b, c, rng.rand(n, n + 20)


def program(xp, alpha, beta, a, b, c, d):
    return alpha * a @ b @ c + beta * d


def torch_form(torch, *inputs):
    return program(torch, *inputs)
