"""optimistix as its documentation shows it: every solver, adjoint, descent and search."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optax
import optimistix as optx
import pytest
from public_names import find_unused

TOL = dict(rtol=1e-5, atol=1e-5)


def cosine(y, args):
    return jnp.cos(y) * args


def cosine_root(y, args):
    return y - cosine(y, args)


def rosenbrock(y, args):
    a, b = y
    return jnp.array([10 * (b - a**2), args - a])


def rosenbrock_sum(y, args):
    return jnp.sum(rosenbrock(y, args) ** 2)


def bowl(y, args):
    return (y["a"] - args) ** 2 + 2 * jnp.sum((y["b"] - y["a"]) ** 2)


BOWL = {"a": jnp.array(0.5), "b": jnp.array([0.3, -0.2])}
START = jnp.array(0.9)
PLANE = (jnp.array(0.5), jnp.array(0.4))


def check(find, fun, solver, start, record, args=1.0, tolerance=1e-2, options=None, steps=2000):
    """The solution jitted, with its derivative in `args` and mapped over `args`."""
    call = lambda args: find(
        fun, solver, start, args=args, options=options, max_steps=steps, throw=False
    )

    value = lambda a: call(a).value

    @eqx.filter_jit  # once, since most of the time is spent compiling
    def run(a):
        several = jnp.array([args, args + 0.1])
        return call(a), jax.jacrev(value)(a), jax.vmap(value)(several)

    solution, slope, mapped = run(jnp.array(args))
    assert isinstance(solution, optx.Solution)
    assert solution.result == optx.RESULTS.successful
    record(jax.tree.map(lambda x: jnp.round(x / tolerance), (solution.value, slope, mapped)))
    assert int(solution.stats["num_steps"]) > 0


ROOTS = {
    "newton": optx.Newton(**TOL),
    "newton_linear_solver": optx.Newton(**TOL, linear_solver=lx.LU(), norm=optx.two_norm),
    "chord": optx.Chord(**TOL),
    "best_so_far": optx.BestSoFarRootFinder(optx.Newton(**TOL)),
    "levenberg_marquardt": optx.LevenbergMarquardt(**TOL),
    "bfgs": optx.BFGS(rtol=1e-6, atol=1e-6),
}


@pytest.mark.parametrize("name", ROOTS)
def test_root_find(name, record):
    check(optx.root_find, cosine_root, ROOTS[name], START, record)


@pytest.mark.parametrize("flip", [True, False, "detect"])
def test_bisection(flip, record):
    solver = optx.Bisection(**TOL, flip=flip, expand_if_necessary=False)
    sign = -1 if flip is True else 1
    fun = lambda y, args: sign * cosine_root(y, args)
    check(optx.root_find, fun, solver, START, record, options=dict(lower=0.0, upper=2.0))


def test_bisection_that_expands(record):
    solver = optx.Bisection(**TOL, expand_if_necessary=True)
    options = dict(lower=2.0, upper=3.0)
    out = optx.root_find(cosine_root, solver, START, args=1.0, options=options)
    record(jnp.round(out.value, 3))


FIXED = {
    "iteration": optx.FixedPointIteration(**TOL),
    "damped": optx.FixedPointIteration(**TOL, damp=0.3, norm=optx.rms_norm),
    "best_so_far": optx.BestSoFarFixedPoint(optx.FixedPointIteration(**TOL)),
    "newton": optx.Newton(**TOL),
    "gauss_newton": optx.GaussNewton(**TOL),
}


@pytest.mark.parametrize("name", FIXED)
def test_fixed_point(name, record):
    check(optx.fixed_point, cosine, FIXED[name], START, record)


SQUARES = {
    "gauss_newton": optx.GaussNewton(**TOL),
    "gauss_newton_solver": optx.GaussNewton(**TOL, linear_solver=lx.QR()),
    "levenberg_marquardt": optx.LevenbergMarquardt(**TOL),
    "indirect": optx.IndirectLevenbergMarquardt(**TOL),
    "dogleg": optx.Dogleg(**TOL),
    "best_so_far": optx.BestSoFarLeastSquares(optx.LevenbergMarquardt(**TOL)),
    "bfgs": optx.BFGS(rtol=1e-6, atol=1e-6),
}


@pytest.mark.parametrize("name", SQUARES)
def test_least_squares(name, record):
    check(optx.least_squares, rosenbrock, SQUARES[name], PLANE, record)


class Own(optx.AbstractGaussNewton):
    """A solver of one's own: a descent and a search."""

    rtol: float = 1e-5
    atol: float = 1e-5
    norm: object = optx.max_norm
    descent: optx.AbstractDescent = optx.DampedNewtonDescent()
    search: optx.AbstractSearch = optx.ClassicalTrustRegion()
    verbose: object = lambda *args, **kwargs: None


SEARCHES = {
    "classical": (optx.DampedNewtonDescent(), optx.ClassicalTrustRegion()),
    "linear": (optx.DampedNewtonDescent(lx.QR()), optx.LinearTrustRegion(high_cutoff=0.9)),
    "dogleg": (optx.DoglegDescent(trust_region_norm=optx.two_norm), optx.ClassicalTrustRegion()),
    "indirect": (optx.IndirectDampedNewtonDescent(), optx.ClassicalTrustRegion()),
    "newton": (optx.NewtonDescent(), optx.BacktrackingArmijo(decrease_factor=0.6)),
    "newton_rate": (optx.NewtonDescent(), optx.LearningRate(0.7)),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_own_least_squares(name, record):
    descent, search = SEARCHES[name]
    fun = lambda y, args: jnp.array([2 * (y[0] - args), y[1] - y[0], y[1] ** 2 / 9])
    solver = Own(descent=descent, search=search)
    check(optx.least_squares, fun, solver, PLANE, record, steps=200)


METHODS = (optx.polak_ribiere, optx.fletcher_reeves, optx.hestenes_stiefel, optx.dai_yuan)
MINIMISERS = {
    "bfgs": optx.BFGS(**TOL),
    "bfgs_hessian": optx.BFGS(**TOL, use_inverse=False),
    "dfp": optx.DFP(**TOL),
    "lbfgs": optx.LBFGS(**TOL, history_length=4),
    "lbfgs_hessian": optx.LBFGS(**TOL, use_inverse=False),
    "gradient_descent": optx.GradientDescent(0.1, **TOL),
    "nelder_mead": optx.NelderMead(**TOL),
    "optax": optx.OptaxMinimiser(optax.adam(5e-2), **TOL),
    "best_so_far": optx.BestSoFarMinimiser(optx.OptaxMinimiser(optax.sgd(5e-2), **TOL)),
    **{method.__name__: optx.NonlinearCG(**TOL, method=method) for method in METHODS},
}


@pytest.mark.parametrize("name", MINIMISERS)
def test_minimise(name, record):
    tolerance = 0.05 if name in ("optax", "best_so_far", "gradient_descent") else 1e-2
    check(optx.minimise, bowl, MINIMISERS[name], BOWL, record, tolerance=tolerance)


class OwnDescent(optx.AbstractGradientDescent):
    rtol: float = 1e-5
    atol: float = 1e-5
    norm: object = optx.max_norm
    descent: optx.AbstractDescent = optx.SteepestDescent()
    search: optx.AbstractSearch = optx.BacktrackingArmijo()


class OwnBFGS(optx.AbstractBFGS):
    rtol: float = 1e-5
    atol: float = 1e-5
    norm: object = optx.max_norm
    use_inverse: bool = True
    descent: optx.AbstractDescent = optx.NewtonDescent()
    search: optx.AbstractSearch = optx.LearningRate(0.5)
    verbose: object = lambda *args, **kwargs: None


class OwnDFP(optx.AbstractDFP, OwnBFGS):
    """AbstractDFP and AbstractLBFGS are derived from in the same way."""


OWN = {
    "steepest": OwnDescent(),
    "steepest_norm": OwnDescent(descent=optx.SteepestDescent(norm=optx.two_norm)),
    "conjugate": OwnDescent(descent=optx.NonlinearCGDescent(optx.polak_ribiere)),
    "rate": OwnDescent(search=optx.LearningRate(0.1)),
    "bfgs": OwnBFGS(),
}


@pytest.mark.parametrize("name", OWN)
def test_own_minimise(name, record):
    check(optx.minimise, bowl, OWN[name], BOWL, record, steps=400)


def test_golden_search(record):
    solver = optx.GoldenSearch(**TOL)
    out = optx.minimise(
        lambda y, args: (y - args) ** 2, solver, jnp.array(0.5),
        args=1.3, options=dict(lower=0.0, upper=4.0),
    )  # fmt: skip
    record(jnp.round(out.value, 2))


ADJOINTS = {
    "implicit": optx.ImplicitAdjoint(),
    "implicit_solver": optx.ImplicitAdjoint(linear_solver=lx.QR()),
    "checkpoint": optx.RecursiveCheckpointAdjoint(checkpoints=5),
}


@pytest.mark.parametrize("name", ADJOINTS)
def test_adjoint(name, record):
    assert isinstance(ADJOINTS[name], optx.AbstractAdjoint)

    def root(a):
        solver = optx.Newton(rtol=1e-7, atol=1e-7, cauchy_termination=False)
        return optx.root_find(
            cosine_root, solver, START, args=a, adjoint=ADJOINTS[name], max_steps=12, throw=False
        ).value

    record(jax.jit(jax.grad(root))(1.0))
    if name != "checkpoint":
        record(jax.jvp(root, (1.0,), (0.5,)))
        record(jax.vmap(jax.grad(root))(jnp.array([1.0, 1.2])))


def test_aux_and_failure(record):
    fun = lambda y, args: (cosine_root(y, args), {"seen": y * 2})
    out = optx.root_find(fun, optx.Newton(**TOL), START, args=1.0, has_aux=True)
    record(out.aux)
    out = optx.root_find(cosine_root, optx.Newton(**TOL), START, 1.0, max_steps=1, throw=False)
    assert out.result == optx.RESULTS.nonlinear_max_steps_reached
    assert "steps" in optx.RESULTS[out.result]
    with pytest.raises(Exception, match="steps"):
        optx.root_find(cosine_root, optx.Newton(**TOL), START, args=1.0, max_steps=1)


def test_verbose(capfd):
    for verbose in (True, lambda **kwargs: print("own report")):
        optx.least_squares(rosenbrock, optx.LevenbergMarquardt(**TOL, verbose=verbose), PLANE, 1.0)
        jax.effects_barrier()
    assert "Loss" in capfd.readouterr().out


def test_steps_by_hand(record):
    """Solvers step one at a time, as its page on interactive solves shows."""
    solver = optx.BFGS(**TOL)
    fun = lambda y, args: (bowl(y, args), None)
    kwargs = dict(args=jnp.array(1.0), options={}, tags=frozenset())
    shape = jax.eval_shape(lambda: fun(BOWL, 1.0)[0])
    fun = eqx.filter_closure_convert(fun, BOWL, kwargs["args"])
    state = solver.init(fun, BOWL, f_struct=shape, aux_struct=None, **kwargs)
    step = eqx.filter_jit(eqx.Partial(solver.step, fn=fun, **kwargs))
    finish = eqx.filter_jit(eqx.Partial(solver.terminate, fn=fun, **kwargs))
    y = BOWL
    for _ in range(3):
        y, state, _ = step(y=y, state=state)
        record(y)
    done, result = finish(y=y, state=state)
    y, _, stats = solver.postprocess(fun, y, None, state=state, result=result, **kwargs)
    record([done, y])


def test_function_info(record):
    info = optx.FunctionInfo
    grad, residual = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    hessian = lx.MatrixLinearOperator(jnp.eye(2) * 3, lx.positive_semidefinite_tag)
    record(info.Eval(jnp.array(2.0)).as_min())
    record(info.EvalGrad(jnp.array(2.0), grad).compute_grad_dot(residual))
    record(info.EvalGradHessian(jnp.array(2.0), grad, hessian).as_min())
    record(info.EvalGradHessianInv(jnp.array(2.0), grad, hessian).as_min())
    record(info.Residual(residual).as_min())
    record(info.ResidualJac(residual, hessian).compute_grad())


def test_types():
    kinds = {
        optx.AbstractRootFinder: optx.Newton,
        optx.AbstractFixedPointSolver: optx.FixedPointIteration,
        optx.AbstractMinimiser: optx.BFGS,
        optx.AbstractLeastSquaresSolver: optx.GaussNewton,
        optx.AbstractQuasiNewton: optx.AbstractLBFGS,
        optx.AbstractIterativeSolver: optx.Newton,
    }
    assert all(issubclass(kind, base) for base, kind in kinds.items())


def test_compat_and_internal(record):
    out = optx.compat.minimize(
        lambda y: rosenbrock_sum(y, 1.0), jnp.array([0.5, 0.4]), method="bfgs", tol=1e-6
    )
    assert isinstance(out, optx.compat.OptimizeResults)
    record(jnp.round(out.x, 2))

    def root(inputs):
        return jnp.sqrt(inputs), None

    wrapped = lambda x: optx.internal.implicit_jvp(
        root, lambda y, _, inputs: y**2 - inputs, x, frozenset(), lx.AutoLinearSolver(None)
    )[0]
    record(jax.grad(wrapped)(2.0))


def test_every_public_name_is_used():
    assert not find_unused(optx, __file__)
