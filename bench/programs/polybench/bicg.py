"""bicg: s := A' r and q := A p, the two products of a step of the biconjugate gradient method."""

sizes = {"small": 120, "medium": 1000, "large": 3000}


def make(size, rng):
    n = sizes[size]
    return rng.rand(n + 20, n), rng.rand(n), rng.rand(n + 20)


def program(xp, a, p, r):
    return r @ a, a @ p


def torch_form(torch, *inputs):
    return program(torch, *inputs)


def loops(a, p, r):
    m, n = a.shape
    s, q = 0 * p, 0 * r
    for i in range(m):
        total = 0.0
        for j in range(n):
            s[j] += r[i] * a[i, j]
            total += a[i, j] * p[j]
        q[i] = total
    return s, q
