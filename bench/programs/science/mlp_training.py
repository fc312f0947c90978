"""A network of two layers trained by gradient descent with momentum, all steps in one program.

Source: D. Rumelhart, G. Hinton and R. Williams, Nature 323 (1986). NumPy's gradient is by hand.
"""

import numpy as np

sizes = {"small": (32, 8, 16, 5), "medium": (256, 64, 128, 50), "large": (1024, 256, 512, 50)}

RATE, MOMENTUM = 0.1, 0.9


def make(size, rng):
    batch, width, hidden, steps = sizes[size]
    first = (rng.randn(width, hidden) / width**0.5).astype("f")
    last = (rng.randn(hidden, 1) / hidden**0.5).astype("f")
    x = rng.randn(batch, width).astype("f")
    return first, last, x, np.tanh(x.sum(1, keepdims=True)), steps


def numpy_form(first, last, x, y, steps):
    speeds = [np.zeros_like(first), np.zeros_like(last)]
    for _ in range(steps):
        hidden = np.tanh(x @ first)
        error = 2 * (hidden @ last - y) / len(x)
        slopes = x.T @ (error @ last.T * (1 - hidden**2)), hidden.T @ error
        speeds = [MOMENTUM * speed - RATE * slope for speed, slope in zip(speeds, slopes)]
        first, last = first + speeds[0], last + speeds[1]
    return first, last


def jax_form(jax, first, last, x, y, steps):
    jnp, tree_map = jax.numpy, jax.tree.map

    def loss(params):
        return ((jnp.tanh(x @ params[0]) @ params[1] - y) ** 2).mean()

    def step(_, state):
        params, speeds = state
        slopes = jax.grad(loss)(params)
        speeds = tree_map(lambda speed, slope: MOMENTUM * speed - RATE * slope, speeds, slopes)
        return tree_map(jnp.add, params, speeds), speeds

    params = first, last
    return jax.lax.fori_loop(0, steps, step, (params, tree_map(jnp.zeros_like, params)))[0]


def torch_form(torch, first, last, x, y, steps):
    params = [w.clone().requires_grad_() for w in (first, last)]
    optimizer = torch.optim.SGD(params, RATE, MOMENTUM)
    for _ in range(steps):
        optimizer.zero_grad()
        ((torch.tanh(x @ params[0]) @ params[1] - y) ** 2).mean().backward()
        optimizer.step()
    return tuple(w.detach() for w in params)
