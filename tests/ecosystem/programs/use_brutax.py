"""brutax: a minimum found on a grid."""

import brutax
import jax.numpy as jnp


def distance(point, args):
    x, y = point
    return (x - 1.0) ** 2 + (y - 2.0) ** 2


grid = (jnp.arange(-5.0, 5.0, 1), jnp.arange(-5.0, 5.0, 0.1))
found = brutax.run_grid_search(
    distance, method=brutax.MinimumSearchMethod(), tree_grid=grid, args=None
)
print(found.value)
