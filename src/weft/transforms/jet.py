"""Taylor mode: each value carries the first terms of its power series along a path.

This file has a trace, and functions that run flat functions and jaxprs under it. If a primitive has
no rule for its terms, its `jvp` rule gives them: y' = dy/dx x' also holds for power series, so term
k of y is term k-1 of the tangent over k. The tangent is computed with the series of x and of y
itself, whose terms below k are known by then. These are the recurrences of Griewank and Walther,
Evaluating Derivatives, ch. 13, from the derivative only. experimental/jet.py has pytrees and
factorials.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft import dtypes
from weft.core.aval import typeof
from weft.core.jaxpr import Jaxpr, memo_jaxpr
from weft.core.primitive import Primitive, Zero, tangent_zero
from weft.core.trace import Trace, Tracer, current, run_once, use
from weft.dtypes import NUMBERS
from weft.primitives.constant import stage_whole
from weft.primitives.dot import Bilinear
from weft.primitives.elementwise import Elementwise, div, mul
from weft.primitives.families import LinearPrimitive
from weft.primitives.layout import instantiate
from weft.util import unzip2

# Families whose members may give term k of their results: `series(k, xs, ys, **params)`, see there.
TERM_FAMILIES = (Elementwise, LinearPrimitive, Bilinear)


class SeriesRule(Primitive):
    """A family: primitives that hold programs, and run those on power series."""

    def run_series(self, trace: JetTrace, args: Sequence, params: dict) -> list | None:
        """The results of a call with values of `trace`; None leaves it to the `jvp` rule."""
        raise NotImplementedError


class Series:
    """The terms of a power series: `series[k]` is the term of order k, None if it is zero.

    `make(k)` computes a term that is not known yet; it may ask for terms of this series below k. A
    constant, and a path from the user, have only the known terms.
    """

    __slots__ = ("known", "make", "slope")

    def __init__(self, known: dict[int, Any], make: Callable[[int], Any] = lambda k: None):
        self.known = known
        self.make = make
        self.slope: JetTracer | None = None  # the series of its derivative

    def __getitem__(self, k: int) -> Any:
        if k not in self.known:
            self.known[k] = self.make(k)
        return self.known[k]


class JetTracer(Tracer):
    """A value along a path, which a function receives while `jet` runs it.

    The value stands for the terms of its power series. Every operation on it computes the terms of
    the result. Users do not make such values.

    Attributes:
      aval: the type of the value, which is also the type of each term: a `ShapedArray`.
      owner: the `JetTrace` of the call of `jet`.
      series: the terms. Term 0 is the value itself, and term k is the coefficient of s**k.

    >>> from weft.experimental.jet import jet
    >>> def show(x):
    ...     print(type(x).__name__, x.aval)
    ...     return x
    >>> _ = jet(show, (1.0,), ([1.0, 0.0],))
    JetTracer f32[]
    """

    __slots__ = ("series",)

    def __init__(self, trace: JetTrace, series: Series):
        self.owner = trace
        self.series = series
        self.aval = typeof(series[0])

    inner = property(lambda self: self.series[0])

    def concrete(self, error: type[Exception], op: str, hint: str) -> Any:
        value = self.inner
        return value.concrete(error, op, hint) if isinstance(value, Tracer) else value

    def own_origin(self) -> str:
        return "along the path of a jet"


class Application:
    """A primitive applied to series: finds the terms of its results."""

    __slots__ = ("args", "outs", "params", "prim", "tangents", "trace")

    def __init__(self, trace: JetTrace, prim: Primitive, args: Sequence, params: dict):
        self.trace = trace
        self.prim = prim
        self.args = args
        self.params = params
        self.tangents: list | None = None
        self.outs: list[Series] = []

    def term(self, i: int, k: int) -> Any:
        """Return term k of result i; the terms of all results are computed together."""
        parent = self.trace.parent
        rule = self.prim.series if isinstance(self.prim, TERM_FAMILIES) else None
        if rule is not None:
            with use(parent):  # type: ignore[arg-type]
                xs = [self.trace.series_of(x) for x in self.args]
                found = rule(k, xs, self.outs, **self.params)
        else:
            if self.tangents is None:
                self.tangents = self.differentiate()
            below = [self.trace.series_of(t)[k - 1] for t in self.tangents]
            with use(parent):  # type: ignore[arg-type]
                found = [None if t is None else t if k == 1 else divide_term(t, k) for t in below]
        for out, x in zip(self.outs, found, strict=True):
            out.known[k] = x
        return found[i]

    def differentiate(self) -> list:
        """The tangents of the results as the arguments move along their paths."""
        trace = self.trace
        with trace.deferring():
            slopes = [trace.slope(x) if trace.owns(x) else tangent_zero(x) for x in self.args]
            return self.prim.jvp(self.args, slopes, **self.params)[1]


def divide_term(x: Any, k: int) -> Any:
    """A term divided by a whole number."""
    return x / k if type(x) in NUMBERS else div(x, k)


class JetTrace(Trace):
    """The trace that carries the terms of power series while `jet` runs a function.

    All terms of a result are computed as the function runs, up to the order of the trace. The rules
    of primitives are run lazily, because the terms of a derivative may depend on terms that are
    known only later. `memo` holds the operations that a rule has applied, so that a value that two
    rules need is computed once.

    Args:
      parent: the trace that was active when `jet` was called. The terms are values of that trace.
      order: the number of terms after the value, an int.

    >>> from weft.experimental.jet import jet
    >>> def show(x):
    ...     print(type(x.owner).__name__, x.owner.order)
    ...     return x
    >>> _ = jet(show, (1.0,), ([1.0, 0.0],))
    JetTrace 2
    """

    __slots__ = ("deferred", "memo", "order")

    def __init__(self, parent: Trace, order: int):
        self.parent = parent
        self.live = True
        self.order = order
        self.deferred = 0
        self.memo: dict[tuple, tuple] = {}

    def owns(self, x: Any) -> bool:
        """Return True if a value moves along a path of this trace."""
        return type(x) is JetTracer and x.owner is self

    def series_of(self, x: Any) -> Series:
        """The series of any value; a constant has no terms but the first, Zero not even that."""
        if self.owns(x):
            return x.series
        return Series({0: None if type(x) is Zero else x})

    def slope(self, x: JetTracer) -> JetTracer:
        """The derivative of a value along its path."""
        series = x.series
        if series.slope is None:

            def term(k: int) -> Any:
                above = series[k + 1]
                with use(self.parent):  # type: ignore[arg-type]
                    if k:
                        return None if above is None else mul(above, k + 1)
                    return instantiate(tangent_zero(x)) if above is None else above

            series.slope = JetTracer(self, Series({}, term))
        return series.slope

    @contextlib.contextmanager
    def deferring(self) -> Iterator[None]:
        """Enter this trace, and compute only the terms that are needed."""
        self.deferred += 1
        try:
            with use(self):
                yield
        finally:
            self.deferred -= 1

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        if not any(map(self.owns, args)):
            try:
                current.trace = self.parent
                return self.parent.process(prim, args, params)  # type: ignore[union-attr]
            finally:
                current.trace = self
        if hasattr(prim, "run_series"):  # of a SeriesRule, or given to it as a rule of its own
            outs = prim.run_series(self, args, params)
            if outs is not None:
                return outs
        key = (prim, *map(identify_operand, args), *params.items())
        try:
            found = self.memo.get(key)
        except TypeError:  # a parameter that cannot be hashed
            found = None
            key = (object(),)
        if found is None:
            found = self.memo[key] = (self.apply(prim, args, params), args)  # keeps the ids
        if self.deferred:
            return found[0]
        outs = [self.join_terms(*self.split_terms(x)) for x in found[0]]  # all terms, and not how
        self.memo = {}
        return outs

    def apply(self, prim: Primitive, args: Sequence, params: dict) -> list:
        """Results whose first terms are computed, and the others when they are needed."""
        firsts = [x.series[0] if self.owns(x) else x for x in args]
        with use(self.parent):  # type: ignore[arg-type]
            values = prim.apply(*firsts, **params)
        made = Application(self, prim, args, params)
        finders = [functools.partial(made.term, i) for i in range(len(values))]
        made.outs = [Series({0: x}, find) for x, find in zip(values, finders, strict=True)]
        return [
            JetTracer(self, s) if dtypes.is_inexact(typeof(x).dtype) else x
            for s, x in zip(made.outs, values, strict=True)
        ]

    def join_terms(self, x: Any, terms: Sequence[Any]) -> Any:
        """A value and its terms of order 1 and above as one that moves, if any is not None."""
        if all(t is None for t in terms):
            return x
        return JetTracer(self, Series(dict(enumerate((x, *terms)))))

    def open_series(self, xs: Sequence, moved: Sequence[bool]) -> list:
        """Values, and then all terms of those that move, zeros where there is none."""
        values, terms = unzip2(map(self.split_terms, xs))
        with use(self.parent):  # type: ignore[arg-type]
            return [*values, *fill_terms(values, terms, moved)]

    def close_series(self, values: Sequence, moved: Sequence[bool]) -> list:
        """Join the pairs that `open_series` made."""
        terms = iter(values[len(moved) :])
        return [
            self.join_terms(x, [next(terms) for _ in range(self.order)]) if m else x
            for x, m in zip(values, moved, strict=False)
        ]

    def split_terms(self, x: Any) -> tuple[Any, list]:
        """A value and its terms of order 1 and above, None where they are zero."""
        if not self.owns(x):
            return x, [None] * self.order
        return x.series[0], [x.series[k] for k in range(1, self.order + 1)]


def fill_terms(xs: Sequence, terms: Sequence[Sequence], moved: Sequence[bool]) -> list:
    """All terms of the values that move, with zeros where there is none."""
    return [
        instantiate(tangent_zero(x)) if t is None else t
        for x, ts, m in zip(xs, terms, moved, strict=True)
        if m
        for t in ts
    ]


def identify_operand(x: Any) -> Any:
    """Return the key of an operand: the object, or the value of a Python number."""
    return repr(x) if type(x) in NUMBERS else id(x)


def jet(
    fun: Callable, primals: Sequence[Any], series: Sequence[Sequence[Any]], order: int
) -> tuple[list, list[list]]:
    """Return results of a flat function and their terms of orders 1 to `order`, None where zero.

    `series` has the terms of the primals in the same form.
    """
    trace = JetTrace(current.trace, order)
    args = [trace.join_terms(x, terms) for x, terms in zip(primals, series, strict=True)]
    return unzip2(map(trace.split_terms, run_once(trace, fun, args)))


@memo_jaxpr
def jet_jaxpr(
    jaxpr: Jaxpr, order: int, moved: tuple[bool, ...], force: tuple[bool, ...] = ()
) -> tuple[Jaxpr, list[bool]]:
    """Return a jaxpr on power series: (inputs, terms of those that move) -> (outputs, terms).

    The terms of each input that moves are adjacent, as are the terms of each output. Also returned:
    the marks of outputs that move; those in `force` move in any case.
    """
    out_moved: list[bool] = []
    forced = force or (False,) * len(jaxpr.outvars)

    def fun(*args: Any) -> list:
        n, given = len(moved), iter(args[len(moved) :])
        series = [[next(given) if m else None for _ in range(order)] for m in moved]
        outs, found = jet(jaxpr, args[:n], series, order)
        out_moved[:] = [
            f or any(t is not None for t in ts) for f, ts in zip(forced, found, strict=True)
        ]
        return [*outs, *fill_terms(outs, found, out_moved)]

    pairs = zip(jaxpr.in_avals, moved, strict=True)
    avals = [a.to_tangent() for a, m in pairs if m for _ in range(order)]
    return stage_whole(fun, [*jaxpr.in_avals, *avals], jaxpr.name), out_moved


def interleave_terms(xs: Sequence, moved: Sequence[bool], sizes: Sequence[int], order: int) -> list:
    """Values and then all their terms, as groups of values that are followed by their terms."""
    values = xs[: len(moved)]
    terms = iter(xs[len(moved) :])
    start = 0
    out: list = []
    for size in sizes:
        out += values[start : start + size]
        out += [next(terms) for m in moved[start : start + size] if m for _ in range(order)]
        start += size
    return out


def interleave_body(
    made: tuple[Jaxpr, list[bool]], moved: tuple, sizes: Sequence[int], count: int, order: int
) -> tuple[Jaxpr, tuple, list[bool]]:
    """Return the body of a loop on series, the marks of inputs that move, and of results.

    It takes groups of `sizes`, and returns a carry of `count` and others. `made`, by `jet_jaxpr`,
    has all values first; here each group is followed by the terms of those of its values that move.
    """
    jaxpr, out_moved = made
    outs = count, len(out_moved) - count
    invars = interleave_terms(jaxpr.invars, moved, sizes, order)
    outvars = interleave_terms(jaxpr.outvars, out_moved, outs, order)
    return jaxpr.replace(invars=invars, outvars=outvars), moved, out_moved
