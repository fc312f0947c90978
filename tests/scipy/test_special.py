"""scipy.special: accuracy over the whole range, edges, derivatives, dtypes, errors."""

import inspect

import numpy as np
import pytest
import scipy.special as reference

import weft
import weft.numpy as jnp
from tests.conftest import ALL
from tests.scipy import special_accuracy
from weft import grad, jacfwd, jit
from weft.errors import DtypeError, ShapeError
from weft.scipy import special


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("dtype", special_accuracy.DTYPES)
@pytest.mark.parametrize("name", special_accuracy.GOLDEN)
def test_accuracy_is_as_documented(name, dtype):
    bound = special_accuracy.documented()[name][dtype]
    # another processor, or version of XLA, may round a step in another way
    assert special_accuracy.units(name, dtype).max() <= 1.2 * bound + 1


def test_the_documented_table_is_that_of_the_golden_functions():
    text = special_accuracy.DOC.read_text()
    assert all(f"| {name} |" in text for name in special_accuracy.GOLDEN)


# --- edges ----------------------------------------------------------------------------------

EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 2, -2, 0.5, -1.5, 1e30, -1e30])
UNARY = [
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "factorial",
    "gamma",
    "gammaln",
    "gammasgn",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log_ndtr",
    "loggamma",
    "logit",
    "ndtr",
    "ndtri",
    "spence",
    "fresnel",
    "sici",
    "zeta",
]
BINARY = [
    "boxcox",
    "boxcox1p",
    "gammainc",
    "gammaincc",
    "kl_div",
    "owens_t",
    "rel_entr",
    "xlog1py",
    "xlogy",
    "beta",
    "zeta",
]
# SciPy's value is not the function's limit, and weft's is.
OTHERWISE = {
    "gammaln": lambda x: x == -np.inf,  # inf, as JAX has it
    "spence": lambda x: x == np.inf,
    "zeta": lambda x, q=1.0: np.isnan(x + q) | (x == 1) | (x > 1e20) | (x < -1e20),
    # infinite limits; SciPy returns NaN there
    "i0": np.isinf,
    "i1": np.isinf,
    # NaN of a NaN; of huge negative numbers the limit over whole ones, or none; no signs of inf
    "beta": lambda a, b: np.isnan(a + b) | (np.maximum(abs(a), abs(b)) > 1e20) | (b == -1),
}


@pytest.mark.parametrize(("name", "arity"), [(n, 1) for n in UNARY] + [(n, 2) for n in BINARY])
def test_edges_are_those_of_scipy(name, arity):
    xs = [EDGES] if arity == 1 else [v.ravel() for v in np.meshgrid(EDGES, EDGES)]
    with weft.enable_x64(True), np.errstate(all="ignore"):
        got = special_accuracy.values(name, *xs)
        want = getattr(reference, name)(*xs)
    if not isinstance(got, list):
        got, want = [got], [want]
    with np.errstate(all="ignore"):
        skip = OTHERWISE.get(name, lambda *xs: np.zeros(xs[0].shape, bool))(*xs)
    for g, w in zip(got, want, strict=True):
        same = np.isclose(np.asarray(g), w, rtol=1e-9, atol=1e-290, equal_nan=True) | skip
        assert same.all(), [tuple(float(x[i]) for x in xs) for i in np.flatnonzero(~same)]


def test_hypergeometric_functions_over_their_ranges():
    """At every kind of argument that the series are chosen by, near 1 among them."""
    z = np.array([-30, -3, -1.2, -0.95, -0.4, 0, 0.3, 0.7, 0.89, 0.91, 0.95, 0.99, 1 - 1e-6])
    rows = [(0.5, 0.7, 1.4), (2.5, 0.3, 1.2), (1.4, 3.6, 7.3), (-2.0, 1.5, 0.3), (-1.7, 0.4, 2.2)]
    rows += [(1.3, 0.0, 2.2), (0.0, 0.4, 1.2), (0.6, -1.0, 0.8)]
    a, b, c = (np.array(x)[:, None] for x in zip(*rows, strict=True))
    with weft.enable_x64(True):
        got = special.hyp2f1(a, b, c, z)
        np.testing.assert_allclose(got, reference.hyp2f1(a, b, c, z), rtol=1e-9)
        assert np.isinf(special.hyp1f1(1.5, np.array([0.0, -1, -2]), 0.3)).all()
        got = special.hyp1f1(a, c, 4 * z)
        np.testing.assert_allclose(got, reference.hyp1f1(a, c, 4 * z), rtol=1e-9, atol=1e-290)


def test_hypergeometric_sums_that_end_before_a_pole():
    """DLMF 13.2.4, 15.2.5. SciPy has most of them, and inf or another limit for the others."""
    z = np.array([-30, -3, -1.2, -0.95, -0.4, 0, 0.3, 0.7, 0.89, 0.91, 1, 1.5, 6])
    rows = [(-2.0, 1.5, -2.0), (-2.0, 1.5, -4.0), (1.5, -3.0, -3.0), (0.0, 0.4, -1.0)]
    rows += [(-1.0, 0.4, -1.0), (-2.0, -4.0, -3.0), (-3.0, 1.5, -2.0), (-2.0, 0.5, 0.0)]
    a, b, c = (np.array(x)[:, None] for x in zip(*rows, strict=True))

    def add_terms(tops, bottom):
        if not any(bottom <= v <= 0 and v == int(v) for v in tops):
            return np.where(z == 0, 1.0 if len(tops) == 2 else np.inf, np.inf)
        count = int(min(-v for v in tops if v <= 0 and v == int(v)))
        terms = [np.prod([reference.poch(v, k) for v in tops]) * z**k for k in range(count + 1)]
        sizes = [reference.poch(bottom, k) * reference.factorial(k) for k in range(count + 1)]
        return sum(t / s for t, s in zip(terms, sizes, strict=True)) + np.zeros(z.shape)

    with weft.enable_x64(True):
        got = special.hyp2f1(a, b, c, z)
        np.testing.assert_allclose(got, [add_terms(r[:2], r[2]) for r in rows], rtol=1e-12)
        got = special.hyp1f1(a, c, z)
        np.testing.assert_allclose(got, [add_terms(r[:1], r[2]) for r in rows], rtol=1e-12)
        assert weft.jit(weft.grad(lambda x: special.hyp1f1(-2.0, -2.0, x)))(0.25) == 1.25


def test_incomplete_beta_of_vast_parameters():
    rows = [(1, 1e30, 1e-30), (0.5, 1e30, 1e-29), (1e30, 1e30, 0.5), (1e30, 2, 0.999)]
    rows += [(5, 1e10, 1e-9), (100, 1e17, 1.1e-15), (1e6, 1e18, 1.001e-12), (1e7, 2e7, 0.33344)]
    rows += [(1e17, 100, 1 - 1.1e-15), (3e11, 1e11, 0.750001), (1e30, 1e-3, 0.5), (1e300, 2, 0.5)]
    a, b, x = np.array(rows).T
    with weft.enable_x64(True):
        np.testing.assert_allclose(special.betainc(a, b, x), reference.betainc(a, b, x), 1e-9)
    a, b, x = np.float32(rows[:8]).T
    want = reference.betainc(*np.float64([a, b, x]))
    np.testing.assert_allclose(special.betainc(a, b, x), want, 1e-6)


SIDES = [-2.0, -1.5, -1, 0, 0.5, 1, 2.5, 3]  # poles, and where series end, among them
GRIDS = {
    "betainc": [[0, 0.5, 1, 2, np.inf, -1, np.nan]] * 2 + [[0, 0.3, 0.5, 1, -0.1, 1.1, np.nan]],
    "expn": [[0, 1, 2, 3, 50], [np.nan, 0, 0.5, 1, 2, 30, 700, np.inf]],
    "hyp1f1": [SIDES, [0.5, 1, 2.5, 3], [-500, -120, -30, -2, -0.5, 0, 0.3, 1, 20, 120, 500]],
    "hyp2f1": [SIDES, SIDES, [0.5, 1, 2.5, 3], [-2, -0.5, 0, 0.3, 0.95, 1]],
    "i0": [[-705, -300, 50, 600, 705]],
    "i1": [[-705, -300, 50, 600, 705]],
    "gammainc": [[1e-3, 0.5, 1, 7, 150], [0, 1e-3, 0.5, 1, 6, 7, 8, 140, 150, 170, 1e4]],
    "gammaincc": [[1e-3, 0.5, 1, 7, 150], [0, 1e-3, 0.5, 1, 6, 7, 8, 140, 150, 170, 1e4]],
}


@pytest.mark.parametrize("name", GRIDS)
def test_every_combination_of_arguments(name):
    xs = [v.ravel() for v in np.meshgrid(*map(np.float64, GRIDS[name]))]
    with weft.enable_x64(True), np.errstate(all="ignore"):
        got, want = special_accuracy.values(name, *xs), getattr(reference, name)(*xs)
    close = np.isclose(
        got, want, rtol=1e-9, atol=1e-15 if name == "hyp2f1" else 1e-300, equal_nan=True
    )
    assert close.all(), [[x[i] for x in [*xs, got, want]] for i in np.flatnonzero(~close)]


def test_bernoulli_numbers_beyond_the_largest_float():
    with np.errstate(over="ignore"):
        want = reference.bernoulli(310).astype(np.float32)
    np.testing.assert_allclose(special.bernoulli(310), want, rtol=1e-6)


def test_large_parameters_of_incomplete_gamma():
    a = np.array([1e3, 1e5, 1e7, 1e9])
    with weft.enable_x64(True):
        for shift in (-3.0, 0.0, 2.0):
            x = a + shift * np.sqrt(a)
            for name in ("gammainc", "gammaincc"):
                got = np.asarray(getattr(special, name)(a, x))
                np.testing.assert_allclose(got, getattr(reference, name)(a, x), rtol=1e-12)


# --- derivatives ----------------------------------------------------------------------------

NEAR_ZERO = """
dawsn digamma entr erf erfc erfcinv erfcx erfinv exp1 expi expit factorial gamma gammaln i0 i0e i1
i1e log_ndtr loggamma logit ndtr ndtri spence
"""
BEYOND_ONE = "digamma erfcx exp1 expi gamma i1e log_ndtr spence"
NEGATIVE = "erf erfcx dawsn expi gamma gammaln digamma log_ndtr"
OF_TWO = "boxcox boxcox1p kl_div owens_t rel_entr xlog1py xlogy"
OF_GAMMA = "beta betaln poch"  # by gammaln, whose second derivative is tested; slow to compile
DERIVATIVES = [  # name, arguments, which of them move, how often it is differentiated
    *[(n, (0.3,), (0,), 2) for n in NEAR_ZERO.split()],
    *[(n, (1.7,), (0,), 2) for n in BEYOND_ONE.split()],
    *[(n, (-1.3,), (0,), 2) for n in NEGATIVE.split()],
    *[(n, (1.4, 0.6), (0, 1), 2) for n in OF_TWO.split()],
    *[(n, (1.4, 0.6), (0, 1), 2 if ALL else 1) for n in OF_GAMMA.split()],
    ("comb", (5.3, 2.2), (0, 1), 2 if ALL else 1),
    ("boxcox", (1.4, 0.0), (0,), 2),
    ("gammainc", (1.4, 0.6), (0, 1), 1),
    ("gammaincc", (1.4, 2.6), (0, 1), 1),
    ("betainc", (1.4, 2.6, 0.3), (2,), 2),
    ("expn", (3.0, 0.7), (1,), 2),
    ("zeta", (3.5, 0.7), (0, 1), 2),
    ("hyp1f1", (1.4, 2.6, 0.8), (0, 1, 2), 1),
    ("hyp1f1", (1.4, 2.6, -0.8), (0, 1, 2), 1),
    ("hyp2f1", (1.4, 0.6, 2.2, 0.3), (3,), 2),
]


def slope(fun, xs, k, h=1e-4):
    """The derivative in argument k, by differences of order four."""
    at = lambda d: np.asarray(fun(*[x + d * h if i == k else x for i, x in enumerate(xs)]))
    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)


@pytest.mark.sample(one_in=24)  # of first derivatives more points are tested below
@pytest.mark.parametrize(("name", "xs", "moving", "times"), DERIVATIVES)
def test_derivatives(name, xs, moving, times):
    """One program for each argument: most of the time XLA compiles."""
    fun, h = getattr(special, name), 1e-4
    for k in moving:
        alone = lambda x, k=k: fun(*xs[:k], x, *xs[k + 1 :])

        def all_at(points, f=alone):
            values, firsts = weft.vmap(weft.value_and_grad(f))(points)
            forward = weft.jvp(f, (points[2],), (1.0,))[1]
            return values, firsts, forward, weft.grad(weft.grad(f))(points[2]) if times == 2 else 0

        with weft.enable_x64(True):
            points = xs[k] + h * np.arange(-2.0, 3.0)
            values, firsts, forward, second = map(np.asarray, weft.jit(all_at)(points))
        slope_of = lambda y: (8 * (y[3] - y[1]) - (y[4] - y[0])) / (12 * h)
        np.testing.assert_allclose(firsts[2], slope_of(values), 1e-8, 1e-10)
        np.testing.assert_allclose(forward, firsts[2], 1e-13)
        if times == 2:
            np.testing.assert_allclose(second, slope_of(firsts), 1e-7, 1e-9)


UNIT = np.linspace(0.02, 0.98, 25)
LINE = np.concatenate([np.linspace(-4.73, -0.02, 20), np.geomspace(0.02, 30, 30)])
POINTS = {  # of functions that are not defined, or grow too fast, on the whole of LINE
    "erfcinv": 2 * UNIT, "erfinv": 2 * UNIT - 1, "logit": UNIT, "ndtri": UNIT,
    "entr": LINE[20:], "exp1": LINE[20:], "log1mexp": LINE[20:], "spence": LINE[20:],
    "loggamma": LINE[20:], "factorial": LINE[18:], "erfcx": LINE[LINE > -4],
}  # fmt: skip


RANGED = dict.fromkeys(f"{NEAR_ZERO} {BEYOND_ONE} {NEGATIVE} {OF_TWO} log1mexp".split())


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("name", RANGED)
def test_derivatives_over_the_range(name):
    """In each argument, where a difference can tell: of numbers that are not too large."""
    fun = weft.nn.log1mexp if name == "log1mexp" else getattr(special, name)
    xs = (POINTS.get(name, LINE),)
    if name in OF_TWO.split():
        xs = [x.ravel() for x in np.meshgrid([0.03, 0.4, 1.02, 2.3, 7.1], [-0.04, 0.2, 1.1, 3.4])]
        xs = xs[::-1] if name in ("xlogy", "xlog1py", "owens_t") else xs
        xs = [*xs] if name not in ("kl_div", "rel_entr") else [xs[0], np.abs(xs[1])]
    h = 1e-5
    with weft.enable_x64(True):
        for k in range(len(xs)):
            at = lambda d, k=k: fun(*[x + d * h if i == k else x for i, x in enumerate(xs)])
            dot, *around = weft.jit(
                lambda k=k, at=at: (weft.jvp(lambda d: at(d / h), (0.0,), (1.0,))[1], at(-1), at(1))
            )()
            ahead, behind = np.asarray(around[1]), np.asarray(around[0])
            want = (ahead - behind) / (2 * h)
            size = np.maximum(np.abs(want), np.maximum(np.abs(ahead), 1))
            assert (np.abs(np.asarray(dot) - want) / size)[np.abs(want) < 1e4].max() < 1e-5
            assert np.isfinite(want).all() == np.isfinite(dot).all()


def test_derivatives_of_pairs_and_orders():
    with weft.enable_x64(True):
        for fun in (
            lambda x: special.sici(x)[0],
            lambda x: special.sici(x)[1],
            lambda x: special.fresnel(x)[0],
            lambda x: special.fresnel(x)[1],
            lambda x: special.bessel_jn(x, v=2)[2],
            lambda x: special.polygamma(2, x),
            lambda x: special.multigammaln(x + 2, 3),
        ):
            np.testing.assert_allclose(weft.grad(fun)(1.2), slope(fun, (1.2,), 0), 1e-8)


@pytest.mark.parametrize(
    ("name", "xs", "want"),
    [
        ("xlogy", (0.0, 2.0), (np.log(2), 0.0)),
        ("xlog1py", (0.0, 0.0), (0.0, 0.0)),
        ("spence", (1.0,), (-1.0,)),
        ("i1", (0.0,), (0.5,)),
        ("i1e", (0.0,), (0.5,)),
        ("log_ndtr", (-50.0,), (50.019968,)),
        ("log_ndtr", (50.0,), (0.0,)),
        ("ndtr", (0.0,), (0.3989423,)),
        ("logit", (0.5,), (4.0,)),
        ("boxcox", (2.0, 0.0), (0.5, np.log(2) ** 2 / 2)),
        ("kl_div", (1.0, 1.0), (0.0, 0.0)),
        ("kl_div", (0.0, 0.0), (0.0, 0.0)),
        ("kl_div", (0.0, 2.0), (-np.inf, 1.0)),
        ("rel_entr", (0.0, 0.0), (0.0, 0.0)),
    ],
)
def test_derivatives_at_edges(name, xs, want):
    got = weft.grad(getattr(special, name), tuple(range(len(xs))))(*xs)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


@pytest.mark.slow  # compiles for 10 seconds
def test_derivatives_of_poch_at_its_zeros():
    """At whole z of 0 and below; a whole m gives polynomials in z."""
    cases = {  # (z, m): the first three derivatives in z
        (0.0, 1.0): (1, 0, 0),
        (0.0, 2.0): (1, 2, 0),
        (-1.0, 3.0): (-1, 0, 6),
        (-3.0, 2.0): (-5, 2, 0),  # z + m is a pole of gamma too
        (-3.0, 3.0): (11, -12, 6),
        (-2.0, 0.5): (4.7265436024209375, -2.0761597484472145, 92.62913166513083),  # mpmath
    }

    def slopes(z, m):
        funs = [lambda z: special.poch(z, m)]
        for _ in range(3):
            funs.append(lambda z, f=funs[-1]: weft.jvp(f, (z,), (1.0,))[1])
        return [f(z) for f in funs[1:]]

    with weft.enable_x64(True):
        got = weft.jit(weft.vmap(slopes))(*np.array([*cases]).T)
    np.testing.assert_allclose(np.array(got).T, [*cases.values()], 1e-9, 1e-13)


# --- transformations, dtypes ----------------------------------------------------------------


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize(
    ("name", "arity"), [("gammainc", 2), ("betainc", 3), ("expi", 1), ("poch", 2), ("logit", 1)]
)
def test_vmap_jit_and_broadcasting(name, arity):
    fun = getattr(special, name)
    xs = [np.linspace(0.1, 0.9, 3, dtype=np.float32) + 0.02 * i for i in range(arity)]
    want = [fun(*[x[i] for x in xs]) for i in range(3)]
    np.testing.assert_allclose(weft.vmap(fun)(*xs), want, rtol=1e-6)
    np.testing.assert_allclose(weft.jit(fun)(*xs), want, rtol=1e-6)
    spread = fun(*[x[:, None] if i == 0 else x[:, None].T for i, x in enumerate(xs)])
    assert spread.shape == ((3, 1) if arity == 1 else (3, 3))


NAMES = [
    n
    for n in dir(special)
    if n[0] != "_"
    and n
    not in ("bernoulli", "bessel_jn", "lpmn", "lpmn_values", "sph_harm_y", "wofz", "polygamma")
    and inspect.isfunction(getattr(special, n))
    and n != "import_lazily"
]
STRONG = [
    "beta",
    "dawsn",
    "erfcx",
    "exp1",
    "expi",
    "expn",
    "fresnel",
    "gamma",
    "gammasgn",
    "hyp1f1",
    "hyp2f1",
    "log_ndtr",
    "log_softmax",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "owens_t",
    "poch",
    "sici",
    "softmax",
    "spence",
]


@pytest.mark.parametrize("name", NAMES)
def test_dtypes(name):
    fun = getattr(special, name)
    parameters = inspect.signature(fun).parameters.values()
    count = sum(p.default is p.empty for p in parameters)

    def result(x):
        of_one = lambda x: fun(*([x] * count if name != "multigammaln" else [x, 1]))
        out = weft.eval_shape(of_one, x)
        return out[0] if isinstance(out, tuple) else out

    assert result(0.5).dtype == np.float32
    assert result(0.5).weak_type == (name not in STRONG)
    assert result(np.int32(1)).dtype == np.float32
    assert result(jnp.float16(0.5)).dtype == np.float16
    assert result(jnp.bfloat16(0.5)).dtype == jnp.bfloat16
    assert 0 in result(np.zeros((0, 2), np.float32)).shape or name == "logsumexp"


def test_complex_functions():
    rng = np.random.RandomState(0)
    z = rng.uniform(-6, 6, 200) + 1j * rng.uniform(-6, 6, 200)
    z = np.concatenate([z, z / 100, rng.uniform(-6, 6, 50) + 0j])
    for name in ("wofz", "erfcx", "gamma", "loggamma"):
        fun = getattr(special, name)
        with weft.enable_x64(True):
            want = getattr(reference, name)(z)
            np.testing.assert_allclose(fun(z), want, rtol=1e-11)
        low = z.astype(np.complex64)
        assert fun(low).dtype == np.complex64
        np.testing.assert_allclose(fun(low), getattr(reference, name)(low.astype(complex)), 1e-6)
    with weft.enable_x64(True):
        for name in ("wofz", "gamma", "loggamma"):
            fun, at, h = getattr(special, name), 1.2 + 0.4j, 1e-5
            want = (fun(at + h) - fun(at - h)) / (2 * h)
            np.testing.assert_allclose(weft.grad(fun, holomorphic=True)(at), want, 1e-8)
    np.testing.assert_allclose(special.xlogy(0j, 0j), 0)
    np.testing.assert_allclose(special.logit(0.2 + 0.1j), np.log((0.2 + 0.1j) / (0.8 - 0.1j)), 1e-6)


# --- tables of functions --------------------------------------------------------------------


def test_bernoulli_numbers():
    np.testing.assert_allclose(special.bernoulli(30), reference.bernoulli(30), 1e-6)
    assert special.bernoulli(0).tolist() == [1.0]
    with weft.enable_x64(True):
        got = np.asarray(special.bernoulli(260))
    assert got[258] > 1e300 and np.isinf(got[260]) and got[257] == 0
    np.testing.assert_allclose(got[:60], reference.bernoulli(59), 1e-10)  # SciPy rounds


def test_counting():
    assert special.comb(52, 5) == 2598960
    assert special.comb(3, 5) == 0 and special.comb(3, -1) == 0
    assert special.comb(5, 3, repetition=True) == 35
    assert special.comb(0, 0, repetition=True) == 1
    np.testing.assert_array_equal(special.factorial(np.arange(-1, 5)), [0, 1, 1, 2, 6, 24])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: special.gammainc(1j, 1), DtypeError, r"gammainc: operands must be real; got c64"),
        (
            lambda: special.polygamma(1.5, 2.0),
            DtypeError,
            r"polygamma: n must be integers; got f32",
        ),
        (lambda: special.factorial(3, exact=True), NotImplementedError, r"exact must be False"),
        (
            lambda: special.log_ndtr(1.0, 31),
            ValueError,
            r"series_order must be from 0 to 30; got 31",
        ),
        (
            lambda: special.log_ndtr(1.0, 1.5),
            TypeError,
            r"series_order must be an integer; got 1.5",
        ),
        (lambda: special.bernoulli(-1), ValueError, r"bernoulli: n must not be negative; got -1"),
        (lambda: special.multigammaln(3.0, 1.5), TypeError, r"d must be a Python integer; got 1.5"),
        (lambda: special.bessel_jn(1.0, v=-1), ValueError, r"v must not be negative; got -1"),
        (lambda: special.beta(np.ones(2), np.ones(3)), ShapeError, r"beta: shapes must broadcast"),
        (
            lambda: special.sph_harm_y(1, 0, 0.1, 0.2, 1),
            NotImplementedError,
            r"diff_n must be None",
        ),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_orders_of_more_terms_than_a_program_holds_are_errors():
    assert special.multigammaln(9.0, 3.0) == special.multigammaln(9.0, 3)
    for fun in (special.bernoulli, lambda n: special.multigammaln(9.0, n)):
        with pytest.raises(ValueError, match="must"):
            fun(10**19)
    with pytest.raises(ValueError, match="bessel_jn: v and n_iter must be at most"):
        special.bessel_jn(jnp.ones(2), v=10**19)


def test_confluent_functions_of_large_arguments():
    a, b, x = np.meshgrid([0.3, 1.5, -2.0, 4.2], [0.7, 2.5, 9.0], [-300, -60, -12.0, 20, 60, 300])
    with weft.enable_x64(True):
        got = np.asarray(special.hyp1f1(a, b, x))
    np.testing.assert_allclose(got, reference.hyp1f1(a, b, x), rtol=1e-9)


def test_logit_takes_one_logarithm():
    text = weft.jit(special.logit).lower(np.full(8, 0.5, np.float32)).as_text()
    assert text.count('"stablehlo.log') == 1 and text.count('"stablehlo.divide"') == 2


# function, the point of a removable singularity, the derivatives of even orders there
SINGULARITIES = {
    "sinc": (jnp.sinc, 0.0, [-(np.pi**2) / 3, np.pi**4 / 5, -(np.pi**6) / 7]),
    "slope of Si": (grad(lambda x: special.sici(x)[0]), 0.0, [-1 / 3, 1 / 5]),
    "i0": (special.i0, 0.0, [1 / 2, 3 / 8]),
    "slope of i1": (grad(special.i1), 0.0, [3 / 8, 5 / 16]),
    "spence": (special.spence, 1.0, [1 / 2, 3 / 2]),
}


def test_derivatives_at_removable_singularities():
    def differentiate(fun, point, count):
        out = []
        for _ in range(count):
            fun = jacfwd(grad(fun))
            out.append(fun(point))
        return out

    rows = SINGULARITIES.items()
    found = jit(lambda: {k: differentiate(f, x, len(want)) for k, (f, x, want) in rows})()
    for name, (_, _, want) in rows:
        np.testing.assert_allclose(found[name], want, rtol=2e-4, err_msg=name)
