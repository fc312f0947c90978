"""Functions of primitives/indexing.py: modes, fill values, ties and overlaps, programs, errors.

Values and rules: the rows of cases_indexing.py.
"""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import weft
from weft.core.aval import ShapedArray
from weft.core.primitive import Axis, Linear, Zero
from weft.core.stage import stage
from weft.errors import DtypeError, MissingRule, ShapeError
from weft.primitives import dynamic_slicing as ds
from weft.primitives import indexing
from weft.primitives.elementwise import mul, square
from weft.primitives.indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    scatter,
)
from weft.primitives.layout import reshape
from weft.primitives.scatter_apply import _APPLIED, scatter_apply
from weft.transforms.batch import batch
from weft.transforms.jvp import jvp
from weft.transforms.linearize import linearize
from weft.transforms.transpose import backward

X = np.arange(12, dtype=np.float32).reshape(3, 4)
ROWS = GatherDimensionNumbers((1,), (0,), (0,))
TO_ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
OUT = np.array([[1], [3], [-1]], np.int32)
TWICE = np.array([[1], [1]], np.int32)
U = np.ones((2, 4), np.float32)
FAMILY = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]


@pytest.mark.parametrize(
    "fill, dtype",
    [(-0.0, np.float32), (0.0, np.float32), (np.nan, np.float16), (2 - 1j, np.complex64),
     (2**63 - 1, np.int64), (True, bool), (7, np.uint8)],
)  # fmt: skip
def test_each_fill_value_is_what_it_was(fill, dtype):
    with weft.enable_x64(True):
        x = np.ones((3, 1), dtype)
        f = weft.jit(lambda x: gather(x, OUT, ROWS, (1, 1), mode="fill", fill_value=fill))
        want = np.array([[1], [fill], [fill]], dtype)
        assert np.asarray(f(x)).tobytes() == want.tobytes()


def rows(x, i, **more):
    return gather(x, i, ROWS, (1, 4), **more)


def grads(fun, *xs):
    """The gradient of the sum of a function in each argument."""
    outs, jaxpr, residuals, _ = linearize(lambda *xs: [fun(*xs)], xs)
    ct = np.ones(outs[0].shape, outs[0].dtype)
    return backward(jaxpr, residuals, [Linear(v.aval) for v in jaxpr.invars], [ct])


def test_modes_from_names():
    of = GatherScatterMode.from_any
    assert of("clip") is of(GatherScatterMode.CLIP) is GatherScatterMode.CLIP
    assert of("fill") is of("drop") is of(None) is GatherScatterMode.FILL_OR_DROP
    assert of("promise_in_bounds") is GatherScatterMode.PROMISE_IN_BOUNDS
    assert of("one_hot") is GatherScatterMode.ONE_HOT
    with pytest.raises(ValueError, match="mode: must be 'clip', .*; got 'wrap'"):
        of("wrap")
    with pytest.raises(ValueError, match="got 2"):
        of(2)


def test_gather_out_of_bounds():
    np.testing.assert_array_equal(rows(X, OUT, mode="clip"), X[[1, 2, 0]])
    want = np.stack([X[1], np.full(4, np.nan), np.full(4, np.nan)])
    np.testing.assert_array_equal(rows(X, OUT, mode="fill"), want)
    np.testing.assert_array_equal(rows(X, OUT, mode="one_hot"), np.nan_to_num(want))


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        (np.int8, -128),
        (np.uint8, 255),
        (np.int32, -(2**31)),
        (np.bool_, True),
        (np.complex64, complex(np.nan, 0)),
        (ml_dtypes.bfloat16, np.nan),
    ],
)
def test_default_fill_value(dtype, fill):
    out = rows(np.zeros((3, 4), dtype), OUT, mode="fill")
    got, want = np.asarray(out)[1].astype(complex), np.full(4, fill, dtype).astype(complex)
    np.testing.assert_array_equal(got, want)


def test_fill_values_are_kept_apart():
    def filled(value):
        return np.asarray(rows(X, OUT, mode="fill", fill_value=value))[1, 0]

    assert [np.signbit(filled(v)) for v in (0.0, -0.0, 0.0)] == [False, True, False]
    assert [filled(v) for v in (np.float32(2.5), 7, True)] == [2.5, 7, 1]


def test_gather_of_an_empty_axis_fills():
    empty = np.zeros((0, 4), np.float32)
    out = gather(empty, OUT, ROWS, (0, 4), mode="fill", fill_value=2)
    assert np.asarray(out).tolist() == [[2] * 4] * 3


def test_the_fill_value_has_no_tangent():
    (out,), (dot,) = jvp(lambda x: [rows(x, OUT, mode="fill", fill_value=5)], [X], [X])
    assert np.asarray(out)[1, 0] == 5
    assert np.asarray(dot)[1, 0] == 0


def test_index_take_wraps():
    at = np.array([0, -1, 4]), np.array([1, 2, -1])
    np.testing.assert_array_equal(indexing.index_take(X, at, (0, 1)), X[at[0] % 3, at[1] % 4])
    np.testing.assert_array_equal(indexing.index_take(X, at[:1], (1,)), X.T[at[0] % 4])


@pytest.mark.parametrize("name", FAMILY)
def test_one_window_is_dropped_or_moved(name):
    fun = getattr(indexing, name)
    outside = np.array([[3]], np.int32)
    np.testing.assert_array_equal(fun(X, outside, U[:1], TO_ROWS), X)
    np.testing.assert_array_equal(fun(X, outside, U[:1], TO_ROWS, mode="drop"), X)
    moved, inside = [fun(X, outside - k, U[:1], TO_ROWS, mode="clip") for k in (0, 1)]
    np.testing.assert_array_equal(moved, inside)


def test_a_number_as_updates():
    dims = ScatterDimensionNumbers((), (0,), (0,))
    assert np.asarray(scatter(X[0], TWICE[0], 9, dims)).tolist() == [0, 9, 2, 3]


def test_scatter_apply():
    fun = scatter_apply
    want = X.copy()
    want[1] *= 4
    out = fun(X, TWICE, lambda z: mul(z, 2.0), TO_ROWS, update_shape=(2, 4))
    np.testing.assert_array_equal(out, want)
    one = ScatterDimensionNumbers((0, 1), (), (0, 1))
    out = fun(X, np.zeros(2, np.int32), square, one, update_shape=(3, 4))
    np.testing.assert_allclose(out, X**2, rtol=1e-6)
    scale = reshape(
        gather(X, OUT[:1], ROWS._replace(offset_dims=(), collapsed_slice_dims=(0, 1)), (1, 1)), ()
    )
    with pytest.raises(DtypeError, match="scatter_apply: func must map a scalar .* over 1 arrays"):
        fun(X, TWICE, lambda z: mul(z, scale), TO_ROWS, update_shape=(2, 4))
    with pytest.raises(MissingRule, match="scatter: has no `jvp` rule"):
        jvp(lambda x: [fun(x, TWICE, square, TO_ROWS, update_shape=(2, 4))], [X], [X])


def test_equal_functions_applied_share_a_program():
    before = len(_APPLIED)
    for _ in range(3):
        scatter_apply(X, TWICE, lambda z: mul(z, 3.5), TO_ROWS, update_shape=(2, 4))
    assert len(_APPLIED) == before + 1


def test_overlapping_updates_share_no_gradient():
    x_grad, update_grad = grads(lambda x, u: scatter(x, TWICE, u, TO_ROWS), X, U)
    assert np.asarray(x_grad).sum(1).tolist() == [4, 0, 4]
    assert sorted(np.asarray(update_grad).sum(1).tolist()) == [0, 4]
    written = np.stack([U[0], 2 * U[0]])
    (out,), _ = jvp(lambda u: [scatter(X, TWICE, u, TO_ROWS)], [written], [U])
    winner = int(np.argmax(np.asarray(update_grad).sum(1)))
    np.testing.assert_array_equal(np.asarray(out)[1], written[winner])


def test_dropped_updates_have_no_gradient():
    x_grad, update_grad = grads(lambda x, u: scatter(x, OUT, u, TO_ROWS), X, np.ones((3, 4), "f"))
    assert np.asarray(x_grad).sum(1).tolist() == [4, 0, 4]
    assert np.asarray(update_grad).sum(1).tolist() == [4, 0, 0]


def test_ties_share_the_gradient():
    x = np.ones((3, 4), np.float32)
    x_grad, update_grad = grads(lambda x, u: indexing.scatter_max(x, TWICE, u, TO_ROWS), x, U)
    np.testing.assert_allclose(x_grad, [[1] * 4, [1 / 3] * 4, [1] * 4], rtol=1e-6)
    np.testing.assert_allclose(update_grad, np.full((2, 4), 1 / 3), rtol=1e-6)
    x[1] = np.nan
    x_grad, update_grad = grads(lambda x, u: indexing.scatter_min(x, TWICE, u, TO_ROWS), x, U)
    assert np.isfinite(x_grad).all()
    assert np.isfinite(update_grad).all()
    _, (dot,) = jvp(lambda x, u: [indexing.scatter_min(x, TWICE, u, TO_ROWS)], [x, U], [X, U])
    assert np.isfinite(dot).all()


def test_scatter_mul_at_zero():
    x = np.zeros((3, 4), np.float32)
    one = TWICE[:1]
    x_grad, update_grad = grads(lambda x, u: indexing.scatter_mul(x, one, u, TO_ROWS), x, 0 * U[:1])
    assert np.asarray(x_grad).sum(1).tolist() == [4, 0, 4]
    assert not np.asarray(update_grad).any()
    with pytest.raises(MissingRule, match="needs unique indices; .* Hint: unique_indices=True"):
        grads(lambda u: indexing.scatter_mul(X, TWICE, u, TO_ROWS), U)


def test_still_operands_have_zero_tangents():
    still = [Zero(ShapedArray(a.shape, a.dtype)) for a in (X, U)]
    for name in FAMILY:
        _, (dot,) = jvp(
            lambda x, u, n=name: [getattr(indexing, n)(x, TWICE, u, TO_ROWS)], [X, U], still
        )
        assert type(dot) is Zero


def program(fun, *xs):
    return str(stage(lambda *xs: [fun(*xs)], [ShapedArray(x.shape, x.dtype) for x in xs])[0])


def test_programs_are_those_of_the_field():
    text = program(lambda x, i: rows(x, i, mode="clip"), X, OUT)
    assert (
        "dimension_numbers=GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,),"
        in text
    )
    for line in ("fill_value=None", "indices_are_sorted=False", "mode=GatherScatterMode.CLIP",
                 "slice_sizes=(1, 4)", "unique_indices=False"):  # fmt: skip
        assert line in text
    assert "fill_value=nan" in program(lambda x, i: rows(x, i, mode="fill"), X, OUT)
    text = program(lambda x, i, u: indexing.scatter_add(x, i, u, TO_ROWS), X, TWICE, U)
    assert "scatter-add[" in text
    assert "add" in text.split("update_jaxpr=")[1]
    assert "update_jaxpr=None" in program(lambda x, i, u: scatter(x, i, u, TO_ROWS), X, TWICE, U)


def test_batched_dynamic_slices_are_gather_and_scatter():
    i = np.array([0, 1, 9], np.int32)
    xs = np.stack([X, X + 20, X + 40], 1)

    def both(x, u, i):
        return [ds.dynamic_slice(x, (i, 1), (2, 2)), ds.dynamic_update_slice(x, u, (i, 1))]

    u = np.zeros((2, 2), np.float32)
    for x, dim in ((X, None), (xs, 1)):
        (cut, put), dims = batch(both, [x, u, i], [dim, None, 0], Axis(3))
        assert dims == [0, 0]
        for k, start in enumerate((0, 1, 1)):
            one = x if dim is None else x[:, k]
            np.testing.assert_array_equal(np.asarray(cut)[k], one[start : start + 2, 1:3])
            want = one.copy()
            want[start : start + 2, 1:3] = 0
            np.testing.assert_array_equal(np.asarray(put)[k], want)


def test_batching_a_gather_keeps_the_mapped_axis_where_it_is():
    xs = np.stack([X, X + 20], 2)
    (out,), dims = batch(lambda x: [rows(x, OUT, mode="clip")], [xs], [2], Axis(2))
    assert dims == [2]
    np.testing.assert_array_equal(out, xs[[1, 2, 0]])


REVERSED = """
import numpy as np, weft
from weft.primitives import indexing
from weft.primitives.elementwise import square
from weft.primitives.layout import full, rev
from weft.primitives.scatter_apply import scatter_apply
x = np.array([1, 2], np.float32)
dims = indexing.ScatterDimensionNumbers((0,), (), ())  # no index at all: one window, at 0
for name in {names}:
    for mode in ("clip", "drop", "promise_in_bounds"):
        def fun(x):
            start = np.zeros(0, np.int32)
            if name == "scatter_apply":
                y = scatter_apply(x, start, square, dims, update_shape=(2,), mode=mode)
            else:
                u = full((2,), 0.5, np.dtype("f4"))
                y = getattr(indexing, name)(x, start, u, dims, mode=mode)
            return rev(y, (0,)), y
        back, y = weft.jit(fun)(x)
        assert np.asarray(back).tolist() == np.asarray(y).tolist()[::-1]
print("done")
"""


def test_reversing_a_scatter_that_covers_the_array():
    """XLA:CPU aborts the process on a reversed `map`, which it makes of such a scatter."""
    code = REVERSED.format(names=[*FAMILY, "scatter_apply"])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == "done\n", run.stderr[-500:]


def test_mapped_indices_keep_no_promise():
    """Sorted and unique in each of the mapped index arrays, they are not in all of them."""
    shapes = ShapedArray((3, 4), np.float32), ShapedArray((2, 3, 1), np.int32)

    def fun(x, i):
        promised = {"unique_indices": True, "indices_are_sorted": True, "mode": "clip"}
        return batch(lambda i: [rows(x, i, **promised)], [i], [0], Axis(2))[0]

    text = str(stage(fun, shapes)[0])
    assert "indices_are_sorted=False" in text
    assert "unique_indices=False" in text


ERRORS = [
    (lambda: rows(X, OUT.astype("f")), DtypeError, "gather: indices must be integers"),
    (lambda: gather(X, OUT, ROWS, (1,)), ShapeError, "slice_sizes must have a size for each axis"),
    (lambda: gather(X, OUT, ROWS, (1, 5)), ShapeError, r"at most that of x; got \(1, 5\)"),
    (lambda: gather(X, OUT, ROWS, (2, 4)), ShapeError, "slice_sizes must be 1 on collapsed"),
    (lambda: rows(X, OUT[:, 0]), ShapeError, "one entry for each of start_index_map"),
    (lambda: gather(X, OUT, GatherDimensionNumbers((0, 1), (0,), (0,)), (1, 4)), ShapeError,
     "gather: dimension_numbers must name distinct axes"),
    (lambda: gather(X, OUT, GatherDimensionNumbers((), (1, 0), (0,)), (1, 1)), ShapeError,
     "in ascending order"),
    (lambda: gather(X, OUT[:2], GatherDimensionNumbers((), (1,), (1,), (0,), (0,)), (1, 1)),
     ShapeError, "batching axes of x and of the indices must have equal sizes"),
    (lambda: scatter(X, TWICE, U[:1], TO_ROWS), ShapeError, "updates must have the shape of"),
    (lambda: scatter(X, TWICE, np.ones((2, 5), "f"), TO_ROWS), ShapeError, "windows that fit"),
    (lambda: scatter(X, TWICE, U.astype(int), TO_ROWS), DtypeError, "scatter: operands must have"),
    (lambda: indexing.scatter_add(X > 0, TWICE, U > 0, TO_ROWS), DtypeError, "add: operands must"),
    (lambda: scatter(X, TWICE, U, TO_ROWS, mode="wrap"), ValueError, "mode: must be"),
    (lambda: scatter(X, TWICE, X[0, 0], TO_ROWS), ShapeError, "scatter: updates must have"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_the_derivative_of_reading_at_bytes(as_for_users):
    """An array longer than its indices' dtype can count; those below 0 write nothing."""
    at = np.array([[-3], [5], [127], [100], [-1]], np.int8)
    dims = GatherDimensionNumbers((), (0,), (0,))
    mode = GatherScatterMode.FILL_OR_DROP
    read = lambda x: gather(x, at, dims, (1,), mode=mode, fill_value=0)
    pull = lambda x, ct: weft.vjp(read, x)[1](ct)[0]
    ct = np.arange(1, 6, dtype=np.float32)
    got = weft.jit(pull, compiler_options=as_for_users)(np.zeros(300, np.float32), ct)
    want = np.zeros(300)
    want[[5, 127, 100]] = 2, 3, 4
    np.testing.assert_array_equal(got, want)
