"""Reverse mode through loops of unknown length, against unrolled Python loops; memory and work."""

import math

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.conftest import ALL
from weft import grad, hessian, jacfwd, jacrev, jit, lax, vmap
from weft.control import reversal
from weft.control.reversal import Sweep


@pytest.fixture(autouse=True)
def double_precision():
    with weft.enable_x64(), weft.enable_checks():
        yield


class Python:
    """The loops of lax, step by step on concrete values."""

    @staticmethod
    def while_loop(cond, body, x, max_steps=math.inf, checkpoints=None):
        steps = 0
        while steps < max_steps and cond(x):
            x, steps = body(x), steps + 1
        return x

    @staticmethod
    def fori_loop(lower, upper, body, x):
        for i in range(int(lower), int(upper)):
            x = body(i, x)
        return x

    @staticmethod
    def scan(f, c, xs):
        ys = []
        for x in xs:
            c, y = f(c, x)
            ys.append(y)
        return c, jnp.stack(ys)

    @staticmethod
    def cond(pred, yes, no, *args):
        return yes(*args) if pred else no(*args)


PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def counted(L, x, **how):
    step = lambda c: (c[0] + 1, jnp.sin(c[1]) * x + c[1])
    return L.while_loop(lambda c: c[0] < 7, step, (0, x), **how)[1]


@program
def steps_by_data(L, x, **how):
    step = lambda c: c * 1.3 + jnp.tanh(x)
    return L.while_loop(lambda c: jnp.sum(jnp.abs(c)) < 9.0, step, x, **how)


@program
def no_steps(L, x, **how):
    return L.while_loop(lambda c: c.sum() < -1e9, lambda c: c * jnp.tanh(x), x, **how)


@program
def one_step(L, x, **how):
    step = lambda c: (c[0] + 1, c[1] * x)
    return L.while_loop(lambda c: c[0] < 1, step, (0, x), **how)[1]


@program
def more_steps_than_slots(L, x, **how):
    step = lambda c: (c[0] + 1, jnp.cos(c[1]) * x)
    return L.while_loop(lambda c: c[0] < 150, step, (0, x), **how)[1]


@program
def between_bounds(L, x, **how):
    bound = 5 if L is Python else jnp.int32(5)
    return L.fori_loop(2, bound, lambda i, c: c * x + i * jnp.sin(c), x)


@program
def scattered(L, x, **how):
    step = lambda c: (c[0] + 1, c[1].at[c[0]].set(jnp.sin(c[1]).sum() * x[0]))
    return L.while_loop(lambda c: c[0] < 3, step, (0, x), **how)[1]


@program
def while_in_while(L, x, **how):
    def outer(c):
        i, y = c
        inner = lambda d: (d[0] + 1, jnp.sin(d[1]) * x + 0.1 * y)
        return i + 1, L.while_loop(lambda d: d[0] < i + 1, inner, (0, y), **how)[1]

    return L.while_loop(lambda c: c[0] < 4, outer, (0, x), **how)[1]


@program
def scan_in_while(L, x, **how):
    def outer(c):
        i, y = c
        z, ys = L.scan(lambda a, b: (a * jnp.cos(b) + y, a.sum()), y, x)
        return i + 1, z + ys

    return L.while_loop(lambda c: c[0] < 4, outer, (0, x), **how)[1]


@program
def while_in_scan(L, x, **how):
    def step(a, b):
        grown = lambda c: c * 1.4 + jnp.sin(b)
        y = L.while_loop(lambda c: jnp.sum(c**2) < 20.0, grown, a, **how)
        return y * 0.1, y.sum()

    c, ys = L.scan(step, x, x)
    return c * ys


@program
def cond_in_while(L, x, **how):
    def body(c):
        i, y = c
        return i + 1, L.cond(i % 2 == 0, lambda y: jnp.sin(y) * x, lambda y: y * y + x, y)

    return L.while_loop(lambda c: c[0] < 5, body, (0, x), **how)[1]


@program
def integers_and_truths(L, x, **how):
    def body(c):
        i, j, odd, y = c
        return i + 1, j * 2, ~odd, jnp.where(odd, jnp.cos(y * j), jnp.sin(y) + x)

    return L.while_loop(lambda c: c[1] < 40, body, (0, 1, jnp.array(True), x), **how)[3]


@program
def reset_and_summed(L, x, **how):
    def body(c):
        i, a, b, d = c
        return i + 1, b * 2.0, jnp.ones(3), d + b * x

    out = L.while_loop(lambda c: c[0] < 5, body, (0, x, x * 3, x), **how)
    return out[1] + out[3]


@program
def dead_and_still(L, x, **how):
    def body(c):
        i, a, b, d = c
        return i + 1, jnp.sin(a) * x * d, b * 2.0, d

    return L.while_loop(lambda c: c[0] < 5, body, (0, x, x * 3, jnp.cos(x)), **how)[1]


@weft.custom_jvp
def twice_sine(x):
    return jnp.sin(x)


twice_sine.defjvp(lambda p, t: (twice_sine(*p), 2.0 * jnp.cos(p[0]) * t[0]))


@program
def custom_jvp_in_while(L, x, **how):
    step = lambda c: (c[0] + 1, twice_sine(c[1]) * x)
    return L.while_loop(lambda c: c[0] < 4, step, (0, x), **how)[1]


@weft.custom_vjp
def thrice_sine(x):
    return jnp.sin(x)


thrice_sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (3.0 * jnp.cos(x) * ct,))


def custom_vjp_in_while(L, x, **how):
    step = lambda c: (c[0] + 1, thrice_sine(c[1]) * x)
    return L.while_loop(lambda c: c[0] < 4, step, (0, x), **how)[1]


X = np.array([0.3, 0.7, 1.1])
XS = np.array([[0.3, 0.7, 1.1], [0.1, -0.4, 0.2], [1.5, 2.5, 0.01]])
TWICE_REVERSED = {"counted", "steps_by_data", "integers_and_truths", "cond_in_while"}
LARGE = {"more_steps_than_slots", "while_in_while", "scan_in_while", "while_in_scan"}


def scalar(f, L, **how):
    return lambda x: (f(L, x, **how) * jnp.arange(1.0, 4.0)).sum()


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-9, atol=1e-9)


@pytest.mark.sample(one_in=16)
@pytest.mark.parametrize("how", [{}, {"checkpoints": 1}, {"checkpoints": 3}, {"max_steps": 160}])
@pytest.mark.parametrize("f", [*PROGRAMS.values(), custom_vjp_in_while], ids=lambda f: f.__name__)
def test_gradients_are_those_of_the_unrolled_loop(f, how):
    loop, python = scalar(f, lax, **how), scalar(f, Python)
    close(f(lax, X, **how), f(Python, jnp.asarray(X)))
    close(jit(grad(loop))(X), grad(python)(X))


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("f", PROGRAMS.values(), ids=lambda f: f.__name__)
def test_gradients_under_vmap(f):
    loop, python = scalar(f, lax), scalar(f, Python)
    want = np.stack([grad(python)(x) for x in XS])
    close(jit(vmap(grad(loop)))(XS), want)  # each with its own number of steps
    close(jit(grad(lambda xs: vmap(loop)(xs).sum()))(XS), want)


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("f", PROGRAMS.values(), ids=lambda f: f.__name__)
def test_second_derivatives(f):
    loop = scalar(f, lax)
    want = jacfwd(jacrev(scalar(f, Python)))(X)
    close(jit(hessian(loop))(X), want)
    if f.__name__ in TWICE_REVERSED or (ALL and f.__name__ not in LARGE):
        close(jit(jacrev(jacrev(loop)))(X), want)


def test_third_derivatives():
    step = lambda c: lambda s: (s[0] + 1, jnp.sin(s[1]) * c)
    shallow = lambda L, c: L.while_loop(lambda s: s[0] < 3, step(c), (0, c), checkpoints=2)[1]
    third = grad(grad(grad(lambda x: shallow(lax, x))))
    want = grad(grad(grad(lambda x: shallow(Python, x))))(0.7)
    if ALL:  # half a minute to compile
        close(jit(third)(0.7), want)
    close(jit(jacfwd(hessian(lambda x: shallow(lax, x))))(0.7), want)


def test_eager_gradients():
    power = grad(lambda x: lax.while_loop(lambda c: c < 9.0, lambda c: c * x, x))
    assert float(power(2.0)) == 4 * 2.0**3  # of x**4
    assert float(power(3.0)) == 2 * 3.0  # of x**2
    assert float(power(10.0)) == 1.0


# --------------------------------------------------------------------------------------------
# Kinds of values.


def powers(x, n, **how):
    """x**(n + 1), by a loop that carries complex numbers, narrow floats or whatever x is."""
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, x), **how)[1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex128"])
def test_dtypes(dtype):
    x = jnp.array(1.25 if dtype != "complex128" else 0.5 + 0.25j, dtype)
    slope = grad(lambda x: powers(x, 3), holomorphic=dtype == "complex128")(x)
    assert slope.dtype == dtype
    np.testing.assert_allclose(np.asarray(slope, complex), 4 * np.asarray(x, complex) ** 3, 1e-2)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_loops_that_count_in_any_integers(dtype):
    low, high = (3, 120) if dtype[0] == "u" else (-100, 100)
    loop = lambda x, n: lax.fori_loop(jnp.array(low, dtype), n, lambda i, c: c * x, 1.0)
    slope = jit(grad(loop))
    n = high - low
    close(slope(1.01, jnp.array(high, dtype)), n * 1.01 ** (n - 1))
    assert float(slope(1.01, jnp.array(low, dtype))) == 0.0
    assert float(slope(1.01, jnp.array(low - 1, dtype))) == 0.0  # nothing between the bounds


def test_bounds_that_are_mapped():
    loop = lambda x, low, high: lax.fori_loop(low, high, lambda i, c: jnp.sin(c) * x + i, x)
    low, high, x = jnp.array([0, 2, 5]), jnp.array([4, 2, 7]), jnp.array([0.5, 0.6, 0.7])
    want = [
        float(grad(lambda x: Python.fori_loop(a, b, lambda i, c: jnp.sin(c) * x + i, x))(v))  # noqa: B023
        for a, b, v in zip(low.tolist(), high.tolist(), x.tolist(), strict=True)
    ]
    close(vmap(grad(loop))(x, low, high), want)
    close(vmap(grad(loop), (0, None, 0))(x, jnp.array(0), high - low)[1], 1.0)


def test_structures_and_closures():
    w = {"a": jnp.array([1.0, 2.0]), "b": None}

    def loss(w, x):
        body = lambda c: {"x": jnp.tanh(c["x"] * w["a"]), "n": c["n"] + 1, "none": None}
        out = lax.while_loop(lambda c: c["n"] < 3, body, {"x": x, "n": 0, "none": None})
        return (out["x"] * w["a"]).sum()

    def unrolled(w, x):
        for _ in range(3):
            x = jnp.tanh(x * w["a"])
        return (x * w["a"]).sum()

    x = jnp.array([0.3, 0.4])
    for got, want in zip(grad(loss, (0, 1))(w, x), grad(unrolled, (0, 1))(w, x), strict=True):
        weft.tree.map(close, got, want)


def test_sizes_of_zero():
    loop = lambda x: lax.while_loop(lambda c: jnp.sum(c) > 1.0, lambda c: c * 0.5, x).sum()
    assert grad(loop)(jnp.zeros(0)).shape == (0,)
    assert vmap(grad(loop))(jnp.zeros((0, 3))).shape == (0, 3)
    assert grad(lambda x: vmap(loop)(x).sum())(jnp.zeros((0, 3))).shape == (0, 3)


def test_infinities_and_nan_are_those_of_the_unrolled_loop():
    for x in (0.0, 1e200, -3.0):
        loop = lambda L, x: L.while_loop(
            lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.sqrt(c[1]) * c[1] * x), (0, x)
        )[1]
        got, want = (grad(lambda x: loop(L, x))(x) for L in (lax, Python))  # noqa: B023
        np.testing.assert_array_equal(got, want)


def test_a_loop_that_has_stopped_adds_nothing_where_its_body_has_no_slope():
    def rooted(L, x, k):  # the body has an infinite slope where the loop has stopped, at k = 0
        return L.while_loop(
            lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] + jnp.sqrt(c[0] * x)), (k, x)
        )[1]

    k = jnp.array([1.0, 4.0, 2.0])
    want = [grad(lambda x: rooted(Python, x, n))(0.5) for n in k.tolist()]  # noqa: B023
    close(vmap(grad(lambda x, k: rooted(lax, x, k)), (None, 0))(0.5, k), want)
    total = lambda x: vmap(lambda k: rooted(lax, x, k))(k).sum()
    close(grad(total)(0.5), sum(map(float, want)))
    close(weft.jvp(total, (0.5,), (1.0,))[1], sum(map(float, want)))
    curves = [hessian(lambda x: rooted(Python, x, n))(0.5) for n in k.tolist()]  # noqa: B023
    close(hessian(total)(0.5), sum(map(float, curves)))


def test_what_mapped_loops_share():
    def loop(L, x, w, v):  # w is handed on in the carry, v is closed over
        body = lambda c: (c[0] * c[1] + v * jnp.sin(c[0]), c[1])
        return L.while_loop(lambda c: c[0] < 9.0, body, (x, w))

    xs = jnp.array([1.0, 8.5, 3.0, 20.0])
    total = lambda f: lambda w, v: sum(jnp.sum(y * y) for y in f(w, v))
    mapped = total(lambda w, v: vmap(lambda x: loop(lax, x, w, v))(xs))
    want = total(lambda w, v: [jnp.stack(loop(Python, x, w, v)) for x in xs])
    for got, expected in zip(
        grad(mapped, (0, 1))(1.3, 0.2), grad(want, (0, 1))(1.3, 0.2), strict=True
    ):
        close(got, expected)
    curves = hessian(want)(1.3, 0.2)
    close(jit(hessian(mapped))(1.3, 0.2), curves)
    if ALL:  # 5 seconds to compile
        close(jit(grad(grad(mapped)))(1.3, 0.2), curves)
    each = vmap(vmap(lambda x, w, v: loop(lax, x, w, v), (0, None, None)), (None, 0, None))
    twice = lambda w, v: each(xs, jnp.stack([w, w * 1.1]), v)[0].sum()
    loops = lambda w, v: sum(loop(Python, x, u, v)[0] for x in xs for u in (w, w * 1.1))
    for got, expected in zip(
        grad(twice, (0, 1))(1.3, 0.2), grad(loops, (0, 1))(1.3, 0.2), strict=True
    ):
        close(got, expected)


# --------------------------------------------------------------------------------------------
# Other transformations.


def test_finite_differences():
    loop = scalar(steps_by_data, lax)
    step = 1e-6 * np.array([1.0, -2.0, 0.5])
    slope = (loop(X + step) - loop(X - step)) / 2e-6
    close(np.round(grad(loop)(X) @ (step * 1e6), 6), np.round(slope, 6))


def test_linearize_and_transposes_are_adjoint():
    f = lambda x: steps_by_data(lax, x)
    out, linear = weft.linearize(f, X)
    _, pull = weft.vjp(f, X)
    t, ct = jnp.array([1.0, 2.0, -1.0]), jnp.array([0.5, -0.3, 2.0])
    close(jnp.dot(ct, linear(t)), jnp.dot(pull(ct)[0], t))
    (back,) = weft.linear_transpose(linear, t)(ct)
    close(back, pull(ct)[0])
    close(weft.linear_transpose(lambda ct: pull(ct)[0], ct)(t)[0], linear(t))


def test_transpose_of_a_linear_loop():
    halved = lambda x: lax.while_loop(
        lambda c: c[0] < 2.5, lambda c: (c[0] * 1.5, c[1] * 0.5 + x), (1.0, x)
    )[1]
    (back,) = weft.linear_transpose(halved, jnp.ones(3))(X)
    close(back, weft.vjp(halved, jnp.ones(3))[1](X)[0])
    counted = lambda x: lax.fori_loop(0, jnp.int32(4), lambda i, c: c * i + x, x)
    (back,) = weft.linear_transpose(counted, jnp.ones(3))(X)
    close(back, weft.vjp(counted, jnp.ones(3))[1](X)[0])


def test_checkpoint():
    loop, python = scalar(steps_by_data, lax), scalar(steps_by_data, Python)
    close(jit(grad(weft.checkpoint(loop)))(X), grad(python)(X))
    inner = lambda x: weft.checkpoint(lambda y: jnp.sin(y) * x)
    step = lambda x: lambda c: (c[0] + 1, inner(x)(c[1]))
    f = lambda L, x: L.while_loop(lambda c: c[0] < 4, step(x), (0, x))[1].sum()
    close(grad(lambda x: f(lax, x))(X), grad(lambda x: f(Python, x))(X))


def test_a_jitted_body():
    step = jit(lambda c, x: (c[0] + 1, jnp.sin(c[1]) * x))
    f = lambda L, x: L.while_loop(lambda c: c[0] < 4, lambda c: step(c, x), (0, x))[1].sum()
    close(grad(lambda x: f(lax, x))(X), grad(lambda x: f(Python, x))(X))
    close(hessian(lambda x: f(lax, x))(X), hessian(lambda x: f(Python, x))(X))


def test_gradients_inside_a_loop():
    def descend(L, x):
        loss = lambda y: jnp.sum(L.while_loop(lambda c: c.sum() < 3.0, lambda c: c * y + y, y) ** 2)
        return L.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] - 0.01 * grad(loss)(c[1])), (0, x)
        )[1].sum()

    x = jnp.asarray(X)
    close(jit(lambda x: descend(lax, x))(x), descend(Python, x))
    if ALL:  # 6 seconds to compile
        close(jit(grad(lambda x: descend(lax, x)))(x), grad(lambda x: descend(Python, x))(x))


# --------------------------------------------------------------------------------------------
# Bounds on steps.


def test_max_steps_stops_the_loop():
    f = lambda x, n: lax.while_loop(lambda c: c < 100.0, lambda c: c * x, x, max_steps=n)
    assert [float(f(2.0, n)) for n in (0, 1, 3, 6, 50)] == [2.0, 4.0, 16.0, 128.0, 128.0]
    slopes = [float(jit(grad(f), static_argnums=1)(2.0, n)) for n in (0, 1, 3, 6, 50)]
    assert slopes == [1.0, 4.0, 32.0, 7 * 64.0, 7 * 64.0]


def test_steps_around_the_number_of_slots():
    for n in (1, 2, 3, 4, 5, 6, 9, 10, 11, 20, 35, 36):
        close(jit(grad(lambda x: powers(x, n, checkpoints=3)))(1.1), (n + 1) * 1.1**n)  # noqa: B023


# --------------------------------------------------------------------------------------------
# What it costs.


def walked(count, slots):
    """Reverse `count` steps with a Sweep on Python numbers: (advances, pulls in order)."""
    advances, pulls = [], []

    def loop(cond, body, init):
        while bool(cond(*init)):
            init = body(*init)
        return init

    def advance(x):
        advances.append(int(x))
        return [x + np.int32(1)]

    def pull(x, y):
        pulls.append(int(x))
        return [y]

    Sweep(loop, advance, pull, slots)(np.int32(count), [np.int32(0)], [0.0])
    return len(advances), pulls


@pytest.mark.parametrize(
    ("count", "slots"),
    [(0, 2), (1, 1), (2, 1), (7, 1), (8, 7), (9, 7), (36, 7), (37, 7), (40, 3), (60, 4)],
)
def test_the_work_is_the_least_there_is(count, slots):
    advances, pulls = walked(count, slots)
    assert pulls == list(range(count))[::-1]
    if count:  # Griewank and Walther, equation 3: the least number of advances
        t = next(t for t in range(count + 1) if math.comb(slots + t, t) >= count)
        assert advances == t * count - math.comb(slots + t, t - 1) if t else advances == 0


def test_memory_does_not_grow_with_the_steps():
    def peak(f, *args):
        return jit(grad(f)).lower(*args).compile().memory_analysis().temp_size_in_bytes

    x = jnp.ones(1000)
    state = x.nbytes

    def loop(x, n, **how):
        go = lambda c: c[0] < n
        return lax.while_loop(go, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, x), **how)[1].sum()

    few = peak(lambda x, n: loop(x, n, checkpoints=4), x, 10**6)
    many = peak(lambda x, n: loop(x, n, checkpoints=40), x, 10**6)
    assert many - few == pytest.approx(36 * state, rel=0.02)
    assert few < 12 * state
    tape = peak(lambda x: loop(x, 10**6, max_steps=500), x)
    assert tape < 510 * state


def test_what_the_derivative_does_not_need_is_not_stored():
    def loop(x):  # linear: no state is needed
        return lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] * 0.5), (0, x))[1].sum()

    text = jit(grad(loop)).lower(jnp.ones(1000)).as_text()
    assert "x1000xf64" not in text


def test_stacks_are_read_and_written_from_the_front_alone():
    """Steps outside of the stack use the first row for an index that is negative or too small."""
    stack = np.arange(12, dtype=np.float32).reshape(4, 3)
    row = np.full(3, -1, np.float32)
    run = weft.jit(lambda i: (reversal.load(stack, i), reversal.store(stack, row, i)))
    for i, at in ((-2, 0), (-1, 0), (0, 0), (2, 2), (3, 3)):
        want = stack.copy()
        want[at] = row
        got, stored = run(i)
        np.testing.assert_array_equal(got, stack[at])
        np.testing.assert_array_equal(stored, want)
