"""The exported network against the one it was made of, and a run of the example."""

import numpy as np
import pytest

from tests.examples.running import check_run, load_example
from weft import grad, random


def test_the_file_holds_the_network(tmp_path):
    train, use = load_example("export"), load_example("exported")
    params = train.init_params(random.key(0))
    train.export_network(params, tmp_path / "f")
    pixels = np.random.default_rng(0).random((3, 64), np.float32)
    one, every, speaks = use.use_network((tmp_path / "f").read_bytes(), pixels)
    own = lambda pixels: train.log_probabilities(params, pixels)
    np.testing.assert_allclose(every, own(pixels), rtol=1e-5)
    np.testing.assert_allclose(one, every[:1], rtol=1e-5)
    by_pixels = grad(lambda pixels: own(pixels).max(axis=1).sum())(pixels)
    np.testing.assert_allclose(speaks, by_pixels, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    check_run("export", tmp_path, 95, "--epochs", 10)
