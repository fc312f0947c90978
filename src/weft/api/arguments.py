"""Static and donated arguments: which they are, and a call as one of the other arguments."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.api.functions import as_tuple, parameter_names
from weft.core.aval import is_valid_value
from weft.primitives.families import check_parameter
from weft.pytrees import PyTreeDef
from weft.util import find_close, fun_name


class Marked(NamedTuple):
    """Arguments of a function: by position, negative ones from the end, and by name."""

    nums: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def positions(self, count: int) -> set[int]:
        """The positions among `count` arguments."""
        return {i + count if i < 0 else i for i in self.nums}


def mark_arguments(fun: Callable, argnums: Any, argnames: Any, what: str) -> Marked:
    """Positions or names that a user gave for `what`; each is completed by the signature."""
    if argnums is None and argnames is None:
        return Marked()
    what_nums, what_names = "integers or one", "names or one"
    nums = check_parameter("jit", what, argnums, what_nums, as_tuple)
    names = check_parameter("jit", what, argnames, what_names, as_tuple)
    if any(not isinstance(i, int) or not -(2**31) < i < 2**31 for i in nums):
        raise TypeError(f"jit: {what} must be integers; got {nums}.")
    if any(not isinstance(n, str) for n in names):
        raise TypeError(f"jit: {what.replace('nums', 'names')} must be names; got {names}.")
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return Marked(nums, names)
    positional = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    count = len(positional)
    kinds = {p.kind for p in parameters}
    if inspect.Parameter.VAR_POSITIONAL not in kinds and any(not -count <= i < count for i in nums):
        raise ValueError(
            f"jit: {what} must be positions of arguments of {fun_name(fun)}, which takes {count}; "
            f"got {nums}."
        )
    unknown = [n for n in names if n not in {p.name for p in parameters}]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        known = [p.name for p in parameters]
        close = [name for n in unknown if (name := find_close(n, known))]
        hint = f" Hint: {', '.join(map(repr, close))}." if close else ""
        raise ValueError(
            f"jit: {what.replace('nums', 'names')} must name arguments of {fun_name(fun)}, which "
            f"takes {', '.join(known) or 'none'}; got {', '.join(unknown)}.{hint}"
        )
    if argnames is None:
        names = tuple(positional[i] for i in nums if -count <= i < count)
    elif argnums is None:
        nums = tuple(positional.index(n) for n in names if n in positional)
    return Marked(nums, names)


class FixedCall(NamedTuple):
    """A call whose static arguments are part of the function."""

    static: tuple  # those, as part of a key: (where, type, value) by position and by name
    args: tuple
    fun: Callable
    kwargs: dict


def fix_static(fun: Callable, marked: Marked, args: tuple, kwargs: dict) -> FixedCall:
    """`fun(*args, **kwargs)` as a call of the arguments that are not marked."""
    if not marked.nums and not marked.names:
        return FixedCall((), args, fun, kwargs)
    count = len(args)
    fixed = {i: args[i] for i in sorted(marked.positions(count)) if 0 <= i < count}
    named = {k: kwargs[k] for k in sorted(kwargs) if k in marked.names}
    static = tuple([tuple([(where, type(x), x) for where, x in d.items()]) for d in (fixed, named)])

    @functools.wraps(fun)
    def call(*others: Any, **more: Any) -> Any:
        rest = iter(others)
        every = [fixed[i] if i in fixed else next(rest) for i in range(count)]
        return fun(*every, **named, **more)

    call.__weft_static__ = tuple(fixed)  # type: ignore[attr-defined]
    rest = tuple([x for i, x in enumerate(args) if i not in fixed])
    return FixedCall(static, rest, call, {k: x for k, x in kwargs.items() if k not in named})


def name_static(fun: Callable, static: tuple) -> dict[str, Any]:
    """Return the static arguments of a call, as `FixedCall` has them, by the parameters' names."""
    rows = sum(static, ())
    count = 1 + max([where for where, *_ in rows if isinstance(where, int)], default=-1)
    names = parameter_names(fun, count)
    return {names[where] if isinstance(where, int) else where: x for where, _, x in rows}


def find_donated(donate: Marked, static: Marked, count: int, in_tree: PyTreeDef) -> tuple[int, ...]:
    """Return the leaves that are donated in a call with `count` positional arguments.

    `in_tree` is the structure of the arguments that are not static.
    """
    if not donate.nums and not donate.names:
        return ()
    args, kwargs = in_tree.children()
    given = [i for i in range(count) if i not in static.positions(count)]
    nums = donate.positions(count)
    chosen = [i in nums for i in given]
    chosen += [k in donate.names for k in kwargs.node_data()[1]]
    parts = zip(chosen, [*args.children(), *kwargs.children()], strict=True)
    marks = [donated for donated, part in parts for _ in range(part.num_leaves)]
    return tuple([i for i, donated in enumerate(marks) if donated])


# --- static arguments that cannot be hashed -------------------------------------------------------


def unhashable_error(op: str, name: str, static: tuple) -> Exception:
    """The error for a static argument of `name` that cannot be part of a key."""
    for where, kind, x in sum(static, ()):
        try:
            hash(x)
        except TypeError:
            what = f"argument {where}" if isinstance(where, int) else f"argument `{where}`"
            path, part = find_unhashable(x)
            inside = f", where {path} is of type {type(part).__name__}" if path else ""
            return ValueError(
                f"{op}: static arguments must be hashable; got {kind.__name__} as {what} "
                f"of {name}{inside}. Hint: {hashable_hint(part)}"
            )
    return TypeError(f"{op}: a part of the call to {name} is not hashable.")


def find_unhashable(x: Any, path: str = "") -> tuple[str, Any]:
    """The innermost part of a value that cannot be hashed, after the way there: `[0].rate`."""
    if isinstance(x, tuple):
        names = getattr(type(x), "_fields", None)
        parts = [(f".{names[i]}" if names else f"[{i}]", part) for i, part in enumerate(x)]
    elif dataclasses.is_dataclass(x) and type(x).__hash__ is not None:
        parts = [(f".{f.name}", getattr(x, f.name, None)) for f in dataclasses.fields(x)]
    else:
        parts = []
    for step, part in parts:
        try:
            hash(part)
        except TypeError:
            return find_unhashable(part, path + step)
    return path, x


def hashable_hint(x: Any) -> str:
    """Return the value to pass as a static argument, or as a part of one, instead of `x`."""
    if isinstance(x, list):
        return "pass a tuple for a list."
    if isinstance(x, set):
        return "pass a frozenset for a set."
    if isinstance(x, dict):
        return "pass tuple(sorted(x.items())) for a dict, or a frozen dataclass."
    if is_valid_value(x):
        return "pass an array as an argument that is not static, or tuple(x.tolist())."
    return "pass a frozen dataclass for an object with settings."
