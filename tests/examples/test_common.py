"""What the examples share, where it computes."""

import numpy as np

from tests.examples.running import load_example


def test_tiles_are_rows_of_pictures_with_gaps():
    pictures = np.arange(30.0).reshape(5, 2, 3)
    shown = load_example("common").tiles(pictures, columns=2)
    assert shown.shape == (8, 7)  # three rows of two, and the gaps between them
    np.testing.assert_array_equal(shown[:2, :3], pictures[0])
    np.testing.assert_array_equal(shown[:2, 4:], pictures[1])
    np.testing.assert_array_equal(shown[6:, :3], pictures[4])
    assert (
        np.isnan(shown[2]).all() and np.isnan(shown[:, 3]).all() and np.isnan(shown[6:, 4:]).all()
    )
