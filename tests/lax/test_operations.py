"""Eager calls of lax's functions: they run few functions of Python; results are unchanged."""

import pickle
import sys
import weakref

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.errors import DeletedError, DtypeError, ShapeError
from weft.run.hot import HOT

X = np.arange(8, dtype=np.float32).reshape(2, 4)
I = np.int32(1)  # noqa: E741
DIMS = lax.GatherDimensionNumbers((1,), (0,), (0,))
DROP = lax.ScatterDimensionNumbers((1,), (0,), (0,))
CASES = {
    "transpose": ((X, (1, 0)), X.T),
    "slice_in_dim": ((X, 1, 3, 1, 1), X[:, 1:3]),
    "expand_dims": ((X, (0, 3)), X[None, ..., None]),
    "broadcast_in_dim": ((X, (2, 3, 4), (0, 2)), np.broadcast_to(X[:, None], (2, 3, 4))),
    "reduce_sum": ((X, (1,)), X.sum(1)),
    "convert_element_type": ((X, np.int32), X.astype(np.int32)),
    "iota": ((np.int32, 5), np.arange(5, dtype=np.int32)),
    "dot_general": ((X, X, (((1,), (1,)), ((), ()))), X @ X.T),
    "gather": ((X, np.array([[1]]), DIMS, (1, 4)), X[[1]]),
    "scatter_add": ((X, np.array([[1]]), X[:1], DROP), X + [[0, 0, 0, 0], [0, 1, 2, 3]]),
    "dynamic_slice": ((X, (0, 1), (2, 2)), X[:, 1:3]),
    "dynamic_slice_in_dim": ((X, I, 1), X[1:2]),
    "dynamic_index_in_dim": ((X, -1, 1, False), X[:, 3]),
    "dynamic_update_slice": ((X, X[:1], (1, 0)), X[[0, 0]]),
    "dynamic_update_index_in_dim": ((X, X[0], I, 0), X[[0, 0]]),
}


def as_arrays(args):
    return [jnp.asarray(x) if isinstance(x, np.ndarray | np.integer) else x for x in args]


@pytest.mark.parametrize("name", CASES)
def test_later_calls_run_few_functions(name):
    given, expected = CASES[name]
    fun, args, seen = getattr(lax, name), as_arrays(given), []
    first, *_, second = [fun(*args) for _ in range(HOT + 2)]  # numbers are kept by then
    sys.setprofile(lambda frame, event, _: event == "call" and seen.append(frame.f_code.co_name))
    third = fun(*args)
    sys.setprofile(None)
    assert len(seen) <= 2, seen
    for out in (first, second, third):
        np.testing.assert_array_equal(out, expected)
        assert out.aval == first.aval


def test_options_and_types_have_plans_of_their_own():
    x = jnp.arange(3.0)
    for _ in range(3):
        assert lax.convert_element_type(x, "int64").dtype == np.int32
        with weft.enable_x64(True):
            assert lax.convert_element_type(x, "int64").dtype == np.int64
        assert lax.convert_element_type(x > 1, "int64").dtype == np.int32
        with weft.default_matmul_precision("highest"):
            assert lax.dot(x, x + 1) == 8
    assert all(lax.convert_element_type(x, "float32") is x for _ in range(3))


def test_what_changes_nothing_gives_the_array_itself():
    x, large = jnp.arange(3.0), jnp.ones(1 << 18)
    for _ in range(3):
        for y in (x, large):
            assert lax.stop_gradient(y) is lax.reshape(y, y.shape) is lax.transpose(y, [0]) is y
            assert lax.reshape(y, [1, y.size]).shape == (1, y.size)
    x.delete()
    for call in (
        lax.stop_gradient,
        lambda x: lax.reshape(x, (3,)),
        lambda x: lax.transpose(x, [0]),
    ):
        with pytest.raises(DeletedError):
            call(x)


def test_indices_whose_value_is_read_are_no_operands():
    x = jnp.arange(4)
    for i in (0, 1, 2, 1):
        np.testing.assert_array_equal(lax.slice_in_dim(x, jnp.asarray(i), i + 1), [i])
        np.testing.assert_array_equal(lax.index_in_dim(x, jnp.asarray(i), keepdims=False), i)


def test_operands_that_are_one_array():
    x, y = jnp.ones(3), jnp.arange(3.0)
    dot = lax.dot.__wrapped__
    for a, b in [(x, x), (x, y), (y, y), (y, x), (y, y)]:
        assert lax.dot(a, b) == dot(a, b)
        np.testing.assert_array_equal(lax.dot(lhs=a, rhs=b), dot(a, b))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, jnp.bfloat16, np.float16, bool])
def test_numbers_as_updates_take_the_dtype(dtype):
    x = jnp.ones((3,), dtype)
    for value in (0, 1, 0):
        out = lax.dynamic_update_index_in_dim(x, bool(value) if dtype is bool else value, 1, 0)
        assert out.aval == x.aval
        np.testing.assert_array_equal(out.astype(np.float32), [1, value, 1])


def test_lists_keywords_and_zeros():
    x = jnp.arange(4.0)
    for _ in range(2):
        np.testing.assert_array_equal(lax.dynamic_slice(x, [1], [2]), [1, 2])
        assert lax.reduce_sum(x, axes=[0]) == lax.reduce_sum(x, [0]) == 6
        np.testing.assert_array_equal(lax.rev(x, np.array([0])), [3, 2, 1, 0])
        np.testing.assert_array_equal(lax.pad(x, 0.0, [(1, 0, 0)]), [0, 0, 1, 2, 3])
        np.testing.assert_array_equal(lax.pad(x, 0.0, [[0, 1, 0]]), [0, 1, 2, 3, 0])
        assert lax.broadcast(operand=x, sizes=[2]).shape == lax.broadcast(x, [2]).shape == (2, 4)
        for zero in (0.0, -0.0):
            out = lax.dynamic_update_index_in_dim(x, zero, 0, 0)
            assert np.signbit(out[0]) == np.signbit(zero)


def test_errors_are_those_of_the_call_as_it_is():
    x = jnp.arange(4.0)
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"dynamic_slice: there must be one index for each"):
            lax.dynamic_slice(x, [1, 2], [2])
        with pytest.raises(ShapeError, match=r"slice_sizes must have a size .* got \(5,\) for f32"):
            lax.dynamic_slice(x, (1,), (5,))
        with pytest.raises(DtypeError, match=r"dynamic_update_slice: operands must have equal"):
            lax.dynamic_update_slice(x, jnp.arange(2), (1,))
        with pytest.raises(TypeError, match=r"broadcast: sizes must be integers .* got \[1.5\]"):
            lax.broadcast(x, [1.5])
    with weft.config.scope(check_bounds="all"), pytest.raises(IndexError, match="must be in"):
        lax.dynamic_slice(x, (3,), (2,))
    with weft.config.scope(check_bounds="all"), pytest.raises(IndexError, match="must be in"):
        lax.gather(x, jnp.array([[9]]), lax.GatherDimensionNumbers((), (0,), (0,)), (1,))


def test_pickled_by_name():
    assert pickle.loads(pickle.dumps(lax.transpose)) is lax.transpose


@pytest.mark.parametrize("dtype", [np.int32, "int32", int, jnp.bfloat16, bool, "complex64"])
def test_casts_and_copies(dtype):
    x, weak = jnp.arange(3.0), jnp.asarray(1.5)
    for _ in range(3):
        assert x.astype("float32") is x
        assert x.copy() is not x and x.copy().aval is x.aval
        for y in (x, weak, x > 1):
            out = y.astype(dtype)
            assert out.aval == y.astype(dtype, device=weft.devices()[0]).aval
            assert not out.weak_type
            np.testing.assert_array_equal(np.asarray(out), np.asarray(y).astype(out.dtype))
    weak.delete()
    x.delete()
    for y in (x, weak):
        with pytest.raises(DeletedError):
            y.astype("float32")


def test_arrays_of_earlier_calls_are_let_go_of():
    for call in (
        lambda x: x.astype("float32"),
        lambda x: lax.sort(x, dimension=0, is_stable=False),
        lambda x: lax.argmax(x, 0, np.int32),
        lambda x: lax.expand_dims(x, (0, 1)),
        lambda x: lax.dynamic_slice_in_dim(x, 1, 2),
        lambda x: lax.slice_in_dim(x, np.int64(1), 2),
        lambda x: lax.integer_pow(x, 1),
        lambda x: lax.tile(x, (2,)),
        lambda x: x.at[1].set(2.0),
    ):
        x = jnp.arange(217.0)
        gone = weakref.ref(x)
        call(x)
        del x
        assert gone() is None
