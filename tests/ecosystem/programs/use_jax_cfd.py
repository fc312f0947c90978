"""jax-cfd: a turbulent flow for some steps, and the derivative through them."""

import jax
import jax.numpy as jnp
import jax_cfd.base as cfd
import jax_cfd.spectral as spectral

grid = cfd.grids.Grid((16, 16), domain=((0, 2 * jnp.pi), (0, 2 * jnp.pi)))
v0 = cfd.initial_conditions.filtered_velocity_field(
    jax.random.PRNGKey(0), grid, maximum_velocity=1.0, peak_wavenumber=2
)
step = cfd.funcutils.repeated(
    cfd.equations.semi_implicit_navier_stokes(density=1.0, viscosity=0.05, dt=0.02, grid=grid),
    steps=4,
)
v = jax.jit(step)(v0)
print(v[0].data[:3, :3], v[1].data.sum(), cfd.finite_differences.curl_2d(v).data[0, :4])


def energy(scale):
    return sum(jnp.sum(u.data**2) for u in step(jax.tree.map(lambda x: x * scale, v0)))


print(jax.grad(energy)(1.0))
equation = spectral.equations.NavierStokes2D(0.05, grid, smooth=True)
advance = spectral.time_stepping.crank_nicolson_rk4(equation, 0.02)
vorticity = cfd.finite_differences.curl_2d(v0).data
path = jax.jit(cfd.funcutils.repeated(advance, 3))(jnp.fft.rfftn(vorticity))
print(jnp.fft.irfftn(path)[0, :4])
