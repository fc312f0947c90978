"""Automatic variational inference: a normal distribution fitted to a posterior by its gradient.

The model is that of the eight schools (Rubin 1981): the effect of coaching in each school, measured
with a known error, where the schools' effects are themselves drawn from a population whose mean and
spread are unknown. The log density is written as a function of one set of parameters; `grad`
through `random.normal` and `vmap` over draws give the slope of the evidence lower bound, by which
Adam fits the mean and the Cholesky factor of a normal distribution (Kucukelbir et al. 2017). Sums
over a grid of mean and spread, which no larger model would allow, give the true posterior and
evidence. Exits with status 1 if the bound is more than 0.2 nats below the evidence, or the mean
effect of a school is more than 0.6 points off.

usage: python examples/advi.py [--steps 3000] [--draws 64] [--seed 0] [--out examples/out]
"""

import sys

import numpy as np
from common import BLUE, GREY, ORANGE, arguments, axes, save, verdict

import weft.numpy as jnp
from weft import jit, lax, random, value_and_grad, vmap
from weft.scipy.stats import norm

# Points gained by coaching in each school, and their standard errors (Rubin 1981, table 1).
GAINS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0], np.float32)
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0], np.float32)
SCHOOLS = len(GAINS)
SIZE = SCHOOLS + 2
SPREAD_OF_MEAN, SPREAD_OF_LOG_SPREAD = 10.0, 1.0  # of the priors
MAX_GAP, MAX_ERROR = 0.2, 0.6


def unpack(z):
    """Mean and spread of the population, and the effect of each school, of ten numbers `z`."""
    mean, spread = SPREAD_OF_MEAN * z[0], jnp.exp(1.0 + SPREAD_OF_LOG_SPREAD * z[1])
    return mean, spread, mean + spread * z[2:]


def log_density(z):
    """The logarithm of prior times likelihood at `z`, whose prior is standard normal."""
    _, _, effects = unpack(z)
    return norm.logpdf(z).sum() + norm.logpdf(GAINS, effects, ERRORS).sum()


def draw(params, key):
    """A draw of the approximation: its mean and the logarithms of its scales, and a factor."""
    mean, log_scale, factor = params
    noise = random.normal(key, (SIZE,))
    return mean + jnp.exp(log_scale) * noise + jnp.tril(factor, -1) @ noise


def lower_bound(params, key, draws):
    """The evidence lower bound, estimated by `draws` draws."""
    _, log_scale, _ = params
    entropy = log_scale.sum() + 0.5 * SIZE * jnp.log(2 * jnp.pi * jnp.e)
    keys = random.split(key, draws)
    return vmap(lambda k: log_density(draw(params, k)))(keys).mean() + entropy


def fit(key, steps, draws, rate=0.03):
    """The fitted approximation, and the bound at every step: one compiled loop of Adam."""
    params = jnp.zeros(SIZE), jnp.full(SIZE, -1.0), jnp.zeros((SIZE, SIZE))

    def step(state, key):
        params, first, second, count = state
        bound, slope = value_and_grad(lower_bound)(params, key, draws)
        count = count + 1
        size = rate * jnp.minimum(1.0, 3 * (1 - count / (steps + 1)))  # smaller towards the end
        first = [0.9 * m + 0.1 * g for m, g in zip(first, slope, strict=True)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, slope, strict=True)]
        moved = [
            p + size * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)
            for p, m, v in zip(params, first, second, strict=True)
        ]
        return (tuple(moved), first, second, count), bound

    zeros = [jnp.zeros_like(p) for p in params]
    state, bounds = jit(lambda keys: lax.scan(step, (params, zeros, zeros, 0.0), keys))(
        random.split(key, steps)
    )
    return state[0], bounds


def integrate():
    """The evidence's logarithm and each school's mean effect, by sums over a grid, in NumPy."""
    mean, z = np.linspace(-45.0, 45.0, 901)[:, None, None], np.linspace(-5.0, 5.0, 801)[:, None]
    spread = np.exp(1.0 + SPREAD_OF_LOG_SPREAD * z)
    gains, variances = GAINS.astype(float), ERRORS.astype(float) ** 2
    total = variances + spread**2  # of a gain, given mean and spread
    log_p = -0.5 * (np.log(2 * np.pi * total) + (gains - mean) ** 2 / total).sum(-1)
    log_p -= 0.5 * (mean[..., 0] / SPREAD_OF_MEAN) ** 2 + np.log(SPREAD_OF_MEAN)
    log_p -= 0.5 * z[:, 0] ** 2 + np.log(2 * np.pi)
    cell = np.log(90.0 / 900) + np.log(10.0 / 800)
    evidence = np.logaddexp.reduce(log_p.ravel()) + cell
    weight = np.exp(log_p + cell - evidence)[..., None]
    effects = (gains * spread**2 + mean * variances) / total
    return evidence, (weight * effects).sum((0, 1))


def plot(bounds, evidence, effects, exact, file):
    """The bound against the evidence, and the effects with those that were measured."""
    figure, (left, right) = axes(1, 2)
    left.plot(bounds, color=BLUE, linewidth=0.6, label="lower bound, by draws")
    left.axhline(evidence, color=ORANGE, label="log evidence")
    left.set(xlabel="step", title="Evidence lower bound", ylim=(evidence - 6, evidence + 2))
    left.legend(loc="lower right")
    place = np.arange(SCHOOLS)
    right.errorbar(place, GAINS, ERRORS, fmt="o", color=GREY, label="measured")
    right.errorbar(
        place + 0.2, effects.mean(0), effects.std(0), fmt="o", color=BLUE, label="fitted"
    )
    right.plot(place + 0.2, exact, "_", color=ORANGE, markersize=14, label="exact mean")
    right.set(xlabel="school", ylabel="points", title="Effect of coaching", ylim=(-22, 64))
    right.legend(loc="upper right")
    save(figure, file)


def main():
    args = arguments(__doc__, steps=3000, draws=64)
    key_fit, key_bound, key_draw = random.split(random.key(args.seed), 3)
    params, bounds = fit(key_fit, args.steps, args.draws)
    bound = float(jit(lower_bound, static_argnums=2)(params, key_bound, 20_000))
    keys = random.split(key_draw, 20_000)
    effects = np.asarray(jit(vmap(lambda k: unpack(draw(params, k))[2]))(keys))
    evidence, exact = integrate()
    gap, error = evidence - bound, np.abs(effects.mean(0) - exact).max()
    print(f"log evidence {evidence:.2f}, lower bound {bound:.2f}: {gap:.2f} nats below")
    for i, (fitted, true) in enumerate(zip(effects.mean(0), exact, strict=True)):
        print(f"school {i}: measured {GAINS[i]:4.0f}, fitted {fitted:5.2f}, exact {true:5.2f}")
    plot(np.asarray(bounds), evidence, effects, exact, args.out / "advi.png")
    reached = gap < MAX_GAP and error < MAX_ERROR
    return verdict("advi", reached, f"bound within {MAX_GAP} nats, effects within {MAX_ERROR}")


if __name__ == "__main__":
    sys.exit(main())
