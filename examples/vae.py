"""A variational autoencoder: digits from a plane of two latent numbers (Kingma and Welling 2014).

`grad` goes through the draw of the latent numbers (their reparametrization), `vmap` through keys
and images, `lax.scan` through an epoch. A pixel of these digits counts the inked points in a block
of 4 x 4, so its model is a binomial distribution, and the log-likelihoods are those of whole images
in nats. Exits with status 1 unless the evidence lower bound (ELBO) of held-out digits is above
-160 nats; a model in which each pixel has its own odds reaches -253, a mixture of ten such models,
one for each digit, -173.

usage: python examples/vae.py [--epochs 150] [--seed 0] [--out examples/out]
"""

import sys
from functools import partial

import numpy as np
from common import BLUE, GREY, ORANGE, arguments, axes, image, progress, save, tiles, verdict
from digits_data import split_digits

import weft.numpy as jnp
from weft import jit, lax, random, value_and_grad, vmap
from weft.experimental import optimizers, stax
from weft.experimental.stax import Dense, FanOut, Gelu
from weft.scipy.special import gammaln, logsumexp, ndtri
from weft.scipy.stats import norm

HELD_OUT = 360
BATCH = 64
TRIALS = 16  # points of a pixel
GOAL = -160.0

encoder_init, encode = stax.serial(
    Dense(256), Gelu, Dense(256), Gelu, FanOut(2), stax.parallel(Dense(2), Dense(2))
)
decoder_init, decode = stax.serial(Dense(256), Gelu, Dense(256), Gelu, Dense(64))


def log_binomial(logits, counts):
    """log p(counts) of 64 independent pixels: how many of 16 points, each inked by its odds."""
    ways = gammaln(TRIALS + 1.0) - gammaln(counts + 1.0) - gammaln(TRIALS - counts + 1.0)
    return jnp.sum(ways + counts * logits - TRIALS * jnp.logaddexp(logits, 0), axis=-1)


def kl_to_standard_normal(mean, log_std):
    """KL(N(mean, std^2) || N(0, 1)), summed over the latent numbers (appendix B of the paper)."""
    return jnp.sum(mean**2 + jnp.exp(2 * log_std) - 1 - 2 * log_std, axis=-1) / 2


def elbo(params, key, counts):
    """One image's evidence lower bound by one draw (equation 7 of the paper), in nats."""
    mean, log_std = encode(params[0], counts / TRIALS)
    z = mean + jnp.exp(log_std) * random.normal(key, mean.shape)  # differentiable in both
    return log_binomial(decode(params[1], z), counts) - kl_to_standard_normal(mean, log_std)


def importance_bound(params, key, counts, draws=500):
    """A tighter bound for one image, by several draws (Burda et al. 2016): the log-mean weight."""
    mean, log_std = encode(params[0], counts / TRIALS)
    z = mean + jnp.exp(log_std) * random.normal(key, (draws, 2))
    proposal = norm.logpdf(z, mean, jnp.exp(log_std)).sum(1)
    weights = log_binomial(decode(params[1], z), counts) + norm.logpdf(z).sum(1) - proposal
    return logsumexp(weights) - jnp.log(draws)


def mean_over_images(bound, params, key, counts):
    """The mean of a bound over images, each with its own key."""
    return jnp.mean(vmap(partial(bound, params))(random.split(key, len(counts)), counts))


evaluate = jit(mean_over_images, static_argnums=0)


def make_epoch(optimizer, counts):
    """The compiled pass over all images: (step, state), key -> (step, state), mean ELBO."""

    def step(carry, key_and_batch):
        i, state = carry
        key, batch = key_and_batch
        loss = lambda params: -mean_over_images(elbo, params, key, counts[batch])
        value, grads = value_and_grad(loss)(optimizer.params_fn(state))
        return (i + 1, optimizer.update_fn(i, grads, state)), -value

    @jit
    def epoch(carry, key):
        key_order, key_steps = random.split(key)
        batches = len(counts) // BATCH
        order = random.permutation(key_order, len(counts))[: batches * BATCH]
        keys = random.split(key_steps, batches)
        carry, values = lax.scan(step, carry, (keys, order.reshape(batches, BATCH)))
        return carry, jnp.mean(values)

    return epoch


def train(epochs, key, counts, held_out):
    """Parameters after `epochs` passes; for each the ELBO of training and held-out images."""
    key_encoder, key_decoder, key_epochs, key_held = random.split(key, 4)
    params = encoder_init(key_encoder, (64,))[1], decoder_init(key_decoder, (2,))[1]
    steps = epochs * (len(counts) // BATCH)
    optimizer = optimizers.adam(optimizers.polynomial_decay(2e-3, steps, 1e-5, power=1.0))
    epoch, history = make_epoch(optimizer, jnp.asarray(counts)), []
    carry = (0, optimizer.init_fn(params))
    bar = progress(epochs, unit="epoch")
    for i in bar:
        carry, value = epoch(carry, random.fold_in(key_epochs, i))
        params = optimizer.params_fn(carry[1])
        held = evaluate(elbo, params, random.fold_in(key_held, i), held_out)
        history.append((float(value), float(held)))
        bar.set_postfix(elbo=f"{value:.1f}", held_out=f"{held:.1f}", refresh=False)
    return params, np.array(history)


def independent_pixels(counts, held_out):
    """The mean log-likelihood of held-out images under each pixel's own odds, in nats."""
    share = (counts.sum(axis=0) + 0.5) / (TRIALS * len(counts) + 1)
    return jnp.mean(log_binomial(jnp.log(share / (1 - share)), held_out))


def load_data(key):
    """Counts (n, 64) of inked points from 0 to 16, and labels: training and held-out pairs."""
    return split_digits(lambda n: random.permutation(key, n), lambda counts: counts, HELD_OUT)


def plot_training(history, bound, alone, file):
    """The ELBO by epoch, and what it is compared with."""
    figure, ax = axes()
    epochs = np.arange(1, len(history) + 1)
    for values, color, label in zip(history.T, (BLUE, ORANGE), ("training", "held-out")):
        ax.plot(epochs, values, color=color, label=label, linewidth=1.5)
    ax.plot(epochs[-1], bound, "o", color=ORANGE, label="held-out, by 500 draws")
    for level, text in ((GOAL, "bar"), (alone, "independent pixels")):
        ax.axhline(level, color=GREY, linewidth=1, linestyle="--")
        ax.annotate(text, (epochs[-1], level), color=GREY, ha="right", va="bottom", fontsize=9)
    ax.set(
        xlabel="epoch", ylabel="nats per image", ylim=(alone - 10, max(history.max(), GOAL) + 10)
    )
    ax.set_title("Evidence lower bound", loc="left", fontsize=11)
    ax.legend(frameon=False, loc="center right", fontsize=9)
    save(figure, file)


def plot_plane(params, key, counts, labels, file):
    """The places of held-out digits on the latent plane, what the plane decodes to, and samples."""
    figure, panels = axes(1, 3, size=(14, 4.8))
    mean, log_std = encode(params[0], counts / TRIALS)
    dots = panels[0].scatter(*mean.T, c=labels, cmap="tab10", vmin=-0.5, vmax=9.5, s=12)
    figure.colorbar(dots, ax=panels[0], label="digit", ticks=range(10))
    panels[0].set(xlabel="first latent number", ylabel="second latent number", aspect="equal")
    panels[0].set_title("Held-out digits on the plane", loc="left", fontsize=11)

    quantiles = ndtri((jnp.arange(14) + 0.5) / 14)  # equal shares of the prior
    plane = jnp.stack(jnp.meshgrid(quantiles, quantiles[::-1]), -1).reshape(-1, 2)
    ink = lambda z: np.asarray(1 / (1 + jnp.exp(-decode(params[1], z)))).reshape(-1, 8, 8)
    image(panels[1], tiles(ink(plane), columns=14), vmin=0, vmax=1)
    panels[1].set_title("What the plane decodes to (by quantiles)", loc="left", fontsize=11)

    key_z, key_x = random.split(key)
    drawn = decode(params[1], random.normal(key_z, (144, 2)))
    samples = random.binomial(key_x, TRIALS, 1 / (1 + jnp.exp(-drawn)))
    image(panels[2], tiles(np.asarray(samples).reshape(-1, 8, 8), columns=12), vmin=0, vmax=TRIALS)
    panels[2].set_title("Samples: drawn latent numbers, drawn ink", loc="left", fontsize=11)
    save(figure, file)


def main():
    """Train, report, draw; 0 when the goal is met."""
    args = arguments(__doc__, epochs=150)
    key_data, key_train, key_elbo, key_bound, key_plot = random.split(random.key(args.seed), 5)
    (counts, _), (held_out, labels) = load_data(key_data)
    params, history = train(args.epochs, key_train, counts, held_out)

    repeated = np.tile(held_out, (20, 1))  # twenty draws for each image
    value = float(evaluate(elbo, params, key_elbo, repeated))
    bound = float(evaluate(importance_bound, params, key_bound, held_out))
    alone = float(independent_pixels(counts, held_out))
    print(f"held-out ELBO {value:.1f} nats per image, independent pixels {alone:.1f}")
    print(f"held-out log-likelihood at least {bound:.1f} by 500 draws")
    plot_training(history, bound, alone, args.out / "vae_training.png")
    plot_plane(params, key_plot, held_out, labels, args.out / "vae_plane.png")
    return verdict("vae", value > GOAL, f"held-out ELBO above {GOAL:.0f} nats")


if __name__ == "__main__":
    sys.exit(main())
