"""dot_product_attention against NumPy: heads, bias, masks, windows, lengths; scaled products."""

import functools

import ml_dtypes
import numpy as np
import pytest

import weft.numpy as jnp
from weft import enable_x64, grad, jit, jvp, nn, vjp
from weft.errors import DtypeError, ShapeError
from weft.nn import attention
from weft.test_util import check_jvp, check_vjp

B, T, S, N, K, H = 2, 5, 7, 4, 2, 8
F = nn.dot_product_attention


@pytest.fixture
def qkv(rng):
    shapes = (B, T, N, H), (B, S, K, H), (B, S, K, H)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


def plain(q, k, v, bias=0.0, mask=True, scale=None):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, N // K, axis=2) for x in (k, v))
    logits = np.einsum("btnh,bsnh->bnts", q, k) * (H**-0.5 if scale is None else scale) + bias
    logits = np.where(mask, logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    logs = np.log(np.exp(logits).sum(-1))
    return np.einsum("bnts,bsnh->btnh", weights, v), np.moveaxis(logs, 1, 2)


ROW, COLUMN = np.arange(T)[:, None], np.arange(S)


@pytest.mark.parametrize(
    "given, mask",
    [
        ({}, True),
        ({"scale": 0.3}, True),
        ({"is_causal": True}, ROW >= COLUMN),
        ({"local_window_size": 2}, abs(ROW - COLUMN) <= 2),
        ({"local_window_size": (3, 1)}, (COLUMN >= ROW - 3) & (COLUMN <= ROW + 1)),
        ({"local_window_size": (2, 2), "is_causal": True}, (COLUMN >= ROW - 2) & (COLUMN <= ROW)),
        (
            {"key_value_seq_lengths": np.array([3, 7], np.int32)},
            (np.array([3, 7])[:, None] > COLUMN)[:, None, None],
        ),
    ],
)
def test_which_pairs_count(qkv, given, mask):
    want, logs = plain(*qkv, mask=mask, scale=given.get("scale"))
    got, residual = jit(lambda *xs: F(*xs, **given, return_residual=True))(*qkv)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(residual, logs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(B, N, T, S), (1, N, 1, S), (1, 1, T, S), (T, S), (S,)])
def test_bias_and_mask_broadcast(qkv, shape, rng):
    bias, mask = rng.standard_normal(shape).astype(np.float32), rng.random(shape) < 0.8
    mask[..., 0] = True
    want, _ = plain(*qkv, bias=bias, mask=mask)
    np.testing.assert_allclose(F(*qkv, bias, mask), want, rtol=1e-4, atol=1e-5)


def test_query_lengths_give_zeros(qkv):
    got = F(*qkv, query_seq_lengths=jnp.array([2, 5]))
    want, _ = plain(*qkv)
    want[0, 2:] = 0
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_nothing_counts(qkv):
    got = F(*qkv, mask=jnp.zeros((1, 1, 1, S), bool))
    want = np.repeat(qkv[2].mean(1, keepdims=True), N // K, 2)
    np.testing.assert_allclose(got, np.broadcast_to(want, got.shape), rtol=1e-5, atol=1e-6)
    slope = grad(lambda q: F(q, *qkv[1:], mask=jnp.zeros((1, 1, 1, S), bool)).sum())(qkv[0])
    assert np.isfinite(slope).all()


def test_without_batch_and_in_bfloat16(qkv):
    got, logs = F(*[x[0] for x in qkv], return_residual=True)
    want, residual = plain(*qkv)
    np.testing.assert_allclose(got, want[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(logs, residual[0], rtol=1e-4, atol=1e-5)
    short = [x.astype(jnp.bfloat16) for x in qkv]
    got = F(*short)
    assert got.dtype == jnp.bfloat16
    want, _ = plain(*[np.asarray(x, np.float32) for x in short])
    np.testing.assert_allclose(np.asarray(got, np.float32), want, rtol=0.02, atol=0.02)


def test_derivatives(qkv, as_for_users):
    # XLA that does not optimize at all makes NaN of the derivative where many are masked
    run = functools.partial(jit, compiler_options=as_for_users)
    masked = lambda q, k, v, bias: F(q, k, v, bias, is_causal=True)
    forward = run(lambda args, tangents: jvp(masked, args, tangents))
    backward = run(lambda ct, *args: vjp(masked, *args)[1](ct))
    with enable_x64():
        args = [x[:1, :3].astype(np.float64) for x in qkv]
        args = (*args, np.linspace(-1, 1, 9).reshape(3, 3))
        check_jvp(run(masked), forward, args, eps=None)
        pull = lambda *args: (run(masked)(*args), lambda ct: backward(ct, *args))
        check_vjp(run(masked), pull, args, eps=None)


@pytest.mark.parametrize("causal", [True, False])
def test_many_weights_by_rows(causal, monkeypatch, rng):
    monkeypatch.setattr(attention, "MOST_WEIGHTS", 1)  # 32 rows at a time
    q, k, v = (rng.standard_normal((B, n, m, H)) for n, m in ((96, N), (9, K), (9, K)))
    bias, mask = rng.standard_normal((1, N, 96, 9)), rng.random((96, 9)) < 0.7
    mask[:, 0], lengths = True, np.array([40, 96])
    args = [x.astype(np.float32) for x in (q, k, v, bias)]
    given = {"is_causal": causal, "query_seq_lengths": lengths, "return_residual": True}
    loss = lambda *args: jnp.sum(F(*args, mask, **given)[0] ** 2)
    f = jit(lambda *args: (F(*args, mask, **given), grad(loss, (0, 1, 2, 3))(*args)))
    assert "stablehlo.while" in f.lower(*args).as_text()
    (got, logs), grads = f(*args)
    few = np.arange(96)[:, None] < lengths[:, None, None, None]  # (B, 1, T, 1)
    pairs = mask & (np.arange(96)[:, None] >= np.arange(9)) if causal else mask
    want, residual = plain(q, k, v, bias, pairs)
    want = np.where(np.moveaxis(few, 1, 2), want, 0)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    rows = np.moveaxis(few[..., 0], 1, 2)
    np.testing.assert_allclose(np.where(rows, logs, 0), np.where(rows, residual, 0), atol=1e-4)
    moved = [rng.standard_normal(x.shape) for x in (q, k, v, bias)]
    ends = []
    for sign in (1, -1):
        there = [x + sign * 1e-5 * t for x, t in zip((q, k, v, bias), moved, strict=True)]
        ends.append((np.where(np.moveaxis(few, 1, 2), plain(*there, pairs)[0], 0) ** 2).sum())
    slope = sum(np.sum(np.asarray(g, float) * t) for g, t in zip(grads, moved, strict=True))
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-5, rtol=1e-3)


def test_errors(qkv):
    q, k, v = qkv
    for message, call in {
        "value (B, S, K, H) where N must be a multiple of K; got f32[2,5,3,8]": lambda: F(
            q[:, :, :3], k, v
        ),
        "query must be (T, N, H)": lambda: F(q[0], k, v),
        "bias must broadcast to (B, N, T, S) = (2, 4, 5, 7)": lambda: F(q, k, v, jnp.ones((3, 7))),
        "mask must be bool; got f32[7]": lambda: F(q, k, v, mask=jnp.ones(7)),
        "query_seq_lengths must be integers (2,)": lambda: F(
            q, k, v, query_seq_lengths=jnp.ones(3, int)
        ),
        "must be of one dtype": lambda: F(q.astype(np.float16), k, v),
        "implementation must be None or 'xla'": lambda: F(q, k, v, implementation="cudnn"),
    }.items():
        with pytest.raises((ShapeError, DtypeError, NotImplementedError)) as error:
            call()
        assert message in str(error.value)


# --- scaled products --------------------------------------------------------------------------


def test_scaled_matmul(rng):
    x = rng.standard_normal((2, 3, 64)).astype(ml_dtypes.float8_e4m3fn)
    y = rng.standard_normal((2, 5, 64)).astype(ml_dtypes.float8_e4m3fn)
    a, b = (2.0 ** rng.integers(-2, 3, (2, n, 2)) for n in (3, 5))
    wide = [v.astype(np.float64) * np.repeat(s, 32, -1) for v, s in ((x, a), (y, b))]
    want = np.einsum("bmk,bnk->bmn", *wide)
    scales = [s.astype(ml_dtypes.float8_e8m0fnu) for s in (a, b)]
    np.testing.assert_allclose(nn.scaled_matmul(x, y, *scales), want, rtol=1e-5, atol=1e-4)
    assert nn.scaled_matmul(x, y, *scales, jnp.bfloat16).dtype == jnp.bfloat16
    with pytest.raises(ShapeError, match=r"scaled_matmul: operands must be \(B, M, K\)"):
        nn.scaled_matmul(x, y, scales[0], scales[1][..., :1])


@pytest.mark.parametrize("mode, tol", [("mxfp8", 0.03), ("nvfp4", 0.12)])
def test_scaled_dot_general(mode, tol, rng):
    x, y = (rng.standard_normal((n, 64)).astype(np.float32) for n in (3, 5))
    dims = (((1,), (1,)), ((), ()))
    np.testing.assert_allclose(nn.scaled_dot_general(x, y, dims), x @ y.T, rtol=1e-5, atol=1e-5)
    config = nn.get_scaled_dot_general_config(mode)
    f = jit(lambda x, y: nn.scaled_dot_general(x, y, dims, configs=[config] * 3))
    size = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(y, axis=1)
    error = np.abs(f(x, y) - x @ y.T) / size
    assert 0 < error.max() < tol
    assert (f(0 * x, y) == 0).all()
    ones = np.ones((3, 5), np.float32)
    slope = grad(lambda x: f(x, y).sum())(x)
    assert np.abs(slope - ones @ y).max() < 1 and np.isfinite(slope).all()
    with pytest.raises(ShapeError, match="contracted sizes must be multiples of"):
        nn.scaled_dot_general(x[:, :24], y[:, :24], dims, configs=[config] * 3)
    with pytest.raises(ValueError, match="configs must have one for each operand; got 1"):
        nn.scaled_dot_general(x, y, dims, configs=[config])
    with pytest.raises(ValueError, match="mode must be 'mxfp8' or 'nvfp4'; got 'int8'"):
        nn.get_scaled_dot_general_config("int8")
