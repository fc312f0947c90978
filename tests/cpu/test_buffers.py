"""Loops with two steps in a body: results as NumPy's loops, and which loops are written so."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, OVER_MESH, show_prepared
from weft import dtypes, lax
from weft.cpu import buffers

RNG = np.random.RandomState(0)
INNER = np.s_[1:-1, 1:-1]
FORTY = RNG.randn(41, 57).astype("f")


class InPlace:
    """Arrays that NumPy writes into, and loops written out."""

    numpy = np

    @staticmethod
    def put(u, index, value):
        u = u.copy()
        u[index] = value
        return u

    @staticmethod
    def repeat(step, carry, count, xs=None, reverse=False):
        ys = []
        for i in range(count)[:: -1 if reverse else 1]:
            carry, y = step(carry, None if xs is None else xs[i])
            ys.append(y)
        ys = ys[:: -1 if reverse else 1]
        return carry, None if not ys or ys[0] is None else np.stack(ys)


class Functional:
    """The same by weft."""

    numpy = jnp

    @staticmethod
    def put(u, index, value):
        return u.at[index].set(value)

    @staticmethod
    def repeat(step, carry, count, xs=None, reverse=False):
        return lax.scan(step, carry, xs, length=count, reverse=reverse)


def mean(u):
    """Return means of four neighbours, of any dtype."""
    return (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) * u.dtype.type(0.25)


def count_neighbours(u):
    return (u[2:, 1:-1] ^ u[:-2, 1:-1]) + (u[1:-1, 2:] & u[1:-1, :-2])


def window(to, u, n, rule=mean):
    return to.repeat(lambda u, _: (to.put(u, INNER, rule(u)), None), u, n)[0]


def edges_after(to, u, n):
    def step(u, _):
        u = to.put(u, INNER, mean(u))
        u = to.put(u, np.s_[:, -1], u[:, -2])
        u = to.put(u, 0, u[1] * 2)
        u = to.put(u, np.s_[:, 0], u[:, 1])
        return to.put(u, -1, 0), None

    return to.repeat(step, u, n)[0]


def edges_before(to, u, n):
    def step(u, _):
        u = to.put(u, 0, u[-2])
        u = to.put(u, np.s_[:, :1], u[:, -2:-1])
        u = to.put(u, np.s_[1:, 1:-1], 0.5 * (u[:-1, 2:] - u[1:, :-2]))
        return to.put(u, np.s_[-1, ::1], u[1]), None

    return to.repeat(step, u, n)[0]


def two_arrays(to, u, n):
    def step(uv, _):
        u, v = uv
        new = to.put(u, INNER, mean(u) - 0.25 * v[1:-1, :-2])
        return (new, to.put(v, INNER, mean(v) + 0.25 * u[:-2, 1:-1])), None

    u, v = to.repeat(step, (u, 1 - u), n)[0]
    return u - v


def exchange(to, u, n):
    """Two arrays of one window that change places in each step."""
    step = lambda uv, _: ((uv[1], to.put(uv[0], INNER, mean(uv[1]))), None)
    u, v = to.repeat(step, (u, u * 2), n)[0]
    return u + v


def history(to, u, n):
    """The array before each step is an operand of the result, and that after it is stacked."""

    def step(uv, x):
        u, total = uv
        new = to.put(u, INNER, mean(u) + x)
        return (new, total + (new - u)), new[::2, 1]

    xs = np.linspace(-1, 1, n).astype("f")
    (u, total), ys = to.repeat(step, (u, 0 * u), n, xs, reverse=True)
    return u + total + (0 if ys is None else ys.sum(0)[0])


def moved_window(to, u, n):
    """A window at a place that differs between steps is no large window at a known place."""

    def step(ui, _):
        u, i = ui
        rows = u[1:] * 0.5 + u[:-1]
        u = (
            lax.dynamic_update_slice(u, rows, (i, 0))
            if to is Functional
            else to.put(u, np.s_[min(i, 1) : min(i, 1) + len(rows)], rows)
        )
        return (u, i + 1), None

    return to.repeat(step, (u, 0), n)[0][0]


def eliminate(to, u, n):
    step = lambda u, k: (u - to.numpy.outer(u[:, k], u[k]) / 64, None)
    return to.repeat(step, u, n, np.arange(n) % 2)[0]


def rolls(to, u, n):
    roll = to.numpy.roll

    def step(uv, _):
        u, v = uv
        return (v * 0.5, 0.25 * (roll(v, 1, 0) + roll(v, -1, 1)) - 0.5 * u), None

    u, v = to.repeat(step, (u, u + 1), n)[0]
    return u + v


PROGRAMS = {
    "window": window,
    "edges after it": edges_after,
    "edges before it": edges_before,
    "two arrays": two_arrays,
    "arrays that change places": exchange,
    "history": history,
    "a place that differs": moved_window,
    "rolls": rolls,
}


@pytest.fixture
def any_size(monkeypatch):
    """Let loops on small arrays, and few steps, be written so."""
    for name in ("MIN_BYTES", "MIN_BYTES_OF_ROWS", "MIN_NEW_BYTES", "MIN_READ_BYTES", "MIN_STEPS"):
        monkeypatch.setattr(buffers, name, 1)


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shape", [(41, 57), (8, 9), (3, 3), (2, 4)], ids=str)
def test_results_are_as_in_place(name, shape, any_size):
    u = RNG.randn(*shape).astype("f")
    for n in (1, 2, 3, 8, 13):
        found = weft.jit(lambda u, n=n: PROGRAMS[name](Functional, u, n))(u)
        expected = PROGRAMS[name](InPlace, u, n)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_and_batches_of_linear_programs(name):
    fun = lambda u: PROGRAMS[name](Functional, u, 11) - PROGRAMS[name](Functional, 0 * u, 11)
    w, t = FORTY[::-1], FORTY[:, ::-1]
    both = weft.jit(weft.vmap(fun))(np.stack([t, 2 * t]))
    zero = PROGRAMS[name](InPlace, 0 * t, 11)
    np.testing.assert_allclose(both[0], PROGRAMS[name](InPlace, t, 11) - zero, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(both[1], 2 * both[0], rtol=1e-4, atol=1e-4)
    slope = weft.jit(weft.grad(lambda u: jnp.sum(w * fun(u))))(FORTY)
    moved = weft.jit(lambda u, t: weft.jvp(fun, (u,), (t,))[1])(FORTY, t)
    np.testing.assert_allclose(moved, both[0], rtol=1e-4, atol=1e-4)
    scale = np.abs(w * both[0]).sum()
    np.testing.assert_allclose(np.sum(slope * t), np.sum(w * both[0]), atol=1e-5 * scale)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "f2", "bfloat16", "c8"])
def test_other_dtypes_have_the_same_bits(dtype):
    """The same operations on each element: no bit differs from a loop without the second buffer."""
    dtype = np.dtype(dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    u = (RNG.randn(120, 130) * 50).astype(dtype)
    rule = count_neighbours if dtype.kind in "iu" else mean
    fun = lambda u: window(Functional, u, 9, rule)
    step = weft.jit(lambda u: u.at[INNER].set(rule(u)))
    expected = u
    for _ in range(9):
        expected = step(expected)
    assert "unroll=2" in show_prepared(fun, u)
    np.testing.assert_array_equal(weft.jit(fun)(u), expected)


def test_64_bits():
    u = FORTY.astype(np.float64)
    with weft.enable_x64(True):
        for fun in (window, edges_after, two_arrays, history):
            found = weft.jit(lambda u, fun=fun: fun(Functional, u, 21))(u)
            np.testing.assert_allclose(found, fun(InPlace, u, 21), rtol=1e-12, atol=1e-12)


def test_arrays_without_elements():
    for shape in ((0, 5), (2, 0), (2, 2)):
        u = np.ones(shape, "f")
        found = weft.jit(lambda u: lax.fori_loop(0, 9, lambda i, u: u.at[:1].set(u[1:]), u))(u)
        assert found.shape == shape


LARGE = np.zeros((96, 96), "f")
VERY_LARGE = np.zeros((512, 520), "f")
# The program, its argument, whether two steps are written, the number of buffers that are carried.
FORMS = {
    "a window": (window, LARGE, 9, True),
    "few steps": (window, LARGE, 7, False),
    "a small array": (window, LARGE[:8, :9], 9, False),
    "short rows": (window, LARGE[:, :25].copy(), 9, False),
    "edges": (edges_after, LARGE, 9, True),
    "two arrays": (two_arrays, LARGE, 9, True),
    "a place that differs": (moved_window, LARGE, 9, False),
    "rolls": (rolls, LARGE, 9, False),
    "rolls of large arrays": (rolls, VERY_LARGE, 9, True),
    "a window of a function": (
        lambda to, u, n: window(to, u, n, lambda u: jnp.exp(mean(u))),
        LARGE,
        9,
        True,
    ),
    "a large window of a function": (
        lambda to, u, n: window(to, u, n, lambda u: jnp.exp(mean(u))),
        VERY_LARGE,
        9,
        False,
    ),
    "a column": (eliminate, VERY_LARGE, 9, False),
    "the elements of the window": (
        lambda to, u, n: to.repeat(lambda u, _: (to.put(u, INNER, 2 * u[INNER]), None), u, n)[0],
        VERY_LARGE,
        9,
        False,
    ),
    "all elements": (
        lambda to, u, n: to.repeat(lambda u, _: (u * u + 1, None), u, n)[0],
        VERY_LARGE,
        9,
        False,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    fun, u, n, doubled = FORMS[name]
    text = show_prepared(lambda u: fun(Functional, u, n), u)
    assert ("unroll=2" in text) is doubled, text


def test_loops_for_several_devices_and_without_kernels_are_unchanged():
    for target in (NO_KERNELS, OVER_MESH):
        assert "unroll=1" in show_prepared(lambda u: window(Functional, u, 9), LARGE, target=target)
