"""Functions of layout.py. Rules: cases_layout.py."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.core.aval import typeof
from weft.errors import DtypeError, ShapeError
from weft.primitives import families, layout

KEY = weft.random.key(0)


def test_broadcast_like_goes_by_numpys_rule():
    like = np.zeros((2, 3), np.float32)
    for x in (np.float32(1), np.ones(3, np.float32), np.ones((2, 1), np.float32), like):
        got = layout.broadcast_like(x, like)
        np.testing.assert_array_equal(got, np.broadcast_to(x, (2, 3)))


def test_collapse_of_no_axis_makes_one():
    x = np.zeros((2, 3), np.float32)
    assert layout.collapse(x, 1, 1).shape == (2, 1, 3)
    assert layout.collapse(x, 0).shape == (6,)


def broadcast(x, shape, dims):
    return layout.broadcast_in_dim_p.apply(x, shape=shape, broadcast_dimensions=dims, sharding=None)


def test_numbers_of_a_dtype():
    assert layout.literal(3, np.dtype(np.int8)) == 3
    assert str(typeof(layout.literal(np.float64(1.5), np.dtype(np.float16)))) == "f16[]"
    for x, dtype, text in (
        (1.5, np.int32, "literal: a number must be of the dtype's kind; got 1.5 for int32."),
        (1j, np.float32, "got 1j for float32"),
        (300, np.uint8, r"literal: uint8 must hold the number; got 300, outside \[0, 255\]"),
        (-129, np.int8, r"got -129, outside \[-128, 127\]"),
    ):
        with pytest.raises((DtypeError, OverflowError), match=text):
            layout.literal(x, np.dtype(dtype))
    for x in (255, 0):
        assert layout.literal(x, np.dtype(np.uint8)) == x


def test_fill_values_and_types():
    x = jnp.int8([1, 2])
    weak = jnp.asarray(2.0)
    for got, aval in (
        (layout.full_like(x, 3), "i8[2]"), (layout.full_like(x, 3.7, np.float32), "f32[2]"),
        (layout.full_like(2, 3), "i32[]"), (layout.full_like(np.ones(2), 3), "f32[2]"),
        (layout.full_like(x, 3, shape=(1, 2)), "i8[1,2]"), (layout.empty((2,)), "f32[2]"),
        (layout.empty((2,), np.int8), "i8[2]"), (layout.full((2,), np.int8(3)), "i8[2]"),
        (layout.full((2,), jnp.float16(3), np.int32), "i32[2]"), (layout.empty((2, 0)), "f32[2,0]"),
        (layout.broadcast_to_rank(x, 3), "i8[1,1,2]"), (layout.broadcast(x, (3, 1)), "i8[3,1,2]"),
    ):  # fmt: skip
        assert str(typeof(got)) == aval
    assert (
        layout.full_like(weak, 3).weak_type and not layout.full_like(weak, 3, np.float32).weak_type
    )
    assert layout.full_like(x, 3).tolist() == [3, 3]
    with weft.enable_x64(True):
        wide = jnp.ones(2, np.int64)
    assert layout.full_like(wide, 3).dtype == np.int64
    with pytest.warns(np.exceptions.ComplexWarning, match="float32 has no place for the imag"):
        assert layout.convert_element_type(jnp.complex64(1 + 2j), np.float32) == 1


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda x: layout.convert_element_type(x, None),
            DtypeError,
            "a dtype must be given; got N",
        ),
        (
            lambda x: broadcast(x, (3, 2), (1, 0)),
            ShapeError,
            r"must be increasing, .*; got \(1, 0\)",
        ),
        (
            lambda x: broadcast(x, (2, 3), (0,)),
            ShapeError,
            r"one for each axis of x; got \(0,\) for",
        ),
        (
            lambda x: layout.broadcast_in_dim(x, (2, 3), (0,)),
            ShapeError,
            r"one for each axis of x; got \(0,\) for",
        ),
        (
            lambda x: layout.broadcast_in_dim(x, (2, 3), (1, 0)),
            ShapeError,
            r"must be increasing, .*; got \(1, 0\)",
        ),
        (
            lambda x: layout.broadcast_in_dim(x, (3, 3), (0, 1)),
            ShapeError,
            "size 1 or as in the res",
        ),
        (
            lambda x: families.broadcast_shapes((2, 3), (2,)),
            ShapeError,
            r"got \(2, 3\), \(2,\). Incomp",
        ),
        (lambda x: layout.iota(np.int32, 1.5), TypeError, "iota: size must be an integer; got 1.5"),
        (lambda x: layout.iota(bool, 3), DtypeError, "iota: needs a numeric dtype; got bool"),
        (
            lambda x: lax.reduce_sum_p.apply(x > 0, axes=(0,)),
            DtypeError,
            r"Hint: x.astype\(int\) cou",
        ),
        (
            lambda x: lax.expand_dims(x, ("a",)),
            TypeError,
            "must be integers in a sequence|an axis mus",
        ),
        (
            lambda x: lax.slice_in_dim(x, 0, 1, axis="a"),
            TypeError,
            "an axis must be an integer; got",
        ),
        (
            lambda x: lax.slice_in_dim(x, 0, 1, axis=2),
            ShapeError,
            r"rank 2 must be in \[-2, 2\); got 2",
        ),
        (
            lambda x: layout.random_wrap_p.apply(x, dtype=KEY.dtype),
            DtypeError,
            r"random_wrap: words of key<fry> must be u32\[..., 2\]; got f32\[2,3\].",
        ),
        (lambda x: layout.random_unwrap_p.apply(x), DtypeError, "must be of random keys; got f32"),
    ],
)
def test_what_they_refuse(call, error, text):
    with pytest.raises(error, match=text):
        call(jnp.ones((2, 3)))


def test_keys_and_words():
    """Mapped over any axis, the words of keys stay last."""
    words = np.arange(12, dtype=np.uint32).reshape(3, 2, 2)
    wrap = lambda x: layout.random_wrap_p.apply(x, dtype=KEY.dtype)[0]
    unwrap = lambda k: layout.random_unwrap_p.apply(k)[0]
    for axis in (0, 1, 2):
        moved = np.moveaxis(words, 0, axis)
        for run in (weft.vmap(wrap, axis), weft.jit(weft.vmap(wrap, axis))):
            keys = run(moved)
            assert keys.shape == (3, 2) and keys.dtype == KEY.dtype
            np.testing.assert_array_equal(weft.vmap(unwrap)(keys), words)
    assert "random_wrap[impl=fry]" in str(weft.make_jaxpr(wrap)(words))
    keys = layout.full((2,), 7, KEY.dtype)
    assert weft.random.key_data(keys).tolist() == [[7, 7], [7, 7]]
    assert layout.full((2,), KEY).dtype == KEY.dtype


def test_a_barrier_keeps_trees_and_derivatives():
    tree = {"a": jnp.ones(2), "b": [jnp.int32(3)]}
    out = lax.optimization_barrier(tree)
    assert out["a"].tolist() == [1, 1] and out["b"][0] == 3
    assert lax.optimization_barrier([]) == []
    f = lambda x, n: lax.optimization_barrier((x * x, n))[0].sum()
    for g in (weft.grad(f), weft.jit(weft.grad(f))):
        assert g(jnp.array([1.0, 2]), 3).tolist() == [2, 4]
    assert weft.vmap(lax.optimization_barrier)(tree["a"]).tolist() == [1, 1]


@pytest.mark.parametrize("op", ["sum", "max", "min", "prod", "and", "or", "xor"])
def test_axes_of_reductions(op):
    """In any collection, and nothing else stands for one."""
    reduce = getattr(lax, f"reduce_{op}")
    x = np.ones((2, 3), bool if op in ("and", "or") else np.int32)
    given = {(): (2, 3), (0,): (3,), (1,): (2,), (0, 1): ()}
    for axes, shape in given.items():
        for kind in (tuple, list, set, np.array, iter):
            if axes or kind is not np.array:
                assert weft.eval_shape(lambda x, a=kind(axes): reduce(x, a), x).shape == shape
    for axes in (0, 1, False, None, np.int32(0), 0.0, (0.0,), "a"):
        with pytest.raises(TypeError, match=f"reduce_{op}: axes must be integers in a sequence"):
            weft.eval_shape(lambda x, a=axes: reduce(x, a), x)
