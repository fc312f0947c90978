"""Operators and methods of arrays and tracers, and those of universal functions (`jnp.add.reduce`).

Each method of an array is a function of this package under the name it has as a method; both
classes get it here, once. What the methods of universal functions do is ufunc_objects.py, imported
when one is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.api.devices import device_put
from weft.core.aval import AbstractValue, ShapedArray, not_array_error
from weft.core.ref import AbstractRef, Ref
from weft.core.trace import Tracer
from weft.errors import ConcretizationTypeError
from weft.mesh.client import Space
from weft.mesh.mesh import get_abstract_mesh
from weft.mesh.sharding import NamedSharding
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import sharded_of
from weft.numpy import (
    choice,
    creation,
    editing,
    elementwise,
    indexing,
    manipulation,
    products,
    reductions,
    refs,
    searching,
    sorting,
    ufuncs,
    updates,
    views,
)
from weft.numpy.names import HOMES
from weft.numpy.promotion import is_arraylike
from weft.primitives.varying import ManualAxisType, axes_of_varying
from weft.run.operation import OPERANDS, operator_operation
from weft.util import hide_members, name_function, suggest_name
from weft.xla.array import ArrayImpl, KeyArray
from weft.xla.layouts import Format, Layout
from weft.xla.typing import Array, ArrayLike, DeviceLike, DTypeLike, ShardingLike


def make_operator(name: str, fun: Callable[[Any, Any], Any]) -> tuple[Callable, Callable]:
    """A binary operator and its reflection."""

    def forward(self: Array, other: ArrayLike) -> Array:
        if type(other) in OPERANDS or isinstance(other, Tracer) or is_arraylike(other):
            return fun(self, other)
        return apply_to_foreign(name, other, lambda array: fun(self, array))

    def reflected(self: Array, other: ArrayLike) -> Array:
        if type(other) in OPERANDS or is_arraylike(other):
            return fun(other, self)
        return apply_to_foreign(name, other, lambda array: fun(array, self))

    forward.__name__ = forward.__qualname__ = f"__{name}__"
    reflected.__name__ = reflected.__qualname__ = f"__r{name}__"
    is_program = hasattr(fun, "kernel")  # unlike power, which reads integers
    return operator_operation(fun, forward) if is_program else forward, reflected


def apply_to_foreign(name: str, other: Any, apply: Callable[[Any], Any]) -> Any:
    """What an operator makes of an operand that is no array: its own type may know."""
    if isinstance(other, list | tuple):
        if any(f"__r{name}__" in vars(c) for c in type(other).__mro__ if c not in (list, tuple)):
            return NotImplemented  # a subclass that knows
        raise not_array_error(name, other)
    if hasattr(other, "__jax_array__"):
        array = other.__jax_array__()
        return array if array is NotImplemented else apply(array)
    return NotImplemented


BINARY = {
    "add": ufuncs.add, "sub": ufuncs.subtract, "mul": ufuncs.multiply,
    "truediv": ufuncs.true_divide, "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder, "divmod": elementwise.divmod, "lshift": elementwise.left_shift,
    "rshift": elementwise.right_shift, "pow": elementwise.power, "matmul": products.matmul,
    "and": ufuncs.bitwise_and, "or": ufuncs.bitwise_or, "xor": ufuncs.bitwise_xor,
}  # fmt: skip
COMPARISONS = {
    "eq": ufuncs.equal, "ne": ufuncs.not_equal, "lt": ufuncs.less, "le": ufuncs.less_equal,
    "gt": ufuncs.greater, "ge": ufuncs.greater_equal,
}  # fmt: skip


def reshape_array(
    self: Any, *shape: Any, order: str = "C", out_sharding: ShardingLike = None
) -> Array:
    """The same elements under another shape: x.reshape(2, 3) or x.reshape((2, 3))."""
    sizes = shape[0] if len(shape) == 1 else shape
    if order == "C" and out_sharding is None:
        return manipulation.reshape(self, sizes)
    return manipulation.reshape(self, sizes, order, out_sharding=out_sharding)


def itemsize(self: Any) -> int:
    """The bytes of one element, as NumPy stores it."""
    return self.aval.dtype.itemsize


def nbytes(self: Any) -> int:
    """The bytes of all elements, as NumPy stores them."""
    return self.aval.nbytes


def compress_array(
    self: Any, condition: ArrayLike, axis: int | None = None, **kwargs: Any
) -> Array:
    """The slices along an axis where a vector of conditions holds."""
    return searching.compress(condition, self, axis, **kwargs)


def transpose_array(self: Any, *axes: Any) -> Array:
    """Permute the axes: x.transpose(1, 0), x.transpose((1, 0)); without axes, reverse them."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], list | tuple)):
        return manipulation.transpose(self, axes[0])
    return manipulation.transpose(self, axes or None)


def cast_array(self: Any, dtype: DTypeLike, copy: bool = False, device: DeviceLike = None) -> Array:
    """The array in another dtype; complex to real drops the imaginary part."""
    if device is None and copy is False:
        return views.cast(self, dtype)
    return views.astype(self, dtype, copy=copy, device=device)


def refuse_flat(self: Any) -> Any:
    """Not available: an iterator over a buffer that can be written to."""
    raise NotImplementedError("flat: must be an array, for arrays do not change. Hint: x.ravel().")


def to_device(self: Any, device: DeviceLike, *, stream: Any = None) -> Array:
    """The array on another device."""
    if stream is not None:
        raise NotImplementedError("to_device: stream must be None; the engine orders transfers.")
    return device_put(self, device)


def format_of(self: Any) -> Format:
    """How the array is kept: the order of its elements in memory, and its sharding."""
    return Format(Layout.from_pjrt_layout(self._pjrt_layout), self.sharding)


def array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The module of functions for this array, by the array API: weft.numpy."""
    versions = ("2021.12", "2022.12", "2023.12", "2024.12")
    if api_version not in (None, *versions):
        raise ValueError(
            f"__array_namespace__: api_version must be one of {versions}; got {api_version!r}."
        )
    return sys.modules["weft.numpy"]


# Methods that are the function of the same name of a module.
SAME_NAME = {
    reductions: "all any argmax argmin cumprod cumsum max mean min prod ptp std sum var",
    manipulation: "diagonal ravel squeeze swapaxes",
    sorting: "argpartition argsort searchsorted sort", indexing: "choose take",
    elementwise: "conj conjugate round", products: "dot trace", choice: "clip", creation: "copy",
    editing: "repeat", searching: "nonzero", views: "byteswap view",
}  # fmt: skip
METHODS = {
    "__array_namespace__": array_namespace,
    "__contains__": lambda self, item: bool(reductions.any(ufuncs.equal(self, item))),
    "__copy__": creation.copy, "__deepcopy__": lambda self, memo: creation.copy(self),
    "__round__": elementwise.python_round, "__abs__": elementwise.abs, "__invert__": ufuncs.invert,
    "__neg__": ufuncs.negative, "__pos__": elementwise.positive, "__getitem__": indexing.getitem,
    "__setitem__": updates.refuse_setitem, "astype": cast_array, "compress": compress_array,
    "flatten": manipulation.ravel, "reshape": reshape_array, "to_device": to_device,
    "transpose": transpose_array,
}  # fmt: skip
PROPERTIES = {
    "T": manipulation.transpose, "at": updates.At, "flat": refuse_flat, "imag": elementwise.imag,
    "itemsize": itemsize, "mT": manipulation.matrix_transpose, "nbytes": nbytes,
    "real": elementwise.real,
}  # fmt: skip


def sharding_of_type(aval: ShapedArray) -> NamedSharding:
    """How values of a type lie: whole, over the mesh in scope, where the type does not say it."""
    if aval.sharded is not None:
        return aval.sharded.named
    return NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * aval.ndim))


# Methods of arrays that ask for their memory, which a traced value has not.
OF_VALUES = "devices tobytes is_deleted delete unsafe_buffer_pointer on_device_size_in_bytes"


def refuse_method(name: str) -> Callable:
    """A method that no traced value has."""

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        hint = f"return the array from the function and call .{name}() on the result."
        raise Tracer.concrete(self, ConcretizationTypeError, f"{name}()", hint)

    return name_function(method, name, "An error: a traced value is in no memory.")


class AttributeText:
    """What is said of an attribute that arrays have not: made when it is read, as few are.

    `hasattr`, and `getattr` with a default, drop the error, and finding what was meant takes 1 ms.
    """

    __slots__ = ("aval", "cls", "name")

    def __init__(self, x: Any, name: str):
        self.cls, self.aval, self.name = type(x), x.aval, name

    def __repr__(self) -> str:
        hint = suggest_name(self.name, dir(self.cls), "x")
        return f"array: has no attribute {self.name!r}; got {self.aval}.{hint}"


def refuse_attribute(x: Any, name: str) -> Any:
    """`__getattr__` of arrays: an error that says what was meant by an attribute they have not."""
    raise AttributeError(AttributeText(x, name))


def attach_methods() -> None:
    """Give the classes of arrays their operators and methods."""
    members: dict[str, Any] = {}
    for name, fun in BINARY.items():
        members[f"__{name}__"], members[f"__r{name}__"] = make_operator(name, fun)
    for name, fun in COMPARISONS.items():
        members[f"__{name}__"], _ = make_operator(name, fun)
    for module, names in SAME_NAME.items():
        members.update({name: getattr(module, name) for name in names.split()})
    for name, fun in METHODS.items():
        members[name] = fun if fun.__module__ != __name__ else name_function(fun, name, fun.__doc__)
    members.update({name: property(fun) for name, fun in PROPERTIES.items()})
    for cls in (ArrayImpl, KeyArray, Tracer):
        for name, member in members.items():
            setattr(cls, name, member)
        cls.__getattr__ = refuse_attribute  # type: ignore[union-attr]
    ArrayImpl.format = property(format_of)
    for name in OF_VALUES.split():
        setattr(Tracer, name, refuse_method(name))
    own = "arguments check_live concrete inner is_live origin own_origin owner variable"
    hide_members(Tracer, f"{own} {OF_VALUES}")
    hide_members(Ref, "hold owned trace")
    ShapedArray.sharding = property(sharding_of_type)  # type: ignore[attr-defined]
    NamedSharding._in_types = sharded_of  # type: ignore[attr-defined]
    ShapedArray.memory_space = Space.Device  # type: ignore[attr-defined]
    ShapedArray.at_least_vspace = ShapedArray.to_tangent  # type: ignore[attr-defined]
    methods_of_types = {  # by the names that types of one's own have (experimental/hijax.py)
        "lo_ty": lambda self: [self],
        "lower_val": lambda self, x: [x],
        "raise_val": lambda self, x: x,
        "normalize": lambda self: self.strong(),
        "strip_weak_type": lambda self: self.strong(),
        "to_tangent_aval": lambda self: self.to_tangent(),
    }
    for name, method in methods_of_types.items():
        setattr(AbstractValue, name, method)
    ShapedArray.vma = property(lambda self: frozenset(axes_of_varying(self.varying)))
    ShapedArray.manual_axis_type = property(ManualAxisType.of)  # type: ignore[attr-defined]
    ShapedArray.mat = ShapedArray.manual_axis_type  # type: ignore[attr-defined]
    AbstractRef.getitem = lambda self, ref, index: refs.get(ref, index)  # of tracers
    AbstractRef.setitem = lambda self, ref, index, value: refs.set(ref, index, value)
    AbstractRef.sharding = property(lambda self: self.inner_aval.sharding)
    AbstractRef.part = lambda self, ref, index: refs.view_part(ref, index)
    Ref.at = property(updates.At)  # type: ignore[attr-defined]
    Ref.__getitem__, Ref.__setitem__ = refs.get, refs.set  # type: ignore[attr-defined]
    of_references = {
        "addupdate": refs.add_to_index, "committed": property(refs.is_committed),
        "format": property(refs.format_in), "sharding": property(refs.sharding_in),
        "unsafe_buffer_pointer": refs.find_buffer,
    }  # fmt: skip
    for name, member in of_references.items():
        setattr(Ref, name, member)
    ArrayImpl.__iter__ = KeyArray.__iter__ = indexing.iterate  # a tracer's knows where it was made


# --- of universal functions -------------------------------------------------------------------

UFUNC_METHODS = ("reduce", "accumulate", "at", "outer", "reduceat")


def make_ufunc_method(method: str, *made_of: Any) -> Callable:
    """A method of a universal function, which is made when it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(sys.modules["weft.numpy"].ufunc.named(*made_of), method)(*args, **kwargs)

    call.__name__ = call.__qualname__ = method
    return call


def attach_ufunc_methods() -> None:
    """Give the functions that are universal functions in NumPy their attributes and methods."""
    for module in (ufuncs, elementwise, choice):
        for name in HOMES[module.__name__].split():
            like, fun = getattr(np, name, None), getattr(module, name)
            if type(like) is np.ufunc and fun.__name__ == name:
                about = {"nin": like.nin, "nout": like.nout, "identity": like.identity}
                vars(fun).update(about, nargs=like.nin)
                vars(fun).update(
                    {m: make_ufunc_method(m, fun, *about.values()) for m in UFUNC_METHODS}
                )


attach_methods()
attach_ufunc_methods()
