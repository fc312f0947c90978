"""sparsejac: Jacobians whose places are known."""

import jax
import jax.numpy as jnp
import sparsejac

n = 30
x = jax.random.uniform(jax.random.key(0), (n,))


def fn(x):
    return x**2 + jnp.sin(jnp.roll(x, 1)) * x


with jax.ensure_compile_time_eval():
    dense = jnp.eye(n) + jnp.roll(jnp.eye(n), -1, axis=1)
    sparsity = jax.experimental.sparse.BCOO.fromdense(dense)
for make in (sparsejac.jacrev, sparsejac.jacfwd):
    jacobian = jax.jit(make(fn, sparsity=sparsity))(x)
    print(jnp.max(jnp.abs(jacobian.todense() - jax.jacrev(fn)(x))) < 1e-5, jacobian.data.sum())
