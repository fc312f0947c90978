"""Values and their types as `jax.lax` has them: `dtype`, `stage`, `shape_as_value`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import is_valid_value, typeof
from weft.core.trace import Tracer
from weft.errors import DtypeError
from weft.primitives.families import index_tuple
from weft.xla.array import put
from weft.xla.typing import Array


def dtype(x: Any) -> Any:
    """The dtype that `x`, a value or a type, has here: with 32 bits unless `enable_x64`.

    >>> lax.dtype(3.0), lax.dtype(bool)
    (dtype('float32'), dtype('bool'))
    """
    if x is None:  # to NumPy a name of float64
        raise DtypeError("dtype: needs a value, or what names a dtype; got None.")
    return typeof(x).dtype if is_valid_value(x) else dtypes.check_user_dtype(x, "dtype")


def stage(x: Any, /) -> Any:
    """`x`, a number or an array, as an Array; traced values as they are.

    >>> lax.stage(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    aval = typeof(x, "stage")
    return x if isinstance(x, Tracer) or dtypes.is_extended(aval.dtype) else put(x)


def shape_as_value(shape: Sequence[int]) -> Array:
    """A shape as an array of ints.

    >>> lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return put(np.array(index_tuple(shape, "shape_as_value", "shape"), dtypes.default_int()))
