"""Operations on integers of fewer than 8 bits: every pair of them, against Python's integers."""

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
