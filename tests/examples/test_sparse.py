"""Names spread along a graph: the solution against a dense one, and a run that reaches the bar."""

import numpy as np
import pytest

import weft.numpy as jnp
from tests.examples.running import check_run, load_example
from weft.experimental import sparse


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    check_run("sparse", tmp_path, 90, "--steps", 2, picture="sparse_graph")


def test_names_are_in_balance():
    example = load_example("sparse")
    w = np.float32([[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 3], [0, 0, 3, 0]])
    known = np.array([True, False, False, True])
    names = jnp.eye(10)[np.array([4, 0, 0, 7])]
    found = example.spread_names(sparse.BCSR.fromdense(w), names, known)
    hold = np.where(known, 100, example.PULL)
    right = hold[:, None] * np.where(known[:, None], names, 0.1)
    want = np.linalg.solve(np.diag(w.sum(1) + hold) - w, right)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6)
