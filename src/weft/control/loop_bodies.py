"""Programs made of the body and the predicate of a loop, for the rules of `while` and `reversal`.

The inputs of a body are consts, then the carry; its results are the carry. The inputs of a
predicate are consts, then the same carry. Each program is made once and cached on the program that
it is made from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.control.carry import batch_loop, split_loop
from weft.control.reversal import INT, ONE
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, memo_jaxpr
from weft.core.primitive import Axis
from weft.passes.dce import dce_jaxpr
from weft.primitives.accumulate import add_in_place, is_sum
from weft.primitives.constant import stage_whole
from weft.primitives.elementwise import add, add_p, lt, lt_p, select
from weft.primitives.layout import broadcast, broadcast_in_dim, zeros
from weft.primitives.reduction import reduce_or
from weft.transforms.batch import batch_jaxpr, check_repeatable
from weft.transforms.check import Checked, checkify_jaxpr, skip_checks, thread_checks_jaxpr
from weft.transforms.linearize import select_residuals, split_jaxpr
from weft.transforms.transpose import backward_jaxpr
from weft.util import merge, select_masked

COUNT = ShapedArray((), INT)
TRUTH = ShapedArray((), np.dtype(bool))


def dims_at_front(dims: Sequence[int | None]) -> tuple[int | None, ...]:
    """Dimensions after mapped axes have been moved to the front."""
    return tuple([None if d is None else 0 for d in dims])


def find_fixpoint(mask: Sequence[bool], follow: Callable[[tuple[bool, ...]], Sequence]) -> tuple:
    """The least mask that holds `mask` and all that `follow` says of it."""
    while True:
        grown = tuple([a or b for a, b in zip(mask, follow(tuple(mask)), strict=True)])
        if grown == tuple(mask):
            return grown
        mask = grown


@memo_jaxpr
def find_unchanged(body: Jaxpr) -> list[bool]:
    """Return the elements of the carry that a body returns unchanged."""
    n = len(body.outvars)
    carry = body.invars[len(body.invars) - n :]
    return [v is o for v, o in zip(carry, body.outvars, strict=True)]


@memo_jaxpr
def keep_inputs(jaxpr: Jaxpr, kept: tuple[bool, ...]) -> Jaxpr:
    """A program without the other inputs, which it does not read."""
    return jaxpr.replace(invars=select_masked(jaxpr.invars, kept))


@memo_jaxpr
def widen_cond(cond: Jaxpr, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    """A predicate that is given more, and does not look at it."""
    return cond.replace(invars=[*cond.invars, *map(Var, avals)])


@memo_jaxpr
def check_loop(
    body: Jaxpr, cond: Jaxpr, n_cond: int, errors: frozenset[str]
) -> tuple[Checked, Jaxpr, Checked]:
    """The checked body, a predicate that goes with it, and the checked predicate.

    The body takes the predicate's consts before its own, and looks also into the predicate, which
    is about to be computed of its results.
    """
    looks = checkify_jaxpr(cond, errors)
    n_carry = len(body.outvars)

    def both(*args: Any) -> list:
        outs = body(*args[n_cond:])
        if looks.size:
            cond(*args[:n_cond], *outs)
        return outs

    at = n_cond + len(body.invars) - n_carry
    whole = stage_whole(both, [*cond.in_avals[:n_cond], *body.in_avals], body.name)
    program = thread_checks_jaxpr(whole, errors, at)
    plain: Any = skip_checks(cond)
    state = map(Var, program.state)
    plain = plain.replace(invars=[*plain.invars[:n_cond], *state, *plain.invars[n_cond:]])
    return program, plain, looks


@memo_jaxpr
def add_step_counter(body: Jaxpr, shape: tuple[int, ...]) -> Jaxpr:
    """A body that also counts its steps, last in the carry."""
    aval = COUNT.update(shape=shape)
    i, after = Var(aval), Var(aval)
    step = Eqn(add_p, [i, Literal(ONE, COUNT)], {}, [after])
    return body.replace(
        invars=[*body.invars, i], outvars=[*body.outvars, after], eqns=[step, *body.eqns]
    )


@memo_jaxpr
def stage_below(body: Jaxpr) -> Jaxpr:
    """The predicate (n, *carry) -> carry[-1] < n, for the carry of a body."""
    carry = [Var(a) for a in body.out_avals]
    n, pred = Var(carry[-1].aval), Var(carry[-1].aval.update(dtype=TRUTH.dtype))
    return Jaxpr((), [n, *carry], [pred], [Eqn(lt_p, [carry[-1], n], {}, [pred])])


@memo_jaxpr
def find_counter(body: Jaxpr, cond: Jaxpr, n_body: int, n_cond: int) -> tuple[int, Any] | None:
    """Find the counter of a loop that counts, and its bound; None for other loops.

    Such a loop runs while i < n. Each step adds 1 to the integer i and does not change n. The bound
    is a Literal or the place of an operand among (cond_consts, carry).
    """
    if (
        len(cond.eqns) != 1
        or cond.eqns[0].primitive is not lt_p
        or cond.outvars[0] not in cond.eqns[0].outvars
    ):
        return None
    i, bound = cond.eqns[0].invars
    places = {v: k for k, v in enumerate(cond.invars)}
    at = places.get(i, -1) - n_cond  # type: ignore[arg-type]
    if at < 0 or not dtypes.is_integer(i.aval.dtype):
        return None
    if type(bound) is not Literal:
        bound = places[bound]  # type: ignore[assignment, index]
        if bound >= n_cond and not find_unchanged(body)[bound - n_cond]:  # type: ignore[operator]
            return None
    before, after = body.invars[n_body + at], body.outvars[at]
    for eqn in body.eqns:
        if after in eqn.outvars:
            adds = is_sum(eqn) and eqn.invars[0] is before
            one = eqn.invars[-1]
            return (at, bound) if adds and type(one) is Literal and one.val == 1 else None
    return None


@memo_jaxpr
def batch_while(
    body: Jaxpr,
    cond: Jaxpr,
    axis: Axis,
    cond_dims: tuple[int | None, ...],
    body_dims: tuple[int | None, ...],
    dims: tuple[int | None, ...],
) -> tuple[Jaxpr, Jaxpr, tuple[bool, ...]]:
    """The body and the predicate of a while mapped over `axis`, and which of the carry is mapped.

    One predicate for all stays one. Otherwise all that changes is mapped, since it stops by itself.
    """
    carried = len(body_dims), len(dims)
    mapped_body, mapped, _ = batch_loop(body, *carried, axis, (*body_dims, *dims))
    many = cond.out_avals[0].shape != () and True in mapped
    carry_dims = [0 if m else None for m in mapped]
    mapped_cond, out_dims = batch_jaxpr(cond, axis, (*cond_dims, *carry_dims), many)
    if out_dims == [None]:
        return mapped_body, mapped_cond, mapped
    check_repeatable("while", [body, cond])
    dims = tuple([d if s else 0 for s, d in zip(find_unchanged(body), dims, strict=True)])
    mapped_body, mapped, _ = batch_loop(body, *carried, axis, (*body_dims, *dims))
    carry_dims = [0 if m else None for m in mapped]
    mapped_cond, _ = batch_jaxpr(cond, axis, (*cond_dims, *carry_dims), True)
    return mapped_body, mapped_cond, mapped


@memo_jaxpr
def halting_body(body: Jaxpr, cond: Jaxpr, n: int) -> Jaxpr:
    """(n cond_consts, body_consts, carry) -> what body gives where cond holds, else carry."""
    still = find_unchanged(body)

    def fun(*args: Any) -> list:
        carry = args[len(args) - len(still) :]
        (go,) = cond(*args[:n], *carry)
        outs = body(*args[n:])
        return [
            x if s else choose_state(go, y, x) for x, y, s in zip(carry, outs, still, strict=True)
        ]

    return stage_whole(fun, [*cond.in_avals[:n], *body.in_avals], body.name)


def choose_state(go: Any, x: Any, y: Any) -> Any:
    """x where `go` holds, else y; both begin with the axes of `go`."""
    shape = typeof(x).shape
    if 0 < typeof(go).ndim < len(shape):
        go = broadcast_in_dim(go, shape, tuple(range(typeof(go).ndim)))
    return select(go, x, y)


@memo_jaxpr
def any_jaxpr(cond: Jaxpr) -> Jaxpr:
    """A predicate that holds where any element of another's does."""
    axes = tuple(range(cond.out_avals[0].ndim))
    return stage_whole(lambda *xs: [reduce_or(cond(*xs)[0], axes)], cond.in_avals, cond.name)


@memo_jaxpr
def keep_known_body(body: Jaxpr, unknown: tuple[bool, ...]) -> Jaxpr:
    """The part of a body that its known inputs determine; `unknown` stays so around the loop."""
    count = len(body.outvars)
    early, _, _, out_unknown, _ = split_loop(body, len(unknown) - count, count, unknown)
    wanted = [i < out_unknown.count(False) for i in range(len(early.outvars))]
    return dce_jaxpr(early, wanted)[0]


@memo_jaxpr
def prune_body(body: Jaxpr, live: tuple[bool, ...]) -> tuple[Jaxpr, tuple[bool, ...]]:
    """A body for the `live` part of its carry and what that needs, and which inputs it takes."""
    n = len(body.invars) - len(live)
    live = find_fixpoint(live, lambda c: dce_jaxpr(body, c)[1][n:])
    out, used = dce_jaxpr(body, live)
    taken = (*used[:n], *live)
    return out if all(taken) else keep_inputs(out, taken), taken


@memo_jaxpr
def pull_loop(
    body: Jaxpr, n: int, linear: tuple[bool, ...], moved: tuple[bool, ...]
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """The transpose of a body with n consts in its `linear` inputs, as a body.

    It takes the inputs that are not linear, sums of the cotangents of consts, and cotangents of the
    carry, and gives the last two. Also returned: which of the carry, and of the consts, have any;
    `moved` is where it starts from.
    """
    early, late, _, sources = split_jaxpr(body, linear, linear[n:])
    n_residuals, n_linear = len(sources), sum(linear)
    n_new, n_known = sources.count(None), linear.count(False)
    solved = (*[False] * n_residuals, *[True] * n_linear)

    def pulled(carry: Sequence[bool]) -> tuple[Jaxpr, list[bool]]:
        cts_moved = tuple(select_masked(carry, linear[n:]))
        force = (*[False] * sum(linear[:n]), *cts_moved)
        back, out_moved = backward_jaxpr(late, solved, cts_moved, force)
        return back, merge(linear, [False] * n_known, out_moved)

    carry = find_fixpoint(moved, lambda c: pulled(c)[1][n:])
    back, out_moved = pulled(carry)
    n_sums = sum(out_moved[:n])

    def fun(*args: Any) -> list:
        known, sums = args[:n_known], args[n_known : n_known + n_sums]
        outs = early(*known)
        residuals = select_residuals(sources, known, outs[len(outs) - n_new :])
        grads = back(*residuals, *args[n_known + n_sums :])
        return [*map(add, sums, grads), *grads[n_sums:]]

    known_avals = [a for a, lin in zip(body.in_avals, linear, strict=True) if not lin]
    avals = [*known_avals, *back.out_avals[:n_sums], *select_masked(body.out_avals, carry)]
    pull = add_in_place(stage_whole(fun, avals, body.name))
    return dce_jaxpr(pull)[0], list(carry), out_moved[:n]


@memo_jaxpr
def halting_advance(advance: Jaxpr, shape: tuple[int, ...], n: int) -> Jaxpr:
    """(limit, n consts, step, xs) -> step + 1 and the advance of xs where there is a next step.

    So a loop keeps the state before its last step, one where the body is known to have been run:
    past it a derivative might be infinite, and nothing times that is not a number.
    """
    still = find_unchanged(advance)

    def fun(limit: Any, *args: Any) -> list:
        step, xs = args[n], args[n + 1 :]
        go = lt(broadcast(add(step, ONE), shape), limit)
        outs = advance(*args[:n], *xs)
        next_xs = [
            x if s else choose_state(go, y, x) for x, y, s in zip(xs, outs, still, strict=True)
        ]
        return [add(step, ONE), *next_xs]

    limit = COUNT.update(shape=shape)
    avals = [limit, *advance.in_avals[:n], COUNT, *advance.in_avals[n:]]
    return stage_whole(fun, avals, advance.name)


@memo_jaxpr
def halting_pull(
    pull: Jaxpr, shape: tuple[int, ...], n: int, n_xs: int, summed: tuple[bool, ...]
) -> Jaxpr:
    """(limit, n consts, step, xs, ys) -> where step < limit, the pull of ys, else ys.

    The ys that are `summed` add up over all loops; steps beyond the limit add nothing.
    """
    first = n + 1 + n_xs

    def fun(limit: Any, *args: Any) -> list:
        go, ys = lt(broadcast(args[n], shape), limit), args[first:]
        masked = list(zip(ys, summed, strict=True))
        shown = [y if s else choose_state(go, y, zeros(typeof(y))) for y, s in masked]
        outs = pull(*args[:n], *args[n + 1 : first], *shown)
        return [z if s else choose_state(go, z, y) for z, (y, s) in zip(outs, masked, strict=True)]

    limit = COUNT.update(shape=shape)
    return stage_whole(fun, [limit, *pull.in_avals[:n], COUNT, *pull.in_avals[n:]], pull.name)
