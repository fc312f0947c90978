"""lstm: against a loop in NumPy, and JAX's reference, whose numbers are kept below."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, random, vmap
from weft.errors import ShapeError
from weft.experimental import rnn

BATCH, TIME, INPUT, HIDDEN, LAYERS = 3, 5, 2, 4, 2
LENGTHS = np.array([5, 3, 1], np.int32)

# Parts of what JAX gives for the numbers of test_jax_gives_the_same.
Y = [
    [-0.1723009, 0.1503906, -0.2589191],
    [-0.3724431, 0.2244115, -0.281079],
    [-0.3489965, 0.2877564, -0.2541706],
    [0.0, 0.0, 0.0],
    [0.0, 0.0, 0.0],
]
H = [-0.0447751, 0.0321489, -0.0582738, -0.0521161]
C = [-0.0128219, -0.1799141, -0.2421537, -0.56929]


def problem(bidirectional):
    rng = np.random.default_rng(0)
    count = rnn.get_num_params_in_lstm(INPUT, HIDDEN, LAYERS, bidirectional)
    states = (LAYERS * (1 + bidirectional), BATCH, HIDDEN)
    x = rng.normal(size=(BATCH, TIME, INPUT)).astype(np.float32)
    h, c = (rng.normal(size=states).astype(np.float32) for _ in "hc")
    return x, h, c, rng.normal(size=count).astype(np.float32) / 3


def run(x, h, c, w, bidirectional, lengths=LENGTHS):
    return rnn.lstm(x, h, c, w, lengths, INPUT, HIDDEN, LAYERS, 0.0, bidirectional)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def looped(x, h_0, c_0, w, bidirectional):
    """A sequence at a time, a layer at a time, a step at a time."""
    parts = [{k: np.asarray(v, float) for k, v in d.items()} for d in rnn.unpack_lstm_weights(
        w, INPUT, HIDDEN, LAYERS, bidirectional
    )]  # fmt: skip
    directions = 1 + bidirectional
    y = np.zeros((BATCH, TIME, directions * HIDDEN))
    h_n, c_n = h_0.astype(float), c_0.astype(float)
    for b, n in enumerate(LENGTHS):
        inputs = x[b, :n].astype(float)
        for layer in range(LAYERS):
            outs = np.zeros((n, directions * HIDDEN))
            for d in range(directions):
                k = layer * directions + d
                w_ih, w_hh, b_ih, b_hh = (p[k] for p in parts)
                h, c = h_n[k, b], c_n[k, b]
                for t in range(n) if d == 0 else reversed(range(n)):
                    i, f, g, o = np.split(w_ih @ inputs[t] + b_ih + w_hh @ h + b_hh, 4)
                    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                    h = sigmoid(o) * np.tanh(c)
                    outs[t, d * HIDDEN : (d + 1) * HIDDEN] = h
                h_n[k, b], c_n[k, b] = h, c
            inputs = outs
        y[b, :n] = inputs
    return y, h_n, c_n


@pytest.mark.parametrize("place", range(4), ids=["x", "h_0", "c_0", "weights"])
def test_dtypes_are_promoted_to_one(place):
    args = list(problem(True))
    promoted = {np.float64: np.float64, np.float16: np.float32, np.int8: np.float32}
    for dtype, wanted in promoted.items():
        args[place] = problem(True)[place].astype(dtype)
        with weft.enable_x64(True):
            got = run(*args, True)
        assert {each.dtype for each in got} == {np.dtype(wanted)}
        for a, b in zip(got, looped(*args, True), strict=True):
            np.testing.assert_allclose(a, b, atol=2e-6)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_loop_in_numpy_gives_the_same(bidirectional):
    args = problem(bidirectional)
    want = looped(*args, bidirectional)
    for got in (run(*args, bidirectional), jit(run, static_argnums=4)(*args, bidirectional)):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, atol=2e-6)
    x, h, c, w = args
    unpacked = rnn.unpack_lstm_weights(w, INPUT, HIDDEN, LAYERS, bidirectional)
    rest = (LENGTHS, INPUT, HIDDEN, LAYERS, 0.0, bidirectional)
    for a, b in zip(rnn.lstm_ref(x, h, c, *unpacked, *rest), want, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


def test_jax_gives_the_same():
    # jax 0.10.2, lstm_ref: weights (arange(n) % 17 - 8) / 20, two layers in both directions
    count = rnn.get_num_params_in_lstm(INPUT, HIDDEN, LAYERS, True)
    w = (np.arange(count) % 17 - 8).astype(np.float32) / 20
    x = np.sin(np.arange(BATCH * TIME * INPUT)).reshape(BATCH, TIME, INPUT)
    h, c = (f(np.arange(4 * BATCH * HIDDEN)).reshape(4, BATCH, HIDDEN) for f in (np.cos, np.sin))
    y, h_n, c_n = run(*(v.astype(np.float32) for v in (x, h, c)), w, True)
    np.testing.assert_allclose(y[1, :, 1::3], Y, atol=1e-6)
    np.testing.assert_allclose(h_n[:, 2, 0], H, atol=1e-6)
    np.testing.assert_allclose(c_n[:, 0, 3], C, atol=1e-6)


def test_what_comes_after_the_end_is_not_looked_at():
    x, h, c, w = problem(True)
    spoiled = x.copy()
    spoiled[1, 3:] = np.nan
    loss = lambda x, w: sum(jnp.sum(v**2) for v in run(x, h, c, w, True))
    for got, want in zip(run(spoiled, h, c, w, True), run(x, h, c, w, True), strict=True):
        np.testing.assert_array_equal(got, want)
    by_x = grad(loss)(x, w)
    assert not np.any(by_x[1, 3:]) and np.all(np.any(by_x[1, :3], axis=1))
    assert not np.any(run(x, h, c, w, True)[0][1, 3:])


def test_an_empty_sequence_keeps_its_state():
    x, h, c, w = problem(True)
    y, h_n, c_n = run(x, h, c, w, True, np.array([5, 0, 2]))
    assert not np.any(y[1])
    np.testing.assert_array_equal(h_n[:, 1], h[:, 1])
    np.testing.assert_array_equal(c_n[:, 1], c[:, 1])


def test_derivatives_are_differences():
    with weft.enable_x64():
        args = [v.astype(np.float64) for v in problem(True)]
        loss = lambda *args: sum(jnp.sum(jnp.sin(v)) for v in run(*args, True))
        rng, eps = np.random.default_rng(1), 1e-6
        for k, slope in enumerate(jit(grad(loss, (0, 1, 2, 3)))(*args)):
            t = rng.normal(size=args[k].shape)
            ends = [
                loss(*[v + s * t if i == k else v for i, v in enumerate(args)]) for s in (-eps, eps)
            ]
            np.testing.assert_allclose(
                np.sum(slope * t), (ends[1] - ends[0]) / (2 * eps), rtol=1e-6
            )


def test_under_vmap():
    x, h, c, w = problem(False)
    many = vmap(lambda w: run(x, h, c, w, False)[0])(np.stack([w, 2 * w]))
    np.testing.assert_allclose(many[1], run(x, h, c, 2 * w, False)[0], atol=1e-6)


def test_weights():
    count = rnn.get_num_params_in_lstm(3, 5, 2, True)
    assert count == 2 * (20 * (3 + 5) + 20 * (10 + 5) + 2 * 2 * 20)
    w = rnn.init_lstm_weight(random.key(0), 3, 5, 2, True)
    assert w.shape == (count,) and 0.9 < np.abs(w).max() * np.sqrt(5) <= 1
    # jax 0.10.2 without jax_threefry_partitionable, PRNGKey(0)
    jaxs = [-0.06821811, -0.20618439, 0.41986346, 0.42346168, 0.09782898]
    np.testing.assert_allclose(
        rnn.init_lstm_weight(random.key(0), 2, 4, 2, False)[:5], jaxs, rtol=1e-6
    )
    W_ih, W_hh, b_ih, b_hh = rnn.unpack_lstm_weights(np.arange(count), 3, 5, 2, True)
    assert [W_ih[i][0, 0] for i in range(4)] == [0, 160, 320, 620]
    assert W_ih[2].shape == (20, 10) and b_ih[0][0] == 920 and b_hh[3][-1] == count - 1
    swapped = rnn.swap_lstm_gates(np.arange(count), 3, 5, 2, True)
    np.testing.assert_array_equal(rnn.swap_lstm_gates(swapped, 3, 5, 2, True), np.arange(count))
    moved = rnn.unpack_lstm_weights(swapped, 3, 5, 2, True)[1][1]
    np.testing.assert_array_equal(moved, W_hh[1][np.r_[0:10, 15:20, 10:15]])


def test_mistakes():
    x, h, c, w = problem(False)
    with pytest.raises(ShapeError, match=r"must be a vector of 288 elements; got f32\[287\]"):
        run(x, h, c, w[1:], False)
    with pytest.raises(ShapeError, match=r"lstm: x must be \(batch, time, 2\); got f32\[3,5,1\]"):
        run(x[..., :1], h, c, w, False)
    with pytest.raises(ShapeError, match=r"lstm: c_0 must be \(2, 3, 4\)"):
        run(x, h, c[:1], w, False)
    with pytest.raises(ShapeError, match=r"lstm: seq_lengths must be \(3,\); got i32\[2\]"):
        run(x, h, c, w, False, LENGTHS[:2])
    with pytest.raises(NotImplementedError, match=r"lstm: dropout must be 0; got 0\.5"):
        rnn.lstm(x, h, c, w, LENGTHS, INPUT, HIDDEN, LAYERS, 0.5, False)


def test_the_two_passes():
    sizes = (2, 4, 1, 0.0, False, None)
    w = rnn.init_lstm_weight(weft.random.key(0), 2, 4, 1, False)
    x, state, lengths = jnp.ones((3, 5, 2)), jnp.zeros((1, 3, 4)), jnp.array([5, 2, 0])
    outs, residuals = rnn.lstm_fwd(x, state, state, w, lengths, *sizes)
    cts = weft.tree.map(jnp.ones_like, outs)
    *got, none = rnn.lstm_bwd(*sizes, residuals, cts)
    total = lambda *xs: sum(y.sum() for y in rnn.lstm(*xs, lengths, *sizes))
    for a, b in zip(got, weft.grad(total, (0, 1, 2, 3))(x, state, state, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert none is None
    avals = [weft.typeof(v) for v in (x, state, state, w, lengths)]
    assert [str(a) for a in rnn.rnn_abstract_eval(*avals, *sizes[:5], True)] == [
        "f32[3,5,4]", "f32[1,3,4]", "f32[1,3,4]"
    ]  # fmt: skip
    assert rnn.rnn_bwd_abstract_eval(*avals[:3], *avals, *sizes) == tuple(avals[:4])
