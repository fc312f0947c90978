"""From jaxpr to StableHLO: walk the equations, let each primitive write itself.

What is written is hlo.py's; compiling the text is compile.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from weft.core.jaxpr import Eqn, Jaxpr, Literal, jaxprs_in_params, subjaxprs
from weft.core.source import SourceInfo, path_text
from weft.xla.hlo import TOKEN, Builder, Value


def lower_jaxpr(hlo: Builder, jaxpr: Jaxpr, args: Sequence[Value]) -> list[Value]:
    """Write the equations of a closed jaxpr in the place where `hlo` stands."""
    env = dict(zip(jaxpr.invars, args, strict=True))
    constant = hlo.constant
    lines = hlo.written
    for eqn in jaxpr.eqns:
        values = [
            constant(a.val, a.aval) if type(a) is Literal else env[a]  # type: ignore[index]
            for a in eqn.invars
        ]
        key = (eqn.primitive, tuple([v.aval for v in values]), *eqn.params.items())
        line = lines.get(key)
        start = len(hlo.lines)
        if line is not None and all(v.scalar is None for v in values):
            outs = hlo.again(line, values)
        elif not eqn.primitive.memoize_type:
            outs = lower_holder(hlo, eqn, values)
        else:
            outs = eqn.primitive.lower(hlo, *values, **eqn.params)
            if len(hlo.lines) == start + 1:
                lines[key] = hlo.last_line(values, outs)
        if type(eqn.source) is SourceInfo or hlo.scoped:
            hlo.locate(start, operation_path(hlo.path, eqn))
        for var, out in zip(eqn.outvars, outs, strict=True):
            env[var] = out
    return [
        constant(a.val, a.aval) if type(a) is Literal else env[a]  # type: ignore[index]
        for a in jaxpr.outvars
    ]


def operation_path(around: str, eqn: Eqn) -> str:
    """The name of an operation in profiles: the scopes it is in, and what it is."""
    name = path_text([*eqn.source_info.scope, eqn.primitive.path_name(eqn.params)])
    return f"{around}/{name}" if around else name


def lower_holder(hlo: Builder, eqn: Eqn, values: Sequence[Value]) -> list[Value]:
    """Write an equation that holds programs; the path of operations goes on in those."""
    around, scoped, start = hlo.path, hlo.scoped, len(hlo.lines)
    hlo.path = operation_path(around, eqn)
    hlo.scoped = scoped or type(eqn.source) is SourceInfo
    outs = eqn.primitive.lower(hlo, *values, **eqn.params)
    if any(map(has_scopes, jaxprs_in_params(eqn.params))):  # the engine puts a call's name first
        hlo.locate(start, hlo.path)
    hlo.path, hlo.scoped = around, scoped
    return outs


def has_scopes(jaxpr: Jaxpr) -> bool:
    """Whether an equation of a program, or of one that it holds, is in a named scope."""
    found = jaxpr.memo.get("has_scopes")
    if found is None:
        found = any(type(e.source) is SourceInfo for e in jaxpr.eqns)
        found = jaxpr.memo["has_scopes"] = found or any(map(has_scopes, subjaxprs(jaxpr)))
    return found


def lower_call(hlo: Builder, jaxpr: Jaxpr, args: Sequence[Value], name: str) -> list[Value]:
    """Call a closed jaxpr as a function of the module, written once however often it is called."""
    in_avals, out_avals = jaxpr.in_avals, jaxpr.out_avals
    write = lambda *xs: lower_jaxpr(hlo, jaxpr, xs)
    if jaxpr.calls_host:
        args, in_avals = [hlo.token, *args], [TOKEN, *in_avals]
        write = hlo.threaded(write, jaxpr.ordered)
    function = hlo.memo.get(jaxpr)
    if function is None:
        function = hlo.memo[jaxpr] = hlo.function(name, in_avals, write)
    if not jaxpr.ordered:
        return hlo.call(function, args, out_avals)
    hlo.token, *outs = hlo.call(function, args, [TOKEN, *out_avals])
    return outs


class Module(NamedTuple):
    """A program as text, and the Python functions that it calls by their index.

    If it calls any, its first parameter is the number of the run.
    """

    text: str
    host_calls: tuple[Callable, ...]


def lower_module(jaxpr: Jaxpr, name: str, donated: Sequence[int] = ()) -> Module:
    """The module whose main function is a closed jaxpr; `donated` names parameters given away."""
    hlo = Builder()
    in_avals, attrs = jaxpr.in_avals, aliases(jaxpr, donated)
    write = lambda *xs: lower_jaxpr(hlo, jaxpr, xs)
    if jaxpr.calls_host:
        in_avals, attrs = [TOKEN, *in_avals], ["", *attrs]
        write = hlo.threaded(write, False)
    hlo.function("main", in_avals, write, "public", attrs, f"jit({name})")
    return Module(hlo.module(Builder().unique(f"jit_{name}")), tuple(hlo.host_calls))


def aliases(jaxpr: Jaxpr, donated: Sequence[int]) -> list[str]:
    """Argument attributes that let each donated parameter's buffer hold a result of its type."""
    free = list(range(len(jaxpr.outvars)))
    attrs = [""] * len(jaxpr.invars)
    for i in donated:
        aval = jaxpr.in_avals[i].strong()
        fit = next((o for o in free if jaxpr.out_avals[o].strong() is aval), None)
        if fit is None:
            attrs[i] = " {jax.buffer_donor = true}"
        else:
            free.remove(fit)
            attrs[i] = f" {{tf.aliasing_output = {fit} : i32}}"
    return attrs
