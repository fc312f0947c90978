"""equimo: a small vision transformer, and the derivative of its logits."""

import equimo.models as em
import equinox as eqx
import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(0)
model = em.VisionTransformer(
    img_size=16,
    in_channels=3,
    dim=24,
    patch_size=4,
    num_heads=[2],
    depths=[2],
    num_classes=5,
    key=key,
)
x = jax.random.normal(key, (3, 16, 16))
print(eqx.filter_jit(model)(x, key=key, inference=True))
print(model.features(x, key=key, inference=True).sum())
slope = eqx.filter_grad(lambda m: jnp.sum(m(x, key=key, inference=True) ** 2))(model)
print(sum(jnp.sum(jnp.abs(g)) for g in jax.tree.leaves(eqx.filter(slope, eqx.is_array))))
