"""Modules as text, bytes and MLIR's objects."""

import numpy as np

import weft
import weft.numpy as jnp
from weft.extend import mlir
from weft.extend.core import Primitive
from weft.interpreters.mlir import register_lowering


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


def test_values_with_the_sharding_of_a_type():
    mesh = weft.make_mesh((1,), ("x",))
    struct = weft.ShapeDtypeStruct((2,), np.float32, sharding=weft.NamedSharding(mesh, weft.P("x")))

    def rule(ctx, x):
        assert mlir.lower_with_sharding_in_types(ctx, x, ctx.avals_in[0]) is x
        return mlir.lower_with_sharding_in_types(ctx, x, struct)

    prim = Primitive("laid")
    prim.def_abstract_eval(lambda x: x)
    register_lowering(prim, rule)
    assert "sdy.sharding_constraint" in weft.jit(prim.bind).lower(jnp.ones(2)).as_text()
