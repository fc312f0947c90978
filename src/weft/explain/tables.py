"""Format the tables of a report, and quantities as short texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDEST = 48  # characters; longer lines of source are clipped in the terminal


class Table(NamedTuple):
    """Rows of texts under headings. Cells of the first `numbers` columns are aligned right.

    `shares`, if any, has a number from 0 to 1 for each row, which is drawn as a bar.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    numbers: int = 0
    shares: Sequence[float] = ()

    def __str__(self) -> str:
        cells = [
            [clip_text(c) if h == "source" else c for h, c in zip(self.headings, row, strict=True)]
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(self.headings, *cells, strict=True)]

        def align(row: Sequence[str]) -> str:
            texts = [
                c.rjust(w) if i < self.numbers else c.ljust(w)
                for i, (c, w) in enumerate(zip(row, widths, strict=True))
            ]
            return ("  " + "  ".join(texts)).rstrip()

        lines = [self.title, *([f"  {self.note}"] if self.note else [])]
        if cells:
            lines += [align(self.headings), *map(align, cells)]
        return "\n".join(lines)


def clip_text(text: str) -> str:
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."


def scale_text(x: float, units: Sequence[str]) -> str:
    """Return a number with the unit that makes it short. Each unit is 1000 times the last one."""
    unit, *larger = units
    while abs(x) >= 999.5 and larger:
        x /= 1000
        unit, *larger = larger
    if abs(x) < 0.0005:  # 5e-08 ns would be a riddle
        x = 0.0
    return f"{x:.3g} {unit}".rstrip() if x < 999.5 else f"{x:.0f} {unit}".rstrip()


def bytes_text(x: float) -> str:
    x = float(round(x)) if x >= 1 else x  # shares of a kernel's bytes are fractions
    return scale_text(x, ("B", "kB", "MB", "GB", "TB"))


def count_text(x: float) -> str:
    return scale_text(x, ("", "k", "M", "G", "T")) if x else ""


def rate_text(x: float, unit: str) -> str:
    return f"{scale_text(x, ('', 'k', 'M', 'G', 'T'))}{unit}" if x else ""


def seconds_text(x: float) -> str:
    return scale_text(x * 1e9, ("ns", "us", "ms", "s")) if x else ""
