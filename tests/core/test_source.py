"""The origin of equations: names of scopes and transformations, lines, the user's text."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.core import source
from weft.core.source import JVP, TRANSPOSE, VMAP, SourceInfo, path_text
from weft.util import copy_names, fun_name


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        ((), ""),
        (("a", "b"), "a/b"),
        ((JVP, "a", "b"), "jvp(a)/b"),
        ((TRANSPOSE, JVP, "a", VMAP, "b"), "transpose(jvp(a))/vmap(b)"),
        (("a", VMAP), "a/vmap()"),
        ((TRANSPOSE, VMAP), "transpose(vmap())"),
    ],
)
def test_scopes_as_a_path(scope, text):
    assert path_text(scope) == SourceInfo(None, scope).name_stack == text


def names(jaxpr):
    """The name of each equation of the program with the scopes that it was written in."""
    return [(e.primitive.name, getattr(e.source, "name_stack", "")) for e in jaxpr.eqns]


def test_scopes_of_transformed_programs():
    def f(x):
        with weft.named_scope("layer"):
            y = jnp.sin(x)
            with weft.named_scope("inner"):
                y = y * 2
        return jnp.cos(y)

    jaxpr = lambda g, *xs: weft.make_jaxpr(g)(*xs).jaxpr
    assert names(jaxpr(f, 1.0)) == [("sin", "layer"), ("mul", "layer/inner"), ("cos", "")]
    assert dict(names(jaxpr(weft.vmap(f), np.ones(2, np.float32))))["mul"] == "vmap(layer)/inner"
    found = names(jaxpr(weft.grad(f), 1.0))
    assert ("sin", "jvp(layer)") in found and ("mul", "transpose(jvp(layer))/inner") in found
    with_scope = lambda x: weft.named_call(weft.grad(f), name="outer")(x)
    found = [name for _, name in names(jaxpr(with_scope, 1.0)) if name]
    assert "outer/jvp(layer)" in found and "outer/transpose(jvp(layer))/inner" in found


def test_lines_and_text_of_the_users_code():
    (eqn,) = weft.make_jaxpr(lambda x: jnp.sin(x) if True else x)(1.0).jaxpr.eqns
    line = test_lines_and_text_of_the_users_code.__code__.co_firstlineno + 1
    assert source.source_line(eqn.source) == f"test_source.py:{line}"
    assert source.source_text(eqn.source) == "jnp.sin(x)"
    place, _, function = source.source_location(eqn.source).partition(" ")
    assert place.startswith(f"test_source.py:{line}:") and function == "(<lambda>)"
    assert source.user_frames(eqn.source)[0].line_num == line
    assert (
        source.describe_maker(eqn.source, "sin") == f"made by `jnp.sin(x)` at test_source.py:{line}"
    )
    long = weft.make_jaxpr(
        lambda x: jnp.sin(x + 1.0000000000000001 + 1.0000000000000001 + 1.0000000000000001 + 0.1234)
    )(1.0)
    text = source.source_text(long.jaxpr.eqns[-1].source)
    assert text.startswith("jnp.sin(x + 1.0") and text.endswith("...") and len(text) == 60
    split = weft.make_jaxpr(lambda x: jnp.sin(
        x))(1.0)  # fmt: skip
    assert source.source_text(split.jaxpr.eqns[0].source) == "jnp.sin( x)"


def test_what_has_no_source():
    for of, empty in (
        (source.user_frames, []),
        (source.source_line, ""),
        (source.source_location, ""),
        (source.source_text, ""),
        (source.user_code, None),
        (source.transposed_source, None),
        (source.inner_source, None),
    ):
        assert of(None) == empty
    bare = SourceInfo(None, ("a",))
    assert bare.frames == [] and bare.raw_frames() == ((), ())
    assert source.nested_source((), None) is None
    assert source.nested_source(("b",), None) == SourceInfo(None, ("b",))
    assert source.nested_source(("b",), bare) == SourceInfo(None, ("b", "a"))
    own = eval(compile("f(x)", "made", "eval"), {"f": jnp.sin, "x": 1.0})
    assert own.shape == ()  # code whose file cannot be read
    jaxpr = weft.make_jaxpr(eval(compile("lambda x: f(x)", "made", "eval"), {"f": jnp.sin}))(1.0)
    assert source.source_text(jaxpr.jaxpr.eqns[0].source) == ""
    assert source.source_line(jaxpr.jaxpr.eqns[0].source) == "made:1"


def test_names_of_objects_that_have_none():
    """Objects of libraries may have any value as `__name__`."""

    class Odd:
        __name__ = 0

        def __call__(self, x):
            return x

    assert fun_name(Odd()) == "Odd" and copy_names(lambda x: x, Odd()).__name__ == "<lambda>"
    assert float(weft.jit(weft.vmap(Odd()))(weft.numpy.ones(2)).sum()) == 2
