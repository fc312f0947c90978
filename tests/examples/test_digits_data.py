"""The digits that examples share."""

import numpy as np

from tests.examples.running import load_example


def test_digits_are_split_in_the_order_given():
    example = load_example("digits_data")
    (images, labels), (rest, more) = example.split_digits(np.arange, lambda x: x / 16, 360)
    digits = example.load_digits()
    np.testing.assert_array_equal(np.concatenate([images, rest]), digits.data / 16)
    np.testing.assert_array_equal(np.concatenate([labels, more]), digits.target)
    assert images.dtype == np.float32 and labels.dtype == np.int32 and len(more) == 360
