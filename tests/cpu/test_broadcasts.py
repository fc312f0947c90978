"""cpu/broadcasts.py: sums of operands computed from repeated arrays; test_sums.py has others."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, show_prepared
from weft import config

RNG = np.random.RandomState(0)
# Operands that are computed from x (n, k), y (m, k), and w (n, m), by NumPy and by weft.
OPERANDS = {
    "apart": lambda xp, x, y, w: x[:, None] - y[None],
    "weighted": lambda xp, x, y, w: (x[:, None] - y[None]) * w[..., None],
    "numbers": lambda xp, x, y, w: (2.5 * x[:, None] - 1.5) * y * w[:, :, None] + 0.5,
    "chosen": lambda xp, x, y, w: xp.where(x[:, None] < y[None], w[..., None], x[:, None]),
    "squares": lambda xp, x, y, w: (x[:, None] - y[None]) ** 2,
    "quotients": lambda xp, x, y, w: x[:, None] / (1 + abs(y[None] * w[:, :, None])),
    "turned": lambda xp, x, y, w: x[None] * w.T[:, :, None] - y[:, None],
}


def make_points(n, m, k, dtype):
    return [RNG.randn(*shape).astype(dtype) for shape in ((n, k), (m, k), (n, m))]


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n, m, k", [(70, 70, 3), (33, 90, 2), (91, 40, 8), (50, 48, 16)])
@pytest.mark.parametrize("name", OPERANDS)
def test_sums_over_any_axes_are_those_of_numpy(name, n, m, k, dtype):
    operand, points = OPERANDS[name], make_points(n, m, k, dtype)
    with config.scope(enable_x64=True):
        for axis in (0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2)):
            run = weft.jit(lambda *p, axis=axis: operand(jnp, *p).sum(axis))
            wide = operand(np, *[p.astype("float64") for p in points])
            found, expected = np.asarray(run(*points)), wide.sum(axis)
            size = abs(wide).sum(axis)
            assert found.dtype == dtype
            assert found.shape == expected.shape
            assert (abs(found - expected) <= 64 * np.finfo(dtype).eps * size).all()


def test_a_short_axis_becomes_the_first_one():
    x, y, w = make_points(40, 50, 3, "float32")
    for axis, order in ((0, "f32[3,50,40]"), (1, "f32[3,40,50]"), ((0, 1), "f32[3,40,50]")):
        text = show_prepared(
            lambda x, w, axis=axis: OPERANDS["weighted"](jnp, x, y, w).sum(axis), x, w
        )
        assert order in text


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, y, w: (x[:, None] - y[None]).sum(2),
        lambda x, y, w: [a.sum(axis) for a in [x[:, None] * y[None]] for axis in (0, 1)],
        lambda x, y, w: jnp.where(x[:, None] < y[None], w[..., None], 1.0).sum(0),
        lambda x, y, w: jnp.sin(x[:, None] - y[None]).sum(1),
        lambda x, y, w: (jnp.zeros((40, 50, 3)).at[3].set(1.0) * x[:, None]).sum(1),
        lambda x, y, w: (x[:30, None] * y[None, :20]).sum(1),
    ],
    ids=[
        "last axis",
        "two sums",
        "large and stored",
        "a function",
        "a stored operand",
        "few elements",
    ],
)
def test_other_sums_keep_the_axes_of_their_operands(fun):
    text = show_prepared(fun, *make_points(40, 50, 3, "float32"))
    assert "f32[3,40,50]" not in text
    assert "f32[3,50,40]" not in text
    assert "f32[3,30,20]" not in text


def test_sums_keep_nan_and_infinities():
    x, y, w = make_points(40, 50, 3, "float32")
    x[3, 1], y[7, 2], y[9, 0], x[9, 0] = np.nan, np.inf, np.inf, np.inf
    found = weft.jit(lambda x, y: (x[:, None] - y[None]).sum(1))(x, y)
    with np.errstate(invalid="ignore"):
        expected = (x[:, None] - y[None]).sum(1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def test_kernels_are_not_needed():
    x, y, w = make_points(40, 50, 3, "float32")
    text = show_prepared(lambda x, y: (x[:, None] - y[None]).sum(1), x, y, target=NO_KERNELS)
    assert "f32[3,40,50]" in text


def test_rows_up_to_a_number_of_operations_are_added_in_a_loop():
    x, y, _ = make_points(60, 60, 32, "float32")
    square = lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1)
    assert "write_sum_by_loop" in show_prepared(square, x, y)
    assert "write_sum_by_loop" not in show_prepared(
        lambda x, y: square(x, y) + 0, *make_points(60, 60, 33, "float32")[:2]
    )

    def long(x, y):
        apart = x[:, None] - y[None]
        for power in range(2, 7):
            apart = apart * x[:, None] + power
        return apart.sum(-1)

    assert "write_sum_by_loop" not in show_prepared(long, x, y)


def test_gradients_of_pairs_are_those_of_differences():
    x, y, w = make_points(24, 24, 3, "float64")

    def energy(x, xp=jnp):
        apart = x[:, None] - x[None]
        return (((apart**2).sum(-1) + 0.5) ** -1.5 * w).sum() + xp.tanh(apart.sum(1)).sum()

    with config.scope(enable_x64=True):
        slope = np.asarray(weft.jit(weft.grad(energy))(x))
    step = 1e-6 * RNG.randn(*x.shape)
    change = (energy(x + step, np) - energy(x - step, np)) / 2
    np.testing.assert_allclose((slope * step).sum(), change, rtol=1e-6)
