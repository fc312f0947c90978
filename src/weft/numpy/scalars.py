"""The names of dtypes, as `jnp.float32`: NumPy's scalar types, which make arrays when called.

Here too are constants, and what of NumPy is no operation on arrays.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from weft import dtypes
from weft.numpy.creation import asarray


class ScalarType(type):
    """The type of `jnp.float32` and its kin: equal to NumPy's scalar type of the name.

    Called, it makes an array: `jnp.float32(3)`. Everything that takes a dtype takes it.
    """

    dtype: np.dtype

    def __call__(cls, x: Any = 0) -> Any:
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
    "bool_": "bool",
    "int_": "int64",
    "uint": "uint64",
    "float_": "float64",
    "complex_": "complex128",
    "single": "float32",
    "double": "float64",
    "csingle": "complex64",
    "cdouble": "complex128",
}


def scalar_type(name: str) -> ScalarType | None:
    """The scalar type of this name, if this ml_dtypes knows it."""
    kind = np.bool_ if name == "bool" else getattr(ml_dtypes, name, getattr(np, name, None))
    if kind is None:
        return None
    doc = f"The dtype {name}; called, it makes an array of it: jnp.{name}(1)."
    members = {"dtype": np.dtype(kind), "__doc__": doc, "__module__": "weft.numpy"}
    return ScalarType(name, (), members)


SCALAR_TYPES = {name: found for name in NAMES if (found := scalar_type(name)) is not None}
SCALAR_TYPES |= {alias: SCALAR_TYPES[name] for alias, name in ALIASES.items()}
globals().update(SCALAR_TYPES)

# Abstract types, for issubdtype; and what else has NumPy's name and is NumPy's.
character = np.character
complexfloating = np.complexfloating
flexible = np.flexible
floating = np.floating
generic = np.generic
inexact = np.inexact
integer = np.integer
number = np.number
object_ = np.object_
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
dtype = np.dtype
ComplexWarning = np.exceptions.ComplexWarning
can_cast = np.can_cast
array_repr = np.array_repr
array_str = np.array_str
get_printoptions = np.get_printoptions
set_printoptions = np.set_printoptions
printoptions = np.printoptions
iterable = np.iterable
save = np.save
savez = np.savez

finfo = dtypes.finfo
iinfo = dtypes.iinfo
isdtype = dtypes.isdtype
issubdtype = dtypes.issubdtype
promote_types = dtypes.promote_types
result_type = dtypes.result_type

e = float(np.e)
euler_gamma = float(np.euler_gamma)
inf = float("inf")
nan = float("nan")
newaxis = None
pi = float(np.pi)

__all__ = [
    *SCALAR_TYPES,
    "ComplexWarning",
    "array_repr",
    "array_str",
    "can_cast",
    "character",
    "complexfloating",
    "dtype",
    "e",
    "euler_gamma",
    "finfo",
    "flexible",
    "floating",
    "generic",
    "get_printoptions",
    "iinfo",
    "inexact",
    "inf",
    "integer",
    "isdtype",
    "issubdtype",
    "iterable",
    "nan",
    "newaxis",
    "number",
    "object_",
    "pi",
    "printoptions",
    "promote_types",
    "result_type",
    "save",
    "savez",
    "set_printoptions",
    "signedinteger",
    "unsignedinteger",
]
