"""`checkpoint` as a primitive: a program whose intermediate values are computed again, not kept.

The public `checkpoint` is in api/checkpoint.py, the policies are in checkpoint_policies.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.control.call import Call
from weft.control.jit import Jit
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Jaxpr, memo_jaxpr
from weft.core.primitive import Body
from weft.core.trace import current
from weft.passes.budget import Budget, Choice, choose_values, keep_values
from weft.passes.dce import dce_jaxpr, quiet_jaxpr
from weft.passes.inline import inline_calls
from weft.primitives.constant import stage_whole
from weft.primitives.layout import Identity
from weft.transforms.jvp import jvp_jaxpr
from weft.transforms.linearize import saving_jaxpr, select_residuals, split_jaxpr
from weft.util import merge, partition
from weft.xla.hlo import Builder, Value, i64s
from weft.xla.lower import lower_jaxpr


class Checkpoint(Jit):
    """Call `jaxpr`; of its intermediate values, only those `policy` names outlive the call.

    `differentiated` programs compute values for a second time. With `prevent_cse` they are kept
    apart from the first time, and wait for the cotangents: otherwise the engine would take the
    values of the first time, and keep them until then.
    """

    name = "checkpoint"

    def bodies(self, params):
        jaxpr, again = params["jaxpr"], params["differentiated"]
        runs, label = ("again", "rematted_computation") if again else ("once", "checkpoint")
        operands = range(len(jaxpr.invars))
        return [Body(jaxpr, "jaxpr", runs, operands, label=label, inlines=not again)]

    def lower(self, hlo, *args, jaxpr, prevent_cse, differentiated, policy):
        if not (prevent_cse and differentiated and args):
            return lower_jaxpr(hlo, jaxpr, args)
        pred = None if jaxpr.effects or hlo.platform != "cpu" else write_true(hlo, args)
        if pred is None:
            args = hlo.op("stablehlo.optimization_barrier", args, [x.aval for x in args])
            return lower_jaxpr(hlo, jaxpr, args)
        # XLA:CPU drops barriers before it shares what is computed twice; into a branch it shares
        # nothing. For 50 layers this is a quarter of the memory, and of the time. What is said of
        # how values lie over a mesh goes through `case`, and not through `if`.
        again = lambda: lower_jaxpr(hlo, jaxpr, args)
        never = lambda: [hlo.constant(0, a) for a in jaxpr.out_avals]
        index = hlo.convert(pred, np.dtype(np.int32))
        return hlo.case(index, [never, again], jaxpr.out_avals)

    impl = Call.impl

    def partial_eval(self, trace, unknown, args, params):
        cut = split_to_recompute(params["jaxpr"], tuple(unknown), params["policy"])
        now, later, out_unknown, used = cut
        known, held = partition(unknown, args)
        try:
            current.trace = trace.parent
            outs = self.apply(*known, **{**params, "jaxpr": now})
        finally:
            current.trace = trace
        n = len(out_unknown) - sum(out_unknown)
        operands = [x for x, u in zip([*known, *outs[n:], *held], used, strict=True) if u]
        params = {**params, "jaxpr": later, "differentiated": True}
        return merge(out_unknown, outs[:n], trace.later.process(self, operands, params))


@memo_jaxpr
def split_to_recompute(
    jaxpr: Jaxpr, unknown: tuple[bool, ...], policy: Callable | Budget | None
) -> tuple[Jaxpr, Jaxpr, list[bool], tuple[bool, ...]]:
    """Cut a closed jaxpr in two, as `split_jaxpr` does, with no residuals but what is saved.

    The first maps the known inputs to the known outputs and then the saved values. The second maps
    (known inputs, saved values, unknown inputs), as many of these as it uses, to the unknown
    outputs. Also returned: which outputs are unknown, and which operands the second uses.
    """
    early, late, out_unknown, sources = split_jaxpr(jaxpr, unknown)
    n_known, n_ins = len(out_unknown) - sum(out_unknown), len(early.invars)
    if isinstance(policy, Budget):
        early = inline_calls(early)
        choice = choose_values(early, early.outvars[n_known:], policy)
        saving, again, _ = keep_values(early, {v for v, _ in choice.kept})
    else:
        saving, again, _ = (early, early, 0) if policy is None else saving_jaxpr(early, policy)
    is_residual = [i >= n_known for i in range(len(early.outvars))]
    again, used = dce_jaxpr(quiet_jaxpr(again), is_residual, False)
    kept = used[n_ins:]
    now, _ = dce_jaxpr(saving, [not r for r in is_residual] + [*kept])

    def whole(*args: Any) -> list:
        known, held = args[:n_ins], args[n_ins + sum(kept) :]
        given = [x for x, u in zip(args, [*used[:n_ins], *[True] * sum(kept)]) if u]
        return late(*select_residuals(sources, known, again(*given)), *held)

    _, held_avals = partition(unknown, jaxpr.in_avals)
    saved_avals = now.out_avals[n_known:]
    rest = stage_whole(whole, [*early.in_avals, *saved_avals, *held_avals], jaxpr.name)
    rest, used = dce_jaxpr(rest, None, False)
    return now, rest, out_unknown, used


def choose_residuals(jaxpr: Jaxpr, budget: Budget) -> Choice:
    """What reverse mode of a closed jaxpr keeps within a budget, with respect to all its inputs."""
    moved = tuple(dtypes.is_inexact(a.dtype) for a in jaxpr.in_avals)
    both, _ = jvp_jaxpr(jaxpr, moved)
    unknown = (*[False] * len(moved), *[True] * sum(moved))
    early, _, out_unknown, _ = split_jaxpr(both, unknown)
    early = inline_calls(early)
    return choose_values(early, early.outvars[len(out_unknown) - sum(out_unknown) :], budget)


def write_true(hlo: Builder, args: Sequence[Value]) -> Value | None:
    """A truth value that is true, though the engine cannot know it; None if there is none to make.

    It depends on the first and the last of the operands that are floats: a residual, so that it is
    no constant, and a cotangent, which is thus waited for.
    """
    floats = [x for x in args if dtypes.is_float(x.aval.dtype) and x.aval.size]
    if not floats:
        return None
    x, y = (write_first_element(hlo, floats[i]) for i in (0, -1))
    either = [hlo.compare(direction, x, y) for direction in ("EQ", "NE")]  # for NaN too
    return hlo.like("or", *either)[0]


def write_first_element(hlo: Builder, x: Value) -> Value:
    """The first element of an array of floats, as f32."""
    ones = (1,) * x.aval.ndim
    if x.aval.ndim:
        (x,) = hlo.op(
            "stablehlo.slice",
            [x],
            [ShapedArray(ones, x.aval.dtype)],
            start_indices=i64s([0] * x.aval.ndim),
            limit_indices=i64s(ones),
            strides=i64s(ones),
        )
        (x,) = hlo.op("stablehlo.reshape", [x], [ShapedArray((), x.aval.dtype)])
    return hlo.convert(x, np.dtype(np.float32))


class Name(Identity):
    """x, under a name that policies know it by.

    The tangent has no name: a policy speaks of what is computed from the inputs alone.
    """

    name = "name"
    elements = "moved"

    def jvp(self, primals, tangents, **params):
        return self.apply(*primals, **params), list(tangents)


remat_p = Checkpoint()
name_p = Name()
