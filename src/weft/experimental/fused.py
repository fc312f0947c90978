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
    """Return a decorator that runs a function as one program, with its results in given memories.

    It is for results that stay in the memory of the host. On a CPU the memories have no effect.

    Args:
      out_spaces: a sequence with a `weft.memory.Space` for each result. The function must return
        a tuple or list of that length.

    Returns:
      A decorator. The decorated function takes the arguments of the function, and returns a tuple.

    Raises:
      ShapeError: the function returned another number of results. It is raised at a call.

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
