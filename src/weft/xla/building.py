"""From a closed jaxpr to a program that runs: clean up, lower to text, compile.

The text is lower.py's, compiling and running one executable are compile.py's; what runs programs on
values, and keeps what is built here, is run.py.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.core.aval import typeof
from weft.core.jaxpr import Jaxpr
from weft.passes import run_passes
from weft.passes.dce import used_inputs
from weft.watch import events
from weft.xla.compile import Executable, compile_text
from weft.xla.lower import Module, lower_module
from weft.xla.placement import Placement, wide_sharding

SMALL = 4096  # bytes of a const that is written into the text


class JitSpec(NamedTuple):
    """How a function is to be compiled: everything `jit` was asked for that the program is not."""

    name: str
    donated: tuple[int, ...] = ()  # indices of arguments whose buffers may hold results
    keep_unused: bool = False
    compiler_options: tuple = ()
    in_shardings: tuple = ()  # of the arguments, None where it follows from them; () for all
    out_shardings: tuple = ()  # of the results, likewise
    asked: tuple = ()  # the same two as the user gives them, before a call says for what


class LoweredProgram(NamedTuple):
    """A program ready to compile: its text, the jaxpr that was written, and what it is passed."""

    module: Module
    jaxpr: Jaxpr
    kept: list[bool]  # which arguments it takes
    consts: list  # what is passed before them


def lower_program(
    jaxpr: Jaxpr, consts: Sequence[Any], spec: JitSpec, placement: Placement
) -> LoweredProgram:
    """The StableHLO of a closed jaxpr whose first parameters are `consts`.

    Small consts become constants of the text, which the compiler can fold; large ones are passed.
    Arguments that the program does not use are left out.
    """
    jaxpr = run_passes(jaxpr)
    used = used_inputs(jaxpr)
    n = len(consts)
    written, passed, taken = {}, [], []  # variables: of consts in the text, and of parameters
    for var, const, is_used in zip(jaxpr.invars, consts, used, strict=False):
        if not is_small(const):
            passed.append(const)
            taken.append(var)
        elif is_used:
            written[var] = const
    kept = [True] * (len(used) - n) if spec.keep_unused else list(used[n:])
    taken += [v for v, k in zip(jaxpr.invars[n:], kept, strict=True) if k]
    ready = jaxpr.replace(constvars=written, invars=taken)
    # among the parameters that are left
    donated = [len(passed) + sum(kept[:i]) for i in spec.donated if kept[i]] if spec.donated else ()
    parameters = []
    if placement.partitioned:
        places = zip(placement.arguments, kept, strict=True)
        parameters = [*map(wide_sharding, passed), *[s for s, k in places if k]]
    module = lower_module(
        ready, spec.name, placement, parameters, spec.out_shardings, donated, [*written.values()]
    )
    return LoweredProgram(module, ready, kept, passed)


def is_small(const: Any) -> bool:
    """Whether a const is better written into the text than passed."""
    aval = typeof(const)
    return aval.size * aval.dtype.itemsize <= SMALL and wide_sharding(const) is None


def build(jaxpr: Jaxpr, consts: Sequence[Any], spec: JitSpec, placement: Placement) -> Executable:
    """From a closed jaxpr, whose first parameters are the consts, to a program that runs."""
    start = time.perf_counter()
    lowered = lower_program(jaxpr, consts, spec, placement)
    seconds = time.perf_counter() - start
    events.record_work(events.LOWER, seconds, fun_name=f"jit({spec.name})")
    kept = None if all(lowered.kept) else lowered.kept
    return executable(
        lowered.module, lowered.jaxpr, placement, lowered.consts, kept, spec.compiler_options
    )


def executable(
    module: Module,
    jaxpr: Jaxpr,
    placement: Placement,
    consts: Sequence[Any] = (),
    kept: list[bool] | None = None,
    settings: Sequence[tuple[str, Any]] = (),
) -> Executable:
    """The program of a module, lowered from `jaxpr`: see `Executable`.

    Over a mesh, the engine chooses how values lie where nothing says it; what it chose is read off
    the executable.
    """
    calls = len(module.host_calls)
    if not placement.partitioned:
        loaded = compile_text(module.text, placement, settings, calls)
        return Executable(loaded, jaxpr.out_avals, placement, consts, kept, module.host_calls, None)
    before = [placement.whole] if calls else []  # the number of the run
    chosen = [s is None for s in (*before, *module.parameters)], [s is None for s in module.results]
    loaded = compile_text(module.text, placement, settings, calls, chosen)
    # on one device the engine says None, and of no values None or that they lie whole
    whole = [placement.whole._to_xla_hlo_sharding(0)]
    taken = loaded.get_parameter_shardings() or whole * (len(before) + len(jaxpr.invars))
    made = loaded.get_output_shardings() or whole * len(jaxpr.outvars)
    found = taken[len(before) :], made[: len(jaxpr.outvars)]

    def known(given: Sequence[Any], found: Sequence[Any], avals: Sequence[Any]) -> list:
        return [
            placement.whole.of_engine(got, aval.ndim) if s is None else s
            for s, got, aval in zip(given, found, avals, strict=True)
        ]

    shardings = (
        known(module.parameters, found[0], jaxpr.in_avals),
        known(module.results, found[1], jaxpr.out_avals),
    )
    return Executable(
        loaded, jaxpr.out_avals, placement, consts, kept, module.host_calls, shardings
    )
