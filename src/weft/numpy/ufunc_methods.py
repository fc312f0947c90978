"""The attributes and methods of functions that are universal functions in NumPy: `jnp.add.reduce`.

What the methods do is ufunc_objects.py, which is imported when one is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.numpy.names import HOMES

UFUNC_METHODS = ("reduce", "accumulate", "at", "outer", "reduceat")


def make_ufunc_method(method: str, *made_of: Any) -> Callable:
    """Return a method of a universal function. The function's object is made when it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(sys.modules["weft.numpy"].ufunc.named(*made_of), method)(*args, **kwargs)

    call.__name__ = call.__qualname__ = method
    return call


def attach_ufunc_methods(module: dict[str, Any]) -> None:
    """Give the universal functions of a module, passed as its globals, their attributes."""
    for name in HOMES[module["__name__"]].split():
        like, fun = getattr(np, name, None), module[name]
        if type(like) is np.ufunc and fun.__name__ == name:
            about = {"nin": like.nin, "nout": like.nout, "identity": like.identity}
            vars(fun).update(about, nargs=like.nin)
            vars(fun).update({m: make_ufunc_method(m, fun, *about.values()) for m in UFUNC_METHODS})
