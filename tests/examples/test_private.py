"""Private learning: run as a user does, its accountant against integrals, gradients by a loop."""

import re

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import weft.numpy as jnp
from tests.examples.running import is_picture, load_example, run_example
from weft import grad, random, tree_util
from weft.flatten_util import ravel_pytree

example = load_example("private")


@pytest.fixture(scope="module")
def problem():
    """Parameters, five images and their labels."""
    params = example.init_params(random.key(3))
    images = random.normal(random.key(4), (5, 64))
    return params, images, jnp.array([3, 1, 4, 1, 5])


@pytest.mark.slow
def test_small_run_is_accurate_and_private(tmp_path):
    done = run_example("private", "--steps", 60, "--sample-rate", 0.5, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    accuracy = re.search(r"epsilon 4: noise ([\d.]+), accuracy ([\d.]+)%", done.stdout)
    assert float(accuracy[1]) == pytest.approx(4.15, abs=0.01)
    assert float(accuracy[2]) > 90
    assert done.stderr.count("60/60") >= 5
    assert is_picture(tmp_path / "private.png")


@pytest.mark.parametrize(("rate", "noise"), [(0.01, 1.1), (0.25, 3.3), (0.5, 1.0)])
def test_renyi_is_the_moment_of_the_ratio(rate, noise):
    """E (mixture / N(0, noise^2))^a under N(0, noise^2), by quadrature."""
    spent = dict(zip(example.ORDERS, example.renyi(rate, noise), strict=True))
    for a in (2, 3, 8):

        def moment(z, a=a):
            ratio = (norm.pdf(z, 1, noise) / norm.pdf(z, 0, noise)) * rate + 1 - rate
            return norm.pdf(z, 0, noise) * ratio**a

        expected, _ = quad(moment, -12 * noise, a + 12 * noise, limit=400, epsabs=1e-13)
        assert spent[a] == pytest.approx(np.log(expected) / (a - 1), rel=1e-6)


def test_renyi_of_everybody_is_the_gaussian_mechanisms():
    np.testing.assert_allclose(example.renyi(1.0, 2.0), example.ORDERS / 8, rtol=1e-12)


def test_epsilon_holds_for_the_gaussian_mechanism():
    """Its exact curve of delta (Balle & Wang 2018, theorem 8) is slightly lower."""
    noise = 3.0
    bound = example.epsilon(example.renyi(1.0, noise), 1e-4)

    def delta(eps):
        a, b = 1 / (2 * noise), eps * noise
        return norm.cdf(a - b) - np.exp(eps) * norm.cdf(-a - b)

    assert delta(bound) <= 1e-4 < delta(0.8 * bound)


def test_noise_spends_the_budget():
    noise = example.noise_for(2.0, 0.1, 50)
    assert example.epsilon(50 * example.renyi(0.1, noise)) == pytest.approx(2, abs=2e-3)


def test_gradient_without_noise_is_the_mean_of_clipped_gradients(problem, monkeypatch):
    params, images, labels = problem
    each = [
        ravel_pytree(grad(example.loss)(params, *one))[0]
        for one in zip(images, labels, strict=True)
    ]
    norms = np.array([np.linalg.norm(g) for g in each])
    bound = float(np.sort(norms)[2])  # so that some are clipped and some are not
    monkeypatch.setattr(example, "MAX_NORM", bound)
    expected = sum(np.asarray(g) * min(1, bound / n) for g, n in zip(each, norms, strict=True)) / 5
    made = example.private_gradient(random.key(0), params, images, labels, 1.0, 0.0)
    assert tree_util.tree_structure(made) == tree_util.tree_structure(params)
    np.testing.assert_allclose(ravel_pytree(made)[0], expected, atol=1e-6)


def test_one_image_moves_the_sum_by_the_clipping_norm_at_most(problem):
    params, images, labels = problem
    key, far = random.key(0), images.at[2].multiply(1e4)
    a, b = (
        ravel_pytree(example.private_gradient(key, params, x, labels, 1.0, 3.0))[0]
        for x in (images, far)
    )
    assert 5 * np.linalg.norm(a - b) <= 2 * example.MAX_NORM + 1e-4


def test_noise_has_its_scale(problem):
    """At a rate that samples nobody, the sum is only noise."""
    params, images, labels = problem
    quiet = example.private_gradient(random.key(1), params, images, labels, 1e-9, 0.3)
    vector = np.asarray(ravel_pytree(quiet)[0]) * 1e-9 * 5
    assert vector.std() == pytest.approx(0.3, rel=0.05)
    assert abs(vector.mean()) < 0.03
