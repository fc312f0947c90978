"""Operands that do not fit: every operation refuses them, in its own name, and shows types."""

import inspect
import re

import numpy as np
import pytest

import weft.numpy as jnp
from weft import jit, lax
from weft.core.primitive import Primitive
from weft.errors import DtypeError, IndexingError, ShapeError

A, B, V = jnp.ones((2, 3)), jnp.ones((4, 5)), jnp.ones(3)
INT, CPX, TRUE = (jnp.ones((2, 3), d) for d in (np.int32, np.complex64, np.bool_))
IMG, KER = jnp.ones((1, 2, 8, 8)), jnp.ones((4, 3, 3, 3))
gd = lax.GatherDimensionNumbers((0,), (), (0,))
sd = lax.ScatterDimensionNumbers((), (0,), (0,))

# Calls that must fail, by function; those of one operand, or of two alike, are below.
WRONG = {
    "after_all": [lambda: lax.after_all(A)],
    "approx_max_k": [lambda: lax.approx_max_k(A, 7)],
    "approx_min_k": [lambda: lax.approx_min_k(A, 7)],
    "argmax": [lambda: lax.argmax(A, 5, np.int32), lambda: lax.argmax(CPX, 0, np.int32)],
    "argmin": [lambda: lax.argmin(A, 5, np.int32), lambda: lax.argmin(CPX, 0, np.int32)],
    "batch_matmul": [lambda: lax.batch_matmul(A, B), lambda: lax.batch_matmul(V, V)],
    "betainc": [lambda: lax.betainc(A, B, A), lambda: lax.betainc(INT, INT, INT)],
    "bitcast_convert_type": [lambda: lax.bitcast_convert_type(A, np.complex64)],
    "broadcast": [lambda: lax.broadcast(A, (-1,))],
    "broadcast_in_dim": [
        lambda: lax.broadcast_in_dim(A, (2, 4), (0, 1)),
        lambda: lax.broadcast_in_dim(A, (2, 3), (0,)),
    ],
    "broadcasted_iota": [lambda: lax.broadcasted_iota(np.int32, (2,), 3)],
    "clamp": [lambda: lax.clamp(V, A, V), lambda: lax.clamp(INT, A, INT)],
    "collapse": [lambda: lax.collapse(A, 2, 1)],
    "concatenate": [
        lambda: lax.concatenate([A, B], 0),
        lambda: lax.concatenate([A, INT], 0),
        lambda: lax.concatenate([A, A], 5),
        lambda: lax.concatenate([], 0),
    ],
    "conv": [lambda: lax.conv(IMG, KER, (1, 1), "SAME"), lambda: lax.conv(A, B, (1,), "SAME")],
    "conv_general_dilated": [
        lambda: lax.conv_general_dilated(IMG, KER, (1, 1), "SAME"),
        lambda: lax.conv_general_dilated(IMG, IMG.astype(np.int32), (1, 1), "SAME"),
        lambda: lax.conv_general_dilated(IMG, KER, (1,), "SAME"),
    ],
    "conv_general_dilated_local": [
        lambda: lax.conv_general_dilated_local(IMG, KER, (1, 1), "SAME", (3, 3))
    ],
    "conv_general_dilated_patches": [
        lambda: lax.conv_general_dilated_patches(IMG, (3,), (1, 1), "SAME")
    ],
    "conv_transpose": [lambda: lax.conv_transpose(IMG, KER, (1, 1), "SAME")],
    "conv_with_general_padding": [
        lambda: lax.conv_with_general_padding(IMG, KER, (1, 1), ((0, 0),), None, None)
    ],
    "convert_element_type": [
        lambda: lax.convert_element_type(A, "foo"),
        lambda: lax.convert_element_type("a", np.float32),
    ],
    "cumlogsumexp": [lambda: lax.cumlogsumexp(A, 5), lambda: lax.cumlogsumexp(INT, 0)],
    "cummax": [lambda: lax.cummax(A, 5)],
    "cummin": [lambda: lax.cummin(A, 5)],
    "cumprod": [lambda: lax.cumprod(A, 5)],
    "cumsum": [lambda: lax.cumsum(A, 5)],
    "dot": [lambda: lax.dot(A, B), lambda: lax.dot(V, B)],
    "dot_general": [
        lambda: lax.dot_general(A, B, (((1,), (0,)), ((), ()))),
        lambda: lax.dot_general(A, B, (((5,), (0,)), ((), ()))),
        lambda: lax.dot_general(A, A, (((1,), (1,)), ((0,), ()))),
    ],
    "dynamic_index_in_dim": [
        lambda: lax.dynamic_index_in_dim(A, 0, 7),
        lambda: lax.dynamic_index_in_dim(A, 0.5, 0),
    ],
    "dynamic_slice": [
        lambda: lax.dynamic_slice(A, (0,), (1, 1)),
        lambda: lax.dynamic_slice(A, (0, 0), (3, 3)),
        lambda: lax.dynamic_slice(A, (0.0, 0.0), (1, 1)),
    ],
    "dynamic_slice_in_dim": [lambda: lax.dynamic_slice_in_dim(A, 0, 9)],
    "dynamic_update_index_in_dim": [lambda: lax.dynamic_update_index_in_dim(A, B, 0, 0)],
    "dynamic_update_slice": [
        lambda: lax.dynamic_update_slice(A, B, (0, 0)),
        lambda: lax.dynamic_update_slice(A, INT, (0, 0)),
        lambda: lax.dynamic_update_slice(A, V, (0, 0)),
    ],
    "dynamic_update_slice_in_dim": [lambda: lax.dynamic_update_slice_in_dim(A, B, 0, 0)],
    "expand_dims": [lambda: lax.expand_dims(A, (7,))],
    "full": [lambda: lax.full((-1,), 1.0), lambda: lax.full((2,), A)],
    "full_like": [lambda: lax.full_like(A, B)],
    "fft": [
        lambda: lax.fft(A, "FFT", (5,)),
        lambda: lax.fft(A, lax.FftType.RFFT, (1, 1, 1)),
        lambda: lax.fft(INT, lax.FftType.RFFT, (2,)),
    ],
    "gather": [lambda: lax.gather(A, INT, gd, (1,)), lambda: lax.gather(A, A, gd, (1, 1))],
    "index_in_dim": [lambda: lax.index_in_dim(A, 7, 0), lambda: lax.index_in_dim(A, 0, 7)],
    "index_take": [lambda: lax.index_take(A, (A,), (0,))],
    "integer_pow": [lambda: lax.integer_pow(A, 1.5), lambda: lax.integer_pow(TRUE, 2)],
    "iota": [lambda: lax.iota(np.int32, -1)],
    "pad": [
        lambda: lax.pad(A, 0.0, [(0, 0, 0)]),
        lambda: lax.pad(A, V, [(0, 0, 0)] * 2),
        lambda: lax.pad(A, np.int32(0), [(0, 0, 0)] * 2),
        lambda: lax.pad(A, 0.0, [(-5, 0, 0)] * 2),
    ],
    "padtype_to_pads": [lambda: lax.padtype_to_pads((3,), (2,), (1,), "half")],
    "ragged_dot": [lambda: lax.ragged_dot(A, B, jnp.array([1, 1]))],
    "ragged_dot_general": [
        lambda: lax.ragged_dot_general(
            A,
            B,
            jnp.array([1, 1]),
            lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)),
        )
    ],
    "reduce": [
        lambda: lax.reduce(A, INT, lax.add, (0,)),
        lambda: lax.reduce(A, 0.0, lax.add, (5,)),
        lambda: lax.reduce(A, 0.0, lambda x, y: (x, y), (0,)),
    ],
    "reduce_and": [lambda: lax.reduce_and(A, (0,))],
    "reduce_max": [lambda: lax.reduce_max(A, (5,))],
    "reduce_min": [lambda: lax.reduce_min(A, (5,))],
    "reduce_or": [lambda: lax.reduce_or(A, (0,))],
    "reduce_precision": [
        lambda: lax.reduce_precision(INT, 5, 10),
        lambda: lax.reduce_precision(A, 0, 10),
    ],
    "reduce_prod": [lambda: lax.reduce_prod(A, (5,))],
    "reduce_sum": [lambda: lax.reduce_sum(A, (5,))],
    "reduce_window": [
        lambda: lax.reduce_window(A, 0.0, lax.add, (2,)),
        lambda: lax.reduce_window(A, INT, lax.add, (1, 1)),
    ],
    "reduce_xor": [lambda: lax.reduce_xor(A, (0,))],
    "reshape": [lambda: lax.reshape(A, (4,)), lambda: lax.reshape(A, (-1, 7))],
    "rev": [lambda: lax.rev(A, (5,)), lambda: lax.rev(A, (0, 0))],
    "rng_bit_generator": [
        lambda: lax.rng_bit_generator(A, (2,)),
        lambda: lax.rng_bit_generator(jnp.zeros(4, np.uint32), (2,), np.float32),
        lambda: lax.rng_bit_generator(jnp.zeros(4, np.uint32), (-2,)),
    ],
    "rng_uniform": [
        lambda: lax.rng_uniform(INT, INT, (3,)),
        lambda: lax.rng_uniform(0.0, 1.0, (-3,)),
    ],
    "round": [lambda: lax.round(INT)],
    "scatter": [lambda: lax.scatter(A, INT, B, sd), lambda: lax.scatter(A, A, B, sd)],
    "scatter_add": [
        lambda: lax.scatter_add(A, INT, B, sd),
        lambda: lax.scatter_add(A, jnp.zeros((2, 1), np.int32), INT, sd),
    ],
    "scatter_apply": [lambda: lax.scatter_apply(A, INT, lax.sin, sd)],
    "scatter_max": [lambda: lax.scatter_max(A, INT, B, sd)],
    "scatter_min": [lambda: lax.scatter_min(A, INT, B, sd)],
    "scatter_mul": [lambda: lax.scatter_mul(A, INT, B, sd)],
    "scatter_sub": [lambda: lax.scatter_sub(A, INT, B, sd)],
    "select": [
        lambda: lax.select(TRUE, A, B),
        lambda: lax.select(A, A, A),
        lambda: lax.select(TRUE, A, INT),
    ],
    "select_n": [lambda: lax.select_n(TRUE, A, B)],
    "slice": [
        lambda: lax.slice(A, (0,), (1,)),
        lambda: lax.slice(A, (0, 0), (9, 9)),
        lambda: lax.slice(A, (0, 0), (1, 1), (0, 1)),
    ],
    "slice_in_dim": [lambda: lax.slice_in_dim(A, 0, 9), lambda: lax.slice_in_dim(A, 0, 1, axis=7)],
    "sort": [lambda: lax.sort(A, 5), lambda: lax.sort((A, B)), lambda: lax.sort((A,), num_keys=3)],
    "sort_key_val": [lambda: lax.sort_key_val(A, B)],
    "split": [lambda: lax.split(A, (1, 5)), lambda: lax.split(A, (1, 1), 7)],
    "squeeze": [lambda: lax.squeeze(A, (0,)), lambda: lax.squeeze(A, (9,))],
    "stack": [lambda: lax.stack([A, B]), lambda: lax.stack([])],
    "tile": [lambda: lax.tile(A, (1,)), lambda: lax.tile(A, (-1, 1))],
    "top_k": [lambda: lax.top_k(A, 9), lambda: lax.top_k(CPX, 1)],
    "transpose": [lambda: lax.transpose(A, (0,)), lambda: lax.transpose(A, (0, 0))],
    "unstack": [lambda: lax.unstack(A, 7), lambda: lax.unstack(1.0)],
}

# Functions of sizes alone, or that take whatever there is.
TAKE_ANYTHING = {
    "create_token",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to_rank",
    "conv_dimension_numbers",
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose_shape_tuple",
    "dce_sink",
    "empty",
    "optimization_barrier",
    "reduce_window_shape_tuple",
    "stop_gradient",
}


def parameters(name):
    """The parameter names of an operation of primitives/; none for what is no such operation."""
    fun = getattr(lax, name)
    if not inspect.isfunction(fun) or not fun.__module__.startswith("weft.primitives."):
        return []
    return list(inspect.signature(fun).parameters)


def is_unary(name):
    names = parameters(name)
    return names[:1] == ["x"] and names[1:] in ([], ["accuracy"])


FUNCTIONS = [n for n in lax.__all__ if parameters(n)]
BINARY = [n for n in FUNCTIONS if parameters(n)[:2] == ["x", "y"] and n not in WRONG]
UNARY = [n for n in FUNCTIONS if is_unary(n) and n not in WRONG and n not in TAKE_ANYTHING]


def operation_names():
    found, todo = set(lax.__all__), [Primitive]
    while todo:
        cls = todo.pop()
        todo += cls.__subclasses__()
        found.add(cls.name)
    found |= {getattr(lax, n).name for n in lax.__all__ if n.endswith("_p")}
    return found | {"array", "dtype", "padding"}


NAMES = operation_names()


def refused(code, error=(ShapeError, DtypeError, IndexingError, ValueError)):
    with pytest.raises(error) as info:
        code()
    message = str(info.value)
    name, _, rest = message.partition(": ")
    assert name in NAMES, message
    assert re.search(r"must|needs|stay", rest), message
    assert "; got " in rest, message
    return message


def test_every_operation_has_a_row():
    rows = {*WRONG, *BINARY, *UNARY, *TAKE_ANYTHING}
    assert set(FUNCTIONS) <= rows, set(FUNCTIONS) - rows


@pytest.mark.parametrize("name", BINARY)
def test_two_operands_that_differ(name):
    fun = getattr(lax, name)
    assert refused(lambda: fun(A, B), ShapeError).endswith("; got f32[2,3], f32[4,5].")
    assert refused(lambda: jit(fun)(A, B), ShapeError).endswith("; got f32[2,3], f32[4,5].")
    if name != "pow":  # which takes integer exponents
        assert refused(lambda: fun(A, INT), DtypeError).endswith("; got f32[2,3], i32[2,3].")


@pytest.mark.parametrize("name", UNARY)
def test_an_operand_that_is_no_array(name):
    fun = getattr(lax, name)
    assert "got a list. Hint: jnp.array([1.0])" in refused(lambda: fun([1.0]), DtypeError)
    assert "got a str" in refused(lambda: jit(lambda x: fun("x"))(1.0), DtypeError)


@pytest.mark.parametrize("name", sorted(WRONG))
def test_calls_that_must_fail(name):
    for code in WRONG[name]:
        refused(code)
