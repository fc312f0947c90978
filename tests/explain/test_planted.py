"""Shares of lines with a known cost: the time that removing the line saves.

The tests measure, so they need a quiet machine and run only with `--all`:
`pytest --all -p no:xdist -s tests/explain/test_planted.py` prints all six shares. Barriers around
the line keep the rest of the program the same, with the line and without it.
"""

import statistics
import time

import numpy as np
import pytest

import weft
from weft import lax, nn
from weft import numpy as jnp
from weft.explain.report import ENOUGH_RUNS

REPEATS, ROUNDS, MAX_ROUNDS = 10, 3, 10
CLOSE = 0.1  # of the time of a run; without the line the others may find more in the caches


def draw(*shape):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def apart(value):
    return lax.optimization_barrier(value)


def solver(planted):
    """A loop with a decomposition."""

    def f(a, b):
        def turn(state):
            i, x = state
            x = apart(x + 1e-3 * jnp.tanh(a @ (a @ x)))
            if planted:
                x = apart(x + 1e-6 * jnp.linalg.cholesky(a + x[0] * 1e-6)[0])  # planted
            return i + 1, x

        return lax.while_loop(lambda state: state[0] < 10, turn, (0, b))[1]

    half = draw(300, 300)
    return f, (half @ half.T + 300 * jnp.eye(300), draw(300))


def convnet(planted):
    def loss(first, second, images):
        h = apart(nn.relu(lax.conv(images, first, (1, 1), "SAME")))
        if planted:
            h = apart(nn.relu(lax.conv(h, second, (1, 1), "SAME")))  # planted
        return jnp.mean(h**2)

    return weft.grad(loss, argnums=(0, 1)), (
        draw(16, 8, 3, 3), draw(16, 16, 3, 3), draw(32, 8, 32, 32),
    )  # fmt: skip


def transformer(planted):
    """Layers by scan, computed again in the reverse pass.

    The last `tanh` has all of a layer computed again, with the planted line and without it.
    """

    def loss(weights, x):
        @weft.checkpoint
        def layer(h, w):
            q = h @ w
            scores = nn.softmax(jnp.einsum("bid,bjd->bij", q, h) * 0.1)
            h = apart(h + jnp.einsum("bij,bjd->bid", scores, q))
            if planted:
                h = apart(h + nn.gelu(h @ w) @ w.T)  # planted
            return jnp.tanh(h), None

        return jnp.mean(lax.scan(layer, x, weights)[0] ** 2)

    return weft.grad(loss), (0.05 * draw(4, 256, 256), draw(8, 128, 256))


def sorting(planted):
    def f(x):
        x = apart(jnp.tanh(x) + x)
        if planted:
            x = apart(jnp.sort(x, axis=1))  # planted
        return jnp.cumsum(x * x, axis=1)

    return f, (draw(100, 5000),)


def memory_bound(planted):
    """Passes over a matrix, each dependent on the one before."""

    def f(x):
        x = apart(x * (1 / jnp.max(x)))
        if planted:
            x = apart(x - jnp.cumsum(x, axis=1))  # planted
        return x + jnp.sum(x)

    return f, (draw(5000, 5000),)


def callback(planted):
    def host(x):
        time.sleep(0.004)
        return np.asarray(x) * 2

    def f(x):
        y = apart(jnp.tanh(x) @ x)
        if planted:
            y = apart(weft.pure_callback(host, y, y))  # planted
        return y @ x

    return f, (draw(500, 500),)


def seconds(f, args):
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        weft.block_until_ready(f(*args))
        times.append(time.perf_counter() - start)
    return min(times)


def find_share(report):
    """The share of the planted line, in all passes."""
    return sum(w.seconds for p, w in report.lines if p.text.endswith("# planted")) / report.wall


@pytest.mark.slow
@pytest.mark.parametrize("make", [solver, convnet, transformer, sorting, memory_bound, callback])
def test_the_share_of_a_line_is_what_it_costs(make, kernels_as_for_users):
    """Times and reports are taken in turns, until enough reports are not disturbed."""
    whole, args = make(True)
    whole, rest = weft.jit(whole), weft.jit(make(False)[0])
    times, reports = [], []
    while len(times) < MAX_ROUNDS and sum(r.runs[0] >= ENOUGH_RUNS for r in reports) < ROUNDS:
        times.append([seconds(f, args) for f in (whole, rest)])
        reports.append(weft.explain(whole)(*args))
    most, least = map(min, zip(*times, strict=True))
    saved = 1 - least / most
    quickest = sorted(reports, key=lambda r: r.profiled)[:ROUNDS]
    share = statistics.median(map(find_share, quickest))
    text = f"{make.__name__}: {share:.2f}, saves {saved:.2f}, {len(times)} rounds"
    print(text)  # with -s, for a table of all six
    assert share == pytest.approx(saved, abs=CLOSE), text
