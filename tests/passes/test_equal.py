"""Comparison of programs."""

import math

import numpy as np
import pytest

from tests.core import toys
from tests.core.toys import add, bf16, cond, cos, f32, make, mul, pjit, sin
from weft.core.aval import ShapedArray
from weft.core.jaxpr import ClosedJaxpr
from weft.passes.equal import jaxpr_equal
from weft.passes.inline import inline_calls


def test_equal_up_to_names():
    def program(x, y):
        inner = make(lambda a: mul(sin(a), 2.0), f32())
        out = pjit.apply(add(x, y), name="f", jaxpr=inner)[0]
        return cond.apply(0, out, branches=(inner, make(cos, f32())))[0], math.nan

    a, b = make(program, f32(), f32(), name="a"), make(program, f32(), f32(), name="b")
    assert a is not b
    assert jaxpr_equal(a, b)
    assert jaxpr_equal(a, a)
    assert jaxpr_equal(a, ClosedJaxpr(b))
    assert not jaxpr_equal(a, inline_calls(b.replace(eqns=b.eqns[:1], outvars=b.invars)))


@pytest.mark.parametrize(
    "other",
    [
        make(lambda x, y: add(sin(y), x), f32(), f32()),
        make(lambda x, y: add(cos(x), y), f32(), f32()),
        make(lambda x, y: add(sin(x, k=1), y), f32(), f32()),
        make(lambda x, y: (add(sin(x), y), x), f32(), f32()),
        make(lambda x, y: sin(x), f32(), f32()),
        make(lambda x: add(sin(x), x), f32()),
        make(lambda x: add(sin(x), 1.0), f32()),
        make(lambda x, y: add(sin(x), 1.0), f32(), f32()),
        make(lambda x, y: add(sin(x), y), bf16(), bf16()),
        make(lambda x, y: add(sin(x), y), f32(), ShapedArray((), np.float32, True)),
    ],
    ids=str,
)
def test_not_equal(other):
    jaxpr = make(lambda x, y: add(sin(x), y), f32(), f32())
    assert not jaxpr_equal(jaxpr, other)
    assert not jaxpr_equal(other, jaxpr)


def test_equal_literals_and_params():
    def one(val, key):
        return make(lambda x: mul(sin(x, k=key), val), f32())

    assert jaxpr_equal(one(1.0, (1, 2)), one(1.0, (1, 2)))
    assert jaxpr_equal(one(math.nan, math.nan), one(math.nan, math.nan))
    assert not jaxpr_equal(one(0.0, 1), one(-0.0, 1))
    assert not jaxpr_equal(one(1.0, 1), one(np.float32(1.0), 1))
    assert not jaxpr_equal(one(1.0, 1), one(1.0, True))
    assert not jaxpr_equal(one(1.0, (1,)), one(1.0, (1, 2)))
    assert not jaxpr_equal(one(1.0, make(sin, f32())), one(1.0, make(cos, f32())))
    assert not jaxpr_equal(one(1.0, make(sin, f32())), one(1.0, None))


def test_equal_consts():
    def one(*values):
        const = np.array(values, np.float32)
        return toys.make_closed(lambda x: add(x, const), f32(len(values)))

    assert jaxpr_equal(one(1, math.nan), one(1, math.nan))
    assert not jaxpr_equal(one(0.0), one(-0.0))
    assert not jaxpr_equal(one(1, 2), one(1, 3))
    assert not jaxpr_equal(one(1, 2), one(1, 2).jaxpr)
