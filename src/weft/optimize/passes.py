"""The passes that a program goes through before it is lowered, and their order.

Users import these names from `weft.passes`. passes/ has the passes that need only core; this folder
has the passes that know primitives. A pass that is not in `PASSES` is called where it is needed.
"""

from __future__ import annotations

import itertools
import os
import pathlib
from collections.abc import Callable
from typing import Any

from weft.core.jaxpr import ClosedJaxpr, Jaxpr
from weft.optimize.fold import fold_constants
from weft.optimize.simplify import simplify_algebra
from weft.options import config
from weft.passes.check import check_jaxpr
from weft.passes.cse import cse_jaxpr
from weft.passes.dce import drop_dead_code
from weft.passes.hoist import hoist_invariants
from weft.passes.merge import merge_equal_programs

Pass = Callable[[Jaxpr], Jaxpr]

# All passes, in an order that lets each pass use the results of the passes before it.
PASSES: tuple[Pass, ...] = (
    fold_constants, simplify_algebra, cse_jaxpr, hoist_invariants, merge_equal_programs,
    drop_dead_code,
)  # fmt: skip
# Those that save more than they cost: see docs/design/014-passes.md.
DEFAULT: tuple[Pass, ...] = (drop_dead_code,)
# The same for programs of this many operations, all on scalars, as derivatives of high order are.
FOR_LONG_PROGRAMS = (simplify_algebra, cse_jaxpr, drop_dead_code)
MIN_EQUATIONS = 1000  # of a long program

_files = itertools.count(1)


def find_passes(given: Any = None) -> tuple[Pass, ...]:
    """Return the passes for a value of `passes`; None means the option or the default.

    The value is a sequence of functions and of names in `PASSES`, or a text of names separated by
    commas. "all" means all of them, "none" none.
    """
    if given is None:
        given = config.passes
    if given is None:
        return DEFAULT
    if isinstance(given, str):
        known = {"all": PASSES, "default": DEFAULT, "none": (), "": ()}
        given = known.get(given, tuple(name.strip() for name in given.split(",")))
    by_name: dict[Any, Pass] = {p.__name__: p for p in PASSES}
    found = [by_name.get(p, p) if isinstance(p, str) else p for p in given]
    for p in found:
        if not callable(p):
            raise ValueError(
                f"passes: must be functions from jaxpr to jaxpr, or names of {', '.join(by_name)}; "
                f"got {p!r}."
            )
    return tuple(found)


def run_passes(jaxpr: Any, passes: Any = None, name: str = "") -> Any:
    """Apply passes to a program, in their order; by default the passes that `jit` runs.

    The program is checked after each pass if `enable_checks` is set. It is also written to numbered
    files of the folder `config.dump` (WEFT_DUMP), if there is one.

    Args:
      jaxpr: a `Jaxpr`, or a `ClosedJaxpr` as `make_jaxpr` returns it.
      passes: a sequence of functions from Jaxpr to Jaxpr and of names of passes in `PASSES`; or
        "all", "default", "none", or names with commas between them. None, the default, for the
        passes that `jit` runs.
      name: part of the names of the files. It is empty by default.

    Returns:
      An equivalent program of the same class.

    Raises:
      ValueError: `passes` has an unknown name.

    >>> from weft.passes import run_passes
    >>> print(run_passes(weft.make_jaxpr(lambda x: x.T.T * 1.0)(jnp.ones((2, 3))), "all"))
    { lambda ; a:f32[2,3]. let  in (a,) }
    >>> jaxpr = weft.make_jaxpr(lambda x: jnp.sin(x) + jnp.sin(x))(1.0)
    >>> print(run_passes(jaxpr, ["cse_jaxpr"]))
    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = add b b in (c,) }
    """
    if type(jaxpr) is ClosedJaxpr:
        return jaxpr.replace(jaxpr=run_passes(jaxpr.jaxpr, passes, name))
    folder = config.dump
    if folder:
        write_dump(folder, jaxpr, name, "traced")
    if passes is not None or config.passes is not None:
        chosen = find_passes(passes)
    else:
        is_long = len(jaxpr.eqns) >= MIN_EQUATIONS and has_scalars_alone(jaxpr)
        chosen = FOR_LONG_PROGRAMS if is_long else DEFAULT
    for run_pass in chosen:
        jaxpr = run_pass(jaxpr)
        if config.enable_checks:
            check_jaxpr(jaxpr)
        if folder:
            write_dump(folder, jaxpr, name, getattr(run_pass, "__name__", "pass"))
    return jaxpr


def has_scalars_alone(jaxpr: Jaxpr) -> bool:
    """Return True if all results in a program are scalars."""
    return all(v.aval.shape == () for eqn in jaxpr.eqns for v in eqn.outvars)


def write_dump(folder: str, jaxpr: Jaxpr, name: str, step: str) -> None:
    """Write a program to the next file of a folder."""
    safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in f"{name}-{step}")
    os.makedirs(folder, exist_ok=True)
    path = pathlib.Path(folder, f"{next(_files):04}-{safe}.txt")
    path.write_text(f"{jaxpr}\n", encoding="utf-8")
