"""The family of calls: primitives that run one program as it is, and what holds programs at all.

Each rule transforms the program and binds it again. What a member does with its operands and
results besides, as spreading them over devices, it says by a few methods.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager

from weft.core.jaxpr import Jaxpr
from weft.core.primitive import (
    Body,
    Linear,
    Primitive,
    Zero,
    cotangents_of,
    mark_linear,
    mark_moving,
    tangents_of,
)
from weft.core.trace import current
from weft.options import config
from weft.passes.dce import dce_jaxpr
from weft.transforms.batch import batch_jaxpr
from weft.transforms.check import checkify_jaxpr
from weft.transforms.jet import SeriesRule
from weft.transforms.jvp import jvp_jaxpr
from weft.transforms.linearize import select_residuals, split_jaxpr
from weft.transforms.transpose import backward_jaxpr
from weft.util import merge, partition, select_masked
from weft.xla.lower import lower_jaxpr
from weft.xla.run import run_primitive

_NO_SCOPE = contextlib.nullcontext()


class Holder(Primitive):
    """A family: primitives that hold programs, the main one in the parameter `program`."""

    memoize_type = False
    program = "jaxpr"

    def impl(self, *args, **params):
        return run_primitive(self, args, params, params[self.program])


class Call(Holder, SeriesRule):
    """A family: the results of one closed program.

    Some parameters may have an entry for each operand or for each result of the program; they go
    with these when the program is transformed.
    """

    def bodies(self, params):
        jaxpr = params[self.program]
        return [Body(jaxpr, self.program, "once", range(len(jaxpr.invars)))]

    def abstract_eval(self, *avals, **params):
        return params[self.program].out_avals

    def impl(self, *args, **params):
        if config.disable_jit:
            return params[self.program](*args)
        return super().impl(*args, **params)

    def lower(self, hlo, *args, **params):
        return lower_jaxpr(hlo, params[self.program], args)

    # What members may say.

    def scope(self, params: dict) -> AbstractContextManager[None]:
        """In which the program is transformed: with the named axes that it is for."""
        return _NO_SCOPE

    def entries(self, params: dict) -> tuple[Sequence, Sequence]:
        """What the parameters have for each operand, and for each result."""
        jaxpr = params[self.program]
        return [True] * len(jaxpr.invars), [True] * len(jaxpr.outvars)

    def rebuild(
        self, params: dict, jaxpr: Jaxpr, ins: Sequence, outs: Sequence
    ) -> tuple[Primitive, dict]:
        """What calls another program, made of the one held; and with which parameters."""
        return self, {**params, self.program: jaxpr}

    def pass_residuals(
        self, early: Jaxpr, late: Jaxpr, n_known: int, sources: Sequence[int | None], params: dict
    ) -> tuple[Jaxpr, Jaxpr, Sequence]:
        """The halves of the program, and entries for the residuals that leave the first."""
        return early, late, [True] * sources.count(None)

    def finish_transpose(
        self, back: Jaxpr, n_values: int, given: Sequence, made: Sequence, params: dict
    ) -> Jaxpr:
        """The transposed program, given the entries of cotangents that come in and go out."""
        return back

    # Rules.

    def jvp(self, primals, tangents, **params):
        moved = mark_moving(tangents)
        with self.scope(params):
            both, out_moved = jvp_jaxpr(params[self.program], moved)
        ins, outs = self.entries(params)
        prim, params = self.rebuild(
            params,
            both,
            [*ins, *select_masked(ins, moved)],
            [*outs, *select_masked(outs, out_moved)],
        )
        found = prim.bind(*primals, *[t for t in tangents if type(t) is not Zero], **params)
        n = len(outs)
        return found[:n], tangents_of(found[:n], found[n:], out_moved)

    def partial_eval(self, trace, unknown, args, params):
        ins, outs = self.entries(params)
        with self.scope(params):
            early, late, out_unknown, sources = split_jaxpr(params[self.program], tuple(unknown))
            known_outs, late_outs = partition(out_unknown, outs)
            n = len(known_outs)
            early, late, new = self.pass_residuals(early, late, n, sources, params)
        (known_ins, held_ins), (known, held) = partition(unknown, ins), partition(unknown, args)
        prim, early_params = self.rebuild(params, early, known_ins, [*known_outs, *new])
        try:
            current.trace = trace.parent
            found = prim.bind(*known, **early_params)
        finally:
            current.trace = trace
        residuals = select_residuals(sources, known, found[n:])
        late_ins = [*select_residuals(sources, known_ins, new), *held_ins]
        prim, late_params = self.rebuild(params, late, late_ins, late_outs)
        later = trace.later.process(prim, [*residuals, *held], late_params)
        return merge(out_unknown, found[:n], later)

    def transpose(self, cts, *args, **params):
        linear, moved = mark_linear(args), mark_moving(cts)
        ins, outs = self.entries(params)
        held, solved = partition(linear, ins)
        with self.scope(params):
            back, out_moved = backward_jaxpr(params[self.program], linear, moved)
            given, made = select_masked(outs, moved), select_masked(solved, out_moved)
            back = self.finish_transpose(back, len(held), given, made, params)
        prim, params = self.rebuild(params, back, [*held, *given], made)
        values = [x for x in args if type(x) is not Linear]
        grads = prim.bind(*values, *[ct for ct in cts if type(ct) is not Zero], **params)
        return cotangents_of(args, grads, out_moved)

    def batch(self, axis, args, dims, **params):
        with self.scope(params):
            mapped, out_dims = batch_jaxpr(params[self.program], axis, tuple(dims))
        prim, params = self.rebuild(params, mapped, *self.entries(params))
        return prim.bind(*args, **params), out_dims

    def dce(self, eqn, live):
        params = eqn.params
        jaxpr, used = dce_jaxpr(params[self.program], tuple(live), False)
        if jaxpr is params[self.program]:
            return eqn
        if not jaxpr.eqns and not jaxpr.outvars:
            return None
        ins, outs = self.entries(params)
        _, params = self.rebuild(params, jaxpr, select_masked(ins, used), select_masked(outs, live))
        invars, outvars = select_masked(eqn.invars, used), select_masked(eqn.outvars, live)
        return eqn.replace(invars=invars, outvars=outvars, params=params)

    def checked(self, trace, args, params):
        program = checkify_jaxpr(params[self.program], trace.errors)
        prim, params = self.rebuild(params, program.jaxpr, *self.entries(params))
        return trace.absorb(program, prim.bind(*args, **params))

    def run_series(self, trace, args, params):
        return params[self.program](*args)
