"""Operands that do not fit: every operation rejects them, with its own name and the types.

tests/golden/refusals.txt has the messages, and the answers of each primitive to variants of the
types and parameters of its rows in cases_*.py. `python -m tests.primitives.test_errors` writes it
anew; with the name of a primitive it prints all answers of the primitive.
"""

import collections
import functools
import inspect
import re
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import weft.numpy as jnp
from tests.primitives.cases import SHORT, all_cases
from weft import jit, lax, vmap
from weft.core.aval import typeof
from weft.core.jaxpr import Literal
from weft.core.primitive import Primitive
from weft.core.stage import stage
from weft.errors import DtypeError, IndexingError, ShapeError
from weft.primitives import collective, window
from weft.primitives import random as bits
from weft.primitives.reduction import reduce_nansum_p

A, B, V = jnp.ones((2, 3)), jnp.ones((4, 5)), jnp.ones(3)
INT, CPX, TRUE = (jnp.ones((2, 3), d) for d in (np.int32, np.complex64, np.bool_))
IMG, KER = jnp.ones((1, 2, 8, 8)), jnp.ones((4, 3, 3, 3))
gd = lax.GatherDimensionNumbers((0,), (), (0,))
sd = lax.ScatterDimensionNumbers((), (0,), (0,))

# Calls that must fail, by function; calls of one operand, or of two alike, are below.
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
    "reduce_nansum": [
        lambda: reduce_nansum_p.apply(A, axes=(5,), counts=False),
        lambda: reduce_nansum_p.apply(INT, axes=(0,), counts=True),
    ],
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

# More ways of theirs to fail: parameters of the wrong kind, or that do not go together.
KEYS, PARTS = jnp.zeros((2, 2), np.uint32), lax.RaggedDotDimensionNumbers
CELLS = jnp.zeros((2, 1), np.int32)
UNFIT = [
    lambda: lax.bitcast_convert_type(jnp.ones((2, 3), np.int8), np.int32),
    lambda: lax.broadcast_in_dim(A, 2, (0,)),
    lambda: lax.broadcast_in_dim(A, (2, 3), (0, 1, 2)),
    lambda: lax.conv_general_dilated(IMG, V, (1, 1), "SAME"),
    lambda: lax.conv_general_dilated(IMG, KER, (1, 1), ((0, 0), 1)),
    lambda: lax.conv_general_dilated(
        IMG, KER, (1, 1), "SAME", dimension_numbers=("NC", "OI", "NC")
    ),
    lambda: lax.conv_general_dilated(IMG, KER, 1, "SAME"),
    lambda: lax.conv_general_dilated(IMG, KER, (1, 1), "SAME", feature_group_count=3),
    lambda: lax.conv_general_dilated(IMG, KER, (1, 1), "SAME", batch_group_count=2),
    lambda: lax.dot_general(A, A, 5),
    lambda: lax.dot_general(A, A, (((1,), (1,)), ((), ())), precision="many"),
    lambda: lax.dynamic_slice(A, 5, (1, 1)),
    lambda: lax.dynamic_slice(A, (0, 0), (1, 1), allow_negative_indices=(True,)),
    lambda: lax.dynamic_slice(A, (0, 0), (1, 1), allow_negative_indices="no"),
    lambda: lax.dynamic_slice(A, (0, 0), 1),
    lambda: lax.dynamic_update_slice(A, A, (0, 0, 0)),
    lambda: lax.expand_dims(A, (0, 0)),
    lambda: lax.expand_dims(A, 0.5),
    lambda: lax.fft(A, "sine", (3,)),
    lambda: lax.fft(CPX, "RFFT", (3,)),
    lambda: lax.fft(CPX, "FFT", (1, 1, 2, 3)),
    lambda: lax.fft(CPX, "IRFFT", (3,)),
    lambda: lax.full((2, 3), 1j, np.float32),
    lambda: lax.full((2, 0.5), 1.0),
    lambda: lax.full_like(A, "x"),
    lambda: lax.gather(A, CELLS, gd, (1, 1), mode="near"),
    lambda: lax.gather(A, CELLS, (1, 2), (1, 1)),
    lambda: lax.gather(A, CELLS, gd, 1),
    lambda: lax.gather(A, CELLS, gd, (3, 1)),
    lambda: lax.index_take(A, (jnp.zeros(2, np.int32),), (0, 1)),
    lambda: lax.index_take(A, 5, (0,)),
    lambda: lax.integer_pow(A, "2"),
    lambda: lax.iota(np.int32, 0.5),
    lambda: lax.iota(np.bool_, 3),
    lambda: lax.pad(A, 0.0, 5),
    lambda: lax.pad(A, 0.0, [(0, 0), (0, 0)]),
    lambda: lax.pad(A, 0.0, [(0, 0, -1)] * 2),
    lambda: lax.pow(CPX, jnp.ones(3, np.int32)),
    lambda: lax.ragged_dot_general(A, A, CELLS[:, 0], 5),
    lambda: lax.ragged_dot_general(A, A, CELLS[:, 0], PARTS((((1,), (1,)), ((), ())), (0, 1), ())),
    lambda: lax.ragged_dot_general(A, A, CELLS[0, 0], PARTS((((1,), (1,)), ((), ())), (0,), ())),
    lambda: lax.ragged_dot_general(A, A, A, PARTS((((1,), (1,)), ((), ())), (0,), ())),
    lambda: lax.ragged_dot_general(A, A, CELLS[:, 0], PARTS((((1,), (1,)), ((), ())), (0,), ())),
    lambda: lax.reduce(A, 0.0, lax.add, 0.5),
    lambda: lax.reduce_precision(A, 8, -1),
    lambda: lax.reduce_precision(A, 8, 2.5),
    lambda: lax.reduce_window(A, 0.0, lax.add, (1, 1), padding="all"),
    lambda: lax.reduce_window(A, 0.0, lax.add, (0, 1)),
    lambda: lax.reduce_window(A, 0.0, lax.add, 2),
    lambda: lax.reduce_window_shape_tuple((3,), (2,), (1,), ((0,),)),
    lambda: lax.reshape(A, (6,), dimensions=(0, 0)),
    lambda: lax.reshape(A, "ab"),
    lambda: lax.rev(A, "ab"),
    lambda: lax.rng_bit_generator(KEYS[0], (2,), algorithm=7),
    lambda: lax.rng_bit_generator(KEYS[0], (2**31,)),
    lambda: lax.rng_uniform(V, V, (3,)),
    lambda: lax.scatter(A, CELLS, V, 5),
    lambda: lax.scatter_add(
        A, CELLS, jnp.ones((2, 4)), lax.ScatterDimensionNumbers((1,), (0,), (0,))
    ),
    lambda: lax.scatter_add(A, CELLS, V, lax.ScatterDimensionNumbers((1,), (0,), (0, 1))),
    lambda: lax.scatter_add(
        A, CELLS, jnp.ones((3, 3)), lax.ScatterDimensionNumbers((1,), (0,), (0,))
    ),
    lambda: lax.scatter_apply(A, CELLS, 5, sd),
    lambda: lax.scatter_apply(A, CELLS, lambda x: x > 0, sd),
    lambda: lax.slice(A, 0, 1),
    lambda: lax.slice(A, (0, 0), (0.5, 1)),
    lambda: lax.sort(A, "first"),
    lambda: lax.sort((A,), num_keys=0),
    lambda: lax.split(A, (1, 1), 0.5),
    lambda: lax.top_k(A, -1),
    lambda: lax.top_k(A, 1.5),
    lambda: lax.top_k(A, 1, axis=5),
    lambda: lax.Tolerance(),
    lambda: lax.Tolerance(atol=-1.0, rtol=2.0),
    lambda: lax.convert_element_type(np.array(["a"]), np.float32),
    lambda: lax.add(A, "a"),
    lambda: lax.add(A, 1j),
    lambda: lax.add(INT, 2**40),
    lambda: lax.linalg.qdwh(A),
    lambda: lax.linalg.qdwh(A.T, eps=2.0),
    lambda: lax.linalg.qdwh(A.T, eps="small"),
    lambda: lax.linalg.qdwh(A.T, max_iterations=-1),
    lambda: vmap(
        lambda i: window.select_and_scatter(A, lax.ge, (2, 1), (2, 1), "VALID", A[:1], i, lax.add)
    )(V),
    lambda: lax.linalg.qdwh(A.T, dynamic_shape=(1, 2, 3)),
    lambda: lax.linalg.qdwh(V),
    lambda: lax.linalg.cholesky(A),
    lambda: lax.linalg.eigh(INT[:, :2]),
    lambda: lax.linalg.eigh(A[:, :2], subset_by_index=(0, 5)),
    lambda: lax.linalg.eigh(A[:, :2], subset_by_index=(1, 1)),
    lambda: lax.linalg.householder_product(A, B),
    lambda: lax.linalg.lu_pivots_to_permutation(CELLS[:, 0], 1),
    lambda: lax.linalg.lu_pivots_to_permutation(A, 3),
    lambda: lax.linalg.ormqr(A, V, A),
    lambda: lax.linalg.qr(V),
    lambda: lax.linalg.svd(A, full_matrices=True, subset_by_index=(0, 1)),
    lambda: lax.linalg.svd(A, full_matrices=False, subset_by_index=(0, 9)),
    lambda: lax.linalg.symmetric_product(A, V),
    lambda: lax.linalg.symmetric_product(A, B),
    lambda: lax.linalg.triangular_solve(A, A),
    lambda: lax.linalg.triangular_solve(A[:, :2], B),
    lambda: lax.linalg.tridiagonal(A),
    lambda: lax.linalg.tridiagonal_solve(V, V, V, V),
    lambda: lax.linalg.tridiagonal_solve(V, V, V[:2], A.T),
]

# The same of collectives, over an axis `i` of two copies.
UNFIT_COPIES = [
    lambda x: lax.psum_scatter(x, "i"),
    lambda x: lax.psum_scatter(x, "i", tiled=True),
    lambda x: lax.psum_scatter(x, "i", scatter_dimension=2),
    lambda x: lax.psum(x, "j"),
    lambda x: lax.psum("a", "i"),
    lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], []]),
    lambda x: lax.psum(x, "i", axis_index_groups=[[0]]),
    lambda x: lax.psum(x, "i", axis_index_groups=5),
    lambda x: lax.pmax(x, (3, "i")),
    lambda x: lax.all_to_all(x, "i", 0, 0),
    lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
    lambda x: lax.all_to_all(x, "i", 0, 3),
    lambda x: lax.pswapaxes(x, "i", 0),
    lambda x: lax.ppermute(x, "i", [(0, 5)]),
    lambda x: lax.ppermute(x, "i", [(0, 1), (0, 0)]),
    lambda x: lax.ppermute(x, "i", 5),
    lambda x: lax.pshuffle(x, "i", [0, 0]),
    lambda x: lax.pbroadcast(x, "i", 7),
    lambda x: lax.pbroadcast(x, "i", "a"),
    lambda x: lax.all_gather(x, "i", axis=5),
    lambda x: lax.all_gather(x, "i", to="varied"),
    lambda x: lax.all_gather(x, ("i", "i")),
    lambda x: lax.axis_size("k"),
    lambda x: lax.axis_index("k"),
    lambda x: lax.pcast(x, "i", to="v"),
    lambda x: lax.pvary(x, "k"),
]

# Functions of sizes only, or of any operands.
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
    """Return the parameter names of an operation of primitives/; none for other functions."""
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


# --- variants of the types and parameters of a row -----------------------------------------------

GOLDEN = Path(__file__).parents[1] / "golden/refusals.txt"


KINDS = [np.dtype(d) for d in (np.bool_, np.int32, np.float32, np.complex64)]


def other_types(aval):
    shape = aval.shape
    shapes = [(*shape, 2)]
    if shape:
        shapes += [shape[:-1], (*shape[:-1], shape[-1] + 1), (shape[0] + 1, *shape[1:])]
    return [
        *(aval.update(shape=s) for s in dict.fromkeys(shapes)),
        *(aval.update(dtype=d) for d in KINDS if d != aval.dtype),
    ]


def other_values(x):
    """A parameter with one of its numbers changed, or with one more or less."""
    if isinstance(x, bool | int):
        return [not x] if isinstance(x, bool) else [x + 1, 7, -1]
    if not isinstance(x, tuple):
        return []
    make = getattr(type(x), "_make", tuple)
    found = [] if make is not tuple else [(*x, x[-1] if x else 0), *([x[:-1]] if x else [])]
    return found + [
        make((*x[:i], new, *x[i + 1 :])) for i, y in enumerate(x) for new in other_values(y)
    ]


def find_equation(jaxpr, prim):
    for eqn in jaxpr.eqns:
        inner = [p for p in eqn.params.values() if hasattr(p, "eqns")]
        found = [eqn] if eqn.primitive is prim else [find_equation(p, prim) for p in inner]
        if found := next(filter(None, found), None):
            return found
    return None


def outcome(prim, avals, params):
    """Return the types of the results, or the error; only "raised" for errors of others."""
    try:
        return ", ".join(map(str, prim.abstract_eval(*avals, **params)))
    except Exception as error:
        return f"{type(error).__name__}: {error}" if "; got " in str(error) else "Exception"


def outcomes_of(prim, avals, params):
    """Yield the answers of a type rule to a call, and to calls with one change."""
    calls = [(avals, params)]
    if len(avals) > 1:
        calls += [([a.update(dtype=d) for a in avals], params) for d in KINDS]
    for i, aval in enumerate(avals):
        calls += [([*avals[:i], a, *avals[i + 1 :]], params) for a in other_types(aval)]
    for key, value in params.items():
        calls += [(avals, {**params, key: new}) for new in other_values(value)]
    return [outcome(prim, *call) for call in calls]


def typical_calls():
    """(primitive, types, parameters) of the rows in cases_*.py, and of what can have none there."""
    for case in all_cases():
        xs = [typeof(x) for x in case.arrays(SHORT[case.dtypes.split()[0]])]
        if eqn := find_equation(stage(case.apply, xs)[0], case.prim):
            avals = [typeof(v.val) if isinstance(v, Literal) else v.aval for v in eqn.invars]
            yield case.prim, avals, eqn.params
    x, keys = typeof(jnp.ones((4, 6))), typeof(jnp.zeros((3, 2), np.uint32))
    one = {"axis_name": ("i",), "axis_index_groups": None}
    whole, reduced = {**one, "axis_size": 2, "tiled": True}, {**one, "axis_size": 4, "tiled": False}
    yield collective.psum_p, [x], {"axes": ("i", 0), "axis_index_groups": None}
    yield collective.all_gather_p, [x], {**whole, "all_gather_dimension": 1}
    yield collective.all_gather_p, [x], {**reduced, "all_gather_dimension": 2}
    yield collective.reduce_scatter_p, [x], {**whole, "scatter_dimension": 1}
    yield collective.reduce_scatter_p, [x], {**reduced, "scatter_dimension": 0}
    yield collective.all_to_all_p, [x], {**whole, "split_axis": 1, "concat_axis": 0}
    yield bits.random_fold_in_p, [keys, typeof(jnp.zeros(3, np.uint32))], {}
    for prim, more in ((bits.random_bits_p, {"bit_width": 64}), (bits.random_split_p, {})):
        yield prim, [keys], {"shape": (5,), "partitionable": True, **more}
        yield prim, [keys], {"shape": (2**31 - 1,), "partitionable": True, **more}
    yield bits.threefry2x32_p, [keys] * 4, {}
    for words in (4, 2):
        params = {"shape": (5,), "dtype": np.dtype(np.uint32), "algorithm": 1}
        yield bits.rng_bit_generator_p, [typeof(jnp.zeros((3, words), np.uint32))], params


@functools.cache
def calls_by_name():
    found = collections.defaultdict(list)
    for prim, avals, params in typical_calls():
        found[prim.name].append((prim, avals, params))
    return found


def list_asked():
    wrong = [f"{name}()" for name in sorted(WRONG)]
    return [*sorted(calls_by_name()), *wrong, "in other ways", "of copies"]


def describe_refusals(asked):
    """Return a primitive's answers with their numbers and a digest, or the errors of calls."""
    if asked in calls_by_name():
        outs = [out for call in calls_by_name()[asked] for out in outcomes_of(*call)]
        stems = collections.Counter(x.partition("; got ")[0] for x in outs if "Error: " in x)
        digest = zlib.crc32(chr(10).join(outs).encode())
        lines = [
            f"{len(outs)} calls, {digest:08x}",
            *(f"{n} {s}" for s, n in sorted(stems.items())),
        ]
    elif asked.endswith("()"):
        lines = [refused(code) for code in WRONG[asked[:-2]]]
    else:
        of_copies = [lambda f=f: vmap(f, axis_name="i")(A) for f in UNFIT_COPIES]
        lines = []
        for code in UNFIT if asked == "in other ways" else of_copies:
            with pytest.raises((TypeError, ValueError, OverflowError, NameError)) as info:
                code()
            lines.append(f"{type(info.value).__name__}: {info.value}")
    return [" ".join(x.split("\n")) for x in lines]


@functools.cache
def read_refusals():
    blocks = GOLDEN.read_text().split("== ")[1:]
    return {(lines := block.splitlines())[0]: lines[1:] for block in blocks}


@pytest.mark.parametrize("asked", read_refusals())
def test_what_is_said_of_types_that_do_not_fit(asked):
    """If only a digest differs, compare with the texts before (`git stash`), see above."""
    assert describe_refusals(asked) == read_refusals()[asked]


def test_everything_is_asked():
    assert list_asked() == [*read_refusals()]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        shown = [call for call in typical_calls() if call[0].name in sys.argv]
        print(*[line for call in shown for line in outcomes_of(*call)], sep="\n")
    else:
        parts = ["\n".join([f"== {k}", *describe_refusals(k), ""]) for k in list_asked()]
        GOLDEN.write_text("".join(parts))
