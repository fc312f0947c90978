"""BCOO arrays against NumPy: every function, on arrays of several layouts, with padding and
duplicates, compiled and mapped."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.errors import ConcretizationTypeError, ShapeError
from weft.experimental import sparse
from weft.experimental.sparse import BCOO

rng = np.random.default_rng(0)
A = np.round(rng.normal(size=(2, 3, 4)) * 3) * (rng.random((2, 3, 4)) < 0.5)
A = A.astype(np.float32)
LAYOUTS = [(0, 0), (1, 1), (2, 0), (0, 2)]


def messy(x, n_batch=0, n_dense=0):
    """x with two entries at each place, and padding, unsorted."""
    half = BCOO.fromdense(x / 2, n_batch=n_batch, n_dense=n_dense, nse=7 if not n_batch else None)
    both = half + half
    assert both.nse == 2 * half.nse
    assert not both.unique_indices
    return both


def change_layout(x, n_batch, n_dense):
    return x.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=None)


def made_dense(x):
    return x.todense() if hasattr(x, "todense") else x


def dense(x):
    return np.asarray(made_dense(x))


ROWS = {
    "todense": (lambda x: x, lambda x: x),
    "transpose": (lambda x: x.T, lambda x: x.T),
    "permute": (lambda x: x.transpose((0, 2, 1)), lambda x: x.transpose(0, 2, 1)),
    "arithmetic": (lambda x: -(x * 2 - x / 4 + x), lambda x: -(x * 2 - x / 4 + x)),
    "times dense": (lambda x: np.arange(4) * x * A[:, :1], lambda x: np.arange(4) * x * A[:, :1]),
    "over dense": (lambda x: x / np.arange(1, 5), lambda x: x / np.arange(1, 5)),
    "outer": (lambda x: x[..., None] * np.ones(2), lambda x: x[..., None] * np.ones(2)),
    "plus dense": (lambda x: x + A, lambda x: x + A),
    "nonlinear": (lambda x: abs(x) ** 2, lambda x: x**2),
    "power": (lambda x: abs(x) ** 1.5, lambda x: abs(x) ** 1.5),
    "sum": (lambda x: x.sum(), lambda x: x.sum()),
    "sum over some": (lambda x: x.sum((0, 2)), lambda x: x.sum((0, 2))),
    "sum, axes kept": (lambda x: x.sum(1, keepdims=True), lambda x: x.sum(1, keepdims=True)),
    "item": (lambda x: x[1], lambda x: x[1]),
    "last item": (lambda x: x[..., -1], lambda x: x[..., -1]),
    "slices": (lambda x: x[:, ::-1, 1::2], lambda x: x[:, ::-1, 1::2]),
    "new axis": (lambda x: x[:, None, 1:], lambda x: x[:, None, 1:]),
    "array": (lambda x: x[:, np.array([2, 0])], lambda x: x[:, np.array([2, 0])]),
    "arrays": (lambda x: x[np.array([1, 0]), np.array([2, 0])], lambda x: x[[1, 0], [2, 0]]),
    "mask": (lambda x: x[np.array([True, False])], lambda x: x[np.array([True, False])]),
    "traced item": (lambda x: x[jnp.int32(1), 2], lambda x: x[1, 2]),
    "reshape": (lambda x: x.reshape(6, -1), lambda x: x.reshape(6, -1)),
    "reshape within": (lambda x: x.reshape(2, 4, 3), lambda x: x.reshape(2, 4, 3)),
    "reshape apart": (lambda x: x.reshape(1, 2, 3, 2, 2), lambda x: x.reshape(1, 2, 3, 2, 2)),
    "astype": (lambda x: x.astype(np.int32), lambda x: x.astype(np.int32)),
    "sort": (lambda x: x.sort_indices(), lambda x: x),
    "sum duplicates": (lambda x: x.sum_duplicates(nse=x.nse), lambda x: x),
    "no zeros": (
        lambda x: sparse.bcoo_eliminate_zeros(x * (A > 0), nse=x.nse),
        lambda x: x * (A > 0),
    ),
    "broadcast": (
        lambda x: sparse.bcoo_broadcast_in_dim(
            x[:, :, :1], shape=(3, 2, 2, 3, 2, 4), broadcast_dimensions=(2, 3, 5)
        ),
        lambda x: np.broadcast_to(x[None, None, :, :, None, :1], (3, 2, 2, 3, 2, 4)),
    ),
    "concatenate": (
        lambda x: sparse.bcoo_concatenate([x, x * 2], dimension=1),
        lambda x: np.concatenate([x, 2 * x], 1),
    ),
    "concatenate first": (
        lambda x: sparse.bcoo_concatenate([x, x.sort_indices()], dimension=0),
        lambda x: np.concatenate([x, x], 0),
    ),
    "concatenate last": (
        lambda x: sparse.bcoo_concatenate([x, x], dimension=-1),
        lambda x: np.concatenate([x, x], 2),
    ),
    "dynamic slice": (
        lambda x: sparse.bcoo_dynamic_slice(x, (jnp.int32(0), 5, -1), (1, 2, 3)),
        lambda x: x[:1, 1:, :3],
    ),
    "rev": (lambda x: sparse.bcoo_rev(x, (0, 1, 2)), lambda x: x[::-1, ::-1, ::-1]),
    "squeeze": (
        lambda x: sparse.bcoo_squeeze(x[:1, :, 3:], dimensions=(0, -1)),
        lambda x: x[0, :, 3],
    ),
    "extract": (
        lambda x: sparse.bcoo_extract(x, jnp.asarray(A) ** 2),
        lambda x: np.where(x != 0, A**2, 0),
    ),
}  # fmt: skip


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_functions_agree_with_numpy(layout):
    """All of them in one program."""
    x = messy(A, *layout)
    rows = {n: row for n, row in ROWS.items() if n != "extract" or layout not in LAYOUTS[1::2]}
    found = weft.jit(lambda x: {name: made_dense(fun(x)) for name, (fun, _) in rows.items()})(x)
    for name, (_, want) in rows.items():
        np.testing.assert_allclose(found[name], want(A), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("layout", LAYOUTS[:2])
def test_every_layout_becomes_every_other(layout):
    others = [(n, m) for n in range(4) for m in range(4 - n)]
    made = []

    def change(x):
        made.extend(change_layout(x, *other) for other in others)
        return [y.todense() for y in made]

    for y in weft.jit(change)(messy(A, *layout)):
        np.testing.assert_allclose(y, A, rtol=1e-6)
    for n, m in others:
        x = BCOO.fromdense(A, n_batch=n, n_dense=m, nse=12)
        assert (x.n_batch, x.n_dense, x.nse) == (n, m, 12)
        np.testing.assert_array_equal(dense(x), A)
    assert [(y.n_batch, y.n_dense) for y in made] == others
    for y, (n, m) in zip(made, others, strict=True):
        assert y.indices.shape == (*A.shape[:n], y.nse, 3 - n - m)
        assert y.data.shape == (*A.shape[:n], y.nse, *A.shape[3 - m :])


def test_an_array_says_what_it_is():
    x = BCOO.fromdense(A, n_batch=1, n_dense=1)
    assert repr(x) == "BCOO(float32[2, 3, 4], nse=3, n_batch=1, n_dense=1)"
    assert (x.ndim, x.size, len(x), x.n_sparse, x.dtype) == (3, 24, 2, 1, np.float32)
    assert [y.shape for y in x] == [(3, 4)] * 2
    assert "BCOO(" in repr(weft.tree.map(lambda _: None, x))
    assert x.block_until_ready() is x
    assert (x.indices_sorted, x.unique_indices) == (True, True)
    assert not x.T.indices_sorted


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "float16", "complex64"])
def test_dtypes(dtype):
    x = (A.astype(bool) if dtype == "bool" else abs(A)).astype(dtype)
    mat = BCOO.fromdense(x)
    np.testing.assert_array_equal(dense(mat).astype(complex), x.astype(complex))
    assert mat.dtype == x.dtype
    twice = weft.jit(lambda m: (m + m).sum_duplicates(nse=m.nse))(mat)
    np.testing.assert_array_equal(dense(twice).astype(complex), (x + x).astype(complex))


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (1,)])
def test_sizes_of_zero_and_of_one(shape):
    x = np.ones(shape, np.float32)
    for mat in (BCOO.fromdense(x), BCOO.fromdense(x, nse=3), sparse.empty(shape)):
        want = dense(mat)
        assert want.shape == shape
        np.testing.assert_array_equal(dense((mat + mat).sum_duplicates()), 2 * want)
        turned, total = weft.jit(lambda m: ((m.T * 2).todense(), m.sum()))(mat)
        np.testing.assert_array_equal(turned, 2 * want.T)
        assert total == want.sum()


def test_from_dense_makes_room():
    x = BCOO.fromdense(A[0], nse=9)
    assert x.nse == 9
    assert (np.asarray(x.indices)[-1] == [3, 4]).all()
    assert np.count_nonzero(dense(BCOO.fromdense(A[0], nse=2))) == 2
    with pytest.raises(ConcretizationTypeError, match="bcoo_fromdense: nse: .* Hint: give nse"):
        weft.jit(BCOO.fromdense)(A)
    np.testing.assert_array_equal(
        dense(weft.grad(lambda x: (BCOO.fromdense(x, nse=9) * 2).sum())(A[0])), 2 * (A[0] != 0)
    )


def test_batches_are_mapped_scanned_and_stacked():
    x = BCOO.fromdense(A, n_batch=1)
    v = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(weft.vmap(lambda m: m @ v)(x), A @ v)
    made = weft.vmap(lambda m: m * 2, out_axes=0)(x)
    assert made.shape == A.shape
    assert made.n_batch == 1
    np.testing.assert_allclose(dense(made), 2 * A)
    total, rows = lax.scan(lambda c, m: (c + m @ v, m.T), jnp.zeros(3), x)
    np.testing.assert_allclose(total, (A @ v).sum(0), rtol=1e-6)
    np.testing.assert_allclose(dense(rows), A.transpose(0, 2, 1))
    stacked = weft.tree.map(lambda *xs: jnp.stack(xs), x[0], x[1])
    np.testing.assert_allclose(dense(stacked), A)
    with pytest.raises(
        ShapeError,
        match=(
            r"BCOO: only axes of batches can be mapped or taken away; got one with 0 of them, "
            r"of shape \(2, 3, 4\)\. Hint: x\.update_layout\(n_batch=1\)\."
        ),
    ):
        weft.vmap(lambda m: m.todense())(BCOO.fromdense(A))


def test_scipy():
    import scipy.sparse

    want = scipy.sparse.random_array((5, 6), density=0.3, rng=0).astype(np.float32)
    for kind in ("coo", "csr", "csc"):
        mat = BCOO.from_scipy_sparse(want.asformat(kind))
        np.testing.assert_array_equal(dense(mat), want.todense())
    back = (mat + sparse.empty((5, 6), nse=2)).to_scipy_sparse()
    assert back.nnz == want.nnz
    np.testing.assert_array_equal(back.todense(), want.todense())


def test_what_is_created():
    for n, m, k in [(3, 4, 1), (4, 3, -2), (2, 2, 5)]:
        np.testing.assert_array_equal(dense(sparse.eye(n, m, k)), np.eye(n, m, k))
    x = sparse.random_bcoo(weft.random.key(0), (6, 8, 3), nse=0.25, n_batch=1, n_dense=1,
                           sorted_indices=True)  # fmt: skip
    assert (x.nse, x.n_batch, x.n_dense) == (2, 1, 1)
    assert (np.diff(np.asarray(x.indices)[..., 0]) > 0).all()
    with pytest.raises(ValueError, match="random_bcoo: nse must be from 0 to 12; got 13"):
        sparse.random_bcoo(weft.random.key(0), (3, 4), nse=13)


def test_a_layout_that_stores_more_may_warn():
    x = BCOO.fromdense(A[0])
    with pytest.warns(sparse.SparseEfficiencyWarning, match="store its entries 4 times"):
        y = x.update_layout(n_dense=1, on_inefficient="warn")
    np.testing.assert_array_equal(dense(y), A[0])
