"""adi: heat on a square by alternating directions (Peaceman and Rachford, J. SIAM 3, 1955).

Each half of a step solves a tridiagonal system along one axis, for all lines of the other at once.
"""

import numpy as np

sizes = {"small": (40, 6), "medium": (200, 20), "large": (600, 40)}


def make(size, rng):
    n, steps = sizes[size]
    return rng.rand(n, n), steps


def coefficients(n, steps):
    """The off-diagonal and diagonal of the implicit axis, and the off-diagonal of the other."""
    first, second = 2.0 * n * n / steps, 1.0 * n * n / steps
    return -first / 2, 1 + first, -second / 2, 1 + second


def numpy_form(u, steps):
    n = len(u)
    a, b, d, e = coefficients(n, steps)

    def solve(u, low, mid, other):
        """Solve along the first axis; the second one is explicit."""
        right = -other * u[:, :-2] + (1 + 2 * other) * u[:, 1:-1] - other * u[:, 2:]
        v = np.ones_like(u)
        v[:, 0] = v[:, -1] = 1.0
        p, q = np.zeros(n), np.ones((n, n - 2))
        for j in range(1, n - 1):
            p[j] = -low / (low * p[j - 1] + mid)
            q[j] = (right[j] - low * q[j - 1]) / (low * p[j - 1] + mid)
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[j] * v[j + 1, 1:-1] + q[j]
        return v

    for _ in range(steps):
        v = solve(u, a, b, d)
        u = solve(v.T, d, e, a).T
    return u


def jax_form(jax, u, steps):
    jnp, lax = jax.numpy, jax.lax
    a, b, d, e = coefficients(len(u), steps)

    def solve(u, low, mid, other):
        right = -other * u[:, :-2] + (1 + 2 * other) * u[:, 1:-1] - other * u[:, 2:]

        def down(state, row):
            p, q = state
            scale = 1 / (low * p + mid)
            found = -low * scale, (row - low * q) * scale
            return found, found

        def up(above, pq):
            row = pq[0] * above + pq[1]
            return row, row

        line = jnp.ones_like(right[0])
        _, pq = lax.scan(down, (jnp.zeros_like(line[0]), line), right[1:-1])
        _, rows = lax.scan(up, line, pq, reverse=True)
        return jnp.ones_like(u).at[1:-1, 1:-1].set(rows)

    return lax.fori_loop(0, steps, lambda _, u: solve(solve(u, a, b, d).T, d, e, a).T, u)


def loops(u, steps):
    n = len(u)
    first, second = 2.0 * n * n / steps, 1.0 * n * n / steps
    u, v = u.copy(), np.ones_like(u)
    p, q = np.zeros_like(u), np.ones_like(u)
    for _ in range(steps):
        low, mid, other = -first / 2, 1 + first, -second / 2
        for i in range(1, n - 1):
            p[i, 0], q[i, 0] = 0.0, 1.0
            for j in range(1, n - 1):
                right = -other * (u[j, i - 1] + u[j, i + 1]) + (1 + 2 * other) * u[j, i]
                scale = 1 / (low * p[i, j - 1] + mid)
                p[i, j], q[i, j] = -low * scale, (right - low * q[i, j - 1]) * scale
            v[0, i] = v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        low, mid, other = -second / 2, 1 + second, -first / 2
        u[:] = 1.0
        for i in range(1, n - 1):
            p[i, 0], q[i, 0] = 0.0, 1.0
            for j in range(1, n - 1):
                right = -other * (v[i - 1, j] + v[i + 1, j]) + (1 + 2 * other) * v[i, j]
                scale = 1 / (low * p[i, j - 1] + mid)
                p[i, j], q[i, j] = -low * scale, (right - low * q[i, j - 1]) * scale
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]
    return u
