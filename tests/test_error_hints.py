"""Hints made of the user's source; tests/golden/mistakes has what they say of whole programs."""

import pytest

import weft
import weft.numpy as jnp
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
