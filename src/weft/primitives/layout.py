"""Operations that move, repeat or convert elements, and `reduce_sum`, their adjoint.

Slicing, padding and concatenation are in slicing.py; other reductions in reduction.py. Here are
also the constants that every rule needs (`full`, `zeros`), and two families that use them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof, words_of
from weft.core.element import Number, sum_over
from weft.core.facts import Cost, Elements, Linearity
from weft.core.form import Form
from weft.core.primitive import Axes, Primitive, Zero
from weft.core.trace import current, typed_value
from weft.dtypes import NUMBERS
from weft.errors import DtypeError, ShapeError
from weft.mesh.typed import check_terms, resolve_sharding, typed_as
from weft.options import x64_cell
from weft.primitives import families, reshard
from weft.util import SymbolicSize, inverse_permutation, warn_user
from weft.xla.array import array_of_type, put, require_alive
from weft.xla.hlo import i64s
from weft.xla.typing import Array, ArrayLike, DTypeLike

# The Python type of literals of a dtype in a program, without 64-bit types and with them.
_LITERAL_TYPES: tuple[dict[np.dtype, type], ...] = tuple(
    {np.dtype(name): kind for name, kind in zip(names.split(), NUMBERS, strict=True)}
    for names in ("bool int32 float32 complex64", "bool int64 float64 complex128")
)
_RANK = {kind: rank for rank, kind in enumerate(NUMBERS)}


def literal(x: Any, dtype: np.dtype) -> Any:
    """A number as a literal of `dtype`: a Python number where that is its type, else NumPy's.

    Raises DtypeError where the dtype is of a lower kind (1.5 as an int32), OverflowError where it
    is an integer dtype that cannot hold the number. A 64-bit one while `enable_x64` is off is an
    array, since NumPy's numbers are then taken for 32-bit ones.
    """
    kind = _LITERAL_TYPES[x64_cell.value].get(dtype)
    if type(x) is float:
        if kind is float:
            return x
    elif type(x) is int:
        if kind is float:
            return float(x)
        if kind is int and -0x80000000 <= x <= 0x7FFFFFFF:
            return x
    return convert_literal(x, dtype, kind)


def convert_literal(x: Any, dtype: np.dtype, kind: type | None) -> Any:
    """`literal`, except for the commonest cases; `kind` is the Python type of its literals."""
    rank = _RANK.get(type(x))
    if rank is None:  # a NumPy scalar, or a size
        if isinstance(x, SymbolicSize):
            return convert(x.__jax_array__(), dtype)  # type: ignore[attr-defined]
        if np.asarray(x).dtype.kind in "USOmM":
            raise DtypeError(f"literal: a number must be one; got {x!r}.")
        return typed_value(dtypes.cast_on_host(np.asarray(x), dtype)[()], ShapedArray((), dtype))
    if rank > _RANK[dtypes.scalar_type_of(dtype)]:
        raise DtypeError(
            f"literal: a number must be of the dtype's kind; got {x!r} for {dtype.name}."
        )
    if dtypes.is_integer(dtype):
        limits = dtypes.iinfo(dtype)
        if not limits.min <= x <= limits.max:
            raise OverflowError(
                f"literal: {dtype.name} must hold the number; got {x!r}, outside "
                f"[{limits.min}, {limits.max}]."
            )
    if kind is not None:
        return kind(x)
    return typed_value(
        dtypes.cast_on_host(x, dtype)[()], ShapedArray((), dtype, dtype in _LITERAL_TYPES[True])
    )


def host_constant(x: np.ndarray, dtype: np.dtype) -> Any:
    """A NumPy array in `dtype`: 64-bit too where `enable_x64` is off."""
    return typed_value(dtypes.cast_on_host(x, dtype), ShapedArray(x.shape, dtype))


def literal_size(n: Any, like: Any) -> Any:
    """A size as an operand beside `like`: a literal; a symbolic one as an array of its shape."""
    found = literal(n, like.dtype)
    return broadcast_in_dim(found, like.shape, ()) if isinstance(n, SymbolicSize) else found


def move_to_front(x: Any, dim: int | None) -> Any:
    """`x` with its mapped axis `dim` in front."""
    if not dim:
        return x
    return transpose(x, (dim, *(i for i in range(typeof(x).ndim) if i != dim)))


def batched_at_front(x: Any, dim: int | None, size: int) -> Any:
    """Return an operand of a batch rule with a mapped axis in front.

    Args:
      x: an array of any shape and dtype.
      dim: the mapped axis of `x`; an int, or None if `x` is not mapped.
      size: the size of the mapped axis.

    Returns:
      An array of the dtype of `x`. The axis `dim` of `x` comes first. An `x` without a mapped axis
      is repeated along a new first axis of the given size.

    >>> from weft.interpreters import batching
    >>> x = jnp.ones((2, 3))
    >>> batching.bdim_at_front(x, 1, 3).shape, batching.bdim_at_front(x, None, 4).shape
    ((3, 2), (4, 2, 3))
    """
    if dim is None:
        shape = typeof(x).shape
        return broadcast_in_dim(x, (size, *shape), tuple(range(1, len(shape) + 1)))
    return move_to_front(x, dim)


class LeadingBatch(Primitive):
    """A family: the rules do not care for leading axes, and there mapped axes go."""

    core_rank = 2  # of the first operand: how many axes are not batch

    def label_axes(self, avals, outs, **params):
        batch = range(avals[0].ndim - self.core_rank)
        row = lambda a: (*batch, *[None] * (a.ndim - len(batch)))
        return Axes([*map(row, avals)], [*map(row, outs)])

    def batch(self, axis, args, dims, **params):
        args = [batched_at_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
        outs = self.apply(*args, **params)
        return outs, [0] * len(outs)


class LinearTogether(Primitive):
    """A family: linear in all its operands together."""

    def jvp(self, primals, tangents, **params):
        return self.apply(*primals, **params), self.apply(*map(instantiate, tangents), **params)


class BroadcastInDim(reshard.Placed, families.LinearPrimitive):
    """out[i] = x[i[broadcast_dimensions]]: repeat `x` along new axes and axes of size 1.

    Shapes: x's axis k is axis broadcast_dimensions[k] of out, equal in size or 1. Dtypes: any.
    Source: StableHLO, broadcast_in_dim.
    """

    name = "broadcast_in_dim"
    elements = Elements.MOVED
    cost = Cost.FREE

    def abstract_eval(self, x, *, shape, broadcast_dimensions, sharding):
        dims = broadcast_dimensions
        if len(dims) != x.ndim or any(a >= b for a, b in zip(dims, dims[1:], strict=False)):
            raise ShapeError(
                f"{self.name}: broadcast_dimensions must be increasing, one for each axis of x; "
                f"got {dims} for {x}."
            )
        families.check_axes(self.name, dims, len(shape))
        families.check_shape(self.name, shape)
        if any(n not in (1, shape[d]) for n, d in zip(x.shape, dims, strict=True)):
            raise ShapeError(
                f"{self.name}: each axis of x must be of size 1 or as in the result; "
                f"got {x} to shape {shape} with broadcast_dimensions {dims}."
            )
        return [typed_as(ShapedArray(shape, x.dtype, x.weak_type), sharding)]

    def label_axes(self, avals, outs, *, shape, broadcast_dimensions, sharding):
        sizes = zip(avals[0].shape, broadcast_dimensions, strict=True)
        row = [d if n == shape[d] else None for n, d in sizes]
        return Axes([row], [range(len(shape))], Linearity.JOINT)

    def lower(self, hlo, x, *, shape, broadcast_dimensions, sharding):
        out = ShapedArray(shape, x.aval.dtype)
        if x.scalar is not None:
            return [hlo.spread(x, out)]
        dims = i64s(broadcast_dimensions)
        return hlo.op("stablehlo.broadcast_in_dim", [x], [out], broadcast_dimensions=dims)

    def element(self, i, x, *, shape, broadcast_dimensions, sharding):
        sizes = zip(x.shape, broadcast_dimensions, strict=True)
        return [x[[i[d] if n == shape[d] else 0 for n, d in sizes]]]

    def transpose(self, cts, x, *, shape, broadcast_dimensions, sharding):
        (ct,) = cts
        kept = set(broadcast_dimensions)
        stretched = [
            d for n, d in zip(x.aval.shape, broadcast_dimensions, strict=True) if n == 1 != shape[d]
        ]
        axes = tuple(i for i in range(len(shape)) if i not in kept or i in stretched)
        out_sharding = reshard.sharding_of_cotangent(x.aval)
        return [reshape(reduce_sum(ct, axes), x.aval.shape, out_sharding=out_sharding)]

    def batch(self, axis, args, dims, *, shape, broadcast_dimensions, sharding):
        (x,), (d,), kept = args, dims, broadcast_dimensions
        at = kept[d - 1] + 1 if d else 0  # beside its neighbour, so that axes stay in order
        out = self.apply(
            x,
            shape=(*shape[:at], axis.size, *shape[at:]),
            broadcast_dimensions=(*kept[:d], at, *(k + 1 for k in kept[d:])),
            sharding=reshard.insert_axis(sharding, at, x, d, axis.spmd),
        )
        return out, [at]


broadcast_in_dim_p = BroadcastInDim()


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Array:
    """Repeat an array to a shape, with a choice of its axes in the result.

    It is the general form of broadcasting. The rule of NumPy is the choice of the last axes.

    Args:
      operand: an array of any dtype.
      shape: the shape of the result, ints.
      broadcast_dimensions: for each axis of the operand its axis in the result, in ascending order.
        The operand's size on it must be 1 or the size of the result.
      out_sharding: the sharding of the result over explicit axes of a mesh. By default it follows
        from the operand.

    Returns:
      An array of the given shape and the operand's dtype.

    Raises:
      ShapeError: a size does not fit, or the axes are not in ascending order.

    >>> print(lax.broadcast_in_dim(jnp.arange(3), (3, 2), (0,)))
    [[0 0]
     [1 1]
     [2 2]]
    """
    try:
        shape, dims = tuple(shape), tuple(broadcast_dimensions)
    except TypeError:
        raise TypeError(
            "broadcast_in_dim: shape and broadcast_dimensions must be sequences of integers; "
            f"got {shape!r}, {broadcast_dimensions!r}."
        ) from None
    same = type(operand) not in NUMBERS and typeof(operand, "broadcast_in_dim").shape == shape
    if same and out_sharding is None and dims == tuple(range(len(shape))):
        return require_alive(operand)
    sharding = resolve_sharding("broadcast_in_dim", out_sharding, len(shape), operand)
    if sharding is not None and sharding.spec.unreduced:
        operand = reshard.cast_to_terms(operand, sharding)
    params = {
        "shape": shape,
        "broadcast_dimensions": families.index_tuple(
            dims, "broadcast_in_dim", "broadcast_dimensions"
        ),
        "sharding": sharding,
    }
    return current.trace.process(broadcast_in_dim_p, (operand,), params)[0]


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Repeat an array along new axes, which are put in front.

    Args:
      operand: an array of any dtype.
      sizes: the sizes of the new axes, ints.
      out_sharding: the sharding of the result over explicit axes of a mesh. By default it follows
        from the operand.

    Returns:
      An array of shape `sizes + operand.shape` and the operand's dtype.

    >>> print(lax.broadcast(jnp.arange(3), (2,)))
    [[0 1 2]
     [0 1 2]]
    """
    shape, sizes = (
        typeof(operand, "broadcast").shape,
        families.index_tuple(sizes, "broadcast", "sizes"),
    )
    dims = tuple(range(len(sizes), len(sizes) + len(shape)))
    return broadcast_in_dim(operand, (*sizes, *shape), dims, out_sharding=out_sharding)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Insert axes of size 1 in front until an array has a given rank.

    Args:
      x: an array of any dtype.
      rank: the rank of the result, an int. An array of a higher rank is returned unchanged.

    Returns:
      An array with the same elements.

    >>> lax.broadcast_to_rank(jnp.arange(3), 2).shape
    (1, 3)
    """
    more = families.check_integer("broadcast_to_rank", "rank", rank, 0, 64) - typeof(x).ndim
    return expand_dims(x, range(more))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Repeat an array to the shape of another one, by the rule of NumPy.

    Args:
      arr: an array of any dtype.
      like_arr: an array; only its shape is used.

    Returns:
      An array of the shape of `like_arr` and the dtype of `arr`.

    >>> print(lax.broadcast_like(jnp.arange(3), jnp.zeros((2, 3))))
    [[0 1 2]
     [0 1 2]]
    """
    shape, rank = typeof(like_arr, "broadcast_like").shape, typeof(arr, "broadcast_like").ndim
    if typeof(arr, "broadcast_like").shape == shape:
        return arr
    return broadcast_in_dim(arr, shape, range(len(shape) - rank, len(shape)))


class ConvertElementType(families.LinearByElement):
    """x in another dtype. Complex to real drops the imaginary part; to bool is x != 0.

    A float too large for an integer dtype becomes its nearest end, NaN becomes 0; integers wrap.
    `weak_type` says whether the result is weak. Source: StableHLO, convert.
    """

    name = "convert_element_type"
    elements = Elements.CONVERTED
    cost = Cost.CHEAP
    element = families.apply_to_element

    def abstract_eval(self, x, *, new_dtype, weak_type, sharding=None):
        return [ShapedArray(x.shape, new_dtype, weak_type)]

    def label_axes(self, avals, outs, **params):
        kinds = [dtypes.is_complex(a.dtype) for a in (*avals, *outs) if dtypes.is_inexact(a.dtype)]
        same = kinds in ([False] * 2, [True] * 2, [False, True])
        linear = Linearity.JOINT if same else Linearity.NONE
        return families.along_each_other(avals, outs, linear)

    def lower(self, hlo, x, *, new_dtype, weak_type, sharding=None):
        if dtypes.is_complex(x.aval.dtype) and not dtypes.is_complex(new_dtype):
            part = ShapedArray(x.aval.shape, dtypes.real_dtype(x.aval.dtype))
            (x,) = hlo.op("stablehlo.real", [x], [part])
        if dtypes.is_bool(new_dtype) and not dtypes.is_bool(x.aval.dtype):
            return [hlo.compare("NE", x, hlo.constant(0, x.aval.strong()))]
        return [hlo.convert(x, new_dtype)]

    def jvp(self, primals, tangents, *, new_dtype, weak_type, sharding=None):
        outs = self.apply(*primals, new_dtype=new_dtype, weak_type=weak_type)
        if not dtypes.is_inexact(new_dtype):
            return outs, families.zero_tangents(outs)
        return outs, self.apply(*tangents, new_dtype=new_dtype, weak_type=weak_type)

    def transpose(self, cts, x, *, new_dtype, weak_type, sharding=None):
        return self.apply(cts[0], new_dtype=x.aval.dtype, weak_type=x.aval.weak_type)

    def pretty_params(self, params):
        return {k: v for k, v in params.items() if k != "sharding"}


convert_element_type_p = ConvertElementType()


def convert(x: Any, dtype: np.dtype, weak_type: bool = False) -> Any:
    """x in `dtype`, itself where it has that type already.

    An int that the default integer dtype cannot hold becomes a literal of `dtype`, which may hold
    it.
    """
    aval = typeof(x)
    if aval.dtype == dtype and aval.weak_type == weak_type and type(x) not in NUMBERS:
        return x
    if type(x) is int and x.bit_length() >= 8 * aval.dtype.itemsize:
        x = literal(x, dtype)
    return convert_element_type_p.apply(x, new_dtype=dtype, weak_type=weak_type)[0]


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Convert an array to another dtype.

    Floats become integers by truncation. On the CPU NaN becomes 0, and a float that is too large
    the largest integer. A complex operand loses its imaginary part if the dtype is real, with a
    warning.

    Args:
      operand: an array or a number.
      new_dtype: a dtype. 64-bit dtypes become 32-bit ones unless `enable_x64`.

    Returns:
      An array of the operand's shape and the new dtype, which is not weak.

    Raises:
      DtypeError: the dtype is not of numbers or bools.

    >>> print(lax.convert_element_type(jnp.array([1.7, -1.7]), np.int32))
    [ 1 -1]
    """
    if new_dtype is None:
        raise DtypeError("convert_element_type: a dtype must be given; got None.")
    dtype = dtypes.canonicalize(new_dtype, "convert_element_type")
    if dtypes.is_complex(typeof(operand).dtype) and not dtypes.is_complex(dtype):
        text = f"convert_element_type: {dtype.name} has no place for the imaginary part."
        warn_user(text, np.exceptions.ComplexWarning)
    return require_alive(convert(operand, dtype))


def full(shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """An array of `shape` filled with a number or a scalar; its own dtype where none is given."""
    dtype = None if dtype is None else dtypes.canonicalize(dtype, "full")
    return fill(families.index_tuple(shape, "full", "shape"), fill_value, dtype)


def fill(shape: Sequence[int], fill_value: Any, dtype: Any = None, sharding: Any = None) -> Any:
    """`full`, of the very dtype of an array: 64-bit too where `enable_x64` is off."""
    if dtypes.is_extended(dtype) and not dtypes.is_extended(typeof(fill_value, "full").dtype):
        shape, of_words = (*shape, dtype.words), dtype.words_dtype
        return random_wrap_p.apply(fill(shape, fill_value, of_words), dtype=dtype)[0]
    if isinstance(fill_value, complex) and dtype is not None and not dtypes.is_complex(dtype):
        raise DtypeError(f"full: the fill value must be real for {dtype}; got {fill_value!r}.")
    if type(fill_value) in NUMBERS and dtype is not None:
        try:
            fill_value = typed_value(
                dtypes.cast_on_host(fill_value, dtype)[()], ShapedArray((), dtype)
            )
        except (OverflowError, ValueError) as error:
            said = f"full: the fill value must fit {dtype}; got {fill_value}."
            raise type(error)(said) from None
    elif typeof(fill_value, "full").shape:
        raise ShapeError(f"full: the fill value must be a scalar; got {typeof(fill_value)}.")
    elif dtype is not None:
        fill_value = convert(fill_value, dtype)
    return broadcast_in_dim_p.apply(
        fill_value, shape=tuple(shape), broadcast_dimensions=(), sharding=sharding
    )[0]


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Sequence[int] | None = None,
) -> Array:
    """Do as `full` does, with the shape and dtype of `x` where they are not given."""
    like = x if hasattr(x, "shape") and hasattr(x, "dtype") else typeof(x, "full_like")
    if dtype is None and getattr(like, "weak_type", False):
        fill_value = convert(fill_value, like.dtype, True)
    elif dtype is not None or not hasattr(x, "aval"):
        dtype = dtypes.canonicalize(like.dtype if dtype is None else dtype, "full_like")
    else:
        dtype = like.dtype
    shape = like.shape if shape is None else families.index_tuple(shape, "full_like", "shape")
    return fill(shape, fill_value, dtype)


def empty(
    shape: Sequence[int], dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Return an array whose contents do not matter. It holds zeros.

    Args:
      shape: the shape, ints.
      dtype: the dtype. The default is float32, or float64 with `enable_x64`.
      out_sharding: the sharding of the result over explicit axes of a mesh. By default it is not
        sharded.

    Returns:
      An array of the given shape and dtype.

    >>> lax.empty((2,), np.float32)
    Array([0., 0.], dtype=float32)
    """
    x = full(shape, 0, dtypes.default_float() if dtype is None else dtype)
    return reshard.lay_out("empty", x, out_sharding)


def zeros(aval: ShapedArray) -> Any:
    """Return zeros of a type.

    Args:
      aval: the type, a `ShapedArray`.

    Returns:
      An array of zeros of the shape, dtype and sharding of `aval`. It may be a NumPy scalar if the
      shape is (). For the dtype float0, the type of tangents of integers, it is a NumPy array.

    >>> from weft.interpreters import ad
    >>> ad.zeros_like_aval(weft.typeof(jnp.ones(3)))
    Array([0., 0., 0.], dtype=float32)
    """
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    if not aval.shape and aval.physical is aval:
        return literal(0, aval.dtype) if aval.weak_type else typed_value(aval.dtype.type(0), aval)
    return fill(aval.shape, 0, aval.dtype, aval.sharded and aval.sharded.named)


def instantiate(t: Any) -> Any:
    """Return a tangent or a cotangent as an array: zeros for a `Zero`.

    Args:
      t: a tangent or a cotangent; an array or a `Zero`.

    Returns:
      `t` itself, or an array of zeros of the type of the `Zero`.

    >>> from weft.interpreters import ad
    >>> ad.instantiate_zeros(ad.Zero(weft.typeof(jnp.ones(2))))
    Array([0., 0.], dtype=float32)
    >>> ad.instantiate_zeros(1.5)
    1.5
    """
    return zeros(t.aval) if isinstance(t, Zero) else t


class ReduceSum(families.LinearPrimitive, families.OverAxes):
    """out = the sum of x over `axes`, which are removed. Accumulates in x's dtype.

    Dtypes: numbers. The sum of nothing is 0. Source: StableHLO, reduce.
    """

    name = "reduce_sum"
    cost = Cost.REDUCTION
    form = Form.SUM

    def abstract_eval(self, x, *, axes, out_sharding=None):
        families.check_ascending_axes(self.name, axes, x.ndim)
        if dtypes.is_bool(x.dtype):
            raise DtypeError(
                f"{self.name}: needs numbers; got {x}. Hint: x.astype(int) counts the true ones."
            )
        out = ShapedArray(families.drop_axes(x.shape, axes), x.dtype, x.weak_type)
        out = typed_as(out, out_sharding)
        check_terms(self.name, out, (x, axes))
        return [out]

    def lower(self, hlo, x, *, axes, out_sharding=None):
        out = self.type_of((x.aval,), {"axes": axes})
        cell = ShapedArray((), x.aval.dtype)
        given = [x, hlo.constant(0, cell)], out, [hlo.scalar_block("add", cell)]
        return hlo.op("stablehlo.reduce", *given, dimensions=i64s(axes))

    def element(self, i, x, *, axes, **params):
        return [sum_over([x.shape[a] for a in axes], x.dtype, self.read_over(i, axes, x))]

    def transpose(self, cts, x, *, axes, out_sharding=None):
        kept = tuple(i for i in range(x.aval.ndim) if i not in axes)
        out_sharding = reshard.sharding_of_cotangent(x.aval)
        return [broadcast_in_dim(cts[0], x.aval.shape, kept, out_sharding=out_sharding)]

    def batch(self, axis, args, dims, **params):
        if "out_sharding" in params:
            (x,), (d,), axes = args, dims, params["axes"]
            at = d - sum(a < d for a in axes)
            params["out_sharding"] = reshard.insert_axis(
                params["out_sharding"], at, x, d, axis.spmd
            )
        return super().batch(axis, args, dims, **params)

    def pretty_params(self, params):
        return reshard.show_spec(params, "out_sharding")

    def read_params(self, params, avals, out_avals):
        return reshard.read_spec(params, "out_sharding", avals)


reduce_sum_p = ReduceSum()


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Sum an array over axes, which are removed.

    Args:
      operand: an array of integers, floats or complex numbers.
      axes: the axes to sum over, distinct ints.
      out_sharding: the sharding of the result over explicit axes of a mesh. With
        `P(..., unreduced={axis})` each device keeps its part of a sum over an axis that is sharded.
        By default it follows from the operand.

    Returns:
      An array of the operand's dtype: unlike with `jnp.sum`, small integers are not promoted.

    Raises:
      DtypeError: the operand is of bools.
      ShapeError: the operand does not have the axes.

    >>> print(lax.reduce_sum(jnp.arange(6).reshape(2, 3), (0,)))
    [3 5 7]
    """
    axes = families.sort_axes(axes, "reduce_sum")
    if not axes:
        return reshard.lay_out("reduce_sum", operand, out_sharding)
    if out_sharding is None:
        return current.trace.process(reduce_sum_p, (operand,), {"axes": axes})[0]
    rank = typeof(operand).ndim - len(axes)
    sharding = resolve_sharding("reduce_sum", out_sharding, rank, operand)
    return reduce_sum_p.apply(operand, axes=axes, out_sharding=sharding)[0]


class Reshape(reshard.Placed, families.LinearPrimitive):
    """The same elements in row-major order under another shape of equal size.

    Source: StableHLO, reshape.
    """

    name = "reshape"
    elements = Elements.MOVED
    cost = Cost.FREE

    def abstract_eval(self, x, *, new_sizes, dimensions, sharding):
        sizes = families.index_tuple(new_sizes, self.name, "new_sizes")
        if math.prod(sizes) != x.size or any(d < 0 for d in sizes):
            raise ShapeError(
                f"{self.name}: the new shape must have as many elements as x; "
                f"got {x} to {tuple(new_sizes)}."
            )
        out = typed_as(ShapedArray(new_sizes, x.dtype, x.weak_type), sharding)
        check_terms(self.name, out, (x, ()))
        return [out]

    def label_axes(self, avals, outs, *, new_sizes, **params):
        return families.label_reshaped(avals[0], new_sizes)

    def lower(self, hlo, x, *, new_sizes, dimensions, sharding):
        if x.aval.shape == new_sizes:
            return [x]
        return hlo.op("stablehlo.reshape", [x], [ShapedArray(new_sizes, x.aval.dtype)])

    def element(self, i, x, *, new_sizes, **params):
        return [x[families.reshaped_index(i, x.shape, new_sizes)]]

    def transpose(self, cts, x, **params):
        return [reshape(cts[0], x.aval.shape, out_sharding=reshard.sharding_of_cotangent(x.aval))]

    def batch(self, axis, args, dims, *, new_sizes, dimensions, sharding):
        sizes, x = (axis.size, *new_sizes), move_to_front(args[0], dims[0])
        return [
            reshape(x, sizes, out_sharding=reshard.insert_axis(sharding, 0, x, 0, axis.spmd))
        ], [0]


reshape_p = Reshape()


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return the elements of an array under another shape.

    Args:
      operand: an array of any dtype.
      new_sizes: the new shape, ints whose product is the number of elements. -1 is not allowed.
      dimensions: a permutation of the operand's axes, which is applied before. By default the order
        of the axes is kept.
      out_sharding: the sharding of the result over explicit axes of a mesh. By default it follows
        from the operand.

    Returns:
      An array of shape `new_sizes` and the operand's dtype.

    Raises:
      ShapeError: the number of elements differs.

    >>> print(lax.reshape(jnp.arange(6), (2, 3)))
    [[0 1 2]
     [3 4 5]]
    >>> print(lax.reshape(jnp.arange(6).reshape(2, 3), (6,), dimensions=(1, 0)))
    [0 3 1 4 2 5]
    """
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    if type(new_sizes) is not tuple:
        new_sizes = families.index_tuple(new_sizes, "reshape", "new_sizes")
    if out_sharding is None and typeof(operand).shape == new_sizes:
        return require_alive(operand)
    sharding = resolve_sharding("reshape", out_sharding, len(new_sizes), operand)
    return reshape_p.apply(operand, new_sizes=new_sizes, dimensions=None, sharding=sharding)[0]


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge consecutive axes of an array into one.

    Args:
      operand: an array of any dtype.
      start_dimension: the first axis to merge, an int.
      stop_dimension: the axis after the last one to merge. None, the default, is the rank. If it
        equals `start_dimension`, an axis of size 1 is inserted.

    Returns:
      An array with the same elements.

    Raises:
      ShapeError: the range ends before it starts.

    >>> lax.collapse(jnp.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    shape = typeof(operand, "collapse").shape
    ends = slice(start_dimension, stop_dimension)
    first, last, _ = families.check_parameter(
        "collapse", "the range of axes", ends, "integers", lambda s: s.indices(len(shape))
    )
    if first > last:
        raise ShapeError(
            "collapse: the range must not end before it starts; "
            f"got {start_dimension} to {stop_dimension} of {typeof(operand)}."
        )
    size = 1
    for n in shape[first:last]:
        size *= n
    return reshape(operand, (*shape[:first], size, *shape[last:]))


class Transpose(families.LinearPrimitive):
    """out[i] = x with axis permutation[k] of x as axis k of out. Source: StableHLO, transpose."""

    name = "transpose"
    elements = Elements.MOVED
    cost = Cost.FREE

    def abstract_eval(self, x, *, permutation):
        if sorted(permutation) != list(range(x.ndim)):
            raise ShapeError(
                f"{self.name}: permutation must name every axis of x once; "
                f"got {tuple(permutation)} for {x}."
            )
        return [ShapedArray([x.shape[p] for p in permutation], x.dtype, x.weak_type)]

    def label_axes(self, avals, outs, *, permutation):
        return Axes([range(len(permutation))], [permutation], Linearity.JOINT)

    def lower(self, hlo, x, *, permutation):
        out = self.abstract_eval(x.aval, permutation=permutation)
        return hlo.op("stablehlo.transpose", [x], out, permutation=i64s(permutation))

    def element(self, i, x, *, permutation):
        return [x[[i[a] for a in inverse_permutation(permutation)]]]

    def transpose(self, cts, x, *, permutation):
        return [transpose(cts[0], inverse_permutation(permutation))]

    def batch(self, axis, args, dims, *, permutation):
        d = dims[0]
        return [transpose(args[0], (d, *families.shift_axes(permutation, d)))], [0]


transpose_p = Transpose()


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Permute the axes of an array.

    Args:
      operand: an array of any dtype.
      permutation: for each axis of the result the axis of the operand: every axis once.

    Returns:
      An array of the operand's dtype.

    Raises:
      ShapeError: the permutation does not name every axis once.

    >>> lax.transpose(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    permutation = families.index_tuple(permutation, "transpose", "permutation")
    if permutation == tuple(range(typeof(operand).ndim)):
        return require_alive(operand)
    return transpose_p.apply(operand, permutation=permutation)[0]


class Squeeze(families.LinearPrimitive, families.OverAxes):
    """x without the axes `dimensions`, all of size 1."""

    name = "squeeze"
    cost = Cost.FREE
    axes = "dimensions"
    elements = Elements.MOVED

    def abstract_eval(self, x, *, dimensions):
        families.check_axes(self.name, dimensions, x.ndim)
        if any(x.shape[d] != 1 for d in dimensions):
            raise ShapeError(
                f"{self.name}: each of dimensions must be an axis of size 1; "
                f"got {tuple(dimensions)} for {x}."
            )
        return [ShapedArray(families.drop_axes(x.shape, dimensions), x.dtype, x.weak_type)]

    def lower(self, hlo, x, *, dimensions):
        return hlo.op("stablehlo.reshape", [x], self.abstract_eval(x.aval, dimensions=dimensions))

    def element(self, i, x, *, dimensions):
        return [self.read_over(i, dimensions, x)(*[0] * len(dimensions))]

    def transpose(self, cts, x, *, dimensions):
        return [reshape(cts[0], x.aval.shape, out_sharding=reshard.sharding_of_cotangent(x.aval))]


squeeze_p = Squeeze()


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Remove axes of size 1.

    Args:
      array: an array of any dtype.
      dimensions: the axes to remove, ints. Negative axes count from the end.

    Returns:
      An array with the same elements.

    Raises:
      ShapeError: an axis does not have size 1.

    >>> lax.squeeze(jnp.ones((1, 3)), (0,)).shape
    (3,)
    """
    ndim = typeof(array, "squeeze").ndim
    dims = families.index_tuple(dimensions, "squeeze", "dimensions")
    dims = tuple(sorted(families.normalize_axis("squeeze", d, ndim) for d in dims))
    return squeeze_p.apply(array, dimensions=dims)[0] if dims else array


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Insert axes of size 1.

    Args:
      array: an array of any dtype.
      dimensions: the positions of the new axes in the result, ints. Negative positions count from
        the end.

    Returns:
      An array with the same elements.

    Raises:
      ShapeError: the positions are not distinct axes of the result.

    >>> lax.expand_dims(jnp.arange(3), (0, 2)).shape
    (1, 3, 1)
    """
    shape = typeof(array, "expand_dims").shape
    dimensions = families.index_tuple(dimensions, "expand_dims", "dimensions")
    ndim = len(shape) + len(dimensions)
    new = [families.normalize_axis("expand_dims", d, ndim) for d in dimensions]
    families.check_axes("expand_dims", new, ndim)
    kept = tuple(i for i in range(ndim) if i not in new)
    out = [1] * ndim
    for i, n in zip(kept, shape, strict=True):
        out[i] = n
    return broadcast_in_dim(array, out, kept) if new else array


class Iota(reshard.Placed):
    """out[i] = i[dimension]: counting along one axis.

    Dtypes: numbers. Source: StableHLO, iota.
    """

    name = "iota"
    cost = Cost.CHEAP

    def abstract_eval(self, *, dtype, shape, dimension, sharding):
        if dtypes.is_bool(dtype):
            raise DtypeError(f"{self.name}: needs a numeric dtype; got {dtype.name}.")
        families.check_shape(self.name, shape)
        families.check_axes(self.name, (dimension,), len(shape))
        return [typed_as(ShapedArray(shape, dtype), sharding)]

    def lower(self, hlo, *, dtype, shape, dimension, sharding):
        out = [ShapedArray(shape, dtype)]
        return hlo.op("stablehlo.iota", [], out, iota_dimension=f"{dimension} : i64")

    def element(self, i, *, dtype, shape, dimension, sharding):
        return [Number(i[dimension], dtype)]


iota_p = Iota()


def broadcasted_iota(
    dtype: DTypeLike, shape: Sequence[int], dimension: int, *, out_sharding: Any = None
) -> Array:
    """Return an array of positions along one of its axes.

    Args:
      dtype: an integer, float or complex dtype.
      shape: the shape of the result, ints.
      dimension: the axis along which the elements count from 0.
      out_sharding: the sharding of the result over explicit axes of a mesh. By default it is not
        sharded.

    Returns:
      An array of the given shape and dtype.

    Raises:
      ShapeError: the shape does not have the axis.

    >>> print(lax.broadcasted_iota(np.int32, (2, 3), 1))
    [[0 1 2]
     [0 1 2]]
    """
    shape = families.index_tuple(shape, "broadcasted_iota", "shape")
    sharding = resolve_sharding("broadcasted_iota", out_sharding, len(shape))
    terms = sharding is not None and sharding.spec.unreduced
    x = iota_p.apply(
        dtype=dtypes.canonicalize(dtype, "broadcasted_iota"),
        shape=shape,
        dimension=families.check_integer("broadcasted_iota", "dimension", dimension),
        sharding=None if terms else sharding,
    )[0]
    return reshard.lay_out("broadcasted_iota", x, sharding) if terms else x


def iota(dtype: DTypeLike, size: int) -> Array:
    """Return the integers from 0 to `size - 1`.

    Args:
      dtype: an integer, float or complex dtype.
      size: the number of elements, an int >= 0.

    Returns:
      An array of shape (size,) and the given dtype.

    Raises:
      DtypeError: the dtype is not of numbers.
      ShapeError: the size is negative.

    >>> lax.iota(np.int32, 3)
    Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, (families.check_integer("iota", "size", size),), 0)


class Rev(families.LinearPrimitive):
    """x with the order of elements along `dimensions` reversed. Source: StableHLO, reverse."""

    name = "rev"
    elements = Elements.MOVED
    cost = Cost.FREE
    label_axes = families.label_together

    def abstract_eval(self, x, *, dimensions):
        families.check_axes(self.name, dimensions, x.ndim)
        return [x]

    def lower(self, hlo, x, *, dimensions):
        return hlo.op("stablehlo.reverse", [x], [x.aval], dimensions=i64s(dimensions))

    def element(self, i, x, *, dimensions):
        axes = enumerate(zip(i, x.shape, strict=True))
        return [x[[n - 1 - k if a in dimensions else k for a, (k, n) in axes]]]

    def transpose(self, cts, x, *, dimensions):
        return [rev(cts[0], dimensions)]

    def batch(self, axis, args, dims, *, dimensions):
        d = dims[0]
        return [rev(args[0], families.shift_axes(dimensions, d))], [d]


rev_p = Rev()


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order of the elements along axes.

    Args:
      operand: an array of any dtype.
      dimensions: the axes, distinct ints.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      ShapeError: the operand does not have the axes.

    >>> print(lax.rev(jnp.arange(6).reshape(2, 3), (1,)))
    [[2 1 0]
     [5 4 3]]
    """
    return (
        rev_p.apply(operand, dimensions=families.index_tuple(dimensions, "rev", "dimensions"))[0]
        if not isinstance(dimensions, Sequence) or dimensions
        else require_alive(operand)
    )


class Copy(families.Identity):
    """The same values in a buffer of their own."""

    name = "copy"
    elements = Elements.MOVED


copy_p = Copy()


def copy(x: Any) -> Any:
    """The same values in a buffer of their own."""
    return copy_p.apply(x)[0]


class RandomWrap(Primitive):
    """The random keys, of `dtype`, that are made of words. Shapes: (..., n) to (...)."""

    name = "random_wrap"
    elements = Elements.SAME_WORDS
    cost = Cost.FREE

    def abstract_eval(self, words, *, dtype):
        if words.dtype != dtype.words_dtype or words.shape[-1:] != (dtype.words,):
            kind = dtypes.short_name(dtype.words_dtype)
            raise DtypeError(
                f"{self.name}: words of {dtype} must be {kind}[..., {dtype.words}]; got {words}."
            )
        return [ShapedArray(words.shape[:-1], dtype)]

    def impl(self, words, *, dtype):
        (aval,) = self.abstract_eval(typeof(words), dtype=dtype)
        return [array_of_type(aval, put(words))]

    def label_axes(self, avals, outs, **params):
        return Axes([(*range(outs[0].ndim), None)], [range(outs[0].ndim)])

    def batch(self, axis, args, dims, *, dtype):
        (words,), (d,) = args, dims
        if d == typeof(words).ndim - 1:  # the words must be the last axis
            words, d = move_to_front(words, d), 0
        return self.apply(words, dtype=dtype), [d]

    def pretty_params(self, params):
        return {"impl": params["dtype"].tag}

    def read_params(self, params, avals, out_avals):
        return {"dtype": out_avals[0].dtype}


class RandomUnwrap(Primitive):
    """The words that random keys are made of. Shapes: (...) to (..., n)."""

    name = "random_unwrap"
    elements = Elements.SAME_WORDS
    cost = Cost.FREE

    def abstract_eval(self, keys):
        if keys.physical is keys:
            raise DtypeError(f"{self.name}: must be of random keys; got {keys}.")
        return [keys.physical]

    def impl(self, keys):
        self.abstract_eval(typeof(keys))
        return [words_of(keys)]

    def label_axes(self, avals, outs, **params):
        return Axes([range(avals[0].ndim)], [(*range(avals[0].ndim), None)])

    def batch(self, axis, args, dims):
        return self.apply(*args), list(dims)


random_wrap_p, random_unwrap_p = RandomWrap(), RandomUnwrap()
