"""Numbers in and behind indices: at the ends of their dtypes, as fill values, and large sizes."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.index_expressions import UFUNCS
from weft import lax

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
OPS = ["set", "add", "subtract", "multiply", "min", "max"]
PLACES = [0, slice(1, 4, 2), np.array([3, 1]), np.array([True, False] * 2)]


def write_in_numpy(x, i, op, v):
    y = x.copy()
    with np.errstate(over="ignore"):
        y[i] = v if op == "set" else UFUNCS[op](x[i], x.dtype.type(v))
    return y


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_at_the_ends_of_their_dtype(dtype):
    info = np.iinfo(dtype)
    x = np.array([3, 2, info.max, info.min], dtype)
    rows = [(i, op, int(v)) for v in (info.min, info.max) for op in OPS for i in PLACES]
    write = lambda x, i, op, v: getattr(x.at[i], op)(v)
    read = lambda x, v: x.at[jnp.array([9, 0])].get(mode="fill", fill_value=v)
    with weft.config.scope(enable_x64=info.bits == 64):
        found = weft.jit(lambda x: [write(x, *row) for row in rows])(x)
        for got, row in zip(found, rows, strict=True):
            assert got.dtype == x.dtype
            np.testing.assert_array_equal(got, write_in_numpy(x, *row), str(row))
        for row in rows[INTEGERS.index(dtype) :: 13]:  # and now
            got = write(jnp.array(x), *row)
            np.testing.assert_array_equal(got, write_in_numpy(x, *row), str(row))
        for v in (int(info.min), int(info.max)):
            assert read(jnp.array(x), v).tolist() == [v, 3]
            assert weft.jit(read, static_argnums=1)(x, v).tolist() == [v, 3]


def test_an_integer_wraps_if_the_default_dtype_holds_it():
    x = jnp.zeros(2, jnp.uint8)
    for v in (-1, 300, 2**31 - 1):
        assert x.at[0].set(v).tolist() == [v % 256, 0]
        assert weft.jit(lambda x, v=v: x.at[:1].set(v))(x).tolist() == [v % 256, 0]
        assert jnp.take(x, jnp.array([9]), fill_value=v).tolist() == [v % 256]
        assert jnp.unique(x, size=2, fill_value=v).tolist() == [0, v % 256]


@pytest.mark.parametrize("run", [lambda f: f, weft.jit])
@pytest.mark.parametrize(("dtype", "v"), [("int32", 2**31), ("uint32", 2**32), ("int8", -(2**40))])
def test_an_integer_that_neither_dtype_holds_is_refused(run, dtype, v):
    x = jnp.zeros(2, dtype)
    for op in OPS:
        for i in (0, slice(None), np.array([1])):
            with pytest.raises(OverflowError, match=f"must fit {dtype}; got {v}"):
                run(lambda x: getattr(x.at[i], op)(v))(x)  # noqa: B023
    with pytest.raises(OverflowError, match=f"gather: an integer must fit {dtype}; got {v}"):
        run(lambda x: x.at[jnp.array([9])].get(mode="fill", fill_value=v))(x)


def test_numbers_for_floats_may_be_any():
    x = jnp.zeros(2)
    assert x.at[0].set(2**40).tolist() == [2.0**40, 0]
    assert weft.jit(lambda x: x.at[0].set(1e300))(x).tolist() == [np.inf, 0]
    assert jnp.zeros(2, jnp.float16).at[:].add(2**70).tolist() == [np.inf] * 2


def test_an_index_that_no_int32_holds_is_out_of_bounds():
    x, far = jnp.arange(4.0), np.array([2**40, -(2**40), 1])
    assert x.at[far].set(7).tolist() == [0, 7, 2, 3]
    assert x[far].tolist() == [3, 0, 1]
    np.testing.assert_array_equal(jnp.take(x, far), [np.nan, np.nan, 1])
    np.testing.assert_array_equal(jnp.take_along_axis(x, far, 0), [np.nan, np.nan, 1])
    assert jnp.put(x, far, 7, inplace=False).tolist() == [7, 7, 2, 7]
    assert jnp.choose(far[:1], [x, x + 1], mode="clip").tolist() == [1, 2, 3, 4]
    assert [int(i[0]) for i in jnp.unravel_index(far, (2, 2))] == [1, 1]
    with weft.config.scope(check_bounds=False):
        for run in (lambda f: f, weft.jit):
            assert run(lambda x: x[2**40, None])(x).tolist() == [3]
            assert run(lambda x: x.at[2**40, None].set(1))(x).tolist() == [0, 1, 2, 3]
            assert run(lambda x: x.at[-(2**40)].set(1, mode="clip"))(x).tolist() == [1, 1, 2, 3]
            assert np.isnan(run(lambda x: jnp.take(x, 2**40))(x))
    for i in (9, np.int64(9), np.array(9), np.uint8(9)):
        for act in (lambda x: x[i], lambda x: jnp.put(x, i, 1, inplace=False)):  # noqa: B023
            with pytest.raises(IndexError, match=r"in \[-4, 4\) on axis 0 of f32\[4\]; got 9"):
                act(x)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("run", [lambda f: f, weft.jit])
def test_numbers_of_different_dtypes_in_one_index(run, wide):
    host = np.arange(12.0).reshape(3, 4)
    with weft.config.scope(enable_x64=wide):
        i, j, far = jnp.array(1, "int32"), np.array(2, "int64"), np.array(-(2**40))
        x = jnp.array(host)
        for a, b in [(i, j), (j, i), (i.astype("uint8"), j), (jnp.array(j), i.astype("int8"))]:
            got = run(lambda x, a, b: (x[a, b], x[a, None, b]))(x, a, b)
            assert got == (host[int(a), int(b)],) * 2
            assert run(lambda x, a, b: x.at[a, b].add(5))(x, a, b).sum() == host.sum() + 5
        if wide:
            assert run(lambda x, a, b: x[a, b])(x, jnp.array(far), i) == host[0, 1]


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("fill", [np.nan, -1, 7j, True, np.float32(2), np.uint8(200), None])
def test_fill_values_of_places(fill):
    """`nonzero` and similar functions: as if appended to the places, in the common dtype."""
    x = np.array([[0, 3.0], [0, 1]])
    rest = 0 if fill is None else fill
    wanted = [np.append(i, [rest] * 2) for i in np.nonzero(x)]
    dtype = jnp.result_type(jnp.int32, rest)
    for run in (lambda f: f, weft.jit):
        two = run(lambda x: jnp.nonzero(x, size=4, fill_value=fill))(x)
        every = [*two, *run(lambda x: jnp.where(x, size=4, fill_value=fill))(x)]
        every += list(run(lambda x: jnp.argwhere(x, size=4, fill_value=fill).T)(x))
        for got, want in zip(every, wanted * 3, strict=True):
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, want)
        flat = run(lambda x: jnp.flatnonzero(x, size=4, fill_value=fill))(x)
        np.testing.assert_array_equal(flat, np.append(np.flatnonzero(x), [rest] * 2))
    mixed = jnp.nonzero(x, size=3, fill_value=(-1, np.nan))
    np.testing.assert_array_equal(mixed, np.array([[0, 1, -1], [1, 1, np.nan]]))
    with pytest.raises(weft.errors.ShapeError, match="fill_value must be a scalar, or a tuple"):
        jnp.nonzero(x, size=3, fill_value=jnp.array([1]))


def keep_odd(a, b, size, fill_value):
    fill_value = 0 if fill_value is None else fill_value
    return jnp.compress(jnp.arange(a.size) % 2, a, size=size - 2, fill_value=fill_value)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("fill", [np.nan, 7.5, 300, np.float32(2), None])
def test_fill_values_of_sets(fill):
    """Two functions give the fill value its own dtype, the others cast it, both as JAX does."""
    a, b = np.array([4, 2, 2, 7], np.uint8), np.array([7, 9], np.uint8)
    cast = lambda x: np.uint8(0 if np.isnan(x) else int(x) % 256)
    for run in (lambda f: f, weft.jit):
        for f, found, smallest in [
            (lambda a, b, **how: jnp.unique(a, **how), [2, 4, 7], 2),
            (jnp.union1d, [2, 4, 7, 9], 2),
            (jnp.setdiff1d, [2, 4], 0),
            (keep_odd, [2, 7], 0),
        ]:
            got = run(lambda a, b: f(a, b, size=6, fill_value=fill))(a, b)  # noqa: B023
            rest = smallest if fill is None else cast(fill)
            assert got.dtype == np.uint8
            assert got.tolist() == [*found, *[rest] * (len(got) - len(found))]
        for f, found in [(jnp.intersect1d, [7]), (jnp.setxor1d, [2, 4, 9])]:
            got = run(lambda a, b: f(a, b, size=5, fill_value=fill))(a, b)  # noqa: B023
            rest = found[0] if fill is None else fill if type(fill) is not int else fill % 256
            want = np.array([*found, *[rest] * (5 - len(found))])
            assert got.dtype == (np.uint8 if fill in (300, None) else np.float32)
            np.testing.assert_array_equal(got, want)
            other = a[:0] if f is jnp.intersect1d else a
            none = run(lambda a, b: f(a, b, size=2, fill_value=fill))(a, other)  # noqa: B023
            np.testing.assert_array_equal(none, [0 if fill is None else rest] * 2)


def test_places_in_arrays_of_more_than_an_int32_holds():
    shape, host = (50000, 50000), np.array([0, 1, 2**31 - 1, 49999, 50000])
    for run in (lambda f: f, weft.jit):
        got = run(lambda i: jnp.unravel_index(i, shape))(host.astype(np.int32))
        np.testing.assert_array_equal(got, np.unravel_index(host, shape))
        ends = run(lambda i: jnp.unravel_index(i, shape))(np.array([-1, -50001], np.int32))
        np.testing.assert_array_equal(ends, [[49999, 49998], [49999, 49999]])
    assert [int(i) for i in jnp.unravel_index(0, shape)] == [0, 0]
    with pytest.raises(ValueError, match=r"dtype must hold the number .* got int32 for dims \(500"):
        jnp.ravel_multi_index(([1], [2]), shape, mode="clip")
    with pytest.raises(ValueError, match="got int8 for dims"):
        jnp.ravel_multi_index((jnp.array(1), jnp.array(2)), (1, 129), dtype="int8")
    assert jnp.ravel_multi_index((jnp.array(127),), (128,), dtype="int8") == 127
    last = jnp.ravel_multi_index((jnp.array(2**16 - 1), jnp.array(2**15 - 1)), (2**16, 2**15))
    assert last == 2**31 - 1
    with weft.config.scope(enable_x64=True):
        far = np.array([2**31, 2**31 + 7, 2_499_999_999])
        got = jnp.unravel_index(far, shape)
        np.testing.assert_array_equal(got, np.unravel_index(far, shape))
        np.testing.assert_array_equal(jnp.ravel_multi_index(got, shape), far)
    large = weft.ShapeDtypeStruct(shape, bool)
    for f in (jnp.nonzero, jnp.argwhere):
        found = weft.tree.leaves(weft.eval_shape(lambda x: f(x, size=5), large))  # noqa: B023
        assert all(x.shape[0] == 5 and x.dtype == np.int32 for x in found)
    text = weft.jit(lambda x: jnp.nonzero(x, size=2)).lower(large).as_text()
    assert "tensor<2xi64>" in text


def test_unravel_index_against_numpy():
    """Numbers out of bounds give the first or the last place."""
    for shape in [(7,), (2, 1, 3), (300, 2)]:
        size = int(np.prod(shape))
        for dtype in ("int8", "uint8", "uint32"):
            host = np.array([0, 1, size - 1, size, 100, -1, -2, -size, -size - 1, -100])
            host = host[(host >= np.iinfo(dtype).min) & (host <= np.iinfo(dtype).max)]
            inside = np.clip(np.where(host < 0, host + size, host), 0, size - 1)
            got = jnp.unravel_index(host.astype(dtype), shape)
            for a, b in zip(got, np.unravel_index(inside, shape), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_selectors_of_every_integer_dtype(dtype):
    cases = np.arange(9.0, dtype=np.float32).reshape(3, 3)
    low = -2 if dtype.startswith("int") else 0
    which = np.array([low, 1, 1 if dtype == "bool" else 100]).astype(dtype)
    two, three = cases[:2], cases[: 2 if dtype == "bool" else 3]
    with weft.config.scope(enable_x64=dtype.endswith("64")):
        for run in (lambda f: f, weft.jit):
            number = np.clip(which.astype(int), 0, 1)
            got = run(lambda which: lax.select(which, *two))(which)
            np.testing.assert_array_equal(got, np.choose(1 - number, two))
            number = np.clip(which.astype(int), 0, len(three) - 1)
            got = run(lambda which: lax.select_n(which, *three))(which)
            np.testing.assert_array_equal(got, np.choose(number, three))
    with pytest.raises(weft.errors.DtypeError, match="must be bool or of integers; got f32"):
        lax.select(cases[0], *two)


def test_lists_that_hold_tracers():
    host = np.arange(12.0).reshape(3, 4)
    for f in [
        lambda x, a, b: x[0, [a, b]],
        lambda x, a, b: x[[a, b], 1],
        lambda x, a, b: x[[[a, b], [1, 2]], 0],
        lambda x, a, b: x[[a, 0], [b, b]],
        lambda x, a, b: x[..., (a, b)],
        lambda x, a, b: x[:, [b, a]][[[a]], None],
    ]:
        np.testing.assert_array_equal(weft.jit(f)(host, 1, 2), f(host, 1, 2))
        np.testing.assert_array_equal(f(jnp.array(host), jnp.array(1), np.int64(2)), f(host, 1, 2))
    put = weft.jit(lambda x, a, b: x.at[0, [a, b]].set(7.0))(host, 1, 2)
    assert put[0].tolist() == [0, 7, 7, 3]
    batched = weft.vmap(lambda a: jnp.array(host)[0, [a, 0]])(jnp.array([1, 2]))
    assert batched.tolist() == [[1, 0], [2, 0]]
    for bad in ([1.5], [[1, 2], [3]]):
        with pytest.raises((TypeError, ValueError)):
            weft.jit(lambda x, a: x[0, [a, *bad]])(host, 1)  # noqa: B023


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(0, 0, 2), (0, 3, 0), (0, 0, 0), (2, 0, 3)])
def test_nothing_is_looked_up_along_an_axis_without_elements(shape, axis):
    x = np.zeros(shape, np.float32)
    places = np.zeros((*shape[:axis], 2, *shape[axis + 1 :]), np.int32)
    if places.size and not shape[axis]:
        return  # an error in NumPy
    for take in (jnp.take_along_axis, weft.jit(jnp.take_along_axis, static_argnums=2)):
        assert take(x, places, axis).shape == np.take_along_axis(x, places, axis).shape
