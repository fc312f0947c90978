"""Operations that move elements: to other places, by parameters or by indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray
from weft.export.dims import Dim, Size
from weft.export.onnx.graph import Graph, NotInOnnx
from weft.export.onnx.kinds import BOOL, I64, wide_dtype
from weft.export.recorder import read_dims, read_numbers
from weft.xla.hlo import Value

END = np.iinfo(np.int64).max


def product(sizes: Sequence[Size]) -> Size:
    """Return the product of sizes."""
    return math.prod(sizes)  # type: ignore[arg-type]


# --- by parameters ---


def broadcast_in_dim(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write an array along new axes: its tensor with axes of size 1, until more is needed."""
    (x,), (out,) = xs, outs
    dims = read_numbers(attrs["broadcast_dimensions"])
    name, rank = g.small.get(x.name, (x.name, x.aval.ndim))
    if rank == 0:
        return [g.shrink(name, 0, out) if out.shape else name]
    if list(dims) != sorted(dims):
        name = g.node("Transpose", name, perm=[int(k) for k in np.argsort(dims)])
    name = g.unsqueeze(name, [k for k in range(out.ndim) if k not in dims])
    known = x.name not in g.small and product(out.shape) == product(x.aval.shape)
    return [name if known else g.shrink(name, out.ndim, out)]


def reshape(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write an array under another shape."""
    (x,), (out,) = xs, outs
    if g.small.get(x.name, ("", 1))[1] == 0 and out.shape:
        return [g.shrink(g.small[x.name][0], 0, out)]
    return [g.reshape(g.use(x), out.shape)]


def transpose(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write a permutation of axes."""
    return [g.node("Transpose", g.use(xs[0]), perm=list(read_numbers(attrs["permutation"])))]


def reverse(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write the elements along axes from the last to the first."""
    return [flip(g, g.use(xs[0]), read_numbers(attrs["dimensions"]))]


def flip(g: Graph, name: str, axes: Sequence[int]) -> str:
    """Write a tensor reversed along axes."""
    if not axes:
        return name
    ones = [1] * len(axes)
    ends = [g.tensor([k * n for n in ones]) for k in (-1, -END)]
    return g.node("Slice", name, *ends, g.tensor(list(axes)), g.tensor([-n for n in ones]))


def concatenate(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write arrays one after another."""
    axis = read_numbers(attrs["dimension"])[0]
    return [g.node("Concat", *map(g.use, xs), axis=axis)]


def iota(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write the places along an axis: a range, broadcast."""
    (out,), axis = outs, read_numbers(attrs["iota_dimension"])[0]
    n, dtype = out.shape[axis], out.dtype
    if isinstance(n, Dim):
        wide = wide_dtype("Range", dtype)
        zero, one = (g.tensor(k, I64) for k in (0, 1))
        limit = g.node("Reshape", g.size_tensor(n), g.tensor([]))
        name = g.cast(g.node("Range", zero, limit, one), I64, wide)
        name = g.cast(name, wide, dtype)
    else:
        name = g.tensor(np.arange(n).astype(dtype), dtype)
    if out.ndim == 1:
        return [name]
    name = g.unsqueeze(name, [k for k in range(out.ndim) if k != axis])
    return [g.shrink(name, out.ndim, out)]


def slice_array(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write a part of an array."""
    rows = [g.read_sizes(attrs[k]) for k in ("start_indices", "limit_indices", "strides")]
    return [cut(g, g.use(xs[0]), xs[0].aval.shape, *rows)]


def cut(
    g: Graph, name: str, shape: Sequence, low: Sequence, high: Sequence, steps: Sequence
) -> str:
    """Write the elements of a tensor from places to others, with steps."""
    rows = list(zip(range(len(shape)), shape, low, high, steps, strict=True))
    rows = [r for r in rows if not (r[2] == 0 and r[3] == r[1] and r[4] == 1)]
    if not rows:
        return name
    axes, _, low, high, steps = zip(*rows, strict=True)
    more = [g.tensor(list(steps))] if {*steps} - {1} else []
    ends = g.shape_tensor(low), g.shape_tensor(high)
    return g.node("Slice", name, *ends, g.tensor(list(axes)), *more)


def pad(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write an array with more elements around and between its own, or fewer around."""
    names = "edge_padding_low", "edge_padding_high", "interior_padding"
    rows = list(zip(*[g.read_sizes(attrs[name]) for name in names], strict=True))
    x, fill = xs
    return [pad_tensor(g, g.use(x), x.aval, g.use(fill), rows)]


def pad_tensor(g: Graph, name: str, aval: ShapedArray, fill: str, rows: Sequence[tuple]) -> str:
    """Write a padded tensor; rows are (low, high, between) for each axis."""
    shape = list(aval.shape)
    for axis, (_, _, between) in enumerate(rows):
        if between != 0 and shape[axis] != 0:
            name = put_between(g, name, shape, axis, fill, between, aval.dtype)
            shape[axis] = (shape[axis] - 1) * (between + 1) + 1
    low = [r[0] if isinstance(r[0], Dim) else max(r[0], 0) for r in rows]
    high = [r[1] if isinstance(r[1], Dim) else max(r[1], 0) for r in rows]
    if any(not isinstance(k, int) or k for k in (*low, *high)):
        wide = wide_dtype("Pad", aval.dtype)
        parts = [g.cast(n, aval.dtype, wide) for n in (name, fill)]
        made = g.node("Pad", parts[0], g.shape_tensor([*low, *high]), parts[1])
        name = g.cast(made, wide, aval.dtype)
        shape = [a + n + b for a, n, b in zip(low, shape, high, strict=True)]
    starts = [0 if isinstance(r[0], Dim) else max(-r[0], 0) for r in rows]
    drops = [0 if isinstance(r[1], Dim) else max(-r[1], 0) for r in rows]
    ends = [n - k for n, k in zip(shape, drops, strict=True)]
    return cut(g, name, shape, starts, ends, [1] * len(rows))


def put_between(
    g: Graph, name: str, shape: Sequence, axis: int, fill: str, between: int, dtype: np.dtype
) -> str:
    """Write a tensor with `between` elements after each one along an axis, except for the last."""
    cells = [*shape[: axis + 1], between, *shape[axis + 1 :]]
    one = g.unsqueeze(name, [axis + 1])
    zeros = g.expand(fill, dtype, cells)
    joined = g.node("Concat", one, zeros, axis=axis + 1)
    merged = [*shape[:axis], shape[axis] * (between + 1), *shape[axis + 1 :]]
    joined = g.reshape(joined, merged)
    ends = [*shape[:axis], merged[axis] - between, *shape[axis + 1 :]]
    return cut(g, joined, merged, [0] * len(shape), ends, [1] * len(shape))


# --- by indices ---


def clamp_start(g: Graph, start: Value, last: Size) -> str:
    """Return an index as a tensor of one element, between 0 and `last`."""
    name = g.reshape(g.cast(g.use(start), start.aval.dtype, I64), [1])
    if start.scalar is not None and not isinstance(last, Dim):
        return g.tensor([min(max(int(start.scalar), 0), last)])
    return g.node("Min", g.node("Max", name, g.tensor([0])), g.size_tensor(last))


def dynamic_slice(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write a part of an array that starts at places which are computed."""
    x, *starts = xs
    name = g.use(x)
    for axis, (n, size, start) in enumerate(zip(x.aval.shape, outs[0].shape, starts, strict=True)):
        if n != size:
            low = clamp_start(g, start, n - size)
            name = g.cut(name, axis, low, g.node("Add", low, g.size_tensor(size)))
    return [name]


def dynamic_update_slice(
    g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict
) -> list[str]:
    """Write an array with one part replaced: the parts before and after it are joined with it."""
    x, update, *starts = xs
    rows = zip(x.aval.shape, update.aval.shape, starts, strict=True)
    axes = [
        (axis, clamp_start(g, start, n - size), size)
        for axis, (n, size, start) in enumerate(rows)
        if n != size
    ]

    def replace(name: str, k: int) -> str:
        if k == len(axes):
            return g.use(update)
        axis, low, size = axes[k]
        high = g.node("Add", low, g.size_tensor(size))
        inner = name if k == len(axes) - 1 else g.cut(name, axis, low, high)
        before = g.cut(name, axis, g.tensor([0]), low)
        after = g.cut(name, axis, high, g.tensor([END]))
        return g.node("Concat", before, replace(inner, k + 1), after, axis=axis)

    return [replace(g.use(x), 0)]


def strides_of(shape: Sequence[Size]) -> list[Size]:
    """Return how far apart neighbours along each axis are in row-major order."""
    return [product(shape[k + 1 :]) for k in range(len(shape))]


class Windows:
    """Flat indices of the elements of windows in an array; they broadcast to the windows' shape.

    Args:
      shape: the shape of the array that has the windows.
      indices: where windows start, along the axes `mapped`; the last axis holds the index vector.
      rank: the number of axes of the array of windows; its `window_axes` are within a window.
      sizes: the sizes of a window along all axes of the array.
      dropped: axes of the array that windows do not have.
      batching: batch axes of the array, and the batch axes of the indices that belong to them.
    """

    def __init__(
        self, g: Graph, shape: Sequence[Size], indices: Value, rank: int,
        window_axes: Sequence[int], sizes: Sequence[Size], mapped: Sequence[int],
        dropped: Sequence[int],
        batching: tuple[Sequence[int], Sequence[int]],
    ):  # fmt: skip
        self.g, self.shape, self.rank, self.sizes = g, shape, rank, sizes
        self.window_axes = sorted(window_axes)
        self.batch_axes = [k for k in range(rank) if k not in window_axes]
        self.mapped, self.indices = list(mapped), indices
        self.within = [d for d in range(len(shape)) if d not in dropped and d not in batching[0]]
        self.batching = list(zip(*batching, strict=True))
        whole = g.cast(g.use(indices), indices.aval.dtype, I64)
        self.starts = [self.component(whole, k) for k in range(len(self.mapped))]

    def component(self, whole: str, k: int) -> str:
        """Return the start along the axis `mapped[k]`, with axes of size 1 for a window."""
        g, last = self.g, self.indices.aval.ndim - 1
        name = g.node("Gather", whole, g.tensor(k), axis=last)
        return g.unsqueeze(name, self.window_axes)

    def limit(self, k: int) -> str:
        """Return the last place where a window along `mapped[k]` may start."""
        d = self.mapped[k]
        return self.g.size_tensor(self.shape[d] - self.sizes[d])

    def clip(self) -> None:
        """Keep windows within the array."""
        g = self.g
        self.starts = [
            g.node("Min", g.node("Max", s, g.tensor([0])), self.limit(k))
            for k, s in enumerate(self.starts)
        ]

    def valid(self) -> str | None:
        """Return where windows are within the array."""
        g, found = self.g, None
        for k, s in enumerate(self.starts):
            low = g.node("GreaterOrEqual", s, g.tensor([0]))
            both = g.node("And", low, g.node("LessOrEqual", s, self.limit(k)))
            found = both if found is None else g.node("And", found, both)
        return found

    def along(self, n: Size, axis: int) -> str:
        """Return the places 0 to n - 1 along an axis of the windows' array."""
        (name,) = iota(self.g, [], [ShapedArray((n,), I64)], {"iota_dimension": "0"})
        return self.g.unsqueeze(name, [k for k in range(self.rank) if k != axis])

    def flat(self) -> str:
        """Return the places of all elements in row-major order."""
        g, strides = self.g, strides_of(self.shape)
        terms = []
        for k, d in enumerate(self.mapped):
            terms.append(self.times(self.starts[k], strides[d]))
        for d, axis in zip(self.within, self.window_axes, strict=True):
            if self.sizes[d] != 1:
                terms.append(self.times(self.along(self.sizes[d], axis), strides[d]))
        for d, axis in self.batching:
            place = self.along(self.shape[d], self.batch_axes[axis])
            terms.append(self.times(place, strides[d]))
        made = g.fold("Add", terms or [g.tensor([0])])
        return made if self.rank else g.reshape(made, [])

    def times(self, name: str, stride: Size) -> str:
        """Return places times a stride."""
        return name if stride == 1 else self.g.node("Mul", name, self.g.size_tensor(stride))


def gather(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write windows of an array: rows along one axis by Gather, others by their flat places."""
    (x, indices), (out,) = xs, outs
    dims = read_dims(attrs["dimension_numbers"])
    pick = lambda name: dims.get(name, ())
    sizes = g.read_sizes(attrs["slice_sizes"])
    offsets, mapped, dropped = (
        pick("offset_dims"),
        pick("start_index_map"),
        pick("collapsed_slice_dims"),
    )
    batching = pick("operand_batching_dims"), pick("start_indices_batching_dims")
    windows = Windows(g, x.aval.shape, indices, out.ndim, offsets, sizes, mapped, dropped, batching)
    windows.clip()
    if len(mapped) == 1 and tuple(dropped) == tuple(mapped) and not batching[0]:
        (axis,), lead = mapped, indices.aval.ndim - 1
        others = [k for k in range(out.ndim) if not axis <= k < axis + lead]
        whole = all(n == m for d, (n, m) in enumerate(zip(sizes, x.aval.shape)) if d != axis)
        if whole and list(offsets) == others:
            at = g.reshape(windows.starts[0], indices.aval.shape[:-1])
            return [g.node("Gather", g.use(x), at, axis=axis)]
    flat = g.node("Expand", windows.flat(), g.shape_tensor(out.shape))
    return [g.node("Gather", g.reshape(g.use(x), [product(x.aval.shape)]), flat, axis=0)]


REDUCTIONS = {
    "second": "none", "add": "add", "subtract": "add", "multiply": "mul", "maximum": "max",
    "minimum": "min",
}  # fmt: skip


def scatter(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write an array with elements combined with others, at flat places.

    A window that is not within the array goes to one more element at its end.
    """
    x, indices, updates = xs
    dims = read_dims(attrs["scatter_dimension_numbers"])
    pick = lambda name: dims.get(name, ())
    kind = g.name_region(attrs["regions"][0])
    bools = x.aval.dtype == BOOL and kind not in ("second", "")
    if kind not in REDUCTIONS or bools:
        raise NotInOnnx(f"scatter by {kind or 'a program'}")
    shape, dtype = x.aval.shape, x.aval.dtype
    batching = pick("input_batching_dims"), pick("scatter_indices_batching_dims")
    dropped = (*pick("inserted_window_dims"), *batching[0])
    window = iter([updates.aval.shape[k] for k in sorted(pick("update_window_dims"))])
    sizes = [1 if d in dropped else next(window) for d in range(len(shape))]
    windows = Windows(
        g, shape, indices, updates.aval.ndim, pick("update_window_dims"), sizes,
        pick("scatter_dims_to_operand_dims"), pick("inserted_window_dims"), batching,
    )  # fmt: skip
    total, flat, valid = product(shape), windows.flat(), windows.valid()
    if valid is not None:
        flat = g.node("Where", valid, flat, g.size_tensor(total))
    count = [product(updates.aval.shape)]
    flat = g.reshape(g.node("Expand", flat, g.shape_tensor(updates.aval.shape)), count)
    wide = dtype if kind == "second" else wide_dtype("ScatterElements", dtype)
    base = g.node("Concat", g.reshape(g.use(x), [total]), g.tensor(np.zeros(1), dtype), axis=0)
    base, values = (g.cast(n, dtype, wide) for n in (base, g.reshape(g.use(updates), count)))
    if kind == "subtract":
        values = g.apply("Neg", wide, values)
    made = g.node("ScatterElements", base, flat, values, axis=0, reduction=REDUCTIONS[kind])
    made = g.cut(g.cast(made, wide, dtype), 0, g.tensor([0]), g.size_tensor(total))
    return [g.reshape(made, shape)]


WRITERS: dict[str, Callable] = {
    "broadcast_in_dim": broadcast_in_dim, "concatenate": concatenate,
    "dynamic_slice": dynamic_slice, "dynamic_update_slice": dynamic_update_slice,
    "gather": gather, "iota": iota, "pad": pad, "reshape": reshape, "reverse": reverse,
    "scatter": scatter, "slice": slice_array, "transpose": transpose,
}  # fmt: skip
