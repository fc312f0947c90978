"""anchorax: fixed points of an implicit layer by three solvers, and a derivative through one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from anchorax.backprop import gdeq
from anchorax.solvers import anderson, broyden, picard


class ImplicitBlock(eqx.Module):
    w: jnp.ndarray
    b: jnp.ndarray

    def __call__(self, u, data, *, inference=False, key=None):
        return jnp.tanh(u @ self.w + data + self.b)


w = 0.1 * np.random.default_rng(0).standard_normal((16, 16)).astype("f")
params, static = eqx.partition(ImplicitBlock(jnp.asarray(w), jnp.zeros(16)), eqx.is_array)
data = jnp.linspace(-1, 1, 16)[None]
key = jax.random.PRNGKey(42)
for solver in (broyden, picard, anderson):
    u, _, count = solver(params, static, data, inference=True, key=key)
    print(solver.__name__, np.asarray(u).ravel()[:4].round(3), np.asarray(count).ravel())


@eqx.filter_value_and_grad
def loss(params):
    u, _, _ = gdeq((params, data), static, solver=broyden, inference=False, key=key)
    return jnp.mean(u**2)


value, grads = loss(params)
print(value, np.asarray(grads.w).ravel()[:3].round(4))
