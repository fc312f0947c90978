"""`Primitive`: an operation of the language. The class is its definition, its methods its rules.

The rules, all optional but the first two, have one calling convention (docs/design/001-house.md):

    abstract_eval(*avals, **params)          -> [aval]           the type rule; raises ShapeError
    lower(hlo, *values, **params)            -> [Value]          write StableHLO
    jvp(primals, tangents, **params)         -> outs, tangents   a tangent may be Zero, in and out
    transpose(cts, *args, **params)          -> [ct or None]     args: values, Linear where asked
    batch(axis, args, dims, **params)        -> outs, dims       dims: int or None
    impl(*args, **params)                    -> outs             run instead of compile
    staged(args, params)                     -> args, params     Python functions -> jaxprs
    partial_eval(trace, unknown, args, params) -> outs           do the known part now
    checked(trace, args, params)             -> outs             run, and say what may go wrong
    jet(k, xs, ys, **params)                 -> [term or None]   term k of the results' power series
    jetted(trace, args, params)              -> outs or None     run on power series
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from weft.core.aval import ShapedArray, typeof
from weft.core.trace import current
from weft.errors import MissingRule

# The type rule's memory: (primitive, avals, params) -> avals.
_TYPES: dict[tuple, list[ShapedArray]] = {}


class Effect:
    """What an operation does besides computing its results. Equations that have one stay.

    Those that are `ordered` happen in the order they are written in. What is not `repeatable` must
    happen just where the program says, and so not in a branch that is not taken.
    """

    name: ClassVar[str] = "Effect"
    ordered: ClassVar[bool] = False
    repeatable: ClassVar[bool] = True

    def __repr__(self) -> str:
        return self.name


class Primitive:
    """An operation. Subclass it and write the rules as methods; instances are bound to values."""

    name: ClassVar[str] = "primitive"
    # Whether calls with equal types and params share one type: False where params hold programs.
    memoize_type: ClassVar[bool] = True
    # What the operation does besides computing its results; None for nearly all.
    effect: Effect | None = None
    # Whether it calls Python functions while the compiled program runs.
    calls_host: ClassVar[bool] = False
    multiple_results = True  # as JAX says that `bind` returns a list
    # Whether results may be NaN though no operand is; not where elements are only moved or chosen.
    makes_nan: bool = True
    # What transforms/check.py runs in place of `bind`, where something is looked for.
    checked: ClassVar[Any] = None
    # Rules of transforms/jet.py; without them it works from `jvp`. `xs[i][j]` is term j of operand
    # i, None for zero; of the results `ys` the terms below k are known. `jetted` is for programs;
    # None from it leaves the call to `jvp`.
    jet: Any = None
    jetted: ClassVar[Any] = None
    # (*stacks, **params) -> the sum of the results over the steps that the operands are stacks of,
    # along a first axis: for primitives which give that without giving each of the results.
    summed: ClassVar[Any] = None
    # Whether computing a result again costs less than keeping it until it is needed.
    cheap: ClassVar[bool] = False
    # (varying, params) -> varying: how results vary over a mesh of operands that do so together
    # (ShapedArray's `varying`); None: as those do.
    varies: ClassVar[Any] = None
    # Rules that only primitives holding programs have.
    impl: ClassVar[Any] = None
    staged: ClassVar[Any] = None
    partial_eval: ClassVar[Any] = None
    dce: ClassVar[Any] = None  # (eqn, live) -> Eqn or None: prune the program for the live results
    inlined: ClassVar[Any] = None  # (eqn) -> closed Jaxpr or None: what may stand in its place
    # (params, policy) -> params, params or None: see transforms/linearize.py's `saving_jaxpr`
    saving: ClassVar[Any] = None
    # (*args, **params): a generator of the (closed jaxpr, args) that run one after another; it is
    # sent the results of each; `repeats` says whether they are turns of a loop.
    steps: ClassVar[Any] = None
    repeats: ClassVar[bool] = False
    # The hunt for keys used twice (watch/key_reuse.py): which operands are keys that are used up;
    # (*NumPy arrays, **params) -> arrays, for what only places elements somewhere;
    # (walk, origins, params) -> origins: how programs that are held run.
    consumes: ClassVar[tuple[int, ...]] = ()
    moved: ClassVar[Any] = None
    keys_used: ClassVar[Any] = None
    # Printing: alter the parameters shown, (params) -> params; a call's program takes the caller's
    # names for what is passed.
    pretty_params: ClassVar[Any] = None
    names_flow_in: ClassVar[bool] = False

    def bind(self, *args: Any, **params: Any) -> list:
        """Apply the operation to values under the current trace. Always a list."""
        return current.trace.process(self, args, params)

    def get_bind_params(self, params: dict) -> tuple[list, dict]:
        """What an interpreter passes to `bind`: no functions first, and the parameters."""
        return [], params

    def type_of(self, avals: tuple, params: dict) -> list[ShapedArray]:
        """The result types, by the type rule, remembered."""
        if not self.memoize_type:
            return self.abstract_eval(*avals, **params)
        key = (self, avals, *params.items()) if params else (self, avals)
        try:
            out = _TYPES.get(key)
        except TypeError:
            bad = [k for k, v in params.items() if not _hashable(v)]
            raise TypeError(
                f"{self.name}: parameters must be hashable; got {', '.join(bad)}."
            ) from None
        if out is None:
            out = _TYPES[key] = self.typed(avals, params)
        return out

    def typed(self, avals: tuple, params: dict) -> list[ShapedArray]:
        """The result types: by the type rule, and varying as the operands do together."""
        outs = self.abstract_eval(*avals, **params)
        varying = joined(avals)
        if self.varies is not None:
            varying = self.varies(varying, params)
        for i, a in enumerate(outs):
            if a.varying is not varying:
                outs[i] = a.update(varying=varying)
        return outs

    def uses_axis(self, name: Any, params: dict) -> bool:
        """Whether this application refers to the named axis (collectives do)."""
        return False

    def places(self, params: dict) -> Sequence[Any]:
        """The shardings that this application names: they say which devices a program is for."""
        return ()

    def path_name(self, params: dict) -> str:
        """What this application is called in the paths of operations that profiles show."""
        return self.name

    def missing(self, rule: str) -> MissingRule:
        """The error for a rule that this primitive lacks."""
        cls = type(self).__name__
        hint = NOT_LINEAR_HINT if rule == "transpose" else ""
        return MissingRule(f"{self.name}: has no `{rule}` rule; define {cls}.{rule}.{hint}")

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        raise self.missing("abstract_eval")

    def lower(self, hlo: Any, *values: Any, **params: Any) -> list:
        raise self.missing("lower")

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple[list, list]:
        raise self.missing("jvp")

    def transpose(self, cts: Any, *args: Any, **params: Any) -> list:
        raise self.missing("transpose")

    def batch(self, axis: Any, args: Any, dims: Any, **params: Any) -> tuple[list, list]:
        raise self.missing("batch")

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


def joined(avals: Iterable[ShapedArray]) -> Any:
    """Over which axes of a mesh any of the values varies."""
    found = None
    for a in avals:
        kind = a.varying
        if kind is not None and kind is not found:
            found = kind if found is None else found | kind
    return found


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def forget_types() -> None:
    """Empty the memory of type rules."""
    _TYPES.clear()


class Zero:
    """A (co)tangent known to be zero, never computed. `aval` is the tangent type."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class Linear:
    """Marks the operand that a transpose rule solves for; `aval` is its type."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise LinearUsed  # a rule has computed with it

    def __repr__(self) -> str:
        return f"Linear({self.aval})"


class LinearUsed(TypeError):
    """A rule needed the value of a `Linear`: the operation is not linear in what is asked for."""


NOT_LINEAR_HINT = " Hint: linear_transpose takes linear functions; vjp serves for others."


def not_linear(op: str, args: Sequence[Any]) -> TypeError:
    """The error for a transpose where the operation is not linear in what is asked for."""
    kinds = ("a linear value" if type(x) is Linear else "a fixed one" for x in args)
    return TypeError(
        f"{op}: must be linear in what is transposed; got {' and '.join(kinds)}.{NOT_LINEAR_HINT}"
    )


_ZEROS: dict[ShapedArray, Zero] = {}


def tangent_zero(x: Any) -> Zero:
    """The zero tangent of a value; one object for each type."""
    aval = typeof(x)
    found = _ZEROS.get(aval)
    if found is None:
        found = _ZEROS[aval] = Zero(aval.to_tangent())
    return found


def moving(dots: Sequence[Any]) -> tuple[bool, ...]:
    """Which tangents or cotangents are not Zero."""
    return tuple([type(t) is not Zero for t in dots])


def solved_for(xs: Sequence[Any]) -> tuple[bool, ...]:
    """Which operands a transpose rule solves for."""
    return tuple([type(x) is Linear for x in xs])


def tangents_of(ys: Sequence[Any], dots: Sequence[Any], moved: Sequence[bool]) -> list:
    """A tangent for each value: the given ones, in order, where it moves, else Zero."""
    given = iter(dots)
    return [next(given) if m else tangent_zero(y) for y, m in zip(ys, moved, strict=True)]


def cotangents_of(xs: Sequence[Any], grads: Sequence[Any], moved: Sequence[bool]) -> list:
    """A cotangent for each operand of a transpose rule, None for those not solved for.

    The others have an entry in `moved` each, and a gradient where that is True, else Zero.
    """
    given, moves = iter(grads), iter(moved)
    return [
        None if type(x) is not Linear else next(given) if next(moves) else Zero(x.aval) for x in xs
    ]
