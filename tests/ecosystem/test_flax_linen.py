"""flax.linen as its documentation shows it: every layer, transformation and tool."""

import functools
import warnings

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import serialization, struct, traverse_util
from flax.training import checkpoints, common_utils, early_stopping, train_state
from jax.sharding import Mesh, PartitionSpec
from public_names import find_unused

KEY = jax.random.key(0)


def values(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def use(module, record, *args, mutable=False, **kwargs):
    """Initialize, apply with fixed weights, differentiate and map, compiled as one program."""
    variables = jax.jit(functools.partial(module.init, **kwargs))(
        {"params": KEY, "dropout": KEY}, *args
    )
    record(variables)
    fixed = jax.tree.map(
        lambda x: jnp.sin(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape) * 0.3, variables
    )
    apply = functools.partial(module.apply, rngs={"dropout": KEY}, mutable=mutable, **kwargs)
    leaves = lambda tree: [
        x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)
    ]

    @jax.jit
    def run(variables):
        total = lambda p: sum(
            jnp.sum(x**2) for x in leaves(apply({**variables, "params": p}, *args))
        )
        params = variables.get("params", {})
        mapped = jax.vmap(lambda s: leaves(apply(variables, *jax.tree.map(lambda x: x * s, args))))
        scales = jnp.array([1, 2], args[0].dtype)
        return apply(variables, *args), jax.grad(total)(params), mapped(scales)

    record(run(fixed))
    return fixed


X, IMAGE, SEQUENCE = values(2, 4), values(2, 8, 8, 3), values(2, 5, 4)
LAYERS = {
    "dense": (nn.Dense(3), X),
    "dense_general": (nn.DenseGeneral((2, 3), axis=(-2, -1)), SEQUENCE),
    "dense_general_batch": (nn.DenseGeneral(3, batch_dims=(0,)), X),
    "einsum": (nn.Einsum((4, 3), "...i,ij->...j"), X),
    "conv1d": (nn.Conv(3, 3), SEQUENCE),
    "conv2d": (nn.Conv(4, (3, 3), strides=2, padding="VALID"), IMAGE),
    "conv_grouped": (nn.Conv(6, (3, 3), feature_group_count=3, kernel_dilation=2), IMAGE),
    "conv_circular": (nn.Conv(2, (3, 3), padding="CIRCULAR"), IMAGE),
    "conv_causal": (nn.Conv(2, (3,), padding="CAUSAL"), SEQUENCE),
    "conv_local": (nn.ConvLocal(2, (3,)), SEQUENCE),
    "conv_transpose": (nn.ConvTranspose(2, (3, 3), strides=(2, 2)), IMAGE),
    "conv_transpose_kernel": (nn.ConvTranspose(2, (3, 3), transpose_kernel=True), IMAGE),
    "batch_norm": (nn.BatchNorm(use_running_average=True), X),
    "layer_norm": (nn.LayerNorm(), X),
    "layer_norm_slow": (nn.LayerNorm(use_fast_variance=False, reduction_axes=(-2, -1)), SEQUENCE),
    "rms_norm": (nn.RMSNorm(), X),
    "group_norm": (nn.GroupNorm(num_groups=2), SEQUENCE),
    "instance_norm": (nn.InstanceNorm(), IMAGE),
    "weight_norm": (nn.WeightNorm(nn.Dense(3)), X),
    "prelu": (nn.PReLU(), X),
    "dropout": (nn.Dropout(0.5, deterministic=True), X),
    "dropout_axes": (nn.Dropout(0.5, broadcast_dims=(1,), deterministic=False), SEQUENCE),
    "sequential": (nn.Sequential([nn.Dense(3), nn.relu, nn.Dense(2)]), X),
    "attention": (nn.MultiHeadDotProductAttention(2, qkv_features=4), SEQUENCE),
    "attention_cross": (nn.MultiHeadAttention(2, normalize_qk=True), SEQUENCE, SEQUENCE[:, :3]),
    "self_attention": (nn.SelfAttention(2), SEQUENCE),
    "rnn": (nn.RNN(nn.LSTMCell(3)), SEQUENCE),
    "rnn_reversed": (nn.RNN(nn.GRUCell(3), reverse=True, keep_order=True, unroll=2), SEQUENCE),
    "bidirectional": (nn.Bidirectional(nn.RNN(nn.GRUCell(3)), nn.RNN(nn.GRUCell(3))), SEQUENCE),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name, record):
    module, *args = LAYERS[name]
    use(module, record, *args)


CELLS = (nn.LSTMCell, nn.OptimizedLSTMCell, nn.GRUCell, nn.MGUCell, nn.SimpleCell)


@pytest.mark.parametrize("kind", CELLS, ids=lambda kind: kind.__name__)
def test_cells(kind, record):
    cell = kind(3)
    assert isinstance(cell, nn.RNNCellBase)
    carry = cell.initialize_carry(KEY, X.shape)
    variables = cell.init(KEY, carry, X)
    record(jax.jit(cell.apply)(variables, carry, X))
    lengths = nn.RNN(cell, return_carry=True)
    record(lengths.apply({"params": {"cell": variables["params"]}}, SEQUENCE,
                         seq_lengths=jnp.array([2, 5])))  # fmt: skip


def test_conv_lstm(record):
    cell = nn.ConvLSTMCell(2, (3, 3))
    carry = cell.initialize_carry(KEY, IMAGE.shape)
    record(cell.init_with_output(KEY, carry, IMAGE))


def test_embedding(record):
    embed = nn.Embed(5, 3)
    variables = embed.init(KEY, jnp.array([1, 2]))
    record(jax.jit(embed.apply)(variables, jnp.array([[1, 4], [0, 2]])))
    record(embed.apply(variables, values(2, 3), method="attend"))


@pytest.mark.parametrize("norm", ["batch", "spectral"])
def test_state(norm, record):
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            if norm == "batch":
                return nn.BatchNorm(momentum=0.9, use_running_average=not train)(x)
            return nn.SpectralNorm(nn.Dense(3))(x, update_stats=train)

    net = Net()
    variables = net.init(KEY, X, train=False)
    step = jax.jit(functools.partial(net.apply, train=True, mutable=["batch_stats"]))
    out, updates = step(variables, X)
    record([out, updates])
    record(net.apply({**variables, **updates}, X, train=False))


def test_mapped_batch_norm(record):
    norm = nn.BatchNorm(use_running_average=False, axis_name="batch")
    variables = norm.init(KEY, X)
    run = jax.vmap(lambda x: norm.apply(variables, x, mutable=["batch_stats"]), axis_name="batch")
    record(run(SEQUENCE))


ACTIVATIONS = (
    *("celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh"),
    *("leaky_relu", "log_sigmoid", "log_softmax", "logsumexp", "relu", "relu6", "selu"),
    *("sigmoid", "silu", "soft_sign", "softmax", "softplus", "standardize", "swish", "tanh"),
    "normalize",
)


def test_activations(record):
    for name in ACTIVATIONS:
        fun = getattr(nn, name)
        record(fun(X))
    record(nn.one_hot(jnp.array([1, 0]), 3))
    total = lambda x: sum(jnp.sum(getattr(nn, name)(x)) for name in ACTIVATIONS)
    record(jax.jit(jax.grad(total))(X))


def test_bfloat16():
    dense = nn.Dense(3, dtype=jnp.bfloat16)
    variables = dense.init(KEY, X)
    out = jax.jit(dense.apply)(variables, X)
    assert out.dtype == jnp.bfloat16 and variables["params"]["kernel"].dtype == jnp.float32
    np.testing.assert_allclose(out.astype(jnp.float32), nn.Dense(3).apply(variables, X), atol=0.05)


def test_batch_apply(record):
    record(nn.BatchApply(lambda x: x @ jnp.ones((4, 3)))(SEQUENCE))


def test_pools(record):
    record(nn.avg_pool(IMAGE, (2, 2), strides=(2, 2)))
    record(nn.avg_pool(IMAGE, (3, 3), padding="SAME", count_include_pad=False))
    record(nn.max_pool(IMAGE, (2, 2), strides=(2, 2), padding="SAME"))
    record(nn.pool(IMAGE, 0.0, jax.lax.add, (2, 2), (1, 1), "VALID"))
    record(jax.grad(lambda x: nn.max_pool(x, (2, 2)).sum())(IMAGE))


def test_attention_functions(record):
    q = values(2, 5, 2, 3)
    causal = nn.make_causal_mask(jnp.ones((2, 5)))
    padding = nn.make_attention_mask(jnp.ones((2, 5)), jnp.arange(5)[None] < 3)
    mask = nn.combine_masks(causal, padding)
    record([causal, padding, mask])
    record(nn.dot_product_attention(q, q, q, mask=mask))
    record(nn.dot_product_attention_weights(q, q, bias=jnp.ones((1, 2, 5, 5))))
    decode = nn.MultiHeadDotProductAttention(2, decode=True, qkv_features=4)
    variables = decode.init(KEY, SEQUENCE)
    for i in range(2):
        out, state = decode.apply(variables, SEQUENCE[:, i : i + 1], mutable=["cache"])
        variables = {**variables, **state}
        record([out, state])


FP8 = (nn.Fp8DirectDotGeneralOp, nn.Fp8DotGeneralOp, nn.NANOOFp8DotGeneralOp)


@pytest.mark.parametrize("kind", FP8, ids=lambda kind: kind.__name__)
def test_fp8(kind, record):
    with warnings.catch_warnings(action="ignore"):
        dense = nn.Dense(16, dot_general_cls=kind)
        x = values(16, 16)
        variables = dense.init(KEY, x)
        run = lambda v, x: jnp.sum(dense.apply(v, x) ** 2)
        record(jax.jit(jax.value_and_grad(run, allow_int=True))(variables, x)[0])
    assert nn.Fp8DotGeneral is not None and nn.Fp8Einsum is not None


class Block(nn.Module):
    """A module with both styles of definition, a variable and a method."""

    width: int = 4
    scale_init: nn.initializers.Initializer = nn.initializers.ones

    def setup(self):
        self.inner = nn.Dense(self.width)
        self.scale = self.param("scale", self.scale_init, (self.width,))
        self.calls = self.variable("counts", "calls", lambda: jnp.zeros((), jnp.int32))

    def __call__(self, x):
        if self.is_mutable_collection("counts"):
            self.calls.value += 1
        self.sow("intermediates", "seen", x)
        return self.helper(x) * self.scale

    def helper(self, x):
        return nn.tanh(self.inner(x))

    @nn.nowrap
    def double(self):
        return self.width * 2


def test_module(record):
    block = Block()
    variables = block.init(KEY, X)
    record(variables)
    out, state = block.apply(variables, X, mutable=["counts", "intermediates"])
    record([out, state])
    record(block.apply(variables, X, method=Block.helper))
    assert block.double() == 8 and block.clone(width=3).width == 3 and "width = 4" in repr(block)
    bound = block.bind(variables)
    record(bound(X))
    inner, inner_variables = bound.inner.unbind()
    record(inner.apply(inner_variables, X))
    record(block.apply(variables, X, capture_intermediates=True)[1])
    record(block.lazy_init(KEY, jax.ShapeDtypeStruct((2, 4), jnp.float32)))
    with pytest.raises(flax.errors.ScopeParamShapeError):
        block.apply(variables, values(2, 5))
    with pytest.raises(flax.errors.ScopeCollectionNotFound):
        nn.Dense(2).apply({}, X)


def test_functions_of_modules(record):
    fun = lambda module, x: module(x) + module.helper(x)
    variables = nn.init(fun, Block())(KEY, X)
    record(nn.apply(fun, Block())(variables, X))
    record(nn.init_with_output(fun, Block())(KEY, X)[0])
    doubled = lambda f, args, kwargs, context: f(*args, **kwargs) * 2
    with nn.intercept_methods(doubled):
        record(nn.Dense(2, kernel_init=nn.ones, bias_init=nn.zeros).init_with_output(KEY, X)[0])
    with nn.override_named_call(True):
        record(nn.Dense(2, kernel_init=nn.ones_init(), bias_init=nn.zeros_init()).init(KEY, X))
    nn.disable_named_call(), nn.enable_named_call()
    assert nn.named_call is not None and nn.merge_param("a", None, 3) == 3


def test_scopes(record):
    class Shared(nn.Module):
        def setup(self):
            self.inner = nn.Dense(4)
            nn.share_scope(self, self.inner)

        def __call__(self, x):
            return self.inner(x)

    class Named(nn.Module):
        @nn.compact_name_scope
        def up(self, x):
            return nn.Dense(3)(x)

        def __call__(self, x):
            return self.up(x)

    for module in (Shared(), Named()):
        record(module.init_with_output({"params": KEY}, X))
        assert module.init(KEY, X)["params"]


TRANSFORMED = {
    "jit": lambda: nn.jit(nn.Dense)(3),
    "remat": lambda: nn.remat(nn.Dense)(3),
    "checkpoint": lambda: nn.checkpoint(
        nn.Dense, policy=jax.checkpoint_policies.everything_saveable)(3),
    "vmap": lambda: nn.vmap(
        nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=0)(3),
    "vmap_shared": lambda: nn.vmap(
        nn.Dense, variable_axes={"params": None}, split_rngs={"params": False})(3),
    "remat_scan": lambda: nn.remat_scan(nn.Dense, lengths=(2, 2))(4),
    "map_variables": lambda: nn.map_variables(
        nn.Dense, "params", lambda v: jax.tree.map(lambda x: x * 2, v), init=True)(3),
    "metadata": lambda: nn.add_metadata_axis(
        nn.Dense, variable_axes={"params": 0}, metadata_params={nn.PARTITION_NAME: "x"})(3),
    "fold": lambda: nn.fold_rngs(nn.Dense)(3),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformed(name, record):
    use(TRANSFORMED[name](), record, X)


class Step(nn.Module):
    @nn.compact
    def __call__(self, carry, x):
        y = nn.Dense(4)(carry) + x
        return y, y.sum()


@pytest.mark.parametrize("layers", [True, False])
def test_scan(layers, record):
    how = dict(variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
    if not layers:
        how = dict(variable_broadcast="params", split_rngs={"params": False}, in_axes=1)
    scan = nn.scan(Step, **how)()
    xs = values(3, 2, 4) if layers else values(2, 3, 4)
    variables = scan.init(KEY, X, xs)
    record(variables)
    record(jax.jit(scan.apply)(variables, X, xs))
    record(jax.grad(lambda v: scan.apply(v, X, xs)[0].sum())(variables))


class Control(nn.Module):
    kind: str

    @nn.compact
    def __call__(self, x):
        a, b = nn.Dense(4, name="a"), nn.Dense(4, name="b")
        if self.is_initializing():
            a(x), b(x)
        if self.kind == "cond":
            return nn.cond(x.sum() > 0, lambda m, x: a(x), lambda m, x: b(x), self, x)
        if self.kind == "switch":
            return nn.switch(1, [lambda m, x: a(x), lambda m, x: b(x)], self, x)
        if self.kind == "while":
            step = lambda m, c: (c[0] + 1, nn.tanh(a(c[1])))
            return nn.while_loop(lambda m, c: c[0] < 3, step, self, (0, x))[1]
        if self.kind == "grad":
            return nn.grad(lambda m, x: m(x).sum(), a, x)
        if self.kind == "value_and_grad":
            return nn.value_and_grad(lambda m, x: m(x).sum(), a, x)
        if self.kind == "jvp":
            return nn.jvp(lambda m, x: m(x), a, (x,), (x,), variable_tangents={})
        if self.kind == "vjp":
            out, pull = nn.vjp(lambda m, x: m(x), a, x)
            return out, pull(out)
        scaled = nn.custom_vjp(
            lambda m, x: m(x),
            forward_fn=lambda m, x: nn.vjp(lambda m, x: m(x), m, x),
            backward_fn=lambda pull, t: jax.tree.map(lambda g: 2 * g, pull(t)),
        )
        return scaled(a, x)


KINDS = ("cond", "switch", "while", "grad", "value_and_grad", "jvp", "vjp", "custom_vjp")


@pytest.mark.parametrize("kind", KINDS)
def test_control(kind, record):
    module = Control(kind)
    variables = module.init(KEY, X)
    record(jax.jit(module.apply)(variables, X))
    if kind in ("cond", "custom_vjp"):
        total = lambda v: jnp.sum(module.apply(v, X) ** 2)
        record(jax.jit(jax.grad(total))(variables))


def test_partitioning(record):
    init = nn.with_partitioning(nn.initializers.ones, ("x", None))
    variables = nn.Dense(4, kernel_init=init).init(KEY, X)
    assert isinstance(variables["params"]["kernel"], nn.Partitioned)
    assert nn.get_partition_spec(variables)["params"]["kernel"] == PartitionSpec("x", None)
    record(nn.unbox(variables))
    mesh = Mesh(np.array(jax.devices()[:1]), ("x",))
    assert nn.get_sharding(variables, mesh)["params"]["kernel"].mesh == mesh
    rules = (("embed", "x"), ("mlp", None))
    with nn.logical_axis_rules(rules):
        assert tuple(nn.get_logical_axis_rules()) == rules
        assert nn.logical_to_mesh_axes(("embed", "mlp")) == PartitionSpec("x", None)
        logical = nn.with_logical_partitioning(nn.initializers.ones, ("embed", "mlp"))
        boxed = nn.Dense(4, kernel_init=logical).init(KEY, X)
        assert isinstance(boxed["params"]["kernel"], nn.LogicallyPartitioned)
        specs = nn.get_partition_spec(boxed)
        assert nn.logical_to_mesh(specs)["params"]["kernel"] == PartitionSpec("x", None)
        placed = nn.logical_to_mesh_sharding(specs, mesh)
        assert placed["params"]["kernel"].spec == PartitionSpec("x", None)
        with mesh:
            record(jax.jit(lambda x: nn.with_logical_constraint(x, ("embed", "mlp")))(X))
    nn.set_logical_axis_rules(())


def test_tabulate():
    text = nn.tabulate(Block(), KEY, compute_flops=True, compute_vjp_flops=True)(X)
    assert "inner" in text and "Dense" in text and "24" in text
    assert "Total" in nn.Dense(3).tabulate(KEY, X)


class State(train_state.TrainState):
    batch_stats: dict


def test_training(tmp_path, record):
    """The page on training: a state, steps, checkpoints, and going on from one."""

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = nn.relu(nn.Conv(3, (3, 3))(x))
            x = nn.BatchNorm(use_running_average=not train)(x).reshape(len(x), -1)
            return nn.Dense(2)(nn.Dropout(0.1, deterministic=not train)(x))

    net, labels = Net(), jnp.array([0, 1])
    variables = net.init(KEY, IMAGE, train=False)
    state = State.create(
        apply_fn=net.apply, params=variables["params"], batch_stats=variables["batch_stats"],
        tx=optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2)),
    )  # fmt: skip

    @jax.jit
    def step(state, key):
        def loss(params):
            logits, updates = state.apply_fn(
                {"params": params, "batch_stats": state.batch_stats}, IMAGE, train=True,
                mutable=["batch_stats"], rngs={"dropout": key},
            )  # fmt: skip
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return loss.mean(), updates

        (loss, updates), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads, batch_stats=updates["batch_stats"]), loss

    for key in jax.random.split(KEY, 3):
        state, loss = step(state, key)
        record(loss)
    record(state.params)
    kept = serialization.to_bytes(state)
    record(serialization.from_bytes(state, kept).params)
    record(serialization.from_state_dict(state, serialization.to_state_dict(state)).params)
    checkpoints.save_checkpoint(str(tmp_path), {"params": state.params}, 3)
    record(checkpoints.restore_checkpoint(str(tmp_path), None))
    assert checkpoints.latest_checkpoint(str(tmp_path)).endswith("3")


@struct.dataclass
class Point:
    x: jax.Array
    y: jax.Array
    name: str = struct.field(pytree_node=False, default="point")


def test_struct_and_dictionaries(record):
    point = Point(X, X * 2).replace(y=X * 3)
    record(jax.jit(lambda p: p.replace(x=p.x + p.y))(point))
    record(jax.vmap(lambda p: p.x @ p.y)(point))
    with pytest.raises(AttributeError):
        point.x = 1
    frozen = nn.FrozenDict({"a": {"b": X}, "c": X})
    record(jax.tree.map(lambda x: x + 1, frozen))
    assert frozen.unfreeze().keys() == {"a", "c"} and frozen.copy({"d": 1})["d"] == 1
    flat = traverse_util.flatten_dict(frozen, sep="/")
    assert set(flat) == {"a/b", "c"}
    record(traverse_util.unflatten_dict(flat, sep="/"))
    record(traverse_util.path_aware_map(lambda path, x: x * len(path), frozen))
    masks = traverse_util.ModelParamTraversal(lambda path, _: "b" in path)
    record(masks.update(lambda x: x * 0, frozen.unfreeze()))
    assert nn.DenyList("a") is not None and isinstance(nn.broadcast, object)
    record(common_utils.onehot(jnp.array([0, 2]), 3))
    assert early_stopping.EarlyStopping(patience=1).update(1.0).best_metric == 1.0
    assert isinstance(nn.Variable, type)


def test_every_public_name_is_used():
    modules = "Module softmax"
    assert not find_unused(nn, __file__, modules)
