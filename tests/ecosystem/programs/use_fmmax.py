"""fmmax: the reflection of a photonic crystal by Fourier modes, and its derivative."""

import fmmax
import jax
import jax.numpy as jnp

lattice = fmmax.LatticeVectors(u=fmmax.X, v=fmmax.Y)
expansion = fmmax.generate_expansion(
    primitive_lattice_vectors=lattice,
    approximate_num_terms=12,
    truncation=fmmax.Truncation.CIRCULAR,
)


def solve(permittivity):
    return fmmax.eigensolve_isotropic_media(
        wavelength=jnp.asarray(1.3), in_plane_wavevector=jnp.zeros(2),
        primitive_lattice_vectors=lattice, permittivity=permittivity.astype(complex),
        expansion=expansion, formulation=fmmax.Formulation.FFT,
    )  # fmt: skip


def reflect(radius):
    x, y = fmmax.unit_cell_coordinates(lattice, (32, 32), (1, 1))
    hole = jax.nn.sigmoid((radius - jnp.hypot(x - 0.5, y - 0.5)) * 20)
    air = solve(jnp.ones((1, 1)))
    depths = [jnp.asarray(d) for d in (1.0, 0.4, 1.0)]
    return abs(fmmax.stack_s_matrix([air, solve(1 + 3 * hole), air], depths).s21[0, 0]) ** 2


print(*jax.value_and_grad(reflect)(0.3))
