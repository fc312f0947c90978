"""Special functions of float64 over their whole ranges, against mpmath: special_ranges.py."""

import mpmath as mp
import numpy as np
import pytest

import weft
from tests.scipy.special_ranges import FUNCTIONS

COUNT = 60
LIMITS = np.finfo(np.float64)


def find_exact(exact, point):
    """Return the value at a point, or None where it is no normal number, or mpmath has none."""
    try:
        want = mp.re(exact(*map(mp.mpf, point)))
    except (ZeroDivisionError, ValueError, OverflowError, mp.libmp.NoConvergence):
        return None
    usual = mp.isfinite(want) and float(LIMITS.tiny) * 4 < abs(want) < float(LIMITS.max) / 2
    return want if usual else None


@pytest.mark.sample(one_in=20)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_units_over_whole_ranges(name, seed=0):
    fun, exact, bound, *draws = FUNCTIONS[name]
    rng = np.random.default_rng(seed)
    points = [draw(rng, COUNT) for draw in draws]
    with weft.config.scope(enable_x64=True):
        found = np.asarray(weft.jit(fun)(*points))
    with mp.workdps(50):
        for got, *point in zip(found, *points, strict=True):
            want = find_exact(exact, point)
            if want is not None:
                unit = mp.mpf(2) ** (mp.floor(mp.log(abs(want), 2)) - LIMITS.nmant)
                assert abs(mp.mpf(float(got)) - want) <= bound * unit, (point, got, float(want))
