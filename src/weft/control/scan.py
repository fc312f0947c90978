"""`scan`: a loop of known length that carries values, reads arrays and stacks its results.

Each rule transforms the body and binds it again. scan_bodies.py finds on the body the parts of the
carry that move, are mapped or are unknown. api/scan.py has pytrees and checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.control import scan_bodies
from weft.control.carry import Loop, batch_loop, carry_in_front, cut_pieces
from weft.control.scan_bodies import Source
from weft.core.aval import ShapedArray
from weft.core.facts import Runs
from weft.core.form import Form
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Body, Linear, Zero, mark_linear, mark_moving
from weft.core.trace import Tracer, use
from weft.passes.dce import dce_jaxpr
from weft.primitives.dot import sum_of_products
from weft.primitives.dynamic_slicing import read_at, write_at
from weft.primitives.layout import instantiate, move_to_front, zeros
from weft.primitives.reshard import pack_terms, pack_type, unpack_terms
from weft.transforms.batch import unmapped_aval
from weft.transforms.check import start_unfailed, thread_checks_jaxpr
from weft.transforms.linearize import SavingRule, saving_jaxpr
from weft.transforms.transpose import dual_aval
from weft.util import merge, partition
from weft.xla.array import ArrayImpl
from weft.xla.lower import lower_jaxpr


class Scan(Loop, SavingRule):
    """Apply `jaxpr`, (consts, carry, x) -> (carry, y), for each x along the first axis of xs.

    Operands: consts, the initial carry, xs. Results: the final carry; the ys, stacked along a new
    first axis. Shapes: x = xs.shape[1:]. `reverse` goes from the last x to the first. `linear`
    marks operands if the results are known to be linear functions of them.
    """

    name = "scan"
    form = Form.SCAN

    def bodies(self, params):
        jaxpr, length = params["jaxpr"], params["length"]
        n, m = count_groups(params)
        turns = range(length)[:: -1 if params["reverse"] else 1] if type(length) is int else None
        return [Body(jaxpr, "jaxpr", Runs.LOOP, range(len(jaxpr.invars)), range(n, n + m), turns)]

    def abstract_eval(self, *avals, jaxpr, length, num_carry, **params):
        carry, ys = jaxpr.out_avals[:num_carry], jaxpr.out_avals[num_carry:]
        return [*carry, *[unmapped_aval(y, length, 0) for y in ys]]

    def lower(self, hlo, *args, **params):
        outs = write_scan(hlo, self.groups(args, params), params)
        return unpack_terms(hlo, outs, self.abstract_eval(**params))

    def groups(self, xs, params):
        n, m = count_groups(params)
        return list(xs[:n]), list(xs[n : n + m]), list(xs[n + m :])

    def bind_body(self, args, body, operands, params):
        consts, carry, xs = operands
        return bind_scan(body, consts, carry, xs, params)

    def batch(self, axis, args, dims, **params):
        consts, carry, xs = self.groups(args, params)
        const_dims, carry_dims, x_dims = self.groups(dims, params)
        # the mapped axis of xs comes after the one that is walked along
        xs = [move_to_front(x, 1) if d == 0 else x for x, d in zip(xs, x_dims, strict=True)]
        x_dims = [d and d - 1 for d in x_dims]
        dims, n = (*const_dims, *carry_dims, *x_dims), len(carry)
        body, mapped, out_dims = batch_loop(params["jaxpr"], len(consts), n, axis, dims)
        carry = carry_in_front(carry, carry_dims, mapped, axis)
        outs = bind_scan(body, consts, carry, xs, params)
        return outs, [*out_dims[:n], *[d if d is None else 1 for d in out_dims[n:]]]

    def partial_eval(self, trace, unknown, args, params):
        with use(trace.parent):
            known_outs, late_args, late_params, halves = run_known_part(unknown, args, params)
        later = trace.later.process(self, late_args, late_params)
        return merge(halves.out_unknown, known_outs, later)

    def transpose(self, cts, *args, **params):
        linear = mark_linear(args)
        num_consts, num_carry = count_groups(params)
        marked = scan_bodies.find_linear_inputs(params["jaxpr"], num_consts, num_carry, linear)
        if not all(self.groups(marked, params)[1]):
            return self.transpose_unknown(cts, args, linear, params)
        split = params["_split_transpose"]
        back = scan_bodies.backward_body(
            params["jaxpr"], num_consts, num_carry, marked, mark_moving(cts), split
        )
        consts, carry, xs = self.groups(args, params)
        moving_consts = [x for x, g in zip(consts, back.grads_moved[:num_consts], strict=True) if g]
        sums = [
            zeros(dual_aval(x.aval))
            for x, p in zip(moving_consts, back.products, strict=True)
            if p is None
        ]
        ct_carry = [
            instantiate(ct) for ct, m in zip(cts[:num_carry], back.carry_moved, strict=True) if m
        ]
        steps = [x for x in xs if type(x) is not Linear]
        steps += [ct for ct in cts[num_carry:] if type(ct) is not Zero]
        outs = bind_scan(
            back.body,
            [x for x in consts if type(x) is not Linear],
            [*sums, *ct_carry],
            steps,
            {**params, "reverse": not params["reverse"]},
        )
        totals, others = cut_pieces(outs, (len(sums),))
        stacks = {Source.X: steps, Source.Y: others[len(ct_carry) :]}
        grads = iter([*find_const_grads(back.products, totals, stacks), *others])
        found = [next(grads) if m else None for m in back.grads_moved]
        return [
            None if type(x) is not Linear else Zero(x.aval) if g is None else g
            for x, g in zip(args, found, strict=True)
        ]

    def with_consts(self, eqn, jaxpr, given):
        """Return the equation with another body, which takes the consts `given` after its own."""
        n, linear = count_groups(eqn.params)[0], eqn.params["linear"]
        linear = (*linear[:n], *[False] * len(given), *linear[n:])
        params = {**eqn.params, "jaxpr": jaxpr, "linear": linear, "num_consts": n + len(given)}
        return eqn.replace(invars=[*eqn.invars[:n], *given, *eqn.invars[n:]], params=params)

    def checked(self, trace, args, params):
        consts, carry, xs = self.groups(args, params)
        program = thread_checks_jaxpr(params["jaxpr"], trace.errors, len(consts))
        outs = bind_scan(program.jaxpr, consts, [*start_unfailed(program), *carry], xs, params)
        return trace.absorb(program, outs)

    def discharge(self, params, refs, written, verb):
        n, m = count_groups(params)
        carried = [i for i in written if i < n]
        rows = [i for i in written if i >= n + m]
        body, handed = verb(params["jaxpr"], range(len(refs)), [*carried, *rows])
        consts = [*[i for i in range(n) if i not in carried], *[~i for i in handed if i < n]]
        order = [*consts, *carried, *range(n, len(refs)), *[~i for i in handed if i >= n]]
        count = len(params["jaxpr"].outvars)
        outs, last, ends = cut_pieces(body.outvars, (count, len(carried)))
        place = {~i: len(refs) + k for k, i in enumerate(handed)}
        invars = [body.invars[place.get(i, i)] for i in order]
        body = body.replace(invars=invars, outvars=[*last, *outs, *ends])
        linear = [i >= 0 and params["linear"][i] for i in order]
        sizes = len(consts), m + len(carried)
        places = [*[~i for i in carried], *range(count), *[~i for i in rows]]
        return scan_params(body, *sizes, params, linear), order, places

    def transpose_unknown(self, cts, args, linear, params):
        """Transpose a scan with a part of the carry that does not depend on the linear operands."""
        _, late_args, late_params, halves = run_known_part(linear, args, params)
        late_cts = partition(halves.out_unknown, cts)[1]
        grads = self.transpose(late_cts, *late_args, **late_params)
        given = {id(x): g for x, g in zip(late_args, grads, strict=True) if type(x) is Linear}
        return [given.get(id(x)) if lin else None for x, lin in zip(args, linear, strict=True)]

    def save(self, params, policy):
        early, late, saved = saving_jaxpr(params["jaxpr"], policy)
        if not saved:
            return None
        linear = (*params["linear"], *[False] * saved)  # saved values are stacked, as ys and xs
        return {**params, "jaxpr": early}, {**params, "jaxpr": late, "linear": linear}

    def dce(self, eqn, live):
        params = eqn.params
        num_consts, num_carry = count_groups(params)
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


scan_p = Scan()


def bind_scan(
    jaxpr: Jaxpr, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], params: dict
) -> list:
    """Apply scan to its operands in groups. `params` needs length, reverse and unroll.

    Arrays in the carry that the body does not change become consts, which are not copied.
    """
    n, m = len(consts), len(carry)
    invars, outvars = jaxpr.invars, jaxpr.outvars
    fixed = [
        v is o and isinstance(x, Tracer | ArrayImpl)
        for v, o, x in zip(invars[n : n + m], outvars[:m], carry, strict=True)
    ]
    if True in fixed:
        jaxpr = scan_bodies.carry_to_consts(jaxpr, n, tuple(fixed))
        carried_on, handed_on = partition(fixed, carry)
        outs = bind_scan(jaxpr, [*consts, *handed_on], carried_on, xs, params)
        k = len(carried_on)
        return [*merge(fixed, outs[:k], handed_on), *outs[k:]]
    return scan_p.apply(*consts, *carry, *xs, **scan_params(jaxpr, n, m, params))


def scan_params(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, params: dict, linear: Sequence[bool] = ()
) -> dict:
    """The parameters of a scan that is like the one of `params`, except for its body."""
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


def count_groups(params: dict) -> tuple[int, int]:
    """Return the number of consts, and of carried values."""
    return params["num_consts"], params["num_carry"]


def find_const_grads(products: Sequence[Any], totals: Sequence[Any], stacks: dict) -> list:
    """Return the cotangents of consts: sums of the loop, or products of the arrays it stacked."""
    sums = iter(totals)
    return [
        next(sums)
        if p is None
        else sum_of_products(*[stacks[k][i] for k, i in p[1]], **p[0].params)
        for p in products
    ]


def run_known_part(
    unknown: Sequence[bool], args: Sequence[Any], params: dict
) -> tuple[list, list, dict, scan_bodies.Halves]:
    """Run the known part of a scan. Return its results, and operands and params of the rest."""
    n, m = count_groups(params)
    halves = scan_bodies.split_body(params["jaxpr"], n, m, tuple(unknown), params["length"])
    (consts, held_consts), (carry, held_carry), (xs, held_xs) = [
        partition(u, g)
        for u, g in zip(
            cut_pieces(halves.unknown, (n, m)), scan_p.groups(args, params), strict=True
        )
    ]
    outs: list = []
    if halves.early.outvars or halves.early.effects:
        outs = bind_scan(halves.early, consts, carry, xs, params)
    ys = outs[len(carry) :]
    fixed = halves.invariant(*consts)
    values = {Source.CONST: consts, Source.INVARIANT: fixed, Source.X: xs, Source.Y: ys}
    residual_consts = [values[source][i] for source, i in halves.late_consts]
    residual_xs = [values[source][i] for source, i in halves.late_xs]
    late_args = [*residual_consts, *held_consts, *held_carry, *residual_xs, *held_xs]
    linear = [False] * len(residual_consts) + [True] * (len(held_consts) + len(held_carry))
    linear += [False] * len(residual_xs) + [True] * len(held_xs)
    late_params = scan_params(
        halves.late, len(residual_consts) + len(held_consts), len(held_carry), params, linear
    )
    known = len(halves.out_unknown) - sum(halves.out_unknown)
    return outs[:known], late_args, late_params, halves


# --------------------------------------------------------------------------------------------
# Lowering.


def write_scan(hlo: Any, operands: tuple[list, list, list], params: dict) -> list:
    """Write a while loop over chunks of `unroll` steps; the remaining steps follow unrolled."""
    consts, carry, xs = operands
    jaxpr, length = params["jaxpr"], params["length"]
    chunk = max(1, min(params["unroll"], length)) if type(length) is int else 1
    rest = length % chunk if type(length) is not int or length > chunk else length
    y_avals = [pack_type(a) or a for a in jaxpr.out_avals[len(carry) :]]
    consts, carry, xs = (pack_terms(hlo, v, [x.aval for x in v]) for v in (consts, carry, xs))

    def steps(start: Any, count: int, carry: list, stacks: list) -> list:
        """`count` steps from the one at `start`; the carry and the stacks after them."""
        for k in range(count):
            at = write_place(hlo, start, k, params)
            now = [read_at(hlo, x, at) for x in xs]
            args = unpack_terms(hlo, [*consts, *carry, *now], jaxpr.in_avals)
            outs = pack_terms(hlo, lower_jaxpr(hlo, jaxpr, args), jaxpr.out_avals)
            carry, ys = outs[: len(carry)], outs[len(carry) :]
            stacks = [write_at(hlo, s, y, at) for s, y in zip(stacks, ys, strict=True)]
        return [*carry, *stacks]

    stacks = [hlo.constant(0, unmapped_aval(a.strong(), length, 0)) for a in y_avals]
    state = [*carry, *stacks]
    if rest != length:
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


def write_place(hlo: Any, start: Any, k: int, params: dict) -> Any:
    """Return the position along xs of the step `k` after `start`: a number, or a value."""
    last = params["length"] - 1
    if isinstance(start, int):
        return last - start - k if params["reverse"] else start + k
    if params["reverse"]:
        return hlo.like("subtract", hlo.constant(last - k, start.aval), start)[0]
    return hlo.like("add", start, hlo.constant(k, start.aval))[0] if k else start
