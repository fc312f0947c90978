"""exponax: equations of motion by Fourier series, and the Jacobian of a step."""

import exponax as ex
import jax
import jax.numpy as jnp

u = ex.ic.RandomTruncatedFourierSeries(num_spatial_dims=1, cutoff=5)(
    num_points=40, key=jax.random.PRNGKey(0)
)
steppers = [
    ex.stepper.KuramotoSivashinskyConservative(1, 60.0, 40, 0.1),
    ex.stepper.Advection(1, 1.0, 40, 0.01, velocity=0.3),
    ex.stepper.Diffusion(1, 1.0, 40, 0.01, diffusivity=0.02),
    ex.stepper.Burgers(1, 1.0, 40, 0.01),
    ex.stepper.KortewegDeVries(1, 20.0, 40, 0.01),
]
print(u)
for stepper in steppers:
    path = jax.jit(ex.rollout(stepper, 20, include_init=True))(u)
    print(path.shape, path[-1, 0, ::5])
    jacobian = jax.jacfwd(stepper)(u)
    print(jacobian.shape, jnp.trace(jacobian[0, :, 0]))
print(jax.vmap(ex.repeat(steppers[2], 5))(jnp.stack([u, 2 * u])).sum(axis=(1, 2)))
v = ex.ic.GaussianRandomField(2)(16, key=jax.random.PRNGKey(1))
print(ex.repeat(ex.stepper.Diffusion(2, 1.0, 16, 0.01), 3)(v)[0, 0, :6])
print(ex.metrics.nRMSE(path[1], path[-1]), ex.get_spectrum(u)[0, :5])
