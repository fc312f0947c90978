"""What an array can hold: dtypes, their names and kinds, and how they promote.

Everything takes and gives `np.dtype`; functions for users also take whatever names a dtype. The
promotion lattice is data (`_EDGES`); weak types are in it as `i*`, `f*`, `c*`. Arrays, avals and
the conversion of values are elsewhere, and so are random keys: here are only their markers.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from typing import Any, Protocol, TypeAlias

import ml_dtypes
import numpy as np
from ml_dtypes import bfloat16, finfo, iinfo

from weft.errors import DtypeError, TypePromotionError
from weft.options import config
from weft.util import find_close, list_public

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
    """What has a `dtype`."""

    @property
    def dtype(self) -> np.dtype: ...


# What functions take as a dtype.
DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType


class extended(np.generic):
    """The abstract scalar type of the dtypes that NumPy does not know, as `np.floating` is one.

    An extended dtype is a hashable object whose `type` is a subclass of this, and that has `name`;
    an element of it is made of `words` elements of the dtype `words_dtype`.
    """


class prng_key(extended):
    """The abstract scalar type of random keys: `issubdtype(key.dtype, prng_key)`."""


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
_BITS = {dtype: int(re.sub("_.*|[a-z]", "", dtype.name) or 8) for dtype in _KIND_OF}
PACKED = frozenset(dtype for dtype, bits in _BITS.items() if bits < 8)  # XLA packs the elements
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
WIDE = frozenset(_TO_32)  # what there is only with enable_x64
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
# The types of ml_dtypes are no subclasses of NumPy's abstract ones, so their place is kept here.
_ABOVE = {d.type: kind for d, kind in _KIND_OF.items() if not issubclass(d.type, kind)}


# --------------------------------------------------------------------------------------------
# Names.


def short_name(dtype: Any) -> str:
    """The name of a dtype in jaxprs and messages: f32, i32, bool, bf16, f8_e4m3fn, key<fry>."""
    return _SHORT.get(dtype) or dtype.name


def from_short_name(name: str) -> np.dtype:
    """The dtype that `short_name` calls `name`."""
    try:
        return _LONG[name]
    except KeyError:
        raise DtypeError(
            f"from_short_name: must be one of {', '.join(_LONG)}; got {name!r}."
        ) from None


def hlo_name(dtype: np.dtype) -> str:
    """The element type of a dtype in StableHLO: f32, i1, ui8, complex<f32>, f8E4M3FN."""
    return _HLO[dtype]


# --------------------------------------------------------------------------------------------
# From whatever names a dtype to the dtype in force.


def find_dtype(dtype: Any, where: str) -> Any:
    """What `dtype` names, as it says (not canonical): a NumPy dtype or an extended one."""
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
    """The dtype that arrays have for `dtype`: 64-bit types become 32-bit unless enable_x64 is on.

    Takes dtypes, Python and NumPy scalar types, names, and objects with a `dtype`. Raises
    `DtypeError` for what no array can hold.
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
    """Raise an error if an array stands where a dtype is asked for."""
    if hasattr(dtype, "__array__") and not isinstance(dtype, type | np.generic):
        got = getattr(dtype, "aval", type(dtype).__name__)
        raise DtypeError(f"{where}: dtype must be a dtype, not an array; got {got}. Hint: x.dtype")


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> np.dtype:
    """`dtype` as arrays have it: a 64-bit type becomes its 32-bit one unless enable_x64 is on.

    A NumPy dtype that no array can hold (a string, an object) is returned as it is.

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
    """The canonical dtype for one that a user gave to `where`; warns if that narrows it."""
    refuse_array(dtype, where)
    try:
        canonical = canonicalize(dtype, where)
    except DtypeError as error:
        raise error.with_traceback(None) from None
    if config.enable_x64 or dtype is None or isinstance(dtype, type) and dtype in _PYTHON_DTYPE:
        return canonical
    asked = find_dtype(dtype, where)
    if asked != canonical:
        warnings.warn(
            f"{where}: dtype {asked} needs enable_x64; used {canonical}. "
            'Hint: weft.config.update("enable_x64", True), or ask for '
            f'"{canonical}".',
            UserWarning,
            stacklevel=stacklevel_of_user(),
        )
    return canonical


def stacklevel_of_user() -> int:
    """The `stacklevel` that makes a warning of our caller point at the line that called weft."""
    package = os.path.dirname(os.path.abspath(__file__)) + os.sep
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level


def default_int() -> np.dtype:
    """The dtype of a Python int: int32, or int64 with enable_x64."""
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
    raise OverflowError(f"{op}: an integer must fit {dtype}; got {x}.")


def default_float() -> np.dtype:
    """The dtype of a Python float: float32, or float64 with enable_x64."""
    return _CANONICAL[config.enable_x64][float]


def default_complex() -> np.dtype:
    """The dtype of a Python complex: complex64, or complex128 with enable_x64."""
    return _CANONICAL[config.enable_x64][complex]


def python_scalar_dtype(x: Any) -> np.dtype:
    """The dtype that a Python scalar, or the type of one, has now."""
    return canonicalize(x if isinstance(x, type) else dtype_and_weak(x)[0])


def is_python_scalar(x: Any) -> bool:
    """True for a Python bool, int, float or complex; NumPy's scalars are arrays in this."""
    return type(x) in _PYTHON_DTYPE or (
        isinstance(x, int | float | complex) and not isinstance(x, np.generic)
    )


def scalar_type_of(x: Any) -> type:
    """The Python type (bool, int, float, complex) of the elements of a value or a dtype.

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
    """True for bool."""
    return _KIND_OF.get(dtype) is np.bool_


def is_signed(dtype: Any) -> bool:
    """True for the signed integers."""
    return _KIND_OF.get(dtype) is np.signedinteger


def is_unsigned(dtype: Any) -> bool:
    """True for the unsigned integers."""
    return _KIND_OF.get(dtype) is np.unsignedinteger


def is_integer(dtype: Any) -> bool:
    """True for the signed and unsigned integers; bool is none."""
    kind = _KIND_OF.get(dtype)
    return kind is np.signedinteger or kind is np.unsignedinteger


def is_float(dtype: Any) -> bool:
    """True for the real floating-point types."""
    return _KIND_OF.get(dtype) is np.floating


def is_complex(dtype: Any) -> bool:
    """True for the complex types."""
    return _KIND_OF.get(dtype) is np.complexfloating


def is_inexact(dtype: Any) -> bool:
    """True for the floating-point and complex types."""
    kind = _KIND_OF.get(dtype)
    return kind is np.floating or kind is np.complexfloating


def is_extended(dtype: Any) -> bool:
    """True for a dtype that NumPy does not know, and for the scalar types of such."""
    if isinstance(dtype, np.dtype):
        return False
    scalar = dtype if isinstance(dtype, type) else getattr(dtype, "type", None)
    return isinstance(scalar, type) and issubclass(scalar, extended)


def valid_dtype(dtype: Any) -> bool:
    """True for a dtype that an array can hold, whether or not enable_x64 is on."""
    return dtype in _KIND_OF or is_extended(dtype)


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the real part: complex64 -> float32; real dtypes are their own."""
    return _REAL.get(dtype, dtype)


def complex_dtype(dtype: np.dtype, where: str = "complex_dtype") -> np.dtype:
    """The complex dtype that holds `dtype`: 64-bit numbers -> complex128, others -> complex64."""
    return _C128 if real_dtype(inexact_dtype(dtype, where)) == _F64 else _C64


def inexact_dtype(dtype: np.dtype, where: str = "inexact_dtype") -> np.dtype:
    """The dtype in which functions such as sin work on `dtype`: integers and bool become floats."""
    if dtype not in _INEXACT:
        raise DtypeError(f"{where}: needs a numeric dtype; got {short_name(dtype)}.")
    return _INEXACT[dtype]


def tangent_dtype(dtype: Any) -> np.dtype:
    """The dtype of tangents: a float's and a complex's own; float0 for what does not vary."""
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
        return np.asarray(x, dtype)  # to keep warnings back takes a fifth of the time of `put`
    return _cast_in_silence(x, dtype)


@np.errstate(over="ignore", invalid="ignore")  # half the time of a `with` around the call
def _cast_in_silence(x: Any, dtype: np.dtype) -> np.ndarray:
    return np.asarray(x, dtype)


def itemsize_bits(dtype: Any) -> int:
    """Bits in one element, packed: 4 for int4, 8 for bool, 64 for complex64."""
    named = find_dtype(dtype, "itemsize_bits")
    if named not in _BITS:
        raise DtypeError(f"itemsize_bits: needs a numeric dtype; got {short_name(named)}.")
    return _BITS[named]


def whole_byte_dtype(dtype: Any) -> Any:
    """Return the dtype in which kernels take elements of `dtype`: one of whole bytes.

    Elements of fewer bits, which XLA packs, fit without rounding. A bool takes a byte.
    """
    if dtype not in PACKED:
        return dtype
    return _F32 if is_float(dtype) else np.dtype(np.int8 if is_signed(dtype) else np.uint8)


def _scalar_type(dtype: Any) -> type:
    if isinstance(dtype, type) and (dtype in _ABSTRACT or is_extended(dtype)):
        return dtype
    return find_dtype(dtype, "issubdtype").type


def issubdtype(a: DTypeLike, b: DTypeLike) -> bool:
    """Whether the first dtype or scalar type is at or below the second.

    As `np.issubdtype`, except that the types of ml_dtypes have their place among NumPy's
    (bfloat16 is a `np.floating`, int4 a `np.signedinteger`), and `extended` dtypes have theirs.

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
    """Whether `dtype` is of a kind: a dtype, a kind's name, or a tuple of these (any of them).

    The names are those of the array API: 'bool', 'signed integer', 'unsigned integer', 'integral',
    'real floating', 'complex floating', 'numeric'.

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
    """The least node above all of `nodes` in the 'standard' or 'strict' lattice; None if none is.

    Nodes are short names of dtypes, and `i*`, `f*`, `c*` for weak types.
    """
    bounds = _upper_bounds(mode)
    common = frozenset.intersection(*(bounds[node] for node in nodes))
    return next((node for node in common if bounds[node] == common), None)


# The hottest question of the NumPy layer, so answered once; its keys are few and hold only dtypes.
_PROMOTED: dict[tuple[bool, str, tuple[Typed, ...]], Typed] = {}


def promote(operands: tuple[Typed, ...], where: str = "promote") -> Typed:
    """The (dtype, weak) that operands of the given (dtype, weak) are converted to, memoized."""
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
    dtype = _LONG[node]
    if not all_weak:
        return table[dtype], False
    return table[np.uint64 if is_unsigned(dtype) else _PYTHON_TYPE[dtype]], True


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
    """(dtype, weak) of an array, a tracer, a Python scalar, or a dtype; not canonical."""
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
    """The dtype that arrays, scalars and dtypes have once promoted to a common one.

    Python scalars, and the types int, float and complex, are weak: they take the dtype of what
    they meet, unless it is of a lower kind. With `return_weak_type_flag`, gives (dtype, weak).

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
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """The common dtype of two; the types int, float and complex are weak.

    Unlike `result_type` it knows 64-bit types whether or not enable_x64 is on.

    >>> promote_types("int8", "uint8"), promote_types("int8", float)
    (dtype('int16'), dtype('float64'))
    """
    pair = (dtype_and_weak(a, "promote_types"), dtype_and_weak(b, "promote_types"))
    return _promote(True, config.numpy_dtype_promotion, pair, "promote_types")[0]
