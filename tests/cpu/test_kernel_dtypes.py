"""Every kernel in C++ with operands of every dtype that XLA has, against NumPy and ml_dtypes.

A row of ROWS is a program that calls a kernel if its operands have the dtype that the row names.
With any other dtype the program returns the same result or is rejected when it is staged: no kernel
reads elements of an unsupported width, such as four bits, which XLA packs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import dtypes, lax, nn, random
from weft.cpu import kernels
from weft.errors import JaxRuntimeError
from weft.primitives import sparse
from weft.primitives.sort import find_places, partition_p
from weft.primitives.tokens import keep_p

pytestmark = pytest.mark.skipif(bool(kernels.load_kernels()), reason="the kernels are not built")

NARROW = "int2 uint2 int4 uint4 float4_e2m1fn"  # which XLA packs
BYTES = """
bool int8 uint8 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2
float8_e5m2fnuz float8_e8m0fnu
"""
WIDE = "int16 uint16 int32 uint32 int64 uint64 bfloat16 float16 float32 float64"
DTYPES = [
    dtypes.find_dtype(n, "test") for n in f"{NARROW} {BYTES} {WIDE} complex64 complex128".split()
]
LACKING = {"int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"}  # XLA has no arrays of these


def draw(rng: np.random.Generator, dtype: np.dtype, *shape: int) -> np.ndarray:
    """Numbers that every dtype of a kind holds exactly."""
    if dtype.name == "float8_e8m0fnu":
        values = [0.5, 1, 2, 4]
    elif dtypes.is_inexact(dtype):
        values = [-2, -1, 0, 0.5, 1, 1.5, 3]
    else:
        values = [-2, -1, 0, 1] if dtypes.is_signed(dtype) else [0, 1, 2, 3]
    found = rng.choice(values, shape)
    if dtypes.is_complex(dtype):
        found = found + 1j * rng.choice(values, shape)
    return (found > 1 if dtypes.is_bool(dtype) else found).astype(dtype)


def widen(x: Any) -> Any:
    """Return the numbers in a dtype of NumPy that holds them without rounding."""
    x = np.asarray(x)
    if dtypes.is_inexact(x.dtype):
        return x.astype(np.complex128 if dtypes.is_complex(x.dtype) else np.float64)
    return x.astype(np.int64) if dtypes.is_integer(x.dtype) else x


class Row(NamedTuple):
    """A program, its operands of a dtype, and what NumPy computes of the same in wide dtypes."""

    usual: str  # a dtype of operands that has a kernel
    operands: Callable[[Callable[..., np.ndarray]], list]
    fun: Callable[..., Any]
    reference: Callable[..., Any] | None = None  # the function itself, of NumPy, if None


ORDER = np.random.default_rng(1).permutation(800).astype(np.float32).reshape(2, 400)
PLACES = np.random.default_rng(2).integers(0, 30, (500, 2)).astype(np.int32)
PLACES = PLACES[np.argsort(PLACES[:, 0], kind="stable")]
STARTS = np.searchsorted(PLACES[:, 0], np.arange(31)).astype(np.int32)
MATRICES = np.ones((20, 1, 1)) * (np.eye(8) * 12 + np.arange(64).reshape(8, 8) % 3)
AT = np.arange(1 << 13, dtype=np.int32) % 4000
KTH = np.full((3, 1), 400, np.int32)


def windows_of(x: np.ndarray) -> np.ndarray:
    """Windows of 3 by 3 elements of the last two axes."""
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))


def largest_at(row: np.ndarray, updates: np.ndarray) -> np.ndarray:
    found = row.copy()
    for i, u in zip(AT, updates, strict=True):
        found[i] = max(found[i], u)
    return found


def sums_at(row: np.ndarray, updates: np.ndarray) -> np.ndarray:
    found = row.copy()
    np.add.at(found, AT, updates)
    return found


def multiply_sparse(data: np.ndarray, dense: np.ndarray) -> np.ndarray:
    matrix = np.zeros((30, 30), data.dtype)
    np.add.at(matrix, tuple(PLACES.T), data)
    return matrix @ dense


def multiply_factors(x: Any) -> Any:
    return (jnp.tril(x, -1) + jnp.eye(8, dtype=x.dtype)) @ jnp.triu(x)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    weights = softmax(np.einsum("btnh,bsnh->bnts", q, k) * q.shape[-1] ** -0.5)
    return np.einsum("bnts,bsnh->btnh", weights, v)


def slope_of_kernels(x: Any, ct: Any) -> Any:
    """The derivative of a convolution of each feature by itself, in its kernels."""
    f = lambda k: lax.conv_general_dilated(x, k, (1, 1), "VALID", feature_group_count=8)
    return weft.vjp(f, jnp.zeros((8, 1, 3, 3), x.dtype))[1](ct)[0]


def slope_of_extrema(x: Any, ct: Any) -> Any:
    f = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 4), (1, 4), "VALID")
    return weft.vjp(f, x)[1](ct)[0]


def slope_of_factor(x: Any, ct: Any) -> Any:
    return weft.vjp(lambda x: lax.linalg.cholesky(x, symmetrize_input=False), x)[1](ct)[0]


def spread_to_largest(x: np.ndarray, ct: np.ndarray) -> np.ndarray:
    first = x.reshape(*ct.shape, 4).argmax(-1)[..., None] == np.arange(4)
    return (first * ct[..., None]).reshape(x.shape)


# The kernel of a row is named before the colon. Rows after `rounds` have rounded or wrapped
# results. They are compared with programs without kernels, except for wide floats.
ROWS = {
    "cholesky": Row(
        "float32",
        lambda d: [np.broadcast_to(np.eye(40) * 9, (3, 40, 40)).astype(d(1).dtype)],
        lambda x: lax.linalg.cholesky(x, symmetrize_input=False),
        np.linalg.cholesky,
    ),
    "compare": Row("float32", lambda d: [d(40, 300)], lambda x: (x > 1).any(1)),
    "compare: counts": Row(
        "uint8", lambda d: [d(40, 300)], lambda x: (x == 1).sum(1, dtype=np.int32)
    ),
    "concatenate": Row(
        "float32",
        lambda d: [d(3, 70_000), d(3, 90_000)],
        lambda *xs: lax.concatenate(xs, 1),
        lambda *xs: np.concatenate(xs, 1),
    ),
    "concatenate: stack": Row(
        "float64", lambda d: [d(70_000)] * 3, lambda *xs: jnp.stack(xs), lambda *xs: np.stack(xs)
    ),
    "members": Row(
        "float32", lambda d: [d(3000), d(90)], jnp.isin, lambda x, y: (x[:, None] == y).any(1)
    ),
    "program": Row("float32", lambda d: [d(40, 60), d(40, 60)], lambda x, y: (x > y) & (x > 1)),
    "program: choices": Row(
        "int8",
        lambda d: [d(40, 60), d(40, 60)],
        lambda x, y: lax.select(x > y, x, y),
        lambda x, y: np.where(x > y, x, y),
    ),
    "extremum": Row("float32", lambda d: [d(40, 1200)], lambda x: x.max(1)),
    "extremum: places": Row("int8", lambda d: [d(40, 1200)], lambda x: x.argmin(1)),
    "find_places": Row(
        "bool",
        lambda d: [d(5, 90)],
        lambda x: find_places(x, 7),
        lambda x: np.stack([np.append(np.flatnonzero(r), [90] * 90)[:7] for r in x]),
    ),
    "keep": Row(
        "float32",
        lambda d: [d(3, 70), d(9)],
        lambda *xs: keep_p.bind(*[lax.rev(x, (0,)) for x in xs]),
        lambda *xs: tuple([x[::-1] for x in xs]),
    ),
    "pad": Row(
        "float32",
        lambda d: [d(3, 90_000)],
        lambda x: lax.pad(x, x.dtype.type(1), [(1, 2, 0), (0, 7, 0)]),
        lambda x: np.pad(x, [(1, 2), (0, 7)], constant_values=1),
    ),
    "partition": Row(
        "float32",
        lambda d: [d(3, 900)],
        lambda x: jnp.sort(partition_p.bind(x, KTH, axis=1, places=False)),
        lambda x: np.sort(x),
    ),
    "partition: places": Row(
        "float32",
        lambda d: [d(3, 900)],
        lambda x: jnp.sort(partition_p.bind(x, KTH, axis=1, places=True)),
        lambda x: np.arange(900) + np.zeros((3, 1)),
    ),
    "permutation": Row(
        "int32",
        lambda d: [d(30, 5) * 0 + np.arange(5).astype(d(1).dtype)],
        lambda x: lax.linalg.lu_pivots_to_permutation(x, 5),
        lambda x: x,
    ),
    "roll": Row(
        "float32",
        lambda d: [d(400, 500)],
        lambda x: jnp.roll(x, (3, -5), (0, 1)),
        lambda x: np.roll(x, (3, -5), (0, 1)),
    ),
    "scatter": Row(
        "float32",
        lambda d: [d(3, 4000), d(3, 1 << 13)],
        lambda x, u: x.at[:, AT].max(u),
        lambda x, u: np.array([largest_at(*row) for row in zip(x, u, strict=True)]),
    ),
    "sort": Row("float32", lambda d: [d(2, 400)], lambda x: jnp.sort(x), np.sort),
    "sort: places": Row(
        "float32",
        lambda d: [d(2, 400)],
        lambda x: jnp.argsort(x),
        lambda x: np.argsort(x, kind="stable"),
    ),
    "sort: what is carried": Row(
        "float32",
        lambda d: [ORDER, d(2, 400)],
        lambda k, x: lax.sort((k, x))[1],
        lambda k, x: np.take_along_axis(x, np.argsort(k, kind="stable"), -1),
    ),
    "sort: several keys": Row(
        "float32",
        lambda d: [d(2, 400), ORDER],
        lambda x, y: lax.sort((x, y), num_keys=2)[1],
        lambda x, y: np.stack([r[np.lexsort((r, k))] for k, r in zip(x, y, strict=True)]),
    ),
    "sort: a permutation": Row(
        "float32",
        lambda d: [d(10, 100)],
        lambda x: jnp.sort(random.permutation(random.key(0), x, axis=1, independent=True)),
        np.sort,
    ),
    "sort: the largest": Row(
        "float32",
        lambda d: [d(5, 200)],
        lambda x: lax.top_k(x, 40)[0],
        lambda x: np.sort(x)[:, :-41:-1],
    ),
    "sum: of few": Row(
        "int32",
        lambda d: [d(40, 90)],
        lambda x: x.sum(1, dtype=np.int32),
        lambda x: np.real(x).sum(1, dtype=np.int32),
    ),
    "sum: of bytes": Row(
        "int8",
        lambda d: [d(40, 1200)],
        lambda x: x.sum(1, dtype=np.int32),
        lambda x: np.real(x).sum(1, dtype=np.int32),
    ),
    "top_k": Row(
        "float32",
        lambda d: [d(5, 900)],
        lambda x: lax.top_k(x, 9)[0],
        lambda x: np.sort(x)[:, :-10:-1],
    ),
    "view": Row("float32", lambda d: [d(200, 300)], lambda x: x[::-1, 7:299]),
    "view: transposes": Row("float16", lambda d: [d(200, 300)], lambda x: x.T),
    "view: repeats": Row(
        "float32",
        lambda d: [d(90)],
        lambda x: lax.broadcast_in_dim(x, (30, 90), (1,)),
        lambda x: np.broadcast_to(x, (30, 90)),
    ),
    "rounds": None,
    "cholesky_pullback": Row(
        "float32",
        lambda d: [np.broadcast_to(np.eye(40) * 9, (3, 40, 40)).astype(d(1).dtype), d(3, 40, 40)],
        slope_of_factor,
    ),
    "cholesky_pullback: symmetric": Row(
        "float32",
        lambda d: [np.broadcast_to(np.eye(60) * 9, (3, 60, 60)).astype(d(1).dtype), d(3, 60, 60)],
        lambda x, ct: weft.vjp(lax.linalg.cholesky, x)[1](ct)[0],
    ),
    "attention": Row(
        "float32",
        lambda d: [d(2, 64, 2, 32), d(2, 64, 2, 32), d(2, 64, 2, 32)],
        nn.dot_product_attention,
        attend,
    ),
    "masked_attention": Row(
        "float32",
        lambda d: [d(2, 2, 64, 32), d(2, 2, 64, 32), d(2, 2, 64, 32)],
        lambda q, k, v: nn.softmax(q @ k.swapaxes(-1, -2) / 32**0.5) @ v,
        lambda q, k, v: attend(*(np.swapaxes(x, 1, 2) for x in (q, k, v))).swapaxes(1, 2),
    ),
    "conv": Row(
        "float32",
        lambda d: [d(8, 8, 20, 20), d(16, 8, 3, 3)],
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID"),
        lambda x, k: np.einsum("nchwij,ocij->nohw", windows_of(x), k),
    ),
    "coo_dot": Row(
        "float32",
        lambda d: [d(500), d(30, 7)],
        lambda x, y: sparse.coo_dot(x, y, PLACES, 30),
        multiply_sparse,
    ),
    "csr_dot": Row(
        "float32",
        lambda d: [d(500), d(30, 7)],
        lambda x, y: sparse.csr_dot(x, y, PLACES[:, 1], STARTS),
        multiply_sparse,
    ),
    "coo_sample": Row(
        "float32",
        lambda d: [d(30, 9), d(30, 9)],
        lambda x, y: sparse.coo_sample(x, y, PLACES),
        lambda x, y: (x[PLACES[:, 0]] * y[PLACES[:, 1]]).sum(1),
    ),
    "cumulative": Row("int32", lambda d: [d(3, 400)], lambda x: x.cumsum(1, dtype=x.dtype)),
    "depthwise": Row(
        "float32",
        lambda d: [d(4, 8, 9, 9), d(4, 8, 7, 7)],
        slope_of_kernels,
        lambda x, ct: np.einsum("nchwij,nchw->cij", windows_of(x), ct)[:, None],
    ),
    "fft": Row("float32", lambda d: [d(40, 60)], jnp.fft.rfft, np.fft.rfft),
    "dot": Row("float32", lambda d: [d(9, 70, 80), d(9, 80, 60)], lambda x, y: x @ y),
    "dot_symmetric": Row("float32", lambda d: [d(90, 80)], lambda x: x.T @ x),
    "matvec": Row("float32", lambda d: [d(600, 900), d(900)], lambda x, y: x @ y),
    "matvec_pair": Row("float32", lambda d: [d(600, 900), d(900)], lambda x, y: x.T @ (x @ y)),
    "program: function": Row("float32", lambda d: [d(200, 500)], lambda x: lax.sin(x), np.sin),
    "program: function of doubles": Row(
        "float64", lambda d: [d(200, 500)], lambda x: lax.cos(x), np.cos
    ),
    "lu": Row(
        "float32",
        lambda d: [MATRICES.astype(d(1).dtype)],
        lambda x: multiply_factors(lax.linalg.lu(x)[0]),
        lambda x: x,
    ),
    "or_nan": Row(
        "complex64",
        lambda d: [np.broadcast_to(np.eye(40) * 9, (3, 40, 40)).astype(d(1).dtype)],
        lax.linalg.cholesky,
        np.linalg.cholesky,
    ),
    "qr": Row(
        "float32",
        lambda d: [MATRICES.astype(d(1).dtype)],
        lambda x: jnp.matmul(*lax.linalg.qr(x, full_matrices=False)),
        lambda x: x,
    ),
    "resample": Row(
        "float32",
        lambda d: [np.ones((2, 3000, 30), d(1).dtype)],
        lambda x: weft.image.resize(x, (2, 7000, 30), "linear"),
        lambda x: np.ones((2, 7000, 30)),
    ),
    "program: rows": Row("bfloat16", lambda d: [d(70, 300)], lambda x: nn.softmax(x), softmax),
    "scatter: sums": Row(
        "float32",
        lambda d: [d(3, 4000), d(3, 1 << 13)],
        lambda x, u: x.at[:, AT].add(u),
        lambda x, u: np.array([sums_at(*row) for row in zip(x, u, strict=True)]),
    ),
    "select_scatter": Row(
        "float32", lambda d: [d(20, 4000), d(20, 1000)], slope_of_extrema, spread_to_largest
    ),
    "sum": Row("float32", lambda d: [d(40, 1200)], lambda x: x.sum(1)),
    "sum: products": Row(
        "float32", lambda d: [np.ones((40, 1200), d(1).dtype)], lambda x: x.prod(1)
    ),
    "triangle": Row(
        "complex64",
        lambda d: [np.broadcast_to(np.eye(9), (20, 9, 9)).astype(d(1).dtype)],
        lambda x: jnp.abs(lax.linalg.qr(x)[1]),
        lambda x: x,
    ),
    "trsm": Row(
        "float32",
        lambda d: [np.tril(MATRICES).astype(d(1).dtype), d(20, 8, 2)],
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        np.linalg.solve,
    ),
}
ROUNDS = [*ROWS][[*ROWS].index("rounds") :]
del ROWS["rounds"]


def test_every_kernel_has_a_row_and_every_dtype_a_column():
    assert {name.partition(":")[0] for name in ROWS} == {*kernels.KERNELS.split(), "keep"}
    listed = {d.name for d in DTYPES} | LACKING
    assert {d.name for d in dtypes._KIND_OF} <= listed


@pytest.mark.parametrize("name", ROWS)
def test_the_usual_dtype_is_for_the_kernel(name):
    row, dtype = ROWS[name], dtypes.find_dtype(ROWS[name].usual, "test")
    with weft.enable_x64(True):
        xs = row.operands(lambda *shape: draw(np.random.default_rng(3), dtype, *shape))
        assert f"weft_{name.partition(':')[0]}" in weft.jit(row.fun).lower(*xs).as_text()
    assert agrees(name, dtype)


@pytest.mark.sample(one_in=96)
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.name not in NARROW], ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_dtypes_of_whole_bytes(name, dtype):
    agrees(name, dtype)


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.name in NARROW], ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_dtypes_that_are_packed(name, dtype):
    agrees(name, dtype)


def agrees(name: str, dtype: np.dtype) -> bool:
    """Compare a program of a dtype with NumPy; False if the program is refused."""
    row, rng = ROWS[name], np.random.default_rng(3)
    with weft.enable_x64(True):
        xs = row.operands(lambda *shape: draw(rng, dtype, *shape))
        try:
            outs = weft.eval_shape(row.fun, *xs)
        except (TypeError, NotImplementedError):  # DtypeError among them
            return False
        if any(y.dtype == dtypes.float0 for y in weft.tree.leaves(outs)):
            return False
        run = lambda *xs: weft.jit(lambda *xs: row.fun(*xs))(*xs)
        try:
            found = run(*xs)
        except JaxRuntimeError:  # XLA knows no such arithmetic, without the kernels neither
            with weft.config.scope(native=False), pytest.raises(JaxRuntimeError):
                run(*xs)
            return False
        if name in ROUNDS and (dtype.itemsize == 1 or not dtypes.is_float(dtype)):
            with weft.config.scope(native=False):
                wants = run(*xs)
        else:
            wants = (row.reference or row.fun)(*map(widen, xs))
    pairs = [(found, wants)] if type(wants) is not tuple else zip(found, wants, strict=True)
    for y, want in pairs:
        eps = float(dtypes.finfo(y.dtype).eps) if dtypes.is_inexact(y.dtype) else 0
        slack = {"rtol": 8 * eps, "atol": 64 * eps} if name in ROUNDS else {"rtol": 0}
        np.testing.assert_allclose(widen(y), widen(want), **slack)
    return True
