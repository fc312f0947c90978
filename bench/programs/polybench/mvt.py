"""mvt: x1 := x1 + A y1 and x2 := x2 + A' y2."""

sizes = {"small": 120, "medium": 1000, "large": 3000}


def make(size, rng):
    n = sizes[size]
    return rng.rand(n, n), *(rng.rand(n) for _ in range(4))


def program(xp, a, x1, x2, y1, y2):
    return x1 + a @ y1, x2 + y2 @ a


def torch_form(torch, *inputs):
    return program(torch, *inputs)


def loops(a, x1, x2, y1, y2):
    n = len(x1)
    x1, x2 = x1.copy(), x2.copy()
    for i in range(n):
        for j in range(n):
            x1[i] += a[i, j] * y1[j]
            x2[j] += a[i, j] * y2[i]
    return x1, x2
