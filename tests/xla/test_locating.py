"""Operations named by the equations they compute."""

import re

import pytest

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
    # XLA joins the names of a call and of the operations in the function that it calls.
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


def multiply_rows(x, y):
    return lax.reduce(x * y, 1.0, lambda a, b: a * b + a - b, (0,))


PROGRAMS = {
    "gather": weft.grad(lambda x: jnp.sum(x[jnp.array([0, 1, 1])] ** 2)),
    "scatter": lambda x: x.at[jnp.array([2, 0])].set(1.0, unique_indices=True) * 2,
    "scatter_apply": lambda x: x.at[jnp.array([0, 0])].apply(jnp.sin),
    "scatter_one": lambda x: x.at[x[0].astype(int)].apply(jnp.sin),
    "scan": weft.grad(lambda x: lax.scan(lambda c, r: (jnp.sin(c) * r, c), x[0], x)[1].sum()),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 9, lambda c: c * 2 + jnp.sin(c), x),
    "cond": lambda x: lax.cond(x[0] > 0, jnp.sin, lambda x: x[::-1] * 2, x),
    "sort": lambda x: lax.sort((x, x + 1), num_keys=2),
    "reduce": lambda x: multiply_rows(x, x),
    "scanned": lambda x: lax.associative_scan(lambda a, b: a * b + a, x),
    "pool": weft.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,), "VALID").sum()),
    "argmax": lambda x: jnp.argmax(x[None] * x[:, None], 1),
    "median": lambda x: jnp.nanmedian(x) + jnp.nanmax(x),
    "custom": weft.grad(lambda x: weft.nn.relu(x).sum() + weft.checkpoint(jnp.sin)(x).sum()),
}


@pytest.mark.parametrize("without", [False, True], ids=["kernels", "plain"])
def test_names_are_those_of_the_program_however_often_it_is_lowered(without):
    """Texts of equations are kept from program to program; names of operations must not be."""
    with weft.config.scope(locate_operations=True, native=not without):
        for program in [*PROGRAMS, *reversed(PROGRAMS), *PROGRAMS]:
            fun = PROGRAMS[program]
            module = weft.jit(lambda x, f=fun: (f(x), f(x * 3))).lower(jnp.arange(1.0, 6))
            module = module._lowered.module
            named = re.findall(r' loc\("(?:[^"]*/)?(\w+):(\d+)"\)', module.text)
            assert len(named) > 1
            for name, number in named:
                assert module.origins[int(number)][0].primitive.name == name


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("program", ["gather", "scatter_apply", "reduce", "sort"])
def test_a_program_is_explained_twice(program):
    fun = PROGRAMS[program]
    first, second = (weft.explain(fun, runs=1)(jnp.arange(1.0, 6)) for _ in range(2))
    lines = [[(str(place), work.flops) for place, work in r.lines] for r in (first, second)]
    assert sorted(lines[0]) == sorted(lines[1]) != []


def test_a_scope_is_that_of_each_operation():
    """A region's operations have the scope of their place where an equation is written again."""

    def f(x):
        outs = []
        for scope in "abc":
            with weft.named_scope(scope):
                outs.append(weft.jit(PROGRAMS["gather"])(x))
        return outs

    text = weft.jit(f).lower(jnp.arange(1.0, 6)).as_text(debug_info=True)
    scopes = re.findall(r'loc\("jit\(f\)/(\w)/', text)
    assert scopes == sorted(scopes) and {*scopes} == {*"abc"}
    assert len({scopes.count(scope) for scope in "abc"}) == 1
