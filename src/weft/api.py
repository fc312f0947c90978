"""`vmap`, and looking at programs: `make_jaxpr`, `eval_shape`. Pytrees in, pytrees out.

Derivatives are in derivatives.py and jacobians.py, `jit` is in jitting.py; the checks of what comes
in are in flat.py.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import ClosedJaxpr
from weft.core.source import boundary
from weft.core.stage import stage
from weft.errors import ShapeError
from weft.flat import FlatFun, argument_names, argument_origins, as_tuple, avals_of, check_callable
from weft.options import named_axes
from weft.primitives.layout import broadcast_in_dim, transpose, zeros
from weft.pytrees import PyTreeDef, broadcast_prefix, flatten
from weft.structs import ShapeDtypeStruct
from weft.transforms.batch import Axis, batch, mapped_aval, unmapped_aval
from weft.util import fun_name

__all__ = ["eval_shape", "make_jaxpr", "vmap"]


def make_jaxpr(
    fun: Callable,
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that gives the jaxpr of `fun` at the types of its arguments.

    `axis_env` puts named axes in scope, as [("i", 4)]. With `return_shape`, gives also the pytree
    of the results' ShapeDtypeStructs.

    >>> import weft.numpy as jnp
    >>> make_jaxpr(lambda x: jnp.sin(x) * 3.0)(jnp.ones(8))
    { lambda ; a:f32[8]. let b:f32[8] = sin a; c:f32[8] = mul b 3.0 in (c,) }
    """
    check_callable("make_jaxpr", fun, wraps=True)
    static = as_tuple(static_argnums)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given, dynamic = without_static(fun, static, args)
        leaves, in_tree = flatten((dynamic, kwargs))
        flat = FlatFun(given, in_tree, "make_jaxpr")
        avals = avals_of("make_jaxpr", leaves, in_tree, given, structs=True)
        names = functools.partial(argument_origins, given, in_tree)
        with axes_in_scope(axis_env or ()):
            jaxpr, consts = stage(flat, avals, fun_name(fun), names)
        closed = ClosedJaxpr(jaxpr, consts)
        if not return_shape:
            return closed
        return closed, flat.result([ShapeDtypeStruct.of(a) for a in jaxpr.out_avals])

    made = boundary(wrapped, fun)
    made.__name__ = f"make_jaxpr({fun_name(fun)})"
    return made


def without_static(fun: Callable, static: tuple, args: tuple) -> tuple[Callable, tuple]:
    """`fun` with its static arguments filled in, and the others."""
    if not static:
        return fun, args
    fixed = {i % len(args): args[i] for i in static}

    @functools.wraps(fun)
    def given(*others: Any, **kwargs: Any) -> Any:
        rest = iter(others)
        whole = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
        return fun(*whole, **kwargs)

    return given, tuple(x for i, x in enumerate(args) if i not in fixed)


@contextlib.contextmanager
def axes_in_scope(axis_env: Sequence[tuple[Any, int]]) -> Any:
    """Named axes that a traced function may refer to."""
    before = named_axes.value
    named_axes.set_local((*before, *[Axis(size, name) for name, size in axis_env]))
    try:
        yield
    finally:
        named_axes.set_local(before)


def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of `fun(*args, **kwargs)`, computing nothing.

    Arguments may be ShapeDtypeStructs. Gives a pytree of ShapeDtypeStructs.

    >>> eval_shape(lambda x: x @ x, ShapeDtypeStruct((3, 3), np.float32))
    ShapeDtypeStruct(shape=(3, 3), dtype=float32)
    """
    return make_jaxpr(fun, return_shape=True)(*args, **kwargs)[1]


def vmap(
    fun: Callable,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[..., Any]:
    """Map `fun` over an axis of its arguments, pushing the loop into its operations.

    Args:
      in_axes: which axis of each argument to map: an int, None (the same for every call), or a
        tuple with one entry an argument, each a pytree prefix of it. Keyword arguments map axis 0.
      out_axes: where the mapped axis goes in the results, as a pytree prefix of them.
      axis_name: a name for the axis, for collectives such as `lax.psum`.
      axis_size: its size, needed where no argument is mapped.

    >>> import weft.numpy as jnp
    >>> vmap(lambda x, y: x @ y, in_axes=(0, None))(jnp.ones((3, 2)), jnp.ones(2))
    Array([2., 2., 2.], dtype=float32)
    """
    check_callable("vmap", fun, wraps=True)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    for axes, name in ((in_axes, "in_axes"), (out_axes, "out_axes")):
        bad = [a for a in flatten(axes, is_leaf=lambda a: a is None)[0] if not valid_axis(a)]
        if bad:
            raise TypeError(f"vmap: {name} must hold ints and None; got {bad[0]!r} in {axes!r}.")

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap: in_axes must have one entry for each positional argument; "
                f"got {len(in_axes)} for the {len(args)} of {fun_name(fun)}."
            )
        leaves, in_tree = flatten((args, kwargs))
        avals = avals_of("vmap", leaves, in_tree, fun)
        dims = prefix_axes(in_axes, args, "in_axes", "args") + [0] * len(flatten(kwargs)[0])
        dims = [
            normal_axis(d, a, i, fun, in_tree)
            for i, (d, a) in enumerate(zip(dims, avals, strict=True))
        ]
        size = mapped_size(fun, avals, dims, in_tree, axis_size)
        flat = FlatFun(fun, in_tree, "vmap")
        outs, out_dims = batch(flat, leaves, dims, Axis(size, axis_name))
        wanted = prefix_axes(out_axes, flat.result(outs), "out_axes", "result")
        moved = [move_result(y, d, w, size) for y, d, w in zip(outs, out_dims, wanted, strict=True)]
        return flat.result(moved)

    return boundary(wrapped, fun)


def valid_axis(a: Any) -> bool:
    """Whether `a` is None or an integer."""
    return a is None or (isinstance(a, int | np.integer) and not isinstance(a, bool))


def prefix_axes(prefix: Any, tree: Any, prefix_name: str, name: str) -> list:
    """The axis of each leaf, from a pytree prefix of axes in which None is a leaf."""
    return broadcast_prefix(
        prefix,
        tree,
        is_leaf=lambda a: a is None,
        op="vmap",
        prefix_name=prefix_name,
        full_name=name,
    )


def normal_axis(
    d: int | None, aval: ShapedArray, i: int, fun: Callable, tree: PyTreeDef
) -> int | None:
    """An axis as a non-negative int; an error names the argument that lacks it."""
    if d is None:
        return None
    if not -aval.ndim <= d < aval.ndim:
        where = argument_names(fun, tree)[i]
        raise ValueError(
            f"vmap: in_axes must name an axis of each mapped argument; got axis {d} for {aval} "
            f"as {where} of {fun_name(fun)}. Hint: in_axes=None leaves an argument unmapped."
        )
    return d % aval.ndim


def mapped_size(
    fun: Callable, avals: Sequence[ShapedArray], dims: Sequence, tree: PyTreeDef, given: Any
) -> int:
    """The one size of the mapped axis; an error says which arguments disagree."""
    sizes = {a.shape[d] for a, d in zip(avals, dims, strict=True) if d is not None}
    if given is not None:
        sizes.add(given)
    if not sizes:
        raise ValueError(
            f"vmap: at least one argument must be mapped; got in_axes of None for all of "
            f"{fun_name(fun)}'s. Hint: give axis_size."
        )
    if len(sizes) > 1:
        names = argument_names(fun, tree)
        rows = [
            f"{a.shape[d]} (axis {d} of {n}, {a})"
            for n, a, d in zip(names, avals, dims, strict=True)
            if d is not None
        ]
        rows += [f"{given} (axis_size)"] if given is not None else []
        raise ShapeError(
            f"vmap: mapped axes must have one size; got {', '.join(rows)} in {fun_name(fun)}."
        )
    return sizes.pop()


def move_result(y: Any, dim: int | None, wanted: int | None, size: int) -> Any:
    """A result with its mapped axis where out_axes says."""
    if wanted is None:
        if dim is not None:
            raise ValueError(
                f"vmap: out_axes may be None only for results that are not mapped; got "
                f"{typeof(y)} mapped along axis {dim}."
            )
        return y
    ndim = typeof(y).ndim + (dim is None)
    if not -ndim <= wanted < ndim:
        raise ValueError(
            f"vmap: out_axes must name an axis of the result; got {wanted} for rank {ndim}."
        )
    wanted %= ndim
    if typeof(y).dtype == dtypes.float0:
        element = typeof(y) if dim is None else mapped_aval(typeof(y), dim)
        return zeros(unmapped_aval(element, size, wanted))
    if dim is None:
        shape = typeof(y).shape
        kept = [i for i in range(ndim) if i != wanted]
        return broadcast_in_dim(y, (*shape[:wanted], size, *shape[wanted:]), kept)
    if dim == wanted:
        return y
    order = [i for i in range(ndim) if i != dim]
    order.insert(wanted, dim)
    return transpose(y, order)
