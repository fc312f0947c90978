"""The transformer: run small as a user runs it, and its parts against plain computations."""

import re

import numpy as np
import pytest

import weft.numpy as jnp
from tests.examples.running import is_picture, load_example, run_example
from weft import random

example = load_example("transformer")
SIZES = {"alphabet_size": 11, "width": 16, "layers": 2}


@pytest.fixture(scope="module")
def params():
    return example.init_params(random.key(1), **SIZES)


@pytest.fixture(scope="module")
def text():
    return np.random.default_rng(0).integers(0, 11, (3, 9), dtype=np.int32)


def test_a_run_that_learns_nothing_misses_the_bar_and_draws(tmp_path, monkeypatch, capsys):
    sizes = ["--steps", "2", "--width", "16", "--context", "8", "--layers", "1"]
    monkeypatch.setattr("sys.argv", ["transformer.py", *sizes, "--out", str(tmp_path)])
    assert example.main() == 1
    said = capsys.readouterr()
    assert "transformer: missed the bar: " in said.err and "2/2" in said.err
    assert is_picture(tmp_path / "transformer.png")


@pytest.mark.slow
def test_small_run_learns_more_than_pairs_of_characters(tmp_path):
    """Without attention it would be a bigram model, and could not get below one."""
    sizes = ["--steps", "150", "--width", "32", "--context", "32", "--rate", "0.02"]
    done = run_example("transformer", *sizes, "--out", tmp_path)
    bits, bigram = re.search(
        r"held-out bits per character ([\d.]+), bigram model ([\d.]+)", done.stdout
    ).groups()
    assert float(bits) < float(bigram), done.stdout + done.stderr
    assert done.returncode == (float(bits) >= float(bigram) - 1)
    assert "150/150" in done.stderr
    assert is_picture(tmp_path / "transformer.png")


def plain(params, text, heads):
    """The same network in NumPy, by loops over layers, heads and positions."""

    def norm(scale, x):
        return scale * x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)

    def turned(x):
        half = x.shape[-1] // 2
        turn = np.exp(1j * np.arange(len(x))[:, None] * 100.0 ** -(np.arange(half) / half))
        z = (x[:, :half] + 1j * x[:, half:]) * turn
        return np.concatenate([z.real, z.imag], axis=-1)

    x = params["characters"][text]
    for i in range(SIZES["layers"]):
        p = {name: value[i] for name, value in params["layers"].items()}
        q, k, v = np.split(norm(p["norms"][0], x) @ p["qkv"], 3, axis=-1)
        seen = np.zeros_like(x)
        for part in np.split(np.arange(x.shape[-1]), heads):
            score = turned(q[:, part]) @ turned(k[:, part]).T / np.sqrt(len(part))
            for t in range(len(text)):
                weight = np.exp(score[t, : t + 1] - score[t, : t + 1].max())
                seen[t, part] = weight / weight.sum() @ v[: t + 1, part]
        x = x + seen @ p["out"]
        h = norm(p["norms"][1], x) @ p["up"]
        h = h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3))) / 2
        x = x + h @ p["down"]
    return norm(params["norm"], x) @ params["characters"].T


def test_network_is_its_definition(params, text):
    made = np.asarray(example.logits(params, text, 4))
    values = {
        **{name: np.asarray(params[name], np.float64) for name in ("characters", "norm")},
        "layers": {k: np.asarray(v, np.float64) for k, v in params["layers"].items()},
    }
    for one, got in zip(text, made, strict=True):
        np.testing.assert_allclose(got, plain(values, one, 4), atol=2e-5)


def test_bits_of_an_even_guess(params, text):
    """A network that says nothing pays log2 of the alphabet for each character."""
    silent = {**params, "norm": jnp.zeros(SIZES["width"])}
    assert float(example.bits_per_character(silent, text, 4)) == pytest.approx(np.log2(11))


def test_ngrams_are_witten_bell(monkeypatch):
    """abab|b by hand: each context in turn trusts its counts by n / (n + k)."""
    monkeypatch.setattr(example, "ORDERS", (1, 2))
    train, held_out = np.array([0, 1, 0, 1]), np.array([1, 0])
    unigram = (2 + 2 * 0.5) / (4 + 2)  # both letters seen twice, both kinds seen
    bigram = (1 + 1 * unigram) / (1 + 1)  # "ba" once; one kind follows "b"
    bits = example.ngram_bits(train, held_out, 2)
    assert bits == pytest.approx([-np.log2(unigram), -np.log2(bigram)])  # "a" after "b"


def test_ngrams_are_probabilities():
    """Over all that may come next, each model sums to one."""
    rng = np.random.default_rng(0)
    train = rng.integers(0, 4, 200)
    context = [2, 0, 3]
    last = [example.ngram_bits(train, np.array([*context, c]), 4)[3] for c in range(4)]
    assert sum(2.0 ** -np.array(last)) == pytest.approx(1)


def test_windows_say_each_character_once():
    windows = example.windows_of(np.arange(20), 6)
    assert windows.shape == (3, 7)
    assert windows[:, 1:].ravel().tolist() == list(range(1, 19))


def test_rate_rises_then_falls():
    rate = example.warm_cosine(0.5, 100)
    values = [float(rate(i)) for i in range(100)]
    assert values[4] == pytest.approx(0.5) and np.argmax(values) == 4
    assert all(a > b for a, b in zip(values[5:], values[6:], strict=False)) and values[-1] < 1e-3


def test_writes_by_the_models_own_probabilities(params, text):
    """The same key writes the same; a model sure of one character writes nothing else."""
    prompt = jnp.asarray(text[0])
    first, again, other = (example.write(random.key(k), params, prompt, 4, 24) for k in (0, 0, 1))
    assert (first == again).all() and not (first == other).all()
    sure = {**params, "characters": jnp.eye(11, 16), "norm": 100 * jnp.eye(16)[3]}
    sure["layers"] = {name: jnp.zeros_like(x) for name, x in params["layers"].items()}
    after_three = example.write(random.key(0), sure, jnp.full(9, 3, jnp.int32), 4, 24)
    assert (after_three == 3).all()
