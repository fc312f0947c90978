"""Rules of lowering that are written with MLIR's Python bindings."""

import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

import weft
import weft.numpy as jnp
from weft.core.aval import ShapedArray
from weft.extend.core import Primitive
from weft.interpreters import mlir


def define(name, rule, out=lambda *avals, **params: avals[0], **options):
    prim = Primitive(name)
    prim.def_abstract_eval(out)
    mlir.register_lowering(prim, rule, **options)
    return prim


def multiply_add(ctx, x, y, z):
    return [hlo.AddOp(hlo.MulOp(x, y), z).result]


def test_operations_go_into_programs():
    prim = define("multiply_add", multiply_add, platform="cpu")
    for args in ((2.0, 3.0, 4.0), [np.arange(3.0, dtype=np.float32)] * 3):
        got = weft.jit(lambda *xs: prim.bind(*xs) + prim.bind(*xs[::-1]))(*args)
        x, y, z = args
        np.testing.assert_allclose(got, x * y + z + z * y + x)
    text = weft.jit(prim.bind).lower(1.0, 2.0, 3.0).as_text()
    assert "callee = @multiply_add_main" in text and text.count("stablehlo.multiply") == 1
    looped = weft.jit(lambda x: weft.lax.fori_loop(0, 3, lambda i, c: prim.bind(c, c, c), x))
    assert looped(jnp.float32(1)) == 42


def test_helpers_give_values_types_and_attributes_of_the_bindings():
    def rule(ctx, x, *, k):
        assert (
            mlir.aval_to_ir_type(ctx.avals_out[0])
            == x.type
            == mlir.aval_to_ir_types(ctx, ctx.avals_in[0])[0]
        )
        assert ir.RankedTensorType(x.type).element_type == mlir.dtype_to_ir_type(np.float32)
        attributes = mlir.i32_attr(1), mlir.i64_attr(2), mlir.ir_attribute([1.5, "s"])
        assert all(isinstance(a, ir.Attribute) for a in attributes)
        assert isinstance(mlir.dense_int_elements([1, 2]), ir.DenseElementsAttr)
        (sizes,) = mlir.flatten_ir_values([[mlir.shape_tensor(ctx, (3,))]])
        assert str(sizes.type) == "tensor<1xi32>" and isinstance(mlir.token_type(), ir.Type)
        (values,) = mlir.unflatten_ir_values_like_types([x], [(x.type,)])
        number = mlir.ir_constant(np.float32(k), const_lowering=None)
        (c,) = mlir.ir_constants(np.float32(1))
        spread = [hlo.broadcast_in_dim(x.type, v, mlir.dense_int_array([])) for v in (number, c)]
        double = mlir.lower_fun(lambda v: jnp.sin(v) * 2, multiple_results=False)
        (y,) = double(ctx.replace(avals_out=ctx.avals_in), values[0])
        assert ctx.module_context.context and ctx.platforms == ("cpu",)
        return hlo.AddOp(hlo.AddOp(y, spread[0]), spread[1]).results

    prim = define("helped", rule)
    x = jnp.arange(3.0)
    got = weft.jit(lambda x: prim.bind(x, k=3.0) - prim.bind(x, k=5.0))(x)
    np.testing.assert_array_equal(got, [-2.0] * 3)
    np.testing.assert_allclose(
        weft.jit(lambda x: prim.bind(x, k=2.0))(x), 2 * np.sin(x) + 3, rtol=1e-6
    )


def test_regions_and_several_results():
    def rule(ctx, x):
        zero = mlir.ir_constant(np.float32(0))
        out = mlir.aval_to_ir_type(ctx.avals_out[0])
        op = hlo.ReduceOp([out], [x], [zero], mlir.dense_int_array([0]))
        scalar = ir.RankedTensorType.get([], mlir.dtype_to_ir_type(np.float32))
        block = op.regions[0].blocks.append(scalar, scalar)
        with ir.InsertionPoint(block):
            hlo.ReturnOp([hlo.AddOp(*block.arguments)])
        return [op.result], x

    prim = define("sum_rows", rule, lambda x: [ShapedArray(x.shape[1:], x.dtype), x])
    prim.multiple_results = True
    total, same = weft.jit(prim.bind)(jnp.ones((3, 2)))
    assert total.tolist() == [3, 3] and same.shape == (3, 2)


def test_errors_are_those_of_the_rule():
    def writes_text(ctx, x):
        ctx.hlo.op("stablehlo.sine", [x], ctx.avals_out)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        weft.jit(define("text", writes_text).bind)(1.0)

    def adds_integer(ctx, x):
        return [hlo.AddOp(x, mlir.ir_constant(np.int32(1))).result]

    with pytest.raises(ir.MLIRError, match="same element type"):
        weft.jit(define("wrong", adds_integer).bind)(1.0)
