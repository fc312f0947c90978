"""cpu/functions.py: which functions are kernels and formulas; their results are in primitives/."""

import contextlib

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, NO_KERNELS, OVER_MESH, expect, show_prepared
from weft import config, jit, lax, nn
from weft.core.form import Form
from weft.cpu.survey import has_half, survey_program
from weft.primitives.expr import LARGE
from weft.scipy import special

X = jnp.full(LARGE + 1, 0.5)
TWO = ("atan2", "pow")  # functions of two operands
LEAST_EQUAL = 0.7  # of results of a formula in C++ and in StableHLO


def chain(n):
    """n sines, one after another."""

    def fun(x):
        for _ in range(n):
            x = jnp.sin(x)
        return x

    return fun


def test_programs_that_are_held_count():
    def fun(x):
        x = lax.fori_loop(0, 3, lambda i, x: jnp.cos(x), x)
        inner = weft.jit(jnp.tan)
        return inner(inner(x)) ** x

    x = jnp.zeros(3)
    assert survey_program(weft.make_jaxpr(fun)(x).jaxpr).functions == 4
    assert survey_program(weft.make_jaxpr(jnp.tanh)(x).jaxpr).functions == 0
    assert survey_program(weft.make_jaxpr(jnp.log)(x).jaxpr).functions == 0
    with config.scope(enable_x64=True):
        assert survey_program(weft.make_jaxpr(jnp.log)(jnp.zeros(3)).jaxpr).functions == 1


EXP = "has_exp", "has_forms"
SURVEYED = [
    (lambda x: jnp.sin(x) * x, {"has_forms"}),
    (lambda x: x + 2.0, {}),
    (lambda x: x / 0.0, {"shows_nan", "has_forms"}),
    (lambda x: x / 2.0, {"has_forms"}),
    (lambda x: x * np.inf, {"shows_nan"}),
    (lambda x: jnp.maximum(x, -np.inf), {}),
    (lambda x: jnp.maximum(x, np.nan), {"shows_nan"}),
    (lambda x: jnp.exp(jnp.maximum(x, np.nan) + x), {"shows_nan", "folds_nan", *EXP}),
    (lambda x: weft.jit(jnp.exp)(x * np.inf), {"shows_nan", "folds_nan", "holds", *EXP}),
    (lambda x: jnp.exp(x) * np.nan, {"shows_nan", *EXP}),
    (lambda x: x * lax.exp(1.0), {"shows_nan", "folds_nan", *EXP}),
    (lambda x: jnp.dot(x, x), {"reduces", "has_forms"}),
    (lambda x: x.astype(jnp.bfloat16).sum(), {"has_half", "reduces", "has_forms"}),
]


@pytest.mark.parametrize("held", [False, True], ids=["", "held"])
@pytest.mark.parametrize("row", range(len(SURVEYED)))
def test_survey_of_a_program_and_of_those_that_it_holds(row, held):
    fun, wanted = SURVEYED[row]
    within = lambda x: lax.cond(x[0] > 0, fun, fun, x)
    jaxpr = weft.make_jaxpr(within if held else fun)(jnp.zeros(3)).jaxpr
    found = {**survey_program(jaxpr)._asdict(), "has_half": has_half(jaxpr)}
    if held:
        wanted = {*wanted, "holds"}
    if held and "shows_nan" in wanted:  # functions around the program may read its results
        wanted = {*wanted, "folds_nan"}
    counts = ("functions", "products")
    assert {name for name in found if name not in counts and found[name]} == {*wanted}


@pytest.mark.skipif(not KERNELS.native, reason="the kernels are not built")
@pytest.mark.parametrize(
    "name", ["sin", "cos", "tan", "log", "sinh", "cosh", "erf", "atan2", "pow"]
)
def test_kernels_compute_what_formulas_do(name):
    """Kernels of tools/make_formulas.py round as XLA does, except for fused operations."""
    rng, fun = np.random.default_rng(0), getattr(lax, name)
    dtypes = [np.float64, np.float32] if name in ("sin", "cos", "pow") else [np.float64]
    for dtype in [np.float32] if name == "atan2" else dtypes:
        xs = [rng.uniform(0.1, 5, 9 * LARGE).astype(dtype) for _ in range(1 + (name in TWO))]
        with config.scope(enable_x64=True):
            compiled = weft.jit(fun)
            assert "weft_program" in compiled.lower(*xs).as_text()
            called = np.asarray(compiled(*xs))
            with config.scope(native=False):
                assert "weft_program" not in compiled.lower(*xs).as_text()
                written = np.asarray(compiled(*xs))
        # Which operations of sinh are fused differs between releases of XLA.
        np.testing.assert_array_max_ulp(called, written, 2 if name == "sinh" else 1)
        assert (called == written).mean() > LEAST_EQUAL


def test_many_formulas_are_for_larger_arrays():
    text = lambda n, size: weft.jit(chain(n)).lower(jnp.zeros(size)).as_text()
    few, many = text(3, LARGE), text(50, LARGE)  # what one remembers is not the other's
    assert "sine" not in few
    assert many.count("stablehlo.sine") == 50
    assert text(3, LARGE) == few
    assert "sine" not in text(50, LARGE * 16)
    assert "sine" not in text(200, 1_000_000)


def test_a_function_of_a_large_array_is_the_kernel():
    expect(
        show_prepared(jnp.sin, X),
        """
        { lambda ; a:f32[4097]. let
            b:f32[4097] = cpu_call[
              kernel=weft_program
              program=[256, 16, 1, 3, 0, 11, 3, 11, 15, 0]
            ] a
          in (b,) }
        """,
    )


@pytest.mark.parametrize("target", [NO_KERNELS, OVER_MESH], ids=["no kernels", "over a mesh"])
def test_without_kernels_it_is_a_formula(target):
    expect(
        show_prepared(lambda x: jnp.sin(x), X, target=target),
        """
        { lambda ; a:f32[4097]. let
            b:f32[4097] = formula[settings=(sin, f32[4097]) write=write_function] a
          in (b,) }
        """,
    )


def test_small_arrays_and_complex_ones_have_neither():
    for x in (X[:9], X.astype(complex)):
        for target in (KERNELS, NO_KERNELS):
            text = show_prepared(lambda x: [jnp.sin(x), x**1.5], x, target=target)
            assert "formula" not in text and "cpu_call" not in text


def test_powers_that_xla_knows_stay():
    text = show_prepared(lambda x: [lax.pow(x, 2.0), lax.pow(x, 0.5)], X)
    assert "cpu_call" not in text
    assert "cpu_call" in show_prepared(lambda x: lax.pow(x, 1.3), X)


def test_powers_by_roots_are_rounded_once():
    x = (
        np.random.RandomState(0)
        .randint(0, 2**32, 100_000, np.uint64)
        .astype("uint32")
        .view("float32")
    )
    x[:9] = 0, -0.0, np.inf, -np.inf, np.nan, 1, -1, -2, 3e38
    x = np.where(abs(x) < np.finfo("float32").tiny, np.float32(0), x)
    for y in (-6.5, -5.5, -2.5, -1.5, 1.5, 2.5, 5.5, 6.5):
        assert "write_root_power" in show_prepared(lambda x, y=y: lax.pow(x, y), jnp.asarray(x))
        found = np.asarray(jit(lambda x, y=y: lax.pow(x, y))(x))
        with np.errstate(all="ignore"):
            expected = (x.astype("float64") ** y).astype("float32")
        normal = ~(abs(expected) < np.finfo("float32").tiny)
        np.testing.assert_array_equal(found[normal], expected[normal])
        assert (abs(found[~normal]) <= np.finfo("float32").tiny).all()


def test_other_powers_are_calls_of_the_kernel():
    for y in (1.25, -0.3, 7.5, np.nan, np.inf):
        assert "write_root_power" not in show_prepared(lambda x, y=y: lax.pow(x, y), X)
    with config.scope(enable_x64=True):
        assert "cpu_call" in show_prepared(lambda x: lax.pow(x, 1.5), X.astype("float64"))
    assert "cpu_call" in show_prepared(lambda x: lax.pow(x, 1.5), X)  # XLA would wake a thread


def test_the_kernel_is_for_a_program_of_one_equation():
    x = jnp.ones(8 * LARGE + 1)
    assert "cpu_call" in show_prepared(jnp.exp, x)
    assert "cpu_call" in show_prepared(lambda x: weft.jit(jnp.exp)(x), x)
    assert "cpu_call" not in show_prepared(lambda x: jnp.exp(x) + 1, x)
    assert "cpu_call" not in show_prepared(jnp.exp, x, target=KERNELS._replace(donated=True))
    loop = lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.exp(x), x)
    assert "cpu_call" not in show_prepared(loop, x)


def test_log1p_is_more_exact_at_any_size():
    for fun in (jnp.log1p, lambda x: jnp.logaddexp(x, 1.0), lambda x: lax.cumlogsumexp(x)):
        text = weft.jit(fun).lower(X[:9]).as_text()
        assert "log_plus_one" not in text and '"stablehlo.log"' in text


def test_zeta_is_the_kernel_within_formulas_too():
    for fun in (lambda x: special.polygamma(2, x), lambda x: special.zeta(x)):
        text = weft.jit(fun).lower(X[:9]).as_text()
        assert "weft_program" in text or not KERNELS.native
        with config.scope(native=False):
            assert "weft_program" not in weft.jit(fun).lower(X[:9]).as_text()


@pytest.mark.parametrize(
    "fun, wide",
    [
        (lambda x, y: lax.div(x, y), True),
        (lambda x, y: lax.rem(x, y), True),
        (lambda x, y: lax.div(x, np.int32(7)), False),
        (lambda x, y: lax.div(x, y[0]), False),
        (lambda x, y: lax.div(x, jnp.broadcast_to(y[0], x.shape)), False),
        (lambda x, y: lax.div(x[:9], y[:9]), False),
        (lambda x, y: lax.div(x.astype("int16"), y.astype("int16")), False),
    ],
)
def test_large_arrays_of_int32_are_divided_by_vectors(fun, wide):
    x = X.astype(np.int32)
    assert ("write_int32_division" in show_prepared(fun, x, x)) == wide
    assert "write_int32_division" not in show_prepared(fun, x, x, target=OVER_MESH)


def test_remainders_by_powers_of_two_stay():
    assert "cpu_call" in show_prepared(lambda x: lax.rem(x, 3.0), X)
    assert "cpu_call" not in show_prepared(lambda x: lax.rem(x, 4.0), X)


NAN_FROM_NUMBERS = {
    "a NaN times": lambda x: x * jnp.nan,
    "a NaN added": lambda x: x + np.float32(jnp.nan).astype(x.dtype),
    "the larger one": lambda x: jnp.maximum(x, jnp.nan),
    "infinities": lambda x: x + jnp.inf - jnp.inf,
    "zero by zero": lambda x: x * 0 / 0,
    "a logarithm": lambda x: x + jnp.log(-1.0),
    "in a loop": lambda x: lax.fori_loop(0, 2, lambda i, c: jnp.exp(c * jnp.nan), x),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_exponential_of_a_known_nan_is_nan(as_for_users, dtype):
    """LLVM folds XLA's code of it to an uninitialized number, another one at each call."""
    x = jnp.array([0.1, 0.5, 1.5], dtype)
    for name, fun in NAN_FROM_NUMBERS.items():
        make = jit(lambda x, f=fun: [jnp.exp(f(x)), jnp.sinh(f(x)), jnp.cosh(f(x))])
        assert np.isnan(np.float32(make(x))).all(), name
    make = jit(lambda x: [nn.softmax(x * jnp.nan), nn.logsumexp(x * jnp.nan)[None]])
    assert np.isnan(np.float32(jnp.concatenate(make(x)))).all()


FOLDED = [lax.expm1, lax.logistic, lax.exp2, lax.tanh, lax.sin, nn.elu, nn.silu, nn.softplus]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_functions_of_a_known_nan_are_nan(as_for_users, dtype):
    """Each in a program of its own, as LLVM has to know the NaN where the function is computed."""
    x = jnp.full(7, 0.5, dtype)
    for fun in FOLDED:
        out = jit(lambda x, f=fun: f(x * jnp.nan))(x)
        assert np.isnan(np.complex64(out)).all(), (fun, out)


def test_every_function_of_a_number_that_may_be_nan_is_guarded():
    """It has a kernel or a formula of ours, which do not convert a NaN, or the guard."""
    primitives = [getattr(lax, name) for name in dir(lax) if name.endswith("_p")]
    functions = [p.name for p in primitives if getattr(p, "form", None) is Form.FUNCTION]
    assert len(functions) > 20 and {"expm1", "logistic"} < {*functions}
    for name in functions:
        fun = getattr(lax, name, None)
        with contextlib.suppress(TypeError, ValueError):  # of several operands, or of real numbers
            text = show_prepared(lambda x, f=fun: f(x * jnp.nan), jnp.ones(8, jnp.complex64))
            assert "write_keeping_nan" in text, name


def test_only_numbers_that_may_become_nan_are_guarded_against():
    guarded = lambda f: "write_keeping_nan" in show_prepared(f, jnp.ones(8))
    assert guarded(lambda x: jnp.exp(x * jnp.nan)) and guarded(lambda x: jnp.exp(x - jnp.inf))
    assert not guarded(lambda x: jnp.exp(jnp.where(x > 0, x, -jnp.inf)))
    assert not guarded(lambda x: jnp.exp(2 * x / 3) + jnp.log(x))
