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
from weft.util import list_public
from weft.watch.leaks import stage_function

__all__ = [
    "DynamicJaxprTracer", "JaxprTracer", "PartialVal", "abstract_eval_fun", "close_jaxpr",
    "convert_constvars_jaxpr", "dce_jaxpr", "dce_rules", "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]  # fmt: skip
__dir__ = list_public(__name__)

JaxprTracer = DynamicJaxprTracer


class PartialVal(NamedTuple):
    """A value that is known, `(None, value)`, or of which the type is, `(aval, None)`."""

    aval: ShapedArray | None
    const: Any

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A value that is known."""
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        """A value of which the type alone is known."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Whether there is a value."""
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
    """Do what the known arguments determine, and write down the rest.

    The jaxpr takes the unknown arguments, and as constvars values that are known, which come last
    in what is returned; it gives the unknown results. With `instantiate` all results are, or those
    marked.
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
    """`jaxpr` for the used results alone, and which of its inputs it still takes.

    With `instantiate` it takes all of them, or those marked.
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
