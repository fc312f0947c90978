"""Kernel least squares: the closed form of leaving one out, a run that reaches the bar."""

import numpy as np
import pytest

import weft
from tests.examples.running import is_picture, load_example, run_example


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    done = run_example("kernel_lsq", "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert is_picture(tmp_path / "kernel_lsq.png")


def test_errors_of_leaving_one_out_are_those_of_fits_without_it():
    try:
        example = load_example("kernel_lsq")
        x, y = example.make_data(np.random.default_rng(0), 12)
        params = np.log(np.r_[np.linspace(0.5, 2, example.INPUTS), 0.1])
        assert example.check_left_out(params, x, y, count=2) < 1e-8
        matrix = example.kernel_matrix(np.exp(params[:-1]), x[:3], x[:2])
        gaps = (x[:3, None] - x[:2]) / np.exp(params[:-1])
        np.testing.assert_allclose(matrix, np.exp(-0.5 * (gaps**2).sum(-1)))
    finally:
        weft.config.update("enable_x64", False)
