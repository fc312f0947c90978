"""Models of equinox as ONNX and as C: they give the same numbers as in Python."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from leaving import check

KEY = jax.random.key(0)


def values(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def split(model):
    """The arrays of a model, and a function of them and of inputs.

    The arrays are the same on every run: draws of keys differ between weft and JAX.
    """
    arrays, rest = eqx.partition(model, eqx.is_array)
    arrays = jax.tree.map(
        lambda x: 0.3 * jnp.sin(jnp.arange(x.size, dtype=jnp.float32)).reshape(x.shape), arrays
    )
    return arrays, lambda arrays, *xs: eqx.combine(arrays, rest)(*xs)


class Recurrent(eqx.Module):
    cell: eqx.nn.GRUCell
    head: eqx.nn.Linear

    def __init__(self):
        self.cell = eqx.nn.GRUCell(3, 5, key=KEY)
        self.head = eqx.nn.Linear(5, 2, key=KEY)

    def __call__(self, xs):
        state, _ = jax.lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(5), xs)
        return self.head(state)


class Attention(eqx.Module):
    heads: eqx.nn.MultiheadAttention

    def __init__(self):
        self.heads = eqx.nn.MultiheadAttention(2, 8, key=KEY)

    def __call__(self, x):
        return self.heads(x, x, x)


MODELS = {
    "mlp": (lambda: eqx.nn.MLP(3, 2, 16, 2, key=KEY), (3,)),
    "gru": (Recurrent, (7, 3)),
    "convolution": (
        lambda: eqx.nn.Sequential([
            eqx.nn.Conv2d(1, 3, 3, padding=1, key=KEY), eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.MaxPool2d(2, 2), eqx.nn.Lambda(jnp.ravel),
            eqx.nn.Linear(48, 10, key=KEY), eqx.nn.Lambda(jax.nn.log_softmax),
        ]),
        (1, 8, 8),
    ),
    "attention": (Attention, (5, 8)),
    "norm": (lambda: eqx.nn.LayerNorm((8,)), (8,)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_models(name, record):
    make, shape = MODELS[name]
    arrays, fun = split(make())
    check(fun, record, arrays, values(*shape))


def test_a_step_of_training(record):
    arrays, fun = split(eqx.nn.MLP(3, 1, 8, 1, key=KEY))
    optimizer = optax.adam(1e-2)
    xs, ys = values(16, 3), values(16, 1)

    def step(arrays, state, xs, ys):
        def loss(arrays):
            return jnp.mean((jax.vmap(lambda x: fun(arrays, x))(xs) - ys) ** 2)

        value, grads = jax.value_and_grad(loss)(arrays)
        updates, state = optimizer.update(grads, state, arrays)
        return optax.apply_updates(arrays, updates), state, value

    check(step, record, arrays, optimizer.init(arrays), xs, ys)
