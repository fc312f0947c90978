"""Draw the picture of docs/memory-limit.md: memory of a program with a limit and without one.

python tools/make_memory.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

import weft
import weft.numpy as jnp
from weft import ShapeDtypeStruct

DOCS = Path(__file__).resolve().parent.parent / "docs"
POINTS = [512, 1024, 2048, 4096, 8192, 16384, 32768]
LIMIT = 8 * 10**6
INK, PLAIN, LIMITED = "#6e7781", "#e15759", "#4e79a7"


def field(x, v):
    """Return the field of charges at points in space: the program of the page."""
    d = x[:, None] - x
    return jnp.exp(-(d**2).sum(-1)) @ v


def measure(count):
    """Return the bytes that XLA uses for a number of points: without a limit, and with one."""
    args = ShapeDtypeStruct((count, 3), jnp.float32), ShapeDtypeStruct((count,), jnp.float32)
    found = weft.jit(field).lower(*args).compile().memory_analysis()
    plain = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
    return plain, weft.jit(field, memory=LIMIT).plan(*args).used


def draw():
    """Write the picture."""
    rows = [measure(n) for n in POINTS]
    figure, axes = plt.subplots(figsize=(7, 3.4), dpi=110)
    for k, (name, color) in enumerate((("jit(f)", PLAIN), ('jit(f, memory="8MB")', LIMITED))):
        axes.loglog(POINTS, [row[k] / 1e6 for row in rows], "o-", color=color, label=name, lw=2)
    axes.axhline(LIMIT / 1e6, color=INK, ls="--", lw=1)
    axes.text(POINTS[0], LIMIT / 1e6 * 1.15, "limit", color=INK)
    axes.set_xticks(POINTS, [f"{n:,}" for n in POINTS])
    axes.minorticks_off()
    axes.set_xlabel("points")
    axes.set_ylabel("MB: arguments, results, temporaries")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.02, 0.95))
    figure.tight_layout()
    figure.savefig(DOCS / "memory-limit.png")
    for n, (plain, limited) in zip(POINTS, rows, strict=True):
        print(f"{n:6} points  {plain / 1e6:9.2f} MB  {limited / 1e6:6.2f} MB")


if __name__ == "__main__":
    draw()
