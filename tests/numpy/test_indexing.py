"""Reading by index: every kind of index against NumPy, under transformations; bounds; errors."""

import itertools
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import same
from weft.errors import ShapeError
from weft.numpy import indexing
from weft.run.hot import HOT

HOST = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
PAIR = np.array([1, -2], np.int32)
GRID = np.array([[0, 2], [1, -1]], np.int32)
ONE = np.array(1, np.int32)


class Maker:
    """`ix[...]` is the index itself."""

    def __getitem__(self, index):
        return index


ix = Maker()

BASIC = [
    ix[0],
    ix[-1],
    ix[1:3],
    ix[:],
    ix[::-1],
    ix[..., 0],
    ix[:, None, 1],
    ix[2:0:-1, ::2],
    ix[::-2, 1],
    ix[5:],
    ix[3:1],
    ix[-2:],
    ix[:100],
    ix[None],
    ix[()],
    ix[...],
    ix[1, 2, 3],
    ix[1, ..., None, 2],
    ix[np.int64(2)],
    ix[np.array(2)],
]
ADVANCED = [
    ix[PAIR],
    ix[GRID],
    ix[:, PAIR],
    ix[PAIR, PAIR],
    ix[PAIR, :, PAIR],  # looked-up axes go first
    ix[:, PAIR, PAIR],
    ix[0, :, PAIR],
    ix[PAIR, 0],
    ix[:, PAIR, 0],
    ix[GRID, PAIR],
    ix[PAIR, ::2],
    ix[PAIR, ::-2, 1:4],
    ix[PAIR, None, 1:3],
    ix[:, None, PAIR],
    ix[None, PAIR, :, 0],
    ix[ONE],
    ix[:, ONE],
    ix[ONE, ONE, ONE],
    ix[ONE, 1:3],
    ix[ONE, ::2],
    ix[ONE, ::-1, 0],
    ix[..., ONE],
    ix[ONE, PAIR],
    ix[ONE, :, PAIR],
    ix[PAIR[:0]],
    ix[:, 0:0, PAIR],
    ix[PAIR.astype(np.int8)],
    ix[np.array([1, 2], np.uint8)],
    ix[[0, 1], [1, 2]],
    ix[:, [[0], [1]], [1, 2]],
]
MASKS = [
    ix[HOST > 30],
    ix[HOST[:, :, 0] > 20],
    ix[HOST[:, 0, 0] > 10],
    ix[:, HOST[0, :, 0] > 5],
    ix[..., HOST[0, 0] > 2],
    ix[HOST[:, 0, 0] > 10, 1:2],
    ix[HOST[:, 0, 0] > 10, :, PAIR],
    ix[True],
    ix[False],
    ix[None, True, 0],
]


def on_device(index):
    """The index with its NumPy arrays on the device."""
    if isinstance(index, tuple):
        return tuple(map(on_device, index))
    return jnp.asarray(index) if isinstance(index, np.ndarray) and index.ndim else index


STACKED = np.stack([HOST, HOST + 1])


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("index", BASIC + ADVANCED + MASKS, ids=str)
def test_every_kind_of_index(index):
    want = HOST[index]
    x = jnp.asarray(HOST)
    same(x[index], want)
    same(x[on_device(index)], want)
    read = lambda v: v[index]
    staged, mapped = weft.jit(lambda v, vs: (read(v), weft.vmap(read)(vs)))(x, STACKED)
    same(staged, want)
    same(mapped[1], want + 1)


@pytest.mark.parametrize(
    "index", [BASIC[1], BASIC[7], ADVANCED[3], ADVANCED[11], MASKS[3]], ids=str
)
def test_gradient_goes_back_to_the_places(index):
    x = jnp.asarray(HOST)
    want = np.zeros_like(HOST)
    np.add.at(want, index, 2.0)
    same(weft.grad(lambda v: (2 * v[index]).sum())(x), want)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
def test_dtypes(dtype):
    x = jnp.arange(5).astype(dtype)
    for got in (x[2], x[1:4], x[jnp.array([3, 0])], x[np.arange(5) > 2]):
        assert got.dtype == x.dtype
    np.testing.assert_array_equal(x[1:4], np.asarray(x)[1:4])


def test_weak_types_stay():
    assert jnp.asarray(1.0)[None].weak_type
    assert not jnp.arange(3.0)[0].weak_type


def test_a_dynamic_index_under_jit():
    x = jnp.arange(8.0)
    at = weft.jit(lambda v, i: v[i])
    assert float(at(x, 2)) == 2
    assert float(at(x, -1)) == 7
    assert float(at(x, 20)) == 7  # clamped
    assert at(x, jnp.array([0, -8, 30])).tolist() == [0, 0, 7]
    assert weft.vmap(lambda v, i: v[i])(x.reshape(2, 4), jnp.array([1, 3])).tolist() == [1, 7]


@pytest.mark.parametrize(
    ("fun", "primitives"),
    [
        (lambda x, i: x[0], "slice squeeze"),
        (lambda x, i: x[1:3], "slice"),
        (lambda x, i: x[:], ""),
        (lambda x, i: x[::-1], "rev"),
        (lambda x, i: x[i[0]], "slice squeeze lt add select_n dynamic_slice squeeze"),
        (lambda x, i: x[i], "lt add select_n broadcast_in_dim gather"),
        (lambda x, i: x[np.array([1, 2])], "broadcast_in_dim gather"),
        (lambda x, i: x.at[:].multiply(0.5), "mul"),
        (lambda x, i: x.at[0].set(1.0), "broadcast_in_dim dynamic_update_slice"),
        (lambda x, i: x.at[1:3].add(1.0), "slice add dynamic_update_slice"),
    ],
)
def test_programs_are_short(fun, primitives):
    jaxpr = weft.make_jaxpr(fun)(jnp.arange(8.0), jnp.array([1, 2])).jaxpr
    assert " ".join(str(e.primitive) for e in jaxpr.eqns) == primitives


def test_loops_over_numbers_share_one_program(monkeypatch):
    made = []
    real = indexing.compile_function
    monkeypatch.setattr(indexing, "compile_function", lambda *a: made.append(a) or real(*a))
    x = jnp.arange(211.0)
    assert [float(x[i]) for i in range(50)] == list(range(50))
    assert all(x[i : i + 3].tolist() == [i, i + 1, i + 2] for i in range(50))
    assert len(made) == 2
    for _ in range(2 * HOT):  # a hot one gets its own
        x[7]
    assert len(made) == 3


def test_indices_that_are_met_often_are_told_apart():
    """By all of their parts, and from each other where they are equal as keys of a dictionary."""
    bounds = [(None, None), (1, 5)]
    keys = [np.s_[a:b:c] for a, b in bounds for c in (None, 2, -1) if (a, c) != (1, -1)]
    keys += [np.s_[5:1:-1], 0, 1, True, False, -1, np.s_[1, :], np.s_[:, 1], np.s_[1:5, 1], (), ...]
    keys += [
        None,
        (None,),
        (1, 1),
        (0, 1),
        (1, 0),
        (None, 1),
        (..., None),
        (..., 1),
        (1, True),
        (1, 0),
    ]
    wide = np.arange(12, dtype=np.float32).reshape(6, 2)
    arrays = [(jnp.asarray(a), a) for a in (wide, wide.astype(np.int8))]
    for x, a in arrays:
        for _ in range(HOT + 2):
            for key in keys:
                np.testing.assert_array_equal(x[key], a[key], f"{key}")
        for key in keys * 2:
            for op, update in {"set": lambda old: 3, "add": lambda old: old + 3}.items():
                want = a.copy()
                want[key] = update(want[key])
                np.testing.assert_array_equal(getattr(x.at[key], op)(3), want, f"{key} {op}")


def test_hot_indices_are_found_by_one_lookup():
    x, seen = jnp.arange(12.0).reshape(3, 4), []
    for key in [np.s_[2], np.s_[1:3], np.s_[::2], np.s_[0, 1], np.s_[..., None], None]:
        for _ in range(HOT + 1):
            x[key]
        sys.setprofile(lambda frame, event, _: event == "call" and seen.append(frame.f_code))
        x[key]
        sys.setprofile(None)
    assert {code.co_name for code in seen} == {"getitem", "is_eager"}
    for _ in range(HOT + 1):
        assert x.at[9, 1].get(mode="clip") == 9
        with pytest.raises(IndexError):
            x[9, 1]


def test_an_index_of_arrays_and_numbers_is_read_again_as_it_was():
    host, i = np.arange(24.0).reshape(2, 3, 4), np.array([1, 0, -1])
    x, mask = jnp.asarray(host), np.array([True, False])
    keys = [np.s_[i, 1], np.s_[0, i], np.s_[:, i], np.s_[i[0], 2], np.s_[i, i], np.s_[i, ..., 1]]
    keys += [np.s_[i, 2], np.s_[i, -1], np.s_[1:, i, None], np.s_[mask, 1], np.s_[mask, i[:1]]]
    moved = [tuple(jnp.asarray(e) if isinstance(e, np.ndarray) else e for e in k) for k in keys]
    for _ in range(HOT + 2):
        for key, own in zip(moved, keys, strict=True):
            np.testing.assert_array_equal(x[key], host[own])
        with pytest.raises(IndexError):
            x[moved[0][0], 3]
    with weft.config.scope(check_bounds=False):
        for _ in range(HOT + 2):
            np.testing.assert_array_equal(x[moved[0][0], 3], host[i, 2])
    with pytest.raises(IndexError):
        x[moved[0][0], 3]
    seen = []
    for key in (np.s_[:, 1], moved[0], moved[4]):
        x[key]
        sys.setprofile(lambda frame, event, _: event == "call" and seen.append(frame.f_code))
        for _ in range(HOT + 1):
            x[key]
        sys.setprofile(None)
    assert seen[-1].co_name == "split_plain"


def test_masks_of_concrete_values_under_grad():
    x = jnp.arange(4.0)
    assert weft.grad(lambda v: (v[v > 1] ** 2).sum())(x).tolist() == [0, 0, 4, 6]


def test_iteration():
    assert [float(v) for v in jnp.arange(3.0)] == [0, 1, 2]
    assert [float(v) for v in jnp.arange(70.0)] == list(range(70))
    a, b = weft.jit(lambda v: tuple(v))(jnp.arange(2.0))
    assert (float(a), float(b)) == (0, 1)
    with pytest.raises(ShapeError, match=r"iter\(\): needs an array with an axis; got f32\[\]"):
        iter(jnp.float32(1))


# --- functions --------------------------------------------------------------------------------


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("indices", [1, -1, PAIR, GRID], ids=str)
def test_take(axis, indices):
    x = jnp.asarray(HOST)
    want = np.take(HOST, indices, axis)
    same(jnp.take(x, jnp.asarray(indices), axis), want)
    same(x.take(indices, axis), want)
    same(weft.jit(lambda v, i: jnp.take(v, i, axis))(x, indices), want)


def test_take_modes():
    x = jnp.arange(8.0)
    i = jnp.array([9, -1, -10])
    assert jnp.take(x, i, mode="clip").tolist() == [7, 0, 0]
    assert jnp.take(x, i, mode="wrap").tolist() == [1, 7, 6]
    np.testing.assert_array_equal(jnp.take(x, i, mode="fill"), [np.nan, 7, np.nan])
    assert jnp.take(x, i, mode="fill", fill_value=-1).tolist() == [-1, 7, -1]
    np.testing.assert_array_equal(weft.jit(jnp.take)(x, i), [np.nan, 7, np.nan])
    with pytest.raises(NotImplementedError, match="'raise'"):
        jnp.take(x, 0, mode="raise")
    with pytest.raises(TypeError, match="operands must be arrays"):
        jnp.take(x, [1, 2])
    with pytest.raises(TypeError, match="indices must be integers"):
        jnp.take(x, jnp.array([1.0]))


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, 2, 5), 1), ((3, 4, 2), 2), ((2, 4, 5), 0), ((1, 2, 5), 1), ((3, 2, 1), 1)],
)
def test_take_along_axis(shape, axis, rng):
    i = rng.integers(-HOST.shape[axis], HOST.shape[axis], shape).astype(np.int32)
    x = jnp.asarray(HOST)
    want = np.take_along_axis(HOST, i, axis)
    same(jnp.take_along_axis(x, jnp.asarray(i), axis), want)
    got = weft.vmap(lambda v: jnp.take_along_axis(v, i, axis))(jnp.stack([x, x]))
    same(got[1], want)
    if shape[0] == 3:
        grads = weft.grad(lambda v: jnp.take_along_axis(v, i, axis).sum())(x)
        assert float(grads.sum()) == want.size


def test_take_along_axis_modes_and_errors():
    x, i = jnp.arange(8.0), jnp.array([-1, 20])
    np.testing.assert_array_equal(jnp.take_along_axis(x, i, 0, mode="fill"), [7, np.nan])
    assert jnp.take_along_axis(x, i, 0, mode="clip").tolist() == [7, 7]
    assert jnp.take_along_axis(x.reshape(2, 4), jnp.array([5, 1]), None).tolist() == [5, 1]
    with pytest.raises(ShapeError, match="equal ranks"):
        jnp.take_along_axis(x.reshape(2, 4), i, 0)
    with pytest.raises(ShapeError, match="broadcast together but for axis 0"):
        jnp.take_along_axis(x.reshape(2, 4), jnp.zeros((1, 3), int), 0)


def test_choose():
    a = np.array([0, 1, 1])
    choices = [np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.int32)]
    same(jnp.choose(jnp.asarray(a), [jnp.asarray(c) for c in choices]), np.choose(a, choices))
    wild = jnp.array([-1, 1, 5])
    for mode in ("clip", "wrap"):
        got = jnp.choose(wild, [jnp.asarray(c) for c in choices], mode=mode)
        same(got, np.choose(np.asarray(wild), choices, mode=mode))
    with pytest.raises(ValueError, match=r"indices must be in \[0, 2\)"):  # as NumPy's
        jnp.choose(wild, [1, 2])


def test_no_lookups_in_an_empty_axis():
    x, none = jnp.zeros((0, 3)), jnp.zeros(0, int)
    for f in (
        lambda x, i: x[i],
        lambda x, i: x.at[i].add(1.0),
        lambda x, i: x.at[i].apply(jnp.sin),
        lambda x, i: jnp.take(x, i, axis=0),
        lambda x, i: jnp.take_along_axis(x, i[:, None], 0) + x,
        weft.grad(lambda x, i: x[i, 1:].sum()),
    ):
        assert f(x, none).shape == weft.jit(f)(x, none).shape == (0, 3)
    assert jnp.take_along_axis(x, none[:, None], 1).shape == (0, 1)
    assert x[x[:, 0] > 0].shape == (0, 3)


PLACES = np.array([0, 3, -1, -4, 4, 9, -5, -9])


def expected_places(i, n, mode, wrap):
    """Return the positions read on an axis of size n, and True where there is an element."""
    i = np.where(wrap & (i < 0), i + n, i)
    return np.clip(i, 0, n - 1), (i >= 0) & (i < n) | (mode == "clip")


@pytest.mark.parametrize("wrap", [True, False])
def test_modes_at_every_place_and_dtype_of_indices(wrap):
    """Known numbers, arrays and slices beside them, read now and in one program."""
    x = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    modes = {"clip": {"mode": "clip"}, "fill": {"mode": "fill", "fill_value": -7}}
    calls, wanted = [], []
    for mode, how in modes.items():
        for dtype in (np.int8, np.int16, np.int32, np.uint8, np.uint32, None):
            i = PLACES[PLACES >= 0] if dtype in (np.uint8, np.uint32) else PLACES
            at, there = expected_places(i, 4, mode, wrap)
            rows = np.where(there[:, None], x[at], -7)
            how = {**how, "wrap_negative_indices": wrap}
            keys = list(map(int, i)) if dtype is None else [i.astype(dtype)]
            for key, want in zip(keys, rows if dtype is None else [rows], strict=True):
                calls += [(key, how), ((key, slice(1, None)), how), ((slice(None), None, 1), how)]
                wanted += [want, want[..., 1:], x[:, None, 1]]
    every = lambda x: [x.at[key].get(**how) for key, how in calls]
    found = weft.jit(every)(x)
    for k, ((key, how), got, want) in enumerate(zip(calls, found, wanted, strict=True)):
        np.testing.assert_array_equal(got, want, f"{key} {how}")
        if k % 7 == 0:  # some of them now
            key = jnp.asarray(key) if isinstance(key, np.ndarray) else key
            np.testing.assert_array_equal(jnp.asarray(x).at[key].get(**how), want)


def test_counting_around_at_every_dtype_of_indices():
    x = np.arange(5, dtype=np.float32)
    for dtype in (np.int8, np.int16, np.int32, np.uint8, np.uint32):
        i = (PLACES[PLACES >= 0] if dtype in (np.uint8, np.uint32) else PLACES).astype(dtype)
        want = np.take(x, i.astype(int), mode="wrap")
        same(jnp.take(jnp.asarray(x), i, mode="wrap"), want)
        same(weft.jit(lambda i: jnp.take(x, i, mode="wrap"))(i), want)
    assert [float(jnp.take(x, n, mode="wrap")) for n in (7, -6)] == [2, 4]
    with pytest.raises(IndexError, match=r"must not be empty; got axis 0 of f32\["):
        jnp.zeros((0, 3))[jnp.array([0])]
    with pytest.raises(ValueError, match="choose: mode must be 'raise', 'wrap' or 'clip'; got 'a'"):
        jnp.choose(0, [1, 2], mode="a")


def test_take_along_axis_against_axes_of_size_one(rng):
    calls = []
    for axis in range(3):  # every choice of axes of indices that are 1
        for ones in itertools.product([False, True], repeat=3):
            shape = [1 if one else n for one, n in zip(ones, HOST.shape, strict=True)]
            i = rng.integers(0, HOST.shape[axis], shape).astype(np.int32)
            calls += [(HOST, i, axis), (HOST[:1] if axis else HOST[:, :1], i, axis)]
    found = weft.jit(lambda: [jnp.take_along_axis(*call) for call in calls])()
    for call, got in zip(calls, found, strict=True):
        same(got, np.take_along_axis(*call))


@pytest.mark.sample(one_in=3)
@pytest.mark.parametrize("start", [2, 9, -2])
@pytest.mark.parametrize("size, stride", [(2, 1), (2, 2), (0, 1)])
def test_slices_of_static_size_from_a_dynamic_start(start, size, stride):
    """Out of bounds, a slice is moved as a whole; with a stride, each of its elements."""
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    wanted = start + 5 * (start < 0) + stride * np.arange(size)
    low = min([5 - size, *wanted[:1]])
    places = np.clip(wanted, 0, 4) if stride > 1 else low + np.arange(size)
    index = weft.ds(np.int8(start), size, stride)
    same(jnp.asarray(x)[1:3, weft.ds(start, size, stride)], x[1:3, places])
    same(jnp.asarray(x)[[0, 2], index], x[np.ix_([0, 2], places)])
    traced = weft.vmap(lambda i: jnp.asarray(x)[1:3, weft.ds(i, size, stride)])
    same(traced(np.array([start])), x[None, 1:3, places])
    written = x.copy()
    written[:, [p for p in wanted if p < 5] if stride > 1 or max(wanted, default=0) < 5 else []] = 7
    same(jnp.asarray(x).at[..., index].set(7), written)


def test_what_ds_stands_for_and_refuses():
    x = jnp.arange(5)
    assert (weft.ds(None), repr(weft.ds(2))) == (slice(None), "Slice(start=0, size=2, stride=1)")
    moved = weft.grad(lambda x, i: x[weft.ds(i, 2)].sum())(np.ones(4, np.float32), 1)
    same(moved, np.array([0, 1, 1, 0], np.float32))
    for wrong, text in [
        (lambda: x[weft.ds(1, 6)], "ds: a slice must fit the axis; got 6 elements, 1 apart, for"),
        (lambda: weft.ds(0, -1), "ds: size must be 0 or more, and stride 1 or more; got -1 and 1"),
        (lambda: x[weft.ds(PAIR, 1)], r"ds: start must be a scalar integer; got i32\[2\]"),
        (lambda: weft.jit(lambda n: x[weft.ds(0, n)])(1), "ds: size: needs a concrete value"),
    ]:
        with pytest.raises((ValueError, IndexError), match=text):
            wrong()


LONG = 2**31 + 10  # an axis whose places int32 does not hold


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, i: x[i[0]],
        lambda x, i: x[i],
        lambda x, i: x[i, None],
        lambda x, i: jnp.take(x, i, mode="wrap"),
        lambda x, i: x.at[i[0]].set(1),
        lambda x, i: x.at[i].add(1),
        lambda x, i: weft.lax.dynamic_slice(x, (i[0],), (3,)),
        lambda x, i: weft.lax.dynamic_slice(x, (LONG - 3,), (3,)),
        lambda x, i: weft.lax.dynamic_update_slice(x, x[:3], (i[0],)),
    ],
)
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32"])
def test_places_in_an_axis_of_more_than_int32_holds(fun, dtype):
    x = weft.ShapeDtypeStruct((LONG,), np.int8)
    eqns = weft.make_jaxpr(fun)(x, weft.ShapeDtypeStruct((2,), dtype)).eqns
    using = next(e for e in eqns if e.primitive.name.startswith(("dynamic", "gather", "scatter")))
    assert {v.aval.dtype for v in using.invars if v.aval.dtype.kind == "i"} == {
        np.dtype(np.int8), np.dtype(np.int64),
    }  # fmt: skip


def test_all_places_in_an_array_with_such_an_axis_are_of_one_dtype():
    i = weft.ShapeDtypeStruct((), np.int32)
    for shape in ((LONG, 2), (2, LONG)):
        x = weft.ShapeDtypeStruct(shape, np.int8)
        for fun in (lambda x, i: x[i, i], lambda x, i: weft.lax.dynamic_slice(x, (i, i), (1, 1))):
            eqns = weft.make_jaxpr(fun)(x, i).eqns
            cut = next(e for e in eqns if e.primitive.name == "dynamic_slice")
            assert [v.aval.dtype for v in cut.invars[1:]] == [np.int64] * 2


@pytest.mark.slow  # 2 GB
def test_values_in_an_axis_of_more_than_int32_holds():
    x, i = jnp.zeros(LONG, jnp.int8).at[1].set(5).at[-3].set(7), jnp.array([1, -3])
    assert x[LONG - 3] == 7 == x[-3]
    same(x[i], np.array([5, 7], np.int8))
    same(x.at[i].add(1)[i], np.array([6, 8], np.int8))
    same(weft.lax.dynamic_slice(x, (LONG - 4,), (3,)), np.array([0, 7, 0], np.int8))
    same(
        weft.jit(lambda x, i: weft.lax.dynamic_slice(x, (i,), (3,)))(x, -4),
        np.array([0, 7, 0], np.int8),
    )
    same(jnp.take(x, i, mode="wrap"), np.array([5, 7], np.int8))
