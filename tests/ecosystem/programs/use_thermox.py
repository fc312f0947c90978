"""thermox: draws of an Ornstein-Uhlenbeck process, and their density."""

import jax
import jax.numpy as jnp
import thermox

ts = jnp.arange(0, 1, 0.05)
drift = 2.0 * jnp.eye(3) + 0.5 * jnp.eye(3, k=1) + 0.5 * jnp.eye(3, k=-1)
noise = 2.0 * jnp.eye(3).at[0, 1].set(0.5).at[1, 0].set(0.5)
samples = thermox.sample(jax.random.PRNGKey(0), ts, jnp.zeros(3), drift, jnp.zeros(3), noise)
print(samples[::5])
print(thermox.log_prob(ts, samples, drift, jnp.zeros(3), noise))
