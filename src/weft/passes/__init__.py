"""Passes from jaxpr to jaxpr, and the list of passes that run before a program is lowered.

A pass takes a closed jaxpr and returns an equivalent one. It changes nothing in place. Its result
is cached on the jaxpr that it takes.

This folder has the passes that need only core. The passes that know primitives, and the list of all
passes, are in optimize/: those names are imported when they are first used.
"""

from weft.util import import_lazily

HOMES = {
    "weft.optimize.fold": "fold_constants",
    "weft.optimize.passes": "DEFAULT PASSES run_passes",
    "weft.optimize.simplify": "simplify_algebra",
    "weft.passes.cse": "cse_jaxpr",
    "weft.passes.dce": "drop_dead_code",
    "weft.passes.hoist": "hoist_invariants",
    "weft.passes.merge": "merge_equal_programs",
}
__getattr__, __dir__ = import_lazily(__name__, HOMES)
