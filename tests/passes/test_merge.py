"""Equal nested programs made one."""

import weft
from weft import lax
from weft import numpy as jnp
from weft.passes.merge import merge_equal_programs


def held(jaxpr):
    return [e.params["jaxpr"] for e in jaxpr.eqns if "jaxpr" in e.params]


def layers(number=2.0):
    def f(x):
        for k in (2.0, number):
            step = lambda c, _, k=k: (c * k, None)
            x = weft.jit(lambda x, step=step: lax.scan(step, x, None, length=2)[0])(x)
        return x

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
        for _ in range(3):
            x = weft.jit(lambda x: jnp.sin(x) * 2)(x)
        return x

    count = lambda **how: weft.jit(f, **how).lower(1.0).as_text().count("stablehlo.sine")
    assert count() == 3 and count(passes=("merge_equal_programs", "drop_dead_code")) == 1


def test_programs_in_named_scopes_keep_their_names():
    def f(x):
        for name in ("first", "second"):
            with weft.named_scope(name):
                inner = weft.jit(lambda x: weft.named_scope("in")(jnp.sin)(x))
            x = inner(x)
        return x

    a, b = held(merge_equal_programs(weft.make_jaxpr(f)(1.0).jaxpr))
    assert a is not b
