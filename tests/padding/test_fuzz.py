"""Random programs with sizes that vary: padded, with NaN in the padding, they equal plain ones.

A program is a chain of operations. Each takes the value before it, and may take the arguments
again; a value is a matrix [n, 3] (M), a vector [n] (V), a vector [3] (K) or a number (S).
"""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.conftest import ALL
from tests.padding.programs import Program
from tests.padding.test_interpret import check
from weft import lax, nn

# For each kind: operations of the value, of x [n, 3], of y [n] and of i [n], and their kinds.
OPERATIONS = {
    "M": [
        ("M", lambda a, x, y, i: jnp.sin(a) + x),
        ("M", lambda a, x, y, i: jnp.sqrt(jnp.abs(a) + 0.1)),
        ("M", lambda a, x, y, i: a[::-1]),
        ("M", lambda a, x, y, i: jnp.sort(a, 0)),
        ("M", lambda a, x, y, i: jnp.cumsum(a, 0) / a.shape[0]),
        ("M", lambda a, x, y, i: lax.cummax(a, 0, reverse=True)),
        ("M", lambda a, x, y, i: nn.softmax(a, 0)),
        ("M", lambda a, x, y, i: a - a.mean(0)),
        ("M", lambda a, x, y, i: a[i % a.shape[0]]),
        ("M", lambda a, x, y, i: jnp.asarray(a).at[i].add(0.5)),
        ("M", lambda a, x, y, i: jnp.asarray(a).at[-1].multiply(2.0)),
        ("M", lambda a, x, y, i: jnp.where(y[:, None] > 0, a, x)),
        ("M", lambda a, x, y, i: jnp.tanh(a @ (x.T @ a))),
        ("M", lambda a, x, y, i: jnp.concatenate([a[-1:], a[:-1]])),
        ("M", lambda a, x, y, i: jnp.concatenate([a, x])[a.shape[0] :]),
        ("M", lambda a, x, y, i: jnp.pad(a, ((1, 0), (0, 0)))[:-1]),
        ("M", lambda a, x, y, i: lax.scan(lambda c, r: (c * 0.5 + r, c), jnp.zeros(3), a)[1]),
        ("M", lambda a, x, y, i: lax.map(lambda r: r * r.max(), a)),
        ("M", lambda a, x, y, i: weft.vmap(jnp.sort)(a)),
        ("M", lambda a, x, y, i: a.reshape(-1)[::-1].reshape(-1, 3)),
        ("M", lambda a, x, y, i: lax.cond(a.sum() > 0, lambda b: b * 2, lambda b: b[::-1], a)),
        ("M", lambda a, x, y, i: weft.ops.segment_sum(a, i % a.shape[0], a.shape[0])),
        ("M", lambda a, x, y, i: nn.softmax(a @ x.T, -1) @ a),
        ("V", lambda a, x, y, i: a.sum(1) + y),
        ("V", lambda a, x, y, i: a[:, 0] * jnp.arange(a.shape[0])),
        ("V", lambda a, x, y, i: a @ a.mean(0)),
        ("V", lambda a, x, y, i: jnp.argmax(a, 1).astype(np.float32) + a[:, 1]),
        ("K", lambda a, x, y, i: a.max(0)),
        ("K", lambda a, x, y, i: jnp.median(a, 0)),
        ("K", lambda a, x, y, i: a[jnp.argmin(y)]),
        ("K", lambda a, x, y, i: y @ a),
        ("K", lambda a, x, y, i: jnp.sqrt(a.var(0) + 0.1)),
        ("K", lambda a, x, y, i: lax.fori_loop(
            0, a.shape[0], lambda t, c: c * 0.5 + jnp.asarray(a)[t], jnp.zeros(3))),
        ("K", lambda a, x, y, i: weft.ops.segment_max(y, i % 3, 3)),
    ],
    "V": [
        ("V", lambda a, x, y, i: jnp.exp(-a * a) * y),
        ("V", lambda a, x, y, i: jnp.sort(a)[::-1]),
        ("V", lambda a, x, y, i: jnp.argsort(a).astype(np.float32)),
        ("V", lambda a, x, y, i: a[jnp.argsort(y)]),
        ("V", lambda a, x, y, i: jnp.interp(y, jnp.arange(3.0), jnp.array([0.0, 1.0, 4.0])) + a),
        ("V", lambda a, x, y, i: jnp.tril(jnp.outer(a, y)).sum(0)),
        ("V", lambda a, x, y, i: (jnp.abs(a[:, None] - a) * (i[:, None] < i)).mean(1)),
        ("V", lambda a, x, y, i: jnp.linalg.solve(jnp.outer(a, a) + 2 * jnp.eye(a.shape[0]), y)),
        ("V", lambda a, x, y, i: jnp.searchsorted(jnp.sort(y), a).astype(np.float32)),
        ("V", lambda a, x, y, i: jnp.repeat(a, 2)[1::2]),
        ("V", lambda a, x, y, i: jnp.fft.irfft(jnp.fft.rfft(a), a.shape[0]) + y),
        ("V", lambda a, x, y, i: jnp.abs(jnp.fft.fft(a)) * 0.1),
        ("V", lambda a, x, y, i: jnp.diagonal(jnp.outer(a, y)) + lax.associative_scan(jnp.add, a)),
        ("V", lambda a, x, y, i: lax.scan(
            lambda c, r: (jnp.sort(c) * 0.5 + r, c.sum()), jnp.tanh(a), jnp.sin(y))[1] * 0.1),
        ("V", lambda a, x, y, i: lax.cond(
            a.sum() > 0, lambda b: b[::-1] * 0.5, lambda b: jnp.cumsum(b) / b.shape[0], a)),
        ("M", lambda a, x, y, i: a[:, None] + x),
        ("M", lambda a, x, y, i: jnp.stack([a, y, a * y], 1)),
        ("S", lambda a, x, y, i: nn.logsumexp(a)),
        ("S", lambda a, x, y, i: a.var() + a.shape[0]),
        ("S", lambda a, x, y, i: lax.while_loop(
            lambda c: jnp.abs(jnp.abs(c).max() - 2) < 1.9, lambda c: c / 2, jnp.asarray(a)).sum()),
        ("K", lambda a, x, y, i: lax.top_k(jnp.concatenate([a, jnp.zeros(3)]), 3)[0]),
    ],
    "K": [
        ("M", lambda a, x, y, i: x * a),
        ("M", lambda a, x, y, i: jnp.broadcast_to(a, x.shape) - x),
        ("V", lambda a, x, y, i: x @ a),
        ("K", lambda a, x, y, i: a / (1 + jnp.linalg.norm(a))),
    ],
    "S": [
        ("V", lambda a, x, y, i: jnp.tanh(a) * y),
        ("M", lambda a, x, y, i: x + jnp.tanh(a)),
    ],
}  # fmt: skip

ROUNDS = 40 if ALL else 1  # of 32 programs, each at three sizes
SIZES = [{"n": 8}, {"n": 1}, {"n": 5}]
# Every eighth program: sizes with which products of sizes and their quotients are not exact in
# reciprocals, and arrays that XLA vectorizes and splits.
LARGE = [{"n": 300}, {"n": 248}]


def make_program(seed: int) -> Program:
    """A chain of two to four operations, or the gradient of one."""
    rng = np.random.default_rng(seed)
    kind, chain = "M", []
    for _ in range(rng.integers(2, 5)):
        kind, fun = OPERATIONS[kind][rng.integers(len(OPERATIONS[kind]))]
        chain.append(fun)

    def run(x, y, i):
        a = jnp.sin(x)
        for fun in chain:
            a = fun(a, x, y, i)
        return a

    def loss(x, y, i):
        return (jnp.sin(run(x, y, i)) * 0.1).sum()

    kinds = ("n, 3", "n", "n"), "ffi"
    return Program(weft.grad(loss, (0, 1)) if rng.integers(4) == 0 else run, *kinds)


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("block", range(8))
def test_random_programs(block):
    refused = 0
    for seed in range(block * 4 * ROUNDS, (block + 1) * 4 * ROUNDS):
        program = make_program(seed)
        try:
            if seed % 8 == 7:
                check(program.fun, program, LARGE, bucket=LARGE[0]["n"])
            else:
                check(program.fun, program, SIZES, zeros=seed % 3 == 1)
        except weft.errors.InconclusiveDimensionOperation:
            refused += 1
        except weft.errors.ShapeError as error:
            assert "padded along" in str(error), f"seed {seed}: {error}"
            refused += 1
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from None
    assert refused < 2 + ROUNDS
