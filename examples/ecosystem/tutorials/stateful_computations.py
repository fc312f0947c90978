"""Stateful computations: from counters with side effects to states that are passed on."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Counter:
    def __init__(self):
        self.n = 0

    def count(self) -> int:
        self.n += 1
        return self.n

    def reset(self):
        self.n = 0


counter = Counter()
print([counter.count() for _ in range(3)])
counter.reset()
fast_count = jax.jit(counter.count)
print([int(fast_count()) for _ in range(3)])  # the side effect happens once


class CounterV2:
    def count(self, n):
        return n + 1, n + 1

    def reset(self):
        return 0


counter = CounterV2()
state = counter.reset()
fast_count = jax.jit(counter.count)
for _ in range(3):
    value, state = fast_count(state)
    print(value)


class Params(NamedTuple):
    weight: jnp.ndarray
    bias: jnp.ndarray


def init(rng) -> Params:
    weights_key, bias_key = jax.random.split(rng)
    return Params(jax.random.normal(weights_key, ()), jax.random.normal(bias_key, ()))


def loss(params: Params, x, y):
    return jnp.mean((params.weight * x + params.bias - y) ** 2)


@jax.jit
def update(params: Params, x, y) -> Params:
    grad = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda param, g: param - g * 0.005, params, grad)


xs = np.random.default_rng(42).normal(size=(128, 1))
ys = xs * 3 - 1 + np.random.default_rng(43).normal(size=(128, 1)) * 0.5
params = init(jax.random.key(42))
print(params)
for _ in range(1000):
    params = update(params, xs, ys)
print(params, loss(params, xs, ys))

# The same with a scan that carries parameters and momentum, and gathers losses.


def step(carry, _):
    params, momentum = carry
    value, grads = jax.value_and_grad(loss)(params, xs, ys)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    params = jax.tree.map(lambda p, m: p - 0.01 * m, params, momentum)
    return (params, momentum), value


start = init(jax.random.key(0))
(end, _), losses = jax.jit(
    lambda p: jax.lax.scan(step, (p, jax.tree.map(jnp.zeros_like, p)), None, 200)
)(start)
print(end, losses[::50])
ensemble = jax.vmap(init)(jax.random.split(jax.random.key(1), 3))
trained, _ = jax.vmap(
    lambda p: jax.lax.scan(step, (p, jax.tree.map(jnp.zeros_like, p)), None, 200)
)(ensemble)
print(trained[0])
