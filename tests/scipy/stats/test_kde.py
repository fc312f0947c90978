"""gaussian_kde against SciPy."""

import numpy as np
import pytest
import scipy.stats

import weft.numpy as jnp
from weft import enable_x64, grad, jit
from weft.errors import ShapeError
from weft.scipy import stats

INF, NAN = np.inf, np.nan


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("bandwidth", [None, "silverman", 0.4, lambda kde: kde.neff**-0.1])
def test_gaussian_kde(d, bandwidth, rng):
    data, weights = rng.standard_normal((d, 30)), rng.random(30)
    data = data[0] if d == 1 else data
    want = scipy.stats.gaussian_kde(data, bandwidth, weights)
    got = stats.gaussian_kde(data.astype("f"), bandwidth, weights.astype("f"))
    points = rng.standard_normal((d, 7)).astype(np.float32)
    near = lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4)
    (
        near(got.covariance, want.covariance),
        near(got.inv_cov, want.inv_cov),
        near(got.neff, want.neff),
    )
    near(got(points), want(points))
    mean, cov = np.full(d, 0.3), np.eye(d) * 0.5

    def every(k, points, mean, cov):
        found = [k.logpdf(points), k.pdf(points), k.integrate_gaussian(mean, cov)]
        found.append(k.integrate_kde(k))
        if d == 1:
            found += [k.integrate_box_1d(-1.0, 0.5), k.integrate_box_1d(2.0, INF)]
            return [*found, k(points[0])]
        return [*found, k(points[:, 0])]

    wants = [want.logpdf(points), want.pdf(points), want.integrate_gaussian(mean, cov)]
    wants.append(want.integrate_kde(want))
    if d == 1:
        wants += [want.integrate_box_1d(-1.0, 0.5), want.integrate_box_1d(2.0, INF), want(points)]
    else:
        wants.append(want(points[:, :1]))
    for mine, his in zip(
        jit(every)(got, points, *map(np.float32, (mean, cov))), wants, strict=True
    ):
        near(mine, his)
    assert repr(got) == f"gaussian_kde(30 samples of dimension {d})"
    slope = grad(lambda k: k.logpdf(points).sum())(got)
    assert isinstance(slope, stats.gaussian_kde) and np.isfinite(slope.dataset).all()


def test_gaussian_kde_errors():
    kde = stats.gaussian_kde(jnp.arange(8.0).reshape(2, 4) ** 2 % 7)
    for message, call in {
        "dataset must be (n,) or (d, n)": lambda: stats.gaussian_kde(jnp.ones(1)),
        "weights must be one for each sample, (4,)": lambda: stats.gaussian_kde(
            jnp.ones((2, 4)), weights=jnp.ones(3)
        ),
        "bw_method must be 'scott'": lambda: stats.gaussian_kde(jnp.arange(4.0), "foo"),
        "points must be (2, m)": lambda: kde(jnp.ones((3, 4))),
        "the density must be of dimension 1; got 2": lambda: kde.integrate_box_1d(0, 1),
        "mean must be (2,) and cov (2, 2)": lambda: kde.integrate_gaussian(jnp.ones(1), jnp.eye(2)),
        "kde.integrate_box_1d(low, high)": lambda: kde.integrate_box([0, 0], [1, 1]),
        "a density does not change": lambda: kde.set_bandwidth("scott"),
        "densities must be of one dimension; got 2, 1": lambda: kde.integrate_kde(
            stats.gaussian_kde(jnp.arange(4.0))
        ),
    }.items():
        with pytest.raises((ShapeError, ValueError, NotImplementedError)) as error:
            call()
        assert message in str(error.value)


def test_operands_of_other_dtypes():
    """A density of float32 samples, with the numbers of programs in float64."""
    narrow = stats.gaussian_kde(np.array([0, 1, 2, 4], np.float32))
    with enable_x64(True):
        wide = stats.gaussian_kde(np.array([0, 1.5, 2]))
        got = [
            narrow.integrate_gaussian(0.5, 1.5), narrow.logpdf(np.array([0.3]))[0],
            narrow.integrate_kde(wide), wide.integrate_kde(narrow),
        ]  # fmt: skip
        assert [x.dtype for x in got[1:]] == [np.float64] * 3
    one, other = (scipy.stats.gaussian_kde(x) for x in ([0, 1, 2, 4], [0, 1.5, 2]))
    want = [one.integrate_gaussian(0.5, 1.5), one.logpdf(0.3)[0], *[one.integrate_kde(other)] * 2]
    np.testing.assert_allclose(got, want, rtol=1e-6)
