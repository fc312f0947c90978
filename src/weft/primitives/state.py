"""Primitives that hold programs with state, where they are not staged: the values go through them.

The references are read, the program without references (passes/discharge.py) is bound under the
trace in force, and what comes back is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.jaxpr import jaxprs_in_params
from weft.core.primitive import Primitive
from weft.core.trace import current, is_eager
from weft.errors import RefError
from weft.options import config
from weft.passes.discharge import holds_state, iter_state, thread_state
from weft.primitives.refs import load_ref, store_ref


def run_stateful(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list:
    """Apply a primitive whose programs use references among the operands, or make them."""
    used = {id(args[i]) for i, _ in iter_state(prim, params)}
    refs = [id(x) if id(x) in used else None for x in args]
    concrete = is_eager()
    params, order, places = thread_state(prim, params, refs, concrete)
    values = [x if r is None else load_ref(x) for x, r in zip(args, refs, strict=True)]
    given = [values[i] for i in order]
    own = concrete and not config.disable_jit
    if own:
        written = {~p for p in places if p < 0}
        donated = tuple([k for k, i in enumerate(order) if i in written and args[i].owned])
        # one compiled program, which may take over buffers of operands
        params = dict(params)
        options = params.pop("compiler_options", ())
        name = str(params.get("name", prim.name))
        home = next(jaxprs_in_params(params))
        found = current.trace.run_holder(prim, given, params, home, name, donated, options)
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
