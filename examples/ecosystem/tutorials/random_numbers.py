"""Pseudorandom numbers: keys, splitting, folding in, generators, and draws."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

key = random.key(42)
print(key, random.key_data(key), jnp.issubdtype(key.dtype, jax.dtypes.prng_key))
print(random.normal(key), random.normal(key))

for i in range(3):
    new_key, subkey = random.split(key)
    val = random.normal(subkey)
    print(f"draw {i}: {val}")
    key = new_key

key, subkey1, subkey2 = random.split(key, 3)
print(random.split(key, 4).shape, random.key_data(random.split(key, (2, 2)))[1, 1])
print(random.key_data(random.fold_in(key, 7)), random.key_data(random.fold_in(key, 8)))

# One draw of a vector is not the same as its elements drawn one by one.
key = random.key(42)
subkeys = random.split(key, 3)
print(np.stack([random.normal(subkey) for subkey in subkeys]))
print(random.normal(key, shape=(3,)), jax.vmap(random.normal)(subkeys))

print(random.uniform(key, (3,), minval=-1, maxval=2), random.randint(key, (4,), 0, 10))
print(random.permutation(key, 8), random.permutation(key, jnp.arange(6.0)))
print(random.choice(key, 10, (4,), replace=False), random.bernoulli(key, 0.3, (5,)))
print(random.choice(key, jnp.arange(4), (3,), p=jnp.array([0.1, 0.2, 0.3, 0.4])))
print(random.bits(key, (3,)), random.bits(key, (3,), "uint8"), random.rademacher(key, (4,)))
print(random.categorical(key, jnp.log(jnp.array([0.2, 0.5, 0.3])), shape=(6,)))
print(random.truncated_normal(key, -1.0, 1.0, (3,)), random.exponential(key, (3,)))
print(random.gumbel(key, (3,)), random.laplace(key, (2,)), random.cauchy(key, (2,)))
print(random.orthogonal(key, 3).shape, random.multivariate_normal(key, jnp.zeros(2), jnp.eye(2)))
for draw in (random.gamma, random.poisson):
    print(np.round(draw(key, 3.0, (20000,)).mean(), 1))
print(np.round(random.beta(key, 2.0, 3.0, (20000,)).mean(), 1))
print(np.round(random.dirichlet(key, jnp.ones(3), (5000,)).mean(0), 1))


@jax.jit
def walk(key, x):
    def step(x, key):
        x = x + random.normal(key)
        return x, x

    return jax.lax.scan(step, x, random.split(key, 5))


print(walk(random.key(0), 0.0))
old = random.PRNGKey(0)
print(old, random.wrap_key_data(old), random.key_impl(random.key(0)), random.normal(old, (2,)))
rbg = random.key(0, impl="rbg")
print(random.key_data(rbg), random.uniform(rbg, (2,)).shape)
print(random.clone(key).dtype == key.dtype, random.key(1) == random.key(1))
