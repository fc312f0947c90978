"""Programs from functions, and their pruning: names of `jax.interpreters.partial_eval`.

Rules that split programs are not here: a primitive that holds programs is a class of weft's own,
with a method `partial_eval`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from weft.core.primitive import Primitive
from weft.core.stage import StagedTracer as DynamicJaxprTracer
from weft.core.stage import StageTrace
from weft.core.stage import close_jaxpr as convert_constvars_jaxpr
from weft.core.trace import current
from weft.interpreters.defining import Rules
from weft.passes.dce import dce_jaxpr as pruned
from weft.transforms.linearize import run_partial
from weft.util import list_public, partition
from weft.watch.leaks import stage_function

__all__ = [
    "DynamicJaxprTracer", "JaxprTracer", "PartialVal", "Val", "abstract_eval_fun", "close_jaxpr",
    "convert_constvars_jaxpr", "dce_jaxpr", "dce_jaxpr_call_rule", "dce_jaxpr_closed_call_rule",
    "dce_jaxpr_consts", "dce_rules", "move_binders_to_back", "partial_eval_jaxpr_nounits",
    "prune_closed_jaxpr_outputs", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
]  # fmt: skip
__dir__ = list_public(__name__)

JaxprTracer = DynamicJaxprTracer
Val = Any


class PartialVal(NamedTuple):
    """A value that is known, `(None, value)`, or only its type, `(aval, None)`."""

    aval: ShapedArray | None
    const: Any

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A value that is known."""
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        """A value with only a known type."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Return True if there is a value."""
        return self.aval is None

    def get_known(self) -> Any:
        """The value, or None."""
        return self.const

    def get_aval(self) -> ShapedArray:
        """The type."""
        return typeof(self.const) if self.aval is None else self.aval


def trace_to_jaxpr_nounits(
    fun: Callable, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list]:
    """Compute everything that the known arguments determine, and stage the rest.

    The jaxpr takes the unknown arguments; its constvars are known values, which are returned last.
    It returns the unknown results. With `instantiate` all results, or the marked ones, count as
    unknown.
    """
    later = StageTrace(current.trace, "partial evaluation")
    args = [x if aval is None else later.new_arg(aval) for aval, x in pvals]
    outs = run_partial(lambda: fun(*args), later)
    forced = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
    written = [
        f or (isinstance(x, DynamicJaxprTracer) and x.owner is later)
        for x, f in zip(outs, forced, strict=True)
    ]
    jaxpr, consts = later.finish([x for x, w in zip(outs, written, strict=True) if w])
    unknown = lambda x: PartialVal.unknown(typeof(x))
    results = [unknown(x) if w else PartialVal.known(x) for x, w in zip(outs, written, strict=True)]
    return jaxpr, results, consts


def trace_to_jaxpr_dynamic(
    fun: Callable, in_avals: Sequence[ShapedArray]
) -> tuple[Jaxpr, list[ShapedArray], list]:
    """The jaxpr of a function of values that returns a list; its result types and consts."""
    jaxpr, consts = stage_function(fun, in_avals)
    return jaxpr, jaxpr.out_avals, consts


def abstract_eval_fun(fun: Callable, *avals: ShapedArray, **params: Any) -> list[ShapedArray]:
    """The result types of a function of values that returns a list."""
    return trace_to_jaxpr_dynamic(lambda *xs: fun(*xs, **params), avals)[1]


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """A jaxpr without constvars, as a ClosedJaxpr."""
    return ClosedJaxpr(jaxpr, ())


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Return `jaxpr` for only the used results, and marks of the inputs that it takes.

    With `instantiate` it takes all inputs, or the marked ones.
    """
    if instantiate is False or instantiate is True:
        out, used = pruned(jaxpr, used_outputs, instantiate)
        return out, [instantiate or u for u in used]
    out, used = pruned(jaxpr, used_outputs, True)
    kept = [u or i for u, i in zip(used, instantiate, strict=True)]
    return out.replace(invars=[v for v, k in zip(out.invars, kept, strict=True) if k]), kept


def _dce_method(prim: Primitive, rule: Callable) -> Callable:
    return lambda eqn, live: rule(list(live), eqn)[1]


def _dce_rule(prim: Primitive, method: Callable) -> Callable:
    def rule(used_outputs: Sequence[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
        new = method(eqn, list(used_outputs))
        taken = [] if new is None else list(new.invars)
        return [any(a is b for b in taken) for a in eqn.invars], new

    return rule


dce_rules = Rules("dce", _dce_method, _dce_rule)


def dce_jaxpr_call_rule(used_outputs: Sequence[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    """The rule for `dce_rules` of a primitive that calls a program, its parameter `call_jaxpr`.

    The equation has the results that are used, and takes what those need.
    """
    if not any(used_outputs):
        return [False] * len(eqn.invars), None
    called = eqn.params["call_jaxpr"]
    program = called.jaxpr if isinstance(called, ClosedJaxpr) else called
    new, used = dce_jaxpr(program, used_outputs)
    if isinstance(called, ClosedJaxpr):
        new = ClosedJaxpr(new, called.consts)
    return used, eqn.replace(
        invars=[a for a, u in zip(eqn.invars, used, strict=True) if u],
        outvars=[v for v, u in zip(eqn.outvars, used_outputs, strict=True) if u],
        params={**eqn.params, "call_jaxpr": new},
    )


dce_jaxpr_closed_call_rule = dce_jaxpr_call_rule


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Do as `dce_jaxpr` does, for a jaxpr with constvars; also return the used ones."""
    n = len(jaxpr.constvars)
    new, used = dce_jaxpr(convert_constvars_jaxpr(jaxpr), used_outputs, instantiate)
    kept = sum(used[:n])
    opened = new.replace(constvars=new.invars[:kept], invars=new.invars[kept:])
    return opened, used[:n], used[n:]


def prune_closed_jaxpr_outputs(jaxpr: ClosedJaxpr, outs_used: Sequence[bool]) -> ClosedJaxpr:
    """Return a program for only the used results, with the same inputs."""
    return ClosedJaxpr(dce_jaxpr(jaxpr.jaxpr, outs_used, True)[0], jaxpr.consts)


def move_binders_to_back(jaxpr: ClosedJaxpr, to_move: Sequence[bool]) -> ClosedJaxpr:
    """A program whose marked inputs come last."""
    front, back = partition(to_move, jaxpr.jaxpr.invars)
    return ClosedJaxpr(jaxpr.jaxpr.replace(invars=[*front, *back]), jaxpr.consts)


def partial_eval_jaxpr_nounits(
    jaxpr: ClosedJaxpr, unknowns: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[ShapedArray]]:
    """Split a program in two: the part that the known inputs determine, and the rest.

    Returns the first program, whose results are the known ones and then the residuals; the second
    program, which takes the residuals last; marks of the unknown results; and the residuals' types.
    """
    avals = jaxpr.jaxpr.in_avals
    told: dict[str, Any] = {}

    def first(*known: Any) -> list:
        given = iter(known)
        pvals = [
            PartialVal.unknown(a) if u else PartialVal.known(next(given))
            for u, a in zip(unknowns, avals, strict=True)
        ]
        later, outs, residuals = trace_to_jaxpr_nounits(jaxpr.__call__, pvals, instantiate)
        told.update(later=later, outs=outs, residuals=[typeof(r) for r in residuals])
        return [*(p.get_known() for p in outs if p.is_known()), *residuals]

    known_avals = [a for u, a in zip(unknowns, avals, strict=True) if not u]
    before, consts = stage_function(first, known_avals)
    later = convert_constvars_jaxpr(told["later"])
    n = len(told["residuals"])
    moved = later.replace(invars=[*later.invars[n:], *later.invars[:n]])
    unknown = [not p.is_known() for p in told["outs"]]
    return ClosedJaxpr(before, consts), close_jaxpr(moved), unknown, told["residuals"]
