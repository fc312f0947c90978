"""Compare weft with its peers in one run, side by side; write docs/benchmarks.md and programs.md.

Each peer lives in a process of its own, which peers.py serves. A case is prepared everywhere, then
batches alternate between the peers, so that a slow moment of the machine falls on all of them;
figures are medians, and the ratio is the median of the ratios of neighbouring batches.

usage: run.py [--only SUBSTRING ...] [--quick] [--peers LABEL[=IMPL][@PYTHON] ...] [--out FILE]
The first peer is the reference and the last is judged, also against the best of all others. Those
that are not installed are left out: `make bench-torch` installs PyTorch, which takes 3 GB. Numba's
figures are shown and not counted.
"""

import argparse
import collections
import dataclasses
import statistics
import sys
import tempfile
from pathlib import Path

from cases_programs import list_cases
from goals import group_of, is_goal
from libraries import PROGRAMS, time_program
from report import cells, header, markdown, summary, terminal_line
from worker import CHECKOUT, Peer, Worker, fresh, keep_programs

IMPORT_RATIO = "start/import_over_engine"
FRESH = {  # kinds of startup.py, run one right after the other: the cases they give
    ("engine", "import"): ("start/engine", "start/import", IMPORT_RATIO),
    ("first_op",): ("start/import_first_op",),
    ("first_grad",): ("start/first_mlp3_grad", "memory/first_mlp3_grad"),
    ("functions",): ("walk/cold_jit_functions",),
}


@dataclasses.dataclass(frozen=True)
class Effort:
    """The effort of a run: fresh processes, batches of a case, and seconds of each batch."""

    processes: int
    batches: int
    seconds: float


FULL, QUICK = Effort(9, 9, 0.06), Effort(3, 3, 0.03)
PEERS = ["jax", "torch", "numpy", "numba", "weft"]
UNCOUNTED = {"numba"}  # compiles loops, which is another way to write programs: no goal is by it


class Run:
    """The peers of one run, their samples, and their failures."""

    def __init__(self, peers, effort, wanted):
        self.peers, self.effort, self.wanted = peers, effort, wanted
        self.samples = collections.defaultdict(lambda: collections.defaultdict(list))
        self.errors = {}

    @property
    def labels(self):
        """The names of the peers."""
        return [peer.label for peer in self.peers]

    def missing(self):
        """{(label, error): cases that fail by it}, of the wanted ones."""
        found = collections.defaultdict(list)
        for (case, label), error in self.errors.items():
            if self.wanted(case):
                found[label, error].append(case)
        return found

    def row(self, case):
        """The case's medians, and the judged peer's ratios to the reference and to the best."""
        samples = self.samples[case]
        values = {label: statistics.median(found) for label, found in samples.items() if found}
        counted = [peer.label for peer in self.peers[:-1] if peer.impl not in UNCOUNTED]
        others = [label for label in counted if label in values]
        best = min(others, key=values.get, default=None)
        return {
            "case": case,
            "values": values,
            "ratio": self.ratio_to(case, self.labels[0]),
            "best": best,
            "best_ratio": self.ratio_to(case, best),
        }

    def ratio_to(self, case, label):
        """The median ratio of the judged peer's batches to another's beside them."""
        samples = self.samples[case]
        pairs = zip(samples[label], samples[self.labels[-1]], strict=False)
        return statistics.median([b / a for a, b in pairs] or [0]) or None

    def fresh_rows(self, cache):
        """Rows of what needs fresh processes; the first turn only warms the disk."""
        for kinds, cases in FRESH.items():
            if not any(map(self.wanted, cases)):
                continue
            for turn in range(self.effort.processes + 1):
                for peer in filter(lambda peer: peer.has_jax_api, in_turn(self.peers, turn)):
                    self.note(peer, cases, fresh_figures(peer, kinds, cache), keep=turn > 0)
            yield from (self.row(case) for case in cases if self.wanted(case))

    def note(self, peer, cases, found, keep=True):
        """Keep what a fresh process has found, or why it has found nothing."""
        if "error" in found:
            self.errors.update({(case, peer.label): found["error"] for case in cases})
        elif keep:
            for case, value in found.items():
                self.samples[case][peer.label].append(value)

    def library_rows(self):
        """Rows of whole programs that use libraries."""
        for name, cases in PROGRAMS.items():
            if not any(map(self.wanted, cases)):
                continue
            for peer in filter(lambda peer: peer.has_jax_api, self.peers):  # once: takes minutes
                self.note(peer, cases, time_program(name, peer.impl))
            yield from (self.row(case) for case in cases if self.wanted(case))

    def first_rows(self):
        """Rows of the first calls of programs, with nothing on disk and with what that has left."""
        for name in list_cases("jax"):
            cases = [f"programs/{name}/{state}" for state in ("cold", "warm")]
            if not any(map(self.wanted, cases)):
                continue
            able = [p for p in self.peers if p.has_jax_api or p.impl == "numba"]
            able = [peer for peer in able if name in list_cases(peer.impl)]
            for peer in able:  # once: seconds of compilation vary little, and there are 67 programs
                self.note(peer, cases, first_calls(peer, name, cases))
            yield from (self.row(case) for case in cases if self.wanted(case))

    def served_rows(self, cache, *options):
        """Rows of what peers.py times with these options, case by case."""
        workers = [Worker(peer, cache, *options) for peer in self.peers if peer.serves(options)]
        try:
            yield from self.rows_of(workers)
        finally:
            for worker in workers:
                worker.stop()

    def rows_of(self, workers):
        """Rows of the cases that these processes have."""
        cases, able = {}, []
        for worker in workers:
            listed = worker.ask(do="list")
            if "error" in listed:
                print(f"{worker.peer.label}: {listed['error']}", file=sys.stderr)
            else:
                able.append(worker)
                cases.update(dict.fromkeys(listed["cases"]))
        for case in filter(self.wanted, cases):
            self.time_case(case, able)
            yield self.row(case)

    def time_case(self, case, workers):
        """Prepare the case on every peer, then let batches alternate."""
        able = []
        for worker in workers:
            reply = worker.ask(do="prepare", case=case, seconds=self.effort.seconds)
            if "error" in reply:
                self.errors[case, worker.peer.label] = reply["error"]
            else:
                able.append(worker)
        for turn in range(self.effort.batches):
            for worker in in_turn(able, turn):
                reply = worker.ask(do="batch")
                if "error" in reply:
                    self.errors[case, worker.peer.label] = reply["error"]
                    able = [other for other in able if other is not worker]
                else:
                    self.samples[case][worker.peer.label].append(reply["seconds"])


def fresh_figures(peer, kinds, cache):
    """Return the figures of startup.py, and the import as a multiple of jaxlib's."""
    found = {}
    for kind in kinds:
        with tempfile.TemporaryDirectory() as cold:
            found.update(fresh(peer, kind, cold if kind == "functions" else cache))
    if "start/import" in found:
        found[IMPORT_RATIO] = found["start/import"] / found["start/engine"]
    return found


def first_calls(peer, name, cases):
    """Seconds of a program's first call in a process, and of another one's; see startup.py."""
    found = {}
    with tempfile.TemporaryDirectory() as cache:
        for case in cases:
            figures = fresh(peer, "program", cache, name, **keep_programs(cache))
            if "error" in figures:
                return figures
            found[case] = figures["seconds"]
    return found


def in_turn(things, turn):
    """The same things, every second time in reverse, so that none always goes first."""
    return list(things) if turn % 2 == 0 else list(reversed(things))


def measure(run):
    """All rows, printed as they come."""
    print(terminal_line(header(run.labels)), flush=True)
    rows = []
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as cache:
        sources = [run.fresh_rows(cache), run.library_rows(), run.first_rows()]
        served = [(), ("--devices", "4"), ("--suite", "programs")]
        for source in (*sources, *(run.served_rows(cache, *options) for options in served)):
            for row in source:
                rows.append(row)
                print(terminal_line(cells(row, run.labels)), flush=True)
    return rows


def split_pages(rows):
    """{page: its rows}: whole programs have a page of their own."""
    programs = [row for row in rows if group_of(row["case"]).startswith("programs/")]
    others = [row for row in rows if row not in programs]
    docs = CHECKOUT / "docs"
    return {docs / "benchmarks.md": others, docs / "programs.md": programs}


def main():
    """Measure, print, and write the pages unless the run was narrowed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", nargs="*", default=[], help="cases whose name contains any")
    parser.add_argument("--quick", action="store_true", help="cases with a goal, a short look")
    parser.add_argument("--peers", nargs="+", type=Peer.parse, default=PEERS)
    parser.add_argument("--out", type=Path, help="one page to write (two in docs/ if all ran)")
    args = parser.parse_args()
    peers = [Peer.parse(peer) if isinstance(peer, str) else peer for peer in args.peers]
    if len({peer.label for peer in peers}) < len(peers):
        parser.error("--peers: labels must differ. Hint: --peers old=weft@/old/python weft")

    def wanted(case):
        named = not args.only or any(part in case for part in args.only)
        return named and (is_goal(case) or not args.quick)

    effort = QUICK if args.quick else FULL
    run = Run(peers, effort, wanted)
    rows = measure(run)
    for (label, error), cases in run.missing().items():
        print(f"{label}: not measured: {' '.join(cases)}: {error}", file=sys.stderr)
    if not any(row["values"] for row in rows):
        print("run: nothing was measured", file=sys.stderr)
        return 1
    print(summary(rows, run.labels))
    whole = not (args.only or args.quick)
    pages = {args.out: rows} if args.out else split_pages(rows) if whole else {}
    for out, found in pages.items():
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(markdown(found, peers, effort))
        print(f"written: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
