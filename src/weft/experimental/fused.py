"""`fused`: a function as one compiled program, whose results go to memories of one's choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.api.devices import device_put
from weft.api.functions import check_callable
from weft.api.jit import jit
from weft.errors import ShapeError
from weft.util import list_public, name_function

__all__ = ["fused"]
__dir__ = list_public(__name__)


def fused(*, out_spaces: Any) -> Callable[[Callable], Callable]:
    """A decorator: run a function as one program, with its results in these memories.

    `out_spaces` has a `weft.memory.Space` for each of the results that the function returns as a
    tuple.

    >>> double = fused(out_spaces=(weft.memory.Space.Device,))(lambda x: (2 * x,))
    >>> double(jnp.ones(2))
    (Array([2., 2.], dtype=float32),)
    """

    def decorate(f: Callable) -> Callable:
        check_callable("fused", f)

        def placed(*args: Any, **kwargs: Any) -> tuple:
            outs = f(*args, **kwargs)
            if not isinstance(outs, Sequence) or len(outs) != len(out_spaces):
                raise ShapeError(
                    "fused: there must be a memory for each result; got "
                    f"{len(out_spaces)} for {outs!r}."
                )
            return tuple(device_put(y, space) for y, space in zip(outs, out_spaces, strict=True))

        return jit(name_function(placed, getattr(f, "__name__", "fused"), f.__doc__ or ""))

    return decorate
