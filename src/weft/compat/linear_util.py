"""The names of `jax.extend.linear_util`: functions of flat lists, and what is put around them.

A transformation is a generator: it yields the arguments for the function as `(args, kwargs)`, is
sent the result, and yields its own. With an auxiliary result it yields a pair, whose second a thunk
gives after the call. The functions whose name ends in 2 take the function in place of yielding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.util import list_public

__all__ = [
    "StoreException", "WrappedFun", "merge_linear_aux", "transformation", "transformation2",
    "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip
__dir__ = list_public(__name__)


class StoreException(Exception):
    """An auxiliary result was asked for before the function was called."""


class WrappedFun:
    """A function, and the one that it was made of: `call_wrapped` calls it."""

    def __init__(self, f: Callable, fun: Callable, debug_info: Any = None):
        self.f = f
        self.call_wrapped = fun
        self.debug_info = debug_info
        self.__name__ = getattr(f, "__name__", type(f).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call_wrapped(*args, **kwargs)

    def __repr__(self) -> str:
        return f"WrappedFun({self.f!r})"


class Store:
    """Holds the auxiliary result of the last call."""

    def __init__(self) -> None:
        self.values: list = []

    def store(self, value: Any) -> None:
        """Keep a value."""
        self.values[:] = [value]

    def __call__(self) -> Any:
        if not self.values:
            raise StoreException("linear_util: an auxiliary result is there after the call alone.")
        return self.values[0]


def wrap_init(f: Callable, params: dict | None = None, *, debug_info: Any = None) -> WrappedFun:
    """A function as one to transform; `params` are keyword arguments of it."""
    return WrappedFun(f, functools.partial(f, **params) if params else f, debug_info)


def transformation2(gen: Callable, *given: Any) -> Any:
    """`gen(f, *static, *args)` in place of `fun`: from `(gen, fun, *static)`, or a decorator."""
    if not given:
        return functools.partial(transformation2, gen)
    fun, *static = given
    return WrappedFun(fun.f, functools.partial(gen, fun.call_wrapped, *static), fun.debug_info)


def transformation_with_aux2(gen: Callable, *given: Any, **options: Any) -> Any:
    """As `transformation2`, for `gen(f, store, *static, *args)`; also a thunk of what it stores."""
    if not given:
        return functools.partial(transformation_with_aux2, gen)
    fun, *static = given
    store = Store()
    return transformation2(gen, fun, store, *static), store


def _run(gen: Callable, fun: Callable, *args: Any, **kwargs: Any) -> Any:
    steps = gen(*args, **kwargs)
    inner, options = next(steps)
    return steps.send(fun(*inner, **options))


def _run_with_aux(gen: Callable, fun: Callable, store: Store, *args: Any, **kwargs: Any) -> Any:
    out, aux = _run(gen, fun, *args, **kwargs)
    store.store(aux)
    return out


def transformation(gen: Callable, *given: Any) -> Any:
    """What the generator `gen(*static, *args)` makes of `fun`, or a decorator."""
    return transformation2(functools.partial(_run, gen), *given)


def transformation_with_aux(gen: Callable, *given: Any, **options: Any) -> Any:
    """As `transformation`, for a generator that yields a pair; also a thunk of its second."""
    return transformation_with_aux2(functools.partial(_run_with_aux, gen), *given)


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple[bool, Any]:
    """Whether the first of two functions was run, and its auxiliary result or the second's."""
    try:
        return True, aux1()
    except StoreException:
        return False, aux2()
