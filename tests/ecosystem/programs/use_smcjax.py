"""smcjax: a particle filter of a linear Gaussian model."""

import jax.numpy as jnp
import jax.random as jr
import jax.scipy.stats as jstats
from smcjax import bootstrap_filter, log_ml_increments, weighted_mean

posterior = bootstrap_filter(
    key=jr.PRNGKey(1),
    initial_sampler=lambda key, n: jr.normal(key, (n, 1)),
    transition_sampler=lambda key, x: 0.9 * x + 0.5 * jr.normal(key, (1,)),
    log_observation_fn=lambda y, x: jstats.multivariate_normal.logpdf(y, x, jnp.eye(1)),
    emissions=jr.normal(jr.PRNGKey(0), (8, 1)),
    num_particles=200,
)
print(posterior.marginal_loglik, posterior.ess, weighted_mean(posterior)[:, 0])
print(log_ml_increments(posterior))
