"""A recurrent layer with gates over a batch of sequences (Hochreiter and Schmidhuber, 1997)."""

import numpy as np

sizes = {"small": (4, 12, 16), "medium": (32, 50, 64), "large": (64, 100, 256)}
gradient = 0


def make(size, rng):
    batch, length, width = sizes[size]
    params = [(rng.randn(width, 4 * width) / width**0.5).astype("f") for _ in range(2)]
    return (*params, np.zeros(4 * width, "f")), rng.randn(length, batch, width).astype("f")


def advance(xp, params, h, c, x):
    recurrent, inward, bias = params
    width = h.shape[-1]
    gates = h @ recurrent + x @ inward + bias
    i, f, o = (
        1 / (1 + xp.exp(-gates[:, :width])),
        1 / (1 + xp.exp(-gates[:, width : 2 * width])),
        1 / (1 + xp.exp(-gates[:, 2 * width : 3 * width])),
    )
    c = f * c + i * xp.tanh(gates[:, 3 * width :])
    return o * xp.tanh(c), c


def numpy_form(params, xs):
    h = c = np.zeros_like(xs[0])
    total = 0.0
    for x in xs:
        h, c = advance(np, params, h, c, x)
        total += (h**2).mean()
    return total


def jax_form(jax, params, xs):
    jnp = jax.numpy

    def step(state, x):
        h, c = advance(jnp, params, *state, x)
        return (h, c), (h**2).mean()

    zero = jnp.zeros_like(xs[0])
    return jax.lax.scan(step, (zero, zero), xs)[1].sum()


def torch_form(torch, params, xs):
    h = c = torch.zeros_like(xs[0])
    total = 0.0
    for x in xs:
        h, c = advance(torch, params, h, c, x)
        total = total + (h**2).mean()
    return total
