"""Programs over a mesh have JAX 0.10.2's layouts; see layout_programs.py and layout_types.py."""

import json

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.parallel import layout_programs, layout_types
from weft import P, lax
from weft.sharding import AxisType, ManualAxisType, Mesh, NamedSharding

GOLDEN = json.loads(layout_programs.GOLDEN.read_text())
PROGRAMS = layout_programs.programs(weft)
# JAX's answer is another spelling of the same layout, or JAX ignores its input.
OTHERWISE = {
    "an entry for each axis where JAX has fewer": [
        "creation: asarray() in explicit",
        "kinds: gradient of terms",
        "kinds: gradient of sum",
    ],
    "the spec of an argument where JAX has a shorter one": ["retyped: of one auto gradient"],
    "the sharding as it is given where JAX has an entry for each axis": [
        "creation: full of array(device over explicit) in explicit",
        "creation: asarray(device over explicit) in explicit",
    ],
    "out_sharding, which JAX ignores for arrays of the host": [
        "creation: asarray(spec) in explicit",
        "creation: asarray(whole) in explicit",
        "creation: asarray(whole) in auto",
    ],
    "in_shardings over explicit axes, which JAX takes for automatic": [
        "several: in_shardings over explicit"
    ],
}
EXCUSED = {name for names in OTHERWISE.values() for name in names}
# weft raises or computes where JAX raises; the tests below and other files say which.
ANSWERED = [name for name in PROGRAMS if GOLDEN[name] != "error" and name not in EXCUSED]


@pytest.mark.sample(one_in=10)
@pytest.mark.parametrize("name", ANSWERED)
def test_results_lie_as_in_jax(name):
    with weft.config.scope(threefry_partitionable=True, hints=False):
        got = layout_programs.describe(weft, PROGRAMS[name]())
    assert got == GOLDEN[name]


TYPES = json.loads(layout_types.GOLDEN.read_text())
TYPED = layout_types.programs(weft)
TYPED_OTHERWISE = {
    "split as either operand, where JAX has the result of a product along both whole": [
        "einsumb _x",
        "einsumb y,y",
    ],
    "varying as the condition, for devices may take either branch": [
        "condx within Explicit",
        "condx within Auto",
    ],
}
EXCUSED_TYPES = {name for names in TYPED_OTHERWISE.values() for name in names}


@pytest.mark.sample(one_in=10)
@pytest.mark.parametrize(
    "name", [n for n in TYPED if TYPES[n] != "error" and n not in EXCUSED_TYPES]
)
def test_types_are_those_of_jax(name):
    assert TYPED[name]() == TYPES[name]


def test_each_program_has_an_answer():
    assert PROGRAMS.keys() == GOLDEN.keys() and PROGRAMS.keys() >= EXCUSED
    assert TYPED.keys() == TYPES.keys() and TYPED.keys() >= EXCUSED_TYPES


MESHES = layout_programs.meshes(weft)
X = np.arange(32, dtype=np.float32).reshape(8, 4)
ROWS = sorted(str(X[i : i + 2]) for i in range(0, 8, 2))


def over(name, *spec):
    return weft.device_put(X, NamedSharding(MESHES[name], P(*spec)))


def shown(capfd, mark="rows "):
    """Return the output of programs after `mark`, sorted, as devices print in no order."""
    weft.effects_barrier()
    return sorted(part.strip() for part in capfd.readouterr().out.split(mark)[1:])


PRINTS = {
    "once": lambda x: weft.debug.print("rows {}", x),
    "ordered": lambda x: weft.debug.print("rows {}", x, ordered=True),
    "partitioned": lambda x: weft.debug.print("rows {}", x, partitioned=True),
    "callback": lambda x: weft.debug.callback(lambda v: print(f"rows {v}\n", end=""), x),
    "io_callback": lambda x: weft.experimental.io_callback(
        lambda v: print(f"rows {v}\n", end=""), None, x
    ),
    "in cond": lambda x: lax.cond(
        lax.axis_index("x") >= 0, lambda: weft.debug.print("rows {}", x), lambda: None
    ),
}


@pytest.mark.parametrize("how", PRINTS)
@pytest.mark.parametrize("name", ["auto", "explicit", "mixed"])
def test_a_partly_manual_program_prints_each_part_once(how, name, capfd):
    """Along axes that the compiler splits over, one device prints all of the part."""

    def f(x):
        PRINTS[how](x)
        return x * 2

    spec = P("x")
    f = weft.shard_map(f, mesh=MESHES[name], in_specs=spec, out_specs=spec, axis_names={"x"})
    y = weft.jit(f)(over(name, "x", "y"))
    assert shown(capfd) == ROWS
    np.testing.assert_array_equal(y, X * 2)


def test_prints_of_derivatives_in_a_partly_manual_program(capfd):
    def f(x):
        weft.debug.print("rows {}", x)
        return lax.psum((x**2).sum(), "x")

    f = weft.shard_map(f, mesh=MESHES["auto"], in_specs=P("x"), out_specs=P(), axis_names={"x"})
    np.testing.assert_array_equal(weft.jit(weft.grad(f))(over("auto", "x", "y")), 2 * X)
    assert shown(capfd) == ROWS


def test_calls_with_results_are_refused_where_the_compiler_splits():
    call = lambda x: weft.experimental.io_callback(np.sin, weft.typeof(x), x)
    f = weft.shard_map(
        call, mesh=MESHES["auto"], in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )
    with pytest.raises(NotImplementedError, match="io_callback: must have no results within a sh"):
        weft.jit(f)(over("auto", "x"))


def test_a_partitioned_print_shows_the_part_of_each_device(capfd):
    def f(x):
        weft.debug.print("rows {}", x, partitioned=True)
        weft.debug.callback(lambda v: print(f"shape {v.shape}\n", end=""), x, partitioned=True)
        weft.debug.print("all {}", x.sum())
        return x

    x = over("auto", "x", "y")
    np.testing.assert_array_equal(weft.jit(f)(x), X)
    weft.effects_barrier()
    out = capfd.readouterr().out
    parts = sorted(str(s.data) for s in x.addressable_shards)
    assert sorted(t.split("shape")[0].split("all")[0].strip() for t in out.split("rows ")[1:]) == (
        parts
    )
    assert out.count("shape (2, 2)") == 8 and out.count("all 496.0") == 1
    weft.jit(f)(X)  # on one device it is a print
    weft.effects_barrier()
    assert capfd.readouterr().out.count("shape (8, 4)") == 1


def test_a_result_of_python_is_on_all_devices():
    call = lambda x: weft.pure_callback(lambda v: np.asarray(v) * 2, weft.typeof(X), x)
    y = weft.jit(call)(over("auto", "x"))
    assert y.sharding == NamedSharding(MESHES["auto"], P())
    for shard in y.addressable_shards:
        np.testing.assert_array_equal(shard.data, X * 2)


def test_types_of_values_say_what_varies():
    seen = {}

    def look(x):
        total = lax.psum(x, "x")
        for name, y in {
            "part": x, "sum": total, "terms": lax.pcast(x, "x", to="unreduced"),
            "whole": lax.pcast(total, "x", to="reduced"),
            "both": lax.pcast(lax.axis_index("y"), "x", to="varying"),
        }.items():  # fmt: skip
            seen[name] = weft.typeof(y).mat
        seen["text"] = str(weft.typeof(lax.axis_index("y") + x.astype(int)))
        return x

    weft.shard_map(look, mesh=MESHES["explicit"], in_specs=P("x"), out_specs=P("x"))(
        over("explicit", "x")
    )
    assert seen["part"] == ManualAxisType(varying={"x"}) and seen["part"].varying == {"x"}
    assert seen["sum"] == ManualAxisType() == weft.typeof(X).mat
    assert seen["terms"] == ManualAxisType(unreduced={"x"})
    assert seen["whole"] == ManualAxisType(reduced={"x"})
    assert seen["both"].varying == {"x", "y"} and seen["text"] == "i32[2,4]{V:(x,y)}"
    aval = weft.core.ShapedArray((2,), np.float32, manual_axis_type=seen["part"])
    assert aval.mat is not None and str(aval) == "f32[2]{V:x}"


def test_types_that_are_asked_for_lie_over_the_mesh_in_scope():
    ask = lambda x: weft.eval_shape(lambda x: (x * 2, x.sum()), x)
    mesh = MESHES["explicit"].abstract_mesh
    same = lambda s, *spec: (s.mesh.shape, s.spec) == (mesh.shape, P(*spec))
    assert all(s.sharding is None for s in ask(X))
    with weft.set_mesh(MESHES["explicit"]):
        rows, total = ask(over("explicit", "x"))
        assert same(rows.sharding, "x", None) and same(total.sharding)
        assert same(ask(X)[0].sharding, None, None)
    with weft.set_mesh(MESHES["auto"]):
        assert ask(X)[0].sharding is None


def test_a_sharding_over_another_mesh_is_not_ignored():
    auto, other = (NamedSharding(MESHES[n], P("ax"[n == "auto"])) for n in ("auto", "other"))
    for s in (auto, other):
        for move in (lax.with_sharding_constraint, weft.device_put):
            f = lambda x, move=move, s=s: move(x * 2, s) * 2
            y = weft.jit(f)(over("explicit", "x"))
            np.testing.assert_array_equal(y, X * 4)
            assert weft.make_jaxpr(f)(over("explicit", "x")).out_avals[0].sharded is None
            g = weft.jit(weft.grad(lambda x, f=f: (f(x) ** 2).sum()))(over("explicit", "x"))
            np.testing.assert_array_equal(g, X * 32)
            assert g.sharding.spec == P("x", None)


def test_meshes_of_no_devices():
    none = Mesh(np.empty((), object), ())
    assert none is weft.sharding.get_mesh() and none.empty and none.size == 0
    for mesh in (none, Mesh([], "x"), Mesh(np.empty((2, 0), object), ("x", "y"))):
        assert repr(mesh) == "Mesh(axis_sizes=(), axis_names=())" and str(mesh) == "Mesh()"
        s = NamedSharding(mesh, P())
        assert (s.num_devices, s.is_fully_replicated, s.spec) == (0, True, P())
        for call in (lambda s=s: weft.device_put(X, s), lambda s=s: s.device_set):
            with pytest.raises(ValueError, match="the mesh must have devices for this; got Mesh"):
                call()
        with pytest.raises(ValueError, match="shard_map: needs a mesh of devices"):
            weft.shard_map(jnp.sin, mesh=mesh, in_specs=P(), out_specs=P())(X)
        with weft.set_mesh(mesh):
            y = jnp.ones(3)
            assert y.sharding.num_devices == 1 and not y.committed
            assert weft.jit(jnp.sin)(y).sharding.num_devices == 1
    scalar = weft.make_mesh((), ())
    assert str(scalar) == "Mesh(, axis_types=())" and not scalar.empty and scalar.is_scalar
    with weft.set_mesh(scalar):
        assert jnp.ones(3).sharding == NamedSharding(scalar, P()) == jnp.sin(X).sharding
    assert AxisType.Auto not in scalar.axis_types
