"""boax: a Gaussian process, and the derivative of its mean."""

import jax
import jax.numpy as jnp
from boax.prediction import models

x = jnp.linspace(-1, 1, 7)[:, None]
model = models.gaussian_process.exact(
    models.means.zero(),
    models.kernels.scaled(models.kernels.rbf(1.0), 0.5),
    models.likelihoods.gaussian(1e-2),
    x,
    jnp.sin(3 * x[:, 0]),
)
at = jnp.array([[0.3], [0.7]])[:, None]
print(jax.tree.map(lambda leaf: leaf.round(2), jax.vmap(model)(at)))


@jax.grad
def slope(at):
    return jax.tree.leaves(jax.vmap(model)(at))[0].sum()


print(slope(at).round(2))
