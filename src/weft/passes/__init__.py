"""Jaxpr to jaxpr: the passes, and which of them a program goes through before it is lowered.

A pass takes a closed jaxpr and gives one that computes the same; it changes nothing in place, and
what it made is remembered on the jaxpr it was made of. One that is not in `PASSES` is called where
it is needed. Transformations by a rule of primitives, as a derivative, are in transforms/.
"""

from collections.abc import Callable

from weft.core.jaxpr import Jaxpr
from weft.options import config
from weft.passes.check import check_jaxpr
from weft.passes.dce import drop_dead_code

PASSES: tuple[Callable[[Jaxpr], Jaxpr], ...] = (drop_dead_code,)


def run_passes(jaxpr: Jaxpr) -> Jaxpr:
    """A program after all of `PASSES`, in their order; checked after each with `enable_checks`."""
    for run_pass in PASSES:
        jaxpr = run_pass(jaxpr)
        if config.enable_checks:
            check_jaxpr(jaxpr)
    return jaxpr
