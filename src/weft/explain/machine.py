"""Measure the peaks of this machine: arithmetic, functions, memory."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from weft import numpy as jnp
from weft.api.devices import block_until_ready
from weft.api.jit import jit

_SIDE = 512  # of the matrices multiplied
_LENGTH = 1 << 22  # of the vectors moved: 16 MiB, more than the caches of a core hold
_ELEMENTS = 1 << 18  # of the array whose exponentials are timed


class Peaks(NamedTuple):
    """The peaks of this machine, each per second."""

    flops: float
    transcendentals: float
    bytes: float


@functools.cache  # by the platform: the machine stays the same
def measure_peaks(platform: str) -> Peaks:
    """Peaks of the default device: of float32 products, of `exp`, and of a copy with a change."""
    square = jnp.ones((_SIDE, _SIDE))
    products = 2 * _SIDE**3 / time_best(jit(lambda x: x @ x), square)
    functions = _ELEMENTS / time_best(jit(jnp.exp), jnp.ones(_ELEMENTS))
    moved = 8 * _LENGTH / time_best(jit(lambda x: x + 1), jnp.ones(_LENGTH))
    return Peaks(products, functions, moved)


def time_best(fun: Callable, *args: Any) -> float:
    """Seconds of the quickest of 30 calls, after one that compiles."""
    block_until_ready(fun(*args))
    times = []
    for _ in range(30):
        start = time.perf_counter()
        block_until_ready(fun(*args))
        times.append(time.perf_counter() - start)
    return min(times)
