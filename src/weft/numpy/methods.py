"""Operators and methods of arrays and tracers: attached here, once, to both.

Each is a function of this package under the name it has as a method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.core.trace import Tracer, current
from weft.numpy import (
    choice,
    creation,
    cumulative,
    elementwise,
    indexing,
    manipulation,
    products,
    reductions,
    ufuncs,
    updates,
)
from weft.numpy.promotion import is_arraylike, not_array
from weft.xla.array import ArrayImpl
from weft.xla.eager import EVAL

# Operands that the compiled kernel of an operator takes as they are.
PLAIN = frozenset((ArrayImpl, float, int, bool, complex, np.ndarray))


def operator(name: str, fun: Callable[[Any, Any], Any]) -> tuple[Callable, Callable]:
    """A binary operator and its reflection."""
    kernel = getattr(fun, "kernel", fun)

    def forward(self: Any, other: Any) -> Any:
        if current.trace is EVAL and type(other) in PLAIN:
            try:
                return kernel(self, other)
            except Exception:
                return fun(self, other)
        if type(other) in PLAIN or is_arraylike(other):
            return fun(self, other)
        return foreign(name, other, lambda array: fun(self, array))

    def reflected(self: Any, other: Any) -> Any:
        if type(other) in PLAIN or is_arraylike(other):
            return fun(other, self)
        return foreign(name, other, lambda array: fun(array, self))

    forward.__name__, reflected.__name__ = f"__{name}__", f"__r{name}__"
    return forward, reflected


def foreign(name: str, other: Any, apply: Callable[[Any], Any]) -> Any:
    """What an operator makes of an operand that is no array: its own type may know."""
    if isinstance(other, list | tuple):
        raise not_array(name, other)
    if hasattr(other, "__jax_array__"):
        return apply(other.__jax_array__())
    return NotImplemented


BINARY = {
    "add": ufuncs.add,
    "sub": ufuncs.subtract,
    "mul": ufuncs.multiply,
    "truediv": ufuncs.true_divide,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "divmod": elementwise.divmod,
    "lshift": elementwise.left_shift,
    "rshift": elementwise.right_shift,
    "pow": elementwise.power,
    "matmul": products.matmul,
    "and": ufuncs.bitwise_and,
    "or": ufuncs.bitwise_or,
    "xor": ufuncs.bitwise_xor,
}
COMPARISONS = {
    "eq": ufuncs.equal,
    "ne": ufuncs.not_equal,
    "lt": ufuncs.less,
    "le": ufuncs.less_equal,
    "gt": ufuncs.greater,
    "ge": ufuncs.greater_equal,
}


def reshape(self: Any, *shape: Any, order: str = "C", out_sharding: Any = None) -> Any:
    """The same elements under another shape: x.reshape(2, 3) or x.reshape((2, 3))."""
    return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def transpose(self: Any, *axes: Any) -> Any:
    """Permute the axes: x.transpose(1, 0), x.transpose((1, 0)); without axes, reverse them."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], list | tuple)):
        return manipulation.transpose(self, axes[0])
    return manipulation.transpose(self, axes or None)


METHODS = {
    "__abs__": elementwise.abs,
    "__invert__": ufuncs.invert,
    "__neg__": ufuncs.negative,
    "__pos__": elementwise.positive,
    "__getitem__": indexing.getitem,
    "__setitem__": updates.setitem,
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "astype": creation.astype,
    "choose": indexing.choose,
    "clip": choice.clip,
    "conj": elementwise.conj,
    "conjugate": elementwise.conj,
    "copy": creation.copy,
    "cumprod": cumulative.cumprod,
    "cumsum": cumulative.cumsum,
    "dot": products.dot,
    "diagonal": manipulation.diagonal,
    "flatten": manipulation.ravel,
    "max": reductions.max,
    "mean": reductions.mean,
    "min": reductions.min,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "ravel": manipulation.ravel,
    "reshape": reshape,
    "round": elementwise.round,
    "squeeze": manipulation.squeeze,
    "std": reductions.std,
    "sum": reductions.sum,
    "swapaxes": manipulation.swapaxes,
    "take": indexing.take,
    "transpose": transpose,
    "var": reductions.var,
}
PROPERTIES = {
    "T": manipulation.transpose,
    "at": updates.At,
    "imag": elementwise.imag,
    "mT": manipulation.matrix_transpose,
    "real": elementwise.real,
}


def attach() -> None:
    """Give both classes their operators and methods."""
    members: dict[str, Any] = {}
    for name, fun in BINARY.items():
        members[f"__{name}__"], members[f"__r{name}__"] = operator(name, fun)
    for name, fun in COMPARISONS.items():
        members[f"__{name}__"], _ = operator(name, fun)
    members.update(METHODS)
    members.update({name: property(fun) for name, fun in PROPERTIES.items()})
    for cls in (ArrayImpl, Tracer):
        for name, member in members.items():
            setattr(cls, name, member)
    ArrayImpl.trace = products.trace  # a tracer's `trace` is its interpretation


attach()
