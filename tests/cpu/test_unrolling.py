"""cpu/unrolling.py: which programs are compiled with loops that LLVM does not unroll."""

import numpy as np
import pytest
from jaxlib.version import __version__ as jaxlib_version

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS
from weft import lax, nn
from weft.cpu.flags import ROLLED, choose_flags
from weft.cpu.passes import prepare_jaxpr
from weft.cpu.unrolling import runs_rolled

X = jnp.zeros((32, 64))
V = jnp.zeros(512)
W = jnp.zeros((64, 64))
ROWS = jnp.array([1, 4, 2])


def prepare(fun, *args):
    return prepare_jaxpr(weft.make_jaxpr(fun)(*args).jaxpr, NO_KERNELS)


def repeat(step):
    """Return a program that applies `step` ten times."""
    return lambda x: lax.fori_loop(0, 10, lambda i, x: step(x), x)


def polynomial(x, degree=12):
    """Return a polynomial, by two operations for each degree."""
    y = x
    for i in range(degree):
        y = y * x + 0.1 * i
    return y


def train(w):
    """Return the weights after a step of gradient descent on a layer."""
    return w - 0.1 * weft.grad(lambda w: jnp.square(jnp.tanh(X @ w) - 1.0).sum())(w)


def substitute(rows):
    """Return the solution of bidiagonal systems, one for each column."""
    step = lambda above, row: (above * 0.5 + row,) * 2
    return lax.scan(step, jnp.zeros(64), rows)[1]


def divide(rows):
    """Return the solution of tridiagonal systems, one for each column, with its divisions."""

    def step(above, row):
        p, q = above
        scale = 1 / (row * p + 2.5)
        found = -row * scale, (row - row * q) * scale + row * row
        return found, found

    return lax.scan(step, (rows[0], rows[0]), rows)[1]


@pytest.mark.parametrize(
    "fun, x, rolled",
    [
        (polynomial, X, True),  # many operations for one array that is stored
        (lambda x: polynomial(x, 3), X, False),  # few
        (repeat(polynomial), X, True),
        (repeat(lambda x: 0.5 * (x + 2 * x * x)), X, False),
        (repeat(lambda x: polynomial(x).at[ROWS].add(1.0)), X, False),  # a scatter
        (lambda x: polynomial(x)[:2, :4], X[:2, :4], False),  # few elements
        (lambda x: polynomial(x) * polynomial(x[0, :5], 20).sum(), X, False),
        (substitute, X, False),
        (divide, X, True),
        (repeat(train), W, True),  # products, and functions
        (repeat(lambda x: polynomial(x) / jnp.sum(x)), jnp.zeros(1 << 15), False),
        (lambda x: polynomial(x) / jnp.sum(x), V, True),  # a sum beside loops
        (repeat(lambda x: polynomial(x) - x.sum(0)), X, True),  # rows are added up
        (repeat(lambda x: polynomial(x) - x.sum(0)), X.reshape(-1, 4), False),  # short rows
        (lambda x: jnp.exp(polynomial(x)) / x.sum(1)[:, None], jnp.zeros((40, 12)), False),
        (lambda x: polynomial(x) - x.max(1, keepdims=True), X, True),
        (lambda x: polynomial(x) - x.max(1, keepdims=True), X[:, :12], False),  # short rows
        (repeat(lambda x: polynomial(x) - x.max(1, keepdims=True)), X, False),
        (lambda x: polynomial(x) - jnp.cumsum(x, 1), X, False),
        (repeat(lambda x: polynomial(jnp.pad(x[1:-1], 1))), V, False),  # tests of the index
        (lambda x: polynomial(x.astype(jnp.bfloat16)), X, False),
        (lambda x: polynomial(x + 1j), X, False),
    ],
)
def test_programs_are_rolled_if_their_loops_are_long(fun, x, rolled):
    assert runs_rolled(prepare(fun, x)) == rolled


def test_flags_leave_loops_rolled_on_one_device_with_xla_012():
    flags = [choose_flags(prepare(polynomial, X), partitioned) for partitioned in (False, True)]
    older = jaxlib_version.startswith("0.10.")
    assert [ROLLED in f.extra for f in flags] == [not older, False]


@pytest.mark.parametrize("fun", [polynomial, repeat(polynomial), nn.gelu, divide])
def test_rolled_programs_compute_the_same(monkeypatch, fun):
    monkeypatch.setattr("weft.cpu.flags.HAS_OLDER_LOOPS", False)
    x = np.random.RandomState(0).rand(33, 50).astype("f")
    found = []
    for rolled in (False, True):
        monkeypatch.setattr("weft.cpu.flags.runs_rolled", lambda jaxpr, rolled=rolled: rolled)
        weft.clear_caches()
        found.append(weft.jit(fun)(x))
    weft.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), *found)
