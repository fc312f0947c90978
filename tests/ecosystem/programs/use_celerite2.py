"""celerite2: a Gaussian process in one dimension, by C++ that the program calls."""

import jax
import jax.numpy as jnp
import numpy as np
from celerite2.jax import GaussianProcess, terms

jax.config.update("jax_enable_x64", True)
t = np.sort(np.random.default_rng(0).uniform(0, 10, 20))
y = np.sin(t)


@jax.jit
def loglike(params):
    kernel = terms.SHOTerm(sigma=jnp.exp(params[0]), rho=jnp.exp(params[1]), tau=2.0)
    gp = GaussianProcess(kernel, mean=0.0)
    gp.compute(t, diag=jnp.full(20, 0.1), check_sorted=False)
    return gp.log_likelihood(y)


print(loglike(jnp.array([0.1, 0.4])), jax.grad(loglike)(jnp.array([0.1, 0.4])))
