"""Terms that are zero where numbers are finite: what is left out, and what must stay."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.export.c.sanitized import run_sanitized
from tests.export.c.test_fuse import CASES as NESTS
from weft import export, lax
from weft.export.c.finite import ZeroDropper, read_number
from weft.export.c.index import index_number
from weft.export.c.kinds import KINDS
from weft.export.c.nodes import Buffer, If, Let, Load, Role, Store
from weft.export.c.printer import print_block

RNG = np.random.default_rng(0)
F32 = next(k for k in KINDS.values() if k.name == "f32")
TURN = np.float32([[1, 0.1], [0, 1]])


def draw(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def draw_sparse(*shape):
    """A constant whose elements are mostly 0, 1 and -1."""
    numbers = RNG.choice(np.float32([0, 0, 0, -0.0, 1, -1, 0.5]), shape)
    return numbers.astype(np.float32)


def filter_positions(noise, ys):
    """A Kalman filter: constants with zeros in a loop, forward and backward."""
    h = jnp.array([1.0, 0.0])

    def step(state, y):
        x, p = TURN @ state[0], TURN @ state[1] @ TURN.T + noise[0] * jnp.eye(2)
        s = h @ p @ h + noise[1]
        gain, error = p @ h / s, y - h @ x
        return (x + gain * error, p - jnp.outer(gain, h @ p)), error**2 / s + jnp.log(s)

    return jnp.sum(lax.scan(step, (jnp.zeros(2), jnp.eye(2)), ys)[1])


def mix(matrices, x, y):
    """Products, padding and choices with constants that have zeros."""
    a, b, c = matrices
    z = jnp.pad(b @ (x @ a) - y, ((0, 1), (1, 0)))
    kept = jnp.where(c > 0, z[:3, :4], 0)
    steps = lax.fori_loop(0, 3, lambda k, s: jnp.tanh(s @ c.T @ c + k * kept), kept)
    return jnp.sum(steps * c) / 7 + jnp.sum(jnp.cumsum(z * 0.5, 0))


def make_cases():
    cases = {"filter": (filter_positions, np.float32([0.2, 1]), draw(9))}
    for n in range(4):
        matrices = draw_sparse(3, 3), draw_sparse(2, 4), draw_sparse(3, 4)
        fun = functools.partial(mix, matrices)
        cases[f"mix_{n}"] = fun, draw(4, 3), draw(2, 3)
    nests = {name: NESTS[name] for name in ("turn", "recur_few", "forces_plane", "walk")}
    return {**cases, **nests}


def test_values_and_gradients_under_the_sanitizers():
    calls, wants = [], []
    for name, (fun, *args) in make_cases().items():
        graded = weft.value_and_grad(lambda *xs, f=fun: f(*xs), argnums=tuple(range(len(args))))
        program = export.to_c(graded, name=name, finite_math=True)(*args)
        calls.append((program, tuple(args)))
        wants.append(weft.tree.leaves(weft.jit(graded)(*args)))
    for (program, _), outs, want in zip(calls, run_sanitized(calls), wants, strict=True):
        for got, expected in zip(outs, want, strict=True):
            size = np.abs(np.asarray(expected)).max()
            np.testing.assert_allclose(got, expected, 1e-4, 1e-4 * size, err_msg=program.name)


def test_products_by_zeros_are_left_out():
    count = lambda fun, *xs, **how: export.to_c(fun, **how)(*xs).report().operations
    graded, args = weft.value_and_grad(filter_positions), (np.float32([0.2, 1]), draw(9))
    assert count(graded, *args, finite_math=True) < 0.75 * count(graded, *args)
    plane = lambda x: TURN @ x + jnp.zeros(2) * x
    assert count(plane, draw(2), finite_math=True) == 2
    dense = lambda x: np.float32([[1, 2], [3, 4]]) @ x  # without zeros there is nothing to unroll
    sources = [export.to_c(dense, finite_math=way)(draw(2)).source for way in (False, True)]
    assert sources[0] == sources[1]


def test_a_nan_stays_unless_the_caller_promises_that_there_is_none():
    x = np.float32([1, np.inf])
    zero = np.float32([[1, 0], [0, 1]])
    keep, drop = (export.to_c(lambda x: zero @ x, finite_math=way)(x) for way in (False, True))
    np.testing.assert_array_equal(keep.build()(x), [np.nan, np.inf])
    np.testing.assert_array_equal(drop.build()(x), x)
    assert "finite numbers" in drop.header and "finite numbers" not in keep.header


MASK = np.float32([[0, -np.inf], [0, 0]])
MIX = np.float32([[1, 0], [0.5, 1]])
CORNER = np.float32([[0, 0], [0, 1]])


def attend(x):
    """Attention with an added mask, a product by zeros, and a choice with infinities."""
    scores = x @ x.T + MASK
    return MIX @ weft.nn.softmax(scores), CORNER @ scores


def loop_over_masked(x):
    step = lambda k, s: jnp.maximum(MIX @ s, MIX @ jnp.where(s > k, s, -jnp.inf))
    return lax.fori_loop(0, 3, step, x)


def store_and_read(x):
    y = jnp.full((2, 2), jnp.inf).at[0].set(x[0])
    return CORNER @ y, CORNER @ y[::-1], MIX @ jnp.where(y > 1e30, 0, y)


INFINITE = {
    "added": lambda x: MIX @ (x + MASK),
    "chosen": lambda x: MIX @ jnp.where(x > 0, x, -jnp.inf),
    "branch": lambda x: MIX @ lax.cond(x[0, 0] > 9, lambda: x, lambda: x - jnp.inf),
    "nan": lambda x: CORNER @ (x * jnp.nan),
    "nan_array": lambda x: CORNER @ (x + np.float32([[0, np.nan], [0, 0]])),
    "divided": lambda x: jnp.zeros(2) / (x + MASK * jnp.nan),
    "wide": lambda x: np.float64(MIX) @ (x.astype("float64") - np.inf),
    "sorted": lambda x: CORNER @ jnp.sort(x + MASK, 0),
    "attend": attend, "loop": loop_over_masked, "stored": store_and_read,
}  # fmt: skip


@pytest.mark.parametrize("name", INFINITE)
def test_infinities_of_the_program_are_computed_with(name):
    """With the option and without it, a program that holds infinities computes the same."""
    with weft.enable_x64(name == "wide"):
        fun, x = INFINITE[name], np.float32([[1, -2], [3, 0.5]])
        keep, drop = (export.to_c(fun, finite_math=way)(x).build() for way in (False, True))
        for strict, finite in zip(*(weft.tree.leaves(f(x)) for f in (keep, drop)), strict=True):
            np.testing.assert_array_equal(strict, finite)


# Programs whose sources have infinities or NaN, which no value is where numbers are finite.
FINITE = {
    "softmax": lambda x: MIX @ weft.nn.softmax(x),
    "clip": lambda x: MIX @ jnp.clip(x, 0, jnp.inf),
    "extremes": lambda x: MIX @ (jnp.max(x, 0, initial=-jnp.inf) - jnp.min(x, 0)),
    "long": lambda x: MIX @ jnp.max(jnp.tile(x, (20, 1)), 0),
    "cholesky": lambda x: MIX @ jnp.linalg.cholesky(x @ x.T),
    "test": lambda x: MIX @ jnp.where(jnp.isfinite(x) & (x < jnp.inf), x, 0),
}


@pytest.mark.parametrize("name", FINITE)
def test_neutral_infinities_and_marks_of_failures_count_as_finite(name):
    fun, x = FINITE[name], np.float32([[1, -2], [3, 0.5]])
    programs = [export.to_c(fun, finite_math=way)(x) for way in (False, True)]
    keep, drop = [program.report().operations for program in programs]
    assert drop < keep
    got, want = (program.build()(x) for program in programs)
    np.testing.assert_allclose(got, want, 1e-6)


@pytest.mark.parametrize(
    ("pattern", "args", "value"),
    [
        ("{0} * {1}", ["t1", "0.0f"], "0.0f"), ("{0} * {1}", ["(-0.0f)", "t1"], "0.0f"),
        ("{0} * {1}", ["1.0f", "t1"], "t1"), ("{0} * {1}", ["t1", "2.0f"], None),
        ("{0} + {1}", ["t1", "0.0f"], "t1"), ("{0} + {1}", ["0.0f", "t1"], "t1"),
        ("{0} - {1}", ["t1", "0.0f"], "t1"), ("{0} - {1}", ["0.0f", "t1"], "-"),
        ("{0} / {1}", ["0.0f", "t1"], "0.0f"), ("{0} / {1}", ["t1", "1.0f"], "t1"),
        ("{0} / {1}", ["t1", "0.0f"], None), ("-{0}", ["0.0f"], "0.0f"),
        ("{0} * {1}", ["t9", "1.0f"], "copy"), ("{0} + {1}", ["0.0f", "t9"], "copy"),
        ("{0} * {1}", ["t9", "0.0f"], "0.0f"), ("{0}", ["t9"], None),
        ("(float)(3)", [], "3.0f"), ("1 <= 2 ? {0} : {1}", ["t1", "t2"], "t1"),
        ("t7 ? {0} : {1}", ["t1", "t2"], None), ("{0} ? {1} : {2}", ["false", "t1", "t2"], "t2"),
        ("(float){0}", ["true"], "1.0f"), ("1 <= 2 ? {0} : {1}", ["t9", "t2"], None),
        ("sqrtf({0})", ["0.0f"], None), ("{0} * {1}", ["1e-05f", "t1"], None),
        ("{0} * {1}", ["0.0f", "t8"], None), ("{0} * {1}", ["(-INFINITY)", "0.0f"], None),
        ("{0} + {1}", ["0.0f", "t8"], "t8"), ("{0} / {1}", ["0.0f", "t8"], None),
        ("{0} / {1}", ["0.0f", "0.0f"], None), ("{0} / {1}", ["t8", "1.0f"], "t8"),
    ],
)  # fmt: skip
def test_what_an_operation_is(pattern, args, value):
    dropper = ZeroDropper(str)
    dropper.infinite = {"t8"}
    dropper.assigned = {"t9"}  # a variable that changes later must not stand for another one
    s = Let("t5", "float", pattern, args)
    found = dropper.simplify(s, {})
    if value == "copy":
        assert (found, s.pattern, s.args) == (None, "{0}", ["t9"])
    elif value == "-":
        assert (found, s.pattern, s.args) == (None, "-{0}", ["t1"])
    else:
        assert found == value


def test_zeros_are_followed_through_memory():
    memory = Buffer("b", F32, 2, Role.WORK)
    at = [index_number(k) for k in range(2)]
    read = lambda name, k: Let(name, "float", "{0}", [Load(memory, at[k])])
    branch = If("t3", [Store(memory, at[0], "t4")], [])
    block = [
        Store(memory, at[0], "0.0f"), Store(memory, at[1], "t1"),
        read("t5", 0), read("t6", 1), Let("t7", "float", "{0} + {1}", ["t5", "t6"]),
        branch, read("t8", 0), Let("t9", "float", "{0} + {1}", ["t8", "t7"]),
    ]  # fmt: skip
    ZeroDropper(str).drop(block)
    assert print_block(block[2:], 0) == [
        "if (t3) {", "  b[0] = t4;", "}",
        "const float t8 = b[0];", "const float t9 = t8 + t1;",
    ]  # fmt: skip


def test_numbers_in_c():
    texts = ["0.0f", "(-0.5f)", "1.0e-05f", "12.5", "t3", "INFINITY", "x"]
    assert [read_number(t) for t in texts] == [0, -0.5, 1e-5, 12.5, None, None, None]
