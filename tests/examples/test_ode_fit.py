"""The example that fits an ODE: against SciPy's solver and densities, and on drawn data."""

import re

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import solve_ivp

from tests.examples.running import is_picture, load_example, run_example_here
from weft import config, grad, jit, random

LOG_PARAMS = np.log([0.6, 0.03, 0.7, 0.02, 25.0, 8.0, 0.3, 0.2])
TIMES = np.arange(0.0, 21.0)


@pytest.fixture(scope="module")
def ode_fit():
    before = config.enable_x64
    yield load_example("ode_fit")  # it works in float64
    config.update("enable_x64", before)


def scipy_solve(log_params):
    """Hare and lynx themselves, not their logarithms, by another solver."""
    a, b, c, d = np.exp(log_params[:4])

    def flow(t, z):
        return [a * z[0] - b * z[0] * z[1], d * z[0] * z[1] - c * z[1]]

    ends = solve_ivp(
        flow, (0, 20), np.exp(log_params[4:6]), "DOP853", TIMES, rtol=1e-11, atol=1e-11
    )
    return np.log(ends.y.T)


def scipy_log_posterior(log_params, pelts):
    params = np.exp(log_params)
    normal = scipy.stats.norm.logpdf
    value = normal(pelts, scipy_solve(log_params), params[6:]).sum()
    value += normal(params[[0, 2]], 1, 0.5).sum() + normal(params[[1, 3]], 0.05, 0.05).sum()
    # The density of a parameter's logarithm is the parameter's, times the parameter.
    for k, middle in ((4, 10), (5, 10), (6, np.exp(-1)), (7, np.exp(-1))):
        value += scipy.stats.lognorm.logpdf(params[k], 1, scale=middle) + log_params[k]
    return value + log_params[:4].sum()


def test_the_solution_is_scipys(ode_fit):
    mine = jit(ode_fit.solve)(LOG_PARAMS, TIMES)
    np.testing.assert_allclose(mine, scipy_solve(LOG_PARAMS), atol=1e-6)


def test_the_posterior_and_its_gradient_are_scipys(ode_fit):
    mine = [
        jit(ode_fit.log_posterior)(p, TIMES, ode_fit.PELTS) for p in (LOG_PARAMS, LOG_PARAMS - 0.1)
    ]
    theirs = [scipy_log_posterior(p, ode_fit.PELTS) for p in (LOG_PARAMS, LOG_PARAMS - 0.1)]
    np.testing.assert_allclose(np.diff(mine), np.diff(theirs), rtol=1e-6)  # up to a constant
    slope = jit(grad(ode_fit.log_posterior))(LOG_PARAMS, TIMES, ode_fit.PELTS)
    for k, way in enumerate(np.eye(8)):
        near = [scipy_log_posterior(LOG_PARAMS + h * way, ode_fit.PELTS) for h in (1e-4, -1e-4)]
        np.testing.assert_allclose(slope[k], (near[0] - near[1]) / 2e-4, rtol=1e-4, atol=1e-3)


@pytest.mark.slow
def test_the_parameters_of_drawn_data_are_found(ode_fit):
    truth = LOG_PARAMS.copy()
    truth[6:] = np.log(0.1)
    noise = np.random.default_rng(0).standard_normal((21, 2))
    pelts = scipy_solve(truth) + 0.1 * noise
    mode, slope, covariance, _ = ode_fit.fit(random.key(0), 8, TIMES, pelts)
    assert np.abs(slope).max() < 1e-3
    error = np.sqrt(np.diag(covariance))
    assert (np.abs(mode - truth) < 3 * error).all()
    assert (error[:6] < 0.1).all() and (error > 0).all()
    # Errors with 21 counts each: a known spread s is estimated to s / sqrt(2 n).
    np.testing.assert_allclose(error[6:], 1 / np.sqrt(2 * 21), rtol=0.2)


@pytest.mark.slow
def test_the_fit_agrees_with_the_published_posterior(tmp_path):
    done = run_example_here("ode_fit", "--starts", 4, "--draws", 20, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rate = re.search(r"hare birth: +([\d.]+) \+- ([\d.]+)", done.stdout)
    assert abs(float(rate[1]) - 0.55) < 0.03 and abs(float(rate[2]) - 0.06) < 0.01
    away = re.search(r"published mean is ([\d.]+) standard deviations", done.stdout)
    assert float(away[1]) < 1
    assert "1/1" in done.stderr and is_picture(tmp_path / "ode-fit.png")
