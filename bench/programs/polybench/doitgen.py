"""doitgen: A[r, q, p] := sum over s of A[r, q, s] C[s, p] (multiresolution analysis, MADNESS)."""

sizes = {"small": (20, 24, 28), "medium": (60, 64, 80), "large": (150, 140, 160)}


def make(size, rng):
    r, q, p = sizes[size]
    return rng.rand(r, q, p), rng.rand(p, p)


def program(xp, a, c):
    return xp.einsum("rqs,sp->rqp", a, c)


def torch_form(torch, *inputs):
    return program(torch, *inputs)
