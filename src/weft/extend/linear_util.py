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
    """Keep the results of `call(fun, *args)` by `args` and by what the WrappedFun `fun` is of.

    `explain` is taken so that calls carry over from JAX.

    >>> sizes = cache(lambda fun, n: fun.call_wrapped(n))
    >>> sizes(wrap_init(range), 3)
    range(0, 3)
    """

    return functools.lru_cache(4096)(call)
