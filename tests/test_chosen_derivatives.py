"""Derivatives of functions that choose elements, where XLA may round the elements in two ways.

XLA computes an operand again in each loop that reads it, and contracts products and sums by what
else the loop computes. A rule that compares an operand with a stored result may then find it
nowhere. Compiled derivatives are compared with finite differences.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax, ops

ROWS, COLUMNS, STEPS = 17, 33, 3
GROUPS = np.arange(ROWS) * 5 % 7

# What the elements are computed by.
OPERANDS = {
    "sum": lambda a, b, c: a * b + c,
    "difference": lambda a, b, c: a * b - c * (a + 1),
    "shared": lambda a, b, c: a * b + 0.5 * jnp.sin(a * b) - c * a,
    "outer": lambda a, b, c: 0.75 * a - 0.125 * jnp.cos(b[:, 3:4]) * c[2] * b[5],
}

# What chooses among them.
CHOICES = {
    "max": lambda x, y: jnp.max(x, 1),
    "min": lambda x, y: jnp.min(x, 0) * y[0],
    "nanmax": lambda x, y: jnp.nanmax(x * y, (0, 1)),
    "ptp": lambda x, y: jnp.ptp(x * y, 1) * y[:, 0],
    "maximum": lambda x, y: jnp.maximum(x, y * x + 0.1),
    "minimum": lambda x, y: jnp.minimum(x, x[::-1]) * y,
    "clip": lambda x, y: jnp.clip(x, y - 0.1, y + 0.2),
    "cummax": lambda x, y: lax.cummax(x, axis=1) * y,
    "cummin": lambda x, y: lax.cummin(x * y, axis=0, reverse=True),
    "scatter_max": lambda x, y: x.at[:, 4].max((x * y)[:, 7]),
    "scatter_min": lambda x, y: x.at[GROUPS].min(x * y),
    "segment_max": lambda x, y: ops.segment_max(x * y, GROUPS, 7),
    "pool": lambda x, y: lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (1, 1), "VALID"),
    "sort": lambda x, y: jnp.sort(x, 1) * y,
    "top_k": lambda x, y: lax.top_k(x * y, 3)[0],
    "median": lambda x, y: jnp.median(x, 1),
    "taken": lambda x, y: jnp.take_along_axis(x * y, jnp.argmax(x, 1)[:, None], 1),
    "norm": lambda x, y: jnp.linalg.norm(x, jnp.inf, 1) * y[:, 1],
}


def draw(seed):
    rng = np.random.RandomState(seed)
    return [rng.uniform(-1, 1, (ROWS, COLUMNS)) for _ in range(3)]


def repeat(choose, make):
    """Choose among elements again and again, in a loop that carries what they are computed from."""

    def step(_, carry):
        a, b, c = carry
        x = make(a, b, c)
        return jnp.tanh(b + 0.1 * jnp.sum(choose(x, c))), c, jnp.sin(2 * x)

    return lambda *args: lax.fori_loop(0, STEPS, step, args)[2]


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("make", OPERANDS)
@pytest.mark.parametrize("choose", CHOICES)
@pytest.mark.parametrize("loops", [False, True], ids=["alone", "loop"])
def test_compiled_derivatives_are_as_differences(choose, make, loops):
    choose, make = CHOICES[choose], OPERANDS[make]
    fun = lambda a, b, c: choose(make(a, b, c), c + b)
    fun = repeat(choose, make) if loops else fun
    args, ts, step = draw(0), draw(1), 1e-7
    with weft.enable_x64():
        run = weft.jit(fun)
        ahead = run(*[x + step * t for x, t in zip(args, ts, strict=True)])
        behind = run(*[x - step * t for x, t in zip(args, ts, strict=True)])
        slope = (np.asarray(ahead) - behind) / (2 * step)
        _, dot = weft.jit(lambda xs, ts: weft.jvp(fun, xs, ts))(tuple(args), tuple(ts))
        near = dict(rtol=1e-5, atol=1e-5 * np.max(np.abs(slope)) + 1e-7)
        np.testing.assert_allclose(dot, slope, **near)
        ct = np.cos(np.arange(slope.size)).reshape(slope.shape)
        loss = lambda *args: jnp.vdot(fun(*args), ct)
        grads = weft.jit(weft.value_and_grad(loss, (0, 1, 2)))(*args)[1]
        pulled = sum(np.vdot(g, t) for g, t in zip(grads, ts, strict=True))
        np.testing.assert_allclose(pulled, np.vdot(slope, ct), **near)
