"""Reductions over windows, and the transposes of maxima, as CPUs compute them quickest, and right.

The kernel is in native/pool.cc.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn
from weft.cpu.calls import call_kernel
from weft.cpu.formula import apply_formula
from weft.cpu.kernels import are_floats
from weft.cpu.scope import Scope
from weft.primitives.elementwise import Comparison, add, eq, select
from weft.primitives.layout import fill, literal, reshape
from weft.primitives.reduction import write_keeping_nan
from weft.primitives.slicing import pad
from weft.primitives.tokens import optimization_barrier
from weft.primitives.window import (
    WindowExtremum,
    WindowSum,
    dilated_size,
    fold_windows,
    lower_windows,
    window_elements,
    worst_value,
)

# Up to this many elements of a window are combined as slices. XLA:CPU makes one loop of them, twice
# as fast as its own.
MAX_SLICES_OF_WINDOW = 16
# Up to this many places in a window, adding them one by one is 1.3 to 20 times faster.
MAX_SCATTER_PLACES = 32
MAX_PLANE = 2**31  # elements of the last two axes, whose places the kernel counts in 32 bits


def choose_windows(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Reduce what a barrier sets apart.

    XLA:CPU folds a padding that it sees into the windows, and then gives wrong sums where an axis
    has size 1. A barrier hides what computes the operands.
    """
    prim: Any = eqn.primitive
    count = len(eqn.invars) // 2 if eqn.primitive.multiple_results else len(eqn.invars)

    def reduce(*xs: Any) -> list:
        given, params = xs[:count], eqn.params
        if xs[count:] or isinstance(prim, WindowSum | WindowExtremum):
            inits = xs[count:] or [literal(prim.identity(x.dtype), x.dtype) for x in xs]
            given, params = spread_elements(given, inits, params)
        return prim.apply(*optimization_barrier([*given]), *xs[count:], **params)

    return reduce


def spread_elements(xs: Sequence[Any], inits: Sequence[Any], params: dict) -> tuple:
    """Write out the padding and base dilation of operands, if there is a dilation.

    XLA:CPU ignores the dilation of 4,096 elements and more if windows have size 1.
    """
    ones = (1,) * len(params["padding"])
    if params["base_dilation"] == ones:
        return xs, params
    spreads = zip(params["padding"], params["base_dilation"], strict=True)
    edges = [(low, high, base - 1) for (low, high), base in spreads]
    padded = [pad(x, init, edges) for x, init in zip(xs, inits, strict=True)]
    return padded, {**params, "padding": ((0, 0),) * len(ones), "base_dilation": ones}


def choose_window_extremum(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Compare floats as slices, else by a body that keeps NaN."""
    prim, params, x = eqn.primitive, eqn.params, eqn.invars[0].aval
    assert isinstance(prim, WindowExtremum)
    if not dtypes.is_float(x.dtype):
        return choose_windows(eqn, scope)
    init = literal(prim.identity(x.dtype), x.dtype)
    if math.prod(params["window_dimensions"]) > MAX_SLICES_OF_WINDOW:

        def reduce(x: Any) -> list:
            spread, settings = spread_elements([x], [init], params)
            outs, rest = [v.aval for v in eqn.outvars], (prim, *settings.items())
            return apply_formula(lower_window_extremum, spread, outs, *rest)

        return reduce
    combine = lambda total, elements: prim.combine.apply(*total, *elements)
    return lambda x: fold_windows(combine, [x], [init], params)


def lower_window_extremum(
    hlo: Any, x: Any, prim: WindowExtremum, *settings: tuple[str, Any]
) -> list:
    """Write the maximum or minimum of each window, set apart as in `choose_windows`."""
    cell = ShapedArray((), x.aval.dtype)
    init = hlo.constant(prim.identity(cell.dtype), cell)
    apart = hlo.op("stablehlo.optimization_barrier", [x], [x.aval])
    return lower_windows(hlo, apart, [init], write_keeping_nan(hlo, prim.combine), dict(settings))


def choose_select_and_scatter(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Add by the kernel, or a place of the windows at a time."""
    source, operand = (a.aval for a in eqn.invars)
    params = dict(eqn.params)
    select_prim = params.pop("select_prim")
    if scope.target.kernels and are_planes(source, operand, params["window_dimensions"]):
        how = {**params, "least": select_prim.direction == "LE"}
        return lambda source, x: [call_select_scatter(source, x, **how)]
    if math.prod(params["window_dimensions"]) > MAX_SCATTER_PLACES:
        return None
    return lambda source, x: [scatter_by_places(source, x, select_prim, params)]


def are_planes(source: ShapedArray, operand: ShapedArray, windows: Sequence[int]) -> bool:
    """Return True if windows are of the last two axes, of several elements along the last one."""
    *others, _, width = (1, *windows)
    known = {*others} <= {1} and width > 1 and are_floats(source, operand)
    return known and math.prod(operand.shape[-2:]) < MAX_PLANE


def call_select_scatter(
    source: Any, operand: Any, *, least: bool, padding: Sequence[tuple[int, int]], **params: Any
) -> Any:
    """Add each element of `source` to where its window has the extremum, by the kernel."""
    last = lambda values: (1, *values)[-2:]

    def planes(x: Any) -> Any:
        size = last(x.shape)
        return reshape(x, (x.size // math.prod(size), *size))

    names = {"widths": "window_dimensions", "steps": "window_strides"}
    how = {key: np.array(last(params[name]), np.int64) for key, name in names.items()}
    how["low"] = np.array((0, *(low for low, _ in padding))[-2:], np.int64)
    x, given = planes(operand), planes(source)
    (y,) = call_kernel("weft_select_scatter", [given, x], [typeof(x)], {"least": least, **how})
    return reshape(y, operand.shape)


def scatter_by_places(source: Any, operand: Any, select_prim: Comparison, params: dict) -> Any:
    """Add each element of `source` by whole arrays, one for each place in a window."""
    dtype = typeof(operand).dtype
    ones = (1,) * len(params["padding"])
    undilated = {"base_dilation": ones, "window_dilation": ones, **params}
    worst = literal(worst_value(select_prim, dtype), dtype)
    best, *rest = window_elements(operand, worst, undilated)
    chosen = fill(typeof(best).shape, 0, np.dtype(np.int32))
    for k, x in enumerate(rest, 1):
        (keep,) = select_prim.apply(best, x)
        best, chosen = select(keep, best, x), select(keep, chosen, k)
    total = fill(typeof(operand).shape, 0, dtype)
    for k, place in enumerate(itertools.product(*map(range, params["window_dimensions"]))):
        rows = zip(
            place,
            typeof(operand).shape,
            typeof(source).shape,
            params["window_strides"],
            params["padding"],
            strict=True,
        )
        config = [
            (i - low, n - (i - low) - dilated_size(m, stride), stride - 1)
            for i, n, m, stride, (low, _) in rows
        ]
        total = add(total, pad(select(eq(chosen, k), source, 0), 0, config))
    return total
