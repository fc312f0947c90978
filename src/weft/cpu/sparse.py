"""Products with sparse matrices, and with matrices of bands, on CPUs: native/sparse.cc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.jaxpr import Eqn
from weft.cpu.calls import call_kernel
from weft.cpu.kernels import are_floats
from weft.cpu.scope import Scope
from weft.primitives.layout import convert
from weft.primitives.sparse import SparseProduct, add_near_rows

KERNEL_DTYPES = frozenset(map(np.dtype, ("i4", "i8", "u4", "u8", "f4", "f8", "c8", "c16")))


def choose_sparse_product(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Multiply by the kernel of the product, else by gathering and adding."""
    prim, params = eqn.primitive, eqn.params
    assert isinstance(prim, SparseProduct)
    out = eqn.outvars[0].aval.strong()
    if out.dtype not in KERNEL_DTYPES or not scope.target.kernels:
        return lambda *xs: [prim.compute_widely(*xs, **params)]
    wide = any(a.aval.dtype.itemsize > 4 for a in eqn.invars[2:])
    dtype = np.dtype(np.int64 if wide else np.int32)
    given = {"transpose": params["transpose"]} if "transpose" in params else {}

    def multiply(x: Any, y: Any, *places: Any) -> list:
        operands = [x, y, *[convert(p, dtype) for p in places]]
        return call_kernel(f"weft_{prim.name}", operands, [out], given)

    return multiply


def choose_resample(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Multiply by the bands of a matrix by the kernel, else by gathering."""
    x, weights, out = (a.aval for a in (*eqn.invars[:2], *eqn.outvars))
    if not scope.target.kernels or not are_floats(x, weights, out):
        return lambda x, weights, starts, *_: add_near_rows(x, weights, starts)
    made = [out.strong()]
    return lambda x, weights, starts, *_: call_kernel("weft_resample", [x, weights, starts], made)


def choose_resize(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Resample an image by bands, with a kernel; without kernels, as other platforms do."""
    prim: Any = eqn.primitive
    resize = prim.resize_by_bands if scope.target.kernels else prim.resize_by_windows
    return lambda image: [resize(image, **eqn.params)]
