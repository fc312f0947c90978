"""The leak check: traced values that something still holds when their function has returned.

Nothing is recorded for it: Python's garbage collector is asked what refers to a value. It is made
where a trace of a user's function ends. What an equation holds is not a leak: a derivative rule may
name values around it.
"""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft.core.aval import ShapedArray
from weft.core.jaxpr import Eqn, Jaxpr
from weft.core.stage import stage
from weft.core.trace import Trace, Tracer, current
from weft.errors import LeakedTracerError, is_own_file
from weft.options import config
from weft.util import fun_name, name_line
from weft.watch.progress import run_reporting

_MAX_DEPTH = 24  # levels of holders of holders that are looked at
_MAX_REFERRERS = 400  # objects looked at, at each level
_ITERATOR: type = type(iter([0]))


def stage_function(
    fun: Callable, in_avals: Sequence[ShapedArray], name: str = "", arg_names: Any = ()
) -> tuple[Jaxpr, list]:
    """Do as `stage` does, for calls of a user's function, with the checks and reports asked for."""
    if config.no_tracing:
        raise RuntimeError(
            f"{name or fun_name(fun)}: must not be traced under no_tracing; got new types or a new "
            "function."
        )
    if not config.progress and not config.check_tracer_leaks:
        return stage(fun, in_avals, name, arg_names)
    if config.progress:
        what = f"tracing {name or fun_name(fun)}"
        return run_reporting(what, stage_checked, fun, in_avals, name, arg_names)
    return stage_checked(fun, in_avals, name, arg_names)


def stage_checked(
    fun: Callable, in_avals: Sequence[ShapedArray], name: str, arg_names: Any
) -> tuple[Jaxpr, list]:
    """Do as `stage` does; under check_tracer_leaks a leak is an error."""
    if not config.check_tracer_leaks:
        return stage(fun, in_avals, name, arg_names)
    traces: list[Trace] = []

    def run(*args: Any) -> list:
        traces.append(current.trace)
        return fun(*args)

    program = stage(run, in_avals, name, arg_names)
    check_leaks(traces[0], name or fun)
    return program


def check_leaks(trace: Trace, fun: Any) -> None:
    """Raise LeakedTracerError where a value of a trace that is over is still held.

    `fun` is the function that was traced, or its name.
    """
    if not find_tracers(trace):
        return
    gc.collect()
    leaked = find_tracers(trace)
    for x in leaked:
        holder = describe_holder(x, {id(leaked)})
        if holder:
            name = fun if isinstance(fun, str) else fun_name(getattr(fun, "fun", fun))
            raise LeakedTracerError(
                f"{name}: traced values must not outlive their function; got {x.aval} "
                f"{x.origin()}, which is still {holder}. Hint: return the value from the function "
                "instead of storing it."
            )


def find_tracers(trace: Trace) -> list[Tracer]:
    """The values of a trace that are alive."""
    return [x for x in gc.get_referrers(trace) if isinstance(x, Tracer) and x.owner is trace]


def describe_holder(x: Any, ours: set[int]) -> str:
    """Describe how the user's program holds a value: `element 0 of a list, the global cache of m`.

    Empty where only equations and functions of weft do; `ours` are objects that do not count.
    """
    texts: dict[int, str] = {id(x): ""}  # by holder, how it comes to hold the value
    own: set[int] = set()  # those that hold it for a function of weft's
    named: list[str] = []
    ends: list[str] = []
    level: list[Any] = [x]
    found: list[Any] = []
    for depth in range(_MAX_DEPTH):
        above: list[Any] = []
        ours = ours | {id(level), id(above), id(found)}
        for held in level:
            found[:] = find_holders(held, ours)
            for holder in found:
                if type(holder) is Eqn:
                    return ""
                if id(holder) in texts:
                    continue
                text, is_root = describe_hold(holder, held)
                whole = ", ".join(filter(None, (texts[id(held)], text)))
                texts[id(holder)] = whole
                if is_root:
                    return whole
                if isinstance(holder, types.CellType) and text:
                    named.append(whole)
                if id(held) in own or (isinstance(holder, types.CellType) and not text):
                    own.add(id(holder))
                above.append(holder)
            if (not found or depth == _MAX_DEPTH - 1) and id(held) not in own:
                ends.append(texts[id(held)])
        level = above[:_MAX_REFERRERS]
    return next(filter(None, (*named, *ends)), "")


def find_holders(x: Any, ours: set[int]) -> list:
    """List the objects that refer to a value, except for this search itself."""
    return [
        holder
        for holder in gc.get_referrers(x)
        if id(holder) not in ours
        and not isinstance(holder, type | _ITERATOR)
        and not (isinstance(holder, types.FrameType) and holder.f_globals is globals())
    ]


def describe_hold(holder: Any, held: Any) -> tuple[str, bool]:
    """Describe how `holder` holds a value, and whether users know it by that name."""
    if isinstance(held, types.CellType) or getattr(holder, "__closure__", None) is held:
        return "", False  # the variable has been named
    if isinstance(holder, list | tuple):
        kind = type(holder).__name__
        return f"held by element {index_of(holder, held)} of a {kind}", False
    if isinstance(holder, dict):
        key = next((k for k, v in list(holder.items()) if v is held), None)
        module = module_of(holder)
        if module:
            return f"the global `{key}` of {module}", True
        for owner in gc.get_referrers(holder):
            if getattr(owner, "__dict__", None) is holder:
                return f"held by the attribute `{key}` of a {type(owner).__qualname__}", False
        return f"held by the item {key!r} of a dict", False
    if isinstance(holder, types.CellType):
        return describe_cell(holder)
    if isinstance(holder, types.FunctionType):
        return f"held by the function {holder.__qualname__}", False
    if isinstance(holder, types.FrameType):
        code = holder.f_code
        place = name_line(code.co_filename, holder.f_lineno)
        return f"held by a variable of {code.co_name} at {place}, which has not ended", True
    if isinstance(holder, Tracer) or getattr(holder, "__dict__", None) is held:
        return "", False
    name = next((n for n, v in attributes(holder) if v is held), None)
    kind = type(holder).__qualname__
    return f"held by {f'the attribute `{name}` of ' if name else ''}a {kind}", False


def describe_cell(cell: types.CellType) -> tuple[str, bool]:
    """Name the variable and the function of a cell; nothing if the function is weft's."""
    for closure in gc.get_referrers(cell):
        for fun in gc.get_referrers(closure) if isinstance(closure, tuple) else ():
            if isinstance(fun, types.FunctionType) and fun.__closure__ is closure:
                name = fun.__code__.co_freevars[index_of(closure, cell)]
                if is_own_file(fun.__code__.co_filename):
                    return "", False
                return f"the variable `{name}` that {fun.__qualname__} closes over", False
    return "held by a variable that a function closes over", False


def index_of(xs: Any, x: Any) -> int:
    """The index of a value itself, not of an equal one, in a sequence."""
    return next((i for i, y in enumerate(xs) if y is x), 0)


def module_of(namespace: dict) -> str:
    """The name of the module whose globals a dict is; empty for any other."""
    name = namespace.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    return str(name) if module is not None and vars(module) is namespace else ""


def attributes(x: Any) -> Iterator[tuple[str, Any]]:
    """The attributes that an object itself has."""
    yield from getattr(x, "__dict__", {}).items()
    for cls in type(x).__mro__:
        for name in getattr(cls, "__slots__", ()):
            if hasattr(x, name):
                yield name, getattr(x, name)
