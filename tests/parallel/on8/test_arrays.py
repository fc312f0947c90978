"""Arrays over eight devices: placed, moved, read, made of parts; printed forms are JAX 0.10.2's."""

import copy
import pickle

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.errors import DeletedError
from weft.mesh.sharding import GSPMDSharding
from weft.options import HELD
from weft.sharding import Mesh, NamedSharding, SingleDeviceSharding, set_mesh
from weft.sharding import PartitionSpec as P

D = weft.devices()
GRID = np.array(D).reshape(4, 2)
MESH = Mesh(GRID, ("x", "y"))
A = np.arange(32, dtype=np.float32).reshape(8, 4)
X = NamedSharding(MESH, P("x"))
SHARDINGS = {
    "rows": X,
    "rows_again": NamedSharding(MESH, P("x", None)),
    "blocks": NamedSharding(MESH, P("y", "x")),
    "whole": NamedSharding(MESH, P()),
    "first": SingleDeviceSharding(D[0]),
    "sixth": SingleDeviceSharding(D[5]),
    "columns_of_two": NamedSharding(Mesh(D[:2], "q"), P(None, "q")),
    "backwards": NamedSharding(Mesh(D[::-1], "q"), P("q")),
    "alone": NamedSharding(Mesh(D[3:4], "q"), P("q")),
    "tiles": GSPMDSharding(D, NamedSharding(MESH, P(None, "x"))._to_xla_hlo_sharding(2)),
    "rows_on_host": X.with_memory_kind("pinned_host"),
    "first_on_host": SingleDeviceSharding(D[0], memory_kind="pinned_host"),
}


def check(x, value, sharding):
    """Check the place of every part of an array, and its values."""
    assert x.sharding is sharding and x.committed
    np.testing.assert_array_equal(np.asarray(x), value)
    shards = x.addressable_shards
    assert {s.device for s in shards} == x.devices() == sharding.device_set
    for shard in shards:
        np.testing.assert_array_equal(np.asarray(shard.data), value[shard.index])
        assert shard.data.devices() == {shard.device} and shard.data.committed
        assert shard.data.sharding.memory_kind == sharding.memory_kind
        assert shard.data.dtype == value.dtype


@pytest.mark.parametrize("name", SHARDINGS)
def test_from_the_host_and_from_anywhere(name):
    sharding = SHARDINGS[name]
    check(weft.device_put(A, sharding), A, sharding)
    for source in SHARDINGS.values():
        check(weft.device_put(weft.device_put(A, source), sharding), A, sharding)


def test_what_is_there_already_is_the_same():
    x = weft.device_put(A, X)
    assert weft.device_put(x, X) is x and jnp.asarray(x) is x
    y = weft.device_put(x, SHARDINGS["rows_again"])
    assert [s.data.unsafe_buffer_pointer() for s in x.addressable_shards] == [
        s.data.unsafe_buffer_pointer() for s in y.addressable_shards
    ]


def test_the_host_array_may_change_afterwards():
    for name in ("rows", "whole", "blocks", "backwards"):
        host = A.copy()
        x = weft.device_put(host, SHARDINGS[name])
        host[:] = -1
        np.testing.assert_array_equal(np.asarray(x), A)


def test_strided_and_empty_and_scalars_and_dtypes():
    for value in (A.T, A[::-1], A[:, ::2], np.zeros((8, 0), np.float32), A > 7, A.astype(np.int8)):
        check(weft.device_put(value, X), value, X)
    assert float(weft.device_put(2.5, X.whole)) == 2.5
    assert weft.device_put(2.5, X.whole).weak_type
    half = weft.device_put(jnp.asarray(A, jnp.bfloat16), X)
    assert half.dtype == jnp.bfloat16 and (np.asarray(half).astype(np.float32) == A).all()
    assert weft.device_put(np.float64(1), X.whole).dtype == np.float32


def test_pytrees_of_shardings():
    tree = {"a": A, "b": [A, 1.0]}
    out = weft.device_put(tree, {"a": X, "b": [None, D[2]]})
    assert out["a"].sharding is X and out["b"][1].devices() == {D[2]}
    every = weft.device_put({"a": A, "b": A}, X)
    assert every["a"].sharding is every["b"].sharding is X
    with set_mesh(MESH):
        assert weft.device_put(A, P("x")).sharding is X


def test_in_traced_functions():
    columns = NamedSharding(MESH, P(None, "x"))
    double = lambda x: weft.device_put(x * 2, columns)
    out = weft.jit(double)(weft.device_put(A, X))
    assert out.sharding.is_equivalent_to(columns, 2)
    np.testing.assert_array_equal(np.asarray(out), A * 2)
    got = weft.jit(weft.grad(lambda x: double(x).sum()))(A)
    np.testing.assert_array_equal(np.asarray(got), np.full_like(A, 2))
    got = weft.grad(lambda x: double(x).sum())(weft.device_put(A, X))
    np.testing.assert_array_equal(np.asarray(got), np.full_like(A, 2))
    rows = weft.vmap(lambda x: weft.device_put(x, NamedSharding(MESH, P("x"))))(A)
    assert rows.sharding.is_equivalent_to(columns, 2)
    with pytest.raises(ValueError, match="device_put: axis 0 of x must be divisible by 4"):
        weft.jit(lambda x: weft.device_put(x, X))(A[:7])
    explicit = NamedSharding(weft.make_mesh((8,), ("x",)), P("x"))
    put = weft.make_jaxpr(lambda x: weft.device_put(x, explicit))(A)
    assert str(put.out_avals[0]) == "f32[8@x,4]"


def test_memory_spaces():
    x = weft.device_put(weft.device_put(A, X), weft.memory.Space.Host)
    assert x.sharding is SHARDINGS["rows_on_host"]
    assert weft.device_put(x, weft.memory.Space.Device).sharding is X
    assert weft.device_put(A, weft.memory.Space.Host).sharding.memory_kind == "pinned_host"


def test_what_an_array_knows():
    x = weft.device_put(A, X)
    assert x.device is X and x.is_fully_addressable and not x.is_fully_replicated
    assert weft.device_put(A, X.whole).is_fully_replicated
    assert [s.replica_id for s in x.addressable_shards] == [0, 1] * 4
    assert [s.replica_id for s in x.global_shards] == [0, 1] * 4
    assert x.addressable_shards[2].index == (slice(2, 4), slice(None))
    np.testing.assert_array_equal(np.asarray(x.addressable_data(3)), A[2:4])
    with pytest.raises(IndexError):
        x.addressable_data(9)
    assert repr(x) == repr(jnp.asarray(A)) and str(x) == str(A)
    assert repr(x.addressable_shards[1]) == (
        "Shard(device=CpuDevice(id=1), index=(slice(0, 2, None), slice(None, None, None)), "
        "replica_id=1, data=[[0. 1. 2. 3.]\n [4. 5. 6. 7.]])"
    )
    assert isinstance(x.addressable_shards[0], weft.Shard)
    assert x.item(5) == 5.0 and x.tolist() == A.tolist() and x.tobytes() == A.tobytes()
    assert len(x) == 8 and x.nbytes == 128 and x.platform() == "cpu"
    assert x.block_until_ready() is x and x.is_ready() and x.clone().sharding is X
    assert x.copy_to_host_async() is None
    assert x.on_device_size_in_bytes() == 256
    assert weft.typeof(x) is weft.typeof(jnp.asarray(A))


def test_the_host_copy_is_made_once_and_is_read_only():
    x = weft.device_put(A, X)
    first, second = np.asarray(x), np.asarray(x)
    assert np.shares_memory(first, second)
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1


def test_copies():
    x = weft.device_put(A, X)
    y = pickle.loads(pickle.dumps(x))
    assert y.sharding is SingleDeviceSharding(D[0]) and not y.committed  # as in JAX
    np.testing.assert_array_equal(np.asarray(y), A)
    check(copy.deepcopy(x), A, X)
    np.testing.assert_array_equal(weft.device_get({"a": x})["a"], A)


def test_numbers_are_sent_to_where_arrays_are():
    for device in D[:2]:
        x = weft.device_put(A, device)
        assert {(x + 1.5).devices().pop() for _ in range(40)} == {device}
    assert not any(HELD)


def test_deleting_and_live_arrays():
    before = len(weft.live_arrays())
    x = weft.device_put(A, X)
    parts = x.addressable_shards
    assert sum(a is x for a in weft.live_arrays("cpu")) == 1
    del parts
    assert len(weft.live_arrays()) == before + 1
    x.delete()
    assert x.is_deleted() and x.sharding is X and "deleted" in repr(x)
    for use in (
        lambda: np.asarray(x),
        lambda: x.addressable_shards,
        lambda: x.global_shards,
        lambda: x.addressable_data(0),
        lambda: x.copy_to_host_async(),
        lambda: weft.device_put(x, D[0]),
        lambda: x.__dlpack__(),
    ):
        with pytest.raises(DeletedError, match=r"after it was deleted or donated; got f32\[8,4\]"):
            use()


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: weft.device_put({"a": A[:7]}, X),
            "device_put: axis 0 of x['a'] must be divisible by 4, the size of mesh axis 'x' (4); "
            "got size 7 in shape (7, 4) with P('x',). Hint: pad the axis to 8",
        ),
        (
            lambda: weft.device_put(weft.device_put(A[:7]), X),
            "device_put: axis 0 of x must be divisible by 4",
        ),
        (
            lambda: weft.device_put([1.0], X),
            "device_put: P('x',) must have no more entries than x[0] has axes; got 1 for rank 0",
        ),
        (lambda: weft.device_put(A, P("x")), "where no mesh is in scope; got P('x',)"),
        (
            lambda: weft.device_put(A, NamedSharding(MESH.abstract_mesh, P("x"))),
            "the mesh must have devices for this",
        ),
        (lambda: weft.device_put({"a": A}, {"b": X}), "device must be a tree prefix of x"),
        (lambda: weft.device_put(A, "cpu"), "must be given a device or a sharding; got 'cpu'"),
        (
            lambda: np.from_dlpack(weft.device_put(A, X)),
            "must be of an array on one device; got f32[8,4] over 8 devices. Hint: "
            "x.addressable_data(0) for one part",
        ),
        (lambda: weft.local_devices(3), "process_index must be one of [0]; got 3"),
        (lambda: weft.device_put(A, X).item(), "can only convert an array of size 1"),
    ],
)
def test_what_is_refused(call, text):
    with pytest.raises((TypeError, ValueError, BufferError)) as caught:
        call()
    assert text in str(caught.value)


# --- of parts -------------------------------------------------------------------------------


def test_make_array_from_callback():
    for name, sharding in SHARDINGS.items():
        asked = []
        got = weft.make_array_from_callback(
            (8, 4), sharding, lambda index, asked=asked: asked.append(index) or A[index]
        )
        check(got, A, sharding)
        parts = {tuple(map(str, i)) for i in sharding.devices_indices_map((8, 4)).values()}
        assert len(asked) == len(parts), name  # each part once
    ints = weft.make_array_from_callback([8, 4], X, lambda index: A[index], dtype=np.int32)
    check(ints, A.astype(np.int32), X)
    check(weft.make_array_from_callback((8, 4), X, lambda i: jnp.asarray(A)[i]), A, X)


def test_make_array_from_single_device_arrays():
    parts = [s.data for s in weft.device_put(A, X).addressable_shards]
    for order in (parts, parts[::-1], tuple(parts[3:] + parts[:3])):
        got = weft.make_array_from_single_device_arrays((8, 4), X, order)
        assert not got.weak_type
        check(got, A, X)
    assert [s.data.unsafe_buffer_pointer() for s in got.addressable_shards] == [
        p.unsafe_buffer_pointer() for p in parts
    ]
    alone = SHARDINGS["alone"]
    check(
        weft.make_array_from_single_device_arrays((8, 4), alone, [weft.device_put(A, D[3])]),
        A,
        alone,
    )


def test_make_array_from_process_local_data():
    got = weft.make_array_from_process_local_data(X, {"a": A, "b": A[:, 0]})
    check(got["a"], A, X)
    check(got["b"], A[:, 0], X)
    check(weft.make_array_from_process_local_data(X, A, (8, 4)), A, X)
    check(weft.make_array_from_process_local_data(SHARDINGS["first"], A), A, SHARDINGS["first"])
    host = A.copy()
    x = weft.make_array_from_process_local_data(X.whole, host)
    host[:] = 0
    check(x, A, X.whole)


PARTS = [weft.device_put(A[:2], d) for d in D]


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: weft.make_array_from_callback((8, 4), X, lambda i: A[:3]),
            "must return the part asked for; got f32[3,4] for x[0:2, :] of an array of shape "
            "(8, 4), whose parts have shape (2, 4)",
        ),
        (
            lambda: weft.make_array_from_callback((7, 4), X, lambda i: A[i]),
            "make_array_from_callback: axis 0 of the array must be divisible by 4",
        ),
        (
            lambda: weft.make_array_from_callback(
                (8, 4), X, lambda i: A[i].astype(int) if i[0].start else A[i]
            ),
            "must return one dtype; got int32 for x[2:4, :], and float32 before. Hint: "
            "dtype='float32'",
        ),
        (lambda: weft.make_array_from_callback((8, 4), "x", lambda i: A[i]), "got 'x' of type str"),
        (
            lambda: weft.make_array_from_single_device_arrays((8, 4), X, PARTS[:3]),
            "on this process's 8 devices of the sharding, one on each; got 3 on [0, 1, 2]",
        ),
        (
            lambda: weft.make_array_from_single_device_arrays((8, 4), X, PARTS[:1] * 8),
            "must be on different devices; got two on CpuDevice(id=0)",
        ),
        (
            lambda: weft.make_array_from_single_device_arrays((16, 4), X, PARTS),
            "must have the shape of a part, (4, 4); got f32[2,4] at place 0",
        ),
        (
            lambda: weft.make_array_from_single_device_arrays((8, 4), X, PARTS[0]),
            "arrays must be a list; got a ArrayImpl",
        ),
        (
            lambda: weft.make_array_from_single_device_arrays((8, 4), X, [A[:2]] * 8),
            "must be on one device each; got ndarray at place 0",
        ),
        (
            lambda: weft.make_array_from_single_device_arrays(
                (8, 4), X, [weft.device_put(A[:2].astype(np.int32), D[0]), *PARTS[1:]]
            ),
            "must have one dtype; got float32, int32",
        ),
        (
            lambda: weft.make_array_from_process_local_data(X, A, (16, 4)),
            "axis 0 of local_data must have size 16, what this process's devices hold of 16; got "
            "f32[8,4] for global_shape (16, 4)",
        ),
        (
            lambda: weft.make_array_from_process_local_data(X, A[:7]),
            "axis 0 of the array must be divisible by 4",
        ),
    ],
)
def test_parts_that_are_refused(call, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize("place", [X, D[5]], ids=["mesh", "device"])
def test_new_arrays_lie_where_asked_or_as_what_they_are_like(place):
    old = weft.device_put(A, place)
    made = [
        lax.full(A.shape, 2.0, sharding=place),
        jnp.zeros(A.shape, device=place),
        jnp.linspace(0, 1, 8, device=place),
        lax.full_like(old, 3.0),
        lax.full_like(old, 3, np.int32),
        jnp.ones_like(old),
        lax.full_like(A, 1.0, sharding=place),
    ]
    if place is X:
        made.append(weft.jit(lambda: lax.full(A.shape, 2.0, sharding=place))())
    assert all(x.sharding.is_equivalent_to(old.sharding, x.ndim) for x in made)
    short = lax.full_like(old, 1.0, shape=(3,))  # a device can hold any shape
    assert short.devices() == {place} if place is not X else not short.committed
    assert lax.full_like(old, 3, np.int32).dtype == np.int32
