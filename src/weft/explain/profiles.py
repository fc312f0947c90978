"""Profile calls with XLA's profiler, and divide their time among instructions."""

from __future__ import annotations

import bisect
import time
import warnings
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jaxlib import _profile_data, _profiler

from weft.errors import JaxRuntimeError
from weft.mesh.client import client

ENOUGH = 0.3  # seconds, for all calls under the profiler
MOST_RUNS = 30
NEAR = 1.1  # times the fastest call: slower calls do not count
WINDOW = "weft.explain"  # the name of the block around each call


class Event(NamedTuple):
    """One execution of an instruction. Times are in nanoseconds."""

    module: str
    name: str
    start: float
    end: float
    run: Any


class Profile(NamedTuple):
    """The contents of a profile: the times of calls, and the instructions that ran.

    Attributes:
      windows: the start and the end of each call that counts, in nanoseconds.
      events: the instructions that ran, also in calls that do not count.
      plain: seconds of the fastest call without the profiler; 0 if unknown.
      calls: how many calls were made.
    """

    windows: list[tuple[float, float]]
    events: list[Event]
    plain: float = 0.0
    calls: int = 1

    @property
    def wall(self) -> float:
        """The total seconds of the calls that count."""
        return sum(end - start for start, end in self.windows) * 1e-9

    def events_of(self, module: str) -> list[list[Event]]:
        """Return the instructions of a module that ran in each of the windows."""
        starts = [start for start, _ in self.windows]
        found: list[list[Event]] = [[] for _ in starts]
        for event in self.events:
            i = bisect.bisect_right(starts, event.start) - 1
            if event.module == module and i >= 0 and event.start < self.windows[i][1]:
                found[i].append(event._replace(end=min(event.end, self.windows[i][1])))
        return found


def start_session() -> Any:
    """Start and return a profiler session. A process can have only one at a time."""
    client()  # a session records only devices that exist when it starts
    options = _profiler.ProfileOptions()
    options.python_tracer_level = 0  # Python functions are not traced
    return _profiler.ProfilerSession(options)


def stop_session(session: Any) -> Profile:
    """Stop a profiler session and return its profile."""
    try:
        # XLA creates a type, and Python 3.13 issues a DeprecationWarning for it. If warnings are
        # errors, XLA aborts the process.
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            return read_profile(session.stop())
    except RuntimeError as error:
        raise JaxRuntimeError(
            f"explain: no other profile may be under way; got {error} "
            "Hint: weft.profiler.stop_trace() first."
        ) from error


def profile_calls(call: Callable[[], Any], runs: int) -> Profile:
    """Return a profile of repeated calls.

    Only calls that take nearly as little time as the fastest count. Slower calls were probably
    delayed by other work on the machine.

    Args:
      call: the function to profile. It returns once its results are ready.
      runs: the minimum number of calls. Fast calls are repeated for about `ENOUGH` seconds.
    """
    before = [time_call(call)[1] for _ in range(runs)]
    calls = max(runs, min(MOST_RUNS, int(ENOUGH / max(min(before), 1e-9))))
    session = start_session()
    for _ in range(calls):
        with _profiler.TraceMe(WINDOW):
            call()
    found = stop_session(session)
    after = [time_call(call)[1] for _ in range(runs)]
    lengths = [end - start for start, end in found.windows]
    near = [w for w, t in zip(found.windows, lengths, strict=True) if t <= NEAR * min(lengths)]
    return found._replace(windows=near, plain=min(*before, *after), calls=calls)


def time_call(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a function, and the seconds it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def read_profile(data: bytes) -> Profile:
    """Return the instructions and the windows of a serialized profile."""
    windows, events = [], []
    ends: dict[tuple[str, Any], list[float]] = {}  # of work in other threads
    for plane in _profile_data.ProfileData.from_serialized_xspace(data).planes:
        for line in plane.lines:
            for event in line.events:
                name, start = event.name, event.start_ns
                if name == WINDOW:
                    windows.append((start, start + event.duration_ns))
                elif name.startswith("end: "):
                    key = name[5:], dict(event.stats).get("_c")
                    ends.setdefault(key, []).append(start + event.duration_ns)
                elif event.duration_ns and not name.startswith("ThreadpoolListener"):
                    stats = dict(event.stats)
                    if "hlo_op" in stats:
                        module, run = str(stats.get("hlo_module", "")), stats.get("run_id")
                        key = str(stats["hlo_op"]), stats.get("_p")
                        end = start + event.duration_ns
                        events.append((Event(module, key[0], start, end, run), key))
    for times in ends.values():
        times.sort()
    return Profile(sorted(windows), [extend_event(e, ends.get(key, ())) for e, key in events])


def extend_event(event: Event, ends: Sequence[float]) -> Event:
    """Return an event extended to the end of the work that it started in other threads.

    `ends` are the sorted times of XLA's end marks for all runs of the instruction.
    """
    i = bisect.bisect_left(ends, event.start)
    return event if i == len(ends) else event._replace(end=max(event.end, ends[i]))


def cut_events(events: Sequence[Event], readers: Mapping[str, Container[str]]) -> list[Event]:
    """Return the events of a run. An event ends at the latest when a reader of its results starts.

    The end mark of work in other threads is written by one of these threads. The operating system
    may suspend this thread before it writes the mark, so the recorded end may be too late.

    Args:
      events: the events of one run.
      readers: for the name of each instruction, the names of the instructions that read its
        results.
    """
    ordered = sorted(events, key=lambda e: e.start)
    found = []
    for i, event in enumerate(ordered):
        end, reading = event.end, readers.get(event.name, ())
        for later in ordered[i + 1 :]:
            if later.start >= end:
                break
            if later.name in reading:
                end = later.start
        found.append(event._replace(end=end))
    return found


def share_time(events: Iterable[Event], is_container: Callable[[str], bool]) -> dict[str, float]:
    """Return the seconds of wall time of each instruction, by name.

    Instructions that run at the same time, on several threads, share the time equally. A container
    such as a loop gets only the time while none of the other instructions runs.
    """
    listed = list(events)
    points = [(e.start, True, i) for i, e in enumerate(listed)]
    points += [(e.end, False, i) for i, e in enumerate(listed)]
    points.sort(key=lambda p: p[:2])
    holders = [is_container(e.name) for e in listed]
    running: tuple[set[int], set[int]] = (set(), set())  # leaves; containers
    taken = [0.0] * len(listed)
    before = 0.0
    for now, begins, i in points:
        leaves, outer = running
        if leaves:
            share = (now - before) / len(leaves)
            for k in leaves:
                taken[k] += share
        elif outer:
            taken[max(outer, key=lambda k: listed[k].start)] += now - before
        before = now
        (running[holders[i]].add if begins else running[holders[i]].discard)(i)
    found: dict[str, float] = {}
    for event, t in zip(listed, taken, strict=True):
        found[event.name] = found.get(event.name, 0.0) + t * 1e-9
    return found
