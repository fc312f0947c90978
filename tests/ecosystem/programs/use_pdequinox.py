"""pdequinox: train a U-Net to solve Poisson's equation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pdequinox as pdeqx

forces, answers = pdeqx.sample_data.poisson_1d_dirichlet(
    num_points=24, num_samples=16, key=jax.random.PRNGKey(0)
)
unet = pdeqx.arch.ClassicUNet(1, 1, 1, hidden_channels=4, num_levels=2, key=jax.random.PRNGKey(1))


def loss(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


optimizer = optax.adam(3e-3)
state = optimizer.init(eqx.filter(unet, eqx.is_array))


@eqx.filter_jit
def update(model, state, x, y):
    value, slope = eqx.filter_value_and_grad(loss)(model, x, y)
    updates, state = optimizer.update(slope, state, model)
    return eqx.apply_updates(model, updates), state, value


for x, y in pdeqx.dataloader((forces, answers), batch_size=8, key=jax.random.PRNGKey(2)):
    unet, state, value = update(unet, state, x, y)
    print(value)
for arch in (pdeqx.arch.ConvNet, pdeqx.arch.ClassicResNet, pdeqx.arch.ClassicFNO):
    model = arch(1, 1, 1, key=jax.random.PRNGKey(3))
    print(arch.__name__, jnp.sum(model(forces[0]) ** 2))
