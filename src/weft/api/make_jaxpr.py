"""Looking at the program of a function: `make_jaxpr`, `eval_shape`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft.api.arguments import Marked, fix_static
from weft.api.functions import (
    argument_origins,
    as_tuple,
    check_callable,
    describe_program,
    flatten_call,
)
from weft.api.mutable import MUTABLE, open_call
from weft.api.shape_struct import ShapeDtypeStruct
from weft.core.jaxpr import ClosedJaxpr
from weft.core.primitive import Axis
from weft.core.source import boundary
from weft.primitives.families import index_tuple
from weft.transforms.batch import in_scope
from weft.util import fun_name
from weft.watch.leaks import stage_function


def make_jaxpr(
    fun: Callable,
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Return the function that traces `fun` and returns its jaxpr.

    A jaxpr is the program of a function: a list of equations. An equation is a primitive with its
    operands and parameters. Print the jaxpr to see which operations a function consists of, also
    after `grad` or `vmap`. Nothing is computed.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays.
      static_argnums: an int or a sequence of ints, the positions of arguments that stay Python
        values. By default all arguments are traced.
      axis_env: a sequence of pairs (name, size), as `[("i", 4)]`, of named axes for collectives.
        By default there are none.
      return_shape: if True, the result holds the types of the outputs too.

    Returns:
      A function of the arguments of `fun`, which may be arrays or ShapeDtypeStructs. It returns a
      ClosedJaxpr; with `return_shape`, a pair of it and a pytree of ShapeDtypeStructs.

    Raises:
      TypeError: `fun` is not a function.

    >>> make_jaxpr(lambda x: jnp.sin(x) * 3.0)(jnp.ones(8))
    { lambda ; a:f32[8]. let b:f32[8] = sin a; c:f32[8] = mul b 3.0 in (c,) }
    >>> weft.make_jaxpr(weft.vmap(lambda x: x @ x))(jnp.ones((4, 2))).out_avals
    [ShapedArray(float32[4])]
    >>> weft.make_jaxpr(lambda x, n: x * n, static_argnums=1)(1.0, 3)
    { lambda ; a:f32[]. let b:f32[] = mul a 3.0 in (b,) }
    """
    check_callable("make_jaxpr", fun, wraps=True)
    static = Marked(index_tuple(as_tuple(static_argnums), "make_jaxpr", "static_argnums"))

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _, dynamic, given, named = fix_static(fun, static, args, kwargs)
        call = open_call(given, dynamic, named) if MUTABLE else None
        if call is not None:
            given, dynamic, named = call.fun, call.args, {}
        flat, _, avals = flatten_call("make_jaxpr", given, dynamic, named, structs=True)
        names = functools.partial(argument_origins, given, flat.in_tree, "make_jaxpr")
        with in_scope([Axis(size, name) for name, size in axis_env or ()]):
            jaxpr, consts = stage_function(flat, avals, fun_name(fun), names)
        jaxpr.memo["debug_info"] = functools.partial(describe_program, given, flat)
        closed = ClosedJaxpr(jaxpr, consts)
        if not return_shape:
            return closed
        result = flat.result([ShapeDtypeStruct.of(a) for a in jaxpr.out_avals])
        return closed, result if call is None else result[0]

    made = boundary(wrapped, fun)
    made.__name__ = f"make_jaxpr({fun_name(fun)})"
    return made


def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return the shapes and dtypes of `fun(*args, **kwargs)` without computing anything.

    It is for finding the types of parameters, or checking that shapes fit, before memory is used.
    The function is traced, not compiled.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays.
      *args: its positional arguments: arrays or ShapeDtypeStructs, in pytrees.
      **kwargs: its keyword arguments, likewise.

    Returns:
      A pytree of ShapeDtypeStructs with the structure of the result.

    Raises:
      TypeError: `fun` is not a function.
      ShapeError: shapes within `fun` do not fit each other.

    >>> eval_shape(lambda x: x @ x, ShapeDtypeStruct((3, 3), np.float32))
    ShapeDtypeStruct(shape=(3, 3), dtype=float32)
    >>> weft.eval_shape(lambda x: {"mean": x.mean(0)}, weft.ShapeDtypeStruct((1000, 8), np.float32))
    {'mean': ShapeDtypeStruct(shape=(8,), dtype=float32)}
    """
    return make_jaxpr(fun, return_shape=True)(*args, **kwargs)[1]
