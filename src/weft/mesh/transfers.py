"""Transfers that a guard refused, and that are made after all where weft asked for them.

`weft.transfer_guard` is about values that a user passes without saying that they are moved. The
guards of jaxlib cannot tell these from the numbers that weft makes: the constants of a formula, a
result that was found on the host. So the places that move a host value or call a program ask here
when a guard refused, and repeat the call if no operand is a value of the user's.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import numpy as np
from jaxlib import _jax

from weft.errors import OWN, JaxRuntimeError
from weft.pytrees import flatten

NUMBERS = (bool, int, float, complex)
HOST = (np.ndarray, np.generic, *NUMBERS)


def is_own_transfer(error: Exception, operands: Any) -> bool:
    """Return True if a guard refused to move operands that are all weft's own.

    Args:
      error: the error of the call, which may be about anything else.
      operands: a pytree of the values that the call was to move.
    """
    if not isinstance(error, JaxRuntimeError) or "Disallowed host-to-device" not in str(error):
        return False
    if _jax.guard_lib.thread_local_state().explicit_device_put:  # refused although weft said so
        return False
    if getattr(error, "of_user", False):  # as an inner call found
        return False
    moved = [x for x in flatten(operands)[0] if isinstance(x, HOST)]
    given = list_arguments(find_entry(sys._getframe(1)))
    error.of_user = any(is_part(x, y) for y in given for x in moved)
    return not error.of_user


def move_explicitly(move: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return `move(*args, **kwargs)`. Its transfers count as explicit, as by device_put."""
    state = _jax.guard_lib.thread_local_state()
    state.explicit_device_put = True
    try:
        return move(*args, **kwargs)
    finally:
        state.explicit_device_put = False


def find_entry(frame: FrameType) -> FrameType:
    """Return the frame of the function of weft that the user called."""
    while (outer := frame.f_back) is not None and outer.f_code.co_filename.startswith(OWN):
        frame = outer
    return frame


def list_arguments(frame: FrameType) -> Iterable[Any]:
    """Return the arguments of the function that runs in a frame, except for defaults."""
    names, rest, named, values = inspect.getargvalues(frame)
    if frame.f_code.co_name == "__init__":
        names = names[1:]  # the object that is being built, which has no leaves yet
    fun = inspect.unwrap(frame.f_globals.get(frame.f_code.co_name, list_arguments))
    defaults: dict[str, Any] = {}
    if getattr(fun, "__code__", None) is frame.f_code:
        defaults = {k: p.default for k, p in inspect.signature(fun).parameters.items()}
    given = [values[n] for n in names if n in values and values[n] is not defaults.get(n, frame)]
    given += values.get(rest, ()) if rest else ()
    return [*given, *(values.get(named, {}) if named else {}).values()]


def is_part(x: Any, argument: Any) -> bool:
    """Return True if a host value is a leaf of an argument, shares its memory, or equals it."""
    leaves = [y for y in flatten(argument)[0] if isinstance(y, HOST)]
    if any(x is y or (type(x) is type(y) and type(x) in NUMBERS and x == y) for y in leaves):
        return True
    if not isinstance(x, np.ndarray) or not leaves or isinstance(argument, NUMBERS):
        return False  # weft may have made an array with the same number
    if any(isinstance(y, np.ndarray) and np.may_share_memory(x, y) for y in leaves):
        return True
    if sum(np.size(y) for y in leaves) != x.size:
        return False
    # A copy, perhaps in another dtype, or the array of a list of numbers.
    return np.array_equal(np.concatenate([np.ravel(y) for y in leaves]), np.ravel(x))
