"""Read tapes: the samples of each equation, and statistics of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.explain.numerics.recording import FACTS, FIELDS, Branched, Exact, Kept, Looped, Sampled

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


class Block(NamedTuple):
    """All samples of one equation, in the order of iterations.

    Attributes:
      turns: for each sample, the iteration of each loop around the equation.
      fields: by name, an array with a row for each sample; the names are FIELDS.
      facts: by name, a vector with an entry for each sample; the names are FACTS.
      rewrites: for each rewrite, its results in the narrow and then in the wide type, in rows.
    """

    turns: Sequence[tuple[int, ...]]
    fields: dict[str, np.ndarray]
    facts: dict[str, np.ndarray]
    rewrites: Sequence[np.ndarray]


def read_tape(
    layout: Sequence[Any], tapes: np.ndarray, turns: Sequence[tuple[int, ...]] = ((),)
) -> Iterator[tuple[Any, Any]]:
    """Yield each item of a layout with its samples: a `Block`, or the rows of other kinds of items.

    `tapes` has a row for each iteration that recorded this layout, and `turns` has their numbers.
    """
    if not turns:  # a branch that was never taken
        return
    tapes = tapes.reshape(len(turns), -1)
    known: dict[int, dict[str, np.ndarray]] = {}
    at = 0
    for item in layout:
        part = tapes[:, at : at + item.size]
        at += item.size
        if isinstance(item, Sampled):
            block = read_block(item, part, turns, known)
            known[id(item)] = block.fields
            yield item, block
        elif isinstance(item, Kept):
            known[id(item)] = complete(split_fields(item, part))
        elif isinstance(item, Branched):
            before = 1
            for b, inner in enumerate(item.inner):
                length = sum(x.size for x in inner)
                rows = np.flatnonzero(part[:, 0] == b)
                own = part[rows, before : before + length]
                yield from read_tape(inner, own, [turns[i] for i in rows])
                before += length
        elif isinstance(item, Looped):
            yield from read_tape(item.inner, *read_loop(item, part, turns))
        else:
            yield item, part


def read_loop(
    item: Looped, part: np.ndarray, turns: Sequence[tuple[int, ...]]
) -> tuple[np.ndarray, Sequence[tuple[int, ...]]]:
    """Return the tapes of the recorded iterations of a loop, in their order, and their numbers."""
    which = part[:, 1 : 1 + item.slots]
    tapes = part[:, 1 + item.slots :].reshape(len(part), item.slots, item.length)
    order = np.argsort(which, axis=1, kind="stable")
    rows, places = np.nonzero(np.take_along_axis(which, order, 1) >= 0)
    slots = order[rows, places]
    numbers = which[rows, slots].astype(int).tolist()
    inside = [(*turns[row], number) for row, number in zip(rows, numbers, strict=True)]
    return tapes[rows, slots], inside


def split_fields(item: Any, part: np.ndarray) -> dict[str, np.ndarray]:
    """Return the fields that are on the tape."""
    n = item.count
    return {name: part[:, i * n : (i + 1) * n] for i, name in enumerate(item.fields)}


def complete(fields: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return fields with the wide values and the errors that follow from the others."""
    narrow = fields["narrow"]
    wide = fields.setdefault("wide", narrow)
    if "error" not in fields:
        with np.errstate(all="ignore"):
            fields["error"] = np.abs(wide - narrow) if wide is not narrow else np.zeros_like(wide)
    return fields


def read_block(
    item: Sampled, part: np.ndarray, turns: Sequence[tuple[int, ...]], known: dict
) -> Block:
    """Return the samples of one equation from its part of each tape.

    `known` has the fields of items before it, by their ids.
    """
    n = item.count
    fields = split_fields(item, part)
    more = part[:, len(fields) * n : (len(fields) + 2 * item.more) * n]
    rewrites = [more[:, i * n : (i + 1) * n] for i in range(2 * item.more)]
    if item.operands is not None:
        return Block(turns, *derive_fields(item, complete(fields), known), rewrites)
    facts = dict(zip(FACTS, part[:, part.shape[1] - len(FACTS) :].T, strict=True))
    nothing = np.zeros((len(turns), n))
    return Block(turns, {name: fields.get(name, nothing) for name in FIELDS}, facts, rewrites)


def derive_fields(
    item: Sampled, fields: dict[str, np.ndarray], known: dict
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return all fields and facts of an equation, from its result and its operands."""
    narrow = fields["narrow"]
    nothing = np.zeros_like(narrow)
    operands = [
        complete({"narrow": x.item.values[None]})
        if isinstance(x.item, Exact)
        else known[id(x.item)]
        for x in item.operands
    ]
    inherited = nothing
    with np.errstate(all="ignore"):
        for operand, source in zip(operands, item.operands, strict=True):
            if operand["wide"] is operand["narrow"]:
                continue  # exact
            error, wide = operand["error"], np.abs(operand["wide"])
            if not source.alike:
                error = error.max(1, keepdims=True, initial=0.0)
                wide = wide.max(1, keepdims=True, initial=0.0)
            inherited = np.maximum(inherited, np.nan_to_num(error / wide, nan=0.0, posinf=np.inf))
        scale = fields.get("scale", nothing)
        if item.adds:
            scale = nothing + sum(np.abs(x["narrow"]) for x in operands[:2])
    bad = lambda test, arrays: sum((test(x).sum(1) for x in arrays), np.zeros(len(narrow)))
    given = [x["narrow"] for x in operands]
    sizes = np.abs(narrow)
    facts = {
        "nans": bad(np.isnan, [narrow]),
        "infs": bad(np.isinf, [narrow]),
        "nans_in": bad(np.isnan, given),
        "infs_in": bad(np.isinf, given),
        "largest": np.where(np.isfinite(sizes), sizes, 0.0).max(1, initial=0.0),
        "wrapped": np.zeros(len(narrow)),
    }
    added = fields.get("added", nothing)
    return {**fields, "added": added, "scale": scale, "inherited": inherited}, facts


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

    def __init__(self, item: Sampled, block: Block, path: Sequence[int] = ()):
        self.item = item
        self.block = block
        self.path = path
        self.site = item.site

    @functools.cached_property
    def samples(self) -> list[Sample]:
        """The samples one by one."""
        turns, fields, facts, rewrites = self.block
        columns = [x.tolist() for x in facts.values()]
        figures = [dict(zip(facts, row, strict=True)) for row in zip(*columns, strict=True)]
        arrays = [fields[name] for name in FIELDS]
        return [
            Sample._make((t, *[x[i] for x in arrays], figures[i], [x[i] for x in rewrites]))
            for i, t in enumerate(turns)
        ]

    @property
    def dtype(self) -> Any:
        return self.site.aval.dtype

    def join(self, field: str) -> np.ndarray:
        """Return a field of all samples, concatenated."""
        return self.block.fields[field].ravel()

    def rank(self, sample: Sample) -> list[int]:
        """Return a key that sorts samples by the time that their equations ran."""
        turns = iter(sample.turns)
        return [next(turns) if place < 0 else place for place in self.path]

    def total(self, fact: str) -> float:
        """Return a fact, summed over the recorded iterations."""
        return float(self.block.facts[fact].sum())

    @functools.cached_property
    def ulps(self) -> np.ndarray:
        """Errors against the wide run, in ulps.

        An entry is NaN if the error is NaN or the wide value is not finite.
        """
        return measure_ulps(self.join("error"), self.join("wide"), self.dtype)

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
        return float(self.ulps[k]), self.item.lattice.locate(place), self.block.turns[which]


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
