"""Errors of functions of arrays: one row for each mistake, with the whole message."""
# ruff: noqa: E501  (a mistake is one row)

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.errors import DtypeError, IndexingError, ShapeError

X, M = jnp.ones(3), jnp.ones((2, 3))
TRACED = "needs a concrete value; got a traced i32[] from argument"

ROWS = [
    (lambda: jnp.repeat(X, jnp.ones(2, int)), ShapeError, "repeat: repeats must be one number, or one for each of 3 elements; got shape (2,)."),
    (lambda: jnp.repeat(X, jnp.ones((1, 3), int)), ShapeError, "repeat: repeats must be one number, or one for each of 3 elements; got shape (1, 3)."),
    (lambda: jnp.repeat(X, np.array([1, -2, 0])), ShapeError, "repeat: repeats must not be negative; got -2."),
    (lambda: jnp.repeat(X, 2, total_repeat_length=-1), ValueError, "repeat: total_repeat_length must be at least 0; got -1."),
    (lambda: weft.jit(lambda n: jnp.repeat(X, n))(2), weft.errors.ConcretizationTypeError, "repeat: " + TRACED),
    (lambda: jnp.delete(X, np.array([True, False])), IndexingError, "delete: a mask must have shape (3,); got (2,)."),
    (lambda: weft.jit(lambda i: jnp.delete(X, i))(jnp.arange(2)), weft.errors.ConcretizationTypeError, "delete: "),
    (lambda: jnp.trim_zeros(X, "x"), ValueError, "trim_zeros: trim must be 'f', 'b' or 'fb'; got 'x'."),
    (lambda: jnp.trim_zeros(X, 1), ValueError, "trim_zeros: trim must be 'f', 'b' or 'fb'; got 1."),
    (lambda: jnp.mask_indices(2, 3), TypeError, "mask_indices: mask_func must be a function; got 3."),
    (lambda: jnp.fft.fft(X, -2), ValueError, "fft: a number of points must be at least -1; got -2."),
    (lambda: jnp.histogram(X, range=(0, np.inf)), ValueError, "histogram_bin_edges: range must be finite and ascend; got (0, inf)."),
    (lambda: jnp.histogram(X, range=(2, 1)), ValueError, "histogram_bin_edges: range must be finite and ascend; got (2, 1)."),
    (lambda: jnp.isposinf(1j), DtypeError, "isposinf: operands must be real; got c64[]."),
    (lambda: jnp.isneginf(X, out=X), NotImplementedError, "isneginf: out must be None"),
    (lambda: jnp.where(X > 0, X), TypeError, "where: there must be both x and y, or neither; got one of them."),
    (lambda: jnp.where(X > 0, X, X, size=2), ValueError, "where: size and fill_value must be left out where x and y are given."),
    (lambda: jnp.select([X], [X]), DtypeError, "select: conditions must be bool; got f32[3]."),
    (lambda: jnp.select([X > 0], []), ValueError, "select: "),
    (lambda: jnp.piecewise(X, [X > 0], [1, 2, 3]), ValueError, "piecewise: "),
    (lambda: jnp.einsum("ij,jk", X, X), ValueError, "einsum: "),
    (lambda: jnp.einsum("ij->ik", M), ValueError, "einsum: "),
    (lambda: jnp.einsum("i..j", M), ValueError, "einsum: "),
    (lambda: jnp.einsum("i,i", X), ValueError, "einsum: "),
    (lambda: jnp.einsum("i", X, optimize=3), (TypeError, ValueError), "einsum: "),
    (lambda: jnp.full(2, 2**70), OverflowError, "full: an integer must fit 64 bits; got 1180591620717411303424."),
    (lambda: jnp.arange(np.inf), ValueError, "arange: arguments must be finite; got "),
    (lambda: jnp.round(X > 0), DtypeError, "round: operands must be numbers; got bool[3]."),
    (lambda: jnp.bincount(jnp.arange(2), length=-1), ValueError, "bincount: length must not be negative; got -1."),
    (lambda: jnp.histogram(X, range=(1, 2, 3)), ValueError, "histogram_bin_edges: range must be (low, high); got (1, 2, 3)."),
    (lambda: X[::0], ValueError, "x[start:stop:step]: the step must not be zero; got "),
    (lambda: jnp.choose(X, []), TypeError, "choose: "),
    (lambda: jnp.choose(jnp.arange(2), []), ValueError, "choose: choices must hold an array; got none."),
    (lambda: jnp.linalg.svd(jnp.eye(2), hermitian=True, subset_by_index=(0, 1)), NotImplementedError, "svd: subset_by_index must be None for hermitian=True; got (0, 1)."),
    (lambda: jnp.linalg.matrix_norm(X), ShapeError, "matrix_norm: x must hold matrices (..., m, n); got f32[3]."),
    (lambda: jnp.hstack({1: X}), TypeError, "hstack: operands must be arrays or numbers; got a dict ({1: Array("),
    (lambda: jnp.rot90(M, axes=(0,)), ShapeError, "rot90: axes must be two; got (0,)."),
    (lambda: X.to_device(X.device, stream=1), NotImplementedError, "to_device: stream must be None; the engine orders transfers."),
    (lambda: X.summ(), AttributeError, "array: has no attribute 'summ'; got f32[3]. Hint: x.sum."),
    (lambda: jnp.matmul(jnp.ones((2, 2, 3)), jnp.ones((3, 3, 2))), ShapeError, "matmul: leading axes must broadcast together; got f32[2,2,3], f32[3,3,2]."),
    (lambda: jnp.trace(M, axis1=1, axis2=-1), ShapeError, "trace: axis1 and axis2 must differ; got 1 and -1."),
    (lambda: jnp.cross(jnp.ones(4), X), ShapeError, "cross: vectors must be of length 2 or 3; got f32[4], f32[3]."),
    (lambda: jnp.add(object(), 1), TypeError, "add: "),
    (lambda: X + jnp.ones(2), ShapeError, "add: shapes must broadcast together; got f32[3], f32[2]."),
    (lambda: jnp.sum(X, out=X), NotImplementedError, "sum: out must be None, for arrays do not change; got ArrayImpl. Hint: out = jnp.sum(...)."),
    (lambda: jnp.digitize(X, M), ShapeError, "digitize: bins must be a vector; got f32[2,3]."),
    (lambda: jnp.vander(M), ShapeError, "vander: needs a vector; got f32[2,3]."),
    (lambda: jnp.fliplr(X), ShapeError, "fliplr: needs at least two axes; got f32[3]."),
    (lambda: jnp.sum(M, axis=1.5), TypeError, "sum: axis must be an integer; got 1.5."),
    (lambda: weft.jit(lambda i: jnp.cumsum(X, i))(0), weft.errors.TracerIntegerConversionError, "index(): " + TRACED),
    (lambda: jnp.sum(M, axis=-3), ShapeError, "sum: axis must name an axis of an array of rank 2; got -3."),
    (lambda: jnp.sum(M, axis=(0, -2)), ShapeError, "sum: axes must be distinct; got (0, -2)."),
    (lambda: jnp.zeros({2, 3}), TypeError, "zeros: shape must be integers; got {2, 3}."),
    (lambda: jnp.zeros(b"ab"), TypeError, "zeros: shape must be integers; got b'ab'."),
    (lambda: jnp.zeros(iter([2])), TypeError, "zeros: shape must be integers; got <list_iterator"),
    (lambda: weft.jit(lambda n: jnp.zeros(n))(2), TypeError, "zeros: "),
    (lambda: weft.jit(lambda n: jnp.zeros((n, 2)))(2), TypeError, "zeros: "),
    (lambda: jnp.zeros((2, -1)), ShapeError, "zeros: sizes must not be negative; got (2, -1)."),
    (lambda: jnp.var(X, ddof="a"), TypeError, "var: ddof must be a number known now; got 'a'."),
    (lambda: weft.new_ref(X, kind="x"), ValueError, "new_ref: kind must be None or 'no_grad_no_remat'; got 'x'."),
    (lambda: weft.empty_ref(3), TypeError, "empty_ref: ty must have a shape and a dtype of numbers; got 3."),
    (lambda: weft.empty_ref(np.array("a")), TypeError, "empty_ref: ty must have a shape and a dtype of numbers; got array('a'"),
    (lambda: jnp.place(X, jnp.ones(2, bool), X, inplace=False), ShapeError, "place: mask must be of the size of arr; got bool[2], f32[3]."),
    (lambda: jnp.place(X, X > 0, jnp.ones(0), inplace=False), ShapeError, "place: there must be values; got f32[0]."),
    (lambda: X.view(type=int), NotImplementedError, "view: type must be None, for there is one type of array."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ROWS, ids=range(len(ROWS)))
def test_mistakes_are_named(call, error, text):
    with pytest.raises(error) as info:
        call()
    assert str(info.value).startswith(text), str(info.value)
