"""The comparison of `element` rules at true and at padded sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.core.element import Operand, Place
from weft.export.specs import symbolic_args_specs
from weft.padding.elements import match_elements
from weft.padding.match import Mismatch
from weft.padding.sizes import Sizes

SIZES = Sizes({"n": 8, "m": 8}, {})


def match(fun: Any, shapes: Any, *args: Any) -> Any:
    """The fills of the last equation of a function."""
    eqn = weft.make_jaxpr(fun)(*symbolic_args_specs(args, shapes)).jaxpr.eqns[-1]
    operands = [Operand(k, a.aval) for k, a in enumerate(eqn.invars)]
    rules = []
    for k, v in enumerate(eqn.outvars):
        places = tuple([Place(f"i{a}") for a in range(v.aval.ndim)])
        rules.append((places, eqn.primitive.element(places, *operands, **eqn.params)[k]))
    return {k: float(v) for k, v in match_elements(eqn, SIZES, rules).items()}


X, Y = np.zeros((5, 3), np.float32), np.zeros(5, np.float32)


def test_operations_that_stay_as_they_are():
    assert match(jnp.sin, "n, _", X) == {}
    assert match(lambda x: lax.transpose(x, (1, 0)), "n, _", X) == {}
    assert match(lambda x: lax.slice(x, (0, 1), (1, 2)), "n, _", X) == {}
    assert match(lambda x: lax.reduce_max(x, (1,)), "n, _", X) == {}
    assert match(lambda x: lax.reshape(x, (x.shape[0] * 3,)), "n, _", X) == {}
    assert match(lambda x: lax.cumsum(x, 0), "n, _", X) == {}


def test_reductions_fill_what_they_read():
    assert match(lambda x: lax.reduce_max(x, (0,)), "n, _", X) == {(0, 0): -np.inf}
    assert match(lambda x: lax.reduce_min(x, (0, 1)), "n, _", X) == {(0, 0): np.inf}
    product = lambda x, y: lax.dot_general(y, x, (((0,), (0,)), ((), ())))
    assert match(product, ("n, _", "n"), X, Y) == {(0, 0): 0, (1, 0): 0}


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: lax.rev(x, (0,)),
        lambda x: lax.concatenate([x, x], 0),
        lambda x: lax.reshape(lax.transpose(x, (1, 0)), (x.shape[0] * 3,)),
        lambda x: lax.cumsum(x, 0, reverse=True),
        lambda x: lax.pad(x, np.float32(0), ((0, 1, 0), (0, 0, 0))),
    ],
)
def test_operations_that_count_with_the_size(fun):
    with pytest.raises(Mismatch):
        match(fun, "n, _", X)
