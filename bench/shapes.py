"""Products and convolutions by shape, in each of the ways that XLA has of its own, as a table.

usage: shapes.py [--only SUBSTRING ...] [--seconds SECONDS] [--out FILE]
Ways: `default` as weft lowers it; `eigen`, by Eigen in place of YNNPACK; `onednn`, by oneDNN where
jaxlib has it; `columns`, the left operand stored by columns, or of a convolution its windows copied
(im2col) and multiplied. Ways alternate; a figure is the least time of a call, and the least of
CPU time, which also shows a gain where other work disturbs the clock.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np

import weft
import weft.numpy as jnp
from weft import lax

FUSION = "xla_cpu_experimental_{}_fusion_type"
OPTIONS = {
    "default": {},
    "eigen": {FUSION.format("ynn"): "LIBRARY_FUSION_TYPE_REDUCE"},
    "onednn": {
        FUSION.format("ynn"): "LIBRARY_FUSION_TYPE_REDUCE",
        FUSION.format("onednn"): "LIBRARY_FUSION_TYPE_DOT",
    },
    "columns": {},
}
LAYOUT = ("NHWC", "HWIO", "NHWC")


def multiply(x, y):
    """Stacks of matrices."""
    return x @ y


def multiply_columns(x, y):
    """The same, x stored by columns."""
    return x.mT @ y


def convolve(stride):
    """A convolution of images, and the same as a product of copied windows."""

    def plain(x, w):
        return lax.conv_general_dilated(x, w, (stride,) * 2, "SAME", dimension_numbers=LAYOUT)

    def windows(x, w):
        at = lax.conv_general_dilated_patches(
            x, w.shape[:2], (stride,) * 2, "SAME", dimension_numbers=LAYOUT
        )
        return at @ w.transpose(2, 0, 1, 3).reshape(-1, w.shape[-1])

    return plain, windows


def cases():
    """name -> (function, the function of the way `columns`, its operands' shapes)."""
    found = {}
    for m, k, n in [
        *((n,) * 3 for n in (16, 64, 128, 256, 512, 1024)),
        (128, 784, 512),
        (8, 64, 64),
    ]:
        found[f"dot {m}x{k}x{n}"] = multiply, multiply_columns, (m, k), (k, n)
    stacks = [(1000, 4, 4, 4), (1000, 8, 8, 8), (256, 32, 32, 32), (64, 128, 128, 128)]
    for b, m, k, n in [*stacks, (16, 256, 256, 256), (64, 128, 64, 128), (64, 128, 128, 64)]:
        found[f"dots {b} of {m}x{k}x{n}"] = multiply, multiply_columns, (b, m, k), (b, k, n)
    images = [(16, 56, 32, 3, 32, 1), (4, 14, 256, 3, 256, 1), (32, 28, 1, 3, 32, 1)]
    for b, size, c, window, o, stride in [*images, (4, 112, 3, 7, 64, 2), (16, 28, 64, 1, 128, 1)]:
        name = f"conv {b}x{size}x{size}x{c} by {window}x{window}x{o}, stride {stride}"
        found[name] = *convolve(stride), (b, size, size, c), (window, window, c, o)
    return found


def compile_ways(f, by_columns, shapes):
    """way -> (the compiled function, its operands)."""
    rng, ways = np.random.RandomState(0), {}
    x, y = (jnp.asarray(rng.randn(*s).astype(np.float32)) for s in shapes)
    for way, options in OPTIONS.items():
        turned = way == "columns" and f is multiply
        args = (x.mT.copy() if turned else x), y
        fun = by_columns if way == "columns" else f
        ways[way] = weft.jit(fun).lower(*args).compile(compiler_options=options), args
    return ways


def time_ways(ways, seconds):
    """way -> the least (time, CPU time) of a call, in microseconds."""
    best = {way: (float("inf"),) * 2 for way in ways}
    for fun, args in ways.values():
        fun(*args).block_until_ready()
    end = time.perf_counter() + seconds
    for way in itertools.cycle(ways):
        fun, args = ways[way]
        cpu, start = time.process_time(), time.perf_counter()
        fun(*args).block_until_ready()
        took = time.perf_counter() - start, time.process_time() - cpu
        best[way] = tuple(min(a, 1e6 * b) for a, b in zip(best[way], took, strict=True))
        if time.perf_counter() > end:
            return best


def main():
    """Print the table, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", nargs="*", default=[""], help="cases whose name contains any")
    parser.add_argument("--seconds", type=float, default=1.0, help="to spend on a case")
    parser.add_argument("--out", type=Path, help="file to write the table to")
    args = parser.parse_args()
    lines = [f"| us, of CPU | {' | '.join(OPTIONS)} |", "| --- |" + " ---: |" * len(OPTIONS)]
    print("\n".join(lines))
    for name, (f, by_columns, *shapes) in cases().items():
        if any(part in name for part in args.only):
            best = time_ways(compile_ways(f, by_columns, shapes), args.seconds)
            cells = " | ".join(f"{wall:.0f}, {cpu:.0f}" for wall, cpu in best.values())
            lines.append(f"| {name} | {cells} |")
            print(lines[-1], flush=True)
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
