"""Scatters along an axis by the kernel, against NumPy's `at` and XLA's; else XLA's own."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, expect, show_prepared
from weft import lax
from weft.cpu import kernels, scatters
from weft.options import config

HAS_KERNELS = not kernels.load_kernels()
WAYS = {
    "set": None,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.fixture(autouse=True)
def all_sizes(monkeypatch):
    monkeypatch.setattr(scatters, "MIN_UPDATES", 0)


def calls(fun, *args):
    return weft.jit(fun).lower(*args).as_text().count("weft_scatter")


def along_axes(way, x, i, last, first, **how):
    """A write along the last axis, the middle one with lanes, and in rows with own indices."""
    put = lambda x, i, u: getattr(x.at[i], way)(u, **how)
    return [
        getattr(x.at[:, :, i], way)(last, **how),
        getattr(x.at[:, i], way)(first, **how),
        weft.vmap(put)(x, jnp.stack([i, i[::-1], i % 2]), first),
    ]


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint32])
@pytest.mark.parametrize("way", WAYS)
def test_the_kernel_writes_in_order(way, dtype, rng):
    """Indices repeat, and some are outside of x: those below count from its end, others drop."""
    x, last, first = (
        rng.normal(size=s).astype(dtype) if dtype in (np.float32, np.float64) else
        rng.integers(0, 1 << 31, s).astype(dtype)
        for s in [(3, 5, 4), (3, 5, 7), (3, 7, 4)]
    )  # fmt: skip
    i = np.array([3, 0, 3, -1, 9, 1, 0])
    with config.scope(enable_x64=True, native=True):
        got = weft.jit(lambda *a: along_axes(way, *a))(x, i, last, first)
        called = calls(lambda *a: along_axes(way, *a), x, i, last, first)
        unsigned = dtype == np.uint32 and way in ("min", "max")
        assert called == (3 if HAS_KERNELS and not unsigned else 0)
    want = [x.copy() for _ in range(3)]
    for k, j in enumerate(i):
        for row, at in enumerate((j, i[::-1][k], j % 2)):
            if at < 5:
                write(way, want[2][row], at, first[row, k])
        if j < 4:
            write(way, np.moveaxis(want[0], 2, 0), j, last[:, :, k])
        if j < 5:
            write(way, np.moveaxis(want[1], 1, 0), j, first[:, k])
    for y, z in zip(got, want, strict=True):
        np.testing.assert_array_equal(y, z)


def write(way, x, i, u):
    """Combine `u` with x[i], in place."""
    with np.errstate(over="ignore"):
        x[i] = u if WAYS[way] is None else WAYS[way](x[i], u)


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("length", [3, 200, 256, 300, 5000])
def test_counts_in_pieces_are_numpys(dtype, length, rng):
    """Bytes count as wider integers: negative numbers as 0; too large ones are ignored."""
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = rng.integers(max(limits[0], -9), min(limits[1], 301), 100_003, endpoint=True).astype(dtype)
    want = np.bincount(np.maximum(x.astype(int), 0), minlength=length)[:length]
    weights = rng.integers(-(1 << 30), 1 << 30, x.size)
    sums = np.bincount(np.maximum(x.astype(int), 0), weights, length)[:length].astype(int)
    with config.scope(enable_x64=True, native=True):
        count = lambda x, w=None: jnp.bincount(x, w, length=length)
        assert calls(count, x) == calls(count, x, weights) == HAS_KERNELS
        np.testing.assert_array_equal(weft.jit(count)(x), want)
        np.testing.assert_array_equal(weft.jit(count)(x, weights), sums)
        got = weft.jit(count)(x, weights.astype(np.int32))
        np.testing.assert_array_equal(got, sums.astype(np.int32))  # it wraps
    if dtype == "u1":
        with config.scope(native=False):
            np.testing.assert_array_equal(weft.jit(count)(x), want)


def test_sums_of_integers_in_a_row_are_added_to_what_is_there(rng):
    x, i = rng.integers(0, 99, 40).astype(np.int32), rng.integers(-60, 60, 70_000)
    want, there = x.copy(), (i >= -40) & (i < 40)
    np.add.at(want, i[there], 3)
    add = lambda x, i: x.at[i].add(3)
    assert calls(add, x, i) == HAS_KERNELS
    np.testing.assert_array_equal(weft.jit(add)(x, i), want)
    twice = lambda x, i: weft.lax.fori_loop(0, 2, lambda _, y: add(y, i), x)
    np.testing.assert_array_equal(weft.jit(twice)(x, i), 2 * want - x)
    both = weft.jit(weft.vmap(add, (None, 0)))(x, np.stack([i, i[::-1]]))
    np.testing.assert_array_equal(both, np.stack([want, want]))
    few = lambda x, i: weft.lax.scatter_add(
        x, i[:, None], jnp.ones(i.shape, x.dtype), weft.lax.ScatterDimensionNumbers((), (0,), (0,))
    )
    for dtype in (np.uint8, np.int16):  # as XLA has it
        found = weft.jit(few)(x, (i % 41).astype(dtype))
        np.testing.assert_array_equal(found, x + np.bincount(i % 41, minlength=41)[:40])


@pytest.mark.parametrize("rows", [3, 4, 9])
def test_rows_side_by_side(rows, rng):
    """Four rows at once, and those that are left; a vmapped scatter has indices for each row."""
    x, u = rng.normal(size=(rows, 50)), rng.normal(size=(rows, 300))
    i = rng.integers(-60, 60, 300)
    fun = lambda x, u: x.at[:, i].add(u)
    want = x.copy()
    for k in np.flatnonzero((i >= -50) & (i < 50)):
        want[:, i[k]] += u[:, k]
    with config.scope(enable_x64=True):
        assert calls(fun, x, u) == HAS_KERNELS
        np.testing.assert_array_equal(weft.jit(fun)(x, u), want)


@pytest.mark.parametrize("mode", ["clip", "drop", "promise_in_bounds"])
def test_modes_and_kinds_of_indices(mode, rng):
    x, u = rng.normal(size=(2, 3, 6)).astype(np.float32), rng.normal(size=(2, 3, 4))
    fun = lambda x, i, u: x.at[..., i].add(u.astype(x.dtype), mode=mode)
    for dtype in (np.int8, np.uint8, np.uint32, np.int32):
        i = np.array([5, 1, 5, 0] if mode == "promise_in_bounds" else [5, 1, 100, 5], dtype)
        with config.scope(native=False):
            want = weft.jit(fun)(x, i, u)
        np.testing.assert_array_equal(weft.jit(fun)(x, i, u), want)
        assert calls(fun, x, i, u) == HAS_KERNELS


def test_pieces_of_many_rows_give_the_same_bits(rng):
    x, u, i = np.zeros((300, 40, 3)), rng.normal(size=(300, 500, 3)), rng.integers(-50, 50, 500)
    fun = lambda x, u: jnp.tanh((x * 2).at[:, i].add(u + 1))
    with config.scope(native=False):
        want = weft.jit(fun)(x, u)
    np.testing.assert_array_equal(weft.jit(fun)(x, u), want)


def test_nan_stays(rng):
    x = np.float32([[np.nan, 1, 2], [3, np.nan, np.inf]])
    u = np.float32([[1, np.nan, 5], [np.nan, 1, -np.inf]])
    i = np.array([0, 1, 2])
    for way in ("min", "max"):
        got = weft.jit(lambda x, u: getattr(x.at[:, i], way)(u))(x, u)  # noqa: B023
        np.testing.assert_array_equal(got, WAYS[way](x, u))


def test_in_a_loop_it_writes_in_place_and_has_derivatives(rng):
    x, u = rng.normal(size=(8, 64)).astype(np.float32), np.ones((5, 8, 64), np.float32)
    i = rng.integers(0, 64, (5, 64))

    def fun(x, u):
        add = lambda k, x: x.at[:, i[k]].add(u[k] * x[:, :1])
        return weft.lax.fori_loop(0, 5, lambda k, x: add(k, x), x)

    i = jnp.asarray(i)
    got = weft.jit(fun)(x, u), weft.jit(weft.grad(lambda x, u: fun(x, u).sum(), (0, 1)))(x, u)
    assert bool(calls(fun, x, u)) == HAS_KERNELS
    if HAS_KERNELS:
        text = weft.jit(fun).lower(x, u).compile().as_text()
        assert "copy(f32[8,64]" not in text.split("ENTRY")[0]
    with config.scope(native=False):
        want = weft.jit(fun)(x, u), weft.jit(weft.grad(lambda x, u: fun(x, u).sum(), (0, 1)))(x, u)
    for y, z in zip(weft.tree.leaves(got), weft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-6)


def test_what_is_left_to_xla(rng):
    """XLA does few updates of copies, long windows, floats in a row, index pairs, other dtypes."""
    x, i = np.zeros((40, 100), np.float32), np.arange(2)
    assert not calls(lambda x: x.at[:, i].add(1), x)
    assert not calls(lambda x: x.at[i].add(1), x)
    assert not calls(lambda x: x.at[i, i].add(1), x)
    assert not calls(lambda x: x.at[:, i].add(1), x.reshape(4, 5, 200))
    assert not calls(lambda x: x.at[:, i].add(1), x.reshape(1000, 4).astype(np.float16))
    assert bool(calls(lambda x: x.at[:, i].add(1), x.reshape(1000, 4))) == HAS_KERNELS


def test_a_number_is_passed_as_one(monkeypatch):
    monkeypatch.undo()
    x, i = jnp.zeros(100, np.int32), jnp.zeros(9000, np.int32)
    dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    add = lambda x, i: lax.scatter_add(x, i[:, None], jnp.full(i.shape, 3), dims, mode="clip")
    expect(
        show_prepared(add, x, i),
        """
        { lambda ; a:i32[100] b:i32[9000]. let
            c:i32[9000,1] = broadcast_in_dim[
              broadcast_dimensions=(0,)
              shape=(9000, 1)
              sharding=None
            ] b
            d:i32[9000,1] = formula[settings=((100,), (1,), (0,)) write=lower_clamped] c
            e:i32[9000] = reshape[dimensions=None new_sizes=(9000,) sharding=None] d
            f:i32[100] = cpu_call[
              aliases={0: 0}
              axis=0
              kernel=weft_scatter
              kind='count'
            ] a e 3
          in (f,) }
        """,
    )
    assert show_prepared(add, x, i, target=NO_KERNELS) == str(weft.make_jaxpr(add)(x, i).jaxpr)
