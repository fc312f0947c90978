"""Products of BCOO arrays along any axes, in any layout, against NumPy's."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.errors import ShapeError
from weft.experimental import sparse
from weft.experimental.sparse import BCOO

rng = np.random.default_rng(0)
A = (rng.normal(size=(2, 3, 4, 2)) * (rng.random((2, 3, 4, 2)) < 0.5)).astype(np.float32)
B = (rng.normal(size=(4, 2, 3, 5)) * (rng.random((4, 2, 3, 5)) < 0.5)).astype(np.float32)
LAYOUTS = [(0, 0), (1, 0), (3, 0), (1, 1), (0, 3)]
# axes of A and of B that are contracted, and that are batches, as letters of einsum
NUMBERS = {
    "abcd,cefg->abdefg": ([2], [0], [], []),
    "abcd,cafg->abdfg": ([2], [0], [0], [1]),
    "abcd,cebg->adeg": ([2, 1], [0, 2], [], []),
    "abcd,cdbg->cbag": ([3], [1], [2, 1], [0, 2]),
    "abcd,eafg->abcdefg": ([], [], [0], [1]),
    "abcd,cabg->cdg": ([0, 1], [1, 2], [2], [0]),
}


def dense(x):
    return np.asarray(x.todense() if hasattr(x, "todense") else x)


def arrays(spec):
    """Operands whose axes fit, the product by einsum, and its dimension numbers."""
    lc, rc, lb, rb = NUMBERS[spec]
    want = np.einsum(spec, A, B)
    batch, free = spec.split("->")[0].split(",")
    order = [batch[i] for i in lb] + [c for i, c in enumerate(batch) if i not in lc + lb]
    order += [c for i, c in enumerate(free) if i not in rc + rb]
    want = np.einsum(spec.split("->")[0] + "->" + "".join(order), A, B)
    return want, ((lc, rc), (lb, rb))


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_contractions(layout):
    """Along all axes, with dense arrays on either side, in one program."""
    x, found = BCOO.fromdense(A, n_batch=layout[0], n_dense=layout[1]), {}

    def products(x):
        for spec in NUMBERS:
            (lc, rc), (lb, rb) = arrays(spec)[1]
            there, back = ((lc, rc), (lb, rb)), ((rc, lc), (rb, lb))
            found[spec] = (
                sparse.bcoo_dot_general(x, B, dimension_numbers=there),
                sparse.bcoo_dot_general(B, x, dimension_numbers=back),
                lax.dot_general(B, A, back),
            )
        return found

    for spec, (there, back, turned) in weft.jit(products)(x).items():
        np.testing.assert_allclose(there, arrays(spec)[0], atol=1e-5)
        np.testing.assert_allclose(back, turned, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS[:3])
def test_of_two_sparse_arrays(layout):
    x, y = (BCOO.fromdense(v, n_batch=layout[0], n_dense=layout[1]) for v in (A, B))
    specs = list(NUMBERS)[:3]
    product = lambda x, y, s: sparse.bcoo_dot_general(x, y, dimension_numbers=arrays(s)[1])
    found = weft.jit(lambda x, y: [product(x, y, s).todense() for s in specs])(x, y)
    for spec, z in zip(specs, found, strict=True):
        np.testing.assert_allclose(z, arrays(spec)[0], atol=1e-5)


def test_a_sparse_product_holds_what_it_needs():
    n = 1000
    x = sparse.random_bcoo(weft.random.key(1), (n, n), nse=n)
    y = x @ x
    want = x.to_scipy_sparse() @ x.to_scipy_sparse()
    assert y.nse == want.nnz
    np.testing.assert_allclose(y.to_scipy_sparse().todense(), want.todense(), rtol=1e-5)
    small = x[:5, :20]
    room = weft.jit(lambda a: a @ a.T)(small)
    assert room.nse == 25
    few = weft.jit(lambda a: a.T @ a)(sparse.BCOO.fromdense(np.eye(2, 9, dtype=np.float32)))
    assert few.nse == 4
    np.testing.assert_array_equal(dense(few), np.diag([1, 1, 0, 0, 0, 0, 0, 0, 0]))


def test_elementwise_products_join_entries():
    x, y = A[0], A[1]
    a, b = BCOO.fromdense(x), BCOO.fromdense(y)
    pairs = [(a + a, b), (BCOO.fromdense(x, n_dense=1), b), (a, b[:1])]
    found = weft.jit(lambda pairs: [(a * b).todense() for a, b in pairs])(pairs)
    for z, want in zip(found, (2 * x * y, x * y, x * y[:1]), strict=True):
        np.testing.assert_allclose(z, want, rtol=1e-6)


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "complex64"])
def test_dtypes_are_promoted(dtype):
    x = (np.abs(A[0, :, :, 0]) * 3).astype(dtype)
    for v in (np.arange(1, 5, dtype=np.int32), np.arange(1, 5).astype(dtype)):
        want = jnp.matmul(x, v)
        found = BCOO.fromdense(x) @ v
        assert found.dtype == want.dtype
        np.testing.assert_allclose(found, want, rtol=1e-2)
    numbers = (([1], [0]), ([], []))
    wide = sparse.bcoo_dot_general(
        BCOO.fromdense(x), v, dimension_numbers=numbers, preferred_element_type=np.float32
    )
    assert wide.dtype == np.float32


def test_sampled():
    x, y = A[..., 0], np.moveaxis(A[..., 1], 2, 1)
    mat = BCOO.fromdense(np.ones((2, 3, 3)), n_batch=1, nse=9)
    numbers = (([2], [1]), ([0], [0]))
    for n_batch in (0, 1):
        layout = mat.update_layout(n_batch=n_batch)
        data = weft.jit(
            lambda i: sparse.bcoo_dot_general_sampled(x, y, i, dimension_numbers=numbers)
        )(layout.indices)
        np.testing.assert_allclose(dense(layout.make(data)), x @ y, atol=1e-5)


def test_convolution():
    kernel = rng.normal(size=(2, 3, 3, 1)).astype(np.float32)
    for params in (
        {"window_strides": (1, 2), "padding": "SAME"},
        {"window_strides": (2, 1), "padding": [(1, 2), (0, 3)], "lhs_dilation": (2, 1),
         "rhs_dilation": (1, 2)},
    ):  # fmt: skip
        convolve = lambda x, params=params: sparse.bcoo_conv_general_dilated(x, kernel, **params)
        found = weft.jit(lambda x, f=convolve: f(x).todense())(BCOO.fromdense(A))
        want = lax.conv_general_dilated(A, kernel, **params)
        np.testing.assert_allclose(found, want, atol=1e-5)


def test_mistakes():
    x = BCOO.fromdense(A[0, 0])
    with pytest.raises(ShapeError, match="bcoo_dot_general: axes that are multiplied must have"):
        x @ np.ones(3)
    with pytest.raises(ShapeError, match="contracting and batch axes must be distinct"):
        sparse.bcoo_dot_general(x, x, dimension_numbers=(([0, 0], [0, 0]), ([], [])))
    with pytest.raises(ShapeError, match="bcoo_multiply_dense: the dense array must broadcast"):
        sparse.bcoo_multiply_dense(x, np.ones((2, 4, 2)))


def test_arrays_too_large_to_be_dense():
    n = 100_000
    x = sparse.random_bcoo(weft.random.key(0), (n, n), nse=50)
    v, want = np.arange(n, dtype=np.float32), x.to_scipy_sparse()
    np.testing.assert_allclose((x * x).sum(), want.multiply(want).sum(), rtol=1e-5)
    found = sparse.sparsify(lambda x, v: jnp.sum(x * v / (1 + v[:, None])))(x, v)
    np.testing.assert_allclose(found, (want.multiply(v).tocsr().sum(1) / (1 + v)).sum(), rtol=1e-4)
    np.testing.assert_allclose((x + x).sum_duplicates() @ v, 2 * (want @ v), rtol=1e-4)
    assert x.reshape(1000, 100, n).shape == (1000, 100, n)
    with pytest.raises(ShapeError, match="needs indices of 64 bits.* Hint: config.enable_x64"):
        x.reshape(-1)
