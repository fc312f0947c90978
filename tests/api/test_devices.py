"""Devices, and pytrees moved to and from them."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import device_get, device_put, grad, jit, vmap

A = np.array([1.0, 2.0, 3.0], np.float32)


def test_what_devices_there_are():
    assert weft.device_count() == weft.local_device_count() == len(weft.devices("cpu"))
    assert weft.default_backend() == weft.devices()[0].platform == "cpu"
    assert (weft.process_index(), weft.process_count()) == (0, 1)
    assert weft.local_devices() == weft.devices()
    with pytest.raises(RuntimeError, match="one of cpu; got 'abacus'"):
        weft.devices("abacus")


def test_device_put_makes_arrays_of_leaves():
    out = device_put({"a": A, "b": 1, "c": 2.0, "d": None})
    assert [type(x) is type(jnp.add(1, 1)) for x in weft.tree.leaves(out)] == [True] * 3
    assert out["c"].weak_type and not out["a"].committed
    x = jnp.add(A, 1)
    assert device_put(x) is x


def test_device_put_on_a_device_commits():
    device = weft.devices()[0]
    for target in (device, device_put(A).sharding, [device, None]):
        x, y = device_put([A, 2.0], target)
        assert x.committed and x.devices() == {device}
    assert not y.committed


def test_device_put_under_transformations():
    f = lambda x: device_put(x, weft.devices()[0]) * 2
    np.testing.assert_array_equal(jit(f)(A), A * 2)
    np.testing.assert_array_equal(vmap(f)(A), A * 2)
    assert float(grad(f)(1.0)) == 2.0


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: device_put({"a": ["b"]}), "got 'b' of type str at x['a'][0]"),
        (lambda: device_put(A, "cpu"), "got 'cpu' of type str. Hint: weft.devices()[0]"),
        (lambda: device_put([A], [None, None]), "device must be a tree prefix of x"),
    ],
)
def test_what_device_put_refuses(call, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert text in str(caught.value)


def test_device_get_gives_numpy():
    out = device_get({"a": jnp.add(A, 1), "b": 1, "d": None})
    assert type(out["a"]) is np.ndarray and out["b"] == 1 and out["d"] is None
    x = jnp.add(A, 1)
    x.delete()
    with pytest.raises(weft.errors.DeletedError):
        device_get(x)


def test_waiting_and_copying_take_any_pytree():
    tree = {"a": jnp.add(A, 1), "b": 1, "s": "text"}
    assert weft.block_until_ready(tree) is tree
    assert weft.copy_to_host_async(tree) is tree


def test_live_arrays_are_those_that_hold_memory():
    x = jnp.add(A, 41)
    assert any(y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer() for y in weft.live_arrays())
    with pytest.raises(RuntimeError, match="live_arrays: the platform must be one of .*; got 'no'"):
        weft.live_arrays("no")


def test_default_device():
    with weft.default_device(weft.devices()[0]):
        assert jnp.add(A, 1).devices() == {weft.devices()[0]}


def test_a_format_puts_where_its_sharding_says():
    x = weft.device_put(np.ones(2), weft.devices()[0])
    there = weft.experimental.layout.Format(None, x.sharding)
    assert weft.device_put(np.ones(2), there).sharding is x.sharding
    assert x.sharding._addressable_device_assignment == (weft.devices()[0],)


def test_traced_values_stay_on_the_device():
    """Functions that place their arguments can therefore be transformed."""
    assert vmap(device_get)(jnp.ones(2)).tolist() == [1, 1]
    assert grad(lambda x: device_get({"a": x})["a"] * 2)(1.0) == 2


def test_platforms_that_are_none_word_by_word():
    rows = [
        (lambda: weft.devices(5), "devices: the platform must be a name; got 5."),
        (lambda: weft.local_devices(5), "local_devices: process_index must be one of [0]; got 5."),
    ]
    for code, said in rows:
        with pytest.raises((TypeError, ValueError)) as info:
            code()
        assert str(info.value) == said


def test_copies_that_share_no_memory():
    """With may_alias=False of arrays; host values are copied anyway."""
    x, y = jnp.ones(3), np.ones(3, np.float32)
    same, (other, host) = weft.device_put(x), weft.device_put((x, y), may_alias=False)
    assert same is x and other is not x
    assert other.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    y[0] = 5
    np.testing.assert_array_equal(np.asarray((other, host)), np.ones((2, 3)))


def test_prefixes_say_what_is_copied_and_what_is_donated():
    x, y = jnp.ones(3), jnp.ones(3)
    same, other = weft.device_put((x, y), may_alias=(True, False), donate=(False, True), src=3)
    assert same is x and other is not y
    with pytest.raises(
        ValueError, match=r"^device_put: a value that is donated must not be shared"
    ):
        weft.device_put((x, y), donate=(True, False), may_alias=True)
