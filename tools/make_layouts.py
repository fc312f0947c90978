"""Draw the pictures of docs/distributed.md: shardings of arrays on a mesh, and of a product.

python tools/make_layouts.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).resolve().parent.parent / "docs"
ROWS, COLUMNS = 4, 2  # of the mesh: "data" and "model"
COLORS = ["#4e79a7", "#a0cbe8", "#f28e2b", "#ffbe7d", "#59a14f", "#8cd17d", "#b6992d", "#f1ce63"]
INK, FAINT = "#24292f", "#6e7781"


def holders(split):
    """For each part of an array that is split so: its place and size in [0, 1], and the devices."""
    across, down = split
    parts = {}
    for device in range(ROWS * COLUMNS):
        at = {"data": (device // COLUMNS, ROWS), "model": (device % COLUMNS, COLUMNS), None: (0, 1)}
        (i, rows), (j, columns) = at[across], at[down]
        parts.setdefault((j / columns, i / rows, 1 / columns, 1 / rows), []).append(device)
    return parts


def draw_array(axes, left, split, title, width=1.0, height=1.0, note="", size=8):
    """An array as a box of its parts, with the numbers of the devices that hold them."""
    for (x, y, w, h), devices in holders(split).items():
        place, sizes = (left + x * width, y * height), (w * width, h * height)
        color = COLORS[devices[0]] if len(devices) < len(COLORS) else "#d0d7de"
        axes.add_patch(plt.Rectangle(place, *sizes, facecolor=color, lw=1.5, edgecolor="white"))
        text = " ".join(map(str, devices))
        at = left + (x + w / 2) * width, (y + h / 2) * height
        axes.text(*at, text, ha="center", va="center", fontsize=size, color=INK)
    axes.text(
        left + width / 2,
        -0.07,
        title,
        ha="center",
        va="bottom",
        fontsize=9.5,
        family="monospace",
        color=INK,
    )
    axes.text(
        left + width / 2, height + 0.05, note, ha="center", va="top", fontsize=8.5, color=FAINT
    )


def blank(width, height, right, top=-0.22, bottom=1.25):
    """A figure without axes; y goes down."""
    figure, axes = plt.subplots(figsize=(width, height), dpi=110)
    axes.set_xlim(-0.05, right)
    axes.set_ylim(bottom, top)
    axes.axis("off")
    figure.subplots_adjust(0.005, 0.01, 0.995, 0.99)
    return figure, axes


def draw_layouts():
    """Five layouts of one array over the mesh."""
    figure, axes = blank(10, 2.5, 6.55)
    layouts = [
        (("data", "model"), "f32[8@data,4@model]", 'P("data", "model")\neight parts'),
        (("data", None), "f32[8@data,4]", 'P("data")\nfour parts, each on two devices'),
        ((None, "model"), "f32[8,4@model]", 'P(None, "model")\ntwo parts, each on four'),
        (
            ("model", "data"),
            "f32[8@model,4@data]",
            'P("model", "data")\neight parts, the other way',
        ),
        ((None, None), "f32[8,4]", "P()\nwhole on every device"),
    ]
    for k, (split, title, note) in enumerate(layouts):
        draw_array(axes, 1.33 * k, split, title, 1.15, note=note)
    figure.savefig(DOCS / "layouts.png")


def draw_product():
    """A product whose sum is over two devices, and the ways to have its result."""
    figure, axes = blank(10, 2.9, 7.3, bottom=1.3)
    say = lambda x, y, text, **how: axes.text(
        x, y, text, **{"ha": "center", "va": "center", "fontsize": 9, "color": INK, **how}
    )
    draw_array(axes, 0, ("data", "model"), "h: f32[8@data,4@model]", 1.2)
    say(1.45, 0.5, "@", fontsize=15)
    draw_array(axes, 1.7, ("model", None), "w: f32[4@model,8]", 1.2, size=7)
    say(
        2.3,
        1.15,
        "the axis that is summed over is split in both:\neach device has a term of the sum",
        fontsize=8.5,
        color=FAINT,
    )
    ways = [
        (
            0.08,
            'P("data", None)',
            "f32[8@data,8]",
            "one all-reduce: every device has its rows whole",
        ),
        (0.53, 'P("data", "model")', "f32[8@data,8@model]", "summed, and each keeps its part"),
        (
            0.98,
            'P("data", None, unreduced={"model"})',
            "f32[8@data,8]{U:model}",
            "nothing is sent yet: terms, to be added up later",
        ),
    ]
    for y, spec, kind, what in ways:
        axes.annotate(
            "", (3.95, y), (3.0, 0.5), arrowprops={"arrowstyle": "->", "color": FAINT, "lw": 1.2}
        )
        say(4.0, y - 0.11, f"out_sharding={spec}", ha="left", fontsize=8.5, family="monospace")
        say(4.0, y + 0.03, kind, ha="left", fontsize=9.5, family="monospace", color=COLORS[0])
        say(4.0, y + 0.16, what, ha="left", fontsize=8.5, color=FAINT)
    figure.savefig(DOCS / "product.png")


if __name__ == "__main__":
    draw_layouts()
    draw_product()
