"""Fit the equations of prey and predator to twenty years of pelts, through the solver.

The Hudson's Bay Company's counts of hare and lynx, 1900 to 1920, follow a cycle. `odeint` solves
Lotka and Volterra's equations, and carries derivatives back along the adjoint (Chen et al. 2018);
BFGS maximizes the posterior of the eight parameters with them, from many starts at once by `vmap`,
and the Hessian there gives standard errors (Laplace's approximation). Model, data and the posterior
to compare with: Carpenter, "Predator-prey population dynamics", Stan case study, 2018.

usage: python examples/ode_fit.py [--starts 16] [--draws 300] [--seed 0] [--out examples/out]
"""

import sys
import time

import numpy as np
from common import BLUE, GREY, ORANGE, arguments, axes, progress, save, verdict

import weft.numpy as jnp
from weft import config, grad, hessian, jit, random, vmap
from weft.experimental.ode import odeint
from weft.scipy.optimize import minimize
from weft.scipy.stats import norm

config.update("enable_x64", True)  # BFGS compares values that differ in the eighth digit

YEARS = np.arange(1900, 1921)
HARE = [30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1, 40.3, 57.0, 76.6, 52.3]
HARE += [19.5, 11.2, 7.6, 14.6, 16.2, 24.7]
LYNX = [4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4, 8.0, 12.3, 19.5, 45.7, 51.1]
LYNX += [29.7, 15.8, 9.7, 10.1, 8.6]
PELTS = np.log(np.stack([HARE, LYNX], axis=1))  # of thousands

NAMES = ("hare birth", "predation", "lynx death", "lynx birth", "hare 1900", "lynx 1900")
NAMES += ("hare noise", "lynx noise")
UNITS = ("1/a", "1/a", "1/a", "1/a", "1000", "1000", "", "")
# Posterior means and standard deviations of the case study, by Hamiltonian Monte Carlo.
PUBLISHED = np.array([0.55, 0.028, 0.80, 0.024, 34.0, 5.9, 0.25, 0.25])
PUBLISHED_ERROR = np.array([0.06, 0.004, 0.09, 0.004, 2.9, 0.5, 0.04, 0.04])
# A trial step of BFGS may ask for absurd rates: those count as no solution, not as a long wait.
SOLVER = {"rtol": 1e-8, "atol": 1e-8, "mxstep": 500}


def flow(log_z, t, rates):
    """The equations for the logarithms of hare and lynx, which keeps both above zero."""
    birth, predation, death, growth = rates
    hare, lynx = jnp.exp(log_z)
    return jnp.stack([birth - predation * lynx, growth * hare - death])


def solve(log_params, times):
    """Logarithms of hare and lynx at `times`, [time, 2]; the first time is that of the start."""
    return odeint(flow, log_params[4:6], times, jnp.exp(log_params[:4]), **SOLVER)


def log_posterior(log_params, times, pelts):
    """Log-density of the parameters' logarithms, but for a constant, with the study's priors."""
    params = jnp.exp(log_params)
    likelihood = jnp.sum(norm.logpdf(pelts, solve(log_params, times), params[6:]))
    prior = jnp.sum(norm.logpdf(params[jnp.array([0, 2])], 1.0, 0.5))
    prior += jnp.sum(norm.logpdf(params[jnp.array([1, 3])], 0.05, 0.05))
    prior += jnp.sum(log_params[:4])  # d params / d log params
    prior += jnp.sum(norm.logpdf(log_params[4:6], jnp.log(10.0), 1.0))
    prior += jnp.sum(norm.logpdf(log_params[6:], -1.0, 1.0))
    return likelihood + prior


def draw_starts(key, count):
    """Points to start from, spread about the middle of the priors and the first counts."""
    middle = jnp.log(jnp.array([1.0, 0.05, 1.0, 0.05, 30.0, 4.0, 0.5, 0.5]))
    return middle + 0.3 * random.normal(key, (count, len(NAMES)))


@jit
def climb(starts, times, pelts):
    """Where BFGS ends from each start, the negative log-posterior there, and its evaluations."""

    def one(start):
        ends = minimize(lambda p: -log_posterior(p, times, pelts), start, method="BFGS")
        return ends.x, ends.fun, ends.nfev

    return vmap(one)(starts)


@jit
def laplace(mode, times, pelts):
    """Gradient at the mode, and the covariance of the Gaussian of the same curvature there."""
    slope = grad(log_posterior)(mode, times, pelts)
    return slope, jnp.linalg.inv(-hessian(log_posterior)(mode, times, pelts))


def fit(key, starts, times, pelts):
    """The best of `starts` ends, its slope and covariance, and the negative log-posteriors."""
    ends, values, calls = [], [], 0
    bar = progress(np.array_split(np.asarray(draw_starts(key, starts)), -(-starts // 4)), "batch")
    for batch in bar:
        x, value, evaluations = climb(batch, times, pelts)
        ends, values = [*ends, *np.asarray(x)], [*values, *np.asarray(value)]
        calls += int(evaluations.sum())
        bar.set_postfix(best=f"{np.nanmin(values):.4f}", evaluations=calls, refresh=False)
    best = np.nanargmin(values)
    slope, covariance = laplace(ends[best], times, pelts)
    return ends[best], np.asarray(slope), np.asarray(covariance), np.array(values)


def plot(mode, draws, path):
    """The pelts and the fit by year, and the cycle in the plane of hare and lynx."""
    fine = np.linspace(0, len(YEARS) + 4, 400)
    curves = np.exp(np.asarray(jit(vmap(solve, in_axes=(0, None)))(draws, fine)))
    best = np.exp(np.asarray(solve(mode, fine)))
    figure, (left, right) = axes(1, 2, size=(11.5, 4.4))
    for k, (name, color) in enumerate((("hare", BLUE), ("lynx", ORANGE))):
        low, high = np.quantile(curves[:, :, k], (0.05, 0.95), axis=0)
        left.fill_between(YEARS[0] + fine, low, high, color=color, alpha=0.18, linewidth=0)
        left.plot(YEARS[0] + fine, best[:, k], color=color, linewidth=2, label=name)
        left.plot(YEARS, np.exp(PELTS[:, k]), "o", color=color, markersize=4.5)
    left.set(xlabel="year", ylabel="pelts (thousands)", ylim=(0, None))
    left.xaxis.get_major_locator().set_params(integer=True)
    left.axvline(YEARS[-1], color=GREY, linestyle="--", linewidth=1)
    left.set_title("Counts, fit, and 90% of the posterior's curves", loc="left", fontsize=11)
    left.legend(frameon=False, loc="upper right")
    for curve in curves[:60]:
        right.plot(*curve.T, color=GREY, linewidth=0.5, alpha=0.25)
    right.plot(*best.T, color=BLUE, linewidth=2)
    right.plot(*np.exp(PELTS).T, "o", color=ORANGE, markersize=4.5)
    for year, point in list(zip(YEARS, np.exp(PELTS), strict=True))[::2]:
        right.annotate(f"{year}", point, (4, 3), textcoords="offset points", fontsize=7)
    right.set(xlabel="hare (thousands)", ylabel="lynx (thousands)", xlim=(0, 90), ylim=(0, 65))
    right.set_title("Phase plane: the cycle turns counterclockwise", loc="left", fontsize=11)
    save(figure, path)


def main():
    """Fit, report, draw; 0 when the estimates agree with the published posterior."""
    args = arguments(__doc__, starts=16, draws=300)
    key_starts, key_draws = random.split(random.key(args.seed))
    times = (YEARS - YEARS[0]).astype(float)
    start = time.perf_counter()
    mode, slope, covariance, values = fit(key_starts, args.starts, times, PELTS)
    print(f"fitted in {time.perf_counter() - start:.1f} s, compiling included")
    near = int(np.sum(values < np.nanmin(values) + 1e-3))
    print(f"{near} of {len(values)} starts end at the best; gradient there {abs(slope).max():.1e}")

    draws = random.multivariate_normal(key_draws, mode, covariance, (args.draws,))
    middle, error = np.exp(mode), np.exp(mode) * np.sqrt(np.diag(covariance))
    for row in zip(NAMES, middle, error, UNITS, PUBLISHED, PUBLISHED_ERROR, strict=True):
        print("{:>10}: {:7.4f} +- {:6.4f} {:4} (published {:6.3f} +- {:.3f})".format(*row))
    residual = PELTS - np.asarray(solve(mode, times))
    explained = 1 - residual.var() / (PELTS - PELTS.mean(0)).var()
    print(f"the cycle explains {explained:.1%} of the variance of the log counts")

    plot(mode, draws, args.out / "ode-fit.png")
    away = float(np.max(np.abs(middle - PUBLISHED) / PUBLISHED_ERROR))
    print(f"the estimate farthest from the published mean is {away:.2f} standard deviations away")
    bar = "all estimates within one standard deviation of the published posterior means"
    return verdict("ode_fit", away < 1, bar)


if __name__ == "__main__":
    sys.exit(main())
