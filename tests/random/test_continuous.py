"""Continuous distributions, against SciPy in distribution."""

import numpy as np
import pytest
import scipy.stats as stats

import weft
import weft.numpy as jnp
from tests.random.compare import GOLDEN, N, check_bits, check_law
from weft import random
from weft.errors import DtypeError, ShapeError

KEY = random.PRNGKey(7)


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
]


@pytest.mark.parametrize(("name", "args", "more", "law"), CONTINUOUS, ids=range(len(CONTINUOUS)))
def test_continuous_distributions(name, args, more, law):
    check_law(name, args, more, law)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("setting", GOLDEN)
def test_bits_are_those_of_jax(setting):
    drawn = "uniform normal truncated_normal exponential gumbel laplace logistic cauchy"
    check_bits(setting, f"{drawn} bernoulli rademacher lognormal maxwell", one_in=8)


def test_signs_are_of_the_dtype_that_was_asked_for():
    for dtype in (np.int8, np.float16, np.complex64):
        drawn = random.rademacher(KEY, (64,), dtype)
        assert drawn.dtype == dtype and not drawn.weak_type
        assert set(drawn.tolist()) == {-1, 1}
    for dtype in (np.uint8, np.uint32, bool, jnp.uint4):
        with pytest.raises(DtypeError, match="rademacher: dtype must be able to hold -1; got "):
            random.rademacher(KEY, (64,), dtype)


@pytest.mark.parametrize("dtype", [jnp.float8_e4m3fn, jnp.float8_e5m2])
def test_normal_numbers_of_dtypes_with_and_without_infinity(dtype):
    bounded = random.truncated_normal(KEY, -1, 1, (64,), dtype).astype(np.float32)
    free = random.normal(KEY, (64,), dtype).astype(np.float32)
    assert np.isfinite(free).all() and 0.5 < free.std() < 1.5 and (abs(bounded) < 1).all()


def test_vectors():
    cov = jnp.array([[2.0, 0.5], [0.5, 1.0]])
    for method in ("cholesky", "eigh", "svd"):
        y = random.multivariate_normal(KEY, jnp.array([1.0, -1.0]), cov, (N,), method=method)
        np.testing.assert_allclose(np.cov(np.asarray(y).T), cov, atol=0.06)
        np.testing.assert_allclose(y.mean(0), [1, -1], atol=0.04)
    means, covs = np.zeros((4, 1, 3), np.float32), np.stack([np.eye(3, dtype=np.float32)] * 2)
    assert random.multivariate_normal(KEY, means, covs).shape == (4, 2, 3)
    for n, m, dtype in ((3, None, None), (2, 3, None), (3, 2, np.complex64)):
        q = random.orthogonal(KEY, n, (2,), dtype, m)
        assert q.shape == (2, n, m or n) and q.dtype == (dtype or np.float32)
        q = q if n <= (m or n) else q.mT.conj()
        want = np.broadcast_to(np.eye(q.shape[-2]), (2, *[q.shape[-2]] * 2))
        np.testing.assert_allclose(q @ q.mT.conj(), want, atol=1e-5)
    # no preferred axis: the Haar measure, which fixed signs of a diagonal would violate
    q = np.asarray(random.orthogonal(KEY, 2, (4000,)))
    assert (
        stats.kstest(
            np.arctan2(q[:, 1, 0], q[:, 0, 0]), stats.uniform(-np.pi, 2 * np.pi).cdf
        ).pvalue
        > 1e-3
    )


def test_bits_and_chances():
    """Each bit is set in half of the words, of every width."""
    for dtype in (np.uint8, np.uint16, np.uint32):
        words = np.asarray(random.bits(KEY, (4000,), dtype))
        assert words.dtype == dtype
        share = np.unpackbits(words.view(np.uint8).reshape(4000, -1), axis=1).mean(0)
        np.testing.assert_allclose(share, 0.5, atol=0.04)
    assert random.bits(KEY).shape == () and random.bits(KEY).dtype == np.uint32
    p = np.linspace(0, 1, 5, dtype=np.float32)
    for mode in ("low", "high"):
        found = random.bernoulli(KEY, p, (4000, 5), mode)
        assert found.dtype == bool
        np.testing.assert_allclose(np.asarray(found).mean(0), p, atol=0.03)
    assert random.bernoulli(KEY, np.arange(2), (9, 2)).tolist() == [[False, True]] * 9


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: random.bernoulli(KEY, 0.5, mode="x"),
            ValueError,
            "bernoulli: mode must be 'low' or",
        ),
        (
            lambda: random.multivariate_normal(KEY, jnp.float32(1), jnp.eye(2)),
            ShapeError,
            "multivariate_normal: ",
        ),
        (
            lambda: random.multivariate_normal(KEY, jnp.ones(3), jnp.eye(2)),
            ShapeError,
            "multivariate_normal: ",
        ),
        (
            lambda: random.multivariate_normal(KEY, jnp.ones(2), jnp.eye(2), method="lu"),
            ValueError,
            "multivariate_normal: method must be ",
        ),
        (
            lambda: random.multivariate_normal(KEY, jnp.ones((4, 2)), jnp.eye(2), (3,)),
            ShapeError,
            r"axes of mean and cov before the last must broadcast to shape; got shapes \(4,\)",
        ),
        (
            lambda: random.orthogonal(KEY, 2, m=-1),
            ShapeError,
            "orthogonal: m must be an integer tha",
        ),
        (lambda: random.orthogonal(KEY, 2, dtype=int), DtypeError, "orthogonal: dtype must be"),
    ],
)
def test_mistakes_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_samples_have_the_shape_that_is_asked_for():
    for name in [
        "normal",
        "uniform",
        "maxwell",
        "cauchy",
        "exponential",
        "gumbel",
        "laplace",
        "logistic",
    ]:
        draw = lambda key, name=name: getattr(random, name)(key, shape=(2, 3, 4))
        assert weft.eval_shape(draw, random.PRNGKey(0)).shape == (2, 3, 4), name


TAILS = [(5.5, 1e6), (3, 3.5), (30, np.inf), (-np.inf, -8), (-4, -3.5), (2, 4), (-2, 2)]


def test_truncated_normal_has_the_distribution_of_far_tails():
    low, high = np.float32(TAILS).T
    drawn = np.asarray(random.truncated_normal(KEY, low, high, (5000, len(TAILS))), np.float64)
    for x, (a, b) in zip(drawn.T, TAILS, strict=True):
        assert ((a < x) & (x < b)).all()
        assert stats.kstest(stats.truncnorm.cdf(x, a, b), "uniform").pvalue > 1e-4, (a, b)
    slope = weft.grad(lambda a: random.truncated_normal(KEY, a, 1e6))(5.5)
    assert 0.5 < slope < 1


def test_uniform_is_below_its_upper_bound():
    bounds = [(1e6, 1e6 + 1), (1.0, 1.0000002), (-1.0, 1.0), (5.0, 5.0), (2.0, 1.0)]
    fixed = weft.jit(
        lambda key: [random.uniform(key, (20000,), minval=a, maxval=b) for a, b in bounds]
    )(KEY)
    low, high = np.float32(bounds).T[:, :, None]
    for rows in (np.array(fixed), random.uniform(KEY, (5, 20000), None, low, high)):
        rows = np.asarray(rows)
        assert (rows >= low).all() and (rows[:3] < high[:3]).all() and (rows[3] == low[3]).all()
    half = random.uniform(KEY, (2000,), "bfloat16", jnp.bfloat16(1), jnp.bfloat16(2))
    assert half.max() < 2


@pytest.mark.parametrize("bound", [1e300, np.inf])
def test_bounds_that_float32_does_not_hold(bound, recwarn):
    """NumPy's warnings of overflow stay inside."""
    for f in (random.uniform, weft.jit(random.uniform, static_argnums=(1, 2, 3, 4))):
        f(KEY, (2,), np.dtype(np.float32), -float(bound), float(bound))
    assert not recwarn.list
