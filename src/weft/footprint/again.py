"""`list_recomputing`: programs that recompute values instead of keeping them in memory.

The program is cut into two parts where the most bytes are live, as between the forward and the
backward pass of a gradient. The values to keep across the cut are chosen as `checkpoint` chooses
residuals, within a budget of bytes (passes/budget.py). The second part recomputes the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.control.remat import write_recomputing
from weft.core.jaxpr import Jaxpr, variables_in
from weft.core.stage import stage
from weft.passes.budget import Budget
from weft.passes.stages import count_alive
from weft.primitives.constant import write_consts

# Budgets to try, as fractions of the bytes that may be kept: the kept bytes minus the excess.
PARTS = 1.0, 0.75, 0.5, 0.25
# Budgets to try if the excess exceeds the kept bytes, as fractions of the kept bytes.
FEW = 0.5, 0.25, 0.1


def list_recomputing(jaxpr: Jaxpr, excess: int, least: int) -> Iterator[tuple[Jaxpr, int, int]]:
    """Yield programs that keep fewer bytes across the cut.

    Args:
      jaxpr: a closed program.
      excess: the bytes to remove from the peak.
      least: if fewer bytes than this are kept across the cut, nothing is tried.

    Yields:
      The program, its budget in bytes, and the bytes that the given program keeps.
    """
    eqns = jaxpr.eqns
    if not eqns:
        return
    alive = count_alive(eqns, [v for e in eqns for v in e.outvars])
    at = max(range(len(eqns)), key=alive.__getitem__)
    made = {v for e in eqns[:at] for v in e.outvars}
    read = dict.fromkeys(v for e in eqns[at:] for v in variables_in(e.invars) if v in made)
    results = dict.fromkeys(variables_in(jaxpr.outvars))
    known = [v for v in results if v in made]
    kept = [v for v in read if v not in results]
    whole = sum(v.aval.nbytes for v in kept)
    if whole < least or not kept:
        return
    early = Jaxpr([], jaxpr.invars, [*known, *kept], eqns[:at], name=jaxpr.name)
    given = [v for v in known if v in read]
    rest = [v for v in results if v not in made and v not in jaxpr.invars]
    late = Jaxpr([], given, rest, eqns[at:], name=jaxpr.name)
    budgets = [part * (whole - excess) for part in PARTS]
    if excess >= whole:
        budgets = [part * whole for part in FEW]
    for amount in budgets:
        budget = Budget(int(amount))
        try:
            now, later, used = write_recomputing(early, late, len(known), budget, True)
        except ValueError:  # an operation must not run twice
            return

        def run(*args: Any, now: Jaxpr = now, later: Jaxpr = later, used: Any = used) -> list:
            env = dict(zip(jaxpr.invars, args, strict=True))
            outs = now(*args)
            env.update(zip(known, outs, strict=False))
            operands = [*args, *outs[len(known) :], *[env[v] for v in given]]
            given_args = [x for x, u in zip(operands, used, strict=True) if u]
            env.update(zip(rest, later(*given_args), strict=True))
            return [env[a] if a in env else a.read() for a in jaxpr.outvars]

        yield write_consts(*stage(run, jaxpr.in_avals, jaxpr.name)), budget.amount, whole
