"""Windows: padding types, shapes, functions, errors. Rows: cases_window.py."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from weft import grad, make_jaxpr, vmap
from weft.errors import DtypeError, MissingRule, ShapeError
from weft.primitives import window as win
from weft.primitives.elementwise import add, ge, ge_p, max, min, mul
from weft.primitives.layout import reduce_sum

X = np.arange(16, dtype=np.float32).reshape(4, 4)


def test_padding_types():
    pads = lambda p: win.padtype_to_pads((10, 11), (3, 4), (2, 2), p)
    assert pads("SAME") == [(0, 1), (1, 2)]
    assert pads("same_lower") == [(1, 0), (2, 1)]
    assert pads("VALID") == [(0, 0), (0, 0)]
    assert pads([(1, 1), (0, -2)]) == [(1, 1), (0, -2)]
    assert win.reduce_window_shape_tuple((10, 11), (3, 4), (2, 2), [(1, 1), (0, 2)]) == (5, 5)
    assert win.reduce_window_shape_tuple((2, 0), (3, 1), None, [(0, 0), (0, 0)]) == (0, 0)


def test_functions_are_recognized():
    names = {add: ("sum", 0.0), max: ("max", -np.inf), min: ("min", np.inf)}
    for fun, (name, start) in names.items():
        text = str(make_jaxpr(lambda x: win.reduce_window(x, start, fun, (2, 2)))(X))  # noqa: B023
        assert f"reduce_window_{name}[" in text
    text = str(make_jaxpr(lambda x: win.reduce_window(x, 1.0, add, (2, 2)))(X))
    assert "jaxpr=" in text


def test_dilations_and_padding():
    got = win.reduce_window(X, 0.0, add, (2, 2), (1, 1), "SAME", (2, 2), (2, 2))
    want = [[10, 14, 18], [26, 30, 34], [42, 46, 50]]
    np.testing.assert_array_equal(got[1::2, 1::2], want)
    assert got.shape == (7, 7)
    assert float(np.asarray(got)[::2].sum()) == 0
    got = win.reduce_window(X, -np.inf, max, (2, 2), (2, 2), "VALID")
    np.testing.assert_array_equal(got, [[5, 7], [13, 15]])


def test_pooling_gives_the_first_of_equals_the_derivative():
    ones = np.ones((1, 6), np.float32)
    pull = grad(lambda x: reduce_sum(win.reduce_window_max(x, (1, 3), (1, 3)), (0, 1)))
    np.testing.assert_array_equal(pull(ones), [[1, 0, 0, 1, 0, 0]])


def test_scatter_by_functions():
    source = np.array([[1, 2], [3, 4]], np.float32)
    scatter = lambda x, s: win.select_and_scatter(x, ge, (2, 2), (2, 2), "VALID", s, 0.0, add)
    got = np.asarray(scatter(X, source))
    np.testing.assert_array_equal(got[1::2, 1::2], source)
    assert got.sum() == source.sum()
    stacked = np.stack([X, -X])
    got = np.asarray(vmap(scatter, (0, None))(stacked, source))
    np.testing.assert_array_equal(got[0, 1::2, 1::2], source)
    np.testing.assert_array_equal(got[1, ::2, ::2], source)
    with pytest.raises(MissingRule, match="jvp"):
        grad(lambda s: reduce_sum(scatter(X, s), (0, 1)))(source)


def test_mapped_start():
    both = lambda a, b: add(add(a, b), mul(a, b))
    starts = np.zeros(3, np.float32)
    out = vmap(lambda i: win.reduce_window(X[0], i, both, (2,), None, "SAME"))(starts)
    np.testing.assert_allclose(out, np.tile([1, 5, 11, 3], (3, 1)))


@pytest.mark.parametrize("call, error, text", [
    (lambda: win.reduce_window_sum(X, (2,)), ShapeError, "window_dimensions must have one entry"),
    (lambda: win.reduce_window_max(X, (2, 0)), ShapeError, "window_dimensions must be positive"),
    (lambda: win.reduce_window_max(X, (2, 2), (0, 1)), ShapeError, "window_strides must be"),
    (lambda: win.reduce_window_max(X, (2, 2), None, "FULL"), ShapeError, "got 'FULL'"),
    (lambda: win.reduce_window_sum(X > 1, (2, 2)), DtypeError, "needs an operand of number dtype"),
    (lambda: win.reduce_window((X, X[0]), (0.0, 0.0), lambda a, b: a, (2, 2)), ShapeError,
     "operands must have equal shapes; got f32[4,4], f32[4]"),
    (lambda: win.select_and_scatter_add(X, X, ge_p, (2, 2), (2, 2), "VALID"), ShapeError,
     "needs an array of shape (2, 2) beside the operand f32[4,4]"),
    (lambda: win.select_and_scatter(X, add, (2, 2), (2, 2), "VALID", X[:2, :2], 0.0, add),
     DtypeError, "select must compare two scalars"),
])  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_padding_that_keeps_sizes():
    """(low, high) of every small size, window and stride: half on either side, the rest after."""
    for n, window, stride in itertools.product(range(1, 9), range(1, 7), range(1, 5)):
        total = max((-(-n // stride) - 1) * stride + window - n, 0)
        for kind, low in (
            ("SAME", total // 2),
            ("SAME_LOWER", -(-total // 2)),
            ("same", total // 2),
        ):
            want = [(low, total - low)]
            assert win.padtype_to_pads((n,), (window,), (stride,), kind) == want
        assert win.padtype_to_pads((n,), (window,), (stride,), "VALID") == [(0, 0)]
