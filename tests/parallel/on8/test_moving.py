"""Arrays that devices exchange, which on CPUs they do only in these tests."""

import numpy as np
import pytest

import weft
from weft import P
from weft.parallel import moving
from weft.sharding import Mesh, NamedSharding, SingleDeviceSharding

D = np.array(weft.devices())
GRID = Mesh(D[:4].reshape(2, 2), ("x", "y"))
PLACES = [
    SingleDeviceSharding(D[3]),
    *[NamedSharding(GRID, P(*spec)) for spec in (("x", "y"), (None, ("x", "y")), ())],
    NamedSharding(Mesh(D[[1, 0]], "q"), P("q")),
]
MOVES = [(0, 1), (1, 0), (1, 2), (2, 4), (4, 0), (2, 3), (3, 1)]


@pytest.mark.parametrize("move", MOVES)
def test_every_device_gets_its_part(move):
    source, target = (PLACES[k] for k in move)
    for shape in ((4, 8), (0, 8)):
        a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        y = moving.move_parts(weft.device_put(a, source), target)
        assert y.sharding == target and y.committed and y.aval is weft.device_put(a, target).aval
        for shard in y.addressable_shards:
            assert shard.data.devices() == {shard.device}
            np.testing.assert_array_equal(shard.data, a[shard.index])


def test_only_between_devices_of_one_accelerator():
    x = weft.device_put(np.ones(8), PLACES[0])
    assert not moving.can_move_parts(x, PLACES[1])
