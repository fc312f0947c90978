"""Annotations of values for the compiler that leave them unchanged: layouts, attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from weft.core.facts import Cost, Elements
from weft.primitives.families import LinearByElement, LinearPrimitive, read_element
from weft.xla.callbacks import mlir_context


class LayoutConstraint(LinearPrimitive):
    """out = x, whose axes are stored in memory in the order `major_to_minor`.

    Source: XLA, the custom call LayoutConstraint.
    """

    name = "layout_constraint"
    elements = Elements.MOVED
    cost = Cost.FREE
    element = read_element

    def abstract_eval(self, x, *, major_to_minor):
        return [x]

    def lower(self, hlo, x, *, major_to_minor):
        order = lambda axes: f"[dense<[{', '.join(map(str, axes))}]> : tensor<{x.aval.ndim}xindex>]"
        return hlo.op(
            "stablehlo.custom_call",
            [x],
            [x.aval],
            call_target_name='"LayoutConstraint"',
            operand_layouts=order(range(x.aval.ndim)[::-1]),
            result_layouts=order(major_to_minor[::-1]),
        )

    def transpose(self, cts, x, **params):
        return self.apply(cts[0], **params)

    def batch(self, axis, args, dims, *, major_to_minor):
        (d,) = dims
        order = (d, *[i + (i >= d) for i in major_to_minor])
        return self.apply(*args, major_to_minor=order), [d]


class MlirAttributes:
    """A family: primitives whose `attributes` are MLIR's text, which goes into programs unchanged.

    Attributes that come from a text of a jaxpr are checked: they could else close the dictionary,
    and go on with operations of their own.
    """

    name: ClassVar[str]

    def read_params(self, params, avals, out_avals):
        from jaxlib.mlir import ir  # as in xla/callbacks.py

        text = join_attributes(params["attributes"])
        try:
            found = ir.Attribute.parse(text, mlir_context())
        except ir.MLIRError:  # its message is of places in the text
            found = None
        if not isinstance(found, ir.DictAttr):
            raise ValueError(f"{self.name}: attributes must be a dictionary of MLIR; got {text!r}.")
        return params


def join_attributes(attributes: str | Sequence[tuple[str, str]]) -> str:
    """Return the dictionary of attributes, given as one text or as pairs of texts."""
    if not isinstance(attributes, str):
        attributes = ", ".join([f"{key} = {text}" for key, text in attributes])
    return f"{{{attributes}}}"


class AttributesOf(MlirAttributes, LinearByElement):
    """out = x, where what computes x has these frontend attributes in the compiled program."""

    name = "xla_metadata_value"
    elements = Elements.MOVED
    cost = Cost.FREE
    element = read_element

    def abstract_eval(self, x, *, attributes):
        return [x]

    def lower(self, hlo, x, *, attributes):
        hlo.annotate_maker(x, attributes)
        return [x]

    def transpose(self, cts, x, *, attributes):
        return [cts[0]]

    def jvp(self, primals, tangents, **params):
        return self.apply(*primals, **params), list(tangents)


layout_constraint_p, xla_metadata_value_p = LayoutConstraint(), AttributesOf()


def constrain_layout(x: Any, major_to_minor: tuple[int, ...]) -> Any:
    """A value whose axes are stored in memory in this order."""
    return layout_constraint_p.apply(x, major_to_minor=major_to_minor)[0]
