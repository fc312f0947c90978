"""Plans for computing sparse matrices, on random patterns: every entry is found."""

import itertools

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph

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
    found = np.array([(left if side else right)[color, place] for side, color, place in pairs])
    for targets, sources, sign in plan.rounds:
        np.add.at(found, targets, sign * found[sources])
    np.testing.assert_allclose(found, matrix.data, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
def test_entries_of_random_matrices(mode):
    rng = np.random.default_rng(0)
    for _ in range(60):
        full = rng.random(rng.integers(1, 14, 2)) < rng.random() / 2
        matrix = scipy.sparse.csr_array(full * rng.normal(size=full.shape))
        check(coloring.plan(scipy.sparse.csr_array(full), mode), matrix)


@pytest.mark.parametrize("kind", ["auto", "star", "acyclic"])
def test_entries_of_random_symmetric_matrices(kind):
    rng = np.random.default_rng(1)
    for k in range(100):
        n = rng.integers(1, 14)
        full = (rng.random((n, n)) < rng.random() / 2) | (np.eye(n) * (k % 2) > 0)
        full |= full.T
        values = rng.normal(size=(n, n))
        matrix = scipy.sparse.csr_array(full * (values + values.T))
        check(coloring.plan_symmetric(scipy.sparse.csr_array(full), kind), matrix)


def test_numbers_of_products():
    count = lambda pattern, mode="auto": coloring.count_products(coloring.plan(pattern, mode))
    assert count(scipy.sparse.csr_array(np.eye(50, dtype=bool))) == 1
    assert count(scipy.sparse.csr_array(np.ones((3, 50), bool))) == 3
    assert count(arrow(50)) == 3 and count(arrow(50), "forward") == 50
    assert coloring.count_products(coloring.plan_symmetric(arrow(50))) == 2
    # Five would do for the grid; the first color that fits, row by row, takes no more than seven.
    assert count(grid(20)) <= 7
    assert coloring.count_products(coloring.plan_symmetric(grid(20))) <= 6


def band(n, width):
    """The pattern with `width` diagonals on each side of the main one."""
    offsets = range(-width, width + 1)
    ones = [1.0] * (2 * width + 1)
    return scipy.sparse.csr_array(scipy.sparse.diags_array(ones, offsets=offsets, shape=(n, n)) > 0)


def is_acyclic(pattern, colors):
    """Each two colors have fewer edges than columns in each connected part."""
    for a, b in itertools.combinations(range(colors.max(initial=-1) + 1), 2):
        own = np.flatnonzero((colors == a) | (colors == b))
        part = scipy.sparse.csr_array(pattern)[own][:, own]
        edges = (part.nnz - np.count_nonzero(part.diagonal())) // 2
        parts, _ = scipy.sparse.csgraph.connected_components(part)
        if edges != len(own) - parts:
            return False
    return True


def test_colors_of_each_pair_form_trees():
    rng = np.random.default_rng(2)
    for _ in range(60):
        n = rng.integers(2, 20)
        full = rng.random((n, n)) < rng.random() / 2
        pattern = scipy.sparse.csr_array(full | full.T)
        colors = coloring.color_acyclically(pattern)
        assert is_acyclic(pattern, colors)
        stars = coloring.color_stars(pattern)
        assert is_acyclic(pattern, stars)  # each star coloring is acyclic


def test_acyclic_colorings_take_fewer_products():
    count = lambda pattern, kind: coloring.plan_symmetric(pattern, kind).column_count
    for width in (1, 2, 3):
        assert count(band(40, width), "acyclic") == width + 1
        assert count(band(40, width), "star") == 2 * width + 1
    assert count(grid(20), "acyclic") <= 4
    assert count(arrow(50), "acyclic") == 2
    # Sums of up to 20 terms are taken, those along a long band are not.
    assert count(band(20, 1), "auto") == 2
    assert count(band(200, 1), "auto") == 3


def test_long_substitutions_take_few_rounds():
    plan = coloring.plan_symmetric(band(1000, 1), "acyclic")
    assert len(plan.rounds) <= 10
    matrix = scipy.sparse.csr_array(band(1000, 1) * 1.0)
    check(plan, matrix)


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
