"""Sample a posterior by Hamiltonian Monte Carlo, and check by diagnostics that it worked.

A transition is a `lax.fori_loop` of leapfrog steps along the `grad` of the log-density, a
chain a `lax.scan` of transitions, and `vmap` runs several chains. The step size adapts by dual
averaging (Hoffman & Gelman 2014, algorithm 5); split R-hat, effective sample sizes (Vehtari et al.
2021), divergences and energies (Betancourt 2016) say whether to believe the draws. First a Gaussian
whose moments are known, then a logistic regression that tells malignant tumours from benign ones.
The bar, for both: every R-hat below 1.01, every effective sample size above 400, no divergence.

usage: python examples/hmc.py [--draws 1000] [--warm-up 500] [--chains 4] [--leaps 16]
       [--seed 0] [--out examples/out]
"""

import sys
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from common import BLUE, GREEN, GREY, ORANGE, RED, arguments, axes, progress, save, verdict
from sklearn.datasets import load_breast_cancer

import weft.numpy as jnp
from weft import grad, jit, lax, nn, random, vmap

CHUNK = 50  # transitions in one compiled call
TARGET = 0.8  # acceptance that the step size aims at
DIVERGED = 1000.0  # error of the energy
RHAT, ESS = 1.01, 400
HELD_OUT = 169
SHOWN = 12  # weights in the picture
COLORS = (BLUE, ORANGE, GREEN, RED)


# --- the sampler ----------------------------------------------------------------------------------


class Chain(NamedTuple):
    """The state of a chain, and what adapts its step size (names as in algorithm 5)."""

    position: Any
    log_step: Any
    log_step_bar: Any  # the weighted mean that is used after warming up
    h_bar: Any
    mu: Any
    count: Any


class Record(NamedTuple):
    """The record of a transition."""

    position: Any
    energy: Any
    acceptance: Any
    diverged: Any


def start_chain(position, step_size=0.1):
    """A chain that has not moved."""
    log_step = jnp.log(step_size)
    return Chain(position, log_step, jnp.zeros(()), jnp.zeros(()), jnp.log(10 * step_size), 0)


def leapfrog(gradient, position, momentum, step_size, leaps):
    """Position and momentum after some steps of Hamilton's equations, reversible to rounding."""
    momentum = momentum + step_size / 2 * gradient(position)

    def leap(_, state):
        position, momentum = state
        position = position + step_size * momentum
        return position, momentum + step_size * gradient(position)

    position, momentum = lax.fori_loop(0, leaps, leap, (position, momentum))
    return position, momentum - step_size / 2 * gradient(position)  # half of the last was too much


def transition(log_density, leaps, key, position, step_size):
    """A new position by Metropolis's rule at the end of a path, and the record of it."""
    key_momentum, key_length, key_accept = random.split(key, 3)
    momentum = random.normal(key_momentum, position.shape)
    step_size = step_size * random.uniform(key_length, minval=0.8, maxval=1.2)  # no path closes

    def energy(position, momentum):
        return momentum @ momentum / 2 - log_density(position)

    end, end_momentum = leapfrog(grad(log_density), position, momentum, step_size, leaps)
    before, after = energy(position, momentum), energy(end, end_momentum)
    error = jnp.where(jnp.isfinite(after), after - before, jnp.inf)
    accepted = jnp.log1p(-random.uniform(key_accept)) < -error
    return Record(
        jnp.where(accepted, end, position),
        jnp.where(accepted, after, before),
        jnp.minimum(1, jnp.exp(-error)),
        error > DIVERGED,
    )


def adapted(chain, acceptance, gamma=0.05, t0=10, kappa=0.75):
    """Dual averaging: a step size whose acceptance is `TARGET` in the long run."""
    count = chain.count + 1
    h_bar = chain.h_bar + (TARGET - acceptance - chain.h_bar) / (count + t0)
    log_step = chain.mu - jnp.sqrt(count) / gamma * h_bar
    log_step_bar = chain.log_step_bar + count**-kappa * (log_step - chain.log_step_bar)
    return chain._replace(h_bar=h_bar, log_step=log_step, log_step_bar=log_step_bar, count=count)


def advance(log_density, leaps, warming, chain, keys):
    """One chain through a transition for each of `keys`, with the records stacked."""

    def one(chain, key):
        step_size = jnp.exp(chain.log_step if warming else chain.log_step_bar)
        record = transition(log_density, leaps, key, chain.position, step_size)
        chain = chain._replace(position=record.position)
        return adapted(chain, record.acceptance) if warming else chain, record

    return lax.scan(one, chain, keys)


def sample(log_density, key, positions, args, name):
    """Records (chains, draws, ...) of chains that begin at `positions`, and their step sizes."""
    chains = vmap(start_chain)(positions)
    records = []
    total = args.warm_up + args.draws
    keys = random.split(key, (len(positions), total))
    with progress(total, unit="draw", desc=name) as bar:
        for warming, first, last in ((True, 0, args.warm_up), (False, args.warm_up, total)):
            run = jit(vmap(partial(advance, log_density, args.leaps, warming)))
            for start in range(first, last, CHUNK):
                stop = min(start + CHUNK, last)
                chains, record = run(chains, keys[:, start:stop])
                bar.update(stop - start)
                if not warming:
                    records.append(record)
    joined = Record(*(np.concatenate(x, axis=1) for x in zip(*records, strict=True)))
    return joined, np.exp(chains.log_step_bar)


# --- diagnostics of draws (chains, draws) ---------------------------------------------------------


def split_rhat(draws):
    """The width of all half chains together, relative to that within each; 1 if they agree."""
    halves = draws.reshape(2 * len(draws), -1)
    n = halves.shape[1]
    within = jnp.mean(jnp.var(halves, axis=1, ddof=1))
    between = jnp.var(jnp.mean(halves, axis=1), ddof=1)
    return jnp.sqrt((n - 1) / n + between / within)


def effective_size(draws):
    """The number of independent draws with the same error of the mean (Geyer's sequence)."""
    halves = draws.reshape(2 * len(draws), -1)
    m, n = halves.shape
    centred = halves - jnp.mean(halves, axis=1, keepdims=True)
    spectrum = jnp.fft.rfft(centred, 2 * n, axis=1)  # padded, so that the ends do not meet
    products = jnp.mean(jnp.fft.irfft(jnp.abs(spectrum) ** 2, axis=1)[:, :n], axis=0) / n
    within = products[0] * n / (n - 1)
    total = products[0] + jnp.var(jnp.mean(halves, axis=1), ddof=1)
    correlations = (1 - (within - products) / total).at[0].set(1)
    pairs = correlations[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    pairs = jnp.where(lax.cummin(pairs) > 0, lax.cummin(pairs), 0)  # until one is negative
    return m * n / jnp.maximum(2 * jnp.sum(pairs) - 1, 1 / jnp.log10(m * n))


def of_each(diagnostic, positions):
    """A diagnostic of every coordinate of positions (chains, draws, coordinate)."""
    return np.asarray(jit(vmap(diagnostic, in_axes=2))(jnp.asarray(positions)))


def energy_information(energy):
    """The share of the energy that momentum moves, by chain; below 0.3 is bad (Betancourt 2016)."""
    return (np.diff(energy, axis=1) ** 2).mean(axis=1) / energy.var(axis=1)


def summary(name, records, step_sizes):
    """Print the diagnostics; whether all reach the bar."""
    rhat, ess = (of_each(f, records.position) for f in (split_rhat, effective_size))
    divergences = int(records.diverged.sum())
    print(
        f"{name}: greatest R-hat {rhat.max():.4f}, least effective size {ess.min():.0f} of "
        f"{records.energy.size}, {divergences} divergences\n"
        f"  acceptance {records.acceptance.mean():.2f} (aim {TARGET}), step sizes "
        f"{step_sizes.min():.3f} to {step_sizes.max():.3f}, energy information "
        f"{energy_information(records.energy).min():.2f}"
    )
    return rhat.max() < RHAT and ess.min() > ESS and divergences == 0


# --- two densities --------------------------------------------------------------------------------


def known_gaussian(size=8):
    """A mean and a covariance whose scales differ tenfold and whose neighbours are alike."""
    scale = np.geomspace(0.3, 3, size)
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.linspace(-1, 1, size), 0.5**apart * np.outer(scale, scale)


def gaussian_density(mean, covariance):
    """Its log-density, up to a constant."""
    precision = jnp.asarray(np.linalg.inv(covariance), jnp.float32)
    mean = jnp.asarray(mean, jnp.float32)
    return lambda x: -(x - mean) @ precision @ (x - mean) / 2


def logistic_density(features, labels):
    """Log-posterior of (weights, bias), normal of standard deviation 1 and 5 before the data."""

    def log_density(x):
        scores = features @ x[:-1] + x[-1]
        fits = jnp.sum(labels * scores - nn.softplus(scores))
        return fits - jnp.sum(x[:-1] ** 2) / 2 - (x[-1] / 5) ** 2 / 2

    return log_density


def load_data(key):
    """(features, labels) to learn from, those held out, and names; label 1 is benign."""
    data = load_breast_cancer()
    order = np.asarray(random.permutation(key, len(data.target)))
    features = data.data[order]
    known = features[:-HELD_OUT]
    features = ((features - known.mean(axis=0)) / known.std(axis=0)).astype(np.float32)
    labels = data.target[order].astype(np.float32)
    cut, names = -HELD_OUT, [*map(str, data.feature_names), "bias"]
    return (features[:cut], labels[:cut]), (features[cut:], labels[cut:]), names


def check_gaussian(key, args):
    """Sample the known Gaussian; whether it mixed and the moments are right."""
    mean, covariance = known_gaussian()
    key_start, key_run = random.split(key)
    starts = 3 * random.normal(key_start, (args.chains, len(mean)))
    records, step_sizes = sample(gaussian_density(mean, covariance), key_run, starts, args, "known")
    reached = summary("known Gaussian", records, step_sizes)
    draws, scale = records.position.reshape(-1, len(mean)), np.sqrt(np.diag(covariance))
    errors = np.abs(draws.mean(axis=0) - mean) / scale
    ratios = draws.std(axis=0) / scale
    print(
        f"  greatest error of a mean {errors.max():.3f} deviations; deviations "
        f"{ratios.min():.3f} to {ratios.max():.3f} times the true ones"
    )
    return reached


def held_out_figures(positions, features, labels):
    """Accuracy, and mean log-likelihood, of the mean prediction over all draws."""
    draws = positions.reshape(-1, positions.shape[-1])
    probability = np.asarray(nn.sigmoid(draws[:, :-1] @ features.T + draws[:, -1:])).mean(axis=0)
    likelihood = np.where(labels == 1, probability, 1 - probability)
    return ((probability > 0.5) == (labels == 1)).mean(), np.log(likelihood).mean()


def draw(records, names, path):
    """Traces of the slowest coordinate, all marginals, and energies against their changes."""
    slowest = int(of_each(effective_size, records.position).argmin())
    figure, (left, middle, right) = axes(1, 3, size=(15, 4.2))
    for chain, color in zip(records.position[:, :, slowest], COLORS * len(records.position)):
        left.plot(chain[-300:], color=color, linewidth=0.7, alpha=0.8)
    left.set(xlabel="draw (the last 300)", ylabel=f"weight: {names[slowest]}")
    left.set_title("The slowest weight, by chain")
    flat = records.position.reshape(-1, len(names))
    surest = np.argsort(np.abs(flat.mean(axis=0)) / flat.std(axis=0))[-SHOWN:]
    for i, values in enumerate(flat.T[surest]):
        low, first, median, third, high = np.quantile(values, (0.025, 0.25, 0.5, 0.75, 0.975))
        middle.plot((low, high), (i, i), color=BLUE, linewidth=1)
        middle.plot((first, third), (i, i), color=BLUE, linewidth=4)
        middle.plot(median, i, "o", color=ORANGE, markersize=4)
    middle.axvline(0, color=GREY, linewidth=1)
    middle.set_yticks(range(SHOWN), [names[i] for i in surest])
    middle.set(xlabel="weight (towards benign)", title="The surest weights: 50% and 95%")
    energy = records.energy - records.energy.mean(axis=1, keepdims=True)
    bins = np.linspace(-np.abs(energy).max(), np.abs(energy).max(), 60)
    right.hist(energy.ravel(), bins, color=BLUE, alpha=0.6, label="energy")
    changes = np.diff(energy, axis=1).ravel()
    right.hist(changes, bins, color=ORANGE, alpha=0.6, label="change in one transition")
    right.set(xlabel="energy minus its mean (nats)", ylabel="draws", title="Energy")
    right.set_ylim(0, 1.25 * right.get_ylim()[1])
    right.legend(frameon=False, loc="upper left")
    save(figure, path)


def main():
    """Sample both, report, draw; 0 when both mixed."""
    args = arguments(__doc__, draws=1000, warm_up=500, chains=4, leaps=16)
    keys = random.split(random.key(args.seed), 4)
    mixed = check_gaussian(keys[0], args)

    (features, labels), held_out, names = load_data(keys[1])
    starts = random.normal(keys[2], (args.chains, len(names)))
    density = logistic_density(jnp.asarray(features), jnp.asarray(labels))
    records, step_sizes = sample(density, keys[3], starts, args, "posterior")
    mixed &= summary("logistic regression", records, step_sizes)
    accuracy, log_likelihood = held_out_figures(records.position, *held_out)
    print(f"  held-out accuracy {accuracy:.1%}, log-likelihood {log_likelihood:.3f} nats a tumour")

    draw(records, names, args.out / "hmc.png")
    bar = f"R-hat below {RHAT}, effective sizes above {ESS}, no divergence"
    return verdict("hmc", bool(mixed), bar)


if __name__ == "__main__":
    sys.exit(main())
