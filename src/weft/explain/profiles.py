"""Measuring: calls under XLA's profiler, and what each instruction takes of their time."""

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
NEAR = 1.1  # of the time of the quickest call: calls up to this count
WINDOW = "weft.explain"  # the name of the block around each call


class Event(NamedTuple):
    """One execution of an instruction. Times are in nanoseconds."""

    module: str
    name: str
    start: float
    end: float
    run: Any


class Profile(NamedTuple):
    """The contents of a profile: when calls were made, and the instructions that ran.

    Attributes:
      windows: the start and the end of each call that counts, in nanoseconds.
      events: what ran, also in other calls.
      plain: seconds of the quickest call without the profiler; 0 if that is not known.
      calls: how many calls were made.
    """

    windows: list[tuple[float, float]]
    events: list[Event]
    plain: float = 0.0
    calls: int = 1

    @property
    def wall(self) -> float:
        """Seconds in all calls."""
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
    """A profiler session that has begun; there can be one in a process."""
    client()  # devices are seen by a session that starts after them
    options = _profiler.ProfileOptions()
    options.python_tracer_level = 0  # functions of Python are not looked at
    return _profiler.ProfilerSession(options)


def stop_session(session: Any) -> Profile:
    """Return the profile."""
    try:
        # XLA makes a type of which Python 3.13 warns, and ends the process if that raises
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            return read_profile(session.stop())
    except RuntimeError as error:
        raise JaxRuntimeError(
            f"explain: no other profile may be under way; got {error} "
            "Hint: weft.profiler.stop_trace() first."
        ) from error


def profile_calls(call: Callable[[], Any], runs: int) -> Profile:
    """A profile of calls, of which those near the quickest count: in others it waited for others.

    Args:
      call: what to profile; it returns when its results are there.
      runs: the least number of calls. Quick calls are made as often as fits into `ENOUGH`.
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
    """The instructions that ran, and the windows, of a serialized profile."""
    windows, events = [], []
    ends: dict[tuple[str, Any], list[float]] = {}  # of what goes on in other threads
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
    """An event up to where what it began ends, by XLA; `ends` are of all its runs."""
    i = bisect.bisect_left(ends, event.start)
    return event if i == len(ends) else event._replace(end=max(event.end, ends[i]))


def cut_events(events: Sequence[Event], readers: Mapping[str, Container[str]]) -> list[Event]:
    """Return the events of a run, each of which ends when one begins that reads its results.

    The mark of the end of what goes on in other threads is written by one of these, which may be
    put to sleep before it does so.

    Args:
      readers: for the names of instructions, the names of those that read their results.
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
    """Seconds of the clock for each instruction of a module, by name.

    At each moment, the instructions that run on some thread share it; those that hold others, as
    loops do, have it only where none of the others runs.
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
