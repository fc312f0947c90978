"""Operators and methods of arrays and tracers.

Each method of an array is a function of this package under the name it has as a method; both
classes get it here, once. The module of a function is imported when a method of it is first used,
because few programs use most of them.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from weft.core.aval import AbstractValue, ShapedArray, not_array_error
from weft.core.ref import AbstractRef, Ref
from weft.core.trace import Tracer
from weft.errors import ConcretizationTypeError
from weft.mesh.client import Space
from weft.mesh.mesh import get_abstract_mesh
from weft.mesh.sharding import NamedSharding
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import sharded_of
from weft.numpy import ufuncs
from weft.numpy.promotion import is_arraylike
from weft.run.operation import OPERANDS, operator_operation
from weft.util import LazyMember, LazyText, hide_members, name_function, suggest_name
from weft.xla.array import ArrayImpl, KeyArray
from weft.xla.layouts import Format, Layout
from weft.xla.typing import Array, ArrayLike


def make_operator(name: str, fun: Callable[[Any, Any], Any]) -> Callable:
    """Return a binary operator."""

    def forward(self: Array, other: ArrayLike) -> Array:
        if type(other) in OPERANDS or isinstance(other, Tracer) or is_arraylike(other):
            return fun(self, other)
        return apply_to_foreign(name, other, lambda array: fun(self, array))

    forward.__name__ = forward.__qualname__ = f"__{name}__"
    is_program = hasattr(fun, "kernel")  # unlike power, which reads integers
    return operator_operation(fun, forward) if is_program else forward


def make_reflected(name: str, fun: Callable[[Any, Any], Any]) -> Callable:
    """Return the reflection of a binary operator, whose array is the second operand."""

    def reflected(self: Array, other: ArrayLike) -> Array:
        if type(other) in OPERANDS or is_arraylike(other):
            return fun(other, self)
        return apply_to_foreign(name, other, lambda array: fun(array, self))

    reflected.__name__ = reflected.__qualname__ = f"__r{name}__"
    return reflected


def apply_to_foreign(name: str, other: Any, apply: Callable[[Any], Any]) -> Any:
    """Return an operator's result for an operand that is not an array: its type may know."""
    if isinstance(other, list | tuple):
        if any(f"__r{name}__" in vars(c) for c in type(other).__mro__ if c not in (list, tuple)):
            return NotImplemented  # a subclass that knows
        raise not_array_error(name, other)
    if hasattr(other, "__jax_array__"):
        array = other.__jax_array__()
        return array if array is NotImplemented else apply(array)
    return NotImplemented


# Functions that most programs use, and the places of others, which are imported on first use.
BINARY: dict[str, Any] = {
    "add": ufuncs.add, "sub": ufuncs.subtract, "mul": ufuncs.multiply,
    "truediv": ufuncs.true_divide, "floordiv": "elementwise.floor_divide",
    "mod": "elementwise.remainder", "divmod": "elementwise.divmod",
    "lshift": "elementwise.left_shift", "rshift": "elementwise.right_shift",
    "pow": "elementwise.power", "matmul": "products.matmul",
    "and": ufuncs.bitwise_and, "or": ufuncs.bitwise_or, "xor": ufuncs.bitwise_xor,
}  # fmt: skip
COMPARISONS = {
    "eq": ufuncs.equal, "ne": ufuncs.not_equal, "lt": ufuncs.less, "le": ufuncs.less_equal,
    "gt": ufuncs.greater, "ge": ufuncs.greater_equal,
}  # fmt: skip


def itemsize(self: Any) -> int:
    """The bytes of one element, as NumPy stores it."""
    return self.aval.dtype.itemsize


def nbytes(self: Any) -> int:
    """The bytes of all elements, as NumPy stores them."""
    return self.aval.nbytes


def refuse_flat(self: Any) -> Any:
    """Not available: an iterator over a buffer that can be written to."""
    raise NotImplementedError("flat: must be an array, for arrays do not change. Hint: x.ravel().")


def format_of(self: Any) -> Format:
    """Return the format of the array: the order of its elements in memory, and its sharding."""
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
    "reductions": "all any argmax argmin cumprod cumsum max mean min prod ptp std sum var",
    "manipulation": "diagonal ravel squeeze swapaxes",
    "sorting": "argpartition argsort searchsorted sort", "indexing": "choose take",
    "elementwise": "conj conjugate round", "products": "dot trace", "choice": "clip",
    "creation": "copy", "editing": "repeat", "searching": "nonzero",
    "views": "byteswap view",
}  # fmt: skip
# Members that have another name than their function, or are not function of another module.
METHODS: dict[str, Any] = {
    "__array_namespace__": array_namespace,
    "__contains__": lambda self, item: bool(ufuncs.equal(self, item).any()),
    "__copy__": "creation.copy", "__deepcopy__": lambda self, memo: self.copy(),
    "__round__": "elementwise.python_round", "__abs__": "elementwise.abs",
    "__invert__": ufuncs.invert, "__neg__": ufuncs.negative, "__pos__": "elementwise.positive",
    "__getitem__": "indexing.getitem", "__setitem__": "updates.refuse_setitem",
    "flatten": "manipulation.ravel",
}  # fmt: skip
# Functions that are only methods, and get their names as methods.
ONLY_METHODS = {
    "astype": "views.cast_array", "compress": "searching.compress_array",
    "reshape": "manipulation.reshape_array", "to_device": "views.to_device",
    "transpose": "manipulation.transpose_array",
}  # fmt: skip
PROPERTIES: dict[str, Any] = {
    "T": "manipulation.transpose", "at": "updates.At", "flat": refuse_flat,
    "imag": "elementwise.imag", "itemsize": itemsize, "mT": "manipulation.matrix_transpose",
    "nbytes": nbytes, "real": "elementwise.real",
}  # fmt: skip
# Members of references and of their types: a function, and what makes a member of it.
OF_REFS = {
    "__getitem__": ("refs.get", None), "__setitem__": ("refs.set", None),
    "addupdate": ("refs.add_to_index", None), "at": ("updates.At", property),
    "committed": ("refs.is_committed", property), "format": ("refs.format_in", property),
    "sharding": ("refs.sharding_in", property), "unsafe_buffer_pointer": ("refs.find_buffer", None),
}  # fmt: skip
OF_REF_TYPES = {  # which pass the reference
    "getitem": ("refs.get", staticmethod), "setitem": ("refs.set", staticmethod),
    "part": ("refs.view_part", staticmethod),
}  # fmt: skip


def find_function(place: str) -> Any:
    """Return the function at `module.name`, the module one of this package."""
    module, _, name = place.partition(".")
    return getattr(importlib.import_module(f"weft.numpy.{module}"), name)


def rename_method(name: str, fun: Callable) -> Callable:
    """Return a function under the name that it has as a method."""
    return name_function(fun, name, fun.__doc__)


def attach(classes: Sequence[Any], name: str, fun: Any, wrap: Callable | None = None) -> None:
    """Give classes a member: a function, or a function's place that is looked up on first use."""
    wrap = wrap or (lambda fun: fun)
    if isinstance(fun, str):
        LazyMember(lambda: wrap(find_function(fun)), name, classes)
        return
    member = wrap(fun)
    for cls in classes:
        setattr(cls, name, member)


def sharding_of_type(aval: ShapedArray) -> NamedSharding:
    """Return the sharding of a type: unsplit, over the mesh in scope, if it does not say."""
    if aval.sharded is not None:
        return aval.sharded.named
    return NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * aval.ndim))


def make_manual_type() -> property:
    """Make the property of types that says how values vary along the axes of a mesh."""
    return property(importlib.import_module("weft.primitives.varying").ManualAxisType.of)


# Methods of arrays that ask for their memory, which a traced value has not.
OF_VALUES = "devices tobytes is_deleted delete unsafe_buffer_pointer on_device_size_in_bytes"


def refuse_method(name: str) -> Callable:
    """A method that no traced value has."""

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        hint = f"return the array from the function and call .{name}() on the result."
        raise Tracer.concrete(self, ConcretizationTypeError, f"{name}()", hint)

    return name_function(method, name, "An error: a traced value is in no memory.")


def write_missing(cls: type, aval: ShapedArray, name: str) -> str:
    """Return the message for a missing attribute of arrays."""
    hint = suggest_name(name, dir(cls), "x")
    return f"array: has no attribute {name!r}; got {aval}.{hint}"


def refuse_attribute(x: Any, name: str) -> Any:
    """`__getattr__` of arrays: raise an error that suggests a similar attribute."""
    raise AttributeError(LazyText(functools.partial(write_missing, type(x), x.aval, name)))


def attach_methods() -> None:
    """Give the classes of arrays their operators and methods."""
    classes = (ArrayImpl, KeyArray, Tracer)
    for name, fun in {**BINARY, **COMPARISONS}.items():
        attach(classes, f"__{name}__", fun, functools.partial(make_operator, name))
    for name, fun in BINARY.items():
        attach(classes, f"__r{name}__", fun, functools.partial(make_reflected, name))
    for module, names in SAME_NAME.items():
        for name in names.split():
            attach(classes, name, f"{module}.{name}")
    for name, fun in METHODS.items():
        is_own = getattr(fun, "__module__", "") == __name__
        attach(classes, name, rename_method(name, fun) if is_own else fun)
    for name, place in ONLY_METHODS.items():
        attach(classes, name, place, functools.partial(rename_method, name))
    for name, fun in PROPERTIES.items():
        attach(classes, name, fun, property)
    for cls in classes:
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
    ShapedArray.vma = property(lambda self: frozenset(self.varying.names if self.varying else ()))
    for name in ("manual_axis_type", "mat"):
        LazyMember(make_manual_type, name, [ShapedArray])
    AbstractRef.sharding = property(lambda self: self.inner_aval.sharding)
    for cls, members in ((Ref, OF_REFS), (AbstractRef, OF_REF_TYPES)):
        for name, (place, wrap) in members.items():
            attach([cls], name, place, wrap)
    # A tracer's knows where it was made.
    attach([ArrayImpl, KeyArray], "__iter__", "indexing.iterate")


attach_methods()
