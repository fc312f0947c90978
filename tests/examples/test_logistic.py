"""Logistic regression: the README's program against NumPy, the fit against scikit-learn's."""

import functools
import re
import sys

import numpy as np
import pytest
import scipy.special
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import weft.numpy as jnp
from tests.examples.running import is_picture, load_example, run_example_here
from weft import grad, random


@pytest.fixture(scope="module")
def example():
    return load_example("logistic")


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    done = run_example_here("logistic", "--steps", 400, "--out", tmp_path / "new")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Initial loss: 2.77\nTrained loss: 0.17" in done.stdout  # as NumPy has it, below
    assert float(re.search(r"held-out accuracy ([\d.]+)%", done.stdout)[1]) > 95
    assert float(re.search(r"area under the ROC ([\d.]+)", done.stdout)[1]) > 0.99
    assert "400/400" in done.stderr
    for name in ("predictions", "weights"):
        assert is_picture(tmp_path / "new" / f"logistic_{name}.png")


def test_too_strong_a_penalty_misses_the_bar(example, monkeypatch, capsys, tmp_path):
    options = ["--steps", "1", "--penalty", "1e9", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["logistic.py", *options])
    for name in ("plot_predictions", "plot_weights"):
        monkeypatch.setattr(example, name, lambda *_: None)
    assert example.main() == 1
    assert "logistic: missed the bar: held-out accuracy above 95%" in capsys.readouterr().err


def test_the_tour_against_numpy(example, capsys):
    inputs = np.array(
        [[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]]
    )
    targets, weights = np.array([1, 1, 0, 1]), np.zeros(3)
    for _ in range(100):
        weights -= 0.1 * inputs.T @ (scipy.special.expit(inputs @ weights) - targets)
    np.testing.assert_allclose(example.tour(), weights, rtol=1e-4)
    final = -np.sum(scipy.special.log_expit((2 * targets - 1) * (inputs @ weights)))
    assert f"Trained loss: {final:.2f}" in capsys.readouterr().out


def test_the_fit_is_scikit_learns(example):
    (inputs, targets), held_out, _ = example.load_data(random.key(0))
    assert len(held_out[1]) == 169 and len(targets) == 400
    params = jnp.zeros(30), 0.0
    for _ in range(1000):
        params = example.step(params, inputs, targets, 40.0)
    model = LogisticRegression(C=1 / 40, tol=1e-8, max_iter=1000)
    model.fit(np.float64(inputs), np.asarray(targets))
    np.testing.assert_allclose(params[0], model.coef_[0], atol=2e-4)
    np.testing.assert_allclose(params[1], model.intercept_[0], atol=2e-4)
    weights = example.path(inputs, targets, jnp.array([10.0, 40.0]))
    np.testing.assert_allclose(weights[1], model.coef_[0], atol=2e-4)
    area = example.roc(example.logits(params, held_out[0]), held_out[1])[2]
    scores = model.decision_function(np.float64(held_out[0]))
    np.testing.assert_allclose(area, roc_auc_score(held_out[1], scores), atol=1e-3)


def test_the_loss_of_a_certain_mistake_is_finite(example):
    inputs, targets = jnp.array([[100.0], [-100.0]]), jnp.array([False, True])
    fun = functools.partial(example.mean_loss, inputs=inputs, targets=targets, penalty=0.0)
    value, slope = fun((jnp.ones(1), 0.0)), grad(fun)((jnp.ones(1), 0.0))
    np.testing.assert_allclose(value, 100)
    np.testing.assert_allclose(slope[0], [100])
    assert not np.isfinite(example.loss(jnp.ones(1), inputs, targets))  # what the README's gives
