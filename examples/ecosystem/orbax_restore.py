"""Save a training run with orbax, restore it and go on: python -m weft orbax_restore.py."""

import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp

optimizer = optax.adam(1e-2)


@jax.jit
def train(run, key):
    """One step of a regression on fresh points."""
    x = jax.random.normal(key, (32, 4))
    y = x @ jnp.arange(4.0)
    loss, grads = jax.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(run["weights"])
    updates, state = optimizer.update(grads, run["state"])
    return dict(weights=optax.apply_updates(run["weights"], updates), state=state), loss


def go_on(run, first, last):
    """The run after the steps from `first` to `last`."""
    for number in range(first, last):
        run, _ = train(run, jax.random.fold_in(jax.random.key(0), number))
    return run


def main():
    weights = jnp.zeros(4)
    start = dict(weights=weights, state=optimizer.init(weights))
    with (
        tempfile.TemporaryDirectory() as folder,
        ocp.CheckpointManager(Path(folder) / "run") as manager,
    ):
        half = go_on(start, 0, 20)
        manager.save(20, args=ocp.args.StandardSave(half))
        manager.wait_until_finished()
        like = jax.tree.map(ocp.utils.to_shape_dtype_struct, start)
        step = manager.latest_step()
        restored = manager.restore(step, args=ocp.args.StandardRestore(like))
    resumed, whole = go_on(restored, step, 40), go_on(half, 20, 40)
    same = jax.tree.map(lambda a, b: bool(np.array_equal(a, b)), resumed, whole)
    print(f"resumed at step {step}: weights {resumed['weights']}\nas without a pause: {same}")
    return all(jax.tree.leaves(same)) and isinstance(restored["weights"], jax.Array)


if __name__ == "__main__":
    sys.exit(not main())
