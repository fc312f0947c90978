"""Operations named by the equations they compute."""

import weft
from weft import lax
from weft import numpy as jnp
from weft.xla.locating import read_origins


@weft.jit
def double(x):
    return x * 2


def f(x):
    return lax.scan(lambda c, _: (double(jnp.sin(c)), None), x, None, length=3)[0]


def lower_located():
    with weft.config.scope(locate_operations=True):
        return weft.jit(f).lower(jnp.ones(3))


def test_an_operation_leads_to_its_equation_and_to_those_that_hold_it():
    module = lower_located()._lowered.module
    (line,) = [x for x in module.text.splitlines() if '"stablehlo.sine"' in x]
    name = line.rpartition('loc("')[2].removesuffix('")')
    assert [e.primitive.name for e in read_origins(name, module.origins)] == ["sin", "scan"]
    # the engine joins the names of a call and of what is in the function that it calls
    (call,) = [x for x in module.text.splitlines() if '"func.call"' in x]
    (product,) = [x for x in module.text.splitlines() if '"stablehlo.multiply"' in x]
    path = "/".join(x.rpartition('loc("')[2].removesuffix('")') for x in (call, product))
    names = [e.primitive.name for e in read_origins(path, module.origins)]
    assert names == ["mul", "jit", "scan"]
    assert read_origins("jit(f)/sin", module.origins) == []


def test_programs_are_as_ever_otherwise():
    plain = weft.jit(f).lower(jnp.ones(3))
    located = lower_located()
    assert "loc(" not in plain._lowered.module.text and not plain._lowered.module.origins
    assert plain.as_text().split("\n")[1:] == located.as_text().split("\n")[1:]


def test_scopes_tell_the_reverse_pass_within_jitted_functions():
    with weft.config.scope(locate_operations=True):
        outer = weft.jit(lambda x: weft.jit(weft.grad(lambda x: jnp.sin(x)))(x))
        (call,) = outer.trace(1.0).jaxpr.eqns
    stacks = [e.source_info.name_stack for e in call.params["jaxpr"].eqns]
    assert stacks == ["jvp()", "jvp()", "transpose(jvp())"][: len(stacks)] or "jvp()" in stacks
