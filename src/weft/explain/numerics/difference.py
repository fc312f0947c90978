"""Compare two reports: `numerics.diff`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.errors import ShapeError
from weft.explain.numerics.report import LineError, Numerics
from weft.explain.numerics.samples import find_spread, measure_ulps, ulps_text
from weft.explain.origins import Place
from weft.explain.page import Mark, Printed
from weft.explain.tables import Table


class LineChange(NamedTuple):
    """A line in two reports.

    Attributes:
      before, after: the errors of the line in each report; None if the report lacks the line.
      change: the largest difference of the values of the line, in ulps.
    """

    before: LineError | None
    after: LineError | None
    change: float


class Difference(Printed):
    """The differences between two runs. `print` them, or `save` them as a page.

    Attributes:
      lines: a `LineChange` for each line whose values or errors differ.
      results: for each result, the median and the largest difference in ulps.
      first: the first line whose values differ, or None.

    >>> from weft.explain import numerics
    >>> before, after = (numerics(lambda x: x / 3)(jnp.float32(x)) for x in (1.0, 2.0))
    >>> numerics.diff(before, after).first is not None
    True
    """

    def __init__(self, before: Numerics, after: Numerics):
        self.names = before.name, after.name
        self.results = [compare_results(x, y) for x, y in pair_results(before, after)]
        self.lines = [c for c in compare_lines(before, after) if is_changed(c)]
        both = [c for c in self.lines if c.before is not None and c.after is not None]
        self.first = next((c.after.place for c in both if c.change and c.after), None)
        self.accused = [{f.place.text: f for f in report.findings} for report in (before, after)]

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "numerics of " + " and ".join(dict.fromkeys(self.names))

    @property
    def tables(self) -> list[Table]:
        """The tables of the printed comparison."""
        found = []
        for n, (median, worst) in enumerate(self.results):
            found.append((ulps_text(median), ulps_text(worst), str(n)))
        first = f"The first line that differs is {self.first}." if self.first else ""
        tables = [Table("Results", ("median ulp", "worst ulp", "result"), found, first, 2)]
        rows = []
        for c in self.lines:
            cells = [ulps_text(x.passed[1]) if x else "" for x in (c.before, c.after)]
            line = c.after or c.before
            change = ulps_text(c.change) if c.before and c.after else ""
            rows.append((change, *cells, str(line.place), line.place.text))
        heads = ("differs by", "error before", "after", "line", "source")
        tables.append(Table("Lines", heads, rows, "" if rows else "No line differs.", 3))
        gone, new = (
            [f for text, f in here.items() if text not in there]
            for here, there in (self.accused, self.accused[::-1])
        )
        rows = [
            (what, str(f.place), f.text) for what, fs in (("gone", gone), ("new", new)) for f in fs
        ]
        return [*tables, *([Table("Findings", ("", "line", "what"), rows)] if rows else [])]

    @property
    def marks(self) -> Mapping[Place, Mark]:
        """The notes beside the user's source lines on the page."""
        return {
            c.after.place: Mark(ulps_text(c.change), float(c.change > 0), "")
            for c in self.lines
            if c.after is not None
        }


def diff(before: Numerics, after: Numerics) -> Difference:
    """Compare two reports of `numerics`: two runs, two versions of a program, or two platforms.

    Lines are matched by their source. A report can be pickled, so that the reports of two machines
    can be compared on one of them.

    Args:
      before: a report.
      after: a report of the same function, of another version of it, or from another machine.

    Returns:
      A `Difference`: by line and by result how far the values differ, in ulps, and which findings
      are gone or new.

    Raises:
      ShapeError: the reports have results of different numbers or shapes.
      TypeError: a report is not a `Numerics`.

    >>> x = jnp.arange(8.0) * 1.1 + 3000
    >>> before = weft.explain.numerics(lambda x: jnp.mean(x * x) - jnp.mean(x) ** 2)(x)
    >>> after = weft.explain.numerics(lambda x: jnp.var(x))(x)
    >>> weft.explain.numerics.diff(before, after).results[0][1] > 1000
    True
    """
    for report in (before, after):
        if not isinstance(report, Numerics):
            raise TypeError(
                "numerics.diff: must compare two reports of weft.explain.numerics; got a "
                f"{type(report).__name__}. Hint: numerics.diff(numerics(f)(x), numerics(g)(x))."
            )
    return Difference(before, after)


def pair_results(before: Numerics, after: Numerics) -> list[tuple]:
    """Return the results of two reports in pairs."""
    shapes = [[r.aval.shape for r in report.results] for report in (before, after)]
    if shapes[0] != shapes[1]:
        raise ShapeError(
            "numerics.diff: both reports must have results of the same shapes; got "
            f"{', '.join(map(str, shapes[0]))} and {', '.join(map(str, shapes[1]))}."
        )
    return list(zip(before.results, after.results, strict=True))


def compare_results(x: Any, y: Any) -> tuple[float, float]:
    """Return the median and the largest difference of a result in two reports, in ulps."""
    return compare_values(x.values, y.values, y.aval.dtype)


def compare_values(x: np.ndarray, y: np.ndarray, dtype: Any) -> tuple[float, float]:
    """Return the median and the largest difference of two arrays, in ulps of the second."""
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(all="ignore"):
        errors = np.where(same, 0.0, np.abs(x - y))
    off = measure_ulps(errors, y, dtype)
    return find_spread(np.where(np.isnan(off) & ~same, np.inf, off))


def compare_lines(before: Numerics, after: Numerics) -> list[LineChange]:
    """Return the lines of two reports, matched by their source."""
    keys = [[(x.place.text, x.backward) for x in report.lines] for report in (before, after)]
    matcher = difflib.SequenceMatcher(None, *keys, autojunk=False)
    found = []
    for _, i, most_i, j, most_j in matcher.get_opcodes():
        count = max(most_i - i, most_j - j)
        equal = keys[0][i:most_i] == keys[1][j:most_j]
        for k in range(count):
            old = before.lines[i + k] if i + k < most_i else None
            new = after.lines[j + k] if j + k < most_j else None
            if old is not None and new is not None and equal:
                found.append(LineChange(old, new, compare_digests(old, new)))
            else:
                found += [LineChange(old, None, 0.0)] * (old is not None)
                found += [LineChange(None, new, 0.0)] * (new is not None)
    return found


def compare_digests(old: LineError, new: LineError) -> float:
    """Return the largest difference of a line's values between two reports, in ulps."""
    if len(old.values) != len(new.values) or not dtypes.is_inexact(new.dtype):
        return 0.0 if len(old.values) == len(new.values) else float("inf")
    return compare_values(old.values, new.values, new.dtype)[1]


def is_changed(change: LineChange) -> bool:
    """Return True if a line differs between two reports."""
    return change.before is None or change.after is None or change.change > 0
