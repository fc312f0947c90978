"""The Python array API standard: its names, signatures, dtypes and values, as far as JAX meets it.

Names and signatures are those of golden/array_api.json (version 2024.12). Results are compared with
NumPy's, which conforms to the standard since 2.0.
"""

import functools
import inspect
import json
import pathlib

import numpy as np
import pytest

import weft.numpy as jnp
from weft import config, jit

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "array_api.json"
SIGNATURES = json.loads(GOLDEN.read_text())
DTYPES = jnp.__array_namespace_info__().dtypes()
NUMERIC = [d for d in DTYPES if d != "bool"]
INTEGERS = [d for d in DTYPES if "int" in d]
REAL = [d for d in NUMERIC if "complex" not in d]
INEXACT = ["float32", "complex64"]

# The functions of the standard that go element by element, and the dtypes it names for each.
ELEMENTWISE = {
    "abs negative positive square sign add subtract multiply equal not_equal conj": NUMERIC,
    "ceil floor round trunc maximum minimum clip less less_equal greater greater_equal": REAL,
    "remainder floor_divide": REAL,
    "bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift": INTEGERS,
    "bitwise_right_shift": INTEGERS,
    "logical_and logical_or logical_xor logical_not": ["bool"],
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 sin sinh sqrt tan "
    "tanh divide reciprocal pow": INEXACT,
    "atan2 copysign hypot logaddexp nextafter signbit": ["float32"],
    "isfinite isinf isnan": NUMERIC,
    "real imag": ["complex64"],
}
CASES = {
    dtype: [
        name for names, kinds in ELEMENTWISE.items() for name in names.split()
        if dtype in kinds and not (name == "conj" and dtype != "complex64")
    ]
    for dtype in DTYPES
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    signature = inspect.signature(functools.reduce(getattr, name.split("."), jnp))
    given = SIGNATURES[name]
    by_name = {p[1:]: None for p in given if p[0] == "="}
    signature.bind(*[None for p in given if p[0] not in "=*"], **by_name)
    either = {p: None for p in given if p[0] not in "/=*"}
    signature.bind(*[None for p in given if p[0] == "/"], **by_name, **either)


@pytest.mark.parametrize("dtype", CASES)
def test_elementwise(dtype):
    """All functions of a dtype in one program."""
    whole = np.array([1, 2, 5, 3])
    x = whole / 7 if dtype in INEXACT else whole
    y = np.array([2, 1, 3, 1])
    x, y = (v.astype(dtype) for v in (x, y))
    if dtype == "complex64":
        x = x + np.complex64(0.25j)

    def run(module, x, y):
        made = {}
        for name in CASES[dtype]:
            binary = len([p for p in SIGNATURES[name] if p[0] == "/"]) == 2
            operands = (x, y) if binary else (x, 1, 3) if name == "clip" else (x,)
            made[name] = getattr(module, name)(*operands)
        return made

    with np.errstate(all="ignore"):
        wanted = run(np, x, y)
    found = jit(lambda x, y: run(jnp, x, y))(x, y)
    for name, want in wanted.items():
        got = found[name]
        assert got.shape == want.shape and got.dtype == want.dtype, name
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("left", DTYPES)
def test_promotion(left):
    ints = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
    for right in DTYPES:
        kinds = {np.dtype(d).kind for d in (left, right)}
        mixed = kinds <= {"i", "u"} or len(kinds) == 1 or kinds == {"f", "c"}
        if not mixed or (kinds == {"i", "u"} and "uint32" in (left, right)):
            continue  # the standard leaves these open
        want = np.promote_types(left, right)
        assert jnp.result_type(left, right) == want
        assert (left not in ints) or (jnp.ones(2, left) + jnp.ones(2, right)).dtype == want
    for number in (True, 1, 1.5, 1j):
        if np.result_type(left, number) == np.dtype(left):
            assert jnp.result_type(jnp.ones(1, left), number) == np.dtype(left)


def test_inspection():
    info = jnp.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64,
    }  # fmt: skip
    assert info.default_device() is None and info.devices()[0] is None
    assert info.default_dtypes()["integral"] == np.int32
    assert set(info.dtypes(kind=("bool", "integral"))) == {"bool", *INTEGERS}
    with config.scope(enable_x64=True):
        assert info.dtypes(kind="real floating") == {"float32": np.float32, "float64": np.float64}
    with pytest.raises(ValueError, match="dtypes: kind must be one of bool, .*; got 'int'"):
        info.dtypes(kind="int")
    with pytest.raises(ValueError, match="device must be one of .*; got 'gpu:9'"):
        info.dtypes(device="gpu:9")
    assert jnp.__array_api_version__ == "2024.12"


def test_the_array_object():
    x = jnp.arange(6.0).reshape(2, 3)
    assert x.__array_namespace__() is jnp
    assert x.__array_namespace__(api_version="2023.12") is jnp
    assert x.ndim == 2 and x.size == 6 and x.shape == (2, 3) and x.dtype == jnp.float32
    assert x.T.shape == x.mT.shape == (3, 2)
    assert x.to_device(x.device).device == x.device
    np.testing.assert_array_equal(np.from_dlpack(x), x)
    assert isinstance(x.__dlpack_device__()[1], int)
    one = jnp.asarray(3)
    assert (float(one), int(one), bool(one), complex(one)) == (3.0, 3, True, 3 + 0j)
    assert [10, 20, 30, 40][one] == 40
    y = x
    y += 1
    y **= 2
    assert y[0, 1] == 4 and x[0, 1] == 1
    y = jnp.asarray([1, 2])
    y <<= 1
    y //= 2
    y @= jnp.ones((2, 2), int)
    assert y.tolist() == [3, 3]
    assert (~jnp.asarray([True])).tolist() == [False] and (-x).max() == 0 and abs(-x).max() == 5


def test_data_dependent_shapes():
    x = jnp.asarray([3, 1, 3, 2])
    assert jnp.unique_values(x).tolist() == [1, 2, 3]
    assert jnp.unique_counts(x)._fields == ("values", "counts")
    assert jnp.unique_inverse(x)._fields == ("values", "inverse_indices")
    assert jnp.unique_all(x)._fields == ("values", "indices", "inverse_indices", "counts")
    assert jnp.nonzero(x > 1)[0].tolist() == [0, 2, 3] and x[x > 1].tolist() == [3, 3, 2]
    assert jnp.repeat(x, jnp.asarray([0, 1, 2, 0])).tolist() == [1, 3, 3]


def test_functions_of_whole_arrays():
    x = jnp.asarray([[3, 1, 2], [1, 1, 5]])
    assert jnp.sort(x, descending=True).tolist() == [[3, 2, 1], [5, 1, 1]]
    assert jnp.argsort(x, axis=1, descending=True).tolist() == [[0, 2, 1], [2, 0, 1]]
    assert jnp.cumulative_sum(x, axis=1, include_initial=True)[0].tolist() == [0, 3, 4, 6]
    assert jnp.cumulative_prod(x, axis=0)[1].tolist() == [3, 1, 10]
    assert [v.tolist() for v in jnp.unstack(x)] == x.tolist()
    assert jnp.count_nonzero(x > 1, axis=0, keepdims=True).tolist() == [[1, 0, 2]]
    assert jnp.searchsorted(jnp.asarray([3, 1]), x[0], sorter=jnp.asarray([1, 0])).tolist()
    assert jnp.var(x, correction=1, axis=1).dtype == jnp.float32
    assert jnp.take_along_axis(x, jnp.argmin(x, axis=1, keepdims=True)).ravel().tolist() == [1, 1]
    assert jnp.vecdot(x, x).tolist() == [14, 27]
    assert jnp.broadcast_arrays(x, x[0])[1].shape == (2, 3)
    assert jnp.isdtype(x.dtype, ("integral", "bool")) and not jnp.isdtype(x.dtype, "bool")
    assert jnp.finfo(x.astype(jnp.float32).dtype).bits == 32 and jnp.iinfo(x.dtype).max == 2**31 - 1
    assert jnp.asarray(x, copy=True) is not x and jnp.asarray(x, copy=False) is x
    assert jnp.expand_dims(x, axis=-1).shape == (2, 3, 1) and jnp.squeeze(x[:1], axis=0).ndim == 1
    assert jnp.linalg.vector_norm(x.astype(jnp.float32), axis=1, ord=1).tolist() == [6, 7]
    assert jnp.fft.fftfreq(4, device=x.device).tolist() == [0, 0.25, -0.5, -0.25]
