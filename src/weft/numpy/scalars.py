"""The names of dtypes, as `jnp.float32`: NumPy's scalar types, which make arrays when called.

Constants are here too, and names of NumPy that are not operations on arrays.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from weft import dtypes
from weft.numpy.creation import asarray
from weft.util import alias, name_parameters
from weft.xla.typing import Array


class ScalarType(type):
    """The type of `jnp.float32` and the other dtypes: equal to NumPy's scalar type of the name.

    Called, it makes an array: `jnp.float32(3)`. Everything that takes a dtype takes it.
    """

    dtype: np.dtype

    def __call__(cls, x: Any = 0) -> Array:
        return asarray(x, dtype=cls.dtype)

    def __eq__(cls, other: Any) -> bool:
        return cls is other or cls.dtype.type == other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'weft.numpy.{cls.__name__}'>"


NAMES = [
    *("bool", "int1", "int2", "int4", "int8", "int16", "int32", "int64"),
    *("uint1", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64"),
    *("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3"),
    *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
    *("float8_e5m2fnuz", "float8_e8m0fnu", "bfloat16", "float16", "float32", "float64"),
    *("complex64", "complex128"),
]
ALIASES = {
    "bool_": "bool", "int_": "int64", "uint": "uint64", "float_": "float64",
    "complex_": "complex128", "single": "float32", "double": "float64", "csingle": "complex64",
    "cdouble": "complex128",
}  # fmt: skip


def make_scalar_type(name: str) -> ScalarType | None:
    """The scalar type of this name, if this ml_dtypes knows it."""
    kind = np.bool_ if name == "bool" else getattr(ml_dtypes, name, getattr(np, name, None))
    if kind is None:
        return None
    doc = describe_type(name, np.dtype(kind))
    members = {"dtype": np.dtype(kind), "__doc__": doc, "__module__": "weft.numpy"}
    return ScalarType(name, (), members)


def describe_type(name: str, dtype: np.dtype) -> str:
    """Return the documentation of a scalar type, with the range of its numbers."""
    bits = int("".join(c for c in name.partition("_")[0] if c.isdigit()) or 1)
    example, limits = f">>> jnp.{name}(0).dtype == jnp.{name}\nTrue", ""
    if name == "bool":
        numbers = "the truth values False and True, one byte each"
    elif name.startswith("int"):
        numbers = f"integers of {bits} bits, from {-(2 ** (bits - 1))} to {2 ** (bits - 1) - 1}"
    elif name.startswith("uint"):
        numbers = f"integers of {bits} bits, from 0 to {2**bits - 1}"
    elif name.startswith("complex"):
        numbers = f"complex numbers of two floats of {bits // 2} bits"
    else:
        info = ml_dtypes.finfo(dtype)
        numbers = f"floats of {info.bits} bits, {info.nmant} of them for the fraction"
        largest = f"The largest number is {float(info.max):.6g}"
        limits = f"{largest}, and the one after 1 is 1 + {float(info.eps):.3g}.\n"
    remark = f"{limits}It is accepted wherever a dtype is, and equals NumPy's type of that name.\n"
    if bits == 64 and name != "complex64" or bits == 128:
        smaller = name.replace(str(bits), str(bits // 2))
        remark += (
            f"Arrays have it under `enable_x64`. Without that option they have {smaller}, with"
        )
        remark += "\na warning.\n"
        example = f">>> with weft.enable_x64(True):\n...     print(jnp.{name}(0).dtype)\n{name}"
    elif name.startswith("float6"):
        remark += "XLA has no arrays of it, so it is for NumPy's arrays only.\n"
        example = f">>> np.ones(1, jnp.{name}).itemsize\n1"
    return (
        f"The dtype of {numbers}.\n\n{remark}\nArgs:\n"
        "  x: a number, or an array or nested lists of numbers. 0 by default. A call converts it\n"
        f"    to an array of the dtype.\n\n{example}\n"
    )


SCALAR_TYPES = {name: found for name in NAMES if (found := make_scalar_type(name)) is not None}
SCALAR_TYPES |= {alias: SCALAR_TYPES[name] for alias, name in ALIASES.items()}
globals().update(SCALAR_TYPES)

# NumPy's own types, unchanged: those for issubdtype, and `dtype`.
FROM_NUMPY = """
character complexfloating dtype flexible floating generic inexact integer number object_
signedinteger unsignedinteger
""".split()  # noqa: SIM905
globals().update({name: getattr(np, name) for name in FROM_NUMPY})
# NumPy's own functions, unchanged.
array_repr = np.array_repr
array_str = np.array_str
can_cast = np.can_cast
get_printoptions = np.get_printoptions
iterable = np.iterable
printoptions = np.printoptions
set_printoptions = np.set_printoptions
ComplexWarning = np.exceptions.ComplexWarning

FROM_DTYPES = ("finfo", "iinfo", "isdtype", "promote_types", "result_type")
globals().update({name: getattr(dtypes, name) for name in FROM_DTYPES})
issubdtype = name_parameters(alias(dtypes.issubdtype, "issubdtype"), ("arg1", "arg2"))

CONSTANTS = {name: float(getattr(np, name)) for name in ("e", "euler_gamma", "inf", "nan", "pi")}
globals().update(CONSTANTS)
newaxis = None

__all__ = [
    *SCALAR_TYPES, *FROM_NUMPY, *FROM_DTYPES, *CONSTANTS, "ComplexWarning", "array_repr",
    "array_str", "can_cast", "get_printoptions", "issubdtype", "iterable", "newaxis",
    "printoptions", "set_printoptions",
]  # fmt: skip
