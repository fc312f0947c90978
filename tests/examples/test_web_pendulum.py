"""The page with a pendulum: its equations, and a mouse that drags it in headless Chromium."""

import numpy as np
import pytest

from tests.examples.browser import CHROMIUM, open_page
from tests.examples.running import load_example
from tests.export.c.test_wasm import HAS_ZIG
from weft import random


def test_the_equations_of_motion():
    web = load_example("web_pendulum")
    rest = np.array([0.3, 0, 0, 0], np.float32)
    np.testing.assert_array_equal(web.move(rest, 0.0, 0.0), rest)
    x, v, angle, turn = web.move(rest, 1.0, 0.0)  # the cart leaves, the pole stays behind
    assert x > 0.3 and v > 0 and angle < 0 and turn < 0
    *_, turn = web.move(rest, 0.0, 1.0)
    assert turn > 0
    hanging = np.array([0, 0, np.pi + 0.1, 0], np.float32)
    assert web.move(hanging, 0.0, 0.0)[3] < 0


@pytest.mark.slow
@pytest.mark.skipif(not (HAS_ZIG and CHROMIUM), reason="needs ziglang and Chromium")
def test_a_mouse_drags_the_pendulum(tmp_path):
    web = load_example("web_pendulum")
    web.write_page(web.train(random.key(0), 400), tmp_path)
    with open_page(tmp_path) as page:
        angle = lambda: abs(float(page.ask("document.body.dataset.angle")))
        page.wait("document.body.dataset.time > 5")
        assert angle() < 0.05
        left, top = page.find_corner("view")
        page.mouse("mousePressed", left + 350, top + 120)
        page.mouse("mouseMoved", left + 550, top + 120)
        page.wait("Math.abs(document.body.dataset.angle) > 0.1")
        page.mouse("mouseReleased", left + 550, top + 120)
        released = float(page.ask("document.body.dataset.time"))
        page.wait(f"document.body.dataset.time > {released + 8}")  # it swings through 0 before
        assert angle() < 0.05
