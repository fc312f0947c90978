"""Functions of flat lists, and their wrappers: names of `jax.extend.linear_util`.

weft/api_util.py defines them, and explains how they are combined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.api_util import (
    StoreException,
    WrappedFun,
    merge_linear_aux,
    transformation,
    transformation2,
    transformation_with_aux,
    transformation_with_aux2,
    wrap_init,
)  # fmt: skip
from weft.util import list_public

__all__ = [
    "Callable", "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip
__dir__ = list_public(__name__)


def cache(call: Callable, *, explain: Any = None) -> Callable:
    """Cache the results of a function of a `WrappedFun` and other arguments.

    A result is computed once for each function, with its transformations, and for equal arguments.
    The cache holds 4096 results and drops the least recently used one first. `cache_clear()` of the
    result empties it.

    Args:
      call: a function `call(fun, *args)` of a `WrappedFun` and hashable arguments.
      explain: ignored. The parameter exists for calls that are written for JAX.

    Returns:
      A function of the same arguments.

    Raises:
      TypeError: an argument is not hashable. The function that is returned raises it.

    >>> from weft.extend import linear_util as lu
    >>> @lu.cache
    ... def count(fun, n):
    ...     print("runs")
    ...     return len(fun.call_wrapped(n))
    >>> count(lu.wrap_init(range), 3)
    runs
    3
    >>> count(lu.wrap_init(range), 3)
    3
    """

    return functools.lru_cache(4096)(call)
