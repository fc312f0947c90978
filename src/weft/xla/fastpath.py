"""The C++ call path: a callable that runs a cached executable without entering Python.

On a miss it calls back; what to do then is the caller's (eager.py for one operation, control/jit.py
for a function).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlib import _jax

from weft.pytrees import default_registry

_CACHE = _jax.PjitFunctionCache()


def compiled_call(
    name: str,
    miss: Callable[..., tuple],
    fun: Callable | None = None,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    key: Any = (),
) -> Any:
    """A C++ callable. `miss(*args, **kwargs) -> (result, FastPath or None, False)`."""
    return _jax.pjit(
        name, fun, miss, static_argnums, static_argnames, key, default_registry, _shard, _CACHE
    )


def forget_executables() -> None:
    """Empty the memory of the C++ call path."""
    _CACHE.clear_all()


def _shard(*args: Any) -> Any:
    raise NotImplementedError("fastpath: an argument cannot be placed from C++.")
