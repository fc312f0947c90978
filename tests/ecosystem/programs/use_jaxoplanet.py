"""jaxoplanet: the light of a star while a planet passes, and its derivatives."""

import jax
import jax.numpy as jnp
from jaxoplanet.core.kepler import kepler
from jaxoplanet.light_curves import limb_dark_light_curve
from jaxoplanet.orbits.transit import TransitOrbit

jax.config.update("jax_enable_x64", True)
time = jnp.linspace(-0.1, 0.1, 15)


def light(params):
    orbit = TransitOrbit(
        period=1.3,
        duration=params["duration"],
        time_transit=0.0,
        impact_param=params["b"],
        radius_ratio=params["r"],
    )
    return limb_dark_light_curve(orbit, jnp.array([0.1, 0.3]))(time)


params = {"duration": 0.12, "b": 0.1, "r": 0.1}
print(jax.jit(light)(params))
print(jax.jacfwd(light)(params)["r"], jax.grad(lambda p: light(p).sum())(params))
print(kepler(jnp.linspace(0.0, 3.0, 5), 0.3), jax.grad(lambda e: kepler(1.0, e)[0])(0.3))
