"""Distributions of numbers against SciPy: values, tails, edges, dtypes, derivatives, errors."""

import functools
import importlib
import inspect
import pickle
from inspect import ismodule

import numpy as np
import pytest
import scipy.stats
from mpmath import mp

import weft
import weft.numpy as jnp
from weft import enable_x64, grad, jit, vmap
from weft.errors import DtypeError, ShapeError
from weft.scipy import stats

INF, NAN = np.inf, np.nan
REAL = [-1e4, -40.0, -9.0, -3.0, -1.0, -0.25, -1e-6, 0.0, 1e-6, 0.25, 1.0, 3.0, 9.0, 40.0, 1e4]
POSITIVE = [-1.0, 1e-30, 1e-6, 0.1, 0.5, 1.0, 2.0, 7.5, 12.0, 40.0, 99.0, 101.0, 1e3, 1e5]
UNIT = [-0.5, 1e-30, 1e-6, 0.01, 0.3, 0.5, 0.75, 0.99, 1 - 2.0**-20, 1.5]
LEVELS = [0.0, 1e-30, 1e-6, 0.01, 0.25, 0.3, 0.5, 0.75, 0.9, 1 - 2.0**-20, 1.0, -0.5, 1.5]
COUNTS = [-1.0, 0.0, 1.0, 2.0, 3.0, 9.0, 10.0, 11.0, 50.0, 99.0, 100.0, 2.5]
LARGE = [9.5e5, 999e3, 1e6, 1001e3, 1.1e6]
SMALL_A = [0.01, 0.5, 1.0, 2.5, 9.0, 30.0]

# name: (points, grids of the shape parameters); quantiles take LEVELS.
CASES = {
    "norm": (REAL,),
    "cauchy": (REAL,),
    "laplace": (REAL[1:-1],),
    "logistic": (REAL,),
    "gumbel_l": ([-40.0, -9.0, -1.0, -1e-6, 0.0, 0.25, 1.0, 3.0],),
    "gumbel_r": ([40.0, 9.0, 1.0, 1e-6, 0.0, -0.25, -1.0, -3.0],),
    "expon": (POSITIVE,),
    "uniform": (UNIT,),
    "pareto": ([0.5, 1 + 2.0**-20, 1.5, 3.0, 100.0, 1e8], [0.1, 1.0, 3.0]),
    "gamma": (POSITIVE, SMALL_A),
    "chi2": (POSITIVE, [0.5, 1.0, 2.0, 7.0, 60.0]),
    "beta": (UNIT, [0.1, 0.5, 1.0, 2.5, 20.0], [0.1, 1.0, 3.5, 15.0]),
    "t": (REAL, [0.1, 1.0, 2.5, 30.0, 1e6, INF]),
    "gennorm": ([-9.0, -1.0, -1e-3, 0.0, 0.5, 2.0, 7.0], [0.5, 1.0, 1.5, 2.0]),
    "vonmises": ([-3.0, -1.0, 0.0, 1e-3, 2.0], [0.0, 0.01, 1.0, 30.0, 1e4]),
    "wrapcauchy": ([-1.0, 0.0, 1e-3, 2.0, 6.0, 7.0], [0.01, 0.5, 0.9]),
    "truncnorm": ([-2.5, -1.0, 0.25, 3.0, 3.5, 9.0], [-INF, -2.0, -1.0], [0.5, 3.25, INF]),
    "bernoulli": ([-1.0, 0.0, 1.0, 2.0], [0.0, 1e-6, 0.3, 1.0]),
    "binom": (COUNTS, [0.0, 1.0, 11.0, 100.0], [0.0, 1e-6, 0.3, 0.9, 1.0]),
    "nbinom": (COUNTS, [0.5, 1.0, 20.0], [0.01, 0.3, 1.0]),
    "betabinom": (COUNTS, [1.0, 11.0, 100.0], [0.5, 2.0, 40.0], [0.5, 3.0]),
    "geom": (COUNTS, [1e-3, 0.3, 1.0]),
    "poisson": (COUNTS, [0.0, 1e-6, 1.0, 9.5, 50.0]),
}
QUANTILES = {"ppf", "isf"}


def pareto_below(x, b):
    below = np.where(x <= 1, 0, -np.expm1(-b * np.log(np.maximum(x, 1))))
    return np.where(b > 0, below, NAN)


# Where SciPy itself cancels.
def log_of_gamma(fun, x, a, loc=0.0, scale=1.0):
    """The log of gamma's probability, which is finite also where SciPy's probability underflows."""
    want = np.asarray(getattr(scipy.stats.gamma, fun)(x, a, loc, scale))
    x, a = np.broadcast_arrays((x - loc) / scale, a)
    for i in np.ndindex(want.shape):
        if np.isneginf(want[i]) and 0 < x[i] < INF:
            ends = (x[i], mp.inf) if fun == "logsf" else (0, x[i])
            want[i] = mp.log(mp.gammainc(a[i], *ends, regularized=True))
    return want


def log_of_beta(fun, x, a, b, loc=0.0, scale=1.0):
    """The log of beta's probability, which is finite also where SciPy's probability underflows."""
    want = np.asarray(getattr(scipy.stats.beta, fun)(x, a, b, loc, scale))
    x, a, b = np.broadcast_arrays((x - loc) / scale, a, b)
    for i in np.ndindex(want.shape):
        if np.isneginf(want[i]) and 0 < x[i] < 1 and a[i] + b[i] < 1e4:
            y = mp.mpf(float(x[i]))
            ends = (b[i], a[i], 0, 1 - y) if fun == "logsf" else (a[i], b[i], 0, y)
            want[i] = mp.log(mp.betainc(*ends, regularized=True))
    return want


BETTER = {
    **{f"beta.{f}": functools.partial(log_of_beta, f) for f in ("logcdf", "logsf")},
    **{f"gamma.{f}": functools.partial(log_of_gamma, f) for f in ("logcdf", "logsf")},
    "chi2.logcdf": lambda x, df, loc=0.0, scale=1.0: log_of_gamma(
        "logcdf", x, df / 2, loc, 2 * scale
    ),
    "chi2.logsf": lambda x, df, loc=0.0, scale=1.0: log_of_gamma(
        "logsf", x, df / 2, loc, 2 * scale
    ),
    "pareto.cdf": pareto_below,
    "pareto.logcdf": lambda x, b: np.log(pareto_below(x, b)),
    "bernoulli.ppf": lambda q, p: np.where(
        (q >= 0) & (q <= 1) & (p >= 0) & (p <= 1), np.where(q > 1 - p, 1.0, 0.0), NAN
    ),
}


# Beside the grids, for NaN: shape parameters out of range.
OUT_OF_RANGE = {
    "gamma": ([-1.0, 0.0],), "chi2": ([-1.0, 0.0],), "beta": (0.0, -1.0), "t": ([-1.0, 0.0],),
    "pareto": ([0.0, -1.0],), "binom": (-1.0, [1.5, -0.5]), "poisson": (-1.0,),
    "geom": ([0.0, 1.5],), "vonmises": (-1.0,), "truncnorm": ([4.0, 0.5], -3.0),
    "bernoulli": ([1.5, -0.5],), "nbinom": ([-1.0, 0.0], [0.0, 1.5]), "wrapcauchy": ([1.0, 0.0],),
    "gennorm": ([0.0, -1.0],), "betabinom": (-1.0, [0.0, -1.0], [-1.0, 0.0]),
}  # fmt: skip


def functions(name):
    return importlib.import_module(f"weft.scipy.stats.{name}").__all__


def table(grids, dtype):
    """All combinations of grids, as arrays that broadcast."""
    return np.meshgrid(*[np.asarray(g, dtype) for g in grids], indexing="ij", sparse=True)


def reference(name, fun, args):
    args = [a.astype(np.float64) for a in args]
    with np.errstate(all="ignore"):
        if f"{name}.{fun}" in BETTER:
            return BETTER[f"{name}.{fun}"](*args)
        return getattr(getattr(scipy.stats, name), fun)(*args)


def agree(got, want, rtol, atol, what):
    got, want = np.asarray(got, np.float64), np.asarray(want)
    assert got.shape == want.shape
    special = ~np.isfinite(want)
    np.testing.assert_array_equal(got[special], want[special], err_msg=what)
    np.testing.assert_allclose(got[~special], want[~special], rtol=rtol, atol=atol, err_msg=what)


def sweep(name, dtype, rtol):
    points, *shapes = CASES[name]
    shapes = [
        [*s, *np.ravel(bad)] for s, bad in zip(shapes, OUT_OF_RANGE.get(name, ()), strict=True)
    ]
    names = functions(name)
    module = getattr(stats, name)
    plain = [n for n in names if n not in QUANTILES and n != "entropy"]
    args = table(([*points, NAN], *shapes), dtype)
    outs = jit(lambda *args: [getattr(module, n)(*args) for n in plain])(*args)
    for fun, got in zip(plain, outs, strict=True):
        assert got.dtype == dtype
        want = reference(name, fun, args)
        if fun[:3] != "log":  # of what underflows, and exp of a rounded log
            tiny = float(np.finfo(dtype).tiny)
            want = np.where(np.abs(want) < tiny, 0, want)
            got = np.where(np.abs(got) < tiny, 0, got)
            wide = np.abs(np.log(np.where(want > 0, want, 1)))
            got = np.where(np.abs(got - want) < rtol * (1 + wide) * want, want, got)
        elif dtype == np.float32:  # the probability may be none of float32
            few = (want < -87) & ~np.isfinite(got) & (fun in ("logcdf", "logsf"))
            want = np.where(few, got, want)
        agree(got, want, rtol, rtol, f"{name}.{fun}")
    levels = table(([*LEVELS, NAN], *shapes), dtype)
    for fun in QUANTILES & set(names):
        got, want = getattr(module, fun)(*levels), reference(name, fun, levels)
        want[want > float(np.finfo(dtype).max)] = INF
        agree(got, want, 4 * rtol, 4 * rtol, f"{name}.{fun}")


@pytest.mark.parametrize("name", CASES)
def test_results_have_the_shape_that_all_arguments_broadcast_to(name):
    for fun in functions(name):
        function = getattr(getattr(stats, name), fun)
        count = len(inspect.signature(function).parameters)
        for i in range(count):
            args = [0.5] * count
            args[i] = jnp.full((1, 4), 0.5)
            assert weft.eval_shape(function, *args).shape == (1, 4), (fun, i)
            args[i - 1] = jnp.full((3, 1), 0.5)
            assert weft.eval_shape(function, *args).shape == ((3, 4) if count > 1 else (3, 1))


@pytest.mark.sample(one_in=16)  # each in one dtype: compiling takes seconds
@pytest.mark.parametrize("dtype, rtol", [(np.float32, 4e-6), (np.float64, 2e-13)])
@pytest.mark.parametrize("name", CASES)
def test_values(name, dtype, rtol):
    with enable_x64(dtype is np.float64):
        sweep(name, dtype, rtol)


LARGE_PARAMETERS = {
    "poisson": (1e6,),
    "gamma": (1e6,),
    "binom": (2e6, 0.5),
    "nbinom": (1e6, 0.5),
    "betabinom": (2e6, 1e5, 1e5),
    "beta": (3e6, 2e6),
    "t": (1e7,),
}


@pytest.mark.sample(one_in=2)  # each in one dtype: compiling takes most of a second
@pytest.mark.parametrize("name", LARGE_PARAMETERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_parameters_do_not_cancel(dtype, name):
    with enable_x64():
        args = np.asarray(LARGE_PARAMETERS[name], dtype)
        k, tol = np.asarray(LARGE, dtype), {np.float32: 1e-4, np.float64: 1e-9}[dtype]
        x = k / dtype(5e6) * dtype(3) if name == "beta" else k
        fun = functions(name)[
            functions(name).index("pmf" if "pmf" in functions(name) else "pdf") - 1
        ]
        want = reference(name, fun, [x, *args])
        got = np.asarray(getattr(getattr(stats, name), fun)(x, *LARGE_PARAMETERS[name]))
        rare = np.isneginf(want) & (got < -745) & np.isfinite(got)  # SciPy's underflow
        np.testing.assert_allclose(got, np.where(rare, got, want), tol, tol)


# --- the interface --------------------------------------------------------------------------

SHAPES = {
    "bernoulli": "p", "beta": "a, b", "betabinom": "n, a, b", "binom": "n, p", "chi2": "df",
    "gamma": "a", "gennorm": "beta", "geom": "p", "nbinom": "n, p", "pareto": "b", "poisson": "mu",
    "t": "df", "truncnorm": "a, b", "vonmises": "kappa", "wrapcauchy": "c",
}  # fmt: skip
FIRST = {
    "bernoulli.ppf": "q", "cauchy.isf": "q", "cauchy.ppf": "q", "expon.ppf": "q",
    "gumbel_l.ppf": "p", "gumbel_r.ppf": "p", "norm.isf": "q", "norm.ppf": "q", "pareto.ppf": "q",
    "poisson.entropy": "mu", "uniform.ppf": "q",
}  # fmt: skip
NO_LOC = {"gennorm", "vonmises", "wrapcauchy", "bernoulli.cdf", "bernoulli.ppf"}


@pytest.mark.parametrize("name", CASES)
def test_signatures_are_those_of_jax(name):
    discrete = "pmf" in functions(name)
    for fun in functions(name):
        op = f"{name}.{fun}"
        parts = [FIRST.get(op, "k" if discrete else "x")]
        if name in SHAPES and fun != "entropy":
            parts.append(SHAPES[name])
        if not {name, op} & NO_LOC:
            parts.append("loc=0" if discrete else "loc=0, scale=1")
        function = getattr(getattr(stats, name), fun)
        assert signature_of(function) == ", ".join(parts)
        assert function.__name__ == fun and "distribution" in function.__doc__


def signature_of(function):
    return ", ".join(
        p.name if p.default is p.empty else f"{p.name}={p.default}"
        for p in inspect.signature(function).parameters.values()
    )


def test_entropy():
    mu = np.array([0.01, 0.5, 3.0, 30.0, 99.0, 101.0, 1e4])
    log = scipy.stats.poisson.logpmf(np.arange(20000), mu[:, None])
    want = -np.sum(np.exp(log) * log, 1)
    np.testing.assert_allclose(stats.poisson.entropy(mu.astype(np.float32)), want, rtol=1e-5)
    with enable_x64():
        np.testing.assert_allclose(stats.poisson.entropy(mu), want, rtol=1e-9)
    assert np.isnan(stats.poisson.entropy(-1.0)) and stats.poisson.entropy(0.0) == 0


def test_location_and_scale():
    x, loc, scale = np.float32([1.5, 2.0, 7.0])[:, None], np.float32([0.5, 1.0]), np.float32(2.0)
    for name in ("norm", "gamma", "cauchy"):
        shape = (2.5,) if name == "gamma" else ()
        funs = sorted(set(functions(name)) - QUANTILES)
        call = lambda x, loc, scale, name=name, shape=shape, funs=funs: [
            getattr(getattr(stats, name), fun)(x, *shape, scale=scale, loc=loc) for fun in funs
        ]
        for fun, got in zip(funs, jit(call)(x, loc, scale), strict=True):
            want = reference(name, fun, [x, *map(np.float32, shape), loc, scale])
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(stats.norm.ppf(0.975, 1.0, 2.0), 4.919928, rtol=1e-6)
    np.testing.assert_allclose(
        stats.poisson.pmf(5, 3.0, 2), scipy.stats.poisson.pmf(3, 3), rtol=1e-6
    )
    assert np.isnan(stats.norm.cdf(1.0, 0.0, jnp.array([0.0, -1.0]))).all()


def test_dtypes_and_weak_types():
    assert stats.norm.pdf(1).dtype == np.float32 and stats.norm.pdf(1).weak_type
    assert stats.gamma.logpdf(1.0, 2).weak_type
    assert stats.poisson.pmf(jnp.arange(3), 2.0).dtype == np.float32
    x = jnp.array([0.5, 1.5], jnp.bfloat16)
    got = stats.gamma.logpdf(x, 2.0)
    assert got.dtype == jnp.bfloat16
    want = stats.gamma.logpdf(x.astype(np.float32), 2.0).astype(jnp.bfloat16)
    assert (got == want).all()
    with enable_x64():
        assert stats.norm.pdf(np.float32(1)).dtype == np.float32
        assert stats.norm.pdf(1).dtype == np.float64


def test_errors():
    with pytest.raises(DtypeError, match=r"norm.pdf: operands must be real; got c64\[\]"):
        stats.norm.pdf(1j)
    with pytest.raises(
        DtypeError, match="beta.cdf: operands must be arrays or numbers; got a list"
    ):
        stats.beta.cdf([1.0], 1.0, 1.0)
    with pytest.raises(TypeError, match="beta.cdf: missing a required argument: 'b'"):
        stats.beta.cdf(0.5, 1.0)
    with pytest.raises(ShapeError, match="gamma.pdf: shapes must broadcast together"):
        stats.gamma.pdf(jnp.ones(3), jnp.ones(2))


# --- transformations ------------------------------------------------------------------------

INNER = {
    "norm": (0.7,), "cauchy": (0.7,), "laplace": (0.7,), "logistic": (0.7,), "gumbel_l": (0.7,),
    "gumbel_r": (0.7,), "expon": (0.7,), "pareto": (1.7, 2.5), "beta": (0.3, 2.5, 12.0),
    "gamma": (12.5, 11.5), "t": (0.7, 2.5), "gennorm": (0.7, 1.5),
    "vonmises": (0.7, 1.5), "wrapcauchy": (0.7, 0.4), "truncnorm": (0.2, -1.0, 2.5),
}  # fmt: skip


def check_slopes(fun, args, order=1, h=1e-6, compiled=True):
    """The gradient of a mixture of fun's results, against differences, in one program or many."""

    def mixture(point):
        ys = weft.tree.leaves(fun(*[point[i] for i in range(len(args))]))
        return sum(y * np.cos(k) for k, y in enumerate(ys))

    total = mixture if order == 1 else lambda point: jnp.sum(jnp.sin(grad(mixture)(point)))
    moved = h * np.eye(len(args))
    points = np.concatenate([np.array([args]), args + moved, args - moved])
    mapped = vmap(weft.value_and_grad(total))
    values, slopes = map(np.asarray, (jit(mapped) if compiled else mapped)(points))
    after, before = np.split(values[1:], 2)
    np.testing.assert_allclose(slopes[0], (after - before) / (2 * h), rtol=1e-6, atol=1e-7)


MODES = (weft.jacfwd, weft.jacrev)


def every_function(name):
    """All functions of a distribution as one of a point, and a point inside its support."""
    module, names = getattr(stats, name), functions(name)
    # of incomplete gamma and beta functions, those in x; the densities, in the parameters too
    free = [n for n in names if n.endswith("pdf") or name in ("pareto", "truncnorm")]
    x, *shapes = INNER[name]

    def fun(q, x, *moved):
        return [
            getattr(module, n)(q if n in QUANTILES else x, *(moved if n in free else shapes))
            for n in names
        ]

    return fun, (0.3, x, *shapes)


# One program would repeat the incomplete gamma and beta functions in each function made of them.
# Their operations one by one take ten times as long as a program of another distribution.
BY_OPERATION = ("beta", "gamma", "truncnorm")


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("name", [name for name in INNER if name not in BY_OPERATION])
def test_derivatives(name):
    with enable_x64():
        check_slopes(*every_function(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_OPERATION)
def test_derivatives_by_operation(name):
    with enable_x64():
        check_slopes(*every_function(name), compiled=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", INNER)
def test_forward_mode_is_reverse_mode(name):
    fun, args = every_function(name)
    both = jit(lambda *args: [mode(fun, range(len(args)))(*args) for mode in MODES])
    with enable_x64():
        forward, reverse = map(np.asarray, both(*map(float, args)))
    np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-12)


def test_derivatives_in_parameters_of_counts():
    with enable_x64():
        for order in (1, 2):
            check_slopes(lambda mu: stats.poisson.logpmf(12.0, mu), (11.5,), order)
            check_slopes(lambda p: stats.binom.logpmf(12.0, 30.0, p), (0.3,), order)
        check_slopes(lambda n, p: stats.nbinom.logpmf(3.0, n, p), (4.5, 0.3))
        check_slopes(lambda a, b: stats.betabinom.logpmf(3.0, 9.0, a, b), (2.5, 13.0))
        check_slopes(stats.poisson.entropy, (2.5,))
        counts = np.array([2, 3])
        check_slopes(lambda *p: stats.multinomial.logpmf(counts, 5, jnp.stack(p)), (0.4, 0.6))


@pytest.mark.sample(one_in=6)  # XLA compiles each for half a second
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_finite_at_edges_and_beyond(name):
    points, *shapes = CASES[name]
    args = [np.float32(s[len(s) // 2]) for s in shapes]
    module, names = getattr(stats, name), functions(name)
    density = "pmf" if "pmf" in names else "pdf"
    chosen = [n for n in (density, f"log{density}", "cdf", "sf") if n in names]
    every = tuple(range(1 + len(args)))
    # XLA has no derivative of the incomplete beta function in its parameters.
    moved = [(0,) if name == "beta" and n in ("cdf", "sf") else every for n in chosen]
    slopes_of = lambda *args: [
        grad(getattr(module, n), k)(*args) for n, k in zip(chosen, moved, strict=True)
    ]
    found = jit(vmap(slopes_of, (0, *[None] * len(args))))(np.float32(points), *args)
    for slopes in found:
        for slope in slopes:
            assert not np.isnan(slope).any(), (name, chosen, points, slope)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("stats.gamma.logpdf", (1.5, 2.5)),
        ("stats.t.logpdf", (0.5, 3.0)),
        ("stats.beta.logpdf", (0.3, 1.5, 2.5)),
        ("stats.binom.logpmf", (3.0, 9.0, 0.3)),
        ("stats.truncnorm.logcdf", (0.5, -1.0, 2.0)),
        ("special.rel_entr", (0.5, 0.3)),
    ],
)
def test_no_infinity_is_made_where_it_is_not_the_result(name, args):
    fun = functools.reduce(getattr, name.split("."), weft.scipy)
    with weft.config.scope(debug_infs=True, debug_nans=True):
        assert np.isfinite(grad(fun)(*args))


def test_under_vmap_and_jit():
    x, a = jnp.linspace(0.1, 3, 6).reshape(2, 3), jnp.array([1.0, 2.0])
    want = stats.gamma.logcdf(x, a[:, None])
    got = jit(vmap(vmap(stats.gamma.logcdf, (0, None))))(x, a)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_every_distribution_is_a_module():
    distributions = [x for x in map(functools.partial(getattr, stats), dir(stats)) if ismodule(x)]
    assert len(distributions) == 26
    for module in distributions:
        name = module.__name__.rpartition(".")[2]
        assert importlib.import_module(f"weft.scipy.stats.{name}") is module
        assert module is getattr(stats, name) and dir(module) == module.__all__
        assert "distribution" in module.__doc__
        for f in module.__all__:
            function = getattr(module, f)
            assert function.__name__ == f and pickle.loads(pickle.dumps(function)) is function
    import weft.scipy.stats.norm as norm

    assert norm is stats.norm and weft.scipy.stats is stats


@pytest.mark.parametrize(("density", "x"), [
    (lambda x: stats.gamma.pdf(x, 1.0), np.inf), (lambda x: stats.chi2.pdf(x, 2.0), np.inf),
    (stats.gumbel_l.pdf, np.inf), (stats.gumbel_r.pdf, -np.inf),
])  # fmt: skip
def test_densities_vanish_at_infinity(density, x):
    assert density(x) == 0


def test_slopes_of_probabilities_are_densities_at_zero_too():
    """The formulas depend on how near zero a point is."""
    points = np.array([-1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.5])
    laws = [(getattr(stats, n), ()) for n in ["norm", "logistic", "cauchy", "gumbel_l", "gumbel_r"]]
    laws += [(stats.gennorm, (beta,)) for beta in (1.0, 1.5, 3.0)]

    def both(law, args):
        alone = lambda fun: lambda x: fun(x, *args)
        return vmap(grad(alone(law.cdf)))(points), vmap(alone(law.pdf))(points)

    with enable_x64():
        pairs = jit(lambda: [both(*law) for law in laws])()
    for (law, args), (slope, density) in zip(laws, pairs, strict=True):
        np.testing.assert_allclose(slope, density, rtol=1e-9, err_msg=f"{law.__name__} {args}")


# (function, arguments, the argument at an edge of the support, the one-sided derivatives there)
EDGES = [
    ("gamma.pdf", (0.0, 2.0), 0, 1, -2), ("gamma.pdf", (0.0, 1.0), 0, -1, 1),
    ("gamma.pdf", (0.0, 3.0), 0, 0, 1), ("chi2.pdf", (0.0, 4.0), 0, 0.25, -0.25),
    ("beta.pdf", (0.0, 2.0, 3.0), 0, 12, -48), ("beta.pdf", (1.0, 2.0, 2.0), 0, -6, -12),
    ("beta.pdf", (0.0, 1.0, 2.0), 0, -2, 0), ("binom.pmf", (1, 5, 0.0), 2, 5, -40),
    ("binom.pmf", (0, 5, 0.0), 2, -5, 20), ("binom.pmf", (4, 5, 1.0), 2, -5, -40),
    ("binom.pmf", (5, 5, 1.0), 2, 5, 20), ("binom.pmf", (3, 5, 0.0), 2, 0, 0),
    ("binom.pmf", (1, 1000, 0.0), 2, 1000, -1998000), ("poisson.pmf", (1, 0.0), 1, 1, -2),
    ("poisson.pmf", (0, 0.0), 1, -1, 1), ("nbinom.pmf", (1, 3.0, 1.0), 2, -3, -18),
    ("nbinom.pmf", (0, 3.0, 1.0), 2, 3, 6), ("geom.pmf", (2, 1.0), 1, -1, -2),
    ("bernoulli.pmf", (1, 0.0), 1, 1, 0), ("expon.pdf", (0.0,), 0, -1, 1),
    ("pareto.pdf", (1.0, 2.0), 0, -6, 24), ("uniform.pdf", (0.0,), 0, 0, 0),
    ("truncnorm.pdf", (-1.0, -1.0, 2.0), 0, 0.295588, 0), ("gennorm.pdf", (0.0, 3.0), 0, 0, 0),
    ("truncnorm.logpdf", (-1.0, -1.0, 2.0), 0, 1, -1), ("expon.logpdf", (0.0,), 0, -1, 0),
    ("wrapcauchy.pdf", (0.0, 0.4), 0, 0, -0.825246), ("pareto.logpdf", (1.0, 2.0), 0, -3, 3),
    ("beta.logpdf", (0.0, 1.0, 3.0), 0, -2, -2), ("pareto.cdf", (1.0, 2.0), 0, 2, -6),
    ("truncnorm.cdf", (-1.0, -1.0, 2.0), 0, 0.295588, 0.295588), ("expon.sf", (0.0,), 0, -1, 1),
]  # fmt: skip


def test_one_sided_derivatives_at_the_edge_of_the_support():
    def differentiate(name, args, i):
        distribution, fun = name.split(".")
        density = getattr(getattr(stats, distribution), fun)
        at = lambda x: density(*args[:i], x, *args[i + 1 :])
        return grad(at)(args[i]), grad(grad(at))(args[i])

    found = jit(lambda: [differentiate(*row[:3]) for row in EDGES])()
    for row, (first, second) in zip(EDGES, found, strict=True):
        np.testing.assert_allclose((first, second), row[3:], 1e-3, 1e-6, err_msg=str(row))


NARROW = [(1.0, 1.0001), (-3.0, -2.95), (0.0, 1e-6), (-1e-3, 1e-3), (-INF, 0.0), (-0.04, 0.05)]


@pytest.mark.sample(one_in=4)  # test_values has each function
@pytest.mark.parametrize(
    "case",
    [
        f"{name} {t}"
        for name in ["pdf", "cdf", "sf", "logcdf", "logsf"]
        for t in ("float32", "float64")
    ],
)
def test_truncated_normal_between_near_bounds(case):
    name, dtype = case.split()
    rtol = 1e-5 if dtype == "float32" else 1e-11
    rows = [
        np.float32([low, high, high - near * (high - max(low, -1.0))])
        for low, high in NARROW
        for near in (0.9, 0.5, 1e-3)
    ]
    rows = np.array([row for row in rows if row[0] < row[2] < row[1]])
    low, high, x = rows.T
    mass = lambda a, b: (mp.erf(b / mp.sqrt(2)) - mp.erf(a / mp.sqrt(2))) / 2
    with mp.workdps(60):
        want = []
        for a, b, v in (map(mp.mpf, map(float, row)) for row in rows):
            share = {"pdf": mp.npdf(v), "cdf": mass(a, v), "sf": mass(v, b)}
            value = share[name.removeprefix("log")] / mass(a, b)
            want.append(float(mp.log(value) if name.startswith("log") else value))
    with enable_x64(dtype == "float64"):
        found = jit(getattr(stats.truncnorm, name))(*map(np.dtype(dtype).type, (x, low, high)))
        np.testing.assert_allclose(found, want, rtol=rtol)


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("beta.pdf", (0.0, 1e5, 1e5), 0.0), ("beta.pdf", (1.0, 1e5, 1e5), 0.0),
        ("beta.pdf", (0.0, 1.0, 1e5), 1e5), ("beta.pdf", (1.0, 3e4, 1.0), 3e4),
        ("beta.pdf", (0.0, 2.0, 1e5), 0.0), ("poisson.pmf", (INF, 0.0), 0.0),
        ("poisson.logpmf", (INF, 2.5), -INF), ("geom.pmf", (INF, 0.3), 0.0),
        ("binom.pmf", (INF, 5.0, 0.3), 0.0), ("nbinom.pmf", (INF, 2.0, 0.3), 0.0),
        ("betabinom.pmf", (INF, 5.0, 2.0, 3.0), 0.0), ("bernoulli.pmf", (INF, 0.3), 0.0),
    ],
)  # fmt: skip
def test_densities_of_large_parameters_and_counts_at_an_edge(name, args, want):
    distribution, fun = name.split(".")
    found = getattr(getattr(stats, distribution), fun)(*args)
    np.testing.assert_allclose(found, want, 1e-5)
