"""Constant folding."""

import numpy as np
import pytest

import weft
from weft import lax
from weft import numpy as jnp
from weft.optimize.fold import fold_constants, is_exact_conversion
from weft.passes.check import check_jaxpr

number = np.float32


def folded(f, *args):
    """Return the remaining equations of a function, and its first result if it is a number."""
    jaxpr = weft.make_jaxpr(f)(*args).jaxpr
    after = fold_constants(jaxpr)
    check_jaxpr(after)
    return [e.primitive.name for e in after.eqns], getattr(after.outvars[0], "val", None)


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (lambda: lax.add(number(0.1), number(0.2)), number(0.1) + number(0.2)),
        (lambda: lax.sqrt(number(2)), np.sqrt(number(2))),
        (lambda: lax.neg(lax.mul(np.int32(2**30), np.int32(4))), np.int32(0)),  # wraps around
        (lambda: lax.convert_element_type(np.int32(3), jnp.float32), number(3)),
        (lambda: lax.bitwise_not(np.uint8(1)), np.uint8(254)),
        (lambda: lax.lt(number(-0.0), number(0.0)), np.False_),
    ],
)
def test_operations_on_numbers_become_numbers(f, value):
    names, found = folded(f)
    assert names == [] and found == value and found.dtype == value.dtype


@pytest.mark.parametrize(
    "f",
    [
        lambda: lax.sin(number(1)),  # not rounded correctly everywhere
        lambda: lax.div(np.int32(1), np.int32(0)),
        lambda: lax.mul(number(1e-30), number(1e-10)),  # subnormal
        lambda: lax.sub(number(np.inf), number(np.inf)),
        lambda: lax.convert_element_type(number(3e9), jnp.int32),
        lambda: lax.convert_element_type(number(1.5), jnp.int32),
        lambda: lax.add(jnp.bfloat16(1), jnp.bfloat16(2)),
        lambda: lax.full((2,), 1.0),
    ],
)
def test_what_is_not_the_same_everywhere_stays(f):
    assert len(folded(f)[0]) == 1


def test_numbers_within_nested_programs():
    x = jnp.ones(3)
    jaxpr = weft.make_jaxpr(weft.jit(lambda x: x + lax.mul(number(2), number(3))))(x).jaxpr
    (call,) = fold_constants(jaxpr).eqns
    assert [e.primitive.name for e in call.params["jaxpr"].eqns] == ["add"]
    assert len(jaxpr.eqns[0].params["jaxpr"].eqns) == 2  # unchanged


def test_which_numbers_are_those_of_another_dtype_as_well():
    numbers = [0, 1, -1, 127, 128, 255, -128, 2**24 + 1, 2.5, 2.0**31, 1e300, np.nan, np.inf]
    for dtype in map(np.dtype, ("?", "i1", "u1", "i4", "u8", "f4", "f8", "c8", "S1")):
        for x in map(np.asarray, numbers):
            with np.errstate(all="ignore"):
                there = dtype.kind in "biuf" and np.isfinite(x)
                exact = there and x.astype(dtype).astype(x.dtype) == x
                if there and dtype.kind in "iu":
                    exact = np.iinfo(dtype).min <= x <= np.iinfo(dtype).max and x == int(x)
                assert is_exact_conversion(x[()], dtype) == exact, (x, dtype)
