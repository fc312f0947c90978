"""chebax: Bessel and beta functions by Chebyshev polynomials, and derivatives."""

import chebax
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
bessel = chebax.besselj(2.5)
x = jnp.linspace(0.1, 30.0, 7)
print(np.asarray(bessel(x)).round(7), np.asarray(jax.vmap(jax.grad(bessel))(x)).round(7))
print(np.asarray(chebax.besselk_fn(1.7, x)).round(7), jax.grad(chebax.besselk_fn)(1.7, 5.0))
print(chebax.betainc_fn(2.0, 3.0, 0.4), chebax.betaincinv(2.0, 3.0, 0.05))
print(jax.grad(chebax.betainc_fn)(2.0, 3.0, 0.4))
