"""Sharing the time of a profile among what ran."""

import numpy as np
import pytest

import weft
from weft import numpy as jnp
from weft.errors import JaxRuntimeError
from weft.explain import machine, profiles
from weft.explain.costs import Costs
from weft.explain.profiles import (
    Event,
    Profile,
    cut_events,
    extend_event,
    profile_calls,
    share_time,
)
from weft.explain.report import Report
from weft.explain.subject import Subject


def event(name, start, end):
    return Event("m", name, start * 1e9, end * 1e9, 0)


def shares(*events):
    found = share_time(events, lambda name: name.startswith("while"))
    return {name: pytest.approx(t) for name, t in found.items()}


def test_time_is_shared_by_what_runs_at_once():
    assert shares(event("a", 0, 4), event("b", 2, 6)) == {"a": 3, "b": 3}
    assert shares(event("a", 0, 1), event("a", 5, 7)) == {"a": 3}


def test_what_holds_others_has_the_time_between_them():
    found = shares(event("while.1", 0, 10), event("while.2", 1, 5), event("a", 2, 4))
    assert found == {"while.1": 6, "while.2": 2, "a": 2}


def test_what_goes_on_in_other_threads_is_counted_to_its_end():
    assert extend_event(event("a", 0, 1), [3e9, 9e9]).end == 3e9
    assert extend_event(event("a", 0, 5), [3e9]).end == 5e9
    assert extend_event(event("a", 4, 5), [3e9]).end == 5e9


def test_what_is_read_has_ended():
    """However late the mark of its end was written, in each turn of a loop."""
    events = [event("a", 0, 9), event("b", 2, 3), event("c", 4, 5), event("a", 6, 8)]
    events += [event("b", 8, 9), event("c", 7, 9)]
    found = cut_events(events, {"a": {"c"}, "b": {"z"}})
    assert [(e.name, e.start / 1e9, e.end / 1e9) for e in found] == [
        ("a", 0, 4), ("b", 2, 3), ("c", 4, 5), ("a", 6, 7), ("c", 7, 9), ("b", 8, 9),
    ]  # fmt: skip


def test_only_what_runs_in_a_call_counts():
    events = [event(f"{start}", start, start + 0.75) for start in np.arange(0, 5, 0.5)]
    profile = Profile([(1e9, 2e9), (3e9, 4e9)], events)
    found = {e.name: (e.start, e.end) for listed in profile.events_of("m") for e in listed}
    second = 1e9
    assert found == {
        "1.0": (1 * second, 1.75 * second),
        "1.5": (1.5 * second, 2 * second),
        "3.0": (3 * second, 3.75 * second),
        "3.5": (3.5 * second, 4 * second),
    }
    assert profile.wall == pytest.approx(2) and profile.events_of("n") == [[], []]


def test_time_under_an_unknown_name_has_no_line():
    """As on a GPU, which may run several kernels as one command."""
    subject = Subject(lambda x: jnp.sin(x) + 1, (jnp.ones(64),), {})
    module = subject.module
    name, known = module.name, module.computations[module.entry][-1].name
    events = [Event(name, known, 1e9, 2e9, 0), Event(name, "command_buffer", 2e9, 5e9, 0)]
    costs = Costs(module, subject.attribution, Profile([(0.0, 10e9)], events))
    assert costs.attributed == pytest.approx(1) and costs.unknown == {"command_buffer": 3.0}
    report = Report("f")
    report.add_costs(costs, None)
    assert "10.0% is in kernels whose lines are known" in str(report)
    assert "Another 30.0% ran under names that the program does not have" in str(report)
    assert str(report).count("command_buffer") == 1


def test_a_session_sees_the_devices_and_no_python(monkeypatch):
    asked = []
    session = lambda options: asked.append(("session", options.python_tracer_level))
    monkeypatch.setattr(profiles, "client", lambda: asked.append("client"))
    monkeypatch.setattr(profiles._profiler, "ProfilerSession", session)
    profiles.start_session()
    assert asked == ["client", ("session", 0)]


def test_one_profile_at_a_time(tmp_path):
    with weft.profiler.trace(tmp_path):
        with pytest.raises(JaxRuntimeError, match="explain: no other profile may be under way"):
            profile_calls(lambda: None, 1)
        weft.block_until_ready(jnp.ones(3))


def corrected(wall, plain, seconds, around=("while",)):
    costs = object.__new__(Costs)
    costs.wall = wall
    found = costs.correct(seconds, around, plain)
    return costs.wall, {name: pytest.approx(t) for name, t in found.items()}


def test_what_the_profiler_adds_is_taken_off():
    """It is subtracted from the gaps between instructions first: the loop's, and nobody's."""
    seconds = {"while": 3.0, "a": 4.0, "b": 2.0}
    assert corrected(10.0, 10.0, seconds) == (10.0, seconds)
    assert corrected(10.0, 12.0, seconds) == (10.0, seconds)  # the profiled run was quicker
    assert corrected(10.0, 0.0, seconds) == (10.0, seconds)  # it is not known
    assert corrected(10.0, 8.0, seconds) == (8.0, {"while": 1.5, "a": 4.0, "b": 2.0})
    assert corrected(10.0, 3.0, seconds) == (3.0, {"while": 0.0, "a": 2.0, "b": 1.0})
    assert corrected(10.0, 5.0, {"a": 10.0}) == (5.0, {"a": 5.0})


def test_peaks_only_rise_and_are_kept(tmp_path, monkeypatch):
    """Other processes use the cache on disk; other work makes a measurement worse."""
    measured = iter([machine.Peaks(5.0, 2.0, 3.0, "then"), machine.Peaks(4.0, 9.0, 3.0, "now")])
    monkeypatch.setattr(machine, "measure_peaks", lambda rounds: next(measured))
    with weft.config.scope(compilation_cache_dir=str(tmp_path)):
        machine.find_peaks.cache_clear()
        assert machine.find_peaks("cpu") == (5.0, 2.0, 3.0, "then")
        machine.find_peaks.cache_clear()  # as in another process
        assert machine.find_peaks("cpu") == (5.0, 9.0, 3.0, "now")
        assert machine.raise_peaks("cpu", 4.5).flops == 5.0
        assert machine.raise_peaks("cpu", 7.0) == (7.0, 9.0, 3.0, machine.today())
        assert machine.raise_peaks("cpu", 6.0).flops == 7.0
    machine.find_peaks.cache_clear()
