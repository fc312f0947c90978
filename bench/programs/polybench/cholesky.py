"""cholesky: A = L L' for a positive definite A (Golub and Van Loan, section 4.2)."""

import numpy as np

sizes = {"small": 80, "medium": 400, "large": 1500}


def make(size, rng):
    n = sizes[size]
    a = rng.rand(n, n)
    return (a @ a.T + n * np.eye(n),)


def program(xp, a):
    return xp.linalg.cholesky(a)


def torch_form(torch, a):
    return torch.linalg.cholesky(a)


def loops(a):
    n = len(a)
    lower = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = np.sqrt(total) if i == j else total / lower[j, j]
    return lower
