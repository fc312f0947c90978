"""halox: halos of dark matter, how many there are, and the derivative in their mass."""

import jax
import jax.numpy as jnp
from halox import cosmology, halo, hmf

jax.config.update("jax_enable_x64", True)
cosmo = cosmology.Planck18()
masses = jnp.logspace(13, 15, 5)
print(jnp.log(hmf.tinker08_mass_function(masses, 0.5, cosmo)))
print(jnp.log(halo.nfw.NFWHalo(1e14, 5.0, 0.0, cosmo).density(jnp.logspace(-1, 1, 5))))
print(jax.grad(lambda m: jnp.log(hmf.tinker08_mass_function(m, 0.5, cosmo)))(1e14) * 1e14)
