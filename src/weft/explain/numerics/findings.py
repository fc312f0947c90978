"""Find the lines that lose precision, and describe the evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.facts import Cost, Linearity
from weft.explain.numerics.samples import FAIR, Record, measure_ulps, relative, ulps_text
from weft.explain.numerics.values import is_wide
from weft.explain.origins import NOWHERE, Place, find_place

KEPT_SHARE = 0.58  # of a result's bits; a result with fewer correct bits is bad
# A line is a finding only if errors grow there by this fraction of the bits that a result can lose
# before it is bad.
MIN_GROWTH = 0.6
MIN_ARRAY = 8  # in smaller results, elements near zero are judged like all others
# A line is a finding only if its relative error is at least 1/64 of the result's relative error.
MAX_DISTANCE = 64
MIN_SHARE = 0.5  # of the largest growth in bits; lines with less growth are not reported


class Finding(NamedTuple):
    """A line that loses precision, or makes a NaN or an infinity.

    Attributes:
      kind: "cancellation", "growth", "rounding", "underflow", "overflow", "nan", "infinity",
        "wrapped", or "hidden".
      place: the user's line.
      text: what happens there.
      remedy: the usual rewrite as code, or "".
      score: bits of precision lost there.
      backward: whether it happens in a reverse pass.
      gain: the errors in ulps of the line and of the rewrite, measured on the same operands; None
        if the remedy was not measured.
    """

    kind: str
    place: Place
    text: str
    remedy: str = ""
    score: float = 0.0
    backward: bool = False
    gain: tuple[float, float] | None = None

    @property
    def advice(self) -> str:
        """The remedy, and the errors without and with it."""
        if self.gain is None:
            return self.remedy
        before, after = map(ulps_text, self.gain)
        return f"{self.remedy}  (error {before} ulp -> {after} ulp)"

    def __str__(self) -> str:
        where = f"{self.place}" + (" (backward)" if self.backward else "")
        remedy = f"\n    instead: {self.advice}" if self.remedy else ""
        return f"{where}: {self.text}{remedy}"


def count_bits(dtype: Any) -> int:
    """Return the number of bits of the significand of a dtype."""
    return 1 - round(math.log2(float(dtypes.finfo(dtypes.real_dtype(dtype)).eps)))


def allowed_ulps(dtype: Any) -> float:
    """Return the smallest error in ulps that makes a result of this dtype bad."""
    return 2.0 ** ((1 - KEPT_SHARE) * count_bits(dtype))


def high(values: np.ndarray) -> float:
    """Return a high quantile: the value that a fraction `FAIR` of the values reaches."""
    return float(high_rows(values[None])[0])


def high_rows(values: np.ndarray) -> np.ndarray:
    """Return a high quantile of each row of a matrix."""
    count = values.shape[1]
    if not count:
        return np.zeros(len(values))
    ordered = np.sort(np.nan_to_num(values, nan=0.0, posinf=1e300), axis=1)
    return ordered[:, -max(1, math.floor(FAIR * count))]


def is_bad(result: Record) -> bool:
    """Return True if a result of the program has lost too many digits in too many elements."""
    if not dtypes.is_inexact(result.dtype):
        return False
    narrow, wide = result.join("narrow"), result.join("wide")
    if not narrow.any() and high(np.abs(wide)) > 0:
        return True
    ulps = measure_ulps(result.join("error"), raise_small(wide, result.dtype), result.dtype)
    far = np.nan_to_num(ulps, nan=0.0, posinf=1e300) >= allowed_ulps(result.dtype)
    # No number of the dtype is nearer to a result that underflows.
    far &= ~(result.join("error") < smallest_number(result.dtype))
    far |= np.isinf(narrow) & np.isfinite(wide)
    return int(far.sum()) >= max(1, math.floor(FAIR * len(far)))


def raise_small(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the values of an array, raised to a floor far below their root mean square.

    Elements of a matrix product that happen to be near zero have large relative errors. The floor
    keeps these elements from making the result bad.
    """
    finite = values[np.isfinite(values)]
    top = np.abs(finite).max(initial=0.0)
    if len(finite) < MIN_ARRAY or not top:
        return values
    floor = top * float(np.sqrt(np.mean((finite / top) ** 2))) * 2.0 ** (-count_bits(dtype) / 4)
    return np.where(np.abs(values) < floor, floor, values)


def measure_growth(record: Record, unit: float) -> tuple[float, float]:
    """Return by how many bits errors grow in an equation, and the relative error after it."""
    turns, fields, *_ = record.block
    after = relative(fields["error"], fields["wide"])
    with np.errstate(all="ignore"):
        growth = after / np.maximum(fields["inherited"], unit / 2)
    last = np.array([t[-1] if t else 0 for t in turns])
    counts = np.maximum(1, np.diff(last, prepend=0))  # iterations since the last recorded one
    bits = np.maximum(0.0, np.log2(np.maximum(high_rows(growth), 1e-300)))
    return float(counts @ bits), float(high_rows(after).max(initial=0.0))


def find_findings(records: Sequence[Record], results: Sequence[Record]) -> list[Finding]:
    """Return the findings, the worst first."""
    found = [*find_special(records, results), *find_wraps(records)]
    bad = [r for r in results if is_bad(r)]
    if bad:
        known = {f.place for f in found}
        for fact in ("nans", "infs"):  # errors caused by these are not reported again
            known |= {b.record.site.place for b in find_births(records, fact)}
        found += [f for f in find_losses(records, bad) if f.place not in known]
    return [*found, *find_hidden(records, results)]


# --- remedies ---


MIN_GAIN = 8.0  # a rewrite is proposed only if it divides errors by at least this


def add_remedies(findings: Sequence[Finding], records: Sequence[Record]) -> list[Finding]:
    """Return the findings with the rewrites that help."""
    rewrites: dict[Place, tuple[float, str, tuple[float, float]]] = {}
    for r in records:
        for k, match in enumerate(r.site.remedies):
            before, after = compare_rewrite(r, k)
            if not after * MIN_GAIN < before:
                continue
            ratio = before / max(after, 0.5)
            for place in {r.site.place, *[find_place([e]) for e in match.eqns]}:
                if place not in rewrites or ratio > rewrites[place][0]:
                    rewrites[place] = ratio, match.code, (before, after)
    usual = {r.site.place: find_usual(r) for r in records}
    found = []
    for f in findings:
        if f.place in rewrites:
            _, code, gain = rewrites[f.place]
            found.append(f._replace(remedy=code, gain=gain))
        else:
            adds = f.kind in ("rounding", "growth")
            text = f.remedy or USUAL.get(f.kind, "") or usual.get(f.place, "") * adds
            found.append(f._replace(remedy=text))
    return found


# The usual remedy for a kind of finding, for formulas that have no known rewrite.
USUAL = {"hidden": "jnp.where(ok, f(jnp.where(ok, x, 1)), 0)"}
# The usual remedy where integers of this many bits wrap. Those of 64 bits have none.
WIDER = {
    8: "x.astype(jnp.int32) before the operation",
    16: "x.astype(jnp.int32) before the operation",
    32: "x.astype(jnp.int64) before the operation, under weft.enable_x64(True); or floats",
}


def find_usual(record: Record) -> str:
    """Return the usual remedy for errors that an operation adds, as code or words."""
    eqn = record.site.eqn
    if eqn.primitive.cost is Cost.CONTRACTION:
        return 'precision="highest", or preferred_element_type=jnp.float32'
    if eqn.primitive.cost is Cost.REDUCTION:
        return "jnp.sum(x, dtype=jnp.float64), or a compensated sum"
    if record.site.turns and getattr(eqn.primitive, "linear", None) is Linearity.JOINT:
        return "a carry of a wider dtype, or a compensated sum"
    return ""


def compare_rewrite(record: Record, k: int) -> tuple[float, float]:
    """Return the errors in ulps of a formula and of its rewrite, on the same operands."""
    before, after = 0.0, 0.0
    for s in record.samples:
        rewritten, exact = s.rewrites[2 * k], s.rewrites[2 * k + 1]
        with np.errstate(all="ignore"):
            errors = [np.abs(x - exact) for x in (s.narrow, rewritten)]
        errors = [np.where(np.isnan(e) & np.isfinite(exact), np.inf, e) for e in errors]
        first, second = (high(measure_ulps(e, exact, record.dtype)) for e in errors)
        before, after = max(before, first), max(after, second)
    return before, after


# --- precision ------------------------------------------------------------------------------------


def find_losses(records: Sequence[Record], bad: Sequence[Record]) -> list[Finding]:
    """Return the lines at which the precision of bad results was lost, the worst first."""
    unit = min(float(dtypes.finfo(dtypes.real_dtype(r.dtype)).eps) for r in bad)
    least = min(allowed_ulps(r.dtype) for r in bad) * unit
    final = max(high(relative(r.join("error"), r.join("wide"))) for r in bad)
    needed = max(least / 4, min(final, 1.0) / MAX_DISTANCE)
    lines: dict[Place, tuple[float, Record]] = {}
    for r in records:
        if not dtypes.is_inexact(r.dtype):
            continue
        grown, reached = measure_growth(r, unit)
        if grown < MIN_GROWTH * math.log2(least / unit) or reached < needed:
            continue
        if r.site.place is not NOWHERE and grown > lines.get(r.site.place, (0.0, r))[0]:
            lines[r.site.place] = grown, r
    most = max((g for g, _ in lines.values()), default=0.0)
    ranked = sorted(lines.values(), key=lambda x: -x[0])
    return [describe_loss(r, g, unit) for g, r in ranked if g >= MIN_SHARE * most]


def describe_loss(record: Record, grown: float, unit: float) -> Finding:
    """Return the finding of an equation that loses precision."""
    lost = float(record.lost_digits.max(initial=0.0))
    narrow, wide = record.join("narrow"), record.join("wide")
    flushed = (narrow == 0) & (wide != 0) & (np.abs(wide) < smallest_normal(record.dtype))
    added = high(relative(record.join("added"), narrow)) / unit
    after = min(grown, count_bits(record.dtype)) * math.log10(2)
    name = record.site.operation
    if flushed.any():
        small = describe_small(wide[flushed], record.dtype)
        kind, text = "underflow", f"{name} underflows: {small} becomes 0"
    elif lost >= 1 and added < 2:
        kind = "cancellation"
        text = f"{name} cancels {lost:.1f} digits, so that earlier rounding errors show"
    elif added >= 64:
        kind, text = "rounding", f"{name} itself adds errors of up to {added:.3g} ulp"
        if dtypes.finfo(dtypes.real_dtype(record.dtype)).eps > 4 * unit:
            text = f"{name} rounds to {record.dtype}, of {count_bits(record.dtype)} bits"
    else:
        kind, text = "growth", f"{name} makes relative errors of its operands larger"
    count = len(set(record.block.turns))
    if count > 1:
        text += f", over {count} recorded iterations"
    text += f" ({after:.1f} digits)"
    return Finding(kind, record.site.place, text, "", grown, record.site.backward)


def describe_small(wide: np.ndarray, dtype: Any) -> str:
    """Return a text for the largest number that underflows. Its size is unknown in float64."""
    largest = float(np.abs(wide).max())
    return f"a number below {smallest_normal(dtype):.3g}" if is_wide(dtype) else f"{largest:.3g}"


def smallest_normal(dtype: Any) -> float:
    """Return the smallest normal number of a dtype."""
    return float(dtypes.finfo(dtypes.real_dtype(dtype)).smallest_normal)


def smallest_number(dtype: Any) -> float:
    """Return the smallest positive number of a dtype. CPUs flush smaller floats of 32 bits to 0."""
    info = dtypes.finfo(dtypes.real_dtype(dtype))
    is_kept = np.dtype(dtype) == np.float16
    return float(info.smallest_subnormal if is_kept else info.smallest_normal)


# --- NaN and infinities ---------------------------------------------------------------------------


FROM_ZERO = frozenset(("log", "log2", "div", "rsqrt", "pow", "integer_pow"))  # make inf of 0


class Birth(NamedTuple):
    """An equation that made the first NaN or infinity: its operands had none.

    `sample` is the sample of the iteration where that happened.
    """

    record: Record
    sample: Any


def find_births(records: Sequence[Record], fact: str) -> list[Birth]:
    """Return where NaN ("nans") or infinities ("infs") began, in the order of the run."""
    found = []
    for record in records:
        facts = record.block.facts
        born = np.flatnonzero((facts[fact] > 0) & (facts[fact + "_in"] == 0))
        found += [Birth(record, record.samples[i]) for i in born]
    return sorted(found, key=lambda b: b.record.rank(b.sample))


def find_special(records: Sequence[Record], results: Sequence[Record]) -> list[Finding]:
    """Return where the NaN and the infinities of results began."""
    nans = sum(r.total("nans") for r in results)
    infs = sum(r.total("infs") for r in results)
    born_nans = find_births(records, "nans")
    born_infs = find_births(records, "infs")
    found: list[Finding] = []
    if not (nans and born_nans) and not (infs and born_infs):
        return found
    order = list_in_order(records)
    if nans and born_nans:
        birth = born_nans[0]
        made = next((b for b in born_infs if comes_before(b, birth, order)), None)
        if birth.sample.facts["infs_in"] and made is not None:
            also = (
                f", and {birth.record.site.operation} at {birth.record.site.place} makes NaN of it"
            )
            found.append(describe_infinity(made, also))
        else:
            name = birth.record.site.operation
            text = f"{name} makes NaN{describe_turn(birth.sample)}"
            where = birth.record.site
            found.append(Finding("nan", where.place, text, "", 1e3, where.backward))
    else:
        birth = born_infs[0]
        vanished = find_vanished(birth, order)
        also = f", and {birth.record.site.operation} at {birth.record.site.place} makes an infinity"
        lost = vanished is not None
        found.append(describe_vanished(vanished, also) if lost else describe_infinity(birth, ""))
    return found


def find_vanished(birth: Birth, order: Sequence) -> Birth | None:
    """Return the first underflow before an infinity; None if it is not the likely cause.

    Underflow is a likely cause only if the wide run has a finite number instead of the infinity.
    For float64, whose wide run has the same range, the infinity must be one that is made of a zero.
    """
    s = birth.sample
    wide = np.abs(s.wide[np.isinf(s.narrow)])
    top = float(dtypes.finfo(dtypes.real_dtype(birth.record.dtype)).max)
    may_be_of_zero = is_wide(birth.record.dtype) and birth.record.site.operation in FROM_ZERO
    if not (wide < top).any() and not may_be_of_zero:
        return None
    for record, sample in order:
        if sample is s:
            break
        if dtypes.is_inexact(record.dtype) and mark_vanished(record, sample).any():
            return Birth(record, sample)
    return None


def mark_vanished(record: Record, sample: Any) -> np.ndarray:
    """Return True where a result has underflowed.

    The narrow result is 0 there, and the wide result is a nonzero number too small for the dtype.
    """
    small = np.abs(sample.wide) < smallest_normal(record.dtype)
    return (sample.narrow == 0) & (sample.wide != 0) & small


def describe_vanished(birth: Birth, also: str) -> Finding:
    """Return the finding of an equation whose result is too small."""
    site, s = birth.record.site, birth.sample
    small = describe_small(s.wide[mark_vanished(birth.record, s)], birth.record.dtype)
    text = f"{site.operation} underflows{describe_turn(s)}: {small} becomes 0{also}"
    return Finding("underflow", site.place, text, "", 1e3, site.backward)


def list_in_order(records: Sequence[Record]) -> list[tuple[Record, Any]]:
    """Return pairs of an equation's record and a sample, in the order of execution."""
    pairs = [(r, s, i) for i, r in enumerate(records) for s in r.samples]
    pairs.sort(key=lambda x: x[0].rank(x[1]))
    return [(r, s) for r, s, _ in pairs]


def comes_before(a: Birth, b: Birth, order: Sequence) -> bool:
    """Return True if `a` happened before `b`, or at the same time."""
    at = {id(s): i for i, (_, s) in enumerate(order)}
    return at[id(a.sample)] <= at[id(b.sample)]


def describe_turn(sample: Any) -> str:
    """Return a text with the iteration of a sample; empty outside loops."""
    return f" in iteration {sample.turns[-1]}" if sample.turns else ""


def describe_infinity(birth: Birth, also: str) -> Finding:
    """Return the finding of an equation that made an infinity."""
    site, s = birth.record.site, birth.sample
    wide = np.abs(s.wide[np.isinf(s.narrow)])
    finite = wide[np.isfinite(wide)]
    top = float(dtypes.finfo(dtypes.real_dtype(birth.record.dtype)).max)
    turn = describe_turn(s)
    if len(finite):
        text = f"{site.operation} overflows{turn}: {finite.max():.3g} is beyond {top:.3g}{also}"
        return Finding("overflow", site.place, text, "", 1e3, site.backward)
    text = f"{site.operation} makes an infinity{turn}{also}"
    return Finding("infinity", site.place, text, "", 1e3, site.backward)


def find_hidden(records: Sequence[Record], results: Sequence[Record]) -> list[Finding]:
    """Return findings for NaN values that a later line hides, so that no result has them."""
    if any(r.total("nans") for r in results):
        return []
    found = []
    for birth in find_births(records, "nans")[:1]:
        order = list_in_order(records)
        later = order[[id(s) for _, s in order].index(id(birth.sample)) :]
        hide = next((r for r, s in later if s.facts["nans_in"] and not s.facts["nans"]), None)
        if hide is not None and birth.record.site.place != NOWHERE:
            text = f"{birth.record.site.operation} makes NaN, hidden at {hide.site.place}"
            text += "; a gradient may have it"
            site = birth.record.site
            found.append(Finding("hidden", site.place, text, "", 0.0, site.backward))
    return found


def find_wraps(records: Sequence[Record]) -> list[Finding]:
    """Return where integers wrap."""
    found: dict[Place, Finding] = {}
    for r in records:
        if r.total("wrapped"):
            text = f"{r.site.operation} leaves the range of {r.dtype}"
            remedy = WIDER.get(8 * r.dtype.itemsize, "")
            found.setdefault(r.site.place, Finding("wrapped", r.site.place, text, remedy, 1e2))
    return list(found.values())


def find_given(given: Sequence[Any], results: Sequence[Record]) -> list[Finding]:
    """Return findings for operands of the program that have the NaN or infinities of its results.

    Args:
      given: the operands, each with `name`, `aval`, `value` and `place`, the line that reads it
        first.
      results: the records of the results.
    """
    found = []
    for kind, text, fact, test in (
        ("nan", "NaN", "nans", np.isnan),
        ("infinity", "infinities", "infs", np.isinf),
    ):
        if not any(r.total(f) for r in results for f in {fact, "nans"}):
            continue  # no result has any; a NaN may come of an infinity
        for name, aval, x, place in given:
            if type(aval) is not ShapedArray or not dtypes.is_inexact(aval.dtype):
                continue
            marked = test(np.asarray(x))
            if marked.any():
                said = f"{name} has {text} already{describe_count(marked)}"
                found.append(Finding(kind, place, said, "", 1e2))
    return found


def describe_count(marked: np.ndarray) -> str:
    """Return a text for the number of marked elements and the index of the first one."""
    if not marked.ndim:
        return ""
    first = ", ".join(str(int(i)) for i in np.argwhere(marked)[0])
    return f": {int(marked.sum()):,} of {marked.size:,} elements, the first at [{first}]"
