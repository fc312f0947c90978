"""Regions: equations of a program that can be computed slice by slice along one axis.

A region grows from an array and one of its axes. What the array is made of joins it, up to the
inputs of the program, and what is made of it, until the axis is summed over or an operation mixes
its places.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, variables_in
from weft.footprint.bodies import find_every_line
from weft.footprint.lines import Line, Total


class Region(NamedTuple):
    """Equations with their lines, in the order of the program.

    Attributes:
      size: the size of the axis.
      lines: the line of each equation of the region.
      axes: the axis of each value that is computed slice by slice.
      totals: the values that are combined over all slices.
      sliced: the axes of the values from outside that are read slice by slice.
      stacked: the values of `axes` that are read outside of the region.
      after: the equations outside of the region that depend on its results.
    """

    size: int
    lines: dict[Eqn, Line]
    axes: dict[Var, int]
    totals: dict[Var, Total]
    sliced: dict[tuple[Var, int], None]
    stacked: list[Var]
    after: set[Eqn]

    def count_repeated(self) -> int:
        """Return the bytes that each slice reads and writes besides slices of arrays.

        They are those of operands that are read whole and of totals.
        """
        whole = {
            a
            for eqn, line in self.lines.items()
            for a, axis in zip(eqn.invars, line.operands, strict=True)
            if axis is None and type(a) is not Literal
        }
        return sum(v.aval.nbytes for v in whole) + 2 * sum(v.aval.nbytes for v in self.totals)


class Grower:
    """Grows regions of a program; lines of equations are found once."""

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

        Values from outside of fewer than `least` bytes are read as they are, and not computed again
        in slices.
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
        """Return the line of an equation in which its results have these axes."""
        if eqn is None:
            return None
        for line in self.lines_of(eqn):
            pairs = zip(eqn.outvars, line.results, strict=True)
            if all(wanted.get(v, axis) == axis for v, axis in pairs):
                return line
        return None


class Sweep:
    """One walk along a program, which decides for each equation if it joins the region.

    `forced` are equations that must, with their lines, and `whole` values that are computed
    outside. `run` adds to both what the walk finds missing; it is then to be repeated.
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
        """Return True if the walk is to be repeated; None if the region is impossible."""
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
        """Return the line of an equation that agrees with the axes of what it reads."""
        given = [self.forced[eqn]] if eqn in self.forced else self.grower.lines_of(eqn)
        for line in given:
            pairs = list(zip(eqn.invars, line.operands, strict=True))
            if all(type(a) is Literal or self.axes.get(a, axis) == axis for a, axis in pairs):
                return line
        return None

    def _give_up(self, eqn: Eqn) -> bool | None:
        """Leave an equation that was to join the region outside; None if nothing is left to try.

        In place of the seed, from which the region grows, the one that joined last stays outside:
        what is made of its results may be what the seed reads whole.
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
        """Have a value from outside computed in the region, or else sliced."""
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
