"""Hamiltonian Monte Carlo: run as a user does; its parts against known cases."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import weft.numpy as jnp
from tests.examples.running import is_picture, load_example, run_example
from weft import grad, jacobian, random

example = load_example("hmc")


def quartic(x):
    """A log-density with curved paths."""
    return -jnp.sum(x**4) / 4 - x[0] * x[1]


START = jnp.array([0.7, -0.4]), jnp.array([0.2, 1.1])


@pytest.mark.slow
def test_small_run_mixes_and_predicts(tmp_path):
    done = run_example("hmc", "--draws", 400, "--warm-up", 200, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("600/600") >= 2
    error, low, high = re.search(
        r"error of a mean ([\d.]+) deviations; deviations ([\d.]+) to ([\d.]+)", done.stdout
    ).groups()
    assert float(error) < 0.15 and float(low) > 0.85 and float(high) < 1.15
    assert float(re.search(r"held-out accuracy ([\d.]+)%", done.stdout)[1]) > 93
    assert is_picture(tmp_path / "hmc.png")


@pytest.mark.slow
def test_too_few_draws_miss_the_bar(tmp_path):
    sizes = ("--draws", 20, "--warm-up", 10, "--chains", 2, "--leaps", 1)
    done = run_example("hmc", *sizes, "--out", tmp_path)
    assert done.returncode == 1
    assert "hmc: missed the bar: R-hat below 1.01" in done.stderr


def test_leapfrog_goes_back():
    there = example.leapfrog(grad(quartic), *START, 0.1, 20)
    position, momentum = example.leapfrog(grad(quartic), there[0], -there[1], 0.1, 20)
    np.testing.assert_allclose(position, START[0], atol=1e-5)
    np.testing.assert_allclose(-momentum, START[1], atol=1e-5)


def test_leapfrog_keeps_volume():
    def moved(z):
        return jnp.concatenate(example.leapfrog(grad(quartic), z[:2], z[2:], 0.2, 5))

    matrix = np.asarray(jacobian(moved)(jnp.concatenate(START)))
    assert np.linalg.det(matrix) == pytest.approx(1, abs=1e-4)
    assert abs(matrix - np.eye(4)).max() > 0.5  # it moved


def test_leapfrog_is_of_second_order():
    def error(step_size, leaps):
        x, p = example.leapfrog(grad(quartic), *START, step_size, leaps)
        (x0, p0) = START
        return abs(float((p @ p - p0 @ p0) / 2 - quartic(x) + quartic(x0)))

    assert error(0.2, 5) / error(0.1, 10) == pytest.approx(4, rel=0.3)


def test_adaptation_finds_the_target():
    """With the acceptance exp(-step), steps settle at -log(target)."""
    chain = example.start_chain(jnp.zeros(1))
    for _ in range(400):
        chain = example.adapted(chain, np.exp(-np.exp(float(chain.log_step))))
    assert np.exp(float(chain.log_step_bar)) == pytest.approx(-np.log(example.TARGET), rel=0.05)


def test_posterior_is_that_of_a_grid():
    """Two weights and a bias, by summing the density over a grid."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((30, 1)).astype(np.float32)
    labels = (features[:, 0] + rng.standard_normal(30) > 0.5).astype(np.float32)
    args = SimpleNamespace(warm_up=100, draws=500, leaps=8, chains=4)
    density = example.logistic_density(jnp.asarray(features), jnp.asarray(labels))
    records, _ = example.sample(density, random.key(0), jnp.zeros((4, 2)), args, "test")
    w, b = np.meshgrid(np.linspace(-4, 6, 300), np.linspace(-6, 5, 300), indexing="ij")
    score = w[..., None] * features[:, 0] + b[..., None]
    log_p = (labels * score - np.logaddexp(0, score)).sum(-1) - w**2 / 2 - b**2 / 50
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    draws = records.position.reshape(-1, 2)
    for grid, got in zip((w, b), draws.T, strict=True):
        mean = (p * grid).sum()
        deviation = np.sqrt((p * (grid - mean) ** 2).sum())
        assert got.mean() == pytest.approx(mean, abs=0.12 * deviation)
        assert got.std() == pytest.approx(deviation, rel=0.12)


def test_effective_size_of_an_autoregression():
    """Draws that keep a share phi of the last are worth (1 - phi) / (1 + phi) each."""
    rng = np.random.default_rng(0)
    for phi, worth in ((0.0, 1), (0.8, 1 / 9), (-0.5, 3)):
        noise = rng.standard_normal((4, 4000)) * np.sqrt(1 - phi**2)
        draws = rng.standard_normal((4, 4000))
        for i in range(1, 4000):
            draws[:, i] = phi * draws[:, i - 1] + noise[:, i]
        size = float(example.effective_size(jnp.asarray(draws, jnp.float32)))
        assert size == pytest.approx(16000 * worth, rel=0.2)


def test_effective_size_of_chains_apart_is_small():
    draws = np.random.default_rng(0).standard_normal((4, 500)) + 3 * np.arange(4)[:, None]
    assert float(example.effective_size(jnp.asarray(draws, jnp.float32))) < 20


def test_split_rhat_is_its_formula():
    draws = np.random.default_rng(0).standard_normal((3, 200)) + np.array([[0], [0.5], [1]])
    halves = draws.reshape(6, 100)
    within, between = halves.var(axis=1, ddof=1).mean(), 100 * halves.mean(axis=1).var(ddof=1)
    expected = np.sqrt((99 / 100 * within + between / 100) / within)
    assert expected > 1.05
    assert float(example.split_rhat(jnp.asarray(draws))) == pytest.approx(expected, rel=1e-5)


def test_split_rhat_sees_a_drift():
    """Chains that agree, and move together: only their halves differ."""
    draws = np.random.default_rng(0).standard_normal((4, 400)) + np.linspace(0, 3, 400)
    assert float(example.split_rhat(jnp.asarray(draws))) > 1.2


def test_a_step_too_large_diverges_and_stays():
    record = example.transition(quartic, 10, random.key(0), START[0], 50.0)
    assert bool(record.diverged) and float(record.acceptance) == 0
    np.testing.assert_array_equal(record.position, START[0])
