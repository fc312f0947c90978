"""`jit` as a primitive, and the pipeline from a Python function to a running program.

The pipeline reads top down in `Program`: stage, clean up, lower, compile. Pytrees, static arguments
and the public `jit` are api/vmap.py's; the C++ call path is xla/fastpath.py's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.core.aval import typeof
from weft.core.jaxpr import Eqn, Jaxpr, jaxprs_in_params
from weft.core.passes import check_jaxpr, dce_jaxpr
from weft.core.primitive import (
    Linear,
    Primitive,
    Zero,
    cotangents_of,
    moving,
    solved_for,
    tangents_of,
)
from weft.core.trace import current
from weft.options import config
from weft.primitives.constant import write_consts
from weft.transforms.batch import batch_jaxpr
from weft.transforms.check import checked_jaxpr
from weft.transforms.jvp import jvp_jaxpr
from weft.transforms.linearize import residual_values, saving_jaxpr, split_jaxpr
from weft.transforms.transpose import backward_jaxpr
from weft.util import merge, partition, selected
from weft.watch import events
from weft.watch.key_reuse import followed
from weft.watch.nans import check_program, watch
from weft.xla.building import executable
from weft.xla.compile import Executable
from weft.xla.eager import check_concrete, eqn_jaxpr
from weft.xla.lower import Module, lower_call, lower_module
from weft.xla.placement import Placement, placement_of, wide_sharding


class Jit(Primitive):
    """Call `jaxpr`, compiled as one unit. Every rule transforms the program it holds."""

    name = "pjit"
    memoize_type = False
    names_flow_in = True  # printed with the names its operands and results have outside

    def abstract_eval(self, *avals, jaxpr, **params):
        return jaxpr.out_avals

    def path_name(self, params):
        return f"jit({params['name']})"

    def lower(self, hlo, *args, jaxpr, name):
        return lower_call(hlo, jaxpr, args, name)

    def steps(self, *args, jaxpr, **params):
        yield jaxpr, args

    def impl(self, *args, jaxpr, name):
        placement = placement_of(args, shardings_in(jaxpr))
        key = ("executable", placement)
        run = jaxpr.memo.get(key)
        if run is None:
            run = jaxpr.memo[key] = build(jaxpr, (), JitSpec(name), placement)
        outs = followed(jaxpr, args, lambda: run(*args)) if config.debug_key_reuse else run(*args)
        watched = watch()
        if watched:
            check_program(watched, name, jaxpr, args, outs)
        return outs

    def jvp(self, primals, tangents, *, jaxpr, **params):
        both, out_moved = jvp_jaxpr(jaxpr, moving(tangents))
        given = [t for t in tangents if type(t) is not Zero]
        outs = self.bind(*primals, *given, jaxpr=both, **params)
        n = len(jaxpr.outvars)
        return outs[:n], tangents_of(outs[:n], outs[n:], out_moved)

    def partial_eval(self, trace, unknown, args, params):
        early, late, out_unknown, sources = split_jaxpr(params["jaxpr"], tuple(unknown))
        known, held = partition(unknown, args)
        try:
            current.trace = trace.parent
            outs = self.bind(*known, **{**params, "jaxpr": early})
        finally:
            current.trace = trace
        n_known = len(out_unknown) - sum(out_unknown)
        residuals = residual_values(sources, known, outs[n_known:])
        later = trace.later.process(self, [*residuals, *held], {**params, "jaxpr": late})
        return merge(out_unknown, outs[:n_known], later)

    def transpose(self, cts, *args, jaxpr, **params):
        back, out_moved = backward_jaxpr(jaxpr, solved_for(args), moving(cts))
        values = [x for x in args if type(x) is not Linear]
        given = [c for c in cts if type(c) is not Zero]
        grads = self.bind(*values, *given, jaxpr=back, **params)
        return cotangents_of(args, grads, out_moved)

    def batch(self, axis, args, dims, *, jaxpr, **params):
        mapped, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
        return self.bind(*args, jaxpr=mapped, **params), out_dims

    def checked(self, trace, args, params):
        program = checked_jaxpr(params["jaxpr"], trace.errors)
        return trace.absorb(program, self.bind(*args, **{**params, "jaxpr": program.jaxpr}))

    def jetted(self, trace, args, params):
        return params["jaxpr"](*args)

    def saving(self, params, policy):
        early, late, saved = saving_jaxpr(params["jaxpr"], policy)
        return ({**params, "jaxpr": early}, {**params, "jaxpr": late}) if saved else None

    def uses_axis(self, name, params):
        return jaxpr_uses_axis(params["jaxpr"], name)

    def dce(self, eqn, live):
        return live_call(eqn, live)


jit_p = Jit()


def live_call(
    eqn: Eqn,
    live: Sequence[bool],
    name: str = "jaxpr",
    of_operands: Sequence[str] = (),
    of_results: Sequence[str] = (),
) -> Eqn | None:
    """A call without what nobody reads; None where nothing is left of it.

    The parameter `name` is the program; those of the others have an entry for each operand or each
    result.
    """
    jaxpr, used = dce_jaxpr(eqn.params[name], tuple(live), False)
    if not jaxpr.eqns and not jaxpr.outvars:
        return None
    params = {**eqn.params, name: jaxpr}
    params |= {k: tuple(selected(params[k], used)) for k in of_operands}
    params |= {k: tuple(selected(params[k], live)) for k in of_results}
    invars, outvars = selected(eqn.invars, used), selected(eqn.outvars, live)
    return eqn.replace(invars=invars, outvars=outvars, params=params)


def run_compiled(prim: Primitive, args: Sequence[Any], params: dict, home: Jaxpr) -> list:
    """Apply a primitive that holds programs to concrete values, as one compiled program.

    The program is kept on `home`, one of those that `params` hold, and dies with it.
    """
    avals = tuple(check_concrete(x, prim.name) for x in args)
    key = ("compiled", prim, avals, *params.items())
    program = home.memo.get(key)
    if program is None:
        program = eqn_jaxpr(prim, params, avals, prim.type_of(avals, params))
        home.memo[key] = program
    return jit_p.impl(*args, name=prim.name, jaxpr=program)


class JitSpec(NamedTuple):
    """How a function is to be compiled: everything `jit` was asked for that the program is not."""

    name: str
    donated: tuple[int, ...] = ()  # indices of arguments whose buffers may hold results
    keep_unused: bool = False
    compiler_options: tuple = ()
    in_shardings: tuple = ()  # of the arguments, None where it follows from them; () for all
    out_shardings: tuple = ()  # of the results, likewise
    asked: tuple = ()  # the same two as the user gives them, before a call says for what


SMALL = 4096  # bytes


def write_small_consts(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[Jaxpr, list]:
    """Of the consts that a program takes first, write the small ones into it; the others are left.

    What the engine can see it can fold; what is large would only make the text long.
    """
    if not consts:
        return jaxpr, []
    small = [
        wide_sharding(x) is None and typeof(x).size * typeof(x).dtype.itemsize <= SMALL
        for x in consts
    ]
    if True not in small:
        return jaxpr, list(consts)
    passed, written = partition(small, jaxpr.invars[: len(consts)])
    left, values = partition(small, consts)
    program = jaxpr.replace(constvars=written, invars=[*passed, *jaxpr.invars[len(consts) :]])
    return write_consts(program, values), left


def prepare(jaxpr: Jaxpr, n_consts: int, spec: JitSpec) -> tuple[Jaxpr, list[bool]]:
    """The program to lower, and which of its parameters it takes.

    Parameters are the consts, which stay, and then the arguments; `jaxpr` is closed.
    """
    out, used = dce_jaxpr(jaxpr, None, True)
    if config.enable_checks:
        check_jaxpr(out)
    if spec.keep_unused:
        return out, [True] * len(used)
    kept = [u or i < n_consts for i, u in enumerate(used)]
    invars = [v for v, k in zip(out.invars, kept, strict=True) if k]
    return out.replace(invars=invars), kept


class LoweredProgram(NamedTuple):
    """A program ready to compile: its text, the jaxpr that was written, and what it is passed."""

    module: Module
    jaxpr: Jaxpr
    kept: list[bool]  # which arguments it takes
    consts: list  # what is passed before them


def lower_program(
    jaxpr: Jaxpr, consts: Sequence[Any], spec: JitSpec, placement: Placement
) -> LoweredProgram:
    """The StableHLO of a program that takes `consts` first."""
    jaxpr, consts = write_small_consts(jaxpr, consts)
    n = len(consts)
    ready, kept = prepare(jaxpr, n, spec)
    # among the parameters that are left
    donated = [sum(kept[: i + n]) for i in spec.donated if kept[i + n]] if spec.donated else ()
    parameters = []
    if placement.partitioned:
        given = [*map(wide_sharding, consts), *placement.arguments]
        parameters = [s for s, k in zip(given, kept, strict=True) if k]
    module = lower_module(ready, spec.name, placement, parameters, spec.out_shardings, donated)
    return LoweredProgram(module, ready, kept[n:], consts)


def build(jaxpr: Jaxpr, consts: Sequence[Any], spec: JitSpec, placement: Placement) -> Executable:
    """From a closed jaxpr (whose first parameters are the consts) to a program that runs."""
    start = time.perf_counter()
    lowered = lower_program(jaxpr, consts, spec, placement)
    seconds = time.perf_counter() - start
    events.record_work(events.LOWER, seconds, fun_name=f"jit({spec.name})")
    kept = None if all(lowered.kept) else lowered.kept
    return executable(
        lowered.module, lowered.jaxpr, placement, lowered.consts, kept, spec.compiler_options
    )


def shardings_in(jaxpr: Jaxpr) -> tuple:
    """The shardings that equations of a program name, or of programs that those hold."""
    found = jaxpr.memo.get("shardings")
    if found is None:
        every = {}
        for eqn in jaxpr.eqns:
            own = eqn.primitive.places(eqn.params)
            every.update(dict.fromkeys(own))
            if own or eqn.primitive.memoize_type:  # the latter holds no programs
                continue
            for held in jaxprs_in_params(eqn.params):
                every.update(dict.fromkeys(shardings_in(held)))
        found = jaxpr.memo["shardings"] = tuple(every)
    return found


def jaxpr_uses_axis(jaxpr: Jaxpr, name: Any) -> bool:
    """Whether any equation of a program refers to the named axis."""
    key = ("uses_axis", name)
    found = jaxpr.memo.get(key)
    if found is None:
        found = any(e.primitive.uses_axis(name, e.params) for e in jaxpr.eqns)
        jaxpr.memo[key] = found
    return found
