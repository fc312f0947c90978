"""Lower a jaxpr to StableHLO: walk the equations, let each primitive write itself.

What is written is hlo.py's; compiling the text is compile.py's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.core.aval import words_of
from weft.core.jaxpr import Eqn, Jaxpr, Literal, enter_results, held_jaxprs
from weft.core.source import SourceInfo, user_frames
from weft.core.trace import get_traceback
from weft.dtypes import cast_on_host
from weft.mesh.client import platform_of
from weft.options import config
from weft.passes.dce import dce_jaxpr
from weft.passes.discharge import discharge_jaxpr, has_state
from weft.passes.merge import has_scopes
from weft.passes.physical import physical_jaxpr
from weft.util import collecting_rarely
from weft.xla.hlo import TOKEN, Builder, Pattern, Repeat, Value
from weft.xla.locating import LocatingBuilder, operation_path
from weft.xla.placement import Placement, explicit_mesh


def lower_jaxpr(
    hlo: Builder, jaxpr: Jaxpr, args: Sequence[Value], consts: Sequence[Any] = ()
) -> list[Value]:
    """Write the equations of a jaxpr where `hlo` is writing."""
    env = dict(zip(jaxpr.invars, args, strict=True))
    constant = hlo.constant
    for var, const in zip(jaxpr.constvars, consts, strict=True):
        env[var] = constant(cast_on_host(const, var.aval.dtype), var.aval)
    everywhere, here = hlo.written, hlo.constants
    for eqn in jaxpr.eqns:
        values, names, types = [], [], []
        for a in eqn.invars:
            v = constant(a.val, a.aval) if type(a) is Literal else env[a]  # type: ignore[index]
            values.append(v)
            names.append(v.name)
            types.append(v.aval if v.scalar is None else v.name)  # the name stands for the number
        key = (eqn.primitive, *types, *eqn.params.items())
        found = everywhere.get(key) or here.get(key)
        start = len(hlo.lines)
        if type(found) is Pattern:
            outs = hlo.again(found, names)
        elif eqn.primitive.memoize_type:
            outs = write_equation(hlo, eqn, values, key, found)
        else:
            outs = lower_holder(hlo, eqn, values)
        if hlo.devices and (mesh := mesh_of_types(eqn)) is not None:
            rows = zip(outs, eqn.outvars, strict=True)
            outs = [hlo.constrain(y, v.aval, mesh) for y, v in rows]
        if type(eqn.source) is SourceInfo or hlo.scoped:
            hlo.locate(start, operation_path(hlo.path, eqn), eqn)
        enter_results(env, eqn.outvars, outs)
    return [
        constant(a.val, a.aval) if type(a) is Literal else env[a]  # type: ignore[index]
        for a in jaxpr.outvars
    ]


def mesh_of_types(eqn: Eqn) -> Any:
    """Return the mesh of the shardings in an equation's types; None if they have no explicit axes.

    For an equation that holds programs only its results count. For another equation its operands
    and its parameter `dst_sharding` count as well.
    """
    every = eqn.outvars if not eqn.primitive.memoize_type else (*eqn.outvars, *eqn.invars)
    found = next((s for a in every if (s := a.aval.sharded) is not None), None)
    mesh = found and (eqn.params.get("dst_sharding") or found).mesh
    return mesh if mesh is not None and mesh.explicit_axes else None


def write_equation(
    hlo: Builder, eqn: Eqn, values: Sequence[Value], key: tuple, found: Repeat | None
) -> list[Value]:
    """Write an equation by its rule, and keep the lines as a pattern for equal equations.

    `key` names the primitive, the types and the parameters; `found` says whether an equation with
    this key was written before. Lines that name a constant or a function of the module are kept
    for the region only.
    """
    start, count = len(hlo.lines), hlo.count
    before = len(hlo.constants), len(hlo.foreign_calls)
    outs = eqn.primitive.lower(hlo, *values, **eqn.params)
    if found is Repeat.NEVER:
        return outs
    local = str in map(type, key)
    kept: Pattern | Repeat = Repeat.ONCE
    lines = len(hlo.lines) - start
    if lines == 1 or (lines and found is Repeat.ONCE):
        kept = Repeat.NEVER
        if before == (len(hlo.constants), len(hlo.foreign_calls)):
            pattern, names_constants = hlo.read_pattern(start, count, values, outs)
            if pattern is not None:
                kept = pattern
                local = local or names_constants or "@" in pattern.text
    if local:
        hlo.written.pop(key, None)  # where it is looked for first
    (hlo.constants if local else hlo.written)[key] = kept
    return outs


def lower_holder(hlo: Builder, eqn: Eqn, values: Sequence[Value]) -> list[Value]:
    """Write an equation that holds programs; the path of operations goes on in those."""
    around, scoped, start = hlo.path, hlo.scoped, len(hlo.lines)
    hlo.path = operation_path(around, eqn)
    hlo.scoped = scoped or type(eqn.source) is SourceInfo
    outs = eqn.primitive.lower(hlo, *values, **eqn.params)
    # XLA puts a call's name first
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


def make_physical(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[Jaxpr, Sequence[Any]]:
    """Return a program that `has_extended`, without references and with words in place of keys.

    Its consts are returned, too.
    """
    if has_state(jaxpr):
        jaxpr = dce_jaxpr(discharge_jaxpr(jaxpr))[0]
    return physical_jaxpr(jaxpr), [*map(words_of, consts)]


def lower_module(
    jaxpr: Jaxpr,
    name: str,
    placement: Placement | None = None,
    parameters: Sequence[Any] = (),
    results: Sequence[Any] = (),
    donated: Sequence[int] = (),
    consts: Sequence[Any] = (),
) -> Module:
    """Return the module with a physical jaxpr as its main function, and `consts` as its constants.

    `donated` names donated parameters. Over a mesh, `parameters` and `results` are the known
    shardings, None for the others.
    """
    over = placement.devices if placement is not None and placement.partitioned else ()
    builder = LocatingBuilder if config.locate_operations else Builder
    platform = (
        "cpu" if placement is None else placement.platform or platform_of(placement.devices[0])
    )
    hlo = builder(over, platform)
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
    if jaxpr.calls_host:
        in_avals, attrs = [TOKEN, *in_avals], ["", *attrs]
        write = hlo.threaded(write, False)
    with collecting_rarely():
        hlo.function("main", in_avals, write, "public", (attrs, out_attrs), f"jit({name})")
    hlo.names.clear()  # of functions
    text = hlo.module(hlo.unique(f"jit_{name}"))
    calls = tuple(hlo.host_calls)
    return Module(text, calls, parameters, results, hlo.origins, hlo.foreign_calls)


def join_attrs(one: str, other: str) -> str:
    """Two attributes of one value as one text."""
    return f"{one}, {other}" if one and other else one or other


_warned: dict = {}  # warnings about donated buffers by line


def alias_attributes(
    jaxpr: Jaxpr, donated: Sequence[int], parameters: Sequence[Any], results: Sequence[Any]
) -> list[str]:
    """Argument attributes that let each donated parameter's buffer hold a result of its type.

    Over a mesh the shardings of both must be known; else XLA finds the result.
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
