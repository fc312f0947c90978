"""Functions of layout.py. Rules: cases_layout.py."""

from __future__ import annotations

import numpy as np

from weft.primitives import layout


def test_broadcast_like_goes_by_numpys_rule():
    like = np.zeros((2, 3), np.float32)
    for x in (np.float32(1), np.ones(3, np.float32), np.ones((2, 1), np.float32), like):
        got = layout.broadcast_like(x, like)
        np.testing.assert_array_equal(got, np.broadcast_to(x, (2, 3)))


def test_collapse_of_no_axis_makes_one():
    x = np.zeros((2, 3), np.float32)
    assert layout.collapse(x, 1, 1).shape == (2, 1, 3)
    assert layout.collapse(x, 0).shape == (6,)
