"""Arrays joined and framed by kernels on the CPU, against NumPy's and against XLA's."""

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import jit
from weft.cpu.kernels import load_kernels

pytestmark = pytest.mark.skipif(bool(load_kernels()), reason="there are no kernels")
DTYPES = [bool, np.uint8, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int32, np.complex64]


def numbers(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape)) % 251).reshape(shape).astype(dtype)


def calls(fun, *args):
    """Return the number of kernel calls in a function's program."""
    text = jit(fun).lower(*args).as_text()
    return sum(text.count(f"weft_{kernel}") for kernel in ("concatenate", "pad", "roll"))


A, V = numbers(700, 1200), numbers(300_000)
CASES = {
    "roll": (lambda np, x: np.roll(x, 7), V),
    "roll_back": (lambda np, x: np.roll(x, -3, 1), A),
    "roll_rows": (lambda np, x: np.roll(x, 699, 0), A),
    "roll_both": (lambda np, x: np.roll(x, (3, -5), (0, 1)), A),
    "roll_short_rows": (lambda np, x: np.roll(x.reshape(-1, 50), 7, 1), A),
    "roll_three": (lambda np, x: np.roll(x.reshape(7, 100, 1200), (1, -9, 500), (0, 1, 2)), A),
    "roll_outer": (lambda np, x: np.roll(x.reshape(7, 100, 40, 30), (3, 7, 9), (0, 1, 2)), A),
    "roll_again": (lambda np, x: np.roll(np.roll(x, 3, 1), 4, 1), A),
    "roll_round": (lambda np, x: np.roll(x, (3, 1200, 705), (1, 1, 0)), A),
    "roll_some": (lambda np, x: np.roll(np.roll(x[::2], 3, 0), 4, 1), A),
    "concatenate": (lambda np, x: np.concatenate([x, x, x[:5]]), V),
    "concatenate_columns": (lambda np, x: np.concatenate([x[:, 3:], x, x[:, :1]], 1), A),
    "concatenate_of_cut_rows": (lambda np, x: np.concatenate([x[:90, 3:], x[5:95, :9]], -1), A),
    "concatenate_with_none": (lambda np, x: np.concatenate([x, x[:0], x]), A),
    "concatenate_steps": (lambda np, x: np.concatenate([x[::2], x[::-1]]), V),
    "stack": (lambda np, x: np.stack([x, x, x]), V),
    "stack_columns": (lambda np, x: np.stack([x, x], 1), A),
    "tile": (lambda np, x: np.tile(x, 3), V),
    "tile_rows": (lambda np, x: np.tile(x, (2, 1)), A),
    "append": (lambda np, x: np.append(x, x[0]), A),
    "block": (lambda np, x: np.block([[x, x], [x, x]]), A),
    "pad": (lambda np, x: np.pad(x, 5), V),
    "pad_unevenly": (lambda np, x: np.pad(x, ((0, 700), (3, 0)), constant_values=9), A),
    "pad_rows": (lambda np, x: np.pad(x, ((2, 3), (0, 0))), A),
    "pad_volume": (
        lambda np, x: np.pad(x.reshape(7, 10, 10, 1200), ((1, 2), (0, 1), (3, 0), (0, 0))), A
    ),
    "pad_inside": (lambda np, x: np.pad(x.reshape(7, 100, 1200), ((0, 0), (1, 1), (4, 5))), A),
    "edge": (lambda np, x: np.pad(x, 5, mode="edge"), A),
    "wrap": (lambda np, x: np.pad(x, 5, mode="wrap"), A),
    "reflect": (lambda np, x: np.pad(x, ((5, 0), (2, 900)), mode="reflect"), A),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_numpy_does(name):
    fun, x = CASES[name]
    assert calls(lambda x: fun(jnp, x), x) > 0
    np.testing.assert_array_equal(jit(lambda x: fun(jnp, x))(x), fun(np, x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    x = numbers(400, 5000, dtype=dtype)
    join = lambda np, x: np.concatenate([x[:, 7:], x[:, :7]], 1)
    frame = lambda np, x: np.pad(x, ((1, 2), (3, 4)), constant_values=np.asarray(x)[1, 1])
    frame_by = lambda x: jnp.pad(x, ((1, 2), (3, 4)), constant_values=x[1, 1])
    assert calls(lambda x: join(jnp, x), x) == 1
    np.testing.assert_array_equal(jit(lambda x: join(jnp, x))(x), join(np, x))
    np.testing.assert_array_equal(jit(frame_by)(x), frame(np, x))


def test_only_large_arrays_in_long_runs_and_programs_that_move_alone():
    roll = lambda x: jnp.roll(x, 3, -1)
    assert calls(roll, V) == 1 and calls(roll, V[:1000]) == 0
    assert calls(roll, V.reshape(-1, 100)) == 1 and calls(roll, V.reshape(-1, 10)) == 0
    assert calls(lambda x: roll(x) + roll(roll(x)), V) == 0
    interior = lambda x: weft.lax.pad(x, np.float32(0), [(1, -2, 0)])
    assert calls(interior, V) == 0
    between = lambda x: weft.lax.pad(x, np.float32(0), [(1, 2, 1)])
    assert calls(between, V) == 0
    with weft.config.scope(native=False):
        assert calls(roll, V) == 0
        np.testing.assert_array_equal(jit(roll)(V), np.roll(V, 3))


def test_what_was_written_before_does_not_matter():
    cut = jit(lambda x: x[4:9] * 2 + x[:5])
    join = lambda x: jnp.concatenate([x[5:], x[:5]])
    for _ in range(3):  # the lines of a slice are kept for later programs
        cut(V)
        assert calls(join, V) == 1


def test_under_transformations():
    roll = lambda x: jnp.roll(x, 3)
    rows = V.reshape(3, -1)
    got = jit(weft.vmap(roll))(rows)
    np.testing.assert_array_equal(got, np.roll(rows, 3, 1))
    slope = weft.grad(lambda x: jnp.vdot(roll(x), np.arange(300_000.0)))
    np.testing.assert_array_equal(slope(V), np.roll(np.arange(300_000.0, dtype=np.float32), -3))
    given = jnp.array(V)
    kept = jit(roll, donate_argnums=0)(given)
    np.testing.assert_array_equal(kept, np.roll(V, 3))


@pytest.mark.sample(one_in=3)
@pytest.mark.parametrize("dtype", [np.float32, *DTYPES])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 9])
def test_columns(count, dtype):
    xs = [numbers(100, 400, dtype=dtype) for _ in range(count)]
    columns = jit(lambda *xs: jnp.stack(xs, -1))
    np.testing.assert_array_equal(columns(*xs), np.stack(xs, -1))
    both = jit(lambda *xs: jnp.stack(xs, -1).sum(-1))
    if dtype is np.float32:
        np.testing.assert_array_equal(both(*xs), count * xs[0])


def test_columns_are_chosen_where_they_are_few_and_large_and_given():
    chosen = lambda fun, *xs: "stablehlo.concatenate" not in jit(fun).lower(*xs).as_text()
    stack = lambda *xs: jnp.stack(xs, -1)
    assert chosen(stack, V, V) and not chosen(stack, *[V] * 9) and not chosen(stack, V[:9], V[:9])
    assert not chosen(lambda x: stack(x * 2, x), V)
    slope = weft.grad(lambda x: (stack(x, x) ** 3).sum())
    np.testing.assert_allclose(slope(V), 6 * V**2, rtol=1e-6)


TURNS = {  # of shapes, the orders of axes
    (300, 200): [(1, 0)],
    (64, 520): [(1, 0)],
    (4, 33, 3, 90): [(0, 3, 2, 1), (3, 1, 0, 2), (0, 2, 3, 1), (1, 3, 0, 2)],
    (40, 50, 60): [(2, 1, 0), (0, 2, 1), (2, 0, 1), (1, 2, 0)],
    (1, 190, 1, 190): [(0, 3, 2, 1), (3, 0, 1, 2)],
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "bfloat16", "float32", "complex64"])
def test_axes_in_another_order(rng, dtype):
    for shape, orders in TURNS.items():
        x = np.asarray(rng.integers(0, 2 if dtype == "bool" else 100, shape)).astype(dtype)
        for order in orders:
            turned = range(len(shape)) if len(shape) < 4 else (1, 3)
            fun = lambda x, order=order, turned=turned: [
                jnp.transpose(x, order),
                *(jnp.transpose(jnp.flip(x, a), order) for a in (*turned, (0, -1))),
            ]
            expected = [x, *(np.flip(x, a) for a in (*turned, (0, -1)))]
            for y, z in zip(weft.jit(fun)(x), expected, strict=True):
                np.testing.assert_array_equal(y, z.transpose(order))


def test_quarter_turns(rng):
    x = rng.integers(-9, 9, (210, 190)).astype(np.float32)
    x[0, :3] = np.nan, np.inf, -0.0
    for k in range(4):
        np.testing.assert_array_equal(jnp.rot90(x, k), np.rot90(x, k))
        found = weft.vmap(lambda x, k=k: jnp.rot90(x, k))(x[None])
        np.testing.assert_array_equal(found[0], np.rot90(x, k))
    weights = np.arange(x.size, dtype=np.float32).reshape(x.T.shape)
    found = weft.grad(lambda x: (jnp.rot90(x) * weights).sum())(x)
    np.testing.assert_array_equal(found, np.rot90(weights, -1))


def test_which_turns_call_the_kernel():
    def calls(fun, shape, dtype=np.uint8, native=True):
        with weft.config.scope(native=native):
            text = jit(fun).lower(weft.ShapeDtypeStruct(shape, dtype)).as_text()
        return text.count("weft_view")

    for _ in range(2):  # cached text does not matter
        assert calls(lambda x: x.T + x, (300, 300)) == 0  # fuses
        assert calls(jnp.rot90, (300, 300), np.float32) == 1
        assert calls(jnp.rot90, (300, 300), native=False) == 0
        assert calls(jnp.transpose, (300, 300)) == 1
        assert calls(jnp.transpose, (300, 300), np.int16) == 1
        assert calls(lambda x: x.T[None], (300, 300)) == 1
    assert calls(jnp.transpose, (300, 300), np.float32) == 0
    assert calls(jnp.transpose, (9, 9000)) == calls(jnp.transpose, (90, 90)) == 0


def lap(np, u):
    return np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u


ROLLS = {
    "a difference": lambda np, u: u - np.roll(u, 1, 1),
    "a Laplacian": lap,
    "corners": lambda np, u: np.roll(u, (5, -700), (0, 1)) * 2 + np.roll(u, (-1, 3), (0, 1)),
    "in a loop": lambda np, u: (
        lap(np, u - lap(np, u) / 8)
        if np is not jnp
        else lap(np, weft.lax.fori_loop(0, 1, lambda i, u: u - lap(np, u) / 8, u))
    ),
    "the last of three axes": lambda np, u: np.roll(u.reshape(7, 100, 1200), -5, 2) + 1,
}


@pytest.mark.parametrize("name", ROLLS)
def test_rolls_within_a_program_are_chosen_by_place(name):
    x = A % 17
    fun = jit(lambda x: ROLLS[name](jnp, x))
    text = fun.lower(x).as_text()
    assert "select" in text
    assert "concatenate" not in text or name in ("a Laplacian", "corners", "in a loop")
    np.testing.assert_allclose(fun(x), ROLLS[name](np, x), atol=1e-3)


def test_rolls_of_computed_arrays_are_joined():
    """XLA would compute the array again for each place that it is read at."""
    fun = lambda x: lap(jnp, lap(jnp, x))
    text = jit(fun).lower(A).as_text()
    assert text.count("concatenate") == 8
    assert "select" not in text
    gradient = jit(weft.grad(lambda x: jnp.sum(lap(jnp, x) ** 2)))(A % 7)
    np.testing.assert_allclose(gradient, 2 * lap(np, lap(np, A % 7)), atol=1e-3)


def test_rolls_of_any_dtype_are_chosen_by_place():
    xs = [(numbers(600, 600) % 5).astype(d) for d in DTYPES]
    found = jit(lambda xs: [(jnp.roll(x, 3, 1), x == x) for x in xs])(xs)
    for x, (y, _) in zip(xs, found, strict=True):
        np.testing.assert_array_equal(y, np.roll(x, 3, 1))
