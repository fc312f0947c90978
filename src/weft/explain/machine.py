"""Measure the peak rates of this machine: FLOPs, transcendental functions, memory traffic."""

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
_LENGTH = 1 << 22  # of the vectors copied: 16 MiB, larger than the caches of a core
_ROUNDS, _CALLS = 5, 10
_ELEMENTS = 1 << 18  # of the array whose exponentials are timed


class Peaks(NamedTuple):
    """The peak rates of this machine, per second. `day` is the date of the measurement, or ""."""

    flops: float
    transcendentals: float
    bytes: float
    day: str = ""


@functools.cache  # by the platform: the machine stays the same
def find_peaks(platform: str) -> Peaks:
    """Return the peaks of the default device: the best ever measured on this machine.

    The disk cache stores them. Other load on the machine can only make a measurement worse, so
    each process measures once more and the best is stored. If peaks are already known, the
    measurement has one round only.
    """
    return keep_better(measure_peaks(1 if read_peaks().day else _ROUNDS))


def raise_peaks(platform: str, flops: float) -> Peaks:
    """Return the peaks of a device, raised if a kernel has reached `flops` FLOPs per second."""
    found = find_peaks(platform)
    return keep_better(found._replace(flops=flops, day=today()) if flops > found.flops else found)


def read_peaks() -> Peaks:
    """Return the peaks in the disk cache, or zeros."""
    try:
        return Peaks(*json.loads(disk_cache(config.compilation_cache_dir).get(peaks_key()) or b""))
    except (TypeError, ValueError):  # no entry, or an entry of another version
        return Peaks(0.0, 0.0, 0.0)


def keep_better(seen: Peaks) -> Peaks:
    """Return the larger of each measured and each cached peak, and store them in the cache."""
    known = read_peaks()
    best = Peaks(*map(max, known[:3], seen[:3]), known.day)
    if best == known:
        return known
    best = best._replace(day=seen.day)
    disk_cache(config.compilation_cache_dir).put(peaks_key(), json.dumps(best).encode())
    return best


def today() -> str:
    """Return today's date in ISO format."""
    return datetime.date.today().isoformat()


def peaks_key() -> str:
    """Return the cache key of the peaks of the default device."""
    return cache_key("peaks", fingerprint(), describe_machine(default_device()))


def measure_peaks(rounds: int) -> Peaks:
    """Measure the peaks of the default device.

    The programs are a float32 matrix product, `exp`, and the addition of 1 to a long vector. Each
    round runs all three, so that other load on the machine affects all of them equally.
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
    """Return the seconds of the fastest of several calls, after a first call that compiles."""
    call = lambda: block_until_ready(fun(*args))
    call()
    return min(time_call(call)[1] for _ in range(_CALLS))
