"""Plans for computing sparse matrices, on random patterns: every entry is found."""

import numpy as np
import pytest
import scipy.sparse

from weft.sparsity import coloring


def grid(n):
    """The pattern of the Laplacian on a square grid."""
    line = scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = scipy.sparse.eye_array(n)
    both = scipy.sparse.kron(line, eye) + scipy.sparse.kron(eye, line)
    return scipy.sparse.csr_array(both).astype(bool)


def arrow(n):
    """The pattern with a full first row, first column and diagonal."""
    full = np.eye(n, dtype=bool)
    full[0] = full[:, 0] = True
    return scipy.sparse.csr_array(full)


def check(plan, matrix):
    """Compute a matrix by the products of a plan, and compare."""
    columns = np.arange(plan.column_count) == plan.columns[:, None]
    rows = np.arange(plan.row_count)[:, None] == plan.rows
    right, left = (matrix @ columns.astype(float)).T, rows.astype(float) @ matrix
    pairs = zip(plan.from_left, plan.colors, plan.places, strict=True)
    found = [(left if side else right)[color, place] for side, color, place in pairs]
    np.testing.assert_allclose(found, matrix.data)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
def test_entries_of_random_matrices(mode):
    rng = np.random.default_rng(0)
    for _ in range(60):
        full = rng.random(rng.integers(1, 14, 2)) < rng.random() / 2
        matrix = scipy.sparse.csr_array(full * rng.normal(size=full.shape))
        check(coloring.plan(scipy.sparse.csr_array(full), mode), matrix)


def test_entries_of_random_symmetric_matrices():
    rng = np.random.default_rng(1)
    for k in range(100):
        n = rng.integers(1, 14)
        full = (rng.random((n, n)) < rng.random() / 2) | (np.eye(n) * (k % 2) > 0)
        full |= full.T
        values = rng.normal(size=(n, n))
        matrix = scipy.sparse.csr_array(full * (values + values.T))
        check(coloring.plan_symmetric(scipy.sparse.csr_array(full)), matrix)


def test_numbers_of_products():
    count = lambda pattern, mode="auto": coloring.count_products(coloring.plan(pattern, mode))
    assert count(scipy.sparse.csr_array(np.eye(50, dtype=bool))) == 1
    assert count(scipy.sparse.csr_array(np.ones((3, 50), bool))) == 3
    assert count(arrow(50)) == 3 and count(arrow(50), "forward") == 50
    assert coloring.count_products(coloring.plan_symmetric(arrow(50))) == 2
    # Five would do for the grid; the first color that fits, row by row, takes no more than seven.
    assert count(grid(20)) <= 7
    assert coloring.count_products(coloring.plan_symmetric(grid(20))) <= 6


def test_matrices_without_entries():
    for shape in ((0, 0), (0, 3), (3, 0), (3, 3)):
        empty = scipy.sparse.csr_array(shape, dtype=bool)
        for mode in ("auto", "forward", "reverse", "both"):
            assert coloring.count_products(coloring.plan(empty, mode)) == 0


def test_stars_are_colored_in_time_proportional_to_entries():
    """An arrow of 2,000 columns has a row of all: pairs of its entries must not be visited."""
    full = scipy.sparse.lil_array((2000, 2000), dtype=bool)
    full.setdiag(True)
    full[0, :] = full[:, 0] = True
    matrix = scipy.sparse.csr_array(full)
    calls = 0

    class Row(list):
        def __iter__(self):
            nonlocal calls
            for x in super().__iter__():
                calls += 1
                yield x

    near = [Row(matrix.indices[a:b]) for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:])]
    near = [Row(w for w in list(row) if w != v) for v, row in enumerate(near)]
    calls = 0
    colors = coloring.color_stars_greedily(near, [False] * len(near), range(len(near)))
    assert colors.max() == 1
    assert calls <= 3 * matrix.nnz
