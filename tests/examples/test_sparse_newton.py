"""Newton's method with sparse Jacobians: the equations, and a run that reaches the bar."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.examples.running import check_run, load_example
from weft import config


@pytest.fixture(scope="module")
def example():
    before = config.enable_x64
    yield load_example("sparse_newton")  # which turns 64 bits on
    config.update("enable_x64", before)


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    check_run("sparse_newton", tmp_path, 200, "--side", 60, "--cameras", 6, picture="sparse_newton")


def test_the_solution_is_quadratically_near(example):
    jac = weft.sparse_jacobian(example.residuals, format="bcsr")
    u, sizes = example.solve_newton(jac, jnp.zeros(81), 1.0)
    assert sizes[-1] < 1e-10 < sizes[-3]
    np.testing.assert_allclose(np.max(u), example.LARGEST_AT_ONE, rtol=0.01)


def test_projection_is_that_of_a_camera_at_the_origin(example):
    points = jnp.array([[1.0, 2.0, 0.0], [0.0, 1.0, 4.0]])
    found = example.project(jnp.zeros((1, 6)), points, np.array([0, 0]), np.array([0, 1]))
    np.testing.assert_allclose(found, [[0.25, 0.5], [0.0, 0.125]])
