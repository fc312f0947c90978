"""cpu/flags.py: which flags XLA:CPU compiles a program with, whatever its names are."""

import numpy as np
import pytest
from jaxlib.version import __version__ as jaxlib_version

import weft
import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, NO_KERNELS
from weft import lax
from weft.cpu.flags import (
    BYTES_BY_CORES,
    DEFAULT,
    LIGHT_LOOP,
    LONG_LOOP,
    NO_FUSION,
    NO_TILES,
    OLDER_LOOPS,
    ONE_MODULE,
    QUICK,
    SMALL_LOOP,
    WIDE,
    choose_flags,
)
from weft.cpu.passes import prepare_jaxpr
from weft.errors import DtypeError
from weft.passes.physical import has_extended
from weft.xla.lower import make_physical

older = pytest.mark.skipif(not jaxlib_version.startswith("0.10."), reason="there is one way")


def flags_of(fun, *args, target=NO_KERNELS, partitioned=False):
    closed = weft.make_jaxpr(fun)(*args)
    jaxpr = closed.jaxpr
    if has_extended(jaxpr):
        jaxpr, _ = make_physical(jaxpr, closed.consts)
    return choose_flags(prepare_jaxpr(jaxpr, target), partitioned)


def kind_of(fun, *args, **kwargs):
    """Return the flags: tiles, wide vectors, and products on their own."""
    overrides, extra = flags_of(fun, *args, **kwargs)
    return NO_TILES not in extra, WIDE in overrides, NO_FUSION in overrides


X = np.linspace(0, 1, 120, dtype=np.float32).reshape(2, 3, 4, 5)
last = lambda x: x.transpose(0, 2, 3, 1)


@pytest.mark.parametrize(
    "fun, kind",
    [
        (lambda x: x.T, (True, True, False)),
        (lambda x: x.reshape(6, 20).T + 1, (True, True, False)),
        (lambda x: last(x) * 2 + 1, (True, True, False)),
        (lambda x: last(x) * last(x) * 2 + 1, (False, True, False)),
        (lambda x: x.swapaxes(1, 2) + 1, (False, True, False)),
        (lambda x: x + 1, (False, True, False)),
        (lambda x: x[0, 0, :, :4] + x[0, 0, :, :4].T, (False, True, False)),
        (lambda x: x.astype(np.uint8) + np.uint8(1), (False, True, True)),
        (lambda x: jnp.einsum("bhqd,bhkd->bhqk", x, x), (False, False, False)),
        (lambda x: jnp.einsum("bqhd,bkhd->bhqk", x, x), (True, False, False)),
    ],
)
def test_tiles_and_widths(fun, kind):
    assert kind_of(fun, jnp.array(X)) == kind
    with weft.config.scope(native=False):  # where products are XLA's
        compiled = weft.jit(fun).lower(X).compile()
        np.testing.assert_allclose(compiled(X), fun(jnp.array(X)), rtol=1e-6)


def test_integers_of_8_bits_that_are_only_read_may_be_fused():
    x = jnp.full((64, 64), 255, np.uint8)
    assert kind_of(lambda x: (x * 1.0).mean(), x) == (False, True, False)
    assert weft.jit(lambda x: (x * 1.0).mean())(x) == 255


def test_a_kernel_of_products_leaves_wide_vectors():
    x = jnp.ones((256, 256))
    multiply = lambda x: jnp.tanh(x @ x)
    assert kind_of(multiply, x, target=NO_KERNELS)[1] is False
    assert kind_of(multiply, x, target=KERNELS)[1] is True


def test_arc_tangents_have_narrow_vectors():
    x = jnp.ones(16)
    assert [kind_of(f, x)[1] for f in (jnp.arctan, jnp.tan, jnp.arctanh)] == [False, True, False]
    assert kind_of(lambda x: jnp.arctan2(x, x), x)[1] is False


def test_names_change_nothing():
    def log_softmax(x):
        return x - jnp.log(jnp.exp(x).sum(1, keepdims=True))

    def renamed(x):
        with weft.named_scope("atan part, stablehlo.dot_general, while"):
            return log_softmax(x)

    renamed.__name__ = "my_dot_general"
    x = jnp.ones((3333, 3))
    assert flags_of(log_softmax, x) == flags_of(renamed, x)
    assert kind_of(renamed, x)[1] is True


def test_long_loops_are_not_compiled_as_one_function():
    def loop(count):
        step = lambda _, xs: [a * 0.5 + b for a, b in zip(xs, xs[1:] + xs[:1], strict=True)]
        return flags_of(lambda xs: lax.fori_loop(0, 9, step, xs), [jnp.float32(1)] * count)

    assert LIGHT_LOOP in loop(60).extra
    assert LONG_LOOP in loop(200).extra  # as newer releases of XLA have no limit of their own


@pytest.mark.parametrize(
    ("size", "count", "expected"),
    [
        (64, 70, LIGHT_LOOP),  # one thread computes an iteration
        (9000, 50, SMALL_LOOP),  # few equations compile fast in any case
        (9000, 70, LONG_LOOP),
        (20_000, 70, SMALL_LOOP),  # one function runs faster
    ],
)
def test_loops_that_run_as_fast_either_way_are_compiled_on_all_threads(size, count, expected):
    step = lambda _, xs: [a * 0.5 + b for a, b in zip(xs, xs[1:] + xs[:1], strict=True)]
    flags = flags_of(lambda xs: lax.fori_loop(0, 9, step, xs), [jnp.zeros(size)] * count)
    assert [f for f in flags.extra if f[0] == SMALL_LOOP[0]] == [expected]


@pytest.mark.parametrize(("rows", "whole"), [(200, True), (20_000, False)])
def test_loops_over_arrays_of_moderate_size_are_one_function(monkeypatch, rows, whole):
    monkeypatch.setattr("weft.cpu.flags.SMALL_LOOP", (SMALL_LOOP[0], str(BYTES_BY_CORES[2])))
    loop = weft.jit(lambda x: lax.fori_loop(0, 9, lambda _, y: y * 0.5 + 1, x))
    text = loop.lower(jnp.zeros((rows, 300))).compile().as_text()
    assert ("xla_cpu_small_call" in text) == whole


def write_row(i, x):
    return x.at[i].set(jnp.cos(x[i - 1]))


@pytest.mark.parametrize(
    ("step", "shape", "light"),
    [
        (lambda i, x: jnp.sin(x) + i, (4096,), True),
        (lambda i, x: jnp.sin(x) + i, (4097,), False),
        (write_row, (1000, 4096), True),  # it replaces a row of a large array
        (write_row, (10, 4097), False),
        (lambda i, x: x - jnp.roll(x, 2), (100_000,), True),
        (lambda i, x: x - jnp.roll(x, 1), (100_000,), False),  # vector instructions: as fast
        (lambda i, x: x - jnp.roll(x, 1, 0), (400, 400), False),
        (lambda i, x: x @ x, (16, 16), True),
        (lambda i, x: x @ x, (17, 17), False),
    ],
)
def test_loops_that_one_thread_computes_faster(step, shape, light):
    flags = flags_of(lambda x: lax.fori_loop(1, 9, step, x), jnp.zeros(shape))
    assert (LIGHT_LOOP in flags.extra, SMALL_LOOP in flags.extra) == (light, not light)


def test_what_is_known_of_no_program():
    assert DEFAULT == ((), (SMALL_LOOP, NO_TILES))


# --- the older way to write loops ---------------------------------------------------------------


def quick_flags(fun, *args, **kwargs):
    return tuple(f for f in flags_of(fun, *args, **kwargs).overrides if f in QUICK)


@pytest.fixture
def no_flags(monkeypatch):
    """The environment of users, without flags."""
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    return monkeypatch


@older
def test_flags_of_the_environment_have_the_last_word(monkeypatch):
    flags = {"xla_cpu_use_fusion_emitters": "true", "xla_cpu_parallel_codegen_split_count": "8"}
    monkeypatch.setenv("XLA_FLAGS", " ".join(f"--{name}={value}" for name, value in flags.items()))
    assert quick_flags(jnp.exp, jnp.ones(3)) == ()


@older
def test_programs_on_few_elements_compile_fast(no_flags):
    few, many, key = jnp.ones((63, 63)), jnp.ones(4098), weft.random.key(0)
    assert all(
        quick_flags(f, few) == QUICK for f in (jnp.exp, lambda x: x @ x, lambda x: x[:2] + 1)
    )
    assert quick_flags(weft.random.split, key) == QUICK
    assert quick_flags(weft.random.normal, key) == ()
    slow = [
        jnp.tan, jnp.arctan, jnp.cbrt,
        lambda x: x.at[x[0].astype(int)].set(1),
        lambda x: lax.igamma(x, x),
        lambda x: x * 1j,
    ]  # fmt: skip
    assert [quick_flags(f, few) for f in slow] == [()] * len(slow)
    assert quick_flags(jnp.exp, many) == ()
    assert quick_flags(jnp.exp, few, partitioned=True) == ()


@older
def test_programs_that_move_and_add_more_elements_compile_fast(no_flags):
    some, many = jnp.ones((100, 100)), jnp.ones((140, 140))
    plain = lambda x: (x.T[1:] * 2 - x[:-1]) / jnp.pad(x[2:], ((0, 1), (0, 0))) + x[0] ** 2
    assert quick_flags(plain, some) == QUICK
    assert quick_flags(plain, many) == ()
    slow = [
        lambda x: plain(jnp.where(x > 0, x, 0)), lambda x: plain(jnp.exp(x)),
        lambda x: plain(jnp.concatenate([x[9:], x[:9]])), lambda x: plain(x) + x.max(0),
        lambda x: plain(x.at[1:, 1:].add(1)),
    ]  # fmt: skip
    assert [quick_flags(f, some) for f in slow] == [()] * len(slow)
    assert quick_flags(plain, some.astype(jnp.bfloat16)) == ()
    assert quick_flags(lambda x: plain(x) * jnp.exp(x[0]), some) == QUICK  # of few


@older
def test_loops_compile_fast_if_only_plain_operations_have_many_elements(no_flags):
    loop = lambda f: lambda x: lax.fori_loop(0, 3, lambda i, x: f(x), x)
    turn = lambda x: x.T[::-1] * 0.5 - x
    few_products = lambda x: x + (x[:5, :5] @ x[:5, :5]).sum()
    fast = [turn, few_products, lambda x: x + jnp.exp(x[0, :9]).sum()]
    few = jnp.ones((60, 60))
    assert [quick_flags(loop(f), few) for f in fast] == [QUICK] * len(fast)
    slow = [
        jnp.exp, lambda x: x + x.sum(), lambda x: jnp.where(x > 1, x, 1), lambda x: x @ x,
        lambda x: jnp.roll(x, 1), lambda x: x.at[1:].add(1),
        lambda x: x + weft.random.uniform(weft.random.key(0)),
    ]  # fmt: skip
    assert [quick_flags(loop(f), few) for f in slow] == [()] * len(slow)
    assert quick_flags(loop(turn), jnp.ones((70, 70))) == ()


@older
def test_functions_of_many_elements_beside_products_run_fast(no_flags):
    layer = lambda x: jnp.tanh(x @ x)
    assert quick_flags(layer, jnp.ones((32, 32))) == QUICK
    assert quick_flags(layer, jnp.ones((64, 64))) == (ONE_MODULE,)
    assert quick_flags(weft.grad(lambda x: layer(x).sum()), jnp.ones((64, 64))) == (ONE_MODULE,)
    assert quick_flags(lambda x: jnp.tanh(x @ x[:, 0]), jnp.ones((64, 64))) == QUICK  # of few


def adam(params, slopes, means, squares):
    """A step of an optimizer, in its simplest form."""

    def update(p, g, m, s):
        m, s = 0.9 * m + 0.1 * g, 0.99 * s + 0.01 * g * g
        return p - 0.1 * m / (jnp.sqrt(s) + 1e-8), m, s

    return [update(*arrays) for arrays in zip(params, slopes, means, squares, strict=True)]


def layers(weights, x):
    """The gradient of a network of equal layers."""

    def loss(weights):
        out = x
        for w, b in weights:
            out = jnp.tanh(out @ w + b)
        return (out**2).sum()

    return weft.grad(loss)(weights)


@older
def test_equal_loops_are_compiled_once(no_flags):
    """The older way compiles each loop, so it pays only if most loops differ."""
    equal = lambda count: [jnp.ones((8, 8))] * count
    unequal = lambda count: [jnp.ones((8, 8 + i)) for i in range(count)]
    assert quick_flags(adam, *[equal(2)] * 4) == QUICK
    assert quick_flags(adam, *[equal(3)] * 4) == ()
    assert quick_flags(adam, *[unequal(8)] * 4) == QUICK
    deep = lambda depth: [(jnp.ones((8, 8)), jnp.ones(8))] * depth
    assert quick_flags(layers, deep(2), jnp.ones((4, 8))) == QUICK
    assert quick_flags(layers, deep(8), jnp.ones((4, 8))) == ()
    add_all = lambda xs, step: [x + step(i) for i, x in enumerate(xs)]
    assert quick_flags(lambda xs: add_all(xs, lambda i: 1.0), equal(9)) == ()
    assert quick_flags(lambda xs: add_all(xs, float), equal(9)) == QUICK  # nine constants
    rounds = lambda xs: lax.fori_loop(0, 9, lambda _, xs: [a + a for a in xs], xs)
    assert quick_flags(rounds, equal(9)) == ()
    assert quick_flags(rounds, equal(3)) == QUICK
    chain = lambda x: [x := jnp.sin(x) * x for _ in range(20)][-1]  # one loop of XLA's
    assert quick_flags(chain, jnp.ones(8)) == QUICK


@older
def test_loops_of_equal_layers_are_equal_wherever_their_operands_come_from(no_flags):
    """XLA keeps functions that several loops read, and computes constants beforehand."""

    def softmaxes(x, count):
        for _ in range(count):
            x = weft.nn.softmax(x * 2.0)
        return x

    assert quick_flags(lambda x: softmaxes(x, 2), jnp.ones((4, 8))) == QUICK
    assert quick_flags(lambda x: softmaxes(x, 6), jnp.ones((4, 8))) == ()
    places = jnp.arange(8)
    gather = lambda x, count: [x[places + i] for i in range(count)]
    assert quick_flags(lambda x: gather(x, 4), jnp.ones(64)) == QUICK
    assert quick_flags(lambda x: gather(x, 9), jnp.ones(64)) == ()


@older
@pytest.mark.parametrize(
    "fun, shape, unrolled",
    [
        (jnp.sum, (32, 32), True),
        (jnp.prod, (32, 32), True),
        (lambda x: (x > 2).any(), (32, 32), True),
        (jnp.sum, (32, 24), True),
        (jnp.sum, (4, 256), True),
        (jnp.sum, (3, 256), True),
        (jnp.sum, (20, 64), True),
        (jnp.sum, (20, 128), True),
        (jnp.sum, (8, 96), True),
        (jnp.sum, (12, 64), False),
        (jnp.sum, (24, 96), False),
        (jnp.sum, (20, 100), False),
        (lambda x: x.sum((0, 2)), (16, 4, 16), True),
        (jnp.max, (32, 32), False),
        (lambda x: x.astype(int).sum(), (32, 32), False),
        (lambda x: x.sum(1), (32, 32), False),
        (jnp.sum, (1, 1024), False),
        (jnp.sum, (24, 24), False),
        (jnp.sum, (64, 16), False),
        (jnp.sum, (16, 16), False),
        (lambda x: x.sum((1, 2)), (2, 8, 8, 8), False),
        # XLA makes one reduction of these
        (lambda x: x.sum(0).sum(), (32, 32), True),
        (lambda x: (x.sum(0) * 4.0).sum(), (20, 64), True),
        (lambda x: x.sum(0).mean(), (16, 128), True),
        (lambda x: x.sum(1).sum(1).sum(0), (2, 16, 16), True),
        (lambda x: x.sum(0).sum(), (24, 32), False),
        (lambda x: x.sum(0).sum(), (64, 64), False),
        (lambda x: jnp.sqrt(x.sum(0)).sum(), (32, 32), False),
        (lambda x: x.sum(0).max(), (32, 32), False),
        (lambda x: (x.sum() * x).sum(0).sum(), (24, 32), False),
        (lambda x: jnp.cumsum(x, 0).sum(1), (24, 32), False),
    ],
)
def test_sums_that_the_older_way_unrolls_are_compiled_in_the_newer_way(
    fun, shape, unrolled, no_flags
):
    flags = quick_flags(lambda x: fun(x * 2), jnp.ones(shape, np.float32))
    assert flags == (() if unrolled else QUICK)


@older
def test_vectors_that_cores_cannot_share_evenly_run_fast(no_flags):
    found = lambda f, *shape: quick_flags(f, jnp.ones(shape))
    some = (OLDER_LOOPS,)
    assert found(jnp.exp, 5001) == some
    assert found(jnp.exp, 5000) == found(jnp.exp, 99, 101) == ()
    assert found(lambda x: jnp.roll(x, 8), 5000) == some
    assert found(lambda x: jnp.exp(jnp.diff(x)), 5000) == some  # of 4999
    assert found(lambda x: jnp.tile(x, 2), 5001) == ()  # slower in the older way
    assert found(lambda x: jnp.outer(x, x), 5001) == ()  # matrices are not faster either
    assert found(jnp.exp, 30_001, 3) == found(jnp.exp, 5001, 4, 5) == some
    assert found(jnp.exp, 30_000, 3) == found(jnp.exp, 3001, 32) == found(jnp.exp, 5001, 3) == ()
    assert found(lambda x: x @ x.T[:, :9], 30_001, 3) == ()
    power = lambda x: x**1.7  # written with shifts, but not of random words
    assert found(power, 5001) == some
    draw = lambda x: x + weft.random.normal(weft.random.key(0), x.shape)
    assert found(draw, 5001) == ()
    no_flags.setattr("os.cpu_count", lambda: 3)
    assert found(jnp.exp, 5000) == some != found(jnp.exp, 5001)


@pytest.mark.parametrize("dtype", ["int2", "uint2"])
def test_elements_of_two_bits_are_not_split_over_devices(dtype):
    jaxpr = weft.make_jaxpr(lambda x: x[::-1])(weft.ShapeDtypeStruct((8,), dtype)).jaxpr
    assert choose_flags(jaxpr, False) is not None
    with pytest.raises(DtypeError, match=f"of less than 4 bits .*; got {dtype}. Hint"):
        choose_flags(jaxpr, True)
