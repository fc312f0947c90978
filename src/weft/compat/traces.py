"""The traces that libraries find: methods of JAX's traces, and parameters of its primitives.

quax names all parameters of a primitive in its rule, so those that only JAX has are added, and
those that only weft has are left out where they say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.control.jit import Jit
from weft.core.aval import ShapedArray
from weft.core.stage import StageTrace
from weft.core.trace import Trace, Tracer

_ONLY_JAX: dict[str, dict[str, Any]] = {"jit": {"inline": False}}
_ONLY_WEFT = {"while": ("checkpoints",)}
_process, _bind, _new_arg = Trace.process, Jit.bind, StageTrace.new_arg


def process_as_jax(trace: Trace, prim: Any, args: Any, params: dict) -> list:
    """`Trace.process` with the parameters that JAX's primitive has."""
    own = _ONLY_WEFT.get(prim.name, ())
    kept = {k: v for k, v in params.items() if v is not None or k not in own}
    return _process(trace, prim, args, {**_ONLY_JAX.get(prim.name, {}), **kept})


def bind_as_jax(prim: Jit, *args: Any, **params: Any) -> Any:
    """`bind` of jit, without the parameters that only JAX has."""
    only_jax = _ONLY_JAX[prim.name]
    return _bind(prim, *args, **{k: v for k, v in params.items() if k not in only_jax})


def new_arg_as_jax(trace: StageTrace, aval: ShapedArray, source_info: Any = None) -> Tracer:
    """One more parameter of a program that is traced, as brainstate makes one of each state."""
    return _new_arg(trace, aval)


def find_classes(base: type) -> Iterator[type]:
    """A class and all that derive from it."""
    yield base
    for derived in base.__subclasses__():
        yield from find_classes(derived)


def install_traces() -> None:
    """Let traces of libraries find what JAX's do."""
    Trace.process = process_as_jax  # type: ignore[method-assign]
    StageTrace.new_arg = new_arg_as_jax  # type: ignore[assignment,method-assign]
    Trace.full_raise = lambda trace, x: x  # type: ignore[attr-defined]
    for tracer in find_classes(Tracer):
        tracer.__module__ = "jax.core"  # autoray identifies arrays by this
    Jit.bind = bind_as_jax  # type: ignore[assignment,method-assign]
