"""backends (LAB) on JAX: one interface to arrays, with dispatch on their types."""

import jax
import jax.numpy as jnp
import lab.jax as B

x = B.randn(B.default_dtype, 3, 3)[..., :] * 0 + jnp.arange(9.0).reshape(3, 3) / 9
a = B.reg(B.matmul(x, x, tr_b=True), diag=1.0)
print(B.cholesky(a), B.logdet(a), B.trisolve(B.cholesky(a), x))
print(B.pw_dists2(x, x), B.logsumexp(x, axis=1), B.einsum("ij,jk->ik", x, x))
print(jax.jit(jax.grad(lambda x: B.sum(B.exp(B.sin(x)))))(x), B.shape(x), B.dtype(x))
print(B.where(x > 0.5, x, B.zeros(x)), B.stack(x, x, axis=0).shape, B.jit(B.sum)(x))
print(B.scan(lambda c, i: (c + i,), jnp.arange(4.0), jnp.zeros(())))
