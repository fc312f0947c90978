"""Reductions: special values, dtypes, ties, a user's function, errors. Rows: cases_reduction.py."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import weft
from weft import grad, jit, jvp, lax, make_jaxpr, vmap
from weft.errors import DtypeError, PytreeError, ShapeError
from weft.primitives import bits
from weft.primitives import reduction as red
from weft.primitives.elementwise import add, bitwise_xor, max, mul
from weft.primitives.layout import reduce_sum

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int8, np.uint8, bool],
)
def test_reductions_of_nothing_are_identities(dtype):
    dtype = np.dtype(dtype)
    empty = np.zeros((0, 2), dtype)
    low, high = np.asarray(red.reduce_max(empty, (0,))), np.asarray(red.reduce_min(empty, (0,)))
    values = [False, True] if dtype.kind == "b" else [-3, 3] if dtype.kind != "u" else [0, 3]
    assert (low <= np.array(values, dtype)).all()
    assert (high >= np.array(values, dtype)).all()


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("n", [5, 70])  # each of argmax's two lowerings
@pytest.mark.parametrize("values, most, least", [
    ([1, 3, 3, 0, 0], 1, 3),
    ([1, np.nan, 3, np.nan, 0], 1, 1),
    ([-np.inf, -np.inf], 0, 0),
    ([np.inf, np.nan], 1, 1),
    ([0.0, -0.0], 0, 0),
])  # fmt: skip
def test_arg_extrema_take_nan_then_the_first(n, values, most, least):
    padded = np.array(values + [values[-1]] * (n - len(values)), np.float32)
    assert int(red.argmax(padded, 0, np.int32)) == most
    assert int(red.argmin(padded, 0, np.int32)) == least
    assert red.argmax(padded, 0, np.int8).dtype == np.int8


def test_nan_is_the_extremum():
    x = np.array([[1, np.nan], [3, 2]], np.float32)
    np.testing.assert_array_equal(red.reduce_max(x, (1,)), [np.nan, 3])
    np.testing.assert_array_equal(red.reduce_min(x, (1,)), [np.nan, 2])


def test_ties_share_the_derivative():
    x = np.array([2.0, 5.0, 5.0, 1.0, 5.0, 5.0], np.float32)
    np.testing.assert_array_equal(
        grad(lambda x: red.reduce_max(x, (0,)))(x), [0, 0.25, 0.25, 0, 0.25, 0.25]
    )
    out, dot = jvp(lambda x: red.reduce_min(x, (0,)), (x,), (np.arange(6, dtype=np.float32),))
    assert (float(out), float(dot)) == (1, 3)


def test_derivative_of_a_product_with_zeros():
    product = lambda x: red.reduce_prod(x, (0, 1))
    np.testing.assert_array_equal(grad(product)(X), [[120, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(grad(product)(X * (X != 1)), np.zeros((2, 3)))
    empty = np.zeros((0, 3), np.float32)
    assert grad(product)(empty).shape == (0, 3)


def test_no_axes_is_the_operand():
    assert red.reduce_max(X, ()) is X


def test_reduce_recognizes_operations():
    text = str(make_jaxpr(lambda x: red.reduce(x, 0, add, (0,)))(X))
    assert "reduce_sum[" in text
    assert "add " not in text
    text = str(make_jaxpr(lambda x: red.reduce(x, -np.inf, jit(max), [1]))(X))
    assert "reduce_max[" in text
    np.testing.assert_array_equal(red.reduce(X, 10.0, add, (0,)), [13, 15, 17])
    np.testing.assert_array_equal(red.reduce(X, 4.0, max, (1,)), [4, 5])
    xor = red.reduce(X.astype(int), 0, lambda a, b: bitwise_xor(b, a), (1,))
    np.testing.assert_array_equal(xor, [3, 2])


def test_reduce_of_a_tree():
    def together(a, b):
        return {"s": add(a["s"], b["s"]), "p": mul(a["p"], b["p"])}

    def fun(x):
        return red.reduce({"s": x, "p": x}, {"s": 0, "p": 1}, together, (1,))

    out = jit(fun)(X)
    np.testing.assert_array_equal(out["s"], X.sum(1))
    np.testing.assert_array_equal(out["p"], X.prod(1))
    np.testing.assert_array_equal(
        grad(lambda x: reduce_sum(fun(x)["p"], (0,)))(X), [[2, 0, 0], [20, 15, 12]]
    )


def test_reduce_keeps_the_order_of_elements():
    """Choosing the last element is associative but not commutative: derivatives keep the order."""
    last = lambda a, b: add(mul(a, 0.0), b)
    for n in (1, 2, 5, 8):
        x = np.arange(n, dtype=np.float32)
        want = np.eye(n, dtype=np.float32)[-1]
        np.testing.assert_array_equal(grad(lambda x: red.reduce(x, 0.0, last, (0,)))(x), want)


def test_reduce_with_a_mapped_start():
    both = lambda a, b: add(add(a, b), mul(a, b))
    starts = np.arange(3, dtype=np.float32)
    out = vmap(lambda i: red.reduce(X, i, both, (1,)))(starts)
    np.testing.assert_allclose(out, (1 + starts[:, None]) * np.prod(1 + X, 1) - 1)
    out = vmap(lambda x, i: red.reduce(x, i, both, (0,)), (1, 0))(X, starts)
    np.testing.assert_allclose(out, (1 + starts) * np.prod(1 + X, 0) - 1)


def test_reduce_precision_rounds():
    x = np.array([1.2345, 3.3e38, 1e-30, np.nan], np.float32)
    np.testing.assert_array_equal(bits.reduce_precision(x, 5, 3), [1.25, np.inf, 0, np.nan])
    assert float(grad(lambda x: bits.reduce_precision(x, 5, 3) * 1.2345)(np.float32(2))) == 1.25


@pytest.mark.parametrize("call, error, text", [
    (lambda: red.reduce_max(X, (2,)), ShapeError, "axes must be distinct"),
    (lambda: red.reduce_max(X, (0, 0)), ShapeError, "axes must be distinct"),
    (lambda: red.reduce_prod(X > 0, (0,)), DtypeError, "reduce_prod: needs an operand of number"),
    (lambda: red.reduce_and(X, (0,)), DtypeError, "bool or integer dtype; got f32[2,3]"),
    (lambda: red.argmax(X[:0], 0, int), ShapeError, "needs one axis that has elements"),
    (lambda: red.argmax(X, 0, np.float32), DtypeError, "index_dtype must be an integer type"),
    (lambda: red.argmin(X * 1j, 0, int), DtypeError, "real dtype"),
    (lambda: red.argmax(X, -1, int), ShapeError, "axes must be distinct"),
    (lambda: bits.reduce_precision(np.int32(1), 3, 3), DtypeError, "float dtype"),
    (lambda: bits.reduce_precision(X, 0, 3), ShapeError, "exponent_bits must be at least 1"),
    (lambda: red.reduce(X, X, add, (0,)), DtypeError, "an initial value must be a scalar"),
    (lambda: red.reduce((X,), 0.0, add, (0,)), PytreeError, "one initial value for each"),
    (lambda: red.reduce(X, 0.0, lambda a, b: (a, b), (0,)), PytreeError, "must return a tree"),
    (lambda: red.reduce(X, 0.0, lambda a, b: a > b, (0,)), DtypeError, "got bool[]"),
    (lambda: red.reduce(X, 0.0, lambda a, b: add(a, weft.device_put(1.0)), (0,)),
     DtypeError, "must not use arrays from outside"),
])  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_a_tree_reduced_leaf_by_leaf_is_a_reduction_of_each():
    both = lambda a, b: {"sum": a["sum"] + b["sum"], "prod": a["prod"] * b["prod"]}
    start = {"sum": 1.0, "prod": 1.0}

    def f(x):
        return red.reduce({"sum": x, "prod": x + 1}, start, both, (1,), out_sharding=None)

    text = str(make_jaxpr(f)(X))
    assert "reduce_sum" in text and "reduce_prod" in text and " reduce[" not in text
    np.testing.assert_allclose(f(X)["sum"], X.sum(1) + 1)
    np.testing.assert_allclose(vmap(f)(X[None])["prod"][0], (X + 1).prod(1))
    np.testing.assert_allclose(grad(lambda x: f(x)["sum"].sum() * 2)(X), 2 * np.ones_like(X))


def test_a_tree_whose_leaves_depend_on_each_other():
    # Compose the maps y -> a y + b; the operands are their coefficients.
    compose = lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1])
    run = lambda a, b: red.reduce((a, b), (1.0, 0.0), compose, (0,))[1]
    a, b = np.array([0.5, 2.0, -1.5], np.float32), np.array([1.0, -2.0, 0.5], np.float32)
    loop = lambda a, b: (b[0] * a[1] + b[1]) * a[2] + b[2]
    for transform in (grad, lambda f, k: jit(grad(f, k)), weft.hessian):
        got, want = transform(run, (0, 1))(a, b), transform(loop, (0, 1))(a, b)
        weft.tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5), got, want
        )


def test_what_reduce_refuses_of_trees():
    with pytest.raises(PytreeError, match="reduce: there must be at least one operand; got"):
        red.reduce((), (), lambda a, b: (), (0,))
    pair = lambda a, b: (a[0] + b[0], a[1] + b[1])
    with pytest.raises(
        ShapeError, match=r"operands must have equal shapes; got f32\[3\], f32\[2\]"
    ):
        red.reduce((X[0], X[:, 0]), (0.0, 0.0), pair, (0,))


REDUCERS = {
    "reduce_sum": (np.sum, np.float32),
    "reduce_max": (np.max, np.float32),
    "reduce_min": (np.min, np.int16),
    "reduce_prod": (np.prod, np.float32),
    "reduce_and": (np.bitwise_and.reduce, np.int32),
    "reduce_or": (np.bitwise_or.reduce, np.bool_),
    "reduce_xor": (np.bitwise_xor.reduce, np.uint8),
}


@pytest.mark.parametrize("name", REDUCERS)
def test_axes_in_any_order(name):
    """Programs have them in order, whether the function, `reduce` or the primitive is told them."""
    reference, dtype = REDUCERS[name]
    x = np.random.default_rng(0).normal(1, 0.02, size=(30, 40, 30)).astype(dtype)
    fun, prim = getattr(lax, name), getattr(lax, f"{name}_p")
    orders = [(2, 1), [1, 0], (2, 0), np.array([2, 0, 1]), (1,)]
    monoid = next(m for m in red.MONOIDS if m.reduction is prim)
    combine, start = monoid.combine.bind, np.dtype(dtype).type(monoid.identity(np.dtype(dtype)))
    ways = [
        fun,
        lambda x, axes: prim.bind(x, axes=axes),
        lambda x, axes: lax.reduce(x, start, combine, axes),
        lambda x, axes: lax.reduce(x, start, lambda a, b: combine(combine(a, start), b), axes),
    ]
    for way in ways:
        jaxpr = make_jaxpr(lambda x, w=way: w(x, (2, 0)))(x)
        assert "(2, 0)" not in str(jaxpr) and "(0, 2)" in str(jaxpr)
        for found, axes in zip(jit(lambda x, w=way: [w(x, a) for a in orders])(x), orders):
            want = reference(x.astype(float) if dtype is np.float32 else x, axis=tuple(axes))
            np.testing.assert_allclose(found, want, rtol=1e-3)


def test_rules_are_given_axes_in_order():
    for prim, params in [(lax.reduce_sum_p, {}), (lax.reduce_max_p, {}), (lax.reduce_and_p, {})]:
        with pytest.raises(ShapeError, match=r"axes must be in ascending order; got \(1, 0\)"):
            prim.apply(X.astype(int), axes=(1, 0), **params)
    for fun in (lax.reduce_sum, lax.reduce_max, lax.reduce_prod):
        with pytest.raises(ShapeError, match=r"must be distinct and name axes .* got \(-1,\)"):
            fun(X, (-1,))
