"""Programs that become calls of kernels only: against NumPy, and against XLA's loops."""

import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import config, jit
from weft.cpu.called_programs import MAX_ELEMENTS, MAX_EQUATIONS, Calls, call_operations
from weft.cpu.calls import CpuCall
from weft.cpu.kernels import load_kernels
from weft.util import JAXLIB

pytestmark = pytest.mark.skipif(bool(load_kernels()), reason="the kernels are not built")
ROWS, COLUMNS = 48, 24
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-30, 3e30, 1.0, -1.0]


@pytest.fixture
def always(monkeypatch):
    """Have programs called also where XLA is quicker."""
    monkeypatch.setattr(Calls, "is_quick", lambda self, written, copied: True)


def draw(dtype, *shape, seed=0):
    """Return numbers, of floats with special values among them."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind != "f":
        return rng.integers(0, 9, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), x).astype(dtype)


def call(fun, *args):
    """Return a function as a program of calls, and the program."""
    jaxpr = weft.make_jaxpr(fun)(*args).jaxpr
    made = call_operations(jaxpr)
    return (lambda *xs: jit(lambda *xs: made(*xs))(*xs)), made


def is_called(fun, *args):
    """Return True if XLA compiles nothing of a program by LLVM."""
    made = call(fun, *args)[1]
    moves = lambda e: e.primitive.name in ("reshape", "broadcast_in_dim", "reduce_sum")
    return all(isinstance(e.primitive, CpuCall) or moves(e) for e in made.eqns)


# Functions of two matrices, a row, a column and a number.
FLOATS = {
    "a scaled sum": lambda x, y, r, c, s: s * x + y,
    "a product less an array": lambda x, y, r, c, s: x * y - x,
    "less a product": lambda x, y, r, c, s: y - x * y,
    "less a row": lambda x, y, r, c, s: x - r,
    "less the mean of columns": lambda x, y, r, c, s: x - r / 48,
    "scaled rows": lambda x, y, r, c, s: x / (jnp.where(jnp.sqrt(abs(r)) <= 0.1, 1.0, r) * 7),
    "scaled columns": lambda x, y, r, c, s: x * c[:, None] + y,
    "outer products": lambda x, y, r, c, s: x + jnp.outer(c, r) + jnp.outer(c, r * s),
    "a column that is computed": lambda x, y, r, c, s: x * (c * s - c)[:, None],
    "squares": lambda x, y, r, c, s: (x - y) ** 2 * s,
    "a reciprocal": lambda x, y, r, c, s: s / x + 1 / y,
    "roots": lambda x, y, r, c, s: jnp.sqrt(abs(x)) - y / jnp.sqrt(abs(y)),
    "a part of a row": lambda x, y, r, c, s: x.reshape(-1, 12) + r[3:15],
    "a number of a row": lambda x, y, r, c, s: x * r[3],
    "functions": lambda x, y, r, c, s: jnp.exp(x - r) + y,
}
NUMBERS = {
    "several results": lambda x, y, r, c, s: (x + y, x * y, (x + y) * s),
    "transposes": lambda x, y, r, c, s: x.T * s + y.T,
    "results of many shapes": lambda x, y, r, c, s: (r + r * r, c - s * c, s + s * s, x * s + r),
    "the lower triangle": lambda x, y, r, c, s: jnp.tril(x * s + y) * y,
    "both triangles": lambda x, y, r, c, s: jnp.tril(x * y) + jnp.triu(y, 1) * s,
    "a diagonal": lambda x, y, r, c, s: x + jnp.eye(ROWS, COLUMNS, dtype=x.dtype) * s,
    "maxima": lambda x, y, r, c, s: jnp.maximum(x, 3) + jnp.minimum(y, r),
    "a choice by numbers": lambda x, y, r, c, s: jnp.where(x > y, x, 2) * s,
    "a comparison": lambda x, y, r, c, s: (x * y > r) & (y == x),
    "other dtypes": lambda x, y, r, c, s: (x > 0).astype(x.dtype) + y.astype(bool).astype(x.dtype),
    "a flat array": lambda x, y, r, c, s: (x * y + x).reshape(-1),
}


def check(found, want):
    """Compare results; floats have another last bit where a product and a sum are one operation."""
    for x, y in zip(*map(weft.tree.leaves, (found, want)), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype and x.shape == y.shape
        if x.dtype.kind != "f":
            np.testing.assert_array_equal(x, y)
            continue
        tiny = np.finfo(x.dtype)
        np.testing.assert_allclose(x, y, rtol=16 * tiny.eps, atol=64 * tiny.eps, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "uint8"])
def test_results(always, dtype):
    found = {**NUMBERS, **(FLOATS if dtype.startswith("f") else {})}
    with config.scope(enable_x64=True):
        x, y = draw(dtype, 2, ROWS, COLUMNS)
        args = x, y, draw(dtype, COLUMNS, seed=2), draw(dtype, ROWS, seed=3), np.array(3, dtype)[()]
        for name, fun in found.items():
            assert is_called(fun, *args), name
            with config.scope(native=False):
                want = jit(fun)(*args)
            check(call(fun, *args)[0](*args), want)


@pytest.mark.parametrize("rows, n", [(70, 15), (65, 16), (70, 17), (9, 300), (6, 1003), (1, 4096)])
def test_rows_of_each_length(always, rows, n):
    x, r, c = draw("int32", rows, n), draw("int32", n, seed=1), draw("int32", rows, seed=2)
    scaled = lambda np, x, r, c: x * c[:, None] + r
    masked = lambda np, x, r, c: np.tril(x - r, 2) * c[:, None]
    for fun in (scaled, masked):
        ours = lambda *xs, fun=fun: fun(jnp, *xs)
        assert is_called(ours, x, r, c)
        check(call(ours, x, r, c)[0](x, r, c), [fun(np, x, r, c)])


def test_arrays_of_any_size():
    double = lambda x: x * 2 + 1
    for shape in [(), (1,), (0,), (3, 0), (5,), (1, 1), (17,), (4, 300)]:
        x = np.ones(shape, np.float32)
        assert is_called(double, x) == (x.size > 0)
        check(call(double, x)[0](x), [np.full(shape, 3, np.float32)])


# Programs of two square matrices that are left to XLA: an equation of each needs a loop, or calls
# would be slower.
LEFT = {
    "a gather": lambda x, y: x[y[0].astype("int32")] * 2 + y,
    "a sort": lambda x, y: jnp.sort(x * 2 + y),
    "a maximum": lambda x, y: (x * 2 + y).max(0),
    "a loop": lambda x, y: weft.lax.fori_loop(0, 3, lambda i, z: z * x + y, x),
    "another dtype": lambda x, y: x.astype("complex64") * 2 + y,
    "a padded array": lambda x, y: jnp.pad(x, 1)[1:, 1:] * 3,
    "products of stacks": lambda x, y: jnp.stack([x * 2, y]) @ jnp.stack([y, y]),
    "a small matrix and a vector": lambda x, y: (x * 2 + y) @ y[0],
    "many equations": lambda x, y: sum([x] * (MAX_EQUATIONS + 1), y),
    "many results": lambda x, y: [x + i for i in range(9)],
    "only moves": lambda x, y: (x.T, y.reshape(-1)),
    "many steps": lambda x, y: sum([x * x] * 30, y),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_xla(name):
    x = np.ones((40, 40), np.float32)
    jaxpr = weft.make_jaxpr(LEFT[name])(x, x).jaxpr
    assert call_operations(jaxpr) is jaxpr


def test_sizes():
    add = lambda x: x * 2 + 1
    for n in (10, 4000, MAX_ELEMENTS):
        assert is_called(add, jnp.zeros(n))
    assert not is_called(add, jnp.zeros(MAX_ELEMENTS + 1))
    steps = lambda x: ((x * 2 + 1) / x - x) * abs(x)
    assert [is_called(steps, jnp.zeros(n)) for n in (10, 4000, 16000)] == [False, True, False]
    with config.scope(enable_x64=True):
        assert not is_called(lambda x: x * jnp.arange(5), jnp.zeros(5, "int64"))


# Functions of a matrix that call kernels of products and of sums.
BESIDE = {
    "a layer": (lambda x: jnp.maximum(x @ x + x[0], 0), lambda x: np.maximum(x @ x + x[0], 0)),
    "covariances": (lambda x: (y := x - x.mean(0)).T @ y, lambda x: (y := x - x.mean(0)).T @ y),
    "a masked product": (
        lambda x: jnp.tril(x, -1).T @ x * 3 + x,
        lambda x: np.tril(x, -1).T @ x * 3 + x,
    ),
}


# Products of two matrices, or of a matrix and a vector, also of transposed operands.
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape, other", [((30, 31), (31, 9)), ((64, 70), (70,)), ((70,), (70, 64))]
)
def test_products(dtype, shape, other):
    x, y = draw("int32", *shape).astype(dtype), draw("int32", *other, seed=1).astype(dtype)
    turned = lambda z, turn: z.T if turn else z
    with config.scope(enable_x64=True):
        for left, right in [(False, False), (True, False), (False, True), (True, True)]:
            fun = lambda x, y, a=left, b=right: turned(x, a) @ turned(y, b) * 2 + 1
            args = np.ascontiguousarray(turned(x, left)), np.ascontiguousarray(turned(y, right))
            made, program = call(fun, *args)
            assert is_called(fun, *args), program
            check(made(*args), [x @ y * 2 + 1])
            axes = ((0 if left else x.ndim - 1,), (y.ndim - 1 if right and y.ndim > 1 else 0,))
            fun = lambda x, y, axes=axes: weft.lax.dot_general(x, y, (axes, ((), ()))) + 1
            assert is_called(fun, *args)
            check(call(fun, *args)[0](*args), [x @ y + 1])


@pytest.mark.skipif(JAXLIB < (0, 12), reason="XLA 0.10 compiles loops sooner")
@pytest.mark.parametrize("name", BESIDE)
def test_beside_other_kernels(name):
    fun, numpys = BESIDE[name]
    x = np.random.default_rng(0).standard_normal((96, 96))
    with config.scope(enable_x64=True):
        lowered = jit(fun).lower(x)
        text = lowered.as_text()
        threaded = {"case", "optimization_barrier", "dot_general", "dot"}  # cpu/threads.py
        assert set(re.findall(r"stablehlo\.(\w+)", text)) - threaded <= {
            "custom_call",
            "constant",
            "reduce",
            "add",
            "return",
            "reshape",
        }
        assert "weft_program" in text and "group" not in text
        np.testing.assert_allclose(lowered.compile()(x), numpys(x), rtol=1e-11, atol=1e-11)
        donating = jit(fun, donate_argnums=0).lower(x).as_text()
        assert "weft_program" not in donating
