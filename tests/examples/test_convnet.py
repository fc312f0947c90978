"""The convolutional network: its augmentation and layers against SciPy, and a run of it."""

import re
import sys

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal
from sklearn.metrics import confusion_matrix

import weft.numpy as jnp
from tests.examples.running import is_picture, load_example, run_example
from weft import random


@pytest.fixture(scope="module")
def example():
    return load_example("convnet")


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    done = run_example("convnet", "--epochs", 10, "--out", tmp_path / "new")
    assert done.returncode == 0, done.stdout + done.stderr
    assert float(re.search(r"held-out accuracy ([\d.]+)%", done.stdout)[1]) > 98
    assert "220/220" in done.stderr
    for name in ("confusion", "filters"):
        assert is_picture(tmp_path / "new" / f"convnet_{name}.png")


@pytest.mark.slow
def test_an_untrained_network_misses_the_bar(example, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["convnet.py", "--out", str(tmp_path)])
    untrained = lambda epochs, key, *sets: (example.init_params(key, (-1, 8, 8, 1))[1], [])
    monkeypatch.setattr(example, "train", untrained)
    for name in ("plot_confusion", "plot_filters"):
        monkeypatch.setattr(example, name, lambda *_: None)
    assert example.main() == 1
    assert "convnet: missed the bar: held-out accuracy above 98%" in capsys.readouterr().err


def test_jitter_turns_and_shifts_as_scipy_does(example):
    key = random.key(3)
    picture = np.random.default_rng(0).uniform(size=(8, 8)).astype(np.float32)
    key_turn, key_shift = random.split(key)
    angle = 0.1 * float(random.normal(key_turn))
    shift = np.asarray(random.uniform(key_shift, (2,), minval=-1, maxval=1))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    middle = np.array([3.5, 3.5])
    expected = scipy.ndimage.affine_transform(
        picture, turn, offset=middle - turn @ middle + shift, order=1, mode="grid-constant"
    )
    np.testing.assert_allclose(example.jitter(key, picture), expected, atol=1e-5)


def test_the_network_against_scipy(example):
    _, params = example.init_params(random.key(0), (-1, 8, 8, 1))
    pictures = np.random.default_rng(0).uniform(size=(3, 8, 8)).astype(np.float32)
    x = pictures[..., None].astype(float)
    for i in range(10):
        given = params[i]
        if i in (0, 3, 7):  # a convolution, of zero-padded images
            kernel, bias = np.float64(given[0]), np.float64(given[1])
            x = np.stack(
                [
                    sum(
                        scipy.signal.correlate2d(image[..., c], kernel[:, :, c, o], mode="same")
                        for c in range(image.shape[-1])
                    )
                    for image in x
                    for o in range(kernel.shape[-1])
                ]
            )
            x = np.moveaxis(x.reshape(3, -1, *x.shape[1:]), 1, -1) + bias
        elif i in (1, 4, 8):
            x = (x - x.mean((0, 1, 2))) / np.sqrt(x.var((0, 1, 2)) + 1e-5)
        elif i == 6:
            x = x.reshape(3, 4, 2, 4, 2, -1).max((2, 4))
        else:
            x = np.maximum(x, 0)
    logits = x.reshape(3, -1) @ params[12][0] + params[12][1]
    expected = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    np.testing.assert_allclose(example.predict(params, pictures), expected, atol=1e-4)


def test_the_confusion_matrix_is_scikit_learns(example):
    labels, guesses = np.random.default_rng(0).integers(0, 10, (2, 50))
    expected = confusion_matrix(labels, guesses, labels=range(10))
    np.testing.assert_array_equal(
        example.confusion_matrix(jnp.array(labels), jnp.array(guesses)), expected
    )
