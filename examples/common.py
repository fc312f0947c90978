"""What every example shares: command line, progress bar, look of the plots, verdict.

Not here: anything of weft. An example reads from top to bottom without this file.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draw into files; no window is opened

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

BLUE, ORANGE, GREEN, RED, GREY = "#1f5fa8", "#e07b39", "#2f8f5b", "#c22f3d", "#8a8f98"
FAINT = "#e6e8eb"


def arguments(doc: str, **defaults: int | float) -> argparse.Namespace:
    """The command line: `--seed`, `--out`, and one option for each of `defaults`.

    Integers must be at least 1 and floats above 0; `doc` is the example's docstring.
    """
    parser = argparse.ArgumentParser(
        description=doc.split("\n", 1)[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for name, default in defaults.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=type(default), default=default, help=" "
        )
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).resolve().parent / "out", help="for pictures"
    )
    args = parser.parse_args()
    for name, default in defaults.items():
        value, least = getattr(args, name), "at least 1" if isinstance(default, int) else "above 0"
        if value <= 0:
            parser.error(f"--{name.replace('_', '-')} must be {least}; got {value}")
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def progress(steps: int | Iterable, unit: str = "step", desc: str = "training") -> tqdm:
    """A bar over `range(steps)` or an iterable; `bar.set_postfix(loss=...)` shows figures."""
    return tqdm(range(steps) if isinstance(steps, int) else steps, unit=unit, desc=desc, ncols=88)


def axes(rows: int = 1, columns: int = 1, size: tuple[float, float] | None = None):
    """A figure and its axes, in the look of the examples."""
    figure, panels = plt.subplots(
        rows, columns, figsize=size or (5 * columns, 3.8 * rows), layout="constrained"
    )
    figure.get_layout_engine().set(w_pad=0.15, h_pad=0.12)
    for ax in figure.axes:
        ax.grid(color=FAINT, linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, panels


def image(ax, pixels, title: str | None = None, **options) -> None:
    """Pixels without ticks, dark on light."""
    ax.imshow(pixels, **{"cmap": "gray_r", **options})
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color("#d5d8dc")
    if title:
        ax.set_title(title, fontsize=9)


def tiles(pictures, columns: int):
    """Pictures (n, height, width) as one, in rows of `columns` with gaps of NaN, for `image`."""
    pictures = np.asarray(pictures)
    n, height, width = pictures.shape
    rows = -(-n // columns)
    padded = np.full((rows * columns, height + 1, width + 1), np.nan)
    padded[:n, :-1, :-1] = pictures
    grid = padded.reshape(rows, columns, height + 1, width + 1).swapaxes(1, 2)
    return grid.reshape(rows * (height + 1), columns * (width + 1))[:-1, :-1]


def save(figure, path: Path) -> None:
    """Write a picture and say where it is."""
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"picture: {path}")


def verdict(name: str, reached: bool, bar: str) -> int:
    """The exit status: 0 when the bar was reached, else 1 with a line that says so."""
    print(f"{name}: {'reached' if reached else 'missed'}: {bar}")
    if not reached:
        print(f"{name}: missed the bar: {bar}", file=sys.stderr)
    return 0 if reached else 1
