"""Activations against their formulas in float64; derivatives, also where pieces meet; dtypes."""

import numpy as np
import pytest
import scipy.special

import weft.numpy as jnp
from weft import enable_x64, grad, jit, jvp, nn, vmap
from weft.errors import DtypeError, ShapeError

X = np.array([-50.0, -6.0, -2.5, -1.0, -1e-4, 0.0, 1e-4, 0.5, 1.0, 2.5, 6.0, 50.0])
expit, softplus = scipy.special.expit, lambda x: np.logaddexp(x, 0)
SELU = (1.0507009873554805, 1.6732632423543772)
TANH_GELU = lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

FORMULAS = {
    "identity": lambda x: x,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "sigmoid": expit,
    "softplus": softplus,
    "log_sigmoid": lambda x: -softplus(-x),
    "silu": lambda x: x * expit(x),
    "swish": lambda x: x * expit(x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: SELU[0] * np.where(x > 0, x, SELU[1] * np.expm1(np.minimum(x, 0))),
    "gelu": TANH_GELU,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "sparse_plus": lambda x: np.where(x >= 1, x, np.where(x <= -1, 0, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip(x + 1, 0, 2) / 2,
}
# What a derivative is where the pieces meet, as JAX has it.
AT = {
    "relu": {0.0: 0.0},
    "relu6": {0.0: 0.0, 6.0: 0.0},
    "leaky_relu": {0.0: 1.0},
    "elu": {0.0: 1.0},
    "celu": {0.0: 1.0},
    "hard_tanh": {-1.0: 1.0, 1.0: 1.0},
    "hard_sigmoid": {-3.0: 0.0, 3.0: 0.0},
    "sparse_plus": {-1.0: 0.0, 1.0: 1.0},
}


@pytest.mark.parametrize("name", FORMULAS)
def test_values(name):
    for dtype, tol in ((np.float32, 2e-6), (np.float64, 1e-14)):
        with enable_x64(dtype is np.float64):
            got = getattr(nn, name)(X.astype(dtype))
            assert got.dtype == dtype
            np.testing.assert_allclose(got, FORMULAS[name](X), rtol=tol, atol=tol)


COMPLEX = {
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "softplus": lambda z: np.log(1 + np.exp(z)),
    "log_sigmoid": lambda z: -np.log(1 + np.exp(-z)),
    "silu": lambda z: z / (1 + np.exp(-z)),
    "mish": lambda z: z * np.tanh(np.log(1 + np.exp(z))),
    **{name: FORMULAS[name] for name in ("identity", "tanh", "gelu", "squareplus")},
}


def test_complex_values():
    rng = np.random.default_rng(0)
    real, imag = rng.normal(size=(2, 500)) * 2.0 ** rng.uniform(-3, 2, (2, 500))
    z = (real + 1j * imag).astype(np.complex64)
    for name, formula in COMPLEX.items():
        got = getattr(nn, name)(z)
        assert got.dtype == np.complex64
        np.testing.assert_allclose(got, formula(z.astype(complex)), rtol=2e-5, atol=2e-6)


def test_derivatives():
    """First and second, forward and reverse, against differences: of all functions at once."""
    x, h = X.astype(np.float64) + 0.03, 1e-5

    def derive(f):
        slope = lambda x: jvp(f, (x,), (jnp.ones_like(x),))[1]
        around = [(f(x + d), vmap(grad(f))(x + d)) for d in (h, -h)]
        return around, slope(x), vmap(grad(f))(x), vmap(grad(grad(f)))(x)

    with enable_x64():
        every = jit(lambda: {name: derive(getattr(nn, name)) for name in FORMULAS})()
    for name, ((after, before), forward, reverse, second) in every.items():
        first, curve = [
            (np.asarray(a) - np.asarray(b)) / (2 * h) for a, b in zip(after, before, strict=True)
        ]
        np.testing.assert_allclose(reverse, first, 1e-7, 1e-9, err_msg=name)
        np.testing.assert_allclose(forward, reverse, 1e-13, err_msg=name)
        np.testing.assert_allclose(second, curve, 1e-6, 1e-8, err_msg=name)


@pytest.mark.parametrize("name", AT)
def test_derivatives_where_pieces_meet(name):
    for x, want in AT[name].items():
        np.testing.assert_allclose(grad(getattr(nn, name))(x), want, err_msg=f"{name} {x}")


def test_extremes():
    far = jnp.array([-1e30, -3e4, 3e4])
    slopes = jit(lambda x: {name: vmap(grad(getattr(nn, name)))(x) for name in FORMULAS})(far)
    for name, slope in slopes.items():
        assert np.isfinite(slope).all() or name in ("gelu", "squareplus"), (name, slope)
        assert np.isnan(getattr(nn, name)(jnp.nan)), name
    assert nn.log_sigmoid(-1e4) == -1e4 and nn.softplus(1e4) == 1e4


def test_gelu_keeps_its_digits_in_the_lower_tail():
    """(1 + tanh(u)) / 2 would cancel there: it was 0 below -5.1."""
    x = np.linspace(-9.5, -3, 40, dtype=np.float32)
    wide = x.astype(float)
    exact = wide * expit(np.sqrt(8 / np.pi) * (wide + 0.044715 * wide**3))
    np.testing.assert_allclose(nn.gelu(x), exact, rtol=1e-5)


def test_parameters():
    x = X.astype(np.float32)
    np.testing.assert_allclose(nn.gelu(x, approximate=False), x * scipy.special.ndtr(X), rtol=1e-4)
    np.testing.assert_allclose(nn.leaky_relu(x, 0.3), np.where(X >= 0, X, 0.3 * X), rtol=1e-6)
    low = np.minimum(X, 0)
    np.testing.assert_allclose(nn.elu(x, 2.0), np.where(X > 0, X, 2 * np.expm1(low)), rtol=1e-6)
    np.testing.assert_allclose(
        nn.celu(x, 2.0), np.where(X > 0, X, 2 * np.expm1(low / 2)), rtol=1e-6
    )
    np.testing.assert_allclose(
        nn.squareplus(x, 1), (X + np.sqrt(X * X + 1)) / 2, rtol=1e-2, atol=1e-6
    )
    assert nn.elu(x, jnp.ones((2, 1))).shape == (2, len(X))


def test_log1mexp():
    x = np.array([1e-30, 1e-6, 0.1, 0.6931, 0.6932, 3.0, 80.0])
    with enable_x64():
        want = [np.log(-np.expm1(-v)) if v < 0.5 else np.log1p(-np.exp(-v)) for v in x]
        np.testing.assert_allclose(nn.log1mexp(x), want, rtol=1e-14)
        np.testing.assert_allclose(
            vmap(grad(nn.log1mexp))(x), np.exp(-x) / -np.expm1(-x), rtol=1e-13
        )
    assert nn.log1mexp(0.0) == -np.inf and np.isnan(nn.log1mexp(-1.0))


@pytest.mark.parametrize("name", FORMULAS)
def test_dtypes(name):
    f = getattr(nn, name)
    assert f(jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16
    keeps = name in ("identity", "relu", "hard_tanh")
    assert f(jnp.arange(2)).dtype == (np.int32 if keeps else np.float32)
    with pytest.raises(DtypeError, match="operands must be arrays or numbers; got a list"):
        f([1.0])


def test_glu():
    x = np.arange(12.0, dtype=np.float32).reshape(2, 6) / 5
    np.testing.assert_allclose(nn.glu(x), x[:, :3] * expit(x[:, 3:]), rtol=1e-6)
    np.testing.assert_allclose(nn.glu(x, axis=0), x[:1] * expit(x[1:]), rtol=1e-6)
    with pytest.raises(ShapeError, match=r"glu: the size of axis -1 must be even; got f32\[2,3\]"):
        nn.glu(x[:, :3])
