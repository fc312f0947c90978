"""StableHLO as text, bytes and MLIR's own objects: the names of `jax.extend.mlir`.

`ir`, `dialects` and `passmanager` are the bindings that jaxlib ships; weft itself writes text,
which `ir.Module.parse(text, make_ir_context())` reads.
"""

from __future__ import annotations

from typing import Any

import jaxlib.mlir.dialects as dialects
import jaxlib.mlir.ir as ir
import jaxlib.mlir.passmanager as passmanager
from jaxlib import _jax

from weft.mesh.sharding import NamedSharding
from weft.util import list_public
from weft.xla.callbacks import mlir_context as make_ir_context

__all__ = [
    "deserialize_portable_artifact", "dialects", "hlo_to_stablehlo", "ir",
    "lower_with_sharding_in_types", "make_ir_context", "passmanager",
    "refine_polymorphic_shapes", "serialize_portable_artifact",
]  # fmt: skip
__dir__ = list_public(__name__)

hlo_to_stablehlo = _jax.mlir.hlo_to_stablehlo
refine_polymorphic_shapes = _jax.mlir.refine_polymorphic_shapes


def serialize_portable_artifact(
    mlir_module: Any, target: str, use_mixed_serialization: bool = False
) -> bytes:
    """Return a StableHLO module as bytes that later versions of StableHLO can read.

    It is for programs that are stored or sent to another version of weft, JAX or XLA.

    Args:
      mlir_module: the text of a module, or a module of `ir`.
      target: the oldest version of StableHLO that must be able to read the bytes, such as "1.0.0".
      use_mixed_serialization: True permits operations of other dialects than StableHLO. The default
        is False.

    Returns:
      The module as bytes.

    Raises:
      JaxRuntimeError: the text is not a module.

    >>> from weft.extend import mlir
    >>> text = weft.jit(jnp.sin).lower(1.0).as_text()
    >>> blob = mlir.serialize_portable_artifact(text, "1.0.0")
    >>> "stablehlo.sine" in str(mlir.deserialize_portable_artifact(blob))
    True
    """
    text = mlir_module if isinstance(mlir_module, str) else str(mlir_module)
    return _jax.mlir.serialize_portable_artifact(text, target, use_mixed_serialization)


def deserialize_portable_artifact(mlir_module: bytes, context: Any = None) -> Any:
    """Return the module that `serialize_portable_artifact` wrote as bytes.

    Args:
      mlir_module: bytes.
      context: the MLIR context that the module belongs to. None takes the shared context,
        `make_ir_context()`.

    Returns:
      A module of `ir`. `str(module)` is its text.

    Raises:
      JaxRuntimeError: the bytes are not a module.

    >>> from weft.extend import mlir
    >>> blob = mlir.serialize_portable_artifact(weft.jit(jnp.sin).lower(1.0).as_text(), "1.0.0")
    >>> module = mlir.deserialize_portable_artifact(blob)
    >>> isinstance(module, mlir.ir.Module)
    True
    """
    return _jax.mlir.deserialize_portable_artifact(mlir_module, context or make_ir_context())


def lower_with_sharding_in_types(ctx: Any, op: Any, aval: Any) -> Any:
    """Constrain a value to the sharding of its type, within a lowering rule.

    It is for rules of primitives whose results have shardings in their types. The value is returned
    unchanged if its type has no sharding.

    Args:
      ctx: the `LoweringRuleContext` of the rule.
      op: the value, as the rule receives its operands.
      aval: the type of the value, a `ShapedArray`.

    Returns:
      The value with the constraint, or the value unchanged.

    >>> from weft.extend.core import Primitive
    >>> from weft.extend.mlir import lower_with_sharding_in_types
    >>> from weft.interpreters import mlir
    >>> same_p = Primitive("same")
    >>> _ = same_p.def_abstract_eval(lambda x: x)
    >>> def lower_same(ctx, x):
    ...     return [lower_with_sharding_in_types(ctx, x, ctx.avals_out[0])]
    >>> _ = mlir.register_lowering(same_p, lower_same)
    >>> print(weft.jit(same_p.bind)(jnp.arange(3)))
    [0 1 2]
    """
    sharding = getattr(aval, "sharding", None)
    if not isinstance(sharding, NamedSharding) or sharding.mesh.empty:
        return op
    text = sharding.sdy(len(aval.shape), ctx.hlo.named(sharding.mesh))
    return ctx.hlo.op("sdy.sharding_constraint", [op], [op.aval], sharding=f"#sdy.sharding{text}")[
        0
    ]
