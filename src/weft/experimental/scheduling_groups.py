"""Groups of operations that XLA schedules together: `jax.experimental.scheduling_groups`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.experimental.xla_metadata import xla_metadata_call
from weft.util import list_public

__all__ = ["scheduling_group"]
__dir__ = list_public(__name__)


def scheduling_group(name: Any) -> Callable[[Callable], Callable]:
    """Return a decorator that has XLA schedule the operations of a function as a group.

    The function becomes one call of the program, which has the attribute `scheduling_group`.

    Args:
      name: the name of the group: a str, a number or a bool.

    Returns:
      A decorator. The decorated function has the arguments and results of the function.

    Raises:
      TypeError: `name` has another type. It is raised when a function is decorated.

    >>> f = scheduling_group("first")(lambda x: jnp.sin(x) * 2)
    >>> 'scheduling_group = "first"' in weft.jit(f).lower(1.0).as_text()
    True
    """
    return xla_metadata_call(scheduling_group=name)
