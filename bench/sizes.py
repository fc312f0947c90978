"""Six programs at many sizes: `jit(f, sizes=...)` against `jit` and against padding to the largest.

    python bench/sizes.py [number of sizes] [largest size]

Prints a table: programs compiled, and seconds of all calls from a cold start, the disk cache off.
"""

import os
import sys
import time

os.environ["WEFT_ENABLE_COMPILATION_CACHE"] = "0"

import numpy as np

import weft
import weft.numpy as jnp
from weft import lax, monitoring, nn

compiled = [0]


def count(event, seconds, **more):
    compiled[0] += event.endswith("backend_compile_duration")


monitoring.register_event_duration_secs_listener(count)
monitoring_rng = np.random.default_rng(0)
W = monitoring_rng.normal(size=(4, 16, 16)).astype(np.float32) / 4


def graphs(x, senders, receivers):
    """Attention over the neighbours of each node of a graph, twice."""
    n = x.shape[0]
    for w in W[:2]:
        h = x @ w
        score = jnp.tanh(h[senders] * h[receivers]).sum(1)
        weight = jnp.exp(score - weft.ops.segment_max(score, receivers, n)[receivers])
        total = weft.ops.segment_sum(weight, receivers, n)[receivers]
        x = nn.relu(weft.ops.segment_sum((weight / total)[:, None] * h[senders], receivers, n)) + x
    return x.mean(0)


def sentence(x):
    """A transformer with a causal mask: the mean loss of the next word's vector."""
    n, y = x.shape[0], x
    mask = jnp.arange(n)[:, None] >= jnp.arange(n)
    for w in W[:2]:
        score = jnp.where(mask, (y @ w) @ y.T / 4, -1e9)
        y = nn.standardize(y + nn.softmax(score) @ y)
        y = y + nn.gelu(y @ W[2]) @ W[3]
    return ((y[:-1] - x[1:]) ** 2).mean()


def batch(x, y):
    """Return the gradient of the loss of a batch; the last batch is smaller."""
    loss = lambda w: jnp.log1p(jnp.exp(-y * (jnp.tanh(x @ w) @ W[1, 0]))).mean()
    return weft.grad(loss)(W[0])


def gaussian_process(x, y):
    """The negative log likelihood of a Gaussian process, and its gradient in two parameters."""

    def loss(p):
        d = ((x[:, None] - x) ** 2).sum(-1)
        k = jnp.exp(p[0] - d * jnp.exp(p[1])) + 0.1 * jnp.eye(x.shape[0])
        low = jnp.linalg.cholesky(k)
        z = lax.linalg.triangular_solve(low, y[:, None], left_side=True, lower=True)
        return (z**2).sum() / 2 + jnp.log(jnp.diagonal(low)).sum()

    return weft.value_and_grad(loss)(jnp.zeros(2))


def particles(x, u):
    """A step of a particle filter with systematic resampling."""
    weight = nn.softmax(-((x - 0.3) ** 2).sum(1))
    places = (jnp.arange(x.shape[0]) + u) / x.shape[0]
    chosen = jnp.searchsorted(jnp.cumsum(weight), places)
    return x[jnp.minimum(chosen, x.shape[0] - 1)].mean(0)


def series(x):
    """A recurrent network over a time series, and the gradient of its loss."""
    step = lambda w: lambda h, r: (jnp.tanh(h @ w + r), (h**2).sum())
    loss = lambda w: lax.scan(step(w), jnp.zeros(16), x)[1].mean()
    return weft.grad(loss)(W[0])


def arrays(rng, *shapes):
    return [rng.normal(size=s).astype(np.float32) for s in shapes]


def make_graph(rng, n):
    edges = rng.integers(0, n, (2, 4 * n)).astype(np.int32)
    return [*arrays(rng, (n, 16)), *edges]


PROGRAMS = {
    "graphs": (graphs, "(n, _), (e,), (e,)", make_graph),
    "sentence": (sentence, "(n, _)", lambda rng, n: arrays(rng, (n, 16))),
    "batch": (batch, "(n, _), (n,)", lambda rng, n: arrays(rng, (n, 16), (n,))),
    "Gaussian process": (
        gaussian_process, "(n, _), (n,)", lambda rng, n: arrays(rng, (n, 2), (n,)),
    ),
    "particles": (
        particles, "(n, _), ()", lambda rng, n: [*arrays(rng, (n, 4)), np.float32(0.5)],
    ),
    "series": (series, "(n, _)", lambda rng, n: arrays(rng, (n, 16))),
}  # fmt: skip


def measure(fun, inputs):
    """Seconds of all calls, programs compiled, and the results."""
    before, start = compiled[0], time.perf_counter()
    outs = [weft.tree.leaves(fun(*xs)) for xs in inputs]
    weft.block_until_ready(outs)
    return time.perf_counter() - start, compiled[0] - before, outs


def main():
    number, largest = (int(a) for a in (*sys.argv[1:], 100, 1000)[:2])
    print(f"{number} sizes up to {largest}; {os.cpu_count()} cores")
    print("| program | programs, sizes= | programs, jit | s, sizes= | s, jit | difference |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, (fun, sizes, make) in PROGRAMS.items():
        rng = np.random.default_rng(1)
        inputs = [make(rng, int(n)) for n in rng.integers(2, largest + 1, number)]
        seconds, programs, outs = measure(weft.jit(fun, sizes=sizes), inputs)
        plain, of_plain, wants = measure(weft.jit(fun), inputs)
        apart = max(
            float(np.abs(np.asarray(g) - np.asarray(w)).max() / (1 + np.abs(np.asarray(w)).max()))
            for got, want in zip(outs, wants, strict=True)
            for g, w in zip(got, want, strict=True)
        )
        print(
            f"| {name} | {programs} | {of_plain} | {seconds:.1f} | {plain:.1f} | {apart:.0e} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
