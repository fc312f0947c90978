"""Equal nested programs made one."""

import pytest

import weft
from weft import lax
from weft import numpy as jnp
from weft.core.jaxpr import held_jaxprs
from weft.core.source import user_frames
from weft.passes.merge import merge_equal_programs


def held(jaxpr):
    return [e.params["jaxpr"] for e in jaxpr.eqns if "jaxpr" in e.params]


def layers(number=2.0):
    """A program of two layers, which are written on lines of their own."""
    scaled = lambda step: weft.jit(lambda x: lax.scan(step, x, None, length=2)[0])

    def f(x):
        x = scaled(lambda c, _: (c * 2.0, None))(x)
        return scaled(lambda c, _: (c * number, None))(x)

    return weft.make_jaxpr(f)(jnp.ones(3)).jaxpr


def test_equal_programs_are_one_object_at_each_level():
    a, b = held(layers())
    assert a is not b
    merged = merge_equal_programs(layers())
    a, b = held(merged)
    assert a is b and held(a) == held(b)
    assert merge_equal_programs(merged) is merged


def test_programs_that_differ_in_a_number_stay_two():
    jaxpr = layers(3.0)
    a, b = held(merge_equal_programs(jaxpr))
    assert a is not b and merge_equal_programs(jaxpr) is jaxpr


def test_the_module_has_one_function():
    def f(x):
        x = weft.jit(lambda x: jnp.sin(x) * 2)(x)
        x = weft.jit(lambda x: jnp.sin(x) * 2)(x)
        return weft.jit(lambda x: jnp.sin(x) * 2)(x)

    count = lambda **how: weft.jit(f, **how).lower(1.0).as_text().count("stablehlo.sine")
    assert count() == 3 and count(passes=("merge_equal_programs", "drop_dead_code")) == 1


def test_programs_in_named_scopes_keep_their_names():
    def f(x):
        for name in ("first", "second"):
            x = weft.jit(lambda x, name=name: weft.named_scope(name)(jnp.sin)(x))(x)
        return x

    a, b = held(merge_equal_programs(weft.make_jaxpr(f)(1.0).jaxpr))
    assert a is not b


# Functions that apply a new function for each of two layers, and whether the programs of the
# two are one object.
LOOPS = {
    "jit": (lambda x, i: weft.jit(lambda x: jnp.sin(x @ x))(x), True),
    "checkpoint": (lambda x, i: weft.checkpoint(lambda x: jnp.sin(x @ x))(x), True),
    "closure": (lambda x, i: weft.checkpoint(lambda y: jnp.sin(y * x))(x + i), True),
    "within": (lambda x, i: weft.jit(lambda x: weft.jit(lambda x: x * 2)(x) + x)(x), True),
    "scan": (lambda x, i: lax.scan(lambda c, r: (c + r, None), x[0], x)[0] + x, True),
    "number": (lambda x, i: weft.jit(lambda x: x * i)(x), False),
    "operation": (lambda x, i: weft.jit(lambda x: (jnp.sin, jnp.cos)[i](x))(x), False),
    "order": (lambda x, i: weft.jit(lambda x, y: x - y if i else y - x)(x, x), False),
    "around": (lambda x, i: weft.named_scope(f"s{i}")(weft.jit(lambda x: x * 2))(x), True),
    "scope": (lambda x, i: weft.jit(lambda x: weft.named_scope(f"s{i}")(jnp.sin)(x))(x), False),
    "option": (lambda x, i: apply_with_debug(weft.jit(lambda x: x * 2), x, i), False),
}


def apply_with_debug(fun, x, i):
    with weft.config.scope(numpy_rank_promotion=("allow", "warn")[i]):
        return fun(x)


@pytest.mark.parametrize("name", LOOPS)
def test_layers_of_one_line_share_a_program(name):
    layer, shared = LOOPS[name]

    def loss(x):
        for i in range(2):
            x = layer(x, i)
        return x.sum()

    x = jnp.linspace(0.0, 1.0, 4).reshape(2, 2)
    first, second = [p for e in weft.make_jaxpr(loss)(x).eqns for p in held_jaxprs(e)]
    assert (first is second) == shared
    found = weft.jit(weft.grad(loss))(x)
    with weft.disable_jit():
        expected = weft.grad(loss)(x)
    assert jnp.allclose(found, expected, rtol=1e-5)


def test_layers_of_other_lines_have_programs_of_their_own():
    def f(x):
        x = weft.jit(lambda x: x * 2)(x)
        return weft.jit(lambda x: x * 2)(x)

    first, second = held(weft.make_jaxpr(f)(1.0).jaxpr)
    assert first is not second
    lines = [user_frames(p.eqns[0].source_info)[0].line_num for p in (first, second)]
    assert lines[1] == lines[0] + 1
