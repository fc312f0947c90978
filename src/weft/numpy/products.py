"""Products that contract axes: dot, matmul, tensordot and others, each one dot_general.

The subscripts of einsum, and the order of its contractions, are in contraction.py.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.core.trace import current
from weft.errors import ShapeError
from weft.mesh.sharding import NamedSharding
from weft.mesh.typed import resolve_sharding
from weft.numpy import reductions
from weft.numpy.manipulation import diagonal
from weft.numpy.promotion import (
    as_array,
    as_arrays_together,
    axis_of,
    broadcast_avals,
    drop_weak_type,
    kind_of,
    plan_promotion,
    promote_operands,
    refuse_out,
)
from weft.numpy.ufuncs import multiply
from weft.primitives import elementwise as ops
from weft.primitives import layout, slicing
from weft.primitives.dot import PrecisionLike, canonical_precision, dot_general_p
from weft.primitives.layout import broadcast_in_dim, literal, reshape, squeeze, transpose
from weft.primitives.tokens import keep_p
from weft.run.operation import operation
from weft.util import inverse_permutation, memoize
from weft.xla.typing import Array, ArrayLike, DTypeLike, ShardingLike

STATIC = ("precision", "preferred_element_type", "out_sharding")


def contract(
    op: str,
    x: Any,
    y: Any,
    contracting: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    precision: Any = None,
    preferred: Any = None,
    sharding: NamedSharding | None = None,
) -> Any:
    """Sum products over contracting axes: batch axes first, then x's others, then y's.

    The result is in the promoted dtype unless `preferred` says another, and is sharded as the
    operands are unless `sharding` says another sharding.
    """
    if preferred is None:
        preferred = x.dtype
        if y.dtype is not preferred:
            preferred = plan_promotion(op, (kind_of(op, x), kind_of(op, y)), shaped=False).dtype
    else:
        preferred = dtypes.check_user_dtype(preferred, op)
    (cx, cy), (bx, by) = contracting, batch
    shape_x, shape_y = x.shape, y.shape
    if [shape_x[i] for i in (*cx, *bx)] != [shape_y[j] for j in (*cy, *by)]:
        for i, j in (*zip(cx, cy, strict=True), *zip(bx, by, strict=True)):
            if shape_x[i] != shape_y[j]:
                raise ShapeError(
                    f"{op}: axis {i} of x and axis {j} of y must be equal in size; "
                    f"got {x.aval}, {y.aval}."
                )
    params = {
        "dimension_numbers": ((tuple(cx), tuple(cy)), (tuple(bx), tuple(by))),
        "precision": canonical_precision(op, precision),
        "preferred_element_type": preferred,
        "out_sharding": sharding,
    }
    return current.trace.process(dot_general_p, (x, y), params)[0]


@operation(static=STATIC)
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the dot product of vectors, or the product of matrices.

    The sum runs over the last axis of `a` and the second-to-last axis of `b`, or its only axis. For
    arrays of three or more axes, every pair of the other axes is combined, where `matmul` has
    batches. A scalar multiplies all elements.

    Args:
      a: an array (..., n), or a scalar, of any numeric dtype.
      b: an array (..., n, k), a vector (n,), or a scalar. The operands are promoted to one dtype.
      precision: how exactly to multiply on hardware with a choice: a `lax.Precision`, its name
        ("default", "high", "highest"), the name of a `lax.DotAlgorithmPreset`, or a pair of
        precisions, for each operand. None is the default precision. On CPUs, all are full
        precision. Static under `jit`, as are the next two.
      preferred_element_type: the dtype to accumulate in, and of the result. None stands for the
        promoted dtype of the operands.
      out_sharding: the sharding of the result over explicit axes of a mesh: a spec over the mesh in
        scope, or a NamedSharding. It has to be given if the axis that is summed over is sharded in
        both operands; with P(..., unreduced={axis}), each device keeps a term of the sum. None
        derives the sharding from the operands.

    Returns:
      An array of the shape `a.shape[:-1] + b.shape[:-2] + b.shape[-1:]`, or `a.shape[:-1]` if `b`
      is a vector.

    Raises:
      ShapeError: if the axes that are summed over differ in size.
      ValueError: if `precision` is not one of these.

    >>> jnp.dot(jnp.arange(3), jnp.arange(3))
    Array(5, dtype=int32)
    >>> jnp.dot(jnp.ones((2, 3)), jnp.ones((5, 3, 4))).shape
    (2, 5, 4)
    >>> x = jnp.full(3, 100, jnp.int8)
    >>> print(jnp.dot(x, x, preferred_element_type=jnp.int32))
    30000
    """
    x, y = as_arrays_together("dot", a, b)
    axes: Any = ((), ())
    if x.ndim and y.ndim:
        axes = ((x.ndim - 1,), (max(y.ndim - 2, 0),))
    rank = x.ndim + y.ndim - 2 * len(axes[0])
    sharding = resolve_sharding("dot", out_sharding, rank, x, y)
    return contract("dot", x, y, axes, ((), ()), precision, preferred_element_type, sharding)


@operation(static=STATIC)
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the matrix product `a @ b`, for batches of matrices too.

    The last two axes are matrices; the axes before them are a batch, and broadcast. A vector is a
    row on the left and a column on the right; its added axis is not in the result.

    Args:
      a: matrices (..., m, n) or a vector (n,), of any numeric dtype.
      b: matrices (..., n, k) or a vector (n,). The operands are promoted to one dtype.
      precision: the precision of the products, as in `dot`; None is the default precision. Static
        under `jit`, as are the next two.
      preferred_element_type: the dtype to accumulate in, and of the result. None stands for the
        promoted dtype of the operands.
      out_sharding: the sharding of the result over explicit axes of a mesh, as in `dot`. None
        derives it from the operands.

    Returns:
      The products (..., m, k), without the axis of each operand that is a vector.

    Raises:
      ShapeError: if an operand is a scalar, if the axes that are summed over differ in size, or if
        the leading axes do not broadcast.

    >>> print(jnp.array([[1, 2], [3, 4]]) @ jnp.array([1, 1]))
    [3 7]
    >>> (jnp.ones((5, 2, 3)) @ jnp.ones((3, 4))).shape
    (5, 2, 4)
    >>> jnp.matmul(jnp.ones((5, 1, 2, 3)), jnp.ones((7, 3, 4))).shape
    (5, 7, 2, 4)
    """
    x, y = as_array(a, "matmul"), as_array(b, "matmul")
    nx, ny = x.ndim, y.ndim
    if not nx or not ny:
        raise ShapeError(
            f"matmul: operands must have at least one axis; got {x.aval}, {y.aval}. "
            "Hint: a * b for a scalar."
        )
    rank = max(nx, ny, 2) - (nx == 1) - (ny == 1)
    sharding = resolve_sharding("matmul", out_sharding, rank, x, y)
    if nx <= 2 and ny <= 2:
        axes = ((nx - 1,), (max(ny - 2, 0),))
        return contract("matmul", x, y, axes, ((), ()), precision, preferred_element_type, sharding)
    return matmul_batched(x, y, precision, preferred_element_type, sharding)


def matmul_batched(x: Any, y: Any, precision: Any, preferred: Any, sharding: Any) -> Any:
    """matmul with leading axes: those that only one operand has are free, not repeated."""
    layout = plan_matmul(x.shape, y.shape)
    if layout is None:
        raise ShapeError(f"matmul: leading axes must broadcast together; got {x.aval}, {y.aval}.")
    drop_x, drop_y, contracting, batch, permutation = layout
    if drop_x:
        x = squeeze(x, drop_x)
    if drop_y:
        y = squeeze(y, drop_y)
    if permutation is not None and sharding is not None:
        sharding = permute_spec(sharding, inverse_permutation(permutation))
    out = contract("matmul", x, y, contracting, batch, precision, preferred, sharding)
    return out if permutation is None else transpose(out, permutation)


def permute_spec(sharding: NamedSharding, axes: Sequence[int]) -> NamedSharding:
    """Return the sharding of values if their axis k is axis axes[k] of the values of `sharding`."""
    entries = [sharding.spec.axes(i) for i in axes]
    return sharding.with_spec(sharding.spec.update(partitions=entries))


@memoize
def plan_matmul(shape_x: tuple[int, ...], shape_y: tuple[int, ...]) -> tuple | None:
    """Plan the product of stacks of matrices; None if leading axes do not broadcast.

    The plan has the axes of size 1 to drop in each operand, the contracting and the batch axes of
    the rest, and the permutation of the product.
    """
    rank_x, rank_y = len(shape_x), len(shape_y)
    rows, columns = min(rank_x, 2) - 1, min(rank_y, 2) - 1  # how many axes of a matrix stay
    nx, ny = max(rank_x - 2, 0), max(rank_y - 2, 0)
    lead = max(nx, ny)
    batch_x, batch_y, drop_x, drop_y = [], [], [], []
    place: list[tuple[int, int]] = []  # for each leading axis: (kind, axis), kinds in result order
    for i in range(lead):
        ax, ay = i - lead + nx, i - lead + ny
        size_x = shape_x[ax] if ax >= 0 else None
        size_y = shape_y[ay] if ay >= 0 else None
        if size_x is None or (size_x == 1 and size_y not in (None, 1)):
            drop_x += [ax] if size_x is not None else []
            place.append((2, ay))
        elif size_y is None or (size_y == 1 and size_x != 1):
            drop_y += [ay] if size_y is not None else []
            place.append((1, ax))
        elif size_x == size_y:
            batch_x.append(ax)
            batch_y.append(ay)
            place.append((0, ax))
        else:
            return None
    place += [(1, nx)] * rows + [(2, ny + 1)] * columns
    shift_x = [sum(d < a for d in drop_x) for a in range(rank_x + 1)]
    shift_y = [sum(d < a for d in drop_y) for a in range(rank_y + 1)]
    cx, cy = rank_x - 1, ny
    order = sorted(range(len(place)), key=place.__getitem__)
    permutation = inverse_permutation(order)
    return (
        tuple(drop_x),
        tuple(drop_y),
        ((cx - shift_x[cx],), (cy - shift_y[cy],)),
        (tuple(a - shift_x[a] for a in batch_x), tuple(a - shift_y[a] for a in batch_y)),
        None if permutation == tuple(range(len(place))) else permutation,
    )


@operation(static=("precision", "preferred_element_type"))
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return the dot product of two flattened arrays, with the first one conjugated.

    The result is the sum of `conj(a) * b` over all elements. It is the inner product of complex
    vectors.

    Args:
      a: an array of any numeric dtype.
      b: an array with the same number of elements, of any shape.
      precision: the precision of the products, as in `dot`; None is the default precision. Static
        under `jit`, as is the next.
      preferred_element_type: the dtype to accumulate in, and of the result. None stands for the
        promoted dtype of the operands.

    Returns:
      A scalar.

    Raises:
      ShapeError: if the numbers of elements differ.

    >>> print(jnp.vdot(jnp.array([1 + 2j, 3j]), jnp.array([1., 2.])))
    (1-8j)
    """
    x, y = as_arrays_together("vdot", a, b)
    if dtypes.is_complex(x.dtype):
        x = ops.conj(x)
    x, y = reshape(x, (x.size,)), reshape(y, (y.size,))
    return contract("vdot", x, y, ((0,), (0,)), ((), ()), precision, preferred_element_type)


@operation(static=("precision", "preferred_element_type"))
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return the sum of products over the last axes of two arrays.

    For matrices the result is `a @ b.T`. No operand is conjugated, unlike in `vdot` and `vecdot`.

    Args:
      a: an array (..., n), or a scalar, of any numeric dtype.
      b: an array (..., n), or a scalar. A scalar multiplies all elements of the other operand.
      precision: the precision of the products, as in `dot`; None is the default precision. Static
        under `jit`, as is the next.
      preferred_element_type: the dtype to accumulate in, and of the result. None stands for the
        promoted dtype of the operands.

    Returns:
      An array of the shape `a.shape[:-1] + b.shape[:-1]`.

    Raises:
      ShapeError: if the last axes differ in size.

    >>> jnp.inner(jnp.ones((2, 3)), jnp.ones((4, 3))).shape
    (2, 4)
    """
    x, y = as_arrays_together("inner", a, b)
    axes: Any = ((x.ndim - 1,), (y.ndim - 1,)) if x.ndim and y.ndim else ((), ())
    return contract("inner", x, y, axes, ((), ()), precision, preferred_element_type)


@operation(static=("out",))
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Return all products of an element of one array and one of another: `out[i, j] = a[i] * b[j]`.

    Args:
      a: an array of any numeric dtype, which is flattened to m elements.
      b: an array, which is flattened to n elements.
      out: must be None.

    Returns:
      The products (m, n), in the promoted dtype.

    Raises:
      NotImplementedError: if `out` is given.

    >>> print(jnp.outer(jnp.array([1, 2]), jnp.array([3, 4, 5])))
    [[ 3  4  5]
     [ 6  8 10]]
    """
    refuse_out("outer", out)
    x, y = promote_operands("outer", *as_arrays_together("outer", a, b), shaped=False)
    shape = (x.size, y.size)
    x = broadcast_in_dim(reshape(x, (x.size,)), shape, (0,))
    return multiply(x, broadcast_in_dim(reshape(y, (y.size,)), shape, (1,)))


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the sum of products over several axes of two arrays.

    Args:
      a: an array of any numeric dtype.
      b: an array. The operands are promoted to one dtype.
      axes: the axes to sum over. An int n takes the last n axes of `a` and the first n axes of `b`,
        in the same order; 0 gives all products. A pair of sequences, or of ints, names the axes of
        `a` and the axes of `b`. Static under `jit`, as are the next three.
      precision: the precision of the products, as in `dot`; None is the default precision.
      preferred_element_type: the dtype to accumulate in, and of the result. None stands for the
        promoted dtype of the operands.
      out_sharding: the sharding of the result over explicit axes of a mesh, as in `dot`. None
        derives it from the operands.

    Returns:
      An array with the other axes of `a`, then the other axes of `b`.

    Raises:
      ShapeError: if the axes differ in size, or if there are fewer axes than `axes`.
      TypeError: if `axes` is not an int or two sequences of equal length.

    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((4, 3, 5)), axes=((1, 2), (1, 0))).shape
    (2, 5)
    """
    if not isinstance(axes, int):
        try:
            pair = [
                tuple(map(operator.index, p)) if is_iterable(p) else (operator.index(p),)
                for p in axes
            ]
        except TypeError:
            pair = []
        if len(pair) != 2 or len(pair[0]) != len(pair[1]):
            raise TypeError(
                "tensordot: axes must be an integer or two sequences of equal length; "
                f"got {axes!r}."
            )
        axes = tuple(pair)
    return tensordot_axes(a, b, axes, precision, preferred_element_type, out_sharding)


def is_iterable(x: Any) -> bool:
    return hasattr(x, "__iter__") and getattr(x, "ndim", 1) != 0


@operation(static=("axes", *STATIC), name="tensordot")
def tensordot_axes(
    a: Any,
    b: Any,
    axes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Compute `tensordot` with its axes in one form."""
    x, y = as_arrays_together("tensordot", a, b)
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise ShapeError(
                "tensordot: axes must be at most the rank of both operands; "
                f"got {axes}, {x.aval}, {y.aval}."
            )
        pairs: Any = (range(x.ndim - axes, x.ndim), range(axes))
    else:
        pairs = (
            [axis_of("tensordot", i, x.ndim) for i in axes[0]],
            [axis_of("tensordot", i, y.ndim) for i in axes[1]],
        )
    rank = x.ndim + y.ndim - 2 * len(pairs[0])
    sharding = resolve_sharding("tensordot", out_sharding, rank, x, y)
    return contract("tensordot", x, y, pairs, ((), ()), precision, preferred_element_type, sharding)


def move_to_end(x: Any, axis: int) -> Any:
    """Move an axis of x to the end."""
    return transpose(x, [*(i for i in range(x.ndim) if i != axis), axis])


def check_rank(op: str, x: Any, ndim: int) -> Any:
    """Return an operand that must have at least `ndim` axes."""
    x = as_array(x, op)
    if x.ndim < ndim:
        raise ShapeError(f"{op}: operands must have rank {ndim} or more; got {x.aval}.")
    return x


@operation(static=("axis", "precision", "preferred_element_type"))
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return dot products of vectors along an axis, with the first operand conjugated.

    The result is the sum of `conj(x1) * x2` along the axis; the other axes are a batch, and
    broadcast.

    Args:
      x1: vectors of any numeric dtype, with n elements along `axis`.
      x2: vectors of the same length.
      axis: the axis of the vectors, in both operands. Static under `jit`, as are the next two.
      precision: the precision of the products, as in `dot`; None is the default precision.
      preferred_element_type: the dtype to accumulate in, and of the result. None stands for the
        promoted dtype of the operands.

    Returns:
      The products, of the broadcast shape without the axis.

    Raises:
      ShapeError: if an operand is a scalar, if the vectors differ in length, or if the other axes
        do not broadcast.

    >>> print(jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10])))
    [21 43]
    >>> print(jnp.vecdot(jnp.array([1j, 2]), jnp.array([1j, 2])))
    (5+0j)
    """
    x, y = check_rank("vecdot", x1, 1), check_rank("vecdot", x2, 1)
    i, j = axis_of("vecdot", axis, x.ndim), axis_of("vecdot", axis, y.ndim)
    if dtypes.is_complex(x.dtype):
        x = ops.conj(x)
    x, y = move_to_end(x, i), move_to_end(y, j)
    lead = broadcast_avals("vecdot", [z.aval.update(shape=z.shape[:-1]) for z in (x, y)], False)
    n = len(lead)
    x, y = (broadcast_in_dim(v, (*lead, v.shape[-1]), range(n + 1 - v.ndim, n + 1)) for v in (x, y))
    axes, places = ((n,), (n,)), (range(n), range(n))
    return contract("vecdot", x, y, axes, places, precision, preferred_element_type)


@operation
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply matrices with vectors.

    Element `out[..., i]` is the sum over j of `x1[..., i, j] * x2[..., j]`. Unlike in `matmul`, the
    second operand may be a batch of vectors.

    Args:
      x1: matrices (..., m, n) of any numeric dtype.
      x2: vectors (..., n). The leading axes broadcast.

    Returns:
      The products (..., m), in the promoted dtype.

    Raises:
      ShapeError: if the operands have too few axes, or if their sizes do not fit.

    >>> jnp.matvec(jnp.ones((5, 2, 3)), jnp.ones((5, 3))).shape
    (5, 2)
    """
    x, y = check_rank("matvec", x1, 2), check_rank("matvec", x2, 1)
    return squeeze(matmul(x, layout.expand_dims(y, (y.ndim,))), (-1,))


@operation
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply vectors, conjugated, with matrices.

    Element `out[..., j]` is the sum over i of `conj(x1[..., i]) * x2[..., i, j]`. Unlike in
    `matmul`, the first operand may be a batch of vectors.

    Args:
      x1: vectors (..., m) of any numeric dtype.
      x2: matrices (..., m, n). The leading axes broadcast.

    Returns:
      The products (..., n), in the promoted dtype.

    Raises:
      ShapeError: if the operands have too few axes, or if their sizes do not fit.

    >>> jnp.vecmat(jnp.ones((5, 2)), jnp.ones((2, 3))).shape
    (5, 3)
    >>> print(jnp.vecmat(jnp.array([1j, 2]), jnp.ones((2, 1))))
    [2.-1.j]
    """
    x, y = check_rank("vecmat", x1, 1), check_rank("vecmat", x2, 2)
    if dtypes.is_complex(x.dtype):
        x = ops.conj(x)
    return squeeze(matmul(layout.expand_dims(x, (x.ndim - 1,)), y), (-2,))


@operation
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the Kronecker product: blocks that are `b` multiplied by each element of `a`.

    Args:
      a: an array of any numeric dtype.
      b: an array. The operand with fewer axes gets leading axes of size 1.

    Returns:
      An array, in the promoted dtype. Its size along each axis is the product of the two sizes.

    >>> print(jnp.kron(jnp.array([1, 10]), jnp.array([1, 2, 3])))
    [ 1  2  3 10 20 30]
    >>> print(jnp.kron(jnp.eye(2, dtype=int), jnp.array([[1, 2]])))
    [[1 2 0 0]
     [0 0 1 2]]
    """
    x, y = promote_operands("kron", *as_arrays_together("kron", a, b), shaped=False)
    ndim = max(x.ndim, y.ndim)
    n, m = ((1,) * (ndim - v.ndim) + v.shape for v in (x, y))
    x, y, places = reshape(x, n), reshape(y, m), [*range(1, 2 * ndim, 2)]
    large = type(x.size * y.size) is int and x.size * y.size >= 1 << 15
    if large and 1 < m[-1] < 128 and y.size >= 4 * m[-1]:
        # XLA makes vectors of rows, so these are made long before
        x = reshape(broadcast_in_dim(x, (*n, m[-1]), range(ndim)), (*n[:-1], n[-1] * m[-1]))
        y = slicing.tile(y, (*[1] * (ndim - 1), n[-1]))
        (x, y), places[-1] = keep_p.apply(x, y), 2 * ndim - 2
        n, m = x.shape, (*m[:-1], 1)
    whole = [d for pair in zip(n, m, strict=True) for d in pair]
    x, y = broadcast_in_dim(x, whole, range(0, 2 * ndim, 2)), broadcast_in_dim(y, whole, places)
    return reshape(ops.mul(x, y), [i * j for i, j in zip(n, m, strict=True)])


@operation(static=("axis1", "axis2", "dtype", "out"))
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Return the sums of diagonals of matrices in two axes.

    Args:
      a: an array of at least two axes, of any numeric dtype.
      offset: the number of columns from the main diagonal to the right; negative to the left. It
        may be traced.
      axis1: the axis of the rows. Static under `jit`, as are the next two.
      axis2: the axis of the columns.
      dtype: the dtype of the sums. None stands for the dtype that `jnp.sum` returns for `a`.
      out: must be None.

    Returns:
      The sums, of the shape of `a` without the two axes.

    Raises:
      ShapeError: if the axes are equal, or if `a` lacks one of them.

    >>> a = jnp.arange(9).reshape(3, 3)
    >>> print(jnp.trace(a), jnp.trace(a, offset=1))
    12 6
    >>> jnp.trace(jnp.ones((2, 2, 5))).shape
    (5,)
    """
    refuse_out("trace", out)
    x = as_array(a, "trace")
    first, second = axis_of("trace", axis1, x.ndim), axis_of("trace", axis2, x.ndim)
    if first == second:
        raise ShapeError(f"trace: axis1 and axis2 must differ; got {axis1} and {axis2}.")
    if type(offset) is int:
        return reductions.sum(diagonal(x, offset, first, second), -1, dtype)
    count = dtypes.default_int()
    rows = layout.broadcasted_iota(count, x.shape, first)
    columns = layout.broadcasted_iota(count, x.shape, second)
    on = ops.eq(ops.add(rows, ops.convert(offset, count)), columns)
    return reductions.sum(ops.select(on, x, literal(0, x.dtype)), sorted((first, second)), dtype)


@operation(static=("axisa", "axisb", "axisc", "axis"))
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Return cross products of vectors of length 2 or 3.

    The third component of a vector of length 2 is 0. For two vectors of length 2, only the third
    component of the product is returned, as a number; NumPy has deprecated this form.

    Args:
      a: vectors of any numeric dtype.
      b: vectors. The other axes broadcast with the axes of `a`.
      axisa: the axis of the components in `a`. Static under `jit`, as are the next three.
      axisb: the axis of the components in `b`.
      axisc: the axis of the components in the result. It has no effect where the products are
        numbers.
      axis: if not None, the axis of the components in all three, instead of the arguments before.

    Returns:
      The products, in the promoted dtype: vectors of length 3, or numbers.

    Raises:
      ShapeError: if the vectors do not have length 2 or 3.

    >>> print(jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])))
    [0 0 1]
    >>> print(jnp.cross(jnp.array([1, 2]), jnp.array([3, 4])))
    -2
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote_operands("cross", as_array(a, "cross"), as_array(b, "cross"), shaped=False)
    x, y = drop_weak_type(x), drop_weak_type(y)
    narrow = x.dtype
    if dtypes.is_float(narrow):  # products of 16 bits overflow, or cancel with few digits left
        x, y = (ops.convert(v, reductions.widen_dtype(narrow)) for v in (x, y))
    x = move_to_end(x, axis_of("cross", axisa, x.ndim))
    y = move_to_end(y, axis_of("cross", axisb, y.ndim))
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ShapeError(f"cross: vectors must be of length 2 or 3; got {x.aval}, {y.aval}.")
    lead = broadcast_avals("cross", [z.aval.update(shape=z.shape[:-1]) for z in (x, y)], False)
    xs, ys = (split_components(v, lead) for v in (x, y))
    flat = ops.sub(ops.mul(xs[0], ys[1]), ops.mul(xs[1], ys[0]))
    if len(xs) == len(ys) == 2:
        return ops.convert(flat, narrow)
    zero = literal(0, x.dtype)
    x2, y2 = (v[2] if len(v) == 3 else None for v in (xs, ys))

    def minor(p: Any, q: Any, r: Any, s: Any) -> Any:
        """p * q - r * s, where None is 0."""
        left = None if p is None or q is None else ops.mul(p, q)
        right = None if r is None or s is None else ops.mul(r, s)
        if right is None:
            return left if left is not None else ops.mul(xs[0], zero)
        return ops.neg(right) if left is None else ops.sub(left, right)

    parts = [minor(xs[1], y2, x2, ys[1]), minor(x2, ys[0], xs[0], y2), flat]
    out = ops.convert(
        slicing.stack(parts, 0), narrow
    )  # which takes less time than along a short last axis
    order = [*range(1, out.ndim)]
    order.insert(axis_of("cross", axisc, out.ndim), 0)
    return transpose(out, order)


def split_components(x: Any, lead: Sequence[int]) -> list:
    """Split the components along the last axis, each broadcast to `lead`."""
    rank = len(lead)
    parts = [slicing.index_in_dim(x, i, -1, keepdims=False) for i in range(x.shape[-1])]
    return [broadcast_in_dim(p, lead, range(rank - p.ndim, rank)) for p in parts]
