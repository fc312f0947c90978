"""The pass that writes programs on many short rows as programs on one long row.

XLA:CPU writes a loop over the rows, and within it a loop over the elements of a row. The inner loop
is not a vector loop if the rows are short: exp of 100,000 rows of 10 is four times slower than exp
of a million elements in one row.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Eqn, Jaxpr, Var, memo_jaxpr
from weft.cpu.calls import call_kernel
from weft.cpu.elements import computes_by_element, fills_with_number
from weft.cpu.rewriting import read_inputs, read_results, restage, write_in_shape
from weft.cpu.scope import Target
from weft.primitives.layout import reshape

MAX_ROW = 64  # elements of a row; XLA writes vector loops for longer ones
MIN_ELEMENTS = 4096  # of an array; smaller ones are computed in a few microseconds either way


@memo_jaxpr
def flatten_rows(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program on rows as one on all their elements in a row.

    All arrays of the program must have one shape, whose last axis is short, and each operation must
    compute an element of the elements at the same place. Results are passed through a kernel that
    does nothing, because XLA moves any reshape into its loops, but not past the call of a kernel.
    """
    # a slice, as an array without rows has no such axis; a symbolic size answers no comparison
    has_rows = False
    for v in jaxpr.outvars:
        for n in v.aval.shape[1:][-1:]:
            has_rows = has_rows or (type(n) is int and n < MAX_ROW)
    possible = has_rows and target.kernels and not target.devices
    shape = find_row_shape(jaxpr) if possible else None
    if shape is None:
        return jaxpr
    size = math.prod(shape)
    outs = {v for v in jaxpr.outvars if type(v) is Var and v.aval.shape} - {*jaxpr.invars}

    def start(*args: Any) -> dict:
        flat = [reshape(x, (size,)) if x.shape else x for x in args]
        given.update(zip(jaxpr.invars, args, strict=True))
        return read_inputs(jaxpr, *flat)

    write = partial(write_in_shape, (size,))

    def finish(env: dict) -> list:
        env |= given
        for v in outs:
            (kept,) = call_kernel("weft_keep", [env[v]], [env[v].aval], aliases={0: 0})
            env[v] = reshape(kept, shape)
        return read_results(jaxpr, env)

    given: dict[Any, Any] = {}
    return restage(jaxpr, plain_types(jaxpr.in_avals), start, write, finish)


def plain_types(avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """Return types without what says that they are weak."""
    return [ShapedArray(a.shape, a.dtype) for a in avals]


def find_row_shape(jaxpr: Jaxpr) -> tuple[int, ...] | None:
    """Return the shape of all arrays of a program that should be flattened; None for others."""
    variables = [*jaxpr.invars, *(v for eqn in jaxpr.eqns for v in eqn.outvars)]
    shapes = {v.aval.shape for v in variables} - {()}
    if jaxpr.constvars or not jaxpr.eqns or len(shapes) != 1:
        return None
    (shape,) = shapes
    if len(shape) < 2 or {*map(type, shape)} != {int} or shape[-1] >= MAX_ROW:
        return None
    size = math.prod(shape)
    # on two cores, rows that cannot be shared evenly are better left to XLA
    if size <= MIN_ELEMENTS or size % (os.cpu_count() or 1):
        return None
    computed = {v for eqn in jaxpr.eqns for v in eqn.outvars}
    if not any(v in computed and v.aval.shape for v in jaxpr.outvars if type(v) is Var):
        return None
    return shape if all(map(can_flatten, jaxpr.eqns)) else None


def can_flatten(eqn: Eqn) -> bool:
    """Return True if an equation computes real numbers, each of those at the same place."""
    avals = [a.aval for a in (*eqn.invars, *eqn.outvars)]
    if any(dtypes.is_complex(a.dtype) for a in avals):
        return False
    return fills_with_number(eqn) or computes_by_element(eqn)
