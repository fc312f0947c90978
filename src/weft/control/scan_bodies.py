"""The bodies of loops of known length, cut in two and turned round for the rules of `scan`.

What all loops need is in carry.py. All is remembered on the body that it is made of.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.control.carry import cut_pieces, follow_carry, split_loop
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, memo_jaxpr
from weft.passes.dce import dce_jaxpr, has_effects
from weft.passes.dependence import find_dependences
from weft.primitives.accumulate import add_in_place
from weft.primitives.dot import DotGeneral
from weft.primitives.elementwise import add_p
from weft.primitives.slopes import slopes_of_results
from weft.transforms.recompute import recompute_residuals
from weft.transforms.transpose import backward_jaxpr
from weft.util import is_below, partition


@memo_jaxpr
def carry_to_consts(jaxpr: Jaxpr, num_consts: int, fixed: tuple[bool, ...]) -> Jaxpr:
    """The body with the `fixed` part of the carry among the consts."""
    n, m = num_consts, len(fixed)
    carry, handed_on = partition(fixed, jaxpr.invars[n : n + m])
    return jaxpr.replace(
        invars=[*jaxpr.invars[:n], *handed_on, *carry, *jaxpr.invars[n + m :]],
        outvars=[*partition(fixed, jaxpr.outvars[:m])[0], *jaxpr.outvars[m:]],
    )


class Source(enum.Enum):
    """The sources of values that a loop reads or makes; a position goes with it."""

    CONST = enum.auto()  # the consts of the loop
    X = enum.auto()  # the arrays with a row for each step
    INVARIANT = enum.auto()  # the results of the program that is run once, before the loop
    Y = enum.auto()  # the arrays that stack results of the steps


class Halves(NamedTuple):
    """A body split in two: `early` is the known part, `late` the rest, which takes residuals.

    `invariant` computes, from the known consts, the residuals that are the same in every step.
    Other new residuals are further ys of `early`. `late_consts` and `late_xs` have the source of
    each residual.
    """

    invariant: Jaxpr
    early: Jaxpr
    late: Jaxpr
    unknown: tuple[bool, ...]  # inputs of the body
    out_unknown: list[bool]
    late_consts: list[tuple[Source, int]]
    late_xs: list[tuple[Source, int]]


@memo_jaxpr
def split_body(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, unknown: tuple[bool, ...], steps: Any
) -> Halves:
    """Split a body in two, given its inputs that are unknown at first, and the number of steps."""
    jaxpr = slopes_of_results(jaxpr, steps)
    early, late, unknown, out_unknown, sources = split_loop(jaxpr, num_consts, num_carry, unknown)
    known = [len(g) - sum(g) for g in cut_pieces(unknown, (num_consts, num_carry))]
    num_outs = out_unknown.count(False)
    new = iter(early.outvars[num_outs:])
    residuals = [next(new) if i is None else early.invars[i] for i in sources]
    if len(set(residuals)) == len(residuals):
        residuals, late = recompute_residuals(early, late, residuals, known, num_outs)
    invariant, early, places = place_residuals(early, residuals, known, num_outs)
    stepwise = [source in (Source.X, Source.Y) for source, _ in places]
    takes, *held = cut_pieces(
        late.invars, (len(places), num_consts - known[0], num_carry - known[1])
    )
    late_consts, late_xs = partition(stepwise, places)
    consts, xs = partition(stepwise, takes)
    late = late.replace(invars=[*consts, *held[0], *held[1], *xs, *held[2]])
    return Halves(invariant, early, late, unknown, out_unknown, late_consts, late_xs)


def place_residuals(
    early: Jaxpr, residuals: Sequence[Any], known: Sequence[int], num_outs: int
) -> tuple[Jaxpr, Jaxpr, list[tuple[Source, int]]]:
    """Find the cheapest source of each residual; see `Halves`.

    A known const or x is passed unchanged. A residual that depends only on consts is computed once.
    A residual that is a y already is not stacked again. `known` counts the inputs of `early` by
    groups. Returned: `invariant`, `early` and the sources.
    """
    num_consts, num_carry, _ = known
    operands: dict[Any, tuple[Source, int]] = {}
    consts, _, xs = cut_pieces(early.invars, (num_consts, num_carry))
    operands |= {v: (Source.CONST, i) for i, v in enumerate(consts)}
    operands |= {v: (Source.X, i) for i, v in enumerate(xs)}
    whole = early.replace(outvars=residuals)
    results = early.outvars[:num_outs]  # the known carry and ys
    fixed: list[Any] = []
    places: list[tuple[Source, int]] = []
    for var, need in zip(residuals, find_dependences(whole), strict=True):
        if var in operands:
            places.append(operands[var])
        elif need >> num_consts == 0:
            places.append((Source.INVARIANT, len(fixed)))
            fixed.append(var)
        else:
            ys = results[num_carry:]
            found = next((i for i, y in enumerate(ys) if y is var), len(ys))
            places.append((Source.Y, found))
            results += [var] * (found == len(ys))
    pure = [e for e in early.eqns if not has_effects(e)]
    invariant = early.replace(invars=early.invars[:num_consts], outvars=fixed, eqns=pure)
    return dce_jaxpr(invariant)[0], dce_jaxpr(early.replace(outvars=results))[0], places


def find_linear_inputs(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, linear: tuple[bool, ...]
) -> tuple[bool, ...]:
    """Return the inputs of a body that depend on the linear ones, after going around the loop."""
    marked = follow_carry(find_dependences(jaxpr, False), linear, num_consts, num_carry)
    if all(marked[num_consts : num_consts + num_carry]):
        return tuple(marked)
    return split_loop(jaxpr, num_consts, num_carry, linear)[2]


class Backward(NamedTuple):
    """The body of the transposed loop.

    Its inputs are: the nonlinear consts; the sums for the cotangents of the linear consts, and the
    cotangents of the carry; the nonlinear xs, and the cotangents of the ys. Its results are: the
    sums; the cotangents of the carry; the cotangents of linear xs; operands of products after the
    loop. For each const with a product as its cotangent, `products` has the equation and the places
    of its operands among the xs and the ys.
    """

    body: Jaxpr
    grads_moved: list[bool]  # which inputs of the linear body have cotangents that are not Zero
    carry_moved: list[bool]  # the same for its carried results
    products: list[tuple[Eqn, list[tuple[Source, int]]] | None]  # for each const with one


@memo_jaxpr
def backward_body(
    jaxpr: Jaxpr,
    num_consts: int,
    num_carry: int,
    linear: tuple[bool, ...],
    moved: tuple[bool, ...],
    split: bool = False,
) -> Backward:
    """The way back through a linear body, given which results' cotangents are not Zero.

    `split` takes all products that can be out of the loop, whatever memory that needs.
    """
    n, m, first = num_consts, num_carry, sum(linear[:num_consts])
    moves, before = move_back(jaxpr, n, m, moved), None
    while moves != before:  # programs in the body may move more
        force = (*[False] * first, *moves[:m], *[False] * sum(linear[n + m :]))
        back, back_moved = backward_jaxpr(jaxpr, linear, moves, force)
        before, moves = moves, (*back_moved[first : first + m], *moves[m:])
    moving = iter(back_moved)
    grads_moved = [lin and next(moving) for lin in linear]
    kept_consts = n - sum(linear[:n])
    kept_xs = len(linear) - sum(linear) - kept_consts
    consts, xs, ct_carry, ct_ys = cut_pieces(back.invars, (kept_consts, kept_xs, sum(moves[:m])))
    grads, carry, ys = cut_pieces(back.outvars, (sum(grads_moved[:n]), sum(moves[:m])))
    ys = list(ys)
    steps = [*xs, *ct_ys]
    makers = {v: eqn for eqn in back.eqns for v in eqn.outvars}
    for _ in range(2):  # what one product has stacked may be all that another needs
        products = [find_product(makers, g, steps, ys, split) for g in grads]
    summed = [g for g, p in zip(grads, products, strict=True) if p is None]
    sums, totals = ([Var(g.aval) for g in summed] for _ in range(2))
    adds = [Eqn(add_p, [s, g], {}, [t]) for s, g, t in zip(sums, summed, totals, strict=True)]
    body = back.replace(
        invars=[*consts, *sums, *ct_carry, *steps],
        outvars=[*totals, *carry, *ys],
        eqns=[*back.eqns, *adds],
    )
    return Backward(dce_jaxpr(add_in_place(body))[0], grads_moved, list(moves[:m]), products)


def move_back(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, moved: tuple[bool, ...]
) -> tuple[bool, ...]:
    """Return the results whose cotangents are not Zero, after going around the loop."""
    needs = find_dependences(jaxpr, False)
    moves, before = moved, None
    while moves != before:
        before, reached = moves, 0
        for need, x in zip(needs, moves, strict=True):
            reached |= need if x else 0
        carry = [x or bool(reached >> num_consts + i & 1) for i, x in enumerate(moves[:num_carry])]
        moves = (*carry, *moves[num_carry:])
    return moves


def find_product(
    makers: dict[Var, Eqn], grad: Any, xs: list, ys: list, split: bool
) -> tuple[Eqn, list[tuple[Source, int]]] | None:
    """Return an equation whose product is computed once for all steps, and its operands' places.

    One product of stacked arrays, if they are stacked anyway or small against the result, is faster
    than a product and a sum in each step. New ys are added to `ys`. Return None for no product.
    """
    eqn = None if type(grad) is Literal else makers.get(grad)
    if eqn is None or not isinstance(eqn.primitive, DotGeneral):
        return None
    if not all(type(a) is not Literal and (a in makers or a in xs) for a in eqn.invars):
        return None
    new = [a for a in dict.fromkeys(eqn.invars) if a not in xs and a not in ys]
    if not split and not is_below(4 * sum(a.aval.size for a in new) - grad.aval.size, 1):
        return None
    ys += new
    find = lambda a: (Source.X, xs.index(a)) if a in xs else (Source.Y, ys.index(a))
    return eqn, [find(a) for a in eqn.invars]
