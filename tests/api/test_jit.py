"""jit: tracing, static and donated arguments, methods, errors, threads, memory."""

import copy
import functools
import os
import pickle
import signal
import time

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.api.compare import counted
from weft import grad, jit, lax, make_jaxpr, vmap
from weft.core.trace import current_trace
from weft.options import named_axes, surroundings
from weft.primitives.transcendental import sin_p
from weft.run.eager import EVAL, kernel_of

A = np.array([1.0, 2.0, 3.0], np.float32)


# --- when it traces, when it compiles --------------------------------------------------------


def test_one_trace_and_one_compile_for_calls_of_one_type(executables):
    f, traces = counted(lambda x: lax.sin(x) * x)
    for _ in range(3):
        np.testing.assert_allclose(f(A), np.sin(A) * A, rtol=1e-6)
    f(A + 1)
    assert (len(traces), len(executables)) == (1, 1)


def test_a_new_type_traces_again():
    f, traces = counted(lambda x: x * 2)
    counts = []
    for x in (A, A + 1, np.arange(3), np.float32(1), 1.0, 2.0, 1, 2, True, A[:2]):
        f(x)
        counts.append(len(traces))
    assert counts == [1, 1, 2, 3, 4, 4, 5, 5, 6, 7]


def test_structures_and_keywords_are_part_of_the_type():
    f, traces = counted(lambda x: x[0])
    f([A, A]), f((A, A)), f([A, A])
    assert len(traces) == 2
    g, traces = counted(lambda x, y: x - y)
    assert float(g(3.0, 1.0)) == float(g(y=1.0, x=3.0)) == float(g(x=3.0, y=1.0)) == 2.0
    assert len(traces) == 2


def test_enable_x64_traces_again_and_back_again_not():
    f, traces = counted(lambda x: x * 2)
    assert f(1.0).dtype == np.float32
    with weft.enable_x64():
        assert f(1.0).dtype == np.float64
        f(1.0)
    f(1.0)
    assert len(traces) == 2


def test_jits_of_one_function_share_its_traces(executables):
    traces = []

    def f(x):
        traces.append(1)
        return x * 2

    for _ in range(5):
        jit(f)(1.0)
    jit(jit(f))(1.0)
    assert len(traces) == 1


def test_a_wrapper_made_by_functools_wraps_is_another_function():
    def f(x):
        return x * 2

    @functools.wraps(f)
    def g(x):
        return x * 3

    assert float(jit(f)(1.0)) == 2.0
    assert float(jit(g)(1.0)) == 3.0
    assert float(jit(f)(1.0)) == 2.0


def test_transformations_of_a_jitted_function_trace_it_once():
    f, traces = counted(lambda x: x * x)
    f(1.0), grad(f)(1.0), grad(grad(f))(1.0), jit(f)(1.0), make_jaxpr(f)(1.0)
    jit(lambda x: f(x) + f(x))(1.0), weft.hessian(f)(1.0)
    assert len(traces) == 1
    vmap(f)(A), vmap(grad(f))(A)
    assert len(traces) == 2  # mapped elements are not weakly typed


def test_options_tell_jits_of_one_function_apart():
    def f(x):
        return x + 1

    kept, gone = jnp.add(A, 1), jnp.add(A, 1)
    jit(f)(kept)
    jit(f, donate_argnums=0)(gone)
    jit(f)(kept)
    assert gone.is_deleted() and not kept.is_deleted()
    assert jit(f, device=weft.devices()[0])(kept).committed


# --- static arguments -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, calls, count",
    [
        ({"static_argnums": 1}, [((2.0, 3), {}), ((5.0, 3), {}), ((2.0, 2), {})], 2),
        ({"static_argnums": -1}, [((2.0, 3), {}), ((2.0, 2), {})], 2),
        ({"static_argnums": (1,)}, [((2.0,), {"n": 3}), ((2.0, 3), {})], 2),
        ({"static_argnames": "n"}, [((2.0,), {"n": 3}), ((3.0,), {"n": 3})], 1),
        ({"static_argnames": ("n",)}, [((2.0, 3), {}), ((2.0,), {"n": 2})], 2),
        ({"static_argnums": (0, 1)}, [((2, 3), {}), ((2, 3), {})], 1),
        ({"static_argnames": "n"}, [((2.0,), {})], 1),
    ],
)
def test_static_arguments_by_either_spelling(options, calls, count):
    f, traces = counted(lambda x, n=4: x**n if type(n) is int else 1 / 0, **options)
    for args, kwargs in calls:
        n = kwargs.get("n", args[1] if len(args) > 1 else 4)
        assert float(f(*args, **kwargs)) == args[0] ** n
    assert len(traces) == count


def test_static_values_of_different_type_are_different():
    f, traces = counted(lambda x, n: x * (type(n) is int), static_argnums=1)
    assert [float(f(1.0, n)) for n in (1, 1.0, True)] == [1.0, 0.0, 0.0]
    assert len(traces) == 3


def test_static_arguments_under_transformations():
    f = jit(lambda x, n: x**n, static_argnums=1)
    assert float(grad(f)(2.0, 3)) == 12.0
    np.testing.assert_allclose(vmap(f, (0, None))(A, 3), A**3)
    assert float(jit(grad(lambda x, n: x**n), static_argnames="n")(2.0, n=3)) == 12.0


def test_static_arguments_among_varargs_and_kwargs():
    assert float(jit(lambda *xs: xs[0] * xs[1], static_argnums=(1, 2))(2.0, 3, 4)) == 6.0
    assert float(jit(lambda *xs: xs[0], static_argnums=(1, 2))(2.0)) == 2.0
    assert float(jit(lambda x, **k: x * len(k["s"]), static_argnames="s")(2.0, s="abc")) == 6.0
    assert float(jit(lambda x, *, n: x**n, static_argnames="n")(2.0, n=3)) == 8.0


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: jit(lambda x, n: x, static_argnums=1)(1.0, [1]), ValueError, "got list as arg"),
        (lambda: jit(lambda x, n: x, static_argnames="n")(1.0, n=A), ValueError, "as argument `n`"),
        (lambda: jit(lambda x: x, static_argnums=3), ValueError, "which takes 1; got (3,)"),
        (lambda: jit(lambda x: x, static_argnums=-3), ValueError, "which takes 1; got (-3,)"),
        (lambda: jit(lambda x: x, static_argnames="z"), ValueError, "must name arguments of"),
        (lambda: jit(lambda x: x, static_argnums="x"), TypeError, "must be integers"),
        (lambda: jit(lambda x: x, static_argnums=0, donate_argnums=0), ValueError, "both static"),
        (lambda: jit(lambda x: x, donate_argnums=2), ValueError, "donate_argnums must be pos"),
        (lambda: jit(lambda x: x, backend="abacus"), RuntimeError, "got 'abacus'"),
        (lambda: jit(3), TypeError, "jit: needs a function; got 3"),
        (lambda: jit(lambda x: x)("a"), TypeError, "static_argnums"),
        (lambda: jit(lambda p: p)({"a": [object()]}), TypeError, "at p['a'][0] of <lambda>"),
        (lambda: jit(lambda x: {"a": "b"})(1.0), TypeError, "at result['a'] of <lambda>"),
        (lambda: jit(lambda x: x if x > 0 else -x)(1.0), TypeError, "made by `x > 0` at test_jit"),
        (lambda: jit(lambda n: list(range(n)))(3), TypeError, "fori_loop"),
        (lambda: jit(lambda x: jnp.add(x, np.ma.array(A)))(A), TypeError, "mask would be lost"),
        (lambda: jit(lambda x: np.sin(x))(1.0), TypeError, "Hint: jnp.sin(x)."),
    ],
)  # fmt: skip
def test_what_jit_refuses(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "part, name", {"x": "x[1]", "rest": "rest[1]", "y": "y['a'][0]", "more": "z"}.items()
)
def test_errors_name_the_parts_of_arguments(part, name):
    def f(x, *rest, y, **more):
        return bool({"x": x[1], "rest": rest[1], "y": y["a"][0], "more": more["z"]}[part])

    with pytest.raises(weft.errors.TracerError) as caught:
        jit(f)((1.0, 2.0), 3.0, 4.0, y={"a": [5.0]}, z=6.0)
    assert f"`{name}` of " in str(caught.value)


# --- donation --------------------------------------------------------------------------------


def test_a_donated_buffer_holds_the_result():
    x = jnp.add(A, 1)
    place = x.unsafe_buffer_pointer()
    f = jit(lambda x: x + 1, donate_argnums=0)
    y = f(x)
    assert x.is_deleted() and y.unsafe_buffer_pointer() == place
    np.testing.assert_array_equal(y, A + 2)


@pytest.mark.parametrize("options", [{"donate_argnums": 1}, {"donate_argnames": "y"}])
@pytest.mark.parametrize("by_name", [True, False])
def test_donation_by_either_spelling(options, by_name):
    x, y = jnp.add(A, 1), jnp.add(A, 2)
    if by_name and "donate_argnums" in options:
        options = {"donate_argnames": "y"}
    f = jit(lambda x, y: {"s": x["a"] + y}, **options)
    f({"a": x}, y=y) if by_name else f({"a": x}, y)
    assert y.is_deleted() and not x.is_deleted()


def test_a_donated_array_used_again_says_what_to_do():
    x = jnp.add(A, 1)
    f, g = jit(lambda x: x + 1, donate_argnums=0), jit(lambda x: x * 2)
    g(x), f(x)
    for use in (lambda: f(x), lambda: g(x), lambda: x + 1, lambda: np.asarray(x), lambda: x[0]):
        with pytest.raises(RuntimeError, match="after it was deleted or donated; got f32.3."):
            use()
    np.testing.assert_array_equal(g(A), A * 2)


def test_donation_inside_another_trace_takes_nothing():
    x = jnp.add(A, 1)
    f = jit(lambda x: lax.reduce_sum(x * x, (0,)), donate_argnums=0)
    jit(lambda x: f(x))(x), grad(f)(x), vmap(f, axis_size=2, in_axes=None)(x)
    assert not x.is_deleted()


def test_an_array_donated_and_passed_again_in_one_call_is_named(capfd):
    x = jnp.add(A, 1)
    with pytest.raises(weft.errors.DeletedError, match="passed once in a call; got an f32"):
        jit(lambda x, y: x + y, donate_argnums=0)(x, x)
    capfd.readouterr()  # XLA logs too


def test_numpy_arguments_are_not_changed():
    x = A.copy()
    jit(lambda x: x + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(x, A)


# --- values closed over ------------------------------------------------------------------------


def test_a_numpy_array_closed_over_is_taken_as_it_is_when_traced():
    b = A.copy()
    f = jit(lambda x: x + b)
    lowered = f.lower(A)
    b[:] = 0
    np.testing.assert_array_equal(f(A), A + A)
    np.testing.assert_array_equal(f(A), A + A)
    np.testing.assert_array_equal(lowered.compile()(A), A + A)


def test_arguments_and_results_do_not_share_memory_with_numpy():
    b = A.copy()
    y, z = jit(lambda x: (x, x + 0))(b)
    b[:] = 0
    np.testing.assert_array_equal(y, A)
    np.testing.assert_array_equal(z, A)


def test_large_arrays_closed_over_are_passed_small_ones_written_into_the_program():
    for size, passed in ((10_000, True), (10, False)):
        y = jnp.add(np.arange(size, dtype=np.float32), 1)
        f = jit(functools.partial(add_to, functools.partial(lambda y: y, y)))
        assert float(f(1.0)[0]) == 2.0 and float(f(2.0)[0]) == 3.0
        text = f.lower(1.0).as_text()
        assert ("%arg1" in text) == passed and ("stablehlo.constant" in text) != passed


def add_to(closed_over, x):
    return x + closed_over()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "complex64", "bfloat16",
                                   "float8_e4m3fn", "int4", "uint2"])  # fmt: skip
def test_constants_of_every_kind(dtype):
    x = np.array([1, 0, 1]).astype(weft.dtypes.canonicalize(dtype))
    out = jit(lambda i: (x, i))(1)[0]
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(out).astype(np.complex64), [1, 0, 1])


def test_a_tracer_closed_over():
    def outer(x):
        inner = jit(lambda y: x * y)
        return inner(2.0) + inner(3.0)

    assert float(grad(outer)(7.0)) == 5.0
    assert float(jit(outer)(7.0)) == 35.0
    np.testing.assert_array_equal(vmap(outer)(A), 5 * A)


# --- callables ---------------------------------------------------------------------------------


class Model:
    scale = 3.0

    @functools.partial(jit, static_argnums=0)
    def by_number(self, x):
        return x * self.scale

    @jit(static_argnames="self")
    def by_name(self, x):
        """The documentation."""
        return x * self.scale

    @staticmethod
    @jit
    def static(x):
        return x * 3.0

    @classmethod
    @functools.partial(jit, static_argnums=0)
    def of_class(cls, x):
        return x * cls.scale

    @jit
    def on_array(self, x):
        return x

    def __call__(self, x):
        return x * self.scale

    method = __call__


def test_methods():
    model = Model()
    for f in (model.by_number, model.by_name, Model.static, Model.of_class):
        np.testing.assert_array_equal(f(A), A * 3)
    assert Model.by_name.__doc__ == "The documentation."
    with pytest.raises(TypeError, match="of type Model at self of on_array"):
        model.on_array(A)


def test_callables_of_every_kind():
    model = Model()
    np.testing.assert_array_equal(jit(model)(A), A * 3)
    np.testing.assert_array_equal(jit(model.method)(A), A * 3)
    part = functools.partial(lambda x, y, k: x * y + k, 2.0, k=A)
    np.testing.assert_array_equal(jit(part)(3.0), 6 + A)
    assert int(jit(sum)([1, 2, 3])) == 6
    assert jit(lambda: 3)().dtype == np.int32


def test_a_jitted_function_reads_as_the_function_it_wraps():
    def f(x: float, n: int = 2) -> float:
        """Multiply."""
        return x * n

    g = jit(f)
    assert (g.__name__, g.__doc__, g.__wrapped__) == ("f", "Multiply.", f)
    assert g.__annotations__ == f.__annotations__
    assert {"trace", "lower", "eval_shape", "clear_cache"} <= set(dir(g))


def test_a_function_that_was_jitted_can_be_copied_and_pickled():
    f = functools.partial(np.add, 1)
    jit(f)
    jit(counted)
    assert pickle.loads(pickle.dumps(counted)) is counted
    assert copy.deepcopy(counted.__dict__)["__weft_programs__"] == {}


# --- other options -----------------------------------------------------------------------------


def test_arguments_that_are_not_used_are_not_passed():
    f, kept = jit(lambda x, y: x * 2), jit(lambda x, y: x * 2, keep_unused=True)
    for g, count in ((f, 1), (kept, 2)):
        np.testing.assert_array_equal(g(A, A), A * 2)
        np.testing.assert_array_equal(g(A, A), A * 2)
        main = next(line for line in g.lower(A, A).as_text().splitlines() if "@main" in line)
        assert main.count("%arg") == count


def test_disable_jit_runs_the_function_itself():
    seen = []
    f = jit(lambda x: seen.append(type(x)) or (x * 2 if x[0] > 0 else x))
    with weft.disable_jit():
        np.testing.assert_array_equal(f(A), A * 2)
        assert float(grad(lambda x: f(x)[0])(A)[0]) == 2.0
    assert seen[0] is np.ndarray
    with pytest.raises(weft.errors.TracerBoolConversionError):
        f(A)


def test_compiler_options():
    assert (
        float(jit(lambda x: x * 2, compiler_options={"xla_cpu_enable_fast_math": True})(1.0)) == 2
    )
    ref = weft.new_ref(1.0)
    for f in (lambda x: x * 2, lambda x: x * ref[...]):
        with pytest.raises(weft.errors.JaxRuntimeError, match="xla_nonsense"):
            jit(f, compiler_options={"xla_nonsense": True})(1.0)


@pytest.mark.parametrize(
    "transform", [weft.grad, weft.vmap, lambda f: lambda x: weft.jvp(f, *[(x,)] * 2)]
)
def test_compiler_options_outlive_transformations(transform):
    twice = jit(lambda x: x * 2, compiler_options={"xla_nonsense": True})
    with pytest.raises(weft.errors.JaxRuntimeError, match="xla_nonsense"):
        transform(twice)(jnp.float32(1) if transform is not weft.vmap else jnp.ones(2))
    with pytest.raises(ValueError, match="compiler_options must be given to the outermost jit"):
        jit(transform(twice))(jnp.float32(1) if transform is not weft.vmap else jnp.ones(2))


def test_ensure_compile_time_eval_computes_what_is_known():
    @jit
    def f(x):
        with weft.ensure_compile_time_eval():
            n = int(jnp.add(1, 2))
            y = x * n
        return y + n

    assert float(f(2.0)) == 9.0
    assert float(grad(f)(2.0)) == 3.0


# --- failures change nothing -----------------------------------------------------------------


def test_a_failed_trace_is_not_kept():
    f, traces = counted(lambda x: 1 / 0 if len(traces) == 1 else x * 2)
    with pytest.raises(ZeroDivisionError):
        f(1.0)
    assert float(f(1.0)) == 2.0 and len(traces) == 2


def test_an_interrupt_leaves_the_trace_as_it_was():
    @jit
    def f(x):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        return x * 2

    for call in (
        lambda: f(A),
        lambda: grad(f)(1.0),
        lambda: vmap(f, axis_name="i")(A),
        lambda: make_jaxpr(f)(A),
        lambda: weft.linearize(f, A),
        lambda: jit(vmap(grad(f), axis_name="i"))(A),
    ):
        with pytest.raises(KeyboardInterrupt):
            call()
        assert current_trace() is EVAL
        assert named_axes.value == () and surroundings.value is None


@pytest.mark.parametrize("transform", [jit, vmap, lambda f: lambda x: grad(f)(x[0])])
def test_a_leaked_tracer_is_named(transform):
    leaked = []
    transform(lambda x: leaked.append(x) or x * 1)(A)
    y = leaked[0]
    for use in (
        lambda: y + 1,
        lambda: jit(lambda z: z + y)(1.0),
        lambda: grad(lambda z: z * y)(1.0),
        lambda: vmap(lambda z: z * y)(A),
        lambda: jit(lambda z: z)(y),
    ):
        with pytest.raises(weft.errors.UnexpectedTracerError, match=r"got a leaked f32\["):
            use()


def test_inline_takes_arrays():
    """An inlined function in a traced one gets arrays for numbers, as other functions do."""
    f = jit(lambda x, y: x.astype(y.dtype) * y, inline=True)
    double = lambda y: f(2, y)
    y = jnp.float32(3)
    assert jit(double)(y) == 6 and grad(double)(y) == 2 and vmap(double)(y[None]) == 6
    assert "jit" not in str(make_jaxpr(double)(y))


def test_caches_are_forgotten():
    traced = []
    f = jit(lambda x: traced.append(x) or x * 2)
    for forget in (f.clear_cache, weft.clear_caches):
        f(1.0), f(2.0)
        forget()
    f(3.0)
    assert len(traced) == 3


def test_what_is_said_of_static_and_strange_arguments():
    f = jit(lambda x, n: x, static_argnums=1)
    with pytest.raises(ValueError, match="static.*hash|hash.*static"):
        f(1.0, [1])
    with pytest.raises(ValueError, match="static.*hash|hash.*static"):
        f.trace(1.0, [1])
    with pytest.raises(weft.errors.DtypeError, match="x of <lambda>"):
        jit(lambda x: x)("a")

    class Sized:
        shape, dtype, weak_type = (2,), np.dtype(np.int8), True

    assert str(jit(lambda x: x).eval_shape(Sized())) == str(
        weft.ShapeDtypeStruct((2,), np.int8, weak_type=True)
    )
    with pytest.raises(weft.errors.DtypeError):
        jit(lambda x: x)(Sized())
    kernel = next(iter(weft.run.eager.KERNELS.values()), None)
    if kernel is not None:
        with pytest.raises(TypeError, match="is of this process alone.*Hint: pickle the function"):
            pickle.dumps(kernel)


def test_results_with_more_beside_them_must_be_pairs():
    for fun in (lambda x: x, lambda x: (x,), lambda x: (x, x, x), lambda x: [x, x]):
        with pytest.raises(TypeError, match="with has_aux=True the function must return a pair"):
            grad(fun, has_aux=True)(1.0)


def recursive(x):
    return weft.jit(recursive)(x)


def giving(x):
    yield x


async def waiting(x):
    return x


SUSPENDS = (
    "jit: needs a function that returns its results; got {}, whose calls give a generator or a "
    "coroutine. Hint: return in place of yield."
)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            lambda: recursive(1.0),
            "jit: recursive must not call itself with arguments of the same types, for its program "
            "would have no end; got (f32[]). Hint: lax.while_loop, or lax.fori_loop.",
        ),
        (lambda: weft.jit(giving), SUSPENDS.format("giving")),
        (lambda: weft.jit(waiting), SUSPENDS.format("waiting")),
        (lambda: weft.jit(functools.partial(giving)), SUSPENDS.format("giving")),
        (
            lambda: weft.jit(5),
            "jit: needs a function; got 5 of type int. Hint: jit(f)(x), not jit(f(x)).",
        ),
        (lambda: weft.jit("f"), "jit: needs a function; got 'f' of type str."),
        (
            lambda: weft.jit(lambda x: x, donate_argnums="x"),
            "jit: donate_argnums must be integers; got ('x',).",
        ),
        (
            lambda: pickle.dumps(kernel_of(sin_p, {})),
            "pickle: an operation that weft has compiled is of this process alone; got one. Hint: "
            "pickle the function that was jitted.",
        ),
    ],
)
def test_what_is_refused_word_by_word(code, said):
    with pytest.raises((TypeError, RecursionError)) as info:
        code()
    assert str(info.value) == said


def test_a_transformed_jitted_function_is_not_jitted():
    """The attributes of a jitted function belong to it; its program is not the wrapper's."""
    f = jit(lambda x: jnp.sum(x))
    f.note = "kept"
    transformed = [
        weft.vmap(f), weft.grad(f), weft.value_and_grad(f), weft.jacfwd(f), weft.jacrev(f),
        weft.hessian(f), weft.checkpoint(f), weft.named_call(f), weft.custom_gradient(f),
    ]  # fmt: skip
    for g in transformed:
        assert not any(hasattr(g, name) for name in ("trace", "lower", "eval_shape"))
        assert g.note == "kept"
    again = jit(weft.vmap(f))
    assert again.trace(np.ones((2, 3), np.float32)).jaxpr.out_avals[0].shape == (2,)
    assert jit(f).lower(np.float32([1, 2])).compile()(np.float32([1, 2])) == 3
