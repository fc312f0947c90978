"""The smaller names of interpreters.batching."""

import numpy as np

from weft.interpreters import batching


def test_names_of_batching():
    assert batching.not_mapped is None
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    assert batching.moveaxis(x, 0, 1).shape == (3, 2)
    assert batching.moveaxis(x, None, 1) is x
    assert batching.broadcast(x, 4, 1).shape == (2, 4, 3)
    assert batching.bdim_at_front(x, 1, 3).shape == (3, 2)
    assert batching.bdim_at_front(x, None, 5).shape == (5, 2, 3)
