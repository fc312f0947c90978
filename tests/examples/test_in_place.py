"""Training in place: run as a user does; a step against the same by values."""

import numpy as np
import pytest

from tests.examples.running import check_run, load_example
from weft.tree_util import tree_map

example = load_example("in_place")


@pytest.mark.slow
def test_run_reaches_the_goal(tmp_path):
    check_run("in_place", tmp_path, 95, "--epochs", 12)


def test_a_step_is_that_by_values(monkeypatch):
    monkeypatch.setattr(example, "LAYERS", (6, 5, 4))
    rng = np.random.default_rng(0)
    params = example.init_params(rng)
    images, labels = rng.standard_normal((8, 6)).astype(np.float32), np.arange(8) % 4
    batch = example.split_batch(images, labels, 2)
    state, momenta = example.start_state(params), tree_map(np.zeros_like, params)
    for _ in range(2):
        example.step_in_place(state, *batch)
        params, momenta = example.step_by_values(params, momenta, *batch)
    for found, want in zip(state["params"], params, strict=True):
        for r, x in zip(found, want, strict=True):
            np.testing.assert_allclose(r[...], x, rtol=1e-5, atol=1e-6)
    assert not any(np.any(r[...]) for pair in state["grads"] for r in pair)
    # the log has the last part's cotangents, whose share of the batch is a half
    assert np.all(np.asarray(state["log"][...]) > 0) and state["loss"][...] > 0
