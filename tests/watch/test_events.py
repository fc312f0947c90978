"""Listeners: the events of weft's own work under the names JAX's users know, and users' events."""

import pytest

import weft
from weft import monitoring


@pytest.fixture(autouse=True)
def clear():
    yield
    monitoring.clear_event_listeners()


def test_work_is_heard_of(tmp_path):
    durations, events, spans = [], [], []
    monitoring.register_event_duration_secs_listener(lambda e, s, **d: durations.append((e, s, d)))
    monitoring.register_event_listener(lambda e, **d: events.append(e))
    monitoring.register_event_time_span_listener(lambda e, a, b, **d: spans.append((e, a, b)))

    def model(x):
        return x * 3 + 1

    with weft.config.scope(compilation_cache_dir=str(tmp_path)):
        weft.jit(model)(1.0)
        first = list(events)
        weft.clear_caches()
        weft.jit(model)(1.0)
        weft.jit(model)(1.0)
    names = [(e, d) for e, _, d in durations if "compile/" in e]
    assert names == 2 * [
        ("/jax/core/compile/jaxpr_trace_duration", {"fun_name": "model"}),
        ("/jax/core/compile/jaxpr_to_mlir_module_duration", {"fun_name": "jit(model)"}),
        ("/jax/core/compile/backend_compile_duration", {"fun_name": "jit(model)"}),
    ]
    assert all(seconds > 0 for _, seconds, _ in durations)
    assert first == [
        "/jax/compilation_cache/compile_requests_use_cache",
        "/jax/compilation_cache/cache_misses",
    ]
    assert events[2:] == [
        "/jax/compilation_cache/compile_requests_use_cache",
        "/jax/compilation_cache/cache_hits",
    ]
    assert "/jax/compilation_cache/cache_retrieval_time_sec" in [e for e, *_ in durations]
    assert len(spans) == len(durations) and all(a < b for _, a, b in spans)


def test_events_of_users():
    heard = []
    kinds = [
        (monitoring.register_event_listener, monitoring.record_event, ()),
        (
            monitoring.register_event_duration_secs_listener,
            monitoring.record_event_duration_secs,
            (1.5,),
        ),
        (
            monitoring.register_event_time_span_listener,
            monitoring.record_event_time_span,
            (1.0, 2.0),
        ),
        (monitoring.register_scalar_listener, monitoring.record_scalar, (7,)),
    ]
    for register, record, values in kinds:
        register(lambda *args, **details: heard.append((args, details)))
        record("/my/event", *values, run=1)
        assert heard.pop() == (("/my/event", *values), {"run": 1})
    assert heard == []


@pytest.mark.parametrize("kind", ["event", "event_duration", "event_time_span", "scalar"])
def test_unregister(kind):
    register = {"event_duration": monitoring.register_event_duration_secs_listener}.get(
        kind
    ) or getattr(monitoring, f"register_{kind}_listener")
    unregister = getattr(monitoring, f"unregister_{kind}_listener")

    def listener(*args, **details):
        raise AssertionError("no longer listening")

    register(listener)
    unregister(listener)
    monitoring.record_event("/e")
    monitoring.record_event_duration_secs("/e", 1.0)
    monitoring.record_event_time_span("/e", 1.0, 2.0)
    monitoring.record_scalar("/e", 1)
    with pytest.raises(ValueError, match=f"unregister_{kind}_listener: the callback must be regis"):
        unregister(listener)
