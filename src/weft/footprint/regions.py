"""Regions: equations of a program that can be computed slice by slice along one axis.

A region grows from an array and one of its axes. The equations that the array is computed from join
it, up to the inputs of the program. The equations that use the array join too, until an operation
sums over the axis or is not independent along it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, variables_in
from weft.footprint.bodies import find_every_line
from weft.footprint.lines import Line, Total
from weft.passes.inline import rename_atoms


class Region(NamedTuple):
    """Equations with their lines, in the order of the program.

    Attributes:
      size: the size of the axis.
      lines: the line of each equation of the region.
      axes: the axis of each value that is computed slice by slice.
      totals: the values that are combined over all slices, such as sums.
      sliced: the values from outside that are read slice by slice, each with its axis.
      stacked: the values of `axes` that are read outside the region.
      after: the equations outside the region that depend on its results.
    """

    size: int
    lines: dict[Eqn, Line]
    axes: dict[Var, int]
    totals: dict[Var, Total]
    sliced: dict[tuple[Var, int], None]
    stacked: list[Var]
    after: set[Eqn]

    def count_repeated(self) -> int:
        """Return the bytes that every slice reads and writes again.

        These are the operands that every slice reads in full, and the totals. Slices of arrays do
        not count.
        """
        whole = {
            a
            for eqn, line in self.lines.items()
            for a, axis in zip(eqn.invars, line.operands, strict=True)
            if axis is None and type(a) is not Literal
        }
        return sum(v.aval.nbytes for v in whole) + 2 * sum(v.aval.nbytes for v in self.totals)


class Grower:
    """Grows regions of a program. The lines of each equation are cached."""

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr = jaxpr
        self.makers: dict[Var, Eqn] = {v: e for e in jaxpr.eqns for v in e.outvars}
        self._lines: dict[Eqn, list[Line]] = {}

    def lines_of(self, eqn: Eqn) -> list[Line]:
        """Return the lines of an equation."""
        found = self._lines.get(eqn)
        if found is None:
            found = self._lines[eqn] = find_every_line(eqn)
        return found

    def grow(self, eqn: Eqn, line: Line, least: int) -> Region | None:
        """Return the region of an equation along one of its lines; None if there is none.

        Operands of the region with fewer than `least` bytes stay outside and are sliced. The
        equations that make them do not join.
        """
        forced: dict[Eqn, Line] = {eqn: line}
        whole: set[Var] = set()  # values that stay outside
        for _ in range(3 * len(self.jaxpr.eqns) + 3):
            sweep = Sweep(self, forced, whole, least)
            changed = sweep.run()
            if changed is None:
                return None
            if not changed:
                return sweep.finish(line.size_in(eqn))
        return None

    def choose_line(self, eqn: Eqn | None, wanted: dict[Var, int]) -> Line | None:
        """Return the line of an equation that gives its results these axes; None if none does."""
        if eqn is None:
            return None
        for line in self.lines_of(eqn):
            pairs = zip(eqn.outvars, line.results, strict=True)
            if all(wanted.get(v, axis) == axis for v, axis in pairs):
                return line
        return None


class Sweep:
    """One pass over a program that decides for each equation if it joins the region.

    `forced` maps equations that must join to their lines. `whole` has values that are computed
    outside the region. If the pass finds that more equations must join, or that one cannot, `run`
    updates both, and a new pass must start.
    """

    def __init__(self, grower: Grower, forced: dict[Eqn, Line], whole: set[Var], least: int):
        self.grower = grower
        self.forced = forced
        self.whole = whole
        self.least = least
        self.lines: dict[Eqn, Line] = {}
        self.axes: dict[Var, int] = {}
        self.totals: dict[Var, Total] = {}
        self.late: set[Var] = set()  # values that depend on results of the region
        self.after: set[Eqn] = set()
        self.sliced: dict[tuple[Var, int], None] = {}
        self.changed = False

    def run(self) -> bool | None:
        """Return True if a new pass must start; None if the region is impossible."""
        for eqn in self.grower.jaxpr.eqns:
            reads = variables_in(eqn.invars)
            depends = any(v in self.late or v in self.totals for v in reads)
            if depends or not (eqn in self.forced or any(v in self.axes for v in reads)):
                line = None
            else:
                line = self._find_line(eqn)
            if line is None:
                if eqn in self.forced:
                    return self._give_up(eqn)
                if depends or any(v in self.axes for v in reads):
                    self.after.add(eqn)
                    self.late.update(eqn.outvars)
                continue
            self._join(eqn, line)
            if self.changed:
                return True
        return False

    def _find_line(self, eqn: Eqn) -> Line | None:
        """Return a line of an equation that agrees with the axes of its operands, or None."""
        given = [self.forced[eqn]] if eqn in self.forced else self.grower.lines_of(eqn)
        for line in given:
            pairs = list(zip(eqn.invars, line.operands, strict=True))
            if all(type(a) is Literal or self.axes.get(a, axis) == axis for a, axis in pairs):
                return line
        return None

    def _give_up(self, eqn: Eqn) -> bool | None:
        """Move a forced equation out of the region; return None if nothing is left to try.

        The region cannot lose its seed, the equation that it grows from. If the seed cannot join,
        the equation that was forced last is moved out instead: the seed may read all of a value
        that depends on it.
        """
        seed, *pulled = self.forced
        if eqn is seed:
            if not pulled:
                return None
            eqn = pulled[-1]
        del self.forced[eqn]
        self.whole.update(eqn.outvars)
        return True

    def _join(self, eqn: Eqn, line: Line) -> None:
        self.lines[eqn] = line
        for a, axis in zip(eqn.invars, line.operands, strict=True):
            if type(a) is Literal or axis is None or a in self.axes:
                continue
            self._require(a, axis)  # type: ignore[arg-type]
        for v, result in zip(eqn.outvars, line.results, strict=True):
            if isinstance(result, Total):
                self.totals[v] = result
            else:
                self.axes[v] = result

    def _require(self, v: Var, axis: int) -> None:
        """Force the equation that makes a value into the region, or else slice the value."""
        maker = self.grower.makers.get(v)
        if maker is not None and v not in self.whole and v.aval.nbytes >= self.least:
            line = self.grower.choose_line(maker, {v: axis})
            if line is not None and self.forced.setdefault(maker, line) is line:
                self.changed = True
                return
        self.sliced[v, axis] = None

    def finish(self, size: int) -> Region:
        """Return the region."""
        jaxpr = self.grower.jaxpr
        outside = [e for e in jaxpr.eqns if e not in self.lines]
        read = {*variables_in(jaxpr.outvars)}
        for eqn in outside:
            read.update(variables_in(eqn.invars))
        stacked = [v for v in self.axes if v in read]
        return Region(size, self.lines, self.axes, self.totals, self.sliced, stacked, self.after)


def repeat_for_later(jaxpr: Jaxpr, region: Region, least: int) -> Jaxpr | None:
    """Return a program that computes arrays of a region again for the equations after it.

    The arrays have at least `least` bytes. The result is None if there are none, or if one of them
    is a result of the program.
    """
    wanted = {v for v in region.stacked if v.aval.nbytes >= least}
    if not wanted or wanted & {*variables_in(jaxpr.outvars)}:
        return None
    chain: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        if eqn in region.lines and not wanted.isdisjoint(eqn.outvars):
            if any(v in region.totals for v in eqn.outvars):
                return None
            chain.append(eqn)
            wanted.update(v for v in variables_in(eqn.invars) if v.aval.nbytes >= least)
    new: dict[Var, Any] = {}
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        if eqn in region.after and not wanted.isdisjoint(variables_in(eqn.invars)):
            for each in reversed(chain) if not new else ():
                outvars = [type(v)(v.aval) for v in each.outvars]
                eqns.append(each.replace(invars=rename_atoms(each.invars, new), outvars=outvars))
                new.update(zip(each.outvars, outvars, strict=True))
            eqn = eqn.replace(invars=rename_atoms(eqn.invars, new))
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns) if new else None
