"""From jaxpr to StableHLO: walk the equations, let each primitive write itself.

What is written is hlo.py's; compiling the text is compile.py's.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import words_of
from weft.core.jaxpr import Eqn, Jaxpr, Literal, held_jaxprs
from weft.core.source import SourceInfo, user_frames
from weft.core.trace import get_traceback
from weft.mesh.client import platform_of
from weft.options import config
from weft.passes.alone import JOINS, KNOWN, MOVES, do_little, plan_calls
from weft.passes.dce import dce_jaxpr
from weft.passes.discharge import discharge_jaxpr, has_state
from weft.passes.formulas import count_formulas
from weft.passes.merge import has_scopes
from weft.passes.physical import has_extended, physical_jaxpr
from weft.passes.rows import HALVES, plan_rows
from weft.util import collecting_rarely
from weft.xla.hlo import TOKEN, Builder, Pattern, Value
from weft.xla.locating import LocatingBuilder, operation_path
from weft.xla.native import call_native, has_kernels
from weft.xla.placement import Placement, explicit_mesh


def lower_jaxpr(
    hlo: Builder, jaxpr: Jaxpr, args: Sequence[Value], consts: Sequence[Any] = ()
) -> list[Value]:
    """Write the equations of a jaxpr where `hlo` is writing."""
    env = dict(zip(jaxpr.invars, args, strict=True))
    constant = hlo.constant
    for var, const in zip(jaxpr.constvars, consts, strict=True):
        env[var] = constant(np.asarray(const, var.aval.dtype), var.aval)
    everywhere, here = hlo.written, hlo.constants
    for eqn in jaxpr.eqns:
        values, names, types = [], [], []
        for a in eqn.invars:
            v = constant(a.val, a.aval) if type(a) is Literal else env[a]  # type: ignore[index]
            values.append(v)
            names.append(v.name)
            types.append(v.aval if v.scalar is None else v.name)
        key = (eqn.primitive, *types, *eqn.params.items())
        pattern = everywhere.get(key) or here.get(key)
        start = len(hlo.lines)
        if type(pattern) is Pattern:
            outs = hlo.again(pattern, names)
        elif not eqn.primitive.memoize_type:
            outs = lower_holder(hlo, eqn, values)
        else:
            outs = lower_first(hlo, eqn, values, key, pattern)
        if hlo.devices and (mesh := mesh_of_types(eqn)) is not None:
            rows = zip(outs, eqn.outvars, strict=True)
            outs = [hlo.constrain(y, v.aval, mesh) for y, v in rows]
        if type(eqn.source) is SourceInfo or hlo.scoped:
            hlo.locate(start, operation_path(hlo.path, eqn), eqn)
        for var, out in zip(eqn.outvars, outs, strict=True):
            env[var] = out
    return [
        constant(a.val, a.aval) if type(a) is Literal else env[a]  # type: ignore[index]
        for a in jaxpr.outvars
    ]


def mesh_of_types(eqn: Eqn) -> Any:
    """The mesh over whose explicit axes an equation says how results lie; None where it does not.

    An equation that holds programs does where its results are split, and another where operands
    are, or what it is told says so.
    """
    every = eqn.outvars if not eqn.primitive.memoize_type else (*eqn.outvars, *eqn.invars)
    found = next((s for a in every if (s := a.aval.sharded) is not None), None)
    mesh = found and (eqn.params.get("dst_sharding") or found).mesh
    return mesh if mesh is not None and mesh.explicit_axes else None


def lower_first(
    hlo: Builder, eqn: Eqn, values: Sequence[Value], key: tuple, seen: Any
) -> list[Value]:
    """Write an equation by its rule, and keep the pattern of the lines for others like it.

    Of several lines, it is looked for when they are written again: most programs have few twice.
    """
    start, count, here, looks = len(hlo.lines), hlo.count, hlo.constants, hlo.looks
    if type(seen) is list and '"stablehlo.convert"' not in "".join(hlo.lines[-1:]):
        return hlo.again(seen[0], [v.name for v in values])
    state = lambda: (len(here), len(hlo.host_calls), len(hlo.foreign_calls), hlo.choices)
    before = state()
    outs = eqn.primitive.lower(hlo, *values, **eqn.params)
    lines = len(hlo.lines) - start
    alone, pattern = str in map(type, key), None  # the name of a scalar
    if lines == 1 or (lines and seen == "once"):
        if state() == before:
            pattern, local = hlo.read_pattern(start, count, values, outs)
            alone = alone or local or (pattern is not None and "@" in pattern.text)  # a function
        if alone:
            hlo.written.pop(key, None)  # where it is looked for first
        kept = [pattern] if pattern and hlo.looks > looks else pattern
        (here if alone else hlo.written)[key] = kept or (seen and "none") or "once"
    elif not seen:
        (here if alone else hlo.written)[key] = "once"
    return outs


def lower_holder(hlo: Builder, eqn: Eqn, values: Sequence[Value]) -> list[Value]:
    """Write an equation that holds programs; the path of operations goes on in those."""
    around, scoped, start = hlo.path, hlo.scoped, len(hlo.lines)
    hlo.path = operation_path(around, eqn)
    hlo.scoped = scoped or type(eqn.source) is SourceInfo
    outs = eqn.primitive.lower(hlo, *values, **eqn.params)
    # the engine puts a call's name first
    if hlo.names_all or any(map(has_scopes, held_jaxprs(eqn))):
        hlo.locate(start, hlo.path, eqn)
    hlo.path, hlo.scoped = around, scoped
    return outs


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
    """A program as text, the Python functions that it calls by their index, and foreign calls.

    If it calls any of Python, its first parameter is the number of the run. `parameters` and
    `results`, over a mesh, are the shardings that the text names, None for the others.
    """

    text: str
    host_calls: tuple[Callable, ...]
    parameters: Sequence[Any]
    results: Sequence[Any]
    origins: Sequence[Sequence[Eqn]] = ()  # with `locate_operations`: what operations are named by
    foreign_calls: Sequence[Any] = ()


NAME_OF, DTYPE_OF = operator.attrgetter("primitive.name"), operator.attrgetter("aval.dtype")


def lower_module(
    jaxpr: Jaxpr,
    name: str,
    placement: Placement | None = None,
    parameters: Sequence[Any] = (),
    results: Sequence[Any] = (),
    donated: Sequence[int] = (),
    consts: Sequence[Any] = (),
) -> Module:
    """The module whose main function is a jaxpr, with `consts` written as constants of it.

    `donated` names parameters given away. Over a mesh, `parameters` and `results` are the shardings
    known, None for the others.
    """
    if has_extended(jaxpr):
        jaxpr = dce_jaxpr(discharge_jaxpr(jaxpr))[0] if has_state(jaxpr) else jaxpr
        jaxpr, consts = physical_jaxpr(jaxpr), [*map(words_of, consts)]
    over = placement.devices if placement is not None and placement.partitioned else ()
    builder = LocatingBuilder if config.locate_operations else Builder
    platform = (
        "cpu" if placement is None else placement.platform or platform_of(placement.devices[0])
    )
    names = {*map(NAME_OF, jaxpr.eqns[:64])}
    few = platform == "cpu" and not over and len(jaxpr.eqns) <= 64
    products = few and "dot_general" in names and not builder.names_all  # explain tells their FLOPs
    brief = products and do_little(jaxpr, {"dot_general"} | MOVES)
    hlo = builder(over, platform, count_formulas(jaxpr), brief)
    hlo.alone = len(jaxpr.eqns) == 1 and not donated
    if few and names <= MOVES and names & JOINS:
        hlo.cuts, hlo.written = {}, {}  # no pattern tells what a part is cut from
    if over and placement is not None and (mesh := explicit_mesh(placement)) is not None:
        hlo.named(mesh)  # with its devices, which types do not know
    in_avals, attrs, out_attrs = jaxpr.in_avals, [""] * len(jaxpr.invars), list[str]()
    if donated:
        attrs = alias_attributes(jaxpr, donated, parameters, results)
    if over:
        parameters = parameters or [None] * len(jaxpr.invars)
        results = results or [None] * len(jaxpr.outvars)
        attrs = [
            join_attrs(a, hlo.placed(s, x.ndim))
            for a, s, x in zip(attrs, parameters, in_avals, strict=True)
        ]
        out_attrs = [hlo.placed(s, y.ndim) for s, y in zip(results, jaxpr.out_avals, strict=True)]
    write = lambda *xs: lower_jaxpr(hlo, jaxpr, xs, consts)
    only = few and names and not (donated or hlo.names_all)
    half = not HALVES.isdisjoint(map(DTYPE_OF, (*jaxpr.invars, *jaxpr.outvars)))
    if only and names <= KNOWN and not consts and (calls := plan_calls(jaxpr)) and has_kernels(hlo):
        write = lambda *xs: call_operations(hlo, jaxpr, calls, xs)
    elif only and half and (plan := plan_rows(jaxpr, consts)) and has_kernels(hlo):
        given = lambda xs: [*xs, *[hlo.constant(a.val, a.aval) for a in plan[1]]]
        write = lambda *xs: call_native(hlo, "weft_program", given(xs), jaxpr.out_avals, plan[0])
    if jaxpr.calls_host:
        in_avals, attrs = [TOKEN, *in_avals], ["", *attrs]
        write = hlo.threaded(write, False)
    with collecting_rarely():
        hlo.function("main", in_avals, write, "public", (attrs, out_attrs), f"jit({name})")
    text = hlo.module(Builder().unique(f"jit_{name}"))
    calls = tuple(hlo.host_calls)
    return Module(text, calls, parameters, results, hlo.origins, hlo.foreign_calls)


def call_operations(hlo: Builder, jaxpr: Jaxpr, calls: Sequence, args: Sequence) -> list[Value]:
    """Write a program as equations and calls of kernels."""
    env: dict[Any, Value] = dict(zip(jaxpr.invars, args, strict=True))
    read = lambda a: hlo.constant(a.val, a.aval) if type(a) is Literal else env[a]
    for call in calls:
        values = [*map(read, call.invars)]
        if type(call) is Eqn:
            outs = lower_holder(hlo, call, values)
        else:
            avals = [v.aval for v in call.outvars]
            outs = call_native(hlo, call.kernel, values, avals, call.attributes)
        env |= zip(call.outvars, outs, strict=True)
    return [*map(read, jaxpr.outvars)]


def join_attrs(one: str, other: str) -> str:
    """Two attributes of one value as one text."""
    return f"{one}, {other}" if one and other else one or other


_warned: dict = {}  # of donated buffers, what was said of which line


def alias_attributes(
    jaxpr: Jaxpr, donated: Sequence[int], parameters: Sequence[Any], results: Sequence[Any]
) -> list[str]:
    """Argument attributes that let each donated parameter's buffer hold a result of its type.

    Over a mesh the shardings of both must be known; else the engine finds the result.
    """
    free = list(range(len(jaxpr.outvars)))
    if parameters or results:
        free = [o for o in free if results and results[o] is not None]
    attrs, unused = [""] * len(jaxpr.invars), []
    for i in donated:
        aval = jaxpr.in_avals[i].strong()
        place = parameters[i] if parameters else None
        fits = (o for o in free if not results or results[o] is place)
        fit = next((o for o in fits if jaxpr.out_avals[o].strong() is aval), None)
        if fit is None:
            attrs[i] = "jax.buffer_donor = true"
            if not parameters:
                unused.append(jaxpr.in_avals[i])
        else:
            free.remove(fit)
            attrs[i] = f"tf.aliasing_output = {fit} : i32"
    if unused and config.hints:
        frames = user_frames(get_traceback())
        file, line = (frames[0].file_name, frames[0].line_num) if frames else ("unknown file", 0)
        warnings.warn_explicit(
            f"Some donated buffers were not usable: {', '.join(map(str, unused))}, for no result "
            "that is left has the type. Hint: drop them from donate_argnums; "
            "config.update('hints', False) silences this.",
            *(UserWarning, file, line),
            registry=_warned,
        )
    return attrs
