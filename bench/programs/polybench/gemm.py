"""gemm: C := alpha A B + beta C (BLAS level 3; Dongarra et al., 1990)."""

sizes = {"small": 96, "medium": 400, "large": 1200}


def make(size, rng):
    n = sizes[size]
    return 1.5, 1.2, rng.rand(n, n + 8), rng.rand(n, n - 8), rng.rand(n - 8, n + 8)


def program(xp, alpha, beta, c, a, b):
    return alpha * a @ b + beta * c


def torch_form(torch, *inputs):
    return program(torch, *inputs)
