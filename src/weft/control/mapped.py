"""`custom_vmap_call`: a function that brings its own batching rule.

The rule, flat, is `rule(axis_size, in_batched, *operands) -> (outs, out_batched)`, the mapped axis
in front. Pytrees, checks and the decorator users know are in api/custom_vmap.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.control.call import Call
from weft.control.custom import look_into
from weft.core.aval import typeof
from weft.core.primitive import Axis, Zero, mark_moving, tangents_of
from weft.core.source import own_lines
from weft.core.trace import Tracer, current
from weft.passes.dce import dce_jaxpr
from weft.primitives.dynamic_slicing import dynamic_index_in_dim
from weft.primitives.layout import batched_at_front, instantiate, iota, move_to_front
from weft.transforms.batch import batch
from weft.transforms.check import skip_checks
from weft.transforms.jvp import jvp, jvp_jaxpr
from weft.transforms.transpose import backward

INT = np.dtype(np.int32)


class CustomVmap(Call):
    """Call `call`, which `vmap` maps with `rule`.

    If this call is a derivative, `primal` is the original (call, rule): its results come first.
    """

    name = "custom_vmap_call"
    program = "call"
    dce = None  # type: ignore[assignment]

    def bodies(self, params):
        (body,) = super().bodies(params)
        return [body._replace(inlines=True)]

    def run_series(self, trace, args, params):
        return None

    def jvp(self, primals, tangents, **params):
        call = params["call"]
        moved = mark_moving(tangents)
        both, out_moved = jvp_jaxpr(call, moved)
        outs = self.apply(
            *primals,
            *[t for t in tangents if type(t) is not Zero],
            call=both,
            rule=JVPRule(params["rule"], moved, tuple(out_moved)),
            primal=tuple(params.items()),
        )
        n = len(call.outvars)
        return outs[:n], tangents_of(outs[:n], outs[n:], out_moved)

    def partial_eval(self, trace, unknown, args, params):
        # What is known of a derivative is the call it is of, under the same rule; the rest is
        # linear, and mapped by the derivative of that rule.
        primal = dict(params["primal"] or ())
        n = len(primal["call"].invars) if primal else 0
        if not primal or any(unknown[:n]):
            return params["call"](*args)
        try:
            current.trace = trace.parent
            outs = self.apply(*args[:n], **primal)
        finally:
            current.trace = trace
        count = len(outs)
        moved = [i >= count for i in range(len(params["call"].outvars))]
        late = {"call": dce_jaxpr(params["call"], moved)[0], "primal": None}
        rule = TangentRule(params["rule"], count)
        return [*outs, *trace.later.process(self, args, {**late, "rule": rule})]

    def transpose(self, cts, *args, call, **params):
        return backward(call, (), args, cts)

    def batch(self, axis, args, dims, **params):
        operands = [
            x if d is None else batched_at_front(x, d, axis.size)
            for x, d in zip(args, dims, strict=True)
        ]
        with own_lines():
            outs, batched = params["rule"](axis.size, [d is not None for d in dims], *operands)
        return outs, [0 if b else None for b in batched]

    def checked(self, trace, args, params):
        outs = look_into(trace, params["call"], args)
        if not any(isinstance(x, Tracer) for x in args):
            return outs
        return self.apply(*args, **{**params, "call": skip_checks(params["call"])})

    def pretty_params(self, params):
        return {"call": params["call"], "rule": params["rule"]}


@dataclass(frozen=True)
class TangentRule:
    """The batching rule for the tangents only; a derivative returns them after `count` values."""

    rule: Any
    count: int

    __name__ = "tangents_of_rule"

    def __call__(self, size: int, in_batched: Sequence[bool], *operands: Any) -> tuple:
        outs, batched = self.rule(size, in_batched, *operands)
        return outs[self.count :], batched[self.count :]


@dataclass(frozen=True)
class JVPRule:
    """The batching rule of the derivative of a call: the derivative of its batching rule."""

    rule: Any
    moved: tuple[bool, ...]
    out_moved: tuple[bool, ...]

    __name__ = "jvp_of_rule"

    def __call__(self, size: int, in_batched: Sequence[bool], *operands: Any) -> tuple:
        n = len(self.moved)
        given = iter(range(n, len(operands)))
        places = [next(given) if m else None for m in self.moved]
        pairs = [*zip(in_batched[:n], places, strict=True)]
        both = any(b and (k is None or in_batched[k]) for b, k in pairs)
        if True in in_batched and not both:
            # No operand is mapped along with its tangent: elements of the unmapped derivative.
            def each(i: Any, *xs: Any) -> list:
                outs, mapped = self(size, [False] * len(xs), *xs)
                return [take_element(y, i) if b else y for y, b in zip(outs, mapped, strict=True)]

            dims = [0, *[0 if b else None for b in in_batched]]
            outs, out_dims = batch(each, [iota(INT, size), *operands], dims, Axis(size))
            fronts = [y if d is None else move_to_front(y, d) for y, d in zip(outs, out_dims)]
            return fronts, [d is not None for d in out_dims]
        batched = [b or (k is not None and in_batched[k]) for b, k in pairs]

        def fitting(i: int, like: int) -> Any:
            """Operand i, repeated along the axis where a value or its tangent is mapped."""
            repeated = batched[like] and not in_batched[i]
            return batched_at_front(operands[i], None, size) if repeated else operands[i]

        primals = [fitting(i, i) for i in range(n)]
        tangents = [
            Zero(typeof(x).to_tangent()) if k is None else fitting(k, i)
            for i, (x, k) in enumerate(zip(primals, places, strict=True))
        ]
        out_batched: list[bool] = []

        def mapped(*xs: Any) -> list:
            outs, out_batched[:] = self.rule(size, batched, *xs)
            return outs

        outs, dots = jvp(mapped, primals, tangents)
        moving = [i for i, m in enumerate(self.out_moved) if m]
        return (
            [*outs, *[instantiate(dots[i]) for i in moving]],
            [*out_batched, *[out_batched[i] for i in moving]],
        )


def take_element(x: Any, i: Any) -> Any:
    """Return element i of a result that its rule has mapped although no operand is mapped."""
    return dynamic_index_in_dim(x, i, 0, keepdims=False)


custom_vmap_p = CustomVmap()
