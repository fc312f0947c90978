"""Walks a program and writes each equation: by a table, by its bodies, or as its lowering does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from weft.core.aval import ShapedArray
from weft.core.facts import Runs
from weft.core.jaxpr import Eqn, Jaxpr, Literal, bodies_of
from weft.core.source import inner_source, source_location
from weft.export.onnx.graph import INDEX, Graph, NotInOnnx
from weft.export.onnx.kinds import BOOL, has_kind
from weft.export.onnx.operations import PRIMITIVES
from weft.export.onnx.places import flip
from weft.xla.hlo import Value


def write_program(g: Graph, jaxpr: Jaxpr, args: Sequence[Value], source: Any = None) -> list[Value]:
    """Write the equations of a closed program; its results."""
    env: dict[Any, Value] = dict(zip(jaxpr.invars, args, strict=True))
    read = lambda a: g.constant(a.val, a.aval) if type(a) is Literal else env[a]
    for eqn in jaxpr.eqns:
        where = inner_source(eqn.source) or source
        try:
            outs = write_equation(g, eqn, [read(a) for a in eqn.invars], where)
        except NotInOnnx as error:
            refuse(eqn, where, error)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(a) for a in jaxpr.outvars]


def refuse(eqn: Eqn, source: Any, why: Exception) -> NoReturn:
    """Raise the error for an equation that ONNX cannot compute."""
    name, text = eqn.primitive.name, str(why)
    within = f" ({text})" if text not in ("", name) else ""
    where = source_location(source)
    raise NotImplementedError(
        f"to_onnx: a program must be of operations that ONNX can compute; got {name}{within}"
        f"{f' at {where}' if where else ''}. Hint: compute it outside, and pass the result as an "
        "argument."
    ) from None


def write_equation(g: Graph, eqn: Eqn, ins: Sequence[Value], source: Any) -> Sequence[Value]:
    """Write an equation; its results."""
    prim, params, avals = eqn.primitive, eqn.params, [v.aval for v in eqn.outvars]
    for a in (*[v.aval for v in ins], *avals):
        if not has_kind(a.dtype):
            raise NotInOnnx(str(a))
    if prim.effect is not None:
        raise NotInOnnx("an effect")
    if avals and all(0 in a.shape for a in avals):
        return [g.constant(0, a.strong()) for a in avals]
    bodies = bodies_of(eqn)
    if bodies and bodies[0].jaxpr is not None:
        body = bodies[0]
        if body.runs in (Runs.ONCE, Runs.AGAIN):
            return write_program(g, body.jaxpr, [ins[k] for k in body.operands], source)
        if body.runs is Runs.BRANCH:
            return write_branches(g, bodies, ins, avals, source)
        if body.runs is Runs.LOOP:
            return write_loop(g, bodies, ins, avals, source)
    write = PRIMITIVES.get(prim.name)
    try:
        if write is not None:
            names = write(g, ins, avals, params)
            return [Value(n, a) for n, a in zip(names, avals, strict=True)]
        return prim.lower(g, *ins, **params)
    except NotImplementedError as error:
        raise NotInOnnx(str(error).partition(":")[0]) from None


def run(g: Graph, jaxpr: Jaxpr, args: Sequence[Value], source: Any) -> list[str]:
    """Write a program; the tensors of its results."""
    return [g.use(v) for v in write_program(g, jaxpr, args, source)]


def values(names: Sequence[str], avals: Sequence[ShapedArray]) -> list[Value]:
    """Return tensors as values."""
    return [Value(n, a) for n, a in zip(names, avals, strict=True)]


def write_branches(
    g: Graph, bodies: Sequence[Any], ins: Sequence[Value], outs: Sequence[Any], source: Any
) -> list[Value]:
    """Write a choice between programs as nodes If."""
    branches = [lambda b=b: run(g, b.jaxpr, [ins[k] for k in b.operands], source) for b in bodies]
    return g.write_case(ins[0], branches, outs)


def write_loop(
    g: Graph, bodies: Sequence[Any], ins: Sequence[Value], outs: Sequence[Any], source: Any
) -> list[Value]:
    """Write a loop: Scan over rows of arrays, Loop for a number of iterations or a condition."""
    body = bodies[0]
    args, n = [ins[k] for k in body.operands], len(body.carry)
    consts, state = args[: body.carry.start], args[body.carry.start : body.carry.stop]
    avals, carried = body.jaxpr.in_avals, outs[:n]
    inner = avals[body.carry.stop :]
    results = body.jaxpr.out_avals
    write = lambda *names: run(
        g, body.jaxpr, [*consts, *values(names, avals[len(consts) :])], source
    )
    condition = next((b for b in bodies if b.runs is Runs.CONDITION), None)
    if condition is not None:
        given = [ins[k] for k in condition.operands[: -n or None]]
        test = lambda *names: run(g, condition.jaxpr, [*given, *values(names, carried)], source)
        return g.write_while(carried, [g.use(v) for v in state], test, write)
    if body.turns is None:
        raise NotInOnnx("a loop of unknown length")
    rows, backward = args[body.carry.stop :], int(body.turns.step < 0)
    starts, stacked = [g.use(v) for v in state], len(outs) - n
    if rows:
        graph = g.subgraph("body", [*carried, *inner], write, results)
        made = g.node(
            "Scan", *starts, *[g.use(v) for v in rows], outs=len(outs), body=graph,
            num_scan_inputs=len(rows), scan_input_directions=[backward] * len(rows),
            scan_output_directions=[backward] * stacked if stacked else None,
        )  # fmt: skip
        return values([made] if len(outs) == 1 else made, outs)
    flag = ShapedArray((), BOOL)
    step = lambda turn, go, *names: [go, *write(*names)]
    graph = g.subgraph("body", [INDEX, flag, *carried], step, [flag, *results])
    count = g.tensor(len(body.turns))
    made = g.node("Loop", count, g.tensor(True, BOOL), *starts, outs=len(outs), body=graph)
    made = [made] if len(outs) == 1 else made
    made = [*made[:n], *[flip(g, y, [0]) if backward else y for y in made[n:]]]
    return values(made, outs)
