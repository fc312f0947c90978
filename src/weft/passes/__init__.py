"""Passes from jaxpr to jaxpr, and which of them a program goes through before it is lowered.

A pass takes a closed jaxpr and returns one that computes the same. It changes nothing in place, and
its result is kept with the jaxpr that it was given.

Here are the files of passes that need core alone. Those that know primitives, and the list of all,
are in optimize/: the names are imported when they are first used.
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
