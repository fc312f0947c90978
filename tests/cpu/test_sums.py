"""cpu/sums.py: sums and comparisons; the kernel's are in tests/cpu/test_kernels.py."""

import operator
import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, expect, show_prepared
from weft import config, lax
from weft.core.aval import ShapedArray
from weft.cpu.kernels import are_kernels_wanted
from weft.cpu.sums import split_row

COMPARED = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64"
COMPARISONS = [getattr(operator, name) for name in ("eq", "ne", "lt", "ge", "gt", "le")]


def test_the_sum_of_an_argument_is_the_kernel():
    x = jnp.ones((100, 600))
    expect(
        show_prepared(lambda x: jnp.sum(x, 1), x),
        """
        { lambda ; a:f32[100,600]. let
            b:f32[100,600,1] = reshape[
              dimensions=None
              new_sizes=(100, 600, 1)
              sharding=None
            ] a
            c:f32[100,1] = cpu_call[kernel=weft_sum what=0] b
            d:f32[100] = reshape[dimensions=None new_sizes=(100,) sharding=None] c
          in (d,) }
        """,
    )
    assert "cpu_call" in show_prepared(lambda x: jnp.sum(x.reshape(200, 300), 0), x)
    assert "cpu_call" not in show_prepared(lambda x: jnp.sum(x * 2, 1), x)
    loop = lambda x: lax.fori_loop(0, 3, lambda i, x: x + jnp.sum(x, 1, keepdims=True), x)
    assert "cpu_call" not in show_prepared(loop, x)


def test_the_number_of_larger_elements_reads_what_is_compared():
    expect(
        show_prepared(lambda x: jnp.sum(x > 3), jnp.ones(5000)),
        """
        { lambda ; a:f32[5000]. let
            b:f32[1,5000,1] = reshape[
              dimensions=None
              new_sizes=(1, 5000, 1)
              sharding=None
            ] a
            c:i32[1,1] = cpu_call[answer='count' direction='GT' kernel=weft_compare] b
              3.0
            d:i32[] = reshape[dimensions=None new_sizes=() sharding=None] c
          in (d,) }
        """,
    )


def test_a_few_long_rows_are_added_by_a_loop():
    text = show_prepared(lambda x: jnp.sum(x, 0), jnp.ones((6, 10_000)), target=NO_KERNELS)
    assert "formula[settings=((0,),) write=write_sum_by_loop]" in text


def test_the_sum_of_a_few_long_rows():
    x = np.random.RandomState(0).randn(6, 10_000).astype(np.float32)
    x[:, :2] = [[0.0, -0.0]] * 6
    found = weft.jit(lambda x: (2 * x).sum(0))(x)
    np.testing.assert_allclose(found, 2 * x.astype(np.float64).sum(0), atol=1e-5)
    assert not np.signbit(found[:2]).any()


def test_log_sum_exp_of_a_few_long_rows():
    x = np.random.RandomState(0).randn(6, 10_000).astype(np.float32)
    found = weft.jit(lambda x: weft.nn.logsumexp(x, 0))(x)
    np.testing.assert_allclose(found, np.log(np.exp(x.astype(np.float64)).sum(0)), atol=1e-5)


def test_programs_lowered_before_do_not_decide_what_calls_the_kernel():
    x = weft.ShapeDtypeStruct((500, 128), np.float32)
    count = lambda f: weft.jit(f).lower(x).as_text().count("weft_sum")
    given, computed = lambda x: x.sum(0), lambda x: (2 * x).sum(0)
    first = count(given)
    for _ in range(3):  # each time, patterns of repeated text are cached
        assert [count(given), count(computed)] == [first, 0]


def test_long_rows_are_reduced_side_by_side():
    """One row and many, short rows, and lengths without divisors, at each number of steps."""
    rng = np.random.default_rng(1)
    shapes = {(600, 500): None, (50, 1000): 1, (3, 20, 128): (1, 2), (40, 1024): -1, (36_000,): 0}
    shapes |= {(262_147,): 0, (10, 10_000): 1, (2, 131_072): 1, (270_000,): 0, (32768, 1): 0}
    kinds = ("sum", "prod", "max", "min", "any", "all")
    for shape, axis in shapes.items():
        x = rng.integers(-50, 50, shape)
        far = np.where(x == 7, 3, 1).astype(np.int32)  # whose product wraps
        fun = lambda x, far, axis=axis: [
            *(getattr(jnp, k)(y, axis) for k in kinds[:1] for y in (x, x > 3, x.astype(np.uint8))),
            jnp.prod(far, axis),
            *(getattr(jnp, k)(y, axis) for k in kinds[2:] for y in (x, x + 1)),
            jnp.sum(x + 1j * x, axis),
            jnp.prod(jnp.where(x == 7, 1j, 1), axis),
        ]
        found = weft.jit(fun)(x.astype(np.int32), far)
        expected = [
            *(np.sum(y, axis) for y in (x, x > 3, x.astype(np.uint8))),
            np.prod(far, axis, dtype=np.int32),
            *(getattr(np, k)(y, axis) for k in kinds[2:] for y in (x, x + 1)),
            np.sum(x + 1j * x, axis),
            1j ** ((x == 7).sum(axis) % 4),
        ]
        for y, z in zip(found, expected):
            np.testing.assert_allclose(y, z, rtol=1e-6, atol=1e-3 if np.iscomplexobj(z) else 0)


def test_how_a_row_is_cut():
    known = lambda n, dtype="int32", alone=False: split_row(
        n, ShapedArray((n,), np.dtype(dtype)), alone
    )
    assert known(1_000_000, alone=True) == (32, 125)
    assert known(1000) == (25, 40) and known(1000, "complex64") == (10, 100)
    assert known(1_000_000) == known(10_000, alone=True) == known(1009) == known(64) == (0, 0)


def test_sums_of_short_rows(rng):
    """Sums of several axes, of intermediate values, and within loops."""
    for shape, axes in [((300, 2), 1), ((300, 8), -1), ((20, 30, 3), 2), ((300, 2, 3), (1, 2))]:
        x = rng.normal(size=shape).astype(np.float32)
        x[0], x[1], x[2] = -0.0, np.nan, np.inf

        def fun(x):
            loop = lambda _, y: x + y.sum(axes, keepdims=True)  # noqa: B023
            ways = x.sum(axes), (x * x - 1).sum(axes), weft.numpy.sin(x * 3).sum(axes)  # noqa: B023
            return *ways, weft.lax.fori_loop(0, 2, loop, x)

        wide = x.astype(np.float64)
        once = wide + wide.sum(axes, keepdims=True)
        sines = np.sin(np.where(np.isinf(x), np.nan, x * np.float32(3)).astype(np.float64))
        want = wide.sum(axes), (wide * wide - 1).sum(axes), sines.sum(axes)
        for y, z in zip(
            weft.jit(fun)(x), (*want, wide + once.sum(axes, keepdims=True)), strict=True
        ):
            np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-4)
        assert not np.signbit(np.ravel(weft.jit(fun)(x)[0])[0])


def test_short_rows_of_what_takes_long_are_computed_first():
    """A sine, or a value that is far away or unknown, would be slower in XLA's loop of the sum."""
    x = weft.ShapeDtypeStruct((5000, 4), np.float32)
    scalar = r'"stablehlo.negate"\(\S+\) : \(tensor<f32>\)'
    in_loop = lambda f, x=x: bool(re.search(scalar, weft.jit(f).lower(x).as_text()))
    jnp, total = weft.numpy, lambda y: jnp.sum(y, -1)
    for _ in range(3):  # cached text does not matter
        assert in_loop(total)
        assert in_loop(lambda x: total((x[:, None] - x[None]) ** 2))
        assert in_loop(lambda x: total(jnp.diagonal(x.reshape(-1, 5, 4), axis1=1, axis2=2)))
        with weft.config.scope(native=False):  # else functions are a kernel's
            assert not in_loop(lambda x: total(jnp.sin(x)))
            assert not in_loop(lambda x: total(x * 2 + jnp.arctan(x)))
        assert not in_loop(lambda x: total(x.reshape(-1, 20)))
        assert not in_loop(total, weft.ShapeDtypeStruct((10, 4), np.float32))

    def long(x):
        for i in range(20):
            x = x * x + i
        return total(x)

    assert not in_loop(long)


def test_sums_of_bytes(rng):
    """Counts and means are exact, whatever is added up, of any place in the array."""
    shapes = {(300, 40, 70): (None, 0, 1, 2, (0, 1), (1, 2)), (90_001,): (0,), (3, 270_000): (1, 0)}
    shapes |= {(20, 8, 130): (0, 1, (1, 2)), (2, 600, 1030): (1, (0, 1))}
    for shape, places in shapes.items():
        number = rng.integers(0, 256, shape)
        number.flat[: number.size // 2] = 255  # a long run of the largest number
        kinds = [number > 99, number.astype(np.uint8), (number // -2).astype(np.int8)]

        def fun(*kinds, places=places):
            cells = [(x, axis) for x in kinds for axis in places]
            return [
                *(jnp.sum(x, axis) for x, axis in cells),
                *(jnp.mean(x, axis) for x, axis in cells),
                *(jnp.mean(x > 99, axis, np.float16) for x, axis in cells),
            ]

        cells = [(x, axis) for x in kinds for axis in places]
        exact = [np.sum(x, axis, np.int64) for x, axis in cells]
        means = [np.mean(x, axis, np.float64) for x, axis in cells]
        parts = [np.mean(x > 99, axis, np.float64) for x, axis in cells]
        found = weft.jit(fun)(*kinds)
        for y, z in zip(found, exact):
            np.testing.assert_array_equal(y, z)
        for y, z in zip(found[len(exact) :], (*means, *parts)):
            np.testing.assert_allclose(y, z, rtol=6e-4 if y.dtype == np.float16 else 5e-7)


def test_sums_of_bytes_in_their_own_dtype(rng):
    for dtype in (np.int8, np.uint8):
        x = rng.integers(0, 100, (600, 700)).astype(dtype)
        for axis in (None, 0, 1):
            y = weft.jit(lambda x, axis=axis: jnp.sum(x, axis, promote_integers=False))(x)
            np.testing.assert_array_equal(y, np.sum(x, axis, dtype=dtype), strict=True)


def test_what_sums_of_bytes_are_written_as():
    text = lambda f, *xs: weft.jit(f).lower(*xs).as_text()
    few, given = weft.ShapeDtypeStruct((20, 20), bool), weft.ShapeDtypeStruct((600, 600), bool)
    calls = lambda *args: text(*args).count("weft_sum")
    native = calls(lambda x: jnp.sum(x, 0), weft.ShapeDtypeStruct((600, 600), np.float32))
    for _ in range(2):  # cached text does not matter
        assert calls(jnp.sum, few) == calls(lambda x: jnp.sum(~x, 0), given) == 0
        assert calls(lambda x: jnp.mean(x, 0), given) == calls(jnp.sum, given) == native
        assert calls(lambda x: jnp.mean(x, 1, where=x), given) == native  # of `where`
    wide = weft.ShapeDtypeStruct((9000, 1000), np.uint8)  # whose sum may be beyond int32
    assert calls(jnp.mean, wide) == 0
    assert calls(lambda x: jnp.mean(x, 0), wide) == native
    compared = text(lambda x: jnp.mean(x > 0, 1), given.update(dtype=np.float32))
    assert "tensor<600xi32>" in compared or "tensor<600x1xi32>" in compared


def test_patterns_of_sums_are_for_where_nothing_is_converted():
    x, b = weft.ShapeDtypeStruct((128, 128), np.float32), weft.ShapeDtypeStruct((128, 128), bool)
    plain = lambda x: [jnp.sin(x + i).sum() for i in range(4)]
    counted = lambda b: [(b & (i < 3)).astype(np.float32).sum() for i in range(4)]
    programs = [
        lambda x, b: [*plain(x), *counted(b)],
        lambda x, b: [*counted(b), *plain(x)],
        lambda x, b: [b.astype(np.float32).sum(), *plain(x), b.astype(np.float32).sum()],
        lambda x, b: [x.astype(np.int32).astype(np.float32).sum(), *plain(x), *counted(b)],
    ]

    def write(f):
        return weft.jit(f).lower(x, b).as_text()

    alone = []
    for f in programs:
        weft.clear_caches()
        alone.append(write(f))
    for _ in range(3):  # each time, patterns of repeated text are cached
        assert [write(f) for f in programs] == alone


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_sums_of_halves(dtype, rng):
    """16-bit floats are added up as float32, in all shapes, also after a reshape."""
    places = {(70_001,): (0,), (300, 40, 70): (None, 0, 1, 2, (0, 1), (1, 2)), (3, 9000): (1, 0)}
    places |= {(2, 600, 1030): (1, (0, 1)), (20, 17, 131): (1, (1, 2))}
    for shape, axes in places.items():
        x = (rng.standard_normal(shape) * 1e-5).astype(dtype)  # float16 has no normal ones below
        exact = [np.sum(x.astype(np.float64), axis) for axis in axes]
        fun = lambda x, axes=axes: [jnp.sum(x.astype("float32"), axis) for axis in axes]
        for y, z in zip(weft.jit(fun)(x), exact):
            np.testing.assert_allclose(y, z, rtol=1e-6, atol=3e-10)
        for y, z in zip(weft.jit(lambda x, axes=axes: [jnp.mean(x, a) for a in axes])(x), exact):
            want = (z / (x.size // z.size)).astype(dtype).astype(np.float32)
            np.testing.assert_allclose(y.astype("float32"), want, rtol=1e-2, atol=2e-7)
    x = rng.standard_normal(1 << 16).astype(dtype)
    for special in (np.nan, np.inf):
        x[4097] = special
        np.testing.assert_array_equal(weft.jit(jnp.sum)(x).astype("float32"), special)


def test_what_sums_of_halves_are_written_as():
    given = weft.ShapeDtypeStruct
    lower = lambda f, *shape: weft.jit(f).lower(given(shape, jnp.float16))
    calls = lambda f, *shape: lower(f, *shape).as_text().count("weft_sum")
    one = weft.jit(jnp.sum).lower(given((1 << 16,), jnp.bfloat16)).as_text()
    assert "weft_sum" not in one
    native = int(are_kernels_wanted())
    for _ in range(2):
        assert calls(jnp.sum, 1 << 16) == calls(lambda x: jnp.mean(x, 0), 600, 600) == native
        assert calls(lambda x: jnp.sum(x.reshape(600, 600), 0), 360_000) == native
        assert calls(jnp.sum, 1 << 10) == calls(lambda x: jnp.sum(jnp.exp(x)), 1 << 16) == 0
        assert calls(lambda x: jnp.sum(x, 0), 3, 1 << 16) == 0  # a few long rows


def test_derivatives_through_a_mean_of_bytes(rng):
    x = rng.standard_normal((70, 100)).astype(np.float32)
    fun = lambda x: jnp.sum(x * jnp.mean(x > 0))
    np.testing.assert_allclose(weft.grad(fun)(x), np.full(x.shape, (x > 0).mean()), rtol=1e-6)
    found = weft.vmap(lambda x: jnp.mean(x > 0))(x)
    np.testing.assert_allclose(found, (x > 0).mean(1), rtol=1e-6)


def answers(m, x, y, number, axes):
    """Return if comparisons hold with an array and with a number on both sides, and how often."""
    pairs = ((x, y), (x, number), (number, y))
    cells = [compare(*pair) for compare in COMPARISONS for pair in pairs]
    return [f(c, axis) for c in cells for axis in axes for f in (m.any, m.all, m.sum)]


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("dtype", COMPARED.split())
def test_answers_to_comparisons(dtype, rng):
    """Answers for one long row, for rows, and for lanes, mostly with a single value."""
    shapes = {(70_001,): (0,), (8, 1100): (1, 0), (3, 260, 70): (1, (0, 1)), (2, 600): (0, None)}
    with weft.enable_x64(dtype.endswith("64")):
        for shape, axes in shapes.items():
            x, y = (np.full(shape, dtype != "bool", dtype) for _ in "xy")
            for z, high in ((x, 2), (y, 0)):
                z[rng.random(shape) < 4 / z.size] = high
            if x.dtype.kind in "fi":
                x[rng.random(shape) < 2 / x.size] = -3
            if x.dtype.kind == "f":
                y[rng.random(shape) < 1 / x.size] = np.nan
            number = y.dtype.type(1)
            fun = weft.jit(lambda x, y, axes=axes: answers(jnp, x, y, jnp.asarray(1, dtype), axes))
            for given in ((x, y), (y, x), (x, x)):
                found, expected = fun(*given), answers(np, *given, number, axes)
                for a, b in zip(found, expected, strict=True):
                    np.testing.assert_array_equal(a, b)


def test_what_decides_a_comparison_may_be_anywhere():
    """The deciding element is at the ends of blocks; also for the index of the first True."""
    n = 140_001
    fun = weft.jit(
        lambda x, b, s: [
            *(jnp.any(x > 0), jnp.all(x <= s), jnp.any(x != 0), jnp.array_equal(x, s * x)),
            *(jnp.any(b), jnp.all(~b), jnp.all(b), jnp.any(b.reshape(3, -1), 1)),
            *(jnp.argmax(b), jnp.argmax(x.astype(jnp.int8)), jnp.sum(x == 1)),
        ]
    )
    small = weft.jit(lambda x: [jnp.argmax(x), jnp.argmin(-x)])
    for at in (None, 0, 1023, 1024, 3071, 8191, 8192, 32_767, 35_000, 139_999, n - 1):
        x, many = np.zeros(n, np.float32), np.zeros(n, np.int8)
        if at is not None:
            x[at] = 1
            many[at], many[at + 1 :: 7] = 127, 127
        hit, b = at is not None, x == 1
        found = fun(x, b, np.float32(0))
        thirds = b.reshape(3, -1).any(1)
        expected = [hit, not hit, hit, not hit, hit, not hit, False, thirds, at or 0, at or 0, hit]
        for y, z in zip(found, expected, strict=True):
            np.testing.assert_array_equal(y, z)
        assert [*map(int, small(many))] == [at or 0, at or 0]


def test_comparisons_of_special_values():
    """NumPy agrees, except that XLA may or may not flush subnormals; kernels do as XLA does."""
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1e-40, -1e-40], np.float32)
    x, y = (np.repeat(z.ravel()[:, None], 1030, 1) for z in np.meshgrid(special, special))
    fun = lambda x, y: [f(c(x, y), 1) for c in COMPARISONS for f in (jnp.any, jnp.all, jnp.sum)]
    found = np.array(weft.jit(fun)(x, y))
    with weft.config.scope(native=False):
        np.testing.assert_array_equal(found, np.array(weft.jit(lambda *xs: fun(*xs))(x, y)))
    plain = ~((abs(x) == np.float32(1e-40)) | (abs(y) == np.float32(1e-40)))[:, 0]
    expected = [f(c(x, y), 1) for c in COMPARISONS for f in (np.any, np.all, np.sum)]
    np.testing.assert_array_equal(found[:, plain], np.array(expected)[:, plain])


def test_comparisons_of_no_elements():
    for shape, axis in (((0, 5000), 0), ((5000, 0), 1), ((0, 5000), 1), ((3, 0, 70), 1)):
        x = np.zeros(shape, np.float32)
        fun = lambda x, axis=axis: [f(x > 1, axis) for f in (jnp.any, jnp.all, jnp.sum)]
        for y, f in zip(weft.jit(fun)(x), (np.any, np.all, np.sum)):
            np.testing.assert_array_equal(y, f(x > 1, axis))


def test_what_answers_to_comparisons_are_written_as():
    x = weft.ShapeDtypeStruct((5000,), np.float32)
    text = lambda f, *xs: weft.jit(f).lower(*xs).as_text()
    calls = lambda *args: text(*args).count("weft_compare")
    native = are_kernels_wanted()
    for _ in range(2):  # cached text does not matter
        assert calls(lambda x: jnp.any(x > 5), x) == native
        assert calls(lambda x: jnp.any(abs(x) > 5), x) == 0
        assert calls(lambda x, y: jnp.all(x <= y), x, x) == native
        assert calls(lambda x, s: jnp.all(x <= s), x, x.update(shape=())) == native
        assert calls(lambda x, y: jnp.all(x <= 2 * y), x, x) == 0
        assert calls(lambda x: jnp.any(x > np.arange(5000)), x) == 0
        assert calls(jnp.any, x.update(dtype=bool)) == native
        assert calls(lambda x: jnp.any(~x), x.update(dtype=bool)) == 0
        assert calls(jnp.array_equal, x, x) == calls(jnp.count_nonzero, x) == native
        assert calls(jnp.array_equal, *[x.update(dtype=np.float16)] * 2) == 0
        assert calls(jnp.any, x.update(shape=(50,), dtype=bool)) == 0
        assert calls(lambda x: jnp.any(x > 5, 1), x.update(shape=(100, 50))) == 0
        for axis in (0, 1, None):
            for fun in (jnp.any, jnp.sum, jnp.mean):
                f = lambda x, fun=fun, axis=axis: fun(x > 5, axis)
                assert calls(f, x.update(shape=(300, 200))) == native
        in_order = lambda x, y: lax.reduce_or_p.bind(lax.lt_to_p.bind(x, y), axes=(0,))
        assert calls(in_order, x, x) == 0
        both = text(lambda x: [jnp.any(x > 5), jnp.all(x > 5)], x)
        assert both.count("weft_compare") == 2 * native


def test_answers_to_comparisons_under_transformations(rng):
    x = rng.standard_normal((70, 200)).astype(np.float32)
    found = weft.vmap(lambda x, s: [jnp.any(x > s), jnp.sum(x > s)], (0, None))(x, 2.5)
    np.testing.assert_array_equal(found[0], (x > 2.5).any(1))
    np.testing.assert_array_equal(found[1], (x > 2.5).sum(1))
    fun = lambda x: jnp.sum(jnp.where(jnp.any(x > 2.5, 0), x, 0) * jnp.sum(x > 0))
    expected = np.broadcast_to((x > 2.5).any(0) * (x > 0).sum(), x.shape)
    np.testing.assert_allclose(weft.grad(fun)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(weft.jit(weft.grad(fun))(x), expected, rtol=1e-6)


def test_inner_products_along_any_axes(rng):
    shapes = {
        (40, 50, 70): ("j", "k", "ij", "jk", "ik", ""),
        (1100, 70): ("i",),
        (17, 2000): ("j",),
    }
    native = are_kernels_wanted()
    for shape, kept in shapes.items():
        x, y = rng.standard_normal((2, *shape))
        whole = "ijk"[: len(shape)]
        forms = [f"{whole},{whole}->{out}" for out in kept]
        fun = lambda x, y, forms=forms: [jnp.einsum(form, x, y) for form in forms]
        found = weft.jit(fun)(*map(np.float32, (x, y)))
        for form, z in zip(forms, found, strict=True):
            np.testing.assert_allclose(z, np.einsum(form, x, y), rtol=1e-5, atol=1e-4)
        x[..., 0], x.T[0, ..., -1] = np.nan, np.inf
        found = weft.jit(lambda x, y, fun=fun: fun(x, y))(*map(np.float32, (x, y)))
        for form, z in zip(forms, found, strict=True):
            with np.errstate(invalid="ignore"):
                expected = np.einsum(form, x, y)
            np.testing.assert_array_equal(np.isnan(z), np.isnan(expected))
    calls = lambda form, shape: str(
        weft.jit(lambda x, y: jnp.einsum(form, x, y))
        .lower(*[weft.ShapeDtypeStruct(shape, np.float32)] * 2)
        .as_text()
    ).count("weft_sum")
    assert calls("ij,ij->j", (1000, 1000)) == calls("ijk,ijk->ik", (40, 50, 70)) == native
    assert calls("ij,ij->j", (10, 8000)) == calls("ij,ij->j", (8000, 10)) == 0
    assert calls("ij,ji->j", (300, 300)) == calls("ij,kj->ik", (300, 300)) == 0
    x = np.float32(rng.standard_normal((600, 70)))
    found = weft.grad(lambda x: jnp.sum(jnp.einsum("ij,ij->j", x, x) ** 2))(x)
    np.testing.assert_allclose(found, 4 * x * (x.astype(float) ** 2).sum(0), rtol=2e-5)


# Programs whose sums would have XLA wake a thread, and the kernels that compute them.
SMALL_SUMS = [
    (lambda a: a[0].sum(), "view sum"),
    (jnp.trace, "view sum"),
    (lambda a: jnp.trace(a, 100), "view sum"),
    (lambda a: a[::-1, 3].mean(), "view sum"),
    (lambda a: a[:2].prod(), "view sum"),
    (lambda a: a[:16].sum(1), "view sum"),
    (lambda a: jnp.nansum(a[7]), "view sum"),
    (lambda a: a[:2, :3].sum(), ""),  # XLA adds so few where it is called
    (lambda a: jnp.abs(a[0]).sum(), ""),  # the thread is awake anyway
]


@pytest.mark.parametrize("row", range(len(SMALL_SUMS)))
def test_a_small_sum_wakes_no_thread(row, rng):
    fun, kernels = SMALL_SUMS[row]
    a = rng.standard_normal((1200, 1200)).astype(np.float32)
    a[0, 5], a[7, 2] = np.nan if row == 0 else 1.5, np.nan
    compiled = weft.jit(fun)
    text = compiled.lower(a).as_text()
    assert kernels.split() == [k for k in ("view", "sum") if f'"weft_{k}"' in text]
    with config.scope(native=False):
        expected = weft.jit(fun)(a)
    np.testing.assert_allclose(compiled(a), expected, rtol=2e-5, atol=1e-5)
