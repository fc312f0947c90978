"""cax: the game of life as a module of flax."""

import jax
import jax.numpy as jnp
from cax.cs.life import Life
from flax import nnx

birth, survival = Life.birth_survival_from_string("B3/S23")
life = Life(birth=birth, survival=survival, rngs=nnx.Rngs(0))
start = jax.random.bernoulli(jax.random.key(0), p=0.5, shape=(16, 16, 1)).astype(jnp.float32)
end = life(start, num_steps=16, sow=True)
print(start.sum(), end.sum(), end[..., 0].sum(0))
