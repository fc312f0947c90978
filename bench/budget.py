"""Savings and costs of `weft.checkpoint(f, budget=...)`, on compiled training steps of networks.

For each network and budget: temporary memory of the compiled gradient and its CPU seconds, both as
fractions of the values without a checkpoint, and the seconds of the choice. The blocks of each
network are checkpointed one by one, or all as one.

usage: python bench/budget.py [budget ...]
"""

import sys
import time

import numpy as np

import weft
import weft.numpy as jnp
from cases_jax import transformer_block
from weft import grad, jit, lax

REPEATS = 7
RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


class Namespaces:
    jnp, lax = jnp, lax


def make_transformer(layers=12, d=64):
    """The benchmark's blocks, and a batch of 16 sequences of 64."""
    shapes = {**dict.fromkeys("qkvo", (d, d)), "w1": (d, 4 * d), "w2": (4 * d, d)}
    params = [
        {name: floats(*shape) * 0.1 for name, shape in shapes.items()}
        | {"g": np.ones(d, np.float32), "b": np.zeros(d, np.float32)}
        for _ in range(layers)
    ]
    return [transformer_block(Namespaces)] * layers, params, floats(16, 64, d)


def resnet_block(params, x):
    """He et al. 2016, with the norms before the convolutions; over the batch, without averages."""

    def normal(x, scale):
        mean = x.mean((0, 1, 2))
        return scale * (x - mean) * lax.rsqrt(((x - mean) ** 2).mean((0, 1, 2)) + 1e-5)

    out = x
    for kernel, scale in zip(params["kernels"], params["scales"], strict=True):
        out = jnp.maximum(normal(out, scale), 0)
        out = lax.conv_general_dilated(
            out, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
    return x + out


def make_resnet(blocks=6, features=32):
    """Blocks of two convolutions, and 16 images of 16 by 16."""
    params = [
        {
            "kernels": [floats(3, 3, features, features) * 0.05 for _ in range(2)],
            "scales": [np.ones(features, np.float32) for _ in range(2)],
        }
        for _ in range(blocks)
    ]
    return [resnet_block] * blocks, params, floats(16, 16, 16, features)


def make_loss(blocks, budget=None, whole=False):
    """The mean square after the blocks, checkpointed each by itself or all as one."""
    if budget is not None and not whole:
        made = {f: weft.checkpoint(f, budget=budget) for f in blocks}
        blocks = [made[f] for f in blocks]

    def loss(params, x):
        for block, p in zip(blocks, params, strict=True):
            x = block(p, x)
        return (x**2).mean()

    return weft.checkpoint(loss, budget=budget) if whole and budget is not None else loss


def make_scanned(blocks, budget=None, whole=False):
    """The same with the blocks as one scan, over parameters that are stacked."""
    block = blocks[0]
    if budget is not None and not whole:
        block = weft.checkpoint(block, budget=budget, prevent_cse=False)

    def loss(params, x):
        return (lax.scan(lambda h, p: (block(p, h), None), x, params)[0] ** 2).mean()

    return weft.checkpoint(loss, budget=budget) if whole and budget is not None else loss


def stack_params(blocks, params, x):
    return blocks, weft.tree.map(lambda *leaves: np.stack(leaves), *params), x


def compile_step(loss, params, x):
    start = time.process_time()
    lowered = jit(grad(loss)).lower(params, x)
    front = time.process_time() - start
    step = lowered.compile()
    return step, step.memory_analysis().temp_size_in_bytes, front


def time_steps(steps, params, x):
    """The least CPU seconds of each, in turns, so that all meet the same machine."""
    least = [np.inf] * len(steps)
    for _ in range(REPEATS):
        for i, step in enumerate(steps):
            start = time.process_time()
            weft.block_until_ready(step(params, x))
            least[i] = min(least[i], time.process_time() - start)
    return least


def main(budgets):
    print("network              bytes    budget  memory    time  choice")
    for name, make, model in (
        ("transformer", make_loss, make_transformer),
        ("transformer scan", make_scanned, make_transformer),
        ("resnet", make_loss, make_resnet),
    ):
        blocks, params, x = model() if make is make_loss else stack_params(*model())
        plans = [("", None, False)]
        plans += [(" blocks", b, False) for b in budgets]
        plans += [(" whole", b, True) for b in budgets]
        made = [compile_step(make(blocks, b, whole), params, x) for _, b, whole in plans]
        seconds = time_steps([step for step, _, _ in made], params, x)
        for (label, b, _), (_, size, front), used in zip(plans, made, seconds, strict=True):
            print(
                f"{name + label:<24} {size:>10,} {b!s:>5} {size / made[0][1]:>7.2f} "
                f"{used / seconds[0]:>7.2f} {front - made[0][2]:>6.2f}s",
                flush=True,
            )


if __name__ == "__main__":
    main([float(b) if "." in b else int(b) for b in sys.argv[1:]] or [0.0, 0.25, 0.5, 0.75])
