"""The translations of operations to padded arrays."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax, nn


def count(fun: Any, *args: Any, sizes: Any = "n, _") -> dict[str, int]:
    """The operations of the padded program of a function."""
    jaxpr = weft.jit(fun, sizes=sizes).padded_jaxpr(*args)
    return dict(collections.Counter(e.primitive.name for e in jaxpr.eqns))


X = np.ones((5, 3), np.float32)


def test_what_does_not_notice_costs_nothing():
    assert count(lambda x: jnp.sin(x) + 1.0, X) == {"sin": 1, "add": 1}
    assert count(lambda x: x.T, X) == {"transpose": 1}
    assert count(lambda x: lax.reduce_max(x, (1,)), X) == {"reduce_max": 1}
    assert count(lambda x: lax.cumsum(x, 0), X) == {"cumsum": 1}


def test_reductions_have_one_mask():
    found = count(lambda x: lax.reduce_max(x, (0,)), X)
    assert found["reduce_max"] == found["iota"] == found["lt"] == found["select_n"] == 1
    found = count(lambda x: x.T @ x, X)
    assert found["dot_general"] == 1 and found["select_n"] == 2


def test_errors_of_element_rules_are_refusals():
    with pytest.raises(weft.errors.ShapeError, match="padded along axis 0 of operand 0"):
        weft.jit(lambda x: nn.relu(jnp.linalg.eig(jnp.outer(x, x))[0].real), sizes="n")(X[:, 0])
