"""Find the lines of operations with a nested program: scans and checkpoints.

A scan has a line along an axis if the body is independent along this axis in every iteration. From
each axis of an input or a result of the body, the axis is followed through the body in both
directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from weft.control.remat import Checkpoint
from weft.control.scan import Scan, bind_scan, count_groups
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Elements
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, memo_jaxpr, variables_in
from weft.core.source import inner_source
from weft.core.trace import current
from weft.footprint.lines import LAST, Line, Total, find_lines
from weft.passes.inline import inline_calls
from weft.primitives.constant import stage_whole
from weft.primitives.elementwise import add_p, eq, select, sub_p
from weft.primitives.layout import broadcast_in_dim, convert, zeros

ADDITIONS = (add_p, sub_p)
SUM = Total(None, 0)
INDEX_TYPE = ShapedArray((), np.dtype(np.int32))


def find_every_line(eqn: Eqn) -> list[Line]:
    """Return the lines of an equation, with or without a nested program."""
    if isinstance(eqn.primitive, Scan):
        return list_held_lines(eqn, *scan_rows(eqn))
    if isinstance(eqn.primitive, Checkpoint):
        return list_held_lines(eqn, [0] * len(eqn.invars), [0] * len(eqn.outvars), 0, 0)
    return find_lines(eqn)


def scan_rows(eqn: Eqn) -> tuple[list[int], list[int], int, int]:
    """Return the leading axes of a scan's operands and results, and its carry.

    Returns:
      For each operand, the number of axes in front of the axes of the body's input: 1 for xs and 0
      for others. Then the same for each result. Then the number of constants, and the number of
      carried values.
    """
    n, m = count_groups(eqn.params)
    ins = [int(i >= n + m) for i in range(len(eqn.invars))]
    return ins, [int(i >= m) for i in range(len(eqn.outvars))], n, m


def list_held_lines(
    eqn: Eqn, before: Sequence[int], after: Sequence[int], first: int, carried: int
) -> list[Line]:
    """Return the lines of an equation with a nested program.

    Args:
      eqn: the equation.
      before: for each operand, the number of axes in front of the axes of the program's input. It
        is 1 for the xs of a scan.
      after: the same for each result.
      first: the position of the first carried input.
      carried: the number of carried inputs.
    """
    body = flatten_body(eqn.params["jaxpr"])
    if body.effects:
        return []
    ties = [(body.invars[first + i], body.outvars[i]) for i in range(carried)]
    found, seen = [], set()
    for v in [*variables_in(body.outvars), *body.invars]:
        for axis, size in enumerate(v.aval.shape):
            flow = follow_axis(body, ties, v, axis) if size > 1 else None
            if flow is None:
                continue
            shifted = flow.shifted(body.invars, before)
            operands = tuple([k if type(k) is int else None for k in shifted])
            results = flow.shifted(body.outvars, after)
            summed = tuple([flow.axes.get(v) == SUM for v, _ in ties])
            key = operands, tuple(map(str, results))
            if key not in seen and any(x is not None for x in (*operands, *results)):
                seen.add(key)
                ends = tuple([LAST if x is None else x for x in results])
                run = HeldRun(body, flow, first, summed)
                found.append(Line(operands, ends, run=run))
    return found


@memo_jaxpr
def flatten_body(jaxpr: Jaxpr) -> Any:
    """Return a program with calls of jitted functions inlined."""
    return inline_calls(jaxpr, True)


class Flow:
    """The axis of each value of a program; `SUM` for values that are sums over the slices."""

    def __init__(self, axes: dict[Var, Any], lines: dict[Eqn, Line]):
        self.axes = axes
        self.lines = lines

    def shifted(self, atoms: Sequence[Any], before: Sequence[int]) -> tuple:
        """Return the axes of operands or results of the equation with the nested program."""
        found = []
        for a, n in zip(atoms, before, strict=True):
            axis = None if type(a) is Literal else self.axes.get(a)
            found.append(axis + n if type(axis) is int else axis)
        return tuple(found)


def follow_axis(body: Jaxpr, ties: Sequence, v: Var, axis: int) -> Flow | None:
    """Return the axes that correspond to an axis of a value.

    Return None if an operation is not independent along the axis.
    """
    axes: dict[Var, Any] = {v: axis}
    lines: dict[Eqn, Line] = {}
    while True:
        count = len(axes), len(lines)
        for pair in ties:
            known = {axes[x] for x in pair if type(x) is not Literal and x in axes}
            if len(known) > 1:
                return None
            axes.update((x, k) for k in known for x in pair if type(x) is not Literal)
        for eqn in body.eqns:
            if eqn not in lines and any(type(axes.get(x)) is int for x in list_variables(eqn)):
                line = next(matching_lines(eqn, axes), None)
                if line is None:
                    return None
                lines[eqn] = line
                for a, k in zip((*eqn.invars, *eqn.outvars), (*line.operands, *line.results)):
                    if type(k) is int and type(a) is not Literal:
                        axes[a] = k
                    elif isinstance(k, Total):
                        if k.combine is not None:
                            return None
                        axes[a] = SUM
        if count == (len(axes), len(lines)):
            break
    return follow_sums(body, ties, axes, lines)


def list_variables(eqn: Eqn) -> list[Var]:
    """Return the variables that an equation reads and makes."""
    return [*variables_in(eqn.invars), *eqn.outvars]


def matching_lines(eqn: Eqn, axes: dict[Var, Any]) -> Iterator[Line]:
    """Yield the lines of an equation that agree with the known axes."""
    for line in find_every_line(eqn):
        pairs = zip((*eqn.invars, *eqn.outvars), (*line.operands, *line.results), strict=True)
        if all(type(a) is Literal or axes.get(a, k) == k for a, k in pairs):
            yield line


def follow_sums(
    body: Jaxpr, ties: Sequence, axes: dict[Var, Any], lines: dict[Eqn, Line]
) -> Flow | None:
    """Return the flow, completed with the values that are sums over slices.

    Return None if an operation that is not linear reads such a sum, or if a line needs all of an
    operand that is computed in slices.
    """
    carried = dict(ties)
    for _ in range(len(ties) + 1):  # each iteration finds more carried sums
        known, more = dict(axes), dict[Var, Any]()
        for eqn in body.eqns:
            reads = variables_in(eqn.invars)
            sums = [known.get(x) == SUM for x in reads]
            if eqn in lines:
                line = lines[eqn]
                pairs = zip(eqn.invars, line.operands, strict=True)
                if any(sums) or any(
                    type(a) is not Literal and known.get(a) != axis for a, axis in pairs
                ):
                    return None
            elif any(type(known.get(x)) is int for x in list_variables(eqn)):
                return None
            elif any(sums):
                if len(reads) < len(eqn.invars) or not is_linear(eqn):
                    return None
                others = [x for x in reads if known.get(x) != SUM]
                if not all(x in carried and x not in known for x in others):
                    return None
                more.update(dict.fromkeys(others, SUM))
                known.update(dict.fromkeys(eqn.outvars, SUM))
        if not more:
            same = all(mark(known, v) == mark(known, out) for v, out in ties)
            return Flow(known, lines) if same else None
        axes = {**axes, **more}
    return None


def mark(axes: dict[Var, Any], atom: Any) -> Any:
    """Return the axis of an atom; None if it is not computed in slices."""
    return None if type(atom) is Literal else axes.get(atom)


def is_linear(eqn: Eqn) -> bool:
    """Return True if an operation adds, subtracts, or moves the elements of one operand."""
    if eqn.primitive in ADDITIONS:
        return True
    return len(eqn.invars) == 1 and eqn.primitive.elements is Elements.MOVED


class HeldRun:
    """Runs an equation with a nested program on slices: `Line.run`.

    A carried value may be a sum over slices. It starts with the operand in the first slice, and
    with 0 in the other slices.
    """

    def __init__(self, body: Jaxpr, flow: Flow, first: int, summed: Sequence[bool]):
        self.body = body
        self.flow = flow
        self.first = first
        self.summed = summed

    def __call__(self, eqn: Eqn, ins: Sequence[Any], start: Any, size: int) -> list:
        ins, n = list(ins), self.first
        for i, is_sum in enumerate(self.summed):
            if is_sum:
                x = ins[n + i]
                is_first = broadcast_in_dim(eq(start, np.int32(0)), typeof(x).shape, ())
                ins[n + i] = select(is_first, x, zeros(typeof(x)))
        jaxpr = self._slice_body([typeof(x) for x in ins], eqn, size)
        if not isinstance(eqn.primitive, Scan):
            return eqn.primitive.apply(start, *ins, **{**eqn.params, "jaxpr": jaxpr})
        m = count_groups(eqn.params)[1]
        given = [start, *ins[:n]], ins[n : n + m], ins[n + m :]
        return bind_scan(jaxpr, *given, eqn.params)

    def _slice_body(self, avals: Sequence[Any], eqn: Eqn, size: int) -> Jaxpr:
        """Return the nested program on slices. Its first input is the start of the slice."""
        rows = scan_rows(eqn)[0] if isinstance(eqn.primitive, Scan) else [0] * len(avals)
        types = [a.update(shape=a.shape[k:]) for a, k in zip(avals, rows, strict=True)]
        body = self.body

        def run(start: Any, *args: Any) -> list:
            env: dict[Any, Any] = dict(zip(body.invars, args, strict=True))
            read = lambda a: a.read() if type(a) is Literal else env[a]
            around = current.source
            try:
                for each in body.eqns:
                    current.source = inner_source(each.source)
                    line, given = self.flow.lines.get(each), [read(a) for a in each.invars]
                    if line is None:
                        outs = each.primitive.apply(*given, **each.params)
                    else:
                        outs = line.apply(each, given, start, size)
                    env.update(zip(each.outvars, outs, strict=True))
            finally:
                current.source = around
            return [convert(read(a), a.aval.dtype, a.aval.weak_type) for a in body.outvars]

        return stage_whole(run, [INDEX_TYPE, *types], body.name)
