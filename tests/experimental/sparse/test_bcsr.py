"""BCSR, COO, CSR and CSC against NumPy: operators, products, and the way to SciPy and back."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.errors import ShapeError
from weft.experimental import sparse

M = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 5]], np.float32)
V, W = np.arange(4, dtype=np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)
CLASSES = [sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC]


def dense(x):
    return np.asarray(x.todense() if hasattr(x, "todense") else x)


ROWS = [
    (lambda x: x, M),
    (lambda x: x.T, M.T),
    (lambda x: (x + 2 * x - x / 2) * M, 2.5 * M * M),
    (lambda x: abs(-x) * x, M * M),
    (lambda x: x @ V, M @ V),
    (lambda x: x @ W, M @ W),
    (lambda x: V[:3] @ x, V[:3] @ M),
    (lambda x: x.T @ W[:3], M.T @ W[:3]),
    (lambda x: x @ np.ones((2, 4, 3)), M @ np.ones((2, 4, 3))),
    (lambda x: x @ x.T, M @ M.T),
    (lambda x: x[1:], M[1:]),
    (lambda x: x[0], M[0]),
    (lambda x: x.sum(1), M.sum(1)),
    (lambda x: x.astype(np.int32), M.astype(np.int32)),
    (lambda x: sparse.sparsify(lambda x, v: jnp.sin(x) @ v)(x, V), np.sin(M) @ V),
    (lambda x: weft.tree.map(lambda a: a, x), M),
]


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("cls", CLASSES)
def test_operations_agree_with_numpy(cls):
    """All of them in one program."""
    types = []

    def run(x):
        found = [fun(x) for fun, _ in ROWS]
        types.append([type(y) for y in found])
        return [y.todense() if hasattr(y, "todense") else y for y in found]

    pair = cls.fromdense(M), cls.fromdense(M, nse=8)
    for found in weft.jit(lambda *xs: [run(x) for x in xs])(*pair):
        for y, (_, want) in zip(found, ROWS, strict=True):
            np.testing.assert_allclose(y, want, rtol=1e-6)
    for found in types:
        assert found[1] is {sparse.CSR: sparse.CSC, sparse.CSC: sparse.CSR}.get(cls, cls)
        assert found[2] is cls


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("cls", CLASSES)
def test_scipy_and_creation(cls):
    import scipy.sparse

    name = cls.__name__.lower()
    x = cls.from_scipy_sparse(scipy.sparse.csr_array(M))
    back = x.to_scipy_sparse()
    assert back.format == name.removeprefix("b")
    np.testing.assert_array_equal(back.todense(), M)
    np.testing.assert_array_equal(dense(sparse.eye(4, 3, -1, sparse_format=name)), np.eye(4, 3, -1))
    assert sparse.empty((2, 3), sparse_format=name).todense().sum() == 0
    assert repr(x) == f"{cls.__name__}(float32[3, 4], nse=5)"
    with pytest.raises(TypeError, match=f"{cls.__name__}: must be given"):
        cls((M,), shape=M.shape)


def test_batches_and_blocks():
    both = np.stack([M, 2 * M])
    x = sparse.BCSR.fromdense(both, n_batch=1)
    np.testing.assert_allclose(x @ np.ones((2, 4, 3), np.float32), both @ np.ones((2, 4, 3)))
    np.testing.assert_allclose(weft.vmap(lambda m: m @ V)(x), both @ V)
    np.testing.assert_allclose(
        weft.vmap(lambda m, w: m @ w, in_axes=(None, 1))(x[0], W), np.stack([M @ w for w in W.T])
    )
    np.testing.assert_allclose(dense(x.transpose((0, 2, 1))), both.transpose(0, 2, 1))
    blocks = sparse.BCSR.fromdense(both.transpose(1, 2, 0), n_dense=1)
    assert blocks.n_dense == 1
    np.testing.assert_allclose(dense(blocks * 2), 2 * both.transpose(1, 2, 0))
    np.testing.assert_allclose(
        sparse.bcsr_extract(x.indices, x.indptr, both * 3), np.asarray(x.data) * 3
    )
    with pytest.raises(ShapeError, match="bcsr_fromdense: two axes must be left"):
        sparse.BCSR.fromdense(both)
    with pytest.raises(ShapeError, match=r"BCSR: data must be \[\*batch, nse"):
        sparse.BCSR((x.data, x.indices, x.indptr[:, 1:]), shape=x.shape)


def test_functions_of_formats():
    coo, csr = sparse.coo_fromdense(M), sparse.csr_fromdense(M, nse=6)
    np.testing.assert_allclose(sparse.coo_matvec(coo, V[:3], transpose=True), V[:3] @ M)
    np.testing.assert_allclose(sparse.csr_matmat(csr, W), M @ W)
    np.testing.assert_allclose(sparse.csr_todense(csr), sparse.coo_todense(coo))
    with pytest.raises(ShapeError, match="csr_matvec: the dense operand must have 1 axes"):
        sparse.csr_matvec(csr, W)
    x = sparse.BCSR.fromdense(M)
    np.testing.assert_allclose(dense(sparse.bcsr_concatenate([x, x], dimension=0))[3:], M)
    assert sparse.bcsr_sum_duplicates(x + x).nse == 5


@pytest.mark.parametrize("cls", [sparse.BCOO, sparse.BCSR])
def test_matrices_of_scipy_have_no_batches(cls):
    import scipy.sparse

    with pytest.raises(NotImplementedError, match=f"{cls.__name__}.from_scipy_sparse: n_dense and"):
        cls.from_scipy_sparse(scipy.sparse.eye_array(2), n_batch=1)
