"""drjax: a program over clients, and its derivative."""

import drjax
import jax
import jax.numpy as jnp


@drjax.program(placements={"clients": 3})
def double_and_sum(x):
    return drjax.reduce_sum(drjax.map_fn(lambda a: 2 * a, drjax.broadcast(x)))


@drjax.program(placements={"clients": 3})
def loss(w, data):
    ws = drjax.broadcast(w)
    return drjax.reduce_mean(drjax.map_fn(lambda w, d: jnp.sum((w - d) ** 2), (ws, data)))


data = jnp.arange(12.0).reshape(3, 4)
print(double_and_sum(jnp.float32(1.5)), jax.jit(double_and_sum)(2.0))
print(loss(jnp.ones(4), data), jax.grad(loss)(jnp.ones(4), data))
print(jax.make_jaxpr(double_and_sum)(jnp.float32(1.0)).out_avals)
