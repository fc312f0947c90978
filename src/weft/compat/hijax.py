"""Names of `jax.experimental.hijax`, which is out of scope: classes that libraries derive from.

flax defines types of values and primitives with it when it is imported, and uses them where its
users ask for that alone. So all of that can be defined, and to apply such a primitive is an error.
"""

from __future__ import annotations

from typing import Any

from weft.compat.absent import explain_absence, make_absent
from weft.core.aval import AbstractValue, ShapedArray
from weft.interpreters.ad import Zero, instantiate_zeros, is_undefined_primal
from weft.util import list_public

__all__ = [
    "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType", "MutableHiType",
    "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method", "aval_property",
    "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal", "register_hitype",
]  # fmt: skip
__dir__ = list_public(__name__)

AvalQDD, AvalMutableQDD = map(make_absent, ("jax.experimental.AvalQDD", "jax.experimental.hijax"))


class HiType:
    """A type of values that are not arrays."""


MutableHiType = HiType


class HiPrimitive:
    """A primitive on such values: it can be defined, and not applied."""

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        """Raise, for it cannot be applied."""
        raise NotImplementedError(explain_absence("jax.experimental.hijax"))


VJPHiPrimitive = HiPrimitive


class aval_method:
    """A method of such a type."""

    def __init__(self, fun: Any = None, *, fget: Any = None):
        self.fun = fun or fget


aval_property = aval_method


class _EffectTypes:
    def add_type(self, effect: type) -> None:
        """Allow an effect in loops and branches: none arises."""


control_flow_allowed_effects = _EffectTypes()


def register_hitype(value_class: type, type_of: Any) -> None:
    """Say what the type of values of a class is: such values are taken nowhere."""
