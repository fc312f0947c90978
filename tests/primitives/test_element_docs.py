"""The documentation of elementwise functions of `lax`: every part is there, and is true."""

import inspect

import numpy as np
import pytest

import weft.numpy as jnp
from weft import lax
from weft.primitives.element_docs import describe, find_kind


def has_example(fun):
    """Return True if the text of a function's primitive has an example."""
    return ">>>" in (getattr(getattr(fun, "primitive", None), "__doc__", None) or "")


FUNCTIONS = {n: getattr(lax, n) for n in lax.__all__ if has_example(getattr(lax, n))}


def test_most_functions_have_an_example():
    assert len(FUNCTIONS) > 60 and {"sin", "add", "bitwise_and", "igamma"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_described(name):
    fun = FUNCTIONS[name]
    _, _, rest = fun.__doc__.partition("Args:")
    args, _, returns = rest.partition("Returns:")
    for parameter in inspect.signature(fun).parameters:
        assert f"\n      {parameter}: " in args, parameter
    assert f"lax.{name}(" in returns


def test_results_are_those_of_the_type_rule():
    kinds = {"eq": "bool", "is_finite": "bool", "abs": "real", "real": "real", "complex": "complex"}
    for name, kind in {**kinds, "sin": "same", "add": "same", "bitwise_and": "same"}.items():
        fun = getattr(lax, name)
        count = len([p for p in inspect.signature(fun).parameters if p != "accuracy"])
        assert find_kind(fun.primitive, count) == kind, name
    assert "An array of bools" in lax.lt.__doc__
    np.testing.assert_allclose(lax.sin(jnp.array([0.0, 1.0])), [0, 0.841], atol=1e-3)


def test_a_text_without_an_example_stays_as_it_is():
    class Plain:
        __doc__ = "Double."

    assert describe("double", Plain(), ["x"]) == "Double."
