"""Arrays to print, for tools/make_reprs.py under JAX and for test_array.py under weft."""

import ml_dtypes
import numpy as np

DTYPES = [
    *("bool", "int2", "int4", "int8", "int16", "int32", "uint2", "uint4", "uint8", "uint16"),
    *("uint32", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn"),
    *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"),
    *("bfloat16", "float16", "float32", "complex64"),
]

OPTIONS = (
    {},
    {"precision": 2},
    {"linewidth": 40},
    {"linewidth": 120},
    {"threshold": 5},
    {"edgeitems": 1, "threshold": 4},
    {"suppress": True},
    {"sign": "+"},
    {"floatmode": "fixed"},
    {"nanstr": "NA"},
)


def numpy_dtype(name):
    """The dtype of this name, which may be one of ml_dtypes's."""
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def arrays(put, full):
    """Arrays by name; `put` makes one of a value, `full` one of a shape and a Python number."""
    out = {
        "scalar": put(np.float32(1.5)),
        "weak scalar": put(1.5),
        "int": put(3),
        "bool": put(True),
        "complex": put(1 + 2j),
        "matrix": put(np.arange(6.0).reshape(2, 3)),
        "cube": put(np.zeros((2, 2, 2))),
        "long": put(np.arange(2000)),
        "long floats": put(np.linspace(0, 1, 2000, dtype="f")),
        "large": put(np.arange(2_000_000).reshape(1000, 2000)),
        "empty": put(np.zeros(0)),
        "empty rows": put(np.zeros((0, 3))),
        "empty columns": put(np.zeros((3, 0), bool)),
        "special": put(np.array([np.nan, np.inf, -np.inf, -0.0], "f")),
        "spread": put(np.array([1e-10, 1, 1e10], "f")),
        "complexes": put(np.arange(30) * (1 + 0.5j)),
        "floats": put(np.linspace(0, 1, 37, dtype="f")),
        "wide": put(np.linspace(0, 1e6, 60, dtype="f").reshape(3, 20)),
        "negative": put(np.array([-1, 10, -100])),
        "weak matrix": full((2, 2), 2 + 1j),
    }
    for n in range(1, 30):  # where lines break
        out[f"floats {n}"] = put(np.arange(n, dtype="f"))
        out[f"ints {n}"] = put(np.arange(n) * 7)
        out[f"weak {n}"] = full((n,), 2.5)
        out[f"rows {n}"] = put(np.full((2, n), 7))
    for name in DTYPES:
        out[name] = put(np.array([0.5, 1, 2]).astype(numpy_dtype(name)))
        out[name + " scalar"] = put(np.array(1).astype(numpy_dtype(name)))
    return out


def texts(made):
    """Return the printed text of each array, by name and options."""
    out = {}
    for options in OPTIONS:
        with np.printoptions(**options):
            for name, x in made.items():
                if not options or name in ("scalar", "matrix", "special", "floats", "complexes"):
                    out[f"{name} {options}"] = [repr(x), str(x), f"{x}"]
    return out
