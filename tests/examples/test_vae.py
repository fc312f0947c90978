"""The autoencoder: its densities against SciPy, its bounds against integrals, and a run of it."""

import re
import sys
from functools import partial

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

import weft.numpy as jnp
from tests.examples.running import is_picture, load_example, run_example
from weft import grad, jit, random, vmap
from weft.tree_util import tree_leaves, tree_map


@pytest.fixture(scope="module")
def example():
    return load_example("vae")


@pytest.fixture(scope="module")
def params(example):
    key_encoder, key_decoder = random.split(random.key(0))
    made = example.encoder_init(key_encoder, (64,))[1], example.decoder_init(key_decoder, (2,))[1]
    return made


@pytest.mark.slow
def test_a_run_reaches_the_bar_and_draws(tmp_path):
    done = run_example("vae", "--epochs", 60, "--out", tmp_path / "new")
    assert done.returncode == 0, done.stdout + done.stderr
    value = float(re.search(r"held-out ELBO (-[\d.]+) nats", done.stdout)[1])
    bound = float(re.search(r"log-likelihood at least (-[\d.]+)", done.stdout)[1])
    alone = float(re.search(r"independent pixels (-[\d.]+)", done.stdout)[1])
    assert bound > value > -160 > -240 > alone
    assert "60/60" in done.stderr
    for name in ("plane", "training"):
        assert is_picture(tmp_path / "new" / f"vae_{name}.png")


@pytest.mark.slow
def test_an_untrained_model_misses_the_bar(example, params, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["vae.py", "--out", str(tmp_path)])
    monkeypatch.setattr(example, "train", lambda *_: (params, None))
    for name in ("plot_training", "plot_plane"):
        monkeypatch.setattr(example, name, lambda *_: None)
    assert example.main() == 1
    assert "vae: missed the bar: held-out ELBO above -160 nats" in capsys.readouterr().err


def test_densities_are_scipys(example):
    rng = np.random.default_rng(0)
    logits, counts = rng.normal(0, 3, (4, 64)), rng.integers(0, 17, (4, 64))
    expected = scipy.stats.binom.logpmf(counts, 16, scipy.special.expit(logits)).sum(1)
    found = example.log_binomial(jnp.float32(logits), jnp.float32(counts))
    np.testing.assert_allclose(found, expected, rtol=1e-5)

    mean, log_std = np.array([0.7, -1.2]), np.array([-0.5, 0.4])
    integral = 0.0
    for m, s in zip(mean, np.exp(log_std)):
        p, q = scipy.stats.norm(m, s), scipy.stats.norm()
        part = lambda x, p=p, q=q: p.pdf(x) * (p.logpdf(x) - q.logpdf(x))
        integral += scipy.integrate.quad(part, m - 12 * s, m + 12 * s)[0]
    found = example.kl_to_standard_normal(jnp.float32(mean), jnp.float32(log_std))
    np.testing.assert_allclose(found, integral, rtol=1e-5)


def test_bounds_are_below_the_integral_and_close(example, params):
    counts = jnp.asarray(example.load_data(random.key(0))[1][0][0])
    line = np.linspace(-6, 6, 61)
    plane = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2).astype(np.float32)
    joint = example.log_binomial(example.decode(params[1], plane), counts)
    joint = np.float64(joint) + scipy.stats.norm.logpdf(plane).sum(1)
    evidence = scipy.special.logsumexp(joint) + 2 * np.log(line[1] - line[0])
    keys = random.split(random.key(1), 400)
    values = jit(vmap(lambda key: example.elbo(params, key, counts)))(keys)
    by_5000 = jit(partial(example.importance_bound, draws=5000))
    bound = by_5000(params, random.key(2), counts)
    assert np.mean(values) < evidence
    np.testing.assert_allclose(bound, evidence, atol=0.3)


def test_gradients_go_through_the_draw(example, params):
    counts = jnp.asarray(example.load_data(random.key(0))[1][0][:3])
    mean_elbo = jit(lambda p: example.mean_over_images(example.elbo, p, random.key(3), counts))
    slope = jit(grad(mean_elbo))(params)
    rng = np.random.default_rng(0)
    way = tree_map(lambda a: jnp.float32(rng.standard_normal(a.shape)), params)
    high, low = (tree_map(lambda a, d, s=s: a + s * d, params, way) for s in (1e-4, -1e-4))
    expected = (mean_elbo(high) - mean_elbo(low)) / 2e-4
    found = sum(np.vdot(a, b) for a, b in zip(tree_leaves(slope), tree_leaves(way)))
    np.testing.assert_allclose(found, expected, rtol=0.02)
    assert all(np.any(np.asarray(w)) for w in tree_leaves(slope[0]))  # the encoder's, too


def test_independent_pixels(example):
    rng = np.random.default_rng(0)
    counts, held_out = rng.integers(0, 17, (2, 50, 64)).astype(np.float32)
    odds = scipy.stats.binom(16, (counts.sum(0) + 0.5) / (16 * 50 + 1))
    expected = odds.logpmf(held_out).sum(1).mean()
    np.testing.assert_allclose(example.independent_pixels(counts, held_out), expected, rtol=1e-5)
