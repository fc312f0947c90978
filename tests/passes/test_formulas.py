"""Counting the equations that may be written as formulas, and what many are written as."""

import weft
import weft.numpy as jnp
from weft import config, lax
from weft.passes.formulas import LONG, WIDE, count_formulas
from weft.primitives import wide
from weft.primitives.circular import FORMULAS
from weft.primitives.expr import LARGE


def chain(n):
    """n sines, one after another."""

    def fun(x):
        for _ in range(n):
            x = jnp.sin(x)
        return x

    return fun


def test_the_functions_are_those_that_have_formulas():
    assert {*FORMULAS, "pow", "rem"} == LONG
    assert {*wide.FORMULAS, "erf"} - LONG == WIDE


def test_programs_that_are_held_count():
    def fun(x):
        x = lax.fori_loop(0, 3, lambda i, x: jnp.cos(x), x)
        inner = weft.jit(jnp.tan)
        return inner(inner(x)) ** x

    x = jnp.zeros(3)
    assert count_formulas(weft.make_jaxpr(fun)(x).jaxpr) == 4
    assert count_formulas(weft.make_jaxpr(jnp.tanh)(x).jaxpr) == 0
    assert count_formulas(weft.make_jaxpr(jnp.log)(x).jaxpr) == 0
    with config.scope(enable_x64=True):
        assert count_formulas(weft.make_jaxpr(jnp.log)(jnp.zeros(3)).jaxpr) == 1


def test_many_formulas_are_for_larger_arrays():
    text = lambda n, size: weft.jit(chain(n)).lower(jnp.zeros(size)).as_text()
    few, many = text(3, LARGE), text(50, LARGE)  # what one remembers is not the other's
    assert "sine" not in few
    assert many.count("stablehlo.sine") == 50
    assert text(3, LARGE) == few
    assert "sine" not in text(50, LARGE * 16)
    assert "sine" not in text(200, 1_000_000)
