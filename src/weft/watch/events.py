"""Listening to what weft does: how long traces, lowerings and compiles take, hits of the cache.

Listeners get events under the names that JAX's users listen for; anybody may record more. Nothing
is kept: an event without a listener is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
CACHE_REQUEST = "/jax/compilation_cache/compile_requests_use_cache"
CACHE_HIT = "/jax/compilation_cache/cache_hits"
CACHE_MISS = "/jax/compilation_cache/cache_misses"
CACHE_RETRIEVAL = "/jax/compilation_cache/cache_retrieval_time_sec"

Listener = Callable[..., None]

_events: list[Listener] = []
_durations: list[Listener] = []
_spans: list[Listener] = []
_scalars: list[Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell the listeners that something happened.

    >>> register_event_listener(lambda event, **details: print(event, details))
    >>> record_event("/my/app/started", run=3)
    /my/app/started {'run': 3}
    >>> clear_event_listeners()
    """
    for listener in list(_events):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell the listeners how many seconds something took."""
    for listener in list(_durations):
        listener(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tell the listeners when something began and ended, in seconds since the epoch."""
    for listener in list(_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell the listeners a number."""
    for listener in list(_scalars):
        listener(event, value, **kwargs)


def record_work(event: str, seconds: float, **details: str | int) -> None:
    """What weft records of work that just ended: its duration and its time span."""
    if _durations:
        record_event_duration_secs(event, seconds, **details)
    if _spans:
        now = time.time()
        record_event_time_span(event, now - seconds, now, **details)


def register_event_listener(callback: Listener) -> None:
    """Call `callback(event, **details)` for each event."""
    _events.append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Call `callback(event, seconds, **details)` for each duration."""
    _durations.append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Call `callback(event, start, end, **details)` for each time span."""
    _spans.append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Call `callback(event, value, **details)` for each number."""
    _scalars.append(callback)


def _unregister(listeners: list[Listener], kind: str, callback: Listener) -> None:
    if callback not in listeners:
        raise ValueError(
            f"unregister_{kind}_listener: the callback must be registered; got {callback!r}."
        )
    listeners.remove(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Stop calling a listener of events."""
    _unregister(_events, "event", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Stop calling a listener of durations."""
    _unregister(_durations, "event_duration", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Stop calling a listener of time spans."""
    _unregister(_spans, "event_time_span", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Stop calling a listener of numbers."""
    _unregister(_scalars, "scalar", callback)


def clear_event_listeners() -> None:
    """Forget every listener."""
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()
