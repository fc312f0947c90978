"""Staged programs: shared by threads, kept with their functions, let go with them."""

import copy
import functools
import gc
import pickle
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import weft
from tests.api.compare import counted
from weft import grad, jit, lax, make_jaxpr, vmap
from weft.api import programs
from weft.core.primitive import TYPES
from weft.run.eager import KERNELS
from weft.run.fastpath import _CACHE

A = np.array([1.0, 2.0, 3.0], np.float32)


def test_a_thread_may_clear_what_others_are_adding_to():
    before, over, wrong = sys.getswitchinterval(), threading.Event(), []

    def add():
        kept = []
        while not over.is_set():
            kept = [jit(lambda x: x) for _ in range(20)] + kept[:2000]

    def clear():
        try:
            end = time.perf_counter() + 0.4
            while time.perf_counter() < end:
                weft.clear_caches()
        except RuntimeError as error:
            wrong.append(error)
        over.set()

    threads = [threading.Thread(target=f) for f in (add, add, clear)]
    sys.setswitchinterval(1e-6)
    try:
        [t.start() for t in threads]
        [t.join() for t in threads]
    finally:
        sys.setswitchinterval(before)
    assert not wrong


def test_threads_may_make_the_first_call_at_once():
    @jit
    def f(x):
        time.sleep(0.005)
        return lax.sin(x) * x

    barrier, wrong = threading.Barrier(6), []

    def work(i):
        try:
            barrier.wait()
            for _ in range(5):
                np.testing.assert_allclose(f(A + i), np.sin(A + i) * (A + i), rtol=1e-5)
                grad(lambda x: f(x)[0])(A + i)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def sizes():
    return len(TYPES), len(KERNELS), _CACHE.size()


def one_round(i):
    """Make, transform, call and drop functions of every kind that holds others."""

    @weft.custom_vjp
    def c(x):
        return x * float(i)

    c.defvjp(lambda x: (c(x), x), lambda saved, ct: (ct * float(i),))

    @weft.custom_jvp
    def d(x):
        return x * float(i)

    d.defjvp(lambda primals, tangents: (d(*primals), tangents[0] * float(i)))

    def f(x):
        return lax.reduce_sum(c(d(lax.sin(x))), (0,))

    make_jaxpr(grad(jit(f)))(A)
    make_jaxpr(vmap(jit(grad(jit(f)))))(np.ones((2, 3), np.float32))
    grad(f)(A), vmap(grad(f))(np.ones((2, 3), np.float32)), weft.jvp(d, (A,), (A,))
    weft.vjp(f, A)[1](1.0), weft.linearize(d, A)[1](A)
    if i % 500 == 0:
        jit(f)(A), jit(grad(f))(A)
    f.itself = f
    return weakref.ref(f), weakref.ref(c), weakref.ref(d)


def test_functions_that_are_dropped_leave_nothing_behind():
    for i in range(20):  # rules of operations without jit are programs by now
        one_round(i)
    gc.collect()
    before = sizes()
    refs = [ref for i in range(60) for ref in one_round(i)]
    gc.collect()
    assert not any(ref() is not None for ref in refs)
    assert sizes() == before


def test_an_object_that_jitted_its_method_can_die():
    class Layer:
        def f(self, x):
            return x

    layer = Layer()
    ref = weakref.ref(layer)
    jit(layer.f)(A)
    del layer
    gc.collect()
    assert ref() is None


def test_programs_of_one_function_are_bounded(monkeypatch):
    monkeypatch.setattr("weft.api.programs.MAX_PROGRAMS", 3)
    f = lambda x, n: x * n
    for n in range(6):
        jit(f, static_argnums=1).trace(1.0, n)
    assert len(f.__weft_programs__) == 3


def test_clear_cache_and_clear_caches():
    f, traces = counted(lambda x: x * 2)
    f(1.0), f.clear_cache(), f(1.0)
    assert len(traces) == 2
    weft.clear_caches()
    f(1.0)
    assert len(traces) == 3


def test_arguments_without_a_value_are_not_counted_among_those_donated():
    none = np.zeros(3, weft.dtypes.float0)
    x, y, z = (weft.device_put(A + i) for i in range(3))
    f = jit(lambda x, s, y, t, z: (x + 1, y + 2, z + 3), donate_argnums=(2, 3, 4))
    np.testing.assert_array_equal(f(x, none, y, none, z), [A + 1, A + 3, A + 5])
    assert [v.is_deleted() for v in (x, y, z)] == [False, True, True]


def test_an_object_that_can_be_called_keeps_its_programs():
    class Body:
        calls = 0

        def __call__(self, c, x):
            Body.calls += 1
            return c + x, c

    body = Body()
    for _ in range(2):
        assert lax.scan(body, 0.0, A)[0] == 6
    assert Body.calls == 1
    lax.scan(copy.copy(body), 0.0, A)
    assert Body.calls == 2
    part = functools.partial(max, 1)
    jit(part)
    assert pickle.loads(pickle.dumps(part))(0) == 1
    body = [body, weakref.ref(body)].pop()
    gc.collect()
    assert body() is None


def test_what_is_logged_of_tracing(monkeypatch, caplog):
    clock = iter([10.0, 10.25, 20.0, 20.5])
    f = weft.jit(lambda x, n: x * n)
    monkeypatch.setattr(programs.time, "perf_counter", lambda: next(clock))
    with weft.log_compiles():
        f.trace(1.0, np.ones((2, 3), np.float32))
    said = [m for m in caplog.messages if m.startswith("traced")]
    assert said == ["traced <lambda> for (f32[], f32[2,3]) in 250.0 ms"]


def test_a_function_that_is_let_go_of_is_freed_at_once_with_its_programs():
    def use(how):
        array = np.ones(3, np.float32)

        def f(x):
            return weft.grad(lambda y: (y * array).sum())(x)

        how(weft.jit(f), np.ones(3, np.float32))
        return weakref.ref(f)

    gc.collect()
    gc.disable()  # nothing may wait for it
    try:
        assert use(lambda f, x: f(x))() is None
        assert use(lambda f, x: f.lower(x).compile()(x))() is None
    finally:
        gc.enable()


def test_what_is_compiled_knows_its_function_when_that_is_let_go_of():
    compiled = weft.jit(lambda size: size * 2).lower(1.0).compile()
    with pytest.raises(weft.errors.DtypeError, match="size of <lambda>"):
        compiled("three")


def test_clearing_forgets_what_functions_that_are_gone_have_compiled():
    traced = []

    def f(x):
        return traced.append(x) or x + 1

    for _ in range(2):
        for _ in range(2):
            weft.jit(f)(1.0)
        weft.clear_caches()
    assert len(traced) == 2
