"""Products of one matrix by rows and by columns as one call, against NumPy in float64."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, NO_KERNELS, show_prepared
from weft import lax
from weft.cpu import kernels, pairs
from weft.options import config

M, K = 700, 613


def both_later(a, x, y):
    """The second vector is computed after the first product, but not from it."""
    first = a @ x
    return jnp.tanh(y) @ a, first


def both_read(a, x, y):
    """Neither call could stand for both, as one vector is computed from the other product."""
    first = a @ x
    return (first * y) @ a, first


# A program of a [M, K], x [K] and y [M], the calls of the pair and of single products.
PROGRAMS = {
    "least squares": (lambda a, x, y: (a.T @ (a @ x),), 1, 0),
    "least squares, both": (lambda a, x, y: (a.T @ (first := a @ x), first), 1, 0),
    "two vectors": (lambda a, x, y: (a @ x, y @ a), 1, 0),
    "by columns first": (lambda a, x, y: (y @ a, a @ x), 1, 0),
    "computed between": (both_later, 1, 0),
    "a product between": (both_read, 0, 2),
    "by columns, then by rows": (lambda a, x, y: (a @ (y @ a),), 0, 2),
    "two pairs": (lambda a, x, y: (a @ x, y @ a, a @ -x, -y @ a), 2, 0),
    "three": (lambda a, x, y: (a @ x, y @ a, -y @ a), 1, 1),
    "two matrices": (lambda a, x, y: (a @ x, y @ -a), 0, 2),
    "matrices of one column": (lambda a, x, y: (a @ x[:, None], y[None] @ a), 0, 2),
    "in a loop": (
        lambda a, x, y: lax.fori_loop(0, 2, lambda _, c: (a.T @ c[1] / M, a @ c[0] / K), (x, y)),
        1,
        0,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_which_products_are_one_call(name):
    program, wanted, single = PROGRAMS[name]
    a, x, y = (weft.ShapeDtypeStruct(s, "f4") for s in ((M, K), (K,), (M,)))
    text = show_prepared(program, a, x, y)
    found = text.count("kernel=weft_matvec_pair")
    assert (found, text.count("kernel=weft_matvec") - found) == (wanted, single), text
    for target in (NO_KERNELS, KERNELS._replace(located=True)):
        assert "weft_matvec_pair" not in show_prepared(program, a, x, y, target=target)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [(M, K), (512, 1), (1, 513), (13, 520), (2000, 67)])
def test_pairs_are_right(size, dtype, rng):
    m, k = size
    a, x, y = (rng.normal(size=s).astype(dtype) for s in ((m, k), k, m))
    wide = a.astype(np.float64)
    wants = wide @ x, y @ wide, wide.T @ (wide @ x)
    with config.scope(enable_x64=True, native=True):
        two = weft.jit(lambda a, x, y: (a @ x, y @ a))(a, x, y)
        (chained,) = weft.jit(PROGRAMS["least squares"][0])(a, x, y)
    for got, want in zip((*two, chained), wants, strict=True):
        scale = np.abs(wide).sum() * (1e-6 if dtype == np.float32 else 1e-14)
        np.testing.assert_allclose(got, want, atol=scale)


def test_the_same_numbers_whatever_the_threads(rng):
    if kernels.load_kernels():
        pytest.skip("needs the kernels")
    a, x = rng.normal(size=(3000, 500)).astype("f"), rng.normal(size=500).astype("f")
    with config.scope(native=True):
        run = weft.jit(lambda a, x: a.T @ (a @ x))
        first = np.asarray(run(a, x))
        assert all((np.asarray(run(a, x)) == first).all() for _ in range(20))


def test_rows_that_leave_the_cache_are_read_twice():
    long = pairs.MAX_ROW + 1
    a, x, y = (weft.ShapeDtypeStruct(s, "f4") for s in ((600, long), (long,), (600,)))
    assert "weft_matvec_pair" not in show_prepared(PROGRAMS["two vectors"][0], a, x, y)
