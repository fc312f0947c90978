"""Costs of programs over devices: sums over the devices, and communication."""

import numpy as np

import weft
from weft import lax
from weft import numpy as jnp
from weft.sharding import Mesh
from weft.sharding import PartitionSpec as P

MESH = Mesh(np.array(weft.devices()[:4]), ("x",))


def local(x, w):
    y = x @ w  # product
    return lax.psum(y, "x")  # sum


def test_work_is_of_all_devices_and_collectives_have_their_bytes_and_lines():
    f = weft.jit(weft.shard_map(local, mesh=MESH, in_specs=(P("x"), P()), out_specs=P()))
    report = weft.explain(f, runs=1)(jnp.ones((64, 32)), jnp.ones((32, 16)))
    found = {place.text.partition("# ")[2]: work for place, work in report.lines}
    assert found["product"].flops == 2 * 64 * 32 * 16
    (collective,) = [k for k in report.kernels if k.kind.startswith("collective")]
    assert [p.text.partition("# ")[2] for p in collective.places] == ["sum"]
    assert collective.moved == 4 * (16 * 16 * 4) and collective.runs == 1
    assert "Collectives" in str(report)
