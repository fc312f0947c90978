"""pot on arrays of JAX: transport plans and derivatives of costs."""

import jax
import jax.numpy as jnp
import ot

jax.config.update("jax_enable_x64", True)
x = jax.random.normal(jax.random.key(0), (12, 2))
y = jax.random.normal(jax.random.key(1), (10, 2)) + 1.0
a, b = jnp.ones(12) / 12, jnp.ones(10) / 10
cost = ot.dist(x, y)
print(cost.sum(), ot.emd2(a, b, cost), ot.emd(a, b, cost).sum(axis=0))
for method in ("sinkhorn", "sinkhorn_log", "sinkhorn_stabilized"):
    print(ot.sinkhorn2(a, b, cost, 1.0, method=method))
print(ot.sliced_wasserstein_distance(x, y, n_projections=20, seed=0))
print(ot.gromov_wasserstein2(ot.dist(x, x), ot.dist(y, y), a, b))
print(ot.unbalanced.sinkhorn_unbalanced2(a, b, cost, 1.0, 1.0))
print(ot.wasserstein_1d(x[:, 0], y[:, 0], p=2), ot.bregman.empirical_sinkhorn2(x, y, 1.0))
print(ot.gaussian.bures_wasserstein_distance(x[0], y[0], jnp.cov(x.T), jnp.cov(y.T)))
