"""Common subexpressions, on toy programs."""

import numpy as np
import pytest

from tests.core import toys
from tests.core.toys import add, cos, f32, make, mul, pjit, sin
from weft.passes.check import check_jaxpr
from weft.passes.cse import cse_jaxpr


def text(jaxpr):
    return jaxpr.pretty_print(width=1000)


def test_cse_computes_equal_things_once():
    def program(x, y):
        first = add(sin(x), y)
        second = add(sin(x), y)
        return mul(first, second), second, add(y, sin(x))

    jaxpr = make(program, f32(), f32())
    lean = cse_jaxpr(jaxpr)
    assert text(lean) == (
        "{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a; d:f32[] = add c b; e:f32[] = mul d d; "
        "f:f32[] = add b c in (e, d, f) }"
    )
    assert len(jaxpr.eqns) == 7
    check_jaxpr(lean)
    assert cse_jaxpr(lean) is lean
    assert cse_jaxpr(jaxpr) is lean


@pytest.mark.parametrize(
    ("x", "y"), [(0.0, -0.0), (0, 0.0), (1, True), (1.0, np.float32(1)), (2.0, 3.0), (None, 0)]
)
def test_cse_tells_values_apart(x, y):
    by_param = make(lambda a: (sin(a, k=x), sin(a, k=y), sin(a, k=(x,)), sin(a, k=(y,))), f32())
    assert cse_jaxpr(by_param) is by_param
    if x is not None:
        by_operand = make(lambda a: (mul(a, x), mul(a, y)), f32())
        assert cse_jaxpr(by_operand) is by_operand


def test_cse_sees_equal_values():
    nan = float("nan")
    jaxpr = make(lambda a: (mul(a, nan), mul(a, -nan * 0), sin(a, k=nan), sin(a, k=nan)), f32())
    assert len(cse_jaxpr(jaxpr).eqns) == 2
    shared = make(cos, f32())
    jaxpr = make(lambda a: tuple(pjit.apply(a, name="f", jaxpr=shared) * 2), f32())
    assert len(cse_jaxpr(jaxpr).eqns) == 1


def test_cse_leaves_effects():
    def program(x):
        toys.print_.apply(x)
        toys.print_.apply(x)
        return x

    jaxpr = make(program, f32())
    assert cse_jaxpr(jaxpr) is jaxpr
