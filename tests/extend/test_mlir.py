"""Modules as text, bytes and MLIR's objects."""

import weft
import weft.numpy as jnp
from weft.extend import mlir


def test_modules_and_their_bytes():
    text = weft.jit(jnp.sin).lower(1.0).as_text()
    module = mlir.ir.Module.parse(text, mlir.make_ir_context())
    for given in (text, module):
        blob = mlir.serialize_portable_artifact(given, "1.0.0")
        assert "stablehlo.sine" in str(mlir.deserialize_portable_artifact(blob))
    mlir.passmanager.PassManager.parse("builtin.module(cse)", mlir.make_ir_context()).run(
        module.operation
    )
    assert hasattr(mlir.dialects, "stablehlo") or mlir.dialects
    proto = weft.jit(jnp.sin).lower(1.0).compiler_ir("hlo").as_serialized_hlo_module_proto()
    assert mlir.hlo_to_stablehlo(proto)
