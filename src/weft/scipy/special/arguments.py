"""What special functions do with their arguments: promote to floats, refuse what has no meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.contexts import enable_x64
from weft.errors import DtypeError
from weft.numpy.promotion import as_array, as_operand, operands
from weft.primitives.elementwise import Costly, convert
from weft.primitives.special.formula import formula


def floats(op: str, *xs: Any, strong: bool = False, takes_complex: bool = False) -> list:
    """Arguments as arrays of one inexact dtype and, scalars apart, one shape.

    With `strong` numbers give a result of float32 (float64) that is not weak.
    """
    xs = operands(op, *[as_operand(op, x) for x in xs], inexact=True)
    out = [as_array(x, op) for x in xs]
    if not takes_complex and dtypes.is_complex(out[0].dtype):
        raise DtypeError(f"{op}: operands must be real; got {', '.join(str(x.aval) for x in out)}.")
    return [convert(x, x.dtype) for x in out] if strong else out


def row(
    name: str, fun: Callable, derivs: list, doc: str, wide: bool = True, takes: str = "float"
) -> Costly:
    """A primitive whose lowering is a formula."""
    return Costly(name, formula(fun, wide), derivs, takes=takes, doc=doc)


def widely(fun: Callable, z: Any) -> Any:
    """fun(z) of complex numbers, computed in complex128 and rounded once."""
    with enable_x64(True):
        out = fun(convert(z, np.dtype(np.complex128)))
    return convert(out, z.dtype)
