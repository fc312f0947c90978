"""The stax classifier: its loss, steps and batches against NumPy, and a run as users run it."""

import itertools
import re
import sys

import numpy as np
import pytest
import scipy.special

from tests.examples.running import is_picture, load_example, run_example
from weft import random
from weft.tree_util import tree_map


@pytest.fixture(scope="module")
def example():
    return load_example("mnist_stax")


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    done = run_example("mnist_stax", "--epochs", 20, "--out", tmp_path / "new")
    assert done.returncode == 0, done.stdout + done.stderr
    assert float(re.search(r"held-out ([\d.]+)%", done.stdout)[1]) > 96
    assert "20/20" in done.stderr
    assert is_picture(tmp_path / "new" / "mnist_stax.png")


@pytest.mark.slow
def test_one_epoch_misses_the_bar(example, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["mnist_stax.py", "--epochs", "1", "--out", str(tmp_path)])
    monkeypatch.setattr(example, "plot", lambda *_: None)
    assert example.main() == 1
    assert "mnist_stax: missed the bar: held-out accuracy above 96%" in capsys.readouterr().err


def backpropagation(params, inputs, targets):
    """The loss and its gradient in the six arrays, in NumPy."""
    (w1, b1), _, (w2, b2), _, (w3, b3), _ = params
    h1 = np.maximum(inputs @ w1 + b1, 0)
    h2 = np.maximum(h1 @ w2 + b2, 0)
    log_p = scipy.special.log_softmax(h2 @ w3 + b3, axis=1)
    d3 = (np.exp(log_p) - targets) / len(inputs)
    d2 = d3 @ w3.T * (h2 > 0)
    d1 = d2 @ w2.T * (h1 > 0)
    pairs = [(x.T @ d, d.sum(0)) for x, d in ((inputs, d1), (h1, d2), (h2, d3))]
    return -(log_p * targets).sum(1).mean(), [pairs[0], (), pairs[1], (), pairs[2], ()]


def test_loss_and_steps_against_numpy(example):
    train_set, _ = example.load_data(random.key(0))
    batches = example.data_stream(random.key(1), *train_set)
    _, params = example.init_random_params(random.key(2), (-1, 64))
    state = example.opt_init(params)
    host = tree_map(np.float64, params)
    velocity = tree_map(np.zeros_like, host)
    for i in range(3):
        batch = next(batches)
        value, grads = backpropagation(host, *batch)
        np.testing.assert_allclose(example.loss(example.get_params(state), batch), value, rtol=1e-5)
        velocity = tree_map(lambda v, g: 0.9 * v + g, velocity, grads)
        host = tree_map(lambda x, v: x - 0.03 * v, host, velocity)
        state = example.update(i, state, batch)
    close = lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5)
    tree_map(close, example.get_params(state), host)


def test_the_stream_gives_every_image_once_in_each_pass(example):
    inputs = np.arange(200.0)
    stream = example.data_stream(random.key(0), inputs, -inputs)
    passes = [list(itertools.islice(stream, 3)) for _ in range(2)]
    seen = [np.concatenate([x for x, _ in batches]) for batches in passes]
    assert all(np.array_equal(x, -y) for batches in passes for x, y in batches)
    assert all(len(set(x)) == len(x) == 192 for x in seen)  # three batches of 64
    assert not np.array_equal(*seen)
