"""Slices of computed arrays are computed from slices, and are the same."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import expect, show_prepared
from weft import lax

RNG = np.random.RandomState(0)
A, ROW, COLUMN = (RNG.randn(*s).astype("f") for s in ((40, 50), (50,), (40, 1)))


def column(b, k):
    return lax.dynamic_slice(b, (0, k), (40, 1), allow_negative_indices=False)


def test_a_column_of_a_difference_is_computed_from_columns():
    def step(a, row, k):
        b = a - row
        return b, column(b, k)

    expect(
        show_prepared(step, A, ROW, np.int32(3)),
        """
        { lambda ; a:f32[40,50] b:f32[50] c:i32[]. let
            d:f32[40,50] = broadcast_in_dim[
              broadcast_dimensions=(1,)
              shape=(40, 50)
              sharding=None
            ] b
            e:f32[40,50] = sub a d
            f:f32[40,1] = dynamic_slice[slice_sizes=(40, 1)] a 0 c
            g:f32[1] = dynamic_slice[slice_sizes=(1,)] b c
            h:f32[40,1] = broadcast_in_dim[
              broadcast_dimensions=(1,)
              shape=(40, 1)
              sharding=None
            ] g
            i:f32[40,1] = sub f h
          in (e, i) }
        """,
    )


MADE = {
    "repeated rows and columns": lambda a: (a * COLUMN + ROW) * 2.0,
    "a choice": lambda a: jnp.where(a > ROW, a, COLUMN),
    "a choice by a number": lambda a: lax.select_n(a[0, 0] > 0, a + 1, a - 1),
    "a number for all": lambda a: jnp.full_like(a, a[1, 1]) + jnp.tanh(a),
    "other dtypes": lambda a: (a * 100).astype(np.int32) // 7,
    "an array used twice": lambda a: (b := a + ROW) * b,
    "a sum in between": lambda a: a - jnp.cumsum(a, 0) * 2,
    "many steps": lambda a: sum((a * i + ROW for i in range(20)), a),
}


@pytest.mark.parametrize("name", MADE)
def test_slices_are_the_same(name):
    make = MADE[name]
    start = lambda i, k: (i, k)
    for sizes in ((40, 1), (3, 5)):
        take = lambda b, i, k, sizes=sizes: lax.dynamic_slice(b, start(i, k), sizes)
        both = weft.jit(lambda a, i, k, take=take: (b := make(a), take(b, i, k))[1:] + (b,))
        for i, k in ((0, 0), (7, 49), (100, 60), (-3, -1)):
            found, b = both(A, i, k)
            np.testing.assert_allclose(found, take(b, i, k), rtol=1e-6)


def test_an_elimination_in_a_loop():
    """XLA fused two loops over the matrix badly: it recomputed the column for each element.

    See bench/programs/polybench/lu.py.
    """
    places = jnp.arange(12)

    def step(k, a):
        column = jnp.where(places > k, a[:, k] / a[k, k], 0)
        a = a - column[:, None] * jnp.where(places > k, a[k], 0)
        return a.at[:, k].set(jnp.where(places > k, column, a[:, k]))

    a = RNG.rand(12, 12).astype("f") + 12 * np.eye(12, dtype="f")
    b = weft.jit(lambda a: lax.fori_loop(0, 11, step, a))(a)
    lower, upper = np.tril(b, -1) + np.eye(12), np.triu(b)
    np.testing.assert_allclose(lower @ upper, a, rtol=1e-5, atol=1e-5)


def test_large_slices_and_long_computations_stay():
    whole = lambda a, k: lax.dynamic_slice(a + 1, (0, k), (40, 25))
    long = lambda a, k: column(MADE["many steps"](a), k)
    for fun in (whole, long):
        text = show_prepared(fun, A, 3)
        assert text.split("dynamic_slice")[1].split("]", 1)[1].split()[0] != "a"
