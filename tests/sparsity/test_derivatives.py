"""Sparse Jacobians and Hessians against dense ones, of pytrees, under transformations."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import config
from weft.errors import DtypeError, ShapeError
from weft.experimental import sparse


def differences(x):
    return x[1:] ** 2 - jnp.sin(x[:-1])


def arrow(x):
    return jnp.concatenate([jnp.sum(x**2)[None], x[1:] * x[0] + x[1:] ** 3])


def rosenbrock(x):
    return jnp.sum((x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


X = jnp.arange(1.0, 7.0)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
@pytest.mark.parametrize("fun", [differences, arrow], ids=["differences", "arrow"])
def test_modes(fun, mode):
    found = weft.sparse_jacobian(fun, mode=mode)(X)
    np.testing.assert_allclose(found.todense(), weft.jit(weft.jacfwd(fun))(X), rtol=1e-6)
    assert found.indices_sorted and found.unique_indices


def test_pytrees_of_arrays_of_several_axes():
    def fun(params, scale):
        return {"a": params["w"] * scale, "b": jnp.sum(params["w"]) + params["v"][0]}

    params = {"w": jnp.arange(3.0), "v": jnp.ones((2, 2))}
    found = weft.sparse_jacobian(fun, (0, 1))(params, 2.0)
    want = weft.jit(weft.jacfwd(fun, (0, 1)))(params, 2.0)
    is_leaf = lambda x: isinstance(x, sparse.BCOO)
    dense = weft.tree.map(lambda x: x.todense(), found, is_leaf=is_leaf)
    assert weft.tree.structure(dense) == weft.tree.structure(want)
    for x, y in zip(weft.tree.leaves(dense), weft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(x, y)


def test_hessians():
    hess = weft.sparse_hessian(rosenbrock)
    for _ in range(2):
        np.testing.assert_allclose(
            hess(X).todense(), weft.jit(weft.hessian(rosenbrock))(X), rtol=1e-5
        )
    assert hess.pattern(X).products == (2, 0)
    two = lambda x, y: jnp.sum(x[1:] * x[:-1] * y**2)
    found, want = (
        weft.sparse_hessian(two, (0, 1))(X, 3.0),
        weft.jit(weft.hessian(two, (0, 1)))(X, 3.0),
    )
    for i in range(2):
        for j in range(2):
            np.testing.assert_allclose(found[i][j].todense(), want[i][j])


@pytest.mark.parametrize("kind, count", [("star", 3), ("acyclic", 2), ("auto", 3)])
def test_colorings_of_hessians(kind, count):
    hess = weft.sparse_hessian(rosenbrock, coloring=kind)
    x = jnp.linspace(-1, 1, 200)
    assert hess.pattern(x).products == (count, 0)
    np.testing.assert_allclose(hess(x).todense(), weft.jit(weft.hessian(rosenbrock))(x), atol=1e-4)
    many = weft.vmap(hess)(jnp.stack([x, x + 1]))
    np.testing.assert_allclose(many.todense()[0], hess(x).todense(), atol=1e-4)


def test_auxiliary_data_and_keywords():
    fun = lambda x, *, power: (x**power, {"sum": jnp.sum(x)})
    found, aux = weft.sparse_jacobian(fun, has_aux=True)(X, power=2.0)
    np.testing.assert_allclose(found.todense(), np.diag(2 * np.asarray(X)))
    assert aux["sum"] == 21.0
    hess, aux = weft.sparse_hessian(lambda x: (jnp.sum(x**3), x[0]), has_aux=True)(X)
    np.testing.assert_allclose(hess.todense(), np.diag(6 * np.asarray(X)))
    assert aux == 1.0


def test_a_function_without_a_forward_derivative_goes_in_reverse():
    fun = weft.custom_vjp(lambda x: 2 * x[::-1])
    fun.defvjp(lambda x: (fun(x), None), lambda _, g: (2 * g[::-1],))
    jac = weft.sparse_jacobian(fun)
    assert jac.pattern(X).products == (0, 1)
    np.testing.assert_array_equal(jac(X).todense(), weft.jacrev(fun)(X))


def test_settings_and_functions_are_static():
    fun = lambda x, how, *, act: act(x[1:]) if how == "short" else act(x)
    jac = weft.sparse_jacobian(fun)
    for how, count in (("short", len(X) - 1), ("long", len(X)), ("short", len(X) - 1)):
        assert jac(X, how, act=jnp.sin).nse == jac.pattern(X, how, act=jnp.sin).nnz == count
    assert jac.pattern(jnp.ones(9), "long", act=jnp.sin).shape == (9, 9)


def test_under_transformations():
    jac = weft.sparse_jacobian(differences)
    want = weft.jit(weft.jacfwd(differences))(X)
    np.testing.assert_allclose(weft.jit(jac)(X).todense(), want, rtol=1e-6)
    pair = jnp.stack([X, 2 * X])
    mapped = weft.vmap(jac)(pair)
    for k in range(2):
        np.testing.assert_allclose(
            mapped.todense()[k], weft.jit(weft.jacfwd(differences))(pair[k]), rtol=1e-6
        )
    loss = lambda x: jnp.sum(jac(x).data ** 2)
    dense = lambda x: jnp.sum(weft.jacfwd(differences)(x) ** 2)
    np.testing.assert_allclose(weft.grad(loss)(X), weft.jit(weft.grad(dense))(X), rtol=1e-5)


def test_the_pattern_is_found_once():
    traced = []

    def fun(x):
        traced.append(None)
        return x**2

    jac = weft.sparse_jacobian(fun)
    jac(X)
    count = len(traced)
    jac(2 * X)
    assert len(traced) == count


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes(dtype):
    with config.scope(enable_x64=True):
        x = jnp.asarray(X, dtype)
        found = weft.sparse_jacobian(lambda x: x * x)(x)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found.todense().astype(float), np.diag(2 * np.arange(1.0, 7)))


def test_empty_and_scalar():
    assert weft.sparse_jacobian(lambda x: x)(jnp.zeros(0)).shape == (0, 0)
    assert weft.sparse_jacobian(lambda x: jnp.ones(3) + 0 * x[:3])(X).shape == (3, 6)
    constant = weft.sparse_jacobian(lambda x: jnp.ones(3))(X)
    assert constant.nse == 0 and constant.shape == (3, 6)
    scalar = weft.sparse_jacobian(lambda x: x**2)(3.0)
    assert scalar.shape == () and scalar.todense() == 6.0


def test_rows():
    found = weft.sparse_jacobian(differences, format="bcsr")(X)
    assert isinstance(found, sparse.BCSR)
    np.testing.assert_allclose(found.todense(), weft.jit(weft.jacfwd(differences))(X), rtol=1e-6)
    with pytest.raises(ShapeError, match=r'format="bcsr" the result and the input must be vectors'):
        weft.sparse_jacobian(lambda x: x, format="bcsr")(jnp.ones((2, 2)))


def test_a_step_of_newton():
    n = 50
    fun = lambda u: jnp.pad(u, 1)[2:] - 2 * u + jnp.pad(u, 1)[:-2] + jnp.exp(u) / (n + 1) ** 2
    jac = weft.sparse_jacobian(fun, format="bcsr")
    u = jnp.zeros(n)
    for _ in range(4):
        m = jac(u)
        u = u - sparse.linalg.spsolve(m.data, m.indices, m.indptr, fun(u))
    assert float(jnp.max(jnp.abs(fun(u)))) < 1e-6


def test_refused():
    with pytest.raises(DtypeError, match=r"inputs must be real and floating-point; got i32\[3\]"):
        weft.sparse_jacobian(lambda x: x)(jnp.arange(3))
    with pytest.raises(DtypeError, match=r"results must be real and floating-point; got i32\[6\]"):
        weft.sparse_jacobian(lambda x: x.astype(int))(X)
    with pytest.raises(ValueError, match="mode must be 'auto', 'forward', .*; got 'fast'"):
        weft.sparse_jacobian(differences, mode="fast")
    with pytest.raises(ValueError, match="format must be 'bcoo' or 'bcsr'; got 'csr'"):
        weft.sparse_hessian(rosenbrock, format="csr")
    with pytest.raises(ValueError, match="sparse_hessian: coloring must be"):
        weft.sparse_hessian(rosenbrock, coloring="cyclic")
    with pytest.raises(TypeError, match="sparse_jacobian: "):
        weft.sparse_jacobian(3)
    with pytest.raises(ShapeError, match="^sparse_hessian: the function must return a scalar"):
        weft.sparse_hessian(differences)(X)
    made = weft.sparse_jacobian(differences)._compute_entries
    assert made.__name__ == "sparse_jacobian(differences)"


@pytest.mark.parametrize(
    ("product", "kept"), [("conv", 1), ("dot", 1), ("dot of an argument", 2), ("scale", 0)]
)
def test_products_of_seeds_and_constants_are_computed_once(product, kept):
    """A program keeps the products of the function; those of seeds are constants of it."""
    r = np.random.default_rng(0)
    window, weights = (r.normal(size=s).astype(np.float32) for s in ((2, 2, 3, 3), (4, 4)))

    def fun(x, w):
        if product == "conv":
            return jnp.tanh(weft.lax.conv(x.reshape(1, 2, 8, 8), window, (1, 1), "SAME")).ravel()
        if product == "scale":
            return jnp.tanh(x * 2)
        return jnp.tanh(x.reshape(-1, 4) @ (weights if product == "dot" else w)).ravel()

    x = jnp.asarray(r.normal(size=128).astype(np.float32))
    jac = weft.jit(weft.sparse_jacobian(fun))
    text = jac.lower(x, weights).as_text()
    assert text.count("stablehlo.convolution") + text.count("stablehlo.dot_general") == kept
    for turn in (1, 2):  # the second call reads the constants of the first
        dense = weft.jit(weft.jacfwd(fun))(turn * x, weights)
        assert np.allclose(jac(turn * x, weights).todense(), dense, atol=1e-6)
    both = weft.vmap(jac, in_axes=(0, None))(jnp.stack([x, -x]), weights)
    assert np.allclose(both.todense()[1], weft.jit(weft.jacfwd(fun))(-x, weights), atol=1e-6)


def test_a_function_is_traced_once_in_all():
    traced = []

    def fun(x):
        traced.append(None)
        return jnp.sum(x[1:] * x[:-1]) ** 2, {"sum": jnp.sum(x), "two": 2.0}

    jac = weft.sparse_hessian(fun, has_aux=True)
    found, aux = jac(X)
    assert len(traced) == 1
    want, _ = weft.hessian(fun, has_aux=True)(X)
    np.testing.assert_allclose(found.todense(), want, rtol=1e-6)
    assert (float(aux["sum"]), float(aux["two"])) == (21.0, 2.0)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_complex_inputs(mode):
    fun = lambda z: z[1:] ** 2 * (1 + 2j) - jnp.exp(z[:-1])
    z = jnp.arange(1.0, 5.0) * (0.3 + 0.2j)
    found = weft.sparse_jacobian(fun, mode=mode, holomorphic=True)(z)
    a = np.asarray(z)
    want = np.zeros((3, 4), complex)
    want[range(3), range(3)] = -np.exp(a[:-1])
    want[range(3), range(1, 4)] = 2 * a[1:] * (1 + 2j)
    np.testing.assert_allclose(found.todense(), want, rtol=1e-5)
    assert found.nse == 6


def test_the_hessian_of_a_complex_function():
    fun = lambda z: jnp.sum(z[1:] ** 2 * z[:-1] * 1j)
    z = jnp.arange(1.0, 4.0) * (0.3 + 0.2j)
    a, b, c = np.asarray(z)
    want = 2j * np.array([[0, b, 0], [b, a, c], [0, c, b]])
    found = weft.sparse_hessian(fun, holomorphic=True)(z)
    np.testing.assert_allclose(found.todense(), want, rtol=1e-5)


def test_dtypes_that_are_refused():
    z, x = jnp.ones(3) * 1j, jnp.ones(3)
    real = r"inputs must be real and .*; got c64\[3\] .* Hint: holomorphic=True if"
    with pytest.raises(DtypeError, match=real):
        weft.sparse_jacobian(lambda z: z)(z)
    with pytest.raises(DtypeError, match=r"inputs must be complex with holomorphic=True; got f32"):
        weft.sparse_jacobian(lambda x: x, holomorphic=True)(x)
    with pytest.raises(DtypeError, match=r"results must be complex with holomorphic=True; got f32"):
        weft.sparse_jacobian(jnp.abs, holomorphic=True)(z)
