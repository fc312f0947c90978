"""Stax: shapes, parameters and outputs of layers, keys as JAX splits them, learning."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import nn, random, tree_util
from weft.errors import ShapeError
from weft.example_libraries import optimizers, stax

KEY = random.PRNGKey(0)
NCHW = ("NCHW", "OIHW", "NCHW")
IMAGES = (5, 8, 9, 3)
RNG = np.random.default_rng(0)


def run(layer, shape, **kwargs):
    """The shape, the parameters and the inputs and outputs of a layer, for a batch of 5."""
    out_shape, params = layer[0](KEY, shape)
    x = RNG.normal(size=[5 if n == -1 else n for n in shape]).astype(np.float32)
    y = layer[1](params, x, **kwargs)
    assert y.shape == tuple(5 if n == -1 else n for n in out_shape)
    return out_shape, params, x, y


def test_dense():
    shape, (W, b), x, y = run(stax.Dense(4), (-1, 3))
    assert shape == (-1, 4)
    np.testing.assert_allclose(y, x @ np.asarray(W) + b, 1e-5, 1e-6)
    W_key, b_key = random.split(KEY)
    np.testing.assert_array_equal(W, stax.glorot()(W_key, (3, 4)))
    np.testing.assert_array_equal(b, stax.randn()(b_key, (4,)))


@pytest.mark.parametrize(
    ("layer", "shape", "out_shape", "kernel"),  # as JAX 0.10.2 has them
    [
        (stax.Conv(4, (3, 2), (2, 1), "SAME"), (-1, 8, 9, 3), (-1, 4, 9, 4), (3, 2, 3, 4)),
        (stax.Conv(4, (3, 2)), IMAGES, (5, 6, 8, 4), (3, 2, 3, 4)),
        (stax.ConvTranspose(4, (3, 2), (2, 1), "SAME"), IMAGES, (5, 16, 9, 4), (3, 2, 3, 4)),
        (stax.Conv1DTranspose(4, (3,), (2,)), (5, 8, 3), (5, 17, 4), (3, 3, 4)),
        (stax.GeneralConv(NCHW, 4, (3, 2)), (5, 3, 8, 9), (5, 4, 6, 8), (4, 3, 3, 2)),
        (stax.GeneralConvTranspose(NCHW, 4, (3, 2)), (5, 3, 8, 9), (5, 4, 10, 10), (4, 3, 3, 2)),
    ],
)
def test_convolutions(layer, shape, out_shape, kernel):
    found, (W, b), x, y = run(layer, shape)
    assert (found, W.shape, b.size) == (out_shape, kernel, 4)
    assert b.shape[1] == 4 if shape[1] == 3 else b.shape[-1] == 4
    zero = layer[1]((W, jnp.zeros_like(b)), x)
    np.testing.assert_allclose(y, zero + b, 1e-5, 1e-6)


def test_a_kernel_is_drawn_for_its_axes():
    _, (W, _), *_ = run(stax.GeneralConv(NCHW, 4, (3, 2)), (5, 3, 8, 9))
    np.testing.assert_array_equal(W, stax.glorot(1, 0)(random.split(KEY)[0], W.shape))


@pytest.mark.parametrize(
    "make, of", [(stax.MaxPool, np.max), (stax.SumPool, np.sum), (stax.AvgPool, np.mean)]
)
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_pools(make, of, padding):
    shape, params, x, y = run(make((2, 2), strides=(2, 2), padding=padding), (-1, 5, 4, 3))
    rows = 2 if padding == "VALID" else 3
    assert (shape, params) == ((-1, rows, 2, 3), ())
    want = [[of(x[:, i : i + 2, j : j + 2], (1, 2)) for j in (0, 2)] for i in range(0, 2 * rows, 2)]
    np.testing.assert_allclose(y, np.moveaxis(want, 2, 0), 1e-5, 1e-6)
    turned = np.moveaxis(x, 3, 1)
    spec = make((2, 2), strides=(2, 2), padding=padding, spec="NCHW")
    assert spec[0](KEY, (-1, 3, 5, 4))[0] == (-1, 3, rows, 2)
    np.testing.assert_allclose(np.moveaxis(spec[1]((), turned), 1, 3), y, 1e-5, 1e-6)
    assert make.__name__ in ("MaxPool", "SumPool", "AvgPool") and make.__doc__


@pytest.mark.parametrize("axis", [(0, 1, 2), 0, (0, 2)])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_batch_norm(axis, center, scale):
    draw = lambda key, shape: random.normal(key, shape)
    layer = stax.BatchNorm(axis, 1e-3, center, scale, draw, draw)
    shape, (beta, gamma), x, y = run(layer, (-1, 4, 3, 2))
    assert shape == (-1, 4, 3, 2)
    want = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-3)
    if scale:
        want = want * np.expand_dims(gamma, axis)
    if center:
        want = want + np.expand_dims(beta, axis)
    np.testing.assert_allclose(y, want, 1e-4, 1e-4)
    assert isinstance(beta, tuple) is not center and isinstance(gamma, tuple) is not scale


@pytest.mark.parametrize(
    ("layer", "function"),
    [
        (stax.Tanh, np.tanh),
        (stax.Relu, nn.relu),
        (stax.Exp, np.exp),
        (stax.LogSoftmax, nn.log_softmax),
        (stax.Softmax, nn.softmax),
        (stax.Softplus, nn.softplus),
        (stax.Sigmoid, nn.sigmoid),
        (stax.Elu, nn.elu),
        (stax.LeakyRelu, nn.leaky_relu),
        (stax.Selu, nn.selu),
        (stax.Gelu, nn.gelu),
        (stax.Identity, lambda x: x),
        (stax.Flatten, lambda x: x.reshape(5, 12)),
        (stax.elementwise(jnp.clip, min=0, max=1), lambda x: np.clip(x, 0, 1)),
    ],
)
def test_layers_without_parameters(layer, function):
    shape, params, x, y = run(layer, (-1, 4, 3), rng=KEY)
    assert params == () and shape == (-1, *y.shape[1:])
    np.testing.assert_allclose(y, function(x), 1e-5, 1e-6)


def test_dropout():
    shape, params, x, y = run(stax.Dropout(0.7), (-1, 40), rng=KEY)
    keep = np.asarray(random.bernoulli(KEY, 0.7, x.shape))
    assert params == () and 0.6 < keep.mean() < 0.8
    np.testing.assert_allclose(y, np.where(keep, x / 0.7, 0), 1e-6)
    for rng in ({}, {"rng": None}):
        with pytest.raises(ValueError, match="apply must be given a key; got none. Hint"):
            stax.Dropout(0.5)[1]((), x, **rng)
    assert stax.Dropout(0.5, mode="test")[1]((), x) is x


def test_serial_splits_keys_as_jax_does():
    layer = stax.serial(stax.Dense(4), stax.Dropout(0.5), stax.Dense(2))
    shape, params, x, y = run(layer, (-1, 3), rng=KEY)
    assert shape == (-1, 2) and isinstance(params, list) and params[1] == ()
    rest, first = random.split(KEY)
    rest, _ = random.split(rest)
    np.testing.assert_array_equal(params[0][0], stax.Dense(4)[0](first, (-1, 3))[1][0])
    last = random.split(rest)[1]
    np.testing.assert_array_equal(params[2][0], stax.Dense(2)[0](last, (-1, 4))[1][0])
    hidden = stax.Dense(4)[1](params[0], x)
    hidden = stax.Dropout(0.5)[1]((), hidden, rng=random.split(KEY, 3)[1])
    np.testing.assert_allclose(y, stax.Dense(2)[1](params[2], hidden), 1e-6)


def test_parallel():
    layer = stax.parallel(stax.Dense(4), stax.Dropout(0.5))
    shapes, params = layer[0](KEY, [(-1, 3), (-1, 5)])
    assert shapes == ((-1, 4), (-1, 5)) and isinstance(params, tuple)
    keys = random.split(KEY, 2)
    np.testing.assert_array_equal(params[0][0], stax.Dense(4)[0](keys[0], (-1, 3))[1][0])
    x = [np.ones((2, 3), np.float32), np.ones((2, 5), np.float32)]
    out = layer[1](params, x, rng=KEY)
    assert isinstance(out, list)
    np.testing.assert_array_equal(out[1], stax.Dropout(0.5)[1]((), x[1], rng=keys[1]))


def test_fans():
    body = stax.parallel(stax.Identity, stax.elementwise(jnp.negative), stax.Identity)
    _, _, x, y = run(stax.serial(stax.FanOut(3), body, stax.FanInSum), (-1, 4))
    np.testing.assert_allclose(y, x, 1e-6)
    shape, _, x, y = run(stax.serial(stax.FanOut(3), body, stax.FanInConcat()), (-1, 4))
    assert shape == (-1, 12)
    np.testing.assert_array_equal(y, np.concatenate([x, -x, x], -1))


def test_shape_dependent():
    shape, (W, _), *_ = run(stax.shape_dependent(lambda s: stax.Dense(2 * s[-1])), (-1, 3))
    assert shape == (-1, 6) and W.shape == (3, 6)


def test_a_network_learns():
    init, apply = stax.serial(
        stax.Conv(4, (3, 3), padding="SAME"), stax.Relu, stax.MaxPool((2, 2)), stax.Flatten,
        stax.Dense(8), stax.Relu, stax.Dense(2), stax.LogSoftmax,
    )  # fmt: skip
    shape, params = init(KEY, (-1, 6, 6, 1))
    assert shape == (-1, 2)
    x = RNG.normal(size=(16, 6, 6, 1)).astype(np.float32)
    labels = np.eye(2)[(x.mean((1, 2, 3)) > 0).astype(int)]
    loss = lambda params: -jnp.mean(jnp.sum(apply(params, x) * labels, 1))
    start, update, get_params = optimizers.adam(0.02)

    @weft.jit
    def step(i, state):
        return update(i, weft.grad(loss)(get_params(state)), state)

    state = start(params)
    for i in range(60):
        state = step(i, state)
    assert loss(get_params(state)) < 0.1 < loss(params)
    assert len(tree_util.tree_leaves(params)) == 6


def test_the_older_module():
    from weft.experimental import stax as older

    assert older.Dense is stax.Dense and older.__all__ == stax.__all__


def test_doctests():
    check_examples(stax)


WRONG = [
    (lambda: stax.Dropout(1.5), ValueError, r"Dropout: rate must be in \(0, 1\].*; got 1.5"),
    (lambda: stax.Dropout(0.0), ValueError, "the probability to keep an element; got 0.0"),
    (lambda: stax.Dense(3)[0](KEY, ()), ShapeError, "Dense: inputs must have an axis"),
    (
        lambda: stax.Conv(3, (3,)),
        ShapeError,
        r"Conv: filter_shape must have a size for each spatial axis of 'HWIO'; got \(3,\)",
    ),
    (
        lambda: stax.parallel(stax.Dense(3))[0](KEY, [(1, 2), (2, 3)]),
        ShapeError,
        r"one input for each of 1 layers; got shapes \(\(1, 2\), \(2, 3\)\). Hint: serial\(FanOut",
    ),
    (
        lambda: stax.FanInConcat()[0](KEY, [(1, 2), (2,)]),
        ShapeError,
        "FanInConcat: inputs must have as many axes each",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG, ids=range(len(WRONG)))
def test_mistakes_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()
