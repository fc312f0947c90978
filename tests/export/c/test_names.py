"""The C names of Python names."""

import pytest

import weft
from weft.export.c.names import make_identifier, make_identifiers


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("params['w'][0]", "params_w_0"), ("x", "x"), ("result", "result"), ("exp", "exp_"),
        ("double", "double_"), ("t1", "t1_"), ("λ", "x"), ("0a", "x_0a"), ("<lambda>", "lambda"),
        ("workspace", "workspace_"), ("y0", "y0_"),
    ],
)  # fmt: skip
def test_identifiers(text, name):
    assert make_identifier(text) == name


def test_names_differ():
    assert make_identifiers(["a.b", "a_b", "f"], ["f"]) == ["a_b", "a_b_2", "f_2"]


def test_hard_names_compile():
    fun = lambda exp, t1, I, y0, work, b2: exp + t1 * I + y0 - work / b2  # noqa: E741
    program = weft.export.to_c(fun, name="int")(*[2.0] * 6)
    assert program.name == "int_"
    assert program.build()(*[2.0] * 6) == 7
