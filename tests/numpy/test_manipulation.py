"""Shapes, joins, parts and padding against NumPy; under jit, grad and vmap; errors."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import same
from weft import lax, nn
from weft.errors import ShapeError, TracerError

HOST = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


# One call each, with `np` standing for both libraries.
CALLS = [
    lambda np, x: np.reshape(x, (4, -1)),
    lambda np, x: np.reshape(x, -1, order="F"),
    lambda np, x: np.reshape(x, (6, 4), order="F"),
    lambda np, x: x.reshape(3, 8),
    lambda np, x: x.reshape((-1,)),
    lambda np, x: np.ravel(x),
    lambda np, x: x.flatten("F"),
    lambda np, x: np.transpose(x),
    lambda np, x: np.transpose(x, (1, -1, 0)),
    lambda np, x: x.transpose(2, 0, 1),
    lambda np, x: x.T,
    lambda np, x: x.mT,
    lambda np, x: np.permute_dims(x, (2, 1, 0)),
    lambda np, x: np.matrix_transpose(x),
    lambda np, x: np.swapaxes(x, 0, -1),
    lambda np, x: np.moveaxis(x, 0, -1),
    lambda np, x: np.moveaxis(x, (0, 1), (-1, 0)),
    lambda np, x: np.rollaxis(x, 2, 1),
    lambda np, x: np.rollaxis(x, 0, 3),
    lambda np, x: np.squeeze(x[:1]),
    lambda np, x: np.squeeze(x[:1, :, :1], (0, -1)),
    lambda np, x: np.expand_dims(x, (0, -1)),
    lambda np, x: np.atleast_1d(x[0, 0, 0]),
    lambda np, x: np.atleast_2d(x[0, 0]),
    lambda np, x: np.atleast_3d(x[0]),
    lambda np, x: np.atleast_3d(x[0, 0]),
    lambda np, x: np.broadcast_to(x, (2, 2, 3, 4)),
    lambda np, x: np.broadcast_arrays(x, x[0])[1],
    lambda np, x: np.concatenate([x, x + 1], axis=1),
    lambda np, x: np.concatenate([x, x[0]], axis=None),
    lambda np, x: np.concatenate(x),
    lambda np, x: np.concat([x, x], axis=-1),
    lambda np, x: np.stack([x, x + 1], axis=-1),
    lambda np, x: np.vstack([x[0, 0], x[0, 1]]),
    lambda np, x: np.hstack([x[0, 0], x[0, 1]]),
    lambda np, x: np.hstack([x, x]),
    lambda np, x: np.dstack([x[0], x[1]]),
    lambda np, x: np.column_stack([x[0, 0], x[0].T]),
    lambda np, x: np.block([[x[0], x[1]], [x[1], x[0]]]),
    lambda np, x: np.block([x[0, 0], x[0, 0, :1]]),
    lambda np, x: np.append(x, x[0]),
    lambda np, x: np.append(x, x[:1], axis=0),
    lambda np, x: np.split(x, 2, axis=2)[1],
    lambda np, x: np.split(x, [1, 3], axis=2)[1],
    lambda np, x: np.split(x, [3, 1], axis=2)[1],
    lambda np, x: np.array_split(x, 3, axis=2)[2],
    lambda np, x: np.vsplit(x, 2)[1],
    lambda np, x: np.hsplit(x, 3)[2],
    lambda np, x: np.dsplit(x, [1])[1],
    lambda np, x: np.unstack(x, axis=1)[2],
    lambda np, x: np.tile(x, 2),
    lambda np, x: np.tile(x, (2, 1, 3, 1)),
    lambda np, x: np.flip(x),
    lambda np, x: np.flip(x, (0, -1)),
    lambda np, x: np.fliplr(x),
    lambda np, x: np.flipud(x),
    lambda np, x: np.rot90(x),
    lambda np, x: np.rot90(x, 2),
    lambda np, x: np.rot90(x, -1, (1, 2)),
    lambda np, x: np.roll(x, 5),
    lambda np, x: np.roll(x, -1, axis=1),
    lambda np, x: np.roll(x, (1, 2), (0, -1)),
    lambda np, x: np.roll(x, 1, (0, 1)),
    lambda np, x: np.roll(x[:, :0], 1, 1),
    lambda np, x: np.diagonal(x),
    lambda np, x: np.diagonal(x, 1, 0, 2),
    lambda np, x: np.diagonal(x, -1, 1, 2),
    lambda np, x: np.diagonal(x, 9),
    lambda np, x: np.resize(x, (7, 5)),
    lambda np, x: np.resize(x, 3),
    lambda np, x: np.repeat(x, 2),
    lambda np, x: np.repeat(x, 2, axis=1),
    lambda np, x: np.repeat(x, np.array([1, 0, 3]), axis=1),
    lambda np, x: np.insert(x, 1, 9.0),
    lambda np, x: np.insert(x, 1, 9.0, axis=1),
    lambda np, x: np.insert(x, 1, x[:, 0], axis=1),
    lambda np, x: np.insert(x, np.array([3, 1, 1]), np.array([7.0, 8.0, 9.0]), axis=None),
    lambda np, x: np.insert(x, slice(0, 2), 7.0, axis=2),
    lambda np, x: np.delete(x, 1),
    lambda np, x: np.delete(x, -1, axis=1),
    lambda np, x: np.delete(x, slice(0, 3, 2), axis=2),
    lambda np, x: np.delete(x, np.array([0, 2, 2]), axis=2),
    lambda np, x: np.delete(x, np.array([True, False, True]), axis=1),
]


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_against_numpy(call):
    want = call(np, HOST)
    x = jnp.asarray(HOST)
    fun = lambda v: call(jnp, v)
    same(fun(x), want)

    @weft.jit  # one program for the three
    def transformed(x):
        mapped = weft.vmap(fun, in_axes=1)(jnp.stack([x, x], 1))
        return fun(x), mapped, weft.grad(lambda v: fun(v).sum())(x)

    staged, mapped, grad = transformed(x)
    same(staged, want)
    same(mapped[1], want)
    assert grad.shape == x.shape


def test_dtypes_are_promoted_by_joining():
    x, i = jnp.zeros(2), jnp.arange(2)
    assert jnp.concatenate([i, x]).dtype == x.dtype
    assert jnp.stack([i, jnp.zeros(2, "int8")]).dtype == i.dtype
    assert jnp.concatenate([i, i], dtype="float16").dtype == "float16"
    assert jnp.stack([1, 2.0]).weak_type
    assert jnp.hstack([1, x]).dtype == x.dtype


def test_methods_of_arrays_stay_lazy_where_nothing_changes():
    x = jnp.arange(3.0)
    for f in (jnp.ravel, jnp.squeeze, jnp.transpose, lambda v: v.reshape(3)):
        assert weft.make_jaxpr(f)(x).eqns == []


def test_a_traced_shift():
    x = jnp.arange(5)
    rolled = weft.jit(lambda v, n: jnp.roll(v, n))
    for n in (0, 2, -3, 12):
        same(rolled(x, n), np.roll(np.arange(5, dtype=np.int32), n))
    long = np.arange(300, dtype=np.int32)  # more than an int8 counts to
    same(rolled(long, np.int8(-5)), np.roll(long, -5))
    with pytest.raises(TypeError, match=r"roll: shift must be an integer; got f32\[\]"):
        rolled(long, 1.0)


def test_broadcast_shapes():
    assert jnp.broadcast_shapes((3, 1), 4, ()) == (3, 4)
    with pytest.raises(ValueError, match="must be equal or 1"):
        jnp.broadcast_shapes((3,), (4,))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: jnp.reshape(x, (5, -1)), r"reshape: the sizes given must divide .* 24; got"),
        (lambda x: jnp.reshape(x, (5, 5)), "reshape: the new shape must have as many elements"),
        (lambda x: jnp.reshape(x, (-1, -1)), "at most one size may be -1"),
        (lambda x: jnp.transpose(x, (0, 0, 1)), "axes must be distinct"),
        (lambda x: jnp.transpose(x, (0, 1)), r"must name every axis of x once; got \(0, 1\)"),
        (
            lambda x: jnp.squeeze(x, 0),
            r"squeeze: axes must be of size 1; got axis 0 of f32\[2,3,4\]",
        ),
        (lambda x: jnp.swapaxes(x, 0, 3), "axis must"),
        (lambda x: jnp.moveaxis(x, (0, 1), 0), "equally many"),
        (lambda x: jnp.broadcast_to(x, (2, 4)), "must be one that the array broadcasts to"),
        (lambda x: jnp.concatenate([]), "needs at least one array"),
        (lambda x: jnp.concatenate([1, 2]), "scalars cannot be joined"),
        (lambda x: jnp.concatenate([x, x[0]]), "shapes must be equal but for axis 0"),
        (lambda x: jnp.stack([x, x[0]]), "shapes must be equal"),
        (lambda x: jnp.split(x, 5, axis=2), "must divide the axis; got 5 for axis 2"),
        (lambda x: jnp.tile(x, -1), "must not be negative"),
        (lambda x: jnp.roll(x, (1, 2, 3), (0, 1)), "a shift for each axis"),
        (lambda x: jnp.diagonal(x[0, 0]), "needs at least two axes"),
        (lambda x: jnp.fliplr(x[0, 0]), "needs at least two axes"),
        (lambda x: jnp.block([[x], x]), "equally deep"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ShapeError, match=text):
        call(jnp.asarray(HOST))


def test_lists_and_traced_shapes():
    for call in (lambda: jnp.ravel([1, 2]), lambda: jnp.concatenate([[1], [2]])):
        with pytest.raises(TypeError, match="operands must be arrays or numbers; got .*list"):
            call()
    with pytest.raises(TracerError, match="a size: needs a concrete value.*static_argnames=.n."):
        weft.jit(lambda x, n: x.reshape(n, -1))(jnp.zeros(4), 2)
    with pytest.raises(NotImplementedError, match="order must be"):
        jnp.reshape(jnp.zeros(4), (2, 2), order="A")
    with pytest.raises(ValueError, match="order must be"):
        jnp.ravel(jnp.ones(2), order="X")


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4"])
def test_joining_elements_smaller_than_a_byte(name):
    """XLA:CPU aborts when such arrays do not fill their last byte."""
    x = jnp.array([1, 0, 1]).astype(name)
    joined = jnp.concatenate([x, x[:2]])
    assert joined.dtype.name == name
    assert joined.astype(jnp.int32).tolist() == [1, 0, 1, 1, 0]


def test_axes_may_be_a_range():
    assert jnp.expand_dims(jnp.ones(2), range(2)).shape == (1, 1, 2)


@pytest.mark.parametrize("axes", [{0, 2}, frozenset({0, 2}), {0: 0, 2: 0}.keys(), np.array([0, 2])])
def test_axes_in_sets_and_arrays(axes):
    x = jnp.ones((1, 3, 1))
    shapes = [f(x, axes).shape for f in (jnp.squeeze, lax.squeeze, jnp.sum, lax.reduce_sum)]
    assert shapes == [(3,)] * 4
    assert [f(x, axes).shape for f in (jnp.expand_dims, lax.expand_dims)] == [(1, 1, 1, 3, 1)] * 2
    assert jnp.roll(x, 1, axes).shape == nn.softmax(x, axes).shape == x.shape
    assert jnp.sum(jnp.ones((2, 3)), axis=range(1)).shape == (3,)


def test_cutting_into_more_parts_than_can_be_is_an_error():
    with pytest.raises(ShapeError, match=r"array_split: there must be at most 65536 sections; got"):
        jnp.array_split(jnp.ones(3), 10**19)


def test_arrays_stand_for_their_rows_and_dtypes_may_be_given():
    rows = np.arange(6, dtype=np.int32).reshape(2, 3)
    for name in ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"):
        for x in (rows, jnp.asarray(rows)):
            same(getattr(jnp, name)(x), getattr(np, name)(rows))
    for name in ("concatenate", "stack", "vstack", "hstack"):
        got = getattr(jnp, name)([rows, rows], dtype="int8")
        assert got.dtype == np.int8 and (got == getattr(np, name)([rows, rows])).all()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: jnp.rollaxis(x, 0, 4), ShapeError, r"start must be at most 3; got 4"),
        (lambda x: jnp.stack([]), ShapeError, "stack: needs at least one array; got none"),
        (lambda x: jnp.block((x, x)), TypeError, r"must be in lists; got a tuple. Hint: list"),
        (lambda x: jnp.block([]), ShapeError, r"block: lists must not be empty; got \[\]"),
        (lambda x: jnp.roll(x, 0.5), TypeError, "roll: "),
        (lambda x: jnp.tile(x, 0.5), (TypeError, ShapeError), "tile: "),
        (lambda x: jnp.stack(3), TypeError, "stack: "),
        (lambda x: jnp.concatenate([x, x, x[:, :1]], 0), ShapeError, "equal but for axis 0; got"),
        (lambda x: jnp.concatenate([x[:, :1], x, x], 0), ShapeError, "equal but for axis 0; got"),
        (lambda x: jnp.concatenate([x[0], x], 0), ShapeError, "equal but for axis 0"),
        (lambda x: jnp.array_split(x, 0), ShapeError, "array_split: .*; got 0"),
        (lambda x: jnp.array_split(x, 1.5), TypeError, "must be an integer; got 1.5"),
        (lambda x: weft.jit(jnp.array_split)(x, 2), TypeError, "array_split: .*Hint: a number"),
    ],
)  # fmt: skip
def test_more_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(jnp.asarray(HOST))


def test_one_part_is_joined_too():
    for name in ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"):
        same(getattr(jnp, name)([HOST]), getattr(np, name)([HOST]))
    same(jnp.block([HOST]), np.block([HOST]))
