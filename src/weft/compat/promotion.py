"""The names of `jax._src.numpy.util` and its neighbours: operands checked and brought together."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.core.aval import is_valid_value, not_array_error, typeof
from weft.dtypes import inexact_dtype
from weft.lax import broadcast_to_rank
from weft.numpy import asarray, broadcast_to, result_type, where
from weft.numpy.grids import Concatenator
from weft.numpy.promotion import as_array
from weft.numpy.updates import At as _IndexUpdateHelper  # noqa: F401 - a name that unxt imports
from weft.numpy.updates import Places as _IndexUpdateRef  # noqa: F401 - likewise
from weft.util import list_public

__all__ = [
    "CClass", "RClass", "check_arraylike", "check_arraylike_or_none", "ensure_arraylike",
    "ensure_arraylike_tuple", "promote_args", "promote_args_inexact", "promote_args_numeric",
    "promote_dtypes", "promote_dtypes_complex", "promote_dtypes_inexact",
    "promote_dtypes_numeric", "promote_shapes",
]  # fmt: skip
__dir__ = list_public(__name__)

_broadcast_to, _where = broadcast_to, where


class CClass(Concatenator):
    """The class of `c_`; libraries derive classes of it."""

    def __init__(self) -> None:
        super().__init__(-1, 2, 0)


class RClass(Concatenator):
    """The class of `r_`, likewise."""

    def __init__(self) -> None:
        super().__init__(0, 1, -1)


def _arraylike(x: Any) -> bool:
    """Return True if a value is an array, a number, or has `__jax_array__`."""
    return hasattr(x, "__jax_array__") or is_valid_value(x)


def check_arraylike(fun_name: str, *args: Any, emit_warning: bool = False) -> None:
    """Refuse arguments that are not arrays or numbers, such as lists."""
    for x in args:
        if not _arraylike(x):
            raise not_array_error(fun_name, x)


def check_arraylike_or_none(fun_name: str, *args: Any) -> None:
    """Raise for arguments that are not None, an array or a number."""
    check_arraylike(fun_name, *[x for x in args if x is not None])


def ensure_arraylike_tuple(fun_name: str, tup: Any) -> tuple:
    """Return the arguments as arrays; those that are not arrays or numbers are refused."""
    check_arraylike(fun_name, *tup)
    return tuple([as_array(x, fun_name) for x in tup])


def ensure_arraylike(fun_name: str, /, *args: Any) -> Any:
    """Return an argument as an array, or several as a tuple of arrays."""
    arrays = ensure_arraylike_tuple(fun_name, args)
    return arrays[0] if len(arrays) == 1 else arrays


def promote_dtypes(*args: Any) -> list:
    """Return the arguments as arrays of the dtype that they promote to."""
    return [asarray(x, result_type(*args)) for x in args]


def promote_dtypes_inexact(*args: Any) -> list:
    """Return the arguments as arrays of the inexact dtype that they promote to."""
    return [asarray(x, inexact_dtype(result_type(*args))) for x in args]


def promote_dtypes_complex(*args: Any) -> list:
    """Return the arguments as arrays of the complex dtype that they promote to."""
    return [asarray(x, result_type(*args, 0j)) for x in args]


def promote_dtypes_numeric(*args: Any) -> list:
    """Return the arguments as arrays of the dtype that they promote to, bools as integers."""
    found = result_type(*args)
    return [asarray(x, np.int32 if found == np.bool_ else found) for x in args]


def promote_shapes(fun_name: str, *args: Any) -> list:
    """Return the arguments as arrays of one rank: axes of size 1 are added in front."""
    arrays = [as_array(x, fun_name) for x in args]
    rank = max([typeof(x).ndim for x in arrays], default=0)
    return [x if not typeof(x).ndim else broadcast_to_rank(x, rank) for x in arrays]


def promote_args(fun_name: str, *args: Any) -> list:
    """Return the arguments as arrays of one dtype and of shapes that broadcast."""
    check_arraylike(fun_name, *args)
    return promote_shapes(fun_name, *promote_dtypes(*args))


def promote_args_inexact(fun_name: str, *args: Any) -> list:
    """Return the arguments as arrays of one inexact dtype and of shapes that broadcast."""
    check_arraylike(fun_name, *args)
    return promote_shapes(fun_name, *promote_dtypes_inexact(*args))


def promote_args_numeric(fun_name: str, *args: Any) -> list:
    """Return the arguments as arrays of one dtype, bools as integers."""
    check_arraylike(fun_name, *args)
    return promote_shapes(fun_name, *promote_dtypes_numeric(*args))
