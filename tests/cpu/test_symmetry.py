"""Symmetric products by half of the operations, against NumPy in float64; products known before."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, NO_KERNELS, OVER_MESH, show_prepared
from tests.cpu.test_kernel_factors import OF_DTYPES, call
from weft import lax
from weft.cpu import kernels
from weft.cpu import products as cpu_products
from weft.options import config

NATIVE = pytest.mark.skipif(bool(kernels.load_kernels()), reason="the kernels are not built")
N, K = 70, 90
# Symmetric products of x [K, N], in forms that programs have.
SYMMETRIC = {
    "x.T @ x": lambda x, w: x.T @ x,
    "x @ x.T": lambda x, w: x.T @ (x.T).T,
    "einsum": lambda x, w: jnp.einsum("ki,kj->ij", x, x),
    "of transposed": lambda x, w: jnp.einsum("ik,jk->ij", x.T, x.T),
    "times a number": lambda x, w: 1.5 * x.T @ x,
    "times a scalar": lambda x, w: x.T @ (w[0] * x),
    "over a number": lambda x, w: (x / 3).T @ x,
    "both scaled": lambda x, w: (x / 3).T @ (2 * x),
    "weights of terms": lambda x, w: (x.T * w) @ x,
    "weights of terms, right": lambda x, w: x.T @ (w[:, None] * x),
    "computed twice": lambda x, w: (x - x.mean(0)).T @ (x - x.mean(0)),
    "cov": lambda x, w: jnp.cov(x, rowvar=False),
    "batch": lambda x, w: weft.vmap(lambda s: (s * x).T @ (s * x))(w[:3]),
    "batch, not first": lambda x, w: jnp.einsum("kbi,kbj->bij", *[x[:, None] * w[:3, None]] * 2),
    "several axes": lambda x, w: jnp.einsum("abi,abj->ij", *[x.reshape(9, 10, N)] * 2),
    "in a loop": lambda x, w: lax.scan(lambda c, _: (c + x.T @ x, None), x[:N] * 0, None, 2)[0],
}  # fmt: skip
# Products that are not symmetric.
OTHERS = {
    "weights of rows": lambda x, w: (w[:N] * x).T @ x,
    "weights of elements": lambda x, w: (jnp.sin(x) * x).T @ x,
    "the number over x": lambda x, w: (3 / x).T @ x,
    "other values": lambda x, w: (x + 1).T @ x,
    "not transposed": lambda x, w: x[:N] @ x[:N],
    "exchanged terms": lambda x, w: jnp.einsum("abi,baj->ij", *[x[:81].reshape(9, 9, N)] * 2),
    "exchanged batch": lambda x, w: jnp.einsum("abk,bak->abk", *[x[:N, :, None] * w[:80]] * 2)[0],
}


@pytest.fixture
def least_loop(monkeypatch):
    monkeypatch.setattr(cpu_products, "MIN_LOOP_WORK", 0)


def draw(dtype, *shapes):
    rng = np.random.default_rng(3)
    return [rng.normal(size=s).astype(dtype) for s in shapes]


@NATIVE
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_products(name, dtype, least_loop):
    fun, operands = SYMMETRIC[name], draw(dtype, (K, N), K)
    with config.scope(enable_x64=True, native=True):
        assert "weft_dot_symmetric" in show_prepared(fun, *operands)
        for target in (NO_KERNELS, OVER_MESH):
            assert "cpu_call" not in show_prepared(fun, *operands, target=target)
        found = np.asarray(weft.jit(fun)(*operands))
        with config.scope(native=False):
            wanted = weft.jit(lambda x, w: fun(x, w))(*[x.astype(float) for x in operands])
    np.testing.assert_array_equal(found, found.swapaxes(-1, -2))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(found, wanted, rtol=0, atol=20 * eps * np.abs(wanted).max())


@pytest.mark.parametrize("name", OTHERS)
def test_other_products_are_not_taken_for_symmetric(name):
    fun, operands = OTHERS[name], draw("float32", (K, N), K)
    assert "symmetric" not in show_prepared(fun, *operands)
    with config.scope(native=True, enable_x64=True):
        np.testing.assert_allclose(weft.jit(fun)(*operands), fun(*operands), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("n", "k", "called"),
    [
        (64, 64, True),
        (63, 80, False),
        (64, 47, False),
        (300, 48, True),
        (1200, 1400, True),
        (70, 0, False),
        (0, 70, False),
    ],
)
def test_sizes_of_symmetric_products(n, k, called):
    for dtype in ("float32", "float64", "float16", "complex64", "int32"):
        with config.scope(enable_x64=True):
            x = weft.ShapeDtypeStruct((k, n), dtype)
            text = show_prepared(lambda x: x.T @ x, x)
        assert ("symmetric" in text) == (called and dtype in ("float32", "float64")), dtype


def test_sizes_of_symmetric_products_in_loops():
    """XLA pays the fixed cost of its product once for a loop."""
    loop = lambda x: lax.fori_loop(0, 3, lambda _, y: y.T @ y, x)
    for n, called in ((100, False), (200, True)):
        text = show_prepared(loop, weft.ShapeDtypeStruct((n, n), "f4"))
        assert ("symmetric" in text) == called


@NATIVE
def test_transformations_of_symmetric_products():
    x, w = draw("float64", (K, N), K)
    weights = draw("float64", (N, N))[0]
    fun = lambda x: ((x.T * w) @ x * weights).sum()
    with config.scope(enable_x64=True, native=True):
        gradient = weft.jit(weft.grad(fun))(x)
        np.testing.assert_allclose(
            gradient, w[:, None] * x @ (weights + weights.T), rtol=1e-10, atol=1e-10
        )
        _, tangent = weft.jit(lambda x, t: weft.jvp(lambda x: x.T @ x, (x,), (t,)))(x, 2 * x)
        np.testing.assert_allclose(tangent, 4 * x.T @ x, rtol=1e-10, atol=1e-10)
        many = weft.jit(weft.vmap(lambda x: x @ x.T, in_axes=2))(np.stack([x, -x, x], 2))
        np.testing.assert_allclose(many, [x @ x.T] * 3, rtol=1e-10, atol=1e-10)
    with config.scope(enable_x64=False, native=True):
        half = weft.jit(lambda x: x.T @ x)(x)
        assert half.dtype == np.float32
        np.testing.assert_allclose(half, x.T @ x, rtol=1e-4, atol=1e-4)


@NATIVE
@OF_DTYPES
def test_the_kernel_computes_one_half(dtype):
    """Sizes around those of tiles, panels, parts and chunks, for two operands."""
    rng = np.random.default_rng(4)
    sizes = [
        (1, 1),
        (6, 7),
        (17, 300),
        (33, 5),
        (50, 3000),
        (64, 64),
        (97, 49),
        (130, 520),
        (301, 610),
        (420, 100),
    ]
    for n, k in sizes:
        for batch in [(), (3,)] if n < 200 else [()]:
            x, w = rng.normal(size=(*batch, n, k)).astype(dtype), rng.uniform(0.5, 2, k)
            y = (x * w).astype(dtype)
            wanted = (x.astype(float) * w) @ np.swapaxes(x, -1, -2)
            for left, right in np.ndindex(2, 2):
                operands = [
                    np.ascontiguousarray(np.swapaxes(a, -1, -2) if t else a)
                    for a, t in ((y, left), (x, not right))
                ]
                how = {"left_turned": bool(left), "right_turned": bool(right), "extras": ""}
                (z,) = call("weft_dot_symmetric", operands, [(wanted.shape, dtype)], **how)
                np.testing.assert_array_equal(z, np.swapaxes(z, -1, -2))
                np.testing.assert_allclose(z, wanted, rtol=0, atol=16 * np.finfo(dtype).eps * k)


@NATIVE
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_symmetric_products_of_special_values(value):
    for n, k in ((80, 90), (130, 1500)):
        (x,) = draw("float32", (k, n))
        x[5, 7] = value
        with config.scope(native=True):
            found = np.asarray(weft.jit(lambda x: x.T @ x)(x))
        np.testing.assert_array_equal(found, found.T)
        wanted = x.T.astype(float) @ x
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))


@NATIVE
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [(100, 200), (100, 20000), (300, 1000)])
def test_errors_of_sums_are_no_larger_than_those_of_xla(size, dtype):
    n, k = size
    x = np.abs(draw("float32", (k, n))[0]).astype(dtype)
    exact = x.astype(np.longdouble).T[:20] @ x.astype(np.longdouble)
    errors = []
    for native in (True, False):
        with config.scope(enable_x64=True, native=native):
            found = weft.jit(lambda x: x.T @ x)(x)
        errors.append(np.sqrt(np.mean(np.square(np.asarray(found)[:20] / exact - 1))))
    assert errors[0] <= 1.1 * errors[1] + np.finfo(dtype).eps / 2, errors


# Pairs of products of a, b [N, K], of which one is the transpose of the other.
PAIRS = {
    "rows": lambda a, b: (a @ b.T, b @ a.T),
    "columns": lambda a, b: (a.T @ b, b.T @ a),
    "einsum": lambda a, b: (jnp.einsum("ik,jk->ij", a, b), jnp.einsum("ik,jk->ij", b, a)),
    "other sizes": lambda a, b: [(a @ c.T, c @ a.T) for c in [b[:65]]][0],
    "batch": lambda a, b: [
        (jnp.einsum("bik,bjk->bij", a, b), jnp.einsum("bjk,bik->bji", b, a))
        for a, b in [(jnp.stack([a, b]), jnp.stack([b, b]))]
    ][0],
    "in a loop": lambda a, b: lax.scan(
        lambda c, _: ((c[0] + a @ b.T, c[1] + b @ a.T), None), (a[:, :N] * 0,) * 2, None, 2
    )[0],
}  # fmt: skip
NO_PAIRS = {
    "other values": lambda a, b: (a @ b.T, b @ (a + 1).T),
    "the same": lambda a, b: (a @ b.T, a @ b.T),
    "little work": lambda a, b: (a[:, :40] @ b[:, :40].T, b[:, :40] @ a[:, :40].T),
    "another dtype": lambda a, b: (a @ b.T, jnp.matmul(b, a.T, preferred_element_type="float64")),
}


@pytest.mark.parametrize("name", [*PAIRS, *NO_PAIRS])
def test_the_transpose_of_a_product_is_not_multiplied_again(name):
    fun = {**PAIRS, **NO_PAIRS}[name]
    a, b = draw("float32", (N, 120), (N, 120))
    with config.scope(enable_x64=True, native=True):
        count = show_prepared(fun, a, b, target=NO_KERNELS).count("dot_general")
        assert count == 2 - (name in PAIRS)
        assert show_prepared(fun, a, b, target=OVER_MESH).count("dot_general") == 2
        for target in (KERNELS, NO_KERNELS):
            with config.scope(native=target.native):
                found = weft.jit(lambda a, b: fun(a, b))(a, b)
            wanted = fun(a.astype(float), b.astype(float))
            for x, y in zip(found, wanted, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-3)


def test_the_sum_of_a_product_and_its_transpose_is_symmetric():
    a, b = draw("float64", (200, 150), (200, 150))
    with config.scope(enable_x64=True):
        found = np.asarray(weft.jit(lambda a, b: a @ b.T + b @ a.T)(a, b))
        gradient = weft.jit(weft.grad(lambda a: (a @ b.T + b @ a.T)[3].sum()))(a)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, a @ b.T + b @ a.T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gradient[4], b[3], rtol=1e-10)
