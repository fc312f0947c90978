"""bartz: a sum of trees fitted to a curve."""

import jax
import jax.numpy as jnp
from bartz.BART import gbart

x = jax.random.uniform(jax.random.key(0), (2, 60), minval=-2.0, maxval=2.0)
y = jnp.sin(2 * x[0]) + x[1] + 0.05 * jax.random.normal(jax.random.key(1), (60,))
model = gbart(x.T, y, ntree=10, ndpost=20, nskip=20, seed=0)
fit = model.yhat_train.mean(axis=0)
print(fit.shape, jnp.corrcoef(fit, y)[0, 1] > 0.8)
print(fit[:8], model.predict(x[:, :5].T).mean(axis=0))
