"""Write loops and branches of programs as loops and branches in C.

The carry of a loop is in variables and in buffers that each iteration updates in place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.core.jaxpr import Eqn
from weft.export.c.emit import Array, Scalar
from weft.export.c.index import Index
from weft.export.c.kinds import KINDS, write_number
from weft.export.c.nodes import Statement, Switch, While
from weft.export.c.writer import Writer, is_same_place


def write_for(w: Writer, eqn: Eqn) -> list[Any]:
    """Write a loop over the rows of arrays: consts, a carry and rows in, a carry and rows out."""
    attrs, (body,) = dict(eqn.params["attrs"]), eqn.params["regions"]
    (n, m), (trips, reverse) = attrs["counts"], attrs["trips"]
    consts = [w.settle(a) for a in eqn.invars[:n]]
    rows = [w.settle(a) for a in eqn.invars[n + m :]]
    state = start_carry(w, eqn, range(n, n + m))
    stacks = [w.choose_target(eqn, v) for v in eqn.outvars[m:]]
    with w.loop(trips, reverse) as i:
        if trips:
            args = [*consts, *state, *[w.row(x, i) for x in rows]]
            places = [row_at(y, i) for y in stacks]
            run_body(w, body, args, state, places)
    return [*state, *stacks]


def row_at(y: Array, i: Index) -> Array:
    """Return the memory of row `i` of an array."""
    return Array(y.buffer, y.offset.add(i, math.prod(y.shape[1:])), y.shape[1:])


def write_while(w: Writer, eqn: Eqn) -> list[Any]:
    """Write a loop that goes on while a program gives True."""
    condition, body = eqn.params["regions"]
    n, m = dict(eqn.params["attrs"])["counts"]
    given = [w.settle(a) for a in eqn.invars[:n]]
    consts = [w.settle(a) for a in eqn.invars[n : n + m]]
    state = start_carry(w, eqn, range(n + m, len(eqn.invars)))
    head: list[Statement] = []
    inner: list[Statement] = []
    with w.within(head):
        (test,) = w.write_program(condition, [*given, *state])
        with w.within(inner):
            run_body(w, body, [*consts, *state], state, [])
    w.write(While(head, test.name, inner))
    return state


def start_carry(w: Writer, eqn: Eqn, places: range) -> list[Any]:
    """Return what a loop carries, which has the values of some operands: arrays and variables."""
    state: list[Any] = []
    for k, var in zip(places, eqn.outvars, strict=False):
        atom, kind = eqn.invars[k], KINDS[var.aval.dtype]
        if var.aval.shape:
            state.append(w.take(eqn, atom, var))
        else:
            name = w.let(kind.computed, "{0}", [w.find(atom).name], mutable=True)
            state.append(Scalar(name, kind))
    return state


def run_body(
    w: Writer, body: Any, args: Sequence[Any], state: Sequence[Any], places: Sequence[Array]
) -> None:
    """Write one iteration: the results of the body are the new state, and rows in memory."""
    memory = [s if isinstance(s, Array) else None for s in state]
    owned = [s.buffer for s in memory if s is not None]
    outs = w.write_program(body, args, [*memory, *places], owned)
    carry, rows = outs[: len(state)], outs[len(state) :]
    for y, to in zip(rows, places, strict=True):
        if not is_same_place(y, to):
            w.fill(to, y)
    held = {s.buffer for s in state if isinstance(s, Array)}
    moved = []
    for x, to in zip(carry, state, strict=True):
        if isinstance(to, Array) and not is_same_place(x, to):
            others = x.buffers & (held if isinstance(x, Array) else held | {to.buffer})
            moved.append((to, w.copy_value(x) if others else x))
    for to, x in moved:
        w.fill(to, x)
    assign_variables(w, carry, state)


def assign_variables(w: Writer, values: Sequence[Any], state: Sequence[Any]) -> None:
    """Write the new values of variables, which may be old values of others."""
    pairs = [
        (x, to)
        for x, to in zip(values, state, strict=True)
        if isinstance(to, Scalar) and x.name != to.name
    ]
    changing = {to.name for _, to in pairs}
    names = [
        w.let(x.kind.computed, "{0}", [x.name], mutable=True) if x.name in changing else x.name
        for x, _ in pairs
    ]
    for name, (_, to) in zip(names, pairs, strict=True):
        w.assign(to.name, name)


def write_switch(w: Writer, eqn: Eqn) -> list[Any]:
    """Write a choice between programs: by a number, the last one for any other number."""
    branches = eqn.params["regions"]
    index = w.find(eqn.invars[0])
    args = [w.settle(a) for a in eqn.invars[1:]]
    outs: list[Any] = []
    for v in eqn.outvars:
        kind = KINDS[v.aval.dtype]
        if v.aval.shape:
            outs.append(w.choose_target(eqn, v))
        else:
            name = w.let(kind.computed, write_number(0, kind), mutable=True)
            outs.append(Scalar(name, kind))
    cases: list[list[Statement]] = []
    for branch in branches:
        block: list[Statement] = []
        with w.within(block):
            memory = [y if isinstance(y, Array) else None for y in outs]
            found = w.write_program(branch, args, memory)
            for x, to in zip(found, outs, strict=True):
                if isinstance(to, Array) and not is_same_place(x, to):
                    w.fill(to, x)
            assign_variables(w, found, outs)
        cases.append(block)
    w.write(Switch(index.name, cases))
    return outs


CONTROL = {"for": write_for, "while": write_while, "switch": write_switch}
