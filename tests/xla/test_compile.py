"""Executables: kept in memory and on disk, made again where an entry is odd; errors name them."""

import logging
import os
import pathlib
import subprocess
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.core.jaxpr import Jaxpr, Var
from weft.errors import DtypeError, JaxRuntimeError
from weft.watch import events
from weft.xla import compile as compiling
from weft.xla.compile import Executable, compile_text, disk_cache
from weft.xla.diskcache import DiskCache
from weft.xla.placement import on_device

MODULE = """module @jit_{name} {{
  func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3xf32>) {{
    %0 = "stablehlo.{op}"(%arg0) : (tensor<3xf32>) -> (tensor<3xf32>)
    return %0 : tensor<3xf32>
  }}
}}
"""
X = np.array([1.0, 4.0, 9.0], np.float32)
VAR = Var(weft.typeof(X))
TYPED = Jaxpr((), [VAR], [VAR], [])  # of the types of those modules


@pytest.fixture
def directory(tmp_path):
    """A cache directory of its own, which the option names."""
    path = tmp_path / "cache"
    with weft.config.scope(compilation_cache_dir=str(path)):
        yield path


@pytest.fixture
def compiled(monkeypatch):
    """The list that grows with each compilation."""
    made = []
    real = compiling.compile_now

    def noted(*args):
        made.append(1)
        return real(*args)

    monkeypatch.setattr(compiling, "compile_now", noted)
    return made


def here(committed=False):
    return on_device(weft.devices()[0], committed)


def run(name="f", op="sqrt", settings=()):
    """Compile a module as if for the first time, and its result for `X`."""
    compiling.forget_loaded()
    loaded, _ = compile_text(MODULE.format(name=name, op=op), here(), settings)
    return Executable(loaded, TYPED, here())(X)[0].tolist()


def entries(directory):
    return sorted(p for p in pathlib.Path(directory).glob("*.weft"))


# --- the disk ------------------------------------------------------------------------------------


def test_an_entry_saves_the_compilation(directory, compiled):
    assert [run() for _ in range(3)] == [[1, 2, 3]] * 3
    assert len(compiled) == 1 and len(entries(directory)) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:50],
        lambda data: data[:-1],
        lambda data: data[:40] + b"\xff" * 40 + data[80:],
        lambda data: os.urandom(len(data)),
    ],
)
def test_a_damaged_entry_is_compiled_again(directory, compiled, damage):
    run()
    (entry,) = entries(directory)
    entry.write_bytes(damage(entry.read_bytes()))
    assert run() == [1, 2, 3] and len(compiled) == 2
    assert run() == [1, 2, 3] and len(compiled) == 2  # written anew


def test_an_entry_that_is_whole_but_no_executable_is_compiled_again(directory, compiled):
    run()
    disk = disk_cache(str(directory))
    (entry,) = entries(directory)
    disk.put(entry.stem, b"no executable")
    assert run() == [1, 2, 3] and len(compiled) == 2
    assert disk.get(entry.stem) != b"no executable"


def test_other_options_and_programs_have_other_entries(directory, compiled):
    flags = [("xla_cpu_enable_fast_math", True)]
    assert run() == run(settings=flags) == [1, 2, 3] and len(compiled) == 2
    assert run(op="negate") == [-1, -4, -9] and len(entries(directory)) == 3
    run(settings=flags)
    run(settings=[("xla_cpu_enable_fast_math", False)])
    assert len(compiled) == 4


def test_the_cache_may_be_off(directory, compiled):
    with weft.config.scope(enable_compilation_cache=False):
        run(), run()
    assert len(compiled) == 2 and not directory.exists()


def test_the_directory_is_read_at_each_compilation(directory, compiled, tmp_path):
    run()
    with weft.config.scope(compilation_cache_dir=str(tmp_path / "other")):
        run()
    assert len(entries(directory)) == len(entries(tmp_path / "other")) == 1
    run()
    assert len(compiled) == 2


def test_an_executable_that_cannot_be_kept_runs(directory, compiled, monkeypatch):
    class Loaded:
        def serialize(self):
            raise JaxRuntimeError("UNIMPLEMENTED: serialize")

    monkeypatch.setattr(compiling, "compile_now", lambda *args: Loaded())
    assert type(compile_text(MODULE.format(name="f", op="sqrt"), here())[0]) is Loaded
    assert entries(directory) == []


def test_a_directory_that_cannot_be_made_does_no_harm(compiled, tmp_path):
    (tmp_path / "file").write_text("")
    with weft.config.scope(compilation_cache_dir=str(tmp_path / "file" / "cache")):
        assert run() == run() == [1, 2, 3]
    assert len(compiled) == 2


def test_a_jitted_function_compiles_once(directory, compiled):
    f = weft.jit(lambda v: jnp.sin(v) * 3)
    f(X), f(X), f(jnp.asarray(X))
    assert len(compiled) == 1
    f.clear_cache()
    f(X)
    assert len(compiled) == 1  # from the disk
    with weft.config.scope(enable_compilation_cache=False):
        f.clear_cache()
        f(X)
    assert len(compiled) == 2


# --- failures, the log ---------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["no_such_op", "not"])
def test_a_failure_names_the_program(directory, op):
    with pytest.raises(
        JaxRuntimeError, match=r"^blame: must be a program that XLA compiles for cpu; got "
    ) as info:
        run("blame", op)
    assert "\n" not in str(info.value)
    assert entries(directory) == [] and run() == [1, 2, 3]


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit])
def test_a_dtype_that_the_engine_has_no_arrays_of(wrap):
    with pytest.raises(DtypeError, match=r"must be of dtypes that XLA has arrays of; got f6E2M3FN"):
        wrap(lambda x: x.astype(jnp.float6_e2m3fn))(jnp.ones(3))


def test_a_failure_under_jit_names_the_function():
    @weft.jit
    def step(v):
        return v + 1

    options = {"xla_no_such_flag": "1"}
    bad = weft.jit(lambda v: v + 1, compiler_options=options)
    for _ in range(2):
        with pytest.raises(
            JaxRuntimeError, match=r"^_lambda_: must be a program that XLA compiles"
        ):
            bad(1.0)
    assert step(1.0) == 2


def test_log_compiles(directory, caplog):
    with weft.log_compiles(), caplog.at_level(logging.WARNING):
        run("telling")
        run("telling")
    said = [r.getMessage() for r in caplog.records if "compiled telling in " in r.getMessage()]
    assert len(said) == 1 and said[0].endswith(" ms")


# --- running ----------------------------------------------------------------------------------


def test_options_of_each_platform(monkeypatch):
    defaults = weft.xla.compile._jax.CompileOptions().SerializeAsString()
    default_options = weft.xla.compile.default_options.__wrapped__
    given, flags = default_options("cpu", (("an_option", "a text"),))
    assert given.startswith(defaults) and b"an_option" in given and b"a text" in given
    assert flags == () and default_options("cpu") == (defaults, ())
    for tools, flags in (("/cuda", (("xla_gpu_cuda_data_dir", "/cuda"),)), (None, ())):
        monkeypatch.setattr(weft.xla.compile, "find_cuda_tools", lambda tools=tools: tools)
        assert default_options("cuda") == (defaults, flags)
        assert default_options("tpu") == (defaults, ())


def test_flags_of_users_come_after_those_of_the_program(monkeypatch):
    flags = compiling.Flags(overrides=(("a", 1),))
    options = compiling.compile_options(here(), [("a", 2)], (), (), flags)
    assert options.env_option_overrides == [("a", 1), ("a", 2)]


def test_integers_of_8_bits_wrap_before_a_reduction(kernels_as_for_users):
    x = np.arange(4096).astype(np.uint8).reshape(64, 64)
    y = weft.jit(lambda x: ((x + x).max(), (-x).astype(np.float32).sum(), (x * 3).mean(1)))(x)
    assert y[0] == (x + x).max() and y[1] == (-x).astype(np.float32).sum()
    np.testing.assert_allclose(y[2], (x * np.uint8(3)).mean(1), rtol=1e-6)
    f = weft.jit(lambda x: weft.lax.dot(x + x, -x, preferred_element_type=np.int32))
    np.testing.assert_array_equal(f(x), (x + x).astype(np.int32) @ (-x).astype(np.int32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arc_tangents_in_vectors(dtype, kernels_as_for_users):
    x = np.linspace(-2, 2, 4096).astype(dtype)  # of 512 bits, some were 0, or pi / 2

    def f(x, atan, sin):
        for _ in range(4):  # in float32, so many that they are not written as formulas
            x = sin(x) + atan(x)
        return x

    with weft.enable_x64(dtype == np.float64):
        got = weft.jit(lambda x: f(x, jnp.arctan, jnp.sin))(x)
        np.testing.assert_allclose(got, f(x, np.arctan, np.sin), atol=1e-5)
        np.testing.assert_allclose(jnp.arctan(x), np.arctan(x), rtol=1e-6)


def test_consts_and_unused_arguments():
    loaded, _ = compile_text(MODULE.format(name="f", op="sqrt"), here())
    assert Executable(loaded, TYPED, here(), consts=[X])()[0].tolist() == [1, 2, 3]
    assert Executable(loaded, TYPED, here(), kept=[False, True])(None, X)[0].tolist() == [1, 2, 3]
    assert Executable(loaded, TYPED, here(True))(X)[0].committed


INTERRUPTED = """
import os, random, signal, threading, time
import weft, weft.numpy as jnp

signal.signal(signal.SIGINT, signal.default_int_handler)

def f(x):
    for i in range(400):
        x = jnp.sin(x) * x + jnp.cos(x @ x)
    return x

caught = 0
for i in range(4):
    lowered = weft.jit(lambda x: f(x) + i).lower(jnp.ones((8, 8)))
    timer = threading.Timer(random.uniform(0, 0.1), os.kill, [os.getpid(), signal.SIGINT])
    try:
        timer.start()  # which waits for the thread, and may be interrupted there
        lowered.compile()
        time.sleep(1)
    except KeyboardInterrupt:
        caught += 1
print(caught, float(weft.jit(jnp.sum)(jnp.ones(3))))
"""


def test_an_interrupted_compile_ends_neither_the_process_nor_what_follows():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        env={**os.environ, "WEFT_ENABLE_COMPILATION_CACHE": "0"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "4 3.0\n"), done.stderr


def test_an_equal_program_is_found_in_memory(directory, compiled):
    text = MODULE.format(name="equal", op="sqrt")
    found = [compile_text(text, here()) for _ in range(3)]
    assert [how for _, how in found] == ["compiled", "found in memory", "found in memory"]
    assert found[0][0] is found[2][0] and len(compiled) == 1
    weft.clear_caches()
    assert compile_text(text, here())[1] == "loaded from the disk cache"
    weft.cache.clear()
    assert compile_text(text, here())[1] == "compiled"
    with weft.config.scope(enable_compilation_cache=False):
        assert compile_text(text, here())[1] == "compiled"


def test_few_executables_are_kept_in_memory(directory, compiled):
    kept = compiling._LOADED
    compiling.forget_loaded()
    for i in range(270):
        compiling.keep_loaded((f"program {i}", i), object())
        compiling.keep_loaded(("used often", 0), object())
    assert len(kept) == 256 and ("used often", 0) in kept and ("program 269", 269) in kept
    compiling.keep_loaded(("long" * (1 << 14), 0), object())
    assert len(kept) == 256 and "long" not in str(list(kept)[-1])
    compiling.forget_loaded()


@pytest.fixture
def slow(monkeypatch):
    """Compilations that start only when another thread has asked for a program too.

    The list has the name of each program that is compiled; `fail` is raised by the first, if set.
    """
    made, real = [], compiling.compile_now
    asked = compiling.compile_once

    def compile_later(text, *args):
        made.append(compiling.module_name(text))
        for _ in range(200):
            if len(waiting) > 1:
                break
            time.sleep(0.01)
        if slow.fail and len(made) == 1:
            raise slow.fail
        return real(text, *args)

    def ask(*args):
        waiting.append(1)
        return asked(*args)

    waiting, slow = [], types.SimpleNamespace(made=made, fail=None)
    monkeypatch.setattr(compiling, "compile_now", compile_later)
    monkeypatch.setattr(compiling, "compile_once", ask)
    return slow


def in_directory(directory, call):
    """Return a function that calls `call` with this directory of the cache, in any thread."""

    def run():
        with weft.config.scope(compilation_cache_dir=str(directory)):
            return call()

    return run


@pytest.mark.parametrize("disk", ["on disk", "off"])
@pytest.mark.parametrize("long", ["short", "long"])
def test_two_threads_compile_one_program_once(slow, directory, disk, long, monkeypatch):
    text = MODULE.format(name="shared" + long, op="sqrt") + "// a comment\n" * 6000 * (
        long == "long"
    )
    if disk == "off":
        monkeypatch.setattr(compiling, "disk_cache", lambda _: DiskCache(None, 0))
    load = in_directory(directory, lambda: compile_text(text, here()))
    with ThreadPoolExecutor(2) as pool:
        found = [done.result() for done in [pool.submit(load) for _ in range(2)]]
    assert sorted(how for _, how in found) == ["compiled", "found in memory"]
    assert found[0][0] is found[1][0] and len(slow.made) == 1 and not compiling._COMPILING


def test_a_call_waits_for_the_program_that_a_thread_compiles(slow, directory):
    f = weft.jit(lambda x: jnp.sqrt(x) * 3.0)
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(in_directory(directory, f.lower(X).compile))
        assert f(X).tolist() == [3, 6, 9]
        assert ahead.result()(X).tolist() == [3, 6, 9] and len(slow.made) == 1


def test_each_thread_gets_the_error_of_its_compilation(slow, directory):
    slow.fail = JaxRuntimeError("no memory")
    text = MODULE.format(name="failing", op="sqrt")
    load = in_directory(directory, lambda: compile_text(text, here()))
    with ThreadPoolExecutor(2) as pool:
        first, second = [pool.submit(load) for _ in range(2)]
        errors = [first.exception(), second.exception()]
    assert sorted(map(str, errors)) == ["None", "no memory"] and len(slow.made) == 2
    assert not compiling._COMPILING


LEFT = """
import threading, time
import weft, weft.numpy as jnp
from weft.xla import compile

def f(x):
    for i in range(40):
        x = jnp.sin(x) * x + jnp.cos(x @ x)
    return x

lowered = weft.jit(f).lower(jnp.ones((8, 8)))
threading.Thread(target=lowered.compile, daemon=True).start()
while not compile._COMPILING:
    time.sleep(1e-3)
print("left")
"""


def test_a_process_ends_after_what_a_daemon_thread_compiles():
    done = subprocess.run(
        [sys.executable, "-c", LEFT],
        env={**os.environ, "WEFT_ENABLE_COMPILATION_CACHE": "0"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "left\n"), done.stderr


def test_what_calls_python_is_not_shared(directory):
    calls = [weft.jit(lambda x, n=n: weft.pure_callback(lambda x: x + n, x, x)) for n in (1, 2)]
    assert [float(c(1.0)) for c in calls] == [2, 3]
    assert not any("callback" in made_of[0] for made_of in compiling._LOADED)


def test_what_is_recorded_of_the_cache(directory, monkeypatch):
    happened = []
    monkeypatch.setattr(events, "record_event", happened.append)
    run("recorded"), run("recorded")
    asked = events.CACHE_REQUEST
    assert [e for e in happened if "cache" in e and e != events.CACHE_MISS] == [
        asked, asked, events.CACHE_HIT
    ]  # fmt: skip
