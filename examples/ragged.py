"""Recordings of every length, one at a time: `jit(f, sizes=...)` compiles a few programs for all.

A network of filters listens to noisy oscillations and says which of two kinds each one is, from
the mean power of each filter over the recording. Each recording has a length of its own, from 20 to
400, and the program pads none: a step of Adam is one jitted function of a recording `(n,)` whose
size varies. It is compiled once for each bucket of sizes that occurs; `jit` alone would compile it
for each length. Gradients are those without padding. Exits with status 1 if the held-out accuracy
is 90% or less, if training compiled more than 12 programs, or if a gradient differs from
the one without padding by more than 1e-4.

usage: python examples/ragged.py [--recordings 600] [--rate 0.03] [--seed 0] [--out examples/out]
"""

import sys

import numpy as np
from common import BLUE, ORANGE, arguments, axes, progress, save, verdict

import weft.numpy as jnp
from weft import grad, jit, lax, monitoring, nn, tree

SHORTEST, LONGEST = 20, 400
FILTERS, WIDTH = 8, 15
PERIODS = 9.0, 12.0  # of the two kinds, in samples
NOISE = 0.7
HELD_OUT = 200
GOAL = 0.90
MAX_PROGRAMS = 12  # the number of default buckets up to 1,000; from 20 to 400 there are 8


def make_recording(rng):
    """A recording (n,) of one kind of oscillation with noise, and its kind, 0 or 1."""
    n, kind = int(rng.integers(SHORTEST, LONGEST + 1)), int(rng.integers(2))
    period = PERIODS[kind] * rng.uniform(0.9, 1.1)
    wave = np.sin(2 * np.pi * (np.arange(n) / period + rng.uniform()))
    return (wave + NOISE * rng.normal(size=n)).astype(np.float32), np.float32(kind)


def log_odds(params, x):
    """Log-odds of kind 1: a linear function of the logarithms of the mean power of each filter."""
    filters, weights, intercept = params
    heard = lax.conv_general_dilated(x[None, None], filters[:, None], (1,), "SAME")[0]
    power = (heard**2).mean(1)  # over the samples that there are
    return jnp.log(power + 1e-3) @ weights + intercept


def loss(params, x, kind):
    """The negative log-likelihood of the kind of a recording."""
    return nn.softplus(jnp.where(kind > 0, -1, 1) * log_odds(params, x))


def adam(state, x, kind, rate):
    """A step of Adam (Kingma and Ba 2015) on one recording."""
    params, first, second, count = state
    slope, count = grad(loss)(params, x, kind), count + 1
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
    second = tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, slope)
    unbiased = rate * jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    params = tree.map(
        lambda p, m, v: p - unbiased * m / (jnp.sqrt(v) + 1e-8), params, first, second
    )
    return params, first, second, count


step = jit(adam, sizes="(...), (n,), (), ()")
classify = jit(log_odds, sizes="(...), (n,)")
slope = jit(grad(loss), sizes="(...), (n,), ()")


def start(rng):
    """Small random filters, and the state of Adam."""
    filters = jnp.asarray(0.3 * rng.normal(size=(FILTERS, WIDTH)), jnp.float32)
    params = filters, jnp.zeros(FILTERS), jnp.zeros(())
    zeros = tree.map(jnp.zeros_like, params)
    return params, zeros, zeros, jnp.zeros(())


def train(recordings, rate, rng):
    """The parameters after a step on each recording, and the programs compiled by then."""
    state, compiled, counts = start(rng), [0], []

    def listen(event, seconds, **more):
        compiled[0] += event.endswith("backend_compile_duration")

    monitoring.register_event_duration_secs_listener(listen)
    for x, kind in progress(recordings, "training"):
        state = step(state, x, kind, np.float32(rate))
        counts.append(compiled[0])
    monitoring.unregister_event_duration_listener(listen)
    return state[0], counts


def compare_gradients(params, recordings):
    """The largest difference of gradients from those without padding, relative to the largest."""
    worst = 0.0
    for x, kind in recordings:
        pairs = zip(slope(params, x, kind), grad(loss)(params, x, kind), strict=True)
        worst = max(worst, *[float(abs(a - b).max() / (1e-6 + abs(b).max())) for a, b in pairs])
    return worst


def plot(recordings, counts, file):
    """Two recordings, and the programs compiled against the lengths seen."""
    figure, (left, right) = axes(1, 2)
    for kind, color, lift in ((0, BLUE, 0), (1, ORANGE, 5)):
        x = next(x for x, k in recordings if k == kind)
        left.plot(x + lift, color=color, linewidth=1, label=f"kind {kind}, {len(x)} samples")
    left.set_xlabel("sample")
    left.set_yticks([])
    left.legend(loc="upper right")
    lengths = [len({len(x) for x, _ in recordings[: i + 1]}) for i in range(len(recordings))]
    right.plot(lengths, color=ORANGE, label="lengths seen: programs of jit")
    right.plot(counts, color=BLUE, label="programs of jit(sizes=...)")
    right.set_xlabel("recording")
    right.legend(loc="upper left")
    save(figure, file)


def main():
    args = arguments(__doc__, recordings=600, rate=0.03)
    rng = np.random.default_rng(args.seed)
    recordings = [make_recording(rng) for _ in range(args.recordings)]
    params, counts = train(recordings, args.rate, rng)
    held_out = [make_recording(rng) for _ in range(HELD_OUT)]
    right = [(float(classify(params, x)) > 0) == bool(kind) for x, kind in held_out]
    apart = compare_gradients(params, held_out[:3])
    lengths = len({len(x) for x, _ in recordings})
    print(f"held-out accuracy {np.mean(right):.1%} of {HELD_OUT} recordings")
    print(f"{lengths} lengths, {counts[-1]} programs; gradients within {apart:.0e}")
    plot(recordings, counts, args.out / "ragged.png")
    reached = np.mean(right) > GOAL and counts[-1] <= MAX_PROGRAMS and apart < 1e-4
    return verdict(
        "ragged", reached, f"accuracy above {GOAL:.0%}, at most {MAX_PROGRAMS} programs, gradients"
    )


if __name__ == "__main__":
    sys.exit(main())
