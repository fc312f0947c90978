"""Reasons for a new trace of a jitted function: the part of a call that was not seen before.

`explain_call` is called if `config.explain_cache_misses` is on and no program is found. Otherwise
nothing is stored for it.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.api.functions import argument_names, parameter_names
from weft.core.aval import ShapedArray
from weft.core.source import source_line
from weft.core.trace import get_traceback
from weft.options import read_context
from weft.pytrees import PyTreeDef
from weft.util import Logger, fun_name, name_line

logger = Logger("weft.trace")

MAX_SHOWN = 5  # differences listed in one line


class Call(NamedTuple):
    """The key of a program: everything about a call that tracing may depend on."""

    in_tree: PyTreeDef
    avals: tuple[ShapedArray, ...]
    static: tuple
    donated: tuple[int, ...]
    options: Any
    context: tuple


# By the code of a function that was traced while this was on: the function object, if it lives.
_traced: weakref.WeakKeyDictionary[types.CodeType, Any] = weakref.WeakKeyDictionary()


def explain_call(
    fun: Callable, rest: Callable, call: Call, earlier: Sequence[Call], is_kept: bool
) -> None:
    """Log why `fun` is traced for `call` when it has programs for `earlier` ones.

    `rest` is the function of the arguments that are not static. `is_kept`: there is a program for
    just this call, but it cannot be used.
    """
    if is_kept:
        why = (
            "what it closes over is traced anew in each call of the function around it. "
            "Hint: pass it as an argument."
        )
    elif earlier:
        why = differences(fun, rest, call, earlier)
    else:
        why = unknown_function(fun)
    log_reason(fun, why)


MIN_TRACES = 30  # traces of functions made in one place, before a hint is logged
_firsts: weakref.WeakKeyDictionary[types.CodeType, int] = weakref.WeakKeyDictionary()
_places: weakref.WeakKeyDictionary[types.CodeType, str] = weakref.WeakKeyDictionary()


def count_trace(fun: Callable, rest: Callable, call: Call | None, programs: dict) -> None:
    """Log where traces of `fun`, which has these programs, or of functions of its code are many."""
    if len(programs) == MIN_TRACES - 1 and call is not None:
        earlier = [k for k in list(programs) if type(k) is Call]
        say_many_programs(fun, rest, call, earlier)
    code = None if programs else getattr(fun, "__code__", None)
    if code is not None:
        _firsts[code] = count = _firsts.get(code, 0) + 1
        if MIN_TRACES - 1 <= count <= MIN_TRACES:
            say_many_functions(fun, code)


def say_many_functions(fun: Callable, code: types.CodeType) -> None:
    """Log that functions of one code are made and traced at one place, again and again."""
    place = source_line(get_traceback())
    if place and _places.setdefault(code, place) == place and _firsts[code] == MIN_TRACES:
        logger.warning(
            "%d functions %s were jitted and traced at %s, and each was compiled. Hint: jit one, "
            "outside of the loop; config.update('hints', False) silences this.",
            *(MIN_TRACES, fun_name(fun), place),
        )


def say_many_programs(fun: Callable, rest: Callable, call: Call, earlier: Sequence[Call]) -> None:
    """Log that a function is traced for many kinds of calls, and how the last one differs."""
    place = source_line(get_traceback()) or "an unknown line"
    logger.warning(
        "%s was traced for %d kinds of calls, the last at %s: %s "
        "config.update('hints', False) silences this.",
        *(fun_name(fun), MIN_TRACES, place, differences(fun, rest, call, earlier)),
    )


def explain_function(fun: Callable) -> None:
    """Log why a function that has no programs is traced, unless it is for the first time."""
    log_reason(fun, unknown_function(fun))


def log_reason(fun: Callable, why: str) -> None:
    """Log a reason, if there is one, with the user's line."""
    if why:
        place = source_line(get_traceback()) or "an unknown line"
        logger.warning("traced %s again at %s: %s", fun_name(fun), place, why)


def unknown_function(fun: Callable) -> str:
    """Explain a miss of a function without programs; return nothing if its code is new as well."""
    code = code_of(fun)
    if code is None:
        return ""
    before = _traced.get(code)
    owner = getattr(fun, "__func__", fun)
    _traced[code] = weakref.ref(owner)
    if before is None:
        return ""
    where = name_line(code.co_filename, code.co_firstlineno)
    if isinstance(fun, types.MethodType):
        return (
            f"each access of the method at {where} makes a new bound method, which is traced anew. "
            "Hint: step = jit(model.step) once, outside of what is called repeatedly."
        )
    if before() is owner:
        return "its programs were forgotten (clear_caches, clear_cache)."
    return (
        f"it is a new function object with the code at {where}, which was traced before as another "
        "one. Hint: define the function once, outside of what is called repeatedly."
    )


def code_of(fun: Any) -> types.CodeType | None:
    """The code of the function behind a callable."""
    while hasattr(fun, "func") and not hasattr(fun, "__code__"):  # functools.partial
        fun = fun.func
    return getattr(getattr(fun, "__func__", fun), "__code__", None)


def differences(fun: Callable, rest: Callable, call: Call, earlier: Sequence[Call]) -> str:
    """Explain how a call differs from the most similar earlier one, and what the fix is."""
    found = [(changes(fun, rest, old, call), i) for i, old in enumerate(earlier)]
    (texts, hint), _ = min(found, key=lambda f: (len(f[0][0]), -f[1]))
    more = len(texts) - MAX_SHOWN
    shown = "; ".join([*texts[:MAX_SHOWN], *([f"and {more} more"] if more > 0 else [])])
    return f"{shown or 'nothing that is known differs'}.{f' Hint: {hint}' if hint else ''}"


def changes(fun: Callable, rest: Callable, old: Call, new: Call) -> tuple[list[str], str]:
    """List the differences of two calls in words, and the fix for the first of them."""
    texts: list[str] = []
    hints: list[str] = []
    for name, was, now in static_changes(fun, old.static, new.static):
        texts.append(f"static argument `{name}` was {was}, is {now}")
        hints.append(
            "give it __eq__ and __hash__ by value."
            if was == now
            else "each value of a static argument is traced; pass it as an array if it varies."
        )
    if old.in_tree != new.in_tree:
        texts.append(tree_change(rest, old.in_tree, new.in_tree))
        hints.append("pass the same keywords and pytrees of one structure.")
    else:
        names = argument_names(rest, new.in_tree)
        for name, a, b in zip(names, old.avals, new.avals, strict=True):
            if a is not b:
                texts.append(f"argument `{name}` was {type_text(a)}, is {type_text(b)}")
                hints.append(type_hint(a, b))
    for text in context_changes(old.context, new.context):
        texts.append(text)
        hints.append("")
    if (old.donated, old.options) != (new.donated, new.options):
        texts.append("it is jitted with other options")
        hints.append("jit the function once.")
    return texts, hints[0] if hints else ""


def context_changes(old: tuple, new: tuple) -> list[str]:
    """List the options and contexts that changed between two calls, in words."""
    was, now = read_context(old), read_context(new)
    texts = []
    for name in dict.fromkeys([*was, *now]):
        if was.get(name) != now.get(name):
            known = name if isinstance(name, str) else "a context of the user's"
            texts.append(f"{known} was {was.get(name)!r}, is {now.get(name)!r}")
    if old != new and not texts:
        texts.append("a block sets an option to the value that it has outside of the block")
    return texts


def type_text(aval: ShapedArray) -> str:
    """A type, and whether it is weak."""
    return f"{aval}{' (weakly typed)' if aval.weak_type else ''}"


def type_hint(old: ShapedArray, new: ShapedArray) -> str:
    """Return the advice that keeps a type from changing."""
    if old.shape != new.shape:
        return "each shape is traced and compiled; jit(f, sizes=...) pads to a few."
    if old.dtype != new.dtype:
        return f"convert it, as in x.astype({old.dtype.name!r})."
    return "a Python number is weakly typed; pass an array always, or a number always."


def static_changes(fun: Callable, old: tuple, new: tuple) -> list[tuple[str, str, str]]:
    """(name, old value, new value) of static arguments that differ; `old` and `new` may be ()."""
    was, now = (
        {where: (kind, x) for group in static for where, kind, x in group} for static in (old, new)
    )
    return [
        (
            where if isinstance(where, str) else parameter_names(fun, where + 1)[where],
            repr(was[where][1]) if where in was else "not given",
            repr(now[where][1]) if where in now else "not given",
        )
        for where in dict.fromkeys([*was, *now])
        if was.get(where) != now.get(where)
    ]


def tree_change(fun: Callable, old: PyTreeDef, new: PyTreeDef) -> str:
    """Describe how the structure of the arguments changed: new or lost leaves, or structures."""
    before, after = argument_names(fun, old), argument_names(fun, new)
    gone = [f"`{n}`" for n in before if n not in after]
    come = [f"`{n}`" for n in after if n not in before]
    parts = [f"{', '.join(come)} came" if come else "", f"{', '.join(gone)} went" if gone else ""]
    said = " and ".join(filter(None, parts))
    return f"of the arguments, {said}" if said else f"the arguments were {old}, are {new}"
