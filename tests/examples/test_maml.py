"""The MAML example: its meta-gradient against NumPy, and the program as a user runs it."""

import re

import numpy as np
import pytest

from tests.examples.running import is_picture, load_example, run_example
from weft import jit, random, value_and_grad, vmap
from weft.tree_util import tree_leaves, tree_map


@pytest.fixture(scope="module")
def maml():
    return load_example("maml")


def numpy_loss(params, x, y):
    """The error of the network, and its gradient by hand, in float64."""
    inputs, h = [], x[:, None]
    for w, b in params:
        inputs.append(h)
        h = h @ w + b
        h = np.maximum(h, 0) if len(inputs) < len(params) else h
    ct = 2 * (h - y[:, None]) / len(x)
    grads = []
    for (w, _), h_in in zip(reversed(params), reversed(inputs), strict=True):
        grads.append((h_in.T @ ct, ct.sum(0)))
        ct = (ct @ w.T) * (h_in > 0)
    return np.mean((h[:, 0] - y) ** 2), grads[::-1]


def numpy_adapt(params, x, y, steps, rate):
    for _ in range(steps):
        _, grads = numpy_loss(params, x, y)
        params = [
            (w - rate * gw, b - rate * gb) for (w, b), (gw, gb) in zip(params, grads, strict=True)
        ]
    return params


def numpy_meta_loss(params, tasks, points, steps, rate):
    return np.mean(
        [
            numpy_loss(
                numpy_adapt(params, x[:points], y[:points], steps, rate), x[points:], y[points:]
            )[0]
            for x, y in zip(*tasks, strict=True)
        ]
    )


def test_the_meta_gradient_is_the_slope_of_the_meta_loss(maml):
    params = maml.init_params(random.key(1))
    keys = random.split(random.key(2), 3)
    tasks, _ = vmap(lambda k: maml.draw_task(k, 2 * maml.POINTS))(keys)
    value, grads = jit(value_and_grad(maml.meta_loss))(params, tasks)

    rng = np.random.default_rng(3)
    exact, exact_tasks = tree_map(lambda a: np.asarray(a, np.float64), (params, tasks))
    sizes = (maml.POINTS, maml.INNER_STEPS, maml.INNER_RATE)
    np.testing.assert_allclose(value, numpy_meta_loss(exact, exact_tasks, *sizes), rtol=1e-4)
    for _ in range(3):
        way = tree_map(lambda a: rng.standard_normal(a.shape), exact)
        slopes = []
        for h in (1e-6, -1e-6):
            moved = tree_map(lambda p, d, h=h: p + h * d, exact, way)
            slopes.append(numpy_meta_loss(moved, exact_tasks, *sizes))
        slope = (slopes[0] - slopes[1]) / 2e-6
        along = sum(
            np.vdot(g, d) for g, d in zip(tree_leaves(grads), tree_leaves(way), strict=True)
        )
        np.testing.assert_allclose(along, slope, rtol=2e-3)


def test_tasks_are_waves_of_the_stated_heights_and_phases(maml):
    (x, y), (height, phase) = vmap(lambda k: maml.draw_task(k, 50))(
        random.split(random.key(0), 400)
    )
    assert float(height.min()) >= 0.1 and float(height.max()) <= 5
    assert float(phase.min()) >= 0 and float(phase.max()) <= np.pi
    assert float(np.abs(x).max()) <= 5
    np.testing.assert_allclose(y, height[:, None] * np.sin(x - phase[:, None]), atol=1e-5)
    means = [float(v.mean()) for v in (height, phase, x)]
    np.testing.assert_allclose(means, (2.55, np.pi / 2, 0), atol=0.25)


@pytest.mark.slow
def test_meta_learning_beats_training_on_all(tmp_path):
    done = run_example("maml", "--steps", 1500, "--tasks", 10, "--out", tmp_path)
    factor = re.search(r"meta-learning is ([\d.]+) times better", done.stdout)
    # A start without meta-learning is no better than the baseline: a factor of about 1.
    assert factor is not None and float(factor[1]) > 1.4, done.stdout + done.stderr
    assert done.returncode == 1 and "maml: missed the bar" in done.stderr  # too few steps
    assert "1500/1500" in done.stderr
    assert is_picture(tmp_path / "maml-adaptation.png") and is_picture(tmp_path / "maml-errors.png")
