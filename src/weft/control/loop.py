"""`while`: a loop that runs as long as its predicate holds, and `reversal`, its reverse mode.

Each rule transforms the body and binds it again; which of the carry moves, is mapped or is unknown
is found by fixpoints on the body. Which states the reverse mode keeps is reversal.py's; pytrees and
checks are api/while_loop.py's; loops of known length are scan.py's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft.control import loop_bodies
from weft.control.call import Holder
from weft.control.carry import Loop, batch_loop, carry_in_front, cut_pieces, jvp_loop, split_loop
from weft.control.checks import batch_with_checks, holds_checks
from weft.control.reversal import INT, SLOTS, ZERO, Sweep
from weft.core.aval import typeof
from weft.core.facts import Runs
from weft.core.jaxpr import Jaxpr, Literal, Var, memo_jaxpr
from weft.core.primitive import Body, Linear, Zero, mark_linear, mark_moving, tangents_of
from weft.core.stage import stage_closed
from weft.core.trace import use
from weft.errors import RefError
from weft.passes.dce import dce_jaxpr, quiet_jaxpr
from weft.primitives.constant import stage_whole
from weft.primitives.elementwise import max, sub
from weft.primitives.layout import convert, instantiate, zeros
from weft.primitives.reduction import reduce_max
from weft.primitives.reshard import pack_terms, unpack_terms
from weft.primitives.varying import check_meetings
from weft.transforms.check import start_unfailed
from weft.transforms.transpose import backward, dual_aval
from weft.util import merge, partition, select_masked
from weft.xla.lower import lower_jaxpr


class While(Loop):
    """x = init; while cond(cond_consts, x): x = body(body_consts, x). Results: the last x.

    Operands: cond_consts, body_consts, init. If the predicate is an array, this is many loops, and
    each stops when its own predicate fails: the carry begins with the axes of the predicate, except
    for values that the body does not change. `checkpoints` is the number of states that reverse
    mode stores at a time; None leaves it to reversal.py. Source: StableHLO, while.
    """

    name = "while"
    program = "body_jaxpr"

    def bodies(self, params):
        operands = range(params["cond_nconsts"] + len(params["body_jaxpr"].invars))
        cond, body, *parts = merge_loops(operands, params)
        cond_consts, body_consts, carry = parts
        places = range(len(body_consts), len(body_consts) + len(carry))
        return [
            Body(body, "body_jaxpr", Runs.LOOP, (*body_consts, *carry), places),
            Body(cond, "cond_jaxpr", Runs.CONDITION, (*cond_consts, *carry)),
        ]

    def abstract_eval(self, *avals, body_jaxpr, cond_jaxpr, **params):
        for turn in (body_jaxpr, cond_jaxpr):
            check_meetings("while_loop", cond_jaxpr.out_avals[0], [turn])
        return body_jaxpr.out_avals

    def lower(self, hlo, *args, **params):
        held = pack_terms(hlo, args, [x.aval for x in args])
        cond_jaxpr, body_jaxpr, cond_consts, body_consts, init = merge_loops(held, params)
        still = loop_bodies.find_unchanged(body_jaxpr)  # a region names these from outside
        start, fixed = partition(still, init)
        ordered = body_jaxpr.ordered or cond_jaxpr.ordered
        if not start and not body_jaxpr.effects:
            return args[len(args) - len(init) :]

        def region(jaxpr: Jaxpr, consts: list, dropped: Sequence[bool]) -> Callable:
            def write(*xs: Any) -> list:
                ins = unpack_terms(hlo, [*consts, *merge(still, xs, fixed)], jaxpr.in_avals)
                outs = pack_terms(hlo, lower_jaxpr(hlo, jaxpr, ins), jaxpr.out_avals)
                return partition(dropped, outs)[0]

            return write

        condition = region(cond_jaxpr, cond_consts, [False])
        body = region(body_jaxpr, body_consts, still)
        outs = merge(still, hlo.while_loop(start, condition, body, ordered), fixed)
        return unpack_terms(hlo, outs, body_jaxpr.out_avals)

    def groups(self, xs, params):
        return *split_groups(xs, params)[1:], []

    def bind_body(self, args, body, operands, params):
        consts, carry, _ = operands
        more = carry[len(params["body_jaxpr"].outvars) :]
        cond = loop_bodies.widen_cond(params["cond_jaxpr"], tuple(map(typeof, more)))
        return bind_while(cond, body, split_groups(args, params)[0], consts, carry, params)

    def with_consts(self, eqn, jaxpr, given):
        """Return the equation with another body, which takes the consts `given` after its own."""
        cond_consts, body_consts, init = split_groups(eqn.invars, eqn.params)
        n = len(body_consts) + len(given)
        params = {**eqn.params, "body_jaxpr": jaxpr, "body_nconsts": n}
        return eqn.replace(invars=[*cond_consts, *body_consts, *given, *init], params=params)

    def batch(self, axis, args, dims, **params):
        cond_consts, body_consts, init = split_groups(args, params)
        cond_dims, body_dims, init_dims = split_groups(dims, params)
        body, cond = params["body_jaxpr"], params["cond_jaxpr"]
        if holds_checks([body, cond]):
            return batch_with_checks(self, axis, args, dims, params)
        how = axis, tuple(cond_dims), tuple(body_dims), loop_bodies.dims_at_front(init_dims)
        mapped_body, mapped_cond, mapped = loop_bodies.batch_while(body, cond, *how)
        init = carry_in_front(init, init_dims, mapped, axis)
        outs = bind_while(mapped_cond, mapped_body, cond_consts, body_consts, init, params)
        return outs, [0 if m else None for m in mapped]

    def partial_eval(self, trace, unknown, args, params):
        body, cond = params["body_jaxpr"], params["cond_jaxpr"]
        cond_unknown, body_unknown, init_unknown = split_groups(unknown, params)
        n, m = len(body_unknown), len(init_unknown)
        carry = split_loop(body, n, m, (*body_unknown, *init_unknown))[2][n:]
        reads = dce_jaxpr(cond)[1]
        if any(u and r for u, r in zip((*cond_unknown, *carry), reads, strict=True)):
            return trace.later.process(self, args, params)
        cond_consts, body_consts, init = split_groups(args, params)
        early = loop_bodies.keep_known_body(body, (*body_unknown, *carry))
        early_cond = loop_bodies.keep_inputs(
            cond, (*[True] * len(cond_consts), *[not c for c in carry])
        )
        known = partition(body_unknown, body_consts)[0], partition(carry, init)[0]
        counter = loop_bodies.find_counter(body, cond, len(body_consts), len(cond_consts))
        if counter is None:  # then this run counts the steps, and the later run repeats that count
            first = zeros(loop_bodies.COUNT.update(shape=cond.out_avals[0].shape))
            early = loop_bodies.add_step_counter(early, first.shape)
            early_cond = loop_bodies.widen_cond(early_cond, (typeof(first),))
            known[1].append(first)
        with use(trace.parent):
            outs = bind_while(early_cond, early, cond_consts, *known, params)
        if counter is None:
            counted = loop_bodies.add_step_counter(body, first.shape)
            args = [outs.pop(), *body_consts, *init, first]
            params = while_params(
                loop_bodies.stage_below(counted), counted, 1, len(body_consts), params
            )
        if body.effects or cond.effects:  # they have happened
            params = {k: quiet_jaxpr(x) if type(x) is Jaxpr else x for k, x in params.items()}
        later = trace.later.process(self, args, params)
        return merge(carry, outs, [y for y, u in zip(later, carry, strict=False) if u])

    def transpose(self, cts, *args, **params):
        body, n = params["body_jaxpr"], params["body_nconsts"]
        _, consts, init = split_groups(args, params)
        const_linear, linear = mark_linear(consts), mark_linear(init)
        linear = split_loop(body, n, len(init), (*const_linear, *linear))[2][n:]
        moved = [lin and type(ct) is not Zero for lin, ct in zip(linear, cts, strict=True)]
        pull, moved, const_moved = loop_bodies.pull_loop(
            body, n, (*const_linear, *linear), tuple(moved)
        )
        ys = [instantiate(ct) for ct, m in zip(cts, moved, strict=True) if m]
        sums = [zeros(dual_aval(x.aval)) for x, m in zip(consts, const_moved, strict=True) if m]
        known, states = partition(const_linear, consts)[0], partition(linear, init)[0]
        advance = loop_bodies.keep_known_body(body, (*const_linear, *linear))
        slots, parts = params["checkpoints"] or SLOTS, (known, known, states, [*sums, *ys])
        summed = (*[True] * len(sums), *select_masked(loop_bodies.find_unchanged(body), moved))
        count = count_steps_taken(args, params)
        outs = iter(bind_reversal(count, advance, pull, parts, slots, summed))
        grads = [next(outs) if m else None for m in (*const_moved, *moved)]
        return [None] * params["cond_nconsts"] + [
            None if type(x) is not Linear else Zero(x.aval) if g is None else g
            for x, g in zip((*consts, *init), grads, strict=True)
        ]

    def checked(self, trace, args, params):
        cond, body, cond_consts, body_consts, init = merge_loops(args, params)
        program, cond, looks = loop_bodies.check_loop(body, cond, len(cond_consts), trace.errors)
        if looks.size:
            trace.absorb(looks, looks.jaxpr(*cond_consts, *init))
        body_consts = [*cond_consts, *body_consts]
        init = [*start_unfailed(program), *init]
        return trace.absorb(
            program, bind_while(cond, program.jaxpr, cond_consts, body_consts, init, params)
        )

    def discharge(self, params, refs, written, verb):
        n, m = params["cond_nconsts"], params["body_nconsts"]
        if written and written[0] < n:
            raise RefError(
                "while_loop: the predicate must not write to references; got one that does. "
                "Hint: write in the body."
            )
        carry = range(n + m, len(refs))
        body, handed = verb(params["body_jaxpr"], range(n, len(refs)), written)
        cond, _ = verb(params["cond_jaxpr"], [*range(n), *carry], (), False)  # of no derivative
        count = len(params["body_jaxpr"].outvars)
        outs, last = cut_pieces(body.outvars, (count,))
        consts = [i for i in range(n, n + m) if i not in written]
        again = {refs[i]: cond.invars[i] for i in range(n) if refs[i] is not None}
        seen = [again.pop(refs[i], None) or Var(body.invars[i - n].aval) for i in written]
        looked = [i for i in range(n) if cond.invars[i] not in seen]
        cond = cond.replace(invars=[*[cond.invars[i] for i in looked], *seen, *cond.invars[n:]])
        place = {~i: len(refs) + k for k, i in enumerate(handed)}
        order = [*consts, *place, *written, *carry]
        invars = [body.invars[place.get(i, i) - n] for i in order]
        body = body.replace(invars=invars, outvars=[*last, *outs])
        params = while_params(cond, body, len(looked), len(consts) + len(handed), params)
        return params, [*looked, *order], [*[~i for i in written], *range(count)]

    def dce(self, eqn, live):
        invars, params, live = narrow_while(eqn.invars, eqn.params, live)
        if params is eqn.params:
            return eqn
        outvars = [v for v, k in zip(eqn.outvars, live, strict=True) if k]
        return eqn.replace(invars=invars, params=params, outvars=outvars)

    def pretty_params(self, params):
        return {k: v for k, v in params.items() if k != "checkpoints" or v is not None}


while_p = While()


def bind_while(
    cond: Jaxpr,
    body: Jaxpr,
    cond_consts: Sequence[Any],
    body_consts: Sequence[Any],
    init: Sequence[Any],
    params: dict,
) -> list:
    """Apply while to its operands in groups; of `params`, checkpoints is kept."""
    params = while_params(cond, body, len(cond_consts), len(body_consts), params)
    return while_p.apply(*cond_consts, *body_consts, *init, **params)


def while_params(cond: Jaxpr, body: Jaxpr, n_cond: int, n_body: int, params: dict) -> dict:
    """Return the parameters of a while, in printing order."""
    return {
        "body_jaxpr": body,
        "body_nconsts": n_body,
        "checkpoints": params.get("checkpoints"),
        "cond_jaxpr": cond,
        "cond_nconsts": n_cond,
    }


def run_loop(cond: Callable, body: Callable, init: Sequence[Any], slots: int) -> list:
    """A while of flat Python functions that may close over traced values."""
    avals = [typeof(x) for x in init]
    cond_jaxpr, cond_consts = stage_closed(lambda *xs: [cond(*xs)], avals)
    body_jaxpr, body_consts = stage_closed(body, avals)
    how = {"checkpoints": slots}
    return bind_while(cond_jaxpr, body_jaxpr, cond_consts, body_consts, init, how)


def split_groups(xs: Sequence[Any], params: dict) -> tuple[list, list, list]:
    """Split a list with one item for each operand: of cond_consts, of body_consts, of init."""
    n = params["cond_nconsts"]
    m = n + params["body_nconsts"]
    return list(xs[:n]), list(xs[n:m]), list(xs[m:])


def merge_loops(args: Sequence[Any], params: dict) -> tuple[Jaxpr, Jaxpr, list, list, list]:
    """Predicate, body and operands in groups of one loop that does what the many ones do."""
    cond_consts, body_consts, init = split_groups(args, params)
    body, cond = params["body_jaxpr"], params["cond_jaxpr"]
    if cond.out_avals[0].shape:
        body = loop_bodies.halting_body(body, cond, len(cond_consts))
        cond, body_consts = loop_bodies.any_jaxpr(cond), [*cond_consts, *body_consts]
    return cond, body, cond_consts, body_consts, init


def narrow_while(
    args: Sequence[Any], params: dict, live: Sequence[bool]
) -> tuple[list, dict, Sequence]:
    """Operands and parameters of a while whose `live` results are wanted, and all those it has."""
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond, reads = dce_jaxpr(params["cond_jaxpr"])
    live = [a or b for a, b in zip(live, reads[n_cond:], strict=True)]
    body, read = loop_bodies.prune_body(params["body_jaxpr"], tuple(live))
    live = read[n_body:]
    taken = (*reads[:n_cond], *read)
    if all(taken) and body is params["body_jaxpr"] and cond is params["cond_jaxpr"]:
        return list(args), params, live
    cond = loop_bodies.keep_inputs(cond, (*reads[:n_cond], *live))
    params = while_params(cond, body, sum(reads[:n_cond]), sum(read[:n_body]), params)
    return select_masked(args, taken), params, live


def count_steps_taken(args: Sequence[Any], params: dict) -> Any:
    """Return the number of steps of a loop, from its bounds if it counts, else by running it."""
    cond_consts, body_consts, init = split_groups(args, params)
    body, cond = params["body_jaxpr"], params["cond_jaxpr"]
    found = loop_bodies.find_counter(body, cond, len(body_consts), len(cond_consts))
    if found is None:
        first = zeros(loop_bodies.COUNT.update(shape=cond.out_avals[0].shape))
        body = loop_bodies.add_step_counter(body, first.shape)
        cond = loop_bodies.widen_cond(cond, (typeof(first),))
        params = while_params(cond, body, len(cond_consts), len(body_consts), params)
        live = [False] * len(init) + [True]
        args, params, _ = narrow_while([*args, first], params, live)
        return while_p.apply(*args, **params)[-1]
    at, bound = found
    last = bound.val if type(bound) is Literal else [*cond_consts, *init][bound]
    first = init[at]
    if typeof(first).dtype.itemsize < 4:  # may not hold the difference
        first, last = convert(first, INT), convert(last, INT)
    return convert(sub(max(first, last), first), INT)


# --------------------------------------------------------------------------------------------
# Reverse mode.


class Reversal(Holder):
    """ys after `ys = pull(pull_consts, x_i, ys)` for i = count - 1, ..., 0.

    The states x_i begin with x_0 = xs and go on by x_i+1 = advance(advance_consts, x_i). Operands:
    count, advance_consts, pull_consts, xs, ys. `checkpoints` is how many states are stored at a
    time. Source: see `Sweep` in reversal.py, which `lower` writes.
    """

    name = "reversal"
    program = "pull_jaxpr"

    def bodies(self, params):
        advance, pull = params["advance_jaxpr"], params["pull_jaxpr"]
        n = 1 + params["advance_nconsts"]
        m = n + params["pull_nconsts"]
        states = range(m, m + len(advance.out_avals))
        return [
            Body(pull, "pull_jaxpr", operands=range(n, n + len(pull.invars))),
            Body(advance, "advance_jaxpr", operands=(*range(1, n), *states)),
        ]

    def abstract_eval(self, *avals, pull_jaxpr, **params):
        return pull_jaxpr.out_avals

    def lower(self, hlo, *args, **params):
        return lower_jaxpr(hlo, sweep_jaxpr(**params), args)

    def jvp(self, primals, tangents, *, advance_jaxpr, pull_jaxpr, **params):
        _, *dots = split_parts(tangents, params, advance_jaxpr)
        count, *parts = split_parts(primals, params, advance_jaxpr)
        n_advance, n_pull, n_xs, n = map(len, parts)
        advance_dots, pull_dots, x_dots, y_dots = dots
        advance_moved = mark_moving([*advance_dots, *x_dots])
        advance, moves, _ = jvp_loop(advance_jaxpr, (n_advance, n_xs), 1, advance_moved)
        advance_moved, x_moved = moves[:n_advance], moves[n_advance:]
        moved = (*mark_moving(pull_dots), *x_moved, *mark_moving(y_dots))
        pull, moves, y_moved = jvp_loop(pull_jaxpr, (n_pull, n_xs, n), 2, moved)
        masks = advance_moved, moves[:n_pull], x_moved, y_moved
        operands = [
            [*part, *[instantiate(t) for t, m in zip(group, mask, strict=True) if m]]
            for part, group, mask in zip(parts, dots, masks, strict=True)
        ]
        outs = bind_reversal(count[0], advance, pull, operands, params["checkpoints"])
        return outs[:n], tangents_of(outs[:n], outs[n:], y_moved)

    def batch(self, axis, args, dims, *, advance_jaxpr, pull_jaxpr, **params):
        (count,), *parts = split_parts(args, params, advance_jaxpr)
        (count_dim,), advance_dims, pull_dims, x_dims, y_dims = split_parts(
            dims, params, advance_jaxpr
        )
        xs_dims, ys_dims = loop_bodies.dims_at_front(x_dims), loop_bodies.dims_at_front(y_dims)
        if count_dim is not None:  # then each stops by itself, and all that changes is mapped
            still = loop_bodies.find_unchanged(advance_jaxpr)
            xs_dims = tuple([d if s else 0 for s, d in zip(still, xs_dims, strict=True)])
            ys_dims = (0,) * len(ys_dims)
        n, m = len(advance_dims), len(xs_dims)
        dims = (*advance_dims, *xs_dims)
        advance, x_mapped, _ = batch_loop(advance_jaxpr, n, m, axis, dims)
        dims = (*pull_dims, *[0 if m else None for m in x_mapped], *ys_dims)
        m = len(ys_dims)
        pull, y_mapped, _ = batch_loop(pull_jaxpr, len(dims) - m, m, axis, dims)
        parts[2] = carry_in_front(parts[2], x_dims, x_mapped, axis)
        parts[3] = carry_in_front(parts[3], y_dims, y_mapped, axis)
        outs = bind_reversal(count, advance, pull, parts, params["checkpoints"])
        return outs, [0 if m else None for m in y_mapped]

    def partial_eval(self, trace, unknown, args, params):
        return sweep_jaxpr(**params)(*args)  # its loops have rules of their own

    def transpose(self, cts, *args, **params):
        return backward(sweep_jaxpr(**params), (), args, cts)

    def discharge(self, params, refs, written, verb):
        n = 1 + params["advance_nconsts"]
        m = n + params["pull_nconsts"]
        pull, handed = verb(params["pull_jaxpr"], range(n, len(refs)), written)
        outs, last = cut_pieces(pull.outvars, (len(params["pull_jaxpr"].outvars),))
        ys = len(refs) - len(outs)
        consts = [i for i in range(n, m) if i not in written]
        place = {~i: len(refs) + k for k, i in enumerate(handed)}
        order = [*consts, *place, *range(m, ys), *written, *range(ys, len(refs))]
        invars = [pull.invars[place.get(i, i) - n] for i in order]
        params = {
            **params,
            "pull_jaxpr": pull.replace(invars=invars, outvars=[*last, *outs]),
            "pull_nconsts": len(consts) + len(handed),
        }
        return params, [*range(n), *order], [*[~i for i in written], *range(len(outs))]

    def dce(self, eqn, live):
        advance, pull = eqn.params["advance_jaxpr"], eqn.params["pull_jaxpr"]
        count, *parts = split_parts(eqn.invars, eqn.params, advance)
        n_advance, n_pull, n_xs, _ = map(len, parts)
        m = n_pull + n_xs
        ys = loop_bodies.find_fixpoint(live, lambda c: dce_jaxpr(pull, c)[1][m:])
        pull, pulled = dce_jaxpr(pull, ys)
        xs = loop_bodies.find_fixpoint(
            pulled[n_pull:m], lambda c: dce_jaxpr(advance, c)[1][n_advance:]
        )
        advance, advanced = dce_jaxpr(advance, xs)
        masks = advanced[:n_advance], pulled[:n_pull], xs, ys
        kept = [
            a for part, mask in zip(parts, masks, strict=True) for a in select_masked(part, mask)
        ]
        return eqn.replace(
            invars=[*count, *kept],
            params={
                "advance_jaxpr": loop_bodies.keep_inputs(advance, (*masks[0], *xs)),
                "advance_nconsts": sum(masks[0]),
                "checkpoints": eqn.params["checkpoints"],
                "pull_jaxpr": loop_bodies.keep_inputs(pull, (*masks[1], *xs, *ys)),
                "pull_nconsts": sum(masks[1]),
            },
            outvars=select_masked(eqn.outvars, ys),
        )


reversal_p = Reversal()


def bind_reversal(
    count: Any,
    advance: Jaxpr,
    pull: Jaxpr,
    parts: Sequence[Sequence[Any]],
    checkpoints: int,
    summed: tuple[bool, ...] = (),
) -> list:
    """Apply reversal to its operands: `parts` are advance_consts, pull_consts, xs, ys.

    If `count` is an array, xs and ys begin with its axes. Exceptions are values that `advance` does
    not change, and the ys that are `summed`: they add up linear functions of the others.
    """
    advance_consts, pull_consts, xs, ys = parts
    shape = typeof(count).shape
    if shape:  # all loops take the steps of the longest; each keeps its last state
        summed = summed or (False,) * len(ys)
        pull = loop_bodies.halting_pull(pull, shape, len(pull_consts), len(xs), summed)
        advance = loop_bodies.halting_advance(advance, shape, len(advance_consts))
        advance_consts, pull_consts = [count, *advance_consts], [count, *pull_consts]
        xs, count = [ZERO, *xs], reduce_max(count, tuple(range(len(shape))))
    return reversal_p.apply(
        count,
        *advance_consts,
        *pull_consts,
        *xs,
        *ys,
        advance_jaxpr=advance,
        advance_nconsts=len(advance_consts),
        checkpoints=checkpoints,
        pull_jaxpr=pull,
        pull_nconsts=len(pull_consts),
    )


def split_parts(args: Sequence[Any], params: dict, advance: Jaxpr) -> list[list]:
    """Split a list with one item for each operand of reversal into its five groups."""
    rest, out = list(args), []
    for size in (1, params["advance_nconsts"], params["pull_nconsts"], len(advance.outvars)):
        out.append(rest[:size])
        rest = rest[size:]
    return [*out, rest]


def sweep_jaxpr(*, pull_jaxpr: Jaxpr, **params: Any) -> Jaxpr:
    """The program of a reversal, in whiles."""
    return stage_sweep(pull_jaxpr, *params.items())


@memo_jaxpr
def stage_sweep(pull: Jaxpr, *items: Any) -> Jaxpr:
    """See `sweep_jaxpr`."""
    params = dict(items)
    advance, n_advance = params["advance_jaxpr"], params["advance_nconsts"]
    still = loop_bodies.find_unchanged(advance)

    def fun(*args: Any) -> list:
        (count,), advance_consts, pull_consts, states, ys = split_parts(args, params, advance)
        xs, fixed = partition(still, states)

        def step(*xs: Any) -> list:
            return partition(still, advance(*advance_consts, *merge(still, xs, fixed)))[0]

        def undo(*both: Any) -> list:
            states = merge(still, both[: len(xs)], fixed)
            return pull(*pull_consts, *states, *both[len(xs) :])

        slots = params["checkpoints"]  # also for each state of the sweep
        loop = functools.partial(run_loop, slots=min(slots, SLOTS))
        return Sweep(loop, step, undo, slots)(count, xs, ys)

    avals = [loop_bodies.COUNT, *advance.in_avals[:n_advance], *pull.in_avals]
    return dce_jaxpr(stage_whole(fun, avals, pull.name))[0]
