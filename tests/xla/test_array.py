"""`weft.Array`: how arrays are made, read, printed, shared, kept and let go."""

import copy
import gc
import inspect
import json
import pathlib
import pickle
import subprocess
import sys
import weakref
from collections.abc import Hashable

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.xla.repr_cases import DTYPES, arrays, numpy_dtype, texts
from weft import errors, random
from weft.xla import array
from weft.xla.array import ArrayImpl, host_view, put
from weft.xla.layouts import Format, Layout

GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "reprs.json").read_text())
INVENTORY = json.loads((pathlib.Path(__file__).parent / "golden" / "members.json").read_text())
WIDE_DTYPES = ["int64", "uint64", "float64", "complex128"]

V = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.fixture
def x():
    return weft.device_put(V)


def same(x, y):
    """Assert that two arrays are equal in every respect."""
    assert type(x) is type(y) is ArrayImpl
    assert x.aval is y.aval
    assert host_view(x).tobytes() == host_view(y).tobytes()
    return True


# --- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INVENTORY)
def test_every_name_of_the_inventory_is_there(name):
    member = getattr(ArrayImpl, name)
    assert hasattr(weft.Array, name)
    if not name.startswith("__"):
        assert (inspect.getdoc(member) or "").strip(), f"{name} has no documentation"


def test_public_members_are_documented():
    own = [n for n in dir(ArrayImpl) if not n.startswith("_")]
    bare = [n for n in own if not (inspect.getdoc(getattr(ArrayImpl, n)) or "").strip()]
    assert set(bare) <= {"aval", "traceback"}  # jaxlib's own


def test_isinstance_and_issubclass(x):
    assert isinstance(x, weft.Array) and isinstance(x, jnp.ndarray)
    assert issubclass(type(x), weft.Array) and issubclass(weft.Array, weft.Array)
    assert not any(isinstance(v, weft.Array) for v in (V, 1.0, V[0], [x], None))
    assert not any(issubclass(t, weft.Array) for t in (np.ndarray, int, np.float32))
    seen = []
    weft.jit(lambda v: seen.append(isinstance(v, weft.Array)) or v)(x)
    weft.grad(lambda v: seen.append(isinstance(v, weft.Array)) or v)(1.0)
    assert seen == [True, True]
    assert (weft.Array.__name__, weft.Array.__module__) == ("Array", "weft")
    with pytest.raises(TypeError, match=r"^Array: must be made by a function; got a call\. Hint: "):
        weft.Array([1])


def test_typeof():
    assert str(weft.typeof(jnp.ones((2, 3)))) == "f32[2,3]"
    assert weft.typeof(jnp.ones((2, 3))).str_short() == "float32[2,3]"
    assert weft.typeof(1).weak_type and weft.typeof(1.0).dtype == np.float32
    assert weft.typeof(np.float64(1)) is weft.typeof(np.float32(1))
    assert weft.typeof(jnp.asarray(2)) is weft.typeof(2)
    with pytest.raises(TypeError, match="got a str"):
        weft.typeof("a")


def test_what_it_says_of_itself(x):
    assert (x.shape, x.ndim, x.size, len(x), x.nbytes, x.itemsize) == ((3,), 1, 3, 3, 12, 4)
    assert x.dtype is np.dtype("float32") and np.dtype(x.dtype) == np.float32
    assert not x.weak_type and jnp.asarray(1.0).weak_type
    assert (x.is_fully_addressable, x.is_fully_replicated) == (True, True)
    assert x.device is weft.devices()[0] and x.devices() == {x.device}
    assert not x.committed and weft.device_put(x, x.device).committed
    assert x.format == Format(Layout((0,), ()), x.sharding)
    assert x.block_until_ready() is x and x.is_ready() and x.platform() == "cpu"
    assert x.on_device_size_in_bytes() >= 12 and x.unsafe_buffer_pointer() != 0
    assert jnp.ones(3, jnp.int4).nbytes == 3
    assert x.copy_to_host_async() is None
    with pytest.raises(AttributeError):
        x.shape = (1, 3)
    with pytest.raises(AttributeError):
        x.no_such_name
    assert weakref.ref(x)() is x


def test_shards(x):
    (shard,) = x.addressable_shards
    assert (shard.device, shard.index, shard.replica_id) == (x.device, (slice(None),), 0)
    assert shard.data is x and x.addressable_data(0) is x
    assert jnp.float32(1).global_shards[0].index == ()
    assert repr(shard) == (
        "Shard(device=CpuDevice(id=0), index=(slice(None, None, None),), replica_id=0, "
        "data=[1. 2. 3.])"
    )


# --- printing -----------------------------------------------------------------------------------


def test_prints_what_jax_prints():
    made = texts(arrays(weft.device_put, jnp.full))
    for name, text in made.items():
        assert text == GOLDEN[name], name
    assert made.keys() == GOLDEN.keys() - {"jax"}


def test_format(x):
    assert f"{jnp.float32(2.5):.3f} {jnp.int32(7):03d}" == "2.500 007"
    assert format(x) == str(x) == "[1. 2. 3.]"
    with pytest.raises(TypeError, match="format"):
        format(x, ".2f")


# --- to NumPy and back ------------------------------------------------------------------------


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", DTYPES + WIDE_DTYPES)
def test_every_dtype_comes_back(name, x64):
    dtype = numpy_dtype(name)
    if name in WIDE_DTYPES and not x64:
        return
    with weft.enable_x64(x64):
        shapes = (), (3,), (3, 0), (2, 3)
        hosts = [np.resize(np.array([0.5, 1, 2]), shape).astype(dtype) for shape in shapes]
        xs = weft.device_put(hosts)
        through = weft.jit(lambda values: values)
        every = zip(shapes, hosts, xs, through(xs), through(hosts), strict=True)
        for shape, host, x, of_device, of_host in every:
            assert (x.dtype, x.shape) == (dtype, shape)
            back = np.asarray(x)
            assert back.dtype == dtype and back.tobytes() == host.tobytes()
            assert same(pickle.loads(pickle.dumps(x)), x) and same(copy.copy(x), x)
            assert same(of_device, x) and same(of_host, x)
            assert str(host.tolist()) == str(x.tolist())


@pytest.mark.parametrize("name", WIDE_DTYPES)
def test_wide_dtypes_become_narrow_without_x64(name):
    narrow = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
    x = weft.device_put(np.ones(3, name))
    assert x.dtype == narrow[name] and np.asarray(x).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "name", ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "bfloat16", "float16", "complex64"]
)
def test_small_dtypes_compute(name):
    x = weft.device_put(np.array([0, 1, 1]).astype(numpy_dtype(name)))
    assert (x + x).dtype == x.dtype
    assert np.asarray((x + x).astype(jnp.complex64)).tolist() == [0, 2, 2]
    assert np.asarray(weft.jit(lambda v: v * v)(x).astype(jnp.complex64)).tolist() == [0, 1, 1]
    assert x.tolist() == [0, 1, 1]


def test_float0_stays_with_numpy():
    zeros = np.zeros(3, weft.dtypes.float0)
    assert weft.device_put(zeros) is zeros and jnp.asarray(zeros).dtype == weft.dtypes.float0


def test_numpy_sees_the_array(x):
    for view in (np.asarray(x), x.__array__(), np.asarray(x, copy=False), np.from_dlpack(x)):
        assert view.dtype == np.float32 and (view == V).all() and not view.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 9
    assert np.asarray(x).ctypes.data == x.unsafe_buffer_pointer()
    for owned in (np.array(x), np.asarray(x, copy=True), x.__array__(copy=True)):
        owned[0] = 9
    for wide in (np.asarray(x, "f8"), x.__array__("float64"), np.array(x, dtype="f8")):
        assert wide.dtype == np.float64
    for refused in (lambda: np.array(x, "f8", copy=False), lambda: x.__array__("f8", copy=False)):
        with pytest.raises(ValueError, match="Unable to avoid copy"):
            refused()
    assert x.tolist() == [1, 2, 3]


def test_a_view_outlives_the_array():
    x = jnp.arange(1000.0) * 1
    view, second = np.asarray(x), memoryview(x)
    x.delete()
    del x
    gc.collect()
    for i in range(3):
        (jnp.arange(1000.0) * i).block_until_ready()
    assert (view == np.arange(1000)).all() and np.asarray(second)[999] == 999


def test_a_view_survives_donation():
    x = jnp.arange(1000.0) * 1
    view = np.asarray(x)
    weft.jit(lambda v: v * 0, donate_argnums=0)(x).block_until_ready()
    assert (view == np.arange(1000)).all()


def test_buffers(x):
    assert bytes(memoryview(x)) == V.tobytes() == x.tobytes() and memoryview(x).readonly
    assert np.frombuffer(x, np.float32).tolist() == [1, 2, 3]
    assert memoryview(x > 1).format == "?"
    with pytest.raises(BufferError):
        memoryview(jnp.ones(3, jnp.bfloat16))


def test_numpys_functions_give_numpy(x):
    for made in (np.sin(x), np.add(x, 1), np.concatenate([x, x]), np.where(x > 1, x, 0)):
        assert type(made) is np.ndarray
    assert np.sum(x) == 6 and np.max(x) == 3 and np.shape(x) == (3,) and np.dot(x, x) == 14
    assert np.arange(3)[jnp.int32(1)] == 1 and np.arange(3)[x > 1].tolist() == [1, 2]
    np.testing.assert_allclose(x, V)
    host = np.zeros(3, np.float32)
    host[:] = x
    host[0] = x[2]
    assert host.tolist() == [3, 2, 3]


@pytest.mark.parametrize(
    "left", [np.float32(2), np.float64(2), np.int32(2), np.full(3, 2.0), np.True_]
)
def test_operators_with_numpy_give_arrays(x, left):
    for made in (left * x, x * left, left + x, left - x, left / x, left == x, left < x):
        assert type(made) is ArrayImpl
    assert (left * x).tolist() == (np.asarray(left) * V).tolist()
    assert (left * x).dtype == np.float32


# --- as Python sees it -------------------------------------------------------------------------


def test_iteration_and_membership(x):
    rows = list(jnp.arange(6).reshape(2, 3))
    assert [type(r) for r in rows] == [ArrayImpl] * 2 and rows[1].tolist() == [3, 4, 5]
    assert 2.0 in x and 5 not in x
    assert max(x) == 3 and sum(x) == 6 and sorted(x, reverse=True)[0] == 3
    with pytest.raises(TypeError, match=r"^iter\(\): needs an array with an axis; got f32\[\]\.$"):
        iter(x[0])
    with pytest.raises(TypeError, match=r"^len\(\): needs an array with an axis; got f32\[\]\.$"):
        len(x[0])


def test_numbers(x):
    assert (float(x[0]), int(x[1]), complex(x[2])) == (1.0, 2, 3 + 0j)
    assert type(float(jnp.ones((), jnp.bfloat16))) is float
    assert bool(x[0]) and not jnp.zeros((1, 1))
    n = jnp.int32(3)
    assert [0, 1, 2, 3][n] == 3 and len(range(n)) == 3 and hex(n) == "0x3"
    assert x.item(1) == 2 and x[0].item() == 1 and type(x.item(0)) is float
    with pytest.raises(ValueError, match=r"^bool\(\): needs an array of one element; got f32\[3\]"):
        bool(x)
    with pytest.raises(ValueError, match=r"Hint: x\.size > 0\.$"):
        bool(x[:0])
    for kind in (float, int, complex):
        with pytest.raises(
            TypeError, match=r": needs an array without axes; got f32\[1\]\. Hint: "
        ):
            kind(x[:1])
    for bad in (x[0], n[None]):
        with pytest.raises(
            TypeError, match=r"^index\(\): needs an integer array without axes; got"
        ):
            range(bad)
    with pytest.raises(TypeError):
        float(jnp.asarray(1j))
    with pytest.raises(ValueError, match="size 1"):
        x.item()


def test_an_array_is_no_key(x):
    with pytest.raises(TypeError, match="unhashable type: .*ArrayImpl"):
        hash(x)
    with pytest.raises(TypeError):
        {x: 1}
    traced = weft.make_jaxpr(lambda x: isinstance(x, Hashable))(x).jaxpr.outvars[0]
    assert not isinstance(x, Hashable) and traced.val is False
    assert not issubclass(weft.Array, Hashable)


def test_copies(x):
    weak = jnp.asarray(1.0)
    for fun in (
        copy.copy,
        copy.deepcopy,
        lambda v: pickle.loads(pickle.dumps(v)),
        lambda v: v.copy(),
    ):
        assert same(fun(x), x) and fun(x) is not x
        assert fun(weak).weak_type
    assert copy.deepcopy({"a": [x]})["a"][0].tolist() == [1, 2, 3]
    assert x.copy().unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


def test_assignment_says_what_to_do(x):
    with pytest.raises(errors.MutationError, match=r"Hint: x = x\.at\[0\]\.set\(value\)"):
        x[0] = 1
    y = x
    y += 1
    assert x.tolist() == [1, 2, 3] and y.tolist() == [2, 3, 4]


class Wrapped:
    """Holds an array, and says so."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


def test_jax_array(x):
    w = Wrapped(x)
    for made in (w.value + x, x + w, x * w, jnp.add(w, x), jnp.asarray(w)):
        assert type(made) is ArrayImpl
    assert (x + w).tolist() == [2, 4, 6] and jnp.sin(w).shape == (3,)
    assert (x == w).tolist() == [True] * 3


# --- DLPack ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["bool", "int8", "uint16", "int32", "float16", "float32", "complex64"]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)])
def test_dlpack_both_ways(name, shape):
    host = np.ones(shape, name)
    x = weft.device_put(host)
    out = np.from_dlpack(x)
    assert out.dtype == host.dtype and (out == host).all()
    assert same(jnp.from_dlpack(host), x)


class Exporter:
    """An array of another library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float32", "bool", "complex64"])
def test_dlpack_from_another_library(name):
    x = weft.device_put(np.array([0, 1, 1]).astype(numpy_dtype(name)))
    assert same(jnp.from_dlpack(Exporter(x)), x)
    assert jnp.from_dlpack(Exporter(x)).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


def test_dlpack_in_detail(x):
    assert x.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(x).ctypes.data == x.unsafe_buffer_pointer()
    assert np.from_dlpack(x, copy=True).ctypes.data != x.unsafe_buffer_pointer()
    assert np.from_dlpack(x, device="cpu").tolist() == [1, 2, 3]
    strided = np.arange(12, dtype="f").reshape(3, 4).T[::2]
    assert (np.asarray(jnp.from_dlpack(strided)) == strided).all()
    with pytest.raises(BufferError, match=r"^__dlpack__: dl_device must be the array's or the CPU"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match=r"^from_dlpack: needs an object with __dlpack__; got 3\.$"):
        jnp.from_dlpack(3)


# --- whose memory -----------------------------------------------------------------------------


def aligned(count, offset):
    """A NumPy array of ones whose memory XLA could use without a copy (offset 0) or not."""
    raw = np.zeros(count * 4 + 256, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    x = raw[start : start + count * 4].view(np.float32)
    x[:] = 1
    return x


TAKERS = {
    "device_put": weft.device_put,
    "device": lambda h: weft.device_put(h, weft.devices()[0]),
    "asarray": jnp.asarray,
    "array": jnp.array,
    "list": lambda h: jnp.array([h, h]),
    "from_dlpack": jnp.from_dlpack,
    "frombuffer": lambda h: jnp.frombuffer(h.data, np.float32),
    "ravel": jnp.ravel,
    "jit": weft.jit(lambda v: v),
    "jit computes": weft.jit(lambda v: v * 1.0 + jnp.sin(jnp.cos(v)).sum() * 0),
    "keyword": lambda h: KEYWORD(v=h),
    "operator": lambda h: jnp.zeros(()) + h,
    "ufunc": lambda h: jnp.multiply(h, h),
    "compound": lambda h: jnp.where(True, h, h),
    "constant": lambda h: weft.jit(lambda v: v + h)(0.0),
    "grad": lambda h: weft.grad(lambda v: (v * h).sum())(jnp.ones(h.shape)),
}
KEYWORD = weft.jit(lambda v, n=2: v * 1.0, static_argnames="n")


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("count", [1, 4096, 1 << 20])
@pytest.mark.parametrize("offset", [0, 4])
@pytest.mark.parametrize("name", TAKERS)
def test_writing_to_what_was_passed_changes_nothing(name, count, offset):
    for _ in range(4):
        host = aligned(count, offset)
        out = TAKERS[name](host)
        host[:] = 7
        assert (np.asarray(out) == 1).all()


def test_a_scalar_array_is_read_at_the_call():
    slow = weft.jit(lambda a, t: (a @ a)[0, 0] * 0 + t)
    big = jnp.ones((700, 700))
    for step in [
        np.float32(1),
        aligned(1, 0).reshape(()),
        np.float32(1),
        aligned(1, 0).reshape(()),
    ]:
        out = slow(big, step)
        if isinstance(step, np.ndarray):
            step[...] = 7
        assert float(out) == 1
    assert [bool(weft.jit(lambda v: ~v)(t)) for t in (True, np.False_, np.array(True))] == [0, 1, 0]


# --- gone --------------------------------------------------------------------------------------

GONE = (
    r"^array: must not be used after it was deleted or donated; got f32\[3\]\. Hint: use the result"
)
USES = {
    "operator": lambda d: d + 1,
    "reflected": lambda d: 1 - d,
    "numpy operator": lambda d: np.ones(3) + d,
    "compare": lambda d: d == d,
    "unary": lambda d: -d,
    "matmul": lambda d: d @ d,
    "index": lambda d: d[0],
    "slice": lambda d: d[:2],
    "gather": lambda d: d[jnp.array([0])],
    "at": lambda d: d.at[0].set(1),
    "method": lambda d: d.sum(),
    "astype": lambda d: d.astype(int),
    "function": jnp.sin,
    "stack": lambda d: jnp.stack([d, d]),
    "array": jnp.array,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "asarray": np.asarray,
    "np.array": np.array,
    "np.sin": np.sin,
    "str": str,
    "print": print,
    "format": lambda d: f"{d}",
    "item": lambda d: d.item(0),
    "tolist": lambda d: d.tolist(),
    "tobytes": lambda d: d.tobytes(),
    "float": float,
    "int": int,
    "complex": complex,
    "bool": bool,
    "iterate": list,
    "in": lambda d: 2 in d,
    "jit": lambda d: weft.jit(lambda v: v)(d),
    "jit constant": lambda d: weft.jit(lambda v: v + d)(1.0),
    "grad": weft.grad(lambda v: v.sum()),
    "device_put": weft.device_put,
    "put on": lambda d: weft.device_put(d, weft.devices()[0]),
    "device_get": weft.device_get,
    "to_device": lambda d: d.to_device(weft.devices()[0]),
    "block": lambda d: d.block_until_ready(),
    "dlpack": np.from_dlpack,
    "shard": lambda d: d.addressable_data(0),
    "copy to host": lambda d: d.copy_to_host_async(),
    "is_ready": lambda d: d.is_ready(),
    "size": lambda d: d.on_device_size_in_bytes(),
    "pointer": lambda d: d.unsafe_buffer_pointer(),
    "platform": lambda d: d.platform(),
    "clone": lambda d: d.clone(),
}


@pytest.mark.parametrize("name", USES)
def test_a_deleted_array_says_so(name):
    gone = jnp.arange(3.0) + 1
    gone.delete()
    with pytest.raises(errors.DeletedError, match=GONE):
        USES[name](gone)
    assert gone.is_deleted()
    assert (jnp.arange(3.0) + 1).tolist() == [1, 2, 3]  # nothing else is hurt


def test_what_a_deleted_array_still_knows():
    gone = jnp.arange(3.0) + 1
    gone.delete()
    gone.delete()
    assert repr(gone) == "Array(deleted, f32[3])"  # a debugger must be able to show it
    assert (gone.shape, gone.dtype, gone.nbytes) == ((3,), np.float32, 12)
    assert isinstance(gone, weft.Array) and weft.eval_shape(lambda v: v, gone).shape == (3,)


def test_memory_is_given_back():
    gc.collect()  # what earlier tests left in cycles is not collected between the two counts
    before = len(weft.live_arrays())
    made = [jnp.arange(10.0) + i for i in range(5)]
    assert len(weft.live_arrays()) >= before + 5
    del made
    gc.collect()
    assert len(weft.live_arrays()) <= before


# --- moving ------------------------------------------------------------------------------------


def test_device_put_shares_what_lies_there(x):
    device = weft.devices()[0]
    there = weft.device_put(x, device)
    assert there.committed and not x.committed
    assert there.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert weft.device_put(there, device) is there and weft.device_put(x) is x
    assert put(1.5).weak_type and put(np.float64(1)).dtype == np.float32


class Late:
    """An array that is ready after a number of queries."""

    def __init__(self, times):
        self.left = times

    def is_deleted(self):
        return False

    def is_ready(self):
        self.left -= 1
        return self.left < 0


def test_a_result_is_looked_for_as_long_as_that_pays(monkeypatch):
    now = iter(range(10**6))  # each look takes a microsecond
    monkeypatch.setattr(array, "perf_counter", lambda: next(now) * 1e-6)
    monkeypatch.setattr(array, "_is_ready", Late.is_ready)
    monkeypatch.setattr(array, "_looks", looks := [0, array.LONGEST])

    def look(times):
        x = Late(times)
        array.look_for(x)
        return times - x.left

    assert look(0) == 1 and looks == [0, array.LONGEST]
    assert look(20) == 21 and looks[1] == array.LONGEST
    assert [look(1000) for _ in range(5)] == pytest.approx([50, 25, 13, 7, 4], abs=1)
    while looks[0] % 32 < 31:
        assert look(1000) < 4
    assert look(1000) == pytest.approx(50, abs=1)  # each 32nd is as long as the first
    assert look(20) < 4  # too short by now to see it
    while looks[0] % 32 < 31:
        look(1000)
    assert look(20) == look(20) == 21 and looks[1] == array.LONGEST


def test_waiting_awake_and_asleep(x):
    deep = weft.jit(lambda x: weft.lax.fori_loop(0, 20000, lambda i, y: jnp.sin(y), x))
    for _ in range(40):
        assert (x + 1).block_until_ready() is not None
        y = deep(x)
        assert float(y[0]) == y.block_until_ready()[0] and y.is_ready()
    assert random.key(0).block_until_ready() == random.key(0)


def test_warnings_are_none():
    program = (
        "import weft, weft.numpy as jnp, numpy as np, pickle, copy; x = jnp.ones(3);"
        "np.asarray(x, 'f8'); np.sin(x); x + np.ones(3); float(x[0]); print(x, repr(x));"
        "pickle.loads(pickle.dumps(x)); copy.deepcopy(x); np.from_dlpack(x);"
        "weft.jit(lambda v: v * 2)(x); weft.grad(lambda v: v.sum())(x); np.float32(2) * x;"
        "np.testing.assert_allclose(x, 1); f'{x[0]:.2f}'; list(x); x.tolist(); np.dot(x, x)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True
    )
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_ml_dtypes_scalars_are_operands(x):
    assert (ml_dtypes.bfloat16(2) * x).tolist() == [2, 4, 6]


def test_arrays_of_keys():
    keys = random.split(random.key(3), 4).reshape(2, 2)
    assert weft.device_put(keys) is keys and keys.copy_to_host_async() is None
    for shards in (keys.addressable_shards, keys.global_shards):
        (shard,) = shards
        assert shard.index == (slice(None),) * 2 and shard.replica_id == 0
        assert shard.device is weft.devices()[0] and type(shard.data) is type(keys)
        assert shard.data.aval is keys.aval
        np.testing.assert_array_equal(random.key_data(shard.data), random.key_data(keys))
    said = (
        "array: random keys are not numbers, which NumPy and Python could read; got key<fry>[2,2]. "
        "Hint: weft.random.key_data(keys) for the words that they are made of."
    )
    for read in (np.asarray, lambda x: x.__dlpack_device__(), lambda x: x.__dlpack__()):
        with pytest.raises(TypeError) as info:
            read(keys)
        assert str(info.value) == said
    with pytest.raises(errors.ShapeError) as info:
        iter(keys[0, 0])
    assert str(info.value) == "iter(): needs an array with an axis; got key<fry>[]."
    assert [k.shape for k in keys] == [(2,), (2,)]


def test_reading_does_not_import_jax():
    """The engine would, where it makes an array of a part or of a copy."""
    text = """
import sys
sys.meta_path.insert(0, type("Finder", (), {"find_spec": lambda name, *_: found.append(name)}))
found = []
import numpy as np, weft, weft.numpy as jnp
x = jnp.ones(3, jnp.int4) + 1  # is copied, as the engine's is packed
x.copy_to_host_async()
y = weft.device_put(np.arange(4.0))
y.copy_to_host_async()
print(np.asarray(x), y, y.unsafe_buffer_pointer() > 0, y.addressable_shards[0].data)
print([name for name in found if name.partition(".")[0] == "jax"])
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[2 2 2] [0. 1. 2. 3.] True [0. 1. 2. 3.]\n[]\n", done.stderr
