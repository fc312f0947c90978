"""ShapeDtypeStruct as a value."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.experimental.layout import Format, Layout
from weft.sharding import AxisType, ManualAxisType, NamedSharding, PartitionSpec

P = PartitionSpec


def test_shape_dtype_struct():
    struct = weft.ShapeDtypeStruct((2, 3), "int8")
    assert (struct.size, struct.ndim, len(struct), struct.dtype) == (6, 2, 2, np.int8)
    assert struct == weft.ShapeDtypeStruct([2, 3], np.int8)
    assert hash(struct) == hash(weft.ShapeDtypeStruct((2, 3), np.int8))
    assert struct.update(shape=(4,)) == weft.ShapeDtypeStruct((4,), np.int8)
    assert repr(struct) == "ShapeDtypeStruct(shape=(2, 3), dtype=int8)"
    with pytest.raises(ValueError, match="dtype must be given"):
        weft.ShapeDtypeStruct((3,), None)
    with pytest.raises(TypeError, match="ShapeDtypeStruct: shape must be a sequence; got 3"):
        weft.ShapeDtypeStruct(3, np.int8)
    with pytest.raises(TypeError, match="ShapeDtypeStruct: needs a dtype, .* got 'flat32'. Hint"):
        weft.ShapeDtypeStruct((3,), "flat32")
    with pytest.raises(TypeError, match="scalar"):
        len(weft.ShapeDtypeStruct((), np.int8))


def test_struct_like_an_array():
    x = weft.numpy.ones((2, 3))
    struct = weft.ShapeDtypeStruct.like(x)
    assert (struct.shape, struct.dtype, struct.sharding) == ((2, 3), x.dtype, x.sharding)
    assert weft.ShapeDtypeStruct.like(weft.random.key(0)).dtype == weft.random.key(0).dtype


def test_where_an_array_is_to_be():
    mesh = weft.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    named = NamedSharding(mesh, P("x"))
    by_rows = weft.ShapeDtypeStruct((3,), np.int8, sharding=Format(Layout((0,)), named))
    assert by_rows.sharding == named and by_rows.format == Format(Layout((0,)), named)
    assert by_rows.update(shape=(2,)).format.layout == Layout((0,))
    with weft.set_mesh(mesh):
        assert weft.ShapeDtypeStruct((3,), np.int8, sharding=P("x")).sharding == named
    for wrong, text in ((P("x"), "a sharding where no mesh is in scope"), ("x", "a spec or a For")):
        with pytest.raises(TypeError, match=f"^ShapeDtypeStruct: sharding must be .*{text}"):
            weft.ShapeDtypeStruct((3,), np.int8, sharding=wrong)


def test_kinds_along_manual_axes():
    kinds = ManualAxisType(varying={"x"})
    struct = weft.ShapeDtypeStruct((1,), np.float32, manual_axis_type=kinds)
    plain = weft.ShapeDtypeStruct((1,), np.float32)
    assert struct != plain and struct.update(manual_axis_type=None) == plain
    assert struct.update(shape=(2,)).manual_axis_type == kinds
    assert repr(struct) == f"ShapeDtypeStruct(shape=(1,), dtype=float32, manual_axis_type={kinds})"
    with pytest.raises(TypeError, match="manual_axis_type must be a weft.sharding.ManualAxisType"):
        weft.ShapeDtypeStruct((1,), np.float32, manual_axis_type={"x"})

    def f(x):
        assert weft.eval_shape(lambda: x) == weft.ShapeDtypeStruct.like(x) == struct
        assert weft.eval_shape(lambda a: a * x, plain) == struct
        r = weft.empty_ref(struct)
        r[...] = weft.pure_callback(np.sin, struct, x)
        return r[...]

    mesh = weft.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    mapped = weft.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_allclose(mapped(jnp.ones(1)), np.sin(1), rtol=1e-6)

    def g(x):
        like = weft.ShapeDtypeStruct((), x.dtype, manual_axis_type=ManualAxisType(unreduced={"x"}))
        assert weft.typeof(lax.pcast(x.sum(), "x", to="unreduced")) == like.aval
        return x

    weft.shard_map(g, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.ones(1))
