"""Lines of scans and checkpoints: axes that go through every iteration."""

from __future__ import annotations

import numpy as np

import weft
import weft.numpy as jnp
from tests.footprint.test_chunks import flatten_program
from weft import lax
from weft.footprint.bodies import find_every_line
from weft.footprint.lines import LAST, Total

X = np.zeros((5, 6, 4), np.float32)


def find_scan_lines(fun, *args):
    jaxpr, _ = flatten_program(fun, args)
    eqn = next(e for e in jaxpr.eqns if e.primitive.name in ("scan", "checkpoint"))
    return {
        (line.operands, tuple(x if type(x) is int or x is LAST else "sum" for x in line.results))
        for line in find_every_line(eqn)
    }


def test_a_mapped_axis_goes_through_a_recurrence():
    """The batch does; the features, which a product mixes, do not."""

    def fun(w, x):
        def step(h, row):
            h = jnp.tanh(h @ w + row)
            return h, h

        return lax.scan(step, jnp.zeros((6, 4)), x)

    assert find_scan_lines(fun, np.zeros((4, 4), np.float32), X) == {((None, 0, 1), (0, 1))}


def test_a_carry_may_sum_over_the_axis():
    def fun(x):
        def step(c, row):
            return (c[0] + 1, c[1] + row.sum(0)), row.sum(0)

        return lax.scan(step, (0, jnp.ones(4)), x)

    assert (((None, None, 1), (LAST, "sum", "sum"))) in find_scan_lines(fun, X)
    assert (((None, 0, 2), (LAST, 0, 1))) in find_scan_lines(fun, X)


def test_a_sum_that_is_read_is_no_sum_of_slices():
    def fun(x):
        return lax.scan(lambda c, row: (jnp.tanh(c + row.sum(0)), None), jnp.ones(4), x)

    assert find_scan_lines(fun, X) == {((0, 2), (0,))}


def test_a_checkpoint_has_the_lines_of_its_program():
    def fun(w, x):
        return (jnp.tanh(jnp.tanh(x @ w) @ w) ** 2).sum()

    found = find_scan_lines(weft.grad(weft.checkpoint(fun)), np.zeros((4, 4), np.float32), X[0])
    assert any(results == ("sum",) for _, results in found)
    assert Total(None, 0) == Total(None, 0)
