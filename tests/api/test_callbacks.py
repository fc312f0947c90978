"""pure_callback and io_callback: values, checks, errors, Ctrl-C, threads, lifetimes, the disk."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.api.callbacks import effects_barrier, io_callback, pure_callback
from weft.errors import DtypeError
from weft.options import config
from weft.xla import callbacks as runs
from weft.xla.compile import disk_cache

X = np.float32([3, 1, 2])
VECTOR = weft.ShapeDtypeStruct((3,), np.float32)
SCALAR = weft.ShapeDtypeStruct((), np.float32)
both = pytest.mark.parametrize("run", [lambda f: f, weft.jit], ids=["eager", "jit"])


@pytest.fixture(autouse=True)
def no_run_is_left():
    yield
    assert set(runs._RUNS) <= {None} and len(runs._RUNS) == len(runs._FREE)


# --------------------------------------------------------------------------------------------
# Values.


DTYPES = ["bool", "int4", "uint8", "int16", "int32", "uint32"]
DTYPES += ["float8_e4m3fn", "bfloat16", "float16", "float32", "complex64"]


@both
@pytest.mark.parametrize("shape", [(), (2, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_and_shapes(run, dtype, shape):
    seen = []
    struct = weft.ShapeDtypeStruct(shape, dtype)
    x = jnp.ones(shape, dtype)
    out = run(lambda x: pure_callback(lambda v: (seen.append(v), v)[1], struct, x))(x)
    for y in (*seen, out):
        assert isinstance(y, weft.Array) and (y.dtype, y.shape) == (x.dtype, shape)
    np.testing.assert_array_equal(np.asarray(out), np.asarray(x))
    assert len(seen) == 1


@both
def test_empty_arrays(run):
    seen = []
    struct = weft.ShapeDtypeStruct((0, 3), np.float32)
    empty = jnp.zeros((0, 3))
    out = run(lambda x: io_callback(lambda v: (seen.append(v.shape), v)[1], struct, x))(empty)
    assert out.shape == (0, 3) and seen == [(0, 3)]


def test_64_bits():
    with weft.enable_x64(True):
        for dtype in ("float64", "int64", "complex128"):
            struct = weft.ShapeDtypeStruct((3,), dtype)
            out = weft.jit(lambda x, s=struct: pure_callback(np.negative, s, x))(X.astype(dtype))
            assert out.dtype == dtype and out.tolist() == [-3, -1, -2]
    out = weft.jit(lambda x: pure_callback(lambda v: np.asarray(v, np.float64), VECTOR, x))(X)
    assert out.dtype == np.float32  # as everywhere, without x64


class Pair(NamedTuple):
    a: object
    b: object


@both
def test_pytrees_in_and_out(run):
    def callback(tree, *, scale):
        assert type(tree) is Pair and tree.b["n"] is None
        return Pair(tree.a * scale, [1, None])

    def f(x):
        shapes = Pair(VECTOR, [weft.ShapeDtypeStruct((), np.int32), None])
        return pure_callback(callback, shapes, Pair(x, {"n": None}), scale=2.0)

    out = run(f)(X)
    assert out.a.tolist() == [6, 2, 4] and out.b[0] == 1 and out.b[0].dtype == np.int32


@both
@pytest.mark.parametrize("callback", [pure_callback, io_callback], ids=lambda f: f.__name__)
def test_python_numbers_as_results_are_of_any_dtype_of_their_kind(run, callback):
    for number, dtype in ((1.5, np.float16), (-3, np.int8), (True, bool), (2j, np.complex64)):
        struct = weft.ShapeDtypeStruct((), dtype)
        out = run(lambda x, n=number, s=struct: callback(lambda v: n, s, x))(X)
        assert out == number and out.dtype == dtype
    for number, dtype in ((1, np.float32), (1.0, np.int32), (True, np.int32), (2.0, np.complex64)):
        struct = weft.ShapeDtypeStruct((), dtype)
        with pytest.raises(TypeError, match="the callback must return what result_shape_dtypes"):
            run(lambda x, n=number, s=struct: callback(lambda v: n, s, x))(X)
    with pytest.raises(OverflowError, match="result of <lambda> must fit int8; got 300."):
        run(lambda x: callback(lambda v: 300, weft.ShapeDtypeStruct((), np.int8), x))(X)


def test_shapes_may_be_given_by_arrays():
    assert pure_callback(np.sort, jnp.zeros(3), X).tolist() == [1, 2, 3]


@both
def test_no_operands_and_no_results(run):
    seen = []
    assert run(lambda: io_callback(lambda: seen.append(1), None))() is None
    assert seen == [1]


def test_what_is_not_used_is_not_called():
    seen = []

    @weft.jit
    def f(x):
        pure_callback(lambda v: seen.append(1), None, x)
        return x

    f(X)
    assert not seen


def test_equal_pure_calls_may_be_one():
    callback = lambda v: v

    def f(x):
        return pure_callback(callback, VECTOR, x) + pure_callback(callback, VECTOR, x)

    assert weft.jit(f)(X).tolist() == [6, 2, 4]


@pytest.mark.parametrize("dtype", [np.float32, jnp.int4])  # packed numbers are passed as arrays
def test_operands_may_be_kept(dtype):
    kept = []
    struct = weft.ShapeDtypeStruct((1000,), dtype)
    f = weft.jit(lambda x: 1 - pure_callback(lambda v: kept.append(v) or v, struct, x + x))
    for i in range(3):  # the operand is a temporary, whose memory the next run writes
        assert set(f(jnp.full(1000, i, dtype)).astype(int).tolist()) == {1 - 2 * i}
    assert [set(v.astype(int).tolist()) for v in kept] == [{0}, {2}, {4}]
    assert kept[0].dtype == dtype and isinstance(kept[0], weft.Array)


def test_operands_are_copied_once_and_results_written_in_place():
    copied = []
    place, given = runs.put, lambda x, *rest: copied.append(x) or place(x, *rest)
    struct = weft.ShapeDtypeStruct((1000,), np.float32)
    f = weft.jit(lambda x: pure_callback(np.asarray, struct, x))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "put", given)
        f(jnp.ones(1000)).block_until_ready()
    (view,) = [x for x in copied if x.size == 1000]
    assert not view.flags.owndata and not isinstance(view.base, np.ndarray)  # XLA's memory


def test_options_of_jit_go_with_callbacks():
    f = lambda x, y: pure_callback(np.sort, VECTOR, x) + 1
    for options in ({"keep_unused": True}, {}, {"donate_argnums": 0}):
        out = weft.jit(f, **options)(jnp.array(X), jnp.array(X))
        assert out.tolist() == [2, 3, 4]


def test_the_stages():
    lowered = weft.jit(lambda x: pure_callback(np.sort, VECTOR, x)).lower(X)
    assert "xla_buffer_python_cpu_callback" in lowered.as_text()
    compiled = lowered.compile()
    for _ in range(2):
        assert compiled(X).tolist() == [1, 2, 3]
    assert compiled.memory_analysis() is not None and compiled.cost_analysis() is not None


def test_the_settings_of_the_caller_hold_in_a_callback():
    seen = []
    f = weft.jit(lambda x: io_callback(lambda v: seen.append(jnp.array(1.0).dtype.name), None, x))
    with weft.enable_x64(True):
        f(X)
    f(X)
    assert seen == ["float64", "float32"]


def test_operands_are_waited_for():
    slow = weft.jit(lambda x: lax.fori_loop(0, 50, lambda i, c: c @ c * 0.0 + 1.0, x))
    threads = []
    f = weft.jit(lambda x: io_callback(lambda v: threads.append(threading.get_ident()), None, x))
    f(slow(jnp.ones((200, 200))))
    assert threads == [threading.get_ident()]  # a program that has to wait runs in another thread


def test_effects_barrier():
    assert effects_barrier() is None and weft.effects_barrier is effects_barrier


# --------------------------------------------------------------------------------------------
# vmap.


def shapes_seen(method, **kwargs):
    seen = []

    def callback(x, y):
        seen.append((x.shape, y.shape))
        return x + y

    f = lambda x, y: pure_callback(callback, SCALAR, x, y, vmap_method=method)
    out = weft.jit(weft.vmap(f, **kwargs))(X, np.float32(1))
    assert out.tolist() == [4, 2, 3]
    return seen


def test_vmap_methods():
    axes = {"in_axes": (0, None)}
    assert shapes_seen("sequential", **axes) == [((), ())] * 3
    assert shapes_seen("sequential_unrolled", **axes) == [((), ())] * 3
    assert shapes_seen("expand_dims", **axes) == [((3,), (1,))]
    assert shapes_seen("broadcast_all", **axes) == [((3,), (3,))]
    assert shapes_seen("legacy_vectorized", **axes) == [((3,), ())]


@both
@pytest.mark.parametrize("method", ["sequential", "broadcast_all"])
def test_nested_vmap_along_other_axes(run, method, rng):
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    struct = weft.ShapeDtypeStruct((3,), np.float32)
    f = lambda x: pure_callback(lambda v: np.sort(v, -1), struct, x, vmap_method=method)
    out = run(weft.vmap(weft.vmap(f, in_axes=1, out_axes=1)))(x)
    np.testing.assert_array_equal(out, np.sort(x, 1))


def test_vmap_over_nothing():
    f = lambda x: pure_callback(lambda v: 1 / 0, SCALAR, x, vmap_method="sequential")
    assert weft.vmap(f)(jnp.zeros(0)).shape == (0,)


def test_vmap_must_be_told_how():
    with pytest.raises(NotImplementedError, match=r"pure_callback: under vmap, vmap_method must"):
        weft.vmap(lambda x: pure_callback(np.sin, SCALAR, x))(X)
    with pytest.raises(ValueError, match=r"pure_callback: vmap_method must be .*got 'all'"):
        pure_callback(np.sin, SCALAR, 1.0, vmap_method="all")


# --------------------------------------------------------------------------------------------
# Errors.


@both
@pytest.mark.parametrize(
    "result, text",
    [
        (np.ones(4, np.float32), r"got f32\[4\] for result of give, which is f32\[3\]"),
        (np.ones(3, np.int32), r"got i32\[3\] for result of give, which is f32\[3\]"),
        (1.0, r"got f32\[\] for result of give, which is f32\[3\]"),
        ([X] * 2, r"give must return the structure of result_shape_dtypes; got PyTreeDef\(\[\*, "),
        (None, r"got PyTreeDef\(None\) where PyTreeDef\(\*\) was"),
    ],
)
def test_results_are_checked(run, result, text):
    def give(x):
        return result

    with pytest.raises(TypeError, match=text):
        run(lambda x: pure_callback(give, VECTOR, x))(X)


@both
def test_the_leaf_that_does_not_fit_is_named(run):
    shapes = {"a": SCALAR, "b": (SCALAR, SCALAR)}
    give = lambda: {"a": 1.0, "b": (2.0, X)}
    with pytest.raises(TypeError, match=r"got f32\[3\] for result\['b'\]\[1\] of <lambda>, which"):
        run(lambda: pure_callback(give, shapes))()


@both
def test_a_list_or_a_named_tuple_of_results_may_stand_for_a_tuple(run):
    pair = (weft.ShapeDtypeStruct((2,), np.float32), weft.ShapeDtypeStruct((2, 2), np.float32))
    f = run(lambda x: pure_callback(lambda v: np.linalg.eigh(np.outer(v[:2], v[:2])), pair, x))
    values, vectors = f(X)
    np.testing.assert_allclose(vectors * values @ vectors.T, np.outer(X[:2], X[:2]), atol=1e-5)
    assert run(lambda x: pure_callback(lambda v: [v], (VECTOR,), x))(X)[0].shape == (3,)
    assert run(lambda x: pure_callback(lambda v: None, (), x))(X) == ()


def test_results_that_are_no_arrays():
    with pytest.raises(DtypeError, match="pure_callback: operands must be arrays or numbers; got"):
        weft.jit(lambda x: pure_callback(lambda v: "text", SCALAR, x))(X)


def test_wrong_calls():
    with pytest.raises(TypeError, match=r"pure_callback: needs a function; got 3"):
        pure_callback(3, SCALAR, X)
    with pytest.raises(DtypeError, match=r"io_callback: arguments must be arrays or numbers"):
        io_callback(print, None, "text")
    with pytest.raises(TypeError, match=r"got 'f32' at result_shape_dtypes\[0\]"):
        pure_callback(np.sin, ["f32"], X)


class Mine(Exception):
    pass


@both
def test_the_error_is_the_users(run):
    def inner(v):
        raise Mine(v.tolist()) from KeyError("cause")

    f = run(lambda x: pure_callback(inner, VECTOR, x) + 1)
    for _ in range(3):
        with pytest.raises(Mine) as caught:
            f(X)
        error = caught.value
        assert error.args == ([3, 1, 2],) and type(error.__cause__) is KeyError
        names = [f.name for f in traceback.extract_tb(error.__traceback__)]
        assert names[-1] == "inner" and names[0] == "test_the_error_is_the_users"
        assert weft.jit(lambda x: x + 1)(X).tolist() == [4, 2, 3]


def test_an_error_in_a_loop_ends_it():
    seen = []

    def callback(i):
        seen.append(int(i))
        if i == 2:
            raise Mine

    @weft.jit
    def f(n):
        return lax.fori_loop(0, n, lambda i, c: (io_callback(callback, None, i), c)[1], 0)

    with pytest.raises(Mine):
        f(10)
    assert seen == [0, 1, 2]
    assert f(2) == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration])
def test_any_exception_goes_through(error):
    def callback(v):
        raise error

    f = weft.jit(lambda x: io_callback(callback, None, x))
    with pytest.raises(error):
        f(X)


def test_errors_pass_nested_programs():
    @weft.jit
    def inner(x):
        return pure_callback(lambda v: 1 / 0, VECTOR, x)

    with pytest.raises(ZeroDivisionError):
        weft.jit(lambda x: pure_callback(inner, VECTOR, x))(X)


# --------------------------------------------------------------------------------------------
# Ctrl-C.


def test_ctrl_c_in_a_callback():
    def callback(v):
        signal.raise_signal(signal.SIGINT)
        time.sleep(10)

    f = weft.jit(lambda x: io_callback(callback, None, x))
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        f(X)
    assert time.monotonic() - start < 5
    assert weft.jit(lambda x: io_callback(lambda v: v, VECTOR, x))(X).tolist() == X.tolist()


INTERRUPTED = """
    import os, signal, sys, threading, time
    import weft, weft.numpy as jnp
    from weft import lax
    from weft.api.callbacks import io_callback

    def later(seconds):
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()

    def attempt(f):
        try:
            f()
        except KeyboardInterrupt:
            print("stopped", flush=True)

    sleeping = weft.jit(lambda: io_callback(lambda: time.sleep(60), None))
    def endless():
        # most of the time is the engine's, between calls of Python
        body = lambda x: (io_callback(lambda: None, None), jnp.tanh(x @ x))[1]
        return lax.while_loop(lambda x: x[0, 0] < 2, body, jnp.ones((150, 150)))
    for f in (sleeping, weft.jit(endless)):
        later(0.7)
        attempt(f)
    print(weft.jit(lambda x: x + 1)(1))
"""


def test_ctrl_c_from_outside():
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED)],
        capture_output=True,
        text=True,
        timeout=50,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split() == ["stopped", "stopped", "2"], done.stderr
    assert done.returncode == 0 and time.monotonic() - start < 30


# --------------------------------------------------------------------------------------------
# Programs in callbacks, threads.


def test_callbacks_may_run_programs():
    inner = weft.jit(lambda x: pure_callback(lambda v: v + 1, VECTOR, x) * 2)
    outer = weft.jit(lambda x: pure_callback(lambda v: inner(v) + jnp.sin(v) * 0, VECTOR, x))
    assert outer(X).tolist() == [8, 4, 6]
    assert weft.grad(lambda x: (x * outer(lax.stop_gradient(x))).sum())(X).tolist() == [8, 4, 6]


def test_callbacks_may_transform_and_trace():
    slope = lambda v: weft.jit(weft.grad(lambda y: jnp.sum(y**2)))(v)
    assert weft.jit(lambda x: pure_callback(slope, VECTOR, x))(X).tolist() == [6, 2, 4]


def test_branches_that_run_side_by_side():
    big = weft.jit(lambda m: (m @ m).sum())
    names = []

    def callback(v):
        names.append(threading.current_thread().name)
        return big(v)

    def f(m):
        return sum(pure_callback(callback, SCALAR, (m + i) @ m) for i in range(8))

    m = jnp.ones((300, 300)) * 0.01
    expected = float(sum(((a := (m + i) @ m) @ a).sum() for i in range(8)))
    for _ in range(5):
        np.testing.assert_allclose(weft.jit(f)(m), expected, rtol=1e-4)
    assert len(names) == 40


def test_an_error_in_branches_that_run_side_by_side():
    def callback(v):
        raise Mine

    f = lambda m: sum(pure_callback(callback, SCALAR, (m + i) @ m) for i in range(8))
    for _ in range(3):
        with pytest.raises(Mine):
            weft.jit(f)(jnp.ones((300, 300)))


def in_threads(*functions):
    threads = [threading.Thread(target=f) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def test_each_thread_gets_its_own():
    f = weft.jit(lambda x: pure_callback(lambda v: v + 1, VECTOR, x))
    outs = [[] for _ in range(8)]

    def work(k):
        for _ in range(20):
            outs[k].append(f(X + k).tolist())

    in_threads(*[lambda k=k: work(k) for k in range(8)])
    assert outs == [[[4 + k, 2 + k, 3 + k]] * 20 for k in range(8)]


def test_runs_of_one_program_may_wait_for_each_other():
    meeting = threading.Barrier(1)
    f = weft.jit(lambda x: pure_callback(lambda v: (meeting.wait(10), v)[1], VECTOR, x))
    f(X)  # a first call compiles, which one thread does for all
    meeting = threading.Barrier(2)
    in_threads(lambda: f(X), lambda: f(X))
    assert not meeting.broken


def test_errors_of_threads_stay_apart():
    def callback(v):
        if v[0] > 3:
            raise Mine

    f = weft.jit(lambda x: io_callback(callback, None, x))
    caught = []

    def work(k):
        for _ in range(20):
            try:
                f(X + k)
            except Mine:
                caught.append(k)

    in_threads(*[lambda k=k: work(k) for k in range(4)])
    assert sorted(caught) == [1] * 20 + [2] * 20 + [3] * 20


# --------------------------------------------------------------------------------------------
# Lifetimes and caches.


class Thing:
    pass


def used_in_a_cycle():
    thing = Thing()

    @weft.jit
    def f(x):
        return pure_callback(lambda v: (thing, f, v)[2], VECTOR, x)

    f(X)
    f.lower(X).compile()(X)
    return thing


def used_eagerly():
    thing = Thing()
    callback = lambda v: (thing, v)[1]
    weft.vmap(lambda x: pure_callback(callback, SCALAR, x, vmap_method="sequential"))(X)
    lax.scan(lambda c, x: (pure_callback(callback, SCALAR, c), x), np.float32(0), X)
    return thing


def used_by_a_failure():
    thing = Thing()

    def callback(v):
        held = thing  # noqa: F841
        raise Mine

    with pytest.raises(Mine):
        weft.jit(lambda x: pure_callback(callback, VECTOR, x))(X)
    return thing


@pytest.mark.parametrize("use", [used_in_a_cycle, used_eagerly, used_by_a_failure])
def test_nothing_keeps_a_callback_that_no_program_has(use):
    thing = weakref.ref(use())
    gc.collect()
    assert thing() is None


def test_a_callback_lives_as_long_as_its_program():
    compiled = weft.jit(lambda x: pure_callback(lambda v: v * 2, VECTOR, x)).lower(X).compile()
    gc.collect()
    assert compiled(X).tolist() == [6, 2, 4]


def test_equal_programs_share_an_executable_on_disk_and_call_their_own():
    disk = disk_cache(config.compilation_cache_dir)
    make = lambda k: weft.jit(lambda x: pure_callback(lambda v: v + k, VECTOR, x) * 1.5)
    assert make(1)(X).tolist() == [6, 3, 4.5]
    hits = disk.hits
    assert make(2)(X).tolist() == [7.5, 4.5, 6]
    assert disk.hits == hits + 1


def test_without_the_disk():
    with config.scope(enable_compilation_cache=False):
        f = weft.jit(lambda x: pure_callback(lambda v: v + 1, VECTOR, x) * 2.5)
        assert f(X).tolist() == [10, 5, 7.5]


def test_calls_go_to_what_is_compiled():
    traces = []

    @weft.jit
    def f(x):
        traces.append(1)
        return pure_callback(lambda v: v, VECTOR, x)

    x = jnp.array(X)
    for _ in range(5):
        f(x)
    assert len(traces) == 1


def test_errors_may_be_wrapped_as_jax_does():
    def fail(x):
        raise KeyError("which")

    f = lambda x: weft.pure_callback(fail, weft.ShapeDtypeStruct((), np.float32), x)
    with weft.config.scope(wrap_callback_errors=True):
        for g in (f, weft.jit(f)):
            with pytest.raises(
                weft.errors.JaxRuntimeError, match="(?s)calling callback.*KeyError: 'which'"
            ):
                weft.block_until_ready(g(1.0))
    with pytest.raises(KeyError):
        f(1.0)
