"""Recordings of every length: gradients, the number of programs, a run that reaches the bar."""

import numpy as np
import pytest

from tests.examples.running import check_run, load_example


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    check_run("ragged", tmp_path, 90, "--recordings", 400, picture="ragged")


def test_lengths_share_programs_and_gradients_are_those_without_padding():
    example, rng = load_example("ragged"), np.random.default_rng(0)
    recordings = [(rng.normal(size=n).astype(np.float32), np.float32(n % 2)) for n in (25, 31, 32)]
    params, counts = example.train(recordings, 0.01, rng)
    assert counts == [1, 1, 1]
    assert example.compare_gradients(params, recordings[:1]) < 1e-4
