"""Lowering of primitives: the names of `jax.interpreters.mlir` that make sense for text.

    register_lowering(prim, rule)        rule(ctx, *values, **params) -> the values of the results
    register_lowering(prim, lower_fun(fun, multiple_results=False))

There are no MLIR bindings: a value is a typed name, a type or attribute its text, and a rule writes
operations with `ctx.hlo`, a Builder: `ctx.hlo.op("stablehlo.sine", [x], ctx.avals_out)`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.control.effects import IOEffect
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn, Jaxpr
from weft.core.primitive import Primitive
from weft.primitives.constant import stage_whole
from weft.util import list_public
from weft.xla.hlo import Builder, Value, array_text
from weft.xla.hlo import i64s as dense_int_array
from weft.xla.lower import lower_jaxpr

__all__ = [
    "LoweringRule", "LoweringRuleContext", "Value", "aval_to_ir_type", "aval_to_ir_types",
    "dense_int_array", "dense_int_elements", "dtype_to_ir_type", "emit_python_callback",
    "i32_attr", "i64_attr", "ir_constant", "jaxpr_subcomp", "lower_fun", "register_lowering",
]  # fmt: skip
__dir__ = list_public(__name__)

LoweringRule = Callable[..., Any]


class LoweringRuleContext(NamedTuple):
    """What a lowering rule knows: where to write, for what, and the types."""

    hlo: Builder
    primitive: Primitive
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]

    @property
    def platforms(self) -> tuple[str, ...]:
        """What the program is compiled for."""
        return (self.hlo.platform,)

    @property
    def module_context(self) -> LoweringRuleContext:
        """What the rules of a module share; here it is the context itself."""
        return self

    def add_keepalive(self, x: Any) -> None:
        """Keep a value for as long as the program is; functions that it calls are kept anyway."""


_NO_CODE = (lambda: None).__code__


class _Here(threading.local):
    """The context of the rule that is running."""

    ctx: LoweringRuleContext | None = None


_here = _Here()


class _Lowering:
    """The `lower` of a primitive: the rule for the platform, the one for all, or its own."""

    def __init__(self, prim: Primitive):
        self.prim = prim
        self.own = prim.lower
        self.rules: dict[str | None, LoweringRule] = {}

    def __call__(self, hlo: Builder, *values: Value, **params: Any) -> list[Value]:
        rule = self.rules.get(hlo.platform) or self.rules.get(None)
        if rule is None:
            return self.own(hlo, *values, **params)
        avals = tuple(v.aval for v in values)
        ctx = LoweringRuleContext(hlo, self.prim, avals, self.prim.type_of(avals, params))
        around, _here.ctx = _here.ctx, ctx
        try:
            out = rule(ctx, *values, **params)
        finally:
            _here.ctx = around
        return [out] if isinstance(out, Value) else list(out)

    def calls_host(self, eqn: Eqn) -> bool:
        """Whether what a rule writes for an equation calls Python functions."""
        avals = [a.aval for a in eqn.invars]
        for rule in self.rules.values():
            if hasattr(rule, "stage_at"):
                if rule.stage_at(avals, eqn.params).calls_host:
                    return True
            elif "emit_python_callback" in getattr(rule, "__code__", _NO_CODE).co_names:
                return True
        return False


def register_lowering(
    prim: Primitive, rule: LoweringRule, platform: str | None = None, **options: Any
) -> LoweringRule:
    """Set how a primitive is written, for all platforms or for one.

    The rule gives a value, or a sequence of them. `options` are taken so that calls carry over
    from JAX.
    """
    if not isinstance(vars(prim).get("lower"), _Lowering):
        prim.lower = _Lowering(prim)  # type: ignore[method-assign]
    prim.lower.rules[platform] = rule  # type: ignore[attr-defined]
    return rule


def lower_fun(fun: Callable, multiple_results: bool = True) -> LoweringRule:
    """The lowering rule which writes what `fun(*values, **params)` does.

    With `multiple_results` the function returns a sequence of values, else one.
    """

    def stage_at(avals: Sequence[ShapedArray], params: dict) -> Jaxpr:
        def flat(*xs: Any) -> list:
            out = fun(*xs, **params)
            return list(out) if multiple_results else [out]

        return stage_whole(flat, avals)

    def rule(ctx: LoweringRuleContext, *values: Value, **params: Any) -> list[Value]:
        return lower_jaxpr(ctx.hlo, stage_at(ctx.avals_in, params), values)

    rule.stage_at = stage_at  # type: ignore[attr-defined]
    return rule


def emit_python_callback(
    ctx: LoweringRuleContext, callback: Callable, token: Any, operands: Sequence[Value],
    operand_avals: Sequence[ShapedArray], result_avals: Sequence[ShapedArray], *,
    has_side_effect: bool, **options: Any,
) -> tuple[list[Value], Any, None]:  # fmt: skip
    """Write a call of a Python function, which takes NumPy arrays and returns as many as results.

    To be called by a rule under this name, by which it is known that the program calls Python.
    Gives the results, `token`, and None. `options` are taken so that calls carry over from JAX.
    """

    def call(*args: Any) -> list:
        outs = callback(*args)
        return [np.asarray(y, a.dtype) for y, a in zip(outs, result_avals, strict=True)]

    effect = IOEffect() if has_side_effect else None
    return ctx.hlo.host_call(call, operands, result_avals, effect), token, None


def jaxpr_subcomp(ctx: LoweringRuleContext, jaxpr: Jaxpr, *args: Value) -> list[Value]:
    """Write the equations of a closed jaxpr, and give the values of its results."""
    return lower_jaxpr(ctx.hlo, jaxpr.jaxpr, args)


def aval_to_ir_type(aval: ShapedArray) -> str:
    """The text of a type: `tensor<3xf32>`."""
    return aval.hlo


def aval_to_ir_types(aval: ShapedArray) -> tuple[str, ...]:
    """The texts of the types that stand for an aval: one."""
    return (aval.hlo,)


def dtype_to_ir_type(dtype: Any) -> str:
    """The text of an element type: `f32`."""
    return ShapedArray((), np.dtype(dtype)).hlo.removeprefix("tensor<").removesuffix(">")


def ir_constant(value: Any, aval: ShapedArray | None = None) -> Value:
    """Write a constant where the rule that is running writes."""
    if _here.ctx is None:
        raise RuntimeError(
            "ir_constant: must be called in a lowering rule, for it writes where the rule does; "
            "got a call outside."
        )
    return _here.ctx.hlo.constant(np.asarray(value), aval or typeof(value))


def i32_attr(i: int) -> str:
    """The text of a 32-bit integer attribute."""
    return f"{int(i)} : i32"


def i64_attr(i: int) -> str:
    """The text of a 64-bit integer attribute."""
    return f"{int(i)} : i64"


def dense_int_elements(xs: Any) -> str:
    """The text of a tensor attribute of 64-bit integers."""
    values = np.asarray(xs, np.int64)
    return f"dense<{array_text(values, values.dtype)}> : {ShapedArray(values.shape, np.int64).hlo}"
