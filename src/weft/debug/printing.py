"""`callback`, `print` and `log` for debugging: Python called by a program with its values.

The prompt of `breakpoint` is prompt.py's; calls that matter to the program are api/callbacks.py's.
"""

from __future__ import annotations

import builtins
import functools
import re
import string
from collections.abc import Callable, Sequence
from typing import Any

from weft.api.callbacks import pass_words
from weft.api.functions import check_callable
from weft.core.aval import ShapedArray, is_valid_value
from weft.primitives import effects
from weft.pytrees import PyTreeDef, flatten, unflatten
from weft.util import Logger, fun_name, insert_at, name_function
from weft.xla.array import put

__all__ = ["callback", "log", "print"]

logger = Logger("weft.debug")


class Shown:
    """A call of a function with a program's values; leaves that are not arrays are kept in it."""

    __slots__ = ("fun", "in_tree", "kept")

    def __init__(self, fun: Callable, in_tree: PyTreeDef, kept: dict[int, Any]):
        self.fun = fun
        self.in_tree = in_tree
        self.kept = kept

    def __call__(self, result_avals: Sequence[ShapedArray], *leaves: Any) -> list:
        args, kwargs = unflatten(self.in_tree, insert_at(map(put, leaves), self.kept))
        self.fun(*args, **kwargs)
        return []

    @property
    def __name__(self) -> str:
        return fun_name(self.fun)

    @property
    def fmt(self) -> str:
        """The format, if the function is a printing function of this file."""
        return self.fun.args[0]  # type: ignore[attr-defined]


def bind_call(fun: Callable, args: tuple, kwargs: dict, bind: Callable, partitioned: bool) -> None:
    """Bind a primitive that calls `fun` with the values of these arguments."""
    leaves, in_tree = flatten((args, kwargs))
    kept = {i: x for i, x in enumerate(leaves) if not is_valid_value(x)}
    values = [x for i, x in enumerate(leaves) if i not in kept]
    shown, values = pass_words(Shown(fun, in_tree, kept), values)
    bind(*values, callback=shown, partitioned=partitioned, result_avals=())


def callback(
    callback: Callable | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with values of a program. Its result is dropped.

    It is for showing and logging values. The call may be repeated or left out where a program is
    transformed; `io_callback` is for calls that matter. Under `grad` the function receives the
    primal values, once. Under `vmap` it is called for each element.

    Args:
      callback: the function. Without it, `callback(ordered=True)` returns a function that takes it
        as its first argument.
      *args: pytrees of arrays, the positional arguments of the function.
      ordered: if True, the calls are made in program order. The default is
        False.
      partitioned: if True, in a program over a mesh each device makes a call with its own parts of
        the values. If False, the default, one device makes a call with the whole arrays. Ordered
        calls are not affected.
      **kwargs: pytrees of arrays, the keyword arguments of the function.

    Returns:
      None.

    >>> @weft.jit
    ... def f(x):
    ...     weft.debug.callback(lambda v: builtins.print("x is", v), x)
    ...     return x + 1
    >>> y = f(2.0)
    x is 2.0
    """
    if callback is None:
        return functools.partial(_callback, ordered, partitioned)
    return _callback(ordered, partitioned, callback, *args, **kwargs)


def _callback(
    ordered: bool, partitioned: bool, fun: Callable, /, *args: Any, **kwargs: Any
) -> None:
    check_callable("debug.callback", fun)
    prim = effects.ordered_debug_callback_p if ordered else effects.debug_callback_p
    bind_call(fun, args, kwargs, prim.apply, partitioned)


def define_writer(how: str, write: Callable, doc: str) -> Callable:
    """`print` or `log`: `write` is called with the format and the values of its fields."""

    def finish(
        ordered: bool, partitioned: bool, unchecked: bool, fmt: str, /, *args: Any, **kwargs: Any
    ) -> None:
        if not isinstance(fmt, str):
            raise TypeError(
                f"debug.{how}: the format must be a string; got {type(fmt).__name__}. "
                f'Hint: debug.{how}("{{}}", x).'
            )
        if not unchecked:
            Checker(f"debug.{how}", fmt).vformat(fmt, args, kwargs)
        prim = effects.ordered_debug_print_p if ordered else effects.debug_print_p
        bind_call(functools.partial(write, fmt), args, kwargs, prim.apply, partitioned)

    def say(
        fmt: str | None = None,
        *args: Any,
        ordered: bool = False,
        partitioned: bool = False,
        skip_format_check: bool = False,
        **kwargs: Any,
    ) -> Any:
        apply = functools.partial(finish, ordered, partitioned, skip_format_check)
        return apply if fmt is None else apply(fmt, *args, **kwargs)

    return name_function(say, how, doc)


class Checker(string.Formatter):
    """Formats nothing, and raises where a format and its arguments do not fit together."""

    def __init__(self, op: str, fmt: str):
        self.op = op
        self.fmt = fmt

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        first = re.split(r"[.\[]", field_name, maxsplit=1)[0]
        key = int(first) if first.isdigit() else first
        if isinstance(key, int) and key >= len(args):
            raise IndexError(
                f"{self.op}: there must be an argument for each field of the format; got "
                f"{len(args)} positional for {self.fmt!r}."
            )
        if isinstance(key, str) and key not in kwargs:
            raise KeyError(
                f"{self.op}: there must be an argument for each field of the format; got none "
                f"named {key} for {self.fmt!r}. Hint: {self.op}({self.fmt!r}, {key}=...)."
            )
        return "", key

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [k for k in (*range(len(args)), *kwargs) if k not in used_args]
        if unused:
            listed = ", ".join(f"argument {k}" if isinstance(k, int) else k for k in unused)
            raise ValueError(
                f"{self.op}: there must be a field of the format for each argument; got none for "
                f"{listed} in {self.fmt!r}. Hint: a plain string with {{}}, not an f-string."
            )


print = define_writer(
    "print",
    # in one write, so that lines which several devices print at once do not mix
    lambda fmt, *args, **kwargs: builtins.print(fmt.format(*args, **kwargs) + "\n", end=""),
    """Print values, also in a compiled program.

    An f-string would print traced values, so the format and the values are separate arguments.
    Under `grad` it prints the primal values, and under `vmap` once for each element. It may print
    more or less often where a program is transformed.

    Args:
      fmt: a format of `str.format`, such as "x is {} and y {y:.3f}".
      *args: arrays or pytrees of arrays for the fields `{}`.
      ordered: if True, lines are printed in the order of the calls. The default is False.
      partitioned: if True, in a program over a mesh each device prints its own parts of the values.
        The default is False.
      skip_format_check: if True, the format is not checked against the arguments at the call. The
        default is False.
      **kwargs: arrays or pytrees of arrays for the fields with names.

    Returns:
      None.

    Raises:
      TypeError: the format is not a string.
      ValueError, IndexError, KeyError: the arguments do not fit the fields of the format.

    >>> @weft.jit
    ... def f(x):
    ...     weft.debug.print("x is {}, twice that {y:.1f}", x, y=2 * x)
    ...     return x + 1
    >>> y = f(2.0)
    x is 2.0, twice that 4.0
    """,
)
log = define_writer(
    "log",
    lambda fmt, *args, **kwargs: logger.info("%s", fmt.format(*args, **kwargs)),
    """Write values to the logger `weft.debug`, at level INFO, also in a compiled program.

    Args:
      fmt: a format of `str.format`, such as "x is {} and y {y:.3f}".
      *args: arrays or pytrees of arrays for the fields `{}`.
      ordered: if True, messages are written in the order of the calls. The default is False.
      partitioned: if True, in a program over a mesh each device writes its own parts of the values.
        The default is False.
      skip_format_check: if True, the format is not checked against the arguments at the call. The
        default is False.
      **kwargs: arrays or pytrees of arrays for the fields with names.

    Returns:
      None.

    >>> @weft.jit
    ... def f(x):
    ...     weft.debug.log("x is {}", x)
    ...     return x + 1
    >>> f(2.0)
    Array(3., dtype=float32, weak_type=True)
    """,
)
