"""Data parallelism: run small as a user runs it, and its parts against plain computations."""

import re

import numpy as np
import pytest

from tests.examples.running import is_picture, load_example, run_example

example = load_example("data_parallel")


@pytest.mark.slow
def test_small_run_is_that_of_one_device(tmp_path):
    """A step that forgets to add the gradients up has copies that differ, and another loss."""
    done = run_example("data_parallel", "--epochs", 4, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 devices, each with 16 digits" in done.stdout
    loss, parameters = map(
        float, re.search(r"loss within (\S+), parameters within (\S+)", done.stdout).groups()
    )
    assert loss < 1e-5 and parameters < 1e-5
    assert "between the devices' copies: 0\n" in done.stdout
    assert "4/4" in done.stderr
    assert is_picture(tmp_path / "data_parallel.png")


def test_loss_is_the_cross_entropy():
    rng = np.random.default_rng(0)
    params = [
        (rng.standard_normal(s, np.float32) / 8, rng.standard_normal(s[1], np.float32))
        for s in ((64, 128), (128, 64), (64, 10))
    ]
    images, labels = rng.random((5, 64), np.float32), np.array([1, 0, 9, 3, 3], np.int32)
    x = images
    for i, (w, b) in enumerate(params):
        x = x @ w + b
        x = np.maximum(x, 0) if i < 2 else x
    p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    wanted = -np.log(p[np.arange(5), labels]).mean()
    assert float(example.loss(params, images, labels)) == pytest.approx(wanted, rel=1e-5)


def test_update_is_momentum():
    """Two steps by hand on a loss whose gradients are asked from the loss itself."""
    rng = np.random.default_rng(1)
    images, labels = rng.random((4, 64), np.float32), np.arange(4, dtype=np.int32)
    params = [(rng.standard_normal((64, 10), np.float32) / 8, np.zeros(10, np.float32))]
    velocity = [(np.full((64, 10), 2.0, np.float32), np.full(10, -1.0, np.float32))]
    (after, moved), _ = example.update((params, velocity), images, labels, 0.5, lambda tree: tree)
    z = images @ params[0][0]
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) - np.eye(4, 10)
    wanted = 0.9 * 2 + images.T @ p / 4, 0.9 * -1 + p.mean(axis=0)
    for got, new, old, want in zip(moved[0], after[0], params[0], wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)
        np.testing.assert_allclose(new, old - 0.5 * want, atol=1e-5)


def test_distances():
    one = {"a": np.array([1.0, 2.0]), "b": np.array(3.0)}
    many = {"a": np.array([[1.0, 2.5], [1.0, 2.5]]), "b": np.array([3.0, 3.25])}
    assert example.distances(many, one) == (0.25, 0.5)


def test_shares_keep_each_example_once():
    images, labels = example.shares((np.arange(12).reshape(6, 2), np.arange(6)), 3)
    assert images.shape == (3, 2, 2) and labels.shape == (3, 2)
    np.testing.assert_array_equal(images.reshape(6, 2)[:, 0] // 2, labels.ravel())
