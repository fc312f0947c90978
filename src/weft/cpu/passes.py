"""The passes that a program goes through before it is lowered for a CPU, in their order."""

from __future__ import annotations

from collections.abc import Callable

from weft.core.jaxpr import Jaxpr
from weft.cpu.forms import choose_forms
from weft.cpu.scope import Target
from weft.options import config
from weft.passes import write_dump
from weft.passes.check import check_jaxpr
from weft.passes.dce import drop_dead_code


def drop_unread(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program without equations whose results nothing reads any more."""
    return drop_dead_code(jaxpr)


# Each takes a program and what it may use, and gives one that computes the same.
PASSES: tuple[Callable[[Jaxpr, Target], Jaxpr], ...] = (choose_forms, drop_unread)


def prepare_jaxpr(jaxpr: Jaxpr, target: Target, name: str = "") -> Jaxpr:
    """Return the program that a CPU is given in place of `jaxpr`.

    It is checked after each pass with `enable_checks`, and written to a file of the folder
    `config.dump` (WEFT_DUMP).
    """
    for run_pass in PASSES:
        changed = run_pass(jaxpr, target)
        if changed is jaxpr:
            continue
        jaxpr = changed
        if config.enable_checks:
            check_jaxpr(jaxpr)
        if config.dump:
            write_dump(config.dump, jaxpr, name, run_pass.__name__)
    return jaxpr
