"""Regions in slices: random programs equal themselves at once, whichever region is split."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.conftest import ALL
from tests.footprint.test_lines import run_all
from tests.padding.test_fuzz import make_program
from weft import lax
from weft.core.stage import close_jaxpr
from weft.footprint.chunks import split_region
from weft.footprint.regions import Grower
from weft.passes.inline import inline_calls

N = 7  # the size of the axis that most regions are along; slices of 3 leave a rest
BLOCKS = 60 if ALL else 1


def flatten_program(fun, args):
    """The closed jaxpr of a function without calls, and its operands."""
    found = weft.make_jaxpr(fun)(*args)
    return inline_calls(close_jaxpr(found.jaxpr), True), [*found.consts, *args]


def list_regions(jaxpr):
    """The regions of a program that grow from any of its equations."""
    grower, found = Grower(jaxpr), {}
    for eqn in jaxpr.eqns:
        for line in grower.lines_of(eqn):
            region = grower.grow(eqn, line, 0) if line.size_in(eqn) > 1 else None
            if region is not None:
                found.setdefault((frozenset(region.axes.items()), *region.totals), region)
    return list(found.values())


def check(programs, args, label):
    """Compare results of split programs with those of the first one of each."""
    results = weft.jit(functools.partial(run_all, programs))(args)
    for name, (want, *found) in zip(label, results, strict=True):
        for got in found:
            for a, b in zip(got, want, strict=True):
                assert a.aval == b.aval
                scale = np.nanmax(np.abs(np.asarray(b, np.float64)), initial=1e-30)
                np.testing.assert_allclose(
                    np.asarray(a, np.float64), np.asarray(b, np.float64), 1e-4, 1e-5 * scale,
                    err_msg=str(name),
                )  # fmt: skip


@pytest.mark.parametrize("block", range(BLOCKS))
def test_random_programs(block):
    programs, operands, count = [], [], 0
    seeds = range(block * 5, block * 5 + 5)
    for seed in seeds:
        program = make_program(seed)
        args = program.arrays(np.random.default_rng(seed), n=N)
        jaxpr, args = flatten_program(program.fun, args)
        regions = list_regions(jaxpr)
        if not ALL:
            regions = regions[seed % 3 :: 3][:3]
        splits = [split_region(jaxpr, r, min(3, r.size - 1)) for r in regions]
        programs.append((jaxpr, *splits))
        operands.append(args)
        count += len(splits)
    assert count > 5
    check(programs, operands, seeds)


def test_what_ends_a_loop():
    """Totals of all kinds, values that are the same for all slices, and a rest."""

    def fun(x):
        y = jnp.sin(x)
        step = lambda c, r: ((c[0] + 1, c[1] + r.sum(), c[2] * r), r.max())
        (n, total, z), rows = lax.scan(step, (0, 2.0, y[0]), y)
        return y.max(1), y.min(1), y.prod(1), (y > 0).any(1), y.sum((0, 1)), n, total, z, rows

    jaxpr, args = flatten_program(fun, [np.linspace(-3, 2, 55, dtype=np.float32).reshape(5, 11)])
    regions = list_regions(jaxpr)
    assert {r.size for r in regions} == {5, 11}
    check([(jaxpr, *[split_region(jaxpr, r, 4) for r in regions])], [args], ["loop"])
