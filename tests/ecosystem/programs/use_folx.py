"""folx: the Laplacian of a network, forward, with sparse Jacobians."""

import folx
import jax
import jax.numpy as jnp
import numpy as np

result = folx.forward_laplacian(lambda x: (x**2).sum())(np.arange(3, dtype=float))
print(result.x, result.jacobian.dense_array, result.laplacian)

keys = jax.random.split(jax.random.key(0), 4)
weights = [jax.random.normal(k, s) / 2 for k, s in zip(keys, [(3, 8), (8, 8), (8, 1)])]


def network(x):  # of five particles each on its own, then of their sum and a determinant
    h = x.reshape(5, 3)
    for w in weights[:-1]:
        h = jnp.tanh(h @ w)
    return jnp.sum(h @ weights[-1]) + jnp.linalg.slogdet(h @ h.T + jnp.eye(5))[1]


x = jax.random.normal(keys[3], (2, 15))
for operator in (
    folx.LoopLaplacianOperator(),
    folx.ForwardLaplacianOperator(0),
    folx.ForwardLaplacianOperator(6),
):
    print(jax.jit(jax.vmap(operator(network)))(x))
