"""jaxwavelets: wavelets of several levels, there and back, mapped and differentiated."""

import jax
import jax.numpy as jnp
import jaxwavelets as wt

x = jnp.sin(jnp.arange(256.0)).reshape(16, 16)
parts = wt.wavedecn(x, "db2", level=2)
print([abs(leaf).sum() for leaf in jax.tree.leaves(parts)])
print(abs(wt.waverecn(parts, "db2") - x).max() < 1e-5)
there = jax.jit(jax.vmap(lambda x: jax.tree.leaves(wt.wavedecn(x, "haar", level=1))[0]))
print(there(jnp.stack([x, 2 * x]))[:, 0])
print(jax.grad(lambda x: (jax.tree.leaves(wt.wavedecn(x, "db2"))[0] ** 2).sum())(x)[0, :4])
