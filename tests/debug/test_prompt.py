"""The prompt of weft.debug.breakpoint."""

import bdb
import io

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import debug, lax

X = np.float32([0, 1, 2])
both = pytest.mark.parametrize("run", [lambda f: f, weft.jit], ids=["eager", "jit"])


PROMPT = "(weft)" + " "  # which `list` must not find here


def session(run, commands, *args, **options):
    """Return the prompt's answers to commands, in a function with locals."""
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
