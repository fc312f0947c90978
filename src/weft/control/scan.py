"""`scan`: a loop of known length that carries values, reads arrays and stacks what it makes.

Each rule transforms the body and binds it again; which of the carry moves, is mapped or is unknown
is found by fixpoints on the body. Pytrees and checks are scans.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.control.jit import jaxpr_uses_axis, run_compiled
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn, Jaxpr, Var, memo_jaxpr
from weft.core.passes import dce_jaxpr, dependences, has_effects
from weft.core.primitive import Linear, Primitive, Zero
from weft.core.trace import Tracer, use
from weft.primitives.elementwise import add_p
from weft.primitives.layout import batched_at_front, instantiate, moved_to_front, zeros
from weft.transforms.batch import Axis, batch_jaxpr, unmapped_aval
from weft.transforms.check import threaded_jaxpr, unfailed
from weft.transforms.jvp import jvp_jaxpr
from weft.transforms.linearize import saving_jaxpr, split_jaxpr
from weft.transforms.transpose import backward_jaxpr
from weft.util import merge, partition
from weft.xla.array import ArrayImpl
from weft.xla.hlo import i64s
from weft.xla.lower import lower_jaxpr


class Scan(Primitive):
    """Apply `jaxpr`, (consts, carry, x) -> (carry, y), for each x along the first axis of xs.

    Operands: consts, the carry to start with, xs. Results: the carry at the end; the ys, stacked
    along a new first axis. Shapes: x = xs.shape[1:]. `reverse` goes from the last x to the first;
    `linear` says of which operands the results are known to be linear functions.
    """

    name = "scan"
    memoize_type = False
    repeats = True

    def abstract_eval(self, *avals, jaxpr, length, num_carry, **params):
        carry, ys = jaxpr.out_avals[:num_carry], jaxpr.out_avals[num_carry:]
        return [*carry, *[unmapped_aval(y, length, 0) for y in ys]]

    def steps(self, *args, **params):
        consts, carry, xs = groups(args, params)
        order = range(params["length"])
        for i in reversed(order) if params["reverse"] else order:
            outs = yield params["jaxpr"], [*consts, *carry, *[x[i] for x in xs]]
            carry = outs[: len(carry)]

    def impl(self, *args, **params):
        return run_compiled(self, args, params, params["jaxpr"])

    def lower(self, hlo, *args, **params):
        return write_scan(hlo, *groups(args, params), params)

    def jvp(self, primals, tangents, **params):
        moved = tuple(type(t) is not Zero for t in tangents)
        body, moved, out_moved = jvp_body(params["jaxpr"], *counts(params), moved)
        consts, carry, xs = groups(primals, params)
        dots = [instantiate(t) if m else None for t, m in zip(tangents, moved, strict=True)]
        const_dots, carry_dots, x_dots = [
            [t for t in group if t is not None] for group in groups(dots, params)
        ]
        outs = bind_scan(
            body, [*consts, *const_dots], [*carry, *carry_dots], [*xs, *x_dots], params
        )
        n, m = len(carry), len(carry) + len(carry_dots)
        m_y = m + len(out_moved) - n
        moving = iter([*outs[n:m], *outs[m_y:]])
        outs = [*outs[:n], *outs[m:m_y]]
        return outs, [
            next(moving) if o else Zero(typeof(y).to_tangent())
            for y, o in zip(outs, out_moved, strict=True)
        ]

    def batch(self, axis, args, dims, **params):
        consts, carry, xs = groups(args, params)
        const_dims, carry_dims, x_dims = groups(dims, params)
        # the mapped axis of xs comes after the one that is walked along
        xs = [moved_to_front(x, 1) if d == 0 else x for x, d in zip(xs, x_dims, strict=True)]
        x_dims = [d if d is None else max(d - 1, 0) for d in x_dims]
        body, carry_mapped, out_dims = batch_body(
            params["jaxpr"], *counts(params), axis, (*const_dims, *carry_dims, *x_dims)
        )
        carry = [
            batched_at_front(c, d, axis.size) if m else c
            for c, d, m in zip(carry, carry_dims, carry_mapped, strict=True)
        ]
        outs = bind_scan(body, consts, carry, xs, params)
        n = len(carry)
        return outs, [*out_dims[:n], *[d if d is None else 1 for d in out_dims[n:]]]

    def partial_eval(self, trace, unknown, args, params):
        with use(trace.parent):
            known_outs, late_args, late_params, halves = known_part(unknown, args, params)
        later = trace.later.process(self, late_args, late_params)
        return merge(halves.out_unknown, known_outs, later)

    def transpose(self, cts, *args, **params):
        linear = tuple(type(x) is Linear for x in args)
        num_consts, num_carry = counts(params)
        marked = linear_inputs(params["jaxpr"], num_consts, num_carry, linear)
        if not all(groups(marked, params)[1]):
            return self.transpose_unknown(cts, args, linear, params)
        moved = tuple(type(ct) is not Zero for ct in cts)
        body, grads_moved, ct_carry_moved = backward_body(
            params["jaxpr"], num_consts, num_carry, marked, moved
        )
        consts, carry, xs = groups(args, params)
        sums = [
            zeros(x.aval) for x, g in zip(consts, groups(grads_moved, params)[0], strict=True) if g
        ]
        ct_carry = [
            instantiate(ct) for ct, m in zip(cts[:num_carry], ct_carry_moved, strict=True) if m
        ]
        ct_ys = [ct for ct in cts[num_carry:] if type(ct) is not Zero]
        outs = iter(
            bind_scan(
                body,
                [x for x in consts if type(x) is not Linear],
                [*sums, *ct_carry],
                [*[x for x in xs if type(x) is not Linear], *ct_ys],
                {**params, "reverse": not params["reverse"]},
            )
        )
        grads = [next(outs) if m else None for m in grads_moved]
        return [
            None if type(x) is not Linear else Zero(x.aval) if g is None else g
            for x, g in zip(args, grads, strict=True)
        ]

    def checked(self, trace, args, params):
        consts, carry, xs = groups(args, params)
        program = threaded_jaxpr(params["jaxpr"], trace.errors, len(consts))
        outs = bind_scan(program.jaxpr, consts, [*unfailed(program), *carry], xs, params)
        return trace.absorb(program, outs)

    def transpose_unknown(self, cts, args, linear, params):
        """The transpose where some of the carry is no function of what is solved for."""
        _, late_args, late_params, halves = known_part(linear, args, params)
        late_cts = partition(halves.out_unknown, cts)[1]
        grads = self.transpose(late_cts, *late_args, **late_params)
        given = {id(x): g for x, g in zip(late_args, grads, strict=True) if type(x) is Linear}
        return [given.get(id(x)) if lin else None for x, lin in zip(args, linear, strict=True)]

    def saving(self, params, policy):
        early, late, saved = saving_jaxpr(params["jaxpr"], policy)
        if not saved:
            return None
        linear = (*params["linear"], *[False] * saved)  # what is saved is stacked, as ys and xs
        return {**params, "jaxpr": early}, {**params, "jaxpr": late, "linear": linear}

    def dce(self, eqn, live):
        params = eqn.params
        num_consts, num_carry = counts(params)
        wanted = list(live)
        while True:
            body, used = dce_jaxpr(params["jaxpr"], tuple(wanted), True)
            carry_used = used[num_consts : num_consts + num_carry]
            if not any(u and not w for u, w in zip(carry_used, wanted, strict=False)):
                break
            wanted[:num_carry] = [w or u for w, u in zip(wanted, carry_used, strict=False)]
        kept = [*used[:num_consts], *wanted[:num_carry], *used[num_consts + num_carry :]]
        if body is params["jaxpr"] and all(kept):
            return eqn
        if not body.eqns and not any(wanted):
            return None
        body = body.replace(invars=[v for v, k in zip(body.invars, kept, strict=True) if k])
        linear = tuple(x for x, k in zip(params["linear"], kept, strict=True) if k)
        sizes = {"num_consts": sum(kept[:num_consts]), "num_carry": sum(wanted[:num_carry])}
        return eqn.replace(
            invars=[a for a, k in zip(eqn.invars, kept, strict=True) if k],
            outvars=[v for v, w in zip(eqn.outvars, wanted, strict=True) if w],
            params={**params, "jaxpr": body, "linear": linear, **sizes},
        )

    def uses_axis(self, name, params):
        return jaxpr_uses_axis(params["jaxpr"], name)


scan_p = Scan()


def bind_scan(
    jaxpr: Jaxpr, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], params: dict
) -> list:
    """Apply scan to its operands in groups. `params` needs length, reverse, unroll at least.

    Arrays that are carried only to be handed on unchanged become consts, of which there is one.
    """
    n, m = len(consts), len(carry)
    invars, outvars = jaxpr.invars, jaxpr.outvars
    fixed = [
        v is o and isinstance(x, Tracer | ArrayImpl)
        for v, o, x in zip(invars[n : n + m], outvars[:m], carry, strict=True)
    ]
    if True in fixed:
        jaxpr = carry_to_consts(jaxpr, n, tuple(fixed))
        carried_on, handed_on = partition(fixed, carry)
        outs = bind_scan(jaxpr, [*consts, *handed_on], carried_on, xs, params)
        k = len(carried_on)
        return [*merge(fixed, outs[:k], handed_on), *outs[k:]]
    return scan_p.bind(*consts, *carry, *xs, **scan_params(jaxpr, n, m, params))


def scan_params(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, params: dict, linear: Sequence[bool] = ()
) -> dict:
    """The parameters of a scan that is like the one of `params`, but for its body."""
    return {
        "_split_transpose": params.get("_split_transpose", False),
        "jaxpr": jaxpr,
        "length": params["length"],
        "linear": tuple(linear) or (False,) * len(jaxpr.invars),
        "num_carry": num_carry,
        "num_consts": num_consts,
        "reverse": params["reverse"],
        "unroll": params["unroll"],
    }


def counts(params: dict) -> tuple[int, int]:
    """How many consts there are, and how many carried values."""
    return params["num_consts"], params["num_carry"]


def groups(xs: Sequence[Any], params: dict) -> tuple[list, list, list]:
    """What belongs to consts, to the carry and to xs."""
    n, m = counts(params)
    return list(xs[:n]), list(xs[n : n + m]), list(xs[n + m :])


def carried(
    needs: Sequence[int], marked: Sequence[bool], num_consts: int, num_carry: int
) -> list[bool]:
    """Which inputs of a body are marked once marks have gone around the loop.

    `needs` has, for each result, the inputs that give it a mark; a carried result marks the input.
    """
    bits = sum(1 << i for i, m in enumerate(marked) if m)
    before = -1
    while bits != before:
        before = bits
        for i in range(num_carry):
            if needs[i] & bits:
                bits |= 1 << (num_consts + i)
    return [bool(bits >> i & 1) for i in range(len(marked))]


@memo_jaxpr
def carry_to_consts(jaxpr: Jaxpr, num_consts: int, fixed: tuple[bool, ...]) -> Jaxpr:
    """The body with the `fixed` part of the carry among the consts."""
    n, m = num_consts, len(fixed)
    carry, handed_on = partition(fixed, jaxpr.invars[n : n + m])
    return jaxpr.replace(
        invars=[*jaxpr.invars[:n], *handed_on, *carry, *jaxpr.invars[n + m :]],
        outvars=[*partition(fixed, jaxpr.outvars[:m])[0], *jaxpr.outvars[m:]],
    )


@memo_jaxpr
def jvp_body(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, moved: tuple[bool, ...]
) -> tuple[Jaxpr, tuple[bool, ...], list[bool]]:
    """The body of the derivative at `moved` inputs: each group is followed by its tangents.

    Also which inputs move in it, for more of the carry may, and which results do.
    """
    guess = carried(dependences(jaxpr), moved, num_consts, num_carry)
    inexact = [dtypes.is_inexact(a.dtype) for a in jaxpr.in_avals]
    moves = tuple(g and x for g, x in zip(guess, inexact, strict=True))
    body, out_moved = moving_body(jaxpr, num_consts, num_carry, moves)
    # what only depends on what moves through functions without derivative does not move
    sizes = [sum(g) for g in cut(moves, (num_consts, num_carry))]
    marks = [False] * len(moves)
    started = [a for a, m in zip(moved, moves, strict=True) if m]
    flags = interleaved([*marks, *started], *group_sizes(moves, num_consts, num_carry))
    flags = carried(dependences(body), flags, num_consts + sizes[0], num_carry + sizes[1])
    start = 2 * num_carry + num_consts + sizes[0] - num_carry
    settled = flags[start : start + sizes[1]]
    if not all(settled):
        rest = iter(settled)
        moves = tuple(
            next(rest) if m and num_consts <= i < num_consts + num_carry else m
            for i, m in enumerate(moves)
        )
        body, out_moved = moving_body(jaxpr, num_consts, num_carry, moves)
    return body, moves, out_moved


def moving_body(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, moves: tuple[bool, ...]
) -> tuple[Jaxpr, list[bool]]:
    """As `jvp_jaxpr`, each group followed by its tangents; the carry moves as it does going in."""
    n, m = num_consts, num_carry
    force = (*moves[n : n + m], *[False] * (len(jaxpr.outvars) - m))
    both, out_moved = jvp_jaxpr(jaxpr, moves, force)
    invars = interleaved(both.invars, *group_sizes(moves, n, m))
    outvars = interleaved(both.outvars, *group_sizes(out_moved, m))
    return both.replace(invars=invars, outvars=outvars), out_moved


def cut(xs: Sequence[Any], sizes: Sequence[int]) -> list[Sequence[Any]]:
    """`xs` in pieces of the given sizes, and one of what is left."""
    out = []
    for size in sizes:
        out.append(xs[:size])
        xs = xs[size:]
    return [*out, xs]


def group_sizes(mask: Sequence[bool], *sizes: int) -> tuple[list[int], list[int]]:
    """The sizes of all groups of a list, and how many of each are True."""
    pieces = cut(mask, sizes)
    return [len(p) for p in pieces], [sum(p) for p in pieces]


def interleaved(xs: Sequence[Any], sizes: Sequence[int], more: Sequence[int]) -> list:
    """From all groups of one kind, then those of another: each with its counterpart after it."""
    pieces = cut(xs, (*sizes, *more))
    pairs = zip(pieces[: len(sizes)], pieces[len(sizes) :], strict=False)
    return [x for first, second in pairs for x in (*first, *second)]


@memo_jaxpr
def batch_body(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, axis: Axis, dims: tuple[int | None, ...]
) -> tuple[Jaxpr, list[bool], list[int | None]]:
    """The body mapped over `axis`; which of the carry is mapped, in front; where results are."""
    n, m = num_consts, num_carry
    mapped = carried(dependences(jaxpr), [d is not None for d in dims], n, m)[n : n + m]
    while True:
        force = (*mapped, *[False] * (len(jaxpr.outvars) - m))
        inner = (*dims[:n], *[0 if x else None for x in mapped], *dims[n + m :])
        body, out_dims = batch_jaxpr(jaxpr, axis, inner, force)
        found = [d is not None for d in out_dims[:m]]
        if found == mapped:
            return body, mapped, out_dims
        mapped = found  # a collective made it so


class Halves(NamedTuple):
    """A body cut in two: what is known now, and the rest.

    `invariant` gives, from the known consts, residuals that are the same in every step; `early` is
    the body of what is known, whose last `num_new` ys are residuals; `late` is the rest.
    """

    invariant: Jaxpr
    early: Jaxpr
    late: Jaxpr
    unknown: list[bool]  # inputs
    out_unknown: list[bool]
    late_consts: list[tuple[str, int]]  # where each residual of `late` comes from
    late_xs: list[tuple[str, int]]


@memo_jaxpr
def split_body(jaxpr: Jaxpr, num_consts: int, num_carry: int, unknown: tuple[bool, ...]) -> Halves:
    """Cut a body in two by which of its inputs are unknown at first.

    A residual that is a const, or computed of consts alone, is a const of `late`; one that is an x
    is passed as it is; one that is a result of `early` anyway is not stacked a second time.
    """
    n, m = num_consts, num_carry
    unknown = tuple(carried(dependences(jaxpr, False), unknown, n, m))
    while True:
        force = (*unknown[n : n + m], *[False] * (len(jaxpr.outvars) - m))
        early, late, out_unknown, sources = split_jaxpr(jaxpr, unknown, force)
        settled = (*unknown[:n], *out_unknown[:m], *unknown[n + m :])
        if settled == unknown:
            break
        unknown = settled
    known_sizes = [len(g) - sum(g) for g in cut(unknown, (n, m))]
    k, c = known_sizes[0], known_sizes[1]
    needs = dependences(early)
    n_out = len(out_unknown) - sum(out_unknown)
    outvars = early.outvars[:n_out]  # known carry, known ys
    fixed: list[Any] = []
    places: list[tuple[str, int]] = []
    new = iter(range(n_out, len(early.outvars)))
    for source in sources:
        if source is not None and source < k:
            places.append(("const", source))
            continue
        if source is not None and source >= k + c:
            places.append(("x", source - k - c))
            continue
        at = next(new) if source is None else None
        var = early.invars[source] if at is None else early.outvars[at]
        if at is not None and needs[at] >> k == 0:
            places.append(("invariant", len(fixed)))
            fixed.append(var)
            continue
        ys = outvars[c:]
        j = next((j for j, y in enumerate(ys) if y is var), len(ys))
        if j == len(ys):
            outvars.append(var)
        places.append(("y", j))
    step = [kind in ("x", "y") for kind, _ in places]
    pure = [e for e in early.eqns if not has_effects(e)]
    invariant = early.replace(invars=early.invars[:k], outvars=fixed, eqns=pure)
    residuals, held = cut(late.invars, (len(places),))
    res_consts, res_xs = partition(step, residuals)
    held_consts, held_carry, held_xs = cut(held, (n - k, m - c))
    late = late.replace(invars=[*res_consts, *held_consts, *held_carry, *res_xs, *held_xs])
    const_places, x_places = partition(step, places)
    return Halves(
        invariant,
        dce_jaxpr(early.replace(outvars=outvars))[0],
        late,
        list(unknown),
        out_unknown,
        const_places,
        x_places,
    )


def linear_inputs(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, linear: tuple[bool, ...]
) -> tuple[bool, ...]:
    """Which inputs of a body hold functions of the linear ones, once they went around the loop."""
    marked = carried(dependences(jaxpr, False), linear, num_consts, num_carry)
    if all(marked[num_consts : num_consts + num_carry]):
        return tuple(marked)
    return tuple(split_body(jaxpr, num_consts, num_carry, linear).unknown)


def known_part(
    unknown: Sequence[bool], args: Sequence[Any], params: dict
) -> tuple[list, list, dict, Halves]:
    """Run what is known of a scan: its results, and operands and params of the scan of the rest."""
    n, m = counts(params)
    halves = split_body(params["jaxpr"], n, m, tuple(unknown))
    (consts, held_consts), (carry, held_carry), (xs, held_xs) = [
        partition(u, g)
        for u, g in zip(cut(halves.unknown, (n, m)), groups(args, params), strict=True)
    ]
    outs: list = []
    if halves.early.outvars or halves.early.effects:
        outs = bind_scan(halves.early, consts, carry, xs, params)
    ys = outs[len(carry) :]
    fixed = dce_jaxpr(halves.invariant)[0](*consts)
    values = {"const": consts, "invariant": fixed, "x": xs, "y": ys}
    residual_consts = [values[kind][i] for kind, i in halves.late_consts]
    residual_xs = [values[kind][i] for kind, i in halves.late_xs]
    late_args = [*residual_consts, *held_consts, *held_carry, *residual_xs, *held_xs]
    linear = [False] * len(residual_consts) + [True] * (len(held_consts) + len(held_carry))
    linear += [False] * len(residual_xs) + [True] * len(held_xs)
    late_params = scan_params(
        halves.late, len(residual_consts) + len(held_consts), len(held_carry), params, linear
    )
    known = len(halves.out_unknown) - sum(halves.out_unknown)
    return outs[:known], late_args, late_params, halves


@memo_jaxpr
def backward_body(
    jaxpr: Jaxpr,
    num_consts: int,
    num_carry: int,
    linear: tuple[bool, ...],
    moved: tuple[bool, ...],
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """The body that goes back through a linear one, given which results' cotangents are not Zero.

    It takes the consts that are not linear; sums for the cotangents of those that are, and the
    cotangents of the carry; the xs that are not linear, and the cotangents of ys. It gives sums,
    cotangents of the carry, and those of linear xs. Also: which inputs have cotangents that are
    not Zero; which of the carry do.
    """
    n, m = num_consts, num_carry
    needs = dependences(jaxpr)
    moves = list(moved)
    before: list[bool] = []
    while moves != before:
        before = list(moves)
        reached = 0
        for need, x in zip(needs, moves, strict=True):
            reached |= need if x else 0
        moves[:m] = [x or bool(reached >> (n + i) & 1) for i, x in enumerate(moves[:m])]
    grads_forced = [False] * sum(linear[:n]) + moves[:m] + [False] * sum(linear[n + m :])
    back, back_moved = backward_jaxpr(jaxpr, linear, tuple(moves), tuple(grads_forced))
    moving = iter(back_moved)
    grads_moved = [lin and next(moving) for lin in linear]
    n_sums, n_carry = sum(grads_moved[:n]), sum(moves[:m])
    res_consts, res_xs, ct_carry, ct_ys = cut(
        back.invars, (n - sum(linear[:n]), len(linear) - sum(linear) - n + sum(linear[:n]), n_carry)
    )
    sums = [Var(v.aval) for v in back.outvars[:n_sums]]
    totals = [Var(v.aval) for v in sums]
    adds = [
        Eqn(add_p, [s, g], {}, [t]) for s, g, t in zip(sums, back.outvars, totals, strict=False)
    ]
    body = back.replace(
        invars=[*res_consts, *sums, *ct_carry, *res_xs, *ct_ys],
        outvars=[*totals, *back.outvars[n_sums:]],
        eqns=[*back.eqns, *adds],
    )
    return body, grads_moved, moves[:m]


# --------------------------------------------------------------------------------------------
# Lowering.


def write_scan(hlo: Any, consts: list, carry: list, xs: list, params: dict) -> list:
    """A while loop over chunks of `unroll` steps, and what is left of them in a row."""
    jaxpr, length = params["jaxpr"], params["length"]
    chunk = max(1, min(params["unroll"], length))
    rest = length % chunk if length > chunk else length
    y_avals = jaxpr.out_avals[len(carry) :]

    def steps(start: Any, count: int, carry: list, stacks: list) -> list:
        """`count` steps from the one at `start`; the carry and the stacks after them."""
        for k in range(count):
            at = place(hlo, start, k, params)
            now = [read_at(hlo, x, at) for x in xs]
            outs = lower_jaxpr(hlo, jaxpr, [*consts, *carry, *now])
            carry, ys = outs[: len(carry)], outs[len(carry) :]
            stacks = [write_at(hlo, s, y, at) for s, y in zip(stacks, ys, strict=True)]
        return [*carry, *stacks]

    stacks = [hlo.constant(0, unmapped_aval(a.strong(), length, 0)) for a in y_avals]
    state = [*carry, *stacks]
    if rest < length:
        limit = length - rest
        index = ShapedArray((), np.dtype(np.int32))
        start = hlo.constant(0, index)

        def body(i, *now):
            after = steps(i, chunk, list(now[: len(carry)]), list(now[len(carry) :]))
            return [*hlo.like("add", i, hlo.constant(chunk, index)), *after]

        _, *state = hlo.while_loop(
            [start, *state],
            lambda i, *_: [hlo.compare("LT", i, hlo.constant(limit, index))],
            body,
            jaxpr.ordered,
        )
    return steps(length - rest, rest, state[: len(carry)], state[len(carry) :])


def place(hlo: Any, start: Any, k: int, params: dict) -> Any:
    """Where along xs the step `k` after `start` is: a number, or a value."""
    last = params["length"] - 1
    if isinstance(start, int):
        return last - start - k if params["reverse"] else start + k
    if params["reverse"]:
        return hlo.like("subtract", hlo.constant(last - k, start.aval), start)[0]
    return hlo.like("add", start, hlo.constant(k, start.aval))[0] if k else start


def read_at(hlo: Any, x: Any, at: Any) -> Any:
    """The element of `x` at a place along its first axis."""
    shape = x.aval.shape
    row = ShapedArray((1, *shape[1:]), x.aval.dtype)
    if isinstance(at, int):
        limits, ones = i64s((at + 1, *shape[1:])), i64s([1] * len(shape))
        starts = i64s((at, *[0] * (len(shape) - 1)))
        (y,) = hlo.op(
            "stablehlo.slice", [x], [row], start_indices=starts, limit_indices=limits, strides=ones
        )
    else:
        zero = hlo.constant(0, at.aval)
        starts = [at, *[zero] * (len(shape) - 1)]
        (y,) = hlo.op("stablehlo.dynamic_slice", [x, *starts], [row], slice_sizes=i64s(row.shape))
    return hlo.op("stablehlo.reshape", [y], [ShapedArray(shape[1:], row.dtype)])[0]


def write_at(hlo: Any, stack: Any, y: Any, at: Any) -> Any:
    """`stack` with `y` at a place along its first axis."""
    index = ShapedArray((), np.dtype(np.int32))
    at = hlo.constant(at, index) if isinstance(at, int) else at
    starts = [at, *[hlo.constant(0, index)] * (stack.aval.ndim - 1)]
    (row,) = hlo.op("stablehlo.reshape", [y], [ShapedArray((1, *y.aval.shape), y.aval.dtype)])
    return hlo.like("dynamic_update_slice", stack, row, *starts)[0]
