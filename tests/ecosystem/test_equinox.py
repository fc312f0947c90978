"""equinox as its documentation shows it."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

KEY = jax.random.key(0)


def values(*shape):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)


def use(module, record, *args, **kwargs):
    """Call a module with fixed weights, jitted, differentiated, mapped; write down the numbers."""
    module = jax.tree.map(
        lambda x: (
            jnp.sin(jnp.arange(x.size, dtype=jnp.float32)).reshape(x.shape) * 0.3
            if eqx.is_inexact_array(x)
            else x
        ),
        module,
    )
    record(eqx.filter_jit(module)(*args, **kwargs))
    loss = lambda m: sum(jnp.sum(x**2) for x in jax.tree.leaves(m(*args, **kwargs)))
    record(eqx.filter_grad(loss)(module))
    stacked = jax.tree.map(lambda x: jnp.stack([x, x + 1]) if eqx.is_array(x) else x, args)
    axes = jax.tree.map(lambda x: 0 if eqx.is_array(x) else None, args)
    record(eqx.filter_vmap(lambda *a: module(*a, **kwargs), in_axes=axes)(*stacked))


LAYERS = {
    "linear": (lambda: eqx.nn.Linear(3, 4, key=KEY), (3,)),
    "linear_scalar": (lambda: eqx.nn.Linear("scalar", 4, key=KEY), ()),
    "identity": (lambda: eqx.nn.Identity(), (3,)),
    "conv1d": (lambda: eqx.nn.Conv1d(2, 3, 3, key=KEY), (2, 8)),
    "conv2d": (lambda: eqx.nn.Conv2d(2, 3, 3, padding=1, stride=2, key=KEY), (2, 8, 8)),
    "conv2d_same": (lambda: eqx.nn.Conv2d(2, 4, 3, padding="SAME", groups=2, key=KEY), (2, 6, 6)),
    "conv2d_circular": (
        lambda: eqx.nn.Conv2d(2, 3, 3, padding=1, padding_mode="CIRCULAR", key=KEY), (2, 6, 6)),
    "conv3d": (lambda: eqx.nn.Conv3d(1, 2, 2, key=KEY), (1, 4, 4, 4)),
    "conv_transpose1d": (lambda: eqx.nn.ConvTranspose1d(2, 3, 3, stride=2, key=KEY), (2, 5)),
    "conv_transpose2d": (
        lambda: eqx.nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1, key=KEY), (2, 5, 5)),
    "conv_transpose3d": (lambda: eqx.nn.ConvTranspose3d(1, 2, 2, key=KEY), (1, 3, 3, 3)),
    "avg_pool1d": (lambda: eqx.nn.AvgPool1d(2, 2), (2, 8)),
    "avg_pool2d": (lambda: eqx.nn.AvgPool2d(2, 2, use_ceil=True), (2, 7, 7)),
    "avg_pool3d": (lambda: eqx.nn.AvgPool3d(2, 2), (1, 4, 4, 4)),
    "max_pool1d": (lambda: eqx.nn.MaxPool1d(3, 2, padding=1), (2, 8)),
    "max_pool2d": (lambda: eqx.nn.MaxPool2d(2, 2), (2, 6, 6)),
    "max_pool3d": (lambda: eqx.nn.MaxPool3d(2, 2), (1, 4, 4, 4)),
    "adaptive_avg_pool1d": (lambda: eqx.nn.AdaptiveAvgPool1d(3), (2, 8)),
    "adaptive_avg_pool2d": (lambda: eqx.nn.AdaptiveAvgPool2d((3, 2)), (2, 8, 7)),
    "adaptive_max_pool1d": (lambda: eqx.nn.AdaptiveMaxPool1d(3), (2, 8)),
    "adaptive_max_pool2d": (lambda: eqx.nn.AdaptiveMaxPool2d(3), (2, 7, 7)),
    "layer_norm": (lambda: eqx.nn.LayerNorm((4,)), (4,)),
    "rms_norm": (lambda: eqx.nn.RMSNorm((4,)), (4,)),
    "group_norm": (lambda: eqx.nn.GroupNorm(2, 4), (4, 5)),
    "prelu": (lambda: eqx.nn.PReLU(0.2), (5,)),
    "mlp": (lambda: eqx.nn.MLP(3, 2, 8, 2, key=KEY), (3,)),
    "mlp_activation": (
        lambda: eqx.nn.MLP(3, "scalar", 8, 1, jnp.tanh, jax.nn.sigmoid, key=KEY), (3,)),
    "lambda": (lambda: eqx.nn.Lambda(jax.nn.gelu), (4,)),
    "sequential": (
        lambda: eqx.nn.Sequential(
            [eqx.nn.Linear(3, 4, key=KEY), eqx.nn.Lambda(jnp.tanh), eqx.nn.Linear(4, 2, key=KEY)]
        ),
        (3,),
    ),
    "rotary": (lambda: eqx.nn.RotaryPositionalEmbedding(4), (5, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name, record):
    make, shape = LAYERS[name]
    use(make(), record, values(*shape))


@pytest.mark.parametrize("cell", ["GRUCell", "LSTMCell"])
def test_cells(cell, record):
    module = getattr(eqx.nn, cell)(3, 4, key=KEY)
    state = values(4) if cell == "GRUCell" else (values(4), values(4) * 2)
    use(module, record, values(3), state)

    def run(module, xs):
        return jax.lax.scan(lambda s, x: (module(x, s), None), state, xs)[0]

    record(jax.tree.leaves(eqx.filter_jit(run)(module, values(5, 3)))[0].shape)


def test_embedding(record):
    use(eqx.nn.Embedding(5, 3, key=KEY), record, jnp.array(2))


def test_dropout():
    dropout = eqx.nn.Dropout(0.5)
    x = jnp.ones(1000)
    y = eqx.filter_jit(dropout)(x, key=KEY)
    assert 300 < int((y == 0).sum()) < 700 and float(y.max()) == 2
    assert bool((dropout(x, inference=True) == x).all())
    assert bool((eqx.nn.inference_mode(dropout)(x) == x).all())
    with pytest.raises(RuntimeError):
        dropout(x)


def test_attention(record):
    attention = eqx.nn.MultiheadAttention(2, 4, key=KEY)
    q, mask = values(3, 4), jnp.tril(jnp.ones((3, 3), bool))
    use(attention, record, q, q, q)
    use(attention, record, q, q, q, mask=mask)


@pytest.mark.parametrize("norm", ["batch", "spectral"])
def test_stateful(norm, record):
    def make():
        if norm == "batch":
            return eqx.nn.BatchNorm(3, "batch", mode="batch")
        return eqx.nn.SpectralNorm(eqx.nn.Linear(3, 3, key=KEY), "weight", key=KEY)

    model, state = eqx.nn.make_with_state(make)()
    call = eqx.filter_jit(jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None)))
    out, state = call(values(4, 3), state)
    if norm == "batch":
        record(out)
        record(eqx.nn.inference_mode(model)(values(3), state)[0])
    assert out.shape == (4, 3)


def test_state_index(record):
    class Counter(eqx.Module):
        index: eqx.nn.StateIndex

        def __init__(self):
            self.index = eqx.nn.StateIndex(jnp.array(0))

        def __call__(self, x, state):
            value = state.get(self.index)
            return x + value, state.set(self.index, value + 1)

    counter, state = eqx.nn.make_with_state(Counter)()
    for _ in range(3):
        out, state = eqx.filter_jit(counter)(jnp.array(1.0), state)
    record(out)


def test_shared(record):
    class Net(eqx.Module):
        shared: eqx.nn.Shared

        def __init__(self, key):
            a, b = eqx.nn.Embedding(4, 3, key=key), eqx.nn.Linear(3, 4, key=key)
            self.shared = eqx.nn.Shared((a, b), lambda p: p[1].weight, lambda p: p[0].weight)

        def __call__(self, i):
            a, b = self.shared()
            return b(a(i))

    use(Net(KEY), record, jnp.array(1))


def test_weight_norm(record):
    use(eqx.nn.WeightNorm(eqx.nn.Linear(3, 2, key=KEY)), record, values(3))


class Pair(eqx.Module):
    a: jax.Array
    b: jax.Array
    name: str = eqx.field(static=True, default="pair")
    scale: float = 2.0

    def __check_init__(self):
        if self.a.ndim != 1:
            raise ValueError("a must be a vector")

    def __call__(self, x):
        return (self.a * x + self.b) * self.scale

    @property
    def total(self):
        return self.a.sum() + self.b.sum()


PAIR = Pair(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))


def test_module(record):
    record(jax.jit(lambda p, x: p(x))(PAIR, 2.0))
    record(jax.grad(lambda p: p(2.0).sum())(PAIR))
    record(
        jax.vmap(lambda p: p.total)(
            jax.tree.map(lambda x: jnp.stack([x] * 2), eqx.filter(PAIR, eqx.is_array))
        )
    )
    with pytest.raises(ValueError, match="vector"):
        Pair(jnp.ones((2, 2)), jnp.ones(2))
    with pytest.raises(AttributeError):
        PAIR.a = 1
    assert Pair(PAIR.a, PAIR.b) == PAIR and "Pair" in repr(PAIR)
    assert eqx.tree_pformat(PAIR).startswith("Pair")
    record(eqx.tree_at(lambda p: p.a, PAIR, jnp.zeros(2))(1.0))
    record(eqx.tree_at(lambda p: p.a, PAIR, replace_fn=lambda x: x + 1)(1.0))


def test_abstract_module():
    class Base(eqx.Module, strict=True):
        x: eqx.AbstractVar[int]

        @property
        def y(self):
            return self.x

    class Child(Base, strict=True):
        x: int

    assert Child(2).y == 2
    with pytest.raises(TypeError):
        Base()


def test_filters(record):
    dynamic, static = eqx.partition(PAIR, eqx.is_array)
    record(eqx.combine(dynamic, static)(1.0))
    assert static.a is None and dynamic.scale is None
    assert eqx.filter([1, 1.0, jnp.ones(2)], eqx.is_inexact_array_like)[0] is None
    assert eqx.is_array(jnp.ones(1)) and not eqx.is_array(1.0)
    assert eqx.is_array_like(1.0) and eqx.is_inexact_array(jnp.ones(1))


def test_transforms(record):
    @eqx.filter_jit
    def f(module, x, flag):
        return module(x) if flag else x

    record(f(PAIR, values(2), True))
    record(f(PAIR, values(2), flag=False))
    loss = lambda m, x: m(x).sum()
    record(eqx.filter_value_and_grad(loss)(PAIR, 2.0))
    record(eqx.filter_hessian(lambda x: (x**3).sum())(values(3)))
    record(eqx.filter_jacfwd(jnp.sin)(values(3)))
    record(eqx.filter_jacrev(jnp.sin)(values(3)))
    record(eqx.filter_jvp(jnp.sin, (values(3),), (values(3),)))
    out, pull = eqx.filter_vjp(jnp.sin, values(3))
    record([out, pull(values(3))])
    closed = eqx.filter_closure_convert(lambda x: x * PAIR.a, values(2))
    record(closed(values(2)))
    shapes = eqx.filter_eval_shape(loss, PAIR, 2.0)
    assert shapes.shape == ()
    assert "mul" in str(eqx.filter_make_jaxpr(lambda x: x * 2)(values(2))[0])
    record(eqx.filter_checkpoint(jnp.sin)(values(2)))
    record(eqx.filter_vmap(lambda p, x: p(x), in_axes=(None, 0))(PAIR, values(3)))
    make = lambda key: eqx.nn.Linear(2, 3, key=key)
    record(eqx.filter_vmap(make)(jax.random.split(KEY, 4)).weight)


def test_custom_derivatives(record):
    @eqx.filter_custom_vjp
    def f(x, y):
        return x * y

    f.def_fwd(lambda perturbed, x, y: (x * y, y))
    f.def_bwd(lambda residuals, g, perturbed, x, y: g * residuals * 10)
    record(jax.grad(lambda x: f(x, 3.0))(2.0))

    @eqx.filter_custom_jvp
    def g(x):
        return x**2

    @g.def_jvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return x**2, 5 * x * t

    record(jax.jvp(g, (jnp.array(2.0),), (jnp.array(1.0),)))


def test_callbacks_and_errors(record):
    record(eqx.filter_jit(lambda x: eqx.filter_pure_callback(
        lambda y: np.asarray(y) * 2, x, result_shape_dtypes=jax.ShapeDtypeStruct((2,), jnp.float32)
    ))(values(2)))  # fmt: skip

    @eqx.filter_jit
    def f(x):
        return eqx.error_if(x, x < 0, "x must be positive")

    record(f(jnp.array(1.0)))
    with pytest.raises(Exception, match="x must be positive"):
        jax.block_until_ready(f(jnp.array(-1.0)))
    record(eqx.branched_error_if(jnp.array(1.0), jnp.array(False), jnp.array(0), ["a", "b"]))
    eqx.clear_caches()


def test_serialise(tmp_path, record):
    file = tmp_path / "model.eqx"
    eqx.tree_serialise_leaves(file, PAIR)
    empty = Pair(jnp.zeros(2), jnp.zeros(2), scale=0.0)
    loaded = eqx.tree_deserialise_leaves(file, empty)
    assert bool(eqx.tree_equal(loaded, PAIR))
    record(loaded(1.0))
    buffer = io.BytesIO()
    eqx.tree_serialise_leaves(buffer, jnp.ones(3))
    buffer.seek(0)
    record(eqx.tree_deserialise_leaves(buffer, jax.ShapeDtypeStruct((3,), jnp.float32)))


def test_tree(record):
    assert bool(eqx.tree_equal([1, jnp.ones(2)], [1, jnp.ones(2)]))
    assert not bool(eqx.tree_equal([1, jnp.ones(2)], [1, jnp.zeros(2)]))
    eqx.tree_check(PAIR)
    record(eqx.tree_flatten_one_level([1.0, 2.0])[0])
    record(eqx.tree_inference(eqx.nn.Dropout(0.5), True)(values(3)))
    record(
        eqx.apply_updates(PAIR, jax.tree.map(lambda x: x * 0 + 1, eqx.filter(PAIR, eqx.is_array)))
    )


@pytest.mark.parametrize("kind", ["lax", "checkpointed", "bounded"])
def test_while_loop(kind, record):
    def run(x):
        step = lambda s: (s[0] + 1, jnp.sin(s[1]) * 1.1)
        out = (
            eqx.internal.while_loop(
                lambda s: s[0] < 5, step, (0, x), kind=kind, max_steps=16, checkpoints=3
            )
            if kind != "lax"
            else eqx.internal.while_loop(lambda s: s[0] < 5, step, (0, x), kind=kind)
        )
        return out[1]

    record(jax.jit(run)(jnp.array(0.5)))
    if kind != "lax":
        record(jax.grad(run)(jnp.array(0.5)))
    record(jax.vmap(run)(values(3)))


def test_scan_and_debug(record):
    step = lambda c, x: (c + x, c * x)
    record(eqx.internal.scan(step, jnp.array(0.0), values(4), kind="lax"))
    final = lambda x: eqx.internal.scan(step, x, values(4), kind="checkpointed", checkpoints=2)[0]
    record(jax.grad(final)(1.0))

    @eqx.filter_jit
    @eqx.debug.assert_max_traces(max_traces=1)
    def f(x):
        return x + 1

    f(1.0 * values(2))
    record(f(values(2)))
    record(jax.grad(lambda x: eqx.debug.backward_nan(x).sum())(values(2)))
