"""Factorizations of matrices and solutions of triangular systems, in the fastest way for CPUs.

The kernels are in native/cholesky.cc, lu.cc, qr.cc and triangular.cc. LAPACK computes what they do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Eqn
from weft.cpu.calls import call_kernel
from weft.cpu.formula import apply_formula
from weft.cpu.kernels import call_native
from weft.cpu.scope import MAX_SHORT, Scope
from weft.primitives.factorizations import Lu, lu_pivots_to_permutation_p
from weft.primitives.lapack import KernelCall, call_named
from weft.primitives.layout import convert
from weft.primitives.matrices import NAN, Completion, MatrixPrimitive
from weft.primitives.small import is_small
from weft.util import is_below, memoize

F32 = np.dtype(np.float32)


class KernelCompletion(Completion):
    """Complete results of up to MAX_SHORT elements by kernels, which run on the calling thread.

    Larger results pay for another thread. XLA counts operations to decide that.
    """

    def write_triangle(self, hlo, x, direction):
        if not is_below(x.aval.size, MAX_SHORT + 1):
            return super().write_triangle(hlo, x, direction)
        *_, m, n = x.aval.shape
        how = {"rows": m, "columns": n, "upper": direction == "LE"}
        return call_native(hlo, "weft_triangle", [x], [x.aval], how, {0: 0})[0]

    def mark_failures(self, hlo, info, outs):
        if not all(is_below(y.aval.size, MAX_SHORT + 1) for y in outs):
            return super().mark_failures(hlo, info, outs)
        call = lambda y: KernelCall(hlo, [y, info], [y.aval], info.aval.ndim, {0: 0})
        mark = lambda y: call_named(call(y), "weft_or_nan", {})[0]
        return [mark(y) if y.aval.dtype.kind in NAN else y for y in outs]


KERNEL_COMPLETION = KernelCompletion()


@memoize
def complete_by_kernels(prim: MatrixPrimitive) -> MatrixPrimitive:
    """Return a primitive whose lowering completes the results of LAPACK by kernels."""
    twin = object.__new__(type(prim))  # `copy` would give the primitive itself
    vars(twin).update(vars(prim), completion=KERNEL_COMPLETION)
    return twin


def choose_factors(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Complete short results of LAPACK by kernels."""
    short = any(is_below(v.aval.size, MAX_SHORT + 1) for v in eqn.outvars)
    if not scope.target.kernels or not short or not all(a.aval.size for a in eqn.invars):
        return None
    outs, settings = [v.aval.strong() for v in eqn.outvars], tuple(eqn.params.items())
    return lambda *xs: apply_formula(lower_completed, xs, outs, eqn.primitive, *settings)


def lower_completed(hlo: Any, *args: Any) -> list:
    """Write an operation of LAPACK whose results kernels complete."""
    values = [x for x in args if not isinstance(x, MatrixPrimitive | tuple)]
    prim, *settings = args[len(values) :]
    return complete_by_kernels(prim).lower(hlo, *values, **dict(settings))


def are_of_kernels(x: ShapedArray, scope: Scope) -> bool:
    """Return True if kernels factorize these matrices, or solve with them, quicker than LAPACK."""
    known = type(x.size) is int and x.size > 0
    return scope.target.kernels and known and x.dtype in (np.float32, np.float64)


def choose_cholesky(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Factorize by the kernel."""
    out = eqn.outvars[0].aval.strong()
    if not are_of_kernels(out, scope) or is_small(out):
        return choose_factors(eqn, scope)
    return lambda x: call_kernel("weft_cholesky", [x], [out])


def choose_qr(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Factorize by the kernel, if columns are not exchanged."""
    x, outs = eqn.invars[0].aval, [v.aval.strong() for v in eqn.outvars]
    if not are_of_kernels(x, scope) or eqn.params["pivoting"]:
        return choose_factors(eqn, scope)
    return lambda x: call_kernel("weft_qr", [x], outs)


def choose_lu(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Factorize by the kernel, else find the order of rows by a kernel."""
    prim = eqn.primitive
    assert isinstance(prim, Lu)
    outs = [v.aval.strong() for v in eqn.outvars]
    out, pivots, order = outs
    if are_of_kernels(out, scope) and not is_small(out):
        return lambda x: call_kernel("weft_lu", [x], outs)
    if not scope.target.kernels or not out.size or not is_short_order(pivots, order):
        return None

    def factorize(x: Any) -> list:
        y, swaps = apply_formula(lower_factors, [x], [out, pivots], prim, out, pivots)
        size = order.shape[-1]
        return [y, swaps, *lu_pivots_to_permutation_p.apply(swaps, permutation_size=size)]

    return factorize


def lower_factors(hlo: Any, x: Any, prim: Lu, *outs: ShapedArray) -> list:
    """Write the LU factors of matrices and the pivots."""
    return prim.write_factors(hlo, outs, x)


def is_short_order(pivots: ShapedArray, order: ShapedArray) -> bool:
    """Return True if so few rows are exchanged that a kernel is quicker."""
    work = ShapedArray((*order.shape, pivots.shape[-1]), order.dtype)
    return is_below(work.size, MAX_SHORT + 1)


def choose_permutation(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Exchange the rows by the kernel."""
    pivots, order = eqn.invars[0].aval, eqn.outvars[0].aval.strong()
    if not scope.target.kernels or not pivots.size or not is_short_order(pivots, order):
        return None
    return lambda pivots: call_kernel("weft_permutation", [pivots], [order])


def choose_triangular_solve(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Solve by the kernel; half precision in float32."""
    a, b = (x.aval for x in eqn.invars)
    params = eqn.params
    left = params["left_side"]
    wide = F32 if dtypes.itemsize_bits(b.dtype) == 16 else b.dtype
    taken = are_of_kernels(a.update(dtype=wide), scope) and not is_small(a)
    if not taken or type(b.size) is not int or not b.size:
        return None
    how = {"left": left, "lower": params["lower"], "transpose": params["transpose_a"]}
    how["unit"] = params["unit_diagonal"]
    out = ShapedArray(b.shape, wide)

    def solve(a: Any, b: Any) -> list:
        (y,) = call_kernel("weft_trsm", [convert(a, wide), convert(b, wide)], [out], how)
        return [convert(y, eqn.outvars[0].aval.dtype)]

    return solve
