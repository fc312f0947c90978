"""Lines of operations: every row of the conformance suite, computed slice by slice.

Each line of a row is a region of its own. In slices of one and of two elements it gives the results
of the operation at once, which conformance tests compare with NumPy.
"""

from __future__ import annotations

import collections
import functools
import warnings

import numpy as np

import weft
from tests.conftest import ALL
from tests.primitives.cases import SHORT, all_cases
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Jaxpr
from weft.core.stage import stage
from weft.footprint.chunks import split_region
from weft.footprint.lines import Line, Total, find_lines
from weft.footprint.regions import Region
from weft.primitives.constant import write_consts

SIZES = (1, 2) if ALL else (2,)
TOGETHER = 24  # rows that are compiled as one program


def make_region(jaxpr: Jaxpr, line: Line) -> Region:
    """The region of the one equation of a program."""
    (eqn,) = jaxpr.eqns
    pairs = list(zip(eqn.outvars, line.results, strict=True))
    sliced = {
        (v, axis): None
        for v, axis in zip(eqn.invars, line.operands, strict=True)
        if axis is not None
    }
    sizes = [v.aval.shape[axis] for v, axis in sliced]
    sizes += [v.aval.shape[axis] for v, axis in pairs if type(axis) is int]
    axes = {v: axis for v, axis in pairs if type(axis) is int}
    totals = {v: total for v, total in pairs if isinstance(total, Total)}
    return Region(sizes[0], {eqn: line}, axes, totals, sliced, [*axes], set())


def list_programs():
    """Each row with the programs that compute it in slices, and operands."""
    seen = collections.Counter()
    names = sorted({case.prim.name for case in all_cases()})
    chosen = set(names if ALL else names[3::24])
    for case in all_cases():
        name = case.prim.name
        if name not in chosen or (seen[name] and not ALL):
            continue
        dtype = np.dtype(SHORT[case.dtypes.split()[0]])
        if dtype.itemsize == 8 and dtype.kind != "c":
            continue
        rng = case.rng("slices")
        xs = [a.array(rng, np.dtype(a.dtype or dtype)) for a in case.operands()]
        avals = [ShapedArray(x.shape, x.dtype) for x in xs]
        run = functools.partial(case.prim.apply, **case.params)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                jaxpr = write_consts(*stage(run, avals))
        except Exception:  # a row that needs enable_x64, or other parameters
            continue
        if len(jaxpr.eqns) != 1 or jaxpr.eqns[0].primitive is not case.prim:
            continue
        lines = find_lines(jaxpr.eqns[0])
        if lines:
            seen[name] += 1
        regions = [make_region(jaxpr, line) for line in lines]
        splits = [split_region(jaxpr, r, size) for r in regions if r.size > 1 for size in SIZES]
        yield case, jaxpr, splits, xs


def run_all(programs, args):
    """The results of programs, each with its arguments."""
    return [[p(*xs) for p in ps] for ps, xs in zip(programs, args, strict=True)]


def test_rows():
    rows = list(list_programs())
    assert sum(bool(splits) for _, _, splits, _ in rows) > len(rows) / 3
    for k in range(0, len(rows), TOGETHER):
        part = rows[k : k + TOGETHER]
        programs = [(jaxpr, *splits) for _, jaxpr, splits, _ in part]
        results = weft.jit(functools.partial(run_all, programs))([row[3] for row in part])
        for (case, *_), (want, *found) in zip(part, results, strict=True):
            for a, b in [pair for got in found for pair in zip(got, want, strict=True)]:
                assert (a.shape, a.dtype) == (b.shape, b.dtype), case
                wide = np.result_type(np.asarray(a), np.float32)
                np.testing.assert_allclose(
                    np.asarray(a, wide), np.asarray(b, wide), 1e-5, 1e-5, err_msg=str(case)
                )
