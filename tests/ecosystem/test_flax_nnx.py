"""flax.nnx as its documentation shows it: layers, state, transformations, training."""

import io
import warnings
from contextlib import redirect_stdout

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx, serialization
from jax.sharding import PartitionSpec
from public_names import find_unused


def values(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def rngs():
    return nnx.Rngs(0, params=1, dropout=2)


def leaves(tree):
    return [x for x in jax.tree.leaves(nnx.as_pure(tree)) if jnp.issubdtype(x.dtype, jnp.number)]


def use(module, record, *args, **kwargs):
    """Apply, differentiate and map, compiled as one; what the module holds before and after."""
    record(leaves(nnx.state(module)))
    graphdef, params, rest = nnx.split(module, nnx.Param, ...)
    fixed = jax.tree.map(lambda x: jnp.sin(jnp.arange(x.size)).reshape(x.shape) * 0.3, params)

    @jax.jit
    def run(params, rest):
        def call(params, *args):
            model = nnx.merge(graphdef, params, rest, copy=True)
            return leaves(model(*args, **kwargs))

        total = lambda params: sum(jnp.sum(x**2) for x in call(params, *args))
        mapped = jax.vmap(lambda s: call(params, *jax.tree.map(lambda x: x * s, args)))
        scales = jnp.array([1, 2], jax.tree.leaves(args)[0].dtype)
        return call(params, *args), leaves(jax.grad(total)(params)), mapped(scales)

    record(run(fixed, rest))
    record(leaves(nnx.jit(lambda m, *a: m(*a, **kwargs))(module, *args)))
    record(leaves(nnx.state(module)))


X, IMAGE, SEQUENCE = values(2, 4), values(2, 6, 6, 3), values(2, 5, 4)
LAYERS = {
    "linear": (lambda: nnx.Linear(4, 3, rngs=rngs()), X),
    "linear_general": (
        lambda: nnx.LinearGeneral((5, 4), (2, 3), axis=(1, 2), rngs=rngs()), SEQUENCE),
    "einsum": (lambda: nnx.Einsum("nta,ab->ntb", (4, 3), (3,), rngs=rngs()), SEQUENCE),
    "conv": (lambda: nnx.Conv(3, 2, (3, 3), strides=2, rngs=rngs()), IMAGE),
    "conv_masked": (
        lambda: nnx.Conv(3, 3, 3, feature_group_count=3, padding="CIRCULAR", rngs=rngs()),
        values(2, 6, 3)),
    "conv_transpose": (lambda: nnx.ConvTranspose(3, 2, (3, 3), strides=(2, 2), rngs=rngs()), IMAGE),
    "batch_norm": (lambda: nnx.BatchNorm(4, use_running_average=False, rngs=rngs()), X),
    "batch_norm_eval": (lambda: nnx.BatchNorm(4, use_running_average=True, rngs=rngs()), X),
    "layer_norm": (lambda: nnx.LayerNorm(4, rngs=rngs()), X),
    "rms_norm": (lambda: nnx.RMSNorm(4, rngs=rngs()), X),
    "group_norm": (lambda: nnx.GroupNorm(4, num_groups=2, rngs=rngs()), SEQUENCE),
    "instance_norm": (lambda: nnx.InstanceNorm(3, rngs=rngs()), IMAGE),
    "weight_norm": (lambda: nnx.WeightNorm(nnx.Linear(4, 3, rngs=rngs()), rngs=rngs()), X),
    "prelu": (lambda: nnx.PReLU(), X),
    "dropout": (lambda: nnx.Dropout(0.5, rngs=rngs()), X),
    "sequential": (
        lambda: nnx.Sequential(
            nnx.Linear(4, 3, rngs=rngs()), nnx.relu, nnx.Linear(3, 2, rngs=rngs())),
        X),
    "attention": (lambda: nnx.MultiHeadAttention(2, 4, 6, decode=False, rngs=rngs()), SEQUENCE),
    "lora": (lambda: nnx.LoRA(4, 2, 3, rngs=rngs()), X),
    "lora_linear": (lambda: nnx.LoRALinear(4, 3, lora_rank=2, rngs=rngs()), X),
    "rnn": (lambda: nnx.RNN(nnx.LSTMCell(4, 3, rngs=rngs()), rngs=rngs()), SEQUENCE),
    "rnn_options": (
        lambda: nnx.RNN(
            nnx.GRUCell(4, 3, rngs=rngs()), reverse=True, keep_order=True, unroll=2, rngs=rngs()),
        SEQUENCE),
    "bidirectional": (
        lambda: nnx.Bidirectional(
            nnx.RNN(nnx.SimpleCell(4, 3, rngs=rngs()), rngs=rngs()),
            nnx.RNN(nnx.OptimizedLSTMCell(4, 3, rngs=rngs()), rngs=rngs()), rngs=rngs()),
        SEQUENCE),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name, record):
    make, *args = LAYERS[name]
    use(make(), record, *args)


def test_embedding_and_cells(record):
    embed = nnx.Embed(5, 3, rngs=rngs())
    record([embed(jnp.array([[1, 4]])), embed.attend(values(2, 3))])
    for kind in (nnx.LSTMCell, nnx.GRUCell, nnx.SimpleCell, nnx.OptimizedLSTMCell):
        cell = kind(4, 3, rngs=rngs())
        assert isinstance(cell, nnx.RNNCellBase)
        record(nnx.jit(cell)(cell.initialize_carry(X.shape, rngs()), X))


def test_spectral_norm(record):
    norm = nnx.SpectralNorm(nnx.Linear(4, 3, rngs=rngs()), rngs=rngs())
    record(norm(X, update_stats=True))
    record(nnx.jit(lambda m, x: m(x, update_stats=False))(norm, X))


def test_attention_functions(record):
    q = values(2, 5, 2, 3)
    mask = nnx.combine_masks(
        nnx.make_causal_mask(jnp.ones((2, 5))),
        nnx.make_attention_mask(jnp.ones((2, 5)), jnp.arange(5)[None] < 4),
    )
    record([mask, nnx.dot_product_attention(q, q, q, mask=mask)])
    attention = nnx.MultiHeadAttention(2, 4, decode=True, rngs=rngs())
    attention.init_cache((2, 3, 4))
    for i in range(2):
        record(attention(SEQUENCE[:, i : i + 1]))
    assert isinstance(attention.cached_key, nnx.Cache)


ACTIVATIONS = (
    *("celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh"),
    *("leaky_relu", "log_sigmoid", "log_softmax", "logsumexp", "relu", "relu6", "selu"),
    *("sigmoid", "silu", "soft_sign", "softmax", "softplus", "standardize", "swish", "tanh"),
    "identity",
)


def test_functions(record):
    for name in ACTIVATIONS:
        record(getattr(nnx, name)(X))
    record(nnx.one_hot(jnp.array([1, 0]), 3))
    record(nnx.avg_pool(IMAGE, (2, 2), strides=(2, 2)))
    record(nnx.max_pool(IMAGE, (2, 2), strides=(2, 2)))
    record(nnx.min_pool(IMAGE, (2, 2), strides=(2, 2)))
    record(nnx.pool(IMAGE, 0.0, jax.lax.add, (2, 2), (1, 1), "VALID"))


class Count(nnx.Variable):
    pass


class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(4, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.b = nnx.Linear(4, 2, rngs=rngs)
        self.count = Count(jnp.array(0))

    def __call__(self, x):
        self.count[...] += 1
        x = nnx.relu(self.norm(self.a(x)))
        self.sow(nnx.Intermediate, "seen", x)
        return self.b(self.drop(x))


def test_state(record):
    net = Net(rngs())
    net(X)
    record(leaves(nnx.pop(net, nnx.Intermediate)))
    graphdef, params, stats, rest = nnx.split(net, nnx.Param, nnx.BatchStat, ...)
    assert isinstance(graphdef, nnx.GraphDef) and isinstance(params, nnx.State)
    record(leaves(nnx.merge(graphdef, params, stats, rest)(X)))
    record(leaves(nnx.merge_state(params, stats)))
    everything = (nnx.Any(nnx.Param, nnx.OfType(Count)), nnx.All(nnx.BatchStat, nnx.Not(nnx.Param)))
    record([leaves(s) for s in nnx.state(net, *everything, ...)])
    record(leaves(nnx.state(net, nnx.PathContains("a"))))
    assert not leaves(nnx.state(net, nnx.Nothing())) and leaves(nnx.state(net, nnx.Everything()))
    record([leaves(s) for s in nnx.filter_state(nnx.state(net), nnx.Param, ...)])
    record([leaves(s) for s in nnx.split_state(nnx.state(net), nnx.Param, ...)])
    record(leaves(nnx.map_state(lambda path, v: v * 2, params)))
    nnx.update(net, jax.tree.map(lambda x: x * 0, nnx.state(net, nnx.Param)))
    record(leaves(net(X)))
    copy = nnx.clone(net)
    assert copy is not net and int(copy.count[...]) == int(net.count[...])
    assert nnx.graphdef(net) is not None and nnx.variables(net, Count)
    flat = nnx.to_flat_state(params)
    assert isinstance(flat, nnx.FlatState)
    record(leaves(nnx.from_flat_state(flat)))
    pure = nnx.to_pure_dict(params)
    nnx.replace_by_pure_dict(params, jax.tree.map(lambda x: x + 1, pure))
    record(leaves(params))
    assert nnx.restore_int_paths({"0": {"1": 2}}) == {0: {1: 2}}
    assert isinstance(nnx.unpack(net), nnx.GraphState)


def test_graph(record):
    net = Net(rngs())
    seen = [path for path, _ in nnx.iter_graph(net)]
    assert () in seen and len(list(nnx.iter_modules(net))) > 3
    assert {name for name, _ in nnx.iter_children(net)} >= {"a", "b", "norm"}
    assert {name for name, _ in nnx.iter_module_children(net)} >= {"a", "b", "norm"}
    assert not nnx.find_duplicates(net)
    doubled = nnx.recursive_map(lambda path, node: node, net)
    record(leaves(doubled(X)))
    graphdef, flat = nnx.flatten(net)
    record(leaves(nnx.unflatten(graphdef, flat)(X)))
    nnx.set_metadata(net, sharding_names=None, only=nnx.Param)
    record(leaves(nnx.map(lambda path, v: v, net)(X)))
    record(leaves(nnx.call((graphdef, nnx.state(net)))(X)[0]))
    view = nnx.view(net, deterministic=True, use_running_average=True)
    record(leaves(view(X)))
    assert "deterministic" in nnx.view_info(net)
    other = nnx.with_attributes(net, deterministic=True, use_running_average=True)
    record(leaves(other(X)))
    assert other.drop.deterministic and not net.drop.deterministic
    net.eval(), net.train()


def test_variables(record):
    changes = []

    def on_set(variable, value):
        changes.append(value)
        return value * 2

    x = nnx.Variable(jnp.array(1.0), on_set_value=on_set, note="a")
    x.set_value(jnp.array(3.0))
    assert changes and x.note == "a" and x.get_metadata("note") == "a"
    record([x.get_value(), x + 1, -x, x * x, jnp.sin(x[...])])
    y = nnx.Param(values(3))
    y[1] = 5.0
    y[...] += 1
    record([y[...], y[0], y @ y, y.shape[0]])
    assert y.copy().type is nnx.Param and "Param" in repr(y)
    record(nnx.as_pure({"y": y}))
    assert (
        nnx.with_metadata(nnx.initializers.ones, note=1)(jax.random.key(0), (2,)).raw_value.sum()
        == 2
    )
    assert nnx.variable_name_from_type(nnx.Param) == "params"
    assert nnx.variable_type_from_name("batch_stats") is nnx.BatchStat
    nnx.register_variable_name("counts", Count, overwrite=True)
    kinds = (nnx.Intermediate, nnx.Perturbation, nnx.OptState, nnx.OptVariable, nnx.OptArray)
    assert all(issubclass(kind, nnx.Variable) for kind in (*kinds, nnx.LoRAParam, nnx.RngState))
    assert nnx.VariableMetadata(1.0).raw_value == 1.0 and nnx.var_defaults() is not None


def test_containers(record):
    class Stack(nnx.Module):
        def __init__(self, rngs):
            self.layers = nnx.List([nnx.Linear(4, 4, rngs=rngs) for _ in range(2)])
            self.heads = nnx.Dict(a=nnx.Linear(4, 2, rngs=rngs))
            self.name = nnx.static("name")
            self.extra = nnx.data({"scale": jnp.array(2.0)})

        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.heads["a"](x) * self.extra["scale"]

    use(Stack(rngs()), record, X)
    assert nnx.is_data(jnp.ones(1)) and nnx.has_data([jnp.ones(1)])
    nnx.check_pytree(Stack(rngs()))

    @nnx.dataclass
    class Point(nnx.Pytree):
        x: nnx.Data[jax.Array]
        name: nnx.Static[str]

    record(jax.jit(lambda p: p.x * 2)(Point(jnp.ones(2), "p")))

    class Plain(nnx.Object):
        def __init__(self):
            self.x = nnx.Param(jnp.ones(2))

    record(leaves(nnx.state(Plain())))

    class Own:
        pass

    nnx.register_data_type(Own)
    assert nnx.is_data(Own())


def test_random_streams(record):
    streams = nnx.Rngs(0, dropout=1)
    assert isinstance(streams.dropout, nnx.RngStream)
    for key in (streams.params(), streams.dropout(), streams()):
        record(jax.random.key_data(key))
    record([streams.normal((2,)), streams.params.uniform((2,))])
    drop = nnx.Dropout(0.5, rngs=streams)
    first = drop(X)
    nnx.reseed(drop, dropout=1)
    record([first, drop(X)])
    record(leaves(nnx.state(streams, nnx.RngCount)))
    assert len(leaves(nnx.state(drop, nnx.RngKey))) == 0  # keys are not numbers

    @nnx.split_rngs(splits=3)
    @nnx.vmap(in_axes=(nnx.StateAxes({nnx.Param: 0, ...: 0}), None), axis_size=3)
    def draw(drop, x):
        return drop(x)

    record(draw(nnx.Dropout(0.5, rngs=nnx.Rngs(3)), X))
    forked = nnx.Rngs(0).fork(split=2)
    record(jax.random.key_data(forked.default.key[...]))
    backups = nnx.split_rngs(drop, splits=2)
    nnx.restore_rngs(backups)
    assert nnx.with_rngs(nnx.Rngs(0), split=2, graph=False) is not None
    assert nnx.fork_rngs(nnx.Rngs(0), split=2) is not None


def test_gradients(record):
    net = nnx.Sequential(nnx.Linear(4, 3, rngs=rngs()), nnx.tanh, nnx.Linear(3, 1, rngs=rngs()))
    loss = lambda m, x: jnp.mean(m(x) ** 2)
    record(leaves(nnx.grad(loss)(net, X)))
    record(leaves(nnx.jit(nnx.value_and_grad(loss))(net, X)))
    state = nnx.DiffState(0, nnx.PathContains("kernel"))
    record(leaves(nnx.grad(loss, argnums=state)(net, X)))
    record(leaves(nnx.grad(loss, argnums=1)(net, X)))
    aux = lambda m, x: (loss(m, x), {"seen": m(x)})
    record(leaves(nnx.value_and_grad(aux, has_aux=True)(net, X)[0]))
    record(leaves(nnx.vjp(lambda m, x: m(x), net, X, graph=False)[0]))
    record(nnx.vjp(lambda x: net(x), X, graph=False)[1](jnp.ones((2, 1))))
    record(nnx.jvp(lambda x: net(x), (X,), (X,), graph=False))

    @nnx.custom_vjp
    def scaled(m, x):
        return m(x).sum()

    def forward(m, x):
        return scaled(m, x), (m, x)

    def backward(kept, g):
        _, out_g = g
        grads = nnx.grad(lambda m, x: m(x).sum(), argnums=(0, 1))(*kept)
        return jax.tree.map(lambda t: 2 * t * out_g, grads)

    scaled.defvjp(forward, backward)
    linear = nnx.Linear(4, 2, rngs=rngs())
    record(leaves(nnx.jit(scaled)(linear, X)))
    record(leaves(nnx.grad(scaled)(linear, X)))
    record(nnx.remat(lambda m, x: m(x))(net, X))


def test_vmap_and_scan(record):
    @nnx.vmap(in_axes=0, out_axes=0)
    def make(key):
        return nnx.Linear(4, 4, rngs=nnx.Rngs(key))

    layers = make(jax.random.split(jax.random.key(0), 3))
    record(leaves(nnx.state(layers)))

    @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
    def forward(x, layer):
        return nnx.tanh(layer(x))

    record(nnx.jit(forward)(X, layers))
    record(leaves(nnx.grad(lambda layers: forward(X, layers).sum())(layers)))

    @nnx.scan(in_axes=(nnx.StateAxes({Count: nnx.Carry, ...: None}), nnx.Carry, 0),
              out_axes=(nnx.Carry, 0))  # fmt: skip
    def count(net, carry, x):
        net.count[...] += 1
        return carry + x, carry * 2

    class Counter(nnx.Module):
        def __init__(self):
            self.count = Count(jnp.array(0))

    counter = Counter()
    record(count(counter, X[0], values(3, 4)))
    record(counter.count[...])
    record(nnx.vmap(lambda m, x: m(x), in_axes=(None, 0))(nnx.Linear(4, 2, rngs=rngs()), SEQUENCE))


def test_control_flow(record):
    net, other = nnx.Linear(4, 4, rngs=rngs()), nnx.Linear(4, 4, rngs=nnx.Rngs(9))
    record(nnx.cond(True, lambda a, b, x: a(x), lambda a, b, x: b(x), net, other, X))
    branches = [lambda a, b, x: a(x), lambda a, b, x: b(x)]
    record(nnx.jit(lambda i, a, b, x: nnx.switch(i, branches, a, b, x))(1, net, other, X))
    step = lambda i, c: (c[0], nnx.tanh(c[0](c[1])))
    record(nnx.fori_loop(0, 3, step, (net, X))[1])
    loop = lambda c: (c[0] + 1, c[1], c[1](c[2]))
    record(nnx.while_loop(lambda c: c[0] < 2, loop, (jnp.array(0), net, X))[2])


def test_jit(record):
    net = Net(rngs())
    step = nnx.jit(lambda m, x: m(x))
    record([step(net, X), step(net, X), net.count[...]])
    optimizer = nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)

    @nnx.jit
    def train(net, optimizer, x):
        loss, grads = nnx.value_and_grad(lambda m: jnp.mean(m(x) ** 2))(net)
        optimizer.update(net, grads)
        return loss

    fast = nnx.cached_partial(train, net, optimizer)
    record([fast(X), fast(X), train(net, optimizer, X)])
    record(leaves(nnx.state(net, nnx.Param)))
    assert nnx.jit_partial is not None
    linear = nnx.Linear(4, 2, rngs=rngs())
    assert "dot_general" in str(nnx.make_jaxpr(lambda m, x: m(x), graph_updates=False)(linear, X))
    error, out = nnx.checkify(lambda m, x: m(x))(linear, X)
    assert error.get() is None
    shapes = nnx.eval_shape(lambda: Net(rngs()))
    assert shapes.a.kernel.shape == (4, 4)
    record(leaves(nnx.capture(net, nnx.Intermediate)(X)[1]))


def test_optimizers_and_metrics(record):
    net = nnx.Linear(4, 2, rngs=rngs())
    optimizer = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)
    metrics = nnx.MultiMetric(
        accuracy=nnx.metrics.Accuracy(),
        loss=nnx.metrics.Average("loss"),
        w=nnx.metrics.Welford("loss"),
    )
    assert isinstance(metrics.loss, nnx.Metric)
    average = nnx.EMA(net, decay=0.9)

    @nnx.jit
    def step(net, optimizer, metrics, x, labels):
        def loss_of(net):
            logits = net(x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), logits

        (loss, logits), grads = nnx.value_and_grad(loss_of, has_aux=True)(net)
        metrics.update(loss=loss, logits=logits, labels=labels)
        optimizer.update(net, grads)
        return loss

    for _ in range(3):
        record(step(net, optimizer, metrics, X, jnp.array([0, 1])))
        average.update(net)
    computed = metrics.compute()
    record([computed["accuracy"], computed["loss"], computed["w"].mean])
    record([leaves(nnx.state(average)), leaves(nnx.state(optimizer))])
    metrics.reset()
    with warnings.catch_warnings(action="ignore"):  # it is deprecated
        both = nnx.ModelAndOptimizer(net, optax.sgd(0.1))
    both.update(nnx.grad(lambda m: jnp.sum(m(X)))(net))
    record(leaves(nnx.state(net)))
    graphdef, params = nnx.split(net, nnx.Param)
    state = nnx.TrainState.create(graphdef, params=params, tx=optax.sgd(0.1))
    record(leaves(state.apply_gradients(jax.tree.map(jnp.ones_like, params)).params))


def test_sharding(record):
    mesh = jax.make_mesh((1, 1), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    class Sharded(nnx.Module):
        def __init__(self, rngs):
            init = nnx.with_partitioning(nnx.initializers.lecun_normal(), ("data", "model"))
            self.w = nnx.Param(init(rngs.params(), (4, 2)))
            self.linear = nnx.Linear(4, 2, kernel_init=init, rngs=rngs)

        def __call__(self, x):
            return x @ self.w + self.linear(x)

    @nnx.jit
    def make():
        model = Sharded(nnx.Rngs(0))
        state = nnx.state(model)
        specs = nnx.get_partition_spec(state)
        nnx.update(model, jax.lax.with_sharding_constraint(state, specs))
        return model

    with jax.set_mesh(mesh):
        model = make()
        record(model(X))
    assert model.linear.kernel.get_value().sharding.mesh == mesh
    named = nnx.get_named_sharding(nnx.state(model), mesh)
    assert jax.tree.leaves(named)
    with nnx.use_eager_sharding(False):
        assert not nnx.using_eager_sharding()
    with nnx.logical_axis_rules((("a", "data"),)):
        pass
    graphdef, abstract = nnx.get_abstract_model(lambda: Sharded(nnx.Rngs(0)), mesh)
    assert jax.tree.leaves(abstract)
    with jax.set_mesh(mesh):
        summed = nnx.shard_map(
            lambda m, x: m(x), mesh=mesh, in_specs=(PartitionSpec(), PartitionSpec("data")),
            out_specs=PartitionSpec("data"),
        )  # fmt: skip
        record(summed(nnx.Linear(4, 2, rngs=rngs()), X))
    record(nnx.pmap(lambda m, x: m(x), in_axes=(None, 0))(nnx.Linear(4, 2, rngs=rngs()), X[None]))
    assert nnx.StateSharding({nnx.Param: PartitionSpec()}) and nnx.PARTITION_NAME


def test_bridge(record):
    linen = nnx.bridge.ToNNX(nn.Dense(3), rngs=rngs()).lazy_init(X)
    record(linen(X))
    back = nnx.bridge.to_linen(nnx.Linear, 4, 3)
    variables = back.init(jax.random.key(0), X)
    record(jax.jit(back.apply)(variables, X))


def test_serialization(tmp_path, record):
    net = Net(rngs())
    pure = nnx.to_pure_dict(nnx.state(net, nnx.Param))
    record(serialization.from_bytes(pure, serialization.to_bytes(pure)))


def test_text():
    net = Net(rngs())
    assert "Linear" in repr(net) and "kernel" in str(nnx.state(net))
    assert "Linear" in nnx.tabulate(Net(rngs()), X)
    with redirect_stdout(io.StringIO()):
        nnx.display(net)


def test_modes():
    for mode in (nnx.set_graph_mode, nnx.set_graph_updates):
        with mode(True):
            assert nnx.state(Net(rngs()))


REST = """
A M Object UpdateContext MergeContext SplitContext NodeStates PureState merge_context split_context
update_context current_update_context to_tree from_tree prefix transform_metadata as_abstract
abstract_with_sharding pure vars_as with_vars Initializer WithTag
"""


def test_every_public_name_is_used():
    """Names that its transformations are made of are used through the transformations."""
    assert not find_unused(nnx, __file__)
