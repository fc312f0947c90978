"""Running programs on values: build each for where its values are, once, and watch what it does.

How a program is built is building.py's. Where the C++ call path (fastpath.py) takes over from here
is said by the functions that users call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.aval import typeof
from weft.core.jaxpr import Eqn, Jaxpr, Var
from weft.core.primitive import Primitive
from weft.core.trace import Tracer, leak_message
from weft.errors import UnexpectedTracerError
from weft.options import config
from weft.watch.key_reuse import followed
from weft.watch.nans import check_program, watch
from weft.xla.building import JitSpec, build
from weft.xla.placement import placement_of, shardings_in


def check_concrete(x: Any, op: str = "array") -> Any:
    """The type of a value to compute with; a tracer here has outlived its function."""
    if isinstance(x, Tracer):
        raise UnexpectedTracerError(leak_message(x))
    return typeof(x, op)


def run_jaxpr(jaxpr: Jaxpr, args: Sequence[Any], name: str) -> list:
    """Apply a closed jaxpr to concrete values, as one compiled program."""
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


def run_primitive(prim: Primitive, args: Sequence[Any], params: dict, home: Jaxpr) -> list:
    """Apply a primitive that holds programs to concrete values, as one compiled program.

    The program is kept on `home`, one of those that `params` hold, and dies with it.
    """
    avals = tuple([check_concrete(x, prim.name) for x in args])
    key = ("compiled", prim, avals, *params.items())
    program = home.memo.get(key)
    if program is None:
        program = eqn_jaxpr(prim, params, avals, prim.type_of(avals, params))
        home.memo[key] = program
    return run_jaxpr(program, args, prim.name)


def eqn_jaxpr(prim: Primitive, params: dict, in_avals: Any, out_avals: Any) -> Jaxpr:
    """The program that is one equation."""
    invars = [Var(a) for a in in_avals]
    outvars = [Var(a) for a in out_avals]
    return Jaxpr((), invars, outvars, [Eqn(prim, invars, params, outvars)])
