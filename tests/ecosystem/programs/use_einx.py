"""einx on JAX: operations by their axes' names."""

import einx
import jax
import jax.numpy as jnp

x = jax.random.normal(jax.random.key(0), (4, 6, 5))
w = jax.random.normal(jax.random.key(1), (5, 3))
print(einx.sum("a [b] c", x), einx.mean("a b [c]", x).sum())
print(einx.dot("a b [c], [c] d -> a b d", x, w)[0, 0])
print(einx.id("a (b s) c -> (a s) b c", x, s=2).shape, einx.softmax("a b [c]", x)[0, 0])
print(einx.add("a b c, c -> a b c", x, w[:, 0]).sum(), einx.flip("a [b] c", x)[0, 0])
print(einx.get_at("[v] d, b -> b d", w, jnp.array([0, 2, 4])))
print(jax.jit(jax.grad(lambda x: einx.dot("a b c, a b c ->", x, x)))(x)[0, 0])
