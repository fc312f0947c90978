"""Classify digits with the two libraries that come with weft: stax and optimizers.

A network is a pair of functions, an optimizer is three, and a jitted `update` of a few lines joins
them; shown on scikit-learn's 8 x 8 digits, in the shape of the classic MNIST program. Polyak's
momentum (1964). Exits with status 1 when the accuracy on held-out digits is 96% or less.

usage: python examples/mnist_stax.py [--epochs 30] [--seed 0] [--out examples/out]
"""

import itertools
import sys
import time

import numpy as np
from common import BLUE, GREY, ORANGE, arguments, axes, image, progress, save, tiles, verdict
from digits_data import split_digits

import weft.numpy as jnp
from weft import grad, jit, nn, random
from weft.experimental import optimizers, stax
from weft.experimental.stax import Dense, LogSoftmax, Relu

HELD_OUT = 360
BATCH = 64
STEP_SIZE, MASS = 0.03, 0.9
GOAL = 0.96

init_random_params, predict = stax.serial(
    Dense(256), Relu, Dense(256), Relu, Dense(10), LogSoftmax
)  # fmt: skip
opt_init, opt_update, get_params = optimizers.momentum(STEP_SIZE, MASS)


def loss(params, batch):
    """Mean negative log-probability of the right digit; targets are one-hot."""
    inputs, targets = batch
    return -jnp.mean(jnp.sum(predict(params, inputs) * targets, axis=1))


@jit
def accuracy(params, batch):
    """The share of images whose most probable digit is the right one."""
    inputs, targets = batch
    return jnp.mean(predict(params, inputs).argmax(axis=1) == targets.argmax(axis=1))


@jit
def update(i, opt_state, batch):
    """Step i of the optimizer: forward pass, gradient and momentum in one compiled program."""
    params = get_params(opt_state)
    return opt_update(i, grad(loss)(params, batch), opt_state)


def load_data(key):
    """Images as rows of 64 floats in [0, 1], targets one-hot: a training and a held-out pair."""
    shuffle = lambda n: random.permutation(key, n)
    pairs = split_digits(shuffle, lambda counts: counts / 16, HELD_OUT)
    return [(inputs, np.asarray(nn.one_hot(labels, 10))) for inputs, labels in pairs]


def data_stream(key, inputs, targets):
    """Batches of one size without end: every image once, then again in another order."""
    while True:
        key, subkey = random.split(key)
        order = np.asarray(random.permutation(subkey, len(inputs)))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            yield inputs[batch], targets[batch]


def train(epochs, key, train_set, held_out):
    """Parameters after `epochs` passes; for each pass loss and accuracy of both sets; seconds."""
    key_params, key_stream = random.split(key)
    _, init_params = init_random_params(key_params, (-1, 64))
    opt_state = opt_init(init_params)
    steps, batches = itertools.count(), data_stream(key_stream, *train_set)
    evaluate = jit(loss)
    history, seconds = [], []
    bar = progress(epochs, unit="epoch")
    for _ in bar:
        start = time.perf_counter()
        for _ in range(len(train_set[0]) // BATCH):
            opt_state = update(next(steps), opt_state, next(batches))
        params = get_params(opt_state)
        history.append([f(params, s) for s in (train_set, held_out) for f in (evaluate, accuracy)])
        seconds.append(time.perf_counter() - start)
        bar.set_postfix(held_out=f"{history[-1][3]:.1%}", refresh=False)
    return params, np.array(history, np.float32), seconds


def plot(params, history, file):
    """Loss and error by epoch, and the pixels that eighteen units of the first layer look for."""
    figure, panels = axes(1, 3, size=(13, 3.8))
    epochs = np.arange(1, len(history) + 1)
    for ax, title, columns in (
        (panels[0], "Loss (mean negative log-likelihood)", (history[:, 0], history[:, 2])),
        (panels[1], "Error (%)", (100 - 100 * history[:, 1], 100 - 100 * history[:, 3])),
    ):
        for values, color, label in zip(columns, (BLUE, ORANGE), ("training", "held-out")):
            ax.plot(epochs, values, color=color, label=label, linewidth=2, marker="o", markersize=3)
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_xlabel("epoch")
        ax.xaxis.get_major_locator().set_params(integer=True)
    panels[0].set_yscale("log")
    panels[0].legend(frameon=False)
    panels[1].axhline(100 - 100 * GOAL, color=GREY, linewidth=1, linestyle="--")
    panels[1].annotate("bar", (epochs[-1], 100 - 100 * GOAL), color=GREY, ha="right", va="bottom")

    weights = np.asarray(params[0][0])  # (pixels, units)
    strongest = np.argsort(-np.linalg.norm(weights, axis=0))[:18]
    limit = np.abs(weights[:, strongest]).max()
    shown = tiles(weights[:, strongest].T.reshape(-1, 8, 8), columns=6)
    image(panels[2], shown, cmap="RdBu_r", vmin=-limit, vmax=limit)
    panels[2].set_title("First-layer weights: blue < 0 < red", loc="left", fontsize=11)
    save(figure, file)


def main():
    """Train, report, draw; 0 when the goal is met."""
    args = arguments(__doc__, epochs=30)
    key_data, key_train = random.split(random.key(args.seed))
    train_set, held_out = load_data(key_data)
    print(f"{len(train_set[0])} digits to train on, {len(held_out[0])} held out")

    params, history, seconds = train(args.epochs, key_train, train_set, held_out)
    print(f"first epoch {seconds[0]:.2f} s with compiling, the last {seconds[-1]:.2f} s")
    print(f"accuracy: training {history[-1, 1]:.2%}, held-out {history[-1, 3]:.2%}")
    plot(params, history, args.out / "mnist_stax.png")
    return verdict("mnist_stax", history[-1, 3] > GOAL, f"held-out accuracy above {GOAL:.0%}")


if __name__ == "__main__":
    sys.exit(main())
