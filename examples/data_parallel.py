"""Train the digit classifier on several devices at once: `pmap`, and `psum` of the gradients.

Every device has a copy of the parameters and its own share of each batch; all of them add up their
gradients and take the same step (data parallelism; Dean et al. 2012). The CPU stands in for the
devices: `num_cpu_devices` splits it. The bar: after each step the same loss and parameters as one
device that is given the whole batch, copies that stay equal to the bit, and digits read well.

usage: python examples/data_parallel.py [--devices 4] [--epochs 12] [--batch 64] [--rate 0.1]
       [--seed 0] [--out examples/out]
"""

import functools
import sys
import time

import numpy as np
from common import BLUE, GREY, ORANGE, arguments, axes, progress, save, verdict
from digits_data import split_digits

import weft
import weft.numpy as jnp
from weft import jit, lax, nn, pmap, random, value_and_grad
from weft.tree_util import tree_leaves, tree_map

LAYERS = (64, 128, 64, 10)
MOMENTUM = 0.9
HELD_OUT = 360
ACCURACY = 0.95
CLOSE = 1e-4  # how far loss and parameters may be from those of one device


def init_params(key):
    """One (weights, bias) pair for each layer."""
    weights = nn.initializers.he_normal()
    pairs = zip(random.split(key, len(LAYERS) - 1), LAYERS, LAYERS[1:], strict=False)
    return [(weights(k, (n, m)), jnp.zeros(m)) for k, n, m in pairs]


def predict(params, images):
    """Scores of the ten digits for images (batch, 64)."""
    *hidden, (weights, bias) = params
    x = images
    for w, b in hidden:
        x = nn.relu(x @ w + b)
    return x @ weights + bias


def loss(params, images, labels):
    """Mean cross-entropy."""
    log_p = nn.log_softmax(predict(params, images))
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))


accuracy = jit(lambda params, x, labels: jnp.mean(predict(params, x).argmax(axis=1) == labels))


def update(state, images, labels, rate, reduced):
    """One step of momentum: the new (params, velocity), and the loss before it.

    `reduced` makes the gradients of a share of the batch those of all of it.
    """
    params, velocity = state
    value, grads = value_and_grad(loss)(params, images, labels)
    value, grads = reduced((value, grads))
    velocity = tree_map(lambda v, g: MOMENTUM * v + g, velocity, grads)
    params = tree_map(lambda p, v: p - rate * v, params, velocity)
    return (params, velocity), value


def make_steps(rate, devices):
    """The step on many devices, and on one."""

    @functools.partial(pmap, axis_name="batch", devices=devices, donate_argnums=0)
    def on_many(state, images, labels):
        mean = lambda tree: tree_map(lambda x: lax.psum(x, "batch") / len(devices), tree)
        return update(state, images, labels, rate, mean)

    on_one = jit(lambda state, *batch: update(state, *batch, rate, lambda tree: tree))
    return on_many, on_one


def copies(tree, count):
    """A copy of everything for each device, along a new first axis."""
    return tree_map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), tree)


def shares(batch, count):
    """The examples of a batch dealt out to the devices: (device, example, ...)."""
    return [x.reshape(count, -1, *x.shape[1:]) for x in batch]


def distances(many, one):
    """How far the devices' copies are from one another, and the first of them from `one`."""
    apart = off = 0.0
    for all_copies, wanted in zip(tree_leaves(many), tree_leaves(one), strict=True):
        first, *others = np.asarray(all_copies)
        apart = max([apart, *(np.abs(other - first).max() for other in others)])
        off = max(off, np.abs(first - wanted).max())
    return apart, off


def train(key, train_set, args, devices):
    """The parameters; by step, the loss on many devices, on one, and the two `distances`."""
    key_params, key_order = random.split(key)
    params = init_params(key_params)
    one = params, tree_map(jnp.zeros_like, params)
    many = copies(one, len(devices))
    on_many, on_one = make_steps(args.rate, devices)
    rows = []
    bar = progress(args.epochs, unit="epoch")
    for epoch in bar:
        order = np.asarray(random.permutation(random.fold_in(key_order, epoch), len(train_set[0])))
        for start in range(0, len(order) - args.batch + 1, args.batch):
            batch = [x[order[start : start + args.batch]] for x in train_set]
            many, values = on_many(many, *shares(batch, len(devices)))
            one, value = on_one(one, *batch)
            rows.append((values[0], value, *distances(many, one)))
        bar.set_postfix(loss=f"{float(value):.4f}", off=f"{rows[-1][3]:.1e}")
    return tree_map(lambda x: x[0], many[0]), np.array(rows, np.float64)


def load_data(key):
    """Images as rows of 64 floats in [0, 1] and their labels: training and held-out pairs."""
    return split_digits(lambda n: random.permutation(key, n), lambda counts: counts / 16, HELD_OUT)


def draw(rows, devices, path):
    """The losses over each other, and what separates the two runs."""
    figure, (left, right) = axes(1, 2, size=(10, 3.8))
    steps = np.arange(1, len(rows) + 1)
    left.plot(steps, rows[:, 1], color=ORANGE, linewidth=3, alpha=0.6, label="one device")
    left.plot(steps, rows[:, 0], color=BLUE, linewidth=1, label=f"{devices} devices")
    left.set(xlabel="step", ylabel="cross-entropy (nats)", yscale="log", title="Loss of each batch")
    left.legend(frameon=False)
    smallest = np.finfo(np.float32).eps / 4
    for values, color, label in (
        (rows[:, 3], BLUE, "parameters"),
        (np.abs(rows[:, 0] - rows[:, 1]), ORANGE, "loss"),
    ):
        right.plot(steps, np.maximum(values, smallest), color=color, linewidth=1.2, label=label)
    right.axhline(CLOSE, color=GREY, linewidth=1, linestyle="--")
    right.annotate("bar", (1, CLOSE), xycoords=("axes fraction", "data"), xytext=(0, 3),
                   textcoords="offset points", ha="right", color=GREY, fontsize=9)  # fmt: skip
    right.set(xlabel="step", ylabel="greatest difference", yscale="log",
              title=f"{devices} devices against one")  # fmt: skip
    right.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 0.94))
    save(figure, path)


def main():
    """Train on many devices and on one, compare, draw; 0 when they agree and read the digits."""
    args = arguments(__doc__, devices=4, epochs=12, batch=64, rate=0.1)
    if args.batch % args.devices:
        sys.exit(f"--batch must be a multiple of --devices; got {args.batch}, {args.devices}")
    weft.config.update("num_cpu_devices", args.devices)
    devices = weft.devices("cpu")
    key_data, key_train = random.split(random.key(args.seed))
    train_set, held_out = load_data(key_data)
    print(f"{len(devices)} devices, each with {args.batch // args.devices} digits of every batch")

    start = time.perf_counter()
    params, rows = train(key_train, train_set, args, devices)
    print(f"trained in {time.perf_counter() - start:.1f} s, compiling and one device included")
    found = float(accuracy(params, *held_out))
    loss_off, (apart, off) = np.abs(rows[:, 0] - rows[:, 1]).max(), rows[:, 2:].max(axis=0)
    print(f"held-out accuracy {found:.1%}")
    print(f"against one device: loss within {loss_off:.1e}, parameters within {off:.1e}")
    print(f"between the devices' copies: {apart:g}")
    draw(rows, args.devices, args.out / "data_parallel.png")
    reached = found > ACCURACY and apart == 0 and max(loss_off, off) < CLOSE
    bar = f"as one device to {CLOSE:g}, equal copies, accuracy above {ACCURACY:.0%}"
    return verdict("data_parallel", reached, bar)


if __name__ == "__main__":
    sys.exit(main())
