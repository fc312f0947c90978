"""Memory within a budget: which values of a program to keep, so that little is computed again.

`choose_values` solves it as a mixed-integer linear program; `keep_values` cuts a program there, as
`saving_jaxpr` (transforms/linearize.py) does by a policy. What runs them is control/remat.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, bodies_of, held_jaxprs

# What an element costs, in multiplications within a matrix product: those of one core are 50 to 100
# in a nanosecond, in which it moves ten bytes, or computes one exponential.
BYTE = 4.0
FUNCTION = 40.0
FUNCTIONS = """
acos acosh asin asinh atan atan2 atanh cbrt cos cosh digamma erf erf_inv erfc exp exp2 expm1 lgamma
log log1p logistic pow random_bits sin sinh sort tan tanh threefry2x32
""".split()  # noqa: SIM905
SOLVERS = "cholesky eig eigh householder_product lu qr svd triangular_solve".split()  # noqa: SIM905
# The compiler computes these again of itself, within what reads them, where that saves memory.
FUSED = """
abs add and broadcast_in_dim clamp convert_element_type copy div eq ge gt integer_pow iota
is_finite le lt max min mul name ne neg not one_minus_square or reshape rsqrt select_n sign sqrt
square squeeze stop_gradient sub transpose xor
""".split()  # noqa: SIM905
TURNS = 10  # of a loop of unknown length

# The solver stops this near to the least cost, and after these seconds with the best it has.
GAP = 0.005
SECONDS = 10.0


@dataclass(frozen=True)
class Budget:
    """What may be kept: bytes, or a fraction of what a compiled program keeps without a budget."""

    amount: int | float

    def __repr__(self) -> str:
        return f"budget({self.amount})"


class Step(NamedTuple):
    """What is computed together: `reads`, the variables it `makes`, and the cost of all its turns.

    What enters the body of a scan is a step without an equation; what leaves it, with that there.
    """

    reads: list[Var]
    makes: list[Var]
    cost: float
    eqn: Eqn | None
    turns: int
    repeatable: bool


class Choice(NamedTuple):
    """What is kept, with the step that makes each; and what that means, in bytes and in cost.

    `costs` has for each of `kept` what would be computed again besides, were it not kept.
    """

    kept: list[tuple[Var, Step]]
    costs: list[float]
    limit: int
    whole: int  # bytes kept without a budget
    cost: float  # of what is computed again
    forward: float  # the cost of all


def count_bytes(v: Var, step: Step) -> int:
    """Of a variable that a step makes, for all the turns it is made in."""
    return step.turns * v.aval.size * v.aval.dtype.itemsize


def estimate_cost(eqn: Eqn) -> float:
    """What an equation costs to compute, in multiplications within a matrix product."""
    bodies = [b for b in bodies_of(eqn) if b.jaxpr is not None]
    if bodies:
        costs = [sum(map(estimate_cost, b.jaxpr.eqns)) for b in bodies]
        turns = [
            1 if b.runs != "turns" else TURNS if b.turns is None else len(b.turns) for b in bodies
        ]
        return sum(c * n for c, n in zip(costs, turns, strict=True))
    ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    made = sum(a.size for a in outs)
    name, params = eqn.primitive.name, eqn.params
    if name == "dot_general":
        contracted = params["dimension_numbers"][0][0]
        work = 2.0 * made * math.prod(ins[0].shape[d] for d in contracted)
    elif name == "conv_general_dilated":
        features = ins[1].shape[params["dimension_numbers"].rhs_spec[0]]
        work = 2.0 * made * ins[1].size / max(features, 1)
    elif name in SOLVERS:
        work = 4.0 * max(a.size * max(a.shape, default=1) for a in ins)
    elif name in FUNCTIONS:
        work = FUNCTION * made
    else:
        work = float(max([made, *[a.size for a in ins]]))
    return work + BYTE * sum(a.size * a.dtype.itemsize for a in outs)


def may_repeat(eqn: Eqn) -> bool:
    """Whether an equation may be computed a second time, as may what it holds."""
    effects = [eqn.primitive.effect] if eqn.primitive.effect is not None else []
    effects += [e for held in held_jaxprs(eqn) for e in held.effects]
    return all(getattr(e, "repeatable", True) for e in effects)


def select_variables(atoms: Sequence[Atom]) -> list[Var]:
    return [a for a in atoms if type(a) is not Literal]  # type: ignore[misc]


def list_steps(jaxpr: Jaxpr, turns: int = 1) -> Iterator[Step]:
    """The steps of a program that runs `turns` times, of the bodies of scans each by itself."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name != "scan":
            repeats, reads = may_repeat(eqn), select_variables(eqn.invars)
            yield Step(reads, eqn.outvars, turns * estimate_cost(eqn), eqn, turns, repeats)  # type: ignore
            continue
        (body,) = bodies_of(eqn)
        inner, carry = body.jaxpr, body.carry
        for i, (v, operand) in enumerate(zip(inner.invars, eqn.invars, strict=True)):
            after = [inner.outvars[i - carry.start]] if i in carry else []
            yield Step(select_variables([operand, *after]), [v], 0.0, None, turns, True)
        yield from list_steps(inner, turns * eqn.params["length"])
        makers = {v: e for e in inner.eqns for v in e.outvars}
        for v, result in zip(eqn.outvars, inner.outvars, strict=True):
            # that it is copied is what makes keeping it better than keeping it in the body
            copied = float(turns * v.aval.size)
            maker = makers.get(result, eqn)  # type: ignore[arg-type]
            yield Step(select_variables([result]), [v], copied, maker, turns, True)


class Problem:
    """The steps that values wanted of a program are made by, and what can be kept of them."""

    def __init__(self, jaxpr: Jaxpr, wanted: Sequence[Atom]):
        every = list(list_steps(jaxpr))
        self.forward = sum(s.cost for s in every)
        makers: dict[Var, list[Step]] = {}
        for step in every:
            for v in step.makes:
                makers.setdefault(v, []).append(step)
        self.wanted = [v for v in dict.fromkeys(select_variables(wanted)) if v in makers]
        self.makers: dict[Var, list[Step]] = {}  # those that matter; several if a body runs twice
        todo = list(self.wanted)
        while todo:
            v = todo.pop()
            if v in makers and v not in self.makers:
                self.makers[v] = makers[v]
                todo += [u for step in makers[v] for u in step.reads]
        self.steps = list({id(s): s for found in self.makers.values() for s in found}.values())
        self.savable = [v for v, found in self.makers.items() if found[0].eqn is not None]
        self.sizes = {v: sum(count_bytes(v, s) for s in self.makers[v]) for v in self.savable}
        self.asked = sum(self.sizes.get(v, 0) for v in self.wanted)

    def find_repeated(self, kept: set[Var]) -> list[Step]:
        """The steps that are computed again where these values are kept."""
        found: dict[int, Step] = {}
        todo = [v for v in self.wanted if v not in kept]
        while todo:
            for step in self.makers.get(todo.pop(), ()):
                if id(step) not in found:
                    found[id(step)] = step
                    todo += [u for u in step.reads if u not in kept]
        return list(found.values())

    def cost(self, kept: set[Var]) -> float:
        return sum(s.cost for s in self.find_repeated(kept))

    def is_possible(self, kept: set[Var], limit: float) -> bool:
        fits = sum(self.sizes[v] for v in kept) <= limit
        return fits and all(s.repeatable for s in self.find_repeated(kept))

    def solve(self, limit: int) -> set[Var]:
        """The values within the limit for which the least is computed again."""
        if limit >= self.asked:
            return set(self.wanted)
        repeatable = [s.repeatable for s in self.steps]
        best = self.run_solver(limit, repeatable) if limit > 0 else set()
        return best if self.is_possible(best, limit) else self.run_solver(None, repeatable)

    def run_solver(self, limit: int | None, repeatable: Sequence[bool]) -> set[Var]:
        """`solve` as a linear program of integers; without a limit, as few bytes as can be.

        Of the steps, those that are `repeatable` may be computed again. Variables: whether a value
        is kept, whether a step is computed again. A value that is wanted, or read by a step that is
        computed again, is one or the other. With values integers, steps come out as integers too.
        """
        from scipy import optimize, sparse

        at = {v: i for i, v in enumerate(self.savable)}
        again = {id(s): len(at) + i for i, s in enumerate(self.steps)}
        rows: list[tuple[Var, Step, Step | None]] = []
        for v in self.wanted:
            rows += [(v, made, None) for made in self.makers[v]]
        for step in self.steps:
            rows += [(u, made, step) for u in step.reads for made in self.makers.get(u, ())]
        entries = [(i, at[v], 1.0) for i, (v, _, _) in enumerate(rows) if v in at]
        entries += [(i, again[id(made)], 1.0) for i, (_, made, _) in enumerate(rows)]
        entries += [(i, again[id(s)], -1.0) for i, (_, _, s) in enumerate(rows) if s is not None]
        i, j, x = zip(*entries, strict=True)
        n = len(at) + len(again)
        covered = sparse.coo_array((x, (i, j)), shape=(len(rows), n)).tocsr()
        least = [1.0 if step is None else 0.0 for _, _, step in rows]
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
        """Without what is not needed, or is above the limit by the solver's tolerance."""
        for v in sorted(kept, key=lambda v: -self.sizes[v]):
            if limit is not None and self.cost(kept - {v}) <= self.cost(kept):
                kept = kept - {v}
        while limit is not None and sum(self.sizes[v] for v in kept) > limit:
            kept = kept - {min(kept, key=lambda v: self.cost(kept - {v}))}
        return kept


def choose_values(jaxpr: Jaxpr, wanted: Sequence[Atom], budget: Budget) -> Choice:
    """Which values of a program to keep for `wanted`, that is read later, within a budget.

    Its inputs are kept anyway. Without a budget all that is wanted would be kept.
    """
    problem = Problem(jaxpr, wanted)
    fused = [s.eqn is None or s.eqn.primitive.name in FUSED for s in problem.steps]
    whole = sum(problem.sizes[v] for v in problem.run_solver(None, fused)) if problem.asked else 0
    amount = budget.amount
    limit = amount if isinstance(amount, int) else math.floor(amount * whole)
    kept = problem.solve(limit)
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
        limit, whole, cost, problem.forward,
    )  # fmt: skip


def keep_values(jaxpr: Jaxpr, kept: set[Var]) -> tuple[Jaxpr, Jaxpr, int]:
    """A closed jaxpr that also gives the values to keep, and one that is given them.

    The first maps the inputs to the outputs and then the kept values, the second the inputs and
    then the kept values to the outputs; also returned: how many they are.
    """
    early, late, saved = [], [], []
    for eqn in jaxpr.eqns:
        more = less = eqn
        within: list[Var] = []
        if eqn.primitive.name == "scan":
            first, second, n = keep_values(eqn.params["jaxpr"], kept)
            if n:  # what is kept is stacked, as ys and xs
                params = {**eqn.params, "jaxpr": first}
                avals = eqn.primitive.abstract_eval(*[a.aval for a in eqn.invars], **params)
                within = [Var(a) for a in avals[len(eqn.outvars) :]]
                more = eqn.replace(params=params, outvars=[*eqn.outvars, *within])
                linear = (*eqn.params["linear"], *[False] * n)
                params = {**eqn.params, "jaxpr": second, "linear": linear}
                less = eqn.replace(params=params, invars=[*eqn.invars, *within])
        chosen = [v for v in eqn.outvars if v in kept]
        early.append(more)
        if len(chosen) < len(eqn.outvars) or not eqn.outvars:
            outvars = [Var(v.aval) if v in kept else v for v in eqn.outvars]
            late.append(less.replace(outvars=outvars))
        saved += [*chosen, *within]
    return (
        jaxpr.replace(outvars=[*jaxpr.outvars, *saved], eqns=early),
        jaxpr.replace(invars=[*jaxpr.invars, *saved], eqns=late),
        len(saved),
    )
