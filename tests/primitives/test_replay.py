"""Cached text of rules is written again only where the rules would write the same."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, make_jaxpr
from weft.primitives.elementwise import mul_p
from weft.primitives.replay import RULES, apply_rule

X = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def forget():
    weft.clear_caches()


def texts(fun, *args, times=4):
    """The program of the gradient each time, with a new function."""
    return [str(make_jaxpr(grad(lambda *xs: fun(*xs)))(*args)) for _ in range(times)]


def test_a_rule_runs_twice_and_the_program_stays(monkeypatch):
    runs = []
    rule = mul_p.jvp
    monkeypatch.setattr(mul_p, "jvp", lambda *args: (runs.append(1), rule(*args))[1], raising=False)
    first, *others = texts(lambda x, y: jnp.sum(jnp.tanh(x * y)), X, X)
    assert others == [first] * 3 and len(runs) == 2
    weft.clear_caches()
    assert not RULES and texts(lambda x, y: jnp.sum(jnp.tanh(x * y)), X, X)[0] == first


def test_operands_that_are_the_same_are_told_apart():
    same, other = (lambda x, y: jnp.sum(x * x * y), lambda x, y: jnp.sum(x * y * x))
    for fun in [same, same, same, other, other, other, same]:
        got = jit(grad(lambda x, y, fun=fun: fun(x, y)))(X, 2 * X)
        np.testing.assert_allclose(got, 4 * X * X, rtol=1e-6)
    both = lambda x, y: weft.lax.optimization_barrier((x, y))
    for fun in [lambda x: both(x, x), lambda x: both(x, 2 * x)] * 3:
        last = grad(lambda x, fun=fun: fun(x)[1].sum())
        np.testing.assert_array_equal(jit(last)(X), last(X))


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("numbers", [(0.0, -0.0), (1.0, 2.0), (1, True), (np.nan, 3.0)], ids=str)
def test_numbers_are_part_of_what_is_remembered(numbers):
    fun = lambda x, c: jnp.sum(jnp.maximum(x, c) * c / x)
    expected = [grad(lambda x, c=c: fun(x, c))(X) for c in numbers]
    for _ in range(3):
        for c, want in zip(numbers, expected, strict=True):
            np.testing.assert_allclose(jit(grad(lambda x, c=c: fun(x, c)))(X), want, rtol=1e-6)


def test_settings_are_part_of_what_is_remembered():
    dot = lambda x, y: jnp.sum(x @ y)
    before = texts(dot, X, X.T)
    with weft.default_matmul_precision("highest"):
        within = texts(dot, X, X.T)
    assert len({*before}) == len({*within}) == 1 and "HIGHEST" in within[0] != before[0]


def test_equations_come_from_the_line_that_is_traced_now():
    texts(lambda x: jnp.sum(jnp.sin(x)), X)
    jaxpr = make_jaxpr(grad(lambda x: jnp.sum(jnp.sin(x))))(X).jaxpr
    here = test_equations_come_from_the_line_that_is_traced_now.__code__.co_firstlineno + 2
    lines = [f.line_num for e in jaxpr.eqns for f in e.source.frames if f.file_name == __file__]
    assert {*lines} == {here}


def test_without_targets_the_rule_runs():
    add = lambda prim, params, xs, ys: [*xs, *ys]
    assert apply_rule(add, None, {}, [1, 2, 3], 1, None) == [1, 2, 3] and not RULES
