"""Operations that a report counts, of programs whose counts books give."""

import numpy as np
import pytest

import weft
from weft import lax
from weft import numpy as jnp

M, N = 120, 80
SQUARE = np.eye(N, dtype=np.float32) + 0.01
TALL = np.ones((M, N), np.float32) + np.eye(M, N, dtype=np.float32)
SMALL = np.tile(4 * np.eye(4, dtype=np.float32) + 0.5, (60, 1, 1))
COMPLEX = np.tile(4 * np.eye(20, dtype=np.complex64) + 0.5, (5, 1, 1))
IMAGES, FILTERS = np.ones((2, 8, 20, 20), np.float32), np.ones((16, 8, 3, 3), np.float32)


SIGNALS = np.ones((7, 64), np.complex64)


def turn(x):
    return lax.fori_loop(0, 5, lambda i, y: jnp.linalg.cholesky(y @ y), x)


WIDE = np.swapaxes(TALL, 0, 1).copy()
SIDES = np.ones((N, 7), np.float32)
REFLECTORS = 2 * M * N**2 - 2 / 3 * N**3  # of a matrix of M x N, or of its transpose


def columns_of_q(m, n, t):
    """The count of LAPACK's working note 41 for n columns of Q, made of t reflectors."""
    return 4 * m * n * t - 2 * (m + n) * t**2 + 4 / 3 * t**3


def solve_triangular(**options):
    return lambda a, b: lax.linalg.triangular_solve(a, b, **options)


# The function, its arguments, and how many floating-point operations it has.
PROGRAMS = {
    "product": (lambda x: x @ x, (SQUARE,), 2 * N**3),
    "convolution": (
        lambda x, w: lax.conv(x, w, (1, 1), "VALID"),
        (IMAGES, FILTERS),
        2 * (2 * 16 * 18 * 18) * (8 * 3 * 3),
    ),
    "gradient of a convolution": (
        weft.grad(lambda w, x: jnp.sum(lax.conv(x, w, (1, 1), "VALID"))),
        (FILTERS, IMAGES),
        2 * (2 * 16 * 18 * 18) * (8 * 3 * 3),
    ),
    "complex product": (lambda x: x @ x, (COMPLEX,), 5 * 8 * 20**3),
    "complex pseudo-inverse": (jnp.linalg.pinv, (COMPLEX[0],), 4 * (14 + 8 + 2) * 20**3),
    "fft": (jnp.fft.fft, (SIGNALS,), 7 * 5 * 64 * 6),
    "real fft": (jnp.fft.rfft, (SIGNALS.real,), 7 * 5 * 64 * 6 / 2),
    "inverse real fft": (jnp.fft.irfft, (SIGNALS,), 7 * 5 * 126 * np.log2(126) / 2),
    "fft of two axes": (jnp.fft.fft2, (SIGNALS,), 5 * 7 * 64 * np.log2(7 * 64)),
    "cumulative sum": (lambda x: jnp.cumsum(x, axis=1), (np.ones((50, 1000), np.float32),), 50000),
    "maximum": (lambda x: jnp.max(x, axis=1), (np.ones((50, 1000), np.float32),), 50 * 999),
    "cholesky": (jnp.linalg.cholesky, (SQUARE,), N**3 / 3),
    "solve": (lambda x: jnp.linalg.solve(x, x), (SQUARE,), (2 / 3 + 2) * N**3),
    "qr": (jnp.linalg.qr, (TALL,), 2 * (2 * M * N**2 - 2 / 3 * N**3)),
    "eigenvalues": (jnp.linalg.eigvalsh, (SQUARE,), 4 / 3 * N**3),
    "singular values": (lambda x: jnp.linalg.svd(x)[1], (TALL,), 4 * M * N**2 - 4 / 3 * N**3),
    "loop": (turn, (SQUARE,), 5 * (2 + 1 / 3) * N**3),
    "small cholesky": (jnp.linalg.cholesky, (SMALL,), 60 * 4**3 / 3),
    "small lu": (lax.linalg.lu, (SMALL,), 60 * 2 / 3 * 4**3),
    "small solve": (jnp.linalg.solve, (SMALL, SMALL), 60 * (2 / 3 + 2) * 4**3),
    "complex eigenvectors": (jnp.linalg.eigh, (COMPLEX,), 5 * 4 * 9 * 20**3),
    "complex cholesky": (jnp.linalg.cholesky, (COMPLEX,), 5 * 4 * 20**3 / 3),
    "complex qr": (jnp.linalg.qr, (COMPLEX,), 5 * 4 * 2 * 4 / 3 * 20**3),
    "R alone": (lambda x: jnp.linalg.qr(x, mode="r"), (TALL,), REFLECTORS),
    "R of both": (lambda x: jnp.linalg.qr(x)[1], (TALL,), REFLECTORS),
    "wide R": (lambda x: jnp.linalg.qr(x, mode="r"), (WIDE,), REFLECTORS),
    "complex R": (lambda x: jnp.linalg.qr(x, mode="r"), (COMPLEX,), 5 * 4 * 4 / 3 * 20**3),
    "raw qr": (lambda x: jnp.linalg.qr(x, mode="raw"), (TALL,), REFLECTORS),
    "complete qr": (
        lambda x: jnp.linalg.qr(x, mode="complete"),
        (TALL,),
        REFLECTORS + columns_of_q(M, M, N),
    ),
    "wide qr": (jnp.linalg.qr, (WIDE,), REFLECTORS + columns_of_q(N, N, N)),
    "tall lu": (lax.linalg.lu, (TALL,), M * N**2 - N**3 / 3),
    "wide lu": (lax.linalg.lu, (WIDE,), M * N**2 - N**3 / 3),
    "determinant": (jnp.linalg.det, (SQUARE,), 2 / 3 * N**3),
    "inverse": (jnp.linalg.inv, (SQUARE,), 8 / 3 * N**3),
    "few sides": (jnp.linalg.solve, (SQUARE, SIDES), 2 / 3 * N**3 + 2 * 7 * N**2),
    "lower": (solve_triangular(left_side=True, lower=True), (SQUARE, SIDES), 7 * N**2),
    "transposed": (solve_triangular(left_side=True, transpose_a=True), (SQUARE, SIDES), 7 * N**2),
    "right": (solve_triangular(lower=True), (SQUARE, SIDES.T), 7 * N**2),
    "unit": (solve_triangular(left_side=True, unit_diagonal=True), (SQUARE, SIDES), 7 * N**2),
    "upper eigenvectors": (lambda x: jnp.linalg.eigh(x, UPLO="U"), (SQUARE,), 9 * N**3),
    "any eigenvectors": (jnp.linalg.eig, (SQUARE,), 25 * N**3),
    "any eigenvalues": (jnp.linalg.eigvals, (SQUARE,), 10 * N**3),
    "thin svd": (
        lambda x: jnp.linalg.svd(x, full_matrices=False),
        (WIDE,),
        14 * M * N**2 + 8 * N**3,
    ),
    "full svd": (jnp.linalg.svd, (TALL,), 14 * M * N**2 + 8 * N**3),
}
# What reports count of a program at most, as a multiple of the figure above. Of small matrices, the
# symmetric part, the search for pivots and the checks are more work than the factors. For a
# running sum, XLA counts one iteration.
MOST = {"maximum": 3.1, "cumulative sum": 1.5, "small cholesky": 7, "small lu": 4.5}
MOST |= {"small solve": 6.2, "complex cholesky": 1.7}


@pytest.mark.parametrize("name", PROGRAMS)
def test_counts_of_known_programs(name):
    """Some operations on each element come on top: symmetric parts, checks of failures and NaN."""
    f, args, flops = PROGRAMS[name]
    most = MOST.get(name, 1.2) * flops
    report = weft.explain.compile(f)(*args)
    assert flops <= 1.001 * sum(work.flops for _, work in report.lines) <= most
    assert sum(kernel.flops for kernel in report.kernels) == pytest.approx(
        sum(work.flops for _, work in report.lines)
    )
    if name != "loop":  # XLA counts one iteration
        found = weft.jit(f).lower(*args).cost_analysis()["flops"]
        assert flops <= 1.001 * found <= most or name == "cumulative sum"
