"""The residual network: its blocks as a loop, shortcuts, a run that reaches the bar."""

import numpy as np
import pytest

from tests.examples.running import check_run, load_example
from weft import nn, random, tree


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    check_run("resnet", tmp_path, 95)


def test_the_scan_over_blocks_is_a_loop_over_blocks(monkeypatch):
    example = load_example("resnet")
    monkeypatch.setattr(example, "BLOCKS", 2)
    monkeypatch.setattr(example, "WIDTHS", (3,))
    params = example.init_params(random.key(0))
    pictures = np.random.default_rng(0).normal(size=(4, 8, 8)).astype(np.float32)
    for shortcuts in (True, False):
        first, ((entry, pair),), (w, b) = params
        x = nn.relu(example.convolve(first, pictures[..., None]))
        x = nn.relu(example.convolve(entry, x))
        for i in range(2):
            one, two = (tree.map(lambda p, i=i: p[i], layer) for layer in pair)
            y = example.convolve(two, nn.relu(example.convolve(one, x)))
            x = nn.relu(x + y) if shortcuts else nn.relu(y)
        expected = nn.log_softmax(x.mean((1, 2)) @ w + b)
        np.testing.assert_allclose(
            example.apply(params, pictures, shortcuts), expected, rtol=1e-4, atol=1e-5
        )
