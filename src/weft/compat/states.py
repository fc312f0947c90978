"""The options of JAX as objects: `with jax.debug_nans(True): ...`, and `jax.debug_nans.value`.

weft's own are functions; `weft.config` has their values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from weft.api import contexts
from weft.options import config
from weft.util import list_public

__all__ = [n for n in dir(config) if n[0] != "_" and callable(getattr(contexts, n, None))]
__all__.remove("disable_jit")  # a function in JAX, too
__dir__ = list_public(__name__)


class State:
    """An option: a call sets it for a while, and `value` is its present value."""

    def __init__(self, fun: Callable[..., AbstractContextManager[None]]):
        functools.update_wrapper(self, fun)
        self.set_within, self.name = fun, f"jax_{fun.__name__}"

    def __call__(self, *args: Any, **kwargs: Any) -> AbstractContextManager[None]:
        return self.set_within(*args, **kwargs)

    @property
    def value(self) -> Any:
        """The value of the option in this thread."""
        return getattr(config, self.__name__)  # type: ignore[attr-defined]


globals().update({name: State(getattr(contexts, name)) for name in __all__})
