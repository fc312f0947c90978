"""The score example: its objectives against closed forms, Langevin dynamics, and the program."""

import re

import numpy as np
import pytest

import weft.numpy as jnp
from tests.examples.running import is_picture, load_example, run_example
from weft import grad, jit, random, vmap

COVARIANCE = np.array([[1.0, 0.6], [0.6, 0.9]], np.float32)


@pytest.fixture(scope="module")
def score():
    return load_example("score")


@pytest.mark.parametrize("objective", ["exact", "sliced", "denoising"])
def test_a_linear_score_of_gaussian_data_is_the_inverse_covariance(score, objective):
    """The best s(x) = -A x has A = (C + sigma^2)^-1: the objective's gradient in A is 0 there."""
    sigma, count = 0.7, 40000
    rng = np.random.default_rng(0)
    x = rng.multivariate_normal([0, 0], COVARIANCE, count).astype(np.float32)

    def mean(a, keys):
        def one(key, x):
            return getattr(score, objective)(lambda x: -a @ x, key, x, sigma)

        return jnp.mean(vmap(one)(keys, x))

    slope = jit(grad(mean))
    best = np.linalg.inv(COVARIANCE + sigma**2 * np.eye(2)).astype(np.float32)
    keys = random.split(random.key(1), count)
    np.testing.assert_allclose(slope(best, keys), np.zeros((2, 2)), atol=0.03)
    # Elsewhere it is A (C + sigma^2) - I, which a wrong weight of either term would miss.
    other = np.eye(2, dtype=np.float32)
    expected = other @ (COVARIANCE + sigma**2 * np.eye(2)) - np.eye(2)
    np.testing.assert_allclose(slope(other, keys), expected, atol=0.05)


def test_sliced_is_exact_on_average(score):
    x, key = jnp.array([0.3, -1.2]), random.key(0)

    def field(x):
        return jnp.array([jnp.sin(3 * x[1]) * x[0], x[0] ** 2 - x[1] ** 3])

    trace = np.sin(3 * -1.2) - 3 * 1.2**2  # by hand
    size = float(jnp.sum(field(x) ** 2)) / 2
    np.testing.assert_allclose(score.exact(field, key, x, 0.0), trace + size, rtol=1e-5)
    values = jit(vmap(lambda k: score.sliced(field, k, x, 0.0)))(random.split(key, 4096))
    np.testing.assert_allclose(values.mean(), trace + size, atol=0.1)
    assert float(values.std()) > 0.1  # the slices differ


def test_langevin_dynamics_draw_the_gaussian_whose_score_they_follow(score):
    precision = np.linalg.inv(COVARIANCE)

    def one(key, start):
        return score.langevin(lambda x, sigma: -precision @ x, key, start)[-2]

    keys = random.split(random.key(2), 4000)
    drawn = np.asarray(jit(vmap(one))(keys, jnp.full((4000, 2), 3.0)))
    # The steps at narrow noise are too short to move far: wider noise decides the spread.
    np.testing.assert_allclose(drawn.mean(0), 0, atol=0.08)
    np.testing.assert_allclose(np.cov(drawn.T), COVARIANCE, atol=0.1)


def test_the_distance_of_shifted_samples_is_known(score):
    x = np.random.default_rng(0).standard_normal((500, 2)).astype(np.float32)
    assert float(score.distance(random.key(0), x, x)) == 0
    shifted = float(score.distance(random.key(0), x, x + np.array([3, 0], np.float32)))
    np.testing.assert_allclose(shifted, 3 / np.sqrt(2), rtol=0.1)  # mean of cos^2 is a half


@pytest.mark.slow
def test_samples_are_closer_than_a_gaussian_fit(tmp_path):
    done = run_example("score", "--steps", 300, "--samples", 1000, "--out", tmp_path)
    figures = dict(re.findall(r"held-out data, ([\w ]+): ([\d.]+)", done.stdout))
    assert set(figures) == {"exact", "sliced", "denoising", "gaussian fit", "fresh data"}
    for name in ("exact", "sliced", "denoising"):
        assert float(figures[name]) < 0.85 * float(figures["gaussian fit"]), done.stdout
    assert done.returncode == (0 if "score: reached" in done.stdout else 1)
    assert done.stderr.count("300/300") >= 3
    assert is_picture(tmp_path / "score-field.png") and is_picture(tmp_path / "score-samples.png")
