"""Arrays kept from the forward to the backward pass, in programs with known residuals."""

from types import SimpleNamespace

import pytest

import weft
from weft import lax
from weft import numpy as jnp
from weft.explain.memory import list_live
from weft.explain.origins import NOWHERE, Place


def kept(f, *args):
    report = weft.explain.memory(weft.grad(f))(*args)
    return sorted((str(r.aval), r.source) for r in report.residuals if not r.is_argument)


x = jnp.ones((4, 3))


@pytest.mark.parametrize(
    ("f", "found"),
    [
        (lambda x: jnp.sum(x * 2), []),
        (lambda x: jnp.sum(x * jnp.ones((4, 3))), []),  # depends on no argument
        (lambda x: jnp.sum(jnp.sin(x)), [("f32[4,3]", "cos")]),
        (lambda x: jnp.sum(weft.jit(jnp.sin)(x)), [("f32[4,3]", "cos")]),
        # the argument is there anyway; within, all is computed again
        (lambda x: jnp.sum(weft.checkpoint(jnp.sin)(x)), []),
        (
            lambda x: lax.scan(lambda c, a: (c + jnp.sin(a).sum(), None), 0.0, x)[0],
            [("f32[4,3]", "cos")],
        ),
    ],
)
def test_residuals(f, found):
    assert kept(f, x) == found


def test_residuals_of_a_custom_rule_and_their_lines():
    @weft.custom_vjp
    def f(x):
        return x * 2

    forward = lambda x: (x * 2, jnp.tan(x))
    backward = lambda kept, ct: (ct * kept,)
    f.defvjp(forward, backward)
    report = weft.explain.memory(weft.grad(lambda x: f(x).sum()))(x)
    (found,) = [r for r in report.residuals if not r.is_argument]
    assert (found.source, found.bytes) == ("tan", 48)
    assert "jnp.tan(x)" in found.made.text and "ct * kept" in found.read.text


def test_what_is_alive_is_described():
    """Arguments by name, parts of tuples, results of a reverse pass, and missing entries."""
    entry, loop = 1, 2
    maker = lambda opcode, where, n, shape: SimpleNamespace(
        opcode=opcode, computation=where, parameter=n, shape=shape
    )
    makers = {
        1: maker("parameter", entry, 0, "f32[4]{0}"),
        2: maker("parameter", entry, 1, "f32[8]{0}"),
        3: maker("parameter", loop, 0, "f32[2]{0}"),
        4: maker("add", entry, 0, "f32[16]{0}"),
        5: maker("while", entry, 0, "(f32[1]{0}, f32[9]{0})"),
    }
    module = SimpleNamespace(
        peak=[(16, 1), (32, 2), (8, 3), (64, 4), (40, 5), (12, 6)], by_id=makers, entry=entry
    )
    place = Place("f.py", 3)
    origin = lambda i: (place, i.opcode == "add", i.opcode)
    found = list_live(module, SimpleNamespace(origin=origin), ["argument `w`"])
    assert found == [
        ("f32[16]", 64, "add (backward)", place),
        ("part of a tuple", 40, "while", place),
        ("f32[8]", 32, "an argument", NOWHERE),
        ("f32[4]", 16, "argument `w`", NOWHERE),
        ("", 12, "", NOWHERE),
        ("f32[2]", 8, "parameter", place),
    ]
