"""Regions: which operations of small programs are in one, and what ends it."""

from __future__ import annotations

import numpy as np
import pytest

import weft.numpy as jnp
from tests.footprint.test_chunks import flatten_program
from weft import lax, nn
from weft.footprint.regions import Grower

X = np.zeros((6, 4), np.float32)


def grow(fun, seed, axis, *args):
    """The region of the first operation of a name along an axis of its result, and the program."""
    jaxpr, _ = flatten_program(fun, args)
    grower = Grower(jaxpr)
    eqn = next(e for e in jaxpr.eqns if e.primitive.name == seed)
    line = grower.choose_line(eqn, {eqn.outvars[0]: axis})
    return jaxpr, None if line is None else grower.grow(eqn, line, 0)


def names(region):
    return [e.primitive.name for e in region.lines]


def test_an_axis_is_followed_until_it_is_summed():
    jaxpr, region = grow(lambda x, w: jnp.exp(jnp.tanh(x @ w).sum(0)), "tanh", 0, X, X.T)
    assert names(region) == ["dot_general", "tanh", "reduce_sum"]
    assert [e.primitive.name for e in region.after] == ["exp"]
    x, w = jaxpr.invars
    assert [*region.sliced] == [(x, 0)] and not region.stacked
    assert [t.combine for t in region.totals.values()] == [None]


def test_a_result_is_stacked():
    def fun(x):
        y = jnp.tanh(x)
        return y, jnp.exp(y).max(1)

    jaxpr, region = grow(fun, "tanh", 1, X)
    assert jaxpr.outvars[0] in region.stacked
    assert {*names(region)} == {"tanh", "exp", "reduce_max"} and region.size == 4


def test_what_mixes_places_stays_outside():
    _, region = grow(lambda x: lax.rev(jnp.tanh(x), (0,)) + 1, "tanh", 0, X)
    assert names(region) == ["tanh"] and len(region.stacked) == 1
    _, region = grow(lambda x: jnp.tanh(jnp.sort(x, 0)), "tanh", 0, X)
    assert names(region) == ["tanh"]
    _, region = grow(lambda x: jnp.tanh(jnp.sort(x, 0)), "tanh", 1, X)
    assert names(region) == ["sort", "tanh"]


@pytest.mark.parametrize("axis", [0, 1])
def test_one_array_is_read_whole_and_in_slices(axis):
    """The array is made by the program: it is not computed in slices, as all of it is read."""

    def fun(x):
        y = jnp.tanh(x)
        return ((y[:, None] - y) ** 2).sum(-1)

    _, region = grow(fun, "reduce_sum", axis, X)
    assert "tanh" not in names(region)
    assert {"sub", "reduce_sum"} <= {*names(region)}
    assert [axis for _, axis in region.sliced] == [0, axis]


def test_softmax_is_independent_along_other_axes_only():
    _, region = grow(nn.softmax, "exp", 0, X)
    assert {"reduce_max", "sub", "exp", "reduce_sum", "div"} <= {*names(region)}
    _, region = grow(nn.softmax, "exp", 1, X)
    assert "div" not in names(region)
