"""The C++ call path: a callable that runs a cached executable without entering Python.

On a miss it calls back; what to do then is the caller's (eager.py for one operation, api/jit.py and
operation.py for a public function).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from jaxlib import _jax
from numpy import generic, ndarray

from weft.core.trace import is_eager
from weft.options import config, disable_jit_cell
from weft.pytrees import call_registry, flatten, unflatten
from weft.xla.array import HOST, SMALL, WIDE_FLOATS, ArrayImpl, copy_writable, put

_FLAT = frozenset((ArrayImpl, int, float))  # types that are not pytrees and need no copy
_CACHE = _jax.PjitFunctionCache()
_CLEARED: list = []  # grows when it is cleared, except for executables of dead calls
CompiledCall: Any = _jax.PjitFunction  # the class of `compiled_call`'s results


def compiled_call(
    name: str,
    miss: Callable[..., tuple],
    fun: Callable | None = None,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    key: Any = (),
) -> Any:
    """A C++ callable. `miss(*args, **kwargs) -> (result, FastPath or None, False)`.

    jaxlib reads NumPy's memory when the program runs, which may be after the call. So a call
    with NumPy's values always misses, and a second callable takes copies of them.
    """
    all_traced = not (static_argnums or static_argnames)

    def take(*args: Any, **kwargs: Any) -> tuple:
        __tracebackhide__ = True
        other = bool(kwargs)  # than arrays is among the arguments
        for x in args:
            if type(x) is not ArrayImpl:
                other = True
                break
        if other and (fun is None or (is_eager() and not disable_jit_cell.value)):
            if all_traced and not kwargs and (copies := copy_flat(args)):
                return on_copies(*copies), None, False
            static = {i % len(args) for i in static_argnums if -len(args) <= i < len(args)}
            given = tuple([x for i, x in enumerate(args) if i not in static])
            named = {k: x for k, x in kwargs.items() if k not in static_argnames}
            leaves, tree = flatten((given, named))
            for x in leaves:
                if isinstance(x, HOST):
                    given, named = unflatten(tree, [copy_writable(x) for x in leaves])
                    rest = iter(given)
                    every = [args[i] if i in static else next(rest) for i in range(len(args))]
                    return on_copies(*every, **{**kwargs, **named}), None, False
        try:
            return miss(*args, **kwargs)
        except Exception as error:
            if config.traceback_filtering not in ("off", "tracebackhide"):  # not the user's
                error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
            raise

    def clear() -> None:
        for engine_call in [found for ref in made if (found := ref()) is not None]:
            type(engine_call)._clear_cache(engine_call)

    callable_for = lambda miss, key: _jax.pjit(
        name, fun, miss, static_argnums, static_argnames, key, call_registry, _shard, _CACHE
    )
    on_copies = callable_for(miss, (key, "copies", len(_CLEARED)))
    call = callable_for(take, (key, len(_CLEARED)))
    made = weakref.ref(call), weakref.ref(on_copies)  # no cycle: a call let go of is freed at once
    call._clear_cache = clear
    call._on_copies = on_copies  # for callers that pass NumPy's arrays that nothing else refers to
    return call


def copy_flat(args: Sequence[Any]) -> list | None:
    """Return the arguments with copies of NumPy's arrays; None without any, or for other leaves."""
    copied, every = False, []
    for x in args:
        if type(x) is ndarray:
            small = x.nbytes <= SMALL and x.dtype not in WIDE_FLOATS
            copied, x = True, x.copy() if small else copy_writable(x)
        elif isinstance(x, generic | bool):
            copied, x = True, copy_writable(x)
        elif type(x) not in _FLAT:
            return None
        every.append(x)
    return every if copied else None


def is_unhashable_static(error: ValueError) -> bool:
    """Return True if jaxlib refused a call, before any miss, for an unhashable static argument."""
    return str(error).startswith("Non-hashable static arguments")


def forget_executables() -> None:
    """Empty the memory of the C++ call path."""
    _CLEARED.append(_CACHE.clear_all())


if hasattr(os, "register_at_fork"):  # compile.py says why none may run there
    os.register_at_fork(after_in_child=forget_executables)


def _shard(x: Any, sharding: Any, layout: Any) -> Any:
    """An argument with another sharding than the program takes, moved to that one."""
    return put(x, sharding)
