"""Measure the run of `explain.numerics` beside the run of the function: the table in docs.

    python bench/numerics.py [name ...]

Prints a row of the table in docs/numerics.md for each function: the least time of a run of the
function, the least of a run beside the wide run, and their ratio. The two are timed in turns. The
time to read the record is not in it: docs/numerics.md gives it apart.
"""

import sys
import time

import numpy as np

import weft
import weft.numpy as jnp
from weft import lax, nn
from weft.explain.numerics.follow import find_program, follow_program
from weft.explain.numerics.remedies import find_remedies
from weft.explain.subject import Subject

TURNS = 20
LEAST = 0.05  # seconds of a turn; shorter runs are repeated


def draw(*shape):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def dense_loss(ws, x):
    for w in ws:
        x = jnp.tanh(x @ w)
    return (x**2).mean()


def attention(q, k, v):
    return nn.softmax(q @ k.T / 22.6) @ v


def recurrent(w, x):
    step = lambda h, row: (jnp.tanh(h @ w + row), None)
    return lax.scan(step, x[0], x)[0]


def repeat(x):
    return lax.fori_loop(0, 20_000, lambda i, v: v * 0.999 + 0.001, x)


def three(x):
    return lax.fori_loop(0, 2000, lambda i, v: v * 0.999 + jnp.sin(v) * 0.001, x)


def nested(x):
    inner = lambda v: lax.fori_loop(0, 40, lambda i, u: u * 0.999 + 0.001, v)
    return lax.fori_loop(0, 400, lambda i, v: inner(v) * 0.5 + 0.1, x)


def kalman(mean, cov, ys):
    turn, see = jnp.eye(4) * 0.98 + 0.02, jnp.eye(2, 4)

    def step(carry, y):
        mean, cov = carry
        mean, cov = turn @ mean, turn @ cov @ turn.T + jnp.eye(4) * 0.1
        gain = jnp.linalg.solve(see @ cov @ see.T + jnp.eye(2), see @ cov).T
        mean, cov = mean + gain @ (y - see @ mean), cov - gain @ see @ cov
        return (mean, cov), mean

    return lax.scan(step, (mean, cov), ys)


def chain(x):
    for _ in range(5):
        x = jnp.sin(x) * 0.5 + jnp.exp(x * -0.25) + 0.1
    return x


PROGRAMS = {
    "dense": (
        "gradient of 3 dense layers, 512 x 512",
        weft.grad(dense_loss),
        ([draw(512, 512) * 0.04] * 3, draw(512, 512)),
    ),
    "attention": ("attention, 512 x 512", attention, (draw(512, 512),) * 3),
    "solve": (
        "`linalg.solve`, 500 x 500",
        jnp.linalg.solve,
        (draw(500, 500) + 30 * jnp.eye(500), draw(500)),
    ),
    "recurrent": (
        "`scan` over 500 steps of a recurrent network, 16 x 64",
        recurrent,
        (draw(64, 64) * 0.1, draw(500, 16, 64)),
    ),
    "loop": ("`fori_loop` of 20,000 iterations on a scalar", repeat, (jnp.float32(1.5),)),
    "three": (
        "`fori_loop` of 2,000 iterations on three numbers",
        three,
        (jnp.float32([1.5, 0.3, 2]),),
    ),
    "nested": (
        "40 iterations on three numbers within each of 400",
        nested,
        (jnp.float32([1.5, 0.3, 2]),),
    ),
    "kalman": (
        "a Kalman filter of 300 steps, 4 x 4",
        kalman,
        (jnp.zeros(4), jnp.eye(4), draw(300, 2)),
    ),
    "chain": (
        "30 elementwise operations on 1,000,000 elements, 10 of them `sin` and `exp`",
        chain,
        (draw(1_000_000),),
    ),
}


def make_runs(fun, args):
    """Return functions that run a program, and the same beside its wide copy."""
    jitted = weft.jit(fun)
    subject = Subject(jitted, args, {}, "numerics")
    follow_program(subject, find_remedies)  # stages and compiles
    program, consts, leaves = find_program(subject)
    follower = program.jaxpr.memo["numerics"]

    def beside():
        with weft.enable_x64(True):
            return weft.block_until_ready(follower.jitted(np.uint8(0), *consts, *leaves))

    return lambda: weft.block_until_ready(jitted(*args)), beside


def count_repeats(run):
    """Return how often to call a function, so that the time reaches LEAST."""
    run()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < LEAST:
        run()
        count += 1
    return count


def measure(runs):
    """Return the least milliseconds of a call of each function, timed in turns."""
    repeats = [count_repeats(run) for run in runs]
    least = [np.inf] * len(runs)
    for _ in range(TURNS):
        for i, (run, count) in enumerate(zip(runs, repeats, strict=True)):
            start = time.perf_counter()
            for _ in range(count):
                run()
            least[i] = min(least[i], 1e3 * (time.perf_counter() - start) / count)
    return least


if __name__ == "__main__":
    print("| function | its run (ms) | with `numerics` (ms) | ratio |\n|---|---:|---:|---:|")
    for name in sys.argv[1:] or PROGRAMS:
        text, fun, args = PROGRAMS[name]
        plain, beside = measure(make_runs(fun, args))
        row = (text, f"{plain:.3g}", f"{beside:.3g}", f"{beside / plain:.1f}")
        print("| " + " | ".join(row) + " |", flush=True)
