"""List the residuals of a program's backward pass, and the arrays in memory at its peak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.core.aval import ShapedArray
from weft.core.facts import Runs
from weft.core.jaxpr import Eqn, Jaxpr, Var, bodies_of, held_jaxprs, variables_in
from weft.explain.modules import CompiledModule, shape_bytes
from weft.explain.origins import NOWHERE, Attribution, Place, find_place, is_backward


class Residual(NamedTuple):
    """An array that a reverse pass reads and that exists before the pass starts.

    `source` is the name of the operation that makes the array, or of the argument.
    """

    aval: ShapedArray
    source: str
    made: Place
    read: Place
    is_argument: bool

    @property
    def bytes(self) -> int:
        return self.aval.nbytes


class Live(NamedTuple):
    """An array in memory at the peak."""

    type: str
    bytes: int
    source: str
    place: Place


def find_residuals(jaxpr: Jaxpr, names: Sequence[str] = ()) -> list[Residual]:
    """Return the residuals: values that a reverse pass reads and that other equations make.

    Programs inside equations are searched too. The program must have been staged with
    `locate_operations`. `names` are the names of the arguments.
    """
    makers: dict[Var, Eqn | None] = dict.fromkeys(jaxpr.invars)
    titles = dict(zip(jaxpr.invars, names, strict=False))
    fixed: set[Var] = set()  # values that depend on no argument
    found: dict[Var, Residual] = {}
    inner: list[Residual] = []
    for eqn in jaxpr.eqns:
        variables = variables_in(eqn.invars)
        if is_backward([eqn]):
            for v in variables:
                if v in makers and v not in fixed and v not in found:
                    found[v] = describe_residual(v, makers[v], eqn, titles)
            continue
        for held in held_jaxprs(eqn):
            inner += find_residuals(held)
        if fixed.issuperset(variables):
            fixed.update(eqn.outvars)
        makers.update(dict.fromkeys(eqn.outvars, eqn))
    return [*found.values(), *inner]


def describe_residual(v: Var, maker: Eqn | None, reader: Eqn, names: dict) -> Residual:
    if maker is None:
        return Residual(v.aval, names.get(v, "an argument"), NOWHERE, find_place([reader]), True)
    chain = find_maker(maker, [*maker.outvars].index(v))
    return Residual(v.aval, chain[0].primitive.name, find_place(chain), find_place([reader]), False)


def find_maker(eqn: Eqn, index: int) -> list[Eqn]:
    """Return the innermost equation that makes a result of `eqn`, then the equations around it."""
    for body in bodies_of(eqn):
        held = body.jaxpr
        if held is None or body.runs not in (Runs.ONCE, Runs.LOOP) or index >= len(held.outvars):
            continue
        for inner in held.eqns:
            for i, v in enumerate(inner.outvars):
                if v is held.outvars[index]:
                    return [*find_maker(inner, i), eqn]
    return [eqn]


def list_live(
    module: CompiledModule, attribution: Attribution, parameters: Sequence[str]
) -> list[Live]:
    """Return the arrays in memory at the peak, largest first.

    `parameters` are the names of the program's parameters.
    """
    found = []
    for size, identity in module.peak:
        if not size:
            continue
        maker = module.by_id.get(identity)
        if maker is None:
            found.append(Live("", size, "", NOWHERE))
            continue
        place, back, operation = attribution.origin(maker)
        if maker.opcode == "parameter" and maker.computation == module.entry:
            operation = dict(enumerate(parameters)).get(maker.parameter, "an argument")
            place = NOWHERE
        elif back:
            operation += " (backward)"
        kind = maker.shape.partition("{")[0]
        is_whole = shape_bytes(kind) == size and not kind.startswith("(")
        found.append(Live(kind if is_whole else "part of a tuple", size, operation, place))
    return sorted(found, key=lambda x: -x.bytes)
