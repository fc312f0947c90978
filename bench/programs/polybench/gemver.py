"""gemver: a rank-2 update and two products of a vector with the matrix (updated BLAS, 2002).

A := A + u1 v1' + u2 v2',  x := x + beta A' y + z,  w := alpha A x.
"""

sizes = {"small": 120, "medium": 1000, "large": 3000}


def make(size, rng):
    n = sizes[size]
    return 1.5, 1.2, rng.rand(n, n), *(rng.rand(n) for _ in range(6))


def program(xp, alpha, beta, a, u1, v1, u2, v2, y, z):
    a = a + u1[:, None] * v1 + u2[:, None] * v2
    x = beta * (a.T @ y) + z
    return a, x, alpha * (a @ x)


def torch_form(torch, *inputs):
    return program(torch, *inputs)


def loops(alpha, beta, a, u1, v1, u2, v2, y, z):
    n = len(y)
    a, x, w = a.copy(), z.copy(), 0 * z
    for i in range(n):
        for j in range(n):
            a[i, j] += u1[i] * v1[j] + u2[i] * v2[j]
            x[j] += beta * a[i, j] * y[i]
    for i in range(n):
        for j in range(n):
            w[i] += alpha * a[i, j] * x[j]
    return a, x, w
