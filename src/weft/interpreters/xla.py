"""Running primitives: the names of `jax.interpreters.xla`."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib._jax import Client as Backend

from weft.core.primitive import Primitive
from weft.interpreters.defining import unlist_results
from weft.run.eager import as_list, kernel_of
from weft.util import list_public

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]
__dir__ = list_public(__name__)


# Libraries say here that a class of theirs is an array; weft asks the class for `__jax_array__`.
canonicalize_dtype_handlers: dict[type, Any] = {np.ndarray: np.asarray}


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Compile a primitive as it lowers, and run it: an `impl` for one that has a lowering."""
    return unlist_results(prim, as_list(kernel_of(prim, params)(*args)))
