"""The view that one process of two has of arrays over both; test_pieces.py runs it.

Each has two CPU devices, numbered 0, 1 and 2048, 2049.
"""

import pickle
import sys

import numpy as np
from jaxlib import _jax

import weft
from weft.mesh.client import ProcessGroup, set_process_group
from weft.sharding import Mesh, NamedSharding, SingleDeviceSharding
from weft.sharding import PartitionSpec as P

A = np.arange(8, dtype=np.float32)


def error_of(call) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("nothing was raised")


def check_meshes(rank, devices):
    here = devices[2 * rank : 2 * rank + 2]
    mesh = Mesh(devices, "x")
    assert weft.local_devices() == here and weft.local_devices(1) == devices[2:]
    assert mesh.is_multi_process and mesh.local_devices == here
    assert mesh.local_mesh is Mesh(here, "x")
    grid = np.array(devices).reshape(2, 2)
    assert Mesh(grid.T, ("a", "b")).local_mesh is Mesh(grid.T[:, rank : rank + 1], ("a", "b"))
    crossed = np.array([[devices[0], devices[2]], [devices[3], devices[1]]])
    assert "must form a block of the mesh" in error_of(lambda: Mesh(crossed, ("a", "b")).local_mesh)
    s = NamedSharding(mesh, P("x"))
    assert not s.is_fully_addressable and s.has_addressable_devices
    assert s.addressable_devices == set(here) and pickle.loads(pickle.dumps(s)) is s


def check_reading(rank, devices):
    s = NamedSharding(Mesh(devices, "x"), P("x"))
    x = weft.make_array_from_callback((8,), s, lambda index: A[index])
    assert not x.is_fully_addressable and not x.is_fully_replicated
    shards = x.addressable_shards
    assert [np.asarray(p.data).tolist() for p in shards] == A.reshape(2, 2, 2)[rank].tolist()
    assert [p.index[0].start for p in x.global_shards] == [0, 2, 4, 6]
    assert [p.data is None for p in x.global_shards] == [rank == 1] * 2 + [rank == 0] * 2
    assert repr(x) == str(x) == "Array(shape=(8,), dtype=float32)"
    others = ("1 (devices 2048, 2049)", "0 (devices 0, 1)")[rank]
    for read in (np.asarray, float, weft.device_get, pickle.dumps):
        assert error_of(lambda read=read: read(x)) == (
            "RuntimeError: array: must lie on this process's devices to be read; got f32[8] with "
            f"parts of it on process {others}. Hint: multihost_utils.process_allgather(x), or "
            "x.addressable_shards for the parts that are here."
        )
    again = weft.make_array_from_single_device_arrays((8,), s, [p.data for p in shards])
    assert again.sharding is s
    whole = weft.device_put(x, NamedSharding(s.mesh, P()))  # between the processes
    assert whole.is_fully_replicated and not whole.is_fully_addressable
    np.testing.assert_array_equal(np.asarray(whole), A)
    assert repr(whole).startswith("Array([0.,")
    there = SingleDeviceSharding(devices[3 - 2 * rank])
    assert "device must be this process's" in error_of(lambda: weft.device_put(A, there))
    x.delete()
    assert "after it was deleted" in error_of(lambda: x.addressable_shards)


def check_local_data(rank, devices):
    s = NamedSharding(Mesh(devices, "x"), P("x"))
    make = weft.make_array_from_process_local_data

    def parts(x):
        return [np.asarray(p.data).tolist() for p in x.addressable_shards]

    x = make(s, A[:4] + 10 * rank)
    assert x.shape == (8,) and parts(x) == (A[:4] + 10 * rank).reshape(2, 2).tolist()
    x = make(s, A, (8,))  # every process has all of it
    assert parts(x) == A.reshape(2, 2, 2)[rank].tolist()
    grid = Mesh(np.array(devices).reshape(2, 2), ("process", "local"))
    x = make(NamedSharding(grid, P("local", "process")), A[:4].reshape(4, 1) + 10 * rank)
    assert x.shape == (4, 2) and x.addressable_shards[1].index == (
        slice(2, 4),
        slice(rank, rank + 1),
    )
    assert parts(x)[1] == [[2 + 10 * rank], [3 + 10 * rank]]
    assert "axis 0 of the array must be divisible by 4" in error_of(lambda: make(s, A[:3]))
    assert error_of(lambda: make(s, A[:4], (16,))) == (
        "ShapeError: make_array_from_process_local_data: axis 0 of local_data must have size 8, "
        "what this process's devices hold of 16; got f32[4] for global_shape (16,)."
    )
    elsewhere = NamedSharding(Mesh(devices[2 - 2 * rank :][:2], "x"), P("x"))
    assert "dtype must be given where this process holds no part" in error_of(
        lambda: weft.make_array_from_callback((8,), elsewhere, lambda index: A[index])
    )
    x = weft.make_array_from_callback((8,), elsewhere, lambda index: A[index], dtype=np.float32)
    assert x.addressable_shards == []


def main(address: str, rank: int) -> None:
    service = _jax.get_distributed_runtime_service(address, 2) if rank == 0 else None
    connection = _jax.get_distributed_runtime_client(address, rank)
    connection.connect()
    set_process_group(ProcessGroup(connection, rank, 2))
    devices = weft.devices()
    assert [d.id for d in devices] == [0, 1, 2048, 2049]
    check_meshes(rank, devices)
    check_reading(rank, devices)
    check_local_data(rank, devices)
    connection.wait_at_barrier("done", 60_000)
    connection.shutdown()
    if service is not None:
        service.shutdown()
    print("well", rank)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
