"""Operations that a report counts, of programs whose counts books give."""

import numpy as np
import pytest

import weft
from weft import lax
from weft import numpy as jnp

M, N = 120, 80
SQUARE = np.eye(N, dtype=np.float32) + 0.01
TALL = np.ones((M, N), np.float32) + np.eye(M, N, dtype=np.float32)
IMAGES, FILTERS = np.ones((2, 8, 20, 20), np.float32), np.ones((16, 8, 3, 3), np.float32)


def turn(x):
    return lax.fori_loop(0, 5, lambda i, y: jnp.linalg.cholesky(y @ y), x)


# The function, its arguments, and how many floating-point operations it has.
PROGRAMS = {
    "product": (lambda x: x @ x, (SQUARE,), 2 * N**3),
    "convolution": (
        lambda x, w: lax.conv(x, w, (1, 1), "VALID"),
        (IMAGES, FILTERS),
        2 * (2 * 16 * 18 * 18) * (8 * 3 * 3),
    ),
    "cumulative sum": (lambda x: jnp.cumsum(x, axis=1), (np.ones((50, 1000), np.float32),), 50000),
    "maximum": (lambda x: jnp.max(x, axis=1), (np.ones((50, 1000), np.float32),), 50 * 999),
    "cholesky": (jnp.linalg.cholesky, (SQUARE,), N**3 / 3),
    "solve": (lambda x: jnp.linalg.solve(x, x), (SQUARE,), (2 / 3 + 2) * N**3),
    "qr": (jnp.linalg.qr, (TALL,), 2 * (2 * M * N**2 - 2 / 3 * N**3)),
    "eigenvalues": (jnp.linalg.eigvalsh, (SQUARE,), 4 / 3 * N**3),
    "singular values": (lambda x: jnp.linalg.svd(x)[1], (TALL,), 4 * M * N**2 - 4 / 3 * N**3),
    "loop": (turn, (SQUARE,), 5 * (2 + 1 / 3) * N**3),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_counts_of_known_programs(name):
    """Some operations on each element come on top: symmetric parts, checks of failures and NaN."""
    f, args, flops = PROGRAMS[name]
    most = {"maximum": 3.1, "cumulative sum": 1.5}.get(name, 1.2) * flops
    report = weft.explain.compile(f)(*args)
    assert flops <= 1.001 * sum(work.flops for _, work in report.lines) <= most
    assert sum(kernel.flops for kernel in report.kernels) == pytest.approx(
        sum(work.flops for _, work in report.lines)
    )
    if name != "loop":  # XLA counts one iteration, as for a cumulative sum
        found = weft.jit(f).lower(*args).cost_analysis()["flops"]
        assert flops <= 1.001 * found <= most or name == "cumulative sum"
