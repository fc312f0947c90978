"""Edges of the elementwise families: values and derivatives there, as JAX 0.10.2 gives them.

The golden file is made by tools/make_elementwise.py. Where weft differs on purpose, BETTER
says so. What the rows of cases_elementwise.py cover is not repeated.
"""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import weft
from weft import lax
from weft.errors import DtypeError, MissingRule, ShapeError
from weft.options import config
from weft.primitives import bits, elementwise, families, layout, transcendental
from weft.primitives.special import functions as special

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "elementwise.json").read_text())
ROWS = [
    (dtype, name) for dtype, rows in GOLDEN.items() for name in rows if not name.startswith("oper")
]
# (name, which derivative or -1 for the value): where JAX gives something else, and why.
BETTER = {
    # -z/y, in place of -x * y**-2, which underflows
    ("div", 1): lambda x, y: (np.isinf(x) & (np.abs(y) == np.float32(1e30))) | (y == 0),
    # JAX's has the other sign to the left of the branch cut, and a value where acosh is NaN
    ("acosh", 0): lambda x: np.signbit(x.real),
    # on the side of the branch cut of a real part -0, as the C library and NumPy have it
    ("asinh", -1): lambda x: (x.real == 0) & np.signbit(x.real),
    # -inf at 0 and inf at -0, as SciPy has it
    ("digamma", -1): lambda x: x == 0,
    ("lgamma", 0): lambda x: x == 0,
    ("digamma", 0): lambda x: x == np.inf,  # 0 in the limit
    ("bessel_i1e", 0): lambda x: np.isnan(x),  # NaN, not 1/2
    # 0 at infinity, where JAX's is infinity over infinity
    ("atan2", 0): lambda x, y: np.isinf(x) ^ np.isinf(y),
    ("atan2", 1): lambda x, y: np.isinf(x) ^ np.isinf(y),
    ("pow", 0): lambda x, y: (x == 0) & (y == 0),  # x**0 is 1 wherever x is
    ("pow", 1): lambda x, y: (x == 0) & (y == 0),  # 0, as in y > 0; not continuous there
}


def function(name):
    for module in (elementwise, transcendental, bits, special):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(name)


def array(numbers, dtype):
    if dtype.startswith("complex"):
        return np.array([complex(*pair) for pair in numbers], dtype)
    return np.array(numbers, dtype)


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize(("dtype", "name"), ROWS, ids=lambda x: x)
def test_edges(dtype, name):
    rows = GOLDEN[dtype]
    value, *derivatives = rows[name]
    arity = next(n for n in (1, 2) if len(rows.get(f"operands of {n}", [[]])[0]) == len(value))
    xs = [array(x, dtype) for x in rows[f"operands of {arity}"]]
    fun = function(name)
    compare(fun(*xs), value, xs, (name, -1))
    for k, want in enumerate(derivatives):
        ts = [np.full_like(x, float(i == k)) for i, x in enumerate(xs)]
        compare(weft.jvp(fun, tuple(xs), tuple(ts))[1], want, xs, (name, k))


def compare(got, want, xs, key):
    got = np.asarray(got)
    want = array(want, got.dtype.name)
    same = np.isclose(got, want, rtol=2e-5, atol=1e-6, equal_nan=True)
    same |= BETTER.get(key, lambda *xs: np.zeros(got.shape, bool))(*xs)
    bad = [(*(x[i] for x in xs), got[i], want[i]) for i in np.flatnonzero(~same)]
    assert not bad, f"{key}: (operands, got, JAX) {bad[:12]}"


ONES = np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("fun", "error", "text"),
    [
        (
            lambda: elementwise.add(ONES, np.ones(2, np.float32)),
            ShapeError,
            r"add: operands must have equal shapes; got f32\[3\], f32\[2\]\.",
        ),
        (
            lambda: elementwise.add(ONES, np.ones(3, np.int32)),
            DtypeError,
            r"add: operands must have equal dtypes; got f32\[3\], i32\[3\]\.",
        ),
        (
            lambda: transcendental.sin(np.ones(3, np.int32)),
            DtypeError,
            r"sin: operands must be of inexact dtype; got i32\[3\]\.",
        ),
        (
            lambda: transcendental.integer_pow(np.ones(3, np.int32), -1),
            DtypeError,
            r"integer_pow: a negative power needs a float or complex base; got i32\[3\], power -1",
        ),
        (
            lambda: transcendental.pow(np.ones(3, np.int32), np.ones(3, np.int32)),
            DtypeError,
            r"pow: the base must be of inexact dtype; got i32\[3\], i32\[3\]\. Hint: lax\.integer",
        ),
        (
            lambda: elementwise.add(np.ones(3, np.int32), 2.5),
            DtypeError,
            r"literal: a number must be of the dtype's kind; got 2\.5 for int32\.",
        ),
        (
            lambda: elementwise.add(np.ones(3, np.uint8), 300),
            OverflowError,
            r"literal: uint8 must hold the number; got 300, outside \[0, 255\]\.",
        ),
        (
            lambda: elementwise.select_n(ONES > 0, ONES, ONES, ONES),
            DtypeError,
            r"select_n: a bool `which` chooses between two cases; got 3\.",
        ),
        (
            lambda: layout.full((2,), ONES),
            ShapeError,
            r"full: the fill value must be a scalar; got f32\[3\]\.",
        ),
        (
            lambda: layout.full((-1,), 1.0),
            ShapeError,
            r"broadcast_in_dim: sizes must not be negative; got shape \(-1,\)\.",
        ),
        (lambda: layout.iota(bool, 3), DtypeError, r"iota: needs a numeric dtype; got bool\."),
        (
            lambda: families.broadcast_shapes((2, 3), (4,)),
            ShapeError,
            r"broadcast_shapes: sizes of each axis must be equal or 1, counted from the last; "
            r"got \(2, 3\), \(4,\)\.",
        ),
        (
            lambda: bits.bitcast_convert_type(ONES, bool),
            DtypeError,
            r"bitcast_convert_type: bool and complex stay as they are; got f32\[3\] to bool\.",
        ),
        (
            lambda: weft.grad(lambda x: bits.nextafter(x, 2.0))(1.0),
            MissingRule,
            r"nextafter: must not be differentiated in x1; got a tangent for it\. Hint: lax\.stop",
        ),
        (
            lambda: transcendental.Tolerance(),
            ValueError,
            r"Tolerance: one bound must be positive and none negative; got atol 0\.0",
        ),
    ],
)
def test_errors(fun, error, text):
    with pytest.raises(error, match=text):
        fun()


def test_literals_have_the_type_asked_for():
    f32, f16 = np.dtype(np.float32), np.dtype(np.float16)
    assert type(layout.literal(1, f32)) is float
    assert type(layout.literal(1.5, f16)) is np.float16
    assert type(layout.literal(1, np.dtype(ml_dtypes.bfloat16))) is ml_dtypes.bfloat16
    assert type(layout.literal(1, np.dtype(np.uint8))) is np.uint8
    with config.scope(enable_x64=True):
        assert type(layout.literal(1, f32)) is np.float32
        assert type(layout.literal(1, np.dtype(np.float64))) is float


def test_numbers_take_the_other_operand_s_dtype():
    x = np.ones(3, np.float16)
    assert elementwise.add(x, 2).dtype == np.float16
    assert elementwise.mul(2.5, x).dtype == np.float16
    assert elementwise.clamp(0, x, 1).dtype == np.float16
    assert elementwise.eq(1.0, 1)


def test_the_total_order_of_floats():
    x = np.array([-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    assert np.asarray(elementwise.lt_to_p.apply(x[:-1], x[1:])[0]).all()
    assert np.asarray(elementwise.le_to_p.apply(x[:-1], x[1:])[0]).all()
    assert np.asarray(elementwise.eq_to_p.apply(x, x)[0]).all()


def test_functions_spread_axes_of_size_one():
    x, y = np.ones((2, 1), np.float32), np.arange(3, dtype=np.float32)[None]
    for fun, want in ((lax.add, x + y), (lax.mul, x * y), (lax.pow, x**y), (lax.lt, x < y)):
        assert np.array_equal(fun(x, y), want)
    assert weft.grad(lambda x: lax.mul(x, y).sum())(weft.numpy.asarray(x)).tolist() == [[3], [3]]
    assert weft.vmap(lax.max)(x[None], y[None]).shape == (1, 2, 3)
    for a, b in ((x, y[0]), (y, np.ones((1, 2), np.float32))):
        with pytest.raises(ShapeError, match="add: operands must have equal shapes"):
            lax.add(a, b)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: elementwise.select_n_p.apply(x > 0), ShapeError, "at least one case; got none"),
        (lambda x: lax.select_n(x > 0, x, x, x), DtypeError, "chooses between two cases; got 3"),
        (lambda x: lax.select_n(x, x, x), DtypeError, r"must be bool or of integers; got f32\[3\]"),
        (
            lambda x: lax.select_n(x[:2] > 0, x, x),
            ShapeError,
            r"must have equal shapes; got bool\[2\]",
        ),
        (lambda x: lax.select_n(x > 0, x, x > 0), DtypeError, "cases must have equal dtypes; got"),
        (
            lambda x: lax.conj(x.astype(np.float16)),
            DtypeError,
            "must be complex, or float32 or floa",
        ),
        (
            lambda x: weft.linear_transpose(lax.sin, x)(x),
            MissingRule,
            "sin: has no `transpose` rule",
        ),
        (
            lambda x: weft.linear_transpose(lambda x: x * x, x)(x),
            TypeError,
            "mul: must be linear in",
        ),
        (
            lambda x: weft.linear_transpose(lambda y: x / y, x)(x),
            TypeError,
            "div: must be linear in",
        ),
    ],
)
def test_operands_that_do_not_fit(call, error, text):
    with pytest.raises(error, match=text):
        call(lax.full((3,), 1.0))


def test_one_case_is_chosen_whatever_the_choice():
    x = lax.full((2, 3), 1.5)
    which = lax.full((2, 3), 0)
    for run in (elementwise.select_n_p.apply, weft.jit(elementwise.select_n_p.apply)):
        np.testing.assert_array_equal(run(which, x)[0], x)


def test_integer_constants_divided_by_zero_while_xla_folds_them():
    """XLA would compute them as it compiles, and end the process."""
    x, y = np.int32([7, -7, 5]), np.int32([0, 0, 2])
    for kind in (np.int32, np.uint8):
        a, b = (v.astype(kind) for v in (x, y))
        found = weft.jit(lambda a=a, b=b: (elementwise.div(a, b), elementwise.rem(a, b)))()
        every = kind(-1) if kind is np.int32 else kind(255)
        assert found[0].tolist() == [every, every, 2]
        assert found[1].tolist() == [a[0], a[1], 1]


FAR = np.float32([-80, -50, -20, -17, -10, -1, -1e-3, 0, 1e-3, 1, 10, 17, 20, 50, 80])
TINY, HUGE = np.float32(1e-25), np.float32(1e25)
# function -> its derivative in float64, where the plain formula would cancel or overflow
SLOPES = {
    "expm1": (lax.expm1, np.exp),
    "logistic": (lax.logistic, lambda x: 1 / (2 + np.exp(x) + np.exp(-x))),
    "tanh": (lambda x: lax.tanh(x / 2), lambda x: 0.5 / np.cosh(x / 2) ** 2),
    "elu": (weft.nn.elu, lambda x: np.exp(np.minimum(x, 0))),
    "silu": (weft.nn.silu, lambda x: (1 + np.exp(-x) * (1 + x)) / (1 + np.exp(-x)) ** 2),
    "atan2": (lambda x: lax.atan2(x * TINY, TINY), lambda x: 1 / (1 + x * x)),
    "atan2 of x": (lambda x: lax.atan2(HUGE, x * HUGE), lambda x: -1 / (1 + x * x)),
}


def test_derivatives_that_float32_holds_do_not_vanish():
    """Forward, in reverse, and the second ones, against formulas in float64."""
    slopes = weft.jit(
        lambda x: {
            name: [
                weft.vmap(weft.grad(fun))(x),
                weft.vmap(weft.jacfwd(fun))(x),
                weft.vmap(weft.grad(weft.grad(fun)))(x),
            ]
            for name, (fun, _) in SLOPES.items()
        }
    )(FAR)
    for name, (reverse, forward, second) in slopes.items():
        slope, x = SLOPES[name][1], FAR.astype(np.float64)
        np.testing.assert_allclose(reverse, slope(x), rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(forward, slope(x), rtol=1e-5, err_msg=name)
        if name not in ("elu", "silu", "atan2", "atan2 of x"):
            h = 1e-4
            want = (slope(x + h) - slope(x - h)) / (2 * h)
            np.testing.assert_allclose(second, want, rtol=1e-4, atol=1e-9, err_msg=name)
    assert weft.grad(lax.atan2)(TINY, TINY) == np.float32(0.5 / np.float64(TINY))
