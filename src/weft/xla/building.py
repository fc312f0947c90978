"""From a module's text to a program that runs where its placement says.

Over a mesh, the engine chooses how values lie that nobody has said it of; what it chose is read off
the executable. The text is lower.py's, compiling and running are compile.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.jaxpr import Jaxpr
from weft.xla.compile import Executable, compile_text
from weft.xla.lower import Module
from weft.xla.placement import Placement


def executable(
    module: Module,
    jaxpr: Jaxpr,
    placement: Placement,
    consts: Sequence[Any] = (),
    kept: list[bool] | None = None,
    settings: Sequence[tuple[str, Any]] = (),
) -> Executable:
    """The program of a module, lowered from `jaxpr`: see `Executable`."""
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
