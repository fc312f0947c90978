"""`MemoryLimit`: the option `memory` of `jit`. The pipeline asks it for a program that fits.

A plan is made from an estimate before the program is compiled. XLA's own figure decides if the
compiled program fits. If it does not, tighter plans are tried. If none fits, the call raises an
error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.core.jaxpr import Jaxpr, variables_in
from weft.footprint.estimate import Measure
from weft.footprint.plan import Plan, describe_line, fit_jaxpr
from weft.footprint.solvers import inline_solvers
from weft.optimize.passes import run_passes
from weft.passes.inline import inline_calls

UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(I?)B", re.IGNORECASE)
# If a compiled program exceeds the limit, the target of the next plan is scaled by the ratio of the
# limit to the bytes used, and by this factor.
TIGHTER = 0.9
# If the compiled program uses more than this multiple of the estimate, XLA has not fused operations
# that the estimate counts on. A tighter plan from the same estimate would cut what needs no memory.
OFF = 2
MAX_TRIES = 6
MAX_LISTED = 4  # arrays in an error
# Keys in the memo of a program: the limit that it was planned for, and a function that returns the
# names of its arguments, for errors.
USED, NAMES = "memory limit", "argument names"


def parse_memory(op: str, given: Any) -> int:
    """Return the number of bytes for an int or for a text such as "2GB" or "512MiB"."""
    found = 0
    if type(given) is int:
        found = given
    elif isinstance(given, str) and (match := SIZE.fullmatch(given.strip())):
        number, unit, binary = match.groups()
        found = int(float(number) * (1024 if binary else 1000) ** UNITS[unit.upper()])
    if found <= 0:
        raise ValueError(
            f"{op}: memory must be a positive number of bytes, as an int or a text with a unit of "
            f'B, KB, MB, GB, TB, KiB, MiB, GiB or TiB; got {given!r}. Hint: memory="2GB".'
        )
    return found


class MemoryPlan(NamedTuple):
    """The plan that makes a program fit its memory limit.

    Attributes:
      limit: the limit in bytes.
      before: the estimate for the program as written, in bytes.
      after: the estimate for the program that is compiled, in bytes.
      used: the bytes that the compiled program uses, by XLA's figure.
      steps: a sentence for each change; empty if the program fits without changes.
      donatable: the bytes of results that would take the memory of arguments with `donate_argnums`;
        0 if arguments are donated. This is not done by itself, as it deletes arrays of the caller.
    """

    limit: int
    before: int
    after: int
    used: int
    steps: Sequence[str]
    donatable: int = 0

    def __str__(self) -> str:
        rows = [
            f"{self.used:,} bytes of {self.limit:,}",
            f"estimated as written: {self.before:,} bytes, as compiled: {self.after:,} bytes",
            *self.steps,
        ]
        if self.donatable:
            rows.append(f"donate_argnums would save up to {self.donatable:,} bytes")
        return "\n".join(rows)


class MemoryLimit(NamedTuple):
    """A limit in bytes, and the target in bytes that the estimate must not exceed.

    `fuses` says if the estimate counts on XLA to fuse operations: `Measure`.
    """

    bytes: int
    target: int
    fuses: bool = True

    def plan(self, jaxpr: Jaxpr, spec: Any, consts: int) -> Plan:
        """Return the plan of a staged program."""
        key = ("memory plan", self.target, self.fuses, spec.donated, spec.passes, consts)
        found = jaxpr.memo.get(key)
        if found is None:
            flat = inline_calls(run_passes(jaxpr, spec.passes, spec.name), True)
            flat = inline_solvers(flat)
            donated = tuple([consts + i for i in spec.donated])
            measure = Measure(donated, fuses=self.fuses)
            found = jaxpr.memo[key] = fit_jaxpr(flat, self.target, measure)
        return found

    def report(self, jaxpr: Jaxpr, spec: Any, consts: int, run: Any) -> MemoryPlan:
        """Return the plan of an executable in the form that users see."""
        found = jaxpr.memo[USED, spec]
        plan = found.plan(jaxpr, spec, consts)
        used = count_bytes(run)
        estimates = plan.before.bytes, plan.after.bytes
        return MemoryPlan(self.bytes, *estimates, used, plan.steps, count_donatable(jaxpr, spec))

    def fit(self, jaxpr: Jaxpr, spec: Any, consts: int, partitioned: bool) -> Jaxpr | None:
        """Return the program to compile instead of a staged one; None if no change is needed.

        Raises:
          ValueError: the program is for several devices.
        """
        if partitioned:
            raise ValueError(
                "jit: memory must be the limit of a program for one device; got one over a mesh. "
                "Hint: jit without memory."
            )
        found = self.plan(jaxpr, spec, consts)
        return found.jaxpr if found.steps else None

    def keep_names(self, jaxpr: Jaxpr, names: Callable[[], Sequence[str]]) -> None:
        """Keep a function that returns the names of the arguments of a program, for errors."""
        jaxpr.memo[NAMES] = names

    def confirm(
        self, jaxpr: Jaxpr, spec: Any, consts: int, run: Any, build: Callable[[MemoryLimit], Any]
    ) -> Any:
        """Return an executable that fits the limit by XLA's figure.

        Args:
          jaxpr: the staged program.
          spec: the options of the program.
          consts: the number of leading inputs that are closed-over values.
          run: the executable for this limit.
          build: a function that compiles the program for another limit.

        Raises:
          ValueError: no executable fits.
        """
        used = least = count_bytes(run)
        tried = self
        for _ in range(MAX_TRIES):
            if used <= self.bytes:
                break
            following = tried._tighten(jaxpr, spec, consts, used)
            if following is None:
                break
            tried, run = following, build(following)
            used = count_bytes(run)
            least = min(least, used)
        if used <= self.bytes:
            jaxpr.memo[USED, spec] = tried
            return run
        names = jaxpr.memo.get(NAMES, tuple)()
        titles = [*["a value that the function closes over"] * consts, *names]
        raise self._refusal(tried.plan(jaxpr, spec, consts), spec, least, titles)

    def _tighten(self, jaxpr: Jaxpr, spec: Any, consts: int, used: int) -> MemoryLimit | None:
        """Return the limit to try after one whose program uses `used` bytes; None at the end.

        The target falls as long as that makes a better plan. After that, or at once if the estimate
        is far off, the estimate assumes that nothing is fused: kernels, for example, are not.
        """
        before = self.plan(jaxpr, spec, consts).after.bytes
        unfused = self._replace(target=self.bytes, fuses=False)
        if self.fuses and used > OFF * before and unfused.plan(jaxpr, spec, consts).steps:
            return unfused
        target = int(min(before, self.target) * min(1.0, self.bytes / used) * TIGHTER)
        found = self._replace(target=target)
        if found.plan(jaxpr, spec, consts).after.bytes < before:
            return found
        return unfused if self.fuses and unfused.plan(jaxpr, spec, consts).steps else None

    def _refusal(self, plan: Plan, spec: Any, least: int, titles: Sequence[str]) -> ValueError:
        """Return the error for a program that cannot be made to fit."""
        jaxpr = plan.jaxpr
        named = dict(zip(jaxpr.invars, titles, strict=False))
        ins = sum(v.aval.nbytes for v in jaxpr.invars)
        outs = sum(v.aval.nbytes for v in variables_in(jaxpr.outvars))
        rows = []
        for v, maker in plan.after.live[:MAX_LISTED]:
            what = describe_line(maker) or named.get(v, "an argument")
            rows.append(f"{v.aval} of {v.aval.nbytes:,} bytes, {what}")
        shared = count_donatable(jaxpr, spec)
        hint = f"memory={least}"
        if shared:
            hint = f"donate_argnums, as {shared:,} bytes of results have types of arguments; {hint}"
        changes = "".join([f"; with {step}" for step in plan.steps])
        if jaxpr.effects:
            changes = "; programs with side effects are not changed"
        return ValueError(
            f"jit: {spec.name} must run within memory={self.bytes:,} bytes; got {least:,} bytes, "
            f"the least that was found{changes}. Arguments have {ins:,} bytes, results {outs:,}. "
            f"The largest arrays at the peak: {'; '.join(rows)}. Hint: {hint}."
        )


def count_bytes(run: Any) -> int:
    """Return the memory of an executable: arguments, results and temporaries."""
    found = run.loaded.get_compiled_memory_stats()
    return (
        found.argument_size_in_bytes
        + found.output_size_in_bytes
        + found.temp_size_in_bytes
        - found.alias_size_in_bytes
    )


def count_donatable(jaxpr: Jaxpr, spec: Any) -> int:
    """Return the bytes of results that could reuse arguments if these were donated."""
    if spec.donated:
        return 0
    free = [v.aval for v in jaxpr.invars]
    found = 0
    for v in variables_in(jaxpr.outvars):
        same = next((a for a in free if (a.shape, a.dtype) == (v.aval.shape, v.aval.dtype)), None)
        if same is not None:
            free.remove(same)
            found += v.aval.nbytes
    return found
