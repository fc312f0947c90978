"""`fit_jaxpr`: change a program so that it fits a memory limit and computes the same results.

Each step reduces the memory at the peak, until the estimate is within the limit. A step computes a
region of the program in slices (chunks.py), or recomputes values for the backward pass (again.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weft.core.facts import Runs
from weft.core.jaxpr import Eqn, Jaxpr, bodies_of
from weft.core.source import describe_maker
from weft.footprint.again import list_recomputing
from weft.footprint.chunks import split_region
from weft.footprint.estimate import Measure, Peak
from weft.footprint.regions import Grower, Region, repeat_for_later
from weft.footprint.segments import list_pairs
from weft.passes.inline import inline_calls
from weft.passes.rewrite import rewrite_held

MAX_STEPS = 64  # changes of one program
MAX_DEPTH = 4  # programs around a nested program that is changed
MAX_INNER_STEPS = 8  # changes of one nested program
# A nested program is cut to at least this part of its memory, also where the rest of the program is
# above the limit anyway. Otherwise loops in slices are cut again and again, to single elements.
LEAST_INNER = 1 / 16
MAX_SEEDS = 6  # largest arrays at the peak that regions are grown from, in one step
MAX_SLICES = 2**14
# A step must reduce the memory at least to this fraction.
GAIN = 0.95
# Slices are made smaller until the arrays of one slice need at most this many bytes, so that they
# fit the CPU cache: a kernel matrix in slices of 24 MB takes twice as long as in slices of 2 MB.
CACHE = 4 * 2**20
# Values from outside a region that are smaller than the limit divided by this are not recomputed in
# slices.
SMALL_PART = 64


class Plan(NamedTuple):
    """A program for a memory limit, and its changes from the program as written.

    Attributes:
      jaxpr: the changed program.
      before: the estimated memory of the program as written.
      after: the estimated memory of the changed program.
      steps: a sentence for each change.
    """

    jaxpr: Jaxpr
    before: Peak
    after: Peak
    steps: Sequence[str]


class Candidate(NamedTuple):
    """A changed program.

    Attributes:
      jaxpr: the program.
      peak: its estimated memory.
      step: a sentence that describes the change.
      cost: the bytes that are read or written again for every slice.
    """

    jaxpr: Jaxpr
    peak: Peak
    step: str
    cost: int = 0

    def rank(self, limit: int) -> tuple:
        """Return a sort key; better candidates have smaller keys."""
        size = self.peak.bytes
        if size <= limit:
            return False, self.cost
        level = int(math.log(size) / -math.log(GAIN))  # about equal peaks count as equal
        return True, level, self.peak.excess(limit), size


def fit_jaxpr(jaxpr: Jaxpr, limit: int, measure: Measure) -> Plan:
    """Return the plan of a closed program for a limit in bytes.

    If no changes are found that make the program fit, its estimate is above the limit.
    """
    before = peak = measure.estimate(jaxpr)
    steps: list[str] = []
    if jaxpr.effects:
        return Plan(jaxpr, before, peak, steps)
    most = MAX_INNER_STEPS if measure.inner else MAX_STEPS
    while peak.bytes > limit and len(steps) < most:
        found = find_change(jaxpr, peak, limit, measure)
        if found is None:
            break
        if found.peak.bytes > GAIN * peak.bytes and not removes_peak(found.peak, peak, limit):
            break
        steps.append(found.step)
        jaxpr, peak = found.jaxpr, found.peak
    return Plan(jaxpr, before, peak, steps)


def removes_peak(peak: Peak, before: Peak, limit: int) -> bool:
    """Return True if one of several peaks of about the same height is gone."""
    least = (1 - GAIN) * before.bytes
    gone = before.excess(limit) - peak.excess(limit)
    return abs(peak.bytes - before.bytes) <= least and gone >= max(limit, least) and limit > 0


def find_change(jaxpr: Jaxpr, peak: Peak, limit: int, measure: Measure) -> Candidate | None:
    """Return the best change of a program: within the limit if possible, and of the lowest cost.

    Recomputation costs time, so it is tried only if slices do not make the program fit.
    """
    best = None
    for list_changes in (list_splits, list_inner, list_twice, list_in_segments, list_repeats):
        for found in list_changes(jaxpr, peak, limit, measure):
            if best is None or found.rank(limit) < best.rank(limit):
                best = found
        if best is not None and (best.peak.bytes <= limit or removes_peak(best.peak, peak, limit)):
            break
    return best


def list_splits(jaxpr: Jaxpr, peak: Peak, limit: int, measure: Measure) -> Iterator[Candidate]:
    """Yield programs that compute a region in slices, for regions with arrays at the peak."""
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
    """Return a program that computes a region in slices, for the best number of slices.

    The best is the smallest number that fits the limit and the cache. If there is none, it is the
    number that needs the least memory.
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
    """Return True if a program needs clearly less memory than another.

    If the other one fits the limit, the memory inside loops is compared. If the highest peak is
    elsewhere in the program, the lower peaks are compared.
    """
    if other.bytes <= limit:
        return peak.bytes <= limit and peak.inner <= GAIN * other.inner
    if peak.bytes <= GAIN * other.bytes:
        return True
    lower = peak.excess(limit) < other.excess(limit) - (1 - GAIN) * limit
    return lower and peak.bytes <= (2 - GAIN) * other.bytes


def list_inner(jaxpr: Jaxpr, peak: Peak, limit: int, measure: Measure) -> Iterator[Candidate]:
    """Yield programs that change the nested program at the peak, so that it needs less memory."""
    eqn = jaxpr.eqns[peak.place] if peak.inner and measure.depth < MAX_DEPTH else None
    allowed = max(limit - (peak.bytes - peak.inner), int(LEAST_INNER * peak.inner))
    if eqn is None:
        return
    for body in bodies_of(eqn):
        if body.jaxpr is None or body.runs is Runs.HOST:
            continue
        plan = fit_jaxpr(inline_calls(body.jaxpr, True), allowed, measure.within(body))
        if plan.steps:
            verb = lambda x, old=body.jaxpr, new=plan.jaxpr: new if x is old else x
            eqns = [rewrite_held(e, verb) if e is eqn else e for e in jaxpr.eqns]
            changed = jaxpr.replace(eqns=eqns)
            where = f"in {eqn.primitive.name}: "
            step = f"\n  {where}".join(plan.steps)
            yield Candidate(changed, measure.estimate(changed), where + step)


def list_twice(jaxpr: Jaxpr, peak: Peak, limit: int, measure: Measure) -> Iterator[Candidate]:
    """Yield programs that compute arrays twice: for sums over them, and for readers of these sums.

    A deviation from a mean reads all of an array after the mean is known. If the array is computed
    again for it, the mean needs only slices of the array, and so does the sum of the deviations.
    """
    if measure.inner or limit < min(peak.totals, default=0):
        return
    grower = Grower(jaxpr)
    for v, maker in peak.live[:MAX_SEEDS]:
        for axis in range(v.aval.ndim):
            line = grower.choose_line(maker, {v: axis})
            if maker is None or line is None:
                continue
            region = grower.grow(maker, line, limit // SMALL_PART)
            if region is None or not region.totals:
                continue
            changed = repeat_for_later(jaxpr, region, limit // SMALL_PART)
            if changed is None:
                continue
            region = Grower(changed).grow(maker, line, limit // SMALL_PART)
            found = region and choose_size(changed, region, maker, limit, measure, peak.bytes)
            if found is not None:
                again = ", which are computed again where results of the slices are read"
                yield found._replace(step=found.step + again)


def list_in_segments(jaxpr: Jaxpr, peak: Peak, limit: int, measure: Measure) -> Iterator[Candidate]:
    """Yield programs that run a scan and its reverse in segments.

    The number of segments is doubled until the program fits, or needs no less memory.
    """
    for pair in list_pairs(jaxpr):
        best = None
        count = 2
        while count < pair.length:
            split = pair.split(count)
            found = measure.estimate(split)
            if best is not None and found.bytes > GAIN * best.peak.bytes:
                break
            made = describe_maker(pair.first.source, "scan")
            text = f"the {pair.length} iterations {made} in {count} segments, computed again"
            best = Candidate(split, found, text)
            if found.bytes <= limit:
                break
            count *= 2
        if best is not None:
            yield best


def list_repeats(jaxpr: Jaxpr, peak: Peak, limit: int, measure: Measure) -> Iterator[Candidate]:
    """Yield programs that recompute values instead of keeping them across the peak.

    The budget of kept bytes shrinks from one program to the next.
    """
    least = int((1 - GAIN) * peak.bytes)
    for changed, bytes_kept, whole in list_recomputing(jaxpr, peak.bytes - limit, least):
        found = measure.estimate(changed)
        text = f"{bytes_kept:,} of {whole:,} bytes kept, the other values computed again"
        yield Candidate(changed, found, text)
        if found.bytes <= limit:
            break


def choose_even(total: int, size: int) -> int:
    """Return a slice size between size / 2 and `size` that divides the axis; else `size`."""
    for n in range(size, size // 2, -1):
        if total % n == 0:
            return n
    return size


def describe_split(region: Region, seed: Eqn, count: int) -> str:
    """Return a sentence on the region that is computed in slices."""
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
    """Return a text with the operation of an equation and its source line."""
    return "" if eqn is None else describe_maker(eqn.source, eqn.primitive.name)
