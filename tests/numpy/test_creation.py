"""Making arrays: of values and objects, of constants, at regular steps, and by position."""

import array

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import agree, in_one_program, same
from weft import config, dtypes, grad, jit, make_jaxpr, vmap
from weft.errors import ConcretizationTypeError, DtypeError, ShapeError

MASKED = np.ma.array([1.0, 2], mask=[0, 1])

# --- of values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, dtype, weak",
    [
        (True, np.bool_, False),
        (1, np.int32, True),
        (1.5, np.float32, True),
        (1j, np.complex64, True),
        ([1, 2], np.int32, False),
        ([1, 2.5], np.float32, False),
        ([True, 2], np.int32, False),
        ([1, 2j], np.complex64, False),
        ([], np.float32, False),
        ([[], []], np.float32, False),
        (np.float64(1), np.float32, False),
        (np.arange(3), np.int32, False),
        (np.ones(2, np.float16), np.float16, False),
        ([np.float16(1), 2.0], np.float16, False),
        ([np.int64(3), 1.5], np.float32, False),
        ([np.ones(2, np.float16), np.ones(2)], np.float32, False),
        ((1, 2), np.int32, False),
        ([range(3), range(2, 5)], np.int32, False),
        ([np.zeros(2, np.int8), range(2)], np.int32, False),
        ([[], np.ones(0, np.int8)], np.int8, False),
        (range(3), np.int32, False),
        (memoryview(b"ab"), np.uint8, False),
        (bytearray(b"ab"), np.uint8, False),
        (array.array("h", [1, 2]), np.int16, False),
    ],
)
def test_array_takes(value, dtype, weak):
    for made in (jnp.array(value), jnp.asarray(value)):
        assert made.dtype == dtype and made.weak_type == weak
        np.testing.assert_array_equal(made, np.asarray(value))


def test_array_with_a_dtype():
    assert jnp.array(1.5, dtype=int) == 1 and jnp.array(1.5, dtype=int).dtype == np.int32
    assert not jnp.array(1.0, dtype=float).weak_type
    assert jnp.array([1, 2], dtype=bool).dtype == np.bool_
    assert jnp.array(jnp.arange(3), dtype=np.float16).dtype == np.float16
    assert jnp.asarray([1.7], dtype="int8") == 1
    same(jnp.array(np.array([1.7, 2.2]), np.int8), np.int8([1, 2]))
    same(jnp.array(np.float64(1.7), np.int8), np.int8(1))
    assert jnp.array(1.0).weak_type and not jnp.array(jnp.asarray(1.0), np.float32).weak_type
    with pytest.warns(UserWarning, match="enable_x64"):
        assert jnp.array([1], dtype=np.int64).dtype == np.int32
    with config.scope(enable_x64=True):
        assert jnp.array([1, 2.5]).dtype == np.float64
        assert jnp.array(np.arange(3)).dtype == np.int64


def test_array_of_arrays():
    x = jnp.arange(2.0)
    np.testing.assert_array_equal(jnp.array([x, [5, 6]]), [[0, 1], [5, 6]])
    np.testing.assert_array_equal(jnp.array([x[0], 1, 2.5]), [0, 1, 2.5])
    assert jnp.array([jnp.int8(1), 2]).dtype == np.int8
    np.testing.assert_array_equal(jit(lambda v: jnp.array([[v, 1], [2, v]]))(3.0), [[3, 1], [2, 3]])
    assert grad(lambda v: jnp.array([v, v * v, 1.0]).sum())(3.0) == 7
    np.testing.assert_array_equal(vmap(lambda v: jnp.array([v, 1]))(x), [[0, 1], [1, 1]])
    assert jnp.array([1, 2], ndmin=3).shape == (1, 1, 2)


def test_objects_that_become_arrays():
    class A:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3)

    class B:
        def __jax_array__(self):
            return jnp.arange(2)

    class C:
        def __dlpack__(self, **kwargs):
            return np.arange(4.0, dtype=np.float32).__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    for made, size in ((A(), 3), (B(), 2), (C(), 4)):
        np.testing.assert_array_equal(jnp.array(made), np.arange(size))
    np.testing.assert_array_equal(jnp.array([B(), B()]), [[0, 1], [0, 1]])
    np.testing.assert_array_equal(jnp.from_dlpack(C()), np.arange(4))
    np.testing.assert_array_equal(jnp.from_dlpack(jnp.arange(3)), np.arange(3))


def test_arrays_share_no_memory_that_can_be_written():
    for dtype in (np.float32, np.int32, np.float64):
        host = np.zeros(5000, dtype)
        made = [jnp.array(host), jnp.asarray(host), jnp.copy(host)]
        host[:] = 7
        assert all(not x.any() for x in made)


def test_copies():
    x = jnp.arange(3)
    assert jnp.asarray(x) is x and jnp.asarray(x, jnp.int32) is x
    assert jnp.array(x) is not x
    assert jnp.array(x).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert jnp.array(x, copy=False) is x and jnp.asarray(x, copy=True) is not x
    assert jnp.from_dlpack(x) is x and jnp.from_dlpack(x, copy=True) is not x
    assert jnp.astype(x, x.dtype) is x and jnp.astype(x, x.dtype, copy=True) is not x
    same(jnp.astype(jnp.array([1.7, -2.5]), np.int8), np.int8([1, -2]))
    assert not jnp.astype(jnp.asarray(2.0), np.float32).weak_type
    assert "copy" in str(make_jaxpr(jnp.array)(x)) and "copy" not in str(make_jaxpr(jnp.asarray)(x))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64, bool])
def test_dlpack_shares_memory_or_says_why_not(dtype):
    size = np.dtype(dtype).itemsize
    memory = np.zeros(256, np.int8)
    start = -memory.ctypes.data % 64
    aligned = memory[start : start + 8 * size].view(dtype)
    x = jnp.from_dlpack(aligned, copy=False)
    assert x.unsafe_buffer_pointer() == aligned.ctypes.data and x.dtype == dtype
    for options in ({}, {"copy": None}, {"copy": True}):
        aligned[:] = 0
        x = jnp.from_dlpack(aligned, **options)
        aligned[:] = 1
        assert x.unsafe_buffer_pointer() != aligned.ctypes.data and not x.any()
    for host, why in ((aligned[1:], "an address"), (aligned.reshape(2, 4).T, "strides")):
        with pytest.raises(ValueError, match=f"from_dlpack: memory must be.* got {why}"):
            jnp.from_dlpack(host, copy=False)
        np.testing.assert_array_equal(jnp.from_dlpack(host), host)
    with pytest.raises(ValueError, match="got float64, which needs enable_x64"):
        jnp.from_dlpack(np.zeros(3), copy=False)
    assert jnp.from_dlpack(np.zeros(3)).dtype == np.float32


# --- of constants ---------------------------------------------------------------------------


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("shape", [3, (2, 3), [2, 3], (), (0, 2), (200, 100)])
@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_constants(name, shape):
    value = name == "ones"
    got = getattr(jnp, name)(shape)
    assert got.dtype == np.float32 and not got.weak_type
    np.testing.assert_array_equal(got, np.full(shape, value, np.float32))
    for dtype in (bool, jnp.int8, "bfloat16", np.complex64):
        got = getattr(jnp, name)(shape, dtype)
        assert got.dtype == jnp.dtype(dtype) and got.dtype != np.float32
        np.testing.assert_array_equal(jit(lambda d=dtype: getattr(jnp, name)(shape, d))(), got)


def test_full():
    for value, dtype in ((1, np.int32), (1.5, np.float32), (True, np.bool_), (1j, np.complex64)):
        for shape in ((3,), (200, 100)):
            got = jnp.full(shape, value)
            assert got.dtype == dtype and got.weak_type == (value is not True)
            np.testing.assert_array_equal(got, np.full(shape, value, dtype))
    np.testing.assert_array_equal(jnp.full((2, 3), jnp.arange(3)), [[0, 1, 2]] * 2)
    assert jnp.full(3, 1.7, int).dtype == np.int32
    assert grad(lambda v: jnp.full(3, v).sum())(1.0) == 3


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e19, 300.7, -1.5])
@pytest.mark.filterwarnings("ignore:x.at")
def test_floats_become_integers_eagerly_as_under_jit(value):
    """They are converted as by astype: 0 for NaN, otherwise the nearest integer."""
    x = jnp.arange(2, dtype=np.uint8)
    f = lambda: (jnp.full(2, value, np.uint8), jnp.full_like(x, value), x.at[:].set(value))
    want = jnp.full(2, value).astype(np.uint8).tolist()
    assert [y.tolist() for y in (*f(), *jit(f)())] == [want] * 6


def test_like():
    x = jnp.ones((2, 3), jnp.int8)
    assert jnp.zeros_like(x).dtype == np.int8 and jnp.zeros_like(x).shape == (2, 3)
    assert jnp.ones_like(x, shape=(4,), dtype=float).dtype == np.float32
    assert jnp.zeros_like(3).weak_type and jnp.full_like(3.0, 2).weak_type
    assert not jnp.zeros_like(x).weak_type
    np.testing.assert_array_equal(jnp.full_like(x, 1.7), np.ones((2, 3)))
    np.testing.assert_array_equal(jnp.full_like(x, jnp.arange(3)), [[0, 1, 2]] * 2)
    assert jnp.empty_like(weft.ShapeDtypeStruct((2,), np.float32)).shape == (2,)


def test_constants_are_one_operation():
    assert "broadcast_in_dim" in str(make_jaxpr(lambda: jnp.ones(3))())
    for f in (lambda: jnp.zeros((2, 3)), lambda: jnp.full(3, 2.5), lambda: jnp.arange(5)):
        assert len(make_jaxpr(f)().eqns) == 1


def test_on_a_device():
    device = weft.devices()[0]
    for x in (jnp.zeros(3, device=device), jnp.arange(3, device=device), jnp.eye(2, device=device)):
        assert x.devices() == {device}


# --- at regular steps -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "args", [(5,), (2, 7), (2, 10, 3), (10, 0, -3), (5, 1), (0.0, 1.0, 0.25), (2.7,), (0, 20000)]
)
def test_arange(args):
    agree("arange", *args)
    np.testing.assert_allclose(jit(lambda: jnp.arange(*args))(), jnp.arange(*args), rtol=1e-6)


@pytest.mark.parametrize("dtype", [None, np.float32, np.int8, np.uint8])
def test_arange_over_ranges_of_arguments(dtype):
    starts, stops, steps = (0, 1, 2), (0, 1, 4, 7.5), (None, 1, 2, 0.5)
    cases = [(a, b, c) for a in starts for b in stops for c in steps]
    if dtype is None:  # the arguments decide; other dtypes round them elsewhere
        cases += [(-a, -b, -c) for a in starts for b in stops for c in (1, 2, 0.5)]
    else:
        cases = [case for case in cases if 0.5 not in case and 7.5 not in case]
    found = [jnp.arange(*case, dtype=dtype) for case in cases]  # written by the host
    staged = jit(lambda: [jnp.arange(*case, dtype=dtype) for case in cases])()
    for case, x, y in zip(cases, found, staged, strict=True):
        expected = np.arange(*case, dtype=dtype)
        assert x.dtype == y.dtype == dtypes.canonicalize(expected.dtype), case
        np.testing.assert_array_equal(x, expected, str(case))
        np.testing.assert_array_equal(y, expected, str(case))


def test_arange_dtypes():
    assert jnp.arange(3).dtype == np.int32 and not jnp.arange(3).weak_type
    assert jnp.arange(np.int8(3)).dtype == np.int8
    assert jnp.arange(3, dtype=jnp.bfloat16).dtype == jnp.bfloat16
    np.testing.assert_array_equal(jnp.arange(0, 5, 2, dtype=jnp.bfloat16), [0, 2, 4])
    np.testing.assert_array_equal(jnp.arange(jnp.array(3)), [0, 1, 2])
    np.testing.assert_array_equal(jnp.arange(0, stop=3), [0, 1, 2])


@pytest.mark.parametrize("endpoint", [True, False])
@in_one_program()
def test_spaced(endpoint):
    for num in (0, 1, 5):
        agree("linspace", -1, 2, num, endpoint=endpoint)
    agree("linspace", np.float32([0, 1]), 10, 3, endpoint=endpoint, axis=1)
    agree("linspace", 0, 10, 5, endpoint=endpoint, dtype=np.int32)
    agree("linspace", 0, 1j, 3, endpoint=endpoint)
    agree("logspace", 0, 2, 5, endpoint=endpoint, rtol=1e-5)
    agree("logspace", 0, 2, 3, endpoint=endpoint, base=2, rtol=1e-5)
    agree("geomspace", 1, 1000, 4, endpoint=endpoint, rtol=1e-5)
    agree("geomspace", -1, -8, 4, endpoint=endpoint, rtol=1e-5)


def test_geomspace_has_its_ends():
    for ends in ((1, 100), (-1, -1000), (2 + 1j, -3), (1e-30, 1e30)):
        got = np.asarray(jnp.geomspace(*ends, 4))
        assert (got[[0, -1]] == np.array(ends, got.dtype)).all()
        np.testing.assert_allclose(got, np.geomspace(*ends, 4), rtol=2e-5)
    start = np.array([1, 8.0, 3])
    for axis in (0, 1, -1):
        got = jnp.geomspace(start, 64, 4, axis=axis)
        np.testing.assert_allclose(got, np.geomspace(start, 64, 4, axis=axis), rtol=1e-5)
    for ends in ((0, 1), (1, 0), (0, 0), (-1, 100)):
        assert np.isnan(jnp.geomspace(*ends, 3)).all()
    assert jnp.geomspace(1, 1000, 4, dtype=int).tolist() == [1, 10, 100, 1000]


@pytest.mark.parametrize("endpoint", [True, False])
def test_spaces_and_their_steps(endpoint):
    ends = np.float32([[0, -1.5], [2, 7]]), np.float32([10, 3])
    for num in (0, 1, 2, 3):
        got = jnp.linspace(*ends, num, endpoint=endpoint, retstep=True, axis=-2)
        want = np.linspace(*ends, num, endpoint=endpoint, retstep=True, axis=-2)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, np.broadcast_to(w, g.shape), rtol=1e-6, atol=1e-6)
        got = jnp.logspace(*ends, num, endpoint=endpoint, base=1.5, axis=1)
        want = np.logspace(*ends, num, endpoint=endpoint, base=1.5, axis=1)
        np.testing.assert_allclose(got, want, rtol=1e-5)
        got = jnp.geomspace(abs(ends[0]) + 1, 64, num, endpoint=endpoint, axis=2)
        want = np.geomspace(abs(ends[0]) + 1, 64, num, endpoint=endpoint, axis=2)
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_linspace_in_full():
    x, step = jnp.linspace(0, 1, 3, retstep=True)
    assert step == 0.5 and x[-1] == 1
    assert jnp.linspace(0.1, 0.7, 50)[-1] == np.float32(0.7)
    np.testing.assert_allclose(grad(lambda b: jnp.linspace(0.0, b, 5).sum())(1.0), 2.5)
    np.testing.assert_allclose(
        vmap(lambda b: jnp.linspace(0, b, 3))(jnp.arange(2.0))[1], [0, 0.5, 1]
    )


# --- errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: jnp.array([1, [2]]), ValueError, "elements of a list must have one shape"),
        (lambda: jnp.array("a"), DtypeError, "array: .* got a str"),
        (lambda: jnp.array(None), DtypeError, "array: .* got a NoneType"),
        (lambda: jnp.array([1, None]), DtypeError, "elements must be numbers; got a NoneType"),
        (lambda: jnp.array({1: 2}), DtypeError, "elements must be numbers; got {1: 2} of"),
        (lambda: jnp.array(object()), DtypeError, "elements must be numbers"),
        (lambda: jnp.array([2**40]), OverflowError, "array: integers must fit"),
        (lambda: jnp.array(300, dtype="int8"), OverflowError, "array: integers must fit"),
        (lambda: jnp.array([[1, 2]], order="F"), NotImplementedError, "order must be"),
        (lambda: jnp.array([jnp.ones(2), 1]), ShapeError, r"equal shapes; got f32\[2\], f32\[\]"),
        (lambda: jnp.zeros(-1), ShapeError, r"zeros: sizes must not be negative; got \(-1,\)"),
        (lambda: jnp.zeros(2.5), TypeError, "zeros: shape must be integers; got 2.5"),
        (lambda: jnp.zeros(2, "foo"), DtypeError, "zeros"),
        (lambda: jnp.zeros_like([1]), DtypeError, "zeros_like: .* got a list"),
        (lambda: jnp.full(2, jnp.arange(3)), ShapeError, "full: the fill value must broadcast"),
        (lambda: jnp.arange(1, 5, 0), ZeroDivisionError, "step must not be 0"),
        (lambda: jnp.arange(1j), DtypeError, "arange: arguments must be real"),
        (lambda: jnp.arange(jnp.ones(2)), ShapeError, "arange: stop must be a number"),
        (lambda: jnp.arange(3, dtype=bool), DtypeError, "must count in numbers"),
        (lambda: jit(jnp.arange)(3), ConcretizationTypeError, "arange: stop.*`start`.*static"),
        (lambda: jnp.arange(None), TypeError, "arange: must be given where to stop; got None. Hi"),
        (lambda: jnp.linspace(0, 1, -1), ShapeError, "num must be at least 0; got -1"),
        (lambda: jnp.array(MASKED), DtypeError, "array: must not be a masked array"),
        (lambda: jnp.array([MASKED, 1]), DtypeError, "array: must not be a masked array"),
        (lambda: jnp.asarray(np.array(["a"])), DtypeError, "the dtype must be one weft has; got"),
        (lambda: jnp.full_like(jnp.arange(2), 1j), DtypeError, "full: the fill value must be real"),
        (lambda: jnp.array(np.nan, int), ValueError, "array: numbers must fit int32; got nan"),
        (lambda: jnp.full(2, 1j, float), TypeError, "array: numbers must fit float32; got 1j"),
        (lambda: jnp.abs(weft.ShapeDtypeStruct((), float)), DtypeError, "needed; got Shape"),
        (lambda: jnp.sum(np.zeros(2, dtypes.float0)), DtypeError, "sum: must not be given float0"),
        (lambda: jnp.max(weft.random.key(0)), DtypeError, "elements must be numbers; got key<fry>"),
        (lambda: jnp.full(2, 300, np.uint8), OverflowError, "array: integers must fit uint8"),
        (lambda: jnp.from_dlpack(3), DtypeError, "from_dlpack: needs an object with __dlpack__; g"),
        (lambda: jnp.from_dlpack(np.ones(2, ">f4")), DtypeError, "^from_dlpack: .*[^.]\\.$"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
