"""Shardings: the parts of each device, their text for XLA, and errors."""

import copy
import itertools
import pickle
import threading
import time

import numpy as np
import pytest

import weft
from weft.extend.sharding import (
    get_hlo_sharding_from_serialized_proto,
    get_op_sharding_from_serialized_proto,
    get_serialized_proto_from_hlo_sharding,
)
from weft.mesh import sharding
from weft.mesh.client import resolve_memory_kind
from weft.mesh.sharding import GSPMDSharding, check_divisible, sharding_of_result
from weft.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    auto_axes,
    explicit_axes,
    make_single_device_sharding,
    reshard,
)
from weft.sharding import PartitionSpec as P

D = weft.devices()
GRID = np.array(D).reshape(4, 2)
MESH = Mesh(GRID, ("x", "y"))
CUBE = Mesh(np.array(D[::-1]).reshape(2, 1, 2, 2), ("a", "one", "b", "c"))
X = NamedSharding(MESH, P("x"))
ONE = Mesh(D[:1], "z")


def specs(mesh, ndim, most=2):
    """Every spec over a mesh for arrays of this rank, with up to `most` axes an entry."""
    entries = [None]
    for n in range(1, most + 1):
        entries += itertools.permutations(mesh.axis_names, n)
    for chosen in itertools.product(entries, repeat=ndim):
        used = [n for e in chosen if e for n in e]
        if len(used) == len(set(used)):
            yield P(*chosen)


def by_hand(mesh, spec, shape):
    """Return the parts of each device by definition: the first axis of an entry is outermost."""
    held = {}
    for place in np.ndindex(*mesh.devices.shape):
        at = dict(zip(mesh.axis_names, place, strict=True))
        part = np.arange(np.prod(shape)).reshape(shape)
        for i in range(len(shape)):
            for name in spec.axes(i):
                part = np.split(part, mesh.shape[name], axis=i)[at[name]]
        held[mesh.devices[place]] = part
    return held


@pytest.mark.parametrize("mesh", [MESH, CUBE], ids=["grid", "cube"])
def test_what_devices_hold(mesh):
    shape = (16, 8)
    whole = np.arange(128).reshape(shape)
    for spec in specs(mesh, 2):
        s = NamedSharding(mesh, spec)
        indices = s.devices_indices_map(shape)
        assert list(indices) == list(mesh.devices.flat)
        for device, part in by_hand(mesh, spec, shape).items():
            np.testing.assert_array_equal(whole[indices[device]], part)
            assert part.shape == s.shard_shape(shape)
        assert s.addressable_devices_indices_map(shape) == indices
        assert s.is_fully_replicated == (s.shard_shape(shape) == shape)


@pytest.mark.parametrize("mesh", [MESH, CUBE], ids=["grid", "cube"])
def test_there_and_back_through_the_engine(mesh):
    found = 0
    for spec in specs(mesh, 2):
        s = NamedSharding(mesh, spec)
        said = s._to_xla_hlo_sharding(2)
        back = sharding_of_result(said, mesh, 2)
        assert isinstance(back, NamedSharding) and back.is_equivalent_to(s, 2), (spec, back.spec)
        assert sharding_of_result(said.to_proto(), mesh, 2) is back
        tiles = GSPMDSharding(list(mesh.devices.flat), said)
        assert tiles.is_equivalent_to(s, 2) and s.is_equivalent_to(tiles, 2)
        assert tiles.devices_indices_map((16, 8)) == s.devices_indices_map((16, 8))
        assert tiles.is_fully_replicated == s.is_fully_replicated
        found += 1
    assert found > 10


def test_a_result_that_no_spec_describes():
    turned = NamedSharding(Mesh(D[::-1], "q"), P("q"))
    hlo = turned._to_xla_hlo_sharding(1)
    two = Mesh(np.array(D).reshape(2, 4), ("x", "y"))
    assert isinstance(sharding_of_result(hlo, two, 1), NamedSharding)
    four_parts = NamedSharding(MESH, P("x"))._to_xla_hlo_sharding(1)
    assert isinstance(sharding_of_result(four_parts, two, 1), GSPMDSharding)
    assert sharding_of_result(hlo, D[3], 1) is SingleDeviceSharding(D[3])
    assert sharding_of_result(hlo, D, 1).shard_shape((8,)) == (1,)
    assert sharding_of_result(hlo, D, 1) is GSPMDSharding(D, hlo)
    assert sharding_of_result(X.whole._to_xla_hlo_sharding(1), MESH, 3).spec == P()


@pytest.mark.parametrize(
    "spec, ndim, hlo, sdy",
    [
        (P("x"), 2, "{devices=[4,1,2]<=[8] last_tile_dim_replicate}", '[{"x"}, {}]'),
        (P(("y", "x"), None), 2, "{devices=[8,1]<=[4,2]T(1,0)}", '[{"y", "x"}, {}]'),
        (P("y"), 1, "{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}", '[{"y"}]'),
        (P(), 0, "{replicated}", "[]"),
        (P(None, P.UNCONSTRAINED), 2, "{replicated}", "[{}, {?}]"),
    ],
)
def test_what_the_engine_is_told(spec, ndim, hlo, sdy):
    s = NamedSharding(MESH, spec)  # the texts are JAX 0.10.2's
    assert repr(s._to_xla_hlo_sharding(ndim)) == hlo
    assert s.sdy(ndim) == f"<@mesh, {sdy}>"
    assert NamedSharding(MESH.abstract_mesh, spec).sdy(ndim) == s.sdy(ndim)


def test_the_mesh_in_a_program():
    assert MESH.sdy() == 'sdy.mesh @mesh = <["x"=4, "y"=2]>'


def test_equal_shardings_are_one_object():
    assert NamedSharding(Mesh(GRID, ("x", "y")), P(("x",))) is X
    assert NamedSharding(MESH, P("x"), memory_kind="device") is X
    assert X.update(spec=P("x")) is X and X.with_memory_kind("device") is X
    assert X.update(spec=P("y")).spec == P("y")
    assert X.with_memory_kind("pinned_host").memory_kind == "pinned_host"
    assert pickle.loads(pickle.dumps(X)) is X and copy.deepcopy(X) is X
    tiles = GSPMDSharding(D, X._to_xla_hlo_sharding(1))
    assert GSPMDSharding(D, X._to_xla_hlo_sharding(1).to_proto()) is tiles
    assert pickle.loads(pickle.dumps(tiles)) is tiles
    assert NamedSharding(MESH, P("x", None)) != X  # as in JAX
    assert NamedSharding(MESH, P("x", None)).is_equivalent_to(X, 2)
    assert pickle.loads(pickle.dumps(NamedSharding(MESH.abstract_mesh, P("x")))).spec == P("x")


def test_threads_that_make_equal_shardings_get_one(monkeypatch):
    slow = lambda *args: time.sleep(0.01) or resolve_memory_kind(*args)
    monkeypatch.setattr(sharding, "resolve_memory_kind", slow)
    mesh = weft.make_mesh((2, 4), ("first", "second"))
    tiles = NamedSharding(MESH, P())._to_xla_hlo_sharding(1)
    for make in (
        lambda: NamedSharding(mesh, P("second")),
        lambda: GSPMDSharding(weft.devices()[2:5], tiles),
    ):
        found = []
        get = lambda: found.append(make())  # noqa: B023
        threads = [threading.Thread(target=get) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert len(found) == 4 and len(set(map(id, found))) == 1
        assert found[0].whole.is_fully_replicated


def test_what_lies_alike():
    renamed = NamedSharding(Mesh(GRID, ("a", "b")), P("a"))
    assert X.is_equivalent_to(renamed, 2) and renamed != X
    assert not X.is_equivalent_to(NamedSharding(Mesh(GRID[::-1], ("x", "y")), P("x")), 2)
    assert not X.is_equivalent_to(NamedSharding(MESH, P("y")), 2)
    assert not X.is_equivalent_to(X.with_memory_kind("pinned_host"), 2)
    first = SingleDeviceSharding(D[0])
    assert not X.is_equivalent_to(first, 2) and not first.is_equivalent_to(X, 2)
    alone = NamedSharding(ONE, P("z"))
    assert alone.is_equivalent_to(first, 2) and first.is_equivalent_to(alone, 2)
    assert not SingleDeviceSharding(D[1]).is_equivalent_to(alone, 2)
    named = NamedSharding(MESH.abstract_mesh, P("x"))
    assert named.is_equivalent_to(NamedSharding(MESH.abstract_mesh, P("x", None)), 2)
    assert not named.is_equivalent_to(X, 2)


def test_what_a_sharding_knows():
    assert isinstance(X, Sharding) and isinstance(SingleDeviceSharding(D[0]), Sharding)
    assert issubclass(NamedSharding, Sharding) and not isinstance("x", Sharding)
    assert not isinstance(X, SingleDeviceSharding)
    assert X.device_set == set(D) == X.addressable_devices and X.num_devices == 8
    assert X.is_fully_addressable and X.has_addressable_devices and not X.is_fully_replicated
    assert X.replicated_axes == {"y"} and X.memory_kind == "device"
    assert X._device_assignment == tuple(D)
    assert X.whole.is_fully_replicated and X.whole.mesh is MESH
    assert NamedSharding(ONE, P("z")).is_fully_replicated
    assert NamedSharding(MESH, P(P.UNCONSTRAINED)).shard_shape((7,)) == (7,)
    assert X.check_compatible_aval((7,)) is None
    assert make_single_device_sharding(D[2]) is SingleDeviceSharding(D[2])
    assert repr(X) == (
        "NamedSharding(mesh=Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto)), spec=P('x',), "
        "memory_kind=device)"
    )
    assert repr(NamedSharding(AbstractMesh((4,), ("x",), AxisType.Auto), P("x"))) == (
        "NamedSharding(mesh=AbstractMesh('x': 4, axis_types=(Auto,)), spec=P('x',))"
    )
    assert repr(GSPMDSharding.get_replicated(D)) == (
        "GSPMDSharding({replicated}, memory_kind=device)"
    )


def test_a_sharding_over_an_abstract_mesh_has_shapes_but_no_devices():
    s = NamedSharding(MESH.abstract_mesh, P("x"))
    assert s.shard_shape((8, 3)) == (2, 3) and s.num_devices == 8
    for name in ("device_set", "is_fully_addressable", "_device_assignment"):
        with pytest.raises(ValueError, match="the mesh must have devices for this"):
            getattr(s, name)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: NamedSharding(MESH, P("z")), "got 'z' in P('z',) for a mesh with axes 'x', 'y'"),
        (lambda: NamedSharding(MESH, P("x", ("y", "x"))), "got 'x' twice in P('x', ('y', 'x'))"),
        (lambda: NamedSharding(MESH, ("x",)), "got ('x',) of type tuple. Hint: P('x')."),
        (lambda: NamedSharding(MESH, None), "got None of type NoneType. Hint: P()."),
        (lambda: NamedSharding(3, P("x")), "mesh must be a Mesh; got 3 of type int"),
        (lambda: NamedSharding(MESH, P(unreduced={"x"})), "explicit axes of a mesh"),
        (
            lambda: NamedSharding(MESH, P("x"), memory_kind="foo"),
            "one of device, pinned_host, unpinned_host; got 'foo'",
        ),
        (
            lambda: X.shard_shape((7, 4)),
            "axis 0 must be divisible by 4, the size of mesh axis 'x' (4); got size 7 in shape "
            "(7, 4) with P('x',). Hint: pad the axis to 8, or have None at place 0 of the spec.",
        ),
        (
            lambda: NamedSharding(MESH, P(None, ("x", "y"))).devices_indices_map((7, 4)),
            "axis 1 must be divisible by 8, the size of mesh axes 'x' (4) and 'y' (2); got size 4",
        ),
        (
            lambda: GSPMDSharding(D, X._to_xla_hlo_sharding(1)).shard_shape((7,)),
            "GSPMDSharding: axis 0 must be divisible by 4; got size 7",
        ),
        (lambda: X.shard_shape(()), "P('x',) must have no more entries than the array has axes"),
        (
            lambda: check_divisible("f", X, (), "argument `a`"),
            "f: P('x',) must have no more entries than argument `a` has axes; got 1 for rank 0. "
            "Hint: P().",
        ),
        (lambda: Sharding(), "must be made as one of its kinds"),
        (
            lambda: GSPMDSharding(D, X._to_xla_hlo_sharding(1)).shard_shape((8, 8, 8)),
            "must be for arrays of rank 2; got rank 3",
        ),
    ],
)
def test_what_is_refused(call, text):
    with pytest.raises((TypeError, ValueError, NotImplementedError)) as caught:
        call()
    assert text in str(caught.value)


def test_the_compiler_is_told_at_the_border_of_a_function():
    x = weft.device_put(np.zeros((8, 8), np.float32), X)
    columns = NamedSharding(MESH, P(None, "x"))
    double = lambda x: x * 2
    f = weft.jit(auto_axes(double, out_sharding=columns))
    assert f(x).sharding.is_equivalent_to(columns, 2)
    g = auto_axes(axes="x")(double)
    assert weft.jit(lambda x: g(x, out_sharding=columns))(x).sharding.is_equivalent_to(columns, 2)
    assert weft.jit(g)(x).sharding.is_equivalent_to(X, 2)
    for h in (
        weft.jit(explicit_axes(double, in_sharding=columns)),
        weft.jit(lambda x: explicit_axes()(double)(x, in_sharding=(columns,))),
    ):
        assert h(x).sharding.is_equivalent_to(columns, 2)
    for y in (x, np.asarray(x), weft.device_put(np.asarray(x), D[3])):
        assert reshard(y, columns).sharding is columns
    mapped = weft.vmap(lambda row: reshard(row, X))(np.asarray(x))
    assert mapped.sharding is columns


def test_the_engines_bytes():
    hlo = X._to_xla_hlo_sharding(2)
    data = get_serialized_proto_from_hlo_sharding(hlo)
    assert get_hlo_sharding_from_serialized_proto(data) == hlo
    op = get_op_sharding_from_serialized_proto(data)
    assert sharding_of_result(op, MESH, 2).is_equivalent_to(X, 2)


def test_programs_over_a_mesh_of_one_device():
    x = weft.device_put(np.arange(3, dtype=np.float32), NamedSharding(ONE, P()))
    double, total = weft.jit(lambda x: (x * 2, x.sum()))(x)
    assert double.tolist() == [0, 2, 4] and float(total) == 3
    assert double.devices() == {D[0]} and double.committed
    assert weft.jit(lambda x: None)(x) is None  # no results
