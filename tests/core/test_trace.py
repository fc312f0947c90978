"""Computing at once while a function is traced: `ensure_compile_time_eval` under everything."""

import pickle

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import ensure_compile_time_eval, grad, jit, lax, vmap
from weft.core import Tracer
from weft.core.trace import Trace, is_concrete
from weft.extend.core import set_current_trace, take_current_trace

X = np.arange(3, dtype=np.float32)


def body(c, _):
    with ensure_compile_time_eval():
        n = int(jnp.sum(jnp.array([1, 2])))
    return c * n, None


def branch(x):
    with ensure_compile_time_eval():
        n = int(jnp.add(1, 2))
    return x * n


def program(x):
    x = lax.scan(body, x, None, length=2)[0]
    return lax.cond(x > 0, branch, lambda x: x, x)


@pytest.mark.parametrize(
    "fun",
    [program, jit(program), grad(program), jit(grad(program)), grad(jit(program))],
    ids=["eager", "jit", "grad", "jit_grad", "grad_jit"],
)
def test_in_bodies_and_branches(fun):
    assert float(fun(1.0)) == 27.0
    np.testing.assert_array_equal(vmap(fun)(np.ones(2, np.float32)), [27, 27])
    np.testing.assert_array_equal(jit(vmap(fun))(np.ones(2, np.float32)), [27, 27])


@pytest.mark.parametrize("wrap", [jit, grad, lambda f: vmap(f)], ids=["jit", "grad", "vmap"])
def test_transformations_inside_compute_at_once(wrap):
    def fun(x):
        with ensure_compile_time_eval():
            values = [
                grad(lambda z: z**2)(3.0),
                jit(lambda z: z * 2)(3.0),
                lax.scan(lambda c, _: (c + 1, None), 0.0, None, length=3)[0],
                vmap(lambda z: z + 1)(jnp.ones(3)),
                lax.cond(True, lambda: 1.0, lambda: 2.0),
            ]
            y = x * 2.0  # an unknown value is still traced
        assert not any(isinstance(v, Tracer) for v in values)
        return y * float(values[0])

    x = np.ones(2, np.float32) if wrap not in (jit, grad) else 1.0
    np.testing.assert_array_equal(wrap(fun)(x), np.full(np.shape(x), 12.0))


def test_it_ends_with_an_error():
    def fun(x):
        with pytest.raises(ZeroDivisionError), ensure_compile_time_eval():
            assert 1 / 0
        return jnp.sin(1.0) * x

    assert [e.primitive.name for e in weft.make_jaxpr(fun)(1.0).eqns][0] == "sin"


# Python's conversions of a traced value, the error, and the start of its message.
ASKED = [
    (bool, "TracerBoolConversionError", r"bool\(\): needs a concrete value; got a traced f32\[\]"),
    (range, "TracerIntegerConversionError", r"index\(\): needs a concrete .*Hint: x.shape"),
    (int, "ConcretizationTypeError", r"int\(\): .*Hint: x.astype\(int\)"),
    (float, "ConcretizationTypeError", r"float\(\): .*Hint: x.astype"),
    (complex, "ConcretizationTypeError", r"complex\(\): .*Hint: x.astype\(complex\)"),
    (lambda x: x.item(), "ConcretizationTypeError", r"item\(\): .*call .item\(\) on the result"),
    (lambda x: x.tolist(), "ConcretizationTypeError", r"tolist\(\): .*call .tolist\(\) on"),
    (np.sin, "TracerArrayConversionError", r"numpy: .*jnp.sin\(x\) for np.sin\(x\)"),
    (lambda x: x.__dlpack__(), "TracerArrayConversionError", r"__dlpack__: .*export the result"),
    (pickle.dumps, "ConcretizationTypeError", r"pickle: .*and pickle the result"),
    (lambda x: f"{x:.2f}", "ConcretizationTypeError", r"format\(\): needs a concrete value"),
    (list, "ShapeError", r"iter\(\): needs an array with an axis; got f32\[\] from argument `x`"),
]


@pytest.mark.parametrize(("ask", "error", "text"), ASKED, ids=range(len(ASKED)))
def test_what_a_traced_value_cannot_tell(ask, error, text):
    with pytest.raises(getattr(weft.errors, error), match=text):
        jit(lambda x: ask(x))(1.0)


def test_what_is_known_while_a_derivative_is_taken():
    def f(x):
        assert x and float(x) == 2 and complex(x) == 2 and x.item() == 2 and x.tolist() == 2
        assert f"{x:.1f}" == "2.0" and f"{x}" == str(x) and int(x) == 2
        np.testing.assert_array_equal(np.from_dlpack(x), 2)
        assert isinstance(x, Tracer) and not is_concrete(x) and is_concrete(1)
        return x * x

    assert grad(f)(jnp.float32(2)) == 4
    assert weft.jvp(lambda x: sum(y * i for i, y in enumerate(x)), (X,), (X,))[1] == 5
    with pytest.raises(weft.errors.TracerArrayConversionError):
        grad(np.sin)(1.0)


def test_a_traced_value_is_of_no_use_after_its_function():
    kept = []
    jit(lambda x: kept.append(x) or x)(1.0)
    for use in (bool, lambda x: x + 1, lambda x: jit(lambda: x + 1)()):
        with pytest.raises(weft.errors.UnexpectedTracerError, match="its function has returned"):
            use(kept[0])
    assert repr(kept[0]).startswith("Traced<f32[]>with<")
    assert not kept[0].is_live()


def test_numbers_keep_their_type_in_a_program_of_another_width():
    from weft.core.trace import pin_type

    x = pin_type(1.5)
    assert weft.typeof(x).dtype == np.float32 and weft.typeof(x).weak_type
    with weft.enable_x64(True):
        assert weft.typeof(x).dtype == np.float32
        assert weft.typeof(pin_type(np.int64(3))).dtype == np.int64
    array = jnp.ones(2)
    assert pin_type(array) is array and pin_type("a") == "a"


class Seen(Tracer):
    """A value of `Count`."""

    def __init__(self, trace, value):
        super().__init__(trace, weft.typeof(value))
        self._trace = trace
        self.value = value


class Count(Trace):
    """Names the operations that are applied, as a library's trace does: by `process_primitive`."""

    def __init__(self, around):
        super().__init__()
        self.around = around
        self.names = []

    def process_primitive(self, prim, tracers, params):
        values = [x.value if isinstance(x, Seen) else x for x in tracers]
        self.names.append(prim.name)
        avals = list(map(weft.typeof, values))
        out = prim.bind_with_trace(self.around, values, avals, params)
        return weft.tree.map(lambda y: Seen(self, y), out)


def test_a_trace_of_a_library():
    names = []

    def count(x):
        with take_current_trace() as around:
            trace = Count(around)
            with set_current_trace(trace):
                halves = jnp.split(jnp.sin(Seen(trace, x)) * 2, [1])
            names.append(trace.names)
            return halves[1].value

    for f in (count, jit(count), lambda x: vmap(count)(x[None])[0]):
        np.testing.assert_allclose(f(X), 2 * np.sin(X)[1:], rtol=1e-6)
    np.testing.assert_allclose(grad(lambda x: count(x).sum())(X), [0, *2 * np.cos(X)[1:]], 1e-6)
    assert names[0] == ["sin", "mul", "split"] and all(n == names[0] for n in names)


def nest(wrap, f=lambda x: x + 1, count=100):
    for _ in range(count):
        f = wrap(f)
    return f


NESTED = {
    "jit": weft.jit,
    "checkpoint": weft.checkpoint,
    "jit of more": lambda f: weft.jit(lambda x: f(x) * 1.0),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "fori": lambda f: lambda x: lax.fori_loop(0, 1, lambda i, c: f(c), x),
}


@pytest.mark.parametrize("name", NESTED)
def test_a_hundred_functions_within_one_another(name):
    f = nest(NESTED[name])
    assert f(jnp.float32(1)) == 2
    assert weft.jit(weft.grad(f))(1.0) == 1


def test_an_endless_recursion_ends():
    @weft.jit
    def f(x):
        return f(x)

    def g(x):
        return weft.jit(lambda x: g(x))(x)

    for endless in (f, g):
        with pytest.raises(RecursionError, match="^jit: "):
            endless(1.0)
