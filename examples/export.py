"""Train a network on scikit-learn's digits, export it, and use it in a process without its code.

The file holds the network for a batch of any size, and its derivative. exported.py, which knows
nothing of the network, is started in a process of its own: it classifies one image and all held-out
ones, and differentiates the score of each by its pixels. Draws what it found, and exits with status
1 when it is not right on more than 95% of the digits, or differs from the network trained here.

usage: python examples/export.py [--epochs 20] [--seed 0] [--out examples/out]
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
from common import arguments, axes, image, progress, save, verdict
from digits_data import split_digits

import weft
import weft.numpy as jnp
from weft import export, jit, nn, random, value_and_grad

HIDDEN, BATCH, HELD_OUT, RATE, GOAL = 128, 64, 360, 0.2, 0.95
FILE, PIXELS, ANSWERS = "digits.weft", "pixels.npy", "answers.npz"


def init_params(key):
    """Weights of two layers (He et al. 2015)."""
    first, second = random.split(key)
    return {
        "hidden": random.normal(first, (64, HIDDEN)) * np.sqrt(2 / 64),
        "bias": jnp.zeros(HIDDEN),
        "out": random.normal(second, (HIDDEN, 10)) * np.sqrt(2 / HIDDEN),
    }


def log_probabilities(params, pixels):
    """The log-probability of each digit for a batch of images, as rows of 64 pixels."""
    x = nn.relu(pixels @ params["hidden"] + params["bias"])
    return nn.log_softmax(x @ params["out"])


@jit
def train_step(params, pixels, labels):
    """One step of gradient descent."""

    def loss(params):
        picked = jnp.take_along_axis(log_probabilities(params, pixels), labels[:, None], 1)
        return -picked.mean()

    value, grads = value_and_grad(loss)(params)
    return weft.tree.map(lambda p, g: p - RATE * g, params, grads), value


def train(epochs, rng, pixels, labels):
    """Parameters after `epochs` passes."""
    params = init_params(random.key(int(rng.integers(1 << 30))))
    for _ in progress(epochs, unit="epoch"):
        order = rng.permutation(len(labels))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            params, _ = train_step(params, pixels[batch], labels[batch])
    return params


def export_network(params, path):
    """Write the trained network, for any number of images, with its derivative by the pixels."""
    network = jit(lambda pixels: log_probabilities(params, pixels))
    (batch,) = export.symbolic_shape("batch")
    exported = export.export(network)(weft.ShapeDtypeStruct((batch, 64), np.float32))
    path.write_bytes(exported.serialize(vjp_order=1))
    return exported


def plot_answers(pixels, answers, path):
    """Five digits, and which of their pixels speak for the answer."""
    figure, rows = axes(2, 5, size=(7.5, 3.4))
    for k in range(5):
        image(rows[0][k], pixels[k].reshape(8, 8), f"read as {answers['every'][k].argmax()}")
        image(rows[1][k], answers["speaks"][k].reshape(8, 8), "derivative", cmap="coolwarm")
    save(figure, path)


def main(args):
    """Train and export; start the other process; compare what it found."""
    rng = np.random.default_rng(args.seed)
    train_set, (pixels, labels) = split_digits(rng.permutation, lambda n: n / 16, HELD_OUT)
    params = train(args.epochs, rng, *train_set)
    exported = export_network(params, args.out / FILE)
    size = (args.out / FILE).stat().st_size
    print(f"exported {exported}\n{size:,} bytes, with the derivative")
    np.save(args.out / PIXELS, pixels)
    other = Path(__file__).with_name("exported.py")
    subprocess.run(
        [sys.executable, other, args.out / FILE, args.out / PIXELS, args.out / ANSWERS], check=True
    )
    with np.load(args.out / ANSWERS) as found:
        answers = dict(found)
    own = np.asarray(log_probabilities(params, pixels))
    apart = max(abs(answers["every"] - own).max(), abs(answers["one"] - own[:1]).max())
    right = (answers["every"].argmax(axis=1) == labels).mean()
    plot_answers(pixels, answers, args.out / "export.png")
    print(
        f"held-out accuracy {right:.1%} in the other process, {apart:.1e} from the trained network"
    )
    return verdict("export", right > GOAL and apart < 1e-4, f"{GOAL:.0%}, and 1e-4")


if __name__ == "__main__":
    sys.exit(main(arguments(__doc__, epochs=20)))
