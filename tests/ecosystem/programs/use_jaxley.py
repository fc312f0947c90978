"""jaxley: the voltage of a neuron, and its derivative by a conductance."""

import jax
import jax.numpy as jnp
import jaxley as jx
from jaxley.channels import HH

jax.config.update("jax_enable_x64", True)
branch = jx.Branch(jx.Compartment(), ncomp=2)
cell = jx.Cell(branch, parents=[-1, 0, 0])
cell.insert(HH())
current = jx.step_current(i_delay=1.0, i_dur=1.0, i_amp=0.1, delta_t=0.025, t_max=3.0)
cell.branch(0).loc(0.0).stimulate(current)
cell.branch(2).loc(1.0).record("v")
cell.make_trainable("HH_gNa")
params = cell.get_parameters()


@jax.jit
@jax.value_and_grad
def loss(params):
    return jnp.mean(jx.integrate(cell, params=params) ** 2)


print(jx.integrate(cell, params=params)[0, ::20])
print(loss(params))
