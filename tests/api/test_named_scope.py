"""Named scopes: in the jaxpr, through every transformation, in the compiled program; errors."""

import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, lax, make_jaxpr, named_call, named_scope, vmap


def layer(x):
    with named_scope("outer"):
        y = jnp.sin(x)
        with named_scope("inner"):
            z = y * y
    return jnp.sum(z)


X = np.ones(3, np.float32)


def stacks(fun, *args):
    """The name stacks of a function's equations, by operation."""
    return [(e.primitive.name, e.source_info.name_stack) for e in make_jaxpr(fun)(*args).eqns]


def paths(fun, *args):
    """The names of operations in the optimized program."""
    return set(
        re.findall(r'op_name="((?:[^"\\]|\\.)*)"', jit(fun).lower(*args).compile().as_text())
    )


def test_scopes_nest_as_a_path():
    assert stacks(layer, X) == [("sin", "outer"), ("mul", "outer/inner"), ("reduce_sum", "")]


def test_scope_as_a_decorator_and_named_call():
    @named_scope("act")
    def act(x):
        return jnp.tanh(x)

    def model(x):
        return named_call(lambda x: jnp.exp(x), name="last")(named_call(act)(x))

    assert stacks(model, 1.0) == [("tanh", "act/act"), ("exp", "last")]
    assert named_call(act).__name__ == "act"


@pytest.mark.parametrize(
    "fun, arg, expected",
    [
        (grad(layer), X, {"jvp(outer)", "transpose(jvp(outer))/inner", ""}),
        (vmap(layer), np.ones((2, 3), np.float32), {"vmap(outer)", "vmap(outer)/inner", ""}),
        (
            vmap(grad(layer)),
            np.ones((2, 3), np.float32),
            {"vmap(jvp(outer))", "vmap(transpose(jvp(outer)))/inner", ""},
        ),
    ],
    ids=["grad", "vmap", "vmap_grad"],
)
def test_transformations_wrap_the_scope_that_follows(fun, arg, expected):
    assert expected <= {stack for _, stack in stacks(fun, arg)}


def test_a_scope_around_a_transformation_stays_outside():
    def f(x):
        with named_scope("a"):
            return grad(layer)(x)

    found = {stack for _, stack in stacks(f, X)}
    assert {"a/jvp(outer)", "a/transpose(jvp(outer))"} <= found


def test_hessian():
    found = {stack for _, stack in stacks(weft.hessian(layer), X)}
    assert "vmap(jvp(vmap(transpose(jvp(outer)))))" in found


def test_programs_that_are_held_have_names_of_their_own():
    def f(x):
        with named_scope("a"):
            return jit(layer)(x)

    (call,) = make_jaxpr(f)(X).eqns
    assert call.source_info.name_stack == "a"
    inside = [e.source_info.name_stack for e in call.params["jaxpr"].eqns]
    assert inside == ["outer", "outer/inner", ""]


def test_pretty_print():
    text = make_jaxpr(layer)(X).pretty_print(name_stack=True)
    assert [line.split("# ")[1] for line in text.splitlines() if "#" in line] == [
        "[outer]",
        "[outer/inner]",
        "[]",
    ]
    both = make_jaxpr(layer)(X).pretty_print(name_stack=True, source_info=True)
    assert re.search(r"# test_named_scope.py:\d+:\d+ \(layer\) \[outer\]", both)


def test_names_of_compiled_operations():
    found = paths(layer, X)
    assert {"jit(layer)/outer/sin", "jit(layer)/outer/inner/mul"} <= found
    assert "jit(layer)/jvp(outer)/cos" in paths(grad(layer), X)
    assert "jit(layer)/vmap(outer)/sin" in paths(vmap(layer), np.ones((2, 3), np.float32))


def test_names_go_through_calls():
    def f(x):
        return jit(layer)(x) + 1

    assert "jit(f)/jit(layer)/outer/sin" in paths(f, X)


def test_names_in_loops_and_branches():
    def body(c, x):
        with named_scope("body"):
            return jnp.sin(c) * x, None

    def f(x):
        with named_scope("net"):
            x = lax.scan(body, x, X)[0]
            return lax.cond(x > 0, lambda x: jnp.cos(x), lambda x: jnp.exp(x), x)

    assert {"jit(f)/net/scan/body/sin", "jit(f)/net/cond/cos", "jit(f)/net/cond/exp"} <= paths(
        f, 0.5
    )
    assert "jit(f)/jvp(net)/scan/jvp(body)/cos" in paths(grad(f), 0.5)


def test_names_in_custom_rules_and_checkpoint():
    @weft.custom_vjp
    def op(x):
        return jnp.sin(x)

    def fwd(x):
        return jnp.sin(x), x

    def bwd(x, ct):
        with named_scope("bwd"):
            return (jnp.cos(x) * ct,)

    op.defvjp(fwd, bwd)

    def f(x):
        with named_scope("blk"):
            return op(weft.checkpoint(jnp.sin)(x))

    found = paths(grad(f), 0.5)
    assert "jit(f)/transpose(jvp(blk))/bwd/cos" in found
    assert any(p.startswith("jit(f)/transpose(jvp(blk))/rematted") for p in found)


def test_text_has_scopes_and_lines_on_request():
    lowered = jit(layer).lower(X)
    assert "loc(" not in lowered.as_text()
    text = lowered.as_text(debug_info=True)
    assert re.search(r'loc\("jit\(layer\)/outer/sin"\("[^"]*test_named_scope.py":\d+:\d+\)\)', text)

    def loop(x):
        return lax.scan(lambda c, row: (c + row, jnp.cos(c)), x[0], x)[1]

    lowered = jit(loop).lower(X)
    text = lowered.as_text(debug_info=True)
    assert text.startswith("module @jit_loop ")
    lines = [line for line in text.splitlines() if line.startswith("%") and "({" not in line]
    first = loop.__code__.co_firstlineno
    unnamed = [line for line in lines if " loc(" not in line and "constant" not in line]
    assert not unnamed
    assert re.search(rf'stablehlo.cosine.*/cos"\("[^"]*test_named_scope.py":{first + 1}:', text)
    strip = lambda text: re.sub(r" loc\(.*\)$", "", text, flags=re.M)
    assert strip(text) == lowered.as_text()


def test_repeated_lines_keep_their_own_names():
    def f(x):
        for name in ("one", "two"):
            with named_scope(name):
                x = jnp.sin(x)
        return jnp.sin(x)

    text = jit(f).lower(X).as_text(debug_info=True)
    assert text.count("stablehlo.sine") == 3
    assert text.count('loc("jit(f)/one/sin"') == text.count('loc("jit(f)/two/sin"') == 1
    assert text.count('loc("jit(f)/sin"') == 1


def test_odd_names_are_quoted():
    def f(x):
        with named_scope('a"b\\c\n{d}'):
            return jnp.sin(x)

    assert float(jit(f)(0.0)) == 0.0
    assert stacks(f, 1.0) == [("sin", 'a"b\\c\n{d}')]


def test_results_do_not_change():
    np.testing.assert_array_equal(jit(layer)(X), layer(X))
    np.testing.assert_allclose(grad(jit(layer))(X), 2 * np.sin(X) * np.cos(X), rtol=1e-6)


def test_a_scope_ends_with_an_error_and_leaves_nothing():
    with pytest.raises(ZeroDivisionError), named_scope("a"):
        1 / 0
    assert stacks(lambda x: jnp.sin(x), 1.0) == [("sin", "")]


def test_equations_keep_the_users_line_through_a_held_program():
    inner = jit(lambda x: jnp.sin(x) * x)  # this line
    jaxpr = make_jaxpr(grad(lambda x: inner(x)))(1.0).jaxpr
    here = re.search(r"test_named_scope.py:(\d+)", jaxpr.pretty_print(source_info=True))
    line = test_equations_keep_the_users_line_through_a_held_program.__code__.co_firstlineno + 1
    assert here and f"test_named_scope.py:{line}:" in jaxpr.pretty_print(source_info=True)


def test_errors():
    with pytest.raises(TypeError, match="named_scope: the name must be a string; got 3."):
        named_scope(3)
    with pytest.raises(TypeError, match="named_call: needs a function; got 3 of type int."):
        named_call(3)
