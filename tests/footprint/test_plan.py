"""Plans: the fewest slices that fit, programs that no plan changes, and what a plan says."""

from __future__ import annotations

import numpy as np

import weft
import weft.numpy as jnp
from tests.footprint.test_chunks import flatten_program
from weft.footprint.estimate import Measure
from weft.footprint.plan import choose_even, fit_jaxpr

X = np.zeros((64, 64), np.float32)


def product(x):
    return jnp.exp(x @ x.T).sum(0)


def test_the_fewest_slices():
    jaxpr, _ = flatten_program(product, [np.zeros((256, 4), np.float32)])
    counts = []
    for part in (1.0, 0.6, 0.3, 0.1):
        limit = int(part * Measure().estimate(jaxpr).bytes)
        plan = fit_jaxpr(jaxpr, limit, Measure())
        assert plan.after.bytes <= limit
        counts.append(int(plan.steps[0].split(" slices")[0].split()[-1]) if plan.steps else 1)
    assert counts == [1, 2, 4, 16]


def test_slices_divide_the_axis_if_they_can():
    assert choose_even(100, 34) == 25
    assert choose_even(96, 34) == 32
    assert choose_even(101, 34) == 34


def test_what_is_not_changed():
    """Programs that fit, that have effects, and in which every place depends on every other."""
    jaxpr, _ = flatten_program(product, [X])
    assert fit_jaxpr(jaxpr, 10**6, Measure()).jaxpr is jaxpr

    def printing(x):
        weft.debug.print("{}", x[0, 0])
        return product(x)

    jaxpr, _ = flatten_program(printing, [X])
    assert fit_jaxpr(jaxpr, 1000, Measure()).jaxpr is jaxpr
    jaxpr, _ = flatten_program(jnp.linalg.inv, [X])
    assert fit_jaxpr(jaxpr, 1000, Measure()).after.bytes > 2 * X.nbytes
