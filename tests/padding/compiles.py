"""Counting the programs that are compiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import weft


@contextmanager
def count_compiles() -> Iterator[list]:
    """Count the programs that are compiled, or read from the disk, in the block."""
    count = [0]

    def listen(event: str, seconds: float, **more: object) -> None:
        count[0] += event.endswith("backend_compile_duration")

    weft.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield count
    finally:
        weft.monitoring.unregister_event_duration_listener(listen)
