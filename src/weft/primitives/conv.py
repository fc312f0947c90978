"""Convolution: `conv_general_dilated`, and the functions that are written with it.

Each variant and each derivative is one convolution with other strides, dilations and paddings.
Pooling is in window.py; products without a window and the precisions of both are in dot.py.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.element import Number
from weft.core.facts import Cost
from weft.core.form import Form
from weft.core.primitive import Axes, Linear
from weft.errors import DtypeError, ShapeError
from weft.mesh.typed import check_terms, resolve_sharding, typed_as
from weft.primitives import dot, layout, reshard
from weft.primitives.elementwise import eq
from weft.primitives.expr import Expr
from weft.primitives.families import check_integer, index_pairs, index_tuple, read_spread
from weft.primitives.window import count_places, dilated_size, pad_pairs
from weft.util import is_below
from weft.xla.hlo import bools, i64s, pairs
from weft.xla.typing import Array, ArrayLike, DTypeLike

Padding: TypeAlias = str | Sequence[tuple[int, int]]


class ConvDimensionNumbers(NamedTuple):
    """The order of the axes of the operands and the result of a convolution.

    `lax.conv_dimension_numbers` makes it from letters such as `("NCHW", "OIHW", "NCHW")`.

    Args:
      lhs_spec: the positions of the batch axis, the feature axis and the spatial axes of `lhs`.
      rhs_spec: the positions of the output features, the input features and the spatial axes of
        `rhs`.
      out_spec: the positions of the batch axis, the feature axis and the spatial axes of the
        result.

    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).lhs_spec
    (0, 3, 1, 2)
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = (
    tuple[str, str, str] | Sequence[str] | ConvDimensionNumbers | None
)

# --- dimension numbers ----------------------------------------------------------------------


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Return the axes that dimension numbers name.

    Args:
      lhs_shape: the shape of the input; its length is the rank.
      rhs_shape: the shape of the kernel.
      dimension_numbers: three strings with a letter for each axis of the input, the kernel and the
        result, as ("NHWC", "HWIO", "NHWC"). N is the batch, C the features, O and I are the output
        and input features of the kernel. Other letters are spatial axes, in the order of the second
        string. None is ("NCHW", "OIHW", "NCHW") with the right number of spatial axes.

    Returns:
      A `ConvDimensionNumbers`: for input and result the axes (batch, feature, spatial axes), for
      the kernel (output feature, input feature, spatial axes).

    >>> lax.conv_dimension_numbers((1, 8, 3), (3, 3, 5), ("NWC", "WIO", "NWC"))
    ConvDimensionNumbers(lhs_spec=(0, 2, 1), rhs_spec=(2, 1, 0), out_spec=(0, 2, 1))
    """
    lhs_shape = index_tuple(lhs_shape, "conv", "lhs_shape")
    rhs_shape = index_tuple(rhs_shape, "conv", "rhs_shape")
    ndim = len(lhs_shape)
    if len(rhs_shape) != ndim or ndim < 2:
        raise ShapeError(
            "conv: lhs and rhs must have equal ranks of at least 2; "
            f"got shapes {tuple(lhs_shape)}, {tuple(rhs_shape)}."
        )
    if dimension_numbers is None:
        specs: Sequence = (tuple(range(ndim)),) * 3
    elif isinstance(dimension_numbers, ConvDimensionNumbers):
        specs = tuple(map(tuple, dimension_numbers))
    else:
        specs = conv_general_permutations(dimension_numbers)
    if any(sorted(spec) != list(range(ndim)) for spec in specs):
        raise ShapeError(
            f"conv: dimension_numbers must name each of {ndim} axes once; "
            f"got {tuple(dimension_numbers)}."
        )
    return ConvDimensionNumbers(*specs)


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Return the axes in the order batch, feature, spatial axes for strings of dimension numbers.

    Args:
      dimension_numbers: three strings, as for `conv_dimension_numbers`.

    Returns:
      A tuple of three tuples of ints. For the kernel, output features come first, then input
      features.

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    given = dimension_numbers
    if (
        not isinstance(given, tuple | list)
        or len(given) != 3
        or not all(isinstance(s, str) for s in given)
    ):
        raise ShapeError(
            "conv: dimension_numbers must be None, a ConvDimensionNumbers, or three strings; "
            f'got {given!r}. Hint: ("NHWC", "HWIO", "NHWC")'
        )
    lhs, rhs, out = given
    for spec, first, second in ((lhs, "N", "C"), (rhs, "O", "I"), (out, "N", "C")):
        if spec.count(first) != 1 or spec.count(second) != 1 or len(set(spec)) != len(spec):
            raise ShapeError(
                f"conv: each string of dimension_numbers must name {first}, {second} and distinct "
                f"spatial axes; got {spec!r}."
            )
    spatial = [c for c in rhs if c not in "OI"]
    if not set(lhs) - set("NC") == set(spatial) == set(out) - set("NC"):
        raise ShapeError(
            f"conv: dimension_numbers must name the same spatial axes thrice; got {tuple(given)}."
        )
    orders = ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
    return tuple(tuple(spec.index(c) for c in (*two, *spatial)) for spec, two in orders)


# --- sizes ----------------------------------------------------------------------------------


def spatial_padding(
    op: str, padding: Any, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Return the (low, high) padding of each spatial axis, from pairs, "SAME" or "VALID"."""
    pads = pad_pairs(op, padding, sizes, windows, strides)
    if len(pads) != len(sizes):
        raise ShapeError(
            f"{op}: padding must have a (low, high) pair for each of {len(sizes)} spatial "
            f"axes; got {pads}."
        )
    return pads


# --- conv_general_dilated -------------------------------------------------------------------


class ConvGeneralDilated(dot.Bilinear):
    """out[n, o, i] = sum over c, k of x[n, c, i * strides + k * rhs_dilation] * rhs[o, c, k].

    x is lhs with lhs_dilation - 1 zeros between neighbours, then padded with zeros, or cropped
    where the padding is negative. The kernel is not flipped. Shapes: by `dimension_numbers`, lhs
    (n, c, spatial), rhs (o, c, spatial), out (n, o, spatial). With feature_group_count g, rhs has c
    / g input features, and the output features in group j are computed from the lhs features in
    group j. With batch_group_count g, out has n / g batches, and the output features in group j are
    computed from the lhs batches in group j. Dtypes: equal; `preferred_element_type` is the dtype
    of the result. Source: StableHLO, convolution.
    """

    name = "conv_general_dilated"
    cost = Cost.CONTRACTION
    form = Form.CONVOLUTION

    def abstract_eval(self, lhs, rhs, *, preferred_element_type, out_sharding=None, **params):
        if lhs.dtype != rhs.dtype:
            raise DtypeError(f"{self.name}: operands must have equal dtypes; got {lhs}, {rhs}.")
        shape = result_shape(lhs, rhs, **params)
        _, (dtype, weak) = dot.product_dtype(self.name, lhs, rhs, preferred_element_type)
        out = typed_as(ShapedArray(shape, dtype, weak), out_sharding)
        check_terms(self.name, out, *[(x, range(x.ndim)) for x in (lhs, rhs)])
        return [out]

    def label_axes(self, avals, outs, *, dimension_numbers, feature_group_count, **params):
        lhs, rhs, out = dimension_numbers
        rows = [[None] * a.ndim for a in (*avals, *outs)]
        whole = feature_group_count != 1 or params["batch_group_count"] != 1
        for i, j in zip(lhs[2:], out[2:], strict=True):
            rows[0][i] = rows[2][j] = i
        if not whole:
            rows[0][lhs[1]] = rows[1][rhs[1]] = "in"
            rows[1][rhs[0]] = rows[2][out[1]] = "out"
        if params["batch_group_count"] == 1:
            rows[0][lhs[0]] = rows[2][out[0]] = "batch"
        return Axes(rows[:2], rows[2:], contracts=True)

    def element(self, i, lhs, rhs, *, dimension_numbers, preferred_element_type, **params):
        lhs_spec, rhs_spec, out_spec = dimension_numbers
        n, o, *place = [i[a] for a in out_spec]
        features, batches = params["feature_group_count"], params["batch_group_count"]
        count, inputs, outs = lhs.shape[lhs_spec[0]], rhs.shape[rhs_spec[1]], rhs.shape[rhs_spec[0]]
        first = (o // (outs // features) if features != 1 else 0) * inputs
        n = n + (o // (outs // batches) if batches != 1 else 0) * (count // batches)
        names = "window_strides", "rhs_dilation", "padding"
        axes = [*zip(place, *(params[name] for name in names), strict=True)]
        steps = dict(zip(lhs_spec, (None, None, *params["lhs_dilation"]), strict=True))

        def read(c: Any, *window: Any) -> tuple:
            rows = zip(axes, window, strict=True)
            places = [k * stride + w * wide - low for (k, stride, wide, (low, _)), w in rows]
            at = dict(zip(lhs_spec, (n, c + first, *places), strict=True))
            to = dict(zip(rhs_spec, (o, c, *window), strict=True))
            order, zero = range(lhs.ndim), Number(0, lhs.dtype)
            x = read_spread(lhs, [at[a] for a in order], [steps[a] for a in order], zero)
            return x, rhs[[to[a] for a in order]]

        sizes = [rhs.shape[a] for a in rhs_spec[1:]]
        return [dot.add_products(self.name, lhs, rhs, preferred_element_type, sizes, read)]

    def lower(self, hlo, lhs, rhs, *, dimension_numbers, **params):
        (out,) = self.type_of(
            (lhs.aval, rhs.aval), {"dimension_numbers": dimension_numbers, **params}
        )
        attrs = {
            "batch_group_count": f"{params['batch_group_count']} : i64",
            "dimension_numbers": dimensions_text(dimension_numbers),
            "feature_group_count": f"{params['feature_group_count']} : i64",
            "lhs_dilation": i64s(params["lhs_dilation"]),
            "padding": pairs(params["padding"]),
            "precision_config": dot.precision_config(params["precision"]),
            "rhs_dilation": i64s(params["rhs_dilation"]),
            "window_reversal": bools([False] * len(params["padding"])),
            "window_strides": i64s(params["window_strides"]),
        }
        convolve = lambda x, y, out: hlo.op("stablehlo.convolution", [x, y], [out], **attrs)
        if not dtypes.PACKED.isdisjoint((lhs.aval.dtype, rhs.aval.dtype, out.dtype)):
            # XLA:CPU has no convolutions of integers of two bits
            x, y = (hlo.convert(v, dtypes.whole_byte_dtype(v.aval.dtype)) for v in (lhs, rhs))
            (z,) = convolve(x, y, out.update(dtype=dtypes.whole_byte_dtype(out.dtype)))
            return [hlo.convert(z, out.dtype)]
        if not dtypes.is_complex(lhs.aval.dtype):
            return convolve(lhs, rhs, out)
        a, b, c, d = (Expr(hlo, x).part(name) for x in (lhs, rhs) for name in ("real", "imag"))
        part = out.update(dtype=dtypes.real_dtype(out.dtype))
        times = lambda x, y: Expr(hlo, *convolve(x.value, y.value, part))
        real, imag = multiply_in_parts(times, operator.add, operator.sub, a, b, c, d)
        return [real.make("complex", out, imag).value]

    def transpose(self, cts, lhs, rhs, **params):
        side, x, other = (0, lhs, rhs) if isinstance(lhs, Linear) else (1, rhs, lhs)
        (ct,) = cts
        if 0 in (x.aval.size, typeof(other).size, typeof(ct).size):
            g = layout.zeros(x.aval)
        else:
            solve = lhs_cotangent if side == 0 else rhs_cotangent
            dtype, _ = dot.common_dtype(self.name, typeof(other), typeof(ct))
            params["out_sharding"] = reshard.sharding_of_cotangent(x.aval, (ct, other))
            g = solve(
                layout.convert(ct, dtype), layout.convert(other, dtype), x.aval.shape, **params
            )
        g = layout.convert(g, x.aval.dtype)
        return [g, None] if side == 0 else [None, g]

    def batch(self, axis, args, dims, *, out_sharding, **params):
        """A mapped axis of lhs joins its batches, of rhs its features; one of both is a group."""
        if axis.size == 0:
            avals = [
                a if d is None else a.update(shape=a.shape[:d] + a.shape[d + 1 :])
                for a, d in zip(map(typeof, args), dims, strict=True)
            ]
            (out,) = self.abstract_eval(*avals, **params)
            return [layout.zeros(out.update(shape=(0, *out.shape)))], [0]
        if out_sharding is None:
            return self.batch_groups(axis, args, dims, out_sharding=None, **params)
        free = map(reshard.hide_layout, args)
        (out,), (at,) = self.batch_groups(axis, free, dims, out_sharding=None, **params)
        x, d = next((x, d) for x, d in zip(args, dims, strict=True) if d is not None)
        to = reshard.insert_axis(out_sharding, at, x, d, axis.spmd)
        return reshard.reshard_p.apply(out, dst_sharding=to, free="operand"), [at]

    def batch_groups(self, axis, args, dims, **params):
        """`batch`, where operands say how the result is split."""
        (lhs, rhs), (i, j), numbers = args, dims, params["dimension_numbers"]
        features, batches = params["feature_group_count"], params["batch_group_count"]
        if j is None:
            lhs = merge_mapped(lhs, i, numbers.lhs_spec[0], batches)
            (out,) = self.apply(lhs, rhs, **params)
            return split_mapped(out, numbers.out_spec[0], axis.size)
        if i is None:
            rhs = merge_mapped(rhs, j, numbers.rhs_spec[0], features * batches)
            (out,) = self.apply(lhs, rhs, **params)
            return split_mapped(out, numbers.out_spec[1], axis.size, features * batches)
        grouped = "batch_group_count" if batches != 1 else "feature_group_count"
        lhs = merge_mapped(lhs, i, numbers.lhs_spec[0 if batches != 1 else 1])
        rhs = merge_mapped(rhs, j, numbers.rhs_spec[0])
        params[grouped] *= axis.size
        (out,) = self.apply(lhs, rhs, **params)
        return split_mapped(out, numbers.out_spec[1], axis.size)

    def pretty_params(self, params):
        return reshard.show_spec(params, "out_sharding")

    def read_params(self, params, avals, out_avals):
        return reshard.read_spec(params, "out_sharding", (*avals, *out_avals))


conv_general_dilated_p = ConvGeneralDilated()


def check_conv(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    **params: Any,
) -> None:
    """Raise ShapeError unless the operands of a convolution fit together."""
    op = "conv_general_dilated"
    if not lhs.ndim == rhs.ndim == len(dimension_numbers.lhs_spec):
        raise ShapeError(f"{op}: lhs and rhs must have equal ranks; got {lhs}, {rhs}.")
    n, c, *sizes = [lhs.shape[a] for a in dimension_numbers.lhs_spec]
    o, i, *windows = [rhs.shape[a] for a in dimension_numbers.rhs_spec]
    for name in ("window_strides", "lhs_dilation", "rhs_dilation"):
        given = params[name]
        if len(given) != len(sizes) or any(d < 1 for d in given):
            raise ShapeError(
                f"{op}: {name} must have a positive integer for each of {len(sizes)} spatial "
                f"axes; got {given}."
            )
    counts = feature_group_count, batch_group_count
    if any(is_below(n, 1) for n in counts) or 1 not in counts:
        raise ShapeError(
            f"{op}: feature_group_count and batch_group_count must be positive, and one of them "
            f"1; got {feature_group_count}, {batch_group_count}."
        )
    if c != i * feature_group_count:
        raise ShapeError(
            f"{op}: lhs must have as many features as rhs has inputs, times feature_group_count; "
            f"got {c} of {lhs}, {i} of {rhs}, feature_group_count {feature_group_count}."
        )
    if o % math.prod(counts) or n % batch_group_count:
        raise ShapeError(
            f"{op}: group counts must divide the output features of rhs and batch_group_count the "
            f"batches of lhs; got {o} of {rhs}, {n} of {lhs}, group counts {counts}."
        )
    if 0 in windows:
        raise ShapeError(f"{op}: the window must not be empty; got {rhs}.")


def result_shape(lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> list[int]:
    """The shape of a convolution. Raises ShapeError where the operands do not fit together."""
    check_conv(lhs, rhs, **params)
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    names = ("padding", "lhs_dilation", "rhs_dilation", "window_strides")
    padding, lhs_dilation, rhs_dilation, window_strides = (params[name] for name in names)
    n, _, *sizes = [lhs.shape[a] for a in lhs_spec]
    o, _, *windows = [rhs.shape[a] for a in rhs_spec]
    padded = [
        dilated_size(s, d) + lo + hi
        for s, d, (lo, hi) in zip(sizes, lhs_dilation, padding, strict=True)
    ]
    if any(s < 0 for s in padded):
        raise ShapeError(
            "conv_general_dilated: negative padding must not exceed the axis; "
            f"got padding {padding} for {lhs}."
        )
    places = [
        count_places(p, dilated_size(k, d), s)
        for p, k, d, s in zip(padded, windows, rhs_dilation, window_strides, strict=True)
    ]
    shape = [0] * lhs.ndim
    for axis, size in zip(out_spec, (n // params["batch_group_count"], o, *places), strict=True):
        shape[axis] = size
    return shape


def dimensions_text(numbers: ConvDimensionNumbers) -> str:
    """The StableHLO attribute, `#stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>`."""

    def names(spec: Sequence[int], first: str, second: str) -> str:
        letters = [first, second, *map(str, range(len(spec) - 2))]
        return f"[{', '.join(letters[spec.index(a)] for a in range(len(spec)))}]"

    lhs, rhs, out = numbers
    left = f"{names(lhs, 'b', 'f')}x{names(rhs, 'o', 'i')}"
    return f"#stablehlo.conv<{left}->{names(out, 'b', 'f')}>"


def multiply_in_parts(
    times: Callable, add: Callable, sub: Callable, a: Any, b: Any, c: Any, d: Any
) -> tuple[Any, Any]:
    """Return the parts of (a + ib) (c + id), computed with three real products (Gauss).

    They are s - b (c + d) and s + a (d - c), with s = (a + b) c. XLA has a fast path for real
    products.
    """
    s = times(add(a, b), c)
    imag = add(s, times(a, sub(d, c)))
    return sub(s, times(b, add(c, d))), imag


# --- derivatives and batching: the axes -----------------------------------------------------


def lhs_cotangent(ct: Any, rhs: Any, shape: tuple, **params: Any) -> Any:
    """Return the cotangent of lhs: `ct` dilated by the strides, with the kernel flipped."""
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    batches = params["batch_group_count"]
    groups = params["feature_group_count"] * batches
    o, i, *spatial = rhs_spec
    windows = [typeof(rhs).shape[a] for a in spatial]
    rhs = layout.rev(move_group(rhs, o, i, groups), spatial)
    rows = spatial_sizes(shape, typeof(ct).shape, windows, params)
    padding = [(k - 1 - low, n - m + low) for n, m, k, low in rows]
    params |= {
        "dimension_numbers": ConvDimensionNumbers(out_spec, (i, o, *spatial), lhs_spec),
        "window_strides": params["lhs_dilation"],
        "lhs_dilation": params["window_strides"],
        "padding": tuple(padding),
        "feature_group_count": groups,
        "batch_group_count": 1,
    }
    (g,) = conv_general_dilated_p.apply(ct, rhs, **params)
    return move_group(g, lhs_spec[1], lhs_spec[0], batches)


def rhs_cotangent(ct: Any, lhs: Any, shape: tuple, **params: Any) -> Any:
    """Return the cotangent of rhs: lhs with `ct` as the kernel, and batches summed as features."""
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    windows = [shape[a] for a in rhs_spec[2:]]
    rows = spatial_sizes(typeof(lhs).shape, typeof(ct).shape, windows, params)
    padding = [(low, k + m - 1 - n - low) for n, m, k, low in rows]

    def swapped(spec: Sequence[int]) -> tuple[int, ...]:
        return (spec[1], spec[0], *spec[2:])

    params |= {
        "dimension_numbers": ConvDimensionNumbers(*map(swapped, (lhs_spec, out_spec, rhs_spec))),
        "window_strides": params["rhs_dilation"],
        "rhs_dilation": params["window_strides"],
        "padding": tuple(padding),
        "feature_group_count": params["batch_group_count"],
        "batch_group_count": params["feature_group_count"],
    }
    return conv_general_dilated_p.apply(lhs, ct, **params)[0]


def spatial_sizes(lhs: tuple, out: tuple, windows: Sequence[int], params: dict) -> list:
    """For each spatial axis the sizes of lhs, result and window, dilated, and the low padding."""
    lhs_spec, _, out_spec = params["dimension_numbers"]
    names = ("padding", "window_strides", "lhs_dilation", "rhs_dilation")
    sizes = [lhs[a] for a in lhs_spec[2:]], [out[a] for a in out_spec[2:]], windows
    return [
        (dilated_size(n, ld), dilated_size(m, s), dilated_size(k, rd), low)
        for n, m, k, (low, _), s, ld, rd in zip(*sizes, *(params[p] for p in names), strict=True)
    ]


def move_group(x: Any, source: int, target: int, groups: int) -> Any:
    """`x` with the outer part of axis `source`, of size `groups`, as the outer part of `target`."""
    if groups == 1:
        return x
    shape = typeof(x).shape
    parts = (*shape[:source], groups, shape[source] // groups, *shape[source + 1 :])
    rest = [*range(source), *range(source + 1, len(parts))]
    rest.insert(target, source)
    out = list(shape)
    out[source] //= groups
    out[target] *= groups
    return layout.reshape(layout.transpose(layout.reshape(x, parts), rest), out)


def merge_mapped(x: Any, mapped: int, into: int, groups: int = 1) -> Any:
    """`x` with its mapped axis joined to axis `into` of an element, within each of its groups."""
    x = layout.move_to_front(x, mapped)
    size, *shape = typeof(x).shape
    parts = (size, *shape[:into], groups, shape[into] // groups, *shape[into + 1 :])
    order = [*range(1, into + 2), 0, *range(into + 2, len(parts))]
    if groups == 1:
        parts, order = (size, *shape), [*range(1, into + 1), 0, *range(into + 1, len(shape) + 1)]
    shape[into] *= size
    return layout.reshape(layout.transpose(layout.reshape(x, parts), order), shape)


def split_mapped(x: Any, into: int, size: int, groups: int = 1) -> tuple[list, list]:
    """The inverse of `merge_mapped`: the array, and where its mapped axis is, as in batch rules."""
    shape = typeof(x).shape
    each = shape[into] // size
    if groups == 1:
        return [layout.reshape(x, (*shape[:into], size, each, *shape[into + 1 :]))], [into]
    x = layout.reshape(x, (*shape[:into], groups, size, each // groups, *shape[into + 1 :]))
    x = layout.move_to_front(x, into + 1)
    return [layout.reshape(x, (size, *shape[:into], each, *shape[into + 1 :]))], [0]


# --- what users call ------------------------------------------------------------------------


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: dot.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Convolve arrays: slide a kernel over the input and sum the products.

    The kernel is not flipped, unlike in `np.convolve`; it is a correlation. Strides, dilations,
    padding and groups cover the convolutions of neural networks.

    Args:
      lhs: the input, an array with a batch axis, a feature axis and n spatial axes.
      rhs: the kernel, an array of the same dtype with an axis of output features, one of input
        features and n spatial axes.
      window_strides: the step of the kernel on each spatial axis, ints >= 1.
      padding: "SAME", "SAME_LOWER", "VALID", or a pair (low, high) for each spatial axis; negative
        padding removes elements.
      lhs_dilation: the distance between elements of the input, ints. By default it is 1. It needs
        pairs of padding; for a name use `conv_transpose`.
      rhs_dilation: the distance between elements of the kernel, ints: an "atrous" convolution. By
        default it is 1.
      dimension_numbers: names the axes, as ("NHWC", "HWIO", "NHWC") for input, kernel and result;
        see `conv_dimension_numbers`. The default has batch and features in front, as for `conv`.
      feature_group_count: the number of groups of features that are convolved separately. The
        kernel has the features of one group. If each feature is a group, the convolution is
        depthwise. The default is 1.
      batch_group_count: the number of groups that the batch is split into, each with a group of the
        output features. The default is 1.
      precision: the precision of the products, as for `dot_general`. None is the default.
      preferred_element_type: the dtype of the result. By default it is the dtype of the operands.
      out_sharding: the sharding of the result over explicit axes of a mesh. By default it follows
        from the operands.

    Returns:
      An array with a batch axis, an axis of output features and n spatial axes.

    Raises:
      DtypeError: the operands differ in dtype.
      ShapeError: the numbers of features differ; an argument does not have an entry for each
        spatial axis; a named padding is used with `lhs_dilation`.

    >>> x, k = jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 5))
    >>> numbers = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=numbers).shape
    (1, 4, 4, 5)

    The kernel is not flipped:

    >>> x = jnp.arange(4.0).reshape(1, 1, 4)
    >>> print(lax.conv_general_dilated(x, jnp.array([[[1.0, 2.0, 3.0]]]), (1,), "VALID"))
    [[[ 8. 14.]]]

    A depthwise convolution has a kernel of one input feature:

    >>> x, k = jnp.ones((1, 2, 8)), jnp.ones((4, 1, 3))
    >>> lax.conv_general_dilated(x, k, (1,), "VALID", feature_group_count=2).shape
    (1, 4, 6)
    """
    op = "conv_general_dilated"
    x, k = typeof(lhs), typeof(rhs)
    numbers = conv_dimension_numbers(x.shape, k.shape, dimension_numbers)
    spatial = len(numbers.lhs_spec) - 2
    strides = index_tuple(window_strides, op, "window_strides")
    ones = (1,) * spatial
    stretch = ones if lhs_dilation is None else index_tuple(lhs_dilation, op, "lhs_dilation")
    spread = ones if rhs_dilation is None else index_tuple(rhs_dilation, op, "rhs_dilation")
    if isinstance(padding, str):
        if any(d != 1 for d in stretch):
            raise ShapeError(
                f"{op}: padding must be (low, high) pairs where lhs_dilation is given; "
                f"got {padding!r}. Hint: conv_transpose(lhs, rhs, strides, {padding!r})"
            )
        if not len(strides) == len(spread) == spatial or min((1, *strides, *spread)) < 1:
            padding = "VALID"  # the type rule raises the error
    axes = numbers.rhs_spec[2:]
    windows = [dilated_size(k.shape[a], d) for a, d in zip(axes, spread, strict=False)]
    sizes = [x.shape[a] for a in numbers.lhs_spec[2:]]
    if preferred_element_type is not None:
        preferred_element_type = dtypes.check_user_dtype(preferred_element_type, op)
    return conv_general_dilated_p.apply(
        lhs,
        rhs,
        window_strides=strides,
        padding=spatial_padding(op, padding, sizes, windows, strides),
        lhs_dilation=stretch,
        rhs_dilation=spread,
        dimension_numbers=numbers,
        feature_group_count=check_integer(op, "feature_group_count", feature_group_count),
        batch_group_count=check_integer(op, "batch_group_count", batch_group_count),
        precision=dot.canonical_precision(op, precision),
        preferred_element_type=preferred_element_type,
        out_sharding=resolve_sharding(op, out_sharding, x.ndim, lhs, rhs),
    )[0]


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: dot.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve arrays with the batch and the features in front.

    It is `conv_general_dilated` with the axes (batch, feature, spatial axes). The kernel is not
    flipped, unlike in `np.convolve`.

    Args:
      lhs: the input, an array of shape (batch, features, spatial axes).
      rhs: the kernel, an array of the same dtype and of shape (output features, features, spatial
        axes).
      window_strides: the step of the kernel on each spatial axis, ints.
      padding: "SAME", "SAME_LOWER" or "VALID".
      precision: the precision of the products, as for `dot_general`. None is the default.
      preferred_element_type: the dtype of the result. By default it is the dtype of the operands.

    Returns:
      An array of shape (batch, output features, spatial axes).

    Raises:
      ShapeError: the numbers of features differ, or the padding has another name.

    >>> lax.conv(jnp.ones((1, 3, 8, 8)), jnp.ones((5, 3, 3, 3)), (2, 2), "SAME").shape
    (1, 5, 4, 4)
    """
    return conv_with_general_padding(
        lhs, rhs, window_strides, padding, None, None, precision, preferred_element_type
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: dot.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve arrays with the batch and the features in front, with any padding and dilations.

    Args:
      lhs: the input, an array of shape (batch, features, spatial axes).
      rhs: the kernel, an array of shape (output features, features, spatial axes).
      window_strides: the step of the kernel on each spatial axis, ints.
      padding: as for `conv_general_dilated`.
      lhs_dilation: the distance between elements of the input; None for 1.
      rhs_dilation: the distance between elements of the kernel; None for 1.
      precision: the precision of the products, as for `dot_general`. None is the default.
      preferred_element_type: the dtype of the result. By default it is the dtype of the operands.

    Returns:
      An array of shape (batch, output features, spatial axes).

    >>> x, k = jnp.ones((1, 1, 8)), jnp.ones((1, 1, 3))
    >>> lax.conv_with_general_padding(x, k, (1,), [(2, 2)], None, (2,)).shape
    (1, 1, 8)
    """
    kinds = {"precision": precision, "preferred_element_type": preferred_element_type}
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, **kinds
    )


_CHANNELS_LAST = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: dot.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Compute a transposed convolution, which undoes the shape of a strided one.

    It is used to enlarge images. It is often called deconvolution, though it does not invert the
    convolution.

    Args:
      lhs: the input, an array with a batch axis, a feature axis and n spatial axes.
      rhs: the kernel, an array of the same dtype.
      strides: the factor of enlargement on each spatial axis, ints.
      padding: "SAME" multiplies sizes by `strides`. "VALID" gives the largest size that the strided
        convolution maps to the input's. Pairs are the padding of the dilated input; with
        `use_consistent_padding`, the padding of the strided convolution.
      rhs_dilation: the distance between elements of the kernel. By default it is 1.
      dimension_numbers: names the axes; see `conv_dimension_numbers`. The default has the features
        last, as ("NHWC", "HWIO", "NHWC").
      transpose_kernel: if True, `rhs` is the kernel of the strided convolution: its spatial axes
        are flipped and its features are swapped. The result is then the gradient of the strided
        convolution. The default is False.
      precision: the precision of the products, as for `dot_general`. None is the default.
      preferred_element_type: the dtype of the result. By default it is the dtype of the operands.
      use_consistent_padding: changes the meaning of pairs of padding, as said there. The default is
        False.

    Returns:
      An array with a batch axis, an axis of output features and n spatial axes.

    >>> lax.conv_transpose(jnp.ones((1, 4, 4, 3)), jnp.ones((3, 3, 3, 5)), (2, 2), "SAME").shape
    (1, 8, 8, 5)
    """
    x, k = typeof(lhs), typeof(rhs)
    if dimension_numbers is None:
        if x.ndim not in _CHANNELS_LAST:
            raise ShapeError(
                f"conv_transpose: dimension_numbers must be given for rank {x.ndim}; got None."
            )
        dimension_numbers = _CHANNELS_LAST[x.ndim]
    numbers = conv_dimension_numbers(x.shape, k.shape, dimension_numbers)
    o, i, *spatial = numbers.rhs_spec
    if rhs_dilation is None:
        rhs_dilation = (1,) * len(spatial)
    spread = index_tuple(rhs_dilation, "conv_transpose", "rhs_dilation")
    windows = [dilated_size(k.shape[a], d) for a, d in zip(spatial, spread, strict=False)]
    if not isinstance(padding, str):
        if use_consistent_padding:
            rows = zip(windows, index_pairs("conv_transpose", "padding", padding), strict=False)
            padding = [(w - 1 - lo, w - 1 - hi) for w, (lo, hi) in rows]
    elif padding in ("SAME", "VALID"):
        rows = zip(windows, strides, strict=True)
        padding = [transposed_padding(w, s, padding) for w, s in rows]
    if transpose_kernel:
        rhs = layout.rev(rhs, spatial)
        order = list(range(k.ndim))
        order[o], order[i] = i, o
        rhs = layout.transpose(rhs, order)
    kinds = {"precision": precision, "preferred_element_type": preferred_element_type}
    ones = (1,) * len(spatial)
    return conv_general_dilated(lhs, rhs, ones, padding, strides, rhs_dilation, numbers, **kinds)


def transposed_padding(window: int, stride: int, padding: str) -> tuple[int, int]:
    """Return the padding of an axis in `conv_transpose`, for a strided convolution."""
    overlap = max(window - stride, 0)
    low = window - 1 - (overlap // 2 if padding == "SAME" else 0)
    total = window + stride - 2 + (overlap if padding == "VALID" else 0)
    return low, total - low


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: dot.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return the window of the input at each position of a convolution.

    A convolution is then a product of the windows and the kernel, and other functions of windows
    may be computed too.

    Args:
      lhs: the input, an array with a batch axis, a feature axis and n spatial axes.
      filter_shape: the sizes of the window on the spatial axes.
      window_strides: the step of the window on each spatial axis, ints.
      padding: as for `conv_general_dilated`.
      lhs_dilation: the distance between elements of the input. By default it is 1.
      rhs_dilation: the distance between elements of the window. By default it is 1.
      dimension_numbers: names the axes; see `conv_dimension_numbers`.
      precision: the precision of the products, as for `dot_general`. None is the default.
      preferred_element_type: the dtype of the result. By default it is the input's dtype.

    Returns:
      An array with a position on the spatial axes for each window. The feature axis holds the
      features of the input, and within each feature the elements of the window, in the order of the
      kernel's spatial axes.

    >>> x = jnp.arange(4.0).reshape(1, 1, 4)
    >>> print(lax.conv_general_dilated_patches(x, (2,), (1,), "VALID"))
    [[[0. 1. 2.]
      [1. 2. 3.]]]
    """
    x = typeof(lhs)
    op = "conv_general_dilated_patches"
    filter_shape = index_tuple(filter_shape, op, "filter_shape")
    numbers = conv_dimension_numbers(x.shape, (1,) * x.ndim, dimension_numbers)
    if len(filter_shape) != x.ndim - 2:
        raise ShapeError(
            f"{op}: filter_shape must have a size for each of {x.ndim - 2} spatial axes; "
            f"got {filter_shape}."
        )
    channels = x.shape[numbers.lhs_spec[1]]
    size = math.prod(filter_shape)
    one_hot = eq(*(layout.broadcasted_iota("int32", (size, size), axis) for axis in (0, 1)))
    kernels = layout.broadcast_in_dim(
        layout.convert(one_hot, x.dtype), (channels, size, size), (1, 2)
    )
    kernels = layout.reshape(kernels, (channels * size, 1, *filter_shape))
    place = sorted(range(x.ndim), key=lambda a: numbers.rhs_spec[a])
    kinds = {"precision": precision, "preferred_element_type": preferred_element_type}
    dilations = (lhs_dilation, rhs_dilation)
    kernels = layout.transpose(kernels, place)
    return conv_general_dilated(
        lhs, kernels, window_strides, padding, *dilations, numbers, channels, **kinds
    )


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: dot.PrecisionLike = None,
) -> Array:
    """Convolve with a different kernel at each position: a locally connected layer.

    Args:
      lhs: the input, an array with a batch axis, a feature axis and n spatial axes.
      rhs: the kernels, an array with an axis of output features, an axis of the elements of a
        window (as `conv_general_dilated_patches` orders them), and the spatial axes of the result.
      window_strides: the step of the window on each spatial axis, ints.
      padding: as for `conv_general_dilated`.
      filter_shape: the sizes of the window on the spatial axes.
      lhs_dilation: the distance between elements of the input. By default it is 1.
      rhs_dilation: the distance between elements of the window. By default it is 1.
      dimension_numbers: names the axes; see `conv_dimension_numbers`.
      precision: the precision of the products, as for `dot_general`. None is the default.

    Returns:
      An array with a batch axis, an axis of output features and n spatial axes.

    >>> x, kernels = jnp.ones((1, 2, 5)), jnp.ones((4, 6, 3))
    >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (3,)).shape
    (1, 4, 3)
    """
    numbers = conv_dimension_numbers(typeof(lhs).shape, typeof(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, precision
    )
    (n, c, *places), (_, i, *spatial) = numbers.out_spec, numbers.rhs_spec
    out = dot.dot_general(patches, rhs, (((c,), (i,)), (places, spatial)), precision)
    ndim = len(numbers.out_spec)  # the axes of out: spatial, batch, feature
    where = {n: ndim - 2, c: ndim - 1, **{a: k for k, a in enumerate(places)}}
    return layout.transpose(out, [where[a] for a in range(ndim)])


# --- shapes ---------------------------------------------------------------------------------


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """Return the shape of a convolution of arrays with the batch and the features in front.

    Args:
      lhs_shape: the shape of the input, ints.
      rhs_shape: the shape of the kernel.
      strides: the step of the kernel on each spatial axis.
      pads: a name of padding, or a pair (low, high) for each spatial axis.
      batch_group_count: the number of groups of the batch. The default is 1.

    Returns:
      A tuple of ints.

    >>> lax.conv_shape_tuple((1, 1, 4, 4), (1, 1, 3, 3), (1, 1), "VALID")
    (1, 1, 2, 2)
    """
    conv_dimension_numbers(lhs_shape, rhs_shape, None)
    (n, _, *sizes), (o, _, *windows) = lhs_shape, rhs_shape
    strides = index_tuple(strides, "conv_shape_tuple", "strides")
    pads = spatial_padding("conv_shape_tuple", pads, sizes, windows, strides)
    rows = zip(sizes, windows, strides, pads, strict=True)
    places = (count_places(size + lo + hi, k, s) for size, k, s, (lo, hi) in rows)
    return (n // batch_group_count, o, *places)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """Return the shape of `conv_general_dilated` without dilation.

    Args:
      lhs_shape: the shape of the input, ints.
      rhs_shape: the shape of the kernel.
      window_strides: the step of the kernel on each spatial axis.
      padding: a name of padding, or a pair (low, high) for each spatial axis.
      dimension_numbers: as for `conv_dimension_numbers`.

    Returns:
      A tuple of ints.

    >>> numbers = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 5), (2, 2), "SAME", numbers)
    (1, 4, 4, 5)
    """
    lhs, rhs, out = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lhs_shape, rhs_shape = [lhs_shape[a] for a in lhs], [rhs_shape[a] for a in rhs]
    shape = conv_shape_tuple(lhs_shape, rhs_shape, window_strides, padding)
    return tuple(shape[out.index(a)] for a in range(len(out)))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """Return the shape of `conv_transpose`.

    Args:
      lhs_shape: the shape of the input, ints.
      rhs_shape: the shape of the kernel.
      window_strides: the factor of enlargement on each spatial axis.
      padding: a name of padding, or a pair (low, high) for each spatial axis.
      dimension_numbers: as for `conv_dimension_numbers`.

    Returns:
      A tuple of ints.

    >>> numbers = ("NWC", "WIO", "NWC")
    >>> lax.conv_transpose_shape_tuple((1, 4, 1), (3, 1, 1), (2,), "SAME", numbers)
    (1, 8, 1)
    """
    lhs, rhs, out = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    windows = [rhs_shape[a] for a in rhs[2:]]
    if isinstance(padding, str):
        rows = zip(windows, window_strides, strict=True)
        padding = [transposed_padding(k, s, padding) for k, s in rows]
    lhs_shape = [lhs_shape[lhs[0]], lhs_shape[lhs[1]]] + [
        dilated_size(lhs_shape[a], s) for a, s in zip(lhs[2:], window_strides, strict=True)
    ]
    rhs_shape = [rhs_shape[a] for a in rhs]
    shape = conv_shape_tuple(lhs_shape, rhs_shape, (1,) * len(windows), padding)
    return tuple(shape[out.index(a)] for a in range(len(out)))
