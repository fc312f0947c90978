"""Programs in float64: the report against mpmath, and against the program in pairs."""

import mpmath
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax

numerics = weft.explain.numerics
RNG = np.random.default_rng(0)


def check(fun, reference, *args):
    """The reported error equals the error against mpmath, to 1 % and 0.02 ulp."""
    with weft.enable_x64(True), mpmath.workdps(60):
        found = numerics(fun)(*args).results[0]
        exact = reference(*[np.vectorize(mpmath.mpf, otypes=[object])(a) for a in args])
        for got, want in zip(np.ravel(found.values), np.ravel(exact), strict=True):
            error = float(abs(mpmath.mpf(float(got)) - want))
            ulp = float(np.spacing(abs(float(want))))
            assert found.worst * ulp >= error * 0.99 - 0.02 * ulp
        errors = [
            float(abs(mpmath.mpf(float(got)) - want)) / float(np.spacing(abs(float(want))))
            for got, want in zip(np.ravel(found.values), np.ravel(exact), strict=True)
        ]
        assert found.worst == pytest.approx(max(errors), rel=0.01, abs=0.02)


def horner(x):
    return ((x - 3) * x + 3) * x - 1


def all_digits_lost(x):
    """Beyond the first order: the second difference of a cube, at a step of 1e-9."""
    return (x + 1e-9) ** 3 - 2 * x**3 + (x - 1e-9) ** 3


def exact_differences(x):
    h = mpmath.mpf(1e-9)
    return (x + h) ** 3 - 2 * x**3 + (x - h) ** 3


PROGRAMS = {
    "horner": (horner, horner, np.array([1 + 1e-5, 0.9999])),
    "all digits lost": (all_digits_lost, exact_differences, np.array([1.3, 0.7])),
    "exp of a sum": (
        lambda x: jnp.exp(jnp.sum(x)) - 1,
        lambda x: mpmath.exp(sum(x)) - 1,
        np.array([1.0, 1e-12, -1.0]),
    ),
    "sine of a product": (
        lambda x: jnp.sin(x * 1e6) / x,
        lambda x: np.array([mpmath.sin(v * mpmath.mpf(1e6)) / v for v in x]),
        np.array([0.3, 17.1]),
    ),
    "scan": (
        lambda x: lax.scan(lambda c, v: (c * 1.1 - v, None), x[0], x)[0],
        lambda x: __import__("functools").reduce(lambda c, v: c * mpmath.mpf(1.1) - v, x, x[0]),
        RNG.normal(size=9),
    ),
    "product": (
        lambda x: (x @ x.T)[0] - 1e-3,
        lambda x: x @ x.T[:, 0] - mpmath.mpf(1e-3),
        RNG.normal(size=(3, 40)),
    ),
}


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_errors_are_those_against_mpmath(name):
    check(*PROGRAMS[name])


def hilbert(n):
    return 1 / (np.arange(n)[:, None] + np.arange(n) + 1.0)


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize(
    "solve",
    [jnp.linalg.solve, lambda a, b: weft.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), b)],
)
def test_systems_are_refined(solve):
    """The error of an ill-conditioned system, which iterations in pairs find."""
    a, b = hilbert(7), np.ones(7)
    with weft.enable_x64(True), mpmath.workdps(60):
        found = numerics(solve)(a, b).results[0]
        exact = mpmath.lu_solve(mpmath.matrix(a.tolist()), mpmath.matrix(b.tolist()))
        want = np.array([float(v) for v in exact])
        off = np.abs(found.values - want) / np.spacing(np.abs(want))
        assert found.worst > 1e5
        assert found.worst == pytest.approx(off.max(), rel=0.05)


def test_underflow_of_a_float64_is_named():
    with weft.enable_x64(True):

        def fun(x):
            small = jnp.exp(-x)
            return jnp.log(small)

        (finding,) = numerics(fun)(np.float64(800.0)).findings
        assert finding.kind == "underflow"
        assert "exp" in finding.text
        assert finding.place.text == "small = jnp.exp(-x)"


def test_complex_numbers_are_followed():
    with weft.enable_x64(True):
        z = RNG.normal(size=4) + 1j * RNG.normal(size=4)
        report = numerics(lambda z: jnp.sum(z * z - z * 2.0) + jnp.abs(z[0]))(z)
        assert 0 < report.results[0].worst < 20


def test_operations_without_a_rule_are_followed_to_first_order():
    with weft.enable_x64(True), mpmath.workdps(40):
        fun = lambda x: weft.scipy.special.gammaln(x * 1.1 - 1e8)
        x = np.float64(1e8 / 1.1 + 3.3)
        found = numerics(fun)(x).results[0]
        exact = mpmath.loggamma(mpmath.mpf(x) * mpmath.mpf(1.1) - mpmath.mpf(1e8))
        off = abs(float(found.values[0]) - float(exact)) / np.spacing(abs(float(exact)))
        assert found.worst == pytest.approx(off, rel=0.01)
