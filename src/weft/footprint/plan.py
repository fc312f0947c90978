"""`fit_jaxpr`: a program that computes the same within a limit of memory, and how.

Steps are tried on the arrays that are in memory when most is in use, until the estimate is within
the limit: a region of the program is computed in slices (chunks.py), or values are computed again
for the backward pass (again.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weft.core.facts import Runs
from weft.core.jaxpr import Eqn, Jaxpr, bodies_of
from weft.core.source import describe_maker
from weft.footprint.again import list_recomputing
from weft.footprint.chunks import split_region
from weft.footprint.estimate import Measure, Peak, measure_body
from weft.footprint.regions import Grower, Region
from weft.passes.inline import inline_calls
from weft.passes.rewrite import rewrite_held

MAX_STEPS = 8  # regions of one program that are computed in slices
MAX_SEEDS = 6  # arrays of the peak from which regions are grown, in one step
MAX_SLICES = 2**14
# A step that reduces the memory by less is none.
GAIN = 0.95
# Slices are made smaller until the arrays of one need at most these bytes, so that they stay in the
# cache: a kernel matrix in slices of 24 MB takes twice the time of one in slices of 2 MB.
CACHE = 4 * 2**20
# Values of a smaller part of the limit are not computed again in slices.
SMALL_PART = 64


class Plan(NamedTuple):
    """A program within a limit of memory, and how it differs from the one that was written.

    Attributes:
      jaxpr: the program.
      before, after: the estimates of its memory.
      steps: a sentence for each change.
    """

    jaxpr: Jaxpr
    before: Peak
    after: Peak
    steps: Sequence[str]


class Candidate(NamedTuple):
    """A changed program: its memory, a sentence, and the bytes that slices read or write again."""

    jaxpr: Jaxpr
    peak: Peak
    step: str
    cost: int = 0

    def rank(self, limit: int) -> tuple:
        """Return a key by which the better of two candidates is the smaller."""
        size = self.peak.bytes
        return size > limit, self.cost if size <= limit else size


def fit_jaxpr(jaxpr: Jaxpr, limit: int, measure: Measure) -> Plan:
    """Return the plan of a closed program for a limit in bytes.

    The estimate of the program that it returns may be above the limit: then no better was found.
    """
    before = peak = measure.estimate(jaxpr)
    steps: list[str] = []
    if jaxpr.effects:
        return Plan(jaxpr, before, peak, steps)
    while peak.bytes > limit and len(steps) < MAX_STEPS:
        found = find_change(jaxpr, peak, limit, measure)
        if found is None or found.peak.bytes > GAIN * peak.bytes:
            break
        steps.append(found.step)
        jaxpr, peak = found.jaxpr, found.peak
    return Plan(jaxpr, before, peak, steps)


def find_change(jaxpr: Jaxpr, peak: Peak, limit: int, measure: Measure) -> Candidate | None:
    """Return the best change of a program: one within the limit, of the least cost.

    Computing values again costs time, and is tried where slices are not enough.
    """
    best = None
    for list_changes in (list_splits, list_inner, list_repeats):
        for found in list_changes(jaxpr, peak, limit, measure):
            if best is None or found.rank(limit) < best.rank(limit):
                best = found
        if best is not None and best.peak.bytes <= limit:
            break
    return best


def list_splits(jaxpr: Jaxpr, peak: Peak, limit: int, measure: Measure) -> Iterator[Candidate]:
    """Yield the program with a region in slices, for regions with arrays of the peak."""
    grower = Grower(jaxpr)
    made = [(v, maker) for v, maker in peak.live if maker is not None][:MAX_SEEDS]
    seeds = [
        (maker, line)
        for v, maker in made
        for axis in range(v.aval.ndim)
        if (line := grower.choose_line(maker, {v: axis})) is not None
    ]
    if peak.inner:
        widest = jaxpr.eqns[peak.place]
        seeds += [(widest, line) for line in grower.lines_of(widest)]
    seen = set()
    for eqn, line in seeds:
        if line.size_in(eqn) < 2:
            continue
        region = grower.grow(eqn, line, limit // SMALL_PART)
        if region is None:
            continue
        key = frozenset(region.axes.items()), frozenset(region.totals)
        if key not in seen:
            seen.add(key)
            found = choose_size(jaxpr, region, eqn, limit, measure, peak.bytes)
            if found is not None:
                yield found


def choose_size(
    jaxpr: Jaxpr, region: Region, seed: Eqn, limit: int, measure: Measure, most: int
) -> Candidate | None:
    """Return a region in the fewest slices that are within the limit and in the cache, else in
    those that need the least memory.
    """
    best = None
    again = region.count_repeated()
    count = 2
    while count < 2 * region.size and count <= MAX_SLICES:
        size = choose_even(region.size, -(-region.size // count))
        split = split_region(jaxpr, region, size)
        peak = measure.estimate(split)
        if best is not None and not is_better(peak, best.peak, limit):
            break
        slices = -(-region.size // size)
        best = Candidate(split, peak, describe_split(region, seed, slices), slices * again)
        small = peak.inner <= CACHE or 2 * best.cost > most
        if (peak.bytes <= limit and small) or peak.bytes > 2 * most:
            break
        count *= 2
    return best


def is_better(peak: Peak, other: Peak, limit: int) -> bool:
    """Return True if a program needs less memory than another, in its loops if that one fits."""
    if other.bytes <= limit:
        return peak.bytes <= limit and peak.inner <= GAIN * other.inner
    return peak.bytes <= GAIN * other.bytes


def list_inner(jaxpr: Jaxpr, peak: Peak, limit: int, measure: Measure) -> Iterator[Candidate]:
    """Yield the program with another program in the place of one that the peak is in."""
    eqn = jaxpr.eqns[peak.place] if peak.inner else None
    allowed = limit - (peak.bytes - peak.inner)
    if eqn is None:
        return
    for body in bodies_of(eqn):
        if body.jaxpr is None or body.runs is Runs.HOST:
            continue
        plan = fit_jaxpr(inline_calls(body.jaxpr, True), max(allowed, 0), measure_body(body))
        if plan.steps:
            verb = lambda x, old=body.jaxpr, new=plan.jaxpr: new if x is old else x
            eqns = [rewrite_held(e, verb) if e is eqn else e for e in jaxpr.eqns]
            changed = jaxpr.replace(eqns=eqns)
            where = f"in {eqn.primitive.name}: "
            step = f"\n  {where}".join(plan.steps)
            yield Candidate(changed, measure.estimate(changed), where + step)


def list_repeats(jaxpr: Jaxpr, peak: Peak, limit: int, measure: Measure) -> Iterator[Candidate]:
    """Yield the program that keeps fewer values across its peak, within smaller and smaller parts
    of their bytes.
    """
    least = int((1 - GAIN) * peak.bytes)
    for changed, bytes_kept, whole in list_recomputing(jaxpr, peak.bytes - limit, least):
        found = measure.estimate(changed)
        text = f"{bytes_kept:,} of {whole:,} bytes kept, the other values computed again"
        yield Candidate(changed, found, text)
        if found.bytes <= limit:
            break


def choose_even(total: int, size: int) -> int:
    """Return a size of slices that divides the axis, if one is near to `size`."""
    for n in range(size, size // 2, -1):
        if total % n == 0:
            return n
    return size


def describe_split(region: Region, seed: Eqn, count: int) -> str:
    """Say which part of the program is computed in slices."""
    if seed not in region.lines:
        seed = max(region.lines, key=lambda e: sum(v.aval.nbytes for v in e.outvars))
    line = region.lines[seed]
    pairs = zip((*seed.outvars, *seed.invars), (*line.results, *line.operands), strict=True)
    v, axis = next((v, axis) for v, axis in pairs if type(axis) is int)
    return (
        f"{len(region.lines)} operations in {count} slices along axis {axis} of {v.aval} "
        f"{describe_line(seed)}"
    )


def describe_line(eqn: Eqn | None) -> str:
    """Say which operation on which line makes an array."""
    return "" if eqn is None else describe_maker(eqn.source, eqn.primitive.name)
