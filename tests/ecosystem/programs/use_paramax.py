"""paramax: parameters under constraints."""

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax

scale = paramax.Parameterize(jnp.exp, jnp.log(jnp.ones(3)))
print(paramax.unwrap(("abc", 1, scale)))
tree = {"scale": scale, "fixed": paramax.non_trainable(jnp.arange(3.0))}


@eqx.filter_jit
@eqx.filter_grad
def slope(tree):
    tree = paramax.unwrap(tree)
    return jnp.sum(tree["scale"] ** 2 * tree["fixed"])


print(jax.tree.leaves(slope(tree)))
net = paramax.WeightNormalization(jax.random.normal(jax.random.key(0), (3, 2)))
print(paramax.unwrap(net))
print(paramax.unwrap(eqx.filter_vmap(lambda x: paramax.Parameterize(jnp.sin, x))(jnp.arange(3.0))))
