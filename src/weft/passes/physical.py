"""The physical form of a program: its random keys become the words that they are made of.

A variable of an extended dtype becomes one of its `aval.physical`, with the words along a last
axis. An operation that moves keys moves their words, by its own batch rule; a program that is held
is brought to this form in turn. What has no keys stays unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.facts import Cost, Elements
from weft.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    jaxprs_in_params,
    memo_jaxpr,
)
from weft.core.primitive import Axes, Axis, Primitive
from weft.core.source import inner_source
from weft.core.stage import StagedTracer, StageTrace, run_staged
from weft.core.trace import current


def integers(xs: Sequence[int]) -> str:
    """An array attribute of StableHLO."""
    return f"array<i64: {', '.join(map(str, xs))}>"


class MoveAxisToEnd(Primitive):
    """`x` with axis `axis` last. Source: StableHLO, transpose."""

    name = "move_axis_to_end"
    elements = Elements.MOVED
    cost = Cost.FREE

    def abstract_eval(self, x, *, axis):
        return [x.update(shape=(*x.shape[:axis], *x.shape[axis + 1 :], x.shape[axis]))]

    def label_axes(self, avals, outs, *, axis):
        row = range(outs[0].ndim)
        return Axes([row], [(*row[:axis], *row[axis + 1 :], axis)])

    def element(self, i, x, *, axis):
        return [x[(*i[:axis], i[-1], *i[axis:-1])]]

    def lower(self, hlo, x, *, axis):
        order = [i for i in range(x.aval.ndim) if i != axis]
        outs = self.abstract_eval(x.aval, axis=axis)
        return hlo.op("stablehlo.transpose", [x], outs, permutation=integers([*order, axis]))


class CombineWords(Primitive):
    """Combine the results for the words of a key, along `axis`, into one result.

    `elements` says what results these are: bools that hold if all words are equal, or if any
    differs; all other results are the same for each word.
    """

    name = "combine_words"
    cost = Cost.REDUCTION

    def pretty_params(self, params):
        return {**params, "elements": params["elements"].value}

    def read_params(self, params, avals, out_avals):
        return {**params, "elements": Elements(params["elements"])}

    def abstract_eval(self, x, *, axis, elements):
        return [x.update(shape=(*x.shape[:axis], *x.shape[axis + 1 :]))]

    def label_axes(self, avals, outs, *, axis, elements):
        row = range(avals[0].ndim)
        return Axes([row], [(*row[:axis], *row[axis + 1 :])])

    def lower(self, hlo, x, *, axis, elements):
        outs = self.abstract_eval(x.aval, axis=axis, elements=elements)
        if elements not in (Elements.EQUAL, Elements.UNEQUAL):
            shape = x.aval.shape
            limits = (*shape[:axis], 1, *shape[axis + 1 :])
            first = hlo.op(
                "stablehlo.slice",
                [x],
                [x.aval.update(shape=limits)],
                start_indices=integers([0] * len(shape)),
                limit_indices=integers(limits),
                strides=integers([1] * len(shape)),
            )
            return hlo.op("stablehlo.reshape", first, outs)
        scalar = x.aval.update(shape=())
        return hlo.op(
            "stablehlo.reduce",
            [x, hlo.constant(elements is Elements.EQUAL, scalar)],
            outs,
            [hlo.scalar_block("and" if elements is Elements.EQUAL else "or", scalar)],
            dimensions=integers([axis]),
        )


move_axis_to_end_p = MoveAxisToEnd()
combine_words_p = CombineWords()


@memo_jaxpr
def has_extended(jaxpr: Jaxpr) -> bool:
    """Return True if a program, or a program that it holds, has a value of an extended dtype."""
    for var in (*jaxpr.constvars, *jaxpr.invars):
        if var.aval.physical is not var.aval:
            return True
    for eqn in jaxpr.eqns:
        for var in eqn.outvars:
            if var.aval.physical is not var.aval:
                return True
        holds = not eqn.primitive.memoize_type
        if holds and any(map(has_extended, jaxprs_in_params(eqn.params))):
            return True
    return False


def is_extended(atom: Atom) -> bool:
    """Return True if a variable is of an extended dtype."""
    return atom.aval.physical is not atom.aval


@memo_jaxpr
def physical_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program on words that a program with random keys stands for."""
    trace = StageTrace(None, jaxpr.name)
    env: dict[Any, Any] = {}

    def physical(atom: Atom) -> Any:
        if type(atom) is Literal:
            return atom
        if atom not in env:
            env[atom] = Var(atom.aval.physical) if is_extended(atom) else atom
        return env[atom]

    constvars, invars = [*map(physical, jaxpr.constvars)], [*map(physical, jaxpr.invars)]

    def write() -> None:
        for eqn in jaxpr.eqns:
            ins = [*map(physical, eqn.invars)]
            if eqn.primitive.memoize_type and any(map(is_extended, (*eqn.invars, *eqn.outvars))):
                current.source = inner_source(eqn.source)
                env.update(zip(eqn.outvars, apply_to_words(trace, eqn, ins), strict=True))
                continue
            params = {k: physical_param(x) for k, x in eqn.params.items()}
            outs = [*map(physical, eqn.outvars)]
            trace.eqns.append(eqn.replace(invars=ins, outvars=outs, params=params))

    run_staged(trace, write, ())
    outvars = [*map(physical, jaxpr.outvars)]
    return Jaxpr(constvars, invars, outvars, trace.eqns, name=jaxpr.name)


def physical_param(x: Any) -> Any:
    """A parameter of an equation, its programs in their physical form."""
    if type(x) is Jaxpr:
        return physical_jaxpr(x) if has_extended(x) else x
    if type(x) is ClosedJaxpr:
        consts = zip(x.jaxpr.constvars, x.consts, strict=True)
        words = [c.words if is_extended(v) else c for v, c in consts]
        return ClosedJaxpr(physical_param(x.jaxpr), words)
    return type(x)(map(physical_param, x)) if type(x) in (tuple, list) else x


def apply_to_words(trace: StageTrace, eqn: Eqn, ins: list[Any]) -> list[Atom]:
    """Write down what an equation does to the words of keys; its results."""
    prim = eqn.primitive
    if prim.elements is Elements.SAME_WORDS:
        return ins
    values = [x.val if type(x) is Literal else StagedTracer(trace, x.aval, x) for x in ins]
    dims = [v.aval.ndim if is_extended(v) else None for v in eqn.invars]
    size = next(x.aval.shape[-1] for x, d in zip(ins, dims, strict=True) if d is not None)
    outs, out_dims = prim.batch(Axis(size), values, dims, **eqn.params)
    for i, (v, d) in enumerate(zip(eqn.outvars, out_dims, strict=True)):
        if not is_extended(v):
            if d is not None:
                outs[i] = combine_words_p.apply(outs[i], axis=d, elements=prim.elements)[0]
        elif d != v.aval.ndim:
            outs[i] = move_axis_to_end_p.apply(outs[i], axis=d)[0]
    if trace.consts:
        raise NotImplementedError(f"{prim.name}: must not use arrays of its own on random keys.")
    return [trace.atom(y) for y in outs]
