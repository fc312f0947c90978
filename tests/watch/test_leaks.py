"""The leak check: kept values and their holders, for every way to trace and to hold."""

import gc
import importlib
import sys
import types

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import checking_leaks, grad, jit, lax, vmap
from weft.errors import LeakedTracerError, UnexpectedTracerError
from weft.watch.leaks import describe_hold


@pytest.fixture(scope="module", autouse=True)
def few_objects():
    """The search for what holds a value looks through all objects that the collector knows."""
    global holders
    gc.freeze()
    holders = importlib.import_module("tests.watch.holders")


@pytest.fixture(autouse=True)
def forget():
    yield
    holders.forget()


def keep(x):
    return holders.keep(x)


def raises(match):
    return pytest.raises(LeakedTracerError, match=match)


HELD = r"which is still held by element 0 of a list, the global `KEPT` of .*holders"


@pytest.mark.parametrize(
    "call",
    [
        lambda: jit(keep)(1.0),
        lambda: grad(keep)(1.0),
        lambda: weft.jvp(keep, (1.0,), (1.0,)),
        lambda: vmap(keep)(np.ones(3)),
        lambda: lax.scan(lambda c, x: (keep(c), None), 1.0, None, length=2),
        lambda: lax.cond(True, keep, lambda x: x, 1.0),
        lambda: jit(grad(keep))(1.0),
        lambda: jit(vmap(jit(keep)))(np.ones(3)),
        lambda: weft.make_jaxpr(keep)(1.0),
    ],
    ids=["jit", "grad", "jvp", "vmap", "scan", "cond", "jit_grad", "jit_vmap_jit", "make_jaxpr"],
)
def test_every_tracing(call):
    said = r": traced values must not outlive their function; got f\d\d\[\] made by `x \* 2` at "
    with checking_leaks(), raises(said + r"holders.py:\d+.*" + HELD):
        call()


def test_holders():
    with checking_leaks():
        with raises("held by the attribute `h` of a Model, the global `MODEL` of "):
            jit(holders.attribute)(1.0)
        with raises(
            "held by the attribute `second` of a Fields, held by the item 'fields' of a dict"
        ):
            jit(holders.field)(1.0)
        with raises("held by element 0 of a tuple, held by the item 'k' of a dict, the global"):
            jit(holders.item)(1.0)
        with raises("from argument `x` of .*, which is still the global `LAST` of "):
            jit(holders.variable)(1.0)
        with raises("the variable `box` that .*closure.<locals>.f closes over"):
            jit(holders.closure())(1.0)
        with raises("held by a generator, held by element 0 of a list"):
            jit(holders.suspended)(1.0)


def test_the_hint_and_the_class():
    with checking_leaks(), pytest.raises(UnexpectedTracerError, match="Hint: return the value"):
        jit(keep)(1.0)


def test_functions_are_traced_anew_for_the_check():
    fun = jit(keep)
    fun(1.0)
    holders.KEPT.clear()
    with checking_leaks(), raises("^keep: "):
        fun(1.0)


def test_off_it_does_nothing():
    jit(lambda x: keep(x))(1.0)
    assert len(holders.KEPT) == 1


def test_garbage_in_a_cycle_is_no_leak():
    def cyclic(x):
        cycle = [x]
        cycle.append(cycle)
        return x

    gc.disable()
    try:
        with checking_leaks():
            assert float(jit(cyclic)(1.0)) == 1.0
    finally:
        gc.enable()


def test_a_list_of_a_running_function():
    kept = []
    with checking_leaks(), raises("element 0 of a list, the variable `kept` that .* closes over"):
        jit(lambda x: kept.append(x) or x)(1.0)


def test_what_is_allowed():
    with checking_leaks():
        value, aux = weft.value_and_grad(lambda x: (x * x, x * 2), has_aux=True)(1.0)
        assert float(value[1]) == 2.0 and float(aux) == 2.0
        _, pull, aux = weft.vjp(lambda x: (x * x, x), 3.0, has_aux=True)
        assert float(pull(1.0)[0]) == 6.0 and float(aux) == 3.0

        def outer(x):
            inner = jit(lambda y: x * y)  # closes over a value of outer
            return inner(2.0) + inner(3.0) + lax.fori_loop(0, 3, lambda i, c: c * x, x)

        assert float(jit(outer)(2.0)) == 26.0
        assert np.isfinite(float(jit(grad(outer))(2.0)))

        def rule(x):
            @weft.custom_jvp
            def g(y):
                return y * y

            g.defjvp(lambda p, t: (g(*p), t[0] * p[0]))
            return g(x)

        assert float(jit(grad(rule))(3.0)) == 3.0


def test_an_aux_value_that_closes_over_an_outer_derivative():
    def f(x):
        _, aux = grad(lambda y: (y * x, y * x * 2), has_aux=True)(2.0)
        return aux

    assert float(grad(f)(3.0)) == 4.0


def test_an_error_in_the_function_comes_first():
    def broken(x):
        holders.KEPT.append(x)
        raise KeyError("mine")

    with checking_leaks(), pytest.raises(KeyError, match="mine"):
        jit(broken)(1.0)


def test_nothing_is_lost():
    with checking_leaks():
        with raises("keep"):
            jit(keep)(1.0)
        holders.KEPT.clear()
        assert float(jit(lambda x: jnp.sin(x))(0.0)) == 0.0


def test_what_holds_a_value_in_words():
    def suspended():
        frame = sys._getframe()
        yield frame

    frame, kept = next(suspended()), []
    line = f"test_leaks.py:{frame.f_lineno}"
    name = "test_what_holds_a_value_in_words.<locals>.suspended"
    cell = types.CellType(kept)
    rows = [
        (suspended, kept, f"held by the function {name}", False),
        (frame, kept, f"held by a variable of suspended at {line}, which has not ended", True),
        (cell, kept, "held by a variable that a function closes over", False),
        ([0, kept], kept, "held by element 1 of a list", False),
        ((kept, []), kept, "held by element 0 of a tuple", False),
        ({"a": 1, 2: kept}, kept, "held by the item 2 of a dict", False),
        (vars(holders), holders.KEPT, "the global `KEPT` of tests.watch.holders", True),
        ((cell,), cell, "", False),
    ]
    for holder, held, said, known in rows:
        assert describe_hold(holder, held) == (said, known)


def test_no_tracing():
    f = jit(lambda x: x + 1)
    f(1.0)
    with weft.config.scope(no_tracing=True):
        assert f(2.0) == 3.0
        with pytest.raises(RuntimeError) as info:
            f(2)
    assert str(info.value) == (
        "<lambda>: must not be traced under no_tracing; got new types or a new function."
    )
