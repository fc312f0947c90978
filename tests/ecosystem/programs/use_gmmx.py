"""gmmx: a mixture of Gaussians, fitted by expectation and maximization."""

import jax
import jax.numpy as jnp
from gmmx import EMFitter, GaussianMixtureModelJax

x = jnp.concatenate(
    [jax.random.normal(jax.random.key(i), (40, 2)) * 0.3 + 2.0 * i for i in range(2)]
)
start = GaussianMixtureModelJax.from_squeezed(
    means=jnp.array([[0.5, 0.0], [1.5, 1.8]]),
    covariances=jnp.stack([jnp.eye(2)] * 2),
    weights=jnp.array([0.5, 0.5]),
)
print(start.log_prob(x)[:4, 0], jax.grad(lambda x: start.log_prob(x).sum())(x)[:2])
fitted = EMFitter(tol=1e-4, max_iter=20).fit(x=x, gmm=start).gmm
print(fitted.means.squeeze(), fitted.weights.squeeze(), fitted.predict(x)[::10].squeeze())
