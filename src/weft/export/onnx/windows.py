"""Reductions, windows, running sums and sorts: elements combined or ordered along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.export.dims import Dim
from weft.export.onnx.graph import Graph, NotInOnnx
from weft.export.onnx.kinds import BOOL, F32, I64, U64, wide_dtype
from weft.export.onnx.places import pad_tensor, product
from weft.export.recorder import Region, read_numbers
from weft.xla.hlo import Value

# Operators that reduce by an operation of StableHLO; of bools, all and any.
REDUCTIONS = {
    "add": "ReduceSum", "multiply": "ReduceProd", "maximum": "ReduceMax", "minimum": "ReduceMin",
}  # fmt: skip
COMBINING = {"add": "Add", "multiply": "Mul", "maximum": "Max", "minimum": "Min"}
LOGIC = {"and": "minimum", "or": "maximum", "multiply": "minimum", "add": "maximum"}


def identity(kind: str, dtype: np.dtype) -> Any:
    """Return the number that changes nothing in a reduction."""
    if kind in ("add", "multiply"):
        return 0 if kind == "add" else 1
    if dtype == BOOL:
        return kind == "minimum"
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return int(info.min if kind == "maximum" else info.max)
    return -math.inf if kind == "maximum" else math.inf


def reduction_of(g: Graph, region: Region, dtype: np.dtype) -> str:
    """Return the operation that an operator of ONNX reduces by, or an empty text."""
    kind = g.name_region(region)
    kind = LOGIC.get(kind, kind) if dtype == BOOL else kind
    return kind if kind in REDUCTIONS and dtype != U64 else ""


def reduce_tensor(g: Graph, kind: str, dtype: np.dtype, name: str, axes: Sequence[int]) -> str:
    """Write a reduction of a tensor; the extremum of floats is NaN if one of them is."""
    operator, places = REDUCTIONS[kind], g.tensor(list(axes))
    wide = wide_dtype(operator, dtype)
    name = g.cast(name, dtype, wide)
    made = g.node(operator, name, places, keepdims=0)
    if dtypes.is_float(dtype) and kind in ("maximum", "minimum"):  # runtimes may lose NaN
        nan = g.node("ReduceMax", g.node("IsNaN", name), places, keepdims=0)
        made = g.node("Where", nan, g.tensor(math.nan, wide), made)
    return g.cast(made, wide, dtype)


def reduce(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write a reduction: an ONNX operator, or a tree that combines pairs of elements."""
    half, axes = len(xs) // 2, list(read_numbers(attrs["dimensions"]))
    (region,) = attrs["regions"]
    names, inits = [g.use(x) for x in xs[:half]], [g.use(x) for x in xs[half:]]
    dtype = outs[0].dtype
    kind = reduction_of(g, region, dtype) if half == 1 else ""
    if not kind:
        return fold_axes(g, names, xs[0].aval.shape, axes, inits, region)
    made = reduce_tensor(g, kind, dtype, names[0], axes) if axes else names[0]
    scalar = xs[1].scalar
    if scalar is not None and scalar == identity(kind, dtype):
        return [made]
    return g.run_region(region, [inits[0], made])


def fold_axes(
    g: Graph, names: Sequence[str], shape: Sequence, axes: Sequence[int], inits: Sequence[str],
    region: Region,
) -> list[str]:  # fmt: skip
    """Write a reduction of several tensors by a program, half of the elements at a time."""
    if any(isinstance(shape[a], Dim) for a in axes):
        raise NotInOnnx("a reduction by a program along a symbolic axis")
    kept = [k for k in range(len(shape)) if k not in axes]
    n = math.prod([shape[a] for a in axes])
    rows = [
        g.reshape(g.node("Transpose", x, perm=[*axes, *kept]), [n, *[shape[k] for k in kept]])
        for x in names
    ]
    if n == 0:
        return [g.node("Expand", i, g.shape_tensor([shape[k] for k in kept])) for i in inits]
    take = lambda x, low, high: g.cut(x, 0, g.tensor([low]), g.tensor([high]))
    while n > 1:
        half = n // 2
        first = [take(x, 0, half) for x in rows]
        made = g.run_region(region, [*first, *[take(x, half, 2 * half) for x in rows]])
        if n % 2:
            rest = [take(x, n - 1, n) for x in rows]
            made = [g.node("Concat", x, y, axis=0) for x, y in zip(made, rest, strict=True)]
        rows, n = made, half + n % 2
    rows = [g.node("Squeeze", x, g.tensor([0])) for x in rows]
    return g.run_region(region, [*inits, *rows])


# --- windows ---


class Window:
    """The attributes of a window operation, one row for each axis."""

    def __init__(self, g: Graph, attrs: dict, rank: int):
        ones = f"array<i64: {', '.join(['1'] * rank)}>"
        read = lambda name: read_numbers(attrs.get(name, ones))
        self.sizes, self.strides = read("window_dimensions"), read("window_strides")
        self.spread, self.between = read("base_dilations"), read("window_dilations")
        pads = g.read_sizes(attrs["padding"]) if "padding" in attrs else [0] * 2 * rank
        self.pads = list(zip(pads[::2], pads[1::2], strict=True))
        rows = zip(self.sizes, self.strides, self.spread, self.pads, strict=True)
        self.axes = [k for k, row in enumerate(rows) if row != (1, 1, 1, (0, 0))]

    @property
    def rows(self) -> list[tuple]:
        """The padding of each axis."""
        return [(*p, s - 1) for p, s in zip(self.pads, self.spread, strict=True)]

    def places(self, axis: int, count: int) -> np.ndarray:
        """Return the places of elements of windows along an axis, (count, size)."""
        starts = np.arange(count)[:, None] * self.strides[axis]
        return starts + np.arange(self.sizes[axis]) * self.between[axis]


def reduce_window(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write a reduction over windows: pooling, or the windows' elements along new axes."""
    half, (region,) = len(xs) // 2, attrs["regions"]
    window, dtype = Window(g, attrs, outs[0].ndim), outs[0].dtype
    kind = reduction_of(g, region, dtype) if half == 1 else ""
    scalar = xs[half].scalar
    plain = kind and scalar is not None and scalar == identity(kind, dtype)
    if plain and kind in ("maximum", "add") and dtype == F32 and can_pool(window):
        return [pool(g, xs[0], outs[0], window, kind)]
    sizes = [outs[0].shape[k] for k in window.axes]
    if any(isinstance(n, Dim) for n in sizes):
        raise NotInOnnx("windows along a symbolic axis")
    names = []
    for x, init in zip(xs[:half], xs[half:], strict=True):
        name = pad_tensor(g, g.use(x), x.aval, g.use(init), window.rows)
        for axis in reversed(window.axes):  # a new axis comes after each
            name = g.node(
                "Gather", name, g.tensor(window.places(axis, outs[0].shape[axis])), axis=axis
            )
        names.append(name)
    shape: list[Any] = []
    inner = []
    for k, n in enumerate(outs[0].shape):
        shape.append(n)
        if k in window.axes:
            inner.append(len(shape))
            shape.append(window.sizes[k])
    if plain:
        return [reduce_tensor(g, kind, dtype, names[0], inner)]
    return fold_axes(g, names, shape, inner, [g.use(x) for x in xs[half:]], region)


def can_pool(window: Window) -> bool:
    """Return True if a pooling operator has these windows."""
    pads = [p for row in window.pads for p in row]
    if not 0 < len(window.axes) <= 3 or any(isinstance(p, Dim) or p < 0 for p in pads):
        return False
    rows = zip(window.pads, window.sizes, window.between, strict=True)
    return {*window.spread} == {1} and all(max(p) < n and b == 1 for p, n, b in rows)


def pool(g: Graph, x: Value, out: ShapedArray, window: Window, kind: str) -> str:
    """Write a pooling operator. It takes two axes before the axes of windows."""
    axes, name = window.axes, g.use(x)
    kept = [k for k in range(out.ndim) if k not in axes]
    lead = [x.aval.shape[k] for k in kept]
    perm = [*kept, *axes]
    if perm != sorted(perm):
        name = g.node("Transpose", name, perm=perm)
    if len(kept) != 2:
        name = g.reshape(name, [product(lead), 1, *[x.aval.shape[k] for k in axes]])
    row = lambda values: [int(values[k]) for k in axes]
    pads = [p[side] for side in (0, 1) for p in (window.pads[k] for k in axes)]
    given = dict(kernel_shape=row(window.sizes), strides=row(window.strides), pads=pads)
    if kind == "maximum":
        name = g.node("MaxPool", name, **given)
    else:
        name = g.node("AveragePool", name, **given, count_include_pad=1)
        name = g.node("Mul", name, g.tensor(math.prod(window.sizes), F32))
    if len(kept) != 2:
        name = g.reshape(name, [*lead, *[out.shape[k] for k in axes]])
    if perm != sorted(perm):
        name = g.node("Transpose", name, perm=[int(k) for k in np.argsort(perm)])
    return name


def select_and_scatter(
    g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict
) -> list[str]:
    """Add each element of `source` to the element that its window selects."""
    (x, source, init), (out,) = xs, outs
    choose, combine = map(g.name_region, attrs["regions"])
    window = Window(g, attrs, out.ndim)
    if any(isinstance(n, Dim) for n in out.shape):
        raise NotInOnnx("windows along a symbolic axis")
    greatest, dtype = is_greater(g, attrs["regions"][0]), x.aval.dtype
    if not greatest or combine != "add":
        raise NotInOnnx(f"select_and_scatter by {choose or 'a program'}")
    kind = {"ge": "maximum", "le": "minimum"}[greatest]
    fill = g.tensor(identity(kind, dtype), dtype)
    padded = pad_tensor(g, g.use(x), x.aval, fill, window.rows)
    shape = [n + low + high for n, (low, high) in zip(out.shape, window.pads, strict=True)]
    count = [n for axis in enumerate(source.aval.shape) for n in (axis[1],)]
    flat = np.zeros([*count, *window.sizes], np.int64)
    rank = out.ndim
    for k in range(rank):
        places = window.places(k, count[k]) * math.prod(shape[k + 1 :])
        cells = [1] * (2 * rank)
        cells[k], cells[rank + k] = places.shape
        flat = flat + places.reshape(cells)
    flat = flat.reshape(*count, math.prod(window.sizes))
    at = g.tensor(flat)
    elements = g.node("Gather", g.reshape(padded, [math.prod(shape)]), at, axis=0)
    operator = {"maximum": "ArgMax", "minimum": "ArgMin"}[kind]
    best = g.apply(operator, dtype, elements, out=I64, axis=rank, keepdims=1)
    chosen = g.reshape(g.node("GatherElements", at, best, axis=rank), [math.prod(count)])
    sums, wide = out.dtype, wide_dtype("ScatterElements", out.dtype)
    base = g.tensor(np.zeros(math.prod(shape)), wide)
    values = g.cast(g.reshape(g.use(source), [math.prod(count)]), sums, wide)
    made = g.node("ScatterElements", base, chosen, values, axis=0, reduction="add")
    made = g.reshape(g.cast(made, wide, sums), shape)
    rows = [(-low, -high, 0) for low, high in window.pads]
    made = pad_tensor(g, made, ShapedArray(shape, sums), g.tensor(0, sums), rows)
    return [g.run_region(attrs["regions"][1], [made, g.use(init)])[0]]


def is_greater(g: Graph, region: Region) -> str:
    """Return the comparison of a region, "ge" or "le"; an empty text for any other one."""
    with g.inner() as nodes:
        g.run_region(region, ["a", "b"])
    kinds = [n.op_type for n in nodes if n.op_type != "Cast"]
    return (
        {"GreaterOrEqual": "ge", "LessOrEqual": "le"}.get(kinds[0], "") if len(kinds) == 1 else ""
    )


# --- running sums, places of extrema, sorts -----------------------------------------------------


def cumulative_sum(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write running sums."""
    (x,) = xs
    dtype, wide = x.aval.dtype, wide_dtype("CumSum", x.aval.dtype)
    name = g.cast(g.use(x), dtype, wide)
    name = g.node("CumSum", name, g.tensor(attrs["axis"]), reverse=int(attrs["reverse"]))
    return [g.cast(name, wide, dtype)]


def find_extremum(operator: str) -> Callable:
    """Return a function that writes the place of an extremum, or of the first NaN."""

    def write(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
        (x,), (axis,) = xs, attrs["axes"]
        name, dtype = g.use(x), x.aval.dtype
        if dtype == U64:
            raise NotInOnnx(f"{operator} of uint64")
        find = lambda op, n, d: g.apply(op, d, n, out=I64, axis=axis, keepdims=0)
        made = find(operator, name, dtype)
        if dtypes.is_float(dtype):
            nan = g.node("IsNaN", name)
            some = g.node("ReduceMax", nan_int(g, nan), g.tensor([axis]), keepdims=0)
            first = find("ArgMax", nan_int(g, nan), np.dtype(np.uint8))
            made = g.node("Where", g.node("Cast", some, to=g.type_number(BOOL)), first, made)
        return [g.cast(made, I64, outs[0].dtype)]

    return write


def nan_int(g: Graph, mask: str) -> str:
    """Return a mask as small integers, which reductions take."""
    return g.cast(mask, BOOL, np.dtype(np.uint8))


def sort_keys(g: Graph, x: Value) -> list[tuple[str, np.dtype]]:
    """Return integers or floats in whose lexicographic order elements are sorted."""
    name, dtype = g.use(x), x.aval.dtype
    if dtype == U64:  # TopK takes signed integers of this width
        flipped = g.node("BitwiseXor", name, g.tensor(1 << 63, U64))
        return [(g.cast(flipped, U64, I64), I64)]
    if not dtypes.is_float(dtype):
        return [(name, dtype)]
    wide = wide_dtype("TopK", dtype)
    name, nan = g.cast(name, dtype, wide), g.node("IsNaN", name)
    first = nan_int(g, nan)
    return [(first, np.dtype(np.uint8)), (g.node("Where", nan, g.tensor(0, wide), name), wide)]


def order_places(g: Graph, keys: Sequence[tuple], axis: int, size: str, largest: bool) -> str:
    """Return the places of elements in the order of their keys: a stable sort by each of them."""
    order = None
    for name, dtype in reversed(keys):
        if order is not None:
            name = g.node("GatherElements", name, order, axis=axis)
        wide = wide_dtype("TopK", dtype)
        name = g.cast(name, dtype, wide)
        _, places = g.node("TopK", name, size, outs=2, axis=axis, largest=int(largest), sorted=1)
        order = places if order is None else g.node("GatherElements", order, places, axis=axis)
    return order


def sort(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write a stable sort of arrays by the first of them."""
    axis, count = attrs["dimension"], attrs["num_keys"]
    keys = [key for x in xs[:count] for key in sort_keys(g, x)]
    order = order_places(g, keys, axis, g.size_tensor(xs[0].aval.shape[axis]), False)
    return [g.node("GatherElements", g.use(x), order, axis=axis) for x in xs]


def sort_by_region(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write a sort as StableHLO has it: by integers, the operands that its region compares."""
    (region,), (axis,) = attrs["regions"], read_numbers(attrs["dimension"])
    names = [f"a{k}" for k in range(2 * len(xs))]
    with g.inner() as nodes:
        g.run_region(region, names)
    read = {name for node in nodes for name in node.input}
    keys = [(g.use(x), x.aval.dtype) for k, x in enumerate(xs) if names[2 * k] in read]
    if any(dtypes.is_float(dtype) for _, dtype in keys):
        raise NotInOnnx("a sort by a program")
    order = order_places(g, keys, axis, g.size_tensor(xs[0].aval.shape[axis]), False)
    return [g.node("GatherElements", g.use(x), order, axis=axis) for x in xs]


def top_k(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write the greatest elements along an axis, and their places; NaN is the greatest."""
    (x,), axis = xs, attrs["axis"]
    size = g.size_tensor(x.aval.shape[axis])
    order = order_places(g, sort_keys(g, x), axis, size, True)
    order = g.cut(order, axis, g.tensor([0]), g.size_tensor(attrs["k"]))
    values = g.node("GatherElements", g.use(x), order, axis=axis)
    return [values, g.cast(order, I64, outs[1].dtype)]


WRITERS: dict[str, Callable] = {
    "reduce": reduce, "reduce_window": reduce_window, "select_and_scatter": select_and_scatter,
    "sort": sort_by_region,
}  # fmt: skip

# Primitives that ONNX has an operator for, though their lowering writes several operations. The
# attributes are the parameters of the primitive.
PRIMITIVES: dict[str, Callable] = {
    "argmax": find_extremum("ArgMax"), "argmin": find_extremum("ArgMin"),
    "cumsum": cumulative_sum, "sort": sort, "top_k": top_k,
}  # fmt: skip
