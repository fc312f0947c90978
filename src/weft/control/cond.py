"""`cond` as a primitive: one of several programs, chosen by an index, on the same operands.

Rules transform each branch, and then make the branches alike again. Pytrees, predicates and the
checks of what the branches return are in api/cond.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.control.call import Holder
from weft.control.checks import batch_with_checks, holds_checks
from weft.core import primitive
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Runs
from weft.core.jaxpr import Jaxpr, Literal, UnreadVar, jaxpr_uses_axis, memo_jaxpr, variables_in
from weft.core.ref import is_ref
from weft.core.trace import current, use
from weft.errors import ShapeError
from weft.options import config
from weft.passes.dce import dce_jaxpr
from weft.primitives.checks import INT, Failure
from weft.primitives.constant import stage_whole
from weft.primitives.dynamic_slicing import dynamic_index_in_dim
from weft.primitives.elementwise import eq, min, ne, select_n, stop_gradient_p
from weft.primitives.layout import batched_at_front, broadcast_in_dim, convert, zeros
from weft.primitives.reduction import argmax, reduce_or
from weft.primitives.varying import check_meetings
from weft.transforms.batch import batch_jaxpr, check_repeatable
from weft.transforms.check import Checked, assign_slots, checkify_jaxpr
from weft.transforms.jet import SeriesRule, jet_jaxpr
from weft.transforms.jvp import jvp_jaxpr
from weft.transforms.linearize import SavingRule, saving_jaxpr, split_jaxpr
from weft.transforms.transpose import backward_jaxpr
from weft.util import merge, partition, unzip2
from weft.xla.lower import lower_jaxpr

# Where a residual comes from: ("operand", i) or ("result", i) of the early program, which has them
# anyway, or (type, n), the n-th of its type that is made for the purpose in some branch.
Source = tuple[str | ShapedArray, int]


class Cond(Holder, SeriesRule, SavingRule):
    """branches[index](*operands); only that branch runs.

    The index is an int32, and out of the range there is the last branch runs; the branches are
    closed programs with equal parameter and result types. Source: StableHLO, case.
    """

    name = "cond"

    def bodies(self, params):
        branches = params["branches"]
        operands = range(1, 1 + len(branches[0].invars))
        return [primitive.Body(b, "branches", Runs.BRANCH, operands) for b in branches]

    def abstract_eval(self, index, *avals, branches):
        if index.shape or index.dtype != np.int32:
            raise ShapeError(f"cond: the index must be an int32 scalar; got {index}.")
        check_meetings(self.name, index, branches)
        return join_result_types([b.out_avals for b in branches], index)

    def impl(self, index, *args, branches):
        if config.disable_jit:
            return branches[int(index) if 0 <= index < len(branches) else -1](*args)
        params = {"branches": branches}
        return current.trace.run_holder(self, (index, *args), params, branches[0])

    def lower(self, hlo, index, *args, branches):
        if (at := index.scalar) is not None:  # known: no branch is left
            return lower_jaxpr(hlo, branches[int(at) if 0 <= at < len(branches) else -1], args)
        regions = [lambda b=b: lower_jaxpr(hlo, b, args) for b in branches]
        avals = join_result_types([b.out_avals for b in branches])
        return hlo.case(index, regions, avals, any(b.ordered for b in branches))

    def jvp(self, primals, tangents, *, branches):
        (both, _), out_moved = transform_alike(
            jvp_jaxpr, branches, primitive.mark_moving(tangents[1:])
        )
        given = [t for t in tangents if type(t) is not primitive.Zero]
        outs, n = self.apply(*primals, *given, branches=both), len(out_moved)
        return outs[:n], primitive.tangents_of(outs[:n], outs[n:], out_moved)

    def run_series(self, trace, args, params):
        if trace.deferred:
            return None
        index, *args = args
        moved = tuple(map(trace.owns, args))
        verb = lambda branch, *marks: jet_jaxpr(branch, trace.order, moved, *marks)
        (branches, _), out_moved = transform_alike(verb, params["branches"])
        operands = trace.open_series(args, moved)
        with use(trace.parent):
            return trace.close_series(self.apply(index, *operands, branches=branches), out_moved)

    def partial_eval(self, trace, unknown, args, params):
        if unknown[0]:
            return trace.later.process(self, args, params)
        index, *args = args
        early, late, out_unknown, sources = split_branches(params["branches"], tuple(unknown[1:]))
        known, held = partition(unknown[1:], args)
        outs = []
        if early[0].outvars or any(b.effects for b in early):
            try:
                current.trace = trace.parent
                outs = self.apply(index, *known, branches=early)
            finally:
                current.trace = trace
        if True not in out_unknown and not any(b.effects for b in late):
            return outs
        values = {"operand": known, "result": outs}
        n_known = len(out_unknown) - sum(out_unknown)
        new = iter(outs[n_known:])
        residuals = [values[kind][i] if kind in values else next(new) for kind, i in sources]
        later = trace.later.process(self, [index, *residuals, *held], {"branches": late})
        return merge(out_unknown, outs[:n_known], later)

    def transpose(self, cts, index, *args, branches):
        marks = primitive.mark_linear(args), primitive.mark_moving(cts)
        (back, _), out_moved = transform_alike(backward_jaxpr, branches, *marks)
        values = [x for x in args if type(x) is not primitive.Linear]
        given = [ct for ct in cts if type(ct) is not primitive.Zero]
        grads = self.apply(index, *values, *given, branches=back) if any(out_moved) else ()
        return [None, *primitive.cotangents_of(args, grads, out_moved)]

    def batch(self, axis, args, dims, *, branches):
        if dims[0] is not None and holds_checks(branches):
            return batch_with_checks(self, axis, args, dims, {"branches": branches})
        (index, *args), (index_dim, *dims) = args, dims
        if index_dim is not None:
            check_repeatable(self.name, branches)
            operands = axis, args, dims
            last = len(branches) - 1
            if last != 1:
                index = convert(min(convert(index, np.dtype(np.uint32)), last), INT)
            own = lambda i: ne(index, 0) if i == last == 1 else eq(index, i)
            rows = [compute_branch(b, *operands, own(i)) for i, b in enumerate(branches)]
            return unzip2(choose_rows(index, ys, axis.size) for ys in zip(*rows, strict=True))
        mapped = lambda out_dims: [d is not None for d in out_dims]
        made, out_mapped = transform_alike(batch_jaxpr, branches, axis, tuple(dims), mask=mapped)
        outs = self.apply(index, *args, branches=made[0])
        return outs, [0 if m else None for m in out_mapped]

    def discharge(self, params, refs, written, verb):
        operands = range(1, len(refs))
        made = [verb(b, operands, written) for b in params["branches"]]
        handed = sorted({i for _, own in made for i in own})
        avals = params["branches"][0].in_avals
        branches = []
        for branch, own in made:
            at = {i: len(operands) + k for k, i in enumerate(own)}
            more = [at.get(i, avals[i - 1]) for i in handed]
            branches.append(take_inputs(branch, (*range(len(operands)), *more)))
        count = len(branches[0].outvars) - len(written)
        places = [*range(count), *[~i for i in written]]
        return {"branches": tuple(branches)}, [*range(len(refs)), *[~i for i in handed]], places

    def checked(self, trace, args, params):
        branches, program = check_branches(params["branches"], trace.errors)
        return trace.absorb(program, self.apply(*args, branches=branches))

    def save(self, params, policy):
        parts = [saving_jaxpr(b, policy) for b in params["branches"]]
        if not any(saved for _, _, saved in parts):
            return None
        needs = [number_types(early.out_avals[len(early.outvars) - n :]) for early, _, n in parts]
        wanted = list(dict.fromkeys(slot for need in needs for slot in need))
        more, less = [], []
        for (early, late, n), need in zip(parts, needs, strict=True):
            n_outs, n_ins = len(early.outvars) - n, len(late.invars) - n
            at = [need.index(slot) if slot in need else None for slot in wanted]
            more.append(give_results(early, extend_slots(n_outs, at, wanted)))
            less.append(take_inputs(late, extend_slots(n_ins, at, wanted)))
        return {"branches": tuple(more)}, {"branches": tuple(less)}

    def dce(self, eqn, live):
        branches = eqn.params["branches"]
        pruned = [dce_jaxpr(b, tuple(live), True) for b in branches]
        used = or_masks([u for _, u in pruned])
        if all(used) and all(p is b for (p, _), b in zip(pruned, branches, strict=True)):
            return eqn
        sources = tuple(i for i, u in enumerate(used) if u)
        index, *operands = eqn.invars
        return eqn.replace(
            invars=[index, *[operands[i] for i in sources]],
            outvars=[v for v, m in zip(eqn.outvars, live, strict=True) if m],
            params={"branches": tuple(take_inputs(p, sources) for p, _ in pruned)},
        )


def or_masks(masks: Sequence[Sequence[bool]]) -> tuple[bool, ...]:
    """Return True where any of several masks is True."""
    return tuple(map(any, zip(*masks, strict=True)))


def transform_alike(
    verb: Callable, branches: Sequence[Jaxpr], *args: Any, at: int = 1, mask: Callable = tuple
) -> tuple[list[tuple], tuple[bool, ...]]:
    """A transformation of each branch, with results marked alike: as any branch marks them.

    Item i of what `verb(branch, *args)` returns, for all branches, is item i of the first result.
    The marks are item `at`, through `mask`; where others have marked more, it is done again with
    those forced. The marks are returned too.
    """
    found = [verb(b, *args) for b in branches]
    masks = [tuple(mask(f[at])) for f in found]
    marks = or_masks(masks)
    alike = [
        f if m == marks else verb(b, *args, marks)
        for b, f, m in zip(branches, found, masks, strict=True)
    ]
    return list(zip(*alike, strict=True)), marks


def number_types(avals: Sequence[ShapedArray]) -> list[tuple[ShapedArray, int]]:
    """Each type, and how many equal ones stand before it."""
    strong = [a.strong() for a in avals]
    return [(a, strong[:i].count(a)) for i, a in enumerate(strong)]


def extend_slots(
    n: int, at: Sequence[int | None], slots: Sequence[tuple[ShapedArray, int]]
) -> tuple[int | ShapedArray, ...]:
    """For `take_inputs`, `give_results`: the first n, then each slot where it is, or its type."""
    more = [aval if i is None else n + i for i, (aval, _) in zip(at, slots, strict=True)]
    return (*range(n), *more)


def join_result_types(
    each: Sequence[Sequence[ShapedArray]], *index: ShapedArray
) -> list[ShapedArray]:
    """Return the result types of branches; weak if they are weak in the first, as in JAX.

    Over a mesh a result varies as in any of the branches, and as `index` does.
    """
    return [
        column[0].update(varying=primitive.join_varying((*column, *index)))
        for column in zip(*each, strict=True)
    ]


def compute_branch(
    branch: Jaxpr, axis: primitive.Axis, args: Sequence[Any], dims: Sequence[int | None], own: Any
) -> list[tuple[Any, int | None]]:
    """Return the results of a branch that all rows compute, and where they are mapped.

    In rows other than its `own` the derivatives of its operands are stopped: the derivative of a
    result that is not chosen may be infinite, and zero times infinity is NaN. For that an operand
    that the rows share is repeated if it is a scalar or a vector. Copies of a matrix would make
    products slow. Instead, the other rows compute with the values of the first row that chose the
    branch, so that they add no infinity. If no row chose it, the matrix is a constant.
    """
    read = {*variables_in(a for eqn in branch.eqns for a in eqn.invars)}
    marks = zip(branch.invars, branch.in_avals, args, strict=True)
    numbers = [v in read and not is_ref(x) and not dtypes.is_extended(a.dtype) for v, a, x in marks]
    inexact = [n and dtypes.is_inexact(a.dtype) for n, a in zip(numbers, branch.in_avals)]
    matrix = [i and d is None and a.ndim > 1 for i, d, a in zip(inexact, dims, branch.in_avals)]
    # A row that other rows read, by a collective, has its own values.
    replaced = any(matrix) and not jaxpr_uses_axis(branch, axis.name)
    xs, ds = list(args), list(dims)
    for k, x in enumerate(args):
        if matrix[k]:
            xs[k] = select_n(reduce_or(own, (0,)), stop_gradient_p.apply(x)[0], x)
        elif inexact[k] or (replaced and numbers[k] and dims[k] is not None):
            y = x = batched_at_front(x, dims[k], axis.size)
            shape = typeof(x).shape
            if replaced and dims[k] is not None:
                first = argmax(own, 0, INT)
                y = broadcast_in_dim(dynamic_index_in_dim(x, first, 0), shape, range(len(shape)))
            mask = broadcast_in_dim(own, shape, (0,))
            xs[k], ds[k] = select_n(mask, stop_gradient_p.apply(y)[0], x), 0
    program, out_dims = batch_jaxpr(branch, axis, tuple(ds))
    handed_on = dict(zip(branch.invars, zip(args, dims, strict=True), strict=True))
    return [
        handed_on[v] if type(v) is not Literal and v in handed_on else (y, d)
        for v, y, d in zip(branch.outvars, program(*xs), out_dims, strict=True)
    ]


def choose_rows(
    index: Any, column: Sequence[tuple[Any, int | None]], size: int
) -> tuple[Any, int | None]:
    """Choose the rows of a mapped index among one result of all branches."""
    first = column[0]
    if all(x is first[0] for x, _ in column):  # an operand that every branch passes on
        return first
    cases = [batched_at_front(x, d, size) for x, d in column]
    which = ne(index, 0) if len(cases) == 2 else index
    return select_n(broadcast_in_dim(which, typeof(cases[0]).shape, (0,)), *cases), 0


def check_branches(
    branches: tuple[Jaxpr, ...], errors: frozenset[str]
) -> tuple[tuple[Jaxpr, ...], Checked]:
    """Each branch checked, with codes of its own and the slots of all; and how the first may fail,
    with the failures of all."""
    found, places = [], []
    failures: list[Failure] = []
    slots: list[ShapedArray] = []
    for b in branches:
        program = checkify_jaxpr(b, errors, len(failures))
        at = assign_slots(program.state[1:], slots)
        slots += [a for a, p in zip(program.state[1:], at, strict=False) if p >= len(slots)]
        failures += [f._replace(slots=tuple(at[s] for s in f.slots)) for f in program.failures]
        found.append(program)
        places.append(at)
    if not failures:
        return tuple(p.jaxpr for p in found), found[0]
    alike = []
    for program, at in zip(found, places, strict=True):
        state = [at.index(i) + 1 if i in at else aval for i, aval in enumerate(slots)]
        code = 0 if program.size else ShapedArray((), INT)
        rest = range(program.size, len(program.jaxpr.outvars))
        alike.append(give_results(program.jaxpr, (code, *state, *rest)))
    return tuple(alike), Checked(alike[0], tuple(failures), 1 + len(slots))


def split_branches(
    branches: tuple[Jaxpr, ...], unknown: tuple[bool, ...]
) -> tuple[tuple[Jaxpr, ...], tuple[Jaxpr, ...], tuple[bool, ...], list[Source]]:
    """Split each branch in two, as split_jaxpr does, with equal types in all branches.

    Returns (early, late, marks of unknown outputs, sources of residuals). Branches share the
    residuals that agree in type; a branch with fewer residuals returns zeros for the others.
    """
    columns, out_unknown = transform_alike(split_jaxpr, branches, unknown, at=2)
    splits = list(zip(*columns, strict=True))
    n_known = out_unknown.count(False)
    needs = [find_residual_sources(early, n_known, sources) for early, _, _, sources in splits]
    wanted = {s: aval for need in needs for s, (_, aval) in need.items()}
    earlies, lates = [], []
    for (early, late, _, _), need in zip(splits, needs, strict=True):
        held = range(len(need), len(late.invars))
        given = [list(need).index(s) if s in need else a for s, a in wanted.items()]
        lates.append(take_inputs(late, (*given, *held)))
        made = [need[s][0] if s in need else a for s, a in wanted.items() if s[0] is a]
        earlies.append(give_results(early, (*range(n_known), *made)))
    return tuple(earlies), tuple(lates), out_unknown, list(wanted)


def find_residual_sources(
    early: Jaxpr, n_known: int, sources: Sequence[int | None]
) -> dict[Source, tuple[int, ShapedArray]]:
    """For each residual of a split branch its source, its position there, and its type."""
    found: dict[Source, tuple[int, ShapedArray]] = {}
    new = iter(range(n_known, len(early.outvars)))
    for s in sources:
        if s is not None:
            found["operand", s] = s, early.in_avals[s]
            continue
        at = next(new)
        var = early.outvars[at]
        same = next((i for i in range(n_known) if early.outvars[i] is var), None)
        aval = var.aval.strong()
        if same is not None:
            found["result", same] = same, aval
        else:
            n = sum(key[0] is aval for key in found)
            found[aval, n] = at, aval
    return found


@memo_jaxpr
def take_inputs(jaxpr: Jaxpr, sources: tuple[int | ShapedArray, ...]) -> Jaxpr:
    """A program with other parameters: its own, by position, and new ones, by type, not read."""
    if sources == tuple(range(len(jaxpr.invars))):
        return jaxpr
    invars = [jaxpr.invars[s] if isinstance(s, int) else UnreadVar(s) for s in sources]
    return jaxpr.replace(invars=invars)


@memo_jaxpr
def give_results(jaxpr: Jaxpr, sources: tuple[int | ShapedArray, ...]) -> Jaxpr:
    """A program with other results: its own, by position, and zeros of the given types."""
    if sources == tuple(range(len(jaxpr.outvars))):
        return jaxpr
    blank = stage_whole(lambda: [zeros(s) for s in sources if isinstance(s, ShapedArray)], ())
    absent = iter(blank.outvars)
    outvars = [next(absent) if isinstance(s, ShapedArray) else jaxpr.outvars[s] for s in sources]
    return jaxpr.replace(outvars=outvars, eqns=[*jaxpr.eqns, *blank.eqns])


cond_p = Cond()
