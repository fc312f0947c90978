"""The kernels in C++ against the lowering without them, bit for bit where that is exact, and NumPy.

Where they were not built there is nothing to compare; `test_without_them` runs everywhere.
"""

import ctypes
import itertools
import platform
import shutil
import subprocess
import threading
import warnings

import ml_dtypes
import numpy as np
import pytest
from jaxlib import _jax

import weft
import weft.numpy as jnp
from tests.settings import ALL
from weft import lax
from weft.cpu import kernels
from weft.primitives.reduction import reduce_nansum_p
from weft.primitives.sort import partition_p
from weft.xla.foreign import new_capsule
from weft.xla.hlo import PATTERNS

needs_kernels = pytest.mark.skipif(bool(kernels.load_kernels()), reason="the kernels are not built")

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
INEXACT = ["float16", "float32", "float64", "complex64", "complex128", ml_dtypes.bfloat16]
DTYPES = [np.dtype(d) for d in ("bool", *INTEGERS, *INEXACT)]


def draw(rng, shape, dtype):
    """Numbers with ties, and among floats zeros of both signs, infinities and NaN."""
    x = rng.normal(size=shape) * 20
    if dtype.kind in "biu":
        return (np.abs(x) if dtype.kind == "u" else x).astype(dtype)
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5], size=shape)
    x = np.where(rng.uniform(size=shape) < 0.4, special, x)
    if dtype.kind == "c":
        parts = np.stack([x, rng.permutation(x, axis=-1)], -1)
        return parts.astype(dtype.type(0).real.dtype).view(dtype)[..., 0]
    return x.astype(dtype)


def by_kernels(fun, *args):
    """The results of a function that calls kernels, compiled."""
    compiled = weft.jit(fun)
    text = compiled.lower(*args).as_text()
    assert "custom_call @weft_" in text or '"weft_' in text
    return weft.tree.map(np.asarray, compiled(*args))


def both(fun, *args):
    """The results of a function with the kernels and without them, compiled."""
    found = by_kernels(fun, *args)
    with weft.config.scope(native=False):
        compiled = weft.jit(fun)
        assert "weft_" not in compiled.lower(*args).as_text()
        return found, weft.tree.map(np.asarray, compiled(*args))


def assert_same_bits(found, expected):
    for x, y in zip(weft.tree.leaves(found), weft.tree.leaves(expected), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        assert x.tobytes() == y.tobytes()


@pytest.fixture(params=["vectors", "digits"])
def way(request):
    """Sorts in each of the kernel's ways, where it has both."""
    library = ctypes.CDLL(str(next(kernels.FOLDER.glob("kernels.*"))))
    library.weft_sort_by_vectors.restype = ctypes.c_bool
    if not library.weft_sort_by_vectors(request.param == "vectors") and request.param == "vectors":
        pytest.skip("the machine has no vectors")
    yield
    library.weft_sort_by_vectors(True)


@pytest.mark.sample(one_in=2)
@needs_kernels
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sorts_of_each_dtype(dtype):
    rng = np.random.default_rng(0)
    with weft.enable_x64(True):
        # lengths below, between and above those at which the kernel changes its way
        rows = [draw(rng, shape, dtype) for shape in [(40, 7), (3, 300), (9000,)]]
        fun = lambda *xs: [(lax.sort(x), jnp.argsort(x)) for x in xs]
        found, expected = both(fun, *rows)
        assert_same_bits(found, expected)
        for x, (values, order) in zip(rows, found):
            if dtype.kind != "c" and dtype != ml_dtypes.bfloat16:
                np.testing.assert_array_equal(values, np.sort(x, axis=-1, kind="stable"))
                np.testing.assert_array_equal(order, np.argsort(x, axis=-1, kind="stable"))


@needs_kernels
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["uint32", "uint64", "float64"])
def test_sorts_by_the_upper_digits_of_keys(dtype):
    """Random keys, and keys whose upper digits look random one by one, but are equal."""
    rng = np.random.default_rng(2)
    with weft.enable_x64(True):
        for n in (3000, 20_000, 140_000):  # the last is cut into buckets
            if dtype == "float64":
                alike = np.repeat(rng.normal(size=n // 100), 100) + rng.integers(0, 9, n) * 1e-15
                keys = [rng.normal(size=n), alike]
            else:
                bits = np.iinfo(dtype).bits
                keys = [rng.integers(0, 2**bits, n, dtype=dtype)]
                for digit in (8, 11):
                    same = rng.integers(0, 2**digit, n, dtype=np.uint64)
                    alike = sum(same << np.uint64(at) for at in range(digit, bits, digit))
                    low = rng.integers(0, 2**digit, n, dtype=np.uint64)
                    keys.append((alike | low).astype(dtype))
                keys.append(np.tile(keys[0][: n // 2], 2))  # ties, which stay in their order
            for key in keys:
                np.testing.assert_array_equal(lax.sort(key), np.sort(key))
                np.testing.assert_array_equal(jnp.argsort(key), np.argsort(key, kind="stable"))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.float32])
def test_places_of_a_long_row_of_few_keys(dtype):
    """Keys are counted where all of them are within 2,048 of each other."""
    rng, n = np.random.RandomState(0), (1 << 17) + 77
    for low, high in ((0, 2), (0, 2048), (-1024, 1025)):
        x = rng.randint(low, high, n)
        x[5:7] = low, high - 1
        x = (1 + x * 2.0**-23).astype(dtype) if dtype is np.float32 else x.astype(dtype)
        far = x.copy()
        far[7] = np.nan if dtype is np.float32 else np.iinfo(dtype).max
        with weft.config.scope(enable_x64=True):
            for row in (x, np.sort(x), far):
                want = np.argsort(row, kind="stable")
                np.testing.assert_array_equal(jnp.argsort(row), want)


@needs_kernels
def test_sorts_of_several_arrays_along_each_axis():
    rng = np.random.default_rng(1)
    shape = (5, 60, 3)
    keys = rng.integers(0, 4, shape), draw(rng, shape, np.dtype(np.float32))
    carried = [draw(rng, shape, d) for d in map(np.dtype, ("uint8", "complex128", "float16"))]
    with weft.enable_x64(True):
        for axis in range(3):
            sort = lambda *xs, axis=axis: lax.sort(xs, axis, num_keys=2)
            found, expected = both(sort, *keys, *carried)
            assert_same_bits(found, expected)
            order = np.lexsort((keys[1] + 0.0, keys[0]), axis=axis)
            np.testing.assert_array_equal(found[2], np.take_along_axis(carried[0], order, axis))


def order_badly(n, lanes):
    """Return integers that make the pivots of vector_sort.h nearly the smallest remaining ones."""
    left, ranks, given = np.arange(n), np.full(n, n), 0
    while len(left) > 8 * lanes:
        some = left[[(2 * i + 1) * len(left) // (2 * lanes) for i in range(lanes)]]
        ranks[some] = np.where(ranks[some] < n, ranks[some], given + np.arange(lanes))
        given += lanes
        high = ranks[left] >= np.sort(ranks[some])[lanes // 2]
        parts = [left[i : i + lanes][high[i : i + lanes]] for i in range(0, len(left), lanes)]
        left = np.concatenate(parts[::-1])
    return ranks


@pytest.mark.sample(one_in=4)
@needs_kernels
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("lanes", [4, 8, 16])  # of vectors of AVX2 or AVX-512
def test_a_row_for_which_pivots_are_bad(dtype, lanes):
    row = order_badly(3000, lanes)
    with weft.enable_x64(True):
        np.testing.assert_array_equal(lax.sort(jnp.asarray(row, dtype)), np.sort(row))


@needs_kernels
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_rows_of_lengths_that_are_sorted_in_registers(dtype):
    rng = np.random.default_rng(9)
    for n in [*range(1, 10), *range(15, 18), 31, 33, 39, 63, 65, 66, 71, 127, 128, 129, 135, 515]:
        x = rng.choice(rng.integers(0, 2**32, 50, np.uint64), (3, n)).astype(dtype)
        x[:, rng.integers(n)] = np.iinfo(dtype).max
        with weft.enable_x64(True):
            np.testing.assert_array_equal(lax.sort(x), np.sort(x))


@needs_kernels
@pytest.mark.usefixtures("way")
def test_a_sort_of_pairs_of_words_as_permutations_take():
    rng = np.random.default_rng(7)
    words = [rng.integers(0, 50, s).astype(np.uint32) << 24 for s in [(3, 20), (2, 700), (9000,)]]
    values = [rng.normal(size=w.shape).astype(np.float32) for w in words]
    fun = lambda words, values: [lax.sort(pair) for pair in zip(words, values)]
    found, expected = both(fun, words, values)
    assert_same_bits(found, expected)


@needs_kernels
@pytest.mark.usefixtures("way")
def test_a_sorted_and_a_constant_row_and_rows_of_no_elements():
    x = np.stack([np.arange(100), np.full(100, 7), np.arange(100)[::-1]]).astype(np.int32)
    assert_same_bits(*both(lax.sort, x))
    assert weft.jit(jnp.sort)(np.zeros((3, 0), np.float32)).shape == (3, 0)
    assert weft.jit(jnp.sort)(np.zeros((0, 3), np.float32)).shape == (0, 3)


@needs_kernels
@pytest.mark.usefixtures("way")
def test_long_rows_of_numbers_alone_and_with_nan():
    x = np.random.default_rng(8).normal(size=600_000).astype(np.float32)
    running = lambda x: (lax.cummax(x), lax.cummin(x, reverse=True))
    fun = weft.jit(lambda x: (jnp.sort(x), jnp.argmax(x), jnp.argmin(x), jnp.max(x), *running(x)))
    zeros = np.where(x < -0.5, np.float32(-0.0), np.maximum(x, 0))
    exact = lambda y: np.asarray(y).view(np.int32)
    order = np.argsort(zeros, kind="stable")
    np.testing.assert_array_equal(exact(fun(zeros)[0]), exact(zeros[order]))
    late = np.where(np.arange(x.size) > 500_000, np.float32(np.nan), np.minimum(x, 1))
    for y in (x, np.minimum(x, 1), late, late[::-1]):  # as ties and NaN, in one part or in several
        found = fun(y)
        expected = [np.sort(y), np.argmax(y), np.argmin(y), np.max(y)]
        expected += [np.maximum.accumulate(y), np.minimum.accumulate(y[::-1])[::-1]]
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, expected))


@needs_kernels
def test_many_rows_and_threads():
    x = np.random.default_rng(2).normal(size=(2000, 100)).astype(np.float32)
    sort = weft.jit(lambda x: (jnp.sort(x), jnp.argsort(x), jnp.cumsum(x, 1)))
    expected = weft.tree.map(np.asarray, sort(x))
    np.testing.assert_array_equal(expected[0], np.sort(x, 1))
    results = []
    run = lambda: results.extend(weft.tree.map(np.asarray, sort(x)) for _ in range(5))
    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 20
    for found in results:
        assert_same_bits(found, expected)


@pytest.mark.sample(one_in=4)
@needs_kernels
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "c"], ids=str)
def test_the_largest_and_their_places(dtype):
    rng = np.random.default_rng(9)
    with weft.enable_x64(True):
        short, long = draw(rng, (20, 90), dtype), draw(rng, (70_000,), dtype)
        calls = [(short, 1), (short, 9), (short, 60), (long, 5), (np.sort(long), 600)]
        fun = lambda *xs: [lax.top_k(x, k) for x, (_, k) in zip(xs, calls)]
        assert_same_bits(*both(fun, *[x for x, _ in calls]))


@pytest.mark.sample(one_in=16)
@needs_kernels
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_partitions(dtype):
    """The elements before a chosen rank are, sorted, those before it in the sorted row."""
    rng = np.random.default_rng(10)
    zero = dtype.type(0)  # -0 is 0 once it is added
    known = np.dtype(np.float32 if dtype == ml_dtypes.bfloat16 else dtype)  # to NumPy, with its NaN

    def exact(x, y):
        np.testing.assert_array_equal(x.astype(known), y.astype(known))

    with weft.enable_x64(True):
        for shape, kth in [
            ((5, 40), [3]),
            ((3, 300), [0, 150, 151, 299]),
            ((70_000,), [9, 40_000]),
        ]:
            x = draw(rng, shape, dtype)
            some = np.repeat(x[..., :1], shape[-1], -1)
            some[..., ::7] = x[..., ::7]
            about = np.broadcast_to(np.int32([*kth, -1, shape[-1]]), (*shape[:-1], len(kth) + 2))
            for row in (x, np.asarray(lax.sort(x))[..., ::-1], some):
                fun = lambda x, k, p: partition_p.bind(x, k, axis=x.ndim - 1, places=p)
                ordered = by_kernels(lambda x, k=about, f=fun: (f(x, k, False), f(x, k, True)), row)
                expected = np.asarray(lax.sort(row)) + zero
                assert (np.sort(ordered[1], -1) == np.arange(shape[-1])).all()
                for y in (ordered[0], np.take_along_axis(row, ordered[1], -1)):
                    for k in (*kth, shape[-1] - 1):
                        exact(np.asarray(lax.sort(y[..., : k + 1])) + zero, expected[..., : k + 1])
                    exact(y[..., kth] + zero, expected[..., kth])


@needs_kernels
def test_a_row_whose_samples_are_bad():
    """The samples of partition.cc get the largest remaining elements: splits remove few."""
    left, row, high, size = np.arange(4000), np.full(4000, -1), 4000, 64
    while len(left) > 48:
        some = left[(2 * np.arange(size) + 1) * len(left) // (2 * size)]
        some = some[row[some] < 0]
        high -= len(some)
        row[some] = high + np.arange(len(some))
        # the first bounds are 8 samples beyond the place, and the others are at the place
        kept = row[some[8]] if len(left) == len(row) else -1
        left = left[row[left] <= kept]
        size = 64 if len(left) > 256 else 16
    row[left] = np.arange(len(left))
    expected = np.sort(row)
    np.testing.assert_array_equal(jnp.partition(row, 0)[0], expected[0])
    np.testing.assert_array_equal(jnp.partition(row, 40)[:41].sort(), expected[:41])


CUMULATIVE = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
}


@pytest.mark.sample(one_in=4)
@needs_kernels
@pytest.mark.parametrize("name", CUMULATIVE)
def test_running_reductions(name):
    rng = np.random.default_rng(3)
    shapes = [((2, 50, 3), 1), ((300,), 0), ((3, 20, 200), 1), ((4, 40000), 1)]
    shapes += [
        ((37, 300, 2), 1),
        ((21, 17), 1),
        ((40003,), 0),
        ((4, 1100), 0),
    ]  # by lanes of vectors
    ints = [rng.integers(-9, 9, s).astype(d) for s, _ in shapes for d in (np.int32, np.int64)]
    floats = [rng.uniform(0.99, 1.01, s).astype(d) for s, _ in shapes for d in (np.float32, float)]
    axes = [axis for _, axis in shapes for _ in range(2)]
    run = getattr(lax, name)

    def fun(ints, floats):
        pairs = [*zip(ints, axes), *zip(floats, axes)]
        return [run(x, axis, reverse=r) for x, axis in pairs for r in (False, True)]

    with weft.enable_x64(True):
        found, expected = both(fun, ints, floats)
    exact = len(found) // 2
    assert_same_bits(found[:exact], expected[:exact])
    wide = {np.dtype(np.float32): np.float64}
    for i, x in enumerate(ints + floats):
        axis, x = axes[i % len(ints)], x.astype(wide.get(x.dtype, x.dtype))
        y = CUMULATIVE[name](x, axis, dtype=x.dtype)
        z = np.flip(CUMULATIVE[name](np.flip(x, axis), axis, dtype=x.dtype), axis)
        np.testing.assert_allclose(found[2 * i], y, rtol=2e-7 if i >= len(ints) else 0)
        np.testing.assert_allclose(found[2 * i + 1], z, rtol=2e-7 if i >= len(ints) else 0)


@pytest.mark.sample(one_in=5)
@needs_kernels
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "complex64"])
def test_running_reductions_of_short_rows_and_few_lanes(dtype):
    """Rows four at once, lanes that vectors have, and do not, and a few long rows."""
    rng = np.random.default_rng(16)
    shapes = [(43, 5, 1), (9, 1, 1), (12, 3, 5), (7, 12, 13), (5, 9, 31), (6, 5, 16), (4, 7, 100)]
    shapes += [(2, 40_000, 1), (3, 9000, 6), (1, 70_001, 3), (1, 50, 2)]
    is_int, signs = dtype.startswith("int"), [rng.choice([-1, 1], s) for s in shapes]
    if is_int:
        xs = [(s * rng.integers(0, 9, s.shape)).astype(dtype) for s in signs]
    else:
        xs = [(s * (1 + rng.normal(size=s.shape) / 1000)).astype(dtype) for s in signs]
    wide = {"float32": np.float64, "complex64": np.complex128}.get(dtype, dtype)
    for name in ["cumsum"] if dtype == "complex64" else CUMULATIVE:
        run = getattr(lax, name)
        with weft.enable_x64(True):
            found = by_kernels(lambda xs, r=run: [(r(x, 1), r(x, 1, reverse=True)) for x in xs], xs)
        for x, (y, z) in zip(xs, found, strict=True):
            want = CUMULATIVE[name](x, 1, dtype=wide)
            back = np.flip(CUMULATIVE[name](np.flip(x, 1), 1, dtype=wide), 1)
            slack = {"rtol": 0 if is_int else 1e-7, "atol": 0 if is_int else 1e-6}
            np.testing.assert_allclose(y, want, **slack)
            np.testing.assert_allclose(z, back, **slack)


def test_a_processor_without_what_the_kernels_need(tmp_path, monkeypatch, caplog):
    """A handler says so where it is made known; weft then goes without all of them."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if not compiler or platform.machine() != "x86_64":
        pytest.skip("there is no compiler, or no such processor")
    if not (kernels.FOLDER / "keep.cc").exists():
        pytest.skip("the sources are not here, as in a wheel")
    sources = [str(kernels.FOLDER / f"{name}.cc") for name in ("blocks", "common", "keep")]
    flags = ["-std=c++17", "-mavx2", "-fPIC", "-shared", "-w", f"-I{weft.ffi.include_dir()}"]
    lacks = "-D__builtin_cpu_supports(x)=0"
    made = str(tmp_path / "kernels.so")
    subprocess.run([compiler, *flags, lacks, *sources, "-o", made], check=True)
    keep = new_capsule(ctypes.CDLL(made).weft_keep)
    with pytest.raises(weft.errors.JaxRuntimeError, match="the processor has no AVX2"):
        _jax.register_custom_call_target("keep_of_another_processor", keep, "Host", 1)
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)
    assert "the processor has no AVX2" in kernels.load_kernels.__wrapped__()
    assert not caplog.records  # there is nothing to mend


@needs_kernels
def test_running_sums_of_complex_numbers():
    rng = np.random.default_rng(13)
    for shape, axis in [((3, 40), 1), ((40, 300), 1), ((60, 70), 0), ((40001,), 0), ((0, 3), 0)]:
        x = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)
        found = lax.cumsum(x, axis), lax.cumsum(x, axis, reverse=True)
        if x.size:
            found = by_kernels(
                lambda x, a=axis: (lax.cumsum(x, a), lax.cumsum(x, a, reverse=True)), x
            )
        wide = x.astype(np.complex128)
        wants = np.cumsum(wide, axis), np.flip(np.cumsum(np.flip(wide, axis), axis), axis)
        for y, want in zip(found, wants, strict=True):
            near = 1e-7 * max(1, abs(want).max(initial=0))  # a unit of the larger part
            np.testing.assert_allclose(y, want, rtol=1e-7, atol=near)


@needs_kernels
def test_a_long_running_sum_of_special_values():
    x = np.random.default_rng(14).normal(size=70000).astype(np.float32)
    x[:3], x[40000], x[60000] = -0.0, np.inf, np.nan
    y = np.asarray(weft.jit(jnp.cumsum)(x))
    assert np.signbit(y[:3]).all() and np.isfinite(y[:40000]).all()
    assert (y[40000:60000] == np.inf).all() and np.isnan(y[60000:]).all()


@needs_kernels
def test_running_reductions_of_special_values():
    few = np.float32([[-0.0, -0.0, 1, np.nan, 2], [np.inf, 1, -np.inf, 0, 3]])
    long = np.repeat(few[:, ::-1], 200, 1)  # rows that the kernel walks in segments
    with np.errstate(invalid="ignore"):
        for name, reference in CUMULATIVE.items():
            run = getattr(lax, name)
            found, expected = both(lambda x, y, r=run: (r(x, 1), r(y, 1, reverse=True)), few, long)
            np.testing.assert_array_equal(found[0], reference(few, 1))
            np.testing.assert_array_equal(found[1], reference(long[:, ::-1], 1)[:, ::-1])
            np.testing.assert_array_equal(
                np.signbit(found[0][:, :3]), np.signbit(expected[0][:, :3])
            )
            signs = [np.signbit(y[1][:, -400:]) for y in (found, expected)]
            np.testing.assert_array_equal(*signs)


@needs_kernels
def test_extrema_and_their_places():
    rng = np.random.default_rng(5)
    shapes = [((3000,), 0), ((40, 70), 1), ((2, 70, 303), 1), ((1, 1, 1500), 1), ((2100, 2), 0)]
    shapes += [((9, 700), -1), ((70_000,), 0)]
    # NumPy does not find the NaN of bfloat16.
    numbers = [d for d in DTYPES if d.kind != "c" and d != ml_dtypes.bfloat16]
    pairs = [
        (shape, dtype)
        for i, shape in enumerate(shapes)
        for j, dtype in enumerate(numbers)
        if ALL or (i + j) % 2 == 0
    ]
    xs = [draw(rng, s, d) for (s, _), d in pairs]
    xs += [
        np.zeros(2000, bool),
        np.arange(2000) > 1800,
        np.arange(2000) < 1800,
        np.where(np.arange(2000) > 1500, np.nan, 1),
    ]  # ties, and a late NaN
    xs += [np.arange(2000) % 1999, -np.arange(2000.0)]
    axes = [axis for (_, axis), _ in pairs] + [0] * 6
    pick = (jnp.argmax, jnp.argmin, jnp.max, jnp.min)
    fun = lambda xs: [[f(x, a) for f in pick] for x, a in zip(xs, axes)]
    with weft.enable_x64(True):
        found = by_kernels(fun, xs)
    for x, axis, (largest, smallest, high, low) in zip(xs, axes, found):
        np.testing.assert_array_equal(largest, np.argmax(x, axis))
        np.testing.assert_array_equal(smallest, np.argmin(x, axis))
        np.testing.assert_array_equal(high, np.max(x, axis))
        np.testing.assert_array_equal(low, np.min(x, axis))


@needs_kernels
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_extrema_of_halves_with_zeros_and_nan_of_both_signs(dtype):
    wide = draw(np.random.default_rng(6), (6, 2000), np.dtype(np.float32))
    wide[:4, :][np.isnan(wide[:4, :])] = -0.0
    wide[0] = -np.abs(wide[0])
    wide[4][np.isnan(wide[4])] = -np.float32(np.nan)
    fun = lambda x: [f(x, a) for f in (jnp.max, jnp.min, jnp.argmax, jnp.argmin) for a in (0, 1)]
    found, expected = both(fun, wide.astype(dtype))
    for i, (x, y) in enumerate(zip(found, expected)):
        np.testing.assert_array_equal(x.astype(np.float32), y.astype(np.float32))
        if i >= 4:
            pick = np.argmax if i < 6 else np.argmin
            np.testing.assert_array_equal(x, pick(wide.astype(dtype).astype(np.float32), i % 2))


@needs_kernels
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_extrema_of_what_is_not_nan(dtype):
    rng = np.random.default_rng(11)
    x = draw(rng, (100, 900), np.dtype(np.float32))
    x[3], x[:, 5] = np.nan, np.nan  # a row and a column of nothing else
    x[5, ::2], x[5, 1::2] = np.nan, -np.inf
    x[6, ::2], x[6, 1::2] = np.nan, np.inf
    long = np.repeat(np.float32([np.nan, -np.inf]), 40_000)  # a piece of NaN only
    fun = lambda x, *more: [
        *(f(x, a) for f in (jnp.nanmax, jnp.nanmin) for a in (0, 1, None)),
        *(f(y) for f in (jnp.nanmax, jnp.nanmin) for y in more),
        weft.grad(lambda x: jnp.nanmax(x, 1)[7:].sum())(x),
    ]
    with weft.enable_x64(True):
        given = [y.astype(dtype) for y in (x, long, long[::-1], np.full(9000, np.nan))]
        found, expected = both(fun, *given)
    for y, z in zip(found, expected):
        np.testing.assert_array_equal(y.astype(np.float32), z.astype(np.float32))
    assert found[6] == found[7] == -np.inf and np.isnan([float(found[i]) for i in (8, 11)]).all()
    wide = given[0].astype(np.float32)
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        np.testing.assert_array_equal(found[1].astype(np.float32), np.nanmax(wide, 1))


def test_maxima_of_many_floats_keep_nan():
    """XLA:CPU gives reductions of some thousands of floats to a library that loses NaN."""
    x = np.random.default_rng(6).normal(size=(2, 48, 100)).astype(np.float32)
    x[0, 7, 30] = np.nan
    window = (1, 2, 2)
    pool = lambda x: lax.reduce_window(x, -np.inf, lax.max, window, window, "VALID")
    fun = lambda x: [*(jnp.max(x, a) for a in (0, 1, 2, (0, 2), None)), jnp.min(x), pool(x)]
    for native_too in (True, False):
        with weft.config.scope(native=native_too):
            counts = [int(np.isnan(y).sum()) for y in weft.jit(fun)(x)]
        assert counts == [1] * 7


@needs_kernels
def test_sums_of_what_a_program_is_called_with():
    rng = np.random.default_rng(0)
    shapes = {(100_003,): 0, (40, 1000): 1, (1000, 70): 0, (3, 200, 100): 1, (7, 8, 1001): (1, 2)}
    with weft.enable_x64(True):
        for dtype in (np.float32, np.float64):
            for shape, axis in shapes.items():
                x = rng.normal(size=shape).astype(dtype)
                found, expected = both(lambda x, axis=axis: x.sum(axis), x)
                exact = x.astype(np.longdouble).sum(axis)
                size = np.abs(x).sum(axis) * np.finfo(dtype).eps
                assert (np.abs(found - exact) <= size / 2).all()
                np.testing.assert_allclose(found, expected, atol=float(np.max(size)) * 40)


SUMMED = {
    (100_003,): 0,
    (40, 1000): 1,
    (1000, 70): -2,
    (3, 200, 100): 1,
    (300, 130): 1,
    (6, 8, 20, 50): (0, -2, -1),
}


@pytest.mark.sample(one_in=4)
@needs_kernels
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_sums_of_what_is_not_nan(dtype):
    rng = np.random.default_rng(12)
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    wide = np.dtype(np.longdouble)
    names = ("nansum", "nanmean", "nanvar", "nanstd")
    small = dtype.itemsize < 4
    for shape, axis in SUMMED.items():
        x = rng.normal(size=shape)
        x[rng.uniform(size=shape) < 0.3] = np.nan
        x[..., 3] = np.nan
        x, eps = x.astype(dtype), float(ml_dtypes.finfo(dtype).eps)
        fun = lambda x, axis=axis: [getattr(jnp, name)(x, axis) for name in names]
        slope = weft.grad(lambda x, fun=fun: jnp.sum(fun(x)[2].astype(np.float32)))
        with weft.enable_x64(True):
            found, expected = (
                both(fun, x) if not small else [[*map(np.asarray, weft.jit(fun)(x))]] * 2
            )
            slopes = np.asarray(weft.jit(slope)(x)).astype(float)
        assert np.isfinite(slopes).all() and not slopes[np.isnan(x)].any()
        total = np.nansum(np.abs(x.astype(wide)), axis)
        for name, y, z in zip(names, found, expected):
            assert y.dtype == dtype
            with np.errstate(invalid="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about NaN only
                exact = getattr(np, name)(x.astype(wide), axis)
            np.testing.assert_allclose(y.astype(wide), z.astype(wide), rtol=40 * eps, atol=eps * 40)
            slack = total * eps if name == "nansum" else 4 * eps * np.maximum(np.abs(exact), 1)
            close = np.abs(y.astype(wide) - exact) <= slack
            assert (close | np.isnan(exact) & np.isnan(y)).all()


@needs_kernels
def test_sums_of_what_is_not_nan_of_special_values():
    inf, nan = np.inf, np.nan
    long = 1 << 16
    rows = [[nan] * 4, [inf, nan, inf, nan], [inf, nan, -inf, nan], [-0.0] * 4, [nan, 1, nan, 2]]
    x = np.repeat(np.float32(rows), long // 4, 1)
    fun = lambda x: [*(f(x, 1) for f in (jnp.nansum, jnp.nanmean, jnp.nanvar)), jnp.nansum(x.T, 0)]
    found, expected = both(fun, x)
    n = long / 4
    np.testing.assert_array_equal(found[0], [0, inf, nan, 0, 3 * n])
    np.testing.assert_array_equal(found[1], [nan, inf, nan, 0, 1.5])
    np.testing.assert_array_equal(found[2], [nan, nan, nan, 0, 0.25])
    for y, z in zip(found, expected):
        np.testing.assert_array_equal(y, z)
    both(lambda x: [jnp.nansum(x), jnp.nansum(x[:, :0], 1), jnp.nansum(x[:0], 0)], x)
    # of one row in pieces, and the number of more elements than floats count one by one
    many = np.ones(20_000_001, np.float32)
    assert jnp.nanmean(many) == 1
    assert reduce_nansum_p.apply(many, axes=(0,), counts=True)[0] == 20_000_000
    assert both(jnp.nansum, np.full(long * 2, nan, np.float32))[0] == 0


@needs_kernels
def test_sums_of_what_is_not_nan_under_transformations():
    rng = np.random.default_rng(13)
    x = rng.normal(size=(3, 4, 200, 40)).astype(np.float32)
    x[rng.uniform(size=x.shape) < 0.2] = np.nan
    for name in ("nansum", "nanmean", "nanvar"):
        f = lambda x, f=getattr(jnp, name): f(x, (0, 1)) * 2
        fun = lambda x, f=f: weft.vmap(weft.vmap(lambda x: [f(x), weft.jacrev(f)(x)], 1))(x)
        turned = x.transpose(0, 2, 1, 3)
        wide = np.where(np.isnan(x), 0, x.astype(float))
        numbers = ~np.isnan(x)
        values, slopes = weft.jit(fun)(turned)
        exact = 2 * getattr(np, name)(x.astype(float), (2, 3))
        np.testing.assert_allclose(values, exact, rtol=2e-6, atol=3e-5)
        count = numbers.sum((2, 3), keepdims=True)
        slope = {
            "nansum": 2 * numbers,
            "nanmean": 2 * numbers / count,
            "nanvar": 4 * numbers * (wide - wide.sum((2, 3), keepdims=True) / count) / count,
        }[name]
        np.testing.assert_allclose(slopes, slope, rtol=1e-4, atol=1e-7)
    plain = lambda x: jnp.nansum(x, (0, 2))
    pushed = weft.jit(lambda x, t: weft.jvp(weft.vmap(plain), (x,), (t,)))(x, x)
    for y in pushed:
        np.testing.assert_allclose(y, np.nansum(x, (1, 3)), rtol=1e-4, atol=1e-4)


@needs_kernels
def test_products_of_rows():
    rng = np.random.default_rng(14)
    with weft.enable_x64(True):
        for dtype in (np.float32, np.float64, np.complex64, np.complex128):
            for shape, axis in {(100_003,): 0, (40, 1000): 1, (300, 130): -1}.items():
                x = rng.choice([-1, 1], shape) * rng.uniform(0.5, 1.98, shape)
                if np.issubdtype(dtype, np.complexfloating):
                    x = x * np.exp(1j * rng.normal(size=shape))
                x = (x * np.exp(-np.log(np.abs(x)).mean(axis, keepdims=True))).astype(dtype)
                found = by_kernels(lambda x, axis=axis: jnp.prod(x, axis), x)
                exact = x.astype(np.result_type(dtype, np.longdouble)).prod(axis)
                slack = np.sqrt(shape[axis]) * 8 * np.finfo(dtype).eps
                assert found.dtype == dtype and (abs(found - exact) <= slack * abs(exact)).all()
    x = np.ones((5, 1 << 15), np.float32)
    x[0, 7], x[1, 9], x[2, 3], x[3, 5] = np.nan, np.inf, -0.0, -np.inf
    found = by_kernels(lambda x: [x.prod(1), x.reshape(-1)[1 << 15 :].prod()], x)
    np.testing.assert_array_equal(found[0], [np.nan, np.inf, -0.0, -np.inf, 1])
    assert np.signbit(found[0][2])


@needs_kernels
def test_sums_of_complex_numbers():
    rng = np.random.default_rng(15)
    with weft.enable_x64(True):
        for dtype in (np.complex64, np.complex128):
            for shape, axis in [*SUMMED.items()][:-1]:
                x = (rng.normal(size=shape) + 1j * rng.normal(size=shape) * 3).astype(dtype)
                found, expected = both(lambda x, axis=axis: jnp.sum(x, axis), x)
                assert found.dtype == dtype
                exact = x.astype(np.clongdouble).sum(axis)
                size = np.abs(x).sum(axis) * np.finfo(dtype).eps
                assert (np.abs(found - exact) <= size).all()
                np.testing.assert_allclose(found, expected, atol=float(np.max(size)) * 40)


@needs_kernels
def test_inner_products_of_long_vectors():
    once = lambda x, y: jnp.dot(x.ravel(), y.ravel())
    each = lambda x, y: weft.vmap(lambda x, y: jnp.einsum("ij,ij", x, jnp.sin(y)))(x, y)
    slopes = lambda x, y: weft.grad(lambda x: once(x * 2, y) * once(x, x))(x)
    rng = np.random.default_rng(1)
    with weft.enable_x64(True):
        for dtype in (np.float32, np.float64):
            x, y = rng.normal(size=(2, 3, 100, 333)).astype(dtype)
            products = x.astype(np.longdouble) * y
            for fun, expected in (
                (once, products.sum()),
                (each, (x.astype(np.longdouble) * np.sin(y.astype(np.longdouble))).sum((1, 2))),
            ):
                found = by_kernels(fun, x, y)
                assert found.dtype == dtype
                size = np.finfo(dtype).eps * np.abs(products).sum()
                np.testing.assert_allclose(found, expected.astype(float), atol=size)
            total, squares = 2 * products.sum(), (x.astype(np.longdouble) ** 2).sum()
            expected = 2 * squares * y + total * 2 * x
            slack = 1e-3 if dtype == np.float32 else 1e-12
            np.testing.assert_allclose(weft.jit(slopes)(x, y), expected.astype(float), rtol=slack)


@needs_kernels
def test_sums_of_nan_and_infinity():
    x = np.zeros((2, 1 << 16), np.float32)
    x[0, 7], x[1, 9] = np.nan, np.inf
    np.testing.assert_array_equal(weft.jit(lambda x: x.sum(1))(x), [np.nan, np.inf])


@needs_kernels
def test_lu_of_many_small_matrices():
    rng = np.random.default_rng(9)
    shapes = [(300, 8, 8), (3, 5, 7), (2, 2, 9, 6), (2, 32, 32)]
    xs = [rng.normal(size=s).astype(d) for s in shapes for d in (np.float32, np.float64)]
    for x in xs:
        x[0, ..., 2] = 0
    with weft.enable_x64(True):
        found, expected = both(lambda xs: [lax.linalg.lu(x) for x in xs], xs)
    for x, (factors, pivots, order), (_, *exact) in zip(xs, found, expected):
        assert_same_bits((pivots, order), exact)
        m, n = x.shape[-2:]
        left = np.tril(factors, -1)[..., : min(m, n)] + np.eye(m, min(m, n), dtype=x.dtype)
        made = left @ np.triu(factors)[..., : min(m, n), :]
        want = np.take_along_axis(x, order[..., None], -2)
        np.testing.assert_allclose(made, want, atol=20 * np.finfo(x.dtype).eps)


@needs_kernels
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_triangular_systems_of_small_matrices(dtype):
    rng = np.random.default_rng(10)
    flags = [dict(zip(HOW, f, strict=True)) for f in itertools.product((True, False), repeat=4)]
    # in lanes, the last ones unused and with few elements, and one after the other
    for batch, n, k in [((35,), 5, 3), ((4, 9), 6, 1), ((2, 0), 5, 2), ((), 7, 2), ((20,), 32, 40)]:
        a = rng.normal(size=(*batch, n, n)).astype(dtype) / n + np.eye(n, dtype=dtype) * 2
        b = rng.normal(size=(*batch, n, k)).astype(dtype)
        solve = lambda a, *sides: [
            lax.linalg.triangular_solve(a, sides[not how["left_side"]], **how) for how in flags
        ]
        right = np.swapaxes(b, -1, -2)
        with weft.enable_x64(True):
            if b.size:
                found, expected = both(solve, a, b, right)
            else:
                found = expected = weft.jit(solve)(a, b, right)
        for how, x, without in zip(flags, found, expected, strict=True):
            e = np.tril(a) if how["lower"] else np.triu(a)
            e = e - e * np.eye(n) + np.eye(n) if how["unit_diagonal"] else e
            e = np.swapaxes(e, -1, -2) if how["transpose_a"] else e
            made = e @ x if how["left_side"] else x @ e
            tol = 50 * np.finfo(dtype).eps
            np.testing.assert_allclose(made, b if how["left_side"] else right, atol=tol)
            np.testing.assert_allclose(x, without, atol=tol)


HOW = "left_side", "lower", "transpose_a", "unit_diagonal"


@needs_kernels
def test_systems_of_many_small_matrices():
    rng = np.random.default_rng(11)
    a = rng.normal(size=(37, 6, 6)).astype(np.float32)
    a[3], a[5, 2, 2], a[8, :, 1] = 0, np.nan, np.inf  # only their lanes are not finite
    good = [i for i in range(37) if i not in (3, 5, 8)]
    found, without = both(lambda a: (jnp.linalg.inv(a), jnp.linalg.det(a)), a)
    want = np.linalg.inv(a[good].astype(float)), np.linalg.det(a[good].astype(float))
    for x, y in zip((*found, *without), want * 2, strict=True):
        np.testing.assert_allclose(x[good], y, rtol=1e-3, atol=1e-4)
    assert found[1][3] == 0
    for x in found[0][[3, 5, 8]]:
        assert not np.isfinite(x).all()
    loss = lambda a: jnp.sum(jnp.sin(jnp.linalg.solve(a, a[..., :1])))
    found, without = both(
        weft.vmap(weft.grad(loss), 1, 1), jnp.asarray(a[good]).reshape(2, 17, 6, 6)
    )
    np.testing.assert_allclose(found, without, rtol=1e-2, atol=1e-2)


@needs_kernels
def test_under_transformations():
    x = np.random.default_rng(4).normal(size=(3, 4, 50)).astype(np.float32)
    fun = lambda x: jnp.sum(jnp.cumsum(jnp.sort(x)) * jnp.arange(50.0))
    mapped = lambda x: weft.vmap(weft.vmap(weft.value_and_grad(fun)))(x)
    found, expected = both(mapped, x)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_without_them(monkeypatch, tmp_path, caplog):
    assert weft.config.native
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)
    for fill, said in [
        (lambda: None, "not built: there was no C++ compiler"),
        (lambda: (tmp_path / "kernels.so").write_bytes(b"no library"), "not usable: "),
    ]:
        fill()
        kernels.load_kernels.cache_clear()
        PATTERNS.clear()  # texts written with the kernels, which do not go within a process else
        try:
            assert [kernels.load_kernels().startswith(said) for _ in range(2)] == [True] * 2
            told = [r.getMessage() for r in caplog.records]
            assert len(told) == said.startswith("not usable")
            assert all(" must be the kernels of this version of weft; got " in t for t in told)
            fresh = lambda x: jnp.sort(x) - 1
            text = weft.jit(fresh).lower(np.zeros(3, np.float32)).as_text()
            assert "stablehlo.sort" in text and "weft_" not in text
        finally:
            kernels.load_kernels.cache_clear()
            PATTERNS.clear()
