"""Meshes, their axes and the mesh in scope; printed forms are JAX 0.10.2's."""

import pickle
import threading
from collections import OrderedDict

import numpy as np
import pytest

import weft
from weft.experimental import mesh_utils
from weft.mesh.mesh import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    get_abstract_mesh,
    get_mesh,
    make_mesh,
    set_mesh,
    use_abstract_mesh,
    use_mesh,
)
from weft.mesh.sharding import NamedSharding
from weft.mesh.spec import PartitionSpec

P = PartitionSpec
D = weft.devices()
GRID = np.array(D).reshape(4, 2)
MESH = Mesh(GRID, ("x", "y"))
ABSTRACT = (
    "AbstractMesh('x': 4, 'y': 2, axis_types=(Auto, Auto), device_kind=cpu, num_cores=None, "
    "platform=cpu)"
)


def test_what_a_mesh_knows():
    assert len(D) == 8
    assert MESH.shape == OrderedDict(x=4, y=2) and MESH.shape_tuple == (("x", 4), ("y", 2))
    assert (MESH.size, MESH.empty, MESH.is_scalar) == (8, False, False)
    assert MESH.axis_names == ("x", "y") and MESH.axis_sizes == (4, 2)
    np.testing.assert_array_equal(MESH.device_ids, np.arange(8).reshape(4, 2))
    np.testing.assert_array_equal(MESH.devices, GRID)
    assert MESH.local_devices == D and MESH.local_mesh is MESH and not MESH.is_multi_process
    assert MESH.auto_axes == ("x", "y") and MESH.explicit_axes == MESH.manual_axes == ()
    assert MESH.are_all_axes_auto and not MESH.are_all_axes_explicit
    with pytest.raises(ValueError):
        MESH.devices[0, 0] = D[1]


def test_equal_meshes_are_one_object():
    assert Mesh(GRID.tolist(), ("x", "y")) is MESH
    assert Mesh(GRID, ["x", "y"]) is MESH
    assert pickle.loads(pickle.dumps(MESH)) is MESH
    assert MESH.update(axis_names=("x", "y")) is MESH
    assert MESH.update(axis_names=("a", "b")).axis_names == ("a", "b")
    assert MESH.update(devices=GRID.T).axis_sizes == (2, 4)
    assert MESH != Mesh(GRID[::-1], ("x", "y")) != Mesh(GRID, ("x", "z"))
    assert Mesh(GRID, ("x", "y"), AxisType.Explicit) != MESH
    assert {MESH: 1}[Mesh(GRID, ("x", "y"))] == 1
    assert pickle.loads(pickle.dumps(MESH.abstract_mesh)) is MESH.abstract_mesh


@pytest.mark.parametrize(
    "x, text",
    [
        (MESH, "Mesh(axis_sizes=(4, 2), axis_names=('x', 'y'), axis_types=(Auto, Auto))"),
        (str(MESH), "\"Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto))\""),
        (MESH.abstract_mesh, ABSTRACT),
        (AbstractMesh((4, 2), ("x", "y")), "AbstractMesh('x': 4, 'y': 2, axis_types=(Auto, Auto))"),
        (AbstractMesh((), ()), "AbstractMesh((), axis_types=())"),
        (Mesh(D, "x"), "Mesh(axis_sizes=(8,), axis_names=('x',), axis_types=(Auto,))"),
        (Mesh(D[0], ()), "Mesh(axis_sizes=(), axis_names=(), axis_types=())"),
        (get_mesh(), "Mesh(axis_sizes=(), axis_names=())"),
        (str(get_mesh()), "'Mesh()'"),
        (AbstractDevice("a", 1, "cpu"), "AbstractDevice(device_kind=a, num_cores=1, platform=cpu)"),
        (list(AxisType), "[Auto, Explicit, Manual]"),
        (
            make_mesh((2, 2), ("x", "y")),
            "Mesh(axis_sizes=(2, 2), axis_names=('x', 'y'), axis_types=(Explicit, Explicit))",
        ),
    ],
)
def test_printed(x, text):
    assert repr(x) == text


def test_make_mesh_takes_the_first_devices():
    mesh = make_mesh((3,), "x", (AxisType.Auto,))
    assert list(mesh.devices) == D[:3] and mesh.axis_types == (AxisType.Auto,)
    assert list(make_mesh((2, 1), ("x", "y"), devices=D[4:]).devices.flat) == D[4:6]


def test_axes_of_an_abstract_mesh():
    mesh = AbstractMesh((4, 2), ("x", "y"), AxisType.Auto)
    assert mesh.size == 8 and not mesh.empty and AbstractMesh((), ()).empty
    manual = mesh.update_axis_types({"x": AxisType.Manual})
    assert manual.manual_axes == ("x",) and manual.auto_axes == ("y",)
    assert manual.abstract_mesh is manual
    for name in ("devices", "device_ids", "local_mesh", "is_multi_process", "local_devices"):
        with pytest.raises(ValueError, match="has no devices"):
            getattr(mesh, name)


def test_the_mesh_in_scope():
    assert get_mesh().empty and get_abstract_mesh().empty
    with use_mesh(MESH):
        assert get_mesh() is MESH
        with set_mesh(Mesh(D[:2], "q")) as none:
            assert none is None and get_mesh().axis_names == ("q",)
            assert get_abstract_mesh() is get_mesh().abstract_mesh
        with use_abstract_mesh(AbstractMesh((3,), ("z",))):
            assert get_abstract_mesh().axis_sizes == (3,) and get_mesh() is MESH
        with pytest.raises(KeyError), use_mesh(Mesh(D, "r")):
            raise KeyError
        assert get_mesh() is MESH
    assert get_mesh().empty
    set_mesh(MESH)
    assert get_mesh() is MESH
    seen = []
    thread = threading.Thread(target=lambda: seen.append(get_mesh()))
    thread.start()
    thread.join()
    assert seen[0].empty  # as in JAX, a mesh is in scope for its thread
    set_mesh(None)
    assert get_mesh().empty


def test_a_mesh_in_scope_is_part_of_what_a_function_is_traced_for():
    traced = []
    f = weft.jit(lambda x: traced.append(get_abstract_mesh().axis_names) or x + 1)
    f(1.0)
    for _ in range(2):
        with use_mesh(MESH):
            f(1.0)
    f(1.0)
    assert traced == [(), ("x", "y")]
    g = weft.jit(lambda x: weft.lax.with_sharding_constraint(x, P("x")))
    for mesh in (MESH, Mesh(D, "x")):
        with mesh:
            assert g(np.zeros(8)).sharding == NamedSharding(mesh, P("x"))


def test_a_mesh_that_is_entered_is_that_of_specs_and_binds_no_array():
    with MESH as entered:
        assert entered is MESH and get_mesh().empty and get_abstract_mesh().empty
        for y in (np.zeros(8) + weft.numpy.ones(8), weft.jit(lambda x: x + 1)(np.zeros(8))):
            assert y.sharding.num_devices == 1 and not y.committed
        assert weft.device_put(np.zeros(8), P("x")).sharding == NamedSharding(MESH, P("x"))
        with set_mesh(Mesh(D, "q")), MESH:
            assert weft.numpy.zeros(8).sharding.mesh.axis_names == ("q",)
            assert weft.device_put(np.zeros(8), P("q")).sharding.spec == P("q")


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: Mesh(D, ("x", "y")),
            "name each axis once; got ('x', 'y') for devices of shape (8",
        ),
        (lambda: Mesh(GRID, ("x", "x")), "axis_names must differ from each other; got ('x', 'x')"),
        (lambda: Mesh(D, (None,)), "axis_names must not be None"),
        (lambda: Mesh([D[0], D[0]], "x"), "got CpuDevice(id=0) twice"),
        (lambda: Mesh([1, 2], "x"), "devices must be devices; got 1 of type int"),
        (lambda: Mesh(D, "x", (1,)), "axis_types must be AxisTypes; got (1,)"),
        (lambda: Mesh(GRID, ("x", "y"), (AxisType.Auto,)), "a type for each axis; got (Auto,)"),
        (lambda: AbstractMesh((4, 2), ("x",)), "got ('x',) for axis_sizes (4, 2)"),
        (lambda: make_mesh((4, 2), ("x",)), "got ('x',) for axis_shapes (4, 2)"),
        (lambda: make_mesh((4, -1), ("x", "y")), "axis_shapes must be positive; got (4, -1)"),
        (
            lambda: make_mesh((4, 4), ("x", "y")),
            "got (4, 4), which need 16, and 8 devices exist. Hint: on CPU, ask for more before the "
            "first use of weft: WEFT_NUM_CPU_DEVICES=16 or "
            "XLA_FLAGS=--xla_force_host_platform_device_count=16.",
        ),
        (lambda: make_mesh((4,), ("x",), devices=D[:2]), "devices has 2. Hint: pass 4 devices."),
        (lambda: set_mesh(3), "must be given a Mesh or None; got 3 of type int"),
        (lambda: set_mesh(MESH.abstract_mesh), "must be given a Mesh or None; got AbstractMesh("),
        (lambda: use_abstract_mesh(MESH), "must be given an AbstractMesh; got Mesh("),
        (lambda: use_mesh(MESH.abstract_mesh), "use_mesh: must be given a Mesh"),
        (lambda: weft.jit(lambda x: set_mesh(MESH) and x)(1.0), "outside of traced functions"),
        (lambda: P("x", unreduced="y"), "unreduced must be a set of axis names; got 'y'"),
    ],
)
def test_what_is_refused(call, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert text in str(caught.value)
    assert get_mesh().empty


def test_a_pickled_mesh_needs_its_devices():
    unpickle, (platform, ids, names, types) = MESH.__reduce__()
    with pytest.raises(ValueError, match="ids .8, 9., and 8 devices. Hint: .*DEVICES=10"):
        unpickle(platform, ids + 2, names, types)


# --- experimental.mesh_utils ------------------------------------------------------------------


class FakeDevice:
    def __init__(self, number, process):
        self.id, self.process_index = number, process


def ids(grid):
    return np.vectorize(lambda d: d.id)(grid).tolist()


def test_device_meshes():
    grid = mesh_utils.create_device_mesh((2, 4))
    assert ids(grid) == [[0, 1, 2, 3], [4, 5, 6, 7]] and Mesh(grid, ("a", "b")).size == 8
    assert ids(mesh_utils.create_device_mesh((2,), D[5:7])) == [5, 6]
    hosts = [FakeDevice(10 * p + i, p) for p in (1, 0) for i in range(4)]
    hybrid = mesh_utils.create_hybrid_device_mesh((2, 2), (2, 1), hosts)
    assert ids(hybrid) == [[0, 1], [2, 3], [10, 11], [12, 13]]
    hybrid = mesh_utils.create_hybrid_device_mesh((4, 1), (1, 2), hosts)
    assert ids(hybrid) == [[0, 10], [1, 11], [2, 12], [3, 13]]
    given = mesh_utils.create_hybrid_device_mesh(
        (1, 4), (2, 1), hosts, should_sort_granules_by_key=False, process_is_granule=True
    )
    assert ids(given) == [[10, 11, 12, 13], [0, 1, 2, 3]]


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: mesh_utils.create_device_mesh((4, 4)), "mesh_shape must not need more devices"),
        (
            lambda: mesh_utils.create_device_mesh((2, 2)),
            "must take all devices; got (2, 2), which takes 4 of 8. Hint: "
            "devices=weft.devices()[:4].",
        ),
        (
            lambda: mesh_utils.create_hybrid_device_mesh((8,), (1, 1)),
            "must have the same axes; got (8,) and (1, 1)",
        ),
        (
            lambda: mesh_utils.create_hybrid_device_mesh((4,), (2,)),
            "must take all 1 processes; got (2,), which takes 2",
        ),
    ],
)
def test_device_meshes_that_are_refused(call, text):
    with pytest.raises(ValueError) as caught:
        call()
    assert text in str(caught.value)


def test_html_says_which_device_holds_what():
    mesh = weft.make_mesh((4, 2), ("x", "y"))
    sharding = weft.NamedSharding(mesh, weft.P("y", None))
    assert "<td>x=3</td><td>cpu:6</td><td>cpu:7</td>" in mesh._repr_html_()
    assert "<td>0</td><td>y</td><td>2</td>" in sharding._repr_html_()
    x = weft.device_put(np.arange(12.0).reshape(4, 3), sharding)
    html = x._repr_html_()
    assert "on 8 devices, P('y', None)" in html and "0 to 11, mean 5.5" in html
    assert "<td>cpu:6</td><td>[0:2, :]</td>" in html and "<td>cpu:7</td><td>[2:4, :]</td>" in html


@pytest.mark.parametrize("types", [5, "auto", [5]])
def test_types_of_axes_are_checked(types):
    with pytest.raises(TypeError, match="Mesh: axis_types must be AxisTypes; got"):
        weft.make_mesh((8,), ("x",), axis_types=types)


def test_arguments_that_are_none_word_by_word():
    rows = [
        (((1.5,), ("a",)), "make_mesh: axis_shapes must be integers; got (1.5,)."),
        (((1,), 5), "make_mesh: axis_names must be a sequence of names; got 5."),
        (
            ((1,), ("a",), DEVICE),
            f"make_mesh: devices must be a sequence of devices; got {DEVICE!r}.",
        ),
    ]
    for (shape, names, *devices), said in rows:
        with pytest.raises(TypeError) as info:
            make_mesh(shape, names, devices=devices[0] if devices else None)
        assert str(info.value) == said


DEVICE = weft.devices()[0]
