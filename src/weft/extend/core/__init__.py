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
from weft.primitives.families import check_axes
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
    """Return the function that evaluates a closed jaxpr.

    It is for running a traced program, for instance after a pass has changed it. The operations are
    applied under the current trace, so the function can be jitted, differentiated and mapped.

    Args:
      closed_jaxpr: a `ClosedJaxpr`, such as `weft.make_jaxpr(f)(x)`.

    Returns:
      A function. It takes one array or number for each input variable, and returns the list of
      results.

    Raises:
      ShapeError: the number of arguments is not the number of input variables. The function that is
        returned raises it.

    >>> from weft.extend import core
    >>> program = weft.make_jaxpr(lambda x: x * 2 + 1)(1.0)
    >>> [float(y) for y in core.jaxpr_as_fun(program)(3.0)]
    [7.0]
    """
    return closed_jaxpr.__call__


def gensym() -> Callable[[ShapedArray], Var]:
    """Return a function that makes a new variable each time it is called.

    It is for writing jaxprs by hand. Variables are compared by identity, and are named only when a
    jaxpr is printed.

    Returns:
      A function of a type (`ShapedArray`) that returns a new `Var` of that type.

    >>> from weft.extend import core
    >>> make_var = core.gensym()
    >>> x = make_var(weft.typeof(1.0))
    >>> core.Jaxpr([], [x], [x], [])
    { lambda ; a:f32[]. let  in (a,) }
    >>> x == make_var(weft.typeof(1.0))
    False
    """
    return Var


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of one element of an array that is mapped along an axis.

    It is the inverse of `unmapped_aval`.

    Args:
      size: the size of the mapped axis, an int. The size is not compared with the shape.
      axis: the mapped axis, an int from 0 to the rank minus 1. None returns the type unchanged.
      aval: the type of the array, a `ShapedArray`.

    Returns:
      A `ShapedArray` of the same dtype, without the axis.

    Raises:
      ShapeError: the array does not have the axis.

    >>> from weft.extend import core
    >>> core.mapped_aval(3, 0, weft.typeof(jnp.zeros((3, 4))))
    ShapedArray(float32[4])
    """
    if axis is None:
        return aval
    check_axes("mapped_aval", (axis,), aval.ndim)
    return element_aval(aval, axis)


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of values that are stacked along a new axis.

    It is the inverse of `mapped_aval`.

    Args:
      size: the number of values, an int.
      axis: the place of the new axis, an int from 0 to the rank of one value. None returns the type
        unchanged.
      aval: the type of one value, a `ShapedArray`.

    Returns:
      A `ShapedArray` of the same dtype, with one more axis.

    >>> from weft.extend import core
    >>> core.unmapped_aval(5, 0, weft.typeof(jnp.zeros((3, 4))))
    ShapedArray(float32[5,3,4])
    """
    return aval if axis is None else stacked_aval(aval, size, axis)


def new_jaxpr_eqn(
    invars: list,
    outvars: list,
    primitive: Primitive,
    params: dict[str, Any],
    effects: frozenset = no_effects,
    source_info: Any = None,
) -> JaxprEqn:
    """Return a new equation of a jaxpr.

    It is for passes and interpreters that write programs. `check_jaxpr` checks the finished
    program.

    Args:
      invars: the operands, a list of `Var` and `Literal`.
      outvars: the variables of the results, a list of `Var`.
      primitive: the `Primitive` that is applied.
      params: the parameters of the primitive by name.
      effects: ignored, as the primitive determines the effects of an equation. The parameter exists
        for calls that are written for JAX.
      source_info: the place that errors and dumps name, such as `source_info_util.current()`. None
        takes the place of this call.

    Returns:
      A `JaxprEqn`.

    >>> from weft.extend import core
    >>> make_var = core.gensym()
    >>> x, y = make_var(weft.typeof(1.0)), make_var(weft.typeof(1.0))
    >>> eqn = core.new_jaxpr_eqn([x], [y], lax.neg_p, {})
    >>> core.Jaxpr([], [x], [y], [eqn])
    { lambda ; a:f32[]. let b:f32[] = neg a in (b,) }
    """
    source = source_info or get_traceback()
    return JaxprEqn(primitive, invars, close_programs(params), outvars, source)


def concrete_or_error(force: Callable | None, val: Any, context: str = "") -> Any:
    """Return a value that is known while Python runs, or raise an error.

    It is for arguments that a function needs as Python values, such as a number of steps. Under
    `jit` the value of an argument is not known. Under `grad` alone it is known.

    Args:
      force: a function that converts the value, such as `int` or `bool`. None returns the value
        unconverted.
      val: an array, a number or a traced value.
      context: a hint that ends the error message. The default is a hint to use `lax`.

    Returns:
      `force(val)`; the value itself if `force` is None.

    Raises:
      ConcretizationTypeError: the value is traced and not known.

    >>> from weft.extend import core
    >>> core.concrete_or_error(int, jnp.array(3), "Declare `n` in static_argnames.")
    3
    """
    if isinstance(val, Tracer):
        val = val.concrete(ConcretizationTypeError, "concrete_or_error", context or "use lax.")
    return val if force is None else force(val)


def find_top_trace(_: Any = None) -> Trace:
    """Return the trace that applies operations at present.

    The name is the name in JAX. An argument is accepted, as in JAX, and ignored.

    Returns:
      A `Trace`: of the innermost transformation that runs, or the trace that computes at once.

    >>> from weft.extend import core
    >>> with core.set_current_trace(core.find_top_trace()) as trace:
    ...     print(trace is core.find_top_trace())
    True
    """
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
    """Return an object that compares unequal if another trace applies operations.

    It is for libraries that keep objects with mutable state: a state made in one trace must not be
    changed in another one. The object holds no strong reference to the trace.

    Args:
      convention: ignored. The parameter exists for calls that are written for JAX.

    Returns:
      An object that supports `==` and `!=`. It is not hashable.

    >>> from weft.extend import core
    >>> outside = core.get_opaque_trace_state()
    >>> outside == core.get_opaque_trace_state()
    True
    >>> def f(x):
    ...     print(outside == core.get_opaque_trace_state())
    ...     return x
    >>> _ = weft.make_jaxpr(f)(1.0)
    False
    """
    return OpaqueTraceState()


@contextlib.contextmanager
def take_current_trace() -> Iterator[Trace]:
    """Compute values at once within the block, even under a transformation.

    It is for constants that a traced function needs as concrete arrays: operations in the block run
    in Python and not in the program. Traced values must not be used there.

    Returns:
      A context manager. Its `as` value is the trace that applied operations before the block.

    >>> from weft.extend import core
    >>> def f(x):
    ...     with core.take_current_trace():
    ...         print(jnp.arange(2) + 1)
    ...     return x
    >>> _ = weft.make_jaxpr(f)(1.0)
    [1 2]
    """
    trace = current.trace
    with eval_context():
        yield trace


class TraceTag:
    """An object that identifies the values of one run of a transformation.

    It is for traces that a library defines: a trace keeps a tag, and its tracers keep the same tag.
    Tags are compared by identity. The traces of weft have none.

    >>> from weft.extend import core
    >>> core.TraceTag() == core.TraceTag()
    False
    """


def _is_under(kind: type[Trace]) -> bool:
    return any(isinstance(t, kind) for t in walk_up(current.trace))


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Return True if operations are recorded into a program.

    This holds within `jit`, `make_jaxpr`, and the bodies of loops. A function that behaves
    differently under `jit` is hard to test, hence the name.

    Returns:
      A bool.

    >>> from weft.extend import core
    >>> def f(x):
    ...     print(core.unsafe_am_i_under_a_jit_DO_NOT_USE())
    ...     return x
    >>> _ = f(1.0)
    False
    >>> _ = weft.make_jaxpr(f)(1.0)
    True
    """
    return _is_under(StageTrace)


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Return True if operations are applied under `vmap`, with or without a name for the axis.

    A function that behaves differently under `vmap` is hard to test, hence the name.

    Returns:
      A bool.

    >>> from weft.extend import core
    >>> def f(x):
    ...     print(core.unsafe_am_i_under_a_vmap_DO_NOT_USE())
    ...     return x
    >>> _ = f(1.0)
    False
    >>> _ = weft.vmap(f)(jnp.ones(3))
    True
    """
    return _is_under(BatchTrace)


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Return the names of the mapped axes in scope.

    They are the names that `lax.psum` and other collectives accept here.

    Returns:
      A list of names. Axes without a name are not in it.

    >>> from weft.extend import core
    >>> def f(x):
    ...     print(core.unsafe_get_axis_names_DO_NOT_USE())
    ...     return x
    >>> _ = weft.vmap(f, axis_name="i")(jnp.ones(3))
    ['i']
    """
    return [axis.name for axis in named_axes.value]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Return True if any named axis is in scope.

    An axis without a name, such as the axis of `vmap(f)`, does not count.

    Returns:
      A bool.

    >>> from weft.extend import core
    >>> def f(x):
    ...     print(core.nonempty_axis_env_DO_NOT_USE())
    ...     return x
    >>> _ = weft.vmap(f)(jnp.ones(3))
    False
    >>> _ = weft.vmap(f, axis_name="i")(jnp.ones(3))
    True
    """
    return bool(named_axes.value)
