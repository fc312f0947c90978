"""Write tests/golden/elementwise.json: values and derivatives of jax.lax functions at their edges.

Run it in an environment that has JAX 0.10.2: `python tools/make_elementwise.py`. JAX is
asked as a black box; test_elementwise.py compares.
"""

import itertools
import json
from pathlib import Path

import jax
import numpy as np

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e30, -1e30, np.inf, -np.inf, np.nan]
COMPLEX = [0j, 1 + 0j, -1 + 0j, -1 - 0.0j, 1j, -1j, 2 + 1j, -2 - 1j, 2j, -2j, 2 + 0j, -2 + 0j]
INTS = [0, 1, -1, 2, 7, -7, 2**31 - 1, -(2**31)]
UNARY = (
    "abs acos acosh asin asinh atan atanh cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2 "
    "expm1 floor lgamma log log1p logistic neg rsqrt round sign sin sinh sqrt square tan tanh "
    "bessel_i0e bessel_i1e is_finite reciprocal"
)
BINARY = "add atan2 div max min mul nextafter pow rem sub eq ge gt le lt ne"
COMPLEX_UNARY = (
    "abs acos acosh asin asinh atan atanh cos cosh exp expm1 imag log log1p neg real conj rsqrt "
    "sign sin sinh sqrt square tan tanh"
)
UINT_UNARY = "neg sign square bitwise_not population_count clz"
INT_UNARY = "abs " + UINT_UNARY
INT_BINARY = (
    "add sub mul div rem max min bitwise_and bitwise_or bitwise_xor shift_left "
    "shift_right_arithmetic shift_right_logical mulhi lt"
)
FLAT = "is_finite nextafter eq ge gt le lt ne"


def numbers(x: object) -> list:
    """An array as lists of numbers; complex ones as pairs."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return [[float(v.real), float(v.imag)] for v in x.ravel()]
    return [float(v) if x.dtype.kind == "f" else int(v) for v in x.ravel()]


def table(names: str, points: list, dtype: object, arity: int) -> dict:
    """name -> values at every point (or pair), and derivatives in each operand."""
    xs = [np.array(c, dtype) for c in zip(*itertools.product(points, repeat=arity), strict=True)]
    out = {f"operands of {arity}": [numbers(x) for x in xs]}
    for name in names.split():
        fun = getattr(jax.lax, name)
        row = [numbers(fun(*xs))]
        if np.dtype(dtype).kind in "fc" and name not in FLAT.split():
            for k in range(arity):
                ts = [np.full_like(x, float(i == k)) for i, x in enumerate(xs)]
                row.append(numbers(jax.jvp(fun, xs, ts)[1]))
        out[name] = row
    return out


found = {
    "float32": table(UNARY, EDGES, np.float32, 1) | table(BINARY, EDGES, np.float32, 2),
    "complex64": table(COMPLEX_UNARY, COMPLEX, np.complex64, 1),
    "int32": table(INT_UNARY, INTS, np.int32, 1) | table(INT_BINARY, INTS, np.int32, 2),
    "uint32": table(UINT_UNARY, [abs(i) for i in INTS], np.uint32, 1)
    | table(INT_BINARY, [abs(i) for i in INTS], np.uint32, 2),
}
path = Path(__file__).parents[1].joinpath("tests/golden/elementwise.json")
path.write_text(json.dumps(found) + "\n")
