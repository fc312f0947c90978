"""jwave: a wave of sound through a medium, and its derivative."""

import jax
import jax.numpy as jnp
from jwave import FourierSeries
from jwave.acoustics import simulate_wave_propagation
from jwave.geometry import Domain, Medium, TimeAxis, circ_mask

domain = Domain((24, 24), (1e-3, 1e-3))
medium = Medium(domain=domain, sound_speed=1500.0)
axis = TimeAxis.from_medium(medium, cfl=0.3, t_end=4e-6)
p0 = FourierSeries(jnp.expand_dims(1.0 * circ_mask((24, 24), 4, (12, 12)), -1), domain)


@jax.jit
def run(p0):
    return simulate_wave_propagation(medium, axis, p0=p0)


out = run(p0)
print(out[-1].on_grid[12, 8:16, 0])


def energy(scale):
    return jnp.sum(run(FourierSeries(p0.on_grid * scale, domain))[-1].on_grid ** 2)


print(jax.grad(energy)(1.0))
