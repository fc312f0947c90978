"""Keys and distributions: against SciPy in distribution, loops for vmap, differences for grad."""

import importlib

import numpy as np
import pytest
import scipy.stats as stats

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import nn, random
from weft.errors import DtypeError, ShapeError
from weft.random import rejection
from weft.random.keys import read_one_key

KEY = random.PRNGKey(7)
N = 20000

CONTINUOUS = [
    ("uniform", (), dict(minval=-1.0, maxval=3.0), stats.uniform(-1, 4)),
    ("normal", (), {}, stats.norm()),
    ("truncated_normal", (-1.0, 2.0), {}, stats.truncnorm(-1, 2)),
    ("exponential", (), {}, stats.expon()),
    ("gumbel", (), {}, stats.gumbel_r()),
    ("gumbel", (), dict(mode="high"), stats.gumbel_r()),
    ("laplace", (), {}, stats.laplace()),
    ("logistic", (), {}, stats.logistic()),
    ("cauchy", (), {}, stats.cauchy()),
    ("lognormal", (0.5,), {}, stats.lognorm(0.5)),
    ("maxwell", (), {}, stats.maxwell()),
    ("pareto", (2.0,), {}, stats.pareto(2)),
    ("rayleigh", (2.0,), {}, stats.rayleigh(scale=2)),
    ("weibull_min", (2.0, 3.0), {}, stats.weibull_min(3, scale=2)),
    ("triangular", (0.0, 1.0, 3.0), {}, stats.triang(1 / 3, 0, 3)),
    ("wald", (2.0,), {}, stats.invgauss(2)),
    ("gamma", (2.5,), {}, stats.gamma(2.5)),
    ("gamma", (0.3,), {}, stats.gamma(0.3)),
    ("loggamma", (0.5,), {}, stats.loggamma(0.5)),
    ("beta", (0.5, 2.0), {}, stats.beta(0.5, 2)),
    ("chisquare", (3.0,), {}, stats.chi2(3)),
    ("f", (3.0, 5.0), {}, stats.f(3, 5)),
    ("t", (3.0,), {}, stats.t(3)),
    ("generalized_normal", (3.0,), {}, stats.gennorm(3)),
]
COUNTS = [
    ("poisson", (3.0,), stats.poisson(3)),
    ("poisson", (100.0,), stats.poisson(100)),
    ("binomial", (10, 0.3), stats.binom(10, 0.3)),
    ("binomial", (1000, 0.7), stats.binom(1000, 0.7)),
    ("geometric", (0.3,), stats.geom(0.3)),
]


@pytest.mark.parametrize(("name", "args", "more", "law"), CONTINUOUS, ids=range(len(CONTINUOUS)))
def test_continuous_distributions(name, args, more, law):
    x = getattr(random, name)(KEY, *args, shape=(N,), **more)
    assert x.shape == (N,) and x.dtype == np.float32
    assert stats.kstest(np.asarray(x), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("name", "args", "law"), COUNTS, ids=range(len(COUNTS)))
def test_counts(name, args, law):
    x = np.asarray(getattr(random, name)(KEY, *args, shape=(N,))).astype(int)
    found = np.bincount(x, minlength=x.max() + 2)
    expected = law.pmf(np.arange(len(found))) * N
    often = expected > 5
    found = np.append(found[often], found[~often].sum())
    expected = np.append(expected[often], N - expected[often].sum())
    assert stats.chisquare(found, expected, sum_check=False).pvalue > 1e-3


def test_vectors():
    alpha = jnp.array([1.0, 2.0, 3.0])
    x = random.dirichlet(KEY, alpha, (N,))
    assert stats.kstest(np.asarray(x[:, 1]), stats.beta(2, 4).cdf).pvalue > 1e-3
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-5)
    cov = jnp.array([[2.0, 0.5], [0.5, 1.0]])
    for method in ("cholesky", "eigh", "svd"):
        y = random.multivariate_normal(KEY, jnp.array([1.0, -1.0]), cov, (N,), method=method)
        np.testing.assert_allclose(np.cov(np.asarray(y).T), cov, atol=0.06)
        np.testing.assert_allclose(y.mean(0), [1, -1], atol=0.04)
    counts = random.multinomial(KEY, 20, jnp.array([0.2, 0.3, 0.5]), shape=(1000, 3))
    assert (counts.sum(-1) == 20).all()
    np.testing.assert_allclose(counts.mean(0), [4, 6, 10], rtol=0.05)
    radius = jnp.linalg.norm(random.ball(KEY, 3, shape=(N,)), axis=-1)
    assert stats.kstest(np.asarray(radius) ** 3, stats.uniform().cdf).pvalue > 1e-3
    q = random.orthogonal(KEY, 3, (2,))
    np.testing.assert_allclose(
        q @ jnp.swapaxes(q, -1, -2), np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-5
    )


@pytest.mark.parametrize("a", [0.4, 2.5])
def test_gamma_samples_move_at_a_fixed_quantile(a):
    with weft.enable_x64(True):
        shapes = jnp.full(5, a, np.float64)
        x, dx = weft.jvp(lambda a: random.gamma(KEY, a), (shapes,), (jnp.ones_like(shapes),))
    at, step = stats.gamma(a).cdf(x), 1e-5
    slope = (stats.gamma.ppf(at, a + step) - stats.gamma.ppf(at, a - step)) / (2 * step)
    np.testing.assert_allclose(dx, slope, rtol=1e-4)


def test_means_move_with_their_parameters():
    mean = lambda name, *more: lambda a: getattr(random, name)(KEY, a, *more, shape=(N,)).mean()
    np.testing.assert_allclose(weft.grad(mean("beta", 2.0))(1.5), 2 / 3.5**2, rtol=0.02)
    np.testing.assert_allclose(weft.grad(mean("chisquare"))(3.0), 1, rtol=0.02)
    np.testing.assert_allclose(weft.grad(mean("gamma"))(0.3), 1, rtol=0.05)


def test_edges_of_parameters():
    x = random.poisson(KEY, jnp.array([0.0, -1.0, jnp.nan]))
    np.testing.assert_array_equal(x, [0, -1, -1])
    b = random.binomial(KEY, jnp.array([0.0, 5, 5, 5]), jnp.array([0.5, 0.0, 1.0, 1.5]))
    np.testing.assert_array_equal(b, [0, 0, 5, np.nan])
    g = random.gamma(KEY, jnp.array([0.0, -1.0]))
    np.testing.assert_array_equal(g, [0, np.nan])
    assert random.gamma(KEY, 1.0, (0,)).shape == (0,)


@pytest.mark.parametrize("partitionable", [False, True])
def test_vmap_is_a_loop(partitionable):
    with weft.config.scope(threefry_partitionable=partitionable):
        keys = random.split(KEY, 3)
        for draw in (
            lambda k: random.normal(k, (5,)),
            lambda k: random.split(k, 3),
            lambda k: random.fold_in(k, 2),
            lambda k: random.permutation(k, 7),
            lambda k: random.gamma(k, 2.0, (2,)),
        ):
            np.testing.assert_array_equal(weft.vmap(draw)(keys), np.stack([draw(k) for k in keys]))
            np.testing.assert_allclose(weft.jit(draw)(keys[0]), draw(keys[0]), rtol=1e-6)


def test_half_of_the_bits_are_set_and_neighbours_differ():
    with weft.config.scope(threefry_partitionable=True):
        bits = np.asarray(random.bits(KEY, (1000,), np.uint8))
    assert 470 < np.unpackbits(bits).sum() / 8 < 530


BAD = [
    (lambda: random.normal(1.5), DtypeError, "normal: key must be a random key"),
    (lambda: random.normal("a"), DtypeError, "key must be a random key; got a str"),
    (
        lambda: random.normal(jnp.zeros(4, np.uint32)),
        DtypeError,
        r"wrap_key_data\(words, impl='rbg'",
    ),
    (lambda: random.normal(random.split(KEY)), ShapeError, "Hint: vmap over the keys"),
    (lambda: random.normal(KEY, (3,), np.int32), DtypeError, "normal: dtype must be one of"),
    (lambda: random.bits(KEY, (3,), np.int32), DtypeError, "bits: dtype must be"),
    (lambda: random.rayleigh(KEY, -1.0), ValueError, "rayleigh: scale must not be negative"),
    (lambda: random.gamma(KEY, jnp.ones(3), (2,)), ShapeError, "must broadcast to shape"),
    (lambda: random.choice(KEY, 5, p=jnp.ones(4)), ShapeError, r"choice: p must be \(5,\)"),
    (lambda: random.choice(KEY, 5, (6,), replace=False), ShapeError, "at most 5 can be drawn"),
    (lambda: random.randint(KEY, (2,), 0.0, 5), DtypeError, "minval and maxval must be integers"),
    (lambda: random.key(0, impl="x"), ValueError, "impl must be one of"),
    (lambda: random.fold_in(KEY, -1), OverflowError, r"fold_in: data must be in \[0, 2\*\*32\)"),
    (lambda: random.PRNGKey(1.5), DtypeError, "PRNGKey: seed must be an integer"),
    (
        lambda: random.categorical(KEY, jnp.zeros((2, 3)), shape=(5,)),
        ShapeError,
        "axes of logits but the one must broadcast",
    ),
    (lambda: random.gumbel(KEY, mode="x"), ValueError, "mode must be 'low' or 'high'"),
    (
        lambda: random.bernoulli(KEY, 1.5),
        ValueError,
        r"p must be in \[0, 1\], a probability; got 1",
    ),
    (
        lambda: random.bernoulli(KEY, np.array([0.5, -0.5], np.float32)),
        ValueError,
        r"bernoulli: p must be in \[0, 1\], a probability; got -0.5 in f32\[2\]",
    ),
    (lambda: random.binomial(KEY, 3, 1.5), ValueError, r"binomial: p must be in \[0, 1\]"),
    (lambda: random.binomial(KEY, -3, 0.5), ValueError, "binomial: n must not be negative; got -3"),
    (lambda: random.geometric(KEY, -0.1), ValueError, r"geometric: p must be in \[0, 1\]"),
    (lambda: random.poisson(KEY, np.float32(-1)), ValueError, "poisson: lam must not be negative"),
    (lambda: random.gamma(KEY, float("nan")), ValueError, "gamma: a must not be negative; got nan"),
    (lambda: random.dirichlet(KEY, -np.ones(2)), ValueError, "dirichlet: alpha must not be neg"),
    (lambda: random.multinomial(KEY, 5, -np.ones(2)), ValueError, "multinomial: p must not be"),
    (lambda: random.choice(KEY, 2, p=-np.ones(2)), ValueError, "choice: p must not be negative"),
    (lambda: random.choice(KEY, 2, p=np.zeros(2)), ValueError, "choice: some of p must be positi"),
    (
        lambda: random.triangular(KEY, 3.0, 2.0, 4.0),
        ValueError,
        "triangular: it must hold that left <= mode <= right; got left=3.0, mode=2.0, right=4.0",
    ),
    (lambda: random.truncated_normal(KEY, 2.0, 1.0), ValueError, "hold that lower <= upper"),
    (lambda: random.orthogonal(KEY, 1.5), ShapeError, "orthogonal: n must be an integer that"),
    (lambda: random.ball(KEY, -1), ShapeError, "ball: d must be an integer that is not negative"),
    (
        lambda: random.wrap_key_data(KEY, impl="rbg"),
        DtypeError,
        r"u32\[..., 4\]; got u32\[2\]. Hint: random.wrap_key_data\(words, impl='threefry2x32'\)",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD, ids=range(len(BAD)))
def test_mistakes_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_initializers():
    init = nn.initializers
    w = init.he_normal()(KEY, (200, 100))
    np.testing.assert_allclose(w.std(), np.sqrt(2 / 200), rtol=0.03)
    u = init.glorot_uniform()(KEY, (200, 100))
    assert float(jnp.abs(u).max()) <= np.sqrt(3 / 150)
    q = init.orthogonal()(KEY, (6, 4))
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-5)
    d = init.delta_orthogonal()(KEY, (3, 3, 2, 4))
    np.testing.assert_allclose(d[1, 1] @ d[1, 1].T, np.eye(2), atol=1e-5)
    assert init.constant(3.0)(KEY, (2,)).tolist() == [3, 3]
    assert init.lecun_normal(dtype=jnp.bfloat16)(KEY, (4, 3)).dtype == jnp.bfloat16
    with pytest.raises(ValueError, match="mode must be .fan_in., .fan_out."):
        init.variance_scaling(1.0, "fan", "normal")
    with pytest.raises(ShapeError, match="an axis of inputs and one of outputs"):
        init.he_normal()(KEY, (3,))


@pytest.mark.parametrize("name", ["keys", "continuous", "choices", "gammas", "counts"])
def test_examples_of_the_documentation(name):
    module = importlib.import_module(f"weft.random.{name}")
    check_examples(module)


def test_integers_of_a_whole_dtype_are_the_same_when_compiled():
    draw = lambda key: random.randint(key, (7,), 0, 2**32, jnp.uint32)
    got = weft.jit(draw)(KEY)  # a remainder by a constant zero stopped the process
    np.testing.assert_array_equal(got, draw(KEY))
    assert got.dtype == jnp.uint32 and len(set(got.tolist())) == 7


INF, NAN = np.inf, np.nan
LARGEST = float(np.finfo(np.float32).max)
EXTREME = np.float32([NAN, INF, 0, -1, 1e-40, LARGEST, 3])  # the last is ordinary


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize(
    ("name", "pairs", "results"),
    [
        ("gamma", (), [NAN, INF, 0, NAN, 0, LARGEST]),
        ("loggamma", (), [NAN, INF, -INF, NAN, -INF, np.log(LARGEST)]),
        ("chisquare", (), [NAN, INF, 0, NAN, 0, LARGEST]),
        ("t", (), [NAN, "finite", NAN, NAN, NAN, "finite"]),
        ("f", (2,), [NAN, "finite", NAN, NAN, NAN, "finite"]),
        ("beta", (2,), [NAN, 1, 0, NAN, 0, 1]),
        ("dirichlet", (2,), [NAN, 1, 0, NAN, 0, 1]),
        ("poisson", (), [-1, 2**31 - 1, 0, -1, 0, 2**31 - 1]),
        ("binomial", (0.5,), [NAN, INF, 0, NAN, 0, LARGEST / 2]),
        ("wald", (), [NAN, "finite", NAN, NAN, NAN, "finite"]),
        ("generalized_normal", (), [NAN, NAN, INF, NAN, INF, 0]),
    ],
)
def test_extreme_parameters_end_and_leave_the_others_alone(name, pairs, results):
    """A row that cannot be drawn once kept a compiled loop going for ever, which nothing stops."""
    a = jnp.asarray(EXTREME)
    if name == "dirichlet":
        found = random.dirichlet(KEY, jnp.stack([a, jnp.full_like(a, 2)], -1))[..., 0]
    else:
        found = getattr(random, name)(KEY, a, *pairs, shape=a.shape)
    *found, ordinary = np.asarray(found, np.float64)
    assert np.isfinite(ordinary)
    for x, wanted in zip(found, results, strict=True):
        if isinstance(wanted, str):
            assert np.isfinite(x)
        else:
            np.testing.assert_allclose(abs(x) if wanted == INF else x, wanted, rtol=1e-6)


def test_what_is_never_taken_is_nan():
    draw = lambda key, x: (x, x > 0)
    for size in (2, 2048):  # in place, and gathered
        x = jnp.where(jnp.arange(size) == 1, -1.0, 2.0)
        found = rejection.draw_until_taken(read_one_key("test", KEY), draw, x)
        assert np.isnan(found[1]) and np.nansum(found) == 2 * (size - 1)


def test_the_derivative_of_gamma_samples_of_many():
    """They are near a + z sqrt(a), of derivative 1 + z / (2 sqrt(a)), where a is large."""
    a = jnp.array([1e5, 1e8, 1e12, LARGEST])
    draw = lambda a: random.gamma(KEY, a)
    x, slope = weft.jvp(draw, (a,), (jnp.ones_like(a),))
    np.testing.assert_allclose(slope, 1 + (x / a - 1) / 2, rtol=2e-5)
    log_slope = weft.grad(lambda a: random.loggamma(KEY, a).sum())(a)
    np.testing.assert_allclose((log_slope * a)[:3], 1, rtol=1e-2)
    assert weft.grad(draw)(INF) == 1
