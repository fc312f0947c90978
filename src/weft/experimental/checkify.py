"""`checkify`: errors of compiled programs as values that a program returns beside its results.

Looking for what goes wrong while a program runs is transforms/check.py; here are the functions that
users call, and `Error`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from weft.api.custom_rules import stop_gradient
from weft.api.functions import check_callable
from weft.control.checks import bind_failures
from weft.core.aval import is_valid_value, typeof
from weft.core.trace import Tracer, current
from weft.errors import ConcretizationTypeError
from weft.options import config
from weft.primitives.checks import Failure, JaxRuntimeError, check_p, failure_message
from weft.primitives.elementwise import bitwise_not
from weft.pytrees import flatten, register_pytree_node, tree_map
from weft.transforms.check import run_checked
from weft.util import list_public
from weft.xla.array import HOST, put

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
    "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
    "nan_checks", "user_checks",
]  # fmt: skip
__dir__ = list_public(__name__)

ErrorCategory = str
user_checks = frozenset(["user"])
nan_checks = frozenset(["nan"])
div_checks = frozenset(["division"])
index_checks = frozenset(["index"])
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Error:
    """The result of the checks of a function: the first check that failed, or none. It is a pytree.

    `checkify` returns it. Under `vmap` it holds the first failure of each element.

    Attributes:
      get: a method that returns the message, or None.
      throw: a method that raises JaxRuntimeError if a check failed.

    >>> from weft.experimental import checkify
    >>> err, _ = checkify.checkify(lambda x: checkify.check(x > 0, "x is not positive"))(1.0)
    >>> print(err.get())
    None
    """

    __slots__ = ("_code", "_failures", "_slots")

    def __init__(self, code: Any, slots: Sequence[Any], failures: tuple[Failure, ...]):
        self._code = code
        self._slots = slots
        self._failures = failures

    def get(self) -> str | None:
        """Return the message of the first failure; None if no check failed."""
        if isinstance(self._code, Tracer):
            hint = "return the error from the function, or checkify.check_error(err)."
            self._code.concrete(ConcretizationTypeError, "Error.get()", hint)
        return "\n".join(self._messages()) or None

    def _messages(self) -> Iterator[str]:
        codes = np.asarray(self._code)
        for place in np.argwhere(codes):
            at = tuple(place)
            slots = [s[at] if at else s for s in self._slots]
            text = failure_message(self._failures[codes[at] - 1], slots)
            yield f"at mapped index {', '.join(map(str, at))}: {text}" if at else text

    def throw(self) -> None:
        """Raise JaxRuntimeError if something went wrong; in a traced function, `check_error`."""
        if isinstance(self._code, Tracer):
            check_error(self)
        elif text := self.get():
            raise JaxRuntimeError(text)

    def __repr__(self) -> str:
        return f"Error({self._code if isinstance(self._code, Tracer) else self.get()})"


register_pytree_node(
    Error,
    lambda e: ((e._code, *e._slots), e._failures),
    lambda failures, children: Error(children[0], children[1:], failures),
)


def checkify(f: Callable, errors: frozenset[str] = user_checks) -> Callable:
    """Return a function that returns the failures of its checks, in place of raising them.

    The program runs to its end; the error is the first failure in it.

    Args:
      f: a function of pytrees of arrays, which may call `check`.
      errors: a set of checks: `user_checks` (calls of `check`, the default), `nan_checks`,
        `div_checks` or `index_checks`, or a union of them. `float_checks`, `automatic_checks` and
        `all_checks` are such unions.

    Returns:
      A function of the arguments of `f`. It returns a pair: an `Error`, and the result of `f`.

    >>> from weft.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "x must be positive, got {}", x)
    ...     return jnp.log(x)
    >>> err, y = weft.jit(checkify.checkify(f))(-1.0)
    >>> err.get()  # doctest: +ELLIPSIS
    'x must be positive, got -1.0 (`check` failed at ...)'
    >>> err, y = checkify.checkify(jnp.log, errors=checkify.nan_checks)(-1.0)
    >>> "nan" in err.get()
    True
    """
    check_callable("checkify", f, wraps=True)
    known = isinstance(errors, Iterable) and all(
        isinstance(e, str) and e in all_checks for e in errors
    )
    if not known:
        raise ValueError(
            "checkify: errors must be a union of the sets of checks in weft.experimental.checkify; "
            f"got {errors!r}. Hint: errors=checkify.float_checks"
        )
    errors = frozenset(errors)

    # Indices out of bounds are then errors of the program.
    bounds = {"check_bounds": False} if "index" in errors else {}

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        # Convert NumPy values to arrays, so that operations on them are checked.
        seen = lambda x: put(x) if isinstance(x, HOST) and is_valid_value(x) else x
        args, kwargs = tree_map(seen, (args, kwargs))
        with config.scope(**bounds):
            trace, out = run_checked(lambda: f(*args, **kwargs), (), errors)
        return Error(trace.code, trace.slots, tuple(trace.failures)), out

    return checked


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """State that a condition must hold, with a message for the case that it does not.

    Where the values are known, it raises at once. In a compiled function, `checkify` makes the
    check a value that the function returns.

    Args:
      pred: a scalar bool.
      msg: the message, a format of `str.format`.
      *fmt_args: pytrees of arrays or numbers for the format.
      debug: if True, the check is passed over unless `checkify` makes it a value. The default is
        False.
      **fmt_kwargs: pytrees of arrays or numbers for the format, by name.

    Returns:
      None.

    Raises:
      JaxRuntimeError: the condition is known to be False.

    >>> from weft.experimental import checkify
    >>> checkify.check(jnp.array(2.0) > 1, "too small: {}", 2.0)
    """
    aval = typeof(pred, "check") if is_valid_value(pred) else None
    if aval is None or aval.shape or aval.dtype != bool:
        raise TypeError(
            f"check: pred must be a scalar bool; got {aval or repr(pred)}. Hint: jnp.all(pred)"
        )
    leaves, tree = flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not is_valid_value(x):
            raise TypeError(
                "check: formatting arguments must be pytrees of arrays or numbers; "
                f"got {x!r} of type {type(x).__name__}."
            )
    check_format(msg, fmt_args, fmt_kwargs)
    values = [stop_gradient(x) if isinstance(x, Tracer) else as_array(x) for x in leaves]
    source = current.source or current.capture()
    failure = Failure("user", msg, source, tuple(range(len(values))), tree)
    bad = bitwise_not(pred) if hasattr(pred, "aval") else not pred
    check_p.apply(bad, np.int32(1), *values, failures=(failure,), debug=debug, kind="user")


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """State that a condition must hold, only where `checkify` makes the check a value.

    Args:
      pred: a scalar bool.
      msg: the message, a format of `str.format`.
      *fmt_args: pytrees of arrays or numbers for the format.
      **fmt_kwargs: pytrees of arrays or numbers for the format, by name.

    Returns:
      None.

    >>> from weft.experimental import checkify
    >>> checkify.debug_check(jnp.array(0.0) > 1, "too small")  # passed over
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise the error that a checked function returned, as `check` does.

    Within a checked function it becomes the error of that function.

    Args:
      error: an `Error`.

    Returns:
      None.

    Raises:
      JaxRuntimeError: a check failed.

    >>> from weft.experimental import checkify
    >>> err, _ = checkify.checkify(lambda x: checkify.check(x > 0, "x is not positive"))(1.0)
    >>> checkify.check_error(err)
    """
    if not isinstance(error, Error):
        raise TypeError(
            f"check_error: needs an Error, as checkify returns; got {type(error).__name__}. "
            "Hint: err, out = checkify.checkify(f)(x); checkify.check_error(err)"
        )
    bind_failures(error._failures, [error._code, *error._slots])


class Anything:
    """Stands for any value in a format."""

    def __format__(self, spec: str) -> str:
        return ""

    def __getitem__(self, key: Any) -> Anything:
        return self

    __getattr__ = __getitem__


def check_format(msg: str, args: tuple, kwargs: dict) -> None:
    """Raise, before anything fails, where `msg` asks for an argument that is not there."""
    if not isinstance(msg, str):
        raise TypeError(f"check: msg must be a string; got {msg!r} of type {type(msg).__name__}.")
    try:
        msg.format(*[Anything() for _ in args], **{k: Anything() for k in kwargs})
    except (IndexError, KeyError, ValueError) as error:
        raise type(error)(
            f"check: msg must be a format for its arguments; got {msg!r} with {len(args)} by "
            f"position and {sorted(kwargs)} by name. Hint: checkify.check(pred, 'x is {{}}', x)"
        ) from None


def as_array(x: Any) -> Any:
    """A number as an array; an array unchanged."""
    return x if hasattr(x, "dtype") else np.asarray(x, typeof(x).dtype)
