"""Products and sums of BCOO arrays, with dense arrays and with each other.

A product with a dense array becomes `coo_dot` (primitives/sparse.py), whatever its axes; one of two
sparse arrays joins the entries that have equal indices along the axes that both share.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft import numpy as jnp
from weft.api.make_jaxpr import make_jaxpr
from weft.api.shape_struct import ShapeDtypeStruct
from weft.api.vmap import vmap
from weft.core.trace import Tracer
from weft.errors import ShapeError
from weft.experimental.sparse import entries
from weft.experimental.sparse.base import (
    DENSE,
    CoordinateArray,
    map_batches,
    mark_valid,
    padding_indices,
)
from weft.experimental.sparse.shaping import bcoo_broadcast_in_dim
from weft.numpy.promotion import as_array
from weft.options import config
from weft.primitives.sparse import coo_dot, coo_sample

DimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def flatten_places(indices: Any, shape: Sequence[int]) -> Any:
    """Indices [..., n] as places in a flat array of this shape, -1 where they are outside."""
    size = math.prod(shape)
    dtype = dtypes.canonicalize(np.dtype(np.int32 if size < 2**31 else np.int64))
    if size > np.iinfo(dtype).max:
        raise ShapeError(
            f"sparse: {size} places need indices of 64 bits; got axes of sizes {tuple(shape)}. "
            "Hint: config.enable_x64 = True."
        )
    flat = jnp.zeros(indices.shape[:-1], dtype)
    for i, n in enumerate(shape):
        flat = flat * n + indices[..., i].astype(dtype)
    return jnp.where(mark_valid(indices, shape), flat, -1)


def pick(xs: Sequence[Any], places: Sequence[int]) -> list:
    """The members of a sequence at some places."""
    return [xs[i] for i in places]


def columns(indices: Any, places: Sequence[int]) -> Any:
    """Some columns of indices."""
    return indices[..., np.array(places, int)]


def read_dimensions(op: str, numbers: Any, lhs: Any, rhs: Any) -> tuple[list[int], ...]:
    """The contracting axes of both and the batch axes of both, checked."""
    (lc, rc), (lb, rb) = numbers
    lc, rc, lb, rb = ([int(a) for a in axes] for axes in (lc, rc, lb, rb))
    for x, axes in ((lhs, lc + lb), (rhs, rc + rb)):
        if len(set(axes)) < len(axes) or not all(0 <= a < x.ndim for a in axes):
            raise ShapeError(
                f"{op}: contracting and batch axes must be distinct ones; got {axes} for {x!r:.80}."
            )
    if pick(lhs.shape, lc + lb) != pick(rhs.shape, rc + rb) or len(lc) != len(rc):
        raise ShapeError(
            f"{op}: axes that are multiplied must have equal sizes; got axes {lc + lb} of shape "
            f"{lhs.shape} and {rc + rb} of shape {rhs.shape}."
        )
    return lc, rc, lb, rb


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: DimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Multiply a BCOO by a dense array or by another BCOO, as `lax.dot_general` does.

    Any axes may be contracted or batch axes.

    Args:
      lhs: a BCOO or a dense array.
      rhs: a BCOO or a dense array. At least one of the two is a BCOO.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
      precision: a `Precision`. None is the default.
      preferred_element_type: the dtype of the result. None takes it from the operands.
      out_sharding: the sharding of a dense result over explicit axes of a mesh. None derives it.

    Returns:
      A dense array; a BCOO if both operands are BCOOs. Its entries are sorted, without duplicates.
      Under `jit` their number is not known, so the result has room for the largest number.

    >>> mat = sparse.BCOO.fromdense(2 * jnp.eye(2))
    >>> numbers = (([1], [0]), ([], []))
    >>> sparse.bcoo_dot_general(mat, jnp.ones(2), dimension_numbers=numbers)
    Array([2., 2.], dtype=float32)
    """
    op = "bcoo_dot_general"
    kinds = isinstance(lhs, CoordinateArray), isinstance(rhs, CoordinateArray)
    lhs, rhs = (x if k else as_array(x, op) for x, k in zip((lhs, rhs), kinds, strict=True))
    axes = read_dimensions(op, dimension_numbers, lhs, rhs)
    lc, rc, lb, rb = axes
    if not any(kinds):
        return lax.dot_general(
            lhs,
            rhs,
            ((lc, rc), (lb, rb)),
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    wanted = preferred_element_type
    common = jnp.promote_types(lhs.dtype, rhs.dtype)
    made = dtypes.canonicalize(common if wanted is None else np.dtype(wanted))
    with config.scope(numpy_dtype_promotion="standard"):  # the caller asks for the result's dtype
        work = jnp.promote_types(common, made)
    work = np.dtype(np.int32) if dtypes.is_bool(work) else work
    lhs, rhs = (convert_elements(x, work) for x in (lhs, rhs))
    if all(kinds):
        out = multiply_matrices(lhs, rhs, *axes)
        return convert_elements(out, made)
    if kinds[0]:
        return multiply_dense(lhs, rhs, *axes).astype(made)
    out = multiply_dense(rhs, lhs, rc, lc, rb, lb).astype(made)
    n, mine = len(lb), rhs.ndim - len(rc) - len(rb)
    order = [*range(n), *range(n + mine, out.ndim), *range(n, n + mine)]
    return jnp.transpose(out, order)


def convert_elements(x: Any, dtype: Any) -> Any:
    """A dense or a sparse array in another dtype."""
    if x.dtype == dtype:
        return x
    return x.make(x.data.astype(dtype)) if isinstance(x, CoordinateArray) else x.astype(dtype)


def multiply_dense(mat: Any, rhs: Any, *axes: list[int]) -> Any:
    """The product of a BCOO and a dense array of one dtype."""
    sizes = mat.shape[mat.n_batch :]
    return multiply_batches(mat.data, mat.indices, rhs, sizes, *axes)


def multiply_batches(
    data: Any, indices: Any, rhs: Any, sizes: Any, lc: Any, rc: Any, lb: Any, rb: Any
) -> Any:
    """`multiply_dense` for the arrays of a BCOO; its first axis of batches is mapped over."""
    if indices.ndim == 2:
        return multiply_entries(data, indices, rhs, sizes, lc, rc, lb, rb)
    k: Any = None
    for mine, other in ((lb, rb), (lc, rc)):
        if 0 in mine:
            k = other[mine.index(0)]
    inner = [
        [a - 1 for a in lc if a],
        [a - (k is not None and a > k) for a in rc if a != k],
        [a - 1 for a in lb if a],
        [a - (k is not None and a > k) for a in rb if a != k],
    ]
    fun = lambda *xs: multiply_batches(*xs, sizes, *inner)
    place = lb.index(0) if 0 in lb else 0 if 0 in lc else len(lb)
    out = vmap(fun, in_axes=(0, 0, k), out_axes=place)(data, indices, rhs)
    return jnp.sum(out, axis=0, dtype=out.dtype) if 0 in lc else out


def multiply_entries(
    data: Any, indices: Any, rhs: Any, sizes: Any, lc: Any, rc: Any, lb: Any, rb: Any
) -> Any:
    """The product without batches of storage. Axes from `inner` on are dense blocks."""
    nse, inner = indices.shape
    free = [a for a in range(len(sizes)) if a not in lc and a not in lb]
    rest = [a for a in range(rhs.ndim) if a not in rc and a not in rb]
    # For lhs: sparse contracted and batch axes, then dense ones. For rhs: the corresponding axes.
    cs, bs = [a for a in lc if a < inner], [a for a in lb if a < inner]
    cd, bd = [a for a in lc if a >= inner], [a for a in lb if a >= inner]
    fs, fd = [a for a in free if a < inner], [a for a in free if a >= inner]
    meets = {**dict(zip(lc, rc, strict=True)), **dict(zip(lb, rb, strict=True))}
    order = pick(meets, [*cs, *bs, *cd, *bd]) + rest
    rhs = jnp.transpose(rhs, order)
    tail = rhs.shape[len(order) - len(rest) :]
    if data.ndim == 1:
        out_sizes, in_sizes = pick(sizes, bs + fs), pick(sizes, cs + bs)
        dense = rhs.reshape(math.prod(in_sizes), math.prod(tail))
        pair = [*bs, *fs], [*cs, *bs]
        transpose = pair == ([1], [0])
        if not transpose and pair != ([0], [1]):
            flat = [
                flatten_places(columns(indices, p), n)
                for p, n in zip(pair, (out_sizes, in_sizes), strict=True)
            ]
            indices = jnp.stack(flat, axis=1)
        out = coo_dot(data, dense, indices, math.prod(out_sizes), transpose)
        return out.reshape(*out_sizes, *tail)
    met = entries.take_entries(rhs, columns(indices, [*cs, *bs]))
    n = len(cd)
    mine = [1 + a - inner for a in cd], [0, *[1 + a - inner for a in bd]]
    theirs = [*range(1, 1 + n)], [0, *range(1 + n, 1 + n + len(bd))]
    terms = lax.dot_general(data, met, ((mine[0], theirs[0]), (mine[1], theirs[1])))
    kept = [*bs, *fs]
    out = entries.add_entries(terms, columns(indices, kept), tuple(pick(sizes, kept)))
    named = [*kept, *bd, *fd]
    first = [named.index(a) for a in [*lb, *fs, *fd]]
    return jnp.transpose(out, [*first, *range(len(named), out.ndim)])


def bcoo_dot_general_sampled(
    A: Any, B: Any, indices: Any, *, dimension_numbers: DimensionNumbers
) -> Any:
    """Compute some elements of the product of two dense arrays, without the whole product.

    Args:
      A: a dense array.
      B: a dense array.
      indices: the positions of the elements in the product, an integer array of shape
        (*batch, nse, n_sparse), as of a BCOO of the shape of the product.
      dimension_numbers: the axes, as in `lax.dot_general`.

    Returns:
      An array of the elements: the data of that BCOO.

    >>> x, indices = jnp.arange(6.0).reshape(3, 2), jnp.array([[0, 2], [1, 1]])
    >>> numbers = (([1], [1]), ([], []))
    >>> sparse.bcoo_dot_general_sampled(x, x, indices, dimension_numbers=numbers)
    Array([ 5., 13.], dtype=float32)
    """
    op = "bcoo_dot_general_sampled"
    a, b, indices = (as_array(x, op) for x in (A, B, indices))
    lc, rc, lb, rb = read_dimensions(op, dimension_numbers, a, b)
    free = [[i for i in range(x.ndim) if i not in used] for x, used in ((a, lc + lb), (b, rc + rb))]
    n_batch, n_sparse = indices.ndim - 2, len(free[0]) + len(free[1])
    dtype = jnp.promote_types(a.dtype, b.dtype)
    if n_batch != len(lb) or indices.shape[-1] != n_sparse or dtypes.is_bool(dtype):
        whole = lax.dot_general(a, b, ((lc, rc), (lb, rb)))
        return map_batches(entries.take_entries, n_batch, whole, indices)
    a, b = a.astype(dtype), b.astype(dtype)
    sizes = pick(a.shape, free[0]), pick(b.shape, free[1])
    batch, depth = pick(a.shape, lb), math.prod(pick(a.shape, lc))
    a = jnp.transpose(a, [*lb, *free[0], *lc]).reshape(*batch, math.prod(sizes[0]), depth)
    b = jnp.transpose(b, [*rb, *free[1], *rc]).reshape(*batch, math.prod(sizes[1]), depth)
    if [len(s) for s in sizes] != [1, 1]:
        cut = len(sizes[0])
        parts = zip((indices[..., :cut], indices[..., cut:]), sizes, strict=True)
        indices = jnp.stack([flatten_places(x, s) for x, s in parts], axis=-1)
    return map_batches(coo_sample, n_batch, a, b, indices)


# --- of two sparse arrays ---------------------------------------------------------------------


def rank_places(left: Any, right: Any, shape: Sequence[int]) -> tuple[Any, Any]:
    """Numbers that are equal for equal indices [n, n_keys] in two lists, -1 for those outside."""
    both = jnp.concatenate([left, right])
    order, _, new = entries.group_entries(both, tuple(shape))
    ranks = jnp.zeros(len(both), np.int32).at[order].set(jnp.cumsum(new, dtype=np.int32) - 1)
    ranks = jnp.where(mark_valid(both, shape), ranks, -1)
    return ranks[: len(left)], ranks[len(left) :]


def count_matches(left: Any, right: Any) -> tuple[Any, Any, Any]:
    """For keys, -1 for none: the order of `right`; for each of `left` where its matches begin there
    and how many there are."""
    order = jnp.argsort(right, stable=True)
    ranked = right[order]
    start = jnp.searchsorted(ranked, left, side="left").astype(np.int32)
    stop = jnp.searchsorted(ranked, left, side="right").astype(np.int32)
    return order, start, jnp.where(left >= 0, stop - start, 0)


def list_matches(order: Any, start: Any, count: Any, room: int) -> tuple[Any, Any, Any]:
    """Return pairs of matching entries: places in `left` and `right`, and marks of valid pairs."""
    ends = jnp.cumsum(count, dtype=np.int32)
    slot = lax.iota(np.int32, room)
    if not count.size or not order.size:
        nothing = jnp.zeros(room, np.int32)
        return nothing, nothing, slot < 0
    left = jnp.minimum(jnp.searchsorted(ends, slot, side="right"), count.size - 1)
    within = slot - (ends[left] - count[left])
    right = order[jnp.clip(start[left] + within, 0, order.size - 1)]
    return left, right, slot < ends[-1]


def join_entries(
    lhs: CoordinateArray, rhs: CoordinateArray, keys: Any, kept: Any, sizes: Any, most: int
) -> Any:
    """Return the BCOO of products of all pairs of entries with equal keys; batches must be equal.

    `keys` are the columns of the indices of both arrays that must be equal. `kept` are the columns
    of both that form the indices of the result, for sparse axes of `sizes`. `most` is the largest
    number of pairs.
    """
    n_batch = lhs.n_batch
    shape = pick(lhs.sparse_shape, keys[0])
    named = [
        jnp.where(mark_valid(x.indices, x.sparse_shape)[..., None], columns(x.indices, places), -1)
        for x, places in ((lhs, keys[0]), (rhs, keys[1]))
    ]
    if math.prod(shape) < 2**31:
        codes = [flatten_places(x, shape) for x in named]
        if not shape:  # all match, except for padding
            masks = [mark_valid(x.indices, x.sparse_shape) for x in (lhs, rhs)]
            codes = [jnp.where(mask, c, -1) for mask, c in zip(masks, codes, strict=True)]
    else:
        codes = map_batches(functools.partial(rank_places, shape=shape), n_batch, *named)
    found = map_batches(count_matches, n_batch, *codes)
    total = jnp.max(jnp.sum(found[2], axis=-1), initial=0)
    room = most if isinstance(total, Tracer) else int(total)

    def join(ldata: Any, lindices: Any, rdata: Any, rindices: Any, *found: Any) -> tuple:
        left, right, valid = list_matches(*found, room)
        take = lambda x, i: x[i] if len(x) else jnp.zeros((room, *x.shape[1:]), x.dtype)
        terms = take(ldata, left) * take(rdata, right)
        parts = [columns(take(lindices, left), kept[0]), columns(take(rindices, right), kept[1])]
        places = jnp.concatenate(parts, axis=1)
        mask = valid.reshape(-1, *[1] * (terms.ndim - 1))
        padding = padding_indices(sizes, places.dtype)
        return jnp.where(mask, terms, 0), jnp.where(valid[:, None], places, padding)

    args = lhs.data, lhs.indices, rhs.data, rhs.indices
    return map_batches(join, n_batch, *args, *found)


def multiply_matrices(lhs: Any, rhs: Any, lc: Any, rc: Any, lb: Any, rb: Any) -> Any:
    """The product of two BCOOs of one dtype, a BCOO."""
    lhs, rhs = (entries.bcoo_update_layout(x, n_dense=0) for x in (lhs, rhs))
    n = lhs.n_batch
    if not n == rhs.n_batch == len(lb) or not list(range(n)) == lb == rb:
        lhs, rhs = (entries.bcoo_update_layout(x, n_batch=0) for x in (lhs, rhs))
        n = 0
    free = [
        [i for i in range(x.ndim) if i not in used] for x, used in ((lhs, lc + lb), (rhs, rc + rb))
    ]
    left = [a - n for a in lb[n:] + free[0]]
    inner = pick(lhs.shape, lb[n:] + free[0]) + pick(rhs.shape, free[1])
    keys = [a - n for a in lb[n:] + lc], [a - n for a in rb[n:] + rc]
    shape, pairs, traced = [*lhs.shape[:n], *inner], lhs.nse * rhs.nse, is_traced(lhs, rhs)
    if traced and math.prod(inner) <= pairs:  # room for all elements, so they can be dense between
        whole = multiply_dense(lhs, entries.bcoo_todense(rhs), lc, rc, lb, rb)
        every = np.indices(inner).reshape(len(inner), math.prod(inner)).T
        every = jnp.broadcast_to(every.astype(lhs.indices.dtype), (*shape[:n], *every.shape))
        whole = whole.reshape(*shape[:n], math.prod(inner))
        return lhs.make(whole, every, shape, indices_sorted=True, unique_indices=True)
    kept = left, [a - n for a in free[1]]
    out = lhs.make(*join_entries(lhs, rhs, keys, kept, inner, pairs), shape)
    return out if traced else entries.bcoo_sum_duplicates(out)


def is_traced(*mats: CoordinateArray) -> bool:
    """Return True if the places of entries are not known now."""
    return any(isinstance(m.indices, Tracer) for m in mats)


def align_layouts(*mats: CoordinateArray) -> list:
    """BCOOs with the fewest axes of batches, and of dense blocks, that any of them has."""
    n_batch, n_dense = (min(getattr(m, k) for m in mats) for k in ("n_batch", "n_dense"))
    return [entries.bcoo_update_layout(m, n_batch=n_batch, n_dense=n_dense) for m in mats]


def expand_rank(mat: CoordinateArray, ndim: int) -> Any:
    """A BCOO with axes of size 1 in front."""
    if mat.ndim == ndim:
        return mat
    new = ndim - mat.ndim
    shape = (1,) * new + mat.shape
    return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=range(new, ndim))


def bcoo_multiply_sparse(lhs: CoordinateArray, rhs: CoordinateArray) -> Any:
    """Multiply two BCOOs element by element.

    Args:
      lhs: a BCOO.
      rhs: a BCOO. The shapes broadcast together.

    Returns:
      A BCOO of the broadcast shape.

    >>> mat = sparse.BCOO.fromdense(jnp.array([0, 2, 3]))
    >>> print(sparse.bcoo_multiply_sparse(mat, mat).todense())
    [0 4 9]
    """
    op = "bcoo_multiply_sparse"
    ndim = max(entries.check_bcoo(op, lhs).ndim, entries.check_bcoo(op, rhs).ndim)
    shape = jnp.broadcast_shapes(lhs.shape, rhs.shape)
    lhs, rhs = align_layouts(expand_rank(lhs, ndim), expand_rank(rhs, ndim))
    n = lhs.n_batch
    batched = [
        bcoo_broadcast_in_dim(x, shape=(*shape[:n], *x.shape[n:]), broadcast_dimensions=range(ndim))
        if x.shape[:n] != shape[:n]
        else x
        for x in (lhs, rhs)
    ]
    lhs, rhs = batched
    inner = shape[n : n + lhs.n_sparse]
    pairs = list(zip(lhs.sparse_shape, rhs.sparse_shape, strict=True))
    keys = [i for i, (a, b) in enumerate(pairs) if a == b]
    left = [i for i, (a, b) in enumerate(pairs) if a == b or b == 1]
    right = [i for i in range(len(pairs)) if i not in left]
    most = lhs.nse * rhs.nse
    if len(keys) == len(pairs) and (lhs.unique_indices or rhs.unique_indices):
        most = max([x.nse for x, y in ((lhs, rhs), (rhs, lhs)) if y.unique_indices])
    made = [*pick(inner, left), *pick(inner, right)]
    data, indices = join_entries(lhs, rhs, (keys, keys), (left, right), made, most)
    indices = columns(indices, np.argsort([*left, *right]))
    unique = lhs.unique_indices and rhs.unique_indices
    return lhs.make(data, indices, shape, unique_indices=unique)


def bcoo_multiply_dense(sp_mat: CoordinateArray, v: Any) -> Any:
    """Multiply the entries of a BCOO by the elements of a dense array at their positions.

    Args:
      sp_mat: a BCOO.
      v: a dense array that broadcasts to its shape.

    Returns:
      The data of the product, which has the positions of `sp_mat`.

    >>> print(sparse.bcoo_multiply_dense(sparse.BCOO.fromdense(jnp.eye(2)), jnp.array([3.0, 4.0])))
    [3. 4.]
    """
    return combine_dense("bcoo_multiply_dense", sp_mat, v, jnp.multiply, 0)


def combine_dense(op: str, mat: CoordinateArray, v: Any, fun: Callable, fill: int) -> Any:
    """`fun` of the data of a BCOO and the elements of a dense array there, `fill` for padding."""
    mat, v = entries.check_bcoo(op, mat), as_array(v, op) if np.ndim(v) else v
    if not np.ndim(v):
        return fun(mat.data, v)
    if v.ndim > mat.ndim or any(
        k not in (1, n) for k, n in zip(v.shape[::-1], mat.shape[::-1], strict=False)
    ):
        raise ShapeError(
            f"{op}: the dense array must broadcast to the shape of the sparse one; got {v.aval} "
            f"for {mat!r}."
        )
    n, stop = mat.n_batch, mat.n_batch + mat.n_sparse
    v = jnp.expand_dims(v, tuple(range(mat.ndim - v.ndim)))
    v = jnp.broadcast_to(v, (*mat.shape[:n], *v.shape[n:]))
    alone = [a for a in range(n, stop) if v.shape[a] == 1 != mat.shape[a]]
    looked = [a - n for a in range(n, stop) if a not in alone]
    v = lax.squeeze(v, alone)

    def combine(data: Any, indices: Any, v: Any) -> Any:
        return fun(data, entries.take_entries(v, columns(indices, looked), fill) if looked else v)

    return map_batches(combine, n, mat.data, mat.indices, v)


def multiply(x: Any, y: Any) -> Any:
    """The elementwise product of a BCOO and another, or a dense array."""
    if isinstance(x, CoordinateArray) and isinstance(y, CoordinateArray):
        return bcoo_multiply_sparse(x, y)
    mat, v = (x, y) if isinstance(x, CoordinateArray) else (y, x)
    mat = grow_to(mat, v)
    return mat.make(bcoo_multiply_dense(mat, v))


def divide(x: CoordinateArray, y: Any) -> Any:
    """A BCOO divided by a dense array."""
    if isinstance(y, CoordinateArray):
        raise NotImplementedError(
            f"div: must not be by a sparse array, whose zeros give no number; got {y!r}. {DENSE}"
        )
    mat = grow_to(x, y)
    return mat.make(combine_dense("div", mat, y, jnp.true_divide, 1))


def grow_to(mat: CoordinateArray, v: Any) -> Any:
    """A BCOO repeated along axes that a dense array has and it has not."""
    shape = jnp.broadcast_shapes(mat.shape, jnp.shape(v))
    if shape == mat.shape:
        return mat
    mat = expand_rank(mat, len(shape))
    return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=range(len(shape)))


def add(x: Any, y: Any) -> Any:
    """The sum of two BCOOs, a BCOO, or of one and a dense array of its shape, dense."""
    if not (isinstance(x, CoordinateArray) and isinstance(y, CoordinateArray)):
        mat, v = (x, y) if isinstance(x, CoordinateArray) else (y, x)
        if isinstance(v, int | float) and v == 0:
            return mat  # as `sum` begins
        shape = jnp.broadcast_shapes(mat.shape, jnp.shape(v))
        if jnp.shape(v) != shape:
            raise NotImplementedError(
                f"add: of a sparse and a dense array must have the shape of the dense one, or a "
                f"large array would become dense unasked; got {mat!r} and shape {jnp.shape(v)}. "
                f"{DENSE}"
            )
        return jnp.add(entries.bcoo_todense(mat), v)
    shape = jnp.broadcast_shapes(x.shape, y.shape)
    spread = {"shape": shape, "broadcast_dimensions": range(len(shape))}
    mats = [expand_rank(m, len(shape)) for m in (x, y)]
    mats = [m if m.shape == shape else bcoo_broadcast_in_dim(m, **spread) for m in mats]
    mats = align_layouts(*mats)
    dtype = jnp.result_type(x.dtype, y.dtype)
    index = jnp.result_type(*[m.indices.dtype for m in mats])
    axis = mats[0].n_batch
    data = jnp.concatenate([m.data.astype(dtype) for m in mats], axis=axis)
    indices = jnp.concatenate([m.indices.astype(index) for m in mats], axis=axis)
    return mats[0].make(data, indices, shape)


def bcoo_conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Convolve a BCOO with a kernel, as `lax.conv_general_dilated` does.

    The result has an entry for each pair of entries of both operands, so kernels should be small.

    Args:
      lhs: a BCOO, the input.
      rhs: a BCOO or a dense array, the kernel.
      window_strides: the stride of each spatial axis.
      padding: "SAME", "VALID", or a pair of ints for each spatial axis.
      lhs_dilation: the dilation of the input along each spatial axis. None is 1.
      rhs_dilation: the dilation of the kernel along each spatial axis. None is 1.
      dimension_numbers: the order of the axes, as in `lax.conv_general_dilated`. None is the
        default.
      feature_group_count: it must be 1, the default.
      batch_group_count: it must be 1, the default.
      precision: a `Precision`. None is the default.
      preferred_element_type: the dtype of the result. None takes it from the operands.
      out_sharding: it must be None, the default.

    Returns:
      A BCOO.

    >>> x = sparse.BCOO.fromdense(jnp.array([[[0.0, 1.0, 0.0, 0.0]]]))
    >>> y = sparse.bcoo_conv_general_dilated(
    ...     x, jnp.array([[[1.0, 2.0, 3.0]]]), window_strides=(1,), padding="SAME"
    ... )
    >>> print(y.todense())
    [[[3. 2. 1. 0.]]]
    """
    op = "bcoo_conv_general_dilated"
    entries.check_bcoo(op, lhs)
    if feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError(
            f"{op}: must have no groups; got feature_group_count={feature_group_count}, "
            f"batch_group_count={batch_group_count}. Hint: lax.conv_general_dilated of x.todense()."
        )
    if not isinstance(rhs, CoordinateArray):
        rhs = as_array(rhs, op)
        every = np.indices(rhs.shape).reshape(rhs.ndim, rhs.size).T.astype(np.int32)
        rhs = lhs.make(rhs.reshape(rhs.size), jnp.asarray(every), rhs.shape)
    x, k = (entries.bcoo_update_layout(m, n_batch=0, n_dense=0) for m in (lhs, rhs))
    params, shape = plan_convolution(
        x, k, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    )
    data, places = place_products(x, k, params, shape)
    dtype = data.dtype if preferred_element_type is None else preferred_element_type
    return lhs.make(data.astype(dtype), places, shape)


def place_products(x: Any, k: Any, params: dict, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The products of pairs of entries of two BCOOs, and where a convolution adds each."""
    numbers = params["dimension_numbers"]
    (xb, xf, *xs), (ko, ki, *ks), spec = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    keys = [xf], [ki]
    sizes = pick(x.shape, [xb, *xs]) + pick(k.shape, [ko, *ks])
    data, found = join_entries(x, k, keys, ([xb, *xs], [ko, *ks]), sizes, x.nse * k.nse)
    n = len(xs)
    rules = zip(
        params["padding"],
        params["lhs_dilation"],
        params["rhs_dilation"],
        params["window_strides"],
        strict=True,
    )
    made, valid = [found[:, 0], found[:, 1 + n]], mark_valid(found, sizes)
    for i, ((low, _), stretch, spread, stride) in enumerate(rules):
        place = found[:, 1 + i] * stretch + low - found[:, 2 + n + i] * spread
        valid &= place % stride == 0
        made.append(place // stride)
    places = jnp.stack([made[list(spec).index(a)] for a in range(len(shape))], axis=1)
    valid &= mark_valid(places, shape)
    places = jnp.where(valid[:, None], places, padding_indices(shape, places.dtype))
    return jnp.where(valid, data, 0), places


def plan_convolution(x: Any, k: Any, *args: Any) -> tuple[dict, tuple[int, ...]]:
    """The parameters of the dense convolution of arrays of these shapes, and its shape."""
    like = [ShapeDtypeStruct(m.shape, np.float32) for m in (x, k)]
    (eqn,) = make_jaxpr(lambda x, k: lax.conv_general_dilated(x, k, *args))(*like).jaxpr.eqns
    return eqn.params, eqn.outvars[0].aval.shape
