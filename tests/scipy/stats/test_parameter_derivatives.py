"""First and second derivatives of scipy.stats and special in each argument, at extremes too.

The oracle is the function itself in float64: differences of its values for the first order, of its
first derivatives for the second. A derivative must be near one of several difference quotients, as
each of them is spoilt somewhere: by cancellation, by an edge of the support, by underflow.
"""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import jit, jvp
from weft.errors import MissingRule
from weft.scipy import special, stats

POSITIVE = [1e-8, 0.3, 1.0, 20.0, 300.0, 1e5]
REAL = [-1e4, -40.0, -0.5, 0.0, 1.0, 7.0, 40.0, 1e4]
SIDES = [x for x in REAL if x]  # a density of powers has a cusp at 0
UNIT = [1e-10, 1e-3, 0.2, 0.5, 0.999, 1 - 1e-9]
COUNTS = [0.0, 1.0, 2.0, 7.0, 50.0, 1000.0]
SHAPES = [0.05, 0.5, 1.0, 2.0, 3.5, 30.0, 1e3]
SCALES = [0.3, 1.1, 2.0]
RATES = [1e-3, 0.3, 0.7]
LOC = [0.0]

# name: points, grids of the other arguments (loc is 0 where a scale follows), the first argument
# that is differentiated
DISTRIBUTIONS = {
    **{
        name: ([REAL, LOC, SCALES], 0)
        for name in ["norm", "laplace", "logistic", "gumbel_l", "gumbel_r", "cauchy"]
    },
    "expon": ([POSITIVE, LOC, SCALES], 0),
    "uniform": ([UNIT, LOC, SCALES], 0),
    "gamma": ([POSITIVE, SHAPES, LOC, SCALES], 0),
    "chi2": ([POSITIVE, SHAPES, LOC, SCALES], 0),
    "beta": ([UNIT, SHAPES, SHAPES, LOC, SCALES], 0),
    "pareto": ([[1.001, 2.5, 300.0], SHAPES, LOC, SCALES], 0),
    "t": ([REAL, SHAPES, LOC, SCALES], 0),
    "truncnorm": ([REAL, [-50.0, -5.0, -0.2], [0.3, 8.0, 60.0], LOC, SCALES], 0),
    "vonmises": ([REAL[1:-1], SHAPES], 0),
    "wrapcauchy": ([REAL[1:-1], [0.01, 0.3, 0.9]], 0),
    "gennorm": ([SIDES, [0.3, 1.5, 2.0, 4.0]], 0),
    "poisson": ([COUNTS, SHAPES], 1),
    "binom": ([COUNTS, [3.0, 1000.0], RATES], 2),
    "nbinom": ([COUNTS, [0.5, 3.0, 100.0], RATES], 1),
    "geom": ([COUNTS, RATES], 1),
    "betabinom": ([COUNTS, [10.0, 1000.0], SHAPES, SHAPES], 2),
}  # fmt: skip
FUNCTIONS = {
    "log_ndtr": [REAL], "ndtr": [REAL], "erfcx": [REAL[1:]], "dawsn": [REAL],
    "beta": [SHAPES, SHAPES], "betaln": [SHAPES, SHAPES], "gammainc": [SHAPES, POSITIVE],
    "gammaincc": [SHAPES, POSITIVE], "gammaln": [SHAPES], "digamma": [SHAPES],
    "boxcox": [POSITIVE, [-3.0, 0.0, 0.5]], "xlogy": [[1e-5, 3.0], POSITIVE],
    "rel_entr": [POSITIVE, POSITIVE], "hyp1f1": [[0.5, 1.5], [0.7, 2.5], [-30.0, 0.0, 0.5, 5.0]],
    "i1": [REAL[1:-1]], "expn": [[0.0, 1.0, 2.0, 5.0], [1e-3, 0.3, 1.0, 7.0, 100.0]],
    "spence": [[1e-3, 0.5, 1.0, 2.0, 1e4]],
}  # fmt: skip
CASES = [
    *(
        (f"{name}.{kind}", i)
        for name, (grids, start) in DISTRIBUTIONS.items()
        for kind in ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "pmf", "logpmf"]
        if hasattr(getattr(stats, name), kind)
        for i in range(start, len(grids))
        if len(grids[i]) > 1 or grids[i] is LOC
    ),
    *(
        (name, i)
        for name, grids in FUNCTIONS.items()
        for i in range(name == "expn", len(grids))  # n of expn is an integer
    ),
]


def differentiate(fun, args, i, order):
    """A program of the values of an elementwise function and its derivatives in argument i."""

    def take(f):
        def with_derivative(v):
            values, slopes = jvp(f, (v,), (jnp.ones_like(v),))
            return [*values, slopes[-1]]

        return with_derivative

    out = lambda v: [fun(*args[:i], v, *args[i + 1 :])]
    for _ in range(order):
        out = take(out)
    return jit(out)


def quotients(fun, x, size):
    """Difference quotients of several functions, from both sides and with several steps."""
    found = []
    for step in (1e-3, 5e-4, 1e-5):
        h = step * size
        a, b, c, d, e = (np.array(fun(x + k * h)) for k in (-2, -1, 0, 1, 2))
        found += [(d - b) / (2 * h), (4 * d - 3 * c - e) / (2 * h), (3 * c - 4 * b + a) / (2 * h)]
    return np.array(found)


@pytest.mark.sample(one_in=32)
@pytest.mark.parametrize(("name", "i"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_derivatives_are_those_of_the_values(name, i):
    family, _, kind = name.partition(".")
    fun = getattr(getattr(stats, family), kind) if kind else getattr(special, family)
    grids = DISTRIBUTIONS[family][0] if kind else FUNCTIONS[family]
    points = np.array([*itertools.product(*grids)]).T
    which = 0 if grids[i] is LOC else i  # a location moves as the point does
    size = np.abs(points[which]) + 1e-3
    if grids[which] is POSITIVE:
        size = points[which]
    elif grids[0] is UNIT:  # the distance from the nearest edge of the support
        edge = np.minimum(points[0], 1 - points[0])
        size = edge if which == 0 else np.abs(points[i] - points[0]) if grids[i] is SCALES else size
    with weft.enable_x64(True):
        for orders in (2, 1):
            try:
                program = differentiate(fun, list(map(jnp.asarray, points)), i, orders)
                founds = np.array(program(points[i]))
                break
            except MissingRule:  # incomplete gamma and beta functions, as in JAX
                assert orders == 2 or "beta" in name
        else:
            return
        nears = quotients(program, points[i], size)
    for order in range(1, orders + 1):
        base, found, near = founds[order - 1], founds[order], nears[:, order - 1]
        noise = 1e-6 * np.abs(base) / size + 1e-290
        close = np.abs(near - found) <= 3e-3 * np.abs(found) + noise
        judged = np.isfinite(near).any(0) & np.isfinite(base)
        wrong = judged & ~(close & np.isfinite(near)).any(0)
        assert not wrong.any(), (order, points[:, wrong].T[:3], found[wrong][:3])
