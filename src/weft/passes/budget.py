"""Memory within a budget: which values of a program to keep, so that little is computed again.

`choose_values` solves it as a mixed-integer linear program; `keep_values` cuts a program there, as
`saving_jaxpr` (transforms/linearize.py) does by a policy. A long program is computed again in
stages (stages.py). What runs them is control/remat.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weft.core.element import count_terms, describe_elements
from weft.core.facts import LIGHT, Cost, Runs
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, bodies_of, held_jaxprs, variables_in
from weft.passes.stages import Stages, count_alive, divide, find_row_body

# Costs of an element, in multiplications of a matrix product. A core does 50 to 100 of them in a
# nanosecond; in the same time it moves ten bytes or computes one exponential.
BYTE = 4.0
FUNCTION = 40.0
TURNS = 10  # iterations of a loop of unknown length

# The solver stops at this relative gap to the optimum, or after these seconds with its best result.
GAP = 0.005
SECONDS = 10.0
# Of about this many stages, the first that costs at most this part of the forward pass more than
# one is taken.
STAGES = 16, 12, 8, 6, 4, 3, 2
STAGED = 0.1
MAX_PER_LAYER = 4  # values that are read together, at the end of one layer


@dataclass(frozen=True)
class Budget:
    """A budget: bytes, or a fraction of the bytes that a compiled program keeps without one."""

    amount: int | float

    def __repr__(self) -> str:
        return f"budget({self.amount})"


class Step(NamedTuple):
    """A group of equations: the variables it `reads` and `makes`, and the cost of all iterations.

    The inputs of a scan's body are a step without an equation; its outputs are a step with the
    scan. A step can read values of another stage only if they are kept.
    """

    reads: list[Var]
    makes: list[Var]
    cost: float
    eqn: Eqn | None
    turns: int
    repeatable: bool
    stage: int


class Choice(NamedTuple):
    """The kept values, with the step that makes each, their bytes and their cost.

    `costs` has for each value in `kept` the cost of recomputation if it were not kept.
    """

    kept: list[tuple[Var, Step]]
    costs: list[float]
    limit: int
    whole: int  # bytes kept without a budget
    cost: float  # of the recomputation
    forward: float  # the cost of the entire forward pass
    stages: Stages


def count_bytes(v: Var, step: Step) -> int:
    """A variable that a step makes, in all the iterations of the step."""
    return step.turns * v.aval.nbytes


def estimate_cost(eqn: Eqn) -> float:
    """Return the cost of an equation, in multiplications within a matrix product."""
    bodies = [b for b in bodies_of(eqn) if b.jaxpr is not None]
    if bodies:
        costs = [sum(map(estimate_cost, b.jaxpr.eqns)) for b in bodies]
        turns = [
            1 if b.runs is not Runs.LOOP else TURNS if b.turns is None else len(b.turns)
            for b in bodies
        ]
        return sum(c * n for c, n in zip(costs, turns, strict=True))
    ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    made = sum(a.size for a in outs)
    kind = eqn.primitive.cost
    if kind is Cost.CONTRACTION:
        found = describe_elements(eqn.primitive, ins, eqn.params)
        work = 2.0 * made * max([count_terms(x) for _, x in found], default=1)
    elif kind is Cost.LIBRARY:
        work = 4.0 * max(a.size * max(a.shape, default=1) for a in ins)
    elif kind is Cost.TRANSCENDENTAL:
        work = FUNCTION * made
    else:
        work = float(max([made, *[a.size for a in ins]]))
    return work + BYTE * sum(a.nbytes for a in outs)


def may_repeat(eqn: Eqn) -> bool:
    """Return True if an equation, and the programs it holds, may be computed a second time."""
    effects = [eqn.primitive.effect] if eqn.primitive.effect is not None else []
    effects += [e for held in held_jaxprs(eqn) for e in held.effects]
    return all(getattr(e, "repeatable", True) for e in effects)


def list_steps(jaxpr: Jaxpr, stages: Stages, turns: int = 1, at: int = 0) -> Iterator[Step]:
    """The steps of a program that runs `turns` times, of the bodies of scans each by itself."""
    for eqn in jaxpr.eqns:
        stage = stages.places.get(eqn, at)
        body = find_row_body(eqn)
        if body is None:
            repeats, reads = may_repeat(eqn), variables_in(eqn.invars)
            cost = turns * estimate_cost(eqn)
            yield Step(reads, eqn.outvars, cost, eqn, turns, repeats, stage)  # type: ignore
            continue
        inner = body.jaxpr
        carry = body.carry
        length = turns * eqn.params["length"]
        within = stages.turns.get(eqn)  # its backward pass reads them by iteration
        for i, (v, operand) in enumerate(zip(inner.invars, eqn.invars, strict=True)):
            if i in carry and within is not None:
                yield Step([], [v], 0.0, eqn, length, False, stage)
                continue
            after = [inner.outvars[i - carry.start]] if i in carry else []
            yield Step(variables_in([operand, *after]), [v], 0.0, None, turns, True, stage)
        yield from list_steps(inner, stages, length, stage)
        makers = {v: e for e in inner.eqns for v in e.outvars}
        for v, result in zip(eqn.outvars, inner.outvars, strict=True):
            # that it is copied is what makes keeping it better than keeping it in the body
            copied = float(turns * v.aval.size)
            maker = eqn if type(result) is Literal else makers.get(result, eqn)  # type: ignore
            repeats = within is None or v in within
            yield Step(variables_in([result]), [v], copied, maker, turns, repeats, stage)


class Problem:
    """The steps that values wanted of a program are made by, and what can be kept of them."""

    def __init__(self, jaxpr: Jaxpr, wanted: Sequence[Atom], stages: Stages = Stages()):
        every = list(list_steps(jaxpr, stages))
        self.forward = sum(s.cost for s in every)
        makers: dict[Var, list[Step]] = {}
        for step in every:
            for v in step.makes:
                makers.setdefault(v, []).append(step)
        self.wanted = [  # and at which stages
            (v, stage)
            for v in dict.fromkeys(variables_in(wanted))
            if v in makers
            for stage in stages.readers.get(v) or {makers[v][0].stage}
        ]
        self.makers: dict[Var, list[Step]] = {}  # those that matter; several if a body runs twice
        todo = [v for v, _ in self.wanted]
        while todo:
            v = todo.pop()
            if v in makers and v not in self.makers:
                self.makers[v] = makers[v]
                todo += [u for step in makers[v] for u in step.reads]
        self.steps = list({id(s): s for found in self.makers.values() for s in found}.values())
        self.savable = [v for v, found in self.makers.items() if found[0].eqn is not None]
        self.sizes = {v: sum(count_bytes(v, s) for s in self.makers[v]) for v in self.savable}
        self.asked = sum(self.sizes.get(v, 0) for v in {v for v, _ in self.wanted})

    def find_repeated(self, kept: set[Var]) -> list[Step]:
        """The steps that are computed again where these values are kept."""
        found: dict[int, Step] = {}
        todo = [(v, stage) for v, stage in self.wanted if v not in kept]
        while todo:
            v, stage = todo.pop()
            for step in self.makers.get(v, ()):
                if id(step) not in found:
                    found[id(step)] = step
                    todo += [(u, step.stage) for u in step.reads if u not in kept]
                if step.stage != stage:
                    found[id(step)] = step._replace(repeatable=False)
        return list(found.values())

    def cost(self, kept: set[Var]) -> float:
        return sum(s.cost for s in self.find_repeated(kept))

    def is_possible(self, kept: set[Var], limit: float) -> bool:
        fits = sum(self.sizes[v] for v in kept) <= limit
        return fits and math.isfinite(self.allowed_cost(kept))

    def allowed_cost(self, kept: set[Var]) -> float:
        """Return the cost of recomputation; infinite if it would include an unrepeatable step."""
        steps = self.find_repeated(kept)
        return sum(s.cost for s in steps) if all(s.repeatable for s in steps) else math.inf

    def solve(self, limit: int) -> set[Var]:
        """Return the values to keep within the limit so that recomputation is cheapest."""
        if limit >= self.asked:
            return {v for v, _ in self.wanted}
        repeatable = [s.repeatable for s in self.steps]
        best = self.run_solver(limit, repeatable) if limit > 0 else set()
        return best if self.is_possible(best, limit) else self.run_solver(None, repeatable)

    def run_solver(self, limit: int | None, repeatable: Sequence[bool]) -> set[Var]:
        """Solve the problem as an integer linear program; without a limit, minimize the kept bytes.

        Only the `repeatable` steps may be repeated. Variables: if a value is kept, and if a step is
        repeated. A wanted value, or a value that a repeated step reads, must be kept or recomputed.
        With integer variables for values, those of steps come out as integers too.
        """
        from scipy import optimize, sparse

        at = {v: i for i, v in enumerate(self.savable)}
        again = {id(s): len(at) + i for i, s in enumerate(self.steps)}
        rows: list[tuple[Var, Step, Step | None, int]] = []
        for v, stage in self.wanted:
            rows += [(v, made, None, stage) for made in self.makers[v]]
        for step in self.steps:
            reads = [(u, made) for u in step.reads for made in self.makers.get(u, ())]
            rows += [(u, made, step, step.stage) for u, made in reads]
        entries = [(i, at[v], 1.0) for i, (v, *_) in enumerate(rows) if v in at]
        entries += [
            (i, again[id(made)], 1.0)
            for i, (_, made, _, stage) in enumerate(rows)
            if made.stage == stage
        ]
        entries += [(i, again[id(s)], -1.0) for i, (_, _, s, _) in enumerate(rows) if s is not None]
        i, j, x = zip(*entries, strict=True)
        n = len(at) + len(again)
        covered = sparse.coo_array((x, (i, j)), shape=(len(rows), n)).tocsr()
        least = [1.0 if step is None else 0.0 for _, _, step, _ in rows]
        rules = [optimize.LinearConstraint(covered, least, np.inf)]
        sizes = np.array([*self.sizes.values(), *[0.0] * len(again)]) / max(self.asked, 1)
        price = np.array([0.0] * len(at) + [s.cost for s in self.steps]) / max(self.forward, 1.0)
        if limit is not None:
            rules.append(
                optimize.LinearConstraint(sizes[None], -np.inf, limit / max(self.asked, 1))
            )
        top = [1.0] * len(at) + [float(r) for r in repeatable]
        found = optimize.milp(
            # of what costs the same, the fewest bytes
            price + 1e-6 * sizes if limit is not None else sizes + 1e-6 * price,
            integrality=[1] * len(at) + [0] * len(again),
            bounds=optimize.Bounds(0.0, top),
            constraints=rules,
            options={"mip_rel_gap": GAP, "time_limit": SECONDS},
        )
        if found.x is None:
            return set()
        kept = {v for v, x in zip(self.savable, found.x, strict=False) if x > 0.5}
        return self.drop_excess(kept, limit)

    def drop_excess(self, kept: set[Var], limit: int | None) -> set[Var]:
        """Drop values that are not needed, or that exceed the limit by the solver's tolerance."""
        for v in sorted(kept, key=lambda v: -self.sizes[v]):
            if limit is not None and self.allowed_cost(kept - {v}) <= self.allowed_cost(kept):
                kept = kept - {v}
        while limit is not None and sum(self.sizes[v] for v in kept) > limit:
            kept = kept - {min(kept, key=lambda v: self.allowed_cost(kept - {v}))}
        return kept


def choose_values(jaxpr: Jaxpr, n_outs: int, budget: Budget, late: Jaxpr | None = None) -> Choice:
    """Choose the values to keep for the results of a program after its first `n_outs`.

    Its inputs are kept anyway. Without a budget all of those results would be kept. The other
    values are recomputed in stages, if `late`, which reads them, can be split in the same way.
    """
    wanted = jaxpr.outvars[n_outs:]
    problem = Problem(jaxpr, wanted)
    # the compiler computes light operations again within what reads them, where that saves memory
    fused = [s.eqn is None or s.eqn.primitive.cost in LIGHT for s in problem.steps]
    whole = sum(problem.sizes[v] for v in problem.run_solver(None, fused)) if problem.asked else 0
    amount = budget.amount
    limit = amount if isinstance(amount, int) else math.floor(amount * whole)
    kept, stages = problem.solve(limit), Stages()
    several = late is not None and len(problem.wanted) > MAX_PER_LAYER and 0 < limit < problem.asked
    if several and problem.is_possible(kept, limit):
        found = choose_in_stages(problem, problem.cost(kept), jaxpr, n_outs, limit, late)
        problem, kept, stages = found or (problem, kept, stages)
    if not problem.is_possible(kept, limit):
        least = sum(problem.sizes[v] for v in kept)
        once = next(s.eqn for s in problem.steps if s.eqn and not s.repeatable)
        raise ValueError(
            f"checkpoint: budget must be at least {least} bytes here, where results must be kept "
            f"of what may happen only once ({once.primitive}); got {limit} bytes. "
            f"Hint: checkpoint(f, budget={least})."
        )
    cost = problem.cost(kept)
    order = [v for v in problem.sizes if v in kept]
    return Choice(
        [(v, step) for v in order for step in problem.makers[v]],
        [problem.cost(kept - {v}) - cost for v in order for _ in problem.makers[v]],
        limit, whole, cost, problem.forward, stages,
    )  # fmt: skip


def choose_in_stages(
    single: Problem, cost: float, jaxpr: Jaxpr, n_outs: int, limit: int, late: Jaxpr
) -> tuple[Problem, set[Var], Stages] | None:
    """Choose the values to keep for the largest number of stages at hardly more cost than one.

    If every number of stages costs more, take the cheapest: a single stage would hold all values at
    once.
    """
    asked = {v for v, _ in single.wanted}
    made = [sum(single.sizes.get(v, 0) for v in e.outvars if v in asked) for e in jaxpr.eqns]
    alive = count_alive(jaxpr.eqns, single.makers)
    best = None
    least = math.inf
    for count in STAGES:
        stages = divide(jaxpr, n_outs, late, made, alive, single.asked / count)
        problem = Problem(jaxpr, jaxpr.outvars[n_outs:], stages)
        kept = problem.run_solver(limit, [s.repeatable for s in problem.steps])
        divided = stages.count > 1 or stages.turns
        if problem.is_possible(kept, limit) and problem.cost(kept) < least and divided:
            best = (problem, kept, stages)
            least = problem.cost(kept)
            if least <= cost + STAGED * single.forward:
                break
    return best
