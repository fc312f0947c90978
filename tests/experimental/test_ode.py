"""odeint: against SciPy and closed forms; its derivatives, against closed forms and differences."""

import numpy as np
import pytest
import scipy.integrate

import weft
import weft.numpy as jnp
from weft import grad, hessian, jacfwd, jacrev, jit, jvp, vmap
from weft.errors import DtypeError, PytreeError, ShapeError
from weft.experimental import ode
from weft.experimental.ode import odeint
from weft.flatten_util import ravel_pytree

TIMES = np.linspace(0.0, 4.0, 9)
PARAMS = np.array([1.5, 1.0, 3.0, 1.0])
START = np.array([2.0, 1.0])


@pytest.fixture(autouse=True)
def doubles():
    """Doubles, so that an error is a mistake and not rounding."""
    with weft.enable_x64():
        yield


def decay(y, t, rate):
    return -rate * y


def prey(y, t, p):  # Lotka and Volterra
    a, b, c, d = p
    return jnp.stack([a * y[0] - b * y[0] * y[1], -c * y[1] + d * y[0] * y[1]])


def driven(y, t, w):  # a pendulum whose suspension is swung
    angle, speed = y["angle"], y["speed"]
    return {"angle": speed, "speed": -w * jnp.sin(angle) + 0.3 * jnp.cos(2 * t)}


def scipy_prey(start, times, p):
    a, b, c, d = p
    return scipy.integrate.solve_ivp(
        lambda t, y: [a * y[0] - b * y[0] * y[1], -c * y[1] + d * y[0] * y[1]],
        (times[0], times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-12,
    ).y.T  # fmt: skip


def differences(f, x, eps=1e-5):
    """The Jacobian of a NumPy function by central differences."""
    x = np.asarray(x, float)
    steps = eps * np.eye(x.size).reshape(x.size, *x.shape)
    return np.stack([(f(x + h) - f(x - h)) / (2 * eps) for h in steps], -1)


# --- values ---------------------------------------------------------------------------------------


def test_values_are_scipys():
    ours = odeint(prey, START, TIMES, PARAMS)
    assert ours.dtype == np.float64 and ours.shape == (9, 2)
    np.testing.assert_allclose(ours, scipy_prey(START, TIMES, PARAMS), rtol=1e-6)
    np.testing.assert_allclose(jit(odeint, static_argnums=0)(prey, START, TIMES, PARAMS), ours)


def test_the_tolerance_is_kept():
    exact = np.exp(-0.7 * TIMES)
    errors = []
    for tol in (1e-3, 1e-6, 1e-9):
        y = odeint(decay, 1.0, TIMES, 0.7, rtol=tol, atol=tol)
        errors.append(np.abs(y - exact).max())
        assert errors[-1] < 5 * tol
    assert errors[0] > errors[1] > errors[2]


def test_a_state_may_be_a_pytree():
    ours = odeint(driven, {"angle": 0.5, "speed": np.zeros(())}, TIMES, 1.3)
    theirs = scipy.integrate.solve_ivp(
        lambda t, y: [y[1], -1.3 * np.sin(y[0]) + 0.3 * np.cos(2 * t)],
        (0, 4), [0.5, 0.0], "DOP853", TIMES, rtol=1e-12, atol=1e-12,
    ).y  # fmt: skip
    np.testing.assert_allclose(ours["angle"], theirs[0], atol=1e-6)
    np.testing.assert_allclose(ours["speed"], theirs[1], atol=1e-6)


def test_leaves_keep_their_shapes_and_dtypes():
    y0 = (np.ones((2, 3), np.float32), [np.array([1.0 + 2j])])
    a, (b,) = odeint(lambda y, t: (-y[0], [1j * y[1][0]]), y0, np.array([0.0, 1.0]))
    assert (a.shape, a.dtype, b.shape, b.dtype) == ((2, 2, 3), np.float32, (2, 1), np.complex128)
    np.testing.assert_allclose(a[1], np.full((2, 3), np.exp(-1.0)), rtol=1e-6)
    np.testing.assert_allclose(b[1], [(1 + 2j) * np.exp(1j)], rtol=1e-7)


def test_time_may_fall_stand_still_and_be_alone():
    falling = odeint(decay, 1.0, TIMES[::-1], 0.7)
    np.testing.assert_allclose(falling, np.exp(0.7 * TIMES), rtol=1e-7)
    still = odeint(decay, 1.0, np.array([0.0, 1.0, 1.0, 2.0]), 0.7)
    np.testing.assert_allclose(still, np.exp([0, -0.7, -0.7, -1.4]), rtol=1e-7)
    assert odeint(decay, 3.0, np.array([1.0]), 0.7).tolist() == [3.0]


def test_the_last_time_is_not_overstepped():
    # a slope that is NaN after the end: steps beyond it are refused, and a few must do
    ramp = lambda y, t: jnp.where(t <= 1.0, 2.0 + 0.0 * y, np.nan)
    np.testing.assert_allclose(odeint(ramp, 0.0, np.array([0.0, 1.0]), mxstep=15), [0.0, 2.0])


def test_where_there_is_no_solution_there_is_nan():
    y = odeint(lambda y, t: y**2, 1.0, np.array([0.0, 0.5, 2.0]))
    np.testing.assert_allclose(y, [1.0, 2.0, np.nan], rtol=1e-6)
    assert np.isnan(odeint(lambda y, t: y / 0.0, 1.0, np.array([0.0, 1.0]))[1])


def test_mxstep_is_the_most_steps_between_times():
    few = odeint(decay, 1.0, np.array([0.0, 1e-3, 5.0]), 0.7, mxstep=4)
    np.testing.assert_allclose(few, [1.0, np.exp(-0.7e-3), np.nan], rtol=1e-7)
    enough = odeint(decay, 1.0, np.array([0.0, 1e-3, 5.0]), 0.7, mxstep=400)
    np.testing.assert_allclose(enough[2], np.exp(-3.5), rtol=1e-6)


def test_hmax_is_the_longest_step():
    # a bump that long steps pass over
    bump = lambda y, t: jnp.exp(-(((t - 5.0) / 0.05) ** 2)) + 0.0 * y
    area = 0.05 * np.sqrt(np.pi)
    times = np.array([0.0, 10.0])
    assert odeint(bump, 0.0, times)[1] < 0.1 * area
    np.testing.assert_allclose(odeint(bump, 0.0, times, hmax=0.1)[1], area, rtol=1e-6)


def test_single_precision():
    with weft.enable_x64(False):
        y = odeint(decay, 1.0, TIMES, 0.7)
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, np.exp(-0.7 * TIMES), rtol=2e-6)


# --- derivatives ----------------------------------------------------------------------------------


def test_jacobians_are_those_of_differences():
    by_p = differences(lambda p: scipy_prey(START, TIMES, p), PARAMS)
    by_start = differences(lambda y: scipy_prey(y, TIMES, PARAMS), START)
    for jac in (jacfwd, jacrev):
        got = jit(jac(lambda y, p: odeint(prey, y, TIMES, p), (0, 1)))(START, PARAMS)
        np.testing.assert_allclose(got[0], by_start, atol=3e-5)
        np.testing.assert_allclose(got[1], by_p, atol=3e-5)


def test_a_derivative_by_the_times():
    # y = exp(-(t^2 - s^2) / 2) y0 of y' = -t y
    end = lambda s, t: odeint(lambda y, t: -t * y, 2.0, jnp.stack([s, (s + t) / 2, t]))
    s, t = 0.5, 1.5
    m = (s + t) / 2
    by_s = [0.0, 2 * np.exp((s * s - m * m) / 2) * (s - m / 2), 2 * np.exp((s * s - t * t) / 2) * s]
    by_t = [0.0, -np.exp((s * s - m * m) / 2) * m, -2 * np.exp((s * s - t * t) / 2) * t]
    for jac in (jacfwd, jacrev):
        got = jac(end, (0, 1))(s, t)
        np.testing.assert_allclose(got[0], by_s, atol=1e-6)
        np.testing.assert_allclose(got[1], by_t, atol=1e-6)


def test_a_derivative_by_what_is_closed_over():
    times = np.array([0.0, 2.0])
    f = lambda rate, scale: odeint(lambda y, t: -rate * y, scale, times)[1]
    np.testing.assert_allclose(grad(f, (0, 1))(0.5, 3.0), [-6 * np.exp(-1), np.exp(-1)], rtol=1e-6)
    np.testing.assert_allclose(jvp(f, (0.5, 3.0), (1.0, 0.0))[1], -6 * np.exp(-1), rtol=1e-6)
    np.testing.assert_allclose(jit(grad(f))(0.5, 3.0), -6 * np.exp(-1), rtol=1e-6)


def test_second_derivatives_in_every_order_of_modes():
    f = lambda rate: odeint(decay, 1.0, np.array([0.0, 2.0]), rate)[1]
    for second in (grad(grad(f)), jacfwd(grad(f)), grad(jacfwd(f)), jacfwd(jacfwd(f))):
        np.testing.assert_allclose(jit(second)(0.5), 4 * np.exp(-1), rtol=1e-5)
    both = hessian(lambda x: odeint(decay, x[0], np.array([0.0, 2.0]), x[1])[1])
    e = np.exp(-1.0)
    np.testing.assert_allclose(
        both(np.array([3.0, 0.5])), [[0, -2 * e], [-2 * e, 12 * e]], atol=1e-5
    )


def test_derivatives_of_complex_states():
    turn = lambda w: odeint(lambda y, t: 1j * w * y, 1.0 + 0j, np.array([0.0, 1.0]))[1].real
    np.testing.assert_allclose(grad(turn)(2.0), -np.sin(2.0), rtol=1e-6)
    np.testing.assert_allclose(jvp(turn, (2.0,), (1.0,))[1], -np.sin(2.0), rtol=1e-6)
    grown = lambda z: odeint(lambda y, t: z * y, 1.0 + 0j, np.array([0.0, 1.0]))[1]
    got = grad(grown, holomorphic=True)(0.5 + 1j)
    np.testing.assert_allclose(got, np.exp(0.5 + 1j), rtol=1e-6)


def test_integers_and_unused_arguments_among_args():
    f = lambda y, t, n, unused, p: -p["rate"][n] * y
    rates = np.array([1.0, 0.5, 2.0])
    g = lambda rates: odeint(f, 1.0, np.array([0.0, 2.0]), 1, np.ones(3), {"rate": rates})[1]
    np.testing.assert_allclose(grad(g)(rates), [0.0, -2 * np.exp(-1), 0.0], atol=1e-7)


def test_under_vmap():
    rates, starts = np.array([0.3, 0.5, 3.0]), np.array([1.0, 2.0, 3.0])
    solve = lambda y, r: odeint(decay, y, TIMES, r)
    exact = starts[:, None] * np.exp(-rates[:, None] * TIMES)
    np.testing.assert_allclose(vmap(solve)(starts, rates), exact, atol=1e-7)
    np.testing.assert_allclose(
        vmap(solve, (None, 0))(1.0, rates), exact / starts[:, None], atol=1e-7
    )
    slopes = vmap(grad(lambda y, r: solve(y, r)[-1], 1))(starts, rates)
    np.testing.assert_allclose(slopes, -TIMES[-1] * exact[:, -1], atol=1e-6)
    total = grad(lambda r: vmap(solve, (0, None))(starts, r)[:, -1].sum())(0.5)
    np.testing.assert_allclose(total, -4 * 6 * np.exp(-2), rtol=1e-6)


def test_a_function_is_traced_once():
    traced = []

    def f(y, t, rate):
        traced.append(1)
        return -rate * y

    for rate in (0.5, 0.6, 0.7):
        odeint(f, 1.0, TIMES, rate)
        grad(lambda r: odeint(f, 1.0, TIMES, r)[1])(rate)
    assert len(traced) == 1


# --- mistakes -------------------------------------------------------------------------------------

BAD = [
    ((decay, 1.0, 1.0, 0.5), {}, ShapeError, "odeint: t must be a vector of times"),
    ((decay, 1.0, np.ones((2, 2)), 0.5), {}, ShapeError, "odeint: t must be a vector of times"),
    ((decay, 1.0, np.zeros(0), 0.5), {}, ShapeError, "odeint: t must be a vector of times"),
    ((decay, 1.0, np.arange(3), 0.5), {}, DtypeError, r"odeint: t must be of floats; got i64\[3\]"),
    ((decay, 1.0, np.array([0.0, 2.0, 1.0]), 0.5), {}, ValueError, "odeint: t must rise or fall"),
    ((decay, 1, TIMES, 0.5), {}, DtypeError, r"y0 must be floating-point or complex; got i64\[\]"),
    ((decay, {"a": "b"}, TIMES, 0.5), {}, DtypeError, r"got 'b' at y0\['a'\]"),
    ((decay, (), TIMES, 0.5), {}, PytreeError, "odeint: y0 must hold an array or a number"),
    ((decay, 1.0, TIMES, "x"), {}, TypeError, r"odeint: args must be .*; got 'x' at args\[0\]"),
    ((3, 1.0, TIMES, 0.5), {}, TypeError, "odeint: needs a function"),
    ((decay, 1.0, TIMES, np.ones(2)), {}, ShapeError, r"decay must return .*; got f64\[2\]"),
    ((lambda y, t: (y, y), 1.0, TIMES), {}, PytreeError, "must return what is like y0"),
    ((decay, 1.0, TIMES, 1j), {}, ShapeError, r"got c128\[\] where y0 has f64\[\]"),
    ((decay, 1.0, TIMES, 0.5), {"mxstep": 0}, ValueError, "odeint: mxstep must be positive; got 0"),
    ((decay, 1.0, TIMES, 0.5), {"rtol": "a"}, TypeError, "odeint: rtol must be a number known now"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "options", "error", "text"), BAD)
def test_mistakes(args, options, error, text):
    with pytest.raises(error, match=text):
        odeint(*args, **options)


def test_the_polynomial_of_a_step():
    got = ode.fit_4th_order_polynomial(*np.float32([1, 2, 1.6, 0.3, 0.4, 0.5]))
    p = np.polynomial.Polynomial(np.array(got)[::-1])
    np.testing.assert_allclose([p(0), p(1), p(0.5)], [1, 2, 1.6], rtol=1e-5)
    np.testing.assert_allclose([p.deriv()(0), p.deriv()(1)], [0.15, 0.2], rtol=1e-4)
    y0, dt = np.array([1.0], np.float32), np.float32(0.5)
    found = ode.interp_fit_dopri(y0, y0 + 0.5, np.ones((7, 1), np.float32), dt)  # y' = 1
    np.testing.assert_allclose(found, [[0], [0], [0], [0.5], [1]], atol=1e-5)
    assert (ode.abs2(3 + 4j), ode.abs2(3)) == (25, 9)
    flat, unravel = ravel_pytree({"a": np.ones(2), "b": 2.0})
    f = ode.ravel_first_arg(lambda y, t: {"b": y["b"] * t, "a": y["a"]}, unravel)
    np.testing.assert_array_equal(f(flat, 3.0), [1, 1, 6])
