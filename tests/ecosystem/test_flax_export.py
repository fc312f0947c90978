"""Models of flax as ONNX and as C: they give the same numbers as in Python."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from leaving import check

KEY = jax.random.key(0)


def values(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def fix(tree):
    """Weights that are the same on every run: draws of keys differ between weft and JAX."""
    return jax.tree.map(
        lambda x: 0.3 * jnp.sin(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape), tree
    )


class Convolutions(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(4, (3, 3))(x))
        x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = nn.relu(nn.Conv(8, (3, 3), strides=2)(x))
        return nn.log_softmax(nn.Dense(10)(x.reshape(len(x), -1)))


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        mask = nn.make_causal_mask(x[..., 0])
        x = x + nn.MultiHeadDotProductAttention(num_heads=2)(y, y, mask=mask)
        return x + nn.Dense(8)(nn.gelu(nn.Dense(16)(nn.LayerNorm()(x))))


class Recurrent(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(nn.RNN(nn.OptimizedLSTMCell(6))(x)[:, -1])


MODELS = {
    "convolutions": (Convolutions, (2, 8, 8, 1)),
    "block": (Block, (2, 5, 8)),
    "recurrent": (Recurrent, (2, 7, 4)),
}


@pytest.mark.parametrize("name", MODELS)
def test_linen(name, record):
    make, shape = MODELS[name]
    model, x = make(), values(*shape)
    variables = fix(model.init(KEY, x))
    check(model.apply, record, variables, x)


def test_a_step_of_training(record):
    model, x, y = Convolutions(), values(4, 8, 8, 1), np.arange(4, dtype=np.int32)
    variables = fix(model.init(KEY, x))
    optimizer = optax.sgd(0.1, momentum=0.9)

    def step(variables, state, x, y):
        def loss(variables):
            return -jnp.mean(jnp.take_along_axis(model.apply(variables, x), y[:, None], 1))

        value, grads = jax.value_and_grad(loss)(variables)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(variables, updates), state, value

    check(step, record, variables, optimizer.init(variables), x, y)


class Perceptron(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(4, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, use_running_average=True, rngs=rngs)
        self.last = nnx.Linear(8, 3, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.norm(self.first(x))))


def test_nnx(record):
    graph, state = nnx.split(Perceptron(nnx.Rngs(0)))
    state = nnx.to_pure_dict(state)
    state = jax.tree.map(lambda x: jnp.abs(x) + 0.1 if x.ndim == 1 else x, fix(state))

    def apply(state, x):
        model = nnx.merge(graph, nnx.State(state))
        return model(x)

    check(apply, record, state, values(5, 4))
