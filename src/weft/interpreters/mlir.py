"""Lowering of primitives: the names of `jax.interpreters.mlir` that make sense for text.

    register_lowering(prim, rule)        rule(ctx, *values, **params) -> the values of the results
    register_lowering(prim, lower_fun(fun, multiple_results=False))

A value is a typed name, a type or attribute its text, and a rule writes operations with `ctx.hlo`,
a Builder: `ctx.hlo.op("stablehlo.sine", [x], ctx.avals_out)`. A rule may be written with MLIR's
Python bindings instead (bindings.py); then values, types and attributes are the bindings' own.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn, Jaxpr
from weft.core.primitive import Effect, Primitive
from weft.experimental.hijax import control_flow_allowed_effects
from weft.export.modules import module_bytes
from weft.interpreters import bindings
from weft.mesh.mesh import Mesh
from weft.passes.physical import has_extended
from weft.primitives.constant import stage_whole
from weft.primitives.effects import IOEffect
from weft.util import list_public
from weft.xla.callbacks import mlir_context as make_ir_context
from weft.xla.callbacks import parse_module
from weft.xla.hlo import (
    PATTERNS,
    TOKEN,
    Builder,
    Value,
    array_text,
    i64s,
    quote_text,
    scalar_text,
    strip_locations,
)  # fmt: skip
from weft.xla.lower import lower_call, lower_jaxpr, lower_module, make_physical

__all__ = [
    "AxisContext", "ConstantHandler", "DEVICE_TO_DEVICE_TYPE", "LoweringParameters",
    "LoweringResult", "LoweringRule", "LoweringRuleContext", "Mesh", "MeshAxisName",
    "ModuleContext", "RECV_FROM_HOST_TYPE", "SEND_TO_HOST_TYPE", "SPMDAxisContext",
    "ShardingContext", "Token", "TokenSet", "Value", "aval_to_ir_type", "aval_to_ir_types",
    "core_call_lowering", "dense_int_array", "dense_int_elements", "dtype_to_ir_type",
    "emit_python_callback", "flatten_ir_types", "flatten_ir_values", "i32_attr", "i64_attr",
    "ir_attribute", "ir_constant", "ir_constants", "ir_type_handlers", "jaxpr_subcomp", "lower_fun",
    "lower_jaxpr_to_fun", "lower_jaxpr_to_module", "lowerable_effects", "make_ir_context",
    "module_to_bytecode", "module_to_string", "register_constant_handler", "register_lowering",
    "shape_tensor", "token_type", "unflatten_ir_values_like_types",
]  # fmt: skip
__dir__ = list_public(__name__)

LoweringRule = Callable[..., Any]
ConstantHandler = Callable[..., Any]
MeshAxisName = Any
Token = Value

# The kinds of channels of StableHLO.
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3


class SPMDAxisContext(NamedTuple):
    """The context of a rule that writes for one device of a mesh: the mesh, and its axes."""

    mesh: Mesh
    manual_axes: frozenset = frozenset()


class ShardingContext(NamedTuple):
    """The context of a rule that writes for all devices of a program, of this number."""

    num_devices: int
    device_assignment: tuple | None = None


AxisContext = SPMDAxisContext | ShardingContext


class LoweringParameters(NamedTuple):
    """The options of `lower_jaxpr_to_module`: rules that replace primitives' rules."""

    override_lowering_rules: tuple[tuple[Primitive, LoweringRule], ...] | None = None


class LoweringResult(NamedTuple):
    """A module as text, and the Python functions that it calls."""

    module: str
    keepalive: Any
    host_callbacks: Sequence[Callable]


class LoweringRuleContext(NamedTuple):
    """The context that a lowering rule receives as its first argument.

    weft makes it; a rule reads it. It also has the properties `platforms` and `axis_context`.

    Attributes:
      hlo: the builder that writes operations into the program.
      primitive: the `Primitive` that is lowered.
      avals_in: the types of the operands, a sequence of `ShapedArray`.
      avals_out: the types of the results, a sequence of `ShapedArray`.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> same_p = Primitive("same")
    >>> _ = same_p.def_abstract_eval(lambda x: x)
    >>> def lower_same(ctx, x):
    ...     print(ctx.primitive, ctx.avals_in, ctx.platforms)
    ...     return [x]
    >>> _ = mlir.register_lowering(same_p, lower_same)
    >>> _ = weft.jit(same_p.bind).lower(jnp.zeros((3, 2)))
    same (ShapedArray(float32[3,2]),) ('cpu',)
    """

    hlo: Builder
    primitive: Primitive
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]

    @property
    def platforms(self) -> tuple[str, ...]:
        """Return the platforms that the program is compiled for."""
        return (self.hlo.platform,)

    @property
    def axis_context(self) -> AxisContext:
        """The context of axes: one device of a mesh, or all devices."""
        part = self.hlo.part
        if part is None:
            return ShardingContext(len(self.hlo.devices) or 1, tuple(self.hlo.devices) or None)
        return SPMDAxisContext(part.mesh, frozenset(name for name, _ in part.axes))

    @property
    def module_context(self) -> LoweringRuleContext:
        """Return the context that the rules of a module share; here it is the context itself."""
        return self

    def add_keepalive(self, x: Any) -> None:
        """Keep a value for as long as the program is; functions that it calls are kept anyway."""


ModuleContext = LoweringRuleContext

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
        lines, constants = len(hlo.lines), len(hlo.constants)
        try:
            out = rule(ctx, *values, **params)
        except Exception as error:
            if not bindings.uses_bindings():
                raise
            del hlo.lines[lines:]
            for key in [*hlo.constants][constants:]:
                del hlo.constants[key]
            return self.run_with_bindings(rule, ctx, values, params, error)
        finally:
            _here.ctx = around
        return [out] if isinstance(out, Value) else list(out)

    def run_with_bindings(
        self,
        rule: LoweringRule,
        ctx: LoweringRuleContext,
        values: Sequence[Value],
        params: dict,
        error: Exception,
    ) -> list[Value]:
        """Run a rule that is not a rule for text, as its error has shown, on values of MLIR."""
        bridge = bindings.Bridge(ctx.hlo, self.prim, ctx.avals_in, ctx.avals_out)
        try:
            return bindings.run_rule(rule, bridge, values, params)
        except bindings.WritesText:
            raise error from None

    def calls_host(self, eqn: Eqn) -> bool:
        """Return True if what a rule writes for an equation calls Python functions."""
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
    PATTERNS.clear()  # of what the rules there were have written
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
        jaxpr = stage_at(ctx.avals_in, params)
        bridge = bindings.current_bridge()
        if bridge is None:
            return lower_jaxpr(ctx.hlo, jaxpr, values)
        hlo = bridge.builder
        name = hlo.function("lowered", jaxpr.in_avals, lambda *xs: lower_jaxpr(hlo, jaxpr, xs))
        return bridge.call_text(name, values, jaxpr.out_avals)

    rule.stage_at = stage_at  # type: ignore[attr-defined]
    return rule


def emit_python_callback(
    ctx: LoweringRuleContext, callback: Callable, token: Any, operands: Sequence[Value],
    operand_avals: Sequence[ShapedArray], result_avals: Sequence[ShapedArray], *,
    has_side_effect: bool, **options: Any,
) -> tuple[list[Value], Any, None]:  # fmt: skip
    """Write a call of a Python function, which takes and returns NumPy arrays.

    A rule must call it under this name, which tells weft that the program calls Python. It returns
    the results, `token`, and None. `options` are accepted for compatibility with JAX and ignored.
    """

    def call(*args: Any) -> list:
        outs = callback(*args)
        return [np.asarray(y, a.dtype) for y, a in zip(outs, result_avals, strict=True)]

    effect = IOEffect() if has_side_effect else None
    return ctx.hlo.host_call(call, operands, result_avals, effect), token, None


def jaxpr_subcomp(ctx: LoweringRuleContext, jaxpr: Jaxpr, *args: Value) -> list[Value]:
    """Write the equations of a closed jaxpr, and give the values of its results."""
    return lower_jaxpr(ctx.hlo, jaxpr.jaxpr, args)


def core_call_lowering(
    ctx: LoweringRuleContext, *args: Value, name: str, call_jaxpr: Any, **options: Any
) -> list[Value]:
    """The lowering rule of a primitive that calls a program: a function of the module."""
    return lower_call(ctx.hlo, getattr(call_jaxpr, "jaxpr", call_jaxpr), args, name)


def lower_jaxpr_to_fun(
    ctx: LoweringRuleContext, name: str, jaxpr: Any, effects: Any = (), **options: Any
) -> str:
    """Write a closed jaxpr without consts as a function of the module, and give its name."""
    closed = getattr(jaxpr, "jaxpr", jaxpr)
    write = lambda *xs: lower_jaxpr(ctx.hlo, closed, xs)
    return ctx.hlo.function(name, closed.in_avals, write)


def lower_jaxpr_to_module(
    module_name: str, jaxpr: Any, *, donated_args: Sequence[bool] = (),
    lowering_parameters: LoweringParameters | None = None, **options: Any,
) -> LoweringResult:  # fmt: skip
    """Return the module with a closed jaxpr as its function `main`, as a jitted function lowers.

    `donated_args` marks arguments whose buffers the program may reuse. Other `options` of JAX's are
    accepted and ignored.

    >>> result = lower_jaxpr_to_module("wave", weft.make_jaxpr(jnp.sin)(1.0))
    >>> "stablehlo.sine" in module_to_string(result.module)
    True
    """
    rules = (lowering_parameters or LoweringParameters()).override_lowering_rules or ()
    before = [(prim, vars(prim).get("lower")) for prim, _ in rules]
    try:
        for prim, rule in rules:
            vars(prim).pop("lower", None)
            register_lowering(prim, rule)
        given = [i for i, d in enumerate(donated_args) if d]
        physical, consts = jaxpr.jaxpr, jaxpr.consts
        if has_extended(physical):
            physical, consts = make_physical(physical, consts)
        text = lower_module(physical, module_name, donated=given, consts=consts)
    finally:
        for prim, own in before:
            vars(prim).pop("lower", None)
            if own is not None:
                prim.lower = own  # type: ignore[method-assign]
            PATTERNS.clear()
    return LoweringResult(text.text, None, text.host_calls)


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """The text of a module; with `enable_debug_info`, with the names of operations."""
    return str(module) if enable_debug_info else strip_locations(str(module))


def module_to_bytecode(module: Any) -> bytes:
    """A module as MLIR's bytecode."""
    return module_bytes(parse_module(module) if isinstance(module, str) else module)


# What gives the text of a type, by its class.
ir_type_handlers: dict[type, Callable[[Any], str]] = {ShapedArray: operator.attrgetter("hlo")}


def as_type(text: str) -> Any:
    """Return a type as its text, or as the bindings' own in a rule that uses them."""
    bridge = bindings.current_bridge()
    return text if bridge is None else bridge.parse_type(text)


def as_attribute(text: str) -> Any:
    """Return an attribute as its text, or as the bindings' own in a rule that uses them."""
    bridge = bindings.current_bridge()
    return text if bridge is None else bridge.parse_attribute(text)


def aval_to_ir_type(ctx: Any, aval: ShapedArray | None = None) -> Any:
    """Return the type `tensor<3xf32>` of an aval, which may follow a rule's context."""
    given = ctx if aval is None else aval
    return as_type(ir_type_handlers[type(given)](given))


def aval_to_ir_types(ctx: Any, aval: ShapedArray | None = None) -> tuple:
    """Return the types that stand for an aval: one."""
    return (aval_to_ir_type(ctx, aval),)


def dtype_text(dtype: Any) -> str:
    """Return the text of an element type: `f32`."""
    return ShapedArray((), np.dtype(dtype)).hlo.removeprefix("tensor<").removesuffix(">")


def dtype_to_ir_type(dtype: Any) -> Any:
    """Return the element type of a dtype: `f32`."""
    return as_type(dtype_text(dtype))


def ir_constant(val: Any, aval: ShapedArray | None = None, *, const_lowering: Any = None) -> Any:
    """Write a constant where the rule that is running writes.

    `const_lowering` is taken so that calls carry over from JAX.
    """
    value, bridge = val, bindings.current_bridge()
    if bridge is not None and type(value) not in _constant_handlers:
        array = np.asarray(value, None if aval is None else aval.dtype)
        of = ShapedArray(array.shape, array.dtype) if aval is None else aval
        return bridge.write_constant(f"dense<{array_text(array, array.dtype)}> : {of.hlo}")
    if _here.ctx is None:
        raise RuntimeError(
            "ir_constant: must be called in a lowering rule, for it writes where the rule does; "
            "got a call outside."
        )
    handler = _constant_handlers.get(type(value))
    if handler is not None:
        return handler(value, aval)
    return _here.ctx.hlo.constant(np.asarray(value), aval or typeof(value))


class TokenSet:
    """Tokens by effect, which does not change: of `lax.create_token`, as a rule passes them on."""

    def __init__(self, tokens: dict[Effect, Any] | None = None):
        self._tokens = dict(tokens or {})

    def get(self, effect: Effect) -> Any:
        """The token of an effect."""
        return self._tokens[effect]

    def effects(self) -> set[Effect]:
        """The effects that have tokens."""
        return {*self._tokens}

    def items(self) -> tuple[tuple[Effect, Any], ...]:
        """The effects with their tokens."""
        return tuple(self._tokens.items())

    def subset(self, effects: Iterable[Effect]) -> TokenSet:
        """The tokens of these effects."""
        return TokenSet({e: self._tokens[e] for e in effects})

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """Return these tokens, with other tokens for the same effects replaced."""
        return TokenSet({**self._tokens, **tokens._tokens})


lowerable_effects = control_flow_allowed_effects  # programs may have any

_constant_handlers: dict[type, ConstantHandler] = {}


def register_constant_handler(type_: type, handler_fun: ConstantHandler) -> None:
    """Have `ir_constant` write values of a class by `handler_fun(value, aval)`."""
    _constant_handlers[type_] = handler_fun


def ir_constants(val: Any, aval: ShapedArray | None = None, **options: Any) -> tuple[Value, ...]:
    """Write a constant as `ir_constant` does, and give the values that stand for it: one."""
    return (ir_constant(val, aval),)


def ir_attribute(val: Any) -> Any:
    """Return an attribute that holds a Python value.

    >>> ir_attribute({"axes": [0, 1], "late": True})
    '{axes = [0 : i64, 1 : i64], late = true}'
    """
    return as_attribute(attribute_text(val))


def attribute_text(val: Any) -> str:
    """Return the text of an attribute that holds a Python value."""
    if isinstance(val, str | bytes):
        return quote_text(val.decode() if isinstance(val, bytes) else val)
    if isinstance(val, list | tuple):
        return f"[{', '.join(map(attribute_text, val))}]"
    if isinstance(val, dict):
        return "{" + ", ".join(f"{k} = {attribute_text(v)}" for k, v in val.items()) + "}"
    if isinstance(val, np.dtype | type):
        return dtype_text(val)
    if isinstance(val, bool | np.bool_):
        return str(bool(val)).lower()
    if isinstance(val, int | float):
        val = np.asarray(val)
    if not isinstance(val, np.ndarray | np.generic):
        raise TypeError(
            "ir_attribute: needs a string, number, dtype, NumPy's array, or a list or dict of "
            f"such; got {val!r}."
        )
    array = np.asarray(val)
    if not array.ndim:
        return f"{scalar_text(array[()], array.dtype)} : {dtype_text(array.dtype)}"
    kind = f"tensor<{'x'.join(map(str, array.shape))}x{dtype_text(array.dtype)}>"
    return f"dense<{array_text(array, array.dtype)}> : {kind}"


def shape_tensor(ctx: LoweringRuleContext, sizes: Sequence[int]) -> Value:
    """Write a shape as an array of 32-bit integers."""
    return ir_constant(np.array(sizes, np.int32), ShapedArray((len(sizes),), np.int32))


def flatten_ir_values(xs: Sequence[Any]) -> list[Value]:
    """Flatten values, some of which are in sequences."""
    return [v for x in xs for v in (x if isinstance(x, list | tuple) else [x])]


flatten_ir_types = flatten_ir_values


def unflatten_ir_values_like_types(xs: Sequence[Value], ys: Sequence[Any]) -> list[Any]:
    """The inverse of `flatten_ir_values`: `ys` has a type, or a sequence of them, for each."""
    rest = iter(xs)
    return [[next(rest) for _ in y] if isinstance(y, list | tuple) else next(rest) for y in ys]


def dense_int_array(xs: Sequence[int]) -> Any:
    """Return an array attribute of 64-bit integers."""
    return as_attribute(i64s(xs))


def token_type() -> Any:
    """Return the type of tokens."""
    return as_type(TOKEN.hlo)


def i32_attr(i: int) -> Any:
    """Return a 32-bit integer attribute."""
    return as_attribute(f"{int(i)} : i32")


def i64_attr(i: int) -> Any:
    """Return a 64-bit integer attribute."""
    return as_attribute(f"{int(i)} : i64")


def dense_int_elements(xs: Any) -> Any:
    """Return a tensor attribute of 64-bit integers."""
    values = np.asarray(xs, np.int64)
    kind = ShapedArray(values.shape, np.int64).hlo
    return as_attribute(f"dense<{array_text(values, values.dtype)}> : {kind}")
