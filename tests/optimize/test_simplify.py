"""Algebraic identities."""

import numpy as np
import pytest

import weft
from weft import lax
from weft import numpy as jnp
from weft.optimize.simplify import simplify_algebra
from weft.passes.check import check_jaxpr
from weft.passes.dce import drop_dead_code

number = np.float32
x, i = jnp.ones((2, 3)), jnp.ones((2, 3), jnp.int32)


def names(f, *args):
    after = drop_dead_code(simplify_algebra(weft.make_jaxpr(f)(*args).jaxpr))
    check_jaxpr(after)
    return " ".join(e.primitive.name for e in after.eqns)


@pytest.mark.parametrize(
    ("f", "left"),
    [
        (lambda x: lax.mul(x, number(1)), ""),
        (lambda x: lax.mul(number(1), x), ""),
        (lambda x: lax.mul(x, number(0)), "mul"),  # of NaN, and of -1
        (lambda x: lax.add(x, number(-0.0)), ""),
        (lambda x: lax.add(x, number(0.0)), "add"),  # of -0.0
        (lambda x: lax.sub(x, number(0.0)), ""),
        (lambda x: lax.sub(x, number(-0.0)), "sub"),
        (lambda x: lax.sub(number(0.0), x), "sub"),
        (lambda x: lax.sub(x, x), "sub"),  # of inf
        (lambda x: lax.div(x, number(1)), ""),
        (lambda x: lax.div(number(1), x), "div"),
        (lambda x: lax.neg(lax.neg(x)), ""),
        (lambda x: lax.integer_pow(x, 1), ""),
        (lambda x: lax.max(x, x), ""),
        (lambda x: lax.select(x > 0, x, x), ""),
        (lambda x: lax.select(x > 0, x, -x), "gt neg select_n"),
        (lambda x: x.T.T, ""),
        (lambda x: x[None].transpose(2, 0, 1).transpose(0, 2, 1), "broadcast_in_dim transpose"),
        (lambda x: x.reshape(6).reshape(2, 3), ""),
        (lambda x: x.reshape(6).reshape(3, 2), "reshape"),
        (lambda x: lax.rev(lax.rev(x, (0,)), (0,)), ""),
        (lambda x: lax.rev(lax.rev(x, (0,)), (1,)), "rev rev"),
        (lambda x: lax.broadcast(lax.broadcast(x, (4,)), (5,)), "broadcast_in_dim"),
        (lambda x: x.astype(jnp.bfloat16).astype(jnp.float32), "convert_element_type " * 2),
        (lambda x: (x > 0).astype(jnp.int32).astype(bool), "gt"),
    ],
)  # fmt: skip
def test_identities(f, left):
    assert names(f, x) == left.strip()


A = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


@pytest.mark.parametrize(
    ("order", "other", "numbers", "subscripts", "left"),
    [
        ((0, 2, 1), (1, 0), (((2,), (0,)), ((), ())), "aib,ci->abc", "dot_general"),
        ((2, 0, 1), (0, 1), (((0,), (1,)), ((), ())), "abi,ci->abc", "dot_general"),
        ((1, 2, 0), (0, 1), (((1,), (1,)), ((), ())), "abi,ci->bac", "transpose dot_general"),
        ((1, 2, 0), (1, 0), (((1,), (0,)), ((), ())), "abi,ci->bac", "transpose dot_general"),
        ((2, 1, 0), (1, 0), (((0,), (0,)), ((2,), (1,))), "abi,ai->ab", "dot_general"),
    ],
)
def test_products_of_what_is_transposed(order, other, numbers, subscripts, left):
    sizes = dict(zip("aib" if subscripts.startswith("aib") else "abi", A.shape, strict=True), c=7)
    b = np.arange(100, dtype=np.float32)
    shape = [sizes[name] for name in subscripts[4:6]]
    b = b[: shape[0] * shape[1]].reshape(shape)
    f = lambda a, b: lax.dot_general(lax.transpose(a, order), lax.transpose(b, other), numbers)
    assert names(f, A, b) == left
    np.testing.assert_array_equal(weft.jit(f)(A, b), np.einsum(subscripts, A, b))


def test_of_integers_and_narrow_floats():
    assert names(lambda i: lax.add(i, np.int32(0)), i) == ""
    assert names(lambda i: ~~i & ~~i, i) == ""
    half = x.astype(jnp.bfloat16)
    assert names(lambda h: h.astype(jnp.float32).astype(jnp.bfloat16), half) == ""
    assert names(lambda i: i.astype(jnp.float32).astype(jnp.int32), i).count("convert") == 2


def test_types_of_results_stay():
    jaxpr = weft.make_jaxpr(lambda x: lax.convert_element_type(x, jnp.float32))(1.0).jaxpr
    assert simplify_algebra(jaxpr).out_avals == jaxpr.out_avals  # weak before, and not after


def test_an_operation_of_a_library_is_not_known_by_its_name():
    neg = weft.extend.core.Primitive("neg")
    neg.def_abstract_eval(lambda x: x)
    assert names(lambda x: neg.bind(neg.bind(x)), x) == "neg neg"
