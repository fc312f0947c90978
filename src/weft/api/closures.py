"""Make operands of values that Python functions close over: `find_closed_over`, `Hoisted`.

A call that brings its own rules may refer to traced values of the functions around it, and the
rules run later, under other traces. Such values become operands of the call; when one of its
functions runs, it sees the operands' values where it names the tracers.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from weft.core.ref import Ref
from weft.core.trace import Trace, Tracer, current, is_eager, run_once
from weft.transforms.jvp import JVPTrace, JVPTracer
from weft.transforms.linearize import PartialTrace
from weft.util import EMPTY_CELL, fun_name
from weft.xla.array import ArrayImpl

_PACKAGE = __name__.partition(".")[0] + "."
MAX_OBJECTS = 4096  # looked at in one search; a tracer nested deeper is not found
# What holds no tracer, or nothing that a function means to refer to.
_LEAVES = (
    type(None), bool, int, float, complex, str, bytes, np.ndarray, np.generic, np.dtype, ArrayImpl,
    type, types.ModuleType, types.BuiltinFunctionType, types.CodeType,
)  # fmt: skip


def find_closed_over(*roots: Any) -> list[Tracer]:
    """The live tracers and the references in closures, defaults, bound objects, containers.

    None at the bottom, where every value is concrete.
    """
    if is_eager():
        return []
    found: dict[int, Any] = {}
    seen: set[int] = set()
    todo = list(roots)
    while todo and len(seen) < MAX_OBJECTS:
        x: Any = todo.pop()
        if type(x) is Ref or isinstance(x, Tracer):
            if type(x) is Ref or x.is_live():  # type: ignore[union-attr]
                found[id(x)] = x
        elif not isinstance(x, _LEAVES) and id(x) not in seen:
            seen.add(id(x))
            todo.extend(find_parts(x))
    return list(found.values())


def find_parts(x: Any) -> Iterable[Any]:
    """List the objects that an object refers to."""
    if isinstance(x, types.FunctionType):
        cells = [c.cell_contents for c in x.__closure__ or () if c != EMPTY_CELL]
        defaults = [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
        return [*cells, *find_globals(x, x.__code__), *defaults]
    if isinstance(x, types.MethodType):
        return [x.__self__, x.__func__]
    if isinstance(x, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    if isinstance(x, dict):
        return x.values()
    if isinstance(x, list | tuple | set | frozenset):
        return x
    inside = [getattr(x, name) for name in getattr(type(x), "__slots__", ()) if hasattr(x, name)]
    return [*inside, *getattr(x, "__dict__", {}).values()]


def find_globals(fun: types.FunctionType, code: types.CodeType) -> list:
    """List the references, and the functions of the same file, that a function names.

    Functions of this package use no reference of their own, and are many. Those of a user's file
    may be many, too: no search is made before the process has made a reference.
    """
    around = fun.__globals__
    if not Ref.made or around.get("__name__", "").startswith(_PACKAGE):
        return []
    found = [x for x in map(around.get, code.co_names) if type(x) in (Ref, types.FunctionType)]
    inner = [c for c in code.co_consts if type(c) is types.CodeType]
    found += [x for c in inner for x in find_globals(fun, c)]
    return [x for x in found if getattr(x, "__globals__", around) is around]


class Substitution(Trace):
    """Processes operations under the parent, with other values in place of given tracers.

    `known` maps the id of a tracer, which the caller keeps alive, to the value.
    """

    __slots__ = ("known",)

    def __init__(self, parent: Trace, known: dict[int, Any]):
        self.parent = parent
        self.live = True
        self.known = known

    def process(self, prim: Any, args: Any, params: dict) -> list:
        known = self.known
        try:
            current.trace = self.parent
            values = [known.get(id(x), x) for x in args]
            return self.parent.process(prim, values, params)  # type: ignore[union-attr]
        finally:
            current.trace = self


class Hoisted:
    """A flat function that takes the values it closed over first; it returns (nested) lists."""

    __slots__ = ("__name__", "fun", "tracers")

    def __init__(self, fun: Callable, tracers: Sequence[Tracer]):
        self.fun = fun
        self.tracers = tracers
        self.__name__ = fun_name(fun)

    def __call__(self, *operands: Any) -> Any:
        n = len(self.tracers)
        return substitute(self.fun, self.tracers, operands[:n], operands[n:])


def substitute(
    fun: Callable, tracers: Sequence[Tracer], values: Sequence[Any], args: Sequence[Any]
) -> Any:
    """`fun(*args)`, a list, nested or not, where `fun` sees `values` in place of `tracers`."""
    if not tracers:
        return fun(*args)
    known = dict(zip(map(id, tracers), values, strict=True))
    outs = run_once(Substitution(current.trace, known), fun, args)
    return replace_tracers(outs, known)


def replace_tracers(x: Any, known: dict[int, Any]) -> Any:
    """A result with values in place of the tracers that the function gave back unchanged."""
    if isinstance(x, list | tuple):
        return [replace_tracers(y, known) for y in x]
    return known.get(id(x), x)


def outlive_function(ref: Any) -> None:
    """Keep a reference for a pullback, if the differentiated function that made it is over.

    The reference belongs to the transformation around that function then. Where it holds a
    differentiated value, it holds the primal.
    """
    value, home = ref._value if type(ref) is Ref else None, getattr(ref, "trace", None)
    while isinstance(value, JVPTracer) and not value.owner.live:
        value = value.primal
    while isinstance(home, JVPTrace | PartialTrace) and not home.live:
        home = home.parent
    if value is not None and not (isinstance(value, Tracer) and not value.owner.live):
        ref._value, ref.trace = value, home
