"""Running primitives: the names of `jax.interpreters.xla`."""

from __future__ import annotations

from typing import Any

from weft.core.primitive import Primitive
from weft.interpreters.defining import unlisted
from weft.xla.eager import kernel_of

__all__ = ["apply_primitive"]


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Compile a primitive as it lowers, and run it: an `impl` for one that has a lowering."""
    return unlisted(prim, kernel_of(prim, params)(*args))
