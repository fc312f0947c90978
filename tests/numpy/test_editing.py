"""repeat, insert, delete and trim_zeros with traced arguments, against NumPy."""

from unittest import mock

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import same
from weft.errors import ConcretizationTypeError, IndexingError, ShapeError


def test_repeat_with_a_total_length():
    x, r = jnp.arange(4), jnp.array([1, 0, 2, 1])
    for total in (2, 4, 6):
        want = jnp.repeat(x, r, total_repeat_length=total)
        got = weft.jit(lambda v, n, total=total: jnp.repeat(v, n, total_repeat_length=total))(x, r)
        same(got, np.asarray(want))
        assert got.tolist() == ([0, 2, 2, 3] + [3, 3])[:total]
    with pytest.raises(ConcretizationTypeError, match="total_repeat_length=n"):
        weft.jit(jnp.repeat)(x, r)
    with pytest.raises(ShapeError, match="one for each of 4 elements"):
        jnp.repeat(x, jnp.array([1, 2]))
    with pytest.raises(TypeError, match="operands must be arrays"):
        jnp.repeat(x, [1])


def test_known_places_along_each_axis():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    calls = [("repeat", 2), ("repeat", 0), ("delete", 1), ("delete", -1), ("delete", slice(0, 1))]
    calls += [("insert", 1, 7), ("insert", np.array([0, 2, 0]), 7)]
    calls += [("delete", np.array([1, 0, 1]))]
    calls = [(name, args, axis) for name, *args in calls for axis in (None, 0, 1, 2, -1)]
    calls += [("append", [x], axis) for axis in (None, 0, 1, -1)]
    calls += [("repeat", [np.arange(n)], axis) for axis, n in enumerate(x.shape)]
    calls += [("insert", [1, np.ones((2, 4), np.float32)], 1), ("insert", [-1, 5], -2)]
    calls += [
        ("insert", [i, np.arange(16.0).reshape(2, 2, 4)], 1) for i in (np.array([0, 2]), slice(2))
    ]
    run = lambda m, x: [getattr(m, name)(x, *args, axis=axis) for name, args, axis in calls]
    for call, got, want in zip(calls, weft.jit(lambda x: run(jnp, x))(x), run(np, x), strict=True):
        assert got.dtype == want.dtype, call
        np.testing.assert_array_equal(got, want, str(call))


def test_traced_places_to_insert_and_delete():
    x, i = jnp.arange(5.0), jnp.array([3, 1, 1])
    v = jnp.array([7.0, 8.0, 9.0])
    same(weft.jit(jnp.insert)(x, i, v), np.insert(np.asarray(x), [3, 1, 1], [7, 8, 9]))
    same(weft.jit(jnp.delete)(x, -2), np.delete(np.asarray(x), -2))
    delete = weft.jit(lambda x, i: jnp.delete(x, i, assume_unique_indices=True))
    assert delete(x, jnp.array([3, 0])).tolist() == [1, 2, 4]
    with pytest.raises(ConcretizationTypeError, match="assume_unique_indices=True"):
        weft.jit(jnp.delete)(x, i)
    for f in (lambda: jnp.insert(x, 9, 1.0), lambda: jnp.delete(x, 9)):
        with pytest.raises(IndexingError, match="got 9"):
            f()
    with pytest.raises(IndexingError, match="got 9"):
        jnp.delete(x, jnp.array([9]))
    for run in (lambda f: f, weft.jit):  # computed places are clamped
        assert run(jnp.insert)(x, jnp.array([-9, 9]), 7.0).tolist() == [7, 0, 1, 2, 3, 4, 7]
        assert run(delete)(x, jnp.array([9, -9])).tolist() == [1, 2, 3]


def test_trim_zeros():
    for trim in ("fb", "f", "b"):
        for host in ([0, 1, 0, 2, 0, 0], [0, 0]):
            same(
                jnp.trim_zeros(jnp.array(host), trim), np.trim_zeros(np.array(host, np.int32), trim)
            )


def test_one_place_is_deleted_by_a_choice():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    deleted = weft.jit(lambda x: jnp.delete(x, -2, 1))
    np.testing.assert_array_equal(deleted(x), np.delete(x, -2, 1))
    assert "concatenate" not in deleted.lower(x).as_text()


def test_a_number_of_repeats_is_not_looked_at_by_numpy():
    x = np.arange(6).reshape(2, 3)
    with mock.patch("weft.numpy.editing.np", None):  # which takes 15 us
        out = [jnp.repeat(x, n, axis) for n in (0, 1, 3) for axis in (None, 0, -1)]
    want = [np.repeat(x, n, axis) for n in (0, 1, 3) for axis in (None, 0, -1)]
    for a, b in zip(out, want, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ShapeError, match="repeat: repeats must not be negative; got -1"):
        jnp.repeat(x, -1)


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float32, np.complex64])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((3, 5), -1), ((3, 5), None), ((0,), 0)])
@pytest.mark.parametrize("values", [1, [1], [1, 0, 1]])
def test_insert_at_one_place(values, shape, axis, dtype):
    x = (np.arange(np.prod(shape)).reshape(shape) % 3).astype(dtype)
    for place in (0, 2, -1, np.int64(1)) if x.size else (0,):
        try:
            want = np.insert(x, place, values, axis)
        except ValueError:  # three values for a row of another length
            continue
        got = jnp.insert(x, place, values, axis)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, want)
    if x.size:
        put = lambda x: jnp.insert(x, 2, values[0] if isinstance(values, list) else values, axis)
        got, want = weft.jit(put)(x), put(jnp.asarray(x))
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(weft.vmap(put)(x[None])[0], want)


def test_derivative_of_an_insertion():
    x, v = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.float32([7, 8])
    put = lambda x, v: (jnp.insert(x, 1, v, 1) ** 2).sum()
    for each, y in zip(weft.jit(weft.grad(put, (0, 1)))(x, v), (x, v), strict=True):
        np.testing.assert_array_equal(each, 2 * y)


@pytest.mark.parametrize("shape", [(0,), (3,), (6,), (12,), (5, 4), (47,), (7, 9)])
def test_resize_repeats_and_cuts(shape):
    x = np.arange(6, dtype=np.int16).reshape(2, 3)
    resize = lambda x: jnp.resize(x, shape)
    np.testing.assert_array_equal(resize(x), np.resize(x, shape))
    np.testing.assert_array_equal(weft.jit(resize)(x), np.resize(x, shape))


def test_resize_to_more_than_there_is_makes_no_list_of_copies():
    with pytest.raises(ShapeError, match=r"must have fewer than 2\*\*63 bytes"):
        jnp.resize(jnp.ones(3), 10**19)


def test_insert_at_one_place_is_one_program_for_all_places():
    x = jnp.arange(9.0)
    jnp.insert(x, 1, 5.0)
    with mock.patch("weft.run.pipeline.compile_text", side_effect=AssertionError("compiled")):
        for place in range(2, 8):
            want = np.insert(np.arange(9.0), place, 5.0)
            np.testing.assert_array_equal(jnp.insert(x, place, 5.0), want)
        with pytest.raises(AssertionError, match="compiled"):
            jnp.insert(jnp.arange(10.0), 1, 5.0)


def test_insert_of_random_keys():
    keys = weft.random.split(weft.random.key(0), 3)
    got = weft.random.key_data(jnp.insert(keys, 1, keys[2]))
    np.testing.assert_array_equal(got, weft.random.key_data(keys)[np.array([0, 2, 1, 2])])
