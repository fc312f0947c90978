"""Primitives that call Python: order through every construct, once each when transformed."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.api.callbacks import io_callback, pure_callback
from weft.errors import JaxRuntimeError, MissingRule
from weft.passes.check import check_jaxpr
from weft.passes.dce import dce_jaxpr, quiet_jaxpr
from weft.primitives.effects import OrderedIOEffect

X = np.float32([0, 1, 2])
SCALAR = weft.ShapeDtypeStruct((), np.float32)
seen: list = []


@pytest.fixture(autouse=True)
def nothing_seen():
    seen.clear()


def say(tag, x, ordered=True):
    io_callback(lambda v: seen.append((tag, float(v))), None, x, ordered=ordered)


# --------------------------------------------------------------------------------------------
# Order.


@weft.jit
def doubled(x):
    say("call", x)
    return x * 2


def story(x):
    say("start", x)

    def body(c, i):
        say("scan", c)
        c = lax.cond(c > 2, lambda c: (say("T", c), c + 1)[1], lambda c: (say("F", c), c + 2)[1], c)
        say("i", i)
        return doubled(c), None

    x, _ = lax.scan(body, x, jnp.arange(3.0))
    say("between", x)
    x = lax.while_loop(lambda c: c < 100, lambda c: (say("while", c), c * 3)[1], x)
    x = lax.fori_loop(0, 2, lambda i, c: (say("fori", i), c + 1)[1], x)
    x = lax.switch(1, [lambda: x, lambda: (say("switch", x), x)[1]])
    x = doubled(doubled(x))
    say("end", x)
    return x


def test_order_is_that_of_the_program_without_jit():
    with weft.disable_jit():
        expected = story(1.0), list(seen)
    for run in (weft.jit(story), weft.jit(weft.jit(story)), story, weft.jit(story)):
        for _ in range(2):
            seen.clear()
            assert (run(1.0), seen) == expected


def test_order_in_a_loop_in_a_loop():
    def inner(n):
        return lax.fori_loop(0, n, lambda j, c: (say("j", j), c + j)[1], 0)

    def outer(c, i):
        say("i", i)
        return c + inner(i), None

    weft.jit(lambda: lax.scan(outer, 0, jnp.arange(3)))()
    assert [f"{t}{int(v)}" for t, v in seen] == ["i0", "i1", "j0", "i2", "j0", "j1"]


def test_an_effect_in_the_predicate_of_a_loop():
    def pred(c):
        say("pred", c)
        return c < 3

    weft.jit(lambda x: lax.while_loop(pred, lambda c: (say("body", c), c + 1)[1], x))(1.0)
    tags = ["pred", "body", "pred", "body", "pred"]
    assert [t for t, _ in seen] == tags


def test_a_program_that_orders_nothing_passes_no_token_through_its_loops():
    def f(x, ordered):
        return lax.fori_loop(0, 3, lambda i, c: (say("a", c, ordered), c + i)[1], x)

    assert "%0:" not in weft.jit(f, static_argnums=1).lower(1.0, False).as_text()
    loops = [
        next(
            line
            for line in weft.jit(f, static_argnums=1).lower(1.0, o).as_text().splitlines()
            if "stablehlo.while" in line
        )
        for o in (False, True)
    ]
    assert loops[1].count("%") == loops[0].count("%") + 2


def test_only_programs_that_call_python_take_a_token():
    texts = [
        weft.jit(f).lower(1.0).as_text() for f in (lambda x: x + 1, lambda x: (say("a", x), x)[1])
    ]
    assert ["tensor<i32>" in t for t in texts] == [False, True]


# --------------------------------------------------------------------------------------------
# What jaxprs show.


def test_effects_of_a_program():
    closed = weft.make_jaxpr(lambda x: doubled(x))(1.0)
    (effect,) = closed.effects
    assert type(effect) is OrderedIOEffect and repr(effect) == "OrderedIO"
    assert closed.jaxpr.ordered and closed.jaxpr.calls_host
    pure = weft.make_jaxpr(lambda x: pure_callback(np.sin, SCALAR, x))(1.0)
    assert not pure.effects and not pure.jaxpr.ordered and pure.jaxpr.calls_host


def test_printing():
    def f(x):
        io_callback(print, None, x, ordered=True)
        return pure_callback(abs, SCALAR, x)

    assert str(weft.make_jaxpr(f)(1.0)) == (
        "{ lambda ; a:f32[]. let\n"
        "    io_callback[callback=print ordered=True result_avals=() sharding=None] a\n"
        "    b:f32[] = pure_callback[\n"
        "      callback=abs\n"
        "      result_avals=(f32[],)\n"
        "      sharding=None\n"
        "      vmap_method=None\n"
        "    ] a\n"
        "  in (b,) }"
    )


def test_dead_code():
    def f(x):
        say("kept", x, False)
        io_callback(lambda v: v, SCALAR, x)
        pure_callback(lambda v: v, SCALAR, x)
        return x

    jaxpr, _ = dce_jaxpr(weft.make_jaxpr(f)(1.0).jaxpr)
    assert [e.primitive.name for e in jaxpr.eqns] == ["io_callback"] * 2
    assert not quiet_jaxpr(jaxpr).eqns


def test_effects_stay_when_equal_ones_are_done_once():
    callback = lambda v: seen.append(float(v))

    def f(x):
        for _ in range(2):
            io_callback(callback, None, x)
        return x

    weft.jit(f)(1.0)
    assert seen == [1.0, 1.0]


# --------------------------------------------------------------------------------------------
# Transformations: effects happen once.

PROGRAMS = {
    "plain": (lambda x: (say("a", x), x * x)[1], [2]),
    "jit": (weft.jit(lambda x: (say("a", x), x * x)[1]), [2]),
    "checkpoint": (weft.checkpoint(lambda x: (say("a", x), x * x)[1]), [2]),
    "scan": (
        lambda x: lax.scan(lambda c, _: (say("a", c), (c * c, None))[1], x, None, length=3)[0],
        [2, 4, 16],
    ),
    "fori": (lambda x: lax.fori_loop(0, 2, lambda i, c: (say("a", c), c * c)[1], x), [2, 4]),
    "while": (
        lambda x: lax.while_loop(lambda c: c < 100, lambda c: (say("a", c), c * c)[1], x),
        [2, 4, 16],
    ),
    "cond": (lambda x: lax.cond(x > 0, lambda x: (say("a", x), x * x)[1], lambda x: x, x), [2]),
    "checkpoint in scan": (
        lambda x: lax.scan(
            weft.checkpoint(lambda c, _: (say("a", c, False), (c * c, None))[1]), x, None, length=2
        )[0],
        [2, 4],
    ),
}
TRANSFORMS = {
    "call": lambda f: f,
    "jit": weft.jit,
    "grad": weft.grad,
    "jit grad": lambda f: weft.jit(weft.grad(f)),
    "grad jit": lambda f: weft.grad(weft.jit(f)),
    "jvp": lambda f: lambda x: weft.jvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: [weft.linearize(f, x)[1](v) for v in (x, x)][0],
    "forward of reverse": lambda f: weft.jacfwd(weft.grad(f)),
}


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_each_effect_happens_once(transform, program):
    f, expected = PROGRAMS[program]
    TRANSFORMS[transform](f)(2.0)
    times = 2 if transform == "linearize" else 1  # it is applied twice there
    assert [v for _, v in seen] == expected * times


def test_derivatives_are_those_of_the_rest():
    for f, _ in PROGRAMS.values():
        plain = quiet_jaxpr(weft.make_jaxpr(f)(2.0).jaxpr)
        expected = weft.grad(lambda x, plain=plain: plain(x)[0])(2.0)
        np.testing.assert_allclose(weft.grad(f)(2.0), expected)


def test_every_transformed_program_passes_the_checker():
    with weft.enable_checks(True):
        for f, _ in PROGRAMS.values():
            closed = weft.make_jaxpr(weft.jit(weft.grad(f)))(2.0)
            check_jaxpr(closed)
            weft.jit(weft.grad(f))(2.0)


def test_results_of_effects_are_not_taken_for_constants():
    count = itertools.count(1)

    def draw():
        return io_callback(lambda: np.float32(next(count)), SCALAR)

    def f(x):
        return lax.scan(lambda c, _: (c * lax.stop_gradient(draw()), None), x, None, length=3)[0]

    assert weft.grad(f)(2.0) == 6.0


def test_a_result_that_may_be_had_once_is_not_computed_again():
    f = weft.checkpoint(
        lambda x: jnp.sin(x * io_callback(lambda v: v, SCALAR, lax.stop_gradient(x)))
    )
    with pytest.raises(NotImplementedError, match="io_callback: must happen once, but reverse"):
        weft.grad(f)(2.0)


@pytest.mark.parametrize("op", ["cond", "while"])
def test_effects_that_matter_are_refused_where_all_branches_run(op):
    def f(x):
        if op == "cond":
            return lax.cond(x > 1, lambda x: (say("a", x, False), x)[1], lambda x: x, x)
        return lax.while_loop(lambda c: c < 3, lambda c: (say("a", c, False), c + 1)[1], x)

    match = f"{op}: under vmap with a mapped predicate, what is not chosen is computed too"
    with pytest.raises(NotImplementedError, match=match):
        weft.vmap(f)(X)
    assert not seen


def test_vmap_of_unordered_calls():
    weft.jit(weft.vmap(lambda x: say("a", x, False)))(X)
    assert [v for _, v in seen] == [0, 1, 2]
    seen.clear()
    weft.vmap(weft.vmap(lambda x, y: say("b", x + y, False), (None, 0)), (0, None))(X, X * 10)
    assert [v for _, v in seen] == [0, 10, 20, 1, 11, 21, 2, 12, 22]
    seen.clear()
    weft.vmap(lambda x: say("c", 1.0, False))(X)  # nothing in it is mapped
    assert len(seen) == 1


def test_vmap_of_ordered_calls_is_refused():
    with pytest.raises(ValueError, match=r"ordered call must not be mapped.*Hint: ordered=False"):
        weft.vmap(lambda x: say("a", x))(X)


def test_custom_rules():
    @weft.custom_vjp
    def f(x):
        say("primal", x)
        return x * x

    f.defvjp(lambda x: (x * x, x), lambda x, ct: (say("back", ct), (2 * x * ct,))[1])
    assert weft.jit(weft.grad(f))(3.0) == 6.0 and seen == [("back", 1.0)]
    seen.clear()
    assert f(3.0) == 9.0 and seen == [("primal", 3.0)]


@pytest.mark.parametrize("which", [pure_callback, io_callback])
def test_floating_point_results_have_no_derivative(which):
    f = lambda x: which(np.sin, SCALAR, x)
    name = which.__name__
    with pytest.raises(ValueError, match=f"{name}: the derivative of a Python function is not"):
        weft.grad(f)(1.0)
    assert weft.grad(lambda x: x * f(lax.stop_gradient(x)))(1.0) == np.sin(np.float32(1))


def test_integer_results_have_a_zero_derivative():
    struct = weft.ShapeDtypeStruct((3,), np.int32)
    order = lambda x: pure_callback(lambda v: np.argsort(v).astype(np.int32), struct, x)
    out = weft.jit(weft.grad(lambda x: (x[order(-x)] * X).sum()))(X)
    assert out.tolist() == [2.0, 1.0, 0.0]


def test_how_a_callback_is_mapped():
    shapes = []

    def host(x, y):
        shapes.append((np.shape(x), np.shape(y)))
        return np.asarray(x + y, np.float32)

    def run(method):
        shapes.clear()
        aval = weft.ShapeDtypeStruct((2,), np.float32)
        call = lambda x, y: pure_callback(host, aval, x, y, vmap_method=method)
        f = weft.vmap(call, in_axes=(1, None))
        x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([10, 20])
        np.testing.assert_array_equal(f(x, y), x.T + y)
        return set(shapes)

    assert run("sequential") == run("sequential_unrolled") == {((2,), (2,))}
    assert run("expand_dims") == {((3, 2), (1, 2))}
    assert run("broadcast_all") == {((3, 2), (3, 2))}
    with pytest.raises(MissingRule, match=r"must be one of sequential, .*; got None. Hint"):
        run(None)
    with pytest.raises(ValueError, match="vmap_method"):
        run("other")


def test_errors_of_callbacks_and_what_programs_show():
    def host(x):
        raise KeyError("mine")

    call = lambda x: pure_callback(host, SCALAR, x)
    with weft.config.scope(wrap_callback_errors=False), pytest.raises(KeyError, match="mine"):
        call(np.float32(1))
    text = str(weft.make_jaxpr(lambda x: weft.debug.callback(host, x))(1.0))
    assert "debug_callback[" in text and "effect=" in text and "result_avals" not in text
    text = str(weft.make_jaxpr(lambda x: io_callback(host, SCALAR, x, ordered=True))(1.0))
    assert "io_callback[" in text and "ordered=True" in text


def test_errors_of_callbacks_in_eager_calls():
    """They are wrapped as runtime errors, or raised directly."""

    def host(x):
        raise KeyError("mine")

    call = lambda: pure_callback(host, SCALAR, np.float32(1))
    for wrapped, kind in ((True, JaxRuntimeError), (False, KeyError)):
        with weft.config.scope(wrap_callback_errors=wrapped), pytest.raises(Exception) as info:
            call()
        assert type(info.value) is kind and "mine" in str(info.value)
        assert not wrapped or type(info.value.__cause__) is KeyError
