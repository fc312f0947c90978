"""Linearization: compute the known part, and stage the part that depends on the tangents.

`PartialTrace` is the one mechanism: `linearize` runs it below forward mode on a function, and
`split_jaxpr` on a program. transpose.py walks the staged program backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.core.aval import typeof
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, held_jaxprs, memo_jaxpr
from weft.core.primitive import Primitive, Zero
from weft.core.stage import StagedTracer, StageTrace, close_jaxpr, run_staged
from weft.core.trace import Trace, current, run_once
from weft.primitives.constant import write_consts
from weft.transforms.jvp import jvp
from weft.util import partition


class PartialTrace(Trace):
    """Performs now what can be performed now; writes down what touches `later`'s tracers."""

    __slots__ = ("later", "programs", "replays", "targets")

    def __init__(self, parent: Trace, later: StageTrace):
        self.parent = parent
        self.live = True
        self.later = later
        self.programs = parent.programs
        self.replays = parent.replays
        self.targets = parent.targets and parent.targets[0] is parent and (parent, later)

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        later = self.later
        for x in args:
            if type(x) is StagedTracer and x.owner is later:
                break
        else:
            try:
                current.trace = self.parent
                return self.parent.process(prim, args, params)  # type: ignore[union-attr]
            finally:
                current.trace = self
        if prim.partial_eval is not None:
            unknown = [type(x) is StagedTracer and x.owner is later for x in args]
            if False in unknown:
                return prim.partial_eval(self, unknown, args, params)
        return later.process(prim, args, params)


def run_partial(fun: Callable[[], Any], later: StageTrace) -> Any:
    """Call `fun` with unknown values staged to `later` and the rest computed under this trace."""
    return run_once(PartialTrace(current.trace, later), fun, ())


def linearize(
    fun: Callable, primals: Sequence[Any], moved: Sequence[bool] | None = None
) -> tuple[list, Jaxpr, list, list[bool]]:
    """Compute the results of a flat function, and its linear part as a jaxpr.

    Unlike `weft.linearize`, the function takes no pytrees. The results and the residuals are
    computed at once; only operations on tangents are staged.

    Args:
      fun: a function of values that returns a list of values.
      primals: a sequence of the arguments; arrays of any shape and dtype.
      moved: a sequence of bools that marks the arguments to differentiate in. None, the default,
        marks all.

    Returns:
      A tuple of four: the list of the results; a `Jaxpr` from the tangents of the marked arguments
      to the tangents of the results that move; the list of the residuals, which are the values of
      the constvars of the jaxpr; and a list of bools that marks the results that move. A result
      moves if it depends on marked arguments.

    >>> from weft.interpreters import ad
    >>> outs, jaxpr, residuals, moves = ad.linearize(lambda x: [x * x, x + 1.0], [3.0])
    >>> print([float(y) for y in outs], moves)
    [9.0, 4.0] [True, True]
    >>> print([float(t) for t in weft.core.eval_jaxpr(jaxpr, residuals, 1.0)])
    [6.0, 1.0]
    """
    moved = [True] * len(primals) if moved is None else moved
    later = StageTrace(current.trace, "linear")
    tangents = [
        later.new_arg(typeof(x).to_tangent()) if m else Zero(typeof(x).to_tangent())
        for x, m in zip(primals, moved, strict=True)
    ]
    outs, dots = run_partial(lambda: jvp(fun, primals, tangents), later)
    out_moved = [type(t) is not Zero for t in dots]
    jaxpr, residuals = later.finish([t for t in dots if type(t) is not Zero])
    return outs, jaxpr, residuals, out_moved


@memo_jaxpr
def split_jaxpr(
    jaxpr: Jaxpr, unknown: tuple[bool, ...], force: tuple[bool, ...] = ()
) -> tuple[Jaxpr, Jaxpr, list[bool], list[int | None]]:
    """Split a closed jaxpr in two: the part that the known inputs determine, and the rest.

    Returns (early, late, marks of unknown outputs, sources of residuals). `early` maps the known
    inputs to the known outputs and then new residuals; `late` maps all residuals, then the unknown
    inputs, to the unknown outputs. A residual that is a known input does not pass through `early`:
    its source is its index among the known inputs, and None for a new residual. `force` makes
    outputs unknown, so that `late` returns them. A value made of literals only is not a residual.
    """
    early, later = StageTrace(current.trace), StageTrace(current.trace)
    args = [
        (later if u else early).new_arg(a) for u, a in zip(unknown, jaxpr.in_avals, strict=True)
    ]

    def run_early() -> tuple:
        outs = run_partial(lambda: jaxpr(*args), later)
        forced = force or (False,) * len(outs)
        out_unknown = [
            f or (type(x) is StagedTracer and x.owner is later)
            for x, f in zip(outs, forced, strict=True)
        ]
        known_outs, unknown_outs = partition(out_unknown, outs)
        return known_outs, out_unknown, *write_fills(*later.finish(unknown_outs), early.eqns)

    known_outs, out_unknown, late, residuals = run_staged(early, run_early, ())
    position = {id(x.variable): i for i, x in enumerate(a for a in args if a.owner is early)}
    sources = [position.get(id(r.variable)) if type(r) is StagedTracer else None for r in residuals]
    new = [r for r, s in zip(residuals, sources, strict=True) if s is None]
    early_jaxpr = write_consts(*early.finish([*known_outs, *new]))
    return early_jaxpr, close_jaxpr(late), out_unknown, sources


def write_fills(jaxpr: Jaxpr, consts: Sequence[Any], eqns: Sequence[Eqn]) -> tuple[Jaxpr, list]:
    """Return a program and its consts, except for consts that `eqns` make of literals, like zeros.

    The program makes such consts itself, which costs less than storing them.
    """
    fills = {
        e.outvars[0]: e
        for e in eqns
        if len(e.outvars) == 1 and e.primitive.effect is None
        if e.invars and all([type(a) is Literal for a in e.invars])
    }
    made, constvars, values = [], [], []
    for var, x in zip(jaxpr.constvars, consts, strict=True):
        fill = fills.get(x.variable) if type(x) is StagedTracer else None
        if fill is not None and not held_jaxprs(fill):
            made.append(fill.replace(outvars=[var]))
        else:
            constvars.append(var)
            values.append(x)
    return jaxpr.replace(constvars=constvars, eqns=[*made, *jaxpr.eqns]), values


def select_residuals(sources: Sequence[int | None], known: Sequence[Any], new: Any) -> list:
    """The residuals of `split_jaxpr`: known inputs where they are, else the next new one."""
    new = iter(new)
    return [next(new) if s is None else known[s] for s in sources]


class SavingRule(Primitive):
    """A family: primitives that hold programs, of whose values a policy may save some."""

    def save(self, params: dict, policy: Callable) -> tuple[dict, dict] | None:
        """Return two parameters for `saving_jaxpr`'s two programs; None if nothing is saved."""
        raise NotImplementedError


@memo_jaxpr
def saving_jaxpr(jaxpr: Jaxpr, policy: Callable) -> tuple[Jaxpr, Jaxpr, int]:
    """Return a closed jaxpr that also returns the values to save, and one that takes them.

    The first maps the inputs to the outputs and then the saved values, the second the inputs and
    then the saved values to the outputs; also returned: the number of saved values. Results of an
    equation are saved if `policy(primitive, *avals, **params)` is true, also within the programs of
    equations with a `SavingRule`.
    """
    early, late, saved = [], [], []
    for eqn in jaxpr.eqns:
        prim = eqn.primitive
        inner = prim.save(eqn.params, policy) if isinstance(prim, SavingRule) else None
        if inner is not None:
            more, less = inner
            avals = prim.abstract_eval(*[a.aval for a in eqn.invars], **more)
            within = [Var(a) for a in avals[len(eqn.outvars) :]]
            early.append(eqn.replace(params=more, outvars=[*eqn.outvars, *within]))
            late.append(eqn.replace(params=less, invars=[*eqn.invars, *within]))
            saved += within
            continue
        early.append(eqn)
        avals = [a.aval for a in eqn.invars]
        if not isinstance(prim, SavingRule) and policy(prim, *avals, **eqn.params):
            saved += eqn.outvars
        else:
            late.append(eqn)
    return (
        jaxpr.replace(outvars=[*jaxpr.outvars, *saved], eqns=early),
        jaxpr.replace(invars=[*jaxpr.invars, *saved], eqns=late),
        len(saved),
    )
