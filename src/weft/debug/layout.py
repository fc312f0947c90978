"""Show which device holds which part of an array.

Asking a value inside a program is parallel/inspection.py's.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import ShapeError
from weft.parallel.inspection import Inspector, inspect_sharding_p
from weft.pytrees import leaves
from weft.xla.shards import bounds

__all__ = ["inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"]

# The default colors of parts: soft, and black letters are legible on each.
PALETTE = ((141, 211, 199), (255, 237, 160), (190, 186, 218), (251, 180, 174), (158, 202, 225))

Color = tuple[float, ...]


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], Any]) -> None:
    """Call a function with the sharding of each array in a pytree.

    In a jitted function this happens once, when it is compiled, with the sharding that the compiler
    chose.

    Args:
      value: a pytree of arrays.
      callback: a function of a sharding.

    Returns:
      None.

    >>> inspect_array_sharding(jnp.ones(3), callback=print)
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    for x in leaves(value):
        inspect_sharding_p.apply(x, callback=Inspector(callback))


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print which device holds which part of an array.

    In a jitted function it is printed once, when it is compiled.

    Args:
      arr: an array of one or two axes.
      **kwargs: the options of `visualize_sharding`.

    Returns:
      None.

    >>> visualize_array_sharding(jnp.ones(8))
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    show = functools.partial(visualize_sharding, arr.shape, **kwargs)
    inspect_array_sharding(arr, callback=show)


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Callable[[float], Color] | None = None,
) -> None:
    """Print which device holds which part of an array of one or two axes.

    If devices hold terms of a sum that is not computed yet, `+` is between them.

    Args:
      shape: the shape of the array.
      sharding: the sharding of the array.
      use_color: if True, parts have colors on a terminal.
      scale: the scale of the drawing.
      min_width: the smallest width of a part, in characters.
      max_width: the largest width of the drawing, in characters.
      color_map: a function from [0, 1] to the red, green and blue of a part, each in [0, 1].

    >>> from weft.sharding import NamedSharding, PartitionSpec
    >>> from weft import make_mesh
    >>> one = make_mesh((1,), ("x",))
    >>> visualize_sharding((8,), NamedSharding(one, PartitionSpec("x")))
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    shape = tuple(shape)
    if len(shape) not in (1, 2):
        raise ShapeError(
            f"visualize_sharding: must be for an array of one or two axes; got shape {shape}. "
            "Hint: sharding.devices_indices_map(shape)."
        )
    held: dict[tuple, list] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        held.setdefault(bounds(index, shape), []).append(device)
    rows = sorted({place[0] for place in held}) if len(shape) == 2 else [None]
    columns = sorted({place[-1] for place in held})
    between = "+" if getattr(getattr(sharding, "spec", None), "unreduced", None) else ","
    place = lambda row, column: (column,) if row is None else (row, column)
    label = lambda ds: f"{ds[0].platform.upper()} {between.join(str(d.id) for d in ds)}"
    labels = [[label(held[place(r, c)]) for c in columns] for r in rows]
    aspect = shape[1] / max(shape[0], 1) if len(shape) == 2 else 1 / max(shape[0], 1)
    lines = 10 * scale
    width = min(max_width, int(lines * aspect * 2.5))  # a character is that much taller than wide
    inner = max(min_width, width // len(columns)) - 2
    inner = max(inner, *(len(text) for row in labels for text in row))
    height = max(1, int(lines / len(rows)) - 1) if len(shape) == 2 else 1
    paint = (
        make_painter(len(rows) * len(columns), color_map) if use_color and on_terminal() else None
    )
    print(draw_table(labels, inner, height, paint))


def draw_table(labels: list[list[str]], inner: int, height: int, paint: Any) -> str:
    """A table of boxes with these labels."""
    bar = "─" * inner
    rule = lambda left, mid, right: left + mid.join([bar] * len(labels[0])) + right
    out = [rule("┌", "┬", "┐")]
    for i, row in enumerate(labels):
        for k in range(height):
            cells = []
            for j, text in enumerate(row):
                shown = text if k == (height - 1) // 2 else ""
                left = (inner - len(shown)) // 2
                cell = " " * left + shown + " " * (inner - left - len(shown))
                cells.append(paint(i * len(row) + j, cell) if paint else cell)
            out.append("│" + "│".join(cells) + "│")
        out.append(rule("├", "┼", "┤") if i + 1 < len(labels) else rule("└", "┴", "┘"))
    return "\n".join(out)


def on_terminal() -> bool:
    """Return True if standard output is a terminal."""
    return sys.stdout.isatty()


def make_painter(
    count: int, color_map: Callable[[float], Color] | None
) -> Callable[[int, str], str]:
    """Return the function that colors the text of part number `i` of `count`."""

    def paint(i: int, text: str) -> str:
        rgb: Color = PALETTE[i % len(PALETTE)]
        if color_map is not None:
            rgb = tuple(round(255 * c) for c in color_map(i / count)[:3])
        return f"\x1b[30;48;2;{';'.join(map(str, rgb))}m{text}\x1b[0m"

    return paint
