"""Read tapes: the samples of each equation, and statistics of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.explain.numerics.recording import FACTS, FIELDS, Branched, Looped, Sampled

FAIR = 0.03  # of a result's elements; fewer may be far off, as elements near zero are


class Sample(NamedTuple):
    """The record of an equation in one iteration of the loops around it.

    Arrays have an entry for each sampled element.

    Attributes:
      turns: the iteration of each loop around the equation.
      narrow: the results of the narrow run.
      wide: the results of the wide run.
      errors: the absolute differences of the narrow and the wide results.
      added: the errors that the operation itself adds. They are the absolute differences between
        the narrow results and the results of the wide operation on the narrow operands.
      scale: for sums, the sums of absolute terms; else 0.
      inherited: the largest relative errors of the operands.
      facts: figures of all elements, by the names in FACTS.
      rewrites: for each rewrite, its results in the narrow and then in the wide type.
    """

    turns: tuple[int, ...]
    narrow: np.ndarray
    wide: np.ndarray
    errors: np.ndarray
    added: np.ndarray
    scale: np.ndarray
    inherited: np.ndarray
    facts: dict[str, float]
    rewrites: Sequence[np.ndarray]


def read_tape(
    layout: Sequence[Any], tape: np.ndarray, turns: tuple[int, ...] = ()
) -> Iterator[tuple[Any, Any]]:
    """Yield each part of a tape: its item in the layout, and its sample."""
    at = 0
    for item in layout:
        part = tape[at : at + item.size]
        at += item.size
        if isinstance(item, Sampled):
            yield item, read_sample(item, part, turns)
        elif isinstance(item, Branched):
            before = 0
            for b, inner in enumerate(item.inner):
                length = sum(x.size for x in inner)
                if b == int(part[0]):
                    yield from read_tape(inner, part[1 + before : 1 + before + length], turns)
                before += length
        elif isinstance(item, Looped):
            which, tapes = part[1 : 1 + item.slots], part[1 + item.slots :]
            tapes = tapes.reshape(item.slots, item.length)
            for slot in np.argsort(which, kind="stable"):
                if which[slot] >= 0:
                    yield from read_tape(item.inner, tapes[slot], (*turns, int(which[slot])))
        else:
            yield item, part


def read_sample(item: Sampled, part: np.ndarray, turns: tuple[int, ...]) -> Sample:
    """Return the sample of one equation from its part of the tape."""
    count = len(FIELDS) + 2 * item.more
    fields = part[: count * item.count].reshape(count, item.count)
    facts = dict(zip(FACTS, part[count * item.count :].tolist(), strict=True))
    return Sample(turns, *fields[: len(FIELDS)], facts, list(fields[len(FIELDS) :]))


def ulp_of(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the unit in the last place (ulp) of a dtype at each value."""
    info = dtypes.finfo(dtypes.real_dtype(dtype))
    tiny = float(info.smallest_normal)
    sizes = np.clip(np.abs(values), tiny, float(info.max))
    sizes = np.where(np.isfinite(values), sizes, np.nan)
    _, exponents = np.frexp(sizes)
    return np.ldexp(float(info.eps), exponents - 1) + 0 * sizes


class Record:
    """All samples of one equation, or of one result of the program."""

    def __init__(self, item: Sampled, path: Sequence[int] = ()):
        self.item = item
        self.path = path
        self.site = item.site
        self.samples: list[Sample] = []

    @property
    def dtype(self) -> Any:
        return self.site.aval.dtype

    def join(self, field: str) -> np.ndarray:
        """Return a field of all samples, concatenated."""
        return np.concatenate([getattr(s, field) for s in self.samples])

    def rank(self, sample: Sample) -> list[int]:
        """Return a key that sorts samples by the time that their equations ran."""
        turns = iter(sample.turns)
        return [next(turns) if place < 0 else place for place in self.path]

    def total(self, fact: str) -> float:
        """Return a fact, summed over the recorded iterations."""
        return sum(s.facts[fact] for s in self.samples)

    @functools.cached_property
    def ulps(self) -> np.ndarray:
        """Errors against the wide run, in ulps.

        An entry is NaN if the error is NaN or the wide value is not finite.
        """
        return measure_ulps(self.join("errors"), self.join("wide"), self.dtype)

    @functools.cached_property
    def added_ulps(self) -> np.ndarray:
        """Errors that the operation adds, in ulps of its result."""
        return measure_ulps(self.join("added"), self.join("narrow"), self.dtype)

    @functools.cached_property
    def lost_digits(self) -> np.ndarray:
        """Decimal digits lost to cancellation in sums and differences."""
        if not dtypes.is_inexact(self.dtype):
            return np.zeros(1)
        with np.errstate(all="ignore"):
            ratio = self.join("scale") / np.abs(self.join("narrow"))
            digits = np.log10(np.maximum(ratio, 1))
        most = -math.log10(float(dtypes.finfo(dtypes.real_dtype(self.dtype)).eps))
        return np.clip(np.nan_to_num(digits, nan=0.0, posinf=most), 0, most)

    def worst(self) -> tuple[float, tuple[int, ...], tuple[int, ...]]:
        """Return the largest error in ulps, the index of the element, and the iterations."""
        if not len(self.ulps) or np.isnan(self.ulps).all():
            return 0.0, (), ()
        k = int(np.nanargmax(self.ulps))
        which, place = divmod(k, self.item.count)
        return float(self.ulps[k]), self.item.lattice.locate(place), self.samples[which].turns


def measure_ulps(errors: np.ndarray, values: np.ndarray, dtype: Any) -> np.ndarray:
    """Return errors in ulps of `values`. Nonzero errors of values that are not finite are NaN."""
    if not dtypes.is_inexact(dtype):
        return np.zeros(len(errors))
    with np.errstate(all="ignore"):
        return np.where(errors == 0, 0.0, errors / ulp_of(values, dtype))


def find_spread(values: np.ndarray) -> tuple[float, float]:
    """Return the median and the maximum of values, ignoring NaN."""
    kept = values[~np.isnan(values)]
    return (float(np.median(kept)), float(kept.max())) if len(kept) else (0.0, 0.0)


def relative(errors: np.ndarray, wide: np.ndarray) -> np.ndarray:
    """Return errors divided by the absolute wide values; 0 for zero errors and for NaN."""
    with np.errstate(all="ignore"):
        found = errors / np.abs(wide)
    return np.where(errors == 0, 0.0, np.where(np.isnan(found), 0.0, found))


def order_sites(layout: Sequence[Any], prefix: tuple[int, ...] = ()) -> dict[int, tuple[int, ...]]:
    """Return the path of each sampled equation: its position in the layout and around it.

    A -1 in a path stands for the iteration of a loop.
    """
    found: dict[int, tuple[int, ...]] = {}
    for i, item in enumerate(layout):
        if isinstance(item, Sampled):
            found[id(item)] = (*prefix, i)
        elif isinstance(item, Looped):
            found |= order_sites(item.inner, (*prefix, i, -1))
        elif isinstance(item, Branched):
            for inner in item.inner:
                found |= order_sites(inner, (*prefix, i))
    return found


def ulps_text(x: float) -> str:
    """Return an error in ulps as a short text."""
    if not x < 1e100:
        return "inf"
    return f"{x:.2g}" if x < 100 else f"{x:.3g}"
