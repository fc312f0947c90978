"""The passes that a program goes through before it is lowered for a CPU, in their order."""

from __future__ import annotations

from collections.abc import Callable

from weft import cpu
from weft.core.jaxpr import Jaxpr
from weft.cpu.chains import fuse_chains
from weft.cpu.clusters import fuse_clusters
from weft.cpu.flattening import flatten_rows
from weft.cpu.forms import choose_forms
from weft.cpu.groups import group_operations
from weft.cpu.pairs import pair_products
from weft.cpu.ranges import bound_indices
from weft.cpu.rounding import round_to_bfloat16
from weft.cpu.scope import Target
from weft.cpu.survey import survey_program
from weft.optimize.passes import write_dump
from weft.options import config
from weft.passes.check import check_jaxpr
from weft.passes.dce import drop_dead_code


def fuse_written_attention(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Fuse attention. Its modules are imported for programs that may have any."""
    return cpu.attention.fuse_attention(jaxpr, target)


def take_thread(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Have XLA run calls that take long in a thread of its own."""
    return cpu.threads.thread_program(jaxpr, target)


# Each pass takes a program and its target, and returns a program that computes the same.
PASSES: tuple[Callable[[Jaxpr, Target], Jaxpr], ...] = (
    fuse_clusters,
    fuse_written_attention,
    choose_forms,
    pair_products,
    fuse_chains,
    flatten_rows,
    round_to_bfloat16,
    bound_indices,
    group_operations,
    take_thread,
)
# For passes that can leave many programs out: whether a program concerns the pass. The second
# argument says if a pass has changed the program, as only passes write calls of kernels.
CONDITIONS: dict[Callable, Callable[[Jaxpr, bool], bool]] = {
    fuse_written_attention: lambda jaxpr, changed: survey_program(jaxpr).may_attend,
    choose_forms: lambda jaxpr, changed: survey_program(jaxpr).has_forms,
    pair_products: lambda jaxpr, changed: changed,
    fuse_chains: lambda jaxpr, changed: changed,
    take_thread: lambda jaxpr, changed: changed,
    bound_indices: lambda jaxpr, changed: changed or survey_program(jaxpr).holds,
}


def prepare_jaxpr(jaxpr: Jaxpr, target: Target, name: str = "") -> Jaxpr:
    """Return the program that a CPU is given in place of `jaxpr`.

    It is checked after each pass with `enable_checks`, and written to a file of the folder
    `config.dump` (WEFT_DUMP).
    """
    given = jaxpr
    for run_pass in PASSES:
        concerns = CONDITIONS.get(run_pass)
        if concerns is not None and not concerns(jaxpr, jaxpr is not given):
            continue
        changed = run_pass(jaxpr, target)
        if changed is not jaxpr:
            jaxpr = drop_dead_code(changed)  # what the replaced equations were computed from
            if config.enable_checks:
                check_jaxpr(jaxpr)
            if config.dump:
                write_dump(config.dump, jaxpr, name, run_pass.__name__)
    return jaxpr
