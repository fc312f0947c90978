"""The report on precision: its tables, for the terminal and for a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.explain.numerics.findings import Finding, high
from weft.explain.numerics.gradients import Disagreement
from weft.explain.numerics.precision import Advice
from weft.explain.numerics.samples import Record, find_spread, ulps_text
from weft.explain.origins import NOWHERE, Place
from weft.explain.page import Mark, Printed
from weft.explain.tables import Table

ORDER_DIGITS = 3.0  # if a sum cancels at least this many digits, its order matters


class LineError(NamedTuple):
    """The errors of the operations of one line.

    Attributes:
      place: the user's line.
      backward: whether the operations belong to a reverse pass.
      operations: the names of the operations.
      added: the median and the largest error that an operation of the line adds, in ulps.
      passed: the median and the largest error of the results of the line, in ulps.
      worst: the index of the largest error in its result, and the iterations of the loops around
        the line.
      digits: the most decimal digits lost to cancellation.
      largest, smallest: the range of the absolute values of results, without zeros.
      overflow, underflow: decades between this range and the limits of the dtype.
      nans, infs: the numbers of NaN and of infinities among the recorded results.
      dtype: the dtype of the results.
      values: recorded elements of the result of the line's last operation, in the narrow run.
    """

    place: Place
    backward: bool
    operations: tuple[str, ...]
    added: tuple[float, float]
    passed: tuple[float, float]
    worst: tuple[tuple[int, ...], tuple[int, ...]]
    digits: float
    largest: float
    smallest: float
    overflow: float
    underflow: float
    nans: int
    infs: int
    dtype: Any
    values: np.ndarray


class ResultError(NamedTuple):
    """The error of a result of the program.

    Attributes:
      number: the place of the result among all results, as `tree_leaves` lists them.
      aval: the type of the result.
      median, worst: errors in ulps.
      digits: the number of correct decimal digits, in nearly all elements.
      nans, infs: the numbers of NaN and of infinities.
      values: the recorded elements.
    """

    number: int
    aval: Any
    median: float
    worst: float
    digits: float
    nans: int
    infs: int
    values: np.ndarray


class Numerics(Printed):
    """A report on the precision of a program. `print` it, or `save` it as a page.

    Attributes:
      findings: lines that lose precision or make NaN, the worst first, each with `kind`, `place`,
        `text`, `remedy` and `gain`.
      lines: a `LineError` for each line, in the order of the program.
      results: a `ResultError` for each result.
      sums: pairs of a place and the digits that depend on the order of a sum there.
      advice: an `Advice` for each line, if `tolerance` was given.
      gradients: rules of derivatives that disagree, if `gradients` was True.

    >>> report = weft.explain.numerics(lambda x: jnp.log(1 + x))(1e-9)
    >>> report.findings[0].remedy
    'jnp.log1p(x)'
    """

    def __init__(self, name: str):
        self.name = name
        self.findings: list[Finding] = []
        self.lines: list[LineError] = []
        self.results: list[ResultError] = []
        self.sums: list[tuple[Place, float]] = []
        self.advice: list[Advice] | None = None
        self.tolerance: float | None = None
        self.gradients: list[Disagreement] | None = None

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"numerics of {self.name}"

    @property
    def tables(self) -> list[Table]:
        """The tables of the printed report."""
        every = [
            finding_table(self.findings),
            result_table(self.results),
            error_table(self.lines),
            sum_table(self.sums),
        ]
        if self.advice is not None:
            every.append(advice_table(self.advice, self.tolerance))
        if self.gradients is not None:
            every.append(gradient_table(self.gradients))
        return [t for t in every if t.rows or t.note]

    @property
    def marks(self) -> dict[Place, Mark]:
        """The notes beside the user's source lines on the page."""
        found: dict[Place, Mark] = {}
        accused = {f.place: f for f in self.findings}
        for line in self.lines:
            before = found.get(line.place)
            finding = accused.get(line.place)
            title = str(finding) if finding else ", ".join(line.operations)
            text = ulps_text(max(line.passed[1], before.amount if before else 0.0))
            amount = max(line.passed[1], before.amount if before else 0.0)
            found[line.place] = Mark(text, 1.0 if finding else 0.0, title, amount)
        return found


def make_lines(records: Sequence[Record]) -> list[LineError]:
    """Return the errors by line."""
    groups: dict[tuple[Place, bool], list[Record]] = {}
    for r in records:
        if dtypes.is_inexact(r.dtype):
            groups.setdefault((r.site.place, r.site.backward), []).append(r)
    return [make_line(place, back, group) for (place, back), group in groups.items()]


def make_line(place: Place, backward: bool, group: Sequence[Record]) -> LineError:
    """Return the errors of one line."""
    added = [find_spread(r.added_ulps) for r in group]
    passed = [find_spread(r.ulps) for r in group]
    worst = max((r.worst() for r in group), key=lambda x: x[0])
    facts = [r.block.facts for r in group]
    dtype = min((r.dtype for r in group), key=lambda d: float(dtypes.finfo(d).max))
    info = dtypes.finfo(dtypes.real_dtype(dtype))
    largest = max(float(f["largest"].max(initial=0.0)) for f in facts)
    sizes = np.abs(np.concatenate([r.join("narrow") for r in group]))
    smallest = float(sizes[sizes > 0].min(initial=math.inf))
    nonzero = largest > 0 and math.isfinite(smallest)
    top, tiny = float(info.max), float(info.smallest_normal)
    return LineError(
        place, backward,
        tuple(dict.fromkeys(r.site.operation for r in group)),
        (max(a for a, _ in added), max(b for _, b in added)),
        (max(a for a, _ in passed), max(b for _, b in passed)),
        worst[1:],
        max(float(r.lost_digits.max(initial=0.0)) for r in group),
        largest, smallest if nonzero else 0.0,
        math.log10(top / largest) if nonzero else math.inf,
        math.log10(smallest / tiny) if nonzero else math.inf,
        int(sum(f["nans"].sum() for f in facts)), int(sum(f["infs"].sum() for f in facts)),
        dtype, group[-1].join("narrow"),
    )  # fmt: skip


def make_result(record: Record) -> ResultError:
    """Return the error of a result."""
    median, worst = find_spread(record.ulps)
    eps = float(dtypes.finfo(dtypes.real_dtype(record.dtype)).eps)
    relative = high(record.ulps) * eps
    most = -math.log10(eps)
    digits = most if not relative else min(most, max(0.0, -math.log10(min(relative, 1.0))))
    if record.total("nans"):
        digits = 0.0
    site = record.site
    counts = int(record.total("nans")), int(record.total("infs"))
    return ResultError(
        site.number, site.aval, median, worst, digits, *counts, record.join("narrow")
    )


def find_sums(records: Sequence[Record]) -> list[tuple[Place, float]]:
    """Return the sums whose order matters: the place, and the digits that depend on it."""
    found: dict[Place, float] = {}
    for r in records:
        if not dtypes.is_inexact(r.dtype) or len(r.site.eqn.invars) > 2:
            continue
        operands = max((a.aval.size for a in r.site.eqn.invars), default=0)
        terms = operands // max(1, r.site.aval.size)
        digits = high(r.lost_digits)
        if terms > 2 and digits >= ORDER_DIGITS:
            found[r.site.place] = max(found.get(r.site.place, 0.0), digits)
    return sorted(found.items(), key=lambda x: -x[1])


# --- tables ---------------------------------------------------------------------------------------


def place_cell(place: Place, backward: bool = False) -> str:
    """Return a place as a cell of a table."""
    text = "" if place == NOWHERE else str(place)
    return text + " (backward)" * backward


def finding_table(findings: Sequence[Finding]) -> Table:
    rows = [
        (place_cell(f.place, f.backward), f.kind, f.text, f.advice, f.place.text) for f in findings
    ]
    note = "" if rows else "No line loses more digits than the results can spare."
    return Table("Findings", ("line", "kind", "what", "instead", "source"), rows, note)


def result_table(results: Sequence[ResultError]) -> Table:
    rows = []
    for r in results:
        special = ", ".join(f"{n} {what}" for n, what in ((r.nans, "NaN"), (r.infs, "inf")) if n)
        cells = [ulps_text(r.median), ulps_text(r.worst), f"{r.digits:.1f}"]
        rows.append([*cells, str(r.number), str(r.aval), special])
    heads = ("median ulp", "worst ulp", "digits right", "result", "type", "")
    return Table("Results against the wide run", heads, rows, numbers=3)


def error_table(lines: Sequence[LineError]) -> Table:
    rows = []
    for x in lines:
        index = "[" + ", ".join(map(str, x.worst[0])) + "]" if x.worst[0] else ""
        turn = f" in iteration {', '.join(map(str, x.worst[1]))}" if x.worst[1] else ""
        cells = [*map(ulps_text, (*x.added, *x.passed)), f"{x.digits:.1f}" if x.digits >= 1 else ""]
        room = [f"{d:.0f}" if math.isfinite(d) else "" for d in (x.overflow, x.underflow)]
        special = [f"{n} {what}" for n, what in ((x.nans, "NaN"), (x.infs, "inf")) if n]
        rows.append(
            [*cells, *room, (index + turn).strip(), place_cell(x.place, x.backward), x.place.text,
             ", ".join(special)]
        )  # fmt: skip
    heads = (
        "adds: median", "worst", "has: median", "worst", "digits cancelled",
        "decades to overflow", "to underflow", "worst at", "line", "source", "",
    )  # fmt: skip
    note = (
        "Errors in units in the last place: those that an operation of the line adds, and those "
        "that its result has against the wide run."
    )
    return Table("Lines", heads, rows, note if rows else "", 7)


def sum_table(sums: Sequence[tuple[Place, float]]) -> Table:
    rows = [(f"{digits:.1f}", place_cell(place), place.text) for place, digits in sums]
    heads = ("digits", "line", "source")
    note = "Terms cancel, so that these digits depend on the order of the sum." if rows else ""
    return Table("Sums whose order matters", heads, rows, note, 1)


def advice_table(advice: Sequence[Advice], tolerance: float | None) -> Table:
    rows = []
    for a in advice:
        cells = [f"{a.errors[name]:.2g}" for name in a.errors]
        rows.append([*cells, a.dtype or "as it is", place_cell(a.place), a.place.text])
    names = list(advice[0].errors) if advice else []
    heads = (*[f"error in {n}" for n in names], "may run in", "line", "source")
    note = (
        f"Relative changes of the results if the line runs in the dtype. All lines together, as "
        f"the table has them, stay within {tolerance:g}."
    )
    return Table("Lines in 16 bits", heads, rows, note, len(names))


def gradient_table(found: Sequence[Disagreement]) -> Table:
    rows = [
        (place_cell(d.place), d.operation, d.rule, f"{d.error:.2g}", d.place.text) for d in found
    ]
    note = "" if rows else "Forward mode, reverse mode and differences agree in each operation."
    return Table("Derivatives", ("line", "operation", "rule", "off by", "source"), rows, note)
