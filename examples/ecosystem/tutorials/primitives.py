"""A primitive with its rules: evaluation, type, MLIR, derivatives, transposition and batching."""

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.lib.mlir.dialects import hlo
from jax.extend import core
from jax.interpreters import ad, batching, mlir

multiply_add_p = core.Primitive("multiply_add")


def multiply_add(x, y, z):
    return multiply_add_p.bind(x, y, z)


def square_add(a, b):
    return multiply_add(a, a, b)


def expect_missing(call):
    """A rule that is missing is a NotImplementedError itself."""
    try:
        call()
    except Exception as error:
        assert type(error) is NotImplementedError, repr(error)
    else:
        raise AssertionError("a rule was not asked for")


a, b = np.array([2.0, 3.0], np.float32), np.array([10.0, 20.0], np.float32)
expect_missing(lambda: square_add(2.0, 10.0))
multiply_add_p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
print(square_add(2.0, 10.0))

expect_missing(lambda: jax.jit(square_add)(2.0, 10.0))
multiply_add_p.def_abstract_eval(lambda x, y, z: jax.core.ShapedArray(x.shape, x.dtype))
expect_missing(lambda: jax.jit(square_add)(2.0, 10.0))
mlir.register_lowering(
    multiply_add_p, lambda ctx, x, y, z: [hlo.AddOp(hlo.MulOp(x, y), z).result], platform="cpu"
)
print(jax.jit(lambda x, y: square_add(x, y))(2.0, 10.0), jax.jit(square_add)(a, b))


def multiply_add_jvp(primals, tangents):
    x, y, z = primals
    xt, yt, zt = [jnp.zeros_like(x) if type(t) is ad.Zero else t for t in tangents]
    return multiply_add(x, y, z), multiply_add(xt, y, multiply_add(x, yt, zt))


expect_missing(lambda: jax.jvp(square_add, (2.0, 10.0), (1.0, 1.0)))
ad.primitive_jvps[multiply_add_p] = multiply_add_jvp
print(jax.jvp(square_add, (2.0, 10.0), (1.0, 1.0)))
print(jax.jit(lambda x, t: jax.jvp(square_add, x, t))((2.0, 10.0), (1.0, 1.0)))


def multiply_add_transpose(ct, x, y, z):
    if ad.is_undefined_primal(x):
        return multiply_add(ct, y, jnp.zeros_like(y)), None, ct
    return None, multiply_add(x, ct, jnp.zeros_like(x)), ct


expect_missing(lambda: jax.grad(square_add)(2.0, 10.0))
ad.primitive_transposes[multiply_add_p] = multiply_add_transpose
print(jax.grad(square_add)(2.0, 10.0), jax.jit(jax.grad(square_add))(2.0, 10.0))

expect_missing(lambda: jax.vmap(square_add)(a, b))
batching.primitive_batchers[multiply_add_p] = lambda xs, dims: (multiply_add(*xs), dims[0])
print(jax.vmap(square_add)(a, b), jax.jit(jax.vmap(square_add))(a, b))
