"""jet of every primitive, each term is the slope of the one below.

Along a path, the derivative of order k + 1 is the slope of the derivative of order k: a central
difference, which does not use the tested rules.
"""

import numpy as np
import pytest

import weft
from tests.primitives.cases import random_array
from tests.primitives.test_conformance import CASES, assert_close, derivative_dtypes
from weft import dtypes
from weft.experimental.jet import jet
from weft.primitives.matrices import MatrixPrimitive

EPS = 1e-5
ORDER = 4
LOW = 2  # of what takes long to compile
LONG = ["lgamma", "digamma", "polygamma", "zeta", "regularized_incomplete_beta"]
FIRST = {  # a row of each primitive
    c.prim.name: c
    for c in reversed(CASES)
    if "second" not in c.skip.split() and derivative_dtypes(c)
}


@pytest.mark.sample(one_in=16)
@pytest.mark.parametrize("case", FIRST.values(), ids=lambda c: c.id)
def test_terms_are_slopes_of_the_terms_below(case):
    long = isinstance(case.prim, MatrixPrimitive) or case.prim.name in LONG
    with weft.enable_x64():
        for dtype in derivative_dtypes(case)[:1]:
            check(case, dtype, LOW if long else ORDER)


def check(case, dtype, order):
    rng = case.rng("jet")
    xs = case.arrays(dtype)
    moved = [i for i, m in enumerate(case.moved(xs)) if m]
    v, w = ([random_array(rng, xs[i].shape, xs[i].dtype, -1, 1) for i in moved] for _ in "vw")

    def along(s):
        """Value and terms at a place on the path x + v s + w s**2 / 2."""

        def fun(*ys):
            args = list(xs)
            for i, y in zip(moved, ys, strict=True):
                args[i] = y
            return [y for y in case.apply(*args) if dtypes.is_inexact(y.dtype)]

        here = [xs[i] + a * s + b * s**2 / 2 for i, a, b in zip(moved, v, w, strict=True)]
        terms = [[a + b * s, b, *[0.0] * (order - 2)] for a, b in zip(v, w, strict=True)]
        ys, found = jet(fun, here, terms)
        return [[y, *ts] for y, ts in zip(ys, found, strict=True)]

    run = weft.jit(along)
    before, here, after = run(-EPS), run(0.0), run(EPS)
    for a, y, b in zip(before, here, after, strict=True):
        for k in range(order):
            slope = (np.asarray(b[k]) - np.asarray(a[k])) / (2 * EPS)
            scale = max(1.0, *(float(np.abs(np.asarray(t)).max(initial=0)) for t in y[: k + 2]))
            assert_close(np.asarray(y[k + 1]) / scale, slope / scale, 3e-6, f"order {k + 1}", 3e-6)
