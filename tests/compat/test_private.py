"""Private names that libraries use behave as in JAX."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.compat import dtypes, private, promotion, util
from weft.compat import typing as types

x = jnp.ones(3)


def test_operands_are_brought_together():
    one, three = promotion.promote_args_inexact("f", 1, np.ones(3, int))
    assert one.dtype == three.dtype == np.float32 and one.shape == ()
    a, b, c = promotion.promote_shapes("f", x, jnp.ones((2, 3)), 1)
    assert (a.shape, b.shape, c.shape) == ((1, 3), (2, 3), ())
    assert [y.dtype for y in promotion.promote_dtypes_numeric(True, False)] == [np.int32] * 2
    assert promotion.promote_dtypes(1, x)[0].dtype == np.float32
    assert promotion.promote_dtypes_complex(1)[0].dtype == np.complex64
    assert promotion.promote_args_numeric("f", True)[0].dtype == np.int32
    assert promotion.promote_args("f", 1, 2)[1] == 2
    assert isinstance(promotion.ensure_arraylike("f", 1.0), weft.Array)
    assert len(promotion.ensure_arraylike("f", 1.0, x)) == 2
    promotion.check_arraylike_or_none("f", None, x, 1)
    assert promotion.CClass()[x, x].shape == (3, 2) and promotion.RClass()[x, 1.0].shape == (4,)
    with pytest.raises(TypeError, match="f: operands must be arrays or numbers; got a list"):
        promotion.check_arraylike("f", [1])


def test_lists_and_functions():
    assert util.split_list([1, 2, 3, 4, 5], [1, 2]) == [[1], [2, 3], [4, 5]]
    assert util.unflatten([1, 2, 3], [1, 2]) == [[1], [2, 3]]
    assert util.concatenate([[1], (2, 3)]) == [1, 2, 3]
    assert util.unzip3([(1, 2, 3)]) == ((1,), (2,), (3,)) and util.unzip3([]) == ((), (), ())
    assert util.subvals([1, 2], [(0, 5)]) == (5, 2)
    t = (1, 2)
    assert util.tuple_insert(t, 1, 7) == (1, 7, 2) and util.tuple_delete(t, 0) == (2,)
    assert util.tuple_update(t, 0, 7) == (7, 2) and util.ceil_of_ratio(5, 2) == 3
    assert util.canonicalize_axis(-1, 3) == 2 and util.canonicalize_axis_tuple(None, 2) == (0, 1)
    assert util.canonicalize_axis_tuple((0, -1, 0), 3, allow_duplicate=True) == (0, 2, 0)
    assert util.curry(max)(1)(2) == 2 and util.wrap_name("vmap", "f") == "vmap(f)"
    partial, same = util.HashablePartial(max, 1), util.HashablePartial(max, 1)
    assert partial == same and hash(partial) == hash(same) and partial(3) == 3
    made = util.HashableFunction(abs, (1,))
    assert made == util.HashableFunction(max, (1,)) and made(-2) == 2 and len({made}) == 1
    assert util.cache()(abs)(-1) == util.weakref_lru_cache(abs)(-1) == 1
    own = util.set_module("m")(util.wraps(abs, namestr="my_{fun}", docstr="d")(lambda x: x))
    assert (own.__name__, own.__doc__, own.__module__) == ("my_abs", "d", "m")
    assert util.use_cpp_class(None)(int) is int and util.use_cpp_method()(abs) is abs


def test_dtypes_of_values():
    assert dtypes.dtype(1) == np.int32 and dtypes.dtype(float) == np.float64
    assert dtypes.dtype(np.float64(1), canonicalize=True) == np.float32
    assert dtypes.is_weakly_typed(1.0) and not dtypes.is_weakly_typed(x)
    assert dtypes.to_numeric_dtype(bool) == np.int32
    assert dtypes.to_floating_dtype(np.complex64) == np.float32
    assert dtypes.lattice_result_type(1.0, 2) == (np.float32, True)
    assert dtypes.safe_to_cast(np.int32, np.float32) and not dtypes.safe_to_cast(x, np.int32)
    assert dtypes.default_uint_dtype() == dtypes.jax_dtype(np.uint64) == np.uint32
    assert dtypes.scalar_type_to_dtype(int) == np.int32 and dtypes.supports_inf(np.float32)
    assert not dtypes.supports_inf(jnp.float8_e4m3fn)
    assert dtypes.check_and_canonicalize_user_dtype(None or np.float32) == np.float32
    dtypes.check_user_dtype_supported(np.int32)


def test_names_of_the_core():
    assert isinstance(x, types.DuckTypedArray) and isinstance(x, types.SupportsDType)
    assert isinstance(x, types.SupportsSize) and not isinstance(3, types.SupportsNdim)
    assert private.full_lower(x) is x and not private.is_vmappable(x)
    assert private.is_dim(3) and not private.is_dim("x") and private.is_constant_shape((1, 2))
    assert private.canonicalize_shape([1, 2]) == (1, 2) and private._dtype(2.0) == np.float32
    assert private.thread_resources.env.physical_mesh.empty and private.get_concrete_mesh().empty
    mesh = weft.make_mesh((1,), ("x",))
    assert private._any_axis_explicit(mesh)
    with weft.set_mesh(mesh):
        assert private.canonicalize_sharding(weft.P("x")).spec == weft.P("x")
        assert private.thread_resources.env.physical_mesh == mesh
    assert private.canonicalize_sharding(None) is None
    private.check_close({"a": 1.0}, {"a": x[0]})
    with pytest.raises(AssertionError):
        private.check_close(1.0, 2.0)


def test_numbers_of_arguments_and_batches():
    assert private._ensure_index(np.int32(1)) == 1 and private._ensure_index([1, 2]) == (1, 2)
    batches, rest = private._batch_and_remainder({"a": jnp.arange(7)}, 3)
    assert batches["a"].shape == (2, 3) and rest["a"].tolist() == [6]
    assert private._batch_and_remainder(jnp.arange(2), 3)[0] is None
    assert private._batch_and_remainder(jnp.arange(3), 3)[1] is None


def test_functions_of_some_arguments():
    """What adv_jax_math calls."""
    f, dynamic = private.argnums_partial2(lambda a, b, c=3: (a, b, c), (1, 0), (1, 2), {"c": 5})
    assert dynamic == (2, 1) and f(20, 10) == (10, 20, 5)
    f, dynamic = private.argnums_partial2(lambda a, b: (a, b), -1, (1, [2]), {})
    assert dynamic == ([2],) and f(7) == (1, 7)
    assert private._ensure_index_tuple(3) == (3,) and private._ensure_index_tuple([1, 2]) == (1, 2)
    assert private._ensure_inbounds(True, 3, (0, -1, 7)) == (0, 2)
    with pytest.raises(ValueError, match="argnums: must be positions of the 2 arguments .* got 5"):
        private.argnums_partial2(max, 5, (1, 2), {})


def test_helpers_of_lax():
    """What jet_array and korvax call."""
    half = private._const(jnp.ones(2, jnp.bfloat16), 0.5)
    assert half.dtype == jnp.bfloat16 and half == 0.5
    assert private._const(jnp.arange(2), 3.7) == 3 and type(private._const(1, 2.5)) is int
    a, b = jnp.array([1.0, 2.0, 2049.0]), jnp.array([1, 3, 2048], jnp.float16)
    assert private._eq_meet(a, b).tolist() == private._eq_meet(b, a).tolist() == [True, False, True]
    frames = np.arange(12.0, dtype=np.float32).reshape(2, 2, 3)
    for step in (1, 2, 5):
        want = np.zeros((2, step + 3))
        for i in range(2):
            want[:, i * step : i * step + 3] += frames[:, i]
        np.testing.assert_array_equal(private._overlap_and_add(jnp.asarray(frames), step), want)
