"""The smaller names of interpreters.mlir."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.interpreters.test_defining import X, defined
from weft import lax, make_jaxpr
from weft.core import ShapedArray
from weft.extend import lowering
from weft.extend import mlir as mlir_module
from weft.extend.core import Primitive
from weft.interpreters import mlir, pxla
from weft.primitives.effects import DebugEffect, IOEffect


def test_names_of_mlir():
    aval = ShapedArray((3,), np.float32)
    assert mlir.aval_to_ir_type(aval) == "tensor<3xf32>"
    assert mlir.aval_to_ir_types(aval) == ("tensor<3xf32>",)
    assert mlir.dtype_to_ir_type(np.int32) == "i32"
    assert mlir.i32_attr(3) == "3 : i32" and mlir.i64_attr(3) == "3 : i64"
    assert mlir.dense_int_array([1, 2]) == "array<i64: 1, 2>"
    assert mlir.dense_int_elements([2, 2]) == "dense<2> : tensor<2xi64>"
    with pytest.raises(
        RuntimeError, match="ir_constant: must be called in a lowering rule, for it"
    ):
        mlir.ir_constant(1.0)
    inner = make_jaxpr(lambda x: jnp.sin(x) + 1)(X)
    prim = defined("written", lambda x: x, None)
    mlir.register_lowering(prim, lambda ctx, x: mlir.jaxpr_subcomp(ctx, inner.jaxpr, x))
    np.testing.assert_allclose(prim.bind(X), np.sin(X) + 1, rtol=1e-6)


def test_programs_as_functions_and_modules():
    inner = make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    seen = []

    def rule(ctx, x):
        seen.append((ctx.axis_context, ctx.module_context.platforms))
        name = mlir.lower_jaxpr_to_fun(ctx, "inner", inner)
        (y,) = ctx.hlo.call(name, [x], ctx.avals_out)
        return mlir.core_call_lowering(ctx, y, name="again", call_jaxpr=inner)

    prim = Primitive("calls")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, rule)
    assert np.isclose(weft.jit(prim.bind)(1.0), 2 * np.sin(2 * np.sin(1)))
    assert seen[0] == (mlir.ShardingContext(1), ("cpu",))

    module = mlir.lower_jaxpr_to_module(
        "sine", make_jaxpr(jnp.sin)(1.0), donated_args=[True]
    ).module
    assert "@jit_sine" in module and "tf.aliasing_output" in module
    given = mlir.LoweringParameters(((lax.sin_p, lambda ctx, x: ctx.hlo.like("cosine", x)[0]),))
    other = mlir.lower_jaxpr_to_module("f", make_jaxpr(jnp.sin)(1.0), lowering_parameters=given)
    assert "stablehlo.cosine" in other.module and "cosine" not in module
    assert ".sine" in weft.jit(jnp.sin).lower(1.0).as_text()  # the rule holds only there
    assert mlir.module_to_bytecode(module).startswith(b"ML")
    scoped = weft.jit(weft.named_scope("here")(jnp.sin)).lower(1.0).as_text(debug_info=True)
    assert (
        "here" in mlir.module_to_string(scoped, True),
        "here" in mlir.module_to_string(scoped),
    ) == (True, False)


def test_constants_and_attributes():
    class Half:
        """A constant of a class of its own."""

    def rule(ctx, x):
        values = mlir.flatten_ir_values([x, mlir.ir_constants(Half())])
        x, (half,) = mlir.unflatten_ir_values_like_types(values, [x.aval.hlo, [x.aval.hlo]])
        sizes = mlir.shape_tensor(ctx, (2, 3))
        assert (sizes.aval.hlo, mlir.token_type()) == ("tensor<2xi32>", "tensor<i32>")
        return ctx.hlo.like("multiply", x, half)

    mlir.register_constant_handler(Half, lambda value, aval: mlir.ir_constant(np.float32(0.5)))
    prim = Primitive("halve")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, rule)
    assert weft.jit(prim.bind)(jnp.float32(3)) == 1.5
    for value, text in [
        (True, "true"), (3, "3 : i64"), (2.5, "0x4004000000000000 : f64"), ("s", '"s"'),
        (np.float32(1), "0x3F800000 : f32"),
        ((True, [1]), "[true, [1 : i64]]"), ({"a": b"x"}, '{a = "x"}'), (np.dtype("int8"), "i8"),
        (np.int8([0, 1]), 'dense<"0x0001"> : tensor<2xi8>'),
    ]:  # fmt: skip
        assert mlir.ir_attribute(value) == text
    with pytest.raises(TypeError, match="ir_attribute: needs a string, number, .*; got None"):
        mlir.ir_attribute(None)


def test_contexts_and_options():
    text = weft.jit(jnp.sin).lower(1.0).as_text()
    assert lowering.JaxIrContext() is not lowering.upstream_dialects
    assert "sine" in str(mlir_module.ir.Module.parse(text, lowering.JaxIrContext()))
    options = pxla.create_compile_options(None, False, [], [], None, weft.devices()[:1], {"a": "b"})
    assert (options.num_partitions, dict(options.env_option_overrides)["a"]) == (1, "b")
    assert mlir.aval_to_ir_types(ShapedArray((2,), np.float32)) == ("tensor<2xf32>",)
    traced = weft.jit(jnp.sin).trace(1.0)
    assert traced.lojax is traced


def test_tokens_by_effect():
    first, second = IOEffect(), DebugEffect()
    tokens = mlir.TokenSet({first: 1, second: 2})
    assert tokens.effects() == {first, second} and tokens.get(second) == 2
    assert tokens.subset([first]).items() == ((first, 1),)
    assert tokens.update_tokens(mlir.TokenSet({first: 3})).get(first) == 3
    assert mlir.lowerable_effects.contains(first) and not mlir.TokenSet().items()
