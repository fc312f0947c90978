"""Tensor parallelism: run small as a user runs it, and its parts against plain computations."""

import re
import types

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.examples.running import is_picture, load_example, run_example
from weft import P, random
from weft.tree_util import tree_map

example = load_example("tensor_parallel")
SMALL = ["--steps", 6, "--width", 16, "--layers", 1, "--heads", 2, "--context", 16, "--batch", 4]
ARGS = types.SimpleNamespace(width=16, heads=2, layers=2, context=8, batch=4)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_small_run_is_that_of_one_device(processes, tmp_path):
    """A sum too few is another loss, and a needless one is counted."""
    done = run_example("tensor_parallel", *SMALL, "--processes", processes, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"in {processes} process(es)" in done.stdout
    for name in ("jit", "shard_map", "a careful engineer"):
        assert f"collectives of a step, {name}: 5 all-reduce" in done.stdout
    for name in ("jit", "shard_map"):
        off = re.search(rf"{name}: loss within (\S+) of one device, parameters within (\S+)",
                        done.stdout)  # fmt: skip
        assert max(map(float, off.groups())) < 2e-5
    assert "6/6" in done.stderr
    assert is_picture(tmp_path / "tensor_parallel.png")


@pytest.fixture(scope="module")
def params():
    return example.init_params(random.key(0), 11, ARGS)


def plain_loss(params, windows):
    """The network in NumPy, by loops over heads and positions."""

    def norm(scale, x):
        return scale * x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)

    def turned(x):
        half = x.shape[-1] // 2
        turn = np.exp(1j * np.arange(len(x))[:, None] * 100.0 ** -(np.arange(half) / half))
        z = (x[:, :half] + 1j * x[:, half:]) * turn
        return np.concatenate([z.real, z.imag], axis=-1)

    bits = []
    for window in windows:
        x = params["characters"][window[:-1]]
        for p in params["layers"]:
            h = norm(p["norms"][0], x)
            for head in range(ARGS.heads):
                q, k, v = (h @ p["qkv"][i, :, head] for i in range(3))
                score = turned(q) @ turned(k).T / np.sqrt(q.shape[-1])
                for t in range(len(x)):
                    weight = np.exp(score[t, : t + 1])
                    x[t] = x[t] + weight / weight.sum() @ v[: t + 1] @ p["out"][head]
            h = norm(p["norms"][1], x) @ p["up"]
            h = h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3))) / 2
            x = x + h @ p["down"]
        scores = np.exp(norm(params["norm"], x) @ params["characters"].T)
        bits.append(-np.log2(scores / scores.sum(-1, keepdims=True))[range(len(x)), window[1:]])
    return np.mean(bits)


def test_loss_is_its_definition(params):
    windows = np.random.default_rng(0).integers(0, 11, (3, 9), dtype=np.int32)
    values = tree_map(lambda x: np.asarray(x, np.float64), params)
    got = example.loss(params, windows, lambda x: x)
    assert float(got) == pytest.approx(plain_loss(values, windows), rel=1e-5)


def test_adam_is_its_definition():
    """Three steps on one number against the algorithm in plain Python."""
    state = tuple(jnp.float32(x) for x in (0.5, 0, 0)) + (jnp.int32(0),)
    p, m, s = 0.5, 0.0, 0.0
    for t, g in enumerate((0.3, -1.2, 0.01), start=1):
        state = example.adam(state, jnp.float32(g), 0.1)
        m, s = 0.9 * m + 0.1 * g, 0.98 * s + 0.02 * g * g
        p -= 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.98**t)) + 1e-6)
        assert float(state[0]) == pytest.approx(p, abs=1e-5)
    assert state[3] == 3


def test_collectives_are_counted():
    text = """
  %all-reduce.24 = (f32[3,4]{1,0}, f32[5]{0}, f32[]) all-reduce(%a, %b, %c), channel_id=1
  %all-gather.1 = f32[8,64]{1,0} all-gather(%d), channel_id=2, dimensions={0}
  %all-reduce-start.2 = f32[2]{0} all-reduce-start(%e), channel_id=3
  %get-tuple-element = f32[2]{0} get-tuple-element(%all-reduce.24), index=1
"""
    counts, sent = example.collectives(types.SimpleNamespace(as_text=lambda: text))
    assert counts == {"all-reduce": 2, "all-gather": 1}
    assert sent == 4 * (12 + 5 + 1 + 8 * 64 + 2)


def test_one_device_says_nothing(params):
    state = params, params, params, 0
    program = weft.jit(lambda s: s[0]["norm"] * 2).lower(state).compile()
    assert example.collectives(program) == ({}, 0)


def test_careful_counts_each_parameter_once(params):
    specs = example.specs_of(params)
    counts, sent = example.careful(params, specs, ARGS)
    assert counts == {"all-reduce": 9}
    split = 3 * 16 * 16 + 16 * 16 + 2 * 16 * 64
    gradients = 11 * 16 + 16 + 2 * (2 * 16 + split // 2)
    assert sent == 4 * (8 * 2 * 8 * 16 + gradients + 1)


def test_distance_is_the_greatest():
    mesh = weft.make_mesh((1, 1), ("data", "model"))
    whole = {"a": np.arange(4.0, dtype=np.float32), "b": np.ones(2, np.float32)}
    laid = example.laid(whole, mesh, {"a": P("data"), "b": P()})
    moved = {"a": whole["a"] + np.float32([0, 0, 0.5, 0]), "b": whole["b"] - 0.25}
    assert example.distance(laid, moved) == 0.5
