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
    """The axis context of a lowering rule in a program that each device of a mesh runs for itself.

    `ctx.axis_context` of a rule in the body of `shard_map` is of this class.

    Args:
      mesh: the mesh.
      manual_axes: the names of the axes of the mesh that the program refers to; a frozenset. It is
        empty by default.

    >>> from weft.interpreters import mlir
    >>> mesh = weft.make_mesh((1,), ("i",))
    >>> mlir.SPMDAxisContext(mesh, frozenset({"i"})).manual_axes
    frozenset({'i'})
    """

    mesh: Mesh
    manual_axes: frozenset = frozenset()


class ShardingContext(NamedTuple):
    """The axis context of a lowering rule in a program that XLA splits over its devices.

    `ctx.axis_context` of a rule outside of `shard_map` is of this class.

    Args:
      num_devices: the number of devices of the program.
      device_assignment: a tuple of the devices, or None, the default, if they are not chosen yet.

    >>> from weft.interpreters import mlir
    >>> mlir.ShardingContext(8).num_devices
    8
    """

    num_devices: int
    device_assignment: tuple | None = None


AxisContext = SPMDAxisContext | ShardingContext


class LoweringParameters(NamedTuple):
    """Options of `lower_jaxpr_to_module`.

    Args:
      override_lowering_rules: a tuple of pairs of a primitive and a lowering rule, which replaces
        the rule of the primitive. None, the default, replaces no rules.

    >>> from weft.interpreters import mlir
    >>> cosine = mlir.lower_fun(jnp.cos, multiple_results=False)
    >>> options = mlir.LoweringParameters(((lax.sin_p, cosine),))
    >>> jaxpr = weft.make_jaxpr(jnp.sin)(1.0)
    >>> result = mlir.lower_jaxpr_to_module("wave", jaxpr, lowering_parameters=options)
    >>> "stablehlo.cosine" in result.module
    True
    """

    override_lowering_rules: tuple[tuple[Primitive, LoweringRule], ...] | None = None


class LoweringResult(NamedTuple):
    """The result of `lower_jaxpr_to_module`: a module, and the Python functions that it calls.

    Attributes:
      module: the StableHLO module as text.
      keepalive: None. It exists for compatibility with JAX.
      host_callbacks: a sequence of the Python functions that the module calls.

    >>> from weft.interpreters import mlir
    >>> result = mlir.lower_jaxpr_to_module("wave", weft.make_jaxpr(jnp.sin)(1.0))
    >>> "stablehlo.sine" in result.module, len(result.host_callbacks)
    (True, 0)
    """

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
    """Set the lowering rule of a primitive, for all platforms or for one.

    A rule for the platform of the program takes precedence over a rule for all platforms.

    Args:
      prim: the primitive.
      rule: a function `rule(ctx, *values, **params)`. It writes operations with `ctx.hlo`, and
        returns a `Value` or a sequence of them. `ctx.avals_in` and `ctx.avals_out` are the types of
        the operands and the results.
      platform: the name of a platform, such as "cpu". None, the default, for all platforms.
      **options: accepted for compatibility with JAX and ignored.

    Returns:
      The rule.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> sine_p = Primitive("sine")
    >>> _ = sine_p.def_abstract_eval(lambda x: x)
    >>> def lower(ctx, x):
    ...     return ctx.hlo.op("stablehlo.sine", [x], ctx.avals_out)
    >>> _ = mlir.register_lowering(sine_p, lower)
    >>> print(weft.jit(sine_p.bind)(1.0))
    0.84147096
    """
    if not isinstance(vars(prim).get("lower"), _Lowering):
        prim.lower = _Lowering(prim)  # type: ignore[method-assign]
    prim.lower.rules[platform] = rule  # type: ignore[attr-defined]
    PATTERNS.clear()  # of what the rules there were have written
    return rule


def lower_fun(fun: Callable, multiple_results: bool = True) -> LoweringRule:
    """Return a lowering rule that writes the operations of a function.

    Args:
      fun: a function `fun(*values, **params)` on arrays.
      multiple_results: True, the default, if the function returns a sequence of arrays; False if it
        returns one array.

    Returns:
      A rule for `register_lowering`.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> double_p = Primitive("double")
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> lower = mlir.lower_fun(lambda x: x + x, multiple_results=False)
    >>> _ = mlir.register_lowering(double_p, lower)
    >>> print(weft.jit(double_p.bind)(3.0))
    6.0
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
    """Write a call of a Python function in a lowering rule.

    A rule must call it under this name, which tells weft that the program calls Python.

    Args:
      ctx: the context of the rule.
      callback: the function. It takes NumPy arrays, and returns a sequence of arrays, which are
        converted to the dtypes of the results.
      token: a token, which is returned unchanged.
      operands: the operands, a sequence of values.
      operand_avals: the types of the operands, a sequence of `ShapedArray`s.
      result_avals: the types of the results, a sequence of `ShapedArray`s.
      has_side_effect: True if the call must happen even if nothing reads its results.
      **options: accepted for compatibility with JAX and ignored.

    Returns:
      A tuple of three: the list of the result values, the token, and None.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> host_sin_p = Primitive("host_sin")
    >>> _ = host_sin_p.def_abstract_eval(lambda x: x)
    >>> def lower(ctx, x):
    ...     outs, _, _ = mlir.emit_python_callback(
    ...         ctx, lambda x: [np.sin(x)], None, [x], ctx.avals_in, ctx.avals_out,
    ...         has_side_effect=False)
    ...     return outs
    >>> _ = mlir.register_lowering(host_sin_p, lower)
    >>> print(weft.jit(host_sin_p.bind)(0.0))
    0.0
    """

    def call(*args: Any) -> list:
        outs = callback(*map(np.asarray, args))
        return [np.asarray(y, a.dtype) for y, a in zip(outs, result_avals, strict=True)]

    effect = IOEffect() if has_side_effect else None
    return ctx.hlo.host_call(call, operands, result_avals, effect), token, None


def jaxpr_subcomp(ctx: LoweringRuleContext, jaxpr: Jaxpr, *args: Value) -> list[Value]:
    """Write the equations of a program in a lowering rule.

    Args:
      ctx: the context of the rule.
      jaxpr: a `ClosedJaxpr` without consts.
      *args: the values of the inputs.

    Returns:
      A list of the values of the results.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> cosine_p = Primitive("cosine")
    >>> _ = cosine_p.def_abstract_eval(lambda x: x)
    >>> jaxpr = weft.make_jaxpr(jnp.cos)(1.0)
    >>> def lower(ctx, x):
    ...     return mlir.jaxpr_subcomp(ctx, jaxpr, x)
    >>> _ = mlir.register_lowering(cosine_p, lower)
    >>> print(weft.jit(cosine_p.bind)(0.0))
    1.0
    """
    return lower_jaxpr(ctx.hlo, jaxpr.jaxpr, args)


def core_call_lowering(
    ctx: LoweringRuleContext, *args: Value, name: str, call_jaxpr: Any, **options: Any
) -> list[Value]:
    """Write a call of a program in a lowering rule. The program is a function of the module.

    Args:
      ctx: the context of the rule.
      *args: the values of the arguments.
      name: the name of the function in the module.
      call_jaxpr: the program, a `ClosedJaxpr` without consts or a `Jaxpr`.
      **options: accepted for compatibility with JAX and ignored.

    Returns:
      A list of the values of the results.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> cosine_p = Primitive("cosine")
    >>> _ = cosine_p.def_abstract_eval(lambda x: x)
    >>> jaxpr = weft.make_jaxpr(jnp.cos)(1.0)
    >>> def lower(ctx, x):
    ...     return mlir.core_call_lowering(ctx, x, name="wave", call_jaxpr=jaxpr)
    >>> _ = mlir.register_lowering(cosine_p, lower)
    >>> "func.func private @wave" in weft.jit(cosine_p.bind).lower(0.0).as_text()
    True
    """
    return lower_call(ctx.hlo, getattr(call_jaxpr, "jaxpr", call_jaxpr), args, name)


def lower_jaxpr_to_fun(
    ctx: LoweringRuleContext, name: str, jaxpr: Any, effects: Any = (), **options: Any
) -> str:
    """Write a program as a function of the module, in a lowering rule.

    Args:
      ctx: the context of the rule.
      name: the name of the function. The module may use another name if this one is taken.
      jaxpr: the program, a `ClosedJaxpr` without consts or a `Jaxpr`.
      effects: accepted for compatibility with JAX and ignored.
      **options: accepted for compatibility with JAX and ignored.

    Returns:
      The name of the function in the module, a str.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> cosine_p = Primitive("cosine")
    >>> _ = cosine_p.def_abstract_eval(lambda x: x)
    >>> jaxpr = weft.make_jaxpr(jnp.cos)(1.0)
    >>> def lower(ctx, x):
    ...     name = mlir.lower_jaxpr_to_fun(ctx, "wave", jaxpr)
    ...     return ctx.hlo.op("func.call", [x], ctx.avals_out, callee=f"@{name}")
    >>> _ = mlir.register_lowering(cosine_p, lower)
    >>> print(weft.jit(cosine_p.bind)(0.0))
    1.0
    """
    closed = getattr(jaxpr, "jaxpr", jaxpr)
    write = lambda *xs: lower_jaxpr(ctx.hlo, closed, xs)
    return ctx.hlo.function(name, closed.in_avals, write)


def lower_jaxpr_to_module(
    module_name: str, jaxpr: Any, *, donated_args: Sequence[bool] = (),
    lowering_parameters: LoweringParameters | None = None, **options: Any,
) -> LoweringResult:  # fmt: skip
    """Return a StableHLO module with a program as its function `main`.

    The module is written as `jit` writes it.

    Args:
      module_name: the name of the module; the prefix `jit_` is added.
      jaxpr: the program, a `ClosedJaxpr`.
      donated_args: a sequence of bools, one for each argument, that marks the arguments whose
        buffers the program may reuse. The empty sequence, the default, marks none.
      lowering_parameters: rules that replace rules of primitives, as `LoweringParameters`. None,
        the default, for none.
      **options: accepted for compatibility with JAX and ignored.

    Returns:
      A `LoweringResult`.

    >>> from weft.interpreters import mlir
    >>> result = mlir.lower_jaxpr_to_module("wave", weft.make_jaxpr(jnp.sin)(1.0))
    >>> "stablehlo.sine" in mlir.module_to_string(result.module)
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
    """Return the text of a module.

    Args:
      module: a module as text, or a module of MLIR's Python bindings.
      enable_debug_info: True to keep the names of operations (`loc`). None, the default, and False
        remove them.

    Returns:
      A str.

    >>> from weft.interpreters import mlir
    >>> result = mlir.lower_jaxpr_to_module("wave", weft.make_jaxpr(jnp.sin)(1.0))
    >>> mlir.module_to_string(result.module).split()[:2]
    ['module', '@jit_wave']
    """
    return str(module) if enable_debug_info else strip_locations(str(module))


def module_to_bytecode(module: Any) -> bytes:
    """Return a module as MLIR bytecode.

    Args:
      module: a module as text, or a module of MLIR's Python bindings.

    Returns:
      The bytes.

    >>> from weft.interpreters import mlir
    >>> result = mlir.lower_jaxpr_to_module("wave", weft.make_jaxpr(jnp.sin)(1.0))
    >>> mlir.module_to_bytecode(result.module)[:4]
    b'ML\\xefR'
    """
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
    """Return the StableHLO type of an aval.

    Args:
      ctx: the context of a lowering rule, if `aval` is given; otherwise the aval itself.
      aval: a `ShapedArray`, or an object of a class in `ir_type_handlers`. None, the default, takes
        `ctx` for it.

    Returns:
      The type as text. In a rule that is written with MLIR's Python bindings it is a type of the
      bindings.

    Raises:
      KeyError: the class of the aval is not in `ir_type_handlers`.

    >>> from weft.interpreters import mlir
    >>> mlir.aval_to_ir_type(weft.typeof(jnp.ones((2, 3))))
    'tensor<2x3xf32>'
    """
    given = ctx if aval is None else aval
    return as_type(ir_type_handlers[type(given)](given))


def aval_to_ir_types(ctx: Any, aval: ShapedArray | None = None) -> tuple:
    """Return the StableHLO types that an aval stands for; in weft there is always one.

    Args:
      ctx: the context of a lowering rule, if `aval` is given; otherwise the aval itself.
      aval: a `ShapedArray`. None, the default, takes `ctx` for it.

    Returns:
      A tuple with one type, as `aval_to_ir_type` returns it.

    >>> from weft.interpreters import mlir
    >>> mlir.aval_to_ir_types(weft.typeof(jnp.ones(3)))
    ('tensor<3xf32>',)
    """
    return (aval_to_ir_type(ctx, aval),)


def dtype_text(dtype: Any) -> str:
    """Return the text of an element type: `f32`."""
    return ShapedArray((), np.dtype(dtype)).hlo.removeprefix("tensor<").removesuffix(">")


def dtype_to_ir_type(dtype: Any) -> Any:
    """Return the StableHLO element type of a dtype.

    Args:
      dtype: a dtype, or a name or a class that NumPy takes as a dtype.

    Returns:
      The type as text. In a rule that is written with MLIR's Python bindings it is a type of the
      bindings.

    >>> from weft.interpreters import mlir
    >>> mlir.dtype_to_ir_type(np.float32), mlir.dtype_to_ir_type(bool)
    ('f32', 'i1')
    """
    return as_type(dtype_text(dtype))


def ir_constant(val: Any, aval: ShapedArray | None = None, *, const_lowering: Any = None) -> Any:
    """Write a constant in a lowering rule.

    The constant is written where the rule that is running writes.

    Args:
      val: a scalar or a NumPy array, or an object of a class with a constant handler.
      aval: the type of the constant, a `ShapedArray`. A scalar is repeated to its shape. None, the
        default, takes the type of `val`.
      const_lowering: accepted for compatibility with JAX and ignored. None is the default.

    Returns:
      The `Value` of the constant.

    Raises:
      RuntimeError: no lowering rule is running.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> twice_p = Primitive("twice")
    >>> _ = twice_p.def_abstract_eval(lambda x: x)
    >>> def lower(ctx, x):
    ...     two = mlir.ir_constant(2.0, ctx.avals_in[0])
    ...     return ctx.hlo.op("stablehlo.multiply", [x, two], ctx.avals_out)
    >>> _ = mlir.register_lowering(twice_p, lower)
    >>> print(weft.jit(twice_p.bind)(jnp.arange(3.0)))
    [0. 2. 4.]
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
    """An immutable collection of tokens, one for each effect.

    Lowering rules for ordered effects pass tokens on in it.

    Args:
      tokens: a dict from effects to tokens. None, the default, makes an empty collection.

    >>> from weft.interpreters import mlir
    >>> effect = weft.debug.OrderedDebugEffect()
    >>> tokens = mlir.TokenSet({effect: "first"})
    >>> tokens.update_tokens(mlir.TokenSet({effect: "second"})).get(effect)
    'second'
    """

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
    """Set how `ir_constant` writes values of a class.

    Args:
      type_: the class. Objects of subclasses are not included.
      handler_fun: a function `handler_fun(value, aval)` that writes the value and returns a
        `Value`. `aval` is the second argument of `ir_constant`.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> price_p = Primitive("price")
    >>> _ = price_p.def_abstract_eval(lambda x: x)
    >>> class Money:
    ...     cents = 7
    >>> mlir.register_constant_handler(
    ...     Money, lambda money, aval: mlir.ir_constant(np.float32(money.cents)))
    >>> def lower(ctx, x):
    ...     return ctx.hlo.op("stablehlo.multiply", [x, mlir.ir_constant(Money())], ctx.avals_out)
    >>> _ = mlir.register_lowering(price_p, lower)
    >>> print(weft.jit(price_p.bind)(2.0))
    14.0
    """
    _constant_handlers[type_] = handler_fun


def ir_constants(val: Any, aval: ShapedArray | None = None, **options: Any) -> tuple[Value, ...]:
    """Write a constant in a lowering rule, and return the values that stand for it.

    Args:
      val: a scalar or a NumPy array, or an object of a class with a constant handler.
      aval: the type of the constant, a `ShapedArray`. None, the default, takes the type of `val`.
      **options: accepted for compatibility with JAX and ignored.

    Returns:
      A tuple with one `Value`, as `ir_constant` returns it.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> twice_p = Primitive("twice")
    >>> _ = twice_p.def_abstract_eval(lambda x: x)
    >>> def lower(ctx, x):
    ...     (two,) = mlir.ir_constants(2.0, ctx.avals_in[0])
    ...     return ctx.hlo.op("stablehlo.multiply", [x, two], ctx.avals_out)
    >>> _ = mlir.register_lowering(twice_p, lower)
    >>> print(weft.jit(twice_p.bind)(3.0))
    6.0
    """
    return (ir_constant(val, aval),)


def ir_attribute(val: Any) -> Any:
    """Return an attribute that holds a Python value.

    Args:
      val: a str, bytes, a number, a bool, a dtype or a NumPy array; or a list, a tuple or a dict of
        such values.

    Returns:
      The attribute as text. In a rule that is written with MLIR's Python bindings it is an
      attribute of the bindings.

    Raises:
      TypeError: `val` is a value of another class.

    >>> from weft.interpreters import mlir
    >>> mlir.ir_attribute({"axes": [0, 1], "late": True})
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
    """Write a shape in a lowering rule, as operations with dynamic shapes take it.

    Args:
      ctx: the context of the rule.
      sizes: a sequence of ints.

    Returns:
      The `Value` of a constant of the dtype int32 and the shape `(len(sizes),)`.

    >>> from weft.extend.core import Primitive
    >>> from weft.interpreters import mlir
    >>> filled_p = Primitive("filled")
    >>> _ = filled_p.def_abstract_eval(lambda x: x.update(shape=(2, 3)))
    >>> def lower(ctx, x):
    ...     shape = mlir.shape_tensor(ctx, [2, 3])
    ...     return ctx.hlo.op(
    ...         "stablehlo.dynamic_broadcast_in_dim", [x, shape], ctx.avals_out,
    ...         broadcast_dimensions=mlir.dense_int_array([]))
    >>> _ = mlir.register_lowering(filled_p, lower)
    >>> weft.jit(filled_p.bind)(1.0).shape
    (2, 3)
    """
    return ir_constant(np.array(sizes, np.int32), ShapedArray((len(sizes),), np.int32))


def flatten_ir_values(xs: Sequence[Any]) -> list[Value]:
    """Flatten a sequence of values or types and of sequences of them.

    Args:
      xs: a sequence; its items are values, types, or lists or tuples of them.

    Returns:
      A list without nested sequences.

    >>> from weft.interpreters import mlir
    >>> mlir.flatten_ir_types(["f32", ["i32", "i1"]])
    ['f32', 'i32', 'i1']
    """
    return [v for x in xs for v in (x if isinstance(x, list | tuple) else [x])]


flatten_ir_types = flatten_ir_values


def unflatten_ir_values_like_types(xs: Sequence[Value], ys: Sequence[Any]) -> list[Any]:
    """Nest a flat sequence of values as a sequence of types is nested.

    It is the inverse of `flatten_ir_values`.

    Args:
      xs: a flat sequence of values.
      ys: a sequence; its items are types, or lists or tuples of types.

    Returns:
      A list with a value for each type, and a list of values for each sequence of types.

    >>> from weft.interpreters import mlir
    >>> mlir.unflatten_ir_values_like_types(["%0", "%1", "%2"], ["f32", ["i32", "i1"]])
    ['%0', ['%1', '%2']]
    """
    rest = iter(xs)
    return [[next(rest) for _ in y] if isinstance(y, list | tuple) else next(rest) for y in ys]


def dense_int_array(xs: Sequence[int]) -> Any:
    """Return an array attribute of 64-bit integers, such as the axes of an operation.

    Args:
      xs: a sequence of ints.

    Returns:
      The attribute as text. In a rule that is written with MLIR's Python bindings it is an
      attribute of the bindings.

    >>> from weft.interpreters import mlir
    >>> mlir.dense_int_array([0, 2])
    'array<i64: 0, 2>'
    """
    return as_attribute(i64s(xs))


def token_type() -> Any:
    """Return the type of the tokens that order side effects.

    Returns:
      The type as text. In a rule that is written with MLIR's Python bindings it is a type of the
      bindings. Tokens of weft are int32 scalars, not StableHLO tokens.

    >>> from weft.interpreters import mlir
    >>> mlir.token_type()
    'tensor<i32>'
    """
    return as_type(TOKEN.hlo)


def i32_attr(i: int) -> Any:
    """Return an attribute that holds a 32-bit integer.

    Args:
      i: an int.

    Returns:
      The attribute as text. In a rule that is written with MLIR's Python bindings it is an
      attribute of the bindings.

    >>> from weft.interpreters import mlir
    >>> mlir.i32_attr(3)
    '3 : i32'
    """
    return as_attribute(f"{int(i)} : i32")


def i64_attr(i: int) -> Any:
    """Return an attribute that holds a 64-bit integer.

    Args:
      i: an int.

    Returns:
      The attribute as text. In a rule that is written with MLIR's Python bindings it is an
      attribute of the bindings.

    >>> from weft.interpreters import mlir
    >>> mlir.i64_attr(3)
    '3 : i64'
    """
    return as_attribute(f"{int(i)} : i64")


def dense_int_elements(xs: Any) -> Any:
    """Return a tensor attribute of 64-bit integers.

    Args:
      xs: ints, as a sequence or an array of any shape.

    Returns:
      The attribute as text. In a rule that is written with MLIR's Python bindings it is an
      attribute of the bindings.

    >>> from weft.interpreters import mlir
    >>> mlir.dense_int_elements([7])
    'dense<7> : tensor<1xi64>'
    """
    values = np.asarray(xs, np.int64)
    kind = ShapedArray(values.shape, np.int64).hlo
    return as_attribute(f"dense<{array_text(values, values.dtype)}> : {kind}")
