"""Looking for what a function read when it was traced, and finds changed when it is called again.

A global, a closed-over value or an attribute of a static argument becomes a part of the program.
Under `debug_globals` those that have an equality of their own, and the elements of NumPy arrays,
are compared at each call.
"""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.errors import is_own_file
from weft.util import EMPTY_CELL

PLAIN = (bool, int, float, complex, str, bytes, type(None), tuple, list, dict, set, frozenset)


def read_captures(fun: Callable, static: dict[str, Any]) -> dict[str, Any]:
    """Copies of the values that a function and the user's functions below read from outside.

    `static` are static arguments by name, whose attributes are read as well.
    """
    found: dict[str, Any] = {}
    todo, seen = [inspect.unwrap(fun)], set()
    for name, x in static.items():
        if not callable(x) and hasattr(x, "__dict__"):
            attributes = {f"{name}.{n}": v for n, v in vars(x).items()}
            found |= {n: copy.deepcopy(v) for n, v in attributes.items() if is_comparable(v)}
    while todo:
        f = todo.pop()
        owner = getattr(f, "__self__", None)
        f = getattr(f, "__func__", f)
        if (
            not isinstance(f, types.FunctionType)
            or f in seen
            or is_own_file(f.__code__.co_filename)
        ):
            continue
        seen.add(f)
        values = {n: f.__globals__[n] for n in names_in(f.__code__) if n in f.__globals__}
        cells = zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
        values |= {n: cell.cell_contents for n, cell in cells if cell != EMPTY_CELL}
        if owner is not None and hasattr(owner, "__dict__"):
            values |= {f"self.{n}": v for n, v in vars(owner).items()}
        for name, value in values.items():
            if is_comparable(value):
                found[name] = copy.deepcopy(value)
            elif callable(value):
                todo.append(inspect.unwrap(value))
    return found


def is_comparable(x: Any) -> bool:
    """Return True if equality of two values says that a program may use either."""
    return isinstance(x, np.ndarray | np.generic) or type(x) in PLAIN


def names_in(code: types.CodeType) -> set[str]:
    """The names that code, and the functions defined in it, may read as globals."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


def check_captures(name: str, fun: Callable, static: dict[str, Any], memo: dict) -> None:
    """Raise if a captured value of `fun` differs from its value in `memo`, when it was traced."""
    now = read_captures(fun, static)
    before = memo.setdefault("captures", now)
    for key in before:
        old, new = before[key], now.get(key)
        if not is_same(old, new):
            raise RuntimeError(
                f"jit: {name} must find what it was traced with; got {key} = {new!r} where it was "
                f"{old!r}, which is in the program. Hint: pass {key} as an argument."
            )


def is_same(old: Any, new: Any) -> bool:
    """Return True if two values are of one type and equal, NaN to itself."""
    if type(old) is not type(new):
        return False
    try:
        if isinstance(old, np.ndarray):
            return np.array_equal(old, new, equal_nan=old.dtype.kind in "fc")
        return bool(old == new) or bool(old != old and new != new)
    except (TypeError, ValueError):  # arrays inside, whose == has no truth value
        return True
