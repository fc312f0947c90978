"""Progress of long work, where `config.progress` asks for it: what is being done, and since when.

Work is tracing, lowering and compiling. It may hold other work (a function that is traced calls a
jitted one); what began last is what is told.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

FIRST = 1.0  # seconds; what takes less is not told
_work: list[tuple[str, float]] = []  # what is being done, and when it began; the last is innermost


def run_reporting(what: str, work: Callable[..., Result], *args: object) -> Result:
    """`work(*args)`; if it takes long, standard error says what is being done, and for how long."""
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
    """Until it is done, tell what is: each second on a terminal, else at 1, 2, 4, 8 ... seconds."""
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
