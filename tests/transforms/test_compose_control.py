"""Programs with control flow closed under {jvp, vjp, vmap, jit} to depth 3, against NumPy loops.

The words and oracles are test_compose.py's; each program maps an array of three numbers to one of
three and stands beside a twin in plain Python and NumPy.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.transforms.test_compose import M, check, words
from weft import lax

# --------------------------------------------------------------------------------------------
# Branches.


def branch(x):
    return lax.cond(x[0] > 0.4, lambda y: jnp.sin(y) * x[1], lambda y: y * y * 2.0, x)


def branch_twin(x):
    return np.sin(x) * x[1] if x[0] > 0.4 else x * x * 2.0


def switched(x):
    which = (x[0] > 0.4).astype(int) + 2 * (x[1] > 0.4)
    arms = [lambda y: y * 2.0, lambda y: jnp.cos(y), lambda y: y * x[2], lambda y: y**3]
    return lax.switch(which, arms, x)


def switched_twin(x):
    which = int(x[0] > 0.4) + 2 * int(x[1] > 0.4)
    return [lambda y: y * 2.0, np.cos, lambda y: y * x[2], lambda y: y**3][which](x)


def branch_in_branch(x):
    inner = lambda y: lax.cond(x[2] < 0.9, lambda z: z * x[0], jnp.sin, y)
    return lax.cond(x[0] > 0.4, inner, lambda y: inner(y * 0.5) + y, x * x)


def branch_in_branch_twin(x):
    inner = lambda y: y * x[0] if x[2] < 0.9 else np.sin(y)
    y = x * x
    return inner(y) if x[0] > 0.4 else inner(y * 0.5) + y


# --------------------------------------------------------------------------------------------
# Loops.

W = np.array([[0.2, -0.4, 0.1], [0.3, 0.1, -0.2], [-0.1, 0.5, 0.2]])
XS = np.linspace(-0.6, 0.9, 12).reshape(4, 3)


def recurrence(x):
    def step(h, row):
        h = jnp.tanh(W @ h + row * x)
        return h, h * x[0]

    h, ys = lax.scan(step, x, XS)
    return h + ys.sum(0)


def recurrence_twin(x):
    h, total = x, 0.0
    for row in XS:
        h = np.tanh(W @ h + row * x)
        total = total + h * x[0]
    return h + total


def backwards(x):
    """Scans over x itself, in reverse, with a carry of several kinds of leaf."""

    def step(carry, y):
        state = {"h": carry["h"] * 0.5 + jnp.sin(y * x[1]), "n": carry["n"] + 1}
        return state, (state["h"] * y, carry["n"])

    state, (ys, count) = lax.scan(step, {"h": 0.0, "n": 0}, x, reverse=True, unroll=2)
    return ys * state["h"] + count


def backwards_twin(x):
    h, ys = 0.0, np.zeros_like(x)
    for i in reversed(range(3)):
        h = h * 0.5 + np.sin(x[i] * x[1])
        ys[i] = h * x[i]
    return ys * h + np.array([2, 1, 0])


def nested_scans(x):
    def outer(h, row):
        inner = lambda g, y: (jnp.sin(g * y) + h, g * x[2])
        g, ys = lax.scan(inner, h * row, XS[:2])
        return g, ys.sum(0)

    h, ys = lax.scan(outer, x, XS[:3])
    return h * ys[-1] + ys[0]


def nested_scans_twin(x):
    h, sums = x, []
    for row in XS[:3]:
        g, total = h * row, 0.0
        for y in XS[:2]:
            total = total + g * x[2]
            g = np.sin(g * y) + h
        h = g
        sums.append(total)
    return h * sums[-1] + sums[0]


def counted(x):
    return lax.fori_loop(0, 3, lambda i, h: jnp.sin(h) * x + i * 0.1, x)


def counted_twin(x):
    h = x
    for i in range(3):
        h = np.sin(h) * x + i * 0.1
    return h


def until(x):
    """A loop whose number of steps depends on the data, so under vmap on the example."""
    going = lambda s: (s[0] < 6) & (s[1][0] * s[1][0] < 1.5)
    return lax.while_loop(going, lambda s: (s[0] + 1, s[1] * (1.2 + 0.1 * x) + 0.05), (0, x))[1]


def until_twin(x):
    n, h = 0, x
    while n < 6 and h[0] * h[0] < 1.5:
        n, h = n + 1, h * (1.2 + 0.1 * x) + 0.05
    return h


def bounded(x):
    going = lambda s: (s[0] < 6) & (s[1][0] * s[1][0] < 1.5)
    step = lambda s: (s[0] + 1, s[1] * (1.2 + 0.1 * x) + 0.05)
    return lax.while_loop(going, step, (0, x), max_steps=8)[1]


def loop_in_scan(x):
    def step(h, row):
        going = lambda s: s[0] < 2 + (row[0] > 0)
        n, g = lax.while_loop(going, lambda s: (s[0] + 1, jnp.sin(s[1]) * x + row), (0, h))
        return g, g * n

    h, ys = lax.scan(step, x, XS[:3])
    return h + ys.sum(0)


def loop_in_scan_twin(x):
    h, total = x, 0.0
    for row in XS[:3]:
        n = 0
        while n < 2 + (row[0] > 0):
            n, h = n + 1, np.sin(h) * x + row
        total = total + h * n
    return h + total


def scan_in_loop(x):
    def step(state):
        i, h = state
        return i + 1, lax.scan(lambda g, y: (jnp.tanh(g * y + x), None), h, XS[:2])[0]

    return lax.while_loop(lambda s: s[0] < 3, step, (0, x))[1] * x


def scan_in_loop_twin(x):
    h = x
    for _ in range(3):
        for y in XS[:2]:
            h = np.tanh(h * y + x)
    return h * x


# --------------------------------------------------------------------------------------------
# One inside the other, and with custom rules.


def branch_in_scan(x):
    def step(h, row):
        return lax.cond(row[0] > 0.1, lambda g: g * x + row, lambda g: jnp.sin(g), h), h[0]

    h, ys = lax.scan(step, x, XS)
    return h * ys.sum()


def branch_in_scan_twin(x):
    h, total = x, 0.0
    for row in XS:
        total = total + h[0]
        h = h * x + row if row[0] > 0.1 else np.sin(h)
    return h * total


def scan_in_branch(x):
    return lax.cond(x[0] > 0.4, recurrence, lambda y: y * 2.0, x * 0.9)


def scan_in_branch_twin(x):
    return recurrence_twin(x * 0.9) if x[0] > 0.4 else x * 0.9 * 2.0


def jit_in_scan(x):
    step = weft.jit(lambda h, row: (jnp.sin(h) * row + x, h))
    h, ys = lax.scan(step, x, XS)
    return h + ys[1]


def jit_in_scan_twin(x):
    h, ys = x, []
    for row in XS:
        ys.append(h)
        h = np.sin(h) * row + x
    return h + ys[1]


@weft.custom_jvp
def soft(x):
    return jnp.log(1.0 + jnp.exp(x))


soft.defjvps(lambda t, y, x: t / (1.0 + jnp.exp(-x)))


def custom_in_scan(x):
    return lax.scan(lambda h, row: (soft(h * row) - x, None), x, XS)[0]


def custom_in_scan_twin(x):
    h = x
    for row in XS:
        h = np.log(1.0 + np.exp(h * row)) - x
    return h


def checkpoint_in_scan(x):
    @weft.checkpoint
    def layer(h, row):
        return jnp.sin(jnp.sin(h * x) + row)

    return lax.scan(lambda h, row: (layer(h, row), h), x, XS)[0]


def checkpoint_in_scan_twin(x):
    h = x
    for row in XS:
        h = np.sin(np.sin(h * x) + row)
    return h


def mapped(x):
    return lax.map(lambda a: jnp.sin(a) * x[0] + a * a, x)


def summed(x):
    return lax.associative_scan(jnp.multiply, x + 1.0) * x


A = M @ M.T + 2 * np.eye(3)


def solved(x):
    solve = lambda matvec, b: jnp.asarray(np.linalg.inv(A)) @ b / (1.0 + x[0] * x[0])
    matvec = lambda v: (1.0 + x[0] * x[0]) * (A @ v)
    return lax.custom_linear_solve(matvec, jnp.sin(x), solve, symmetric=True)


def rooted(x):
    """The cube root of each number, by Newton's method."""
    target = x * x + 1.0

    def solve(f, guess):
        step = lambda y: y - f(y) / (3.0 * y * y)
        return lax.fori_loop(0, 30, lambda i, y: step(y), guess)

    f = lambda y: y * y * y - target
    return lax.custom_root(f, jnp.ones_like(x), solve, lambda g, y: y / g(jnp.ones_like(y)))


def recomputed(x):
    return weft.checkpoint(lambda y: recurrence(jnp.sin(y)) * branch(y))(x)


PROGRAMS = {
    "branch": (branch, branch_twin),
    "switched": (switched, switched_twin),
    "branch_in_branch": (branch_in_branch, branch_in_branch_twin),
    "recurrence": (recurrence, recurrence_twin),
    "backwards": (backwards, backwards_twin),
    "nested_scans": (nested_scans, nested_scans_twin),
    "counted": (counted, counted_twin),
    "until": (until, until_twin),
    "bounded": (bounded, until_twin),
    "loop_in_scan": (loop_in_scan, loop_in_scan_twin),
    "scan_in_loop": (scan_in_loop, scan_in_loop_twin),
    "branch_in_scan": (branch_in_scan, branch_in_scan_twin),
    "scan_in_branch": (scan_in_branch, scan_in_branch_twin),
    "jit_in_scan": (jit_in_scan, jit_in_scan_twin),
    "custom_in_scan": (custom_in_scan, custom_in_scan_twin),
    "checkpoint_in_scan": (checkpoint_in_scan, checkpoint_in_scan_twin),
    "mapped": (mapped, lambda x: np.sin(x) * x[0] + x * x),
    "summed": (summed, lambda x: np.cumprod(x + 1.0) * x),
    "solved": (solved, lambda x: np.linalg.solve(A, np.sin(x)) / (1.0 + x[0] * x[0])),
    "rooted": (rooted, lambda x: np.cbrt(x * x + 1.0)),
    "recomputed": (recomputed, lambda x: recurrence_twin(np.sin(x)) * branch_twin(x)),
}
DEEP = ("branch", "recurrence", "until")


@pytest.fixture(autouse=True)
def checked():
    """Every program is checked after every pass."""
    with weft.enable_checks():
        yield


@pytest.mark.sample(one_in=64)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("word", words("JGVC", (1, 2)))
def test_every_word_to_depth_two(name, word):
    check(*PROGRAMS[name], word)


@pytest.mark.sample(one_in=20)
@pytest.mark.parametrize("case", [(n, w) for n in DEEP for w in words("JGVC", (3,))], ids="-".join)
def test_words_of_depth_three(case):
    name, word = case
    check(*PROGRAMS[name], word)


@pytest.mark.sample(one_in=24)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("word", ["CGJ", "GVG", "VGC", "JCG", "GGC", "CVJ"])
def test_some_words_of_depth_three(name, word):
    check(*PROGRAMS[name], word)
