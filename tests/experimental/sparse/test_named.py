"""The operations bound as primitives by JAX's names and parameters."""

import numpy as np

import weft.numpy as jnp
from weft.experimental import sparse

M = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 5]], np.float32)
V = np.arange(4, dtype=np.float32)


def test_primitives_are_the_functions_of_their_names():
    x, csr = sparse.BCOO.fromdense(M), sparse.BCSR.fromdense(M)
    numbers, info = (((1,), (0,)), ((), ())), {"spinfo": x._info}
    given = {"dimension_numbers": numbers, "lhs_spinfo": x._info, "preferred_element_type": None}
    same = np.testing.assert_allclose
    data, indices = sparse.bcoo_fromdense_p.bind(
        jnp.asarray(M), nse=5, n_batch=0, n_dense=0, index_dtype=np.int32
    )
    same(data, x.data)
    same(sparse.bcoo_todense_p.bind(data, indices, **info), M)
    same(sparse.bcoo_dot_general_p.bind(data, indices, V, **given), M @ V)
    same(sparse.bcsr_dot_general_p.bind(*csr._bufs, V, **given), M @ V)
    same(sparse.bcoo_extract_p.bind(indices, 2 * M, assume_unique=True), 2 * x.data)
    same(sparse.bcoo_sum_duplicates_p.bind(data, indices, nse=5, **info)[0], data)
    turned = sparse.bcoo_transpose_p.bind(data, indices, permutation=(1, 0), **info)
    other = {"dimension_numbers": numbers, "lhs_spinfo": x._info, "rhs_spinfo": x.T._info}
    found = sparse.bcoo_spdot_general_p.bind(data, indices, *turned, **other)
    same(sparse.BCOO(found, shape=(3, 3)).todense(), M @ M.T)
    same(sparse.csr_matvec_p.bind(*csr._bufs, V, shape=(3, 4), transpose=False), M @ V)
    coo = sparse.COO.fromdense(M)
    same(sparse.coo_matmat_p.bind(*coo._bufs, M, spinfo=coo._info, transpose=True), M.T @ M)
    assert repr(sparse.coo_matvec_p) == "coo_matvec"
