"""The methods of universal functions (`jnp.add.reduce`, `jnp.add.nin`), attached to functions.

What they do is ufunc_objects.py, imported when one is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.numpy import choice, elementwise, ufuncs

METHODS = ("reduce", "accumulate", "at", "outer", "reduceat")


def later(method: str, *made_of: Any) -> Callable:
    """A method of a universal function, which is made when it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(sys.modules["weft.numpy"].ufunc.named(*made_of), method)(*args, **kwargs)

    call.__name__ = call.__qualname__ = method
    return call


def attach() -> None:
    """Give the functions that are universal functions in NumPy their attributes and methods."""
    for module in (ufuncs, elementwise, choice):
        for name in module.__all__:
            like, fun = getattr(np, name, None), getattr(module, name)
            if type(like) is np.ufunc and fun.__name__ == name:
                about = {"nin": like.nin, "nout": like.nout, "identity": like.identity}
                vars(fun).update(about, nargs=like.nin)
                vars(fun).update({m: later(m, fun, *about.values()) for m in METHODS})


attach()
