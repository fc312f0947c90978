"""Draws by rejection: they end, whatever the parameters, and say NaN where nothing is taken."""

import json
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import random
from weft.random import rejection
from weft.random.keys import read_one_key

KEY = random.PRNGKey(7)
INF, NAN = np.inf, np.nan
LARGEST = float(np.finfo(np.float32).max)
DRAWS = json.loads((Path(__file__).parents[1] / "golden" / "draws.json").read_text())


EXTREME = np.float32([NAN, INF, 0, -1, 1e-40, LARGEST, 3])  # the last is ordinary


@pytest.mark.sample(one_in=8)
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
        ("generalized_normal", (), [NAN, "finite", INF, NAN, INF, "finite"]),
    ],
)
def test_extreme_parameters_end_and_leave_the_others_alone(name, pairs, results):
    """A row without an accepted draw once made a compiled loop endless."""
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


def test_what_a_key_gives_stays_the_same():
    """The numbers that weft draws by another method than JAX; a seed gives them again."""
    size, part = jnp.array([4.0, 30.0, 50.0, 2000.0]), jnp.array([0.4, 0.2, 0.7, 0.03])
    draw = lambda name, *args: getattr(random, name)(random.PRNGKey(7), *args)
    every = weft.jit(
        lambda: {
            "binomial": draw("binomial", size, part, (2, 4)),
            "double_sided_maxwell": draw("double_sided_maxwell", 1.0, 2.0, (5,)),
            "gamma": draw("gamma", size / 5, (2, 4)),
            "geometric": draw("geometric", part, (2, 4)),
            "poisson": draw("poisson", jnp.array([0.5, 9.0, 11.0, 200.0]), (2, 4)),
            "triangular": draw("triangular", -1.0, 0.5, 2.0, (5,)),
            "wald": draw("wald", size, (2, 4)),
            "weibull_min": draw("weibull_min", part, size, (2, 4)),
        }
    )
    with weft.config.scope(hints=False):
        found = every()
    assert set(found) == set(DRAWS)
    for name, drawn in found.items():
        np.testing.assert_allclose(drawn.ravel(), DRAWS[name], rtol=1e-4, err_msg=name)
