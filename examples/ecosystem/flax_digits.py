"""Train a flax network on digits with optax: python -m weft flax_digits.py."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits

BAR = 0.95  # of the held-out images must be read rightly


class Network(nnx.Module):
    """A convolution and two dense layers, for 8 x 8 pixels."""

    def __init__(self, rngs: nnx.Rngs):
        self.conv = nnx.Conv(1, 16, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.hidden = nnx.Linear(16 * 4 * 4, 64, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.out = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.conv(x)))
        x = nnx.max_pool(x, (2, 2), (2, 2)).reshape(len(x), -1)
        return self.out(self.dropout(nnx.relu(self.hidden(x))))


def measure_loss(model, images, labels):
    return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()


@nnx.jit
def train(model, optimizer, images, labels):
    loss, grads = nnx.value_and_grad(measure_loss)(model, images, labels)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def measure_accuracy(model, images, labels):
    return (model(images).argmax(-1) == labels).mean()


def main(epochs=10, batch=64):
    digits = load_digits()
    images = jnp.asarray(digits.images[..., None] / 16, jnp.float32)
    labels = jnp.asarray(digits.target, jnp.int32)
    order = np.random.default_rng(0).permutation(len(labels))
    held_out, rest = order[:360], order[360:]

    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(3e-3), wrt=nnx.Param)
    for epoch in range(epochs):
        order = np.asarray(jax.random.permutation(jax.random.key(epoch), rest))
        for start in range(0, len(order) - batch + 1, batch):
            rows = order[start : start + batch]
            loss = train(model, optimizer, images[rows], labels[rows])
        print(f"epoch {epoch}: loss {loss:.3f}")
    model.eval()
    accuracy = float(measure_accuracy(model, images[held_out], labels[held_out]))
    print(f"held-out accuracy {accuracy:.1%} (bar {BAR:.0%})")
    return accuracy >= BAR


if __name__ == "__main__":
    sys.exit(not main())
