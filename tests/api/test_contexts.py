"""Options for a while: each holds in its block, in its thread, and is restored after a failure."""

import copy
import functools
import logging
import pickle
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from jaxlib import _jax
from jaxlib._jax import guard_lib

import weft
import weft.numpy as jnp
from weft import lax
from weft.options import ACTIONS, FLAGS, OPTIONS
from weft.primitives.dot import _PRECISIONS, _PRESETS
from weft.xla.compile import compile_options
from weft.xla.placement import placement_of


@pytest.mark.parametrize(
    "context, name, value",
    [
        (weft.enable_x64, "enable_x64", True),
        (weft.disable_jit, "disable_jit", True),
        (weft.log_compiles, "log_compiles", True),
        (weft.enable_checks, "enable_checks", True),
        (weft.numpy_dtype_promotion, "numpy_dtype_promotion", "strict"),
        (weft.numpy_rank_promotion, "numpy_rank_promotion", "raise"),
        (weft.default_matmul_precision, "default_matmul_precision", "highest"),
    ],
)
def test_each_sets_its_option_and_puts_it_back(context, name, value):
    before = weft.config.read(name)
    with pytest.raises(ZeroDivisionError), context(value):
        assert weft.config.read(name) == value
        assert 1 / 0
    assert weft.config.read(name) == before


def test_enable_x64_holds_in_its_thread_alone():
    seen = {}
    inside, done = threading.Event(), threading.Event()

    def wide():
        with weft.enable_x64():
            inside.set()
            done.wait(10)
            seen["wide"] = jnp.add(1.0, 1.0).dtype

    def narrow():
        inside.wait(10)
        seen["narrow"] = jnp.add(1.0, 1.0).dtype
        done.set()

    threads = [threading.Thread(target=f) for f in (wide, narrow)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert seen == {"wide": np.float64, "narrow": np.float32}


def test_enable_x64_may_be_turned_off_inside():
    with weft.enable_x64(True), weft.enable_x64(False):
        assert jnp.add(1, 1).dtype == np.int32


def test_strict_promotion():
    with weft.numpy_dtype_promotion("strict"), pytest.raises(weft.errors.TypePromotionError):
        jnp.add(np.float32(1), np.int32(1))
    assert jnp.add(np.float32(1), np.int32(1)).dtype == np.float32
    with pytest.raises(ValueError, match="must be one of"), weft.numpy_dtype_promotion("loose"):
        pass


def test_rank_promotion():
    x, y = np.ones(3, np.float32), np.ones((2, 3), np.float32)
    with weft.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="add"):
        jnp.add(x, y)
    assert jnp.add(x, y).shape == (2, 3)


def test_log_compiles(caplog):
    def squared(x):
        return x * x

    with weft.log_compiles(), caplog.at_level(logging.WARNING, "weft"):
        weft.jit(squared)(3.0)
    assert any("traced squared" in r.message for r in caplog.records)


def test_matmul_precision():
    x = np.ones((2, 2), np.float32)
    with weft.default_matmul_precision("highest"):
        text = weft.jit(lambda x: weft.lax.dot(x, x)).lower(x).as_text()
    assert "HIGHEST" in text


# --- enable_x64 inside, outside and across ------------------------------------------------------


@weft.custom_jvp
def ruled(x):
    return jnp.sin(x) * 2.0


@ruled.defjvp
def ruled_jvp(primals, tangents):
    return ruled(*primals), jnp.cos(primals[0]) * 2.0 * tangents[0]


@weft.custom_vjp
def pulled(x):
    return jnp.sin(x) * 2.0


pulled.defvjp(lambda x: (pulled(x), x), lambda x, ct: (ct * jnp.cos(x) * 2.0,))

BODIES = {
    "sin": lambda x: jnp.sin(x) * 2.0 + 1,
    "pow": lambda x: x**3 + x**2.5,
    "constant": lambda x: x * np.arange(1.0, 4.0) + np.float64(2.0),
    "index": lambda x: x[1] * x[jnp.array([0, 2])],
    "at": lambda x: x.at[1].multiply(3.0) * x,
    "prod": lambda x: jnp.prod(x) * jnp.cumprod(x),
    "cumsum": lambda x: jnp.cumsum(x) * jnp.max(x),
    "where": lambda x: jnp.where(x > 0.5, x * x, 0.0),
    "fft": lambda x: jnp.abs(jnp.fft.rfft(x)) ** 2,
    "convolve": lambda x: jnp.convolve(x, x),
    "solve": lambda x: jnp.linalg.solve(jnp.outer(x, x) + 2 * jnp.eye(3), x),
    "scan": lambda x: lax.scan(lambda c, v: (c * v + 1.0, c * 2.0), 1.0 + 0 * x[0], x)[1],
    "while_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * x + 1.0, x),
    "cond": lambda x: lax.cond(x[0] < 1.0, lambda v: v * v * 2.0, lambda v: v + 1.0, x),
    "custom_jvp": ruled,
    "custom_vjp": pulled,
    "checkpoint": weft.checkpoint(lambda x: jnp.sin(jnp.sin(x) * 2.0) * 3.0),
    "jit": weft.jit(lambda x: jnp.sin(x) * 2.0 + x**3),
    "grad": weft.grad(lambda x: jnp.sum(x**3 * 2.0)),
}


def inside(body):
    def fun(x):
        with weft.enable_x64():
            return jnp.sum(body(x.astype("float64")) * 1.5)

    return fun


def narrow(body):
    def fun(x):
        with weft.enable_x64():
            return jnp.sum(body(x) * 1.5)

    return fun


def in_parts(body):
    def fun(x):
        with weft.enable_x64():
            y = body(x.astype("float64"))
        y = y * 3.0
        with weft.enable_x64():
            return jnp.sum(y.astype("float64")) * 0.5

    return fun


def push_later(f, x):
    with weft.enable_x64():
        pushforward = weft.linearize(f, x)[1]
    return weft.vmap(pushforward)(np.eye(3, dtype=np.float32))


def pull_later(f, x):
    with weft.enable_x64():
        y, pullback = weft.vjp(f, x)
        one = jnp.ones_like(y)
    return pullback(one)[0]


USES = {
    "grad": lambda f, x: weft.grad(f)(x),
    "jit(grad)": lambda f, x: weft.jit(weft.grad(f))(x),
    "grad(jit)": lambda f, x: weft.grad(weft.jit(f))(x),
    "vmap(grad)": lambda f, x: weft.vmap(weft.grad(f))(x[None])[0],
    "grad(vmap)": lambda f, x: weft.grad(lambda x: weft.vmap(f)(x)[0])(x[None])[0],
    "grad(checkpoint)": lambda f, x: weft.grad(weft.checkpoint(f))(x),
    "grad(scan)": lambda f, x: weft.grad(lambda x: lax.map(f, x)[0])(x[None])[0],
    "grad(cond)": lambda f, x: weft.grad(lambda x: lax.cond(x[0] < 9, f, lambda x: f(-x), x))(x),
    "pull later": pull_later,
}


@pytest.mark.sample(one_in=320)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("place", [inside, narrow, in_parts])
@pytest.mark.parametrize("body", BODIES)
def test_enable_x64_within_transformed_functions(body, place, use):
    x = np.array([0.3, 0.8, 1.7])
    got = np.asarray(USES[use](place(BODIES[body]), jnp.asarray(x, np.float32)))
    with weft.enable_x64():
        fun = weft.jit(lambda x: jnp.sum(BODIES[body](x) * 1.5))
        steps = np.eye(3) * 1e-5
        want = [(float(fun(x + h)) - float(fun(x - h))) / 2e-5 for h in steps]
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_numbers_keep_the_types_that_they_had_where_a_transformation_began():
    def f(x):
        with weft.enable_x64():
            return jnp.sin(x) * 2.0

    assert weft.grad(f)(1.0).dtype == weft.grad(weft.grad(f))(1.0).dtype == np.float32
    assert float(weft.jvp(lambda x: f(x + x), (1.0,), (1.0,))[1]) == pytest.approx(4 * np.cos(2))
    np.testing.assert_allclose(
        weft.hessian(inside(jnp.sin))(np.zeros(3, np.float32)), np.zeros((3, 3))
    )


def test_programs_made_with_x64_run_without_and_the_other_way_round():
    f = lambda x: jnp.sin(x) * 2 + np.arange(3.0)
    with weft.enable_x64():
        x, wide = jnp.ones(3), weft.make_jaxpr(f)(np.ones(3))
        compiled = weft.jit(f).lower(x).compile()
    want = np.sin(1) * 2 + np.arange(3)
    for y in (*weft.core.eval_jaxpr(wide.jaxpr, wide.consts, x), compiled(x)):
        assert y.dtype == np.float64
        np.testing.assert_allclose(y, want, rtol=1e-14)
    slope = weft.linearize(lambda x: jnp.sin(x) * 2, 1.0)[1]
    assert slope(1.0).dtype == np.float32
    with weft.enable_x64():
        assert slope(np.float32(1)).dtype == np.float32
    np.testing.assert_allclose(
        push_later(narrow(jnp.sin), np.ones(3, np.float32)), np.full(3, 1.5 * np.cos(1))
    )


def test_a_pickled_array_of_64_bits_is_read_without_x64():
    with weft.enable_x64():
        x = jnp.arange(3) / 3 + 2**40
        data = pickle.dumps((x, x.astype(int), x * 1j))
        assert [y.dtype for y in pickle.loads(data)] == [np.float64, np.int64, np.complex128]
    floats, ints, complexes = pickle.loads(data)  # as any value of NumPy's is
    assert [y.dtype for y in (floats, ints, complexes)] == [np.float32, np.int32, np.complex64]
    np.testing.assert_array_equal(floats, np.asarray(x, np.float32))
    np.testing.assert_array_equal(ints, np.asarray(x, np.int64).astype(np.int32))
    assert copy.copy(x).dtype == copy.deepcopy(x).dtype == np.float64


def test_custom_vmap_rules_run_with_the_x64_of_the_call():
    f = weft.custom_batching.custom_vmap(lambda x: x * 2.0)
    f.def_vmap(lambda size, batched, x: (x * 2.0, True))

    def g(x):
        with weft.enable_x64():
            return f(x.astype("float64"))

    assert weft.vmap(weft.jit(g))(np.ones(2, np.float32)).dtype == np.float64


# --- every context, made ahead, nested, used again and as a decorator ----------------------------

CONTEXTS = {  # a value, and one that differs from it and may be the default
    "array_garbage_collection_guard": ("log", "allow"),
    "check_tracer_leaks": (True, False),
    "debug_infs": (True, False),
    "debug_key_reuse": (True, False),
    "debug_nans": (True, False),
    "default_device": (weft.devices()[0], None),
    "default_matmul_precision": ("float32", "bfloat16"),
    "default_prng_impl": ("rbg", "threefry2x32"),
    "disable_jit": (True, False),
    "enable_checks": (True, False),
    "enable_custom_prng": (True, False),
    "enable_x64": (True, False),
    "explain_cache_misses": (True, False),
    "legacy_prng_key": ("error", "allow"),
    "log_compiles": (True, False),
    "no_execution": (True, False),
    "no_tracing": (True, False),
    "numpy_dtype_promotion": ("strict", "standard"),
    "numpy_rank_promotion": ("raise", "allow"),
    "threefry_partitionable": (True, False),
    "transfer_guard": ("disallow", "allow"),
    "transfer_guard_device_to_device": ("disallow", "allow"),
    "transfer_guard_device_to_host": ("disallow", "allow"),
    "transfer_guard_host_to_device": ("disallow", "allow"),
    "user": ("test", "train"),
}
USER = weft.make_user_context("train")


def read_context(name):
    """The value of an option or of a guard of jaxlib's in this thread."""
    if name == "user":
        return USER.value
    if "guard" not in name:
        return getattr(weft.config, name)
    field = name.removeprefix("transfer_guard_").replace("transfer_guard", "host_to_device")
    field = field.replace("array_garbage_collection_guard", "garbage_collect_array")
    level = getattr(guard_lib.thread_local_state(), field)
    return level and level.name.lower()


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_context_made_ahead_nested_used_again_and_as_a_decorator(name):
    make, (on, off) = USER if name == "user" else getattr(weft, name), CONTEXTS[name]
    read = functools.partial(read_context, name)
    before, ahead = read(), make(on)
    decorated, undecorated = make(on)(lambda: read()), make(off)(lambda: (read(), decorated()))
    for _ in range(2):
        with ahead:
            assert read() == on
            with make(off):
                assert (read(), decorated()) == (off, on)
                with ahead, ahead:  # within itself
                    assert read() == on
                assert read() == off
            assert (read(), undecorated(), read()) == (on, (off, on), on)
        assert (read(), decorated(), read()) == (before, on, before)
    with pytest.raises(KeyError), ahead:
        raise KeyError
    assert read() == before

    def steps():
        with ahead:
            yield read()
        yield read()

    rounds = steps()
    assert [next(rounds), read(), next(rounds), read()] == [on, on, before, before]
    rounds = steps()
    assert (next(rounds), rounds.close(), read()) == (on, None, before)  # never resumed
    seen = []
    with ahead:  # holds in this thread only
        thread = threading.Thread(target=lambda: seen.extend([read(), decorated(), read()]))
        thread.start()
        thread.join()
    assert seen == [before, on, before]


def find_nan(f, *args):
    try:
        f(*args)
    except FloatingPointError:
        return True
    return False


def test_nans_are_looked_for_by_the_innermost_context():
    log, x, logs = weft.jit(jnp.log), jnp.float32(-1), weft.vmap(jnp.log)
    looks = [
        lambda: find_nan(log, x), lambda: find_nan(jnp.log, x), lambda: find_nan(logs, x[None]),
        lambda: find_nan(weft.grad(lambda x: jnp.sqrt(x) * 0.0), 0.0),
    ]  # fmt: skip
    on, off = weft.debug_nans(True), weft.debug_nans(False)
    for look in looks:
        assert not look()  # and is compiled
        for _ in range(2):
            with off:
                assert (look(), on(look)(), look()) == (False, True, False)
                with on:
                    assert (look(), off(look)(), look()) == (True, False, True)
                assert not look()
        assert off(on(look))() and not on(off(look))() and not look()


# --- options by the names that users of JAX write -------------------------------------------------


def test_options_by_the_names_that_users_of_jax_write(monkeypatch):
    config = weft.config
    monkeypatch.setattr("sys.argv", ["p", "--jax_enable_x64", "--nojax_debug_nans", "-v", "--lr=1"])
    parsed = []
    monkeypatch.setitem(sys.modules, "absl.flags", SimpleNamespace(FLAGS=parsed.append))
    try:
        config.parse_flags_with_absl()
        assert sys.argv == ["p", "-v", "--lr=1"] and parsed == [["p"]]
        assert config.x64_enabled and config.jax_enable_x64 and config.values["jax_enable_x64"]
        monkeypatch.setattr("sys.argv", ["p", "--jax_enable_x64=False"])
        config.config_with_absl()
        assert not config.x64_enabled and sys.argv == ["p"]
    finally:
        config.update("jax_enable_x64", False)
    assert config.jax_numpy_rank_promotion == "allow"
    for name in FLAGS.keys() - ACTIONS.keys():
        was = getattr(config, name)
        config.update(name, 0)
        assert config.values[name] == 0
        config.update(name, was)


def test_flags_of_jax_that_do_something(tmp_path):
    config, guards = weft.config, guard_lib.global_state()
    config.update("jax_dump_ir_to", str(tmp_path))
    try:
        weft.jit(lambda x: x + 12.5)(1.0)
    finally:
        config.update("jax_dump_ir_to", "")
    assert list(tmp_path.iterdir()) and config.dump is None
    config.update("jax_array_garbage_collection_guard", "log")
    assert guards.garbage_collect_array is guard_lib.GarbageCollectionGuardLevel.LOG
    config.update("jax_array_garbage_collection_guard", None)
    config.update("jax_logging_level", "ERROR")
    assert logging.getLogger("weft").level == logging.ERROR
    config.update("jax_logging_level", "NOTSET")
    config.update("jax_disable_most_optimizations", True)
    try:
        options = compile_options(placement_of(()), (), (), ())
        assert ("xla_backend_optimization_level", 0) in options.env_option_overrides
    finally:
        config.update("jax_disable_most_optimizations", False)
    config.update("jax_random_seed_offset", 1)
    try:
        offset = weft.jit(lambda seed: weft.random.PRNGKey(seed))(2), weft.random.PRNGKey(2)
    finally:
        config.update("jax_random_seed_offset", 0)
    for key in offset:
        np.testing.assert_array_equal(key, weft.random.PRNGKey(3))


def test_nothing_is_traced_or_run():
    f = weft.jit(lambda x: x * 3)
    f(1.0)
    with weft.no_tracing():
        assert f(2.0) == 6
        with pytest.raises(RuntimeError, match="<lambda>: must not be traced under no_tracing"):
            f(2)
    with weft.no_execution():
        assert f.lower(1.0).as_text()
        for call in (f, jnp.sin):
            with pytest.raises(RuntimeError, match="must not be run under no_execution"):
                call(1.0)
    assert f(2.0) == 6


def test_contexts_of_the_users_own():
    mode = weft.make_user_context("a")
    seen = []

    @weft.jit
    def f(x):
        seen.append(mode.value)
        return x

    for value in "bcb":
        with mode(value):
            f(1.0)
    f(1.0)
    assert seen == ["b", "c", "a"] and mode.value == mode.get_global() == "a"
    mode.set_global("d")
    f(1.0)
    assert seen[3:] == ["d"]
    for use in (mode, mode.set_global, weft.make_user_context):
        with pytest.raises(
            TypeError, match=r"make_user_context: a value must be hashable; got \[1"
        ):
            use([1])


def test_guards_of_garbage_collection():
    state = guard_lib.thread_local_state()
    with weft.array_garbage_collection_guard("log"):
        assert state.garbage_collect_array is guard_lib.GarbageCollectionGuardLevel.LOG
    assert state.garbage_collect_array is None
    with pytest.raises(ValueError, match="new_val must be one of 'allow', 'log', 'fatal'; got 'x'"):
        weft.array_garbage_collection_guard("x").__enter__()


def test_the_names_of_precisions_are_those_that_products_take():
    names = next(o.choices for o in OPTIONS if o.name == "default_matmul_precision")
    assert set(names) == {*_PRECISIONS, *_PRESETS}
    with pytest.raises(ValueError, match="config: default_matmul_precision must be one of"):
        weft.config.update("default_matmul_precision", "most")
    with pytest.raises(TypeError, match="config: num_cpu_devices must be an int; got 'two'"):
        weft.config.update("jax_num_cpu_devices", "two")
    with pytest.raises(TypeError, match="config: default_device must be a Device or str; got 3"):
        weft.default_device(3)
    for name in ("passes", "dump", "platforms", "compilation_cache_dir"):
        with pytest.raises(TypeError, match=f"config: {name} must be a str"):
            weft.config.update(name, ["a"])


def test_raw_words_for_keys_may_be_refused_and_custom_keys_be_the_default():
    words, key = weft.random.PRNGKey(0), weft.random.key(0)
    with weft.legacy_prng_key("error"):
        weft.random.split(key)
        with pytest.raises(ValueError, match="split: key must be of a key dtype under legacy_prng"):
            weft.random.split(words)
    with weft.legacy_prng_key("warn"), pytest.warns(UserWarning, match="Hint: random.key") as seen:
        weft.random.normal(words)
    assert seen[0].filename == __file__
    with weft.enable_custom_prng():
        assert weft.random.PRNGKey(0).dtype == key.dtype


def test_each_guard_is_of_its_own_transfers():
    state = _jax.guard_lib.thread_local_state()
    ways = ["host_to_device", "device_to_device", "device_to_host"]
    for which in ("", *ways):
        guard = getattr(weft, f"transfer_guard_{which}" if which else "transfer_guard")
        with guard("log"):
            found = [way for way in ways if getattr(state, way) is not None]
        assert found == ([which] if which else ways)
        assert all(getattr(state, way) is None for way in ways)


def test_guards_refuse_transfers_that_happen_by_themselves():
    x = jnp.arange(3.0)
    with weft.transfer_guard("disallow"):
        with pytest.raises(weft.errors.JaxRuntimeError, match="Disallowed host-to-device transfer"):
            x + np.ones(3, np.float32)
        with weft.transfer_guard_host_to_device("allow"):
            assert (x + np.ones(3, np.float32)).tolist() == [1, 2, 3]
        assert weft.device_get(weft.device_put(np.ones(2))).tolist() == [1, 1]
        (x + x).block_until_ready()
    refuse = weft.transfer_guard_host_to_device("disallow_explicit")
    with refuse, pytest.raises(weft.errors.JaxRuntimeError, match="Disallowed"):
        weft.device_put(np.ones(2))
    with pytest.raises(ValueError, match="device_to_host: new_val must be one of"):
        weft.transfer_guard_device_to_host("never")
    with weft.transfer_guard_device_to_device("log"):
        assert (x + np.ones(3, np.float32)).tolist() == [1, 2, 3]
