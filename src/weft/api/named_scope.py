"""Names for parts of a program: `named_scope` and `named_call`.

A name is seen in the jaxpr (`pretty_print(name_stack=True)`), in the operations of the compiled
program (`op_name="jit(f)/attention/dot_general"`) and so in profiles. What carries it is
core/source.py's; while no scope is open nothing is kept or written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.api.functions import check_callable
from weft.core.source import SourceInfo, scoped_source
from weft.core.trace import current
from weft.util import Scope, fun_name, wraps


def named_scope(name: str) -> Scope:
    """Give the operations in a block, or of a function, a common name.

    Profiles, jaxprs and `weft.explain` show it. Scopes nest as a path. Transformations appear in
    it, as in `jvp(loss)/layer`. The results of the operations are unchanged.

    Args:
      name: the name, a string.

    Returns:
      A context manager that is a decorator as well.

    >>> @weft.named_scope("activation")
    ... def act(x):
    ...     return jnp.tanh(x)
    >>> def layer(w, x):
    ...     with weft.named_scope("dense"):
    ...         y = x * w
    ...     return act(y)
    >>> print(weft.make_jaxpr(layer)(2.0, 3.0).pretty_print(name_stack=True))
    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = mul b a   # [dense]
        d:f32[] = tanh c    # [activation]
      in (d,) }
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope: the name must be a string; got {name!r}.")
    return open_scope((name,), inner=True)


def open_scope(names: tuple[str, ...], inner: bool = False) -> Scope:
    """Open these named scopes within the block; if `inner`, inside of those open now."""

    def list_changes() -> list[tuple[Callable, dict, dict]]:
        scope, source, capture = current.scope, current.source, current.capture
        within = {"scope": (*scope, *names) if inner else names, "capture": scoped_source}
        if source is not None:  # everything written here has one place, which is in the scope now
            around = source.scope if type(source) is SourceInfo else scope
            traceback = source.traceback if type(source) is SourceInfo else source
            within["source"] = SourceInfo(traceback, (*around, *names) if inner else names)
        before = {"scope": scope, "capture": capture, "source": source}
        return [(vars(current).update, before, within)]

    return Scope(list_changes)


def named_call(fun: Callable, *, name: str | None = None) -> Callable[..., Any]:
    """Return a function whose operations have a name in jaxprs and profiles.

    Args:
      fun: a function of pytrees of arrays.
      name: the name of the scope. None, the default, is the name of the function.

    Returns:
      A function with the results of `fun`.

    >>> relu = weft.named_call(lambda x: jnp.maximum(x, 0.0), name="relu")
    >>> print(weft.make_jaxpr(relu)(1.0).eqns[0].source_info.name_stack)
    relu
    """
    check_callable("named_call", fun, wraps=True)
    return wraps(fun)(named_scope(fun_name(fun) if name is None else name)(fun))
