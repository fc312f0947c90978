"""The elements of the inputs that each element of a program's results depends on.

The sets of elements are rows of boolean matrices: a row for each element of a value, a column for
each element of the inputs that are followed. `follow` walks through a jaxpr; nothing is computed
from the values of inputs. Where a result cannot be told apart, it depends on more than it has to,
never on less.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from weft.control.custom import CustomLinear
from weft.core.aval import ShapedArray
from weft.core.element import describe_elements
from weft.core.facts import Elements, Runs
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, bodies_of
from weft.core.primitive import Body, split_inputs
from weft.core.ref import is_ref
from weft.core.stage import stage
from weft.core.trace import Tracer
from weft.primitives.fft import FFT
from weft.primitives.indexing import Scatter, gather_windows
from weft.primitives.layout import LeadingBatch, instantiate
from weft.primitives.window import SelectAndGatherAdd, SelectAndScatterAdd, reduce_window_sum_p
from weft.sparsity.reads import Source, find_reads

Matrix = scipy.sparse.csr_array

MAX_TURNS = 10_000  # iterations of a loop that are followed one by one, about 1 ms for an equation


class State:
    """The facts of a value that are known before the program runs.

    `depends` is the matrix of dependences, None if the value depends on no input that is followed.
    `compute` returns the value; it is None if the value is not known beforehand.
    """

    __slots__ = ("aval", "compute", "depends")

    def __init__(
        self,
        aval: ShapedArray,
        depends: Matrix | None = None,
        compute: Callable[[], np.ndarray] | None = None,
    ):
        self.aval = aval
        self.depends = depends
        self.compute = compute

    def read_row(self, at: int) -> State:
        """Return the state of the part at one place on the first axis, without that axis."""
        aval = self.aval.update(shape=self.aval.shape[1:])
        rows = slice(at * aval.size, (at + 1) * aval.size)
        depends = None if self.depends is None else self.depends[rows]
        compute = self.compute
        return State(aval, depends, None if compute is None else lambda: compute()[at])


def know(aval: ShapedArray, value: Any) -> State:
    """Return the state of a value that is known."""
    return State(aval, None, lambda: np.asarray(value))


def follow(jaxpr: Jaxpr, consts: Sequence[State], inputs: Sequence[State]) -> list[State]:
    """Return the states of the results of a program.

    Args:
      jaxpr: the program.
      consts: the states of its constvars.
      inputs: the states of its inputs.
    """
    states: dict[Var, State] = dict(zip(jaxpr.constvars, consts, strict=True))
    states.update(zip(jaxpr.invars, inputs, strict=True))
    read = lambda a: know(a.aval, a.val) if isinstance(a, Literal) else states[a]
    for eqn in jaxpr.eqns:
        found = follow_equation(eqn, [read(a) for a in eqn.invars])
        states.update(zip(eqn.outvars, found, strict=True))
    return [read(a) for a in jaxpr.outvars]


def follow_equation(eqn: Eqn, ins: Sequence[State]) -> list[State]:
    """Return the states of the results of an equation."""
    avals = [v.aval for v in eqn.outvars]
    if all(s.depends is None for s in ins):
        return defer(eqn, ins)
    bodies = bodies_of(eqn)
    if bodies and not any(b.jaxpr is None or b.on_each_device for b in bodies):
        runs = bodies[0].runs
        if runs in (Runs.ONCE, Runs.AGAIN):
            return follow(bodies[0].jaxpr, [], [ins[i] for i in bodies[0].operands])
        if runs is Runs.BRANCH:
            return follow_branches(bodies, ins)
        if runs is Runs.LOOP:
            return follow_loop(bodies[0], bodies[1:], ins, avals)
    prim = eqn.primitive
    if prim.element is not None:
        return follow_elements(eqn, ins)
    if isinstance(prim, Scatter):
        return follow_scatter(eqn, ins)
    if isinstance(prim, SelectAndGatherAdd | SelectAndScatterAdd):
        return follow_windows(eqn, ins)
    if isinstance(prim, CustomLinear) and not any(is_ref(v) for v in eqn.invars):
        return follow_custom(eqn, ins)
    return follow_batches(eqn, ins)


class Deferred:
    """The results of an equation whose operands are known, computed if somebody asks."""

    def __init__(self, eqn: Eqn, given: Sequence[Callable[[], np.ndarray]]):
        self.eqn = eqn
        self.given = given
        self.found: list[np.ndarray] | None = None

    def compute(self, i: int) -> np.ndarray:
        """Return result `i`."""
        if self.found is None:
            values = [compute() for compute in self.given]
            outs = self.eqn.primitive.apply(*values, **self.eqn.params)
            self.found = [np.asarray(y) for y in outs]
        return self.found[i]


def defer(eqn: Eqn, ins: Sequence[State]) -> list[State]:
    """Return the states of results that depend on no input that is followed."""
    avals = [v.aval for v in eqn.outvars]
    given = [s.compute for s in ins if s.compute is not None]
    if eqn.primitive.effect is not None or len(given) < len(ins):
        return [State(a) for a in avals]
    results = Deferred(eqn, given)
    return [State(a, None, functools.partial(results.compute, i)) for i, a in enumerate(avals)]


# --- operations -----------------------------------------------------------------------------------


def follow_elements(eqn: Eqn, ins: Sequence[State]) -> list[State]:
    """Follow an operation with an `element` rule."""
    sources = [Source(s.aval, s.compute, s.depends is not None) for s in ins]
    rules = describe_elements(eqn.primitive, [s.aval for s in ins], eqn.params)
    outs = []
    for (places, expression), v in zip(rules, eqn.outvars, strict=True):
        local = find_reads(places, expression, v.aval.shape, sources)
        outs.append(State(v.aval, compose(local, ins)))
    return outs


def compose(local: Sequence[Matrix | None], ins: Sequence[State]) -> Matrix | None:
    """Return the dependences of results; `local` has the elements of operands that each reads."""
    found: Matrix | None = None
    for part, state in zip(local, ins, strict=True):
        if part is not None and state.depends is not None and part.nnz:
            added = part @ state.depends
            found = added if found is None else found + added
    return found if found is not None and found.nnz else None


def follow_scatter(eqn: Eqn, ins: Sequence[State]) -> list[State]:
    """Follow an operation that writes updates into an array, at indices.

    An update goes where a gather with the same indices reads, which has an `element` rule.
    """
    x, indices, updates = ins
    identity = scipy.sparse.eye_array(x.aval.size, dtype=bool, format="csr")

    def read_back(whole: Any, at: Any) -> list:
        mode = eqn.params["mode"]
        return [gather_windows(whole, at, updates.aval, eqn.params, mode=mode, fill_value=0)]

    jaxpr, consts = stage(read_back, [x.aval, indices.aval])
    known = [know(v.aval, c) for v, c in zip(jaxpr.constvars, consts, strict=True)]
    at = State(indices.aval, None, indices.compute)
    (out,) = follow(jaxpr, known, [State(x.aval, identity), at])
    shape = updates.aval.size, x.aval.size
    places = scipy.sparse.csr_array(shape, dtype=bool) if out.depends is None else out.depends
    stays = identity
    if eqn.primitive.elements is Elements.PLACED and indices.compute is not None:
        written = np.zeros(x.aval.size, bool)
        written[places.indices] = True
        stays = scipy.sparse.csr_array(scipy.sparse.diags_array(~written, dtype=bool))
        stays.eliminate_zeros()
    local = [stays, None, scipy.sparse.csr_array(places.T)]
    return [State(eqn.outvars[0].aval, compose(local, ins))]


def follow_windows(eqn: Eqn, ins: Sequence[State]) -> list[State]:
    """Follow an operation that reads, or adds to, one element of each window of its second operand.

    Any element of a window may be that one, so that the windows are those of a sum.
    """
    moved, windows = ins
    reads = isinstance(eqn.primitive, SelectAndGatherAdd)
    if windows.depends is not None:  # the choice has no derivative, but follows other inputs
        return follow_batches(eqn, ins)
    params = {k: v for k, v in eqn.params.items() if k != "select_prim"}
    ones = (1,) * windows.aval.ndim
    params = {"base_dilation": ones, "window_dilation": ones, **params}
    total = lambda x: reduce_window_sum_p.apply(x, **params)
    jaxpr, _ = stage(total, [windows.aval.update(dtype=moved.aval.dtype)])
    identity = scipy.sparse.eye_array(windows.aval.size, dtype=bool, format="csr")
    (out,) = follow(jaxpr, [], [State(jaxpr.invars[0].aval, identity)])
    if out.depends is None:
        return [State(v.aval) for v in eqn.outvars]
    local = out.depends if reads else scipy.sparse.csr_array(out.depends.T)
    return [State(eqn.outvars[0].aval, compose([local], [moved]))]


def follow_custom(eqn: Eqn, ins: Sequence[State]) -> list[State]:
    """Follow the linear map of a custom_vjp function: the transpose of its reverse rule."""
    params = eqn.params
    n, outs = params["num_residuals"], [v.aval for v in eqn.outvars]
    if any(s.depends is not None for s in ins[:n]):
        return follow_batches(eqn, ins)
    avals = [s.aval for s in ins[:n]]
    rule = params["jvp"] or params["bwd"]
    flat = lambda *xs: [instantiate(y) for y in rule(xs[:n], xs[n:])]
    into = outs if params["jvp"] is None else [s.aval for s in ins[n:]]
    jaxpr, consts = stage(flat, [*avals, *into])
    closed = [
        State(v.aval) if isinstance(c, Tracer) else know(v.aval, c)
        for v, c in zip(jaxpr.constvars, consts, strict=True)
    ]
    if params["jvp"] is not None:
        return follow(jaxpr, closed, ins)
    offsets = np.cumsum([0, *[a.size for a in outs]])
    shape = lambda a: (a.size, int(offsets[-1]))
    cts = [
        State(a, scipy.sparse.csr_array(scipy.sparse.eye_array(*shape(a), k=start, dtype=bool)))
        for a, start in zip(outs, offsets, strict=False)
    ]
    reads = [s.depends for s in follow(jaxpr, closed, [*ins[:n], *cts])]
    found = []
    for a, (first, last) in zip(outs, itertools.pairwise(offsets), strict=True):
        local = [None if r is None else scipy.sparse.csr_array(r[:, first:last].T) for r in reads]
        found.append(State(a, compose(local, ins[n:])))
    return found


def follow_batches(eqn: Eqn, ins: Sequence[State]) -> list[State]:
    """Follow an operation on matrices, each of whose results depends on a whole matrix.

    Any other operation without an `element` rule, such as a call of a user's function, counts as
    an operation on one matrix: its results depend on everything.
    """
    avals, outs = [s.aval for s in ins], [v.aval for v in eqn.outvars]
    results: Sequence[Sequence] = [[None] * a.ndim for a in outs]
    operands: Sequence[Sequence] = [[None] * a.ndim for a in avals]
    if isinstance(eqn.primitive, LeadingBatch):
        axes = eqn.primitive.label_axes(avals, outs, **eqn.params)
        operands, results = axes.operands, axes.results
    elif isinstance(eqn.primitive, FFT):
        rank = len(eqn.params["fft_lengths"])
        results = operands = [[*range(outs[0].ndim - rank), *[None] * rank]]
    found = []
    for out, row in zip(outs, results, strict=True):
        local: list[Matrix | None] = []
        for s, of in zip(ins, operands, strict=True):
            whole = s.depends is None
            local.append(None if whole else match_places(out.shape, row, s.aval.shape, list(of)))
        found.append(State(out, compose(local, ins)))
    return found


def match_places(
    out_shape: Sequence[int], out_labels: Sequence, shape: Sequence[int], labels: Sequence
) -> Matrix:
    """Return True for a result's and an operand's element with equal places on common axes."""
    common = [
        (d, labels.index(label))
        for d, label in enumerate(out_labels)
        if label is not None and not isinstance(label, list) and label in labels
    ]
    common = [(d, a) for d, a in common if out_shape[d] == shape[a]]
    sizes = [out_shape[d] for d, _ in common]

    def group(whole: Sequence[int], axes: Sequence[int]) -> Matrix:
        count = math.prod(whole)
        at = np.unravel_index(np.arange(count), whole) if whole else ()
        of = np.zeros(count, np.int64)
        for size, a in zip(sizes, axes, strict=True):
            of = of * size + at[a]
        entries = np.ones(count, bool), (np.arange(count), of)
        return scipy.sparse.csr_array(entries, shape=(count, math.prod(sizes)))

    return group(out_shape, [d for d, _ in common]) @ group(shape, [a for _, a in common]).T


# --- branches and loops ---------------------------------------------------------------------------


def follow_branches(bodies: Sequence[Body], ins: Sequence[State]) -> list[State]:
    """Follow the branch that is known to be taken, else all branches."""
    if ins[0].compute is not None:
        at = int(ins[0].compute())
        bodies = [bodies[at if 0 <= at < len(bodies) else -1]]
    runs = [follow(b.jaxpr, [], [ins[i] for i in b.operands]) for b in bodies]
    return [unite(states) for states in zip(*runs, strict=True)]


def unite(states: Sequence[State]) -> State:
    """Return the state of a value that is one of several."""
    if len(states) == 1:
        return states[0]
    found = [s.depends for s in states if s.depends is not None]
    return State(states[0].aval, functools.reduce(lambda a, b: a + b, found) if found else None)


class Varies(Exception):
    """The dependences of an iteration follow from a value that differs between iterations."""


def refuse() -> np.ndarray:
    """Stand for the computation of a value that differs between iterations."""
    raise Varies


def follow_loop(
    body: Body, conditions: Sequence[Body], ins: Sequence[State], avals: Sequence[ShapedArray]
) -> list[State]:
    """Follow a loop.

    If the dependences of one iteration are the same in all, they are found once and composed.
    Otherwise iterations are followed one by one.
    """
    consts, carry, rows = split_inputs(body, [ins[i] for i in body.operands])
    if body.turns is None:
        fixed = [ins[i] for i in conditions[0].operands][: -len(carry) or None]
        return follow_while(body.jaxpr, conditions[0].jaxpr, fixed, consts, carry)
    carry = forget_changed(body.jaxpr, consts, carry, rows)
    try:
        step = find_step(body.jaxpr, consts, carry, [s.read_row(0) for s in rows])
    except Varies:
        step = functools.partial(follow, body.jaxpr, [])
        if len(body.turns) > MAX_TURNS:  # too many: indices count as not known
            consts, carry, rows = [list(map(forget, states)) for states in (consts, carry, rows)]
    parts = {}
    for turn in body.turns:
        outs = step([*consts, *carry, *[s.read_row(turn) for s in rows]])
        carry, parts[turn] = outs[: len(carry)], outs[len(carry) :]
    ys = zip(*[parts[turn] for turn in sorted(parts)], strict=True)
    stacked = [stack(y, a) for y, a in zip(ys, avals[len(carry) :], strict=True)]
    return [*carry, *stacked]


def forget(state: State) -> State:
    """Return the state of a value without the value."""
    return State(state.aval, state.depends)


def forget_changed(
    jaxpr: Jaxpr, consts: Sequence[State], carry: Sequence[State], rows: Sequence[State]
) -> list[State]:
    """Return the carry of a loop without the values that are not known after an iteration."""
    carry = list(carry)
    while True:
        is_known = [s.compute is not None for s in (*consts, *carry, *rows)]
        known = dict(zip(jaxpr.invars, is_known, strict=True))
        for eqn in jaxpr.eqns:
            whole = eqn.primitive.effect is None
            whole = whole and all(isinstance(a, Literal) or known[a] for a in eqn.invars)
            known.update(dict.fromkeys(eqn.outvars, whole))
        kept = [
            s if s.compute is None or isinstance(v, Literal) or known[v] else forget(s)
            for s, v in zip(carry, jaxpr.outvars, strict=False)
        ]
        if kept == carry:
            return carry
        carry = kept


def stack(states: Sequence[State], aval: ShapedArray) -> State:
    """Return the state of values that are stacked along a new first axis."""
    found = [s.depends for s in states if s.depends is not None]
    if not found:
        return State(aval)
    empty = scipy.sparse.csr_array((states[0].aval.size, found[0].shape[1]), dtype=bool)
    rows = [empty if s.depends is None else s.depends for s in states]
    return State(aval, scipy.sparse.csr_array(scipy.sparse.vstack(rows)))


def find_step(
    jaxpr: Jaxpr, consts: Sequence[State], carry: Sequence[State], row: Sequence[State]
) -> Callable[[Sequence[State]], list[State]]:
    """Return the function from the states before an iteration to the states after it.

    The dependences of the results on the elements of the inputs are found once.

    Raises:
      Varies: they differ between iterations.
    """
    ins, first = [*consts, *carry, *row], len(consts)
    moves = [s.depends is not None for s in ins]
    while True:
        sizes = [s.aval.size if m else 0 for s, m in zip(ins, moves, strict=True)]
        offsets = np.cumsum([0, *sizes])
        given = []
        for i, (s, m) in enumerate(zip(ins, moves, strict=True)):
            places = np.arange(s.aval.size)
            entries = np.ones(len(places), bool), (places, places + offsets[i])
            shape = s.aval.size, int(offsets[-1])
            compute = s.compute if i < first or s.compute is None else refuse
            given.append(
                State(s.aval, scipy.sparse.csr_array(entries, shape=shape))
                if m
                else State(s.aval, None, compute)
            )
        outs = follow(jaxpr, [], given)
        grown = list(moves)
        for i, out in enumerate(outs[: len(carry)], first):
            grown[i] = moves[i] or out.depends is not None
        if grown == moves:
            break
        moves = grown
    spans = [slice(a, b) for a, b in itertools.pairwise(offsets)]
    local = [[None if s.depends is None else s.depends[:, span] for span in spans] for s in outs]
    return lambda states: [
        State(s.aval, compose(part, states)) for s, part in zip(outs, local, strict=True)
    ]


def follow_while(
    jaxpr: Jaxpr,
    condition: Jaxpr,
    fixed: Sequence[State],
    consts: Sequence[State],
    carry: Sequence[State],
) -> list[State]:
    """Follow a loop by iterations while its condition is known, then until nothing is added."""
    for _ in range(MAX_TURNS):
        (holds,) = follow(condition, [], [*fixed, *carry])
        if holds.compute is None:
            break
        if not holds.compute():
            return list(carry)
        carry = follow(jaxpr, [], [*consts, *carry])
    carry = list(map(forget, carry))
    while True:
        after = follow(jaxpr, [], [*consts, *carry])
        joined = [unite(pair) for pair in zip(carry, after, strict=True)]
        if list(map(count_entries, joined)) == list(map(count_entries, carry)):
            return joined
        carry = joined


def count_entries(state: State) -> int:
    """Return the number of dependences."""
    return 0 if state.depends is None else state.depends.nnz
