"""Sharing the time of a profile among what ran."""

import numpy as np
import pytest

import weft
from weft import numpy as jnp
from weft.errors import JaxRuntimeError
from weft.explain import profiles
from weft.explain.profiles import Event, Profile, extend_event, profile_calls, share_time


def event(name, start, end):
    return Event("m", name, start * 1e9, end * 1e9, 0)


def shares(*events):
    found = share_time(events, lambda e: e.name.startswith("while"))
    return {name: pytest.approx(t) for (_, name), t in found.items()}


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


def test_only_what_runs_in_a_call_counts():
    events = [event(f"{start}", start, start + 0.75) for start in np.arange(0, 5, 0.5)]
    profile = Profile([(1e9, 2e9), (3e9, 4e9)], events)
    found = {e.name: (e.start, e.end) for e in profile.events_of("m")}
    second = 1e9
    assert found == {
        "1.0": (1 * second, 1.75 * second),
        "1.5": (1.5 * second, 2 * second),
        "3.0": (3 * second, 3.75 * second),
        "3.5": (3.5 * second, 4 * second),
    }
    assert profile.wall == pytest.approx(2) and profile.events_of("n") == []


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
