"""dLux: the picture of a star through a telescope, and its derivative."""

import dLux as dl
import dLux.utils as dlu
import jax
import jax.numpy as jnp

aperture = dlu.circle(dlu.pixel_coords(64, 1.0), 0.5)
optics = dl.AngularOpticalSystem(
    wf_npixels=64, diameter=1.0, psf_npixels=8, psf_pixel_scale=0.1,
    layers=[("aperture", dl.layers.TransmissiveLayer(aperture, normalise=True))],
)  # fmt: skip


def picture(position):
    source = dl.PointSource(wavelengths=jnp.linspace(0.9e-6, 1.1e-6, 3), position=position)
    return optics.model(source)


print(picture(jnp.zeros(2))[2:6, 2:6])
print(jax.grad(lambda p: (picture(p)[:4] * 1e2).sum())(jnp.array([1e-6, 2e-6])) * 1e-6)
