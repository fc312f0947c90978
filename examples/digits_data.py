"""The data of the examples that read digits: scikit-learn's, 1,797 images of 8 x 8 pixels."""

from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_digits


def split_digits(shuffle: Callable[[int], np.ndarray], prepare: Callable, held_out: int):
    """Images of digits as rows of 64, and labels: a training and a held-out pair.

    Args:
      shuffle: the order of as many images.
      prepare: what the images are then, made of counts of inked points from 0 to 16, floats.
      held_out: how many images the second pair has.
    """
    digits = load_digits()
    order = np.asarray(shuffle(len(digits.target)))
    images, labels = prepare(digits.data[order].astype(np.float32)), digits.target[order]
    labels = labels.astype(np.int32)
    return (images[:-held_out], labels[:-held_out]), (images[-held_out:], labels[-held_out:])
