"""trisolv: L x = b for a lower triangular L, by forward substitution (Golub and Van Loan, 3.1)."""

import numpy as np

sizes = {"small": 120, "medium": 800, "large": 3000}


def make(size, rng):
    n = sizes[size]
    return np.tril(rng.rand(n, n)) + n * np.eye(n), rng.rand(n)


def numpy_form(lower, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return x


def jax_form(jax, lower, b):
    return jax.scipy.linalg.solve_triangular(lower, b, lower=True)


def torch_form(torch, lower, b):
    return torch.linalg.solve_triangular(lower, b[:, None], upper=False)[:, 0]


def loops(lower, b):
    x = b.copy()
    for i in range(len(b)):
        for j in range(i):
            x[i] -= lower[i, j] * x[j]
        x[i] /= lower[i, i]
    return x
