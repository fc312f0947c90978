"""coordax: arrays with coordinates, and functions mapped over named axes."""

import coordax as cx
import jax
import jax.numpy as jnp
import numpy as np

x, y = cx.SizedAxis("x", 4), cx.LabeledAxis("y", np.linspace(0, 1, 3))
f = cx.field(jnp.arange(12.0).reshape(4, 3), x, y)
print(f.dims, (cx.cmap(jnp.sin)(f) + 2 * f).data, f.untag("x").tag("z").shape)
print(cx.cmap(jnp.sum)(f.untag("y")).data, jax.grad(lambda f: (f * f).data.sum())(f).data)
print(cx.cmap(jnp.dot)(f.untag("y"), f.untag("y")).data, f.order_as("y", "x").data)
print(jax.jit(lambda f: f * 3)(f).data)
