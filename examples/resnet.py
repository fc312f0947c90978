"""A residual network of 56 layers reads digits, and the same network without its shortcuts.

He et al. (2016) found that a plain network gets worse with depth, because it is hard to train, and
that shortcuts around every two layers mend this. Both networks have 54 convolutions with batch
normalization in three stages, as theirs for CIFAR-10; the first and the last layer are the same.
The nine blocks of a stage have parameters of equal shapes, so they are one body of a `scan`,
compiled once. Exits with status 1 if the residual network reads 95% or less of the held-out digits,
or if the plain one ends with a lower training loss.

usage: python examples/resnet.py [--epochs 20] [--seed 0] [--out examples/out]
"""

import sys

import numpy as np
from common import BLUE, ORANGE, arguments, axes, progress, save, verdict
from digits_data import split_digits

import weft.numpy as jnp
from weft import jit, lax, nn, random, value_and_grad
from weft.experimental import optimizers

HELD_OUT = 360
BATCH = 64
BLOCKS, WIDTHS = 9, (8, 16, 32)
GOAL = 0.95


def init_conv(key, inputs, outputs, *stacked):
    """Weights (*stacked, 3, 3, inputs, outputs), and the scale and shift of a normalization."""
    w = random.normal(key, (*stacked, 3, 3, inputs, outputs)) * jnp.sqrt(2 / (9 * inputs))
    return w, jnp.ones((*stacked, outputs)), jnp.zeros((*stacked, outputs))


def init_params(key):
    """The first layer; for each stage its entry and its stacked blocks; the last layer."""
    key_first, key_last, *keys = random.split(key, 2 + 2 * len(WIDTHS))
    stages, inputs = [], WIDTHS[0]
    for i, width in enumerate(WIDTHS):
        key_entry, key_block = random.split(keys[2 * i])
        entry = init_conv(key_entry, inputs, width)
        pair = [init_conv(k, width, width, BLOCKS) for k in random.split(key_block)]
        stages.append((entry, pair))
        inputs = width
    last = random.normal(key_last, (inputs, 10)) / jnp.sqrt(inputs)
    return init_conv(key_first, 1, WIDTHS[0]), stages, (last, jnp.zeros(10))


def convolve(params, x, stride=1):
    """A convolution (batch, rows, columns, channels), normalized over the batch."""
    w, scale, shift = params
    y = lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    mean, variance = y.mean((0, 1, 2)), y.var((0, 1, 2))
    return scale * (y - mean) * lax.rsqrt(variance + 1e-5) + shift


def apply(params, pictures, shortcuts):
    """Log-probabilities of ten digits for images (batch, 8, 8)."""
    first, stages, (w, b) = params

    def block(x, pair):
        y = convolve(pair[1], nn.relu(convolve(pair[0], x)))
        return nn.relu(x + y if shortcuts else y), None

    x = nn.relu(convolve(first, pictures[..., None]))
    for i, (entry, blocks) in enumerate(stages):
        x = nn.relu(convolve(entry, x, stride=1 if i == 0 else 2))
        x, _ = lax.scan(block, x, blocks)
    return nn.log_softmax(x.mean((1, 2)) @ w + b)


def loss(params, pictures, labels, shortcuts):
    """Mean negative log-probability of the right digit."""
    log_p = apply(params, pictures, shortcuts)
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))


def train(epochs, key, train_set, shortcuts):
    """Parameters after `epochs` passes, and the loss at every step."""
    pictures, labels = train_set
    batches = len(labels) // BATCH
    key_params, key = random.split(key)
    rates = optimizers.polynomial_decay(3e-3, epochs * batches, 1e-4, power=1.0)
    optimizer = optimizers.adam(rates)
    state, history = optimizer.init_fn(init_params(key_params)), []

    @jit
    def step(i, state, pictures, labels):
        params = optimizer.params_fn(state)
        value, slope = value_and_grad(loss)(params, pictures, labels, shortcuts)
        return optimizer.update_fn(i, slope, state), value

    for i in progress(epochs * batches, desc="residual" if shortcuts else "plain"):
        if i % batches == 0:
            key, key_order = random.split(key)
            order = np.asarray(random.permutation(key_order, len(labels)))
        batch = order[i % batches * BATCH :][:BATCH]
        state, value = step(i, state, pictures[batch], labels[batch])
        history.append(value)
    return optimizer.params_fn(state), np.asarray(history)


def plot(losses, accuracies, file):
    """The losses of both networks, and what they read right."""
    figure, (left, right) = axes(1, 2)
    for name, color in (("plain", ORANGE), ("residual", BLUE)):
        left.semilogy(losses[name], color=color, alpha=0.35, linewidth=0.8)
        smooth = np.convolve(losses[name], np.ones(15) / 15, "valid")
        left.semilogy(np.arange(14, len(smooth) + 14), smooth, color=color, label=name)
    left.set(xlabel="step", title="Training loss")
    left.legend()
    right.bar(list(accuracies), [100 * a for a in accuracies.values()], color=[ORANGE, BLUE])
    right.set(title="Held-out digits read right (%)", ylim=(0, 100))
    save(figure, file)


def main():
    """Train both networks, report, draw; 0 when the goal is met."""
    args = arguments(__doc__, epochs=20)
    key_data, key_train = random.split(random.key(args.seed))
    train_set, (pictures, labels) = split_digits(
        lambda n: random.permutation(key_data, n), lambda x: x.reshape(-1, 8, 8) / 16, HELD_OUT
    )
    losses, accuracies = {}, {}
    for name, shortcuts in (("plain", False), ("residual", True)):
        params, losses[name] = train(args.epochs, key_train, train_set, shortcuts)
        guesses = jit(apply, static_argnums=2)(params, pictures, shortcuts).argmax(1)
        accuracies[name] = float((guesses == labels).mean())
        end = losses[name][-20:].mean()
        print(f"{name}: training loss {end:.4f}, held-out accuracy {accuracies[name]:.1%}")
    plot(losses, accuracies, args.out / "resnet.png")
    better = losses["residual"][-20:].mean() < losses["plain"][-20:].mean()
    reached = accuracies["residual"] > GOAL and better
    return verdict("resnet", reached, f"accuracy above {GOAL:.0%}, a lower loss by shortcuts")


if __name__ == "__main__":
    sys.exit(main())
