"""Expressions for one element: printing, evaluation and traversal.

tests/primitives/test_conformance.py compares the rules of primitives with compiled programs.
"""

import numpy as np
import pytest

import weft.numpy as jnp
from tests.core.evaluation import evaluate
from weft import lax, make_jaxpr
from weft.core.aval import ShapedArray
from weft.core.element import (
    Integer,
    Number,
    Operand,
    Place,
    Read,
    all_hold,
    choose,
    count_terms,
    describe_elements,
    is_equal,
    larger,
    smaller,
    sum_over,
    walk,
)

X, Y = np.arange(12, dtype=np.float32).reshape(3, 4), np.ones((4, 5), np.float32)
F32 = np.dtype(np.float32)


def compute(prim, params, args):
    """Apply a primitive to numbers, one by one."""
    return np.asarray(prim.apply(*args, **params)[0])[()]


def describe(f, *args):
    """The text of the element of the last equation's last result."""
    eqn = make_jaxpr(f)(*args).jaxpr.eqns[-1]
    found = describe_elements(eqn.primitive, [a.aval for a in eqn.invars], eqn.params)
    return str(found[-1][1])


TEXTS = [
    (lambda x, y: x @ y, "sum(mul(x0[i, k], x1[k, j]) for k < 4)"),
    (lambda x, y: x.T, "x0[j, i]"),
    (lambda x, y: x.reshape(4, 3), "x0[(((i * 3) + j) // 4), (((i * 3) + j) % 4)]"),
    (lambda x, y: x[:, None].reshape(3, 4), "x0[i, 0, j]"),
    (lambda x, y: x[::-1], "x0[(2 - i), j]"),
    (lambda x, y: lax.slice(x, (1, 0), (3, 4), (1, 2)), "x0[(i + 1), (j * 2)]"),
    (lambda x, y: lax.concatenate([x, x], 1), "(x0[i, j] if (j < 4) else x1[i, (j - 4)])"),
    (lambda x, y: lax.pad(x, 0.0, [(1, 0, 0), (0, 0, 0)]),
     "(x0[(i - 1), j] if ((0 <= (i - 1)) and ((i - 1) < 3)) else x1[])"),
    (lambda x, y: lax.split(x, (1, 2))[1], "x0[(i + 1), j]"),
    (lambda x, y: lax.add(x, 1.0), "add(x0[i, j], x1[])"),
    (lambda x, y: lax.integer_pow(x, 3), "integer_pow[y=3](x0[i, j])"),
    (lambda x, y: lax.broadcast(x, (2,)), "x0[i1, i2]"),
    (lambda x, y: lax.reduce_max(x, (0,)), "max(x0[k, i] for k < 3)"),
    (lambda x, y: lax.cumsum(x, 1, reverse=True), "sum(x0[i, (j + k)] for k < (4 - j))"),
    (lambda x, y: lax.iota(np.int32, 3), "int32(i)"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "text"), TEXTS)
def test_texts(f, text):
    assert describe(f, X, Y) == text


def test_values_of_a_program_element_by_element():
    f = lambda x, i: lax.dynamic_slice(jnp.sin(x) * x, (i, 1), (2, 3))
    closed = make_jaxpr(f)(X, np.int32(5))
    env = dict(zip(closed.jaxpr.invars, (X, np.int32(5)), strict=True))
    for eqn in closed.jaxpr.eqns:
        arrays = [np.asarray(a.read() if hasattr(a, "val") else env[a]) for a in eqn.invars]
        found = describe_elements(eqn.primitive, [a.aval for a in eqn.invars], eqn.params)
        for v, (places, expression) in zip(eqn.outvars, found, strict=True):
            out = env[v] = np.empty(v.aval.shape, v.aval.dtype)
            for at in np.ndindex(out.shape):
                known = dict(zip(places, at, strict=True))
                out[at] = evaluate(expression, arrays, compute, known)
    np.testing.assert_allclose(env[closed.jaxpr.outvars[0]], f(X, np.int32(5)), rtol=1e-6)


def test_only_the_chosen_value_is_looked_at():
    x, i = Operand(0, ShapedArray((3,), F32)), Place("i")
    inside = choose(all_hold([i >= 0, i < 3]), x[[i]], Number(-1, F32))
    arrays = [np.float32([5, 6, 7])]
    assert [evaluate(inside, arrays, compute, {i: k}) for k in (-1, 0, 2, 3)] == [-1, 5, 7, -1]
    with pytest.raises(IndexError, match=r"x0\[i\]: must be inside of \(3,\); got \[3\]"):
        evaluate(x[[i]], arrays, compute, {i: 3})
    with pytest.raises(IndexError):
        evaluate(x[[i]], arrays, compute, {i: -1})


def test_integers_that_are_known_are_computed():
    i = Place("i")
    assert i + 0 is i and 0 + i is i and i - 0 is i and i * 1 is i and i // 1 is i and i % 1 == 0
    assert (smaller(2, 3), larger(2, 3), is_equal(2, 2)) == (2, 3, True)
    assert all_hold([True, i < 3, False]) is False and all_hold([True]) is True
    assert choose(True, 1, 2) == 1 and choose(False, 1, 2) == 2
    assert type(all_hold([True, i < 3])) is Integer
    for known in (0, 3, 7):
        value = lambda x, known=known: evaluate(x, [], compute, {i: known})
        assert value(10 - i) == 10 - known and value(2 * i) == 2 * known
        assert value(smaller(i, 3)) == min(known, 3) and value(larger(i, 3)) == max(known, 3)
        assert value(i > 3) is (known > 3) and value(i <= 3) is (known <= 3)
        assert value(is_equal(i % 2, 1)) is (known % 2 == 1)


def test_indices_have_no_bounds_and_no_dtype():
    top = np.int8([127])
    assert evaluate(Read(0, (0,)) + 1, [top], compute) == 128


def test_rules_do_not_branch_on_places():
    with pytest.raises(TypeError, match=r"must not ask for the value of an index; got \(i < 3\)"):
        bool(Place("i") < 3)
    with pytest.raises(AttributeError, match="never change"):
        Place("i").name = "j"


def test_counts_of_terms():
    eqn = make_jaxpr(lambda x, y: lax.dot_general(x, y, (((0, 1), (0, 1)), ((), ()))))(X, X)
    eqn = eqn.jaxpr.eqns[0]
    ((_, expression),) = describe_elements(eqn.primitive, [a.aval for a in eqn.invars], eqn.params)
    assert count_terms(expression) == 12
    assert sorted({x.operand for x in walk(expression) if type(x) is Read}) == [0, 1]
    assert count_terms(sum_over([Place("i") + 1], F32, lambda k: Number(k, F32))) == 1


def test_the_largest_of_numbers_that_are_all_nan():
    eqn = make_jaxpr(lambda x: jnp.nanmax(x, 1))(X).jaxpr.eqns
    (eqn,) = [e for e in eqn if e.primitive.name == "reduce_max"]
    ((places, expression),) = describe_elements(eqn.primitive, [eqn.invars[0].aval], eqn.params)
    x = X.copy()
    x[0], x[1, :2] = np.nan, np.nan
    found = [evaluate(expression, [x], compute, {places[0]: i}) for i in range(3)]
    np.testing.assert_array_equal(found, [np.nan, 7, 11])


def test_a_primitive_without_the_rule_has_no_description():
    eqn = make_jaxpr(lambda x: lax.sort(x))(X).jaxpr.eqns[0]
    assert describe_elements(eqn.primitive, [a.aval for a in eqn.invars], eqn.params) == []
