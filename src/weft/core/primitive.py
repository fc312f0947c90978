"""`Primitive`: an operation of the language. The class is its definition, its methods its rules.

The rules, all optional but the first two, have one calling convention (docs/design/001-house.md):

    abstract_eval(*avals, **params)          -> [aval]           the type rule; raises ShapeError
    lower(hlo, *values, **params)            -> [Value]          write StableHLO
    jvp(primals, tangents, **params)         -> outs, tangents   each may be Zero; in, not all are
    transpose(cts, *args, **params)          -> [ct or None]     args: values, Linear where asked
    batch(axis, args, dims, **params)        -> outs, dims       dims: int or None
    element(i, *operands, **params)          -> [expression]     one element of each result, at i
    impl(*args, **params)                    -> outs             run instead of compile
    checked(trace, args, params)             -> outs             run, and say what may go wrong
    refers(params)                           -> References       named axes, and devices
    label_axes(avals, outs, **params)        -> Axes             which axes of results are whose
    pretty_params(params)                    -> params           those that are printed
    read_params(params, avals, out_avals)    -> params           the inverse; of others, None

Only primitives that hold programs have these:

    bodies(params)                           -> [Body]           the programs, and how they run
    staged(args, params)                     -> args, params     Python functions -> jaxprs
    partial_eval(trace, unknown, args, params) -> outs           do the known part now
    dce(eqn, live)                           -> Eqn or None      what the live results need
    discharge(params, refs, written, verb)   -> params, order, places   see passes/discharge.py

`element` writes the mathematics of the operation as data (element.py); each operation has it whose
results can be given element by element. Facts are class attributes of small types, which passes
compare in place of names: `cost` says how much work the operation does (facts.py).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, ClassVar, NamedTuple, Self, final

from weft.core.aval import ShapedArray, typeof
from weft.core.facts import TAKE_KEYS, Cost, Elements, Linearity, Runs
from weft.core.form import Form
from weft.core.interface import Interface
from weft.core.trace import current
from weft.dtypes import float0
from weft.errors import DtypeError, MissingRule, unhashable_error
from weft.util import keep_cache, memoize

LISTS = (tuple, list)
# The type rule's memory: (primitive, avals, params) -> avals.
TYPES: dict[tuple, list[ShapedArray]] = keep_cache("types of results", {})


class Effect:
    """The base class of effects of operations.

    Effects are for operations that do more than return a value, such as printing. An equation whose
    primitive has an effect is kept even if nothing uses its results. Define a kind of effect as a
    subclass; `Primitive.def_effectful_abstract_eval` gives a primitive an effect.

    Attributes:
      name: the text that the effect prints as.
      ordered: True if operations with the effect happen in program order. The default is False.
      repeatable: False if operations with the effect must happen exactly where the program says.
        They then do not happen in a branch that is not taken. The default is True.

    >>> from weft.extend import core
    >>> class Ring(core.Effect):
    ...     name = "Ring"
    ...     ordered = True
    >>> bell_p = core.Primitive("bell")
    >>> _ = bell_p.def_effectful_abstract_eval(lambda x: (x, {Ring()}))
    >>> weft.make_jaxpr(bell_p.bind)(1.0).effects
    frozenset({Ring})
    """

    name: ClassVar[str] = "Effect"
    ordered: ClassVar[bool] = False
    repeatable: ClassVar[bool] = True

    def __repr__(self) -> str:
        return self.name


class Axis(NamedTuple):
    """A mapped axis: its size, and its name or None.

    `tracked`: it is an axis of a mesh, and types say which values vary along it. `spmd`: the axes
    of a mesh that shardings within the mapped function split it over; None leaves that open.
    `split`: the sharding of mapped values along it, as in types of rank 1 (`sharded`).
    """

    size: int
    name: Any = None
    tracked: bool = False
    spmd: Any = None
    split: Any = None

    def __repr__(self) -> str:
        more = ", tracked=True" if self.tracked else ""
        more += "".join(f", {k}={x!r}" for k in ("spmd", "split") if (x := getattr(self, k)))
        return f"Axis(size={self.size}, name={self.name!r}{more})"


class Program:
    """The base of `Jaxpr` and `ClosedJaxpr`, which identifies programs among parameters."""

    __slots__ = ()

    jaxpr: Any
    is_high = False  # True if it computes with types other than arrays


def programs_in(params: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The programs among the parameters of an equation, each with the name of its parameter."""
    for key, value in params.items():
        for x in value if isinstance(value, LISTS) else (value,):
            if isinstance(x, Program):
                yield key, x.jaxpr


class Body(NamedTuple):
    """A program that a primitive holds, in the parameter `key`, and how it runs.

    `operands` are the places of its inputs among the operands of the primitive. A loop first runs
    on these, and then with its first results in place of the inputs `carry`. Inputs after the carry
    are rows of operands, at `turns`; without `turns`, the loop runs while a body that is a
    condition returns True. `jaxpr` is None for a Python function.
    """

    jaxpr: Any
    key: str = ""
    runs: Runs = Runs.UNKNOWN
    operands: Sequence[int] = ()
    carry: range = range(0)
    turns: range | None = None
    label: str = ""  # its name in the paths of operations that profiles show
    inlines: bool = False  # True if its equations may replace the equation that holds it
    names_flow_in: bool = False  # True if it is printed with the names of its arguments
    on_each_device: bool = False  # True if it is the program of each device of a mesh
    is_compiled_apart: bool = False  # True if another compiler than XLA compiles it


def split_inputs(body: Body, xs: Sequence[Any]) -> tuple[Sequence, Sequence, Sequence]:
    """Split the inputs of a loop's body into its groups: consts, carry, and rows."""
    return xs[: body.carry.start], xs[body.carry.start : body.carry.stop], xs[body.carry.stop :]


class References(NamedTuple):
    """The references of an application of a primitive to things outside of its operands.

    Named axes: those that it `uses`, and those that its programs `bind`. Mesh axes: results vary
    over `adds` although the operands do not; over `drops` it is the other way round. `places`
    returns shardings, which name the devices of a program.
    """

    uses: Container = ()
    binds: Container = ()
    adds: Any = None
    drops: Sequence = ()
    places: Callable[[], Sequence] = tuple


_NO_REFERENCES = References()


class Axes(NamedTuple):
    """Labels of the axes of operands and results: axes with one label run along each other.

    Mesh axes that split an axis of an operand split the axes of results with the same label. An
    axis labelled None must not be split. A result axis may have a list of pairs: a label, and a
    slice of the mesh axes that split it. `contracts`: products are summed over labels that no
    result has.
    """

    operands: Sequence[Sequence]
    results: Sequence[Sequence]
    linear: Linearity = Linearity.NONE
    contracts: bool = False
    hint: str = ""  # code for the error if an axis labelled None is split


class Primitive(Interface):
    """An operation. Subclass it and write the rules as methods; instances are bound to values."""

    name: ClassVar[str] = "primitive"
    # A fact (facts.py): the work that the operation does for its results.
    cost: Cost = Cost.UNKNOWN
    # Whether calls with equal types and params share one type: False where params hold programs.
    memoize_type: ClassVar[bool] = True
    # What the operation does besides computing its results; None for nearly all.
    effect: Effect | None = None
    # What the elements of results are.
    elements: Elements = Elements.NEW
    # The family of ways to compute it that platforms choose from; None if there is only one.
    form: Form | None = None
    # Optional rules: see above.
    element: ClassVar[Any] = None
    impl: ClassVar[Any] = None
    checked: ClassVar[Any] = None
    staged: ClassVar[Any] = None
    partial_eval: ClassVar[Any] = None
    dce: ClassVar[Any] = None
    discharge: ClassVar[Any] = None
    pretty_params: ClassVar[Any] = None
    read_params: ClassVar[Any] = None

    _home: str  # the module whose body defined it

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        self._home = find_running_module()
        return self

    def apply(self, *args: Any, **params: Any) -> list:
        """Apply the operation to values under the current trace. Always a list."""
        return current.trace.process(self, args, params)

    @final
    def type_of(self, avals: tuple, params: dict) -> list[ShapedArray]:
        """The result types, by the type rule, remembered."""
        if not self.memoize_type:
            return self.abstract_eval(*avals, **params)
        key = (self, avals, *params.items()) if params else (self, avals)
        try:
            out = TYPES.get(key)
        except TypeError:
            raise unhashable_error(self.name, params) from None
        if out is None:
            out = TYPES[key] = vary_results(self, avals, params)
        return out

    def bodies(self, params: dict) -> Sequence[Body]:
        """The programs that it holds: all among the parameters, where no rule says how they run."""
        return [Body(jaxpr, key) for key, jaxpr in programs_in(params)]

    def refers(self, params: dict) -> References:
        """Return the references of this application: named axes, as in collectives, and devices."""
        return _NO_REFERENCES

    def label_axes(self, avals: Sequence, outs: Sequence, **params: Any) -> Axes:
        """Return the labels of axes over a mesh: without a rule, all have to be unsplit."""
        return Axes([(None,) * a.ndim for a in avals], [(None,) * a.ndim for a in outs])

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

    def __reduce_ex__(self, protocol: Any) -> Any:
        # By the global that holds it, as functions are; any other primitive by its fields. What
        # `__main__` holds is not there in another process.
        if self._home != "__main__" and self._home in sys.modules:
            for name, value in list(vars(sys.modules[self._home]).items()):
                if value is self:
                    return read_global, (self._home, name)
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


def find_running_module() -> str:
    """Return the name of the module whose body is running, or "" if there is none.

    A primitive that a module's body defines, directly or by a function that it calls, becomes a
    global of that module.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return "" if frame is None else frame.f_globals.get("__name__", "")


def read_global(module: str, name: str) -> Any:
    """Return the global of a module by its name; the module is imported if necessary."""
    return getattr(importlib.import_module(module), name)


def vary_results(prim: Primitive, avals: tuple, params: dict) -> list[ShapedArray]:
    """The result types by the type rule; over a mesh they vary, and are split, as operands are."""
    outs = prim.abstract_eval(*avals, **params)
    varies = False
    for a in (*avals, *outs):
        varies = varies or a.varying is not None
        if a.dtype == float0:
            raise DtypeError(
                f"{prim.name}: must not be given float0, the dtype of tangents of integers, with "
                f"which nothing computes; got {', '.join(map(str, avals))}. "
                "Hint: jnp.zeros(x.shape) in its place."
            )
        if a.physical is not a and (prim.elements not in TAKE_KEYS or hasattr(a, "inner_aval")):
            listed = ", ".join(map(str, avals))
            kind, hint = "random keys", ""
            if hasattr(a, "inner_aval"):
                kind, hint = "references", " Hint: r[...] reads all of a reference."
            raise DtypeError(
                f"{prim.name}: operands must be numbers, not {kind}; got {listed}.{hint}"
            )
    varying = join_varying(avals) if varies else None
    if type(prim).refers is not Primitive.refers:
        found = prim.refers(params)
        if found.adds is not None:
            varying = found.adds if varying is None else varying | found.adds
        if found.drops and varying is not None:
            varying = varying.without(found.drops)
    for i, a in enumerate(outs):
        if a.varying is not varying:
            outs[i] = a.update(varying=varying)
    sharded = next((a.sharded for a in avals if a.sharded is not None), None)
    return outs if sharded is None else sharded.lay_out(prim, avals, outs, params)


def join_varying(avals: Iterable[ShapedArray]) -> Any:
    """Over which axes of a mesh any of the values varies."""
    found = None
    for a in avals:
        kind = a.varying
        if kind is not None and kind is not found:
            found = kind if found is None else found | kind
    return found


class Zero:
    """A tangent or a cotangent that is known to be zero. No array is made for it.

    Rules of derivatives may take and return it. `instantiate_zeros` makes an array of zeros of it.

    Args:
      aval: the type of the tangent, a `ShapedArray`.

    >>> from weft.interpreters import ad
    >>> ad.Zero(weft.typeof(jnp.ones(3)))
    Zero(f32[3])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class Linear:
    """A mark for an operand that a transpose rule solves for. The operand has no value.

    A transpose rule gets the mark in place of the operand, and returns the cotangent for it. A rule
    that computes with the mark raises a TypeError, because the operation is not linear in the
    operand.

    Args:
      aval: the type of the operand, a `ShapedArray`.

    >>> from weft.interpreters import ad
    >>> ad.UndefinedPrimal(weft.typeof(jnp.ones(3)))
    Linear(f32[3])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise LinearUsed  # a rule has computed with it

    def __repr__(self) -> str:
        return f"Linear({self.aval})"


class LinearUsed(TypeError):
    """A rule needed the value of a `Linear`: the operation is not linear in that operand."""


NOT_LINEAR_HINT = " Hint: linear_transpose takes linear functions; vjp serves for others."


def not_linear(op: str, args: Sequence[Any]) -> TypeError:
    """The error for a transpose where the operation is not linear in the operands to solve for."""
    kinds = ("a linear value" if type(x) is Linear else "a fixed one" for x in args)
    return TypeError(
        f"{op}: must be linear in what is transposed; got {' and '.join(kinds)}.{NOT_LINEAR_HINT}"
    )


@memoize
def zero_of(aval: ShapedArray) -> Zero:
    """The zero tangent of a type."""
    return Zero(aval.to_tangent())


def tangent_zero(x: Any) -> Zero:
    """The zero tangent of a value; one object for each type."""
    return zero_of(typeof(x))


def mark_moving(dots: Sequence[Any]) -> tuple[bool, ...]:
    """Return True for the tangents or cotangents that are not Zero."""
    return tuple([type(t) is not Zero for t in dots])


def mark_linear(xs: Sequence[Any]) -> tuple[bool, ...]:
    """Return True for the operands that a transpose rule solves for."""
    return tuple([type(x) is Linear for x in xs])


def tangents_of(ys: Sequence[Any], dots: Sequence[Any], moved: Sequence[bool]) -> list:
    """A tangent for each value: the given ones, in order, where it moves, else Zero."""
    given = iter(dots)
    return [next(given) if m else tangent_zero(y) for y, m in zip(ys, moved, strict=True)]


def cotangents_of(xs: Sequence[Any], grads: Sequence[Any], moved: Sequence[bool]) -> list:
    """Return a cotangent for each operand of a transpose rule, None for nonlinear operands.

    Each linear operand has an entry in `moved`; it has a gradient if that is True, else Zero.
    """
    given, moves = iter(grads), iter(moved)
    return [
        None if type(x) is not Linear else next(given) if next(moves) else Zero(x.aval) for x in xs
    ]
