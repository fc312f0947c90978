"""Many threads use every store of the package at once; results are those of one thread.

Stores are made small, so that entries are evicted, and threads switch every few microseconds. On a
Python with a global lock, that is the nearest test to one without.
"""

import gc
import sys
import threading
import time

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.api import programs
from weft.primitives import replay
from weft.run import hot, rules, tape
from weft.util import LiveObjects, importing, keep_newest, share_result

THREADS = 8


@pytest.fixture
def eager_switches(monkeypatch):
    """Small stores, and threads that take turns often."""
    monkeypatch.setattr(hot, "COUNTED", 4)
    monkeypatch.setattr(programs, "MAX_PROGRAMS", 2)
    monkeypatch.setattr(replay, "MAX_RULES", 8)
    monkeypatch.setattr(rules, "MAX_RULES", 8)
    monkeypatch.setattr(tape, "MAX_WALKS", 2)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def run_in_threads(*works):
    """Run functions at the same time; raise the first error, and return their results."""
    results, errors = [None] * len(works), []
    start = threading.Barrier(len(works))

    def run(i):
        try:
            start.wait()
            results[i] = works[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    if errors:
        raise errors[0]
    return results


@weft.custom_jvp
def double(x):
    return 2 * x


double.defjvp(lambda primals, tangents: (2 * primals[0], 2 * tangents[0]))


@weft.jit
def shared(x, n=2):
    return lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * n + double(x), x)


def use_everything(number):
    """Use eager operations, transformations, options and programs; return their results."""
    x = jnp.arange(4.0) + number
    found = []
    for i in range(6):
        y = x.at[i % 3].add(number + i / 7)  # stores of indices, hot numbers and operations
        found.append(shared(y)[i % 4])
        found.append(weft.grad(lambda x, i=i: (jnp.cos(x) * x[i % 4]).sum())(y)[1])
        found.append(weft.vmap(lambda a: a * a + number)(y).sum())
        found.append(weft.jit(lambda a, i=i: a.sum() * i, static_argnames="i")(y))
        with weft.config.scope(enable_x64=bool((number + i) % 2)):
            wide = jnp.asarray(np.arange(3.0)).dtype
            assert wide == (np.float64 if (number + i) % 2 else np.float32)
        found.append(weft.random.uniform(weft.random.key(number), (2,))[0])
        if number == 0 and i % 3 == 2:
            weft.clear_caches()
    return [float(value) for value in found]


def test_results_are_those_of_one_thread(eager_switches):
    alone = [use_everything(number) for number in range(THREADS)]
    for _ in range(2):
        together = run_in_threads(*(lambda n=n: use_everything(n) for n in range(THREADS)))
        np.testing.assert_allclose(together, alone, rtol=1e-6)


def test_equal_types_and_meshes_are_one_object_in_all_threads(eager_switches):
    shapes = [(n, 7919) for n in range(50)]
    make = lambda: [weft.core.ShapedArray(shape, np.float32) for shape in shapes]
    for found in run_in_threads(*[make] * THREADS):
        assert all(a is b for a, b in zip(found, make(), strict=True))
    mesh = lambda: weft.sharding.Mesh(np.array(weft.devices()[:1]), ("threads",))
    assert len({id(m) for m in run_in_threads(*[mesh] * THREADS)}) == 1


def test_the_oldest_entries_go_while_others_come(eager_switches):
    store = {}

    def fill(number):
        for i in range(400):
            keep_newest(store, (number, i), i, 3)
            store.pop((number, i - 1), None)

    run_in_threads(*(lambda n=n: fill(n) for n in range(THREADS)))
    assert 0 < len(store) <= 3 + THREADS
    live = LiveObjects()

    class Thing:
        pass

    def add_and_list():
        for _ in range(200):
            thing = Thing()
            live.add(thing)
            assert thing in live.list_all()

    run_in_threads(*[add_and_list] * THREADS)
    assert len(live.list_all()) == 0


def test_other_threads_run_while_xla_compiles():
    x = jnp.ones((30, 30))

    def compile_and_count(k):
        lowered = weft.jit(lambda x: jnp.cumsum(jnp.sin(x.T) * k / x @ x, 0)).lower(x)
        turns, done = [], threading.Event()
        counter = threading.Thread(target=lambda: turns.extend(iter(lambda: done.wait(1e-3), True)))
        counter.start()
        with weft.config.scope(enable_compilation_cache=False):
            lowered.compile()
        done.set()
        counter.join()
        return len(turns)

    # With Python's lock held there would be a turn or two. Other processes may delay the counter.
    assert any(compile_and_count(k) > 4 for k in (3.25, 3.5, 3.75))


def test_a_call_uses_the_program_that_a_thread_compiled(monkeypatch):
    fun, x = weft.jit(lambda x: x * 2.625 - 1), jnp.ones(3)
    run_in_threads(fun.lower(x).compile)
    refuse = lambda *args: pytest.fail("compiled again")
    monkeypatch.setattr("weft.xla.compile.load_or_compile", refuse)
    with weft.no_tracing():
        assert fun(x).tolist() == [1.625] * 3


def test_threads_share_what_one_of_them_computes():
    running, computed = {}, []

    def compute(x):
        while len(asked) < THREADS:
            time.sleep(1e-3)
        computed.append(x)
        return [x]

    def ask():
        asked.append(1)
        return share_result(running, "key", compute, 3)

    asked = []
    results = run_in_threads(*[ask] * THREADS)
    assert all(x is results[0][0] for x, _ in results) and computed == [3] and not running
    assert sorted(mine for _, mine in results) == [False] * (THREADS - 1) + [True]
    # An entry that an interrupted thread left is no reason to wait.
    running["key"] = threading.Lock(), []
    assert share_result(running, "key", compute, 4) == ([4], True) and not running


@pytest.mark.parametrize("frozen", [0, 3])
def test_modules_are_imported_without_collections(monkeypatch, frozen):
    calls = []
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(gc, "unfreeze", lambda: calls.append("unfreeze"))
    monkeypatch.setattr(gc, "get_freeze_count", lambda: frozen)
    with importing():
        with importing():
            assert not gc.isenabled()
        assert not gc.isenabled() and not calls
    # Objects that the user has frozen stay so.
    assert gc.isenabled() and calls == ([] if frozen else ["freeze", "unfreeze"])
    gc.disable()
    try:
        with importing():
            pass
        assert not gc.isenabled() and len(calls) < 3
    finally:
        gc.enable()
