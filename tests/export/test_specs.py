"""Symbolic shapes from text, and the types of arguments with such shapes."""

import numpy as np
import pytest

import weft
from weft import export


@pytest.mark.parametrize(
    ("text", "like", "want"),
    [
        ("b, 4", None, "(b, 4)"),
        ("(b,n)", None, "(b, n)"),
        ("", None, "()"),
        ("-1*b + 2*(c + 1)", None, "(- b + 2*c + 2,)"),
        ("b^2, floordiv(b, 2), mod(b, 3), max(b, 2), min(b,c)", None,
         "(b^2, floordiv(b, 2), b - 3*floordiv(b, 3), max(b, 2), min(b, c))"),
        ("b, _", (3, 4), "(b, 4)"),
        ("b, ...", (3, 4, 5), "(b, 4, 5)"),
        ("..., b", (3, 4), "(3, b)"),
        (None, (3, 4), "(3, 4)"),
    ],
)  # fmt: skip
def test_shapes(text, like, want):
    assert str(export.symbolic_shape(text, like=like)) == want


@pytest.mark.parametrize(
    ("text", "how", "message"),
    [
        ("b+", {}, "the shape must be sizes such as"),
        ("a b", {}, "the shape must be sizes such as"),
        ("foo(b, 2)", {}, r"a size must be made of integers, names.*; got 'foo\(b, 2\)'"),
        ("b.c", {}, "a size must be made of integers"),
        ("__import__('os')", {}, "a size must be made of integers"),
        ("b, _", {}, "'_' must stand for a size of like"),
        ("..., b", {}, "'...' must stand once, for axes of like"),
        ("b", {"like": (3, 4)}, r"there must be a size for each axis of like, \(3, 4\)"),
        ("b, 5", {"like": (3, 4)}, "a number must be the size that like has there, 4; got 5"),
        ("b", {"constraints": ["b>=2"], "scope": export.SymbolicScope()}, "constraints must be"),
    ],
)
def test_texts_that_are_no_shapes(text, how, message):
    with pytest.raises(ValueError, match=f"^symbolic_shape: {message}"):
        export.symbolic_shape(text, **how)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ("b >= 2", "constraints must be texts in a sequence; got 'b >= 2'"),
        (["b > 2"], "a constraint must have one of >=, <=, ==; got 'b > 2'"),
        (["b >="], "a constraint must be sizes such as"),
    ],
)
def test_texts_that_are_no_constraints(constraints, message):
    with pytest.raises(ValueError, match=f"^SymbolicScope: {message}"):
        export.SymbolicScope(constraints)


def test_specs_of_arguments():
    args = ({"x": np.ones((3, 4), np.float32), "y": np.ones(3, np.int8)}, 2.0)
    first, number = export.symbolic_args_specs(args, ({"x": "b, k", "y": "b"}, None))
    assert first["x"].shape[0] == first["y"].shape[0] and first["y"].dtype == np.int8
    assert number == weft.ShapeDtypeStruct((), np.float32, weak_type=True)
    one = export.symbolic_args_specs(args[0], "b, ...")
    assert str(one["x"].shape) == "(b, 4)" and str(one["y"].shape) == "(b,)"
    assert export.is_symbolic_dim(one["y"].shape[0]) and not export.is_symbolic_dim(4)
    assert weft.eval_shape(lambda x: x.reshape(-1), one["x"]).shape == (4 * one["x"].shape[0],)
