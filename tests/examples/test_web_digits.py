"""The page that reads drawn digits: its parts, and a mouse that draws in headless Chromium."""

import math

import numpy as np
import pytest

from tests.examples.browser import CHROMIUM, open_page
from tests.examples.running import load_example
from tests.export.c.test_wasm import HAS_ZIG


def test_a_digit_is_cut_out_of_a_drawing():
    web = load_example("web_digits")
    counts = np.random.default_rng(0).integers(0, 17, (8, 8))
    counts[[0, -1]] = counts[:, [0, -1]] = 16  # inked to the ends, so that nothing is cut away
    drawing = web.draw_large(counts)
    assert drawing.sum() == 4 * counts.sum()
    np.testing.assert_allclose(web.cut_out(drawing), counts.ravel() / 16, atol=0.5)
    small = np.zeros((64, 64), np.float32)
    small[10:26, 40:48] = 1  # half as wide as high
    want = np.zeros((8, 8))
    want[:, 2:6] = 1
    np.testing.assert_array_equal(np.reshape(web.cut_out(small), (8, 8)), want)


@pytest.mark.slow
@pytest.mark.skipif(not (HAS_ZIG and CHROMIUM), reason="needs ziglang and Chromium")
def test_a_mouse_draws_digits(tmp_path):
    web = load_example("web_digits")
    rng = np.random.default_rng(0)
    train_set, held_out = web.digits.load_data(rng)
    params, _ = web.digits.train(30, rng, train_set, held_out)
    web.write_page(params, tmp_path)
    turn = [t / 10 for t in range(64)]
    strokes = {
        "1": [(160, 60 + 10 * k) for k in range(21)],
        "0": [(160 + 60 * math.sin(t), 160 - 100 * math.cos(t)) for t in turn],
        "7": [(100, 70), *[(220 - 10 * k, 70 + 20 * k) for k in range(10)]],
    }  # fmt: skip
    with open_page(tmp_path) as page:
        page.wait("document.body.dataset.answer === '-1'")
        left, top = page.find_corner("ink")
        for digit, points in strokes.items():
            page.drag([(left + x, top + y) for x, y in points])
            assert page.ask("document.body.dataset.answer") == digit
            page.ask("document.getElementById('clear').click()")
            assert page.ask("document.body.dataset.answer") == "-1"
