"""Attributes for XLA on the operations of a program: `jax.experimental.xla_metadata`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from weft.api.jit import jit
from weft.api.named_scope import open_scope
from weft.primitives.annotations import xla_metadata_value_p
from weft.pytrees import tree_map
from weft.util import fun_name, list_public
from weft.xla.hlo import FrontendAttributes

__all__ = [
    "fuse_limit", "must_fuse_call", "set_xla_metadata", "xla_metadata_call", "xla_metadata_call2",
]  # fmt: skip
__dir__ = list_public(__name__)


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Give operations attributes, for passes of XLA that look for them.

    Derivatives of operations in a block or a function have the attributes as well.

    Args:
      x: a function, whose operations have the attributes; or a pytree of arrays. The
        operation that computes each array has them. None, the default, gives a context manager and
        decorator.
      kwargs: the attributes by name: strings, numbers and bools.

    Returns:
      A function with the arguments and results of `x`, if `x` is a function. A pytree of the same
      arrays, if `x` is a pytree. A context manager, which is also a decorator, if `x` is None.

    Raises:
      TypeError: an attribute has another type.

    >>> f = set_xla_metadata(jnp.sin, schedule="late")
    >>> "sine" in [line for line in weft.jit(f).lower(1.0).as_text().split("\\n")
    ...     if 'schedule = "late"' in line][0]
    True
    """
    for name, value in kwargs.items():
        if not isinstance(value, str | bool | int | float):
            raise TypeError(
                f"set_xla_metadata: attributes must be strings, numbers or bools; got {value!r} "
                f"for {name}."
            )
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in kwargs.items()}
    quoted = {k: json.dumps(v, ensure_ascii=False) for k, v in texts.items()}
    attributes = FrontendAttributes.of(quoted)
    if x is None:
        return open_scope((attributes,), inner=True)
    if not callable(x):
        return tree_map(lambda v: xla_metadata_value_p.apply(v, attributes=str(attributes))[0], x)
    name = fun_name(x)

    @functools.wraps(x, assigned=("__doc__", "__wrapped__"))
    def annotated(*args: Any, **options: Any) -> Any:
        with open_scope((attributes,), inner=True):
            return x(*args, **options)

    annotated.__name__ = name
    return annotated


def xla_metadata_call(f: Callable | None = None, **kwargs: Any) -> Callable:
    """Return a function that is one call of the program, with attributes for XLA.

    Without a function, return a decorator. The derivatives of the function have the attributes too.

    Args:
      f: a function of pytrees of arrays. None, the default, gives a decorator.
      kwargs: the attributes by name: strings, numbers and bools.

    Returns:
      A function with the arguments and results of `f`, or a decorator.

    Raises:
      TypeError: an attribute has another type.

    >>> f = xla_metadata_call(jnp.sin, schedule="late")
    >>> 'schedule = "late"' in weft.jit(f).lower(1.0).as_text()
    True
    >>> @xla_metadata_call(schedule="late")
    ... def g(x):
    ...     return jnp.sin(x) + 1
    >>> print(g(0.0))
    1.0
    """
    if f is None:
        return functools.partial(xla_metadata_call, **kwargs)
    return set_xla_metadata(jit(f), **kwargs)


def xla_metadata_call2(
    f: Callable | None = None,
    /,
    metadata: dict[str, Any] | None = None,
    *,
    ad_metadata: Any = "same",
) -> Callable:
    """Return a function that is one call of the program, with attributes from a dict.

    Without a function, return a decorator.

    Args:
      f: a function of pytrees of arrays. None, the default, gives a decorator.
      metadata: the attributes, a dict of strings, numbers and bools by name. None, the default,
        gives no attributes.
      ad_metadata: the attributes of derivatives. `"same"`, the default, is the only choice here.

    Returns:
      A function with the arguments and results of `f`, or a decorator.

    Raises:
      ValueError: `ad_metadata` is not `"same"`.

    >>> f = xla_metadata_call2(jnp.sin, {"schedule": "late"})
    >>> 'schedule = "late"' in weft.jit(f).lower(1.0).as_text()
    True
    """
    if ad_metadata != "same":
        raise ValueError(f"xla_metadata_call2: ad_metadata must be 'same'; got {ad_metadata!r}.")
    if f is None:
        return functools.partial(xla_metadata_call2, metadata=metadata)
    return xla_metadata_call(f, **(metadata or {}))


def must_fuse_call(identifier: str) -> Callable[[Callable], Callable]:
    """Return a decorator that asks XLA to fuse the operations of a function.

    The operations have the attribute `MUST_FUSE`.

    Args:
      identifier: the value of the attribute, a str. All operations of one fusion have the same
        value.

    Returns:
      A decorator. The decorated function has the arguments and results of the function.

    >>> f = must_fuse_call("step")(lambda x: jnp.sin(x) + 1)
    >>> 'MUST_FUSE = "step"' in weft.jit(f).lower(1.0).as_text()
    True
    """
    return functools.partial(xla_metadata_call, MUST_FUSE=identifier)


def fuse_limit() -> Any:
    """Return a context manager that asks XLA not to fuse the operations of a block with others.

    The operations have the attribute `FUSE_LIMIT`.

    Returns:
      A context manager, which is also a decorator.

    >>> def f(x):
    ...     with fuse_limit():
    ...         return jnp.sin(x)
    >>> 'FUSE_LIMIT = "true"' in weft.jit(f).lower(1.0).as_text()
    True
    """
    return set_xla_metadata(FUSE_LIMIT="true")
