"""Functions that place elements, of arrays of random keys: they act on each word of the keys alike.

What keys are is random/keys.py's; here is the mark by which they are known, and the decorator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.api.vmap import vmap
from weft.core.source import trim_traceback
from weft.errors import DtypeError
from weft.pytrees import flatten, tree_map, unflatten


class Keyed:
    """An array of keys: `words`, whose last axis is of the words of a key, and a `dtype`."""

    __slots__ = ()


def of_keys(fun: Callable) -> Callable:
    """`fun` for keys too, where it only says which element goes where. Others pay for a call."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except (TypeError, AttributeError) as error:
            leaves, tree = flatten((args, kwargs), is_leaf=is_keyed)
            if not any(map(is_keyed, leaves)):
                error.__traceback__ = trim_traceback(error.__traceback__)
                raise
        return on_words(fun, leaves, tree)

    return call


def is_keyed(x: Any) -> bool:
    """Whether this is an array of keys."""
    return isinstance(x, Keyed)


def on_words(fun: Callable, leaves: list, tree: Any) -> Any:
    """`fun` of the arguments with these leaves, on each word of the keys among them."""
    keys = [x for x in leaves if is_keyed(x)]
    if any(x.dtype is not keys[0].dtype for x in keys):
        listed = ", ".join(sorted({str(x.dtype) for x in keys}))
        raise DtypeError(f"{fun.__name__}: keys must be of one generator; got {listed}.")

    def of_one_word(*words: Any) -> Any:
        rest = iter(words)
        args, kwargs = unflatten(tree, [next(rest) if is_keyed(x) else x for x in leaves])
        return fun(*args, **kwargs)

    out = vmap(of_one_word, in_axes=-1, out_axes=-1)(*[x.words for x in keys])
    return tree_map(lambda words: type(keys[0])(words, keys[0].dtype), out)
