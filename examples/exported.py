"""Use a network that export.py has written, in a process that has none of its code.

Classifies the first image and all of them, and differentiates the best score of each by its pixels.

usage: python examples/exported.py NETWORK.weft PIXELS.npy ANSWERS.npz
"""

import sys
from pathlib import Path

import numpy as np

import weft
from weft import export


def use_network(data, pixels):
    """Scores of the first image, scores of all, and the derivative of the best score of each."""
    network = export.deserialize(data)
    print(f"loaded {network}")
    best = weft.jit(lambda pixels: network.call(pixels).max(axis=1).sum())
    return network.call(pixels[:1]), network.call(pixels), weft.grad(best)(pixels)


if __name__ == "__main__":
    network, images, answers = map(Path, sys.argv[1:])
    one, every, speaks = use_network(network.read_bytes(), np.load(images))
    np.savez(answers, one=one, every=every, speaks=speaks)
