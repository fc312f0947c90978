"""Diagonals, triangles, grids and arrays made to be indices against NumPy."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import agree
from weft import export, grad, jit
from weft.errors import ShapeError


def test_matrices():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for k in (-2, 0, 1):
        agree("eye", 3, 4, k)
        agree("tri", 3, 4, k)
        agree("tril", x, k)
        agree("triu", np.stack([x, x]), k)
        agree("diag", x, k)
        agree("diag", x[0], k)
        agree("diagflat", x[:2, :2], k)
        agree("tril_indices", 3, k, 4)
        agree("triu_indices", 3, k)
    agree("eye", 200, 100)
    agree("identity", 2, dtype=np.int32)
    agree("diag_indices", 3, 3)
    agree("diag_indices_from", np.eye(2))
    agree("tril_indices_from", x)
    agree("triu_indices_from", x, 1)
    agree("mask_indices", 3, np.triu, 1)
    agree("vander", x[0])
    agree("vander", x[0], 3, increasing=True)
    np.testing.assert_array_equal(jit(lambda: jnp.eye(3, k=1))(), np.eye(3, k=1))
    np.testing.assert_array_equal(grad(lambda v: jnp.diag(v)[1, 1])(jnp.ones(2)), [0, 1])


def test_matrices_of_truth_values():
    x = np.array([[True, False, True], [True, True, True]])
    for name in ("tril", "triu", "diagflat"):
        got = getattr(jnp, name)(jnp.array(x))
        assert got.dtype == bool and (got == getattr(np, name)(x)).all()
    assert (jnp.diag(jnp.array(x[0])) == np.diag(x[0])).all()


def test_fill_diagonal():
    for shape, wrap in (((3, 4), False), ((7, 3), True), ((7, 3), False), ((3, 3, 3), False)):
        for value in (5, np.array([1, 2])):
            want = np.zeros(shape)
            np.fill_diagonal(want, value, wrap)
            got = jnp.fill_diagonal(jnp.zeros(shape), value, wrap, inplace=False)
            np.testing.assert_array_equal(got, want)
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.fill_diagonal(jnp.eye(2), 1)


def test_grids():
    for indexing in ("xy", "ij"):
        for sparse in (False, True):
            xs = (np.arange(2), np.arange(3), np.arange(4))
            agree("meshgrid", *xs, indexing=indexing, sparse=sparse)
    assert not jnp.meshgrid()
    agree("indices", (2, 3))
    agree("indices", (2, 3), sparse=True)
    agree("fromfunction", lambda i, j: i * 10 + j, (2, 3))
    assert jnp.fromfunction(lambda i, j: 1, (2, 3)).shape == (2, 3)
    assert jnp.fromfunction(lambda i, scale: scale * i, (3,), scale=2).tolist() == [0, 2, 4]


def test_ranges_and_joins():
    for made in (
        lambda m: m.mgrid[0:3],
        lambda m: m.mgrid[0:2, 0:3],
        lambda m: m.mgrid[0:1:5j],
        lambda m: m.mgrid[0:1:0.5, 1:2],
        lambda m: m.ogrid[0:2, 0:3][0],
        lambda m: m.r_[1, 2, 3:5],
        lambda m: m.r_["0,2", [1, 2], [3, 4]],
        lambda m: m.r_["1,2,0", [1, 2], [3, 4]],
        lambda m: m.c_[np.ones(2), np.zeros(2)],
    ):
        np.testing.assert_allclose(made(jnp), made(np), rtol=1e-6)
    assert jnp.s_[1:2, ::3] == np.s_[1:2, ::3] and jnp.index_exp[1:2] == np.index_exp[1:2]


def test_index_tricks():
    i, j = jnp.array([0, 2]), jnp.array([1, 3])
    for got, want in zip(jnp.ix_(i, j), np.ix_([0, 2], [1, 3]), strict=True):
        np.testing.assert_array_equal(got, want)
    mask = np.array([True, False, True])
    parts = (mask, np.zeros(0, np.float32), np.array([4, 5, 6], np.int8))
    for got, want in zip(jnp.ix_(*parts), np.ix_(*parts), strict=True):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == (np.int8 if want.dtype == np.int8 else np.int32)
    flat = np.array([0, 13, 23, 5])
    for got, want in zip(
        jnp.unravel_index(jnp.asarray(flat), (2, 3, 4)),
        np.unravel_index(flat, (2, 3, 4)),
        strict=True,
    ):
        np.testing.assert_array_equal(got, want)
    assert [int(v) for v in jnp.unravel_index(-1, (3, 4))] == [2, 3]
    places = (np.array([0, 5, -1]), np.array([1, 2, 9]))
    for order in "CF":
        for mode in ("wrap", "clip"):
            got = jnp.ravel_multi_index(tuple(map(jnp.asarray, places)), (3, 4), mode, order)
            np.testing.assert_array_equal(got, np.ravel_multi_index(places, (3, 4), mode, order))
    with pytest.raises(IndexError, match=r"places must be in \[0, 3\); got -1 to 5"):
        jnp.ravel_multi_index(tuple(map(jnp.asarray, places)), (3, 4))
    assert jnp.s_[1:2] == slice(1, 2)


def test_sizes_and_diagonals_far_beyond_an_array():
    with pytest.raises(ShapeError, match=r"2\*\*63 bytes"):
        jnp.vander(jnp.ones(3), 10**19)
    for k in (10**19, -(10**19)):
        agree("tri", 3, 3, 4 if k > 0 else -4)
        np.testing.assert_array_equal(jnp.tri(3, 3, k), np.full((3, 3), float(k > 0)))
        np.testing.assert_array_equal(jnp.tril(jnp.ones((3, 3)), k), np.full((3, 3), float(k > 0)))
    agree("vander", np.array([True, False]), 3)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: jnp.eye(-1), ShapeError, "eye: sizes must not be negative"),
        (lambda: jnp.tril(jnp.ones(3)), ShapeError, "at least two axes"),
        (lambda: jnp.diag(3.0), ShapeError, "diag: needs a vector or a matrix"),
        (lambda: jnp.fill_diagonal(jnp.ones(3), 0, inplace=False), ShapeError, "needs a matrix, o"),
        (lambda: jnp.fill_diagonal(jnp.ones((2, 2, 3)), 0, inplace=False), ShapeError, "of equal "),
        (lambda: jnp.tril_indices_from(np.ones(3)), ShapeError, r"needs a matrix; .*shape \(3,\)"),
        (lambda: jnp.diag_indices_from(np.ones((2, 3))), ShapeError, "two or more axes of equal "),
        (lambda: jnp.diag_indices_from(np.ones(2)), ShapeError, "two or more axes of equal size"),
        (lambda: jnp.meshgrid(1, 2), ShapeError, r"must have one axis; got i32\[\], i32\[\]"),
        (lambda: jnp.meshgrid(jnp.ones(2), indexing="a"), ValueError, "'xy' or 'ij'; got 'a'"),
        (lambda: jnp.meshgrid(jnp.ones(2), copy=False), ValueError, "copy must be True"),
        (lambda: jnp.vander(jnp.ones((2, 2))), ShapeError, "vander: needs a vector"),
        (lambda: jnp.mgrid[0:], ValueError, "a slice must say where to stop"),
        (lambda: jnp.r_["r", 1], NotImplementedError, "matrices are not supported; got 'r'"),
        (lambda: jnp.ix_(jnp.ones((2, 2))), ShapeError, "ix_: arguments must be vectors"),
        (lambda: jnp.ravel_multi_index((1,), (2, 3)), ShapeError, r"each axis; got 1 for \(2, 3\)"),
        (lambda: jnp.ravel_multi_index((1,), (2,), order="A"), ValueError, "order must be 'C' or"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_indices_of_a_mask_may_be_of_a_size():
    for size, want in ((2, 2), (9, 6), (None, 6)):
        got = jnp.mask_indices(3, np.triu, size=size)
        for g, w in zip(got, np.triu_indices(3), strict=True):
            assert g.shape == (size or 6,)
            np.testing.assert_array_equal(g, np.r_[w[:want], np.zeros(len(g) - want, int)])


def test_a_diagonal_of_symbolic_number():
    (n,) = export.symbolic_shape("n")
    x = weft.ShapeDtypeStruct((n,), np.dtype(np.float32))
    out = weft.eval_shape(lambda x: jnp.diag(jnp.ones(3), x.shape[0]), x)
    assert str(out.shape) == "(n + 3, n + 3)"
