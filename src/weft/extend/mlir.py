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
    """A module, text or one of `ir`'s, as bytes that versions of StableHLO from `target` on read.

    >>> text = weft.jit(jnp.sin).lower(1.0).as_text()
    >>> blob = serialize_portable_artifact(text, "1.0.0")
    >>> "stablehlo.sine" in str(deserialize_portable_artifact(blob))
    True
    """
    text = mlir_module if isinstance(mlir_module, str) else str(mlir_module)
    return _jax.mlir.serialize_portable_artifact(text, target, use_mixed_serialization)


def deserialize_portable_artifact(mlir_module: bytes, context: Any = None) -> Any:
    """The module, one of `ir`'s, that bytes stand for."""
    return _jax.mlir.deserialize_portable_artifact(mlir_module, context or make_ir_context())


def lower_with_sharding_in_types(ctx: Any, op: Any, aval: Any) -> Any:
    """In a rule of lowering, the value `op` with the sharding of `aval`, where it has one."""
    sharding = getattr(aval, "sharding", None)
    if not isinstance(sharding, NamedSharding) or sharding.mesh.empty:
        return op
    text = sharding.sdy(len(aval.shape), ctx.hlo.named(sharding.mesh))
    return ctx.hlo.op("sdy.sharding_constraint", [op], [op.aval], sharding=f"#sdy.sharding{text}")[
        0
    ]
