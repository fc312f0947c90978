"""Forward mode: each value carries its directional derivative.

A trace and the functions that run flat functions and jaxprs under it. Reverse mode is linearize.py
and transpose.py; pytrees are api/grad.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr, memo_jaxpr
from weft.core.primitive import Primitive, Zero, tangent_zero, tangents_of
from weft.core.source import JVP, describe_maker
from weft.core.stage import StagedTracer, has_tracked_axes
from weft.core.trace import Trace, Tracer, current, pin_type, run_once, typed_value, walk_up
from weft.dtypes import NUMBERS
from weft.options import config, x64_cell
from weft.primitives.constant import stage_whole
from weft.primitives.layout import instantiate
from weft.primitives.replay import apply_rule
from weft.util import allocate
from weft.watch.leaks import check_leaks

# With this many nested derivatives or more, shared operations are looked up. Lookups take longer
# than differentiating the few operations that two derivatives repeat.
MIN_SHARING = 3


class JVPTracer(Tracer):
    """A value of forward-mode differentiation: a primal value and its tangent.

    `jvp` passes such values to the function. Their type is the type of the primal.

    Attributes:
      primal: the value; an array, or a tracer of a surrounding transformation.
      tangent: the tangent, of the shape of the primal.

    >>> from weft.interpreters import ad
    >>> def f(x):
    ...     print(isinstance(x, ad.JVPTracer), x.primal, x.tangent)
    ...     return 2 * x
    >>> _ = weft.jvp(f, (3.0,), (1.0,))
    True 3.0 1.0
    """

    __slots__ = ("primal", "source", "tangent")

    source: Any  # set where no equation says where the value was made
    inner = property(lambda self: self.primal)

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any):
        self.owner = trace
        self.primal = primal
        self.tangent = tangent
        aval = getattr(primal, "aval", None)  # as `typeof`, without a call in most cases
        self.aval = aval if type(aval) is ShapedArray else typeof(primal)

    def concrete(self, error: type[Exception], op: str, hint: str) -> Any:
        if isinstance(self.primal, Tracer):
            return self.primal.concrete(error, op, hint)
        return self.primal

    def own_origin(self) -> str:
        if hasattr(self, "source"):
            return describe_maker(self.source, "an operation")
        made = ""
        if type(self.tangent) is StagedTracer:
            made = self.tangent.owner.maker(self.tangent.variable)
        return made or "from an argument of a differentiated function"

    def __repr__(self) -> str:
        return f"{super().__repr__()} of {self.primal!r}"


class JVPTrace(Trace):
    """The trace of forward-mode differentiation. It carries tangents along with values.

    Attributes:
      parent: the trace under which the derivatives are computed.
      live: True until the differentiated function has returned.

    >>> from weft.interpreters import ad
    >>> def f(x):
    ...     print(isinstance(x._trace, ad.JVPTrace))
    ...     return 2 * x
    >>> _ = weft.jvp(f, (3.0,), (1.0,))
    True
    """

    __slots__ = ("into", "programs", "replays", "tracked", "x64")

    def __init__(self, parent: Trace):
        self.parent = parent
        self.programs = parent.programs
        self.replays = parent.replays
        self.live = True
        self.tracked = has_tracked_axes()
        self.x64 = x64_cell.value
        self.into = parent.targets

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        primals = []
        tangents = []
        types: list[ShapedArray | None] = []
        moved = False
        for x in args:
            if type(x) is JVPTracer and x.owner is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                types.append(x.aval)
                moved = True
            else:
                primals.append(x)
                tangents.append(None)
                types.append(None)
        around = current.source
        try:
            current.trace = self.parent
            if not moved:
                return self.parent.process(prim, primals, params)  # type: ignore[union-attr]
            source = current.source = around or current.capture()  # one for all the rule writes
            outs, dots = self.apply_rule(prim, primals, tangents, types, params)
        finally:
            current.trace = self
            current.source = around
        unwritten = self.parent.parent is None  # type: ignore[union-attr]
        if len(outs) == 1 and not unwritten:
            (x,), (t,) = outs, dots
            if type(t) is Zero:
                return outs
            moving = allocate(JVPTracer)  # without a call of `__init__`, as in `StageTrace.process`
            moving.owner = self
            moving.aval = x.aval if type(x) is StagedTracer else typeof(x)
            moving.primal = x
            moving.tangent = t
            return [moving]
        results = []
        for x, t in zip(outs, dots):
            if type(t) is not Zero:
                x = JVPTracer(self, x, t)
                if unwritten:
                    x.source = source
            results.append(x)
        return results

    def apply_rule(
        self, prim: Primitive, primals: list, tangents: list, types: list, params: dict
    ) -> tuple:
        """Apply an operation under the parent; return its results and their tangents, or Zero.

        An operand that does not move has None in `tangents` and in `types`, the types of the
        others. This is the one place where the trace uses a rule: a trace that applies rules in
        another way overrides it.
        """
        switched = x64_cell.value is not self.x64
        if switched or None in types:
            for i, a in enumerate(types):
                if a is None:
                    tangents[i] = tangent_zero(primals[i])
                elif switched:
                    primals[i] = typed_value(primals[i], a)
                    tangents[i] = typed_value(tangents[i], a.to_tangent())
        xs = [*primals, *tangents]
        found = apply_rule(run_jvp, prim, params, xs, len(primals), self.into)
        if switched:
            found = list(map(pin_type, found))
        n = len(found) // 2
        outs, tangents = found[:n], found[n:]
        if self.tracked:
            tangents = [vary_tangent(x, t) for x, t in zip(outs, tangents, strict=True)]
        return outs, tangents


def run_jvp(prim: Primitive, params: dict, primals: list, tangents: list) -> list:
    """The results of an operation and then their tangents, by its rule."""
    outs, dots = prim.jvp(primals, tangents, **params)
    return [*outs, *dots]


class SharingTrace(JVPTrace):
    """Forward mode that differentiates equal operations once, for derivatives of derivatives.

    A rule writes operations that others wrote before: sin and cos each need both again. Under `d`
    traces they become 2^d operations, but each trace sees few that differ from one another.
    """

    __slots__ = ("made",)

    def __init__(self, parent: Trace):
        super().__init__(parent)
        # the results of each operation, and its operands, whose ids must stay theirs
        self.made: dict[tuple, tuple[Any, list]] = {}

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        if not prim.memoize_type or prim.effect is not None:
            return super().process(prim, args, params)
        operands = [repr(x) if type(x) in NUMBERS else id(x) for x in args]
        key = (prim, x64_cell.value, *operands, *params.items())
        try:
            found = self.made.get(key)
        except TypeError:  # parameters without a hash
            return super().process(prim, args, params)
        if found is None:
            found = self.made[key] = args, super().process(prim, args, params)
        return found[1]


def is_nested(least: int) -> bool:
    """Return True if at least `least` derivatives are being computed around this point."""
    if getattr(current.trace, "depth", 0) < least:
        return False
    return sum(isinstance(trace, JVPTrace) for trace in walk_up(current.trace)) >= least


def vary_tangent(x: Any, t: Any) -> Any:
    """A tangent that varies over the axes of a mesh over which its primal does."""
    varying = typeof(x).varying
    if type(t) is Zero or varying is None or typeof(t).varying is varying:
        return t
    return varying.cast(current.trace, t)


def jvp(
    fun: Callable, primals: Any, tangents: Any, trace: JVPTrace | None = None
) -> tuple[list, list]:
    """Compute the results of a flat function and their tangents.

    Unlike `weft.jvp`, the function takes no pytrees, and tangents that are zero cost nothing.

    Args:
      fun: a function of values that returns a list of values.
      primals: a sequence of the arguments; arrays of any shape and dtype.
      tangents: a sequence of tangents, one for each argument; an array of the shape of the
        argument, or a `Zero`.
      trace: a new `JVPTrace` under the current trace, for a caller that applies rules in another
        way. None, the default, makes one.

    Returns:
      A pair of lists: the results, and their tangents. A tangent is a `Zero` if the result does not
      depend on arguments with tangents.

    >>> from weft.interpreters import ad
    >>> fun = lambda x, y: [x * y, y]
    >>> (xy, y), (t, u) = ad.jvp(fun, [2.0, 3.0], [1.0, ad.Zero(weft.typeof(3.0))])
    >>> print(xy, t, u)
    6.0 3.0 Zero(f32[])
    """
    if trace is None:
        trace = (SharingTrace if is_nested(MIN_SHARING) else JVPTrace)(current.trace)
    args = [
        x if type(t) is Zero else JVPTracer(trace, x, t)
        for x, t in zip(primals, tangents, strict=True)
    ]
    results = run_once(trace, fun, args, JVP)
    outs, dots = [], []
    for x in results:
        if type(x) is JVPTracer and x.owner is trace:
            outs.append(x.primal)
            dots.append(x.tangent)
        else:
            outs.append(x)
            dots.append(Zero(typeof(x).to_tangent()))
    if config.check_tracer_leaks:
        args = []
        results = []
        x = None
        check_leaks(trace, fun)
    return outs, dots


@memo_jaxpr
def jvp_jaxpr(
    jaxpr: Jaxpr, moved: tuple[bool, ...], force: tuple[bool, ...] = ()
) -> tuple[Jaxpr, list[bool]]:
    """Return the forward-mode derivative of a jaxpr as a jaxpr.

    Rules of primitives that hold programs use it to differentiate the program once. `moved` and
    `force` must be passed by position.

    Args:
      jaxpr: a `Jaxpr` without constvars.
      moved: a tuple of bools, one for each input. It marks the inputs that have tangents.
      force: a tuple of bools, one for each result. It marks the results whose tangents are returned
        even if they are zero. The empty tuple, the default, marks none.

    Returns:
      A pair of a `Jaxpr` and a list of bools. The inputs of the jaxpr are the inputs of the given
      one and then the tangents of the marked inputs. Its results are the results of the given one
      and then the tangents that are not `Zero`. The bools mark the results that have tangents.

    >>> from weft.interpreters import ad
    >>> jaxpr = weft.make_jaxpr(lambda x, y: (x * y, y))(1.0, 2.0).jaxpr
    >>> derivative, has_tangent = ad.jvp_jaxpr(jaxpr, (True, False))
    >>> print(derivative)
    { lambda ; a:f32[] b:f32[] c:f32[]. let
        d:f32[] = mul a b
        e:f32[] = mul c b
      in (d, b, e) }
    >>> has_tangent
    [True, False]
    """
    out_moved: list[bool] = []
    forced = force or (False,) * len(jaxpr.outvars)

    def fun(*args: Any) -> list:
        primals = args[: len(moved)]
        outs, dots = jvp(jaxpr, primals, tangents_of(primals, args[len(moved) :], moved))
        dots = [instantiate(t) if f else t for t, f in zip(dots, forced, strict=True)]
        out_moved[:] = [type(t) is not Zero for t in dots]
        return [*outs, *[t for t in dots if type(t) is not Zero]]

    tangent_avals = [a.to_tangent() for a, m in zip(jaxpr.in_avals, moved, strict=True) if m]
    return stage_whole(fun, [*jaxpr.in_avals, *tangent_avals], jaxpr.name), out_moved
