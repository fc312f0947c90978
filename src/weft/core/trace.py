"""Interpretation: `Trace`, its values `Tracer`, and where we are, `current`.

A primitive that is bound asks the current trace to process it; a trace acts under its parent. The
bottom trace, which computes, is installed by run/eager.py; operators are attached to `Tracer` by
numpy/methods.py.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from jaxlib import _jax

from weft import errors
from weft.core.aval import HasAval, ShapedArray, keeps_type, typeof
from weft.options import config, surroundings
from weft.util import DEEP, allow_frames

get_traceback = _jax.Traceback.get_traceback


class Trace:
    """An interpretation of primitives. Each transformation makes a trace for each of its runs.

    `bind` passes a primitive, its operands and its parameters to the current trace. A trace may
    compute the results, write an equation, or apply a rule. The rules run under the parent trace.
    To define a trace of your own, define the method `process_primitive(prim, args, params)`; it
    runs where operations on concrete values compute at once.

    Attributes:
      parent: the trace under which the rules of this trace run. By default the current trace.
      live: True until the traced function has returned.
      main: the trace itself, under the name that libraries for JAX use.

    >>> from weft.core import Trace
    >>> from weft.extend.core import set_current_trace
    >>> class Counter(Trace):
    ...     count = 0
    ...     def process_primitive(self, prim, args, params):
    ...         self.count += 1
    ...         return prim.bind(*args, **params)
    >>> counter = Counter()
    >>> with set_current_trace(counter):
    ...     y = lax.add(lax.mul(2.0, 3.0), 1.0)
    >>> print(y, counter.count)
    7.0 2
    """

    __slots__ = ("__weakref__", "depth", "live", "parent")
    depth: int  # how many traced functions run within one another: see `run_once`
    targets: Any = None  # where rules write under it: see primitives/replay.py
    known: Any = ()  # ids of the tracers it has values for: see api/closures.py
    # True if it writes down what it is given, or is over such a trace: see run/operation.py
    replays = False
    # programs that the outermost traced function holds: see `find_staged` in passes/merge.py
    programs: dict[Any, Any] | None = None
    compiles_rules = False  # whether rules of transformations over it are compiled programs
    # If not None, calls under it are operations: (jaxpr, name) -> an operation and its parameters
    as_operation: Any = None

    def __init__(self, parent: Trace | None = None):
        self.parent: Trace | None = parent or current.trace
        self.live = True  # False once its function has returned

    @property
    def main(self) -> Trace:
        """Return the common part of values of this run of a transformation: the trace itself."""
        return self

    def process(self, prim: Any, args: Any, params: dict) -> list:
        """Apply `prim` to `args` under this trace, as JAX's traces do."""
        with eval_context():
            outs = self.process_primitive(prim, args, params)  # type: ignore[attr-defined]
        return list(outs) if prim.multiple_results else [outs]

    def apply_program(self, program: Any, args: list) -> list:
        """The results of a program of run/rules.py, which is one unit where operations compute."""
        return program.jaxpr(*args)

    def call_jitted(self, function: Any, args: tuple, kwargs: dict) -> tuple:
        """The result of a call of a jitted function, and how C++ may run the next: it may not."""
        return function.bind_call(args, kwargs), None


class _Current(threading.local):
    """The current state of interpretation: `current.trace`.

    `current.source` is where the equations being written come from; None: from the Python stack,
    which `current.capture` takes. `current.scope` holds the names around us (core/source.py).
    """

    def __reduce__(self) -> str:
        return "current"  # the same object wherever it is loaded

    trace: Any = None
    source: Any = None
    scope: tuple[str, ...] = ()
    capture: Any = staticmethod(get_traceback)


current = _Current()


def walk_up(trace: Trace | None) -> Iterator[Trace]:
    """A trace, its parent, and so on to the bottom."""
    while trace is not None:
        yield trace
        trace = trace.parent


def install_bottom(trace: Trace) -> None:
    """Make `trace` the one every thread starts in."""
    _Current.trace = trace


def typed_value(x: Any, aval: ShapedArray) -> Any:
    """Return `x`, converted to an array of type `aval` if it is a host value of another type now.

    A host value changes its type if `enable_x64` has changed since the value got its type.
    """
    return x if keeps_type(x, aval) else _Current.trace.make_constant(x, aval)


def typed_values(xs: Iterable[Any], variables: Iterable[Any]) -> list:
    """`typed_value` of each, with the type of a variable; arrays and tracers have theirs."""
    return [
        x if getattr(x, "aval", None) is v.aval else typed_value(x, v.aval)
        for x, v in zip(xs, variables, strict=True)
    ]


def pin_type(x: Any) -> Any:
    """`x`; as an array, whose type `enable_x64` does not change, where it is a number."""
    is_number = isinstance(x, int | float | complex | np.generic)
    return _Current.trace.make_constant(x, typeof(x)) if is_number else x


def is_eager() -> bool:
    """Return True if operations compute here: no trace is in force but the bottom one."""
    return current.trace.parent is None


def current_trace() -> Trace:
    """The trace in force in this thread."""
    return current.trace


class use:
    """A context manager that makes a trace apply all operations of the thread.

    It is for libraries that define transformations. The trace that was in force before is in force
    again after the block.

    Args:
      trace: the `Trace` whose rules apply within the block. It is also the `as` value.

    >>> from weft.extend import core
    >>> eager = core.find_top_trace()
    >>> def f(x):
    ...     with core.set_current_trace(eager):
    ...         print(jnp.arange(2) + 1)
    ...     return x
    >>> _ = weft.make_jaxpr(f)(1.0)
    [1 2]
    """

    # Hot paths write the assignments of __enter__ and __exit__ out.
    __slots__ = ("before", "trace")

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self) -> Trace:
        self.before = current.trace
        current.trace = self.trace
        return self.trace

    def __exit__(self, *_: Any) -> None:
        current.trace = self.before


def run_once(
    trace: Trace, fun: Callable, args: Any, name: str = "", mark: str = "", capture: Any = None
) -> Any:
    """`fun(*args)` under a new trace, in a scope of this name; the trace is over afterwards.

    `mark` says in `surroundings` what runs; with `capture`, names of scopes are from here on.
    What is in force is as before then, and Ctrl-C may come at any instruction: in the first
    `finally` it is the second that puts it back. What runs inside need not care.
    """
    before = current.trace, current.source, current.scope, current.capture
    around = surroundings.get_local() if mark else None
    try:
        try:
            current.trace = trace
            trace.depth = depth = getattr(before[0], "depth", 0) + 1
            if depth == DEEP:
                allow_frames()
            if name:
                current.scope = (*current.scope, name)
            if mark:
                surroundings.set_local(mark)
                current.source = None
            if capture is not None:
                current.scope = ()
                current.capture = capture
            return fun(*args)
        finally:
            trace.live = False
            current.trace, current.source, current.scope, current.capture = before
            if mark:
                surroundings.set_local(around)
    finally:
        current.trace, current.source, current.scope, current.capture = before
        if mark:
            surroundings.set_local(around)


def eval_context() -> use:
    """Compute at once within a block, whatever transformations surround it.

    Operations in the block run eagerly. Their operands must be concrete: an operation on a traced
    value raises an error. `ensure_compile_time_eval` is for blocks with operations on both.

    Returns:
      A context manager.

    >>> from weft.core import eval_context
    >>> @weft.jit
    ... def f(x):
    ...     with eval_context():
    ...         n = int(jnp.add(1, 2))  # a number, not a tracer
    ...     return x * n
    >>> print(f(2.0))
    6.0
    """
    return use(_Current.trace)


class FoldTrace(Trace):
    """Computes eagerly if all operands are known; other operations go to the parent."""

    __slots__ = ()

    def process(self, prim: Any, args: Any, params: dict) -> list:
        known = not any(isinstance(x, Tracer) for x in args)
        try:
            trace = current.trace = _Current.trace if known else self.parent
            return trace.process(prim, args, params)  # type: ignore[union-attr]
        finally:
            current.trace = self


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Compute at once, while a function is traced, all operations on known values.

    Within the block, operations whose operands are not traced run eagerly, so their results may
    decide shapes and branches of Python.

    Returns:
      A context manager.

    >>> @weft.jit
    ... def f(x):
    ...     with weft.ensure_compile_time_eval():
    ...         n = int(jnp.add(1, 2))  # a number, not a tracer
    ...     return x * n
    >>> print(f(2.0))
    6.0
    """
    with use(FoldTrace(current.trace)):
        yield


class Tracer(HasAval):
    """A value under a transformation: it has a type and belongs to a trace.

    Functions that are traced receive tracers in place of arrays. A tracer has the attributes and
    the operators of an array, except for those that need the concrete value: `bool(x)`, `int(x)`
    and `np.asarray(x)` raise an error if the value is not known. Use `isinstance(x, Tracer)` to
    test whether a value is traced. Transformations make tracers; users do not construct them.

    Attributes:
      aval: the type of the value, a `ShapedArray` or a reference type.
      owner: the trace that the value belongs to; also `_trace`.
      shape, dtype, ndim: the shape, the dtype and the number of axes.

    >>> from weft.core import Tracer
    >>> @weft.jit
    ... def f(x):
    ...     print(isinstance(x, Tracer), x.aval)
    ...     return x
    >>> _ = f(jnp.ones(3))
    True f32[3]
    """

    __slots__ = ("__weakref__", "aval", "owner")
    __array_priority__ = 1000  # NumPy arrays leave binary operators to us

    owner: Trace
    aval: ShapedArray
    inner: Any = None  # the value that it adds something to, as a primal does not know its tangent
    # The name of `owner` in libraries that are written for JAX.
    _trace = property(lambda self: self.owner, lambda self, trace: setattr(self, "owner", trace))

    def __init__(self, trace: Trace, aval: ShapedArray):
        self.owner = trace
        self.aval = aval

    def origin(self) -> str:
        """Name the origin of the value, for errors: `made by sin at model.py:12`."""
        return self.inner.origin() if isinstance(self.inner, Tracer) else self.own_origin()

    def own_origin(self) -> str:
        """Name the origin as `origin` does, where this interpretation is the first."""
        return "inside a transformed function"

    def arguments(self) -> list[errors.Origin]:
        """The arguments of traced functions that the value depends on."""
        return self.inner.arguments() if isinstance(self.inner, Tracer) else []

    def concrete(self, error: type[Exception], op: str, hint: str) -> Any:
        """Return the concrete value, or raise an error if the value is not known yet."""
        self.check_live()
        if look := getattr(self.owner, "look", None):
            return look(self, op, error, hint)
        raise error(errors.describe_need(op, self.aval, self.origin(), self.arguments(), hint))

    def check_live(self) -> None:
        """Raise where the function that this value belongs to has returned."""
        if not self.is_live():
            raise errors.UnexpectedTracerError(leak_message(self))

    def is_live(self) -> bool:
        """Return True if it can be used: its function runs, or a trace in force has its value."""
        return self.owner.live or any(id(self) in t.known for t in walk_up(current.trace))

    def __reduce_ex__(self, protocol: Any) -> Any:
        hint = "return the value from the function, and pickle the result."
        raise Tracer.concrete(self, errors.ConcretizationTypeError, "pickle", hint)

    def __bool__(self) -> bool:
        hint = "jnp.where(x > 0, a, b), or lax.cond."
        return bool(self.concrete(errors.TracerBoolConversionError, "bool()", hint))

    def __index__(self) -> int:
        hint = "x.shape where it is a size, lax.fori_loop, or jnp.asarray(table)[i]."
        return self.concrete(errors.TracerIntegerConversionError, "index()", hint).__index__()

    def _number(self, kind: type) -> Any:
        hint = f"x.astype({kind.__name__})."
        return kind(self.concrete(errors.ConcretizationTypeError, f"{kind.__name__}()", hint))

    def __int__(self) -> int:
        return self._number(int)

    def __float__(self) -> float:
        return self._number(float)

    def __complex__(self) -> complex:
        return self._number(complex)

    def item(self, *args: int) -> Any:
        """The value as a Python number; an error where it is not known yet."""
        hint = "return the array from the function and call .item() on the result."
        value = self.concrete(errors.ConcretizationTypeError, "item()", hint)
        return np.asarray(value).item(*args)

    def tolist(self) -> Any:
        """The value as nested lists; an error where it is not known yet."""
        hint = "return the array from the function and call .tolist() on the result."
        return np.asarray(self.concrete(errors.ConcretizationTypeError, "tolist()", hint)).tolist()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        # Even where the value is known: NumPy would lose its derivative without a word.
        hint = "use the function of weft.numpy in place of NumPy's, as jnp.sin(x) for np.sin(x)."
        return Tracer.concrete(self, errors.TracerArrayConversionError, "numpy", hint)

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        hint = "return the array from the function and export the result."
        value = self.concrete(errors.TracerArrayConversionError, "__dlpack__", hint)
        return value.__dlpack__(*args, **kwargs)

    def __iter__(self) -> Iterator:
        if not self.aval.shape:
            raise errors.ShapeError(
                f"iter(): needs an array with an axis; got {self.aval} {self.origin()}."
            )
        return (self[i] for i in range(self.aval.shape[0]))  # type: ignore[index]

    __hash__ = None  # type: ignore[assignment]  # as `==` compares elements

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        hint = "return the value and format the result, or f'{x}' to see its type."
        return format(self.concrete(errors.ConcretizationTypeError, "format()", hint), spec)

    def __repr__(self) -> str:
        if look := getattr(self.owner, "look", None):
            return look(self)
        if surroundings.value == "staging" and self.owner.live and config.hints:
            errors.hint_printing(self)
        return f"Traced<{self.aval}>with<{type(self.owner).__name__}>"


def leak_message(x: Tracer) -> str:
    """Return the message for a tracer that outlived its function, or is used elsewhere."""
    if x.owner.live:
        return (
            "tracer: a traced value must not be used outside of its transformation, as in a custom "
            f"rule that does not take it; got {x.aval} {x.origin()}. "
            "Hint: pass it to the function as an argument."
        )
    return (
        f"tracer: a traced value must not be used after its function has returned; got a leaked "
        f"{x.aval} {x.origin()}. Hint: return the value from the function instead of storing it "
        "(in a global, an attribute or a list)."
    )


def is_concrete(x: Any) -> bool:
    """Return True if `x` has its value now: anything but a tracer."""
    return not isinstance(x, Tracer)
