"""Kernel least squares, with one length for each input: which inputs matter is learned.

Ten inputs go into the function of Friedman (1991), of which five have no influence. The kernel is
written for two points, and `vmap` of `vmap` makes its matrix. Predictions are linear in the
observations, so the error of leaving one out has a closed form (Allen 1974); its gradient by the
lengths and the penalty goes through the Cholesky factor, and BFGS follows it. Exits with status 1
if the closed form differs from fits without one point by more than 1e-6, if a length of an
input without influence is not above all lengths of those with influence, or if the error on
fresh points is above 1.5, where least squares has 2.6 and the noise alone 1.

usage: python examples/kernel_lsq.py [--points 200] [--seed 0] [--out examples/out]
"""

import sys

import numpy as np
from common import BLUE, GREY, ORANGE, arguments, axes, save, verdict

import weft
import weft.numpy as jnp
from weft import jit, vmap
from weft.scipy.linalg import cho_factor, cho_solve
from weft.scipy.optimize import minimize

weft.config.update("enable_x64", True)

INPUTS, WITH_INFLUENCE = 10, 5
GOAL = 1.5


def make_data(rng, points):
    """Inputs (points, 10) between 0 and 1, and Friedman's function of them with noise."""
    x = rng.uniform(size=(points, INPUTS))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    return x, y + 10 * x[:, 3] + 5 * x[:, 4] + rng.normal(size=points)


def kernel(lengths, a, b):
    """The Gaussian kernel of two points, each input measured in its own length."""
    return jnp.exp(-0.5 * jnp.sum(((a - b) / lengths) ** 2))


def kernel_matrix(lengths, xs, zs):
    """The kernel of each of `xs` with each of `zs`."""
    return vmap(lambda a: vmap(lambda b: kernel(lengths, a, b))(zs))(xs)


def solve(params, x, y):
    """The weights of the points, and the diagonal of the inverse of the penalized matrix."""
    lengths, penalty = jnp.exp(params[:INPUTS]), jnp.exp(params[INPUTS])
    penalized = kernel_matrix(lengths, x, x) + penalty * jnp.eye(len(x))
    factor = cho_factor(penalized, lower=True)
    inverse = cho_solve(factor, jnp.eye(len(x)))
    return inverse @ y, jnp.diagonal(inverse)


def left_out_errors(params, x, y):
    """The error at each point of the fit to all others."""
    weights, diagonal = solve(params, x, y)
    return weights / diagonal


def predict(params, x, weights, fresh):
    """The fitted function at fresh points."""
    return kernel_matrix(jnp.exp(params[:INPUTS]), fresh, x) @ weights


def learn(x, y):
    """Logarithms of the lengths and of the penalty that make the left-out errors small.

    A weak pull towards 1 keeps the lengths of inputs without influence finite.
    """

    def loss(params):
        return jnp.log(jnp.mean(left_out_errors(params, x, y) ** 2)) + 0.002 * params @ params

    start = jnp.zeros(INPUTS + 1).at[INPUTS].set(-2.0)
    found = jit(lambda start: minimize(loss, start, method="BFGS", options={"maxiter": 60}))(start)
    errors = jit(lambda params: jnp.sqrt(jnp.mean(left_out_errors(params, x, y) ** 2)))
    return found.x, float(errors(start)), float(errors(found.x))


def check_left_out(params, x, y, count=3):
    """The largest difference of the closed form from fits without one of the points."""
    closed, worst = left_out_errors(params, x, y), 0.0
    for i in range(count):
        kept = np.arange(len(x)) != i
        weights, _ = solve(params, x[kept], y[kept])
        error = y[i] - predict(params, x[kept], weights, x[i : i + 1])[0]
        worst = max(worst, abs(float(error - closed[i])))
    return worst


def plot(params, truth, said, file):
    """The lengths, and predictions against the truth at fresh points."""
    figure, (left, right) = axes(1, 2)
    colors = [BLUE] * WITH_INFLUENCE + [GREY] * (INPUTS - WITH_INFLUENCE)
    left.bar(np.arange(INPUTS), 1 / np.exp(params[:INPUTS]), color=colors)
    left.set(xlabel="input (grey: without influence)", ylabel="1 / length", title="What matters")
    right.plot(truth, said, ".", color=BLUE, markersize=4)
    right.plot([truth.min(), truth.max()], [truth.min(), truth.max()], color=ORANGE)
    right.set(xlabel="observed", ylabel="predicted", title="Fresh points")
    save(figure, file)


def main():
    args = arguments(__doc__, points=200)
    rng = np.random.default_rng(args.seed)
    x, y = make_data(rng, args.points)
    fresh, truth = make_data(rng, 2000)
    middle = y.mean()
    params, before, after = learn(x, y - middle)
    weights, _ = solve(params, x, y - middle)
    said = np.asarray(predict(params, x, weights, fresh)) + middle
    error = np.sqrt(np.mean((said - truth) ** 2))
    ones = np.ones((len(x), 1))
    linear = np.hstack([ones, x])
    fitted = np.hstack([np.ones((2000, 1)), fresh]) @ np.linalg.lstsq(linear, y, rcond=None)[0]
    apart = check_left_out(params, x, y - middle)
    lengths = np.exp(np.asarray(params[:INPUTS]))
    print(f"left-out error {before:.2f} before, {after:.2f} after")
    print("lengths " + " ".join(f"{length:.3g}" for length in lengths))
    print(f"fresh points: error {error:.2f}, least squares {np.std(fitted - truth):.2f}, noise 1")
    plot(np.asarray(params), truth, said, args.out / "kernel_lsq.png")
    told_apart = lengths[:WITH_INFLUENCE].max() < lengths[WITH_INFLUENCE:].min()
    reached = apart < 1e-6 and told_apart and error < GOAL
    return verdict("kernel_lsq", reached, f"closed form, lengths, error below {GOAL}")


if __name__ == "__main__":
    sys.exit(main())
