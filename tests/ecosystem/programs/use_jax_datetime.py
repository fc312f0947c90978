"""jax-datetime: moments and spans of time as arrays."""

import jax
import jax.numpy as jnp
import jax_datetime as jdt
import numpy as np

start = jdt.to_datetime("2000-01-01")
hours = jdt.to_timedelta(6, "h")
times = start + hours * jnp.arange(5)
print(times, times.to_datetime64(), (times - start).to_timedelta64())
print(jax.jit(lambda t: (t + hours).delta.days)(times), jax.vmap(lambda t: t > start)(times))
print(jax.tree.leaves(times), hours / jdt.to_timedelta(1, "D"), times[1:3].shape)
print(jdt.Datetime.from_datetime64(np.datetime64("1999-12-31T12:00:00")) < start)
print(jax.lax.scan(lambda t, _: (t + hours, t), start, None, length=3)[1].to_datetime64())
