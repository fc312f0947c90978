"""Attention by the kernel: against NumPy, against the computation without it, and its rules."""

import numpy as np
import pytest

import weft.numpy as jnp
from weft import config, grad, jit, jvp, nn, vjp, vmap
from weft.cpu.kernels import load_kernels
from weft.tree_util import tree_leaves

pytestmark = pytest.mark.skipif(bool(load_kernels()), reason="the kernels are not built")

# batch, queries, keys, heads, heads of keys, size: of whole tiles and blocks, and of others
SHAPES = [
    (2, 64, 64, 2, 2, 32),
    (2, 70, 90, 4, 2, 24),
    (2, 9, 300, 3, 1, 80),
    (3, 1, 5, 8, 8, 3),
    (1, 130, 300, 1, 1, 64),  # keys are cut into parts
    (1, 33, 65, 6, 2, 128),
]
SPANS = [
    ({}, lambda i, j: True),
    ({"is_causal": True}, lambda i, j: j <= i),
    ({"local_window_size": (100, 3)}, lambda i, j: (i - 100 <= j) & (j <= i + 3)),
    ({"local_window_size": (100, 3), "is_causal": True}, lambda i, j: (i - 100 <= j) & (j <= i)),
]


def draw(rng, shape):
    b, t, s, n, k, h = shape
    sizes = (b, t, n, h), (b, s, k, h), (b, s, k, h), (b, t, n, h), (b, t, n)
    return [rng.standard_normal(size).astype(np.float32) for size in sizes]


def expect(q, k, v, ct, ct_logs, scale, pairs):
    """The means, logs, and cotangents of q, k and v, in float64."""
    q, k, v, ct, ct_logs = (x.astype(np.float64) for x in (q, k, v, ct, ct_logs))
    groups = q.shape[2] // k.shape[2]
    k, v = (np.repeat(x, groups, 2) for x in (k, v))
    where = pairs(np.arange(q.shape[1])[:, None], np.arange(k.shape[1]))
    scores = np.where(where, np.einsum("btnh,bsnh->bnts", q, k) * scale, -np.inf)
    logs = np.logaddexp.reduce(scores, -1)
    weights = np.exp(scores - logs[..., None])
    moves = np.einsum("btnh,bsnh->bnts", ct, v)
    moves -= (weights * moves).sum(-1, keepdims=True) - np.swapaxes(ct_logs, 1, 2)[..., None]
    moves = weights * moves * scale
    grads = [np.einsum("bnts,bsnh->btnh", moves, k)]
    for x, y in ((moves, q), (weights, ct)):
        each = np.einsum("bnts,btnh->bsnh", x, y)
        grads.append(each.reshape(*each.shape[:2], -1, groups, each.shape[3]).sum(3))
    return np.einsum("bnts,bsnh->btnh", weights, v), np.swapaxes(logs, 1, 2), *grads


def calls(f, *args):
    return f.lower(*args).as_text().count('call_target_name = "weft_attention"')


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("given, pairs", SPANS, ids=["all", "causal", "window", "both"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_means_and_cotangents(shape, given, pairs, rng):
    q, k, v, ct, ct_logs = draw(rng, shape)
    f = lambda *xs: nn.dot_product_attention(*xs, **given, scale=0.3, return_residual=True)

    def run(*args):
        outs, pull = vjp(f, *args[:3])
        return *outs, *pull(args[3:])

    run = jit(run)
    assert calls(run, q, k, v, ct, ct_logs) == 2
    got = run(q, k, v, ct, ct_logs)
    for x, y in zip(got, expect(q, k, v, ct, ct_logs, 0.3, pairs), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 2)])
def test_only_what_is_wanted(which, rng):
    q, k, v, ct, ct_logs = draw(rng, SHAPES[1])
    f = jit(grad(lambda *xs: jnp.sum(nn.dot_product_attention(*xs) * ct), which))
    want = expect(q, k, v, ct, 0 * ct_logs, 24**-0.5, SPANS[0][1])[2:]
    assert calls(f, q, k, v) == 2
    for i, got in zip(which, f(q, k, v), strict=True):
        np.testing.assert_allclose(got, want[i], rtol=1e-4, atol=2e-5)


def test_transformed_as_without_the_kernel(rng):
    q, k, v, ct, _ = draw(rng, (2, 6, 7, 4, 2, 5))
    qs, ks = np.stack([q, -q, 2 * q], 1), np.stack([k, 2 * k, -k])
    f = lambda *xs: nn.dot_product_attention(*xs, is_causal=True, return_residual=True)
    loss = lambda *xs: jnp.sum(f(*xs)[0] * ct) + jnp.sum(jnp.sin(f(*xs)[1]))
    square = lambda *xs: sum(jnp.sum(g**2) for g in grad(loss, (0, 1, 2))(*xs))

    def run():  # traced for each
        return jit(
            lambda q, k, v, qs, ks: [
                f(q, k, v),
                jvp(f, (q, k, v), (k.repeat(2, 2)[:, :6], v, k)),
                jvp(lambda k: f(q, k, v), (k,), (v,)),
                grad(square, (0, 1, 2))(q, k, v),
                jvp(grad(loss), (q, k, v), (q, v, k))[1],
                vmap(f, (1, 0, None))(qs, ks, v),
                vmap(grad(loss, (0, 1, 2)), (1, 0, None))(qs, ks, v),
                vmap(lambda q: jvp(lambda k: f(q, k, v), (k,), (v,)), 1)(qs),
            ]
        )

    with config.scope(native=False):
        plain = run()
        assert calls(plain, q, k, v, qs, ks) == 0
        want = tree_leaves(plain(q, k, v, qs, ks))
    native = run()
    assert calls(native, q, k, v, qs, ks) > 5
    for x, y in zip(tree_leaves(native(q, k, v, qs, ks)), want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)


def test_staged_with_the_kernel_and_lowered_without(rng):
    args = q, k, v, ct, ct_logs = draw(rng, SHAPES[1])
    traced = jit(lambda *xs: vjp(nn.dot_product_attention, *xs[:3])[1](xs[3])).trace(*args)
    with config.scope(native=False):
        lowered = traced.lower()
        assert "weft_attention" not in lowered.as_text()
        grads = lowered.compile()(*args)
    for x, y in zip(grads, expect(*args[:4], 0 * ct_logs, 24**-0.5, SPANS[0][1])[2:], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("shift", [0, -50])  # all scores are small
def test_scores_beyond_the_exponentials_range(shift, rng):
    q, k, v, ct, ct_logs = draw(rng, (1, 8, 70, 1, 1, 16))
    q = 300 * q if shift == 0 else abs(q) + 1
    k += shift
    got, pull = jit(lambda *xs: vjp(nn.dot_product_attention, *xs))(q, k, v)
    want = expect(q, k, v, ct, 0 * ct_logs, 0.25, SPANS[0][1])
    np.testing.assert_allclose(got, want[0], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(pull(ct)[2], want[4], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_stays_in_its_row(value, rng):
    q, k, v, *_ = draw(rng, (1, 12, 20, 2, 2, 8))
    q[0, 3, 1, 2] = value
    got = np.asarray(jit(nn.dot_product_attention)(q, k, v))
    assert np.isnan(got[0, 3, 1]).all()
    assert np.isnan(got).sum() == 8


@pytest.mark.parametrize(
    "change",
    [
        {"mask": np.ones((1, 1, 1, 9), bool)},
        {"bias": np.zeros(9, np.float32)},
        {"key_value_seq_lengths": np.array([3, 9])},
        {"local_window_size": (2, 2)},  # the last queries have no key
    ],
    ids=lambda c: next(iter(c)),
)
def test_left_to_other_operations(change, rng):
    q, k, v, *_ = draw(rng, (2, 16, 9, 2, 2, 8))
    f = jit(lambda q, k, v: nn.dot_product_attention(q, k, v, **change))
    assert calls(f, q, k, v) == 0
    assert calls(jit(nn.dot_product_attention), q, k, v) == 1
    few = [x[:1, :1, :1] for x in (q, k, v)]
    empty = [x[:, :0] for x in (q, k, v)]
    large = [np.zeros((2, 16, 2, 80), np.float32)] * 3
    for args in (few, empty, large, [x.astype(jnp.bfloat16) for x in (q, k, v)]):
        assert calls(jit(nn.dot_product_attention), *args) == 0


# --- attention that is written by operations ---


def normalize(scores):
    weights = jnp.exp(scores - jnp.max(scores, -1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def by_matmul(q, k, v, mask, fill, softmax=nn.softmax):
    """(batch, heads, rows, features), as `dot_product_attention` in many libraries."""
    scores = q @ jnp.swapaxes(k, -1, -2) / np.float32(3)
    return softmax(scores if mask is None else jnp.where(mask, scores, fill)) @ v


def by_einsum(q, k, v, mask, fill):
    """(batch, heads, rows, features), but with the heads behind the rows in the products."""
    q, k, v = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
    scores = 0.5 * (jnp.einsum("btnh,bsnh->bnts", q, k) * 0.25)
    if mask is not None:
        scores = jnp.where(~mask, fill, scores)
    return jnp.swapaxes(jnp.einsum("bnts,bsnh->btnh", normalize(scores), v), 1, 2)


def by_vmap(q, k, v, mask, fill):
    one = lambda q, k, v: by_matmul(q, k, v, mask, fill, normalize)
    return vmap(vmap(one))(q, k, v)


# a function, and the scale that it has
WAYS = {by_matmul: 1 / 3, by_einsum: 1 / 8, by_vmap: 1 / 3}
# batch, heads, queries, keys, features
WRITTEN = [
    (2, 3, 64, 64, 32),
    (1, 2, 70, 90, 24),
    (3, 1, 130, 61, 7),
    (2, 2, 8, 200, 80),
    (1, 1, 65, 129, 128),
]


def masks(shape, rng):
    b, n, t, s, _ = shape
    causal = np.arange(t)[:, None] >= np.arange(s)
    window = causal & (np.arange(t)[:, None] < np.arange(s) + 5)
    return {
        "none": None, "causal": causal, "window": window | (np.arange(s) == 0),
        "any": rng.random((t, s)) < 0.3, "keys": np.arange(s) < s // 3, "some rows": causal[::-1],
        "nothing": np.zeros((t, s), bool),
    }  # fmt: skip


def expect_written(q, k, v, mask, fill, scale):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    with np.errstate(all="ignore"):
        scores = q @ np.swapaxes(k, -1, -2) * scale
        scores = scores if mask is None else np.where(mask, scores, np.float64(fill))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v


def called(f, *args):
    return f.lower(*args).as_text().count('call_target_name = "weft_masked_attention"')


@pytest.mark.parametrize("fill", [-np.inf, -1e9, 2.5])
@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", WRITTEN, ids=str)
def test_written_attention(shape, way, fill, rng):
    b, n, t, s, h = shape
    q, k, v = (rng.standard_normal((b, n, m, h)).astype(np.float32) for m in (t, s, s))
    for name, mask in masks(shape, rng).items():
        f = jit(lambda q, k, v, mask=mask: way(q, k, v, mask, np.float32(fill)))
        assert called(f, q, k, v) == 1, name
        want = expect_written(q, k, v, mask, fill, WAYS[way])
        np.testing.assert_allclose(f(q, k, v), want, rtol=1e-4, atol=6e-6, err_msg=name)


def test_a_mask_of_each_batch_and_head(rng):
    b, n, t, s, h = 2, 3, 70, 90, 16
    q, k, v = (rng.standard_normal((b, n, m, h)).astype(np.float32) for m in (t, s, s))
    f = jit(lambda q, k, v, mask: by_matmul(q, k, v, mask, -jnp.inf))
    sizes = [(b, n, t, s), (b, 1, t, s), (n, 1, s), (b, 1, 1, s), (t, 1), (b, n, 1, 1), (1, s)]
    for size in sizes:
        mask = rng.random(size) < 0.7
        assert called(f, q, k, v, mask) == 1
        with np.errstate(all="ignore"):
            want = expect_written(q, k, v, mask, -np.inf, 1 / 3)
        np.testing.assert_allclose(f(q, k, v, mask), want, rtol=1e-4, atol=6e-6, err_msg=str(size))


@pytest.mark.parametrize("fill", [-np.inf, -1e9, -1e38])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -3e38, 1e30])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_written_attention_of_numbers_that_are_not_finite(which, bad, fill, rng):
    """One bad number, in a row of queries or keys, or in a value that most queries do not see."""
    t = 150
    args = [rng.standard_normal((1, 2, t, 8)).astype(np.float32) for _ in range(3)]
    args[which][0, 1, 140, 3] = bad
    mask = np.tril(np.ones((t, t), bool))
    mask[70] = False
    f = jit(lambda *xs: by_matmul(*xs, mask, np.float32(fill)))
    assert called(f, *args) == 1
    got = f(*args)
    with config.scope(native=False):
        want = jit(lambda *xs: by_matmul(*xs, mask, np.float32(fill)))(*args)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_written_attention_that_stays(rng):
    """Weights that others read, other dtypes, other axes, many keys without a mask, no rows."""
    q, k, v = (rng.standard_normal((2, 64, 64)).astype(np.float32) for _ in range(3))
    plain = lambda q, k, v: by_matmul(q, k, v, None, 0)
    wide = (q, np.tile(k, (1, 8, 1)), np.tile(v, (1, 8, 1)))
    turned = lambda q, k, v: nn.softmax(q @ jnp.swapaxes(k, -1, -2), -2) @ v
    both = lambda q, k, v: (w := nn.softmax(q @ jnp.swapaxes(k, -1, -2)), w @ v)
    halves = [x.astype(np.float16) for x in (q, k, v)]
    for f, args in [
        (turned, (q, k, v)), (both, (q, k, v)), (plain, halves), (plain, wide),
        (plain, (q[:, :0], k, v)), (plain, (q[..., :0], k[..., :0], v)),
        (plain, (q, k, v[..., :3])),
    ]:  # fmt: skip
        assert called(jit(f), *args) == 0


def test_derivatives_of_written_attention(rng):
    q, k, v, ct = (rng.standard_normal((2, 2, 70, 16)).astype(np.float32) for _ in range(4))
    mask = np.tril(np.ones((70, 70), bool))
    loss = lambda *xs: (by_matmul(*xs, mask, -jnp.inf) * ct).sum()
    got = jit(grad(loss, (0, 1, 2)))(q, k, v)
    with config.scope(enable_x64=True):
        args = [x.astype(np.float64) for x in (q, k, v)]
        assert called(jit(lambda *xs: by_matmul(*xs, mask, -jnp.inf)), *args) == 0
        moves = [rng.standard_normal(x.shape) for x in args]
        steps = [[x + s * m for x, m in zip(args, moves, strict=True)] for s in (1e-6, -1e-6)]
        up, down = (loss(*xs) for xs in steps)
    slope = sum(
        (g.astype(np.float64) * m).sum() for g, m in zip(map(np.asarray, got), moves, strict=True)
    )
    np.testing.assert_allclose(slope, (up - down) / 2e-6, rtol=1e-4)
