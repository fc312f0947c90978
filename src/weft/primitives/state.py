"""Primitives that hold programs with state, where they are not staged: the values go through them.

The references are read, the program without references (passes/discharge.py) is bound under the
trace in force, and what comes back is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.jaxpr import jaxprs_in_params
from weft.core.primitive import Primitive
from weft.core.trace import current
from weft.errors import RefError
from weft.options import config
from weft.passes.discharge import holds_state, iter_state, thread_state
from weft.primitives.refs import load_ref, store_ref
from weft.xla.building import JitSpec
from weft.xla.eager import EVAL
from weft.xla.run import holder_jaxpr, run_program


def run_stateful(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list:
    """Apply a primitive whose programs use references among the operands, or make them."""
    used = {id(args[i]) for i, _ in iter_state(prim, params)}
    refs = [id(x) if id(x) in used else None for x in args]
    params, order, places = thread_state(prim, params, refs, current.trace is EVAL)
    values = [x if r is None else load_ref(x) for x, r in zip(args, refs, strict=True)]
    given = [values[i] for i in order]
    own = current.trace is EVAL and not config.disable_jit
    if own:
        written = {~p for p in places if p < 0}
        donated = tuple([k for k, i in enumerate(order) if i in written and args[i].owned])
        # one compiled program, which may take over buffers of operands
        params = dict(params)
        options = params.pop("compiler_options", ())
        program = holder_jaxpr(prim, given, params, next(jaxprs_in_params(params)))
        spec = JitSpec(str(params.get("name", prim.name)), donated, compiler_options=options)
        found = run_program(program, (), given, spec)[0]
    elif holds_state(params):
        raise RefError(
            f"{prim.name}: the rules of a staged function must not use references from outside; "
            "got one that a custom_vjp function's forward rule does. Hint: pass it as an argument."
        )
    else:
        found = prim.apply(*given, **params)
    outs = []
    for place, y in zip(places, found, strict=True):
        if place >= 0:
            outs.append(y)
        elif own:
            args[~place].hold(y, True)
        else:
            store_ref(args[~place], y)
    return outs
