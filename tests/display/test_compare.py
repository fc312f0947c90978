"""`diff`: rows of what changed, and nothing for programs that are equal."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.display.test_page import read
from weft import lax
from weft.jaxpr import diff, parse, unparse


def base(x):
    y = jnp.sin(x) * 2.0
    return lax.scan(lambda c, t: (c + y, jnp.cos(t)), x, jnp.arange(3.0))


def changed_scan(x):
    y = jnp.sin(x) * 2.0
    return lax.scan(lambda c, t: (c + y, jnp.tanh(t)), x, jnp.arange(3.0))


def marks(d):
    return [(row.mark, row.text) for row in d.rows if row.mark in "+-"]


def make(f):
    return weft.make_jaxpr(f)(1.0)


def test_equal_programs():
    d = diff(make(base), parse(unparse(make(base))))
    assert d.equal
    assert str(d) == repr(d) == "equal programs"
    assert "equal programs" in d._repr_html_()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (lambda x: (jnp.sin(x) * 2.0,), [("-", "d = add c 1.0"), ("-", "in d"), ("+", "in c")]),
        (lambda x: jnp.cos(x) * 2.0 + 1.0, [("-", "b = sin a"), ("+", "b = cos a")]),
        (lambda x: jnp.sin(x) * 3.0 + 1.0, [("-", "c = mul b 2.0"), ("+", "c = mul b 3.0")]),
        (
            lambda x: jnp.sin(-x) * 2.0 + 1.0,
            [("+", "e = neg a"), ("-", "b = sin a"), ("+", "b = sin e")],
        ),
    ],
)
def test_what_changed(changed, expected):
    d = diff(make(lambda x: jnp.sin(x) * 2.0 + 1.0), make(changed))
    assert not d.equal
    assert [(m, t.replace(":f32[]", "")) for m, t in marks(d)] == expected


def test_programs_within_programs():
    d = diff(make(base), make(changed_scan))
    rows = marks(d)
    assert len(rows) == 2
    assert rows[0][0] + rows[1][0] == "-+"
    assert rows[0][1].split(" = ")[1].startswith("cos")
    assert rows[1][1].split(" = ")[1].startswith("tanh")
    assert "    jaxpr=" in str(d)
    tags = read(d._repr_html_())
    assert tags.count["mark"] == 2
    assert "\x1b[4mcos\x1b[24m" in d.text(color=True)


def test_far_lines_are_left_out():
    def long(c):
        return lambda x: [x := jnp.sin(x) for _ in range(20)][-1] * c + 1.0

    d = diff(make(long(2.0)), make(long(3.0)), context=1)
    assert str(d).split("\n")[0] == "  (20 equal lines)"
    assert len(str(d).split("\n")) == 6


def test_a_change_is_shown_with_what_it_is_in():
    def nested(c):
        def turn(x, t):
            for _ in range(4):
                x = jnp.sin(x)
            return lax.cond(t > 0, lambda x: jnp.cos(jnp.cos(x)) * c, lambda x: x, x), t

        return lambda x: lax.scan(turn, jnp.exp(x), jnp.arange(3.0))[0]

    assert str(diff(make(nested(2.0)), make(nested(3.0)), context=0)).split("\n") == [
        "  (3 equal lines)",
        "  d:f32[] e:f32[3] = scan[jaxpr={7 equations} length=3 num_carry=1] b c",
        "      jaxpr=",
        "          (7 equal lines)",
        "          n:f32[] = cond[branches=({0 equations} {3 equations})] m k",
        "              branches=",
        "                  (3 equal lines)",
        "-                 r:f32[] = mul q 2.0",
        "+                 r:f32[] = mul q 3.0",
        "  (3 equal lines)",
    ]


def test_what_the_text_does_not_show():
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    one, other = (weft.make_jaxpr(lambda x, c=row: x + c)(1.0) for row in rows)
    f, g = (weft.custom_jvp(lambda x: x) for _ in range(2))
    for h in (f, g):
        h.defjvp(lambda x, t: (x[0], t[0]))
    for a, b, what in ((make(f), make(g), "consts or weak types"), (one, other, "consts")):
        d = diff(a, b)
        assert not d.equal
        assert d.rows[-1] == ("-", f"the same text: {what} or functions are different", 0, "")
        assert str(d).endswith(f"\n- the same text: {what} or functions are different")
    assert diff(one, one).equal
