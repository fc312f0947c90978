"""Operations named by the equations they compute."""

import weft
from weft import lax
from weft import numpy as jnp
from weft.xla.locating import read_origins, write_places


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


def test_texts_with_lines_of_the_user_and_without():
    """Operations of scopes and lines; one that weft made for itself has no line."""

    def g(x):
        with weft.named_scope("layer"):
            return jnp.sin(x) + double(x)

    with weft.config.scope(locate_operations=True):
        module = weft.jit(g).lower(1.0)._lowered.module
    text = write_places(module.text, module.origins, "g")
    line = g.__code__.co_firstlineno + 2
    place = f'"{__file__}":{line}:'
    (sine,) = [x for x in text.splitlines() if '"stablehlo.sine"' in x]
    assert f'loc("jit(g)/layer/sin"({place}' in sine
    (call,) = [x for x in text.splitlines() if '"func.call"' in x]
    assert f'loc("jit(g)/layer/pjit"({place}' in call or "layer/jit(double)" in call
    assert text.startswith("module @jit_g ") and module.text.startswith("module @jit_g.")
    (eqn,) = [e for e in g_equations(module) if e.primitive.name == "sin"]
    hidden = [[eqn.replace(source=None)] for _ in range(99)]
    name = module.text.partition('loc("')[2].partition('"')[0]
    assert write_places(f' loc("{name}")', hidden, "g").startswith(' loc("jit(g)/')
    assert "test_locating" not in write_places(f' loc("{name}")', hidden, "g")


def g_equations(module):
    return [e for held in module.origins for e in held]
