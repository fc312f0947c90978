"""The number of functions in a program, and numbers that may show that a value is NaN."""

import math

import weft
import weft.numpy as jnp
from weft import config, lax
from weft.cpu.counting import count_functions, may_fold_nan


def test_programs_that_are_held_count():
    def fun(x):
        x = lax.fori_loop(0, 3, lambda i, x: jnp.cos(x), x)
        inner = weft.jit(jnp.tan)
        return inner(inner(x)) ** x

    x = jnp.zeros(3)
    assert count_functions(weft.make_jaxpr(fun)(x).jaxpr) == 4
    assert count_functions(weft.make_jaxpr(jnp.tanh)(x).jaxpr) == 0
    assert count_functions(weft.make_jaxpr(jnp.log)(x).jaxpr) == 0
    with config.scope(enable_x64=True):
        assert count_functions(weft.make_jaxpr(jnp.log)(jnp.zeros(3)).jaxpr) == 1


def test_numbers_that_may_show_a_nan():
    x = jnp.ones(3)
    shows = lambda fun: may_fold_nan(weft.make_jaxpr(fun)(x).jaxpr)
    assert not shows(lambda x: x * 2.0 + 1.0)
    assert (
        shows(lambda x: x * math.nan) and shows(lambda x: x + math.inf) and shows(lambda x: x / 0)
    )
    assert shows(lambda x: lax.fori_loop(0, 2, lambda i, x: x - math.inf, x))
    assert not shows(lambda x: jnp.where(x > 1, x, math.inf))
