"""The types of values: `ShapedArray`, interned, and `typeof`, which gives any value its type.

Equal types are one object, so comparing and hashing them costs nothing and type rules can be looked
up instead of run. Dtype rules are in dtypes.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from weft import dtypes
from weft.errors import DtypeError, ShapeError
from weft.options import x64_cell
from weft.util import as_size

MAX_ELEMENTS = 2**63 // 16  # for any dtype: an element of the widest one has 16 bytes


def check_extent(shape: tuple[int, ...], dtype: Any, most: int = 63) -> None:
    """Raise where an array has 2**most bytes, by default what NumPy and jaxlib cannot count."""
    extent = getattr(dtype, "itemsize", 1)
    for d in shape:
        extent *= d or 1
    if extent >= 2**most:
        listed = ",".join(map(str, shape))
        raise ShapeError(f"array: must have fewer than 2**{most} bytes; got {dtype}[{listed}].")


class AbstractValue:
    """The type of a traced value: a `ShapedArray`, or a reference to an array.

    The class is the common base of the two types. Use it to test whether an object is a type. It is
    not constructed itself.

    Attributes:
      size: the number of elements.
      dtype: the dtype of the elements.
      nbytes: the number of bytes of the elements.

    >>> from weft.core import AbstractValue
    >>> aval = weft.typeof(jnp.ones((2, 3)))
    >>> isinstance(aval, AbstractValue), aval.nbytes
    (True, 24)
    """

    __slots__ = ()
    size: int
    dtype: Any

    @property
    def nbytes(self) -> int:
        """Return the number of bytes of the elements."""
        return self.size * self.dtype.itemsize


class ShapedArray(AbstractValue):
    """The type of an array: its shape, its dtype, and a mark for weak types.

    Tracing runs on types in place of values, and rules of primitives compute types of results from
    types of operands. Equal types are the same object, and no type can be changed: `update` makes
    another type. A type prints as in jaxprs: `f32[3,4]`, or `f32[8@x,4]` for a sharded array. The
    attribute `physical` is the type of the buffer. It differs from the type itself for extended
    dtypes, such as random keys. Each key is a row of `words` elements of the dtype `words_dtype`.

    Args:
      shape: the sizes of the axes; a sequence of ints or symbolic sizes.
      dtype: the dtype of the elements, or its name.
      weak_type: True for the type of a Python scalar, which adapts to the dtype of the other
        operand. The default is False.
      varying: the axes of a mesh along which the values may differ, in a program that each device
        of the mesh runs for itself. None, the default, for no axes.
      sharded: the split of the array over the explicit axes of a mesh, as the attribute of another
        type. None, the default, for an array that is not split.
      sharding: a sharding that gives `sharded`. None is the default.
      manual_axis_type: the axes in the form of JAX, which give `varying`. None is the default.
      memory_space: accepted for compatibility with JAX and ignored.

    Raises:
      ShapeError: the array has 2**63 bytes or more.

    >>> from weft.core import ShapedArray
    >>> aval = ShapedArray((3, 4), np.float32)
    >>> aval
    ShapedArray(float32[3,4])
    >>> aval is weft.typeof(jnp.ones((3, 4)))
    True
    >>> print(aval.update(dtype=np.int32), aval.size, aval.ndim)
    i32[3,4] 12 2
    """

    __slots__ = (
        "__weakref__", "_tangent", "_text", "dtype", "hlo", "ndim", "physical", "shape", "sharded",
        "size", "varying", "weak_type",
    )  # fmt: skip

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    physical: ShapedArray
    varying: Any
    sharded: Any
    ndim: int
    size: int
    hlo: str  # the StableHLO type of the buffer, `tensor<3x4xf32>`
    _text: str | None
    _tangent: ShapedArray | None

    def __new__(
        cls, shape: Any, dtype: Any, weak_type: bool = False, varying: Any = None,
        sharded: Any = None, *,
        sharding: Any = None, manual_axis_type: Any = None, memory_space: Any = None,
    ) -> ShapedArray:  # fmt: skip
        if sharding is not manual_axis_type:  # not both None
            if sharding is not None:
                sharded = getattr(sharding, "_in_types", lambda ndim: None)(len(shape))
            if manual_axis_type is not None:
                varying = manual_axis_type._in_types()
        try:
            return _INTERNED[shape, dtype, weak_type, varying, sharded]
        except (KeyError, TypeError):
            return cls._intern(shape, dtype, weak_type, varying, sharded)

    @classmethod
    def _intern(
        cls, shape: Any, dtype: Any, weak_type: bool, varying: Any, sharded: Any
    ) -> ShapedArray:
        shape = tuple([d if type(d) is int else as_size(d) for d in shape])
        words = getattr(dtype, "words", None)  # of an element of an extended dtype
        dtype = np.dtype(dtype) if words is None else dtype
        key = (shape, dtype, bool(weak_type), varying, sharded)
        found = _INTERNED.get(key)
        if found is not None:
            return found
        self = object.__new__(cls)
        set_slot = object.__setattr__
        set_slot(self, "shape", shape)
        set_slot(self, "dtype", dtype)
        set_slot(self, "weak_type", key[2])
        set_slot(self, "varying", varying)
        set_slot(self, "sharded", sharded)
        set_slot(self, "ndim", len(shape))
        size = 1
        for d in shape:
            size *= d
        if type(size) is int and (size >= MAX_ELEMENTS or 0 in shape):  # jaxlib ends the process
            check_extent(shape, dtype)
        set_slot(self, "size", size)
        set_slot(self, "_text", None)
        set_slot(self, "_tangent", None)
        if words is not None:
            lies = sharded and sharded.with_axis(len(shape))
            physical = ShapedArray((*shape, words), dtype.words_dtype, False, varying, lies)
            set_slot(self, "hlo", physical.hlo)
        else:
            physical = self
            dims = "".join([f"{d}x" if type(d) is int else "?x" for d in shape])
            set_slot(self, "hlo", f"tensor<{dims}{dtypes.hlo_name(dtype)}>")
        set_slot(self, "physical", physical)
        return _INTERNED.setdefault(key, self)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"ShapedArray: types are immutable; use .update({name}=...).")

    def __reduce__(self) -> tuple:
        return ShapedArray, (self.shape, self.dtype, self.weak_type, self.varying, self.sharded)

    def update(self, **changes: Any) -> ShapedArray:
        """Return the type with other fields. With another shape it is unsplit by default."""
        fields = {"shape": self.shape, "dtype": self.dtype}
        fields |= {"weak_type": self.weak_type, "varying": self.varying}
        if "shape" not in changes:
            fields["sharded"] = self.sharded
        return ShapedArray(**{**fields, **changes})

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """`float32[3,4]`; with `short_dtypes=True`, `f32[3,4]`."""
        text = self._text if short_dtypes else None
        if text is None:
            lies = self.sharded
            sizes = ",".join(map(str, self.shape))
            name = dtypes.short_name(self.dtype) if short_dtypes else self.dtype.name
            kinds = f"{self.varying or ''}{lies or ''}".replace("}{", ", ")
            text = f"{name}[{sizes if lies is None else lies.sized_text(self.shape)}]{kinds}"
            if not short_dtypes:
                return text
            object.__setattr__(self, "_text", text)
        return text

    def __str__(self) -> str:
        return self.str_short(True)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"

    def strong(self) -> ShapedArray:
        """The same type, not weak."""
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent(self) -> ShapedArray:
        """The type of this type's tangents: float0 for bools and integers, else itself, strong."""
        found = self._tangent
        if found is None:
            dtype = dtypes.tangent_dtype(self.dtype)
            weak = self.weak_type and dtype is self.dtype
            found = ShapedArray(self.shape, dtype, weak, self.varying, self.sharded)
            object.__setattr__(self, "_tangent", found)
        return found


class HasAval:
    """The members of arrays and traced values that follow from their type."""

    __slots__ = ()
    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Return True if the dtype came from a Python number and yields to others."""
        return self.aval.weak_type

    def __len__(self) -> int:
        if not self.aval.shape:
            raise ShapeError(f"len(): needs an array with an axis; got {self.aval}.")
        return self.aval.shape[0]


_INTERNED: dict[tuple, ShapedArray] = {}

X32 = {  # of Python numbers
    bool: ShapedArray((), np.bool_),
    int: ShapedArray((), np.int32, True),
    float: ShapedArray((), np.float32, True),
    complex: ShapedArray((), np.complex64, True),
}
_X64 = {
    bool: X32[bool],
    int: ShapedArray((), np.int64, True),
    float: ShapedArray((), np.float64, True),
    complex: ShapedArray((), np.complex128, True),
}


def python_scalar_aval(x: Any) -> ShapedArray:
    """The weak type of a Python number."""
    return (_X64 if x64_cell.value else X32)[type(x)]


def keeps_type(x: Any, aval: ShapedArray) -> bool:
    """Return True if a value of type `aval` still has it: numbers change with enable_x64."""
    aval_now = (_X64 if x64_cell.value else X32).get(type(x))
    if aval_now is not None:
        return aval_now is aval or aval_now.dtype == aval.dtype
    return (
        x64_cell.value
        or aval.dtype not in dtypes.WIDE
        or not isinstance(x, np.generic | np.ndarray)
    )


def numpy_aval(x: Any) -> ShapedArray:
    """The type a NumPy array or scalar has here (64 bits become 32 unless x64 is on)."""
    return ShapedArray(x.shape, dtypes.canonicalize(x.dtype))


# How to find the type of a value that does not carry it as `.aval`, by Python type.
HOST_TYPES: dict[type, Callable[[Any], ShapedArray]] = {
    **dict.fromkeys(dtypes.NUMBERS, python_scalar_aval),
    **dict.fromkeys((np.ndarray, np.memmap, *np.sctypeDict.values()), numpy_aval),
}
for _name in dir(ml_dtypes):
    if isinstance(getattr(ml_dtypes, _name), type) and hasattr(getattr(ml_dtypes, _name), "dtype"):
        HOST_TYPES[getattr(ml_dtypes, _name)] = numpy_aval


def typeof(x: Any, op: str = "array") -> ShapedArray:
    """The type of a value: an Array, a tracer, a NumPy array or scalar, a Python number.

    Raises DtypeError, in the name of `op`, for anything else.
    """
    aval = getattr(x, "aval", None)
    if type(aval) is ShapedArray:
        return aval
    of_host = HOST_TYPES.get(type(x))
    if of_host is not None:
        if of_host is numpy_aval and not dtypes.valid_dtype(x.dtype):
            if x.dtype == dtypes.float0:
                return ShapedArray(x.shape, x.dtype)
            raise DtypeError(f"{op}: the dtype must be one weft has; got NumPy dtype {x.dtype}.")
        return of_host(x)
    if isinstance(aval, AbstractValue):
        return aval  # type: ignore[return-value]  # of a reference
    if is_masked(x):
        raise DtypeError(
            f"{op}: must not be a masked array, whose mask would be lost; got {x.dtype}"
            f"[{','.join(map(str, x.shape))}]. Hint: x.filled(0)."
        )
    for base in type(x).__mro__[1:]:  # a subclass of a number or of an ndarray
        if base in HOST_TYPES:
            return numpy_aval(np.asarray(x)) if base not in X32 else python_scalar_aval(base(x))
    raise not_array_error(op, x)


def is_masked(x: Any) -> bool:
    """Return True if `x` is a masked array of NumPy's, by name, as that module is loaded late."""
    return any(c.__name__ == "MaskedArray" for c in type(x).__mro__)


def not_array_error(op: str, x: Any) -> DtypeError:
    """The error for an operand that is not an array."""
    text = repr(x) if len(repr(x)) < 60 else "..."
    more = f". Hint: jnp.array({text})." if isinstance(x, list | tuple) else f" ({text})."
    return DtypeError(f"{op}: operands must be arrays or numbers; got a {type(x).__name__}{more}")


def words_of(x: Any) -> Any:
    """The array of the words that random keys are made of; any other value unchanged."""
    return getattr(x, "words", x)


def is_valid_value(x: Any) -> bool:
    """Return True if a value can be the operand of an operation.

    Valid values are arrays, random keys, Python and NumPy numbers, and NumPy arrays of a dtype that
    weft has. Lists, strings and None are not valid.

    Args:
      x: any object.

    Returns:
      A bool: True if `weft.typeof(x)` returns a type.

    >>> from weft.extend import core
    >>> core.valid_jaxtype(1.0), core.valid_jaxtype(np.zeros(3)), core.valid_jaxtype([1.0])
    (True, True, False)
    """
    try:
        typeof(x)
    except TypeError:
        return False
    return True
