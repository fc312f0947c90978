"""Shardings on one device; those over several are tested in parallel/on8/."""

import copy
import pickle
import threading
import time

import pytest

import weft
from weft.mesh import client
from weft.mesh import sharding as module
from weft.mesh.client import resolve_memory_kind
from weft.mesh.sharding import SingleDeviceSharding, sharding_on


def test_a_pickled_sharding_is_of_its_own_platform(monkeypatch):
    sharding = sharding_on(weft.devices()[0])
    unpickle, (platform, number, kind) = sharding.__reduce__()
    with pytest.raises(ValueError, match=r"^SingleDeviceSharding: pickled devices must exist here; "
                       r"got ids \[9\], and 1 devices\. Hint: .*DEVICES=10 or "):  # fmt: skip
        unpickle(platform, 9, kind)
    with pytest.raises(RuntimeError, match=r"platform of pickled devices must be one of cpu; got "):
        unpickle("gpu", number, kind)
    monkeypatch.setattr(client, "all_devices", tuple)  # another platform is the default one
    assert unpickle(platform, number, kind) is sharding


def test_a_sharding_is_one_object_for_each_device_and_memory():
    device = weft.devices()[0]
    sharding = SingleDeviceSharding(device)
    assert sharding is sharding_on(device) is weft.numpy.ones(3).sharding
    assert sharding is SingleDeviceSharding(device, memory_kind=device.default_memory().kind)
    assert pickle.loads(pickle.dumps(sharding)) is sharding is copy.copy(sharding)
    assert hash(sharding) == hash(SingleDeviceSharding(device))
    assert repr(sharding) == "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)"
    pinned = sharding.with_memory_kind("pinned_host")
    assert pinned != sharding and not pinned.is_equivalent_to(sharding, 1)
    assert weft.device_put(weft.numpy.ones(3), pinned).tolist() == [1, 1, 1]


def test_threads_that_need_a_sharding_first_get_one(monkeypatch):
    slow = lambda *args: time.sleep(0.01) or resolve_memory_kind(*args)
    monkeypatch.setattr(module, "resolve_memory_kind", slow)
    monkeypatch.setattr(SingleDeviceSharding, "_made", {})
    device, found = weft.devices()[0], []
    get = lambda: found.append(SingleDeviceSharding(device))
    threads = [threading.Thread(target=get) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(set(map(id, found))) == 1
    assert found[0].device is device


def test_what_a_sharding_says():
    device = weft.devices()[0]
    sharding = SingleDeviceSharding(device)
    assert sharding.device_set == sharding.addressable_devices == {device}
    assert sharding.num_devices == 1 and sharding.shard_shape((2, 3)) == (2, 3)
    assert sharding.devices_indices_map((2, 3)) == {device: (slice(None), slice(None))}
    assert sharding.is_fully_replicated and sharding.is_fully_addressable


def test_shardings_of_what_is_no_device_are_refused():
    with pytest.raises(
        TypeError, match=r"^SingleDeviceSharding: device must be a device; got 'cpu'"
    ):
        SingleDeviceSharding("cpu")
    with pytest.raises(ValueError, match=r"memory_kind must be one of .*device.*; got 'paper'\."):
        SingleDeviceSharding(weft.devices()[0], memory_kind="paper")
