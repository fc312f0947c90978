"""Why a jitted function is traced again, as the log says it."""

import functools
import logging

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import explain_cache_misses, jit, lax, vmap


@pytest.fixture
def told(caplog):
    """The lines that are logged while a function runs, without the place of the call."""

    def lines(call):
        caplog.clear()
        with explain_cache_misses(), caplog.at_level(logging.WARNING, "weft.trace"):
            call()
        found = [r.getMessage() for r in caplog.records if r.name == "weft.trace"]
        assert all(" again at test_cache_misses.py:" in line for line in found)
        return [line.split(": ", 1)[1] for line in found]

    return lines


def test_the_line(caplog):
    fun = jit(lambda x: x + 1)
    with explain_cache_misses(), caplog.at_level(logging.WARNING):
        fun(1.0)
        fun(np.ones(3))  # this line
    (record,) = caplog.records
    line = test_the_line.__code__.co_firstlineno + 4
    assert record.name == "weft.trace" and record.levelname == "WARNING"
    assert record.getMessage() == (
        f"traced <lambda> again at test_cache_misses.py:{line}: argument `x` was f32[] (weakly "
        "typed), is f32[3]. Hint: each shape is traced and compiled; jit(f, sizes=...) pads to a "
        "few."
    )


def test_types(told):
    fun = jit(lambda x: x * 2)
    fun(np.ones(3, np.float32))
    shape = told(lambda: fun(np.ones(4, np.float32)))
    assert shape == [
        "argument `x` was f32[3], is f32[4]. "
        "Hint: each shape is traced and compiled; jit(f, sizes=...) pads to a few."
    ]
    dtype = told(lambda: fun(np.ones(4, np.int32)))
    assert dtype == [
        "argument `x` was f32[4], is i32[4]. Hint: convert it, as in x.astype('float32')."
    ]
    fun(jnp.float32(1))
    weak = told(lambda: fun(1.0))
    assert weak == [
        "argument `x` was f32[], is f32[] (weakly typed). Hint: a Python number is weakly typed; "
        "pass an array always, or a number always."
    ]


def test_nothing_is_said_of_a_first_trace_nor_of_a_hit(told):
    fun = jit(lambda x: x * 3)
    assert told(lambda: fun(1.0)) == []
    assert told(lambda: fun(2.0)) == []


def test_the_closest_earlier_call_is_named(told):
    fun = jit(lambda x, y: x + y)
    fun(np.ones(2), np.ones(2))
    fun(np.ones(3), np.ones(3))
    assert told(lambda: fun(np.ones(3), 1.0))[0].startswith("argument `y` was f32[3], is f32[] (w")


def test_many_changes_are_cut_short(told):
    fun = jit(lambda xs: xs[0])
    fun([1.0] * 9)
    (line,) = told(lambda: fun([1] * 9))
    assert line.count("was f32[]") == 5 and "; and 4 more." in line


def test_static_arguments(told):
    class Setting:
        def __repr__(self):
            return "Setting()"

    fun = jit(lambda n, x: x, static_argnums=0)
    fun(1, 2.0)
    assert told(lambda: fun(2, 2.0)) == [
        "static argument `n` was 1, is 2. Hint: each value of a static argument is traced; pass it "
        "as an array if it varies."
    ]
    assert told(lambda: fun(1, 2))[0].startswith("argument `x` was f32[] (weakly typed), is i32[]")
    fun(Setting(), 2.0)
    assert told(lambda: fun(Setting(), 2.0)) == [
        "static argument `n` was Setting(), is Setting(). "
        "Hint: give it __eq__ and __hash__ by value."
    ]
    named = jit(lambda x, mode=None: x, static_argnames="mode")
    named(1.0)
    assert told(lambda: named(1.0, mode="a"))[0].startswith(
        "static argument `mode` was not given, is 'a'."
    )


def test_structures(told):
    fun = jit(lambda p, **more: p["w"])
    fun({"w": 1.0})
    assert told(lambda: fun({"w": 1.0, "b": 2.0})) == [
        "of the arguments, `p['b']` came. "
        "Hint: pass the same keywords and pytrees of one structure."
    ]
    assert told(lambda: fun({"w": 1.0}, s=1.0))[0].startswith("of the arguments, `s` came")
    pair = jit(lambda x: x)
    pair((1.0, 2.0))
    assert told(lambda: pair([1.0, 2.0]))[0].startswith("the arguments were PyTreeDef(")


def test_options_and_axes(told):
    fun = jit(lambda x: x * 5)
    fun(np.ones(3, np.float32))

    def wide():
        with weft.enable_x64():
            fun(np.ones(3, np.float32))

    assert told(wide) == ["enable_x64 was False, is True."]
    fun(np.float32(1))
    (line,) = told(lambda: vmap(fun, axis_name="i")(np.ones(3, np.float32)))
    assert line.startswith("mapped axes was (), is (Axis(size=3, name='i'),)")


def test_a_context_of_the_users(told):
    fun = jit(lambda x: x + 1)
    fun(1.0)
    around = weft.make_user_context(0)  # the calls before it knew of none
    assert told(lambda: fun(np.float32(1)))[0].startswith("argument `x` was f32[] (weakly typed)")

    def inside():
        with around(7):
            fun(np.float32(1))

    assert "a context of the user's was 0, is 7" in told(inside)[0]


def test_jit_with_other_options(told):
    def fun(x):
        return x * 2

    jit(fun)(1.0)
    (line,) = told(lambda: jit(fun, keep_unused=True)(1.0))
    assert line == "it is jitted with other options. Hint: jit the function once."


def test_a_new_function_each_time(told):
    def train(x):
        return jit(lambda y: y * 3)(x)

    assert told(lambda: train(1.0)) == []
    place = f"test_cache_misses.py:{train.__code__.co_firstlineno + 1}"
    assert told(lambda: train(1.0)) == [
        f"it is a new function object with the code at {place}, which was traced before as another "
        "one. Hint: define the function once, outside of what is called repeatedly."
    ]


def test_a_new_body_each_time(told):
    def train(x):
        return lax.scan(lambda c, _: (c * 2, None), x, None, length=2)[0]

    assert told(lambda: train(1.0)) == []
    assert told(lambda: train(1.0))[0].startswith("it is a new function object with the code at ")
    assert told(lambda: jit(train)(1.0)) == []


def test_partial_and_bound_methods(told):
    class Model:
        def step(self, x):
            return x * 2

    model = Model()
    assert told(lambda: jit(model.step)(1.0)) == []
    (line,) = told(lambda: jit(model.step)(1.0))
    assert "each access of the method at test_cache_misses.py:" in line
    assert "Hint: step = jit(model.step) once" in line

    def scaled(a, x):
        return a * x

    assert told(lambda: jit(functools.partial(scaled, 3))(1.0)) == []
    assert told(lambda: jit(functools.partial(scaled, 3))(1.0))[0].startswith(
        "it is a new function"
    )


def test_forgotten_programs(told):
    fun = jit(lambda x: x * 7)
    told(lambda: fun(1.0))
    fun.clear_cache()
    assert told(lambda: fun(1.0)) == ["its programs were forgotten (clear_caches, clear_cache)."]


def test_what_a_function_closes_over_is_traced_anew(told):
    held = []

    def outer(x):
        def inner(y):
            return held[-1] * y

        held.append(x)
        outer.inner = getattr(outer, "inner", jit(inner))
        return outer.inner(2.0)

    vmap(outer)(np.ones(2))
    held.clear()
    assert told(lambda: vmap(outer)(np.ones(2))) == [
        "what it closes over is traced anew in each call of the function around it. "
        "Hint: pass it as an argument."
    ]


def test_off_it_says_nothing(caplog):
    fun = jit(lambda x: x + 2)
    with caplog.at_level(logging.WARNING):
        fun(1.0)
        fun(np.ones(2))
        lax.scan(lambda c, x: (c + x, None), 0.0, np.ones(2, np.float32))
    assert caplog.records == []


def test_log_compiles(caplog):
    with weft.log_compiles(), caplog.at_level(logging.WARNING):
        jit(lambda x, y: x * y + 0.12345)(1.0, np.ones(2, np.int8))
    said = [r.getMessage() for r in caplog.records if r.name.startswith("weft.")]
    assert said[0].startswith("traced <lambda> for (f32[], i8[2]) in ") and said[0].endswith(" ms")
    how = "compiled", "loaded from the disk cache", "found in memory"
    assert said[1].startswith(tuple([f"{h} _lambda_ in " for h in how]))


# --- hints, once a place ----------------------------------------------------------------------


def hints_of(caplog, call, times):
    caplog.clear()
    with caplog.at_level(logging.WARNING, "weft.trace"):
        for i in range(times):
            call(i)
    return [r.getMessage() for r in caplog.records]


def test_functions_made_in_a_loop_are_told_of_once(caplog):
    (line,) = hints_of(caplog, lambda i: jit(lambda x: x + i).trace(1.0), 70)
    assert line.startswith("30 functions <lambda> were jitted and traced at test_cache_misses.py:")
    assert "Hint: jit one, outside of the loop" in line
    quiet = lambda i: jit(lambda x: x * i).trace(1.0)
    with weft.config.scope(hints=False):
        assert not hints_of(caplog, quiet, 40)


def test_functions_of_one_code_from_different_places_are_no_mistake(caplog):
    wrap = lambda f: jit(lambda x: f(x))
    one = lambda i: wrap(jnp.sin).trace(1.0)
    other = lambda i: wrap(jnp.cos).trace(1.0)
    assert not hints_of(caplog, one, 29)
    assert not hints_of(caplog, other, 40)


@pytest.mark.parametrize(
    "fun, call, why",
    [
        (
            jit(lambda x, n: x * n, static_argnums=1),
            lambda f, i: f.trace(1.0, i),
            "argument `n` was",
        ),
        (
            jit(lambda x: x + 1),
            lambda f, i: f.trace(np.ones(i)),
            "argument `x` was f32[28], is f32",
        ),
    ],
    ids=["static", "shape"],
)
def test_many_kinds_of_calls_are_told_of_once_with_the_difference(caplog, fun, call, why):
    (line,) = hints_of(caplog, lambda i: call(fun, i), 70)
    assert "<lambda> was traced for 30 kinds of calls, the last at test_cache_misses.py:" in line
    assert why in line
