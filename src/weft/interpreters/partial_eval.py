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
    """A value that is known, or only the type of a value that is not known.

    Args:
      aval: the type, a `ShapedArray`, if the value is not known; None if it is known.
      const: the value, if it is known; None if it is not known.

    >>> from weft.interpreters import partial_eval as pe
    >>> pe.PartialVal.known(2.0).get_known()
    2.0
    >>> x = pe.PartialVal.unknown(weft.typeof(2.0))
    >>> x.is_known(), x.get_aval()
    (False, ShapedArray(float32[], weak_type=True))
    """

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

    Args:
      fun: a function of values that returns a list of values.
      pvals: a sequence of the arguments, each a `PartialVal`.
      instantiate: the results that the jaxpr returns even if they are known. A sequence of bools,
        one for each result, or a bool for all. The default is False.

    Returns:
      A tuple of three: a `Jaxpr` from the unknown arguments to the unknown results; a list with a
      `PartialVal` for each result; and a list of the values of the constvars of the jaxpr. Scalars
      may be written into the jaxpr instead.

    >>> from weft.interpreters import partial_eval as pe
    >>> x = jnp.ones(2)
    >>> known, unknown = pe.PartialVal.known(x), pe.PartialVal.unknown(weft.typeof(x))
    >>> fun = lambda x, y: [x + 1, (x + 1) * y]
    >>> jaxpr, results, consts = pe.trace_to_jaxpr_nounits(fun, [known, unknown])
    >>> print(jaxpr)
    { lambda a:f32[2]; b:f32[2]. let c:f32[2] = mul a b in (c,) }
    >>> [p.is_known() for p in results], consts
    ([True, False], [Array([2., 2.], dtype=float32)])
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
    """Trace a flat function at the given types.

    Args:
      fun: a function of values that returns a list of values.
      in_avals: a sequence of the types of the arguments, each a `ShapedArray`.

    Returns:
      A tuple of three: the `Jaxpr`; a list of the types of the results; and a list of the values of
      the constvars.

    >>> from weft.interpreters import partial_eval as pe
    >>> jaxpr, out_avals, consts = pe.trace_to_jaxpr_dynamic(
    ...     lambda x: [jnp.sin(x)], [weft.typeof(jnp.ones(3))])
    >>> print(jaxpr, out_avals, consts)
    { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) } [ShapedArray(float32[3])] []
    """
    jaxpr, consts = stage_function(fun, in_avals)
    return jaxpr, jaxpr.out_avals, consts


def abstract_eval_fun(fun: Callable, *avals: ShapedArray, **params: Any) -> list[ShapedArray]:
    """Return the types of the results of a flat function. No values are computed.

    Args:
      fun: a function `fun(*values, **params)` that returns a list of values.
      *avals: the types of the arguments, each a `ShapedArray`.
      **params: keyword arguments of the function.

    Returns:
      A list of types, one for each result.

    >>> from weft.interpreters import partial_eval as pe
    >>> pe.abstract_eval_fun(lambda x, n: [x[:n]], weft.typeof(jnp.ones(3)), n=2)
    [ShapedArray(float32[2])]
    """
    return trace_to_jaxpr_dynamic(lambda *xs: fun(*xs, **params), avals)[1]


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """Return a jaxpr without constvars as a ClosedJaxpr.

    Args:
      jaxpr: a `Jaxpr`.

    Returns:
      A `ClosedJaxpr` with no consts.

    Raises:
      ShapeError: the jaxpr has constvars.

    >>> from weft.interpreters import partial_eval as pe
    >>> jaxpr = weft.make_jaxpr(lambda x: x + 1.0)(1.0).jaxpr
    >>> [y] = pe.close_jaxpr(jaxpr)(2.0)
    >>> print(y)
    3.0
    """
    return ClosedJaxpr(jaxpr, ())


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Remove the equations of a jaxpr that the used results do not need.

    Args:
      jaxpr: a `Jaxpr` without constvars.
      used_outputs: a sequence of bools, one for each result, that marks the results to keep.
      instantiate: the inputs to keep even if they are not needed. A sequence of bools, one for each
        input, or a bool for all. The default is False.

    Returns:
      A pair of a `Jaxpr` with only the used results and the kept inputs, and a list of bools that
      marks the kept inputs.

    >>> from weft.interpreters import partial_eval as pe
    >>> jaxpr = weft.make_jaxpr(lambda x, y: (jnp.sin(x), x * y))(1.0, 2.0).jaxpr
    >>> print(*pe.dce_jaxpr(jaxpr, [True, False]))
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) } [True, False]
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
    """Remove dead code in an equation that calls a program.

    It is a rule for `dce_rules`, for primitives whose parameter `call_jaxpr` is the program.

    Args:
      used_outputs: a sequence of bools, one for each result of the equation.
      eqn: the equation.

    Returns:
      A pair. The first item is a list of bools that marks the operands that are needed. The second
      item is an equation with only these operands and the used results, or None if no result is
      used.

    >>> from weft.interpreters import partial_eval as pe
    >>> from weft.extend.core import Primitive, new_jaxpr_eqn
    >>> call_p = Primitive("my_call")
    >>> call_p.multiple_results = True
    >>> pe.dce_rules[call_p] = pe.dce_jaxpr_call_rule
    >>> called = weft.make_jaxpr(lambda x, y: (jnp.sin(x), x * y))(1.0, 2.0)
    >>> ins, outs = called.jaxpr.invars, called.jaxpr.outvars
    >>> eqn = new_jaxpr_eqn(ins, outs, call_p, {"call_jaxpr": called}, frozenset())
    >>> used, eqn = pe.dce_jaxpr_call_rule([True, False], eqn)
    >>> print(used, eqn.params["call_jaxpr"])
    [True, False] { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
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
    """Remove the equations and the constvars that the used results do not need.

    Args:
      jaxpr: a `Jaxpr`, with or without constvars.
      used_outputs: a sequence of bools, one for each result, that marks the results to keep.
      instantiate: the inputs to keep even if they are not needed. A sequence of bools, one for each
        constvar and then each input, or a bool for all. The default is False.

    Returns:
      A tuple of three: a `Jaxpr` with only the used results, the kept constvars and the kept
      inputs; a list of bools that marks the kept constvars; and a list of bools that marks the kept
      inputs.

    >>> from weft.interpreters import partial_eval as pe
    >>> table = jnp.arange(3.0)
    >>> jaxpr = weft.make_jaxpr(lambda x: (x + table, x))(1.0).jaxpr
    >>> print(*pe.dce_jaxpr_consts(jaxpr, [False, True]))
    { lambda ; a:f32[]. let  in (a,) } [False] [True]
    """
    n = len(jaxpr.constvars)
    new, used = dce_jaxpr(convert_constvars_jaxpr(jaxpr), used_outputs, instantiate)
    kept = sum(used[:n])
    opened = new.replace(constvars=new.invars[:kept], invars=new.invars[kept:])
    return opened, used[:n], used[n:]


def prune_closed_jaxpr_outputs(jaxpr: ClosedJaxpr, outs_used: Sequence[bool]) -> ClosedJaxpr:
    """Return a program with only the used results. It takes the same inputs.

    Args:
      jaxpr: a `ClosedJaxpr`.
      outs_used: a sequence of bools, one for each result, that marks the results to keep.

    Returns:
      A `ClosedJaxpr`.

    >>> from weft.interpreters import partial_eval as pe
    >>> jaxpr = weft.make_jaxpr(lambda x, y: (jnp.sin(x), x * y))(1.0, 2.0)
    >>> print(pe.prune_closed_jaxpr_outputs(jaxpr, [True, False]))
    { lambda ; a:f32[] b:f32[]. let c:f32[] = sin a in (c,) }
    """
    return ClosedJaxpr(dce_jaxpr(jaxpr.jaxpr, outs_used, True)[0], jaxpr.consts)


def move_binders_to_back(jaxpr: ClosedJaxpr, to_move: Sequence[bool]) -> ClosedJaxpr:
    """Return a program that takes some of its inputs last.

    Args:
      jaxpr: a `ClosedJaxpr`.
      to_move: a sequence of bools, one for each input, that marks the inputs to move.

    Returns:
      A `ClosedJaxpr`. The inputs that are not marked come first, then the marked ones, both in
      their order.

    >>> from weft.interpreters import partial_eval as pe
    >>> jaxpr = weft.make_jaxpr(lambda x, y: x / y)(1.0, 2.0)
    >>> [y] = pe.move_binders_to_back(jaxpr, [True, False])(2.0, 6.0)
    >>> print(y)
    3.0
    """
    front, back = partition(to_move, jaxpr.jaxpr.invars)
    return ClosedJaxpr(jaxpr.jaxpr.replace(invars=[*front, *back]), jaxpr.consts)


def partial_eval_jaxpr_nounits(
    jaxpr: ClosedJaxpr, unknowns: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[ShapedArray]]:
    """Split a program in two: the part that the known inputs determine, and the rest.

    The residuals are values of the first program that the second program needs.

    Args:
      jaxpr: a `ClosedJaxpr`.
      unknowns: a sequence of bools, one for each input, that marks the unknown inputs.
      instantiate: the results that the second program returns even if they are known. A sequence of
        bools, one for each result, or a bool for all. The default is False.

    Returns:
      A tuple of four: the first program, a `ClosedJaxpr` from the known inputs to the known results
      and then the residuals; the second program, a `ClosedJaxpr` from the unknown inputs and then
      the residuals to the unknown results; a list of bools that marks the unknown results; and a
      list of the types of the residuals.

    >>> from weft.interpreters import partial_eval as pe
    >>> jaxpr = weft.make_jaxpr(lambda x, y: (jnp.sin(x), x * y))(1.0, 2.0)
    >>> first, second, unknown, types = pe.partial_eval_jaxpr_nounits(jaxpr, [False, True])
    >>> print(first)
    { lambda ; a:f32[]. let b:f32[] = sin a in (b, a) }
    >>> print(second)
    { lambda ; a:f32[] b:f32[]. let c:f32[] = mul b a in (c,) }
    >>> print(unknown, types)
    [False, True] [ShapedArray(float32[], weak_type=True)]
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
