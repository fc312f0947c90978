"""Printing by weft.debug: its order, formats and their errors, the log."""

import logging
import textwrap

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import debug, lax

X = np.float32([0, 1, 2])
both = pytest.mark.parametrize("run", [lambda f: f, weft.jit], ids=["eager", "jit"])


@pytest.fixture
def printed(capsys):
    """The lines printed since the last call."""
    return lambda: capsys.readouterr().out.splitlines()


# --------------------------------------------------------------------------------------------
# callback.


@both
@pytest.mark.parametrize("ordered", [False, True])
def test_callback(run, ordered):
    seen = []

    def f(x):
        debug.callback(lambda *a, **k: seen.append((a, k)), x, "text", ordered=ordered, y=[x, None])
        return x + 1

    assert run(f)(X).tolist() == [1, 2, 3]
    ((args, kwargs),) = seen
    assert args[0].tolist() == [0, 1, 2] and args[1] == "text" and kwargs["y"][1] is None
    assert isinstance(args[0], weft.Array) and kwargs["y"][0].tolist() == [0, 1, 2]


def test_two_calls():
    seen = []
    debug.callback(ordered=True)(lambda x, *, ordered: seen.append(ordered), X, ordered=3)
    assert seen == [3]
    closed = weft.make_jaxpr(lambda x: debug.print(ordered=True)("{}", x))(X)
    assert {type(e) for e in closed.effects} == {debug.OrderedDebugEffect}


def test_what_a_callback_returns_is_dropped():
    assert weft.jit(lambda x: debug.callback(lambda v: v, x))(X) is None


def test_a_callback_that_raises():
    with pytest.raises(ZeroDivisionError):
        weft.jit(lambda x: debug.callback(lambda v: 1 / 0, x))(X)


def test_effects():
    closed = weft.make_jaxpr(lambda x: debug.callback(print, x))(X)
    assert {type(e) for e in closed.effects} == {debug.DebugEffect}


def test_printing_of_jaxprs():
    def f(x):
        debug.callback(print, x, ordered=True)
        debug.print("x is {}", x)

    assert str(weft.make_jaxpr(f)(X)) == textwrap.dedent("""\
        { lambda ; a:f32[3]. let
            debug_callback[callback=print effect=OrderedDebug partitioned=False] a
            debug_print[fmt=x is {} ordered=False partitioned=False] a
          in () }""")
    mapped = str(weft.make_jaxpr(weft.vmap(f))(X[:, None]))
    assert "callback=print for each of 3" in mapped and "fmt=x is {}" in mapped


# --------------------------------------------------------------------------------------------
# print.


@both
def test_formats(run, printed):
    def f(x):
        debug.print("{} {y[1]:.3f} {x.shape} {n!r:>{w}} {{}}", x[1], y=(x, x[2]), x=x, n=x[0], w=30)
        debug.print("tree {} {}", {"a": x}, [None, "b"])
        debug.print("nothing")

    run(f)(X)
    assert printed() == [
        "1.0 2.000 (3,)       Array(0., dtype=float32) {}",
        "tree {'a': Array([0., 1., 2.], dtype=float32)} [None, 'b']",
        "nothing",
    ]


def test_formats_are_checked_when_traced():
    for args, kwargs, error, text in (
        (("{} {}", X), {}, IndexError, r"an argument for each field.*got 1 positional for '{} {}'"),
        (("{a}",), {}, KeyError, r"got none named a for '{a}'. Hint: debug.print\('{a}', a=...\)"),
        (("{}", X, X), {}, ValueError, r"for each argument; got none for argument 1 in '{}'"),
        (
            ("x", X),
            {"y": X},
            ValueError,
            r"got none for argument 0, y in 'x'. Hint: a plain string",
        ),
        ((X,), {}, TypeError, r"debug.print: the format must be a string; got ndarray. Hint"),
    ):
        with pytest.raises(error, match=text):
            weft.jit(lambda args=args, kwargs=kwargs: debug.print(*args, **kwargs))()
    with pytest.raises(ValueError, match=r"^debug.log: there must be a field"):
        debug.log("x", X)


def test_skipping_the_check(printed):
    debug.print("{}", 1, 2, skip_format_check=True)
    assert printed() == ["1"]


def test_numbers_print_as_numpy_does(printed):
    f = weft.jit(lambda x: debug.print("{}", x / 3))
    with np.printoptions(precision=2):
        f(X)
    f(X)
    assert printed() == ["[0.   0.33 0.67]", "[0.         0.33333334 0.6666667 ]"]


TRANSFORMED = {
    "vmap": (lambda f: weft.vmap(f)(X), "0 1 2"),
    "jit vmap": (lambda f: weft.jit(weft.vmap(f))(X), "0 1 2"),
    "vmap of nothing mapped": (lambda f: weft.vmap(lambda x: (f(3.0), x)[1])(X), "3"),
    "grad": (lambda f: weft.grad(f)(2.0), "2"),
    "jit grad": (lambda f: weft.jit(weft.grad(f))(2.0), "2"),
    "grad jit": (lambda f: weft.grad(weft.jit(f))(2.0), "2"),
    "vmap grad": (lambda f: weft.vmap(weft.grad(f))(X), "0 1 2"),
    "jvp": (lambda f: weft.jvp(f, (2.0,), (1.0,)), "2"),
    "linearize": (lambda f: weft.linearize(f, 2.0)[1](1.0), "2"),
    "hessian": (lambda f: weft.hessian(f)(2.0), "2"),
    "grad checkpoint": (lambda f: weft.grad(weft.checkpoint(f))(2.0), "2"),
    "grad scan": (
        lambda f: weft.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 3)[0])(2.0),
        "2 4 16",
    ),
    "grad fori": (
        lambda f: weft.grad(lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x))(2.0),
        "2 4",
    ),
    "grad while": (
        lambda f: weft.grad(lambda x: lax.while_loop(lambda c: c < 9, f, x))(2.0),
        "2 4",
    ),
    "vmap while": (
        lambda f: weft.vmap(lambda x: lax.while_loop(lambda c: c < 3, f, x))(X[:2] + 2),
        "2 3",
    ),
    "grad cond": (lambda f: weft.grad(lambda x: lax.cond(x > 0, f, lambda x: x, x))(2.0), "2"),
    "vmap cond": (lambda f: weft.vmap(lambda x: lax.cond(x > 1, f, lambda x: x, x))(X), "0 1 2"),
    "linear_transpose": (
        lambda f: weft.linear_transpose(lambda x: (f(3.0), 2 * x)[1], 1.0)(1.0),
        "3",
    ),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_under_transformations(name, ordered, printed):
    def f(x):
        debug.print("{:.0f}", x, ordered=ordered)
        return x * x

    transformed, expected = TRANSFORMED[name]
    transformed(f)
    assert printed() == expected.split()


def test_order_among_prints_and_callbacks(printed):
    def f(x):
        for i in range(5):
            debug.print("{} {}", i, x, ordered=True)
            debug.callback(lambda i, x: print(int(i), "called", x), i, x, ordered=True)
        return x

    weft.jit(f)(1)
    expected = [line for i in range(5) for line in (f"{i} 1", f"{i} called 1")]
    assert printed() == expected


def test_prints_come_before_the_call_returns(printed):
    f = weft.jit(lambda x: (debug.print("{}", x), x + 1)[1])
    for i in range(3):
        f(i)
        assert printed() == [str(i)]


def test_log(caplog):
    with caplog.at_level(logging.INFO, logger="weft.debug"):
        weft.jit(lambda x: debug.log("x is {}", x))(X)
    assert [r.getMessage() for r in caplog.records] == ["x is [0. 1. 2.]"]


def test_the_public_modules_hold_the_same_objects():
    assert weft.debug is debug and weft.pure_callback is weft.api.callbacks.pure_callback
    assert weft.experimental.io_callback is weft.api.callbacks.io_callback
    assert jnp.zeros(1).shape == (1,)
