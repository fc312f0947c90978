"""Writing StableHLO with symbolic shapes: a `Builder` whose operations may have dynamic ones.

Primitives are lowered by their own rules. Where a result is of a symbolic shape, or an attribute
names a symbolic size, the operation that they write becomes its dynamic counterpart, which is given
shapes as values. Sizes are scalars, computed from the variables, which every function takes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray
from weft.errors import InconclusiveDimensionOperation, ShapeError
from weft.export.dims import Dim, Size, list_products
from weft.export.specs import SymbolicScope, read_sizes
from weft.primitives.lapack_shapes import PREFIXES
from weft.xla.hlo import Builder, Value

_SIZES = re.compile(r"(array<i64: |dense<\[)[^>]*[A-Za-z]")  # an attribute with symbolic sizes
# An integer of an attribute that is a symbolic size, as in `k = n : i64`.
_INTEGER = re.compile(r"(?:^|[{,] *)(?:(\w+) = )?([^={}<>\"\[\]]*[A-Za-z][^={}<>\"\[\]]*) : i\d+")
INT = ShapedArray((), np.dtype(np.int32))


def is_dynamic(aval: ShapedArray) -> bool:
    """Return True if a type has a symbolic size."""
    return any(type(n) is not int for n in aval.shape)


class DynamicBuilder(Builder):
    """Writes a module whose sizes are expressions over the variables of a scope."""

    def __init__(self, devices: Sequence[Any], platform: str, scope: SymbolicScope, names: Any):
        super().__init__(devices, platform)
        self.written = {}  # patterns are valid only for these variables
        self.scope = scope
        self.names_of_sizes: Sequence[str] = tuple(names)
        self.sizes: dict[str, Value] = {}  # of the variables, in the function being written

    # -- functions take the variables first ----------------------------------------------------

    def function(
        self,
        name: str,
        in_avals: Sequence[ShapedArray],
        write: Callable[..., Sequence[Value]],
        visibility: str = "private",
        attrs: tuple[Sequence[str], Sequence[str]] = ((), ()),
        path: str = "",
    ) -> str:
        count, outer = len(self.names_of_sizes), self.sizes

        def with_sizes(*args: Value) -> Sequence[Value]:
            self.sizes = dict(zip(self.names_of_sizes, args, strict=False))
            return write(*args[count:])

        if visibility != "private":
            return super().function(name, in_avals, write, visibility, attrs, path)
        given = [INT] * count
        texts = [f'jax.global_constant = "{n}"' for n in self.names_of_sizes]
        attrs = [*texts, *(attrs[0] or [""] * len(in_avals))], attrs[1]
        try:
            return super().function(name, [*given, *in_avals], with_sizes, visibility, attrs, path)
        finally:
            self.sizes = outer

    def call(
        self,
        name: str,
        operands: Sequence[Value],
        out_avals: Any,
        discardable: Mapping[str, str] | None = None,
    ) -> list[Value]:
        return super().call(name, [*self.sizes.values(), *operands], out_avals, discardable)

    # -- sizes as values -----------------------------------------------------------------------

    def size_value(self, size: Size) -> Value:
        """A size as a scalar."""
        if not isinstance(size, Dim):
            return super().constant(size, INT)
        key = ("size", size, INT)
        if key not in self.constants:
            products = list_products(size, self.size_value, self.factor_value)
            terms = [self.fold("multiply", parts) for parts in products]
            self.constants[key] = self.fold("add", terms)
        return self.constants[key]

    def fold(self, name: str, values: Sequence[Value]) -> Value:
        """The sum or the product of scalars."""
        found, *rest = values
        for x in rest:
            (found,) = self.like(name, found, x)
        return found

    def factor_value(self, factor: Any) -> Value:
        """A variable, or an operation on two sizes, as a scalar."""
        if isinstance(factor, str):
            return self.sizes[factor]
        kind, *operands = factor
        a, b = map(self.size_value, operands)
        if kind != "floordiv":
            return self.like({"max": "maximum", "min": "minimum"}[kind], a, b)[0]
        zero = self.size_value(0)
        (quotient,), (rest,) = self.like("divide", a, b), self.like("remainder", a, b)
        signs = self.compare("LT", self.like("multiply", rest, b)[0], zero)  # 0 where it divides
        (less,) = self.like("subtract", quotient, self.size_value(1))
        return self.op("stablehlo.select", [signs, less, quotient], [INT])[0]

    def shape_value(self, sizes: Sequence[Size]) -> Value:
        """Sizes as a vector."""
        aval = ShapedArray((len(sizes),), INT.dtype)
        key = ("sizes", tuple(sizes), aval)
        if key not in self.constants:
            if all(type(n) is int for n in sizes):
                return super().constant(np.array(sizes, np.int32), aval)
            one = aval.update(shape=(1,))
            values = map(self.size_value, sizes)
            parts = [
                super(DynamicBuilder, self).op("stablehlo.reshape", [x], [one])[0] for x in values
            ]
            (found,) = self.op("stablehlo.concatenate", parts, [aval], dimension="0 : i64")
            self.constants[key] = found
        return self.constants[key]

    # -- operations ----------------------------------------------------------------------------

    def constant(self, value: Any, aval: ShapedArray) -> Value:
        if isinstance(value, Dim):
            return self.spread(self.convert(self.size_value(value), aval.dtype), aval)
        if not is_dynamic(aval):
            return super().constant(value, aval)
        scalar = super().constant(value, aval.update(shape=()))
        return self.op(
            "stablehlo.broadcast_in_dim", [scalar], [aval], broadcast_dimensions="array<i64>"
        )[0]

    def op(
        self,
        name: str,
        /,
        operands: Sequence[Value],
        out_avals: Sequence[ShapedArray],
        regions: Sequence[Callable[[], None]] = (),
        discardable: Mapping[str, str] | None = None,
        **attrs: Any,
    ) -> list[Value]:
        if any(map(is_dynamic, (*out_avals, *[v.aval for v in operands]))):
            operands = list(operands)
            if name == "stablehlo.custom_call":
                attrs, told = self.tell_shapes(operands, out_avals, dict(attrs))
                discardable = {**(discardable or {}), **told}
            elif name in REWRITES:
                name, attrs = REWRITES[name](self, operands, out_avals[0], dict(attrs))
            for attr, text in attrs.items():
                if symbolic := _INTEGER.search(text):
                    raise InconclusiveDimensionOperation(
                        f"export: {name} must have a number as {symbolic[1] or attr}; got the "
                        f"symbolic size {symbolic[2]}. Hint: a size that is known."
                    )
                if _SIZES.match(text):
                    listed = ", ".join([str(v.aval) for v in operands])
                    raise InconclusiveDimensionOperation(
                        f"export: {name} must have known sizes along the axes that it works on; "
                        f"got {listed}. Hint: symbolic sizes for the other axes alone."
                    )
        return super().op(name, operands, out_avals, regions, discardable, **attrs)

    def tell_shapes(
        self, operands: list, outs: Sequence[ShapedArray], attrs: dict[str, str]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Give a custom call the shapes of its results as operands, which refinement removes.

        Only kernels of LAPACK are called so: their shapes are checked once they are known.
        """
        target, count = attrs["call_target_name"], len(operands)
        if not target.strip('"').startswith(PREFIXES):
            raise ShapeError(
                f"export: a custom call must have shapes that are known; got {target} of "
                f"{', '.join(str(v.aval) for v in operands)}. Hint: lax.map over the symbolic axis."
            )
        operands += [self.shape_value(aval.shape) for aval in outs]
        places = ", ".join(str(count + i) for i in range(len(outs)))
        layouts = attrs["operand_layouts"].removesuffix("]")
        layouts += ", dense<[0]> : tensor<1xindex>" * len(outs) + "]"
        told = {"indices_of_shape_operands": f"dense<[{places}]> : tensor<{len(outs)}xi64>"}
        attrs.pop("output_operand_aliases", None)  # shapes of both would have to be equal now
        return {**attrs, "operand_layouts": layouts}, told

    def take_sizes(self, operands: list, attrs: dict[str, str], *names: str) -> None:
        """Turn attributes that hold sizes into operands. Some sizes may be symbolic."""
        for name in names:
            text = attrs.pop(name).removeprefix("array<i64").removeprefix(": ").removesuffix(">")
            operands.append(self.shape_value(read_sizes(text, self.scope)))


Rewrite = Callable[[DynamicBuilder, list, ShapedArray, dict], tuple[str, dict]]


def give_shape(name: str) -> Rewrite:
    """Rewrite an operation as its dynamic counterpart, which takes the result's shape last."""

    def rewrite(hlo: DynamicBuilder, operands: list, out: ShapedArray, attrs: dict) -> tuple:
        operands.append(hlo.shape_value(out.physical.shape))
        return name, attrs

    return rewrite


def take_attributes(name: str, *attributes: str) -> Rewrite:
    """Rewrite an operation as its dynamic counterpart, which takes attributes as operands."""

    def rewrite(hlo: DynamicBuilder, operands: list, out: ShapedArray, attrs: dict) -> tuple:
        hlo.take_sizes(operands, attrs, *attributes)
        return name, attrs

    return rewrite


def rewrite_dynamic_slice(
    hlo: DynamicBuilder, operands: list, out: ShapedArray, attrs: dict
) -> tuple[str, dict]:
    """A slice from starts that are kept within the operand, to limits that are computed."""
    x, *starts = operands
    vector = ShapedArray((len(starts),), INT.dtype)
    parts = []
    for start, n, size in zip(starts, x.aval.shape, out.shape, strict=True):
        last, zero = hlo.size_value(n - size), hlo.size_value(0)
        start = hlo.convert(start, INT.dtype)
        (start,) = hlo.op("stablehlo.clamp", [zero, start, last], [INT])
        parts += Builder.op(hlo, "stablehlo.reshape", [start], [vector.update(shape=(1,))])
    (start,) = hlo.op("stablehlo.concatenate", parts, [vector], dimension="0 : i64")
    (limit,) = hlo.like("add", start, hlo.shape_value(out.shape))
    operands[1:] = [start, limit, hlo.shape_value([1] * len(starts))]
    return "stablehlo.real_dynamic_slice", {}


def rewrite_convolution(
    hlo: DynamicBuilder, operands: list, out: ShapedArray, attrs: dict
) -> tuple[str, dict]:
    """A convolution; one whose padding depends on sizes takes that as a matrix."""
    for name in ("feature_group_count", "batch_group_count"):
        count = attrs[name].partition(" ")[0]
        if not count.isdecimal():
            raise ShapeError(
                f"export: {name} of a convolution must be known; got {count}. Hint: lax.map over "
                "the symbolic axis."
            )
    inner = attrs["padding"].removeprefix("dense<").rpartition("> : ")[0]
    pads = read_sizes(inner.replace("[", "").replace("]", ""), hlo.scope)
    if all(type(n) is int for n in pads):
        return "stablehlo.convolution", attrs
    matrix = ShapedArray((len(pads) // 2, 2), INT.dtype)
    operands += Builder.op(hlo, "stablehlo.reshape", [hlo.shape_value(pads)], [matrix])
    return "stablehlo.dynamic_conv", {k: v for k, v in attrs.items() if k != "padding"}


REWRITES: dict[str, Rewrite] = {
    "stablehlo.broadcast_in_dim": give_shape("stablehlo.dynamic_broadcast_in_dim"),
    "stablehlo.convolution": rewrite_convolution,
    "stablehlo.dynamic_slice": rewrite_dynamic_slice,
    "stablehlo.gather": take_attributes("stablehlo.dynamic_gather", "slice_sizes"),
    "stablehlo.iota": give_shape("stablehlo.dynamic_iota"),
    "stablehlo.pad": take_attributes(
        "stablehlo.dynamic_pad", "edge_padding_low", "edge_padding_high", "interior_padding"
    ),
    "stablehlo.reshape": give_shape("stablehlo.dynamic_reshape"),
    "stablehlo.slice": take_attributes(
        "stablehlo.real_dynamic_slice", "start_indices", "limit_indices", "strides"
    ),
}
