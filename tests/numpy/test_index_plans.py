"""Meanings of an index: bounds, mistakes, arrays that do not broadcast, tracers in an index."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.errors import IndexingError, NonConcreteBooleanIndexError


@pytest.mark.parametrize(("index", "place"), [(8, 8), (-9, -9), (np.int64(9), 9), ((3, 1), 3)])
def test_known_places_out_of_bounds(index, place):
    x = jnp.zeros(8) if not isinstance(index, tuple) else jnp.zeros((3, 4))
    size = x.shape[0]
    text = rf"x\[...\]: index must be in \[-{size}, {size}\) on axis 0 of .*; got {place}. Hint: "
    for attempt in (
        lambda: x[index],
        lambda: weft.jit(lambda v: v[index])(x),
        lambda: x.at[index].set(1.0),
        lambda: x.at[index].get(),
    ):
        with pytest.raises(IndexingError, match=text):
            attempt()


def test_known_indices_against_numpy():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    parts = [0, -1, slice(None), slice(None, None, 2), slice(None, None, -1), slice(2, 0, -2)]
    keys = list(itertools.product(parts, parts, parts))[::5] + [
        (..., 1), (..., None),
        (0, ..., slice(3, None, -2)), (None, 1, slice(1, 1)), (slice(-9, 9), None, 1),
        (slice(None), [2, 0], slice(None, None, 2)), (1, slice(None, None, -2), [0, 3]),
    ]  # fmt: skip
    keys = [tuple(np.array(k) if isinstance(k, list) else k for k in key) for key in keys]
    m = x % 3 == 1
    keys += [
        m, m[:, :, 0], m[:, 1, 0], (slice(None), m[0]), (..., m[0, 1]), (..., m[:, :, 0], 1),
        (None, m[:, 0, 0], ..., 2), (slice(1), m[1, :, 0], slice(None, None, -1)), m & False,
        (m[:, 0, 0], [2]), (0, ..., m[0, 1]), True, False, (True, 1), (1, False), (0, True, 2),
        (slice(None), np.bool_(True), [1, 1]), ([1, 0], [2, 2]), ((1,), slice(None), [0]),
        ([], slice(None)), (np.uint8([1, 0]), 0), (np.array(1), [0, 2]), (np.int64(1), None, 0),
        ([[0], [1]], slice(1, None), [[0, 3]]), (slice(2), 1, [3, 0, 1]), (np.array([], np.int32),),
    ]  # fmt: skip
    found = weft.jit(lambda x: [x[key] for key in keys])(x)
    changed = weft.jit(lambda x: [x.at[key].set(-1) for key in keys])(x)
    for key, got, after in zip(keys, found, changed, strict=True):
        np.testing.assert_array_equal(got, x[key], str(key))
        want = x.copy()
        want[key] = -1
        np.testing.assert_array_equal(after, want, str(key))


# Results for computed indices out of bounds, for x = [0, 1, 2, 3] and i = [1, 9, -9].
COMPUTED = [
    (lambda x, i: x[i], [1, 3, 0]),
    (lambda x, i: x[None][:, i], [[1, 3, 0]]),
    (lambda x, i: x[i[1]], 3),
    (lambda x, i: x.at[i].get(), [1, 3, 0]),
    (lambda x, i: x.at[i].set(7), [0, 7, 2, 3]),
    (lambda x, i: x.at[i].add(x[1]), [0, 2, 2, 3]),
    (lambda x, i: x.at[i[2]].mul(7), [0, 1, 2, 3]),
    (lambda x, i: jnp.take(x, i), [1, np.nan, np.nan]),
    (lambda x, i: jnp.take_along_axis(x, i, 0), [1, np.nan, np.nan]),
    (lambda x, i: jnp.put(x, i, 7, inplace=False), [7, 7, 2, 7]),
    (lambda x, i: jnp.put_along_axis(x, i, 7, 0, inplace=False), [0, 7, 2, 3]),
]


@pytest.mark.parametrize(("f", "expected"), COMPUTED)
def test_computed_places_out_of_bounds(f, expected):
    x, i = jnp.arange(4.0), jnp.array([1, 9, -9])
    np.testing.assert_array_equal(f(x, i), expected)
    np.testing.assert_array_equal(weft.jit(f)(x, i), expected)
    if f not in (COMPUTED[2][0], COMPUTED[6][0]):  # elements of NumPy's arrays are numbers
        np.testing.assert_array_equal(f(x, np.asarray(i)), expected)


def test_reading_by_index_does_not_look_at_the_index(monkeypatch):
    x, i = jnp.arange(4.0), jnp.array([1, 2])
    monkeypatch.setattr(type(i), "_single_device_array_to_np_array_did_copy", None)
    monkeypatch.setattr(type(i), "__array__", None)
    for f in (lambda: x[i], lambda: x.at[i].set(1.0), lambda: jnp.take(x, i)):
        f()


@pytest.mark.parametrize(("f", "expected"), COMPUTED)
def test_the_option_checks_computed_places(f, expected):
    x, i = jnp.arange(4.0), jnp.array([1, 9, -9])
    with weft.config.scope(check_bounds="all"):
        f(x, jnp.array([1, 3, -4]))
        for run in (f, weft.jit(f)):
            with pytest.raises(IndexError, match=r"in \[-4, 4\) on axis . of f32.*; got (9|-9)\. "):
                run(x, i)


def test_the_option_lets_pass_what_is_meant():
    x, i = jnp.arange(4.0), jnp.array([1, 9, -9])
    with weft.config.scope(check_bounds="all"):
        for run in (lambda f: f, weft.jit):
            assert run(lambda x, i: x.at[i].get(mode="clip"))(x, i).tolist() == [1, 3, 0]
            assert run(lambda x, i: x.at[i[1]].set(7, mode="clip"))(x, i).tolist() == [0, 1, 2, 7]
            assert run(lambda x, i: x.at[i].set(7, mode="drop"))(x, i).tolist() == [0, 7, 2, 3]
            assert run(lambda x, i: jnp.take(x, i, mode="wrap"))(x, i).tolist() == [1, 1, 3]
            assert run(lambda x, i: x[i.astype("int8")])(jnp.arange(500), i).tolist() == [1, 9, 491]
        with pytest.raises(IndexError, match=r"\[0, 4\)|got -1"):
            x.at[-i[:1]].get(wrap_negative_indices=False)


def test_slices_are_cut_off_as_in_python():
    x = jnp.arange(4)
    assert x[2:100].tolist() == [2, 3]
    assert x[-100:1].tolist() == [0]


def test_the_option_restores_clamping():
    x = jnp.arange(4.0)
    with weft.config.scope(check_bounds=False):
        assert float(x[9]) == 3
        assert float(x[-9]) == 0
        assert x[jnp.array([9, -9])].tolist() == [3, 0]
        assert x.at[9].set(7.0).tolist() == [0, 1, 2, 3]
        assert np.isnan(jnp.take(x, 9))
    with pytest.raises(IndexError):
        x[9]


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        ([1, 2], TypeError, r"an index must not be a list; got \[1, 2\]. Hint: x\[jnp.array"),
        (1.5, TypeError, "an index must be an integer, a slice, .*; got 1.5 of type float"),
        ("a", TypeError, "got 'a' of type str"),
        (np.array([1.0]), TypeError, "an index must be of integers or bools; got f32"),
        ((0, 0), IndexError, "at most one index for each axis; got 2 for f32"),
        ((..., ...), IndexError, "at most one `...`"),
        (slice(0, 2, 0), ValueError, "the step must not be zero"),
        (slice("a", None), TypeError, "bounds must be integers; got 'a'"),
        (slice(1.0, None), TypeError, "bounds must be integers; got 1.0"),
        (np.zeros(3, bool), IndexError, r"the shape of the axes it indexes, \(8,\); got bool\[3\]"),
        ([object()], TypeError, "must not be a list"),
        (({},), TypeError, "an index must be an integer, .*; got {} of type dict"),
        ((1, slice(None, 2), 0.5), TypeError, "got 0.5 of type float"),
        ((slice(1, None), 0, slice(None, 2, 3)), IndexError, "got 3 for f32"),
    ],
)
def test_bad_indices(index, error, text):
    with pytest.raises(error, match=text):
        jnp.arange(8.0)[index]


def test_arrays_that_do_not_broadcast():
    with pytest.raises(IndexError, match="must broadcast together"):
        jnp.zeros((4, 4))[jnp.array([0, 1]), jnp.array([0, 1, 2])]


def test_tracers_as_bounds_and_masks():
    x = jnp.arange(8.0)
    with pytest.raises(IndexingError, match="Hint: lax.dynamic_slice"):
        weft.jit(lambda v, i: v[i : i + 2])(x, 1)
    with pytest.raises(NonConcreteBooleanIndexError, match="Hint: jnp.where"):
        weft.jit(lambda v: v[v > 3])(x)


def test_slices_of_symbolic_axes_are_pythons():
    """Sizes of slices are formulas; they equal a range's at several sizes of the axis."""
    (n,) = weft.export.symbolic_shape("n")
    aval = weft.ShapeDtypeStruct((n,), np.float32)
    ends = (None, -9, -2, 0, 1, 3, 9)
    for bounds in [
        *itertools.product(ends, ends, (None, 1, -1)),
        *((None, None, k) for k in (2, -3)),
    ]:
        (size,) = weft.eval_shape(lambda x, s=slice(*bounds): x[s], aval).shape
        for value in (1, 2, 5):
            found = size if isinstance(size, int) else size.evaluate({"n": value})
            assert found == len(range(value)[slice(*bounds)]), (bounds, value)


def test_an_index_in_a_message_is_as_it_is_written():
    x, i = jnp.ones((2, 3)), list(range(30))
    for index, text in [
        ((slice(1, None), 5), "1:, 5"),
        ((..., slice(None, 2, 2), None, -1), "..., :2:2, None, -1"),
        ((0, slice(2)), "0, :2"),
        (i, "i"),
    ]:
        with pytest.raises(TypeError) as info:
            x[index] = 1
        assert f"got x[{text}] = ... on f32[2,3]. Hint: x = x.at[{text}].set" in str(info.value)
