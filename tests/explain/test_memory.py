"""Arrays kept from the forward to the backward pass, against what is known of programs."""

import pytest

import weft
from weft import lax
from weft import numpy as jnp


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
