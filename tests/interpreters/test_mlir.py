"""The smaller names of interpreters.mlir."""

import numpy as np
import pytest

import weft.numpy as jnp
from tests.interpreters.test_defining import X, defined
from weft import make_jaxpr
from weft.core import ShapedArray
from weft.interpreters import mlir


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
