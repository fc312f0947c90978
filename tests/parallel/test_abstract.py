"""Programs over meshes without devices: their types and texts; what needs devices says so."""

import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, grad, jit, lax, reshard
from weft.sharding import AbstractMesh, AxisType, NamedSharding, use_abstract_mesh

EXPLICIT = AbstractMesh((4, 2), ("X", "Y"), AxisType.Explicit)
AUTO = AbstractMesh((4, 2), ("X", "Y"), AxisType.Auto)
PLAIN = weft.ShapeDtypeStruct((8, 4), np.float32)


def struct(mesh, shape, *spec):
    return weft.ShapeDtypeStruct(shape, np.float32, sharding=NamedSharding(mesh, P(*spec)))


def total(x):
    return lax.psum(x, "X")


def over(mesh):
    return jit(weft.shard_map(total, mesh=mesh, in_specs=P("X"), out_specs=P()))


def heading(lowered):
    """The partitions, the mesh and the shardings of parameters and results that a text has."""
    text = lowered.as_text()
    count = int(re.search(r"num_partitions = (\d+)", text)[1])
    meshes = re.findall(r"sdy.mesh (@\w+ = <.*>)", text)
    head = next(line for line in text.splitlines() if "@main(" in line)
    return count, meshes, re.findall(r"#sdy.sharding<@mesh, (\[.*?\])>", head)


X, W = struct(EXPLICIT, (8, 4), "X"), struct(EXPLICIT, (4, 6), None, "Y")
MESH = ['@mesh = <["X"=4, "Y"=2]>']
ROWS, COLUMNS, BOTH = '[{"X"}, {}]', '[{}, {"Y"}]', '[{"X"}, {"Y"}]'
CASES = {
    "types": (jit(lambda x, w: jnp.tanh(x @ w)), (X, W), [ROWS, COLUMNS, BOTH]),
    "gradients": (jit(grad(lambda w, x: (x @ w).sum())), (W, X), [ROWS, COLUMNS]),
    "automatic": (jit(jnp.sin), (struct(AUTO, (8, 4), "X"),), [ROWS]),
    "shard_map": (over(EXPLICIT), (X,), [ROWS, "[{}, {}]"]),
    "shard_map of anything": (over(AUTO), (PLAIN,), []),
    "in_shardings": (jit(jnp.sin, in_shardings=X.sharding), (PLAIN,), [ROWS, ROWS]),
}


@pytest.mark.parametrize("name", CASES)
def test_texts(name):
    fun, args, shardings = CASES[name]
    lowered = fun.lower(*args)
    assert heading(lowered) == (8, MESH, shardings)
    assert "flops" in lowered.cost_analysis() or name == "automatic"
    message = rf"needs devices to be compiled for; got a program over {re.escape('AbstractMesh')}"
    with pytest.raises(ValueError, match=message + r".* Hint: with weft.set_mesh\(weft.make_mesh"):
        lowered.compile()


def test_an_abstract_mesh_in_scope():
    f = jit(lambda x: reshard(x, P("X", "Y")) * 2)
    with use_abstract_mesh(EXPLICIT):
        lowered = f.lower(PLAIN)
        assert heading(lowered) == (8, MESH, ["[{}, {}]", '[{"X"}, {"Y"}]'])
        assert str(f.trace(PLAIN).jaxpr.out_avals[0]) == "f32[8@X,4@Y]"
        assert weft.eval_shape(f, PLAIN).sharding == NamedSharding(EXPLICIT, P("X", "Y"))
        with pytest.raises(ValueError, match="needs devices to be compiled for"):
            f(np.ones((8, 4), np.float32))
        # a hint to the compiler, and a program that says nothing of layouts, are for any device
        hinted = jit(lambda x: lax.with_sharding_constraint(x, NamedSharding(AUTO, P("X"))))
        assert hinted(np.ones((8, 4), np.float32)).sum() == jit(jnp.sum)(np.ones(32)) == 32
    with pytest.raises(ValueError, match="where no mesh is in scope"):
        f.lower(PLAIN)


def test_the_platform_that_a_text_is_for():
    traced = jit(jnp.linalg.eigvalsh).trace(struct(AUTO, (8, 4, 4), "X"))
    texts = [traced.lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "cuda")]
    assert ["lapack" in text for text in texts] == [True, False]
    kind = weft.sharding.AbstractDevice("H100", None, "gpu")
    text = jit(jnp.sin).lower(struct(AUTO.update(abstract_device=kind), (8,), "X")).as_text()
    assert "num_partitions = 8" in text


def test_an_exported_program():
    exported = weft.export.export(jit(lambda x, w: x @ w))(X, W)
    assert exported.nr_devices == 8 and exported.mlir_module().count("sdy.sharding") >= 4
    assert [s.is_replicated() for s in exported.in_shardings_hlo] == [False, False]
    again = weft.export.deserialize(exported.serialize())
    assert again.nr_devices == 8 and str(again.out_avals[0]) == "f32[8@X,6@Y]"


@pytest.mark.parametrize("way", [lambda f: f, grad, weft.vmap], ids=["call", "grad", "vmap"])
def test_a_shard_map_called_at_once(way):
    parts = weft.shard_map(total, mesh=AUTO, in_specs=P("X"), out_specs=P())
    with pytest.raises(ValueError, match="shard_map: needs devices to be compiled for"):
        way(lambda x: parts(x).sum())(np.ones((2, 8, 4) if way is weft.vmap else (8, 4)))
