"""Measure the peaks of this machine: arithmetic, functions, memory."""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from weft import numpy as jnp
from weft.api.devices import block_until_ready
from weft.api.jit import jit
from weft.explain.profiles import time_call
from weft.mesh.client import default_device
from weft.options import config
from weft.xla.compile import describe_machine
from weft.xla.diskcache import cache_key, disk_cache, fingerprint

_SIDE = 512  # of the matrices multiplied
_LENGTH = 1 << 22  # of the vectors moved: 16 MiB, more than the caches of a core hold
_ROUNDS, _CALLS = 5, 10
_ELEMENTS = 1 << 18  # of the array whose exponentials are timed


class Peaks(NamedTuple):
    """The peaks of this machine, each per second; `day` is when they were measured, or empty."""

    flops: float
    transcendentals: float
    bytes: float
    day: str = ""


@functools.cache  # by the platform: the machine stays the same
def find_peaks(platform: str) -> Peaks:
    """Peaks of the default device: the best that was ever measured on this machine.

    They are kept in the cache on disk. Other work can only make a measurement worse, so that each
    process measures once more, shortly where peaks are known.
    """
    return keep_better(measure_peaks(1 if read_peaks().day else _ROUNDS))


def raise_peaks(platform: str, flops: float) -> Peaks:
    """The peaks of a device one of whose kernels was seen to do `flops` in a second."""
    found = find_peaks(platform)
    return keep_better(found._replace(flops=flops, day=today()) if flops > found.flops else found)


def read_peaks() -> Peaks:
    """The peaks in the cache on disk, or zeros."""
    try:
        return Peaks(*json.loads(disk_cache(config.compilation_cache_dir).get(peaks_key()) or b""))
    except (TypeError, ValueError):  # there are none, or those of another version
        return Peaks(0.0, 0.0, 0.0)


def keep_better(seen: Peaks) -> Peaks:
    """The better of each of the peaks seen and of those in the cache, which has them from now."""
    known = read_peaks()
    best = Peaks(*map(max, known[:3], seen[:3]), known.day)
    if best == known:
        return known
    best = best._replace(day=seen.day)
    disk_cache(config.compilation_cache_dir).put(peaks_key(), json.dumps(best).encode())
    return best


def today() -> str:
    """The day, as it is written everywhere."""
    return datetime.date.today().isoformat()


def peaks_key() -> str:
    """The name of the peaks of the default device in the cache."""
    return cache_key("peaks", fingerprint(), describe_machine(default_device()))


def measure_peaks(rounds: int) -> Peaks:
    """Peaks of the default device: of float32 products, of `exp`, and of a copy with a change.

    They are measured in turn, so that other work on the machine does not fall on one of them alone.
    """
    programs = [
        (jit(lambda x: x @ x), jnp.ones((_SIDE, _SIDE))),
        (jit(jnp.exp), jnp.ones(_ELEMENTS)),
        (jit(lambda x: x + 1), jnp.ones(_LENGTH)),
    ]
    times = [[time_best(f, x) for f, x in programs] for _ in range(rounds)]
    product, function, move = [min(found) for found in zip(*times, strict=True)]
    return Peaks(2 * _SIDE**3 / product, _ELEMENTS / function, 8 * _LENGTH / move, today())


def time_best(fun: Callable, *args: Any) -> float:
    """Seconds of the quickest of some calls, after one that compiles."""
    call = lambda: block_until_ready(fun(*args))
    call()
    return min(time_call(call)[1] for _ in range(_CALLS))
