"""`jit(f, sizes=...)` with arrays that are split over devices along the padded axis."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.errors import ShapeError
from weft.padding.run import cut_array


def test_arrays_split_over_devices():
    auto = (weft.sharding.AxisType.Auto,)
    mesh = weft.make_mesh((2,), ("d",), auto, devices=weft.devices()[:2])
    split = weft.NamedSharding(mesh, weft.P("d"))
    fun = lambda x: (x - x.mean(0), (x * x).sum(), x[::-1])
    jitted = weft.jit(fun, sizes="n, _")
    for n in (6, 8):
        x = np.random.default_rng(n).normal(size=(n, 2)).astype(np.float32)
        outs = jitted(weft.device_put(x, split))
        for g, w in zip(outs, fun(x), strict=True):
            np.testing.assert_allclose(g, w, 1e-5, 1e-5)
        assert outs[0].sharding.is_equivalent_to(split, 2)
    cut = cut_array(weft.device_put(jnp.arange(8.0), split), (slice(3),), False)
    assert cut.sharding.is_fully_replicated and cut.tolist() == [0, 1, 2]
    with pytest.raises(ShapeError, match="jit: the bucket of an axis must be a multiple"):
        weft.jit(fun, sizes="n, _", buckets=[7])(weft.device_put(np.ones((6, 2), "f"), split))
