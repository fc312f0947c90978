"""Factorizations of padded matrices: the rest is an identity."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.numpy as jnp
import weft.scipy.linalg
import weft.scipy.stats
from weft import lax, tree
from weft.core.aval import ShapedArray
from weft.export.specs import symbolic_shape
from weft.padding.matrices import complete
from weft.padding.sizes import Sizes


def test_matrices_are_completed_by_an_identity():
    (n,) = symbolic_shape("n")
    x = np.full((2, 4, 4), np.nan, np.float32)
    x[:, :3, :3] = 2
    sizes = Sizes({"n": 4}, {"n": np.int32(3)})
    got = np.asarray(complete(x, ShapedArray((2, n, n), np.dtype(np.float32)), sizes))
    want = np.zeros((4, 4))
    want[:3, :3], want[3, 3] = 2, 1
    np.testing.assert_array_equal(got, [want, want])


# Functions of a matrix of two sizes that vary.
OF_TWO_SIZES = {
    "lu": lax.linalg.lu,
    "permutation": weft.scipy.linalg.lu,
    "qr": jnp.linalg.qr,
    "complete qr": lambda x: jnp.linalg.qr(x, mode="complete"),
    "singular values": jnp.linalg.svdvals,
    "rank": jnp.linalg.matrix_rank,
    "toeplitz": lambda x: weft.scipy.linalg.toeplitz(x[:, 0], x[0]),
    "frequencies": lambda x: (jnp.fft.fftfreq(x.shape[0]), jnp.fft.rfftfreq(x.shape[1], 0.1)),
    "errors": weft.scipy.stats.sem,
    "statistics": lambda x: jnp.pad(x, 1, mode="maximum", stat_length=4),
}


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("name", OF_TWO_SIZES)
def test_factors_of_matrices_of_two_sizes(name, shape):
    fun = OF_TWO_SIZES[name]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    got = tree.leaves(weft.jit(fun, sizes="n, m")(x))
    for g, w in zip(got, tree.leaves(fun(x)), strict=True):
        np.testing.assert_allclose(g, w, 1e-4, 1e-5)


FUNCTIONS = {
    "lu": lambda x: lax.linalg.lu(x)[0],
    "qr": lambda x: jnp.abs(jnp.linalg.qr(x)[1]),
    "eigh": lambda x: jnp.abs(jnp.linalg.eigh(x + x.T)[1]),
    "singular values": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "from the right": lambda x: lax.linalg.triangular_solve(
        jnp.tril(x) + 3 * jnp.eye(x.shape[0]), x, left_side=False, lower=True
    ),
    "inverse": lambda x: jnp.linalg.inv(x + 4 * jnp.eye(x.shape[0])),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_factors_of_padded_matrices(name):
    fun, rng = FUNCTIONS[name], np.random.default_rng(0)
    jitted = weft.jit(fun, sizes="n, n")
    programs = set()
    for n in (5, 2):
        x = rng.normal(size=(n, n)).astype(np.float32)
        np.testing.assert_allclose(jitted(x), fun(x), 1e-3, 1e-4)
        programs.add(jitted.padded_jaxpr(x))
    assert len(programs) == 1


VECTORS = {
    "polar": lambda x: (lambda u, s, v: u @ v)(*jnp.linalg.svd(x)),
    "pinv": lambda x: jnp.linalg.pinv(x[:, :-1] @ x[:-1]),  # singular
    "low rank": lambda x: (lambda u, s, v: (u[:, :1] * s[:1]) @ v[:1])(*jnp.linalg.svd(x)),
    "values": lambda x: jnp.linalg.svd(x)[1],
    "derivative": weft.grad(lambda x: jnp.sin(jnp.linalg.svd(x)[0] @ jnp.linalg.svd(x)[2]).sum()),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", VECTORS)
def test_singular_vectors_of_square_matrices(name):
    fun, rng = VECTORS[name], np.random.default_rng(0)
    jitted = weft.jit(fun, sizes="n, n")
    for n in (5, 2, 8):
        x = rng.normal(size=(n, n)).astype(np.float32)
        np.testing.assert_allclose(jitted(x), fun(jnp.asarray(x)), 1e-3, 1e-4)


def test_singular_vectors_of_zeros_are_orthogonal():
    """Vectors for the value 0 may be any, but none of them reaches into the padding."""
    u, s, v = weft.jit(lambda x: jnp.linalg.svd(x), sizes="n, n")(np.ones((6, 6), np.float32))
    np.testing.assert_allclose(s, [6, 0, 0, 0, 0, 0], atol=1e-5)
    for q in (u, v):
        np.testing.assert_allclose(q.T @ q, np.eye(6), atol=1e-5)
    np.testing.assert_allclose((u * s) @ v, np.ones((6, 6)), atol=1e-5)


def test_places_on_a_long_diagonal():
    """Places are quotients by a size; XLA computes them by its reciprocal, which was too small."""
    place = weft.jit(weft.grad(lambda x: jnp.diagonal(x).sum()), sizes="n, n")
    for n in (195, 248):
        np.testing.assert_array_equal(place(np.zeros((n, n), np.float32)), np.eye(n))
