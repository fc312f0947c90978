"""orbax.checkpoint as its documentation shows it: handlers, checkpointers, managers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from public_names import find_unused

MESH = jax.make_mesh((1,), ("x",))
SHARDED = NamedSharding(MESH, PartitionSpec("x"))


def make():
    x = jnp.arange(6.0).reshape(2, 3)
    return {
        "x": x,
        "half": jnp.ones(3, jnp.bfloat16),
        "ints": jnp.arange(4),
        "scalar": 2.5,
        "host": np.arange(3),
        "nested": {"a": [x * 2, {"b": x[0]}]},
        "sharded": jax.device_put(jnp.arange(4.0), SHARDED),
    }


def structs(tree):
    return jax.tree.map(ocp.utils.to_shape_dtype_struct, tree)


CHECKPOINTERS = {
    "standard": lambda: ocp.StandardCheckpointer(),
    "pytree": lambda: ocp.PyTreeCheckpointer(),
    "plain": lambda: ocp.Checkpointer(ocp.PyTreeCheckpointHandler()),
    "asynchronous": lambda: ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler()),
}


@pytest.mark.parametrize("name", CHECKPOINTERS)
def test_checkpointers(name, tmp_path, record):
    tree, path = make(), tmp_path / "saved"
    with CHECKPOINTERS[name]() as checkpointer:
        assert isinstance(checkpointer, ocp.AbstractCheckpointer)
        standard = name in ("standard", "asynchronous")
        kept = tree if standard or name == "pytree" else ocp.args.PyTreeSave(tree)
        if name == "asynchronous":
            kept = ocp.args.StandardSave(tree)
        checkpointer.save(path, kept)
        if name in ("standard", "asynchronous"):
            checkpointer.wait_until_finished()
        if name == "standard":
            back = checkpointer.restore(path, structs(tree))
            assert back["sharded"].sharding == SHARDED and back["half"].dtype == jnp.bfloat16
            record(back)
        elif name == "asynchronous":
            record(checkpointer.restore(path, args=ocp.args.StandardRestore(structs(tree))))
        else:
            record(checkpointer.restore(path))
        assert checkpointer.metadata(path) is not None
        with pytest.raises(ValueError, match="exists"):
            checkpointer.save(path, kept)


def test_arguments_of_leaves(tmp_path, record):
    tree = {"a": jnp.arange(4.0), "b": np.arange(3)}
    checkpointer = ocp.PyTreeCheckpointer()
    checkpointer.save(
        tmp_path / "t",
        tree,
        save_args=jax.tree.map(lambda _: ocp.SaveArgs(dtype=jnp.dtype("bfloat16")), tree),
    )
    arguments = {
        "a": ocp.ArrayRestoreArgs(restore_type=jax.Array, dtype=jnp.float32, sharding=SHARDED),
        "b": ocp.RestoreArgs(restore_type=np.ndarray),
    }
    back = checkpointer.restore(tmp_path / "t", restore_args=arguments)
    assert isinstance(back["a"], jax.Array) and back["a"].sharding == SHARDED
    record(back)
    made = ocp.checkpoint_utils.construct_restore_args(structs(tree))
    record(checkpointer.restore(tmp_path / "t", item=tree, restore_args=made))
    part = {"a": tree["a"], "b": ocp.PLACEHOLDER}
    restore = ocp.args.PyTreeRestore(
        part, restore_args=jax.tree.map(lambda _: ocp.RestoreArgs(), part)
    )
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as plain:
        record(plain.restore(tmp_path / "t", args=restore)["a"])


def test_transformations(tmp_path, record):
    tree = {"a": jnp.arange(3.0), "b": {"c": jnp.ones(2)}}
    moved = ocp.apply_transformations(
        tree, {"x": ocp.Transform(original_key="a", value_fn=lambda v: v * 2)},
        {"x": 0, "b": {"c": 0}},
    )  # fmt: skip
    record(moved)
    assert ocp.RestoreTransform(original_key="a").original_key == "a"
    record(ocp.merge_trees({"a": 1}, {"b": jnp.ones(2)}))
    record(ocp.tree.to_flat_dict(tree, sep="."))
    assert ocp.tree.serialize_tree(tree)


def test_composite(tmp_path, record):
    tree = make()
    save = dict(
        state=ocp.args.StandardSave(tree),
        arrays=ocp.args.ArraySave(jnp.arange(3.0)),
        notes=ocp.args.JsonSave({"step": 3}),
        key=ocp.args.JaxRandomKeySave(jax.random.key(3)),
        words=ocp.args.JaxRandomKeySave(jax.random.PRNGKey(4)),
        host_key=ocp.args.NumpyRandomKeySave(np.random.RandomState(0).get_state()),
    )
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        checkpointer.save(tmp_path / "c", ocp.args.Composite(**save))
        back = checkpointer.restore(
            tmp_path / "c",
            ocp.args.Composite(
                state=ocp.args.StandardRestore(structs(tree)),
                arrays=ocp.args.ArrayRestore(),
                notes=ocp.args.JsonRestore(),
                key=ocp.args.JaxRandomKeyRestore(),
                words=ocp.args.JaxRandomKeyRestore(),
                host_key=ocp.args.NumpyRandomKeyRestore(),
            ),
        )
    assert back.notes == {"step": 3} and jnp.issubdtype(back.key.dtype, jax.dtypes.prng_key)
    record([back.state, back.arrays, jax.random.key_data(back.key), back.words, back.host_key[1]])
    assert jax.random.key_impl(back.key) == jax.random.key_impl(jax.random.key(3))


def test_manager(tmp_path, record):
    """Steps kept by rule and by measure, restored into a train state; and a new manager."""
    options = ocp.CheckpointManagerOptions(
        max_to_keep=2, save_interval_steps=2, best_fn=lambda m: m["loss"], best_mode="min",
        async_options=ocp.AsyncOptions(timeout_secs=60),
    )  # fmt: skip
    optimizer = optax.adam(0.1)
    params = {"w": jnp.arange(3.0)}
    state = {"params": params, "opt": optimizer.init(params)}
    with ocp.CheckpointManager(tmp_path, options=options) as manager:
        assert ocp.AbstractCheckpointManager in type(manager).__mro__
        for step in range(7):
            grads = jax.grad(lambda p: jnp.sum(p["w"] ** 2))(state["params"])
            updates, opt = optimizer.update(grads, state["opt"])
            state = {"params": optax.apply_updates(state["params"], updates), "opt": opt}
            manager.save(
                step, args=ocp.args.StandardSave(state), metrics={"loss": float(abs(step - 3))}
            )
        manager.wait_until_finished()
        record([manager.latest_step(), manager.best_step(), *manager.all_steps()])
    with ocp.CheckpointManager(tmp_path, options=options) as manager:
        restored = manager.restore(
            manager.latest_step(), args=ocp.args.StandardRestore(structs(state))
        )
        record(restored)
        assert jax.tree.structure(restored) == jax.tree.structure(state)
        manager.delete(manager.latest_step())
        record(list(manager.all_steps()))
        with pytest.raises(FileNotFoundError):
            manager.restore(99, args=ocp.args.StandardRestore())


def test_manager_of_items(tmp_path, record):
    with ocp.CheckpointManager(tmp_path, item_names=("params", "notes")) as manager:
        items = dict(params=ocp.args.StandardSave(make()), notes=ocp.args.JsonSave({"a": 1}))
        manager.save(0, args=ocp.args.Composite(**items))
        manager.wait_until_finished()
        back = manager.restore(
            0,
            args=ocp.args.Composite(
                params=ocp.args.StandardRestore(structs(make())), notes=ocp.args.JsonRestore()
            ),
        )
        record(back.params)
        assert back.notes == {"a": 1} and manager.item_metadata(0).params is not None


def test_own_handler(tmp_path):
    class Handler(ocp.CheckpointHandler):
        def save(self, directory, args):
            (directory / "text").write_text(args.item)

        def restore(self, directory, args=None):
            return (directory / "text").read_text()

    import dataclasses

    @ocp.args.register_with_handler(Handler, for_save=True, for_restore=True)
    @dataclasses.dataclass
    class Text(ocp.args.CheckpointArgs):
        item: str = ""

    with ocp.Checkpointer(Handler()) as checkpointer:
        checkpointer.save(tmp_path / "t", args=Text("hello"))
        assert checkpointer.restore(tmp_path / "t", args=Text()) == "hello"
    registry = ocp.DefaultCheckpointHandlerRegistry()
    registry.add("item", Text, Handler())
    assert registry.has("item", Text)


HANDLERS = (
    *(ocp.BasePyTreeCheckpointHandler, ocp.ArrayCheckpointHandler, ocp.JsonCheckpointHandler),
    *(ocp.JaxRandomKeyCheckpointHandler, ocp.NumpyRandomKeyCheckpointHandler),
    *(ocp.PyTreeCheckpointHandler, ocp.StandardCheckpointHandler),
    *(ocp.ProtoCheckpointHandler, ocp.CompositeCheckpointHandler),
)


def test_handlers():
    for handler in HANDLERS[:7]:
        made = handler()
        assert isinstance(made, ocp.CheckpointHandler | ocp.AsyncCheckpointHandler)


def test_another_layout(tmp_path, record):
    """Arrays saved in one sharding and dtype are restored in another."""
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "t", {"a": jnp.arange(8.0)})
        checkpointer.wait_until_finished()
        target = {"a": jax.ShapeDtypeStruct((8,), jnp.bfloat16, sharding=SHARDED)}
        back = checkpointer.restore(tmp_path / "t", target)
        assert back["a"].sharding == SHARDED and back["a"].dtype == jnp.bfloat16
        record(back)


def test_newer_interface(tmp_path, record):
    tree = {k: v for k, v in make().items() if k not in ("scalar", "host")}
    ocp.v1.save_pytree(tmp_path / "t", tree)
    record(ocp.v1.load_pytree(tmp_path / "t"))
    record(ocp.v1.load_pytree(tmp_path / "t", structs(tree)))
    assert ocp.v1.pytree_metadata(tmp_path / "t").metadata is not None
    response = ocp.v1.save_pytree_async(tmp_path / "u", tree)
    response.result()
    record(ocp.v1.load_pytree(tmp_path / "u"))
    with ocp.v1.training.Checkpointer(tmp_path / "training") as checkpointer:
        for step in range(3):
            checkpointer.save_pytree(step, {"w": jnp.ones(2) * step})
        record(checkpointer.load_pytree())
        record(checkpointer.latest.step)


def test_every_public_name_is_used():
    rest = "CheckpointHandlerRegistry CompositeOptions Future"
    assert not find_unused(ocp, __file__, rest)
