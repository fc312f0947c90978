"""Events: durations of traces, lowerings and compilations, and hits of the cache.

Listeners get events under the names that JAX's users listen for; anybody may record more. Nothing
is stored: an event without a listener is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from weft.util import name_function

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

    Args:
      event: the name of the event, such as "/my/app/started".
      **kwargs: details, strings or numbers.

    Returns:
      None.

    >>> register_event_listener(lambda event, **details: print(event, details))
    >>> record_event("/my/app/started", run=3)
    /my/app/started {'run': 3}
    >>> clear_event_listeners()
    """
    for listener in list(_events):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell the listeners how long something took.

    Args:
      event: the name of the event.
      duration: the time in seconds.
      **kwargs: details, strings or numbers.

    Returns:
      None.

    >>> weft.monitoring.record_event_duration_secs("/my/app/loading", 0.25)
    """
    for listener in list(_durations):
        listener(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tell the listeners when something began and ended.

    Args:
      event: the name of the event.
      start_time: the beginning, in seconds since the epoch.
      end_time: the end, in seconds since the epoch.
      **kwargs: details, strings or numbers.

    Returns:
      None.

    >>> weft.monitoring.record_event_time_span("/my/app/loading", 0.0, 0.25)
    """
    for listener in list(_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell the listeners a number.

    Args:
      event: the name of the event.
      value: the number.
      **kwargs: details, strings or numbers.

    Returns:
      None.

    >>> weft.monitoring.record_scalar("/my/app/loss", 0.5)
    """
    for listener in list(_scalars):
        listener(event, value, **kwargs)


def record_work(event: str, seconds: float, **details: str | int) -> None:
    """Record work that just ended: its duration and its time span."""
    if _durations:
        record_event_duration_secs(event, seconds, **details)
    if _spans:
        now = time.time()
        record_event_time_span(event, now - seconds, now, **details)


def make_registration(
    listeners: list[Listener], kind: str, call: str, unit: str = ""
) -> tuple[Callable[[Listener], None], Callable[[Listener], None]]:
    """`register_KIND_listener` and `unregister_KIND_listener`, for the listeners on one list."""

    def register(callback: Listener) -> None:
        listeners.append(callback)

    def unregister(callback: Listener) -> None:
        if callback not in listeners:
            raise ValueError(
                f"unregister_{kind}_listener: the callback must be registered; got {callback!r}."
            )
        listeners.remove(callback)

    names = f"register_{kind}{unit}_listener", f"unregister_{kind}_listener"
    example = f"""
    >>> listener = lambda *record, **details: None
    >>> weft.monitoring.{names[0]}(listener)
    >>> weft.monitoring.{names[1]}(listener)
    """
    added = f"""Call `callback({call}.

    Args:
      callback: a function, which is called in the thread that records.

    Returns:
      None.
{example}"""
    removed = f"""Stop calling `callback({call}.

    Args:
      callback: a function that is registered.

    Returns:
      None.

    Raises:
      ValueError: the function is not registered.
{example}"""
    return name_function(register, names[0], added), name_function(unregister, names[1], removed)


register_event_listener, unregister_event_listener = make_registration(
    _events, "event", "event, **details)` for each event"
)
register_event_duration_secs_listener, unregister_event_duration_listener = make_registration(
    _durations, "event_duration", "event, seconds, **details)` for each duration", "_secs"
)
register_event_time_span_listener, unregister_event_time_span_listener = make_registration(
    _spans, "event_time_span", "event, start, end, **details)` for each time span"
)
register_scalar_listener, unregister_scalar_listener = make_registration(
    _scalars, "scalar", "event, value, **details)` for each number"
)


def clear_event_listeners() -> None:
    """Remove all listeners.

    Returns:
      None.

    >>> weft.monitoring.clear_event_listeners()
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()
