"""Train a small network on scikit-learn's handwritten digits, and draw what it learned.

The network is written for one image; `vmap` runs it on many, `value_and_grad` differentiates it
and `jit` compiles the whole training step. Leaves two pictures and exits with status 1 when the
accuracy on held-out digits is 95% or less.

usage: python examples/digits.py [--epochs 30] [--seed 0] [--out examples/out]
"""

import sys
import time

import matplotlib.pyplot as plt
import numpy as np
from common import BLUE, GREY, ORANGE, RED, arguments, axes, image, progress, save, verdict
from digits_data import split_digits

import weft.numpy as jnp
from weft import jit, value_and_grad, vmap
from weft.tree_util import tree_map

LAYERS = (64, 128, 64, 10)
BATCH = 64
HELD_OUT = 360
RATE, DECAY_MEAN, DECAY_SQUARE, EPSILON = 2e-3, 0.9, 0.99, 1e-8
GOAL = 0.95


def init_params(rng):
    """One (weights, bias) pair a layer, scaled so that a signal keeps its size (He et al. 2015)."""
    return [
        ((rng.standard_normal((n, m)) * np.sqrt(2 / n)).astype(np.float32), np.zeros(m, np.float32))
        for n, m in zip(LAYERS, LAYERS[1:], strict=False)
    ]


def log_probabilities(params, pixels):
    """Log-probability of each of the ten digits, for one image of 64 pixels."""
    *hidden, (weights, bias) = params
    x = pixels
    for w, b in hidden:
        x = jnp.maximum(x @ w + b, 0)
    logits = x @ weights + bias
    logits = logits - jnp.max(logits)  # so that exp cannot overflow
    return logits - jnp.log(jnp.sum(jnp.exp(logits)))


predict = jit(vmap(log_probabilities, in_axes=(None, 0)))


def loss(params, images, labels):
    """Mean negative log-probability of the right digit."""
    one = vmap(lambda pixels, label: -log_probabilities(params, pixels)[label])
    return jnp.mean(one(images, labels))


@jit
def train_step(state, images, labels):
    """One step of Adam (Kingma & Ba 2015, algorithm 1): the new state, and the loss before it."""
    params, mean, square, step = state
    value, grads = value_and_grad(loss)(params, images, labels)
    step = step + 1
    mean = tree_map(lambda m, g: DECAY_MEAN * m + (1 - DECAY_MEAN) * g, mean, grads)
    square = tree_map(lambda s, g: DECAY_SQUARE * s + (1 - DECAY_SQUARE) * g * g, square, grads)
    fix_mean, fix_square = 1 - DECAY_MEAN**step, 1 - DECAY_SQUARE**step
    params = tree_map(
        lambda p, m, s: p - RATE * (m / fix_mean) / (jnp.sqrt(s / fix_square) + EPSILON),
        params,
        mean,
        square,
    )
    return (params, mean, square, step), value


def load_data(rng):
    """Images as rows of 64 floats in [0, 1] and their labels: training and held-out pairs."""
    return split_digits(rng.permutation, lambda counts: counts / 16, HELD_OUT)


def evaluate(params, images, labels):
    """Loss, accuracy and the log-probabilities they come from, as NumPy values."""
    log_p = np.asarray(predict(params, images))
    right = log_p[np.arange(len(labels)), labels]
    return -right.mean(), (log_p.argmax(axis=1) == labels).mean(), log_p


def train(epochs, rng, train_set, held_out):
    """Parameters after `epochs` passes, and for each pass (loss, accuracy) of both sets."""
    images, labels = train_set
    params = init_params(rng)
    zeros = tree_map(np.zeros_like, params)
    state = (params, zeros, zeros, 0)
    history = []
    bar = progress(epochs, unit="epoch")
    for _ in bar:
        order = rng.permutation(len(labels))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            state, _ = train_step(state, images[batch], labels[batch])
        train_figures = evaluate(state[0], images, labels)[:2]
        held_figures = evaluate(state[0], *held_out)[:2]
        history.append((*train_figures, *held_figures))
        shown = {"loss": f"{train_figures[0]:.4f}", "held_out": f"{held_figures[1]:.1%}"}
        bar.set_postfix(shown, refresh=False)
    return state[0], np.array(history)


def plot_history(history, path):
    """Loss on a log scale beside accuracy, training against held-out, by epoch."""
    epochs = np.arange(1, len(history) + 1)
    figure, (left, right) = axes(1, 2)
    for ax, title, train_values, held_values in (
        (left, "Loss (mean negative log-likelihood)", history[:, 0], history[:, 2]),
        (right, "Accuracy (%)", 100 * history[:, 1], 100 * history[:, 3]),
    ):
        style = {"linewidth": 2, "marker": "o", "markersize": 3}
        ax.plot(epochs, train_values, color=BLUE, label="training", **style)
        ax.plot(epochs, held_values, color=ORANGE, label="held-out", **style)
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_xlabel("epoch")
        ax.xaxis.get_major_locator().set_params(integer=True)
    left.set_yscale("log")
    left.legend(frameon=False)
    right.axhline(100 * GOAL, color=GREY, linewidth=1, linestyle="--")
    right.annotate(
        f"goal {GOAL:.0%}",
        (1, 100 * GOAL),
        xycoords=("axes fraction", "data"),
        xytext=(0, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        color=GREY,
        fontsize=9,
    )
    right.annotate(
        f"{100 * history[-1, 3]:.1f}",
        (epochs[-1], 100 * history[-1, 3]),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        color=ORANGE,
        fontweight="bold",
    )
    save(figure, path)


def plot_predictions(images, labels, log_p, path, columns=10):
    """Two rows of held-out digits as they come, and one of those found hardest."""
    probability = np.exp(log_p)
    guess = log_p.argmax(axis=1)
    hardest = np.argsort(probability[np.arange(len(labels)), labels])
    rows = (
        ("Held-out digits, and what the network reads", np.arange(columns)),
        (None, np.arange(columns, 2 * columns)),
        ("The ones it finds hardest", hardest[:columns]),
    )
    figure = plt.figure(figsize=(10, 5), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
    panels = figure.subfigures(len(rows), 1, height_ratios=[1.18, 1, 1.18])
    for panel, (title, picks) in zip(panels, rows, strict=True):
        if title:
            panel.suptitle(title, x=0.01, ha="left", fontsize=11)
        for ax, i in zip(panel.subplots(1, columns), picks, strict=True):
            image(ax, images[i].reshape(8, 8), vmin=0, vmax=1)
            good = guess[i] == labels[i]
            text = f"{guess[i]}" if good else f"{guess[i]} (is {labels[i]})"
            ax.set_xlabel(
                f"{text}\n{probability[i, guess[i]]:.0%}", color=BLUE if good else RED, fontsize=9
            )
    save(figure, path)


def main():
    """Train, report, draw; 0 when the goal is met."""
    args = arguments(__doc__, epochs=30)
    rng = np.random.default_rng(args.seed)
    train_set, held_out = load_data(rng)
    print(f"{len(train_set[1])} digits to train on, {len(held_out[1])} held out")
    start = time.perf_counter()
    params, history = train(args.epochs, rng, train_set, held_out)
    seconds = time.perf_counter() - start

    _, accuracy, log_p = evaluate(params, *held_out)
    wrong = int((log_p.argmax(axis=1) != held_out[1]).sum())
    print(f"trained in {seconds:.1f} s, compiling included")
    print(f"held-out accuracy {accuracy:.2%} ({wrong} of {HELD_OUT} wrong)")

    plot_history(history, args.out / "training.png")
    plot_predictions(*held_out, log_p, args.out / "predictions.png")
    return verdict("digits", accuracy > GOAL, f"held-out accuracy above {GOAL:.0%}")


if __name__ == "__main__":
    sys.exit(main())
