"""`checkpoint` as a primitive: a program whose intermediate values are computed again, not kept.

The public `checkpoint` is in api/checkpoint.py, the policies are in checkpoint_policies.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from weft import dtypes
from weft.control.call import Call
from weft.control.jit import Jit
from weft.core.aval import ShapedArray
from weft.core.facts import Elements, Runs
from weft.core.jaxpr import Eqn, Jaxpr, Var, memo_jaxpr
from weft.core.primitive import Body
from weft.core.trace import use
from weft.passes.budget import Budget, choose_values
from weft.passes.dce import dce_jaxpr
from weft.passes.inline import inline_calls
from weft.passes.stages import Stages, keep_values, name_residuals, write_stages
from weft.primitives.families import Identity
from weft.transforms.linearize import saving_jaxpr, select_residuals, split_jaxpr
from weft.util import JAXLIB, merge, partition
from weft.xla.hlo import Builder, Value, i64s
from weft.xla.lower import lower_jaxpr


class Checkpoint(Jit):
    """Call `jaxpr`; of its intermediate values, only those `policy` names outlive the call.

    `differentiated` programs compute values for a second time. With `prevent_cse` they are kept
    apart from the first time, and wait for the cotangents: otherwise XLA would take the
    values of the first time, and keep them until then.
    """

    name = "checkpoint"

    def bodies(self, params):
        jaxpr, again = params["jaxpr"], params["differentiated"]
        runs = Runs.AGAIN if again else Runs.ONCE
        label = "rematted_computation" if again else "checkpoint"
        operands = range(len(jaxpr.invars))
        return [Body(jaxpr, "jaxpr", runs, operands, label=label, inlines=not again)]

    def lower(self, hlo, *args, jaxpr, prevent_cse, differentiated, policy):
        if not (prevent_cse and differentiated and args):
            return lower_jaxpr(hlo, jaxpr, args)
        drops = hlo.platform == "cpu" and JAXLIB < (0, 12) and not jaxpr.effects
        pred = write_true(hlo, args) if drops else None
        if pred is None:
            args = hlo.op("stablehlo.optimization_barrier", args, [x.aval for x in args])
            return lower_jaxpr(hlo, jaxpr, args)
        # XLA:CPU dropped barriers before common subexpression elimination, which does not look into
        # branches. For 50 layers a branch reduces memory and time to a quarter. Shardings over a
        # mesh pass through `case`, but not through `if`. From jaxlib 0.12 on XLA keeps barriers:
        # 50 layers then compile in 0.6 of the time that branches take.
        again = lambda: lower_jaxpr(hlo, jaxpr, args)
        never = lambda: [hlo.constant(0, a) for a in jaxpr.out_avals]
        index = hlo.convert(pred, np.dtype(np.int32))
        return hlo.case(index, [never, again], jaxpr.out_avals)

    impl = Call.impl

    def partial_eval(self, trace, unknown, args, params):
        how = params["policy"], params["prevent_cse"]
        now, later, out_unknown, used = split_to_recompute(params["jaxpr"], tuple(unknown), *how)
        known, held = partition(unknown, args)
        with use(trace.parent):
            outs = self.apply(*known, **{**params, "jaxpr": now})
        n = out_unknown.count(False)
        operands = [x for x, u in zip([*known, *outs[n:], *held], used, strict=True) if u]
        with use(trace.later):
            return merge(out_unknown, outs[:n], later(*operands))


@memo_jaxpr
def split_to_recompute(
    jaxpr: Jaxpr, unknown: tuple[bool, ...], policy: Callable | Budget | None, prevent_cse: bool
) -> tuple[Jaxpr, Jaxpr, list[bool], tuple[bool, ...]]:
    """Split a closed jaxpr in two, as `split_jaxpr` does; only saved values are residuals.

    The first maps the known inputs to the known outputs and then the saved values. The second maps
    (known inputs, saved values, unknown inputs), as far as it uses them, to the unknown outputs. In
    it, recomputation is equations of `checkpoint`. Also returned: the marks of unknown outputs, and
    the marks of operands that the second uses.
    """
    early, late, out_unknown = split_by_names(jaxpr, unknown, isinstance(policy, Budget))
    n_known = out_unknown.count(False)
    now, rest, used = write_recomputing(early, late, n_known, policy, prevent_cse)
    return now, rest, out_unknown, used


def write_recomputing(
    early: Jaxpr, late: Jaxpr, n_known: int, policy: Callable | Budget | None, prevent_cse: bool
) -> tuple[Jaxpr, Jaxpr, tuple[bool, ...]]:
    """Return `early` that also gives the values to save, and `late` that computes the others again.

    `late` reads the results of `early` after the first `n_known`. The inputs of the second program
    are the inputs of `early` that it uses, the saved values, and the inputs of `late` that it uses.
    The third result has a bool for each input of `early`, saved value and input of `late`: True if
    the second program takes it, as it takes all saved values.
    """
    params = {"prevent_cse": prevent_cse, "differentiated": True, "policy": policy}
    stages, kept, cut = Stages(), set[Var](), lambda part: (part, part, 0)
    if isinstance(policy, Budget):
        choice = choose_values(early, n_known, policy, late if prevent_cse else None)
        stages, kept = choice.stages, {v for v, _ in choice.kept}
        cut = lambda part: keep_values(part, kept)
    elif policy is not None:
        cut = lambda part: saving_jaxpr(part, policy)
    early = early.replace(outvars=early.outvars[:n_known])
    n_ins = len(early.invars)

    def wrap(jaxpr: Jaxpr, invars: Sequence[Var], outvars: Sequence[Var]) -> Eqn:
        return Eqn(remat_p, invars, {"jaxpr": jaxpr, **params}, outvars)

    saving, rest, n_saved = write_stages(early, late, kept, stages, cut, wrap)
    rest, used = dce_jaxpr(rest, None, False)
    saved = used[n_ins : n_ins + n_saved]
    now, _ = dce_jaxpr(saving, [*[True] * n_known, *saved])
    return now, rest, (*used[:n_ins], *[True] * sum(saved), *used[n_ins + n_saved :])


def split_by_names(
    jaxpr: Jaxpr, unknown: tuple[bool, ...], flat: bool
) -> tuple[Jaxpr, Jaxpr, list[bool]]:
    """Do as `split_jaxpr` does, but the second program reads variables of the first one."""
    early, late, out_unknown, sources = split_jaxpr(jaxpr, unknown)
    if flat:
        early, late = inline_calls(early, True), inline_calls(late, True)
    new = early.outvars[out_unknown.count(False) :]
    return early, name_residuals(late, select_residuals(sources, early.invars, new)), out_unknown


def write_true(hlo: Builder, args: Sequence[Value]) -> Value | None:
    """Return a truth value that XLA cannot fold to True; None if the operands allow none.

    It depends on the first and the last of the operands that are floats: a residual, so that it is
    not a constant, and a cotangent, so that the computation waits for the cotangent.
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
    """x under a name that policies use.

    The tangent has no name: a policy is about values that are computed from the inputs only.
    """

    name = "name"
    elements = Elements.MOVED

    def jvp(self, primals, tangents, **params):
        return self.apply(*primals, **params), list(tangents)


remat_p = Checkpoint()
name_p = Name()
