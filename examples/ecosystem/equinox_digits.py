"""Train an equinox network on digits with optax: python -m weft equinox_digits.py."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

BAR = 0.95  # of the held-out images must be read rightly


def measure_loss(model, images, labels):
    logits = jax.vmap(model)(images)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def main(epochs=10, batch=64):
    digits = load_digits()
    images = jnp.asarray(digits.data / 16, jnp.float32)
    labels = jnp.asarray(digits.target, jnp.int32)
    order = np.random.default_rng(0).permutation(len(labels))
    held_out, rest = order[:360], order[360:]

    model = eqx.nn.MLP(64, 10, width_size=128, depth=2, key=jax.random.key(0))
    optimizer = optax.adamw(optax.cosine_decay_schedule(3e-3, epochs * (len(rest) // batch)))
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def train(model, state, images, labels):
        loss, grads = eqx.filter_value_and_grad(measure_loss)(model, images, labels)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), state, loss

    for epoch in range(epochs):
        order = np.asarray(jax.random.permutation(jax.random.key(epoch), rest))
        for start in range(0, len(order) - batch + 1, batch):
            rows = order[start : start + batch]
            model, state, loss = train(model, state, images[rows], labels[rows])
        print(f"epoch {epoch}: loss {loss:.3f}")
    guesses = jax.vmap(model)(images[held_out]).argmax(-1)
    accuracy = float((guesses == labels[held_out]).mean())
    print(f"held-out accuracy {accuracy:.1%} (bar {BAR:.0%})")
    return accuracy >= BAR


if __name__ == "__main__":
    sys.exit(not main())
