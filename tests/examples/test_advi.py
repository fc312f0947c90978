"""Variational inference: the exact sums, the bound, a run that reaches the bar."""

import numpy as np
import pytest

from tests.examples.running import is_picture, load_example, run_example
from weft import random


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    done = run_example("advi", "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert is_picture(tmp_path / "advi.png")


def test_the_bound_is_below_the_evidence_and_grows():
    """The evidence by sums agrees with that of a mean over draws of the prior."""
    example = load_example("advi")
    evidence, exact = example.integrate()
    z = np.random.default_rng(0).normal(size=(200_000, example.SIZE))
    mean, spread = example.SPREAD_OF_MEAN * z[:, :1], np.exp(1 + z[:, 1:2])
    off = (example.GAINS - mean - spread * z[:, 2:]) / example.ERRORS
    log_p = (-0.5 * off**2 - np.log(example.ERRORS) - 0.5 * np.log(2 * np.pi)).sum(1)
    drawn = np.logaddexp.reduce(log_p) - np.log(len(z))
    assert abs(drawn - evidence) < 0.1
    weight = np.exp(log_p - log_p.max())[:, None]
    effects = (weight * (mean + spread * z[:, 2:])).sum(0) / weight.sum()
    np.testing.assert_allclose(effects, exact, atol=0.4)
    _, bounds = example.fit(random.key(0), 200, 16)
    assert bounds[:20].mean() < bounds[-20:].mean() < evidence + 0.1
