"""`dot_product_attention`: masks of every kind, grouped heads, weights in float32.

The weights of all pairs are in memory at once, except for many of them on one CPU.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.api.checkpoint import checkpoint
from weft.api.devices import default_backend, device_count
from weft.api.scan import map as map_rows
from weft.cpu.kernels import are_kernels_wanted
from weft.errors import DtypeError, ShapeError
from weft.nn.attention_parts import Attention, find_span
from weft.numpy.promotion import as_array
from weft.primitives.dot import dot_general
from weft.primitives.families import check_parameter, index_tuple
from weft.run.operation import operation
from weft.scipy.special import logsumexp
from weft.scipy.special.sums import largest_real
from weft.xla.typing import Array, ArrayLike

OP = "dot_product_attention"
# Weights in memory at once on a CPU: four times as many take three times as long for each.
MOST_WEIGHTS = 1 << 20
# Bounds from which the kernel is faster: queries of all heads, and weights if there are more than
# MANY features.
FEWEST_QUERIES, FEWEST_WEIGHTS, MANY = 8, 1 << 12, 64


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Array:
    """Compute scaled dot-product attention: `softmax(query @ key.T * scale + bias) @ value`.

    Each position of the query receives a weighted mean of the values. The weights are a softmax
    over the positions of the keys, for each head separately. Masks, sequence lengths and windows
    leave pairs of positions out. With fewer heads of keys than of queries it is grouped-query
    attention; with one it is multi-query attention. The weights are computed in float32 or wider.

    Args:
      query: an array (B, T, N, H): batch, positions, heads, features; or (T, N, H) without a batch.
      key: an array (B, S, K, H), or (S, K, H). K must divide N; N / K consecutive heads of the
        query share a head of the keys.
      value: an array with the shape of `key`. The dtypes of query, key and value must be equal.
      bias: an array that broadcasts to (B, N, T, S) and is added to the scaled products, for
        relative positions for example. By default nothing is added.
      mask: a bool array that broadcasts to (B, N, T, S). A pair counts where it is True. By default
        all pairs count.
      scale: the factor of the products. By default 1 / sqrt(H).
      is_causal: if True, a position of the query sees no later position of the keys. By default
        False.
      query_seq_lengths: an integer array (B,). Results at positions from this length on are 0. By
        default all positions count.
      key_value_seq_lengths: an integer array (B,). Keys and values at positions from this length on
        do not count. By default all count.
      local_window_size: a pair (left, right): the number of positions before and after its own that
        a position sees. An integer stands for both sides. None, the default, sets no limit.
      implementation: None, the default, or "xla"; the result is the same.
      return_residual: if True, return the logarithms of the sums of weights as well. By default
        False.

    Returns:
      An array with the shape and dtype of `query`. With `return_residual` a pair: this array and
      the log-sum-exp of the scores, (B, T, N). Where every pair of a position is left out by masks,
      all keys count equally.

    Raises:
      ShapeError: the shapes of query, key and value do not fit, or bias, mask or lengths do not.
      DtypeError: the dtypes of query, key and value differ, or `mask` is not bool.
      TypeError: `local_window_size` is neither an integer nor a pair of integers.
      NotImplementedError: `implementation` is another name, such as "cudnn".

    With queries of 0 all weights are equal, so the results are means of the values that are seen:

    >>> zeros = jnp.zeros((1, 4, 1, 1))
    >>> value = jnp.arange(4.0).reshape(1, 4, 1, 1)
    >>> print(nn.dot_product_attention(zeros, zeros, value, is_causal=True).ravel())
    [0.  0.5 1.  1.5]
    >>> print(nn.dot_product_attention(zeros, zeros, value, local_window_size=1).ravel())
    [0.5 1.  2.  2.5]
    >>> length = jnp.array([2])
    >>> print(nn.dot_product_attention(zeros, zeros, value, key_value_seq_lengths=length).ravel())
    [0.5 0.5 0.5 0.5]

    Four heads of queries share two heads of keys and values:

    >>> q, k = jnp.ones((1, 5, 4, 8)), jnp.ones((1, 6, 2, 8))
    >>> nn.dot_product_attention(q, k, k).shape
    (1, 5, 4, 8)
    """
    if implementation not in (None, "xla"):
        raise NotImplementedError(
            f"{OP}: implementation must be None or 'xla'; got {implementation!r}."
        )
    if local_window_size is not None:
        name = "local_window_size"
        read = lambda size: index_tuple(np.broadcast_to(size, 2).tolist(), OP, name)
        what = "an integer or a pair of them"
        local_window_size = check_parameter(OP, name, local_window_size, what, read)
    return attend(
        query, key, value, bias, mask, query_seq_lengths, key_value_seq_lengths, scale,
        bool(is_causal), local_window_size, bool(return_residual),
    )  # fmt: skip


def check_operands(q: Any, k: Any, v: Any, batched: bool) -> None:
    """Raise unless query, key and value fit each other."""
    listed = f"{q.aval}, {k.aval}, {v.aval}"
    if len({q.dtype, k.dtype, v.dtype}) > 1:
        raise DtypeError(f"{OP}: query, key and value must be of one dtype; got {listed}.")
    fits = q.ndim == k.ndim == 4 and k.shape == v.shape
    fits = fits and (q.shape[0], q.shape[3]) == (k.shape[0], k.shape[3])
    if not fits or (k.shape[2] == 0) or q.shape[2] % k.shape[2]:
        batch = "B, " if batched else ""
        raise ShapeError(
            f"{OP}: query must be ({batch}T, N, H), key and value ({batch}S, K, H) where N "
            f"must be a multiple of K; got {listed}."
        )


def check_lengths(name: str, lengths: Any, batch: int) -> Any:
    """Sequence lengths, one for each element of the batch."""
    lengths = as_array(lengths, OP)
    if lengths.shape != (batch,) or not dtypes.is_integer(lengths.dtype):
        raise ShapeError(f"{OP}: {name} must be integers ({batch},); got {lengths.aval}.")
    return lengths[:, None, None, None].astype(dtypes.default_int())


def group_heads(x: Any, name: str, full: tuple[int, ...], groups: int) -> Any:
    """A bias or mask that broadcasts to `full` (B, N, T, S), as (B, K, T, G, S)."""
    x = as_array(x, OP)
    rank = x.ndim
    x = x.reshape((1,) * (4 - rank) + x.shape) if rank < 4 else x
    if x.ndim != 4 or any(n not in (1, m) for n, m in zip(x.shape, full, strict=True)):
        raise ShapeError(f"{OP}: {name} must broadcast to (B, N, T, S) = {full}; got {x.aval}.")
    b, n, t, s = x.shape
    x = x.reshape(b, n // groups, groups, t, s) if n > 1 else x.reshape(b, 1, 1, t, s)
    return jnp.swapaxes(x, 2, 3)


def combine_masks(
    row: Any, s: int, mask: Any, q_lengths: Any, kv_lengths: Any,
    causal: bool, window: tuple[int, int] | None,
) -> Any:  # fmt: skip
    """Return the pairs that count, as an array that broadcasts to (B, K, T, G, S); None for all."""
    row, column = row.reshape(1, 1, -1, 1, 1), jnp.arange(s).reshape(1, 1, 1, 1, s)
    parts = [] if mask is None else [mask]
    if causal:
        parts.append(row >= column)
    if window is not None:
        parts.append((row <= column + window[0]) & (row >= column - window[1]))
    if q_lengths is not None:
        parts.append(row < q_lengths[..., None])
    if kv_lengths is not None:
        parts.append(column < kv_lengths[..., None])
    out = None
    for part in parts:
        out = part if out is None else out & part
    return out


def rows_at_once(b: int, n: int, t: int, s: int) -> int:
    """Return the number of positions of the query in one block: a divisor of t."""
    whole = any(type(size) is not int for size in (b, n, t, s)) or b * n * t * s <= MOST_WEIGHTS
    if whole or default_backend() != "cpu" or device_count() > 1:
        return t
    most = max(MOST_WEIGHTS // (b * n * s), 32)
    rows = next(rows for rows in range(most, 0, -1) if t % rows == 0)
    return rows if 4 * rows > most else t


def map_over_rows(fun: Any, rows: int, axes: tuple[int, ...], args: tuple) -> Any:
    """fun(*args), `rows` of axes that are not of size 1 at a time; its results have them third.

    Backward, weights are computed again.
    """
    split = [x is not None and x.shape[axis] > 1 for x, axis in zip(args, axes, strict=True)]

    def cut(x: Any, axis: int) -> Any:
        x = x.reshape(*x.shape[:axis], -1, rows, *x.shape[axis + 1 :])
        return jnp.moveaxis(x, axis, 0)

    def call(parts: list) -> Any:
        left = iter(parts)
        return fun(*[next(left) if yes else x for yes, x in zip(split, args, strict=True)])

    parts = [cut(x, axis) for x, axis, yes in zip(args, axes, split, strict=True) if yes]
    outs = map_rows(checkpoint(call), parts)
    join = lambda y: jnp.moveaxis(y, 0, 2).reshape(*y.shape[1:3], -1, *y.shape[4:])
    return [None if y is None else join(y) for y in outs]


def is_for_kernel(q: Any, k: Any, scale: Any, causal: bool, window: Any) -> bool:
    """Return True if the kernel supports this case, if only positions decide which pairs count."""
    sizes, (left, right) = (*q.shape, k.shape[1]), find_span(causal, window)
    simple = q.dtype == np.float32 and isinstance(scale, int | float) and min(left, right) >= 0
    if not simple or {*map(type, sizes)} != {int} or math.prod(sizes[:3]) < FEWEST_QUERIES:
        return False
    if sizes[3] > MANY and math.prod(sizes[:3]) * sizes[4] < FEWEST_WEIGHTS:
        return False
    full = 0 not in sizes and sizes[1] - left <= sizes[4]  # there is a key for each query
    return full and default_backend() == "cpu" and device_count() == 1 and are_kernels_wanted()


def weigh_values(
    q: Any, k: Any, v: Any, bias: Any = None, mask: Any = None, q_lengths: Any = None,
    kv_lengths: Any = None, *, scale: Any, causal: bool, window: Any, residual: bool = True,
    logs: Any = None,
) -> list:  # fmt: skip
    """The means (B, T, N, H), and if wanted the logs of sums of weights (B, T, N), else None.

    Given these logs, whose own tangents do not count then, the sums of weights by them, 1.
    """
    (b, t, n, h), (_, s, heads, _) = q.shape, k.shape
    wide = np.promote_types(q.dtype, np.float32) if dtypes.is_float(q.dtype) else np.float32

    def weigh(q: Any, row: Any, bias: Any, mask: Any, logs: Any) -> list:
        dims = (((4,), (3,)), ((0, 2), (0, at)))
        logits = dot_general(q, k, dims, preferred_element_type=wide) * scale  # (B, K, T, G, S)
        if bias is not None:
            logits = logits + bias.astype(wide)
        which = combine_masks(row, s, mask, q_lengths, kv_lengths, causal, window)
        if which is not None:
            logits = jnp.where(which, logits, -0.7 * float(dtypes.finfo(wide).max))
        powers = jnp.exp(logits - (largest_real(OP, logits, -1) if logs is None else logs))
        total = jnp.sum(powers, -1, keepdims=True)
        weights = (powers / total).astype(v.dtype) if logs is None else powers
        dims = (((4,), (3 - at,)), ((0, 1), (0, at)))
        out = dot_general(weights, v, dims, preferred_element_type=wide)  # (B, K, T, G, H)
        if logs is not None:
            return [out, total[..., 0]]
        return [out, logsumexp(logits, axis=-1) if residual else None]

    if logs is not None:
        logs = jnp.moveaxis(logs.reshape(b, t, heads, n // heads, 1), 1, 2)
    args = q.reshape(b, t, heads, n // heads, h), jnp.arange(t), bias, mask, logs
    rows = rows_at_once(b, n, t, s)
    at = 2  # the axis of heads
    if rows < t:
        k, v, at = jnp.moveaxis(k, 2, 1), jnp.moveaxis(v, 2, 1), 1
    out, logs = weigh(*args) if rows == t else map_over_rows(weigh, rows, (1, 0, 2, 2, 2), args)
    if residual:
        logs = jnp.moveaxis(logs, 2, 1).reshape(b, t, n)
    return [jnp.moveaxis(out, 2, 1).reshape(b, t, n, h), logs]


attention_p = Attention(weigh_values)


@operation(static=("scale", "causal", "window", "residual"), name=OP)
def attend(
    query: Any, key: Any, value: Any, bias: Any, mask: Any, q_lengths: Any, kv_lengths: Any,
    scale: Any, causal: bool, window: tuple[int, int] | None, residual: bool,
) -> Any:  # fmt: skip
    """`dot_product_attention`, its arguments in one form."""
    q, k, v = (as_array(x, OP) for x in (query, key, value))
    batched = q.ndim != 3
    if not batched:
        q, k, v = (jnp.expand_dims(x, 0) for x in (q, k, v))
    check_operands(q, k, v, batched)
    (b, t, n, h), (_, s, heads, _) = q.shape, k.shape
    groups, full = n // heads, (b, n, t, s)
    if q_lengths is not None:
        q_lengths = check_lengths("query_seq_lengths", q_lengths, b)
    if kv_lengths is not None:
        kv_lengths = check_lengths("key_value_seq_lengths", kv_lengths, b)

    if bias is not None:
        bias = group_heads(as_array(bias, OP), "bias", full, groups)
    if mask is not None:
        mask = as_array(mask, OP)
        if not dtypes.is_bool(mask.dtype):
            raise DtypeError(f"{OP}: mask must be bool; got {mask.aval}. Hint: mask != 0.")
        mask = group_heads(mask, "mask", full, groups)
    scale = 1 / math.sqrt(h) if scale is None else scale
    given = {"scale": scale, "causal": causal, "window": window}
    which = bias, mask, q_lengths, kv_lengths
    if all(x is None for x in which) and is_for_kernel(q, k, **given):
        out, logs = attention_p.apply(q, k, v, **given)
    else:
        out, logs = weigh_values(q, k, v, *which, **given, residual=residual)
    out = out.astype(q.dtype)
    if q_lengths is not None:
        out = jnp.where(jnp.arange(t).reshape(1, t, 1, 1) < q_lengths, out, 0)
    outs = [out, logs.astype(q.dtype)] if residual else [out]
    outs = [x if batched else x[0] for x in outs]
    return tuple(outs) if residual else outs[0]
