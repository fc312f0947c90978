"""Maxima, minima, their indices, products, and sums that skip NaN, over axes.

The kernel of extrema is in native/extremum.cc. The kernel of sums also computes products, and sums
that skip NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Atom, Eqn
from weft.cpu.folds import choose_fold
from weft.cpu.formula import apply_formula
from weft.cpu.rewriting import Replacement
from weft.cpu.scope import Scope
from weft.cpu.sums import (
    SumKind,
    are_few,
    are_near,
    call_reduction,
    call_sum,
    reduce_beside,
    reduced_type,
    sizes_around,
)
from weft.primitives.layout import convert, reduce_sum
from weft.primitives.reduction import (
    MAX_EXACT,
    MAX_PAIRS,
    ArgExtremum,
    Extremum,
    Reduction,
    SumOfNumbers,
    lower_reduce,
    write_keeping_nan,
)
from weft.util import is_below

UINT32 = np.dtype(np.uint32)
MIN_ROW = 64  # elements of a row: for shorter rows, XLA's loops are as quick as the kernel
MIN_SIZE = 1024  # elements: for fewer, the call of a kernel does not pay
MIN_LANES = 16  # elements behind the axes: for fewer, but more than one, the kernel has no vectors


def choose_extremum(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Find extrema by the kernel, or in a loop that keeps NaN, which XLA's library loses."""
    (atom,), prim = eqn.invars, cast(Extremum, eqn.primitive)
    x, axes, nan = atom.aval, eqn.params["axes"], eqn.params.get("nan", "keep")
    call = functools.partial(call_extremum, axes=axes, largest=prim.largest, dtype=x.dtype)
    is_float = dtypes.is_float(x.dtype)
    over_devices = scope.target.devices and not scope.target.each_device
    if dtypes.is_complex(x.dtype) and over_devices:
        return lambda x: [prim.reduce_parts(x, axes)]
    if is_float and nan == "skip":
        if can_call_extremum(x, axes, scope):
            return functools.partial(call, skips_nan=True)
        return lambda x: [prim.skip_nan(x, axes)]
    if is_float and nan == "keep" and over_devices:
        out = reduced_type(x, axes)
        return lambda x: apply_formula(write_over_devices, [x], [out], prim, axes)
    if can_call_of_integers(atom, axes, scope):
        return call
    if found := choose_fold(eqn, prim.combine, prim.identity(x.dtype), scope):
        return found
    slow = nan == "keep" or (not scope.target.devices and are_few(x, axes))
    if not is_float or not slow or is_below(x.size, MIN_SIZE):
        exact = dtypes.is_bool(x.dtype) or dtypes.is_integer(x.dtype)
        return reduce_beside(atom, axes, prim, True, scope) if exact else None
    if not axes:
        return None
    if not are_near(axes):
        last, first = split_axes(axes)
        reduce = lambda x, axes: prim.apply(x, axes=axes, nan=nan)[0]
        return lambda x: [reduce(reduce(x, last), first)]
    if nan == "keep" and can_call_extremum(x, axes, scope):
        return call
    out = reduced_type(x, axes)
    return lambda x: apply_formula(write_extremum, [x], [out], prim, axes)


def split_axes(axes: tuple[int, ...]) -> tuple[tuple, tuple]:
    """Return the axes at the end that are next to each other, and the axes before them.

    The former are reduced first, since a kernel takes only axes that are next to each other.
    """
    gap = max((i for i in range(1, len(axes)) if axes[i] > axes[i - 1] + 1), default=0)
    return axes[gap:], axes[:gap]


def write_extremum(hlo: Any, x: Any, prim: Extremum, axes: Sequence[int]) -> list:
    """Write an extremum over axes that is NaN where an element is."""
    init = hlo.constant(prim.identity(x.aval.dtype), ShapedArray((), x.aval.dtype))
    return lower_reduce(hlo, [x], [init], axes, write_keeping_nan(hlo, prim.combine))


def write_over_devices(hlo: Any, x: Any, prim: Extremum, axes: Sequence[int]) -> list:
    """Write an extremum over axes that XLA may split over devices; NaN where an element is."""
    return [prim.lower_by_order(hlo, x, lambda x: Reduction.lower(prim, hlo, x, axes=axes)[0])]


def can_call_extremum(x: ShapedArray, axes: Sequence[int], scope: Scope, short: int = 0) -> bool:
    """Return True if the kernel of an extremum is quicker: axes side by side, no few lanes.

    `short` is the least number of elements along the axes, if there are many behind them.
    """
    if not axes or type(x.size) is not int or x.size < MIN_SIZE or not scope.target.kernels:
        return False
    _, n, lanes = sizes_around(x.shape, axes)
    wide = dtypes.itemsize_bits(x.dtype) >= (16 if dtypes.is_float(x.dtype) else 8)
    if not wide or not are_near(axes):
        return False
    return (lanes >= MIN_LANES and n >= (short or MIN_ROW)) or (lanes == 1 and n >= MIN_ROW)


def can_call_of_integers(atom: Atom, axes: Sequence[int], scope: Scope) -> bool:
    """Return True if the kernel is quicker for integers: for rows that are an argument.

    All else XLA compares in the loop that computes it.
    """
    x = atom.aval
    fits = dtypes.is_integer(x.dtype) and x.dtype != UINT32 and can_call_extremum(x, axes, scope)
    return fits and sizes_around(x.shape, axes)[2] == 1 and scope.is_argument(atom)


def call_extremum(
    x: Any, axes: Sequence[int], largest: bool, dtype: np.dtype, skips_nan: bool = False
) -> list:
    """Call the kernel for axes next to each other: the extremum, or as uint32 its index.

    It is for floats of 16 bits at least, and, for indices, of bool and integers of 8 bits at least.
    """
    out = ShapedArray(reduced_type(x.aval, axes).shape, dtype)
    attributes = {"largest": largest, "skips_nan": skips_nan}
    return call_reduction("weft_extremum", [x], sizes_around(x.shape, axes), out, attributes)


def choose_arg_extremum(eqn: Eqn, scope: Scope) -> Callable[..., list] | None:
    """Find the index of an extremum by the kernel, or, along many elements, by two reductions."""
    x, prim, params = eqn.invars[0].aval, cast(ArgExtremum, eqn.primitive), eqn.params
    axes, dtype = params["axes"], params["index_dtype"]
    if can_call_extremum(x, axes, scope, short=1):
        return lambda x: [convert(y, dtype) for y in call_extremum(x, axes, prim.largest, UINT32)]
    if is_below(x.shape[axes[0]], MAX_PAIRS + 1):
        return None
    return lambda x: [prim.find_by_value(x, **params)]


def choose_reduced_product(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Multiply by the kernel of sums, else in rows side by side."""
    (atom,), axes = eqn.invars, eqn.params["axes"]
    call = call_sum(atom, axes, reduced_type(atom.aval, axes), SumKind.PRODUCT, scope)
    deeply = not dtypes.is_complex(atom.aval.dtype)
    return call or reduce_beside(atom, axes, eqn.primitive, deeply, scope)


def choose_sum_of_numbers(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Add or count the elements that are not NaN, by the kernel of sums, else by operations."""
    (atom,), prim = eqn.invars, cast(SumOfNumbers, eqn.primitive)
    x, axes, counts = atom.aval, eqn.params["axes"], eqn.params["counts"]
    last, first = split_axes(axes)
    if first and is_below(x.size, MAX_EXACT):
        return lambda x: [reduce_sum(prim.apply(x, axes=last, counts=counts)[0], first)]
    kind = SumKind.COUNT if counts else SumKind.FINITE
    call = call_sum(atom, axes, reduced_type(x, axes), kind, scope)
    return call or (lambda x: [prim.add(x, axes, counts)])
