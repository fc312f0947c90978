"""memax: recurrent layers by parallel scans, with several episodes in one sequence."""

import equinox as eqx
import jax
import jax.numpy as jnp
from memax.equinox.train_utils import add_batch_dim, get_residual_memory_model

for name in ("LRU", "GRU"):
    model = get_residual_memory_model(
        model_name=name, input=3, hidden=8, output=1, num_layers=2, key=jax.random.key(0)
    )
    x, starts = jnp.sin(jnp.arange(15.0)).reshape(5, 3), jnp.array([1, 0, 0, 1, 0], bool)
    state, y = eqx.filter_jit(model)(model.initialize_carry(), (x, starts))
    last = eqx.filter_jit(model.latest_recurrent_state)(state)
    print(y[:, 0], [abs(leaf).sum() for leaf in jax.tree.leaves(last)])
    carry = add_batch_dim(model.initialize_carry(), 2)
    y = eqx.filter_jit(eqx.filter_vmap(model))(
        carry, (jnp.stack([x, 2 * x]), starts[None].repeat(2, 0))
    )[1]
    print(y[:, :, 0])
