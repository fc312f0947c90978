"""`reshard` and the layouts of rules: the written text, without devices."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, random
from weft.errors import ShardingTypeError
from weft.jaxpr import parse
from weft.primitives.reshard import (
    hide_layout,
    insert_axis,
    lay_as,
    lay_out,
    reshard_p,
    sharding_of_cotangent,
)
from weft.sharding import AbstractMesh, AxisType, NamedSharding

MESH = AbstractMesh((4, 2), ("x", "y"), AxisType.Explicit)
over = lambda *spec, **kinds: NamedSharding(MESH, P(*spec, **kinds))
struct = lambda s, shape=(8, 4): weft.ShapeDtypeStruct(shape, np.float32, sharding=s)
to = lambda s: lambda x: reshard_p.apply(x, dst_sharding=s)[0]


def test_rules():
    text = lambda f, x: str(weft.make_jaxpr(f)(x)).replace("\n", " ")
    assert "b:f32[8,4@x] = reshard a" in text(to(over(None, "x")), struct(over("x")))
    assert "f32[2,4@x,8@y]" in text(weft.vmap(to(over("x", "y"))), struct(over(), (2, 4, 8)))
    mapped = weft.vmap(to(over("x")), spmd_axis_name="y")
    assert "b:f32[2@y,4@x,8]" in text(mapped, struct(over(), (2, 4, 8)))
    transposed = weft.grad(lambda x: (to(over())(x) * 2).sum())
    assert str(weft.make_jaxpr(transposed)(struct(over("x"))).out_avals[0]) == "f32[8@x,4]"
    open_axes = NamedSharding(MESH.update_axis_types({"x": AxisType.Auto}), P(None, "y"))
    assert "b:f32[8,4@y] = reshard a" in text(to(open_axes), struct(over("x", "y")))


def test_layouts_of_cotangents():
    aval = struct(over("x", None, reduced={"y"})).aval
    assert sharding_of_cotangent(aval) == over("x", None, unreduced={"y"})
    assert sharding_of_cotangent(aval, (), (1, 0)) == over(None, "x", unreduced={"y"})
    whole = struct(over()).aval
    assert sharding_of_cotangent(whole, (1.0,)) is None
    assert insert_axis(None, 0, 1.0, None, None) is None
    x = np.ones(3)
    assert lay_as(x, aval.sharded) is x  # of an array that is on no mesh nothing is asked


def test_what_a_text_does_not_print_is_read_from_its_types():
    ones = lambda x: to(over("x"))(jnp.ones((8, 4)))  # the operand has no mesh
    gives = lambda x: lay_out("f", jnp.sin(hide_layout(x)), over("y"))
    programs = [to(over("y")), to(over()), to(over(unreduced={"x"})), ones]
    programs += [hide_layout, gives, weft.grad(lambda x: gives(x).sum())]
    with weft.sharding.use_abstract_mesh(MESH):
        for f in programs:
            written = weft.make_jaxpr(f)(struct(over() if f is programs[2] else over("x")))
            read = parse(str(written))
            for ours, theirs in zip(read.eqns, written.eqns, strict=True):
                if ours.primitive is reshard_p:
                    lies, lay = ours.params["dst_sharding"], theirs.params["dst_sharding"]
                    free = ours.params.get("free", "")
                    assert lies.mesh == lay.mesh and free == theirs.params.get("free", "")
                    assert free == "result" or lies.is_equivalent_to(lay, 2)
                    assert ours.outvars[0].aval.strong() == theirs.outvars[0].aval.strong()


def test_what_is_refused():
    with pytest.raises(ShardingTypeError, match="must be unreduced along axes that split what is"):
        weft.make_jaxpr(lambda x: to(over(unreduced={"x"}))(x > 0))(struct(over()))
    with pytest.raises(ValueError, match="axis 0 of the operand .* must be divisible by 4"):
        weft.make_jaxpr(to(over("x")))(struct(over(), (6, 4)))


def test_a_sharding_over_no_mesh_asks_for_nothing_under_vmap():
    def drop(key, x):
        return x * random.bernoulli(key, 0.5, x.shape, out_sharding=weft.typeof(x).sharding)

    keys, x = random.split(random.key(0), 2), jnp.ones((2, 3))
    want = np.stack([drop(k, row) for k, row in zip(keys, x, strict=True)])
    np.testing.assert_array_equal(weft.vmap(drop)(keys, x), want)
