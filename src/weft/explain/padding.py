"""Measure the share of padding in a call of `jit(f, sizes=...)`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.core.aval import ShapedArray
from weft.core.jaxpr import Jaxpr
from weft.explain.modules import CompiledModule, Cost
from weft.explain.profiles import time_call
from weft.explain.tables import Table, bytes_text, seconds_text
from weft.mesh.client import default_device
from weft.options import config
from weft.padding.call import PaddedFunction
from weft.padding.run import PaddedRun, Variable, fix_sizes
from weft.run.pipeline import JitSpec, lower_program
from weft.xla.placement import on_device

CALLS = 5  # timed calls; the fastest is reported


class PaddedSubject(NamedTuple):
    """A call of `jit(f, sizes=...)`: the program that it runs and the operands of the program."""

    run: PaddedRun
    program: Any  # with symbolic sizes
    variables: tuple[Variable, ...]
    operands: list  # of true sizes

    @property
    def jitted(self) -> Callable:
        """Return the jitted function of the padded program."""
        return self.run.run.func

    @property
    def args(self) -> tuple:
        """Return the arguments of the padded program: the true sizes, and padded arrays."""
        return (*self.run.run.args, *self.run.pad(self.operands))


def open_padded(fun: PaddedFunction, args: tuple, kwargs: dict) -> PaddedSubject | None:
    """Return the padded program of a call; None if it is not padded."""
    plan, leaves = fun.find_plan(args, kwargs)
    if plan is None:
        return None
    operands = [*plan.program.consts, *plan.program.select_visible(leaves)]
    return PaddedSubject(plan.run, plan.program.jaxpr, plan.variables, operands)


class Padding(NamedTuple):
    """The share of padding in a call.

    Attributes:
      variables: the sizes that vary: `name`, `value` and `bucket`, the size in memory.
      held: bytes of the arguments and results of the padded program.
      wasted: bytes of padding in `held`.
      flops, bytes: the fractions, from 0 to 1, of the program's FLOPs and of its memory traffic
        that are due to padding, by XLA's analysis.
      copying: seconds that a call spends on padding its arguments and on slicing its results; 0 if
        not measured.
    """

    variables: tuple[Variable, ...]
    held: int
    wasted: int
    flops: float
    bytes: float
    copying: float = 0.0

    def table(self, wall: float) -> Table:
        """Return the printed table. `wall` is the seconds of a run of the program."""
        rows = [(v.name, str(v.value), str(v.bucket)) for v in self.variables]
        note = (
            f"{self.flops:.0%} of the FLOPs and {self.bytes:.0%} of the traffic of the program, "
            f"and {bytes_text(self.wasted)} of the {bytes_text(self.held)} of its arguments and "
            "results are padding."
        )
        if self.copying:
            part = self.copying / (self.copying + wall)
            note += (
                f" Copying into padded arrays and out of them takes {seconds_text(self.copying)} "
                f"besides the program, {part:.0%} of a call."
            )
        return Table("Padding", ("size", "value", "in memory"), rows, note)


def measure_padding(subject: PaddedSubject, runs: bool) -> Padding:
    """Return the share of padding in a call. Copying is timed only if `runs` is True."""
    run, copying = subject.run, 0.0
    if runs:
        outs = run.run(*run.pad(subject.operands))
        pads = min(time_call(lambda: run.pad(subject.operands))[1] for _ in range(CALLS))
        cuts = min(time_call(lambda: run.cut(list(outs)))[1] for _ in range(CALLS))
        copying = pads + cuts
    true = fix_sizes(subject.program, subject.variables)
    costs = count_program(true), count_program(run.jaxpr)
    sizes = len(subject.variables)
    held = count_bytes([*run.jaxpr.in_avals[sizes:], *run.jaxpr.out_avals])
    wasted = held - count_bytes([*true.in_avals, *true.out_avals])
    flops, traffic = [part_more(*costs, name) for name in ("flops", "bytes")]
    return Padding(subject.variables, held, wasted, flops, traffic, copying)


def count_program(jaxpr: Jaxpr) -> Cost:
    """Return the cost of a compiled program by XLA's analysis, without our kernels."""
    device = default_device()
    with config.scope(native=False, locate_operations=False):
        lowered = lower_program(
            jaxpr, (), JitSpec(jaxpr.name or "program"), on_device(device, True)
        )
        module = CompiledModule(lowered.compile().loaded)
    return module.total(module.entry)


def part_more(true: Cost, padded: Cost, name: str) -> float:
    """Return the fraction of a cost that is due to padding."""
    less, more = getattr(true, name), getattr(padded, name)
    return max(0.0, 1 - less / more) if more else 0.0


def count_bytes(avals: Sequence[ShapedArray]) -> int:
    """Return the bytes of arrays of these types."""
    return sum(math.prod(a.shape) * a.dtype.itemsize for a in avals)
