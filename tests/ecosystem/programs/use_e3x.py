"""e3x: features that turn with their points, in a network of flax."""

import functools

import e3x
import flax.linen as nn
import jax
import jax.numpy as jnp

positions = jax.random.normal(jax.random.key(0), (5, 3)) * 1.5
dst, src = e3x.ops.sparse_pairwise_indices(5)
print(
    e3x.so3.spherical_harmonics(positions, max_degree=2)[0], e3x.so3.clebsch_gordan(1, 1, 1).sum()
)
rotation = e3x.so3.rotation_euler(0.1, 0.2, 0.3)
print(rotation, e3x.so3.wigner_d(rotation, 2)[0])


class Model(nn.Module):
    @nn.compact
    def __call__(self, r):
        basis = e3x.nn.basis(
            r[dst] - r[src],
            max_degree=1,
            num=4,
            radial_fn=e3x.nn.reciprocal_bernstein,
            cutoff_fn=functools.partial(e3x.nn.smooth_cutoff, cutoff=5.0),
        )
        x = e3x.nn.Embed(3, 4)(jnp.array([0, 1, 2, 1, 0]))
        x = e3x.nn.MessagePass(max_degree=1)(x, basis, dst_idx=dst, src_idx=src)
        x = e3x.nn.silu(e3x.nn.Dense(4)(x))
        x = e3x.nn.TensorDense(2, max_degree=1)(x)
        return jnp.sum(x[:, 0, 0, :])


model = Model()
params = model.init(jax.random.key(1), positions)
energy, forces = jax.jit(jax.value_and_grad(lambda r: model.apply(params, r)))(positions)
print(energy, forces)
print(model.apply(params, positions @ rotation), forces.sum(axis=0))
