"""The dtypes of arrays: their names and kinds, and how they promote.

Everything takes and gives `np.dtype`; functions for users also take whatever names a dtype. The
promotion lattice is data (`_EDGES`); weak types are in it as `i*`, `f*`, `c*`. Arrays, avals and
the conversion of values are elsewhere, and so are random keys: here are only their markers.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Protocol, TypeAlias

import ml_dtypes
import numpy as np
from ml_dtypes import bfloat16, finfo, iinfo

from weft.errors import DtypeError, TypePromotionError
from weft.options import config
from weft.util import find_close, list_public, warn_user

__all__ = [
    "bfloat16", "canonicalize", "canonicalize_dtype", "check_user_dtype", "complex_dtype",
    "default_complex", "default_float", "default_int", "dtype_and_weak", "extended", "finfo",
    "float0", "from_short_name", "hlo_name", "iinfo", "inexact_dtype", "is_bool", "is_complex",
    "is_extended", "is_float", "is_inexact", "is_integer", "is_python_scalar", "is_signed",
    "is_unsigned", "isdtype", "issubdtype", "itemsize_bits", "least_upper_bound", "prng_key",
    "promote", "promote_types", "python_scalar_dtype", "real_dtype", "result_type",
    "scalar_type_of", "short_name", "tangent_dtype", "valid_dtype",
]  # fmt: skip
__dir__ = list_public(__name__)


class SupportsDType(Protocol):
    """An object that has a `dtype`."""

    @property
    def dtype(self) -> np.dtype: ...


# What functions take as a dtype.
DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType


class extended(np.generic):
    """The abstract scalar type of dtypes unknown to NumPy, such as the dtype of random keys.

    An extended dtype is a hashable object with a `name`. Its `type` is a subclass of this class. An
    element of it is made of `words` elements of the dtype `words_dtype`.

    >>> from weft import dtypes
    >>> dtypes.issubdtype(random.key(0).dtype, dtypes.extended)
    True
    """


class prng_key(extended):
    """The abstract scalar type of random keys.

    >>> from weft import dtypes
    >>> dtypes.issubdtype(random.key(0).dtype, dtypes.prng_key)
    True
    >>> dtypes.issubdtype(random.PRNGKey(0).dtype, dtypes.prng_key)
    False
    """


# --------------------------------------------------------------------------------------------
# The dtypes, each once; the rest of the tables follows from their names.

Typed = tuple[np.dtype, bool]  # a dtype, and whether it is weak

_SIGNED = "int1 int2 int4 int8 int16 int32 int64"
_UNSIGNED = "uint1 uint2 uint4 uint8 uint16 uint32 uint64"
_SMALL_FLOATS = (
    "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz "
    "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
)
_FLOATS = _SMALL_FLOATS + " bfloat16 float16 float32 float64"
_COMPLEXES = "complex64 complex128"


def _dtypes(names: str) -> tuple[np.dtype, ...]:
    found = (getattr(ml_dtypes, name, getattr(np, name, None)) for name in names.split())
    return tuple(np.dtype(t) for t in found if t is not None)  # older ml_dtypes have no int1


def _short(name: str) -> str:
    for long, short in (("uint", "u"), ("int", "i"), ("float", "f"), ("complex", "c")):
        name = name.replace(long, short)
    return name


def _hlo(name: str) -> str:
    """float8_e4m3fn -> f8E4M3FN, complex64 -> complex<f32>, uint8 -> ui8, bool -> i1.

    StableHLO has no integers of one bit: their name is one that `compile_now` refuses.
    """
    fixed = {"bool": "i1", "int1": "si1", "complex64": "complex<f32>", "complex128": "complex<f64>"}
    if name in fixed:
        return fixed[name]
    if name.startswith("uint"):
        return "ui" + name.removeprefix("uint")
    stem, _, layout = _short(name).partition("_")
    return stem + layout.upper()


float0 = np.dtype([("float0", np.void, 0)])
_F32, _F64, _C64, _C128 = _dtypes("float32 float64 complex64 complex128")

_KINDS = {  # by the abstract scalar type that covers them: the Python type, and the dtypes
    np.bool_: (bool, "bool"),
    np.signedinteger: (int, _SIGNED),
    np.unsignedinteger: (int, _UNSIGNED),
    np.floating: (float, _FLOATS),
    np.complexfloating: (complex, _COMPLEXES),
}
_KIND_OF = {dtype: kind for kind, (_, names) in _KINDS.items() for dtype in _dtypes(names)}
_PYTHON_TYPE = {dtype: _KINDS[kind][0] for dtype, kind in _KIND_OF.items()}
NUMBERS = (bool, int, float, complex)  # the types of Python numbers, in the order of promotion
_PYTHON_DTYPE: dict[Any, np.dtype] = {t: np.dtype(t) for t in NUMBERS}
_PYTHON_PAIR: dict[Any, Typed] = {t: (dtype, t is not bool) for t, dtype in _PYTHON_DTYPE.items()}

_SHORT = {dtype: _short(dtype.name) for dtype in _KIND_OF} | {float0: "float0"}
_LONG = {short: dtype for dtype, short in _SHORT.items()}
# float0 has one value, so any bit will do: XLA has no type of size zero.
_HLO = {dtype: _hlo(dtype.name) for dtype in _KIND_OF} | {float0: "i1"}
_BITS = {d: int("".join(filter(str.isdigit, d.name.partition("_")[0])) or 8) for d in _KIND_OF}
PACKED = frozenset(dtype for dtype, bits in _BITS.items() if bits < 8)  # XLA packs the elements
_SHORT_FLOATS = frozenset(
    d for d, bits in _BITS.items() if bits < 32 and _KIND_OF[d] is np.floating
)
_REAL = {_C64: _F32, _C128: _F64}
_INEXACT = {
    dtype: dtype if python_type in (float, complex) else _F64 if _BITS[dtype] == 64 else _F32
    for dtype, python_type in _PYTHON_TYPE.items()
}

_TO_32 = dict(
    zip(
        _dtypes("int64 uint64 float64 complex128"),
        _dtypes("int32 uint32 float32 complex64"),
        strict=True,
    )
)
WIDE = frozenset(_TO_32)  # dtypes that need enable_x64
_SPELLINGS: dict[Any, np.dtype] = {
    **{spelling: dtype for dtype in _KIND_OF for spelling in (dtype, dtype.type, dtype.name)},
    **_PYTHON_DTYPE,
    float0: float0,
}
_CANONICAL: dict[bool, dict[Any, np.dtype]] = {  # by enable_x64
    True: _SPELLINGS,
    False: {spelling: _TO_32.get(dtype, dtype) for spelling, dtype in _SPELLINGS.items()},
}

_ABSTRACT = frozenset(
    [np.generic, np.number, np.integer, np.inexact, np.flexible, np.character, *_KINDS]
) - {np.bool_}
# The types of ml_dtypes are not subclasses of NumPy's abstract ones, so their place is kept here.
_ABOVE = {d.type: kind for d, kind in _KIND_OF.items() if not issubclass(d.type, kind)}


# --------------------------------------------------------------------------------------------
# Names.


def short_name(dtype: Any) -> str:
    """Return the name of a dtype in jaxprs and messages.

    Args:
      dtype: a dtype or a scalar type.

    Returns:
      A string, such as "f32", "i32", "bool", "bf16", "f8_e4m3fn" or "key<fry>".

    >>> from weft import dtypes
    >>> dtypes.short_name(np.dtype("float32"))
    'f32'
    """
    return _SHORT.get(dtype) or dtype.name


def from_short_name(name: str) -> np.dtype:
    """Return the dtype of a short name.

    Args:
      name: a name as `short_name` returns it, such as "f32".

    Returns:
      A NumPy dtype.

    >>> from weft import dtypes
    >>> dtypes.from_short_name("i32")
    dtype('int32')
    """
    try:
        return _LONG[name]
    except KeyError:
        raise DtypeError(
            f"from_short_name: must be one of {', '.join(_LONG)}; got {name!r}."
        ) from None


def hlo_name(dtype: np.dtype) -> str:
    """Return the name of a dtype in StableHLO.

    Args:
      dtype: a NumPy dtype.

    Returns:
      A string, such as "f32", "i1", "ui8", "complex<f32>" or "f8E4M3FN".

    >>> from weft import dtypes
    >>> dtypes.hlo_name(np.dtype("uint8"))
    'ui8'
    """
    return _HLO[dtype]


# --------------------------------------------------------------------------------------------
# From whatever names a dtype to the dtype in force.


def find_dtype(dtype: Any, where: str) -> Any:
    """Return the dtype that `dtype` names, not canonical: a NumPy dtype or an extended one."""
    for candidate in (dtype, getattr(dtype, "dtype", None)):
        if isinstance(candidate, np.dtype) or is_extended(candidate):
            return candidate
    if not (isinstance(dtype, type) and dtype in _ABSTRACT):
        try:
            return np.dtype(dtype)
        except (TypeError, ValueError):
            pass
    known = [name for name in map(str, _KIND_OF) if re.fullmatch("[a-z]+(8|16|32|64|128)", name)]
    close = find_close(dtype, [*known, "bool"]) if isinstance(dtype, str) else ""
    hint = f" Hint: {close!r}." if close else ""
    raise DtypeError(f"{where}: needs a dtype, or a value that has one; got {dtype!r}.{hint}")


def canonicalize(dtype: Any, where: str = "dtype") -> np.dtype:
    """Return a dtype as arrays have it: 64-bit types become 32-bit unless enable_x64 is on.

    Args:
      dtype: a dtype, a scalar type of Python or NumPy, a name, or an object with a `dtype`.
      where: the name of the operation, for errors.

    Returns:
      A NumPy dtype.

    Raises:
      DtypeError: no array can hold it.

    >>> from weft import dtypes
    >>> dtypes.canonicalize("int64"), dtypes.canonicalize(float)
    (dtype('int32'), dtype('float32'))
    """
    table = _CANONICAL[config.enable_x64]
    try:
        return table[dtype]
    except (KeyError, TypeError):  # not a usual spelling, or not hashable
        pass
    return _look_up(table, dtype, where)


def _look_up(table: dict[Any, np.dtype], dtype: Any, where: str) -> np.dtype:
    refuse_array(dtype, where)
    named = find_dtype(dtype, where)
    if named not in table and not is_extended(named):
        raise DtypeError(
            f"{where}: must be a bool, integer, float or complex dtype in native byte order; "
            f"got {named}."
        )
    return table.get(named, named)


def refuse_array(dtype: Any, where: str) -> None:
    """Raise an error if an array stands where a dtype is asked for.

    A ShapeDtypeStruct is not an array, since it has no elements to index.
    """
    is_array = hasattr(dtype, "__array__") and hasattr(dtype, "__getitem__")
    if is_array and not isinstance(dtype, type | np.generic):
        got = getattr(dtype, "aval", type(dtype).__name__)
        raise DtypeError(f"{where}: dtype must be a dtype, not an array; got {got}. Hint: x.dtype")


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> np.dtype:
    """Return a dtype as arrays have it: 64-bit types become 32-bit unless enable_x64 is on.

    Args:
      dtype: a dtype, a scalar type or a name. A NumPy dtype that no array can hold, such as a dtype
        of strings, is returned unchanged.
      allow_extended_dtype: if True, dtypes such as those of random keys are allowed. The default is
        False.

    Returns:
      A NumPy dtype.

    >>> canonicalize_dtype("int64")
    dtype('int32')
    """
    named = find_dtype(dtype, "canonicalize_dtype")
    if is_extended(named) and not allow_extended_dtype:
        raise DtypeError(
            f"canonicalize_dtype: must be a NumPy dtype; got {named}. "
            "Hint: canonicalize_dtype(dtype, allow_extended_dtype=True)"
        )
    return _CANONICAL[config.enable_x64].get(named, named)


def check_user_dtype(dtype: Any, where: str) -> np.dtype:
    """Return a dtype as arrays have it, with a warning if it is narrower than the one given.

    Args:
      dtype: a dtype, a scalar type or a name.
      where: the name of the operation, for errors and warnings.

    Returns:
      A NumPy dtype.

    >>> from weft import dtypes
    >>> dtypes.check_user_dtype("float16", "zeros")
    dtype('float16')
    """
    refuse_array(dtype, where)
    try:
        canonical = canonicalize(dtype, where)
    except DtypeError as error:
        raise error.with_traceback(None) from None
    if config.enable_x64 or dtype is None or isinstance(dtype, type) and dtype in _PYTHON_DTYPE:
        return canonical
    asked = find_dtype(dtype, where)
    if asked != canonical:
        warn_user(
            f"{where}: dtype {asked} needs enable_x64; used {canonical}. "
            'Hint: weft.config.update("enable_x64", True), or ask for '
            f'"{canonical}".'
        )
    return canonical


def default_int() -> np.dtype:
    """Return the dtype of a Python int.

    Returns:
      int32, or int64 with enable_x64.

    >>> from weft import dtypes
    >>> dtypes.default_int()
    dtype('int32')
    """
    return _CANONICAL[config.enable_x64][int]


def wrap_int(x: int, dtype: np.dtype, op: str) -> int:
    """Return a Python integer modulo the range of an integer dtype, as arrays are converted.

    Raises OverflowError if neither that dtype nor the default integer dtype holds it.
    """
    for holder in (dtype, default_int()):
        limits = iinfo(holder)
        if limits.min <= x <= limits.max:
            span = 1 << iinfo(dtype).bits
            low = int(iinfo(dtype).min)
            return (x - low) % span + low
    raise OverflowError(f"{op}: an integer must fit {dtype}; got {x}.{hint_wide(x)}")


def hint_wide(*numbers: Any) -> str:
    """Return the hint for integers that only the 64-bit dtypes, which are off, can hold."""
    if config.enable_x64 or not all(-(2**63) <= x < 2**63 for x in numbers):
        return ""
    return ' Hint: weft.config.update("enable_x64", True), or a float.'


def default_float() -> np.dtype:
    """Return the dtype of a Python float.

    Returns:
      float32, or float64 with enable_x64.

    >>> from weft import dtypes
    >>> dtypes.default_float()
    dtype('float32')
    """
    return _CANONICAL[config.enable_x64][float]


def default_complex() -> np.dtype:
    """Return the dtype of a Python complex number.

    Returns:
      complex64, or complex128 with enable_x64.

    >>> from weft import dtypes
    >>> dtypes.default_complex()
    dtype('complex64')
    """
    return _CANONICAL[config.enable_x64][complex]


def python_scalar_dtype(x: Any) -> np.dtype:
    """Return the dtype of a Python number, or of a Python type of numbers.

    Args:
      x: a bool, an int, a float or a complex number, or one of these types.

    Returns:
      A NumPy dtype, which depends on enable_x64.

    >>> from weft import dtypes
    >>> dtypes.python_scalar_dtype(1.0)
    dtype('float32')
    """
    return canonicalize(x if isinstance(x, type) else dtype_and_weak(x)[0])


def is_python_scalar(x: Any) -> bool:
    """Return True for a Python bool, int, float or complex. NumPy's scalars count as arrays.

    Args:
      x: any value.

    Returns:
      A bool.

    >>> from weft import dtypes
    >>> dtypes.is_python_scalar(1.0), dtypes.is_python_scalar(np.float32(1.0))
    (True, False)
    """
    return type(x) in _PYTHON_DTYPE or (
        isinstance(x, int | float | complex) and not isinstance(x, np.generic)
    )


def scalar_type_of(x: Any) -> type:
    """Return the Python type of the elements of a value or a dtype.

    Args:
      x: an array, a number, a dtype or a scalar type.

    Returns:
      bool, int, float or complex.

    >>> scalar_type_of(np.ones(3, np.float32))
    <class 'float'>
    """
    dtype = dtype_and_weak(x, "scalar_type_of")[0]
    python_type = _PYTHON_TYPE.get(canonicalize(dtype, "scalar_type_of"))
    if python_type is None:
        raise DtypeError(
            f"scalar_type_of: needs a numeric value or dtype; got {short_name(dtype)}."
        )
    return python_type


# --------------------------------------------------------------------------------------------
# Kinds.


def is_bool(dtype: Any) -> bool:
    """Return True if a dtype is bool.

    Args:
      dtype: a dtype, a scalar type or a name.

    Returns:
      A bool.

    >>> from weft import dtypes
    >>> dtypes.is_bool(np.dtype("bool")), dtypes.is_bool(np.dtype("int8"))
    (True, False)
    """
    return _KIND_OF.get(dtype) is np.bool_


def is_signed(dtype: Any) -> bool:
    """Return True if a dtype is a signed integer type.

    Args:
      dtype: a dtype, a scalar type or a name.

    Returns:
      A bool.

    >>> from weft import dtypes
    >>> dtypes.is_signed(np.dtype("int8")), dtypes.is_signed(np.dtype("uint8"))
    (True, False)
    """
    return _KIND_OF.get(dtype) is np.signedinteger


def is_unsigned(dtype: Any) -> bool:
    """Return True if a dtype is an unsigned integer type.

    Args:
      dtype: a dtype, a scalar type or a name.

    Returns:
      A bool.

    >>> from weft import dtypes
    >>> dtypes.is_unsigned(np.dtype("uint8")), dtypes.is_unsigned(np.dtype("int8"))
    (True, False)
    """
    return _KIND_OF.get(dtype) is np.unsignedinteger


def is_integer(dtype: Any) -> bool:
    """Return True if a dtype is a signed or unsigned integer type. bool is not one.

    Args:
      dtype: a dtype, a scalar type or a name.

    Returns:
      A bool.

    >>> from weft import dtypes
    >>> dtypes.is_integer(np.dtype("uint8")), dtypes.is_integer(np.dtype("bool"))
    (True, False)
    """
    kind = _KIND_OF.get(dtype)
    return kind is np.signedinteger or kind is np.unsignedinteger


def is_float(dtype: Any) -> bool:
    """Return True if a dtype is a real floating-point type.

    Args:
      dtype: a dtype, a scalar type or a name.

    Returns:
      A bool.

    >>> from weft import dtypes
    >>> dtypes.is_float(np.dtype("float32")), dtypes.is_float(np.dtype("complex64"))
    (True, False)
    """
    return _KIND_OF.get(dtype) is np.floating


def is_complex(dtype: Any) -> bool:
    """Return True if a dtype is complex.

    Args:
      dtype: a dtype, a scalar type or a name.

    Returns:
      A bool.

    >>> from weft import dtypes
    >>> dtypes.is_complex(np.dtype("complex64")), dtypes.is_complex(np.dtype("float32"))
    (True, False)
    """
    return _KIND_OF.get(dtype) is np.complexfloating


def is_inexact(dtype: Any) -> bool:
    """Return True if a dtype is a floating-point or complex type.

    Args:
      dtype: a dtype, a scalar type or a name.

    Returns:
      A bool.

    >>> from weft import dtypes
    >>> dtypes.is_inexact(np.dtype("complex64")), dtypes.is_inexact(np.dtype("int8"))
    (True, False)
    """
    kind = _KIND_OF.get(dtype)
    return kind is np.floating or kind is np.complexfloating


def is_extended(dtype: Any) -> bool:
    """Return True if a dtype is unknown to NumPy, such as the dtype of random keys.

    Args:
      dtype: a dtype, or a scalar type.

    Returns:
      A bool.

    >>> from weft import dtypes
    >>> dtypes.is_extended(random.key(0).dtype), dtypes.is_extended(np.dtype("int8"))
    (True, False)
    """
    if isinstance(dtype, np.dtype):
        return False
    scalar = dtype if isinstance(dtype, type) else getattr(dtype, "type", None)
    return isinstance(scalar, type) and issubclass(scalar, extended)


def valid_dtype(dtype: Any) -> bool:
    """Return True if arrays can hold a dtype, whether or not enable_x64 is on.

    Args:
      dtype: a NumPy dtype.

    Returns:
      A bool.

    >>> from weft import dtypes
    >>> dtypes.valid_dtype(np.dtype("float64")), dtypes.valid_dtype(np.dtype("U3"))
    (True, False)
    """
    return dtype in _KIND_OF or is_extended(dtype)


def real_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the real part of a dtype.

    Args:
      dtype: a NumPy dtype.

    Returns:
      float32 for complex64, float64 for complex128, and other dtypes unchanged.

    >>> from weft import dtypes
    >>> dtypes.real_dtype(np.dtype("complex64"))
    dtype('float32')
    """
    return _REAL.get(dtype, dtype)


def complex_dtype(dtype: np.dtype, where: str = "complex_dtype") -> np.dtype:
    """Return the complex dtype that holds the numbers of a dtype.

    Args:
      dtype: a NumPy dtype.
      where: the name of the function in errors.

    Returns:
      complex128 for 64-bit numbers, and complex64 for others.

    >>> from weft import dtypes
    >>> dtypes.complex_dtype(np.dtype("float32"))
    dtype('complex64')
    """
    return _C128 if real_dtype(inexact_dtype(dtype, where)) == _F64 else _C64


def inexact_dtype(dtype: np.dtype, where: str = "inexact_dtype") -> np.dtype:
    """Return the dtype in which functions such as sin compute for operands of a dtype.

    Args:
      dtype: a NumPy dtype.
      where: the name of the operation, for errors.

    Returns:
      The default float dtype for integers and bools, and other dtypes unchanged.

    >>> from weft import dtypes
    >>> dtypes.inexact_dtype(np.dtype("int32"))
    dtype('float32')
    """
    if dtype not in _INEXACT:
        raise DtypeError(f"{where}: needs a numeric dtype; got {short_name(dtype)}.")
    return _INEXACT[dtype]


def tangent_dtype(dtype: Any) -> np.dtype:
    """Return the dtype of the tangents of a dtype.

    Args:
      dtype: a dtype.

    Returns:
      The dtype itself if it is a float or complex dtype, and float0 for others, which do not vary.

    >>> from weft import dtypes
    >>> dtypes.tangent_dtype(np.dtype("float32"))
    dtype('float32')
    """
    return dtype if is_inexact(dtype) else float0


# Every number below MAX_SMALL has a place in these dtypes, so that NumPy warns of none.
MAX_SMALL = 1 << 30
_WITH_SMALL = frozenset(_dtypes("int32 int64 float32 float64 complex64 complex128"))


def cast_on_host(x: Any, dtype: np.dtype) -> np.ndarray:
    """Return numbers, or a host array, as an array of `dtype`.

    A float that `dtype` cannot hold becomes infinite, as in a compiled program. NumPy's warning of
    it would be raised by whatever happens to convert on the host.
    """
    kind = type(x)
    if kind is np.ndarray and x.dtype == dtype:
        return x
    if (kind is float or kind is int) and -MAX_SMALL < x < MAX_SMALL and dtype in _WITH_SMALL:
        return np.asarray(x, dtype)  # suppressing warnings is 5 times as fast as `put`
    return _cast_in_silence(x, dtype)


@np.errstate(over="ignore", invalid="ignore")  # a decorator takes half the time of a `with` block
def _cast_in_silence(x: Any, dtype: np.dtype) -> np.ndarray:
    return np.asarray(x, dtype)


def itemsize_bits(dtype: Any) -> int:
    """Return the number of bits of one element in a packed array.

    Args:
      dtype: a dtype, a scalar type or a name.

    Returns:
      An int: 4 for int4, 8 for bool, 64 for complex64.

    >>> from weft import dtypes
    >>> dtypes.itemsize_bits("int4"), dtypes.itemsize_bits("complex64")
    (4, 64)
    """
    named = find_dtype(dtype, "itemsize_bits")
    if named not in _BITS:
        raise DtypeError(f"itemsize_bits: needs a numeric dtype; got {short_name(named)}.")
    return _BITS[named]


def whole_byte_dtype(dtype: Any) -> Any:
    """Return the dtype of whole bytes that kernels take for elements of `dtype`.

    Elements with fewer bits, which XLA packs, are converted without rounding. A bool takes a byte.
    """
    if dtype not in PACKED:
        return dtype
    return _F32 if is_float(dtype) else np.dtype(np.int8 if is_signed(dtype) else np.uint8)


def is_of_two_bits(dtype: Any) -> bool:
    """Return True for integers of two bits, or one: XLA:CPU takes their negative constants wrong.

    A constant -1 is then a byte of ones: it differs from an element that is -1, and it overwrites
    the elements beside it. Comparisons and operations on bytes are right.
    """
    return is_integer(dtype) and itemsize_bits(dtype) < 4


def is_short_float(dtype: Any) -> bool:
    """Return True for floats of 16 bits and fewer."""
    return dtype in _SHORT_FLOATS


def _scalar_type(dtype: Any) -> type:
    if isinstance(dtype, type) and (dtype in _ABSTRACT or is_extended(dtype)):
        return dtype
    return find_dtype(dtype, "issubdtype").type


def issubdtype(a: DTypeLike, b: DTypeLike) -> bool:
    """Return True if a dtype or scalar type is the same as another, or a kind of it.

    It works as `np.issubdtype`, except that the types of ml_dtypes have their place among NumPy's:
    bfloat16 is a `np.floating`, and int4 a `np.signedinteger`. The dtypes of keys are `prng_key`.

    Args:
      a, arg1: a dtype, a scalar type or a name.
      b, arg2: a scalar type, such as `jnp.floating`, a dtype or a name.

    Returns:
      A bool.

    >>> issubdtype(bfloat16, np.floating)
    True
    """
    if is_extended(a) and is_extended(b) and not isinstance(b, type):
        return a == b
    lower, upper = _scalar_type(a), _scalar_type(b)
    return lower is upper or issubclass(_ABOVE.get(lower, lower), upper)


_ARRAY_API_KINDS = {
    "bool": np.bool_, "signed integer": np.signedinteger, "unsigned integer": np.unsignedinteger,
    "integral": np.integer, "real floating": np.floating, "complex floating": np.complexfloating,
    "numeric": np.number,
}  # fmt: skip


def isdtype(dtype: DTypeLike, kind: DTypeLike | str | tuple[Any, ...]) -> bool:
    """Return True if a dtype is of a kind, by the rules of the array API.

    Args:
      dtype: a dtype, a scalar type or a name.
      kind: a dtype, the name of a kind, or a tuple of alternatives. The names are
        'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex
        floating' and 'numeric'.

    Returns:
      A bool.

    >>> isdtype(np.int8, ("bool", "integral"))
    True
    """
    dtype = find_dtype(dtype, "isdtype")
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _ARRAY_API_KINDS:
        return issubdtype(dtype, _ARRAY_API_KINDS[kind])
    try:
        return bool(dtype == find_dtype(kind, "isdtype"))
    except DtypeError:
        names = ", ".join(map(repr, _ARRAY_API_KINDS))
        raise DtypeError(
            f"isdtype: kind must be a dtype, one of {names}, or a tuple of these; got {kind!r}."
        ) from None


# --------------------------------------------------------------------------------------------
# Promotion. https://docs.jax.dev/en/latest/type_promotion.html draws the lattice.

_SHORT_SMALL_FLOATS = _short(_SMALL_FLOATS)
_EDGES = {
    "standard": {
        "bool": "i*", "i*": "i1 i2 i4 i8 u1 u2 u4 u8", "i8": "i16", "i16": "i32", "i32": "i64",
        "u8": "u16 i16", "u16": "u32 i32", "u32": "u64 i64", "i64": "f*", "u64": "f*",
        "f*": f"c* bf16 f16 {_SHORT_SMALL_FLOATS}", "bf16": "f32", "f16": "f32", "f32": "f64 c64",
        "f64": "c128", "c*": "c64", "c64": "c128",
    },
    "strict": {  # only what a Python scalar may join
        "i*": f"f* {_short(_SIGNED)} {_short(_UNSIGNED)}",
        "f*": f"c* {_short(_FLOATS)}",
        "c*": _short(_COMPLEXES),
    },
}  # fmt: skip
_WEAK_NODE = {int: "i*", float: "f*", complex: "c*"}
_WEAK_DTYPE = {node: _PYTHON_DTYPE[t] for t, node in _WEAK_NODE.items()}


@functools.cache
def _upper_bounds(mode: str) -> dict[str, frozenset[str]]:
    """Every node's ancestors in the lattice, itself among them."""
    edges = _EDGES[mode]

    @functools.cache
    def above(node: str) -> frozenset[str]:
        return frozenset([node]).union(*map(above, edges.get(node, "").split()))

    return {node: above(node) for node in (*_LONG, *_WEAK_DTYPE)}


def least_upper_bound(mode: str, nodes: frozenset[str]) -> str | None:
    """Return the smallest type to which all of some types promote.

    Args:
      mode: "standard" or "strict", the promotion rules.
      nodes: a frozenset of short names of dtypes, and `i*`, `f*`, `c*` for weak types.

    Returns:
      A short name; None if no type is suitable.

    >>> from weft import dtypes
    >>> dtypes.least_upper_bound("standard", frozenset(["i8", "f16"]))
    'f16'
    """
    bounds = _upper_bounds(mode)
    common = frozenset.intersection(*(bounds[node] for node in nodes))
    return next((node for node in common if bounds[node] == common), None)


# The hottest question of the NumPy layer, so answered once; its keys are few and hold only dtypes.
_PROMOTED: dict[tuple[bool, str, tuple[Typed, ...]], Typed] = {}


def promote(operands: tuple[Typed, ...], where: str = "promote") -> Typed:
    """Return the dtype to which operands are converted, and True if it is weak.

    Args:
      operands: a tuple of pairs (dtype, weak).
      where: the name of the operation, for errors.

    Returns:
      A pair (dtype, weak).

    Raises:
      TypePromotionError: the operands have no common dtype.

    >>> from weft import dtypes
    >>> dtypes.promote(((np.dtype("float16"), False), (np.dtype("float32"), True)))
    (dtype('float16'), False)
    """
    key = (config.enable_x64, config.numpy_dtype_promotion, operands)
    result = _PROMOTED.get(key)
    if result is None:
        unique = tuple(dict.fromkeys(operands)) if len(operands) > 2 else operands
        if len(unique) < len(operands):  # a long list has many orders and few types
            return promote(unique, where)
        result = _PROMOTED[key] = _promote(*key, where)
    return result


def _promote(x64: bool, mode: str, operands: tuple[Typed, ...], where: str) -> Typed:
    table = _CANONICAL[x64]
    typed = tuple((_look_up(table, dtype, where), weak) for dtype, weak in operands)
    first = typed[0][0]
    if first not in _KIND_OF and all(dtype == first for dtype, _ in typed):
        return first, False  # float0 and keys promote only with themselves
    if not all(dtype in _KIND_OF for dtype, _ in typed):
        raise _promotion_error(x64, mode, typed, where)
    all_weak = all(weak and not is_bool(dtype) for dtype, weak in typed)
    # Among themselves weak operands promote as if strong: their dtypes then still say something.
    as_strong = all_weak and (mode == "standard" or len(typed) == 1)
    nodes = [
        _WEAK_NODE.get(_PYTHON_TYPE[dtype], _SHORT[dtype])
        if weak and not as_strong
        else _SHORT[dtype]
        for dtype, weak in typed
    ]
    node = least_upper_bound(mode, frozenset(nodes))
    if node is None:
        raise _promotion_error(x64, mode, typed, where)
    if node in _WEAK_DTYPE:
        return table[_WEAK_DTYPE[node]], True
    return table[_LONG[node]], all_weak


def _promotion_error(
    x64: bool, mode: str, typed: tuple[Typed, ...], where: str
) -> TypePromotionError:
    names = ", ".join("weak " * weak + short_name(dtype) for dtype, weak in typed)
    kinds = {_KIND_OF.get(dtype) for dtype, _ in typed}
    if any(dtype == float0 for dtype, _ in typed):
        return TypePromotionError(
            f"{where}: must not be given float0, the dtype of tangents of integers, with which "
            f"nothing computes; got {names}. Hint: jnp.zeros(x.shape) in its place."
        )
    if None in kinds:
        return TypePromotionError(
            f"{where}: random keys promote only with themselves; got {names}."
        )
    if mode == "strict":
        standard, _ = _promote(x64, "standard", typed, where)
        return TypePromotionError(
            f"{where}: dtypes must be equal under numpy_dtype_promotion='strict'; got {names}. "
            f'Hint: x.astype("{standard}"), or '
            'weft.config.update("numpy_dtype_promotion", "standard")'
        )
    if np.complexfloating in kinds:
        common = "complex64"
    else:
        common = "float32" if np.floating in kinds else "int32"
    return TypePromotionError(
        f"{where}: dtypes must have a common type, which narrow floats and integers have with no "
        f'others; got {names}. Hint: x.astype("{common}")'
    )


def dtype_and_weak(x: Any, where: str = "dtype") -> Typed:
    """Return the dtype of a value, and True if it is weak.

    Args:
      x: an array, a traced value, a Python number or a dtype.
      where: the name of the operation, for errors.

    Returns:
      A pair: the dtype, which may be a 64-bit one, and a bool.

    >>> from weft import dtypes
    >>> dtypes.dtype_and_weak(3.0)
    (dtype('float64'), True)
    """
    pair = _PYTHON_PAIR.get(type(x))
    if pair is not None:
        return pair
    aval = getattr(x, "aval", x)
    dtype: Any = getattr(aval, "dtype", None)
    if isinstance(dtype, np.dtype) or is_extended(dtype):
        return dtype, getattr(aval, "weak_type", False)
    if isinstance(x, np.dtype):
        return x, False
    if isinstance(x, type):
        return _PYTHON_PAIR.get(x) or (find_dtype(x, where), False)
    if is_python_scalar(x):  # a subclass, as an IntEnum
        base = next(t for t in type(x).__mro__ if t in _PYTHON_PAIR)
        return _PYTHON_PAIR[base]
    return find_dtype(x, where), False


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype to which arrays, scalars and dtypes promote.

    Python scalars, and the types int, float and complex, are weak: they take the dtype of the other
    operands, unless that is of a lower kind.

    Args:
      *args: arrays, numbers, dtypes, scalar types or names.
      return_weak_type_flag: if True, the result is a pair. The default is False.

    Returns:
      A NumPy dtype; or the pair of the dtype and a bool, which is True if the result is weak.

    Raises:
      TypePromotionError: the arguments have no common dtype.

    >>> result_type(np.int8(1), 2), result_type(np.int8(1), 2.0)
    (dtype('int8'), dtype('float32'))
    """
    if not args:
        raise DtypeError("result_type: needs at least one array or dtype; got none.")
    typed = []
    for arg in args:
        if isinstance(arg, str | np.dtype):
            arg = check_user_dtype(arg, "result_type")
        typed.append(dtype_and_weak(arg, "result_type"))
    dtype, weak = promote(tuple(typed), "result_type")
    if weak:  # named as Python's type is, whatever narrower types weak operands compute with
        python_type = np.uint64 if is_unsigned(dtype) else _PYTHON_TYPE[dtype]
        dtype = _CANONICAL[config.enable_x64][python_type]
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """Return the common dtype of two dtypes.

    The types int, float and complex are weak. Unlike `result_type` it knows 64-bit types even if
    `enable_x64` is off.

    Args:
      a: a dtype, a scalar type or a name.
      b: another one.

    Returns:
      A NumPy dtype.

    Raises:
      DtypeError: an argument is not a dtype.
      TypePromotionError: the two have no common dtype.

    >>> promote_types("int8", "uint8"), promote_types("int8", float)
    (dtype('int16'), dtype('float64'))
    """
    pair = (dtype_and_weak(a, "promote_types"), dtype_and_weak(b, "promote_types"))
    return _promote(True, config.numpy_dtype_promotion, pair, "promote_types")[0]
