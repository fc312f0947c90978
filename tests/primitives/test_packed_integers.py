"""Operations on integers of fewer than 8 bits: every pair of them, against Python's integers."""

import math

import ml_dtypes
import numpy as np
import pytest

import weft
from weft import lax


def copy_sign(a, width):
    """Return the number that has the bits of `a` if the first of them is a sign."""
    return (a + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)


OPERATIONS = {
    "add": lambda a, b, width: a + b,
    "sub": lambda a, b, width: a - b,
    "mul": lambda a, b, width: a * b,
    "max": lambda a, b, width: max(a, b),
    "min": lambda a, b, width: min(a, b),
    "bitwise_and": lambda a, b, width: a & b,
    "bitwise_or": lambda a, b, width: a | b,
    "bitwise_xor": lambda a, b, width: a ^ b,
    "population_count": lambda a, b, width: (a % 2**width).bit_count(),
    "clz": lambda a, b, width: width - (a % 2**width).bit_length(),
    "shift_right_logical": lambda a, b, width: a % 2**width >> b % width,
    "shift_right_arithmetic": lambda a, b, width: copy_sign(a, width) >> b % width,
    "shift_left": lambda a, b, width: a << b % width,
}
SINGLE = ("population_count", "clz")


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_packed_integers(name):
    dtype, width = np.dtype(getattr(ml_dtypes, name)), int(name[-1])
    numbers = np.arange(2**width) - (2 ** (width - 1) if name[0] == "i" else 0)
    a, b = (v.ravel() for v in np.meshgrid(numbers, numbers))

    def run(x, y, distance):
        shifts = lambda op: distance if op.startswith("shift") else y
        return {
            op: getattr(lax, op)(x, *() if op in SINGLE else (shifts(op),)) for op in OPERATIONS
        }

    found = weft.jit(run)(*(weft.numpy.asarray(v.astype(dtype)) for v in (a, b, b % width)))
    for op, want in OPERATIONS.items():
        exact = np.array([want(int(i), int(j), width) for i, j in zip(a, b, strict=True)])
        np.testing.assert_array_equal(np.asarray(found[op]), exact.astype(dtype), err_msg=op)


BESIDE = {
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "max": max,
    "min": min,
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "bitwise_xor": lambda a, b: a ^ b,
    "div": lambda a, b: int(a / b) if b else -1,
    "rem": lambda a, b: int(math.fmod(a, b)) if b else a,
}
DIVISIONS = ("div", "rem")


@pytest.mark.parametrize(("name", "low"), [("int2", -2), ("uint2", 0), ("int4", -8)])
def test_packed_integers_beside_numbers(name, low):
    """XLA compares an element of two bits with a constant -1 as if they differed."""
    dtype, width = np.dtype(getattr(ml_dtypes, name)), int(name[-1])
    numbers = list(range(low, low + 2**width))
    ranges = [(s, t) for s in numbers for t in numbers if s <= t][:: 1 if width == 2 else 9]
    constants = numbers if width == 2 else [-8, -1, 0, 1, 3, 7]  # each is a kernel to compile

    def run(x):
        return (
            {(op, s): getattr(lax, op)(x, s) for op in BESIDE for s in constants},
            {(op, s): getattr(lax, op)(s, x) for op in DIVISIONS for s in constants},
            {bounds: lax.clamp(bounds[0], x, bounds[1]) for bounds in ranges},
        )

    x = weft.numpy.asarray(np.array(numbers).astype(dtype))
    beside, reversed_, clamped = weft.jit(run)(x)
    for (op, s), got in beside.items():
        exact = np.array([BESIDE[op](a, s) for a in numbers]).astype(got.dtype)
        np.testing.assert_array_equal(np.asarray(got), exact, err_msg=f"{op} {s}")
    for (op, s), got in reversed_.items():
        exact = np.array([BESIDE[op](s, a) for a in numbers]).astype(got.dtype)
        np.testing.assert_array_equal(np.asarray(got), exact, err_msg=f"{s} {op}")
    for (low, high), got in clamped.items():
        exact = np.clip(numbers, low, high).astype(dtype)
        np.testing.assert_array_equal(np.asarray(got), exact, err_msg=f"{low} {high}")


@pytest.mark.parametrize(("name", "low"), [("int2", -2), ("uint2", 0), ("int4", -8)])
def test_numbers_written_into_packed_integers(name, low):
    """XLA writes a constant of two bits over the elements that share its byte."""
    dtype, width = np.dtype(getattr(ml_dtypes, name)), int(name[-1])
    values = np.random.default_rng(0).integers(low, low + 2**width, (3, 5)).astype(dtype)
    numbers = sorted({low, max(low, -1), 0, 1, low + 2**width - 1})
    parts = [np.s_[0, 0], np.s_[1:3, 2:], np.s_[:, 1], np.s_[2, 3:5]]

    def run(x, start):
        row = lambda s: lax.dynamic_update_slice(x, lax.full_like(x[:1, :2], s), (start, start))
        written = {(s, i): x.at[part].set(s) for s in numbers for i, part in enumerate(parts)}
        return written, {s: row(s) for s in numbers}, x.at[0, 0].min(low)

    written, rows, least = weft.jit(run)(weft.numpy.asarray(values), 1)
    for (s, i), got in written.items():
        exact = values.copy()
        exact[parts[i]] = s
        np.testing.assert_array_equal(np.asarray(got), exact, err_msg=f"{s} {parts[i]}")
    for s, got in rows.items():
        exact = values.copy()
        exact[1, 1:3] = s
        np.testing.assert_array_equal(np.asarray(got), exact, err_msg=str(s))
    exact = values.copy()
    exact[0, 0] = low
    np.testing.assert_array_equal(np.asarray(least), exact)


@pytest.mark.parametrize("name", ["int2", "uint2", "int4"])
def test_packed_integers_in_operations_of_several_elements(name):
    """XLA refuses some of them, or ends the process where rows do not fill bytes."""
    dtype, width = np.dtype(getattr(ml_dtypes, name)), int(name[-1])
    rng = np.random.default_rng(0)
    m = rng.integers(0, 2**width, (5, 7)).astype(dtype)
    whole, jnp = m.astype(int), weft.numpy

    def run(x):
        products = [x @ x.T, lax.dot(x, x.T, preferred_element_type=np.int32)]
        kernel = lax.slice(x, (0, 0), (3, 3))[None, None]
        windows = lax.conv(x[None, None], kernel, (1, 1), "VALID")[0, 0]
        keys = lax.sort((x[0], x[1]), num_keys=2)
        places = jnp.argmax(x, 0), jnp.argmin(x, 1)
        return products, windows, keys, places, jnp.stack([x[0], x[1], x[2]], axis=1)

    products, windows, keys, places, stacked = weft.jit(run)(jnp.asarray(m))
    exact = whole @ whole.T
    np.testing.assert_array_equal(np.asarray(products[0]), exact.astype(dtype))
    np.testing.assert_array_equal(np.asarray(products[1]), exact)
    views = np.lib.stride_tricks.sliding_window_view(whole, (3, 3))
    sums = (views * whole[:3, :3]).sum((2, 3))
    np.testing.assert_array_equal(np.asarray(windows), sums.astype(dtype))
    order = np.lexsort((whole[1], whole[0]))
    np.testing.assert_array_equal(np.asarray(keys[0]), m[0][order])
    np.testing.assert_array_equal(np.asarray(keys[1]), m[1][order])
    np.testing.assert_array_equal(np.asarray(places[0]), whole.argmax(0))
    np.testing.assert_array_equal(np.asarray(places[1]), whole.argmin(1))
    np.testing.assert_array_equal(np.asarray(stacked), m[:3].T)
