"""The family of calls: primitives that run one program unchanged, and what holds programs at all.

Each rule transforms the program and binds it again. What a member does with its operands and
results besides, as spreading them over devices, it says by a few methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.core.facts import Runs
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import (
    Body,
    Primitive,
    Zero,
    cotangents_of,
    mark_linear,
    mark_moving,
    tangents_of,
)
from weft.core.stage import StageTrace
from weft.core.trace import current, use
from weft.options import config
from weft.passes.dce import dce_jaxpr
from weft.primitives.constant import close_programs
from weft.primitives.state import run_stateful, uses_references
from weft.transforms.batch import batch_jaxpr
from weft.transforms.check import checkify_jaxpr
from weft.transforms.jet import SeriesRule
from weft.transforms.jvp import jvp_jaxpr
from weft.transforms.linearize import select_residuals, split_jaxpr
from weft.transforms.transpose import backward_jaxpr
from weft.util import merge, partition, select_masked
from weft.xla.lower import lower_jaxpr


class Holder(Primitive):
    """A family: primitives that hold programs, the main one in the parameter `program`."""

    memoize_type = False
    program = "jaxpr"
    multiple_results = True

    def apply(self, *args, **params):
        trace = current.trace
        if type(trace) is not StageTrace and uses_references(params):
            return run_stateful(self, args, params)
        return trace.process(self, args, params)

    def bind(self, *args, **params):  # programs may be ClosedJaxprs, as JAX's are
        return self.apply(*args, **close_programs(params))

    def impl(self, *args, **params):
        return current.trace.run_holder(self, args, params, params[self.program])


class Call(Holder, SeriesRule):
    """A family: the results of one closed program.

    Some parameters may have an entry for each operand or for each result of the program; they go
    with these when the program is transformed.
    """

    def bodies(self, params):
        jaxpr = params[self.program]
        return [Body(jaxpr, self.program, Runs.ONCE, range(len(jaxpr.invars)))]

    def abstract_eval(self, *avals, **params):
        return params[self.program].out_avals

    def impl(self, *args, **params):
        if config.disable_jit:
            return params[self.program](*args)
        return super().impl(*args, **params)

    def lower(self, hlo, *args, **params):
        return lower_jaxpr(hlo, params[self.program], args)

    # What members may say.

    def transform(self, verb: Callable, params: dict, *how: Any) -> Any:
        """Transform the program by `verb`, such as `jvp_jaxpr`, under its named axes."""
        return verb(params[self.program], *how)

    def rebuild(
        self, params: dict, jaxpr: Jaxpr, arrange: Callable = lambda ins, outs: (ins, outs)
    ) -> tuple[Primitive, dict]:
        """Return the call of another program made of the one held, and its parameters.

        `arrange(ins, outs)` makes, of what the parameters have for each operand and for each result
        of the program held, the same two lists for the other.
        """
        return self, {**params, self.program: jaxpr}

    def pass_residuals(
        self, early: Jaxpr, late: Jaxpr, n_known: int, sources: Sequence[int | None], params: dict
    ) -> tuple[Jaxpr, Jaxpr, Sequence]:
        """The halves of the program, and entries for the residuals that leave the first."""
        return early, late, [True] * sources.count(None)

    def finish_transpose(
        self, back: Jaxpr, linear: Sequence, moved: Sequence, out_moved: Sequence, params: dict
    ) -> Jaxpr:
        """Return the transposed program, which takes the `moved` cotangents.

        It returns the cotangents of those `linear` operands that are marked in `out_moved`.
        """
        return back

    def cotangent_specs(self, ins: Sequence, outs: Sequence) -> tuple[Sequence, Sequence]:
        """Return the parameters for cotangents, made of those for operands and results."""
        return ins, outs

    # Rules.

    def jvp(self, primals, tangents, **params):
        moved = mark_moving(tangents)
        both, out_moved = self.transform(jvp_jaxpr, params, moved)

        def arrange(ins: Sequence, outs: Sequence) -> tuple[list, list]:
            return [*ins, *select_masked(ins, moved)], [*outs, *select_masked(outs, out_moved)]

        prim, params = self.rebuild(params, both, arrange)
        found = prim.apply(*primals, *[t for t in tangents if type(t) is not Zero], **params)
        n = len(out_moved)
        return found[:n], tangents_of(found[:n], found[n:], out_moved)

    def partial_eval(self, trace, unknown, args, params):
        early, late, out_unknown, sources = self.transform(split_jaxpr, params, tuple(unknown))
        n = len(out_unknown) - sum(out_unknown)
        early, late, new = self.pass_residuals(early, late, n, sources, params)

        def arrange_early(ins: Sequence, outs: Sequence) -> tuple[list, list]:
            return partition(unknown, ins)[0], [*partition(out_unknown, outs)[0], *new]

        def arrange_late(ins: Sequence, outs: Sequence) -> tuple[list, list]:
            known_ins, held_ins = partition(unknown, ins)
            late_ins = [*select_residuals(sources, known_ins, new), *held_ins]
            return late_ins, select_masked(outs, out_unknown)

        known, held = partition(unknown, args)
        prim, early_params = self.rebuild(params, early, arrange_early)
        with use(trace.parent):
            found = prim.apply(*known, **early_params)
        residuals = select_residuals(sources, known, found[n:])
        prim, late_params = self.rebuild(params, late, arrange_late)
        later = trace.later.process(prim, [*residuals, *held], late_params)
        return merge(out_unknown, found[:n], later)

    def transpose(self, cts, *args, **params):
        linear, moved = mark_linear(args), mark_moving(cts)
        back, out_moved = self.transform(backward_jaxpr, params, linear, moved)
        back = self.finish_transpose(back, linear, moved, out_moved, params)

        def arrange(ins: Sequence, outs: Sequence) -> tuple[list, list]:
            held, every = partition(linear, ins)
            solved, outs = self.cotangent_specs(every, outs)
            return [*held, *select_masked(outs, moved)], select_masked(solved, out_moved)

        prim, params = self.rebuild(params, back, arrange)
        given = [*partition(linear, args)[0], *[ct for ct in cts if type(ct) is not Zero]]
        grads = prim.apply(*given, **params)
        return cotangents_of(args, grads, out_moved)

    def batch(self, axis, args, dims, **params):
        mapped, out_dims = self.transform(batch_jaxpr, params, axis, tuple(dims))
        prim, params = self.rebuild(params, mapped)
        return prim.apply(*args, **params), out_dims

    def dce(self, eqn, live):
        params = eqn.params
        jaxpr, used = dce_jaxpr(params[self.program], tuple(live), False)
        if jaxpr is params[self.program]:
            return eqn
        if not jaxpr.eqns and not jaxpr.outvars:
            return None
        cut = lambda ins, outs: (select_masked(ins, used), select_masked(outs, live))
        invars, outvars = cut(eqn.invars, eqn.outvars)
        _, params = self.rebuild(params, jaxpr, cut)
        return eqn.replace(invars=invars, outvars=outvars, params=params)

    def discharge(self, params, refs, written, verb):
        jaxpr, handed = self.transform(verb, params, range(len(refs)), written)

        def arrange(ins: Sequence, outs: Sequence) -> tuple[list, list]:
            return [*ins, *[ins[i] for i in handed]], [*outs, *[ins[i] for i in written]]

        _, params = self.rebuild(params, jaxpr, arrange)
        count = len(jaxpr.outvars) - len(written)
        order = [*range(len(refs)), *[~i for i in handed]]
        return params, order, [*range(count), *[~i for i in written]]

    def checked(self, trace, args, params):
        program = checkify_jaxpr(params[self.program], trace.errors)
        prim, params = self.rebuild(params, program.jaxpr)
        return trace.absorb(program, prim.apply(*args, **params))

    def run_series(self, trace, args, params):
        return params[self.program](*args)
