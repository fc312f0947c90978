"""The report of costs: its tables, for the terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence

from weft.explain.costs import Costs, Kernel, Work
from weft.explain.machine import Peaks
from weft.explain.memory import Live, Residual
from weft.explain.origins import NOWHERE, Place
from weft.explain.padding import Padding
from weft.explain.page import Mark, Printed
from weft.explain.subject import Phase
from weft.explain.tables import Table, bytes_text, count_text, rate_text, seconds_text

MAX_KERNELS = 20  # in the table
MAX_UNKNOWN = 5  # names in the note
DISTURBED = 1.3  # slowdown by the profiler; if it is larger, the report warns of it
ENOUGH_RUNS = 3  # near the quickest; fewer do not show how far shares differ


class Report(Printed):
    """The costs of a program. `print` it, or `save` it as a page; a notebook shows the page.

    Attributes:
      phases: seconds of tracing, lowering, compiling and running, with a note on each.
      lines: pairs of a place (`file`, `line`, `text`) and its costs in a run: `seconds`, `forward`,
        `backward`, `flops`, `transcendentals`, `bytes`, `operations`, `bound(peaks)`. The most
        expensive line comes first.
      kernels: the same costs for each kernel, with `name`, `kind`, `runs`, `places`.
      wall: seconds of a run, without the overhead of the profiler.
      attributed: the part of `wall` that is spent in known instructions.
      unknown: seconds by name of what ran under names that the program does not have. A GPU may run
        several kernels under one name.
      profiled: seconds of a run under the profiler, with its overhead.
      runs: the number of profiled runs that count, and the number of all profiled runs. Runs count
        if they are nearly as fast as the fastest.
      peaks: the peak rates of this machine per second: `flops`, `transcendentals`, `bytes`.
      residuals: arrays that the forward pass saves for the backward pass.
      live: arrays in memory at the peak.
      memory: totals in bytes. The entry "kept" is memory of deleted arrays of this process that is
        cached for later results (config.kept_memory).
      padding: the share of padding in a call of `jit(f, sizes=...)`: `variables`, `flops`, `bytes`,
        `wasted` of `held` bytes, and `copying`, in seconds. None for other functions.

    >>> report = weft.explain.memory(lambda x: x @ x)(jnp.ones((4, 4)))
    >>> isinstance(report, weft.explain.Report), report.memory["arguments"]
    (True, 64)
    """

    def __init__(self, name: str, phases: Sequence[Phase] = ()):
        self.name = name
        self.phases = list(phases)
        self.lines: list[tuple[Place, Work]] = []
        self.kernels: list[Kernel] = []
        self.wall = self.attributed = self.profiled = 0.0
        self.unknown: dict[str, float] = {}
        self.runs = 0, 0
        self.peaks: Peaks | None = None
        self.residuals: list[Residual] = []
        self.live: list[Live] = []
        self.memory: dict[str, int] = {}
        self.host_bytes = 0
        self.padding: Padding | None = None

    def add_costs(self, costs: Costs, peaks: Peaks | None) -> None:
        self.lines, self.kernels, self.peaks = costs.sorted_lines(), costs.kernels, peaks
        self.wall, self.attributed, self.profiled = costs.wall, costs.attributed, costs.profiled
        self.runs, self.unknown = costs.runs, costs.unknown

    @property
    def tables(self) -> list[Table]:
        """The tables of the printed report."""
        every = [
            phase_table(self.phases, self.wall, self.peaks),
            self.line_table(),
            residual_table(self.residuals),
            memory_table(self.live, self.memory),
            kernel_table(self.kernels, self.peaks),
            moved_table("Collectives", "collective", self.kernels),
            moved_table("Calls of the host", "host", self.kernels),
        ]
        if self.padding is not None:
            every.insert(1, self.padding.table(self.wall))
        if self.host_bytes:
            note = f"{bytes_text(self.host_bytes)} of arguments are NumPy's, and moved in each call"
            every.append(Table("Transfers", (), (), note))
        return [t for t in every if t.rows or t.note]

    def line_table(self) -> Table:
        """Return the table of costs by line, with a note on the measurement."""
        table = line_table(self.lines, self.wall, self.attributed, self.peaks)
        if not self.wall:
            return table
        wall, profiled = seconds_text(self.wall), seconds_text(self.profiled)
        note = (
            f"Of {wall} a run ({profiled} under the profiler), "
            f"{self.attributed / self.wall:.1%} is in kernels whose lines are known. Means of "
            f"{self.runs[0]} of {self.runs[1]} runs, those near the quickest"
        )
        if self.runs[0] < ENOUGH_RUNS:
            note += (
                ". Other work seems to have delayed the rest, so that shares are uncertain: "
                "repeat the call when the machine is quiet."
            )
        else:
            spreads = [high - low for low, high in (w.spread for _, w in self.lines)]
            widest = 100 * max(spreads, default=0.0)
            note += f", in which no share differed by more than {widest:.1f} points."
        if self.profiled > DISTURBED * self.wall:
            note += (
                f" The profiler made a run {self.profiled / self.wall:.1f} times as long, so that "
                "the shares of lines with many short kernels are uncertain."
            )
        note += " A kernel of several lines is shared in proportion to what XLA counts."
        if self.unknown:
            most = sorted(self.unknown, key=lambda name: -self.unknown[name])[:MAX_UNKNOWN]
            share = sum(self.unknown.values()) / self.wall
            note += (
                f" Another {share:.1%} ran under names that the program does not have, and has no "
                f"lines: {', '.join(most)}."
            )
        return table._replace(note=note)

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"explain {self.name}"

    @property
    def marks(self) -> dict[Place, Mark]:
        """The notes beside the user's source lines on the page: seconds, or operations."""
        most = max((w.seconds for _, w in self.lines), default=0.0) or 1.0
        return {
            place: Mark(seconds_text(w.seconds), w.seconds / most, describe_work(w))
            for place, w in self.lines
        }


def describe_work(work: Work) -> str:
    if not (work.forward or work.backward):  # nothing was timed
        return ", ".join(work.operations)
    forward, backward = seconds_text(work.forward) or "0", seconds_text(work.backward) or "0"
    return f"forward {forward}, backward {backward}: {', '.join(work.operations)}"


def phase_table(phases: Sequence[Phase], wall: float, peaks: Peaks | None) -> Table:
    rows = [(seconds_text(p.seconds) or "0", p.name, p.note) for p in phases]
    if peaks is None:
        return Table("Stages", ("time", "stage", ""), rows, numbers=1)
    note = (
        f"This machine at best: {rate_text(peaks.flops, 'FLOP/s')}, "
        f"{rate_text(peaks.bytes, 'B/s')}, {rate_text(peaks.transcendentals, ' exp/s')}"
        + (f", measured on {peaks.day}." if peaks.day else ".")
    )
    return Table("Stages", ("time", "stage", ""), rows, note, 1)


def rate_cells(work: Work, peaks: Peaks | None) -> list[str]:
    """Return the cells for FLOPs, bytes, FLOPs per second, bytes per second, and the bound."""
    t = work.seconds
    rates = ["", ""]
    if t:
        rates = [rate_text(work.flops / t, "FLOP/s"), rate_text(work.bytes / t, "B/s")]
    amounts = [count_text(work.flops), bytes_text(work.bytes) if work.bytes else ""]
    return [*amounts, *rates, work.bound(peaks)]


RATES = ("FLOPs", "bytes", "rate", "traffic", "bound by")


def line_table(
    lines: Sequence[tuple[Place, Work]], wall: float, attributed: float, peaks: Peaks | None
) -> Table:
    rows, shares = [], []
    for place, work in lines:
        share = work.seconds / wall if wall else 0.0
        times = [f"{share:.1%}", seconds_text(work.forward), seconds_text(work.backward)]
        rows.append([*times, *rate_cells(work, peaks), str(place), place.text])
        shares.append(share)
    if wall and rows:
        rest = max(0.0, wall - attributed)
        times = [f"{rest / wall:.1%}", seconds_text(rest), ""]
        rows.append([*times, *[""] * 5, "(not attributed)", "calls, and waits between kernels"])
        shares.append(rest / wall)
    if not wall:
        rows = [[*row[3:5], *row[8:]] for row in rows]
        return Table("Lines", ("FLOPs", "bytes", "line", "source"), rows, numbers=2)
    heads = ("share", "forward", "backward", *RATES, "line", "source")
    return Table("Lines", heads, rows, "", 7, shares)


def place_text(place: Place) -> str:
    return "" if place is NOWHERE else str(place)


def residual_table(residuals: Sequence[Residual]) -> Table:
    kept = [r for r in residuals if not r.is_argument]
    rows = [
        (bytes_text(r.bytes), str(r.aval), r.source, place_text(r.made), place_text(r.read))
        for r in sorted(residuals, key=lambda r: (r.is_argument, -r.bytes))
    ]
    note = f"{bytes_text(sum(r.bytes for r in kept))} besides arguments" if residuals else ""
    heads = ("bytes", "type", "made by", "at", "read for")
    return Table("Kept from the forward for the backward pass", heads, rows, note, 1)


def memory_table(live: Sequence[Live], memory: dict[str, int]) -> Table:
    rows = [
        (bytes_text(x.bytes), x.type, x.source, place_text(x.place))
        for x in live
        if x.bytes * 1000 >= sum(y.bytes for y in live)
    ]
    title = lambda k: "cached for later results" if k == "kept" else k
    note = ", ".join(f"{title(k)} {bytes_text(v)}" for k, v in memory.items())
    return Table("Memory at its peak", ("bytes", "type", "what", "line"), rows, note, 1)


def kernel_table(kernels: Sequence[Kernel], peaks: Peaks | None) -> Table:
    rows = []
    for k in kernels[:MAX_KERNELS]:
        cells = [seconds_text(k.seconds), f"{k.runs:.4g}", *rate_cells(k, peaks)]
        rows.append([*cells, k.kind, ", ".join(k.operations), ", ".join(map(str, k.places))])
    more = len(kernels) - MAX_KERNELS
    heads = ("time", "runs", *RATES, "kind", "made of", "lines")
    if not any(k.seconds for k in kernels):
        rows, heads = [[r[2], r[3], *r[7:]] for r in rows], ("FLOPs", "bytes", *heads[7:])
    note = f"{len(kernels)} in all; {more} more are not shown" if more > 0 else ""
    return Table("Kernels", heads, rows, note, 6 if len(heads) > 5 else 2)


def moved_table(title: str, kind: str, kernels: Sequence[Kernel]) -> Table:
    rows = [
        (bytes_text(k.moved), seconds_text(k.seconds), f"{k.runs:.4g}", k.kind, *map(str, k.places))
        for k in kernels
        if k.kind.startswith(kind)
    ]
    rows = [(*row[:4], ", ".join(row[4:])) for row in rows]
    return Table(title, ("bytes", "time", "runs", "kind", "line"), rows, numbers=3)
