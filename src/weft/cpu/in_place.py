"""Loops that update an array of the carry in place, by columns, rows and elements of the array.

An elimination subtracts the product of a column and a row. XLA:CPU reads both from the array in the
loop over its elements. So it must write the result to other memory, and copies it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Var
from weft.cpu.broadcasts import is_repeated
from weft.cpu.buffers import MIN_BYTES, count_bytes, find_maker, is_plain_body
from weft.cpu.elements import computes_by_element, is_fused
from weft.cpu.rewriting import Replacement, read_inputs, read_results, restage
from weft.cpu.scope import Scope
from weft.cpu.updates import follow_operands, is_update
from weft.primitives.tokens import OptimizationBarrier, optimization_barrier
from weft.util import JAXLIB

MAX_PART = 8  # the parts of an array have at most its elements by this number


def choose_barriers(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Compute parts of an array before the array is written.

    XLA 0.12 does not fuse over a barrier; XLA 0.10 removes barriers before it fuses.
    """
    body, params = eqn.params["jaxpr"], eqn.params
    if not scope.target.kernels or JAXLIB < (0, 12) or not is_plain_body(body):
        return None
    parts = find_parts(body, params["num_consts"], params["num_carry"])
    if not parts:
        return None

    def write(step: Eqn, values: list) -> Sequence[Any]:
        outs = step.primitive.apply(*values, **step.params)
        return optimization_barrier(outs) if step.outvars[0] in parts else outs

    start, finish = partial(read_inputs, body), partial(read_results, body)
    made = restage(body, body.in_avals, start, write, finish)
    return lambda *xs: eqn.primitive.apply(*xs, **{**params, "jaxpr": made})


def find_parts(body: Jaxpr, first: int, count: int) -> set[Atom]:
    """Return the values of a step that are to be computed before the array that they are part of.

    They are small values, computed from an array of the carry, that the new array is computed from.
    If small windows are written into the new array, it is one of them before that.
    """
    maker, found = find_maker(body), set[Atom]()
    for x, y in zip(body.invars[first:], body.outvars[:count], strict=False):
        if count_bytes(x) >= MIN_BYTES:
            found |= find_operands(x, y, maker)
    return found


def find_operands(x: Var, y: Atom, maker: Callable) -> set[Atom]:
    """Return the small operands of an array that are computed from the array that it replaces.

    There are none if the array is computed from all elements of the old one at other places.
    """
    base, before, small = y, set[Atom](), set[Atom]()
    while (made := maker(base)) is not None:
        window = find_written(made)
        if window is None or not is_small(window, x):
            break
        base = made.invars[0]
        before.add(base)
        small |= {window} if reads_array(x, window, maker) else set()
    by_element = lambda e: computes_by_element(e) and e.outvars[0].aval.shape == x.aval.shape
    steps = follow_operands(base, maker, by_element)
    operands = {a for e in steps for a in e.invars if type(a) is Var}
    for a in operands - {v for e in steps for v in e.outvars} - {x}:
        repeats = maker(a)
        source = repeats.invars[0] if repeats is not None and is_repeated(repeats) else a
        if reads_array(x, source, maker):
            if not is_small(source, x):
                return set()
            small.add(source)
    return small | before if x in operands and small else set()


def is_small(a: Atom, x: Var) -> bool:
    """Return True if a value is a small part of an array, by its size."""
    size = a.aval.size
    return type(size) is int and size * MAX_PART <= x.aval.size


def reads_array(x: Var, y: Atom, maker: Callable) -> bool:
    """Return True if XLA would read an array where it computes another value."""
    fused = lambda e: is_fused(e) and not isinstance(e.primitive, OptimizationBarrier)
    return any(x in e.invars for e in follow_operands(y, maker, fused))


def find_written(eqn: Eqn) -> Atom | None:
    """Return the elements that an equation writes into an array; None if it writes none."""
    if is_update(eqn):
        return eqn.invars[1]
    return eqn.invars[2] if eqn.primitive.form is Form.SCATTER else None
