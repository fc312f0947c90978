"""Hints made of the user's source; tests/golden/mistakes has the hints of whole programs."""

import ast
import dataclasses
import io
import logging
import pdb
import pprint
import re
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.told import find_wrong_options
from weft import grad, jit, lax, vmap
from weft.errors import TracerError, describe_place

TABLE = [1, 2]


@pytest.mark.parametrize(("fun", "hint"), [
    (lambda x: x > 0 and x < 1, r"\(x > 0\) & \(x < 1\)\."),
    (lambda x: x < 0 or x > 1 or x == 2, r"\(x < 0\) \| \(x > 1\) \| \(x == 2\)\."),
    (lambda x: not x > 0, r"jnp\.logical_not\(x > 0\)\."),
    (lambda x: 0 <= x != 1, r"\(0 <= x\) & \(x != 1\)\."),
    (lambda x: 1 if (x > 0) else 2, r"jnp\.where\(x > 0, 1, 2\)\."),
    (lambda x: min(x, 2, 3), r"jnp\.min\(jnp\.array\(\[x, 2, 3\]\)\)\."),
    (lambda x: any([x > 0]), r"jnp\.any\(\[x > 0\]\)\."),
    (lambda x: [y for y in TABLE if x > y], r"jnp\.where\(x > 0, a, b\), or lax\.cond\."),
    (lambda x: list(range(1, x)), r"lax\.fori_loop\(1, x, lambda i, c: \.\.\., init\)\."),
    (lambda x: TABLE[x + 1], r"jnp\.asarray\(TABLE\)\[x \+ 1\]\."),
    (lambda x: int(x + 1), r"\(x \+ 1\)\.astype\(int\)\."),
    (lambda x: f"{x:.3f}", r'weft\.debug\.print\("x = \{\}", x\)\.$'),
])  # fmt: skip
def test_hints_follow_the_expression(fun, hint):
    with pytest.raises(TracerError, match=f"under jit. Hint: {hint}"):
        jit(fun)(1)


def test_what_a_value_depends_on():
    def scaled(x, n, mode):
        def step(c, y):
            return (c if c > n else c + y), y

        return lax.scan(step, x, jnp.ones(2))

    text = "argument `c` of step at .*, in the body of scan. Hint: jnp.where"
    with pytest.raises(TracerError, match=rf"depends on {text}"):
        scaled(1.0, 0.0, 0)
    with pytest.raises(
        TracerError, match="depends on .* `c` of step .* and argument `n` of scaled"
    ):
        jit(scaled)(1.0, 0.0, 0)
    with pytest.raises(TracerError, match="argument `x` of f at .* under make_jaxpr") as info:
        weft.make_jaxpr(f)(1.0)
    assert "static" not in str(info.value)


def f(x):
    return 1 if x > 0 else 2


def test_a_setting_is_named_with_its_function():
    with pytest.raises(
        TracerError, match=r"Or, where it is a setting: jit\(f, static_argnames='x'\)"
    ):
        jit(f)(1.0)
    for mapped in (vmap(f), lambda x: vmap(grad(lambda y: y * f(y)))(x)):
        with pytest.raises(TracerError, match=r"Hint: jnp\.where\(x > 0, 1, 2\)\.$"):
            mapped(jnp.ones(2))


def test_source_that_is_not_there_gets_the_general_hint():
    scope = {}
    exec(compile("def g(x):\n    return 1 if x > 0 else 2", "nowhere.py", "exec"), scope)
    with pytest.raises(TracerError, match=r"Hint: jnp\.where\(x > 0, a, b\), or lax\.cond"):
        jit(scope["g"])(1.0)


@pytest.mark.parametrize(("op", "place"), [
    ("jit", "under jit"), ("switch", "in a branch of switch"), ("map", "in the body of map"),
])  # fmt: skip
def test_places(op, place):
    assert describe_place(op) == place


# --- text made of traced values ---------------------------------------------------------------


class Layer:
    def __init__(self, w):
        self.w = w

    def __repr__(self):
        return f"Layer({self.w})"


@dataclasses.dataclass
class Pair:
    a: object


def in_raise(x):
    try:
        raise ValueError(f"got {x}")
    except ValueError:
        return x


def in_message(x):
    message = f"got {x}"
    if x is None:
        raise ValueError(message)
    return x


def in_block(x):
    try:
        text = f"got {x}"
        raise ValueError(text)
    except ValueError:
        return x


def in_assert(x):
    try:
        assert not x.shape, f"got {x}"
        assert x.shape, f"got {x}"
    except AssertionError:
        return x


def in_debugger(x):
    shown = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("p x\nprint(x)\ncontinue\n"), stdout=shown, nosigint=True)
    debugger.use_rawinput = False
    debugger.set_trace()
    assert shown.getvalue().count("Traced<f32[") >= 1
    return x


def logs_by_a_library(x):  # as absl does
    library = {"logging": logging, "__name__": "absl"}
    exec(compile("def info(t, *a): logging.info(t, *a)", "/site-packages/absl.py", "exec"), library)
    library["info"]("loss %s", x)
    return x


@pytest.mark.parametrize(
    "fun, fix",
    [
        (lambda x: print("x {is}", x, 3), "weft.debug.print('x {{is}} {} 3', x)"),
        (lambda x: print(f"x = {x}, {2:d}", x), "weft.debug.print('x = {}, {} {}', x, 2, x)"),
        (lambda x: print({"x": [x]}), "weft.debug.print('{}', {'x': [x]})"),
        (lambda x: print(Layer(x)), "weft.debug.print('{}', Layer(x))"),
        (lambda x: print(Pair(x)), "weft.debug.print('{}', Pair(x))"),
        (lambda x: pprint.pprint([x]), "weft.debug.print('x = {}', x)"),
        (lambda x: logging.info("loss %s", x), "weft.debug.print('x = {}', x)"),
        (lambda x: len(str(x)), "weft.debug.print('x = {}', x)"),
        (lambda x: len(f"{x}"), "weft.debug.print('x = {}', x)"),
        (lambda x: weft.grad(lambda y: [print(y), y][1].sum())(x), "weft.debug.print('{}', y)"),
        (logs_by_a_library, "weft.debug.print('x = {}', x)"),
        *((f, "") for f in (in_raise, in_message, in_block, in_assert, in_debugger)),
    ],
)
def test_text_of_a_traced_value_is_told_of_once(fun, fix, caplog):
    caplog.set_level(logging.INFO)
    with weft.config.scope(hints=False):
        jit(lambda x: fun(x)).eval_shape(1.0)
    weft.make_jaxpr(lambda x: fun(x))(1.0)
    jit(lambda x: fun(x)).trace(1.0)
    jit(lambda x: fun(x)).trace(np.ones(3))
    said = [r.getMessage() for r in caplog.records if r.name == "weft.trace"]
    assert len(said) == bool(fix)
    for text in said:
        assert f"Hint: {fix}; config.update('hints', False) silences this." in text
        assert "at test_error_hints.py:" in text


def test_text_of_what_is_not_staged_is_no_mistake(caplog):
    weft.grad(lambda x: [print(x), x][1])(1.0)
    weft.vmap(lambda x: [print(x), x][1])(np.ones(2))
    assert not caplog.records


def only(x):
    y = 0
    if x > 0:
        y = x + 1
    return y


def either(x):
    if x > 0:
        y = x + 1
    else:
        y = -x
    return y


def more(x):
    if x > 0:
        y = x + 1
    else:
        x = x * 2
        y = -x
    return y


def another(x):
    if x > 0:
        y = x + 1
    else:
        y: int = 3
    return y


@pytest.mark.parametrize(("fun", "hint"), [
    (only, "y = jnp.where(x > 0, x + 1, y)."),
    (either, "y = jnp.where(x > 0, x + 1, -x)."),
    (more, "y = jnp.where(x > 0, x + 1, y)."),
    (another, "y = jnp.where(x > 0, x + 1, y)."),
])  # fmt: skip
def test_hints_for_assignments(fun, hint):
    with pytest.raises(TracerError) as info:
        jit(fun)(1)
    assert f"under jit. Hint: {hint}" in str(info.value)


# --- options that hints name --------------------------------------------------------------------

ROOT = Path(__file__).parents[1]


def read_messages():
    """Yield messages of the package's source, and those that tests keep in full."""
    for path in (ROOT / "src/weft").rglob("*.py"):
        text = path.read_text()
        named = re.search(r"Hint: .*\w=", text)
        for node in ast.walk(ast.parse(text)) if named else ():
            if isinstance(node, ast.JoinedStr):
                parts = [v.value if isinstance(v, ast.Constant) else "{}" for v in node.values]
                yield "".join(parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    for path in (ROOT / "tests").rglob("*.txt"):
        if path.name != "calls.txt":  # it has no messages, and 20,000 lines
            yield from path.read_text().splitlines()


def test_hints_name_options_that_functions_take():
    wrong = {option for message in read_messages() for option in find_wrong_options(message)}
    assert not wrong, "\n".join(sorted(wrong))
