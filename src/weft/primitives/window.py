"""Reductions over sliding windows, and the choice of one element of each window (max pooling).

`reduce_window` takes a user's function; sums, maxima and minima have primitives of their own. The
shape rules of convolution are conv.py's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.element import Number
from weft.core.facts import Cost, Elements
from weft.core.form import Form
from weft.core.primitive import Primitive, tangents_of
from weft.core.stage import stage
from weft.errors import DtypeError, ShapeError
from weft.primitives import elementwise, families
from weft.primitives.elementwise import Comparison, select
from weft.primitives.expr import Expr
from weft.primitives.families import index_tuple
from weft.primitives.layout import batched_at_front, broadcast_in_dim, literal
from weft.primitives.reduction import (
    HoldsProgram,
    find_monoid,
    highest_value,
    is_identity,
    lift_to_tangents,
    lowest_value,
    split_halves,
    stage_reducer,
    starting_values,
)
from weft.primitives.slicing import pad, padding_mask, slice
from weft.pytrees import flatten, unflatten
from weft.util import has_symbolic_size, max_size
from weft.xla.hlo import i64s, pairs
from weft.xla.lower import lower_jaxpr

# --- shapes ---------------------------------------------------------------------------------


def dilated_size(n: int, step: int) -> int:
    """The length of n elements that are `step` apart."""
    return 0 if n == 0 else (n - 1) * step + 1


def count_places(size: int, window: int, stride: int) -> int:
    """Return the number of places of a window on an axis."""
    return max_size((size - window) // stride + 1, 0)


def pad_pairs(
    op: str, padding: Any, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Return the (low, high) padding of each axis, from pairs, 'SAME', 'SAME_LOWER' or 'VALID'."""
    if not isinstance(padding, str):
        return families.index_pairs(op, "padding", padding)
    kind = padding.upper()
    if kind == "VALID":
        return ((0, 0),) * len(sizes)
    if kind not in ("SAME", "SAME_LOWER"):
        raise ShapeError(
            f"{op}: padding must be 'SAME', 'SAME_LOWER', 'VALID', or (low, high) pairs; "
            f"got {padding!r}."
        )
    pads = []
    for n, window, stride in zip(sizes, windows, strides, strict=True):
        total = max_size((-(-n // stride) - 1) * stride + window - n, 0)
        low = total // 2 if kind == "SAME" else total - total // 2
        pads.append((low, total - low))
    return tuple(pads)


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Return the padding that a name stands for.

    Args:
      in_shape: the sizes of the operand, ints.
      window_shape: the sizes of the window.
      window_strides: the steps of the window.
      padding: "VALID" pads nothing. "SAME" pads such that the result has ceil(size / stride)
        elements; an odd element is added at the end. "SAME_LOWER" adds it at the start. Pairs are
        returned unchanged.

    Returns:
      A list of pairs (low, high), one for each axis.

    Raises:
      ShapeError: the name is another one.

    >>> lax.padtype_to_pads((5,), (2,), (1,), "SAME")
    [(0, 1)]
    >>> lax.padtype_to_pads((5,), (2,), (1,), "SAME_LOWER")
    [(1, 0)]
    """
    return list(pad_pairs("padtype_to_pads", padding, in_shape, window_shape, window_strides))


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Return the number of positions of a window on each axis: the shape of `reduce_window`.

    Args:
      operand_shape: the sizes of the operand, ints.
      window_dimensions: the sizes of the window.
      window_strides: the steps of the window; None for steps of 1.
      padding: a pair (low, high) for each axis.
      base_dilation: the distance between elements of the operand. By default it is 1.
      window_dilation: the distance between elements of a window. By default it is 1.

    Returns:
      A tuple of ints.

    >>> lax.reduce_window_shape_tuple((5,), (3,), (2,), [(0, 0)])
    (2,)
    """
    op = "reduce_window_shape_tuple"
    shape = index_tuple(operand_shape, op, "operand_shape")
    params = window_params(
        op, shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    names = "window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation"
    rows = zip(shape, *(params[name] for name in names), strict=True)
    return tuple(
        count_places(dilated_size(n, base) + low + high, dilated_size(w, wide), stride)
        for n, w, stride, (low, high), base, wide in rows
    )


def window_shape(op: str, shape: Sequence[int], **params: Any) -> tuple[int, ...]:
    """Do as `reduce_window_shape_tuple` does, with checks."""
    for name, given in params.items():
        if len(given) != len(shape):
            raise ShapeError(
                f"{op}: {name} must have one entry for each axis of the operand; "
                f"got {given} for shape {tuple(shape)}."
            )
        if name != "padding" and any(n < 1 for n in given):
            raise ShapeError(f"{op}: {name} must be positive; got {given}.")
    return reduce_window_shape_tuple(shape, **params)


def insert_window_axis(params: dict, at: int) -> dict:
    """The parameters with a mapped axis at `at`, over which no window reaches."""
    return {
        k: (*v[:at], (0, 0) if k == "padding" else 1, *v[at:]) if isinstance(v, tuple) else v
        for k, v in params.items()
    }


def lower_windows(
    hlo: Any, xs: Sequence[Any], inits: Sequence[Any], combine: Callable, params: dict
) -> list:
    """Write a reduction of several arrays over the same windows; `combine` writes the body."""
    shape = reduce_window_shape_tuple(xs[0].aval.shape, **params)
    return hlo.op(
        "stablehlo.reduce_window", [*xs, *inits], [ShapedArray(shape, x.aval.dtype) for x in xs],
        [hlo.block([i.aval for i in (*inits, *inits)], combine)],
        window_dimensions=i64s(params["window_dimensions"]),
        window_strides=i64s(params["window_strides"]),
        base_dilations=i64s(params["base_dilation"]),
        window_dilations=i64s(params["window_dilation"]), padding=pairs(params["padding"]),
    )  # fmt: skip


def window_elements(x: Any, fill: Any, params: dict) -> list:
    """Return strided slices, one for each position in a window: its element of every window.

    `fill` is the value of the padding: a scalar, or one for each index of the first axis of x.
    """
    config = tuple(
        (low, high, base - 1)
        for (low, high), base in zip(params["padding"], params["base_dilation"], strict=True)
    )
    shape = reduce_window_shape_tuple(typeof(x).shape, **params)
    if typeof(fill).shape:
        mask = padding_mask(typeof(x), config)
        x = pad(x, literal(0, typeof(x).dtype), config)
        x = select(mask, broadcast_in_dim(fill, typeof(x).shape, (0,)), x)
    else:
        x = pad(x, fill, config)
    strides = params["window_strides"]
    found = []
    for place in itertools.product(*map(range, params["window_dimensions"])):
        starts = [i * d for i, d in zip(place, params["window_dilation"], strict=True)]
        limits = [s + dilated_size(n, k) for s, n, k in zip(starts, shape, strides, strict=True)]
        found.append(slice(x, starts, limits, strides))
    return found


# --- any function ---------------------------------------------------------------------------


class ReduceWindow(HoldsProgram):
    """The elements of each window, in several arrays, combined by the program `jaxpr`.

    Operands are n arrays and n scalars, which start each reduction and fill the padding.
    The derivative applies `jaxpr` to whole arrays, once for each place in the window.
    Source: StableHLO, reduce_window.
    """

    name = "reduce_window"
    form = Form.WINDOWS
    multiple_results = True

    def abstract_eval(self, *avals, jaxpr, consts, **params):
        xs, _ = split_halves(avals)
        families.check_equal_shapes(self.name, xs)
        shape = window_shape(self.name, xs[0].shape, **params)
        outs = [ShapedArray(shape, a.dtype, a.weak_type) for a in jaxpr.out_avals]
        return self.split_as(avals, outs)

    def lower(self, hlo, *args, jaxpr, consts, **params):
        xs, inits = split_halves(args)
        return lower_windows(hlo, xs, inits, lambda *cells: lower_jaxpr(hlo, jaxpr, cells), params)

    def jvp(self, primals, tangents, *, jaxpr, consts, **params):
        outs = self.apply(*primals, jaxpr=jaxpr, consts=consts, **params)
        (xs, inits), (dots, init_dots) = split_halves(primals), split_halves(tangents)
        combine, listed = lift_to_tangents(jaxpr, [typeof(x) for x in xs])
        total = fold_windows(combine, listed(xs, dots), listed(inits, init_dots), params)
        moved = [dtypes.is_inexact(typeof(y).dtype) for y in outs]
        return outs, tangents_of(outs, total[len(xs) :], moved)

    def batch(self, axis, args, dims, *, jaxpr, consts, **params):
        (xs, inits), (x_dims, init_dims) = split_halves(args), split_halves(dims)
        xs = [batched_at_front(x, d, axis.size) for x, d in zip(xs, x_dims, strict=True)]
        params = insert_window_axis(params, 0)
        if all(d is None for d in init_dims):
            outs = self.apply(*xs, *inits, jaxpr=jaxpr, consts=consts, **params)
        else:
            inits = [batched_at_front(i, d, axis.size) for i, d in zip(inits, init_dims)]
            outs = fold_windows(lambda a, b: jaxpr(*a, *b), xs, inits, params)
        return outs, [0] * len(outs)


def fold_windows(combine: Callable, xs: Sequence[Any], inits: Sequence[Any], params: dict) -> list:
    """Reduce lists of arrays over windows: `combine(total, elements)`, a place at a time."""
    shape = reduce_window_shape_tuple(typeof(xs[0]).shape, **params)
    total = [broadcast_in_dim(i, shape, tuple(range(typeof(i).ndim))) for i in inits]
    each = [window_elements(x, i, params) for x, i in zip(xs, inits, strict=True)]
    for elements in zip(*each, strict=True):
        total = combine(total, elements)
    return total


reduce_window_p = ReduceWindow()


# --- sums, maxima, minima -------------------------------------------------------------------


class WindowReduction(families.ByCombination):
    """A family: the elements of each window combined by an elementwise primitive, `combine`.

    Padding counts as `identity(dtype)`. Dtypes: as `takes`. Source: StableHLO, reduce_window.
    """

    form = Form.WINDOWS
    cost = Cost.REDUCTION
    label_axes = families.label_along

    def abstract_eval(self, x, **params):
        families.check_kind(self.name, self.takes, x)
        return [x.update(shape=window_shape(self.name, x.shape, **params))]

    def lower(self, hlo, x, **params):
        cell = ShapedArray((), x.aval.dtype)
        init = hlo.constant(self.identity(cell.dtype), cell)
        combine = lambda a, b: self.combine.lower(hlo, a, b)
        return lower_windows(hlo, [x], [init], combine, params)

    def element(self, i, x, **params):
        names = "window_strides", "window_dilation", "padding"
        axes = [*zip(i, *(params[name] for name in names), strict=True)]
        other = Number(self.identity(x.dtype), x.dtype)

        def read(*window: Any) -> Any:
            rows = zip(axes, window, strict=True)
            places = [k * stride + w * wide - low for (k, stride, wide, (low, _)), w in rows]
            return families.read_spread(x, places, params["base_dilation"], other)

        return [self.combine_over(params["window_dimensions"], x.dtype, read)]

    def batch(self, axis, args, dims, **params):
        (x,), (d,) = args, dims
        return self.apply(x, **insert_window_axis(params, d)), [d]


class WindowSum(WindowReduction, families.LinearPrimitive):
    """The sum of each window. Its transpose sums windows of the cotangent, strides and base
    dilation exchanged.
    """

    def transpose(self, cts, x, **params):
        (ct,) = cts
        strides, base = params["window_strides"], params["base_dilation"]
        window = [
            dilated_size(w, d)
            for w, d in zip(params["window_dimensions"], params["window_dilation"], strict=True)
        ]
        lows = [w - low - 1 for w, (low, _) in zip(window, params["padding"], strict=True)]
        rows = zip(x.aval.shape, base, typeof(ct).shape, strides, window, lows, strict=True)
        padding = tuple(
            (low, dilated_size(n, b) + w - 1 - dilated_size(m, s) - low)
            for n, b, m, s, w, low in rows
        )
        exchanged = {"window_strides": base, "base_dilation": strides, "padding": padding}
        return self.apply(ct, **{**params, **exchanged})


class WindowExtremum(WindowReduction):
    """The maximum or minimum of each window; the first of equals has the derivative."""

    form = Form.WINDOW_EXTREMUM
    elements = Elements.CHOSEN

    def jvp(self, primals, tangents, **params):
        (x,), (t,) = primals, tangents
        (out,) = self.apply(x, **params)
        better = elementwise.ge_p if self is reduce_window_max_p else elementwise.le_p
        if {*params["base_dilation"], *params["window_dilation"]} <= {1}:
            return [out], select_and_gather_add_p.apply(t, x, select_prim=better, **params)

        def choose(xs: Sequence[Any], ys: Sequence[Any]) -> list:
            (keep,) = better.apply(xs[0], ys[0])
            return [select(keep, x, y) for x, y in zip(xs, ys, strict=True)]

        dtype = typeof(x).dtype
        inits = [literal(self.identity(dtype), dtype), literal(0, dtype)]
        return [out], fold_windows(choose, [x, t], inits, params)[1:]


reduce_window_sum_p = WindowSum("reduce_window_sum", elementwise.add_p, lambda dtype: 0, "number")
reduce_window_max_p = WindowExtremum("reduce_window_max", elementwise.max_p, lowest_value, "any")
reduce_window_min_p = WindowExtremum("reduce_window_min", elementwise.min_p, highest_value, "any")


# --- one element of each window -------------------------------------------------------------


def worst_value(select_prim: Comparison, dtype: np.dtype) -> Any:
    """Return the value that a selection by ge or le never takes before another."""
    return lowest_value(dtype) if select_prim.direction == "GE" else highest_value(dtype)


class SelectAndGatherAdd(families.LinearInFirst):
    """The element of `tangents` in each window where `operand` has its selected element.

    `select_prim` is ge or le: the first maximum or minimum. Linear in `tangents`. Source:
    StableHLO, reduce_window of pairs.
    """

    name = "select_and_gather_add"
    form = Form.WINDOWS
    cost = Cost.REDUCTION
    label_axes = families.label_along

    def abstract_eval(self, tangents, operand, *, select_prim, **params):
        check_pair(self.name, tangents, operand, operand.shape)
        shape = window_shape(self.name, operand.shape, **params)
        return [ShapedArray(shape, tangents.dtype)]

    def lower(self, hlo, tangents, operand, *, select_prim, **params):
        dtype = operand.aval.dtype
        cells = [ShapedArray((), dtype), ShapedArray((), tangents.aval.dtype)]
        inits = [hlo.constant(worst_value(select_prim, dtype), cells[0]), hlo.constant(0, cells[1])]

        def choose(x: Any, t: Any, y: Any, u: Any) -> list:
            keep = Expr(hlo, *select_prim.lower(hlo, x, y))
            return [keep.select(Expr(hlo, a), Expr(hlo, b)).value for a, b in ((x, y), (t, u))]

        return lower_windows(hlo, [operand, tangents], inits, choose, params)[1:]

    def transpose(self, cts, tangents, operand, *, base_dilation, window_dilation, **params):
        if {*base_dilation, *window_dilation} - {1}:
            raise ShapeError(
                f"{self.name}: dilations must be 1 to transpose; "
                f"got base_dilation {base_dilation}, window_dilation {window_dilation}."
            )
        return [*select_and_scatter_add_p.apply(cts[0], operand, **params), None]

    def batch(self, axis, args, dims, **params):
        args = [batched_at_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
        return self.apply(*args, **insert_window_axis(params, 0)), [0]


class SelectAndScatterAdd(families.LinearInFirst):
    """Each element of `source` added where `operand` has the selected element of its window.

    The transpose of select_and_gather_add; linear in `source`. The rest is zero.
    Source: StableHLO, select_and_scatter.
    """

    name = "select_and_scatter_add"
    form = Form.SELECT_AND_SCATTER
    cost = Cost.REDUCTION
    label_axes = families.label_along

    def abstract_eval(self, source, operand, *, select_prim, **params):
        check_pair(
            self.name, source, operand, count_window_places(self.name, operand.shape, params)
        )
        return [ShapedArray(operand.shape, source.dtype)]

    def lower(self, hlo, source, operand, *, select_prim, **params):
        cell = ShapedArray((), operand.aval.dtype)
        return lower_scatter(
            hlo, operand, source, hlo.constant(0, cell),
            hlo.constant(worst_value(select_prim, cell.dtype), cell),
            lambda x, y: select_prim.lower(hlo, x, y),
            lambda x, y: elementwise.add_p.lower(hlo, x, y), params,
        )  # fmt: skip

    def transpose(self, cts, source, operand, **params):
        ones = (1,) * len(params["window_dimensions"])
        dots = select_and_gather_add_p.apply(
            cts[0], operand, base_dilation=ones, window_dilation=ones, **params
        )
        return [*dots, None]

    batch = SelectAndGatherAdd.batch


class SelectAndScatter(HoldsProgram):
    """Each element of `source` combined, by the program `scatter_jaxpr`, into an array of
    `init_value` where `operand` has the element of its window that `select_jaxpr` selects.

    No derivative. Source: StableHLO, select_and_scatter.
    """

    name = "select_and_scatter"
    program = "scatter_jaxpr"

    def abstract_eval(self, operand, source, init_value, *, select_jaxpr, scatter_jaxpr, **params):
        check_pair(
            self.name, source, operand, count_window_places(self.name, operand.shape, params)
        )
        avals = operand, source, init_value
        return self.split_as(avals, [ShapedArray(operand.shape, source.dtype)])

    def lower(self, hlo, operand, source, init_value, *, select_jaxpr, scatter_jaxpr, **params):
        return lower_scatter(
            hlo, operand, source, init_value, None,
            lambda x, y: lower_jaxpr(hlo, select_jaxpr, [x, y]),
            lambda x, y: lower_jaxpr(hlo, scatter_jaxpr, [x, y]), params,
        )  # fmt: skip

    def batch(self, axis, args, dims, **params):
        (operand, source, init), (d, source_d, init_d) = args, dims
        if init_d is not None:
            raise ShapeError(f"{self.name}: init_value must not be mapped.")
        operand = batched_at_front(operand, d, axis.size)
        source = batched_at_front(source, source_d, axis.size)
        return self.apply(operand, source, init, **insert_window_axis(params, 0)), [0]


def check_pair(op: str, x: ShapedArray, operand: ShapedArray, shape: Sequence[int]) -> None:
    """Raise unless x has the shape wanted, and the dtype of the operand."""
    if x.shape != tuple(shape) or x.dtype != operand.dtype:
        raise ShapeError(
            f"{op}: needs an array of shape {tuple(shape)} beside the operand {operand}, of its "
            f"dtype; got {x}."
        )


def count_window_places(op: str, shape: Sequence[int], params: dict) -> tuple[int, ...]:
    """The number of places of an undilated window on each axis, among other parameters."""
    names = ("window_dimensions", "window_strides", "padding")
    return window_shape(op, shape, **{k: params[k] for k in names})


def lower_scatter(
    hlo: Any,
    operand: Any,
    source: Any,
    init: Any,
    fill: Any,
    choose: Callable,
    combine: Callable,
    params: dict,
) -> list:
    """Write select_and_scatter; with `fill`, padding of the operand is written out, as XLA:CPU
    selects elements of the padding otherwise.
    """
    out = ShapedArray(operand.aval.shape, source.aval.dtype)
    padding = params["padding"]
    written = fill is not None and any(n for row in padding for n in row)
    if written:
        operand = lower_pad(hlo, operand, fill, padding)
    cells = [ShapedArray((), operand.aval.dtype)] * 2
    sums = [ShapedArray((), source.aval.dtype)] * 2
    (y,) = hlo.op(
        "stablehlo.select_and_scatter",
        [operand, source, init],
        [out.update(shape=operand.aval.shape)],
        [hlo.block(cells, choose), hlo.block(sums, combine)],
        window_dimensions=i64s(params["window_dimensions"]),
        window_strides=i64s(params["window_strides"]),
        padding=pairs([(0, 0)] * len(padding) if written else padding),
    )
    return [lower_pad(hlo, y, init, [(-low, -high) for low, high in padding]) if written else y]


def lower_pad(hlo: Any, x: Any, fill: Any, padding: Sequence[tuple[int, int]]) -> Any:
    """Write a padding at the edges; where negative, it cuts away."""
    lows, highs = zip(*padding, strict=True)
    return Expr(hlo, x).pad(lows, highs, Expr(hlo, fill)).value


select_and_gather_add_p = SelectAndGatherAdd()
select_and_scatter_add_p = SelectAndScatterAdd()
select_and_scatter_p = SelectAndScatter()


# --- functions ------------------------------------------------------------------------------


def window_params(
    op: str,
    shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> dict:
    """The parameters of a window, with defaults filled in."""
    ones = (1,) * len(shape)
    params: dict = {
        name: families.index_tuple(ones if given is None else given, op, name)
        for name, given in (
            ("base_dilation", base_dilation),
            ("window_dilation", window_dilation),
            ("window_dimensions", window_dimensions),
            ("window_strides", window_strides),
        )
    }
    if isinstance(padding, str):
        window_shape(op, shape, **params, padding=((0, 0),) * len(shape))
        reach = map(dilated_size, params["window_dimensions"], params["window_dilation"])
        sizes = map(dilated_size, shape, params["base_dilation"])
        padding = pad_pairs(op, padding, [*sizes], [*reach], params["window_strides"])
    return {**params, "padding": families.index_pairs(op, "padding", padding)}


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce each window of an array by a function, as pooling does.

    If the function is `lax.add`, `lax.max` or `lax.min`, a fast and differentiable operation runs.

    Args:
      operand: an array, or a pytree of arrays of one shape that are reduced together.
      init_value: a scalar of the operand's dtype, or a pytree of scalars like `operand`. It is the
        neutral element of the computation, and the value of the padding.
      computation: a function `computation(a, b)` of two scalars, or two pytrees of scalars, that
        returns one. It must be associative.
      window_dimensions: the size of the window on each axis, ints.
      window_strides: the distance between windows on each axis. By default it is 1.
      padding: "VALID", the default, "SAME", "SAME_LOWER", or a pair (low, high) for each axis.
      base_dilation: the distance between elements of the operand on each axis; padding is inserted
        between them. By default it is 1.
      window_dilation: the distance between elements of a window on each axis. By default it is 1.

    Returns:
      An array, or a pytree of arrays, with an element for each window.

    Raises:
      ShapeError: an argument does not have one entry for each axis.

    >>> x = jnp.array([1.0, 3.0, 2.0, 0.0])
    >>> print(lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,)))
    [3. 2.]
    >>> print(lax.reduce_window(x, 0.0, lax.add, (2,), padding="SAME"))
    [4. 5. 2. 0.]
    """
    xs, tree = flatten(operand)
    inits = starting_values("reduce_window", xs, init_value, tree)
    avals = [typeof(x) for x in xs]
    window = (window_dimensions, window_strides, padding, base_dilation, window_dilation)
    params = window_params("reduce_window", avals[0].shape, *window)
    if any(has_symbolic_size(ends) for ends in params["padding"]):  # a window's must be numbers
        by = [(*ends, d - 1) for ends, d in zip(params["padding"], params["base_dilation"])]
        xs = [pad(x, init, by) for x, init in zip(xs, inits)]
        avals = [typeof(x) for x in xs]
        ones = (1,) * len(by)
        params = {**params, "padding": ((0, 0),) * len(by), "base_dilation": ones}
    jaxpr = stage_reducer("reduce_window", computation, avals, tree)
    found = find_monoid(jaxpr)
    for prim in (reduce_window_sum_p, reduce_window_max_p, reduce_window_min_p):
        known = found is not None and prim.combine is found.combine
        if known and is_identity(inits[0], prim.identity(avals[0].dtype)):
            return unflatten(tree, prim.apply(xs[0], **params))
    outs = reduce_window_p.apply(*xs, *inits, jaxpr=jaxpr, consts=(), **params)
    return unflatten(tree, outs)


def define_window_reducer(prim: WindowReduction) -> Callable[..., Any]:
    """The function of a window reduction."""

    def fun(
        operand: Any,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int] | None = None,
        padding: str | Sequence[tuple[int, int]] = "VALID",
        base_dilation: Sequence[int] | None = None,
        window_dilation: Sequence[int] | None = None,
    ) -> Any:
        window = (window_dimensions, window_strides, padding, base_dilation, window_dilation)
        return prim.apply(operand, **window_params(prim.name, typeof(operand).shape, *window))[0]

    return elementwise.name_function(fun, prim)


reduce_window_sum = define_window_reducer(reduce_window_sum_p)
reduce_window_max = define_window_reducer(reduce_window_max_p)
reduce_window_min = define_window_reducer(reduce_window_min_p)


def select_and_gather_add(
    tangents: Any,
    operand: Any,
    select_prim: Primitive,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Return the tangent of the first maximum (ge) or minimum (le) of each window."""
    window = (window_dimensions, window_strides, padding, base_dilation, window_dilation)
    params = window_params("select_and_gather_add", typeof(operand).shape, *window)
    return select_and_gather_add_p.apply(tangents, operand, select_prim=select_prim, **params)[0]


def undilated_params(op: str, shape: Sequence[int], *window: Any) -> dict:
    """The parameters of a window that cannot be dilated_size."""
    params = window_params(op, shape, *window)
    return {k: v for k, v in params.items() if not k.endswith("dilation")}


def select_and_scatter_add(
    source: Any,
    operand: Any,
    select_prim: Primitive,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
) -> Any:
    """Each element of `source` added where its window has the first maximum or minimum."""
    window = (window_dimensions, window_strides, padding)
    params = undilated_params("select_and_scatter_add", typeof(operand).shape, *window)
    return select_and_scatter_add_p.apply(source, operand, select_prim=select_prim, **params)[0]


def select_and_scatter(
    operand: Any,
    select: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    source: Any,
    init_value: Any,
    scatter: Callable[[Any, Any], Any],
) -> Any:
    """Each element of `source` combined by `scatter` where its window has the element selected.

    `select(a, b)` says whether a is taken before b; `scatter(a, b)` combines what meets.
    """
    window = (window_dimensions, window_strides, padding)
    params = undilated_params("select_and_scatter", typeof(operand).shape, *window)
    cell = ShapedArray((), typeof(operand).dtype)
    chosen, consts = stage(lambda x, y: [select(x, y)], [cell, cell])
    if consts or chosen.out_avals != [ShapedArray((), np.bool_)]:
        raise DtypeError(
            "select_and_scatter: select must compare two scalars, using nothing else; "
            f"got results {families.show_types(chosen.out_avals)}."
        )
    leaves, tree = flatten(source)
    (init,) = starting_values("select_and_scatter", leaves, init_value, tree)
    combined = stage_reducer("select_and_scatter", scatter, [typeof(source)], tree)
    return select_and_scatter_p.apply(
        operand, source, init, select_jaxpr=chosen, scatter_jaxpr=combined, **params
    )[0]
