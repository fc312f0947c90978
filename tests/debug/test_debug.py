"""weft.debug: what is printed when, formats and their errors, the log, the prompt."""

import bdb
import io
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
    "vmap cond": (
        lambda f: weft.vmap(lambda x: lax.cond(x > 1, f, lambda x: x, x))(X),
        "0 1 2",
    ),
    "linear_transpose": (
        lambda f: weft.linear_transpose(lambda x: (f(3.0), 2 * x)[1], 1.0)(1.0),
        "3",
    ),
}


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


# --------------------------------------------------------------------------------------------
# breakpoint.


PROMPT = "(weft)" + " "  # which `list` must not find here


def session(run, commands, *args, **options):
    """What the prompt says to commands, in a function that has locals."""
    out = io.StringIO()

    def outer(x):
        scale = 3
        return inner(x * scale)

    def inner(y):
        both = {"y": y, "n": 7}
        debug.breakpoint(stdin=io.StringIO(commands), stdout=out, **options)
        return both["y"]

    result = run(outer)(*args)
    answers = out.getvalue().split(PROMPT)[1:]
    return result, [a.strip() for a in answers]


@both
def test_the_prompt(run):
    commands = "p y\npp both\np y.sum() + n_of(both)\n!1\nu\np scale, x\nd\nlocals\nc\n"
    globals()["n_of"] = lambda both: both["n"]
    result, answers = session(run, commands, jnp.array(X), num_frames=2)
    assert result.tolist() == [0, 3, 6]
    y = "Array([0., 3., 6.], dtype=float32)"
    assert answers[0] == y and answers[1].replace("\n", "") == f"{{'n': 7, 'y': {y}}}"
    assert answers[2] == "Array(16., dtype=float32)"
    assert answers[3].startswith("*** SyntaxError")
    assert (
        answers[4].endswith("outer()") and answers[5] == "(3, Array([0., 1., 2.], dtype=float32))"
    )
    assert answers[6].endswith("inner()")
    assert f"y = {y}" in answers[7] and "both = {" in answers[7]


def test_where_and_list():
    _, answers = session(weft.jit, "bt\nw\nl\nlist\nd\nu\nu\nc\n", X, num_frames=2)
    where, again, source, listed, newest, up, oldest, _ = answers
    assert where == again and listed == source
    frames = [line for line in where.splitlines() if "->" not in line]
    assert frames[0].endswith("outer()") and frames[1].startswith("> ")
    assert "-> debug.breakpoint(stdin=" in where
    assert any(" -> " in line and "debug.breakpoint" in line for line in source.splitlines())
    assert newest == "*** Newest frame" and up.endswith("outer()") and oldest == "*** Oldest frame"


def test_help_and_mistakes():
    commands = "help\nhelp p\n\np nothing\np 1 / 0\nnothing\ny + 1\ncontinue\n"
    _, answers = session(weft.jit, commands, X)
    assert all(word in answers[0] for word in ("bt", "locals", "quit", "up"))
    assert answers[1] == "p expression: print its value." and answers[2] == ""
    assert answers[3] == "*** NameError: name 'nothing' is not defined"
    assert answers[4] == "*** ZeroDivisionError: division by zero"
    assert answers[5].startswith("*** NameError") and answers[6].startswith("Array([1., 4., 7.]")


@both
@pytest.mark.parametrize("command", ["q", "quit", ""])
def test_quitting_stops_the_program(run, command):
    with pytest.raises(bdb.BdbQuit):
        session(run, command + "\n" if command else "", X)


def test_the_prompt_under_transformations():
    for run in (
        weft.vmap,
        lambda f: weft.jit(weft.vmap(f)),
        lambda f: lambda x: weft.vmap(weft.grad(f))(x),
        lambda f: lambda x: lax.map(f, x),
    ):
        _, answers = session(run, "p y\nc\n" * 3, X)
        values = [a.splitlines()[0] for a in answers if a.startswith("Array")]
        assert values == [f"Array({v}., dtype=float32)" for v in (0, 3, 6)]


def test_the_prompt_reads_the_terminal(monkeypatch, capsys):
    answers = iter(["p y", "c"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))

    @weft.jit
    def f(y):
        debug.breakpoint(num_frames=1)
        return y

    f(X)
    assert "Array([0., 1., 2.], dtype=float32)" in capsys.readouterr().out


def test_frames():
    _, answers = session(weft.jit, "bt\nc\n", X)
    assert "test_frames" in answers[0] and "src/weft/" not in answers[0]
    _, answers = session(weft.jit, "bt\nc\n", X, filter_frames=False)
    assert "api/jit.py" in answers[0]
    _, answers = session(weft.jit, "bt\nc\n", X, num_frames=1)
    assert "outer" not in answers[0]


def test_no_frames():
    debug.breakpoint(num_frames=0, stdin=io.StringIO("bt\np 1\nl\nc\n"), stdout=io.StringIO())


def test_a_token_is_returned():
    f = weft.jit(lambda x: debug.breakpoint(token=x, stdin=io.StringIO("c"), stdout=io.StringIO()))
    assert f(X).tolist() == X.tolist()


def test_an_unknown_prompt():
    with pytest.raises(ValueError, match=r"debug.breakpoint: backend must be 'cli' or None; got"):
        debug.breakpoint(backend="web")


def test_the_traced_values_are_not_kept():
    with weft.config.scope(check_tracer_leaks=True):
        session(weft.jit, "c\n", X)


def test_the_public_modules_hold_the_same_objects():
    assert weft.debug is debug and weft.pure_callback is weft.api.callbacks.pure_callback
    assert weft.experimental.io_callback is weft.api.callbacks.io_callback
    assert jnp.zeros(1).shape == (1,)
