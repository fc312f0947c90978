"""Batching of primitives: the names of `jax.interpreters.batching`.

    primitive_batchers[prim] = rule          rule(args, dims, **params) -> out, dim
    fancy_primitive_batchers[prim] = rule    rule(axis, args, dims, **params) -> out, dim
    axis_primitive_batchers[prim] = rule     rule(size, name, None, args, dims, **params) -> ...

A dim is an int, or `not_mapped`. `axis` has a `size` and a `name`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.api.vmap import VMAPPABLE, Vmappable
from weft.core.aval import typeof
from weft.core.primitive import Axis, Primitive
from weft.interpreters.defining import Rules, list_pair, unlist_pair
from weft.primitives.families import normalize_axis
from weft.primitives.layout import batched_at_front as bdim_at_front
from weft.primitives.layout import broadcast_in_dim, transpose
from weft.transforms.batch import BatchTrace, BatchTracer
from weft.util import list_public

__all__ = [
    "BatchTrace", "BatchTracer", "axis_primitive_batchers", "bdim_at_front", "broadcast",
    "defbroadcasting", "defreducer", "defvectorized", "fancy_primitive_batchers", "moveaxis",
    "not_mapped", "primitive_batchers", "register_vmappable", "unregister_vmappable",
]  # fmt: skip
__dir__ = list_public(__name__)

not_mapped = None


def _make_batch(prim: Primitive, rule: Callable) -> Callable:
    return list_pair(prim, lambda axis, args, dims, **params: rule(args, dims, **params))


def _read_batch(prim: Primitive, method: Callable) -> Callable:
    fancy = unlist_pair(prim, method)
    return lambda args, dims, **params: fancy(Axis(mapped_size(args, dims)), args, dims, **params)


def _make_axis_batch(prim: Primitive, rule: Callable) -> Callable:
    fancy = lambda axis, *args, **params: rule(axis.size, axis.name, None, *args, **params)
    return list_pair(prim, fancy)


def _read_axis_batch(prim: Primitive, method: Callable) -> Callable:
    fancy = unlist_pair(prim, method)
    return lambda size, name, kind, *args, **params: fancy(Axis(size, name), *args, **params)


def mapped_size(args: Sequence, dims: Sequence) -> int:
    """The size of the mapped axis of some operands."""
    return next(typeof(x).shape[d] for x, d in zip(args, dims, strict=True) if d is not not_mapped)


primitive_batchers = Rules("batch", _make_batch, _read_batch)
fancy_primitive_batchers = Rules("batch", list_pair, unlist_pair)
axis_primitive_batchers = Rules("batch", _make_axis_batch, _read_axis_batch)


def defvectorized(prim: Primitive) -> None:
    """Set the batch rule of a primitive that may be applied to whole arrays.

    The primitive is applied to the operands unchanged if all are mapped along the same axis.
    Otherwise the mapped axes are moved to the front, and operands without a mapped axis are
    repeated.

    Args:
      prim: the primitive. It works on elements, for operands of any shape.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import batching
    >>> square_p = Primitive("square")
    >>> _ = square_p.def_impl(lambda x: x * x)
    >>> batching.defvectorized(square_p)
    >>> weft.vmap(square_p.bind)(jnp.arange(3.0))
    Array([0., 1., 4.], dtype=float32)
    """

    def batcher(args: Sequence, dims: Sequence, **params: Any) -> tuple[Any, Any]:
        if len(set(dims)) != 1:
            return bind_broadcast(prim, args, dims, params)
        return _same_dim(prim, prim.bind(*args, **params), dims[0])

    primitive_batchers[prim] = batcher


def defbroadcasting(prim: Primitive) -> None:
    """Set the batch rule of an elementwise primitive of several operands.

    The mapped axes are moved to the front, and operands without a mapped axis are repeated.

    Args:
      prim: the primitive. It works on elements, for operands of equal shapes.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import batching
    >>> times_p = Primitive("times")
    >>> _ = times_p.def_impl(lambda x, y: x * y)
    >>> batching.defbroadcasting(times_p)
    >>> weft.vmap(times_p.bind, in_axes=(0, None))(jnp.arange(3.0), 2.0)
    Array([0., 2., 4.], dtype=float32)
    """
    primitive_batchers[prim] = lambda args, dims, **params: bind_broadcast(prim, args, dims, params)


def bind_broadcast(
    prim: Primitive, args: Sequence, dims: Sequence, params: dict
) -> tuple[Any, Any]:
    """Apply an elementwise primitive with the mapped axis of every operand in front."""
    size = mapped_size(args, dims)
    args = [bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)]
    return _same_dim(prim, prim.bind(*args, **params), 0)


def _same_dim(prim: Primitive, out: Any, dim: int) -> tuple[Any, Any]:
    return out, [dim] * len(out) if prim.multiple_results else dim


def defreducer(prim: Primitive, ident: Any = None) -> None:
    """Set the batch rule of a reduction.

    The parameter `axes` of the primitive, a tuple of ints, is adapted to the mapped axis.

    Args:
      prim: the primitive. It has one operand, and its result lacks the axes in its parameter
        `axes`.
      ident: accepted for compatibility with JAX and ignored. None is the default.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import batching
    >>> total_p = Primitive("total")
    >>> _ = total_p.def_impl(lambda x, axes: jnp.sum(x, axes))
    >>> batching.defreducer(total_p)
    >>> weft.vmap(lambda x: total_p.bind(x, axes=(0,)))(jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """

    def batcher(args: Sequence, dims: Sequence, axes: Sequence[int], **params: Any) -> tuple:
        ((x,), (dim,)) = args, dims
        moved = tuple(a + (a >= dim) for a in axes)
        out = prim.bind(x, axes=moved, **params)
        return _same_dim(prim, out, dim - sum(a < dim for a in moved))

    primitive_batchers[prim] = batcher


def moveaxis(x: Any, src: int | None, dst: int) -> Any:
    """Return an array with an axis moved to another position.

    Args:
      x: an array of any shape and dtype.
      src: the axis to move, an int; negative axes count from the end. For `not_mapped` the result
        is `x`.
      dst: the position of the axis in the result, an int; negative ones count from the end.

    Returns:
      An array of the dtype of `x`.

    Raises:
      ShapeError: `x` does not have the axis.

    >>> from weft.interpreters import batching
    >>> x = jnp.ones((2, 3, 4))
    >>> batching.moveaxis(x, 2, 0).shape
    (4, 2, 3)
    >>> batching.moveaxis(x, batching.not_mapped, 0).shape
    (2, 3, 4)
    """
    if src is not_mapped or src == dst:
        return x
    ndim = typeof(x).ndim
    src, dst = (normalize_axis("moveaxis", axis, ndim) for axis in (src, dst))
    order = [i for i in range(ndim) if i != src]
    order.insert(dst, src)
    return transpose(x, order)


def broadcast(x: Any, sz: int, axis: int = 0) -> Any:
    """Return an array that is repeated along a new axis.

    Args:
      x: an array of any shape and dtype.
      sz: the size of the new axis.
      axis: the position of the new axis in the result, an int that is not negative. The default is
        0.

    Returns:
      An array of the dtype of `x`, with one axis more.

    >>> from weft.interpreters import batching
    >>> batching.broadcast(jnp.arange(3), 2)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    >>> batching.broadcast(jnp.arange(3), 2, axis=1).shape
    (3, 2)
    """
    shape = typeof(x).shape
    kept = [i for i in range(len(shape) + 1) if i != axis]
    return broadcast_in_dim(x, (*shape[:axis], sz, *shape[axis:]), kept)


def register_vmappable(
    data_type: type, spec_type: type, axis_size_type: type, to_elt: Callable, from_elt: Callable,
    make_iota: Callable | None = None,
) -> None:  # fmt: skip
    """Have `vmap` map values of a class, where `in_axes` or `out_axes` has a `spec_type` for them.

    Args:
      data_type: the class of the values.
      spec_type: the class of entries in `in_axes` and `out_axes` for these values.
      axis_size_type: ignored; accepted for compatibility with JAX.
      to_elt: `to_elt(cont, get_idx, x, spec)` returns the element of a value; `cont(array, axis)`
        returns the element of an array. `get_idx` is None here.
      from_elt: `from_elt(cont, size, y, spec)` joins elements; `cont(size, array, axis)` does so
        for an array.
      make_iota: ignored; accepted for compatibility with JAX.

    Give `vmap` the size of the axis, `axis_size`, if no ordinary array is mapped. Within other
    transformations such values are leaves; JAX does the same.

    >>> class Column:
    ...     def __init__(self, data):
    ...         self.data = data
    >>> class Along(int):
    ...     pass
    >>> register_vmappable(
    ...     Column, Along, int, lambda cont, _, x, spec: Column(cont(x.data, int(spec))),
    ...     lambda cont, size, y, spec: Column(cont(size, y.data, int(spec))))
    >>> double = weft.vmap(lambda c: Column(2 * c.data), Along(0), Along(0), axis_size=3)
    >>> double(Column(jnp.arange(3.0))).data
    Array([0., 2., 4.], dtype=float32)
    >>> unregister_vmappable(Column)
    """
    VMAPPABLE[data_type] = Vmappable(spec_type, to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Undo `register_vmappable` for a class.

    Nothing happens if the class is not registered.

    Args:
      data_type: the class.

    >>> from weft.interpreters import batching
    >>> class Column:
    ...     pass
    >>> batching.register_vmappable(
    ...     Column, int, int, lambda cont, _, x, spec: x, lambda cont, size, x, spec: x)
    >>> batching.unregister_vmappable(Column)
    """
    VMAPPABLE.pop(data_type, None)
