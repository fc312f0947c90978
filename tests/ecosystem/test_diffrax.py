"""diffrax as its documentation shows it: every solver, term, path, interpolation and adjoint."""

import warnings

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import optimistix as optx
import pytest
from public_names import find_unused

KEY = jax.random.key(0)
TIMES = jnp.linspace(0.0, 1.0, 5)
START = jnp.array([1.0, 0.5])


def field(t, y, args):
    return jnp.array([y[1], -args * y[0]]) - 0.1 * y * t


def growth(t, y, args):
    return args * y


def solve(solver, args=1.3, terms=None, y0=START, t1=1.0, dt0=0.1, **kwargs):
    kwargs.setdefault("saveat", dfx.SaveAt(ts=TIMES))
    terms = dfx.ODETerm(field) if terms is None else terms
    return dfx.diffeqsolve(terms, solver, 0.0, t1, dt0, y0, args, **kwargs)


def check(record, *args, differentiate=True, **kwargs):
    """The solution at several times and its derivative in the parameter, compiled as one."""

    @eqx.filter_jit
    def run(a):
        call = lambda a: solve(*args, args=a, **kwargs)
        total = lambda a: sum(jnp.sum(y) for y in jax.tree.leaves(call(a).ys))
        return call(a), jax.grad(total)(a) if differentiate else 0.0

    solution, slope = run(jnp.array(1.3))
    assert isinstance(solution, dfx.Solution) and solution.result == dfx.RESULTS.successful
    record([solution.ts, solution.ys, slope])
    return solution


EXPLICIT = (
    *(dfx.Euler, dfx.Heun, dfx.Midpoint, dfx.Ralston, dfx.Bosh3, dfx.Tsit5, dfx.Dopri5),
    *(dfx.Dopri8, dfx.ReversibleHeun, dfx.LeapfrogMidpoint),
)
IMPLICIT = (dfx.ImplicitEuler, dfx.Kvaerno3, dfx.Kvaerno4, dfx.Kvaerno5)
SPLIT = (dfx.KenCarp3, dfx.KenCarp4, dfx.KenCarp5, dfx.Sil3)
BASES = (
    *(dfx.AbstractSolver, dfx.AbstractAdaptiveSolver, dfx.AbstractImplicitSolver),
    *(dfx.AbstractRungeKutta, dfx.AbstractERK, dfx.AbstractDIRK, dfx.AbstractSDIRK),
    *(dfx.AbstractESDIRK, dfx.AbstractItoSolver, dfx.AbstractStratonovichSolver, dfx.AbstractSRK),
    *(dfx.AbstractFosterLangevinSRK, dfx.AbstractWrappedSolver),
)


def name_of(solver):
    return solver.__name__


@pytest.mark.parametrize("solver", EXPLICIT, ids=name_of)
def test_explicit(solver, record):
    check(record, solver())


@pytest.mark.parametrize("solver", IMPLICIT, ids=name_of)
def test_implicit(solver, record):
    finder = dfx.with_stepsize_controller_tols(optx.Newton)()
    controller = dfx.PIDController(rtol=1e-3, atol=1e-5)
    steps = {} if solver is dfx.ImplicitEuler else dict(stepsize_controller=controller)
    if solver is dfx.ImplicitEuler:
        finder = dfx.VeryChord(rtol=1e-4, atol=1e-6)
    check(record, solver(root_finder=finder), **steps)


@pytest.mark.parametrize("solver", SPLIT, ids=name_of)
def test_implicit_and_explicit_parts(solver, record):
    terms = dfx.MultiTerm(dfx.ODETerm(field), dfx.ODETerm(lambda t, y, a: -3 * y))
    controller = dfx.PIDController(rtol=1e-3, atol=1e-5)
    check(record, solver(), terms=terms, stepsize_controller=controller)


def test_symplectic(record):
    terms = (dfx.ODETerm(lambda t, v, a: v), dfx.ODETerm(lambda t, x, a: -a * x))
    check(record, dfx.SemiImplicitEuler(), terms=terms, y0=(START, START))


def test_half_solver(record):
    controller = dfx.PIDController(rtol=1e-3, atol=1e-5)
    check(record, dfx.HalfSolver(dfx.Euler()), stepsize_controller=controller)


def test_properties_of_solvers():
    for solver in (*EXPLICIT, *IMPLICIT, *SPLIT, *STOCHASTIC, *LANGEVIN):
        assert any(issubclass(solver, base) for base in BASES)
        made = solver()
        assert made.term_structure is not None and made.interpolation_cls is not None
        if issubclass(solver, dfx.AbstractERK | dfx.AbstractDIRK):
            tableau = made.tableau
            assert isinstance(tableau, dfx.ButcherTableau | dfx.MultiButcherTableau)
    assert len(dfx.CalculateJacobian.__members__) > 1
    assert issubclass(dfx.SlowRK, dfx.AbstractSRK)
    assert isinstance(dfx.SlowRK.tableau, dfx.StochasticButcherTableau)


CONTROLLERS = {
    "constant": dfx.ConstantStepSize(),
    "integral": dfx.PIDController(rtol=1e-4, atol=1e-6),
    "pid": dfx.PIDController(
        rtol=1e-4, atol=1e-6, pcoeff=0.3, icoeff=0.3, dcoeff=0.05, dtmin=1e-3, dtmax=0.3),
    "clip": dfx.ClipStepSizeController(
        dfx.PIDController(rtol=1e-4, atol=1e-6), step_ts=jnp.array([0.3]), jump_ts=[0.6],
        store_rejected_steps=10),
    "step_to": dfx.StepTo(ts=jnp.array([0.0, 0.2, 0.5, 1.0])),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTROLLERS)
def test_controllers(name, record):
    controller = CONTROLLERS[name]
    assert isinstance(controller, dfx.AbstractStepSizeController)
    adaptive = isinstance(controller, dfx.AbstractAdaptiveStepSizeController)
    assert adaptive == (name in ("integral", "pid", "clip"))
    dt0 = None if name in ("step_to", "integral") else 0.1
    solution = check(record, dfx.Tsit5(), stepsize_controller=controller, dt0=dt0)
    record(solution.stats["num_steps"])


SAVES = {
    "t1": dfx.SaveAt(t1=True),
    "t0_t1": dfx.SaveAt(t0=True, t1=True),
    "steps": dfx.SaveAt(steps=True),
    "every_third": dfx.SaveAt(steps=3),
    "fn": dfx.SaveAt(ts=TIMES, fn=lambda t, y, args: {"energy": jnp.sum(y**2), "t": t}),
    "subs": dfx.SaveAt(subs={"a": dfx.SubSaveAt(t1=True), "b": dfx.SubSaveAt(ts=TIMES[1:3])}),
}


@pytest.mark.parametrize("name", SAVES)
def test_save(name, record):
    check(record, dfx.Tsit5(), saveat=SAVES[name], differentiate=False, max_steps=32)


def test_dense(record):
    solution = solve(dfx.Tsit5(), saveat=dfx.SaveAt(dense=True))
    assert isinstance(solution.interpolation, dfx.DenseInterpolation)
    record(jax.vmap(solution.evaluate)(TIMES))
    record(solution.evaluate(0.2, 0.7))
    record(solution.derivative(0.4))


def test_restart(record):
    """A solve goes on from the states of another."""
    save = dfx.SaveAt(t1=True, solver_state=True, controller_state=True, made_jump=True)
    controller = dfx.PIDController(rtol=1e-4, atol=1e-6)
    first = solve(dfx.Dopri5(), saveat=save, stepsize_controller=controller)
    second = dfx.diffeqsolve(
        dfx.ODETerm(field), dfx.Dopri5(), 1.0, 2.0, 0.1, first.ys[-1], 1.3,
        solver_state=first.solver_state, controller_state=first.controller_state,
        made_jump=first.made_jump, stepsize_controller=controller,
    )  # fmt: skip
    record(second.ys)


ADJOINTS = {
    "checkpoint": dfx.RecursiveCheckpointAdjoint(checkpoints=4),
    "direct": dfx.DirectAdjoint(),
    "backsolve": dfx.BacksolveAdjoint(solver=dfx.Dopri5()),
    "backsolve_norm": dfx.BacksolveAdjoint(
        stepsize_controller=dfx.PIDController(
            rtol=1e-3, atol=1e-5, norm=dfx.adjoint_rms_seminorm
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ADJOINTS)
def test_adjoint(name, record):
    assert isinstance(ADJOINTS[name], dfx.AbstractAdjoint)
    options = dict(adjoint=ADJOINTS[name], max_steps=16, saveat=dfx.SaveAt(t1=True))
    total = lambda args, y0: jnp.sum(solve(dfx.Tsit5(), args=args, y0=y0, **options).ys ** 2)
    record(jax.jit(jax.grad(total, argnums=(0, 1)))(1.3, START))
    mapped = jax.vmap(jax.grad(total), in_axes=(0, None))
    record(jax.jit(mapped)(jnp.array([1.0, 2.0]), START))


def test_forward_mode(record):
    options = dict(adjoint=dfx.ForwardMode(), saveat=dfx.SaveAt(t1=True))
    run = lambda args: solve(dfx.Tsit5(), args=args, **options).ys
    record(jax.jvp(run, (1.3,), (1.0,)))
    record(jax.jacfwd(run)(1.3))


def test_steady_state(record):
    """A solve that ends where nothing moves, differentiated there."""
    term = dfx.ODETerm(lambda t, y, args: args - y)
    run = lambda args: dfx.diffeqsolve(
        term, dfx.Tsit5(), 0.0, jnp.inf, 0.1, jnp.array(0.0), args,
        stepsize_controller=dfx.PIDController(rtol=1e-4, atol=1e-4),
        event=dfx.Event(dfx.steady_state_event()), max_steps=None,
        adjoint=dfx.ImplicitAdjoint(linear_solver=lx.LU()),
    ).ys[0]  # fmt: skip
    record(jnp.round(jax.jit(jax.value_and_grad(run))(1.5)[0], 2))
    record(jax.grad(run)(1.5))
    assert issubclass(dfx.SteadyStateEvent, dfx.AbstractDiscreteTerminatingEvent)


def test_events(record):
    fall = dfx.ODETerm(lambda t, y, args: jnp.array([y[1], -args]))
    height = lambda t, y, args, **kwargs: y[0]

    def run(args):
        event = dfx.Event(height, root_finder=optx.Newton(1e-5, 1e-5), direction=False)
        return dfx.diffeqsolve(
            fall, dfx.Tsit5(), 0.0, 10.0, 0.1, jnp.array([2.0, 0.0]), args, event=event
        )

    solution = eqx.filter_jit(run)(9.8)
    assert solution.result == dfx.RESULTS.event_occurred
    assert dfx.is_event(solution.result) and dfx.is_okay(solution.result)
    assert not dfx.is_successful(solution.result)
    record([solution.ts, solution.event_mask])
    record(jax.grad(lambda g: run(g).ts[0])(9.8))
    event = dfx.Event([lambda t, y, args, **kwargs: y[0] < 1.0, lambda t, y, *a, **k: t > 5.0])
    out = dfx.diffeqsolve(fall, dfx.Tsit5(), 0.0, 9.0, 0.1, jnp.array([2.0, 0]), 9.8, event=event)
    record([out.ts, out.event_mask])
    assert dfx.DiscreteTerminatingEvent(lambda state, **kwargs: state.tprev > 1) is not None


def test_failure_is_reported():
    out = solve(dfx.Tsit5(), max_steps=2, throw=False)
    assert out.result == dfx.RESULTS.max_steps_reached
    with pytest.raises(Exception, match="maximum number of solver steps"):
        solve(dfx.Tsit5(), max_steps=2)
    with pytest.raises(RuntimeError):
        solve(dfx.Euler(), stepsize_controller=dfx.PIDController(rtol=1e-3, atol=1e-3))


def brownian(levy=dfx.BrownianIncrement, shape=(2,)):
    return dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=shape, key=KEY, levy_area=levy)


def noise(t, y, args):
    return jnp.diag(0.2 + 0.1 * jnp.cos(y))


ITO = (dfx.Euler, dfx.ItoMilstein)
STRATONOVICH = (dfx.EulerHeun, dfx.StratonovichMilstein, dfx.Heun, dfx.ReversibleHeun)
AREAS = (dfx.GeneralShARK, dfx.SlowRK, dfx.SPaRK)
ADDITIVE = (dfx.SEA, dfx.SRA1, dfx.ShARK)
STOCHASTIC = (*ITO, *STRATONOVICH, *AREAS, *ADDITIVE)


@pytest.mark.parametrize("solver", STOCHASTIC, ids=name_of)
def test_stochastic(solver, record):
    areas = solver in (*AREAS, *ADDITIVE)
    path = brownian(dfx.SpaceTimeLevyArea if areas else dfx.BrownianIncrement)
    diffusion = noise
    if solver in ADDITIVE:
        diffusion = lambda t, y, args: jnp.eye(2) * 0.2 * (1 + t)
    elif solver in (dfx.ItoMilstein, dfx.StratonovichMilstein, *AREAS):
        diffusion = lambda t, y, args: lx.DiagonalLinearOperator(0.2 + 0.1 * jnp.cos(y))
    terms = dfx.MultiTerm(dfx.ODETerm(field), dfx.ControlTerm(diffusion, path))
    check(record, solver(), terms=terms, saveat=dfx.SaveAt(t1=True))


LANGEVIN = (dfx.ALIGN, dfx.ShOULD, dfx.QUICSORT)


@pytest.mark.parametrize("solver", LANGEVIN, ids=name_of)
def test_langevin(solver, record):
    levy = dfx.SpaceTimeLevyArea if solver is dfx.ALIGN else dfx.SpaceTimeTimeLevyArea
    gamma, u = jnp.array([1.0, 2.0]), jnp.array([0.5, 1.0])
    terms = dfx.MultiTerm(
        dfx.UnderdampedLangevinDriftTerm(gamma, u, lambda x, *args: 2 * x),
        dfx.UnderdampedLangevinDiffusionTerm(gamma, u, brownian(levy)),
    )
    save = dfx.SaveAt(t1=True)
    check(record, solver(0.1), terms=terms, y0=(START, START), saveat=save, differentiate=False)


LEVY = (dfx.BrownianIncrement, dfx.SpaceTimeLevyArea, dfx.SpaceTimeTimeLevyArea)


@pytest.mark.parametrize("levy", LEVY, ids=name_of)
def test_brownian_paths(levy, record):
    for path in (brownian(levy), dfx.UnsafeBrownianPath((2,), KEY, levy)):
        assert isinstance(path, dfx.AbstractBrownianPath | dfx.AbstractPath)
        drawn = eqx.filter_jit(lambda p: p.evaluate(0.2, 0.7, use_levy=True))(path)
        assert isinstance(drawn, dfx.AbstractBrownianIncrement)
        record(drawn.W.shape)
    record(brownian(levy).evaluate(0.0, 0.4))
    record(jax.vmap(brownian(levy).evaluate)(TIMES))
    assert issubclass(dfx.SpaceTimeTimeLevyArea, dfx.AbstractSpaceTimeTimeLevyArea)
    assert issubclass(dfx.SpaceTimeLevyArea, dfx.AbstractSpaceTimeLevyArea)


def test_brownian_of_trees(record):
    shape = {"a": jax.ShapeDtypeStruct((2,), jnp.float32), "b": jax.ShapeDtypeStruct((), "float32")}
    record(brownian(shape=shape).evaluate(0.0, 0.6))


SAMPLES = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)), jnp.float32)
HOLES = SAMPLES.at[1:3, 0].set(jnp.nan)


def test_interpolations(record):
    linear = dfx.LinearInterpolation(TIMES, dfx.linear_interpolation(TIMES, HOLES))
    cubic = dfx.CubicInterpolation(TIMES, dfx.backward_hermite_coefficients(TIMES, SAMPLES))
    for path in (linear, cubic):
        assert isinstance(path, dfx.AbstractGlobalInterpolation)
        record(eqx.filter_jit(jax.vmap(path.evaluate))(jnp.linspace(0.1, 0.9, 4)))
        record([path.evaluate(0.2, 0.5), path.derivative(0.3), path.t0, path.t1])
    record(dfx.rectilinear_interpolation(TIMES, SAMPLES))
    record(dfx.linear_interpolation(TIMES, HOLES, replace_nans_at_start=0.0))
    record(dfx.backward_hermite_coefficients(TIMES, HOLES, fill_forward_nans_at_end=True))


def test_local_interpolations(record):
    y0, y1 = SAMPLES[0], SAMPLES[1]
    paths = [
        dfx.LocalLinearInterpolation(t0=0.0, t1=1.0, y0=y0, y1=y1),
        dfx.ThirdOrderHermitePolynomialInterpolation(
            t0=0.0, t1=1.0, y0=y0, y1=y1, k0=SAMPLES[2], k1=SAMPLES[3]
        ),
    ]
    own = dfx.FourthOrderPolynomialInterpolation  # its coefficients are its subclasses'
    assert issubclass(own, dfx.AbstractLocalInterpolation)
    for path in paths:
        assert isinstance(path, dfx.AbstractLocalInterpolation)
        record([path.evaluate(0.3), path.evaluate(0.2, 0.6)])


def test_controlled_equation(record):
    """A neural controlled differential equation, trained by a step."""
    control = dfx.CubicInterpolation(TIMES, dfx.backward_hermite_coefficients(TIMES, SAMPLES))
    weights = jnp.sin(jnp.arange(8.0)).reshape(2, 2, 2)
    term = dfx.ControlTerm(lambda t, y, w: jnp.tanh(w @ y), control)
    assert isinstance(term, dfx.AbstractTerm)
    run = lambda w: solve(dfx.Tsit5(), args=w, terms=term, saveat=dfx.SaveAt(t1=True)).ys.sum()
    record(jax.jit(jax.value_and_grad(run))(weights))
    record(solve(dfx.Tsit5(), args=weights, terms=term.to_ode()).ys)
    with warnings.catch_warnings(action="ignore"):  # it is deprecated
        weak = dfx.WeaklyDiagonalControlTerm(lambda t, y, args: y, control)
    record(weak.prod(weak.vf(0.0, START, None), weak.contr(0.0, 0.1)))


def test_complex_and_trees(record):
    term = dfx.ODETerm(lambda t, y, args: jax.tree.map(lambda x: -args * x, y))
    y0 = {"a": jnp.array(1.0), "b": (jnp.ones(2), jnp.zeros(()))}
    check(record, dfx.Heun(), terms=term, y0=y0)


def test_progress(capfd):
    for meter in (dfx.TextProgressMeter(), dfx.NoProgressMeter()):
        assert isinstance(meter, dfx.AbstractProgressMeter)
        jax.block_until_ready(solve(dfx.Euler(), progress_meter=meter).ys)
        jax.effects_barrier()
    assert "100.00%" in capfd.readouterr().out
    assert issubclass(dfx.TqdmProgressMeter, dfx.AbstractProgressMeter)


def test_citation(capsys):
    dfx.citation(dfx.ODETerm(field), dfx.Tsit5(), 0.0, 1.0, 0.1, START, 1.0)
    assert "Kidger" in capsys.readouterr().out and len(dfx.citation_rules) > 3


def test_scan_of_steps(record):
    """Solvers step one at a time, as the page on manual stepping shows."""
    solver, term = dfx.Tsit5(), dfx.ODETerm(growth)
    state = solver.init(term, 0.0, 0.1, START, 1.0)
    step = eqx.filter_jit(solver.step)
    y, t = START, 0.0
    for _ in range(3):
        y, error, dense, state, result = step(term, t, t + 0.1, y, 1.0, state, made_jump=False)
        t = t + 0.1
        record([y, error])


def test_every_public_name_is_used():
    assert not find_unused(dfx, __file__)
