"""`pad` in every mode against NumPy; its derivatives and errors."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import same
from weft.errors import ShapeError

HOST = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


ROW = np.array([1, 4, 2, 7], np.float32)


PADDINGS = [
    ("constant", {}),
    ("constant", {"constant_values": 3}),
    ("constant", {"constant_values": (1, 2)}),
    ("edge", {}),
    ("reflect", {}),
    ("symmetric", {}),
    ("wrap", {}),
    ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {"reflect_type": "odd"}),
    ("linear_ramp", {}),
    ("linear_ramp", {"end_values": (5, -4)}),
    ("maximum", {}),
    ("minimum", {"stat_length": 2}),
    ("mean", {}),
    ("mean", {"stat_length": (2, 3)}),
    ("median", {}),
]


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize(("mode", "options"), PADDINGS, ids=str)
@pytest.mark.parametrize(
    ("host", "widths"),
    [(ROW, 1), (ROW, (3, 9)), (HOST[0], ((0, 3), (2, 5))), (HOST[1].astype(np.int32), (2, 1))],
)
def test_pad(host, widths, mode, options):
    want = np.pad(host, widths, mode, **options)
    x = jnp.asarray(host)
    got = jnp.pad(x, widths, mode, **options)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    jitted = weft.jit(lambda v: jnp.pad(v, widths, mode, **options))(x)
    np.testing.assert_allclose(jitted, want, rtol=1e-5, atol=1e-6)


def test_pad_otherwise():
    x = jnp.arange(3.0)
    assert jnp.pad(x, 1, "empty").shape == (5,)
    same(jnp.pad(jnp.ones((2, 2)), {1: (1, 0)}), np.pad(np.ones((2, 2), "f"), ((0, 0), (1, 0))))
    with pytest.raises(
        ShapeError, match="pad: axis must name an axis of an array of rank 1; got 5"
    ):
        jnp.pad(jnp.ones(2), {5: 1})

    def around(vector, pair, axis, options):
        vector = vector.at[: pair[0]].set(options["value"])
        return vector.at[vector.shape[0] - pair[1] :].set(axis)

    assert jnp.pad(x, 1, around, value=9).tolist() == [9, 0, 1, 2, 0]
    grad = weft.grad(lambda v: (jnp.pad(v, 2, "reflect") * jnp.arange(7.0)).sum())(x)
    assert grad.tolist() == [2 + 6, 1 + 3 + 5, 0 + 4]
    assert weft.grad(lambda c: jnp.pad(x, 2, constant_values=c).sum())(1.0) == 4
    for widths, text in (
        (-1, "must not be negative"),
        (1.5, "a whole number"),
        ((1, 2, 3), "pair"),
    ):
        with pytest.raises(ShapeError, match=text):
            jnp.pad(x, widths)
    with pytest.raises(NotImplementedError, match="mode must be one of constant, "):
        jnp.pad(x, 1, "nothing")
    with pytest.raises(ValueError, match="takes constant_values; got end_values"):
        jnp.pad(x, 1, end_values=3)
    with pytest.raises(ShapeError, match="needs elements on axis 0"):
        jnp.pad(x[:0], 1, "edge")


def test_values_by_axis_and_side():
    """In the forms that NumPy takes: numbers, pairs, pairs for each axis, arrays of them."""
    x = HOST[0]
    forms = [7, (7,), [7], (1, 2), [(1, 2)], [(1, 2), (3, 4)], np.array(5), np.array([[1], [2]])]
    forms += [np.array([[1, 2], [3, 4]]), [[6]]]
    run = lambda: [
        (jnp.pad(x, ((1, 2), (3, 0)), "constant", constant_values=v),
         jnp.pad(x, 2, "linear_ramp", end_values=v)) for v in forms
    ]  # fmt: skip
    for v, (flat, ramp) in zip(forms, weft.jit(run)(), strict=True):
        same(flat, np.pad(x, ((1, 2), (3, 0)), "constant", constant_values=v))
        np.testing.assert_allclose(ramp, np.pad(x, 2, "linear_ramp", end_values=v), rtol=1e-5)
    for bad, text in (
        ({"mode": "mean", "stat_length": 0}, "pad: stat_length must be positive; got"),
        ({"mode": "constant", "constant_values": [(1, 2)] * 3}, "for each of 2 axes; got 3"),
    ):
        with pytest.raises(ShapeError, match=text):
            jnp.pad(x, 1, **bad)


def test_elements_are_written_into_room_for_them():
    made = lambda mode: weft.make_jaxpr(lambda x: jnp.pad(x, 2, mode=mode))(np.ones((5, 4)))
    for mode in ("reflect", "symmetric", "wrap", "edge"):
        names = [eqn.primitive.name for eqn in made(mode).eqns]
        assert "concatenate" not in names and names.count("pad") == 3  # of all, of two columns
    x = jnp.ones((1000, 1000))
    text = weft.jit(lambda x: jnp.pad(x, 2, mode="edge")).lower(x).compile().as_text()
    assert " copy(" not in text
