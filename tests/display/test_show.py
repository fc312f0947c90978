"""`show`: what short text leaves out, and the user's lines."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.jaxpr import parse


def loss(x):
    h = jnp.sin(x)
    return jnp.sum(h * x)


def test_dead_equations_and_defaults_are_left_out():
    closed = weft.make_jaxpr(weft.grad(loss))(jnp.ones(3))
    assert "sin" in str(closed)
    assert str(closed.show(short=True)) == repr(closed.show(short=True))
    text = closed.show(short=True)
    assert "reduce_sum" not in text
    assert "sharding" not in text
    assert "shape=" not in text
    assert "None" not in text
    assert closed.show() == closed.show(short=False, width=88)
    assert closed.show(width=80) == str(closed)


@pytest.mark.parametrize(
    ("fun", "args", "kept", "dropped"),
    [
        (lambda x: lax.sort(x, is_stable=False), (np.ones(3),), "is_stable=False", "num_keys=0"),
        (lambda x: lax.sort(x), (np.ones(3),), "sort", "is_stable"),
        (lambda x: x.astype(int), (np.ones(3),), "convert_element_type a", "new_dtype"),
        (lambda x: x.reshape(2, 3), (np.ones(6),), "reshape a", "new_sizes"),
        (lambda x: lax.slice(x, (0,), (4,), (2,)), (np.ones(6),), "strides=(2,)", "=None"),
        (
            lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x, reverse=True),
            (np.ones(3),),
            "reverse=True",
            "linear",
        ),
    ],
)
def test_what_says_something_is_kept(fun, args, kept, dropped):
    text = weft.make_jaxpr(fun)(*args).show(short=True)
    assert kept in text
    assert dropped not in text


def test_equations_stand_under_their_lines():
    text = weft.make_jaxpr(lambda x: loss(x) + 1.0)(jnp.ones(3)).show(source=True)
    lines = [line.strip() for line in text.split("\n")]
    at = lines.index(next(x for x in lines if "h = jnp.sin(x)" in x))
    assert lines[at].startswith("# test_show.py:")
    assert lines[at + 1] == "b:f32[3] = sin a"
    assert "return jnp.sum(h * x)" in lines[at + 2]
    assert lines[at + 3].startswith("c:f32[3] = mul b a")
    assert lines[at + 4].startswith("d:f32[] = reduce_sum")
    program = weft.make_jaxpr(loss)(jnp.ones(3))
    assert str(parse(program.show(source=True))) == str(program)


def test_types_may_be_left_out():
    closed = weft.make_jaxpr(loss)(jnp.ones(3))
    assert closed.show(types=False, short=True) == (
        "{ lambda ; a. let b = sin a; c = mul b a; d = reduce_sum[axes=(0,)] c in (d,) }"
    )
