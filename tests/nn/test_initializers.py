"""Initial weights: their spread, their shapes and dtypes, errors."""

import numpy as np
import pytest
import scipy.stats as stats

import weft.numpy as jnp
from weft import nn, random
from weft.errors import ShapeError

KEY = random.PRNGKey(7)
init = nn.initializers


def test_initializers():
    w = init.he_normal()(KEY, (200, 100))
    np.testing.assert_allclose(w.std(), np.sqrt(2 / 200), rtol=0.03)
    u = init.glorot_uniform()(KEY, (200, 100))
    assert float(jnp.abs(u).max()) <= np.sqrt(3 / 150)
    q = init.orthogonal()(KEY, (6, 4))
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-5)
    d = init.delta_orthogonal()(KEY, (3, 3, 2, 4))
    np.testing.assert_allclose(d[1, 1] @ d[1, 1].T, np.eye(2), atol=1e-5)
    assert init.constant(3.0)(KEY, (2,)).tolist() == init.constant(3.0)(KEY, 2).tolist() == [3, 3]
    for make in (init.normal(), init.uniform(), init.truncated_normal(), init.zeros, init.ones):
        np.testing.assert_array_equal(make(KEY, 2), make(KEY, (2,)))
    assert init.lecun_normal(dtype=jnp.bfloat16)(KEY, (4, 3)).dtype == jnp.bfloat16
    with pytest.raises(ValueError, match="mode must be .fan_in., .fan_out."):
        init.variance_scaling(1.0, "fan", "normal")
    with pytest.raises(ShapeError, match="an axis of inputs and one of outputs"):
        init.he_normal()(KEY, (3,))


FANS = {  # of a kernel (3, 4, 5, 6): inputs 4, outputs 6, a batch of 5
    "fan_in": 12, "fan_out": 18, "fan_avg": 15, "fan_geo_avg": np.sqrt(216),
}  # fmt: skip


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("distribution", ["normal", "truncated_normal", "uniform"])
def test_variance_scaling(distribution, dtype):
    """Variances, how far numbers go, and that every direction of complex ones is as likely."""
    draws = [
        init.variance_scaling(2.0, mode, distribution, 1, -1, 2, dtype)(key, (3, 4, 5, 6))
        for mode, key in zip(FANS, random.split(KEY, 4), strict=True)
    ]
    assert draws[0].dtype == dtype
    for x, fan in zip(draws, FANS.values(), strict=True):
        x = np.asarray(x).ravel() * np.sqrt(fan / 2)  # of variance 1
        np.testing.assert_allclose(np.mean(np.abs(x) ** 2), 1, atol=0.2)
        assert abs(x.mean()) < 0.15 and (x.real < 0).mean() > 0.4
    x = np.concatenate([np.ravel(x) * np.sqrt(f / 2) for x, f in zip(draws, FANS.values())])
    complex_ = dtype is np.complex64
    most = {"normal": 5, "uniform": 2**0.5 if complex_ else 3**0.5}
    cut = 2 / np.sqrt(1 - 5 * np.exp(-4)) if complex_ else 2 / 0.87962566
    assert 0.9 < np.abs(x).max() / most.get(distribution, cut) < 1 or distribution == "normal"
    np.testing.assert_allclose(np.mean(np.abs(x) ** 2), 1, atol=0.1)
    if complex_:
        assert stats.kstest(np.angle(x), stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-3
        radius = {
            "uniform": lambda r: np.clip(r / 2**0.5, 0, 1) ** 2,
            "truncated_normal": lambda r: (1 - np.exp(-((2 * r / cut) ** 2))) / (1 - np.exp(-4)),
            "normal": lambda r: 1 - np.exp(-(r**2)),
        }[distribution]
        assert stats.kstest(np.abs(x), radius).pvalue > 1e-3


def test_named_cases_of_variance_scaling():
    shape, named = (8, 9), {
        "glorot_uniform": (1, "fan_avg", "uniform"),
        "glorot_normal": (1, "fan_avg", "truncated_normal"),
        "lecun_uniform": (1, "fan_in", "uniform"),
        "lecun_normal": (1, "fan_in", "truncated_normal"),
        "he_uniform": (2, "fan_in", "uniform"), "he_normal": (2, "fan_in", "truncated_normal"),
    }  # fmt: skip
    for name, how in named.items():
        want = init.variance_scaling(*how)(KEY, shape)
        np.testing.assert_array_equal(getattr(init, name)()(KEY, shape), want, name)
    moved = init.he_normal(0, 1, dtype=np.float16)(KEY, shape)
    assert moved.dtype == np.float16
    assert (
        init.xavier_uniform is init.glorot_uniform
        and "variance 2 / fan_in" in init.he_normal.__doc__
    )


def test_plain_initializers():
    for name, value in (("zeros", 0), ("ones", 1)):
        made = getattr(init, name)(KEY, (2, 3)), getattr(init, name)(KEY, (2, 3), np.int8)
        assert [x.dtype for x in made] == [np.float32, np.int8]
        for x in made:
            np.testing.assert_array_equal(x, np.full((2, 3), value))
    for made, std, low, high in (
        (init.uniform(0.5), 0.5 / 12**0.5, 0, 0.5),
        (init.normal(0.1), 0.1, -0.4, 0.5),
        (init.truncated_normal(0.1, lower=-1), 0.1 * stats.truncnorm(-1, 2).std(), -0.1, 0.2),
    ):
        x = np.asarray(made(KEY, (40, 50)))
        np.testing.assert_allclose(x.std(), std, rtol=0.05)
        assert low <= x.min() < low + 0.1 and high - 0.25 < x.max() <= high
        assert made(KEY, (3,), np.float16).dtype == np.float16
    assert init.normal(dtype=np.float16)(KEY, (3,)).dtype == np.float16
    assert init.uniform()(KEY, (3,)).max() < 0.01 and abs(init.normal()(KEY, (9,))).max() < 0.05


@pytest.mark.parametrize(
    ("shape", "axis"), [((6, 4), -1), ((4, 6), -1), ((4, 6), 0), ((2, 5, 3), 1), ((0, 2), -1)]
)
def test_orthogonal_along_an_axis(shape, axis):
    x = np.asarray(init.orthogonal(2.0, axis)(KEY, shape))
    assert x.shape == shape
    x = np.moveaxis(x, axis, -1).reshape(-1, shape[axis]) / 2
    small = x.T @ x if len(x) >= x.shape[1] else x @ x.T
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-5)


def test_delta_orthogonal_is_zero_but_in_the_middle():
    for shape in ((3, 2, 4), (4, 3, 2, 4), (3, 3, 3, 2, 2)):
        x = np.array(init.delta_orthogonal(3.0)(KEY, shape))
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        np.testing.assert_allclose(x[middle] @ x[middle].T, 9 * np.eye(2), atol=1e-4)
        x[middle] = 0
        assert not x.any()
    for shape in ((2, 4), (3, 5, 4), (1, 1, 1, 1, 2, 4)):
        with pytest.raises(ShapeError, match="delta_orthogonal: shape must have 3 to 5 axes"):
            init.delta_orthogonal()(KEY, shape)
    with pytest.raises(ShapeError, match=r"orthogonal: shape must have two axes at least; got \(3"):
        init.orthogonal()(KEY, (3,))
