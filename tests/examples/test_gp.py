"""The Gaussian process: run as a user does, and against SciPy, scikit-learn and differences."""

import re

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from tests.examples.running import is_picture, load_example, run_example
from weft import enable_x64, grad, jit

example = load_example("gp")
RNG = np.random.default_rng(0)
PLACES, HEIGHTS, OTHERS = RNG.random((12, 2)) * 5, RNG.standard_normal(12), RNG.random((5, 2)) * 5
LOG_PARAMS = np.log([1.5, 2.0, 0.8, 0.1])
NOISE = 0.1 + example.SMALLEST_NOISE
LENGTHS = np.array([2.0, 0.8])


@pytest.fixture(autouse=True)
def double():
    with enable_x64():
        yield


def rival(kernel):
    """The same process by scikit-learn."""
    shape = (RBF(LENGTHS), Matern(LENGTHS, nu=1.5), Matern(LENGTHS, nu=0.5))[kernel]
    process = GaussianProcessRegressor(
        ConstantKernel(1.5) * shape + WhiteKernel(NOISE), alpha=0, optimizer=None
    )
    return process.fit(PLACES, HEIGHTS)


@pytest.mark.slow
def test_small_run_beats_ridge_regression(tmp_path, monkeypatch):
    # LAPACK's threads wait by spinning, which is ten times slower on a machine with other work
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    done = run_example("gp", "--points", 120, "--restarts", 1, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    error = {
        name: float(re.search(rf"{name}: error ([\d.]+) m", done.stdout)[1])
        for name in ("Gaussian process", "ridge regression")
    }
    assert error["Gaussian process"] < 0.85 * error["ridge regression"]
    inside = re.search(r"Gaussian process: .* ([\d.]+)% within the 95% band", done.stdout)
    assert 88 < float(inside[1]) < 99
    assert "3/3" in done.stderr
    assert is_picture(tmp_path / "gp.png")


@pytest.mark.parametrize("kernel", range(3), ids=example.NAMES)
def test_likelihood_is_the_normal_distributions(kernel):
    covariance = example.covariance(kernel, LOG_PARAMS, PLACES, PLACES) + NOISE * np.eye(12)
    made = example.log_likelihood(kernel, LOG_PARAMS, PLACES, HEIGHTS)
    expected = multivariate_normal.logpdf(HEIGHTS, cov=np.asarray(covariance))
    assert float(made) == pytest.approx(expected, rel=1e-10)
    assert float(made) == pytest.approx(rival(kernel).log_marginal_likelihood_value_, rel=1e-6)


@pytest.mark.parametrize("kernel", range(3), ids=example.NAMES)
def test_gradient_is_that_of_differences(kernel):
    def value(log_params):
        return example.log_likelihood(kernel, log_params, PLACES, HEIGHTS)

    made = jit(grad(value))(LOG_PARAMS)
    steps = 1e-5 * np.eye(4)
    expected = [float(value(LOG_PARAMS + h) - value(LOG_PARAMS - h)) / 2e-5 for h in steps]
    np.testing.assert_allclose(made, expected, rtol=1e-6)


@pytest.mark.parametrize("kernel", range(3), ids=example.NAMES)
def test_predictions_are_scikit_learns(kernel):
    made = example.predict(kernel, LOG_PARAMS, PLACES, HEIGHTS, OTHERS)
    mean, deviation = rival(kernel).predict(OTHERS, return_std=True)
    np.testing.assert_allclose(made[0], mean, rtol=1e-5)
    np.testing.assert_allclose(made[1], deviation, rtol=1e-5)


def test_fit_ends_where_the_gradient_is_zero():
    heights = multivariate_normal.rvs(
        cov=np.asarray(example.covariance(1, LOG_PARAMS, PLACES, PLACES)) + 0.3 * np.eye(12),
        random_state=3,
    )
    found, likelihood = example.fit(1, LOG_PARAMS, PLACES, heights)
    assert likelihood > example.log_likelihood(1, LOG_PARAMS, PLACES, heights) + 0.1
    slope = grad(lambda p: example.log_likelihood(1, p, PLACES, heights))(found)
    assert np.abs(slope).max() < 12 * 1e-3
