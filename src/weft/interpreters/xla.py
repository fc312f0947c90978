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
    """Compile the lowering of a primitive, and run it.

    It serves as the `impl` of a primitive that has a lowering rule. The executable is cached.

    Args:
      prim: the primitive.
      *args: the operands, arrays of any shapes and dtypes that the primitive takes.
      **params: the parameters of the primitive.

    Returns:
      The result, an array; a list of arrays if the primitive has `multiple_results`.

    >>> from weft.interpreters import xla
    >>> print(xla.apply_primitive(lax.neg_p, 1.0))
    -1.0
    """
    return unlist_results(prim, as_list(kernel_of(prim, params)(*args)))
