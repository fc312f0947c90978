"""Types of public functions, as a user's type checker sees them."""

import inspect

import pytest

import weft
import weft.numpy as jnp
from weft import lax, nn, random

UNTYPED = (inspect.Parameter.empty, "")


@pytest.mark.parametrize("module", [weft, jnp, lax, nn, random], ids=lambda m: m.__name__)
def test_every_parameter_has_a_type(module):
    functions = [getattr(module, name) for name in module.__all__]
    mine = [f for f in functions if inspect.isfunction(f) and f.__module__.startswith("weft.")]
    wrong = [
        f"{f.__name__}({p.name})"
        for f in mine
        for p in inspect.signature(f).parameters.values()
        if p.annotation in UNTYPED
    ]
    assert len(mine) > 20
    assert not wrong
