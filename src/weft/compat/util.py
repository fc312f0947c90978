"""The names of `jax._src.util`: helpers on lists, tuples, axes and functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any

from weft.api_util import safe_map, safe_zip
from weft.numpy.promotion import axes_of, axis_of
from weft.util import fun_name, list_public, memoize, merge, partition, unzip2

__all__ = [
    "HashableFunction", "HashablePartial", "cache", "canonicalize_axis",
    "canonicalize_axis_tuple", "ceil_of_ratio", "concatenate", "curry", "flatten", "fun_name",
    "memoize", "merge_lists", "partition_list", "safe_map", "safe_zip", "set_module", "split_list",
    "subvals", "tuple_delete", "tuple_insert", "tuple_update", "unflatten", "unzip2", "unzip3",
    "use_cpp_class", "use_cpp_method", "weakref_lru_cache", "wrap_name", "wraps",
]  # fmt: skip
__dir__ = list_public(__name__)


def cache(max_size: int | None = 4096, *options: Any, **more: Any) -> Callable:
    """Return a decorator that remembers the results of a function."""
    return memoize


def weakref_lru_cache(call: Callable, maxsize: int | None = 2048, **options: Any) -> Callable:
    """Remember the results of a function; here the first argument is held too."""
    return memoize(call)


class HashablePartial:
    """A partial application that is equal to another one of equal function and arguments."""

    def __init__(self, f: Callable, *args: Any, **kwargs: Any):
        self.f, self.args, self.kwargs = f, args, kwargs
        self.key = f, args, tuple(sorted(kwargs.items()))

    def __eq__(self, other: Any) -> bool:
        return type(other) is HashablePartial and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)


class HashableFunction:
    """A function that is equal to another one with an equal closure."""

    def __init__(self, f: Callable, closure: Any):
        self.f, self.closure = f, closure

    def __eq__(self, other: Any) -> bool:
        return type(other) is HashableFunction and self.closure == other.closure

    def __hash__(self) -> int:
        return hash(self.closure)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)


def canonicalize_axis(axis: Any, num_dims: int) -> int:
    """Return an axis as a number that is not negative."""
    return axis_of("canonicalize_axis", index(axis), num_dims)


def canonicalize_axis_tuple(axis: Any, ndim: int, allow_duplicate: bool = False) -> tuple[int, ...]:
    """Return one axis, or several, or None for all, as a tuple of numbers."""
    if allow_duplicate and isinstance(axis, Iterable):
        return tuple([canonicalize_axis(i, ndim) for i in axis])
    return axes_of("canonicalize_axis_tuple", axis, ndim)


def ceil_of_ratio(x: int, y: int) -> int:
    """Return the quotient of two integers, rounded up."""
    return -(-x // y)


def concatenate(xs: Iterable[Sequence]) -> list:
    """Return the elements of several sequences as one list."""
    return [x for seq in xs for x in seq]


flatten = concatenate


def unflatten(xs: Iterable, ns: Sequence[int]) -> list[list]:
    """Return lists of the given lengths, taken one after the other from the elements."""
    rest = iter(xs)
    return [[next(rest) for _ in range(n)] for n in ns]


def curry(f: Callable) -> Callable:
    """Return a function that takes the first arguments of `f`, and gives one of the others."""
    return functools.partial(functools.partial, f)


merge_lists, partition_list = merge, partition


def split_list(args: Sequence, ns: Sequence[int]) -> list[list]:
    """Return lists of the given lengths, and one of the rest."""
    ends = [sum(ns[:i]) for i in range(len(ns) + 1)]
    return [list(args[i:j]) for i, j in zip(ends, [*ends[1:], None], strict=True)]


def subvals(lst: Sequence, replace: Iterable[tuple[int, Any]]) -> tuple:
    """Return the elements with some replaced, by their places."""
    new = dict(replace)
    return tuple([new.get(i, x) for i, x in enumerate(lst)])


def tuple_insert(t: tuple, idx: int, val: Any) -> tuple:
    """Return a tuple with one more element in front of a place."""
    return (*t[:idx], val, *t[idx:])


def tuple_delete(t: tuple, idx: int) -> tuple:
    """Return a tuple without the element at a place."""
    return (*t[:idx], *t[idx + 1 :])


def tuple_update(t: tuple, idx: int, val: Any) -> tuple:
    """Return a tuple with another element at a place."""
    return (*t[:idx], val, *t[idx + 1 :])


def unzip3(triples: Iterable[tuple]) -> tuple[tuple, tuple, tuple]:
    """Return three tuples from a sequence of triples."""
    x, y, z = tuple(zip(*triples, strict=True)) or ((), (), ())
    return x, y, z


def set_module(module: str) -> Callable:
    """Return a decorator that sets the module of a function or class."""

    def wrap(fun: Any) -> Any:
        fun.__module__ = module
        return fun

    return wrap


def use_cpp_class(cls: Any) -> Callable:
    """Return a decorator that returns the Python class unchanged."""
    return lambda own: own


def use_cpp_method(is_enabled: bool = True) -> Callable:
    """Return a decorator that returns the Python method unchanged."""
    return lambda own: own


def wrap_name(transform_name: str, name: str) -> str:
    """Return the name of a transformed function: `vmap(f)`."""
    return f"{transform_name}({name})"


def wraps(
    wrapped: Callable, namestr: str | None = None, docstr: str | None = None, **options: Any
) -> Callable:
    """Return a decorator as `functools.wraps`, for names and texts with `{fun}` and `{doc}`."""

    def wrap(fun: Any) -> Any:
        name, doc = fun_name(wrapped), getattr(wrapped, "__doc__", None) or ""
        functools.update_wrapper(fun, wrapped, updated=())
        if namestr is not None:
            fun.__name__ = fun.__qualname__ = namestr.format(fun=name)
        if docstr is not None:
            fun.__doc__ = docstr.format(fun=name, doc=doc, **options)
        return fun

    return wrap
