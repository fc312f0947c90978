"""The first page: arrays, jit, grad, vmap, and a linear model."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jacfwd, jacrev, jit, make_jaxpr, random, vmap

x = jnp.arange(5.0)
print(isinstance(x, jax.Array), x.devices(), x.dtype)


def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


print(selu(x))
key = random.key(1701)
data = random.normal(key, (1_000_000,))
print(jit(selu)(data).block_until_ready()[:3], selu(data).mean())


def sum_logistic(x):
    return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))


x_small = jnp.arange(3.0)
print(grad(sum_logistic)(x_small))


def first_finite_differences(f, x, eps=1e-3):
    return jnp.array([(f(x + eps * v) - f(x - eps * v)) / (2 * eps) for v in jnp.eye(len(x))])


print(np.round(first_finite_differences(sum_logistic, x_small), 2))
print(grad(jit(grad(jit(grad(sum_logistic)))))(1.0))


def hessian(fun):
    return jit(jacfwd(jacrev(fun)))


print(hessian(sum_logistic)(x_small))

key1, key2 = random.split(key)
mat = random.normal(key1, (15, 10))
batched_x = random.normal(key2, (5, 10))


def apply_matrix(x):
    return jnp.dot(mat, x)


naive = jnp.stack([apply_matrix(v) for v in batched_x])
batched = jit(vmap(apply_matrix))(batched_x)
np.testing.assert_allclose(naive, batched, atol=1e-4, rtol=1e-4)
print(batched.shape, batched[0])
print(make_jaxpr(apply_matrix)(batched_x[0]).out_avals)

# A linear model by gradient descent.
weights = random.normal(key2, (3,))
inputs = random.normal(key1, (50, 3))
targets = inputs @ jnp.array([1.0, -2.0, 0.5])


@jit
def step(w):
    loss = lambda w: jnp.mean((inputs @ w - targets) ** 2)
    return w - 0.1 * grad(loss)(w)


for _ in range(100):
    weights = step(weights)
print(weights)

try:
    x[0] = 10.0
except TypeError:
    print("TypeError: arrays are immutable")
print(x.at[0].set(10.0).at[1:3].add(2.0))
