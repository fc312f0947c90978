"""Six programs at many sizes: `jit(f, sizes=...)`, `jit`, and padding by hand; JAX in their place.

    python bench/sizes.py [number of sizes] [largest size] [programs, such as batch,series]
    python bench/sizes.py --jax ...    # by the Python of an environment that has JAX

Prints a table: programs compiled, CPU seconds of all calls from a cold start, the disk cache
off, and CPU seconds of the same calls again, which compile nothing. Padding by hand goes to the
buckets of `jit(f, sizes=...)`, with masks in the function.
"""

import importlib
import os
import sys
import time

os.environ["WEFT_ENABLE_COMPILATION_CACHE"] = "0"

import numpy as np

NAME = "jax" if "--jax" in sys.argv else "weft"
weft = importlib.import_module(NAME)
jnp, lax, monitoring, nn = [
    importlib.import_module(f"{NAME}.{part}") for part in ("numpy", "lax", "monitoring", "nn")
]
compiled = [0]


def count(event, seconds, **more):
    compiled[0] += event.endswith("backend_compile_duration")


monitoring.register_event_duration_secs_listener(count)
W = np.random.default_rng(0).normal(size=(4, 16, 16)).astype(np.float32) / 4


# --- programs, and the same with masks: these take the true sizes last --------------------------


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


def masked_graphs(x, senders, receivers, n, e):
    size, live = x.shape[0], jnp.arange(senders.shape[0]) < e
    receivers = jnp.where(live, receivers, size)
    for w in W[:2]:
        h = x @ w
        score = jnp.where(live, jnp.tanh(h[senders] * h[receivers]).sum(1), -jnp.inf)
        best = weft.ops.segment_max(score, receivers, size)[receivers]
        weight = jnp.where(live, jnp.exp(score - best), 0)
        total = weft.ops.segment_sum(weight, receivers, size)[receivers]
        share = jnp.where(live, weight / total, 0)[:, None]
        x = nn.relu(weft.ops.segment_sum(share * h[senders], receivers, size)) + x
    return jnp.where(jnp.arange(size)[:, None] < n, x, 0).sum(0) / n


def sentence(x):
    """A transformer with a causal mask: the mean loss of the next word's vector."""
    n, y = x.shape[0], x
    mask = jnp.arange(n)[:, None] >= jnp.arange(n)
    for w in W[:2]:
        score = jnp.where(mask, (y @ w) @ y.T / 4, -1e9)
        y = nn.standardize(y + nn.softmax(score) @ y)
        y = y + nn.gelu(y @ W[2]) @ W[3]
    return ((y[:-1] - x[1:]) ** 2).mean()


def masked_sentence(x, n):
    size, y = x.shape[0], x
    mask = jnp.arange(size)[:, None] >= jnp.arange(size)
    for w in W[:2]:
        score = jnp.where(mask, (y @ w) @ y.T / 4, -1e9)
        y = nn.standardize(y + nn.softmax(score) @ y)
        y = y + nn.gelu(y @ W[2]) @ W[3]
    live = jnp.arange(size - 1)[:, None] < n - 1
    return jnp.where(live, (y[:-1] - x[1:]) ** 2, 0).sum() / ((n - 1) * x.shape[1])


def batch(x, y):
    """Return the gradient of the loss of a batch; the last batch is smaller."""
    loss = lambda w: jnp.log1p(jnp.exp(-y * (jnp.tanh(x @ w) @ W[1, 0]))).mean()
    return weft.grad(loss)(W[0])


def masked_batch(x, y, n):
    def loss(w):
        each = jnp.log1p(jnp.exp(-y * (jnp.tanh(x @ w) @ W[1, 0])))
        return jnp.where(jnp.arange(y.shape[0]) < n, each, 0).sum() / n

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


def masked_gaussian_process(x, y, n):
    live = jnp.arange(x.shape[0]) < n

    def loss(p):
        d = ((x[:, None] - x) ** 2).sum(-1)
        k = jnp.exp(p[0] - d * jnp.exp(p[1])) + 0.1 * jnp.eye(x.shape[0])
        k = jnp.where(live[:, None] & live, k, jnp.eye(x.shape[0]))
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


def masked_particles(x, u, n):
    place = jnp.arange(x.shape[0])
    weight = nn.softmax(jnp.where(place < n, -((x - 0.3) ** 2).sum(1), -jnp.inf))
    chosen = jnp.searchsorted(jnp.cumsum(weight), (place + u) / n)
    moved = x[jnp.minimum(chosen, n - 1)]
    return jnp.where(place[:, None] < n, moved, 0).sum(0) / n


def series(x):
    """A recurrent network over a time series, and the gradient of its loss."""
    step = lambda w: lambda h, r: (jnp.tanh(h @ w + r), (h**2).sum())
    loss = lambda w: lax.scan(step(w), jnp.zeros(16), x)[1].mean()
    return weft.grad(loss)(W[0])


def masked_series(x, n):
    live = jnp.arange(x.shape[0]) < n

    def loss(w):
        def step(h, row):
            r, goes_on = row
            return jnp.where(goes_on, jnp.tanh(h @ w + r), h), jnp.where(goes_on, (h**2).sum(), 0)

        return lax.scan(step, jnp.zeros(16), (x, live))[1].sum() / n

    return weft.grad(loss)(W[0])


def round_up(n):
    """The next of 8, 16, 32, 64, 96, 128, 192, and so on."""
    power = max(8, 1 << (n - 1).bit_length())
    return power // 4 * 3 if power // 4 * 3 >= max(n, 65) else power


def pad_by_hand(fun):
    """Return a function of arrays of true sizes that pads them and passes the sizes."""
    jitted = weft.jit(fun)

    def run(*xs):
        sizes = list(dict.fromkeys(x.shape[0] for x in xs if x.ndim))
        padded = []
        for x in xs:
            if x.ndim:
                found = np.zeros((round_up(x.shape[0]), *x.shape[1:]), x.dtype)
                found[: x.shape[0]] = x
                x = found
            padded.append(x)
        return jitted(*padded, *map(np.int32, sizes))

    return run


def arrays(rng, *shapes):
    return [rng.normal(size=s).astype(np.float32) for s in shapes]


def make_graph(rng, n):
    edges = rng.integers(0, n, (2, 4 * n)).astype(np.int32)
    return [*arrays(rng, (n, 16)), *edges]


PROGRAMS = {
    "graphs": (graphs, masked_graphs, "(n, _), (e,), (e,)", make_graph),
    "sentence": (sentence, masked_sentence, "(n, _)", lambda rng, n: arrays(rng, (n, 16))),
    "batch": (batch, masked_batch, "(n, _), (n,)", lambda rng, n: arrays(rng, (n, 16), (n,))),
    "Gaussian process": (
        gaussian_process, masked_gaussian_process, "(n, _), (n,)",
        lambda rng, n: arrays(rng, (n, 2), (n,)),
    ),
    "particles": (
        particles, masked_particles, "(n, _), ()",
        lambda rng, n: [*arrays(rng, (n, 4)), np.float32(0.5)],
    ),
    "series": (series, masked_series, "(n, _)", lambda rng, n: arrays(rng, (n, 16))),
}  # fmt: skip


def measure(fun, inputs):
    """CPU seconds of all calls, programs compiled, and the results."""
    before, start = compiled[0], time.process_time()
    outs = [weft.tree.leaves(fun(*xs)) for xs in inputs]
    weft.block_until_ready(outs)
    return time.process_time() - start, compiled[0] - before, outs


def make_callable(way, fun, masked, sizes):
    """Return the function compiled in one of the ways that are compared."""
    if way == "by hand":
        return pad_by_hand(masked)
    return weft.jit(fun, sizes=sizes) if way == "sizes=" else weft.jit(fun)


def difference(outs, wants):
    """The largest difference of results, relative to the largest element."""
    return max(
        float(np.abs(np.asarray(g) - np.asarray(w)).max() / (1 + np.abs(np.asarray(w)).max()))
        for got, want in zip(outs, wants, strict=True)
        for g, w in zip(got, want, strict=True)
    )


def main():
    given = [a for a in sys.argv[1:] if a != "--jax"]
    number, largest = (int(a) for a in (*given, 100, 1000)[:2])
    chosen = given[2].split(",") if len(given) > 2 else list(PROGRAMS)
    ways = ["jit", "by hand"] if NAME == "jax" else ["jit", "by hand", "sizes="]
    print(f"{NAME}: {number} sizes up to {largest}; {os.cpu_count()} cores")
    heads = [f"programs, {way} | s, {way} | s again, {way}" for way in ways]
    print(f"| program | {' | '.join(heads)} | difference |")
    print("|---" + "|---:" * (3 * len(ways) + 1) + "|")
    for name in chosen:
        fun, masked, sizes, make = PROGRAMS[name]
        rng = np.random.default_rng(1)
        inputs = [make(rng, int(n)) for n in rng.integers(2, largest + 1, number)]
        row, wants, apart = [], None, 0.0
        for way in ways:
            jitted = make_callable(way, fun, masked, sizes)
            seconds, programs, outs = measure(jitted, inputs)
            wants = wants or outs
            apart = max(apart, difference(outs, wants))
            row.append(f"{programs} | {seconds:.1f} | {measure(jitted, inputs)[0]:.2f}")
        print(f"| {name} | {' | '.join(row)} | {apart:.0e} |", flush=True)


if __name__ == "__main__":
    main()
