"""Progress of long work, if `config.progress` asks for it: the current work, and its time.

Work is tracing, lowering and compiling. Work may be nested (a traced function calls a jitted one);
the innermost work is reported.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

FIRST = 1.0  # seconds; shorter work is not reported
_work: list[tuple[str, float]] = []  # names and start times of current work, the innermost last


def run_reporting(what: str, work: Callable[..., Result], *args: object) -> Result:
    """Return `work(*args)`; report it with its time on standard error if it takes long."""
    entry = (what, time.monotonic())
    _work.append(entry)
    done = threading.Event()
    if len(_work) == 1:
        threading.Thread(target=tell_work, args=(done,), daemon=True).start()
    try:
        return work(*args)
    finally:
        done.set()
        _work.remove(entry)
        seconds = time.monotonic() - entry[1]
        if seconds >= FIRST:
            tell(f"{what}: took {seconds:.1f} s", ended=True)


def tell_work(done: threading.Event) -> None:
    """Report the innermost work: each second on a terminal, else after 1, 2, 4, 8 ... seconds."""
    pause = FIRST
    while not done.wait(pause):
        what, start = _work[-1] if _work else ("", time.monotonic())
        seconds = time.monotonic() - start
        if seconds >= FIRST:
            tell(f"{what}: {seconds:.0f} s so far")
        pause *= 1 if sys.stderr.isatty() else 2


def tell(text: str, ended: bool = False) -> None:
    """A line on standard error, which on a terminal the next one overwrites until one `ended`."""
    before, after = ("\r\033[K", "\n" * ended) if sys.stderr.isatty() else ("", "\n")
    sys.stderr.write(f"{before}weft: {text}{after}")
    sys.stderr.flush()
