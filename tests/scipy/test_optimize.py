import numpy as np
import pytest
import scipy.optimize

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import grad, hessian, jacfwd, jit, vmap
from weft.errors import DtypeError, ShapeError
from weft.scipy import optimize
from weft.scipy.optimize import minimize

METHODS = ["BFGS", "L-BFGS"]
LONG_NAME = "l-bfgs-experimental-do-not-rely-on-this"


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def eggholder(x):
    left = (x[1] + 47) * jnp.sin(jnp.sqrt(jnp.abs(x[0] / 2 + x[1] + 47)))
    return -left - x[0] * jnp.sin(jnp.sqrt(jnp.abs(x[0] - (x[1] + 47))))


def badly_scaled(x):
    return jnp.sum((x * jnp.array([1.0, 10, 1000])) ** 2)


# The function, where to start, the minimum (SciPy's, in float64), and how close float32 gets.
PROBLEMS = [
    (rosenbrock, [0.0, 0.0], [1, 1], 1e-3),
    (rosenbrock, [-1.2, 1.0], [1, 1], 1e-3),
    (rosenbrock, [0.5] * 10, [1] * 10, 1e-3),
    (himmelblau, [1.0, 1.0], [3, 2], 1e-5),
    (himmelblau, [-3.0, -4.0], [-3.77931025, -3.28318599], 1e-5),
    (eggholder, [100.0, 100.0], [97.27335, 111.09957], 1e-5),
    (badly_scaled, [1.0, 1.0, 1.0], [0, 0, 0], 1e-5),
]


def test_doctests():
    check_examples(optimize)


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fun, x0, want, tol", PROBLEMS)
def test_minima(fun, x0, want, tol, method):
    got = jit(lambda x: minimize(fun, x, method=method))(np.array(x0, np.float32))
    np.testing.assert_allclose(got.x, want, rtol=tol, atol=tol)
    assert int(got.status) in (0, 2) and bool(got.success) == (int(got.status) == 0)
    np.testing.assert_allclose(got.fun, fun(got.x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got.jac, grad(fun)(got.x), atol=1e-3)
    assert np.max(np.abs(got.jac)) < (1e-5 if got.success else 1e-2)


@pytest.mark.parametrize("method, theirs", [("BFGS", "BFGS"), ("L-BFGS", "L-BFGS-B")])
def test_steps_are_as_few_as_scipys(method, theirs):
    with weft.enable_x64(True):
        slope = grad(rosenbrock)
        fun = lambda x: (float(rosenbrock(jnp.array(x))), np.asarray(slope(jnp.array(x))))
        want = scipy.optimize.minimize(fun, np.zeros(2), jac=True, method=theirs)
        got = minimize(rosenbrock, jnp.zeros(2), method=method)
    assert got.success and got.x.dtype == np.float64
    assert int(got.nit) < 1.3 * want.nit and int(got.nfev) < 1.3 * want.nfev
    assert int(got.nfev) == int(got.njev)


# The steps and evaluations of PROBLEMS in float64, by method. Other counts may be right as well,
# but should change only on purpose.
COUNTS = {
    "BFGS": [(21, 28), (34, 43), (43, 56), (8, 12), (6, 11), (10, 12), (6, 14)],
    LONG_NAME: [(19, 22), (44, 50), (52, 59), (7, 10), (6, 7), (8, 10), (27, 48)],
}


@pytest.mark.parametrize("method", COUNTS)
def test_steps_and_evaluations(method):
    found = []
    with weft.enable_x64(True):
        for fun in dict.fromkeys(problem[0] for problem in PROBLEMS):
            solve = jit(lambda x, fun=fun: minimize(fun, x, method=method))
            for x0 in [np.array(x0) for f, x0, *_ in PROBLEMS if f is fun]:
                got = solve(x0)
                assert got.success and np.max(np.abs(got.jac)) < 1e-5
                found.append((int(got.nit), int(got.nfev)))
    assert found == COUNTS[method]


def test_the_inverse_of_the_hessian():
    x = minimize(himmelblau, jnp.ones(2), method="BFGS")
    np.testing.assert_allclose(x.hess_inv, np.linalg.inv(hessian(himmelblau)(x.x)), rtol=0.2)
    assert minimize(himmelblau, jnp.ones(2), method=LONG_NAME).hess_inv is None


def test_options():
    run = lambda method="BFGS", **o: minimize(rosenbrock, jnp.zeros(2), method=method, options=o)
    one = run(maxiter=1)
    assert (int(one.nit), int(one.status), bool(one.success)) == (1, 1, False)
    assert int(run(gtol=1e-1).nit) < int(run().nit)
    assert int(minimize(rosenbrock, jnp.zeros(2), method="bfgs", tol=0.1).nit) == int(
        run(gtol=0.1).nit
    )
    for norm in (1, 2, 3, -np.inf):
        g = np.abs(run(norm=norm, gtol=0.1).jac)
        assert np.linalg.norm(g, norm) < 0.1
    assert run(line_search_maxiter=3).nfev >= run().nit
    assert int(run("L-BFGS", maxfun=5).nfev) <= 25 and int(run("L-BFGS", maxgrad=5).nit) < 5
    assert run("L-BFGS", ftol=0.1).success and int(run("L-BFGS", ftol=0.1).nit) < 15
    assert run("L-BFGS", maxcor=2).success and run("L-BFGS", maxls=5, maxiter=None).success


@pytest.mark.parametrize("x0", [[0.0, 1.0], [0.0, 0.0]])
def test_flat_directions_are_left_where_scipy_leaves_them(x0):
    def valley(p):  # flat far out along p[1]
        return 1 / (1 + p[1] ** 2) + 50 * (p[0] - 1) ** 2

    with weft.enable_x64(True):
        slope = grad(valley)
        fun = lambda x: (float(valley(x)), np.asarray(slope(jnp.array(x))))
        for options in ({}, {"gtol": 1e-3}, {"gtol": 1e-3, "norm": 2}):
            want = scipy.optimize.minimize(fun, x0, jac=True, method="BFGS", options=options)
            got = minimize(valley, jnp.array(x0), method="BFGS", options=options)
            assert (int(got.nit), int(got.status)) == (want.nit, want.status)
            np.testing.assert_allclose(got.x, want.x, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_gradient_of_just_gtol_is_small_enough(method):
    got = minimize(lambda x: jnp.sum(x * x), jnp.zeros(2), method=method, tol=0.0)
    assert got.success and int(got.nit) == 0


@pytest.mark.parametrize("method", METHODS)
def test_functions_without_a_minimum(method):
    log = minimize(lambda x: jnp.sum(jnp.log(x)), jnp.ones(2), method=method)
    assert not log.success and np.all(np.isfinite(log.x))
    line = minimize(jnp.sum, jnp.ones(2), method=method, options={"maxiter": 5})
    assert int(line.status) == 1 and line.fun < -1000
    nan = minimize(lambda x: jnp.sum(x) * jnp.nan, jnp.ones(2), method=method)
    assert int(nan.status) == 3
    flat = minimize(lambda x: 0 * jnp.sum(x), jnp.ones(2), method=method)
    assert flat.success and int(flat.nit) == 0
    assert minimize(jnp.sum, jnp.zeros(0), method=method).x.shape == (0,)


@pytest.mark.parametrize("method", METHODS)
def test_batches(method):
    starts = np.array([[0.0, 0], [3, -2], [-1.2, 1]], np.float32)
    got = vmap(lambda x: minimize(rosenbrock, x, method=method))(starts)
    np.testing.assert_allclose(got.x, np.ones((3, 2)), rtol=1e-2)
    assert got.nit.shape == (3,) and len(set(np.asarray(got.nit).tolist())) > 1


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_are_those_of_the_minimum(method):
    def solution(a):  # x0 = a[0], x1 = a[0]**2 + a[1]
        fun = lambda x, a: (x[0] - a[0]) ** 2 + 2 * (x[1] - x[0] ** 2 - a[1]) ** 2
        return minimize(fun, jnp.zeros(2), (a,), method=method)

    a = np.array([0.5, 0.2], np.float32)
    want = [[1, 0], [1, 1]]
    for jacobian in (jacfwd, weft.jacrev):
        got = jacobian(lambda a: solution(a).x)(a)
        np.testing.assert_allclose(got, want, atol=1e-4)
        np.testing.assert_allclose(jit(jacobian(lambda a: solution(a).x))(a), got, atol=1e-5)
    least = lambda b: minimize(lambda x: jnp.sum((x - 1) ** 2) + b**2, jnp.zeros(2), method=method)
    np.testing.assert_allclose(grad(lambda b: least(b).fun)(3.0), 6.0, rtol=1e-5)


def test_integers_and_narrow_floats():
    assert minimize(lambda x: jnp.sum(x**2), jnp.array([1, 2]), method="BFGS").x.dtype == np.float32
    x = minimize(lambda x: jnp.sum((x - 1) ** 2), jnp.zeros(2, jnp.bfloat16), method="BFGS").x
    assert x.dtype == jnp.bfloat16
    np.testing.assert_allclose(x.astype(np.float32), 1, rtol=1e-2)


X = np.ones(2, np.float32)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: minimize(X, X, method="BFGS"), TypeError, "minimize: needs a function"),
        (lambda: minimize(jnp.sum, X, 2.0, method="BFGS"), TypeError, r"must be a tuple; got 2.0"),
        (lambda: minimize(jnp.sum, X[None], method="BFGS"), ShapeError, "x0 must be a vector"),
        (lambda: minimize(jnp.sum, [1.0], method="BFGS"), DtypeError, "minimize: .* got a list"),
        (lambda: minimize(jnp.sum, X * 1j, method="BFGS"), DtypeError, "x0 must be real; got c64"),
        (lambda: minimize(jnp.sum, X, method="CG"), ValueError, "must be 'BFGS' or 'L-BFGS'; got"),
        (lambda: minimize(jnp.sum, X, method="BFGS", options={"disp": 1}), TypeError,
         "options of BFGS must be among maxiter, gtol, .*; got 'disp'"),
        (lambda: minimize(lambda x: x, X, method="BFGS"), TypeError, "scalar"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
