"""Each rewrite helps where its formula fails, and is found where the formula is written."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.settings import ALL
from weft.core.aval import typeof
from weft.core.stage import stage
from weft.explain.numerics.remedies import REMEDIES, find_remedies

F32 = np.float32
SMALL = np.array([1e-7, 3e-6], F32)
# Operands at which the formulas fail, by the code of the rewrite.
HARD = {
    "jnp.log1p(x)": [SMALL],
    "jnp.expm1(x)": [SMALL],
    "weft.scipy.special.logsumexp(x)": [np.array([200.0, 201.0, 3.0, 4.0, 5.0], F32)],
    "weft.nn.log_softmax(x)": [np.array([-120.0, 1.0, 3.0, 4.0, 5.0], F32)],
    "weft.nn.softmax(x)": [np.array([100.0, 101.0, 90.0, 95.0, 99.0], F32)],
    "jnp.hypot(x, y)": [np.array([3e30], F32), np.array([4e30], F32)],
    "m = jnp.max(jnp.abs(x)); m * jnp.sqrt(jnp.sum((x / m) ** 2))": [np.full(5, 1e-25, F32)],
    "jnp.var(x), or jnp.mean((x - jnp.mean(x)) ** 2)": [
        np.arange(5, dtype=F32) * F32(1.1) + F32(3000.3)
    ],
    "jnp.mean((x - jnp.mean(x)) * (y - jnp.mean(y)))": [
        np.arange(5, dtype=F32) + 3000.3,
        np.arange(5, dtype=F32) ** 2 + 3000.3,
    ],
    "jnp.sum((x - y) ** 2)": [np.arange(5, dtype=F32) + 300.3, np.arange(5, dtype=F32) + 300.4],
    "2 * jnp.sin(x / 2) ** 2": [np.array([1e-4, 3e-4], F32)],
    "(x - y) * (x + y)": [np.array([1000.3], F32), np.array([1000.2], F32)],
    "(x - y) / (jnp.sqrt(x) + jnp.sqrt(y))": [np.array([1e6 + 1], F32), np.array([1e6], F32)],
    "1 / (jnp.sqrt(x + 1) + jnp.sqrt(x))": [np.array([1e6], F32)],
    "jnp.exp(y * jnp.log1p(x))": [SMALL, np.array([1e7, 2e5], F32)],
    "jnp.sinh(x)": [SMALL],
    "2 * jnp.sinh(x)": [SMALL],
    "2 * jnp.arctanh(x)": [SMALL],
    "1 / (x + jnp.sqrt(x * x - 1))": [np.array([1e3, 3e3], F32)],
    "1 / (x + jnp.sqrt(x * x + 1))": [np.array([1e3, 3e3], F32)],
    "weft.nn.softplus(x)": [np.array([100.0, -20.0], F32)],
    "weft.nn.log_sigmoid(x)": [np.array([20.0, -100.0], F32)],
    "weft.nn.sigmoid(-x)": [np.array([20.0, 25.0], F32)],
    "2 / (jnp.exp(2 * x) + 1)": [np.array([6.0, 8.0], F32)],
    "weft.scipy.special.erfc(x)": [np.array([4.5], F32)],
    "jnp.sum(jnp.log(x))": [np.full(5, 1e-12, F32)],
    "2 * c / (-b - jnp.sqrt(b * b - 4 * a * c))": [F32(1.0), F32(2e4), F32(1.0)],
}
ROWS = [(r, f) for r in REMEDIES for f in r.formulas]


def worst(values, exact):
    with np.errstate(all="ignore"):
        off = np.abs(np.asarray(values, np.float64) - exact) / np.abs(exact)
    return np.nan_to_num(off, nan=np.inf, posinf=np.inf).max()


def test_each_rewrite_has_operands():
    assert {r.code for r in REMEDIES} == set(HARD)


def compute_exactly(remedy, xs, axis):
    with weft.enable_x64(True):
        return np.asarray(remedy.rewrite(*[jnp.asarray(x, np.float64) for x in xs], **axis))


@pytest.mark.parametrize("remedy, formula", ROWS if ALL else ROWS[::5], ids=lambda x: "")
def test_rewrites_help(remedy, formula):
    xs = HARD[remedy.code]
    axis = {"axis": (0,)} if remedy.sums else {}
    exact = compute_exactly(remedy, xs, axis)
    before = worst(formula(*map(jnp.asarray, xs)), exact)
    after = worst(remedy.rewrite(*map(jnp.asarray, xs), **axis), exact)
    assert after < 1e-5
    assert after * 8 < before


@pytest.mark.parametrize("remedy, formula", ROWS if ALL else ROWS[::3], ids=lambda x: "")
def test_formulas_are_found(remedy, formula):
    aval = typeof(jnp.ones(5 if remedy.sums else ()))
    count = formula.__code__.co_argcount
    jaxpr, _ = stage(lambda *xs: [formula(*xs) * 2], [aval] * count)
    found = [m.code for matches in find_remedies(jaxpr).values() for m in matches]
    assert remedy.code in found


def test_formulas_are_found_along_axes_and_across_broadcasts():
    def fun(x):
        e = jnp.exp(x)
        return jnp.log(e / jnp.sum(e, axis=1, keepdims=True))

    jaxpr, _ = stage(lambda x: [fun(x)], [typeof(jnp.ones((3, 4)))])
    found = [m for matches in find_remedies(jaxpr).values() for m in matches]
    assert {"weft.nn.log_softmax(x)": (1,)}.items() <= {m.code: m.axes for m in found}.items()


def test_other_formulas_are_not():
    jaxpr, _ = stage(lambda x: [jnp.log(2 + x) + jnp.exp(x) - 2], [typeof(jnp.ones(3))])
    assert not find_remedies(jaxpr)


def test_formulas_of_complex_numbers_have_no_rewrite():
    z = jnp.complex64(1e4 + 1e-2j)
    (finding,) = weft.explain.numerics(lambda z: z - jnp.sqrt(z * z - (1 + 0j)))(z).findings
    assert finding.kind == "cancellation" and not finding.remedy
