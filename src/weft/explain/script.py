"""Explain a script: `weft explain script.py`."""

from __future__ import annotations

import collections
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any

from weft.api.devices import block_until_ready, live_arrays
from weft.api.jit import jit
from weft.explain.costs import Costs, Work
from weft.explain.machine import find_peaks
from weft.explain.modules import CompiledModule
from weft.explain.origins import Attribution, Place
from weft.explain.profiles import Event, Profile, start_session, stop_session
from weft.explain.report import Report, line_table
from weft.explain.tables import Table, seconds_text
from weft.mesh.client import default_device
from weft.options import config
from weft.watch import events
from weft.xla.hlo import Builder
from weft.xla.locating import LocatingBuilder

MAX_LINES = 10  # of the script, in the table
MAX_PROGRAMS = 40  # in the list


@jit
def wait_for_programs(x: Any) -> Any:
    """Wait for programs that this thread called before: XLA runs programs in order."""
    return x + 1


class ScriptReport(Report):
    """The costs of a script: its programs, and its most expensive lines."""

    def __init__(self, name: str, seconds: float):
        super().__init__(name)
        self.seconds = seconds
        self.programs = Table("Programs", (), ())

    @property
    def tables(self) -> list[Table]:
        lines = line_table(self.lines, self.wall, self.attributed, self.peaks)
        note = f"The {MAX_LINES} most expensive; shares are of all the time that the script took."
        rest = "Python, making programs, operations whose lines are not known"
        rows = [*lines.rows[:-1], [*lines.rows[-1][:-1], rest]] if lines.rows else []
        return [self.programs, lines._replace(note=note, rows=rows)]


class Retraces(logging.Handler):
    """A log handler that collects the reasons for retracing, by the name of the function.

    `explain_cache_misses` makes weft log these reasons.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reasons: dict[str, dict[str, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("traced %s again") and isinstance(record.args, tuple):
            name, place, why = record.args
            found = self.reasons.setdefault(module_text(str(name)), {})
            reason = f"{place}: {why}"
            found[reason] = found.get(reason, 0) + 1


def explain_program(run: Callable[[], None], name: str) -> ScriptReport:
    """Run a program, and print the report of its costs, even if it ends with an exception."""
    made: dict[str, dict[str, float]] = collections.defaultdict(
        lambda: collections.defaultdict(float)
    )

    def listen(event: str, seconds: float, fun_name: str = "", **_: Any) -> None:
        name = fun_name.removeprefix("jit(").removesuffix(")")
        made[program_name(name) if event == events.COMPILE else module_text(name)][event] += seconds

    retraces, logger = Retraces(), logging.getLogger("weft.trace")
    logger.addHandler(retraces)
    logger.propagate = False
    events.register_event_duration_secs_listener(listen)
    config.update("locate_operations", True)
    config.update("explain_cache_misses", True)
    LocatingBuilder.kept = {}
    session, start = start_session(), time.perf_counter()
    try:
        run()
    finally:
        config.update("locate_operations", False)
        config.update("explain_cache_misses", False)
        events.unregister_event_duration_listener(listen)
        with contextlib.suppress(RuntimeError):  # errors of the script are not reported here
            # programs may still run, and the script may have dropped some of their results
            block_until_ready([live_arrays(), wait_for_programs(0.0)])
        seconds = time.perf_counter() - start
        profile = stop_session(session)
        logger.removeHandler(retraces)
        logger.propagate = True
        report = make_report(name, seconds, profile, made, retraces.reasons)
        LocatingBuilder.kept = None
        print(f"\n{report}")
    return report


def make_report(
    name: str, seconds: float, profile: Profile, made: dict, reasons: dict
) -> ScriptReport:
    """Return the report of a script that ran for `seconds` under the profiler."""
    report = ScriptReport(name, seconds)
    modules: dict[str, list[Event]] = collections.defaultdict(list)
    for event in profile.events:
        if event.module != "jit_wait_for_programs":
            modules[event.module].append(event)
    lines: dict[Place, Work] = {}
    busy: dict[str, float] = collections.defaultdict(float)
    calls: dict[str, int] = collections.defaultdict(int)
    for module, listed in modules.items():
        calls[program_name(module)] += len({e.run for e in listed})
        loaded, origins = (LocatingBuilder.kept or {}).get(module, (None, ()))
        if loaded is None:  # a program of a single eager operation
            busy[program_name(module)] += sum(e.end - e.start for e in listed) * 1e-9
            continue
        compiled = CompiledModule(loaded)
        window = min(e.start for e in listed), max(e.end for e in listed) + 1
        costs = Costs(compiled, Attribution(compiled, origins), Profile([window], listed))
        for place, work in costs.lines.items():
            lines.setdefault(place, Work()).add(work)
        busy[program_name(module)] += costs.attributed
        report.attributed += costs.attributed
    report.wall, report.peaks = seconds, find_peaks(default_device().platform)
    report.lines = sorted(lines.items(), key=lambda x: -x[1].seconds)[:MAX_LINES]
    report.programs = program_table(busy, calls, made, reasons, seconds)
    return report


def program_table(busy: dict, calls: dict, made: dict, reasons: dict, seconds: float) -> Table:
    """Return the table of programs: number of calls, seconds of running and of compiling."""
    compiled = {n for n, t in made.items() if n and events.COMPILE in t}
    names = sorted({*calls, *compiled}, key=lambda n: (-busy[n], -made[n][events.COMPILE]))
    rows = []
    for n in names[:MAX_PROGRAMS]:
        stages = [made[n][k] for k in (events.TRACE, events.LOWER, events.COMPILE)]
        why = "; ".join(f"{r} ({k} times)" if k > 1 else r for r, k in reasons.get(n, {}).items())
        rows.append((seconds_text(busy[n]), str(calls[n]), *map(seconds_text, stages), n, why))
    total = sum(sum(t.values()) for t in made.values())
    note = (
        f"The script took {seconds_text(seconds)}: {seconds_text(total)} in tracing, lowering and "
        f"compiling, {seconds_text(sum(busy.values()))} in programs."
    )
    heads = ("running", "calls", "tracing", "lowering", "compiling", "program", "traced again")
    return Table("Programs", heads, rows, note, 5)


def module_text(name: str) -> str:
    """Return the name of a function in the form that modules use."""
    return Builder().unique(name)


def program_name(module: str) -> str:
    """Return the name of the function that a module in a profile was compiled from."""
    return module.removeprefix("jit_").rpartition(".")[0] or module
