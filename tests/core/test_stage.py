import gc
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, lax, make_jaxpr, vmap
from weft.core.aval import ShapedArray
from weft.core.stage import stage
from weft.core.trace import current_trace
from weft.errors import TracerArrayConversionError, TracerBoolConversionError, UnexpectedTracerError
from weft.options import surroundings
from weft.primitives.elementwise import add, mul
from weft.run.eager import EVAL

F8 = ShapedArray((8,), np.float32)


def test_constants_are_hoisted_once_and_numbers_inline():
    table = np.arange(8, dtype=np.float32)
    jaxpr, consts = stage(lambda x: [add(mul(x, table), mul(table, 3.0))], [F8])
    assert len(jaxpr.constvars) == len(consts) == 1
    assert consts[0] is table
    assert "mul a 3.0" in str(jaxpr)


def test_zero_dimensional_arrays_are_literals():
    jaxpr, consts = stage(lambda x: [mul(x, np.float32(2))], [F8])
    assert not consts
    assert str(jaxpr.eqns[0]) == "a:f32[8] = mul b 2.0" or "2.0" in str(jaxpr)


def test_everything_inside_is_written_down_even_on_constants():
    jaxpr, _ = stage(lambda x: [add(x, jnp.sin(np.ones(8, np.float32)))], [F8])
    assert [e.primitive.name for e in jaxpr.eqns] == ["sin", "add"]


def test_the_surroundings_are_restored_after_an_error():
    def bad(x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stage(bad, [F8])
    assert current_trace() is EVAL
    assert surroundings.value is None
    assert float(jit(lambda x: x + 1)(1.0)) == 2.0


def test_garbage_is_looked_for_less_often_while_a_program_is_written():
    usual, seen = gc.get_threshold(), []

    def outer(x):
        stage(lambda y: [y], [F8])
        seen.append(gc.get_threshold()[0])
        return [x]

    try:
        for own, within in [(700, 5_000), (0, 0), (50_000, 50_000)]:
            gc.set_threshold(own, 10, 10)
            stage(outer, [F8])
            assert seen.pop() == within and gc.get_threshold() == (own, 10, 10)
            with pytest.raises(ZeroDivisionError):
                stage(lambda x: 1 / 0, [F8])
            assert gc.get_threshold() == (own, 10, 10)
    finally:
        gc.set_threshold(*usual)


def test_a_leaked_tracer_is_named_with_the_line_that_made_it():
    kept = []

    @jit
    def leaky(x):
        kept.append(jnp.sin(x))
        return x

    leaky(1.0)
    for use in (lambda: kept[0] + 1, lambda: jit(lambda y: y + kept[0])(1.0)):
        with pytest.raises(
            UnexpectedTracerError, match=r"leaked f32\[\] made by `jnp\.sin\(x\)` at test_stage"
        ):
            use()
    assert float(leaky(2.0)) == 2.0


def test_a_tracer_of_a_finished_grad_is_refused_too():
    kept = []

    def loss(x):
        kept.append(x * 2)
        return x

    jit(grad(loss))(1.0)
    with pytest.raises(UnexpectedTracerError):
        jit(lambda y: y + kept[0])(1.0)


def test_if_on_a_tracer_names_the_argument():
    with pytest.raises(
        TracerBoolConversionError,
        match=r"needs a concrete value; got a traced bool\[\] made by `x > 0` at test_stage",
    ):
        jit(lambda x: x if x > 0 else -x)(1.0)
    with pytest.raises(TracerBoolConversionError, match="from argument `flag` of choose"):

        @jit
        def choose(x, flag):
            return x if flag else -x

        choose(1.0, True)


def test_numpy_on_a_tracer_names_the_function_to_use():
    with pytest.raises(TracerArrayConversionError, match=r"Hint: jnp.sin"):
        jit(lambda x: np.sin(x))(1.0)


def test_python_control_flow_on_values_under_eager_grad():
    f = lambda x: x * x if x > 0 else -x
    assert float(grad(f)(3.0)) == 6.0
    assert float(grad(f)(-3.0)) == -1.0


def test_a_mapped_value_is_not_concrete():
    with pytest.raises(TracerBoolConversionError, match="mapped by vmap along axis 0"):
        vmap(lambda x: x if x > 0 else -x)(np.ones(3, np.float32))


def test_closed_over_tracers_become_operands():
    def outer(x):
        return jit(lambda y: y * x)(2.0)

    text = str(make_jaxpr(outer)(3.0))
    assert "] a 2.0" in text
    assert float(grad(outer)(3.0)) == 2.0


BIG = 2**31
OVERFLOWS = {
    "jit": lambda n: weft.jit(lambda: n)(),
    "jit of a pytree": lambda n: weft.jit(lambda x: {"a": (x, n)})(1.0),
    "cond": lambda n: lax.cond(True, lambda: n, lambda: 0),
    "switch": lambda n: lax.switch(0, [lambda: 0, lambda: n]),
    "scan": lambda n: lax.scan(lambda c, x: (c, n), 0, None, length=3),
    "scan, carried": lambda n: lax.scan(lambda c, x: (n, None), 0, None, length=3),
    "scan, at first": lambda n: lax.scan(lambda c, x: (c, None), n, None, length=3),
    "while": lambda n: lax.while_loop(lambda c: c == 0, lambda c: n, 0),
    "while, at first": lambda n: lax.while_loop(lambda c: c == 0, lambda c: c, n),
    "fori": lambda n: lax.fori_loop(0, 3, lambda i, c: n, 0),
    "map": lambda n: lax.map(lambda x: n, jnp.ones(3)),
    "vmap": lambda n: weft.vmap(lambda x: n)(jnp.ones(3)),
    "checkpoint": lambda n: weft.checkpoint(lambda: n)(),
    "make_jaxpr": lambda n: weft.make_jaxpr(lambda: n)(),
    "eval_shape": lambda n: weft.eval_shape(lambda: n),
    "argument": lambda n: weft.jit(lambda x: x)(n),
    "asarray": lambda n: weft.jit(lambda: jnp.asarray(n))(),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_a_python_integer_that_does_not_fit(name):
    for n in (BIG, -BIG - 1):
        with pytest.raises(OverflowError, match=f"must fit int32; got {n}"):
            OVERFLOWS[name](n)
    OVERFLOWS[name](-BIG)
    OVERFLOWS[name](BIG - 1)


def test_a_python_integer_that_fits_64_bits():
    with weft.enable_x64():
        assert weft.jit(lambda: (BIG, -BIG - 1))() == (BIG, -BIG - 1)
        with pytest.raises(OverflowError, match="must fit int64"):
            weft.jit(lambda: 2**63)()


# The Python functions that run to write an operation down, the third time that it is met: at most.
CALLS = {
    "x + x": (lambda x: x + x, 3),
    "x * 1.5": (lambda x: x * 1.5, 5),
    "1.5 - x": (lambda x: 1.5 - x, 6),
    "tanh(x)": (jnp.tanh, 3),
    "x @ x": (lambda x: x @ x, 4),
    "x.T": (lambda x: x.T, 3),
    "x ** 2": (lambda x: x**2, 5),
    "x.sum()": (lambda x: x.sum(), 3),
    "x.max(-1, keepdims=True)": (lambda x: x.max(-1, keepdims=True), 4),
    "x.mean(-1, keepdims=True)": (lambda x: x.mean(-1, keepdims=True), 7),
    "where(x > 0, x, 0.0)": (lambda x: jnp.where(x > 0, x, 0.0), 13),
}


@pytest.mark.parametrize("name", CALLS)
def test_few_functions_run_to_stage_an_operation(name):
    fun, most = CALLS[name]
    seen = []

    def staged(x):
        fun(x)
        fun(x)
        sys.setprofile(lambda frame, event, _: event == "call" and seen.append(frame.f_code))
        try:
            fun(x)
        finally:
            sys.setprofile(None)
        return x

    make_jaxpr(staged)(jnp.ones((4, 4)))
    names = [code.co_qualname for code in seen if code.co_filename != __file__]
    names = [name for name in names if "comp>" not in name]  # in Python 3.11 a call of its own
    assert len(names) <= most and "StageTrace.process" in names, names
    # objects of equations are made without calls of their constructors
    assert not [name for name in names if name.endswith("__init__")]
