"""The smaller names of interpreters.batching."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.errors import ShapeError
from weft.interpreters import batching


def test_names_of_batching():
    assert batching.not_mapped is None
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    assert batching.moveaxis(x, 0, 1).shape == (3, 2)
    assert batching.moveaxis(x, None, 1) is x
    assert batching.broadcast(x, 4, 1).shape == (2, 4, 3)
    assert batching.bdim_at_front(x, 1, 3).shape == (3, 2)
    assert batching.bdim_at_front(x, None, 5).shape == (5, 2, 3)


class Named:
    """An array whose axes have names."""

    def __init__(self, names, data):
        self.names, self.data = list(names), data


class Over:
    """The spec of an axis by its name."""

    def __init__(self, name):
        self.name = name


def to_elt(cont, get_idx, x, spec):
    rest = [n for n in x.names if n != spec.name]
    return Named(rest, cont(x.data, x.names.index(spec.name)))


def from_elt(cont, size, y, spec):
    return Named([spec.name, *y.names], cont(size, y.data, 0))


def test_values_that_say_how_they_are_mapped():
    batching.register_vmappable(Named, Over, int, to_elt, from_elt, None)
    try:
        x = Named("ab", jnp.arange(6.0).reshape(2, 3))
        f = lambda v, w: (Named(v.names, v.data + w), w * 2)
        got, doubled = weft.vmap(f, (Over("b"), 0), (Over("b"), 0))(x, np.arange(3.0))
        np.testing.assert_array_equal(
            got.data, np.arange(6).reshape(2, 3).T + np.arange(3)[:, None]
        )
        assert got.names == ["b", "a"] and list(doubled) == [0, 2, 4]
        sums = weft.vmap(lambda v: v.data.sum(), Over("b"), axis_size=3, axis_name="i")(x)
        np.testing.assert_array_equal(sums, [3, 5, 7])
        inner = lambda v: weft.vmap(
            lambda w: Named(w.names, w.data * 2), (Over("a"),), Over("a"), axis_size=2
        )(v)
        both = weft.jit(
            lambda d: weft.vmap(inner, (Over("b"),), Over("b"), axis_size=3)(Named("ab", d)).data
        )
        np.testing.assert_array_equal(both(x.data), 2 * np.arange(6).reshape(2, 3).T)
        constant = weft.vmap(lambda w: Named([], 1.0), 0, Over("c"))(np.ones(2))
        np.testing.assert_array_equal(constant.data, [1, 1])
    finally:
        batching.unregister_vmappable(Named)
    with pytest.raises(TypeError, match="in_axes must hold ints and None"):
        weft.vmap(lambda v: v, Over("b"))


class Row:
    def __init__(self, data):
        self.data = data


def test_a_class_mapped_along_an_int_takes_no_other_axes():
    batching.register_vmappable(
        Row, int, int, lambda cont, _, x, axis: Row(cont(x.data, axis)),
        lambda cont, size, y, axis: Row(cont(size, y.data, axis)),
    )  # fmt: skip
    try:
        assert weft.vmap(lambda x, y: x + y, [0, None])(jnp.arange(3), 1).tolist() == [1, 2, 3]
        got = weft.vmap(lambda x, row: Row(x * row.data))(jnp.arange(3), Row(jnp.arange(3)))
        assert got.data.tolist() == [0, 1, 4]
    finally:
        batching.unregister_vmappable(Row)


def test_axes_of_moveaxis_count_from_either_end():
    x = np.zeros((2, 3, 4))
    for src, dst in itertools.product(range(-3, 3), repeat=2):
        assert batching.moveaxis(x, src, dst).shape == np.moveaxis(x, src, dst).shape
    with pytest.raises(ShapeError, match="moveaxis: an axis of an array of rank 3 must be in"):
        batching.moveaxis(x, 3, 0)
