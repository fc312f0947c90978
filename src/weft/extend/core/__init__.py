"""Jaxprs, primitives and types: the names of `jax.extend.core`, the same objects as weft.core's.

Functions whose arguments differ from weft.core's call those. `Primitive` is the class of primitives
that are defined rule by rule, as in JAX; the operations of weft are not made by it. Tokens and call
primitives are not here.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from weft.core.aval import HOST_TYPES, ShapedArray
from weft.core.aval import is_valid_value as valid_jaxtype
from weft.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, Literal, Var, jaxprs_in_params, subjaxprs
from weft.core.jaxpr import Eqn as JaxprEqn
from weft.core.primitive import Effect
from weft.core.stage import StageTrace, get_traceback
from weft.core.trace import Trace, Tracer, current, current_trace, eval_context, walk_up
from weft.core.trace import use as set_current_trace
from weft.display.methods import DebugInfo
from weft.dtypes import tangent_dtype as primal_dtype_to_tangent_dtype
from weft.errors import ConcretizationTypeError, InconclusiveDimensionOperation, JaxprTypeError
from weft.extend.core import primitives
from weft.interpreters.defining import Primitive
from weft.options import named_axes
from weft.passes.check import check_jaxpr
from weft.primitives.constant import close_programs
from weft.transforms.batch import BatchTrace
from weft.transforms.batch import mapped_aval as element_aval
from weft.transforms.batch import unmapped_aval as stacked_aval
from weft.util import list_public
from weft.xla.array import ArrayImpl

__all__ = [
    "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Effects", "InconclusiveDimensionOperation",
    "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal", "Primitive", "TraceTag", "Var", "array_types",
    "check_jaxpr", "concrete_or_error", "find_top_trace", "gensym", "get_opaque_trace_state",
    "jaxpr_as_fun", "jaxprs_in_params",
    "mapped_aval", "new_jaxpr_eqn", "no_effects", "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype", "primitives", "set_current_trace", "subjaxprs",
    "take_current_trace",
    "unmapped_aval", "unsafe_am_i_under_a_jit_DO_NOT_USE", "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype",
]  # fmt: skip
__dir__ = list_public(__name__)

Effects = frozenset
no_effects: frozenset = frozenset()
array_types: set[type] = {ArrayImpl, Tracer, *HOST_TYPES} - {bool, int, float, complex}


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list]:
    """The function that a closed jaxpr is: values in, a list of values out."""
    return closed_jaxpr.__call__


def gensym() -> Callable[[ShapedArray], Var]:
    """A function that makes a new variable of a type each time it is called."""
    return Var


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one element along `axis`, whose size is `size`."""
    return aval if axis is None else element_aval(aval, axis)


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of `size` values of this type stacked along `axis`."""
    return aval if axis is None else stacked_aval(aval, size, axis)


def new_jaxpr_eqn(
    invars: list,
    outvars: list,
    primitive: Primitive,
    params: dict[str, Any],
    effects: frozenset = no_effects,
    source_info: Any = None,
) -> JaxprEqn:
    """An equation, written here; its effects are its primitive's."""
    source = source_info or get_traceback()
    return JaxprEqn(primitive, invars, close_programs(params), outvars, source)


def concrete_or_error(force: Callable | None, val: Any, context: str = "") -> Any:
    """`force(val)` where the value is known, or an error that says `context`."""
    if isinstance(val, Tracer):
        val = val.concrete(ConcretizationTypeError, "concrete_or_error", context or "use lax.")
    return val if force is None else force(val)


def find_top_trace(_: Any = None) -> Trace:
    """The trace in force."""
    return current_trace()


class OpaqueTraceState:
    """Return the trace in force as an object that compares equal where it is the same."""

    __slots__ = ("trace",)

    def __init__(self) -> None:
        self.trace = weakref.ref(current.trace)

    def __eq__(self, other: object) -> bool:
        return type(other) is OpaqueTraceState and self.trace == other.trace

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple:
        return OpaqueTraceState, ()


def get_opaque_trace_state(convention: Any = None) -> OpaqueTraceState:
    """Return an object that compares unequal if another trace is in force.

    `convention` is taken so that calls carry over from JAX.
    """
    return OpaqueTraceState()


@contextlib.contextmanager
def take_current_trace() -> Iterator[Trace]:
    """The trace in force, which is not in force in the block: there, values are computed."""
    trace = current.trace
    with eval_context():
        yield trace


class TraceTag:
    """Return the object that tells values of one run of a transformation from others."""


def _is_under(kind: type[Trace]) -> bool:
    return any(isinstance(t, kind) for t in walk_up(current.trace))


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Return True if a program is being staged."""
    return _is_under(StageTrace)


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Return True if an axis is being mapped."""
    return _is_under(BatchTrace)


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the mapped axes in scope."""
    return [axis.name for axis in named_axes.value]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Return True if any named axis is in scope."""
    return bool(named_axes.value)
