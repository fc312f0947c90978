"""gesummv: y := alpha A x + beta B x, a sum of two products of a matrix and a vector."""

sizes = {"small": 120, "medium": 1000, "large": 3000}


def make(size, rng):
    n = sizes[size]
    return 1.5, 1.2, rng.rand(n, n), rng.rand(n, n), rng.rand(n)


def program(xp, alpha, beta, a, b, x):
    return alpha * (a @ x) + beta * (b @ x)


def torch_form(torch, *inputs):
    return program(torch, *inputs)


def loops(alpha, beta, a, b, x):
    y = 0 * x
    for i in range(len(x)):
        left = right = 0.0
        for j in range(len(x)):
            left += a[i, j] * x[j]
            right += b[i, j] * x[j]
        y[i] = alpha * left + beta * right
    return y
