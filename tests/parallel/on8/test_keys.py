"""Random keys over many devices: laid out, computed on and read as other arrays are."""

import pickle

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax, random
from weft.sharding import NamedSharding
from weft.sharding import PartitionSpec as P

KEYS = random.split(random.key(0), 8)
MESH = weft.make_mesh((4,), ("x",), devices=weft.devices()[:4])
OVER = NamedSharding(MESH, P("x"))
draw = weft.vmap(random.normal)


def words(keys):
    return np.asarray(random.key_data(keys))


def test_keys_are_laid_out_and_read():
    keys = weft.device_put(KEYS, OVER)
    assert keys.sharding.spec == P("x") and keys.committed and not keys.is_fully_replicated
    assert [s.index for s in keys.addressable_shards[:2]] == [(slice(0, 2),), (slice(2, 4),)]
    assert (keys.addressable_shards[1].data == KEYS[2:4]).all()
    assert repr(keys) == repr(KEYS) and (keys == KEYS).all()
    assert (pickle.loads(pickle.dumps(keys)) == KEYS).all()
    assert weft.device_put(keys, weft.devices()[1]).devices() == {weft.devices()[1]}
    whole = weft.device_put(keys, NamedSharding(MESH, P()))
    assert whole.is_fully_replicated and (whole[::-1] == KEYS[::-1]).all()


def test_keys_are_made_of_parts():
    parts = [s.data for s in weft.device_put(KEYS, OVER).addressable_shards]
    for keys in (
        weft.make_array_from_callback((8,), OVER, lambda index: KEYS[index]),
        weft.make_array_from_single_device_arrays((8,), OVER, parts),
        weft.make_array_from_process_local_data(OVER, KEYS),
    ):
        assert keys.sharding.spec == P("x") and (keys == KEYS).all()


def test_programs_over_a_mesh_take_and_give_keys():
    keys = weft.device_put(KEYS, OVER)
    same = weft.jit(lambda x: x)
    for _ in range(2):  # the second by the C++ path
        assert same(keys).sharding.spec == P("x")
    np.testing.assert_array_equal(weft.jit(draw)(keys), draw(KEYS))
    pairs = weft.jit(weft.vmap(random.split))(keys)
    assert (pairs == weft.vmap(random.split)(KEYS)).all()
    gathered = weft.jit(lambda x: x, in_shardings=OVER, out_shardings=NamedSharding(MESH, P()))
    assert gathered(KEYS).sharding.spec == P()
    pinned = weft.jit(lambda x: weft.sharding.reshard(x, OVER))
    assert pinned(KEYS).sharding.spec == P("x")


@pytest.mark.parametrize("jit", [False, True])
def test_shard_map(jit):
    def check(fun, out_specs, expected, in_specs=P("x"), arg=KEYS, **how):
        mapped = weft.shard_map(fun, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **how)
        found = (weft.jit(mapped) if jit else mapped)(arg)
        np.testing.assert_array_equal(words(found), words(expected))

    check(lambda k: k[::-1], P("x"), KEYS.reshape(4, 2)[:, ::-1].ravel())
    check(weft.vmap(random.split), P("x"), weft.vmap(random.split)(KEYS))
    check(lambda k: lax.all_gather(k, "x", tiled=True), P(), KEYS, check_vma=False)
    ring = [(i, (i + 1) % 4) for i in range(4)]
    check(lambda k: lax.ppermute(k, "x", ring), P("x"), jnp.roll(KEYS, 2))
    fold = lambda k: random.fold_in(k, lax.axis_index("x")).reshape(1)
    folded = jnp.stack([random.fold_in(KEYS[0], i) for i in range(4)])
    check(fold, P("x"), folded, in_specs=P(), arg=KEYS[0])


def test_pmap():
    keys = KEYS[:4]
    np.testing.assert_array_equal(weft.pmap(random.normal)(keys), draw(keys))
    assert (weft.pmap(random.split)(keys) == weft.vmap(random.split)(keys)).all()
    columns = weft.pmap(draw, in_axes=1, out_axes=1)(KEYS.reshape(2, 4))
    np.testing.assert_array_equal(columns, draw(KEYS).reshape(2, 4))
