"""Values that Python asks for in an eager shard_map.

Its function is staged, as always. If Python prints a value or branches on it, the value is computed
from the arguments on the devices, after the host calls before it. The rest is compiled as one
program at the end, so values that nobody asks for cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import words_of
from weft.core.facts import Runs
from weft.core.jaxpr import Eqn, Jaxpr, Var, held_jaxprs, variables_in
from weft.core.ref import is_ref
from weft.core.stage import StagedTracer, StageTrace, close_jaxpr, run_staged
from weft.core.trace import Tracer, current, eval_context, walk_up
from weft.errors import TracerError, describe_need
from weft.mesh.spec import PartitionSpec
from weft.options import mesh_in_scope, named_axes
from weft.parallel.shard_map import shard_map_p
from weft.passes.dce import dce_jaxpr, quiet_param
from weft.passes.merge import find_first
from weft.primitives.constant import stage_whole
from weft.primitives.layout import reshape
from weft.primitives.varying import kind_of
from weft.transforms.batch import BatchTrace
from weft.util import Scope
from weft.xla.array import put

# what Python may ask, apart from the text
LOOKS = frozenset(("bool()", "index()", "int()", "float()", "complex()", "format()", "item()"))
LOOKS |= {"tolist()", "numpy"}


class PartsLook:
    """Finds values of a function that shard_map runs on `args`, as far as it has run.

    `programs` caches the programs that were run for this; see `share_program`.
    """

    def __init__(self, args: Sequence[Any], specs: Sequence, params: dict, programs: Any):
        self.args, self.specs, self.params, self.programs = args, tuple(specs), params, programs
        self.around = named_axes.get_local(), mesh_in_scope.get_local()

    def __call__(
        self, x: StagedTracer, op: str = "", error: type[Exception] = TypeError, hint: str = ""
    ) -> Any:
        if op and op not in LOOKS:
            raise error(describe_need(op, x.aval, x.origin(), x.arguments(), hint))
        found = self.compute_parts(x)
        if not op:
            return f"Traced<{x.aval}>" if found is None else self.list_parts(*found)
        if found is None:
            raise error(describe_need(op, x.aval, x.origin(), x.arguments(), hint))
        names, stack = found
        if any(not np.array_equal(part, stack[0], equal_nan=False) for part in stack[1:]) or (
            names and self.params["check_vma"]
        ):
            over = ", ".join(map(repr, names))
            raise error(
                f"{op}: needs a value that is the same on all devices; got {x.aval} {x.origin()}, "
                f"which differs along {over}. Hint: lax.psum(x, {names[0]!r}) or pmax first; "
                "jnp.where or lax.cond for each device by itself."
            )
        return np.asarray(stack[0]) if op == "numpy" else put(stack[0])

    def compute_parts(self, x: StagedTracer) -> tuple[list, np.ndarray] | None:
        """Return the axes along which a value differs, and the devices' values along new axes.

        The host calls so far are made now, and not again. None if the value needs a host call that
        returns results, or a reference from outside.
        """
        params, trace = self.params, x.owner
        held = list(trace.consts.values())
        now, left, later = split_calls(trace.eqns, {v for v, _ in held if is_ref(v)})
        if x.variable in later:
            return None
        so_far = Jaxpr([v for v, _ in held], trace.args, [x.variable], now)
        jaxpr, _ = dce_jaxpr(close_jaxpr(so_far))
        differs = ("varying", "unreduced") if params["check_vma"] else ("",)
        names = [n for n in params["manual_axes"] if kind_of(x, n) in differs]
        with eval_context(), shard_map_p.scope(params):
            stacked = lambda *xs: [reshape(y, (1, *y.shape)) for y in jaxpr(*xs)]
            program = stage_whole(stacked, jaxpr.in_avals, "shard_map")
        program = share_program(self.programs, program)
        cells = zip((named_axes, mesh_in_scope), self.around, strict=True)
        around = Scope(lambda: [(c.set_local, c.get_local(), value) for c, value in cells])
        with around, eval_context():
            (out,) = shard_map_p.apply(
                *[value_of(c) for _, c in held],
                *self.args,
                jaxpr=program,
                in_specs=(*[PartitionSpec()] * len(held), *self.specs),
                out_specs=(PartitionSpec(tuple(names)),),
                **params,
            )
        trace.eqns[:] = left
        return names, np.asarray(words_of(out))

    def list_parts(self, names: Sequence, stack: np.ndarray) -> str:
        """The values of all devices as text, with the coordinates of each."""
        mesh, manual = self.params["mesh"], self.params["manual_axes"]
        sizes = [mesh.shape[n] for n in manual]
        first = [mesh.axis_names.index(n) for n in manual]
        rest = [i for i in range(mesh.devices.ndim) if i not in first]
        grid = mesh.devices.transpose(*first, *rest).reshape(*sizes, -1)
        blocks = []
        for at in np.ndindex(*sizes):
            along = [at[manual.index(n)] for n in names]
            counts = [mesh.shape[n] for n in names]
            part = stack[int(np.ravel_multi_index(along, counts)) if math.prod(counts) > 1 else 0]
            devices = ", ".join(f"{d.platform}:{d.id}" for d in grid[at])
            axes = "".join(f"{n}, " for n in manual).rstrip()
            blocks.append(f"On {devices} at mesh coordinates ({axes}) = {at}:\n{part}\n")
        return "\n".join(blocks)


def split_calls(eqns: Sequence[Eqn], later: set[Var]) -> tuple[list, list, set[Var]]:
    """The equations that can be computed now, all without the calls of the host in those, and the
    variables that are for later: `later`, what depends on them, and results of calls.
    """
    now, left = [], []
    for eqn in eqns:
        quiet: Eqn | None = eqn
        wait = not later.isdisjoint(variables_in(eqn.invars))
        try:
            if not wait and any(b.runs is Runs.HOST for b in eqn.primitive.bodies(eqn.params)):
                wait = bool(eqn.outvars) and eqn.primitive.effect is not None
                quiet = eqn if eqn.outvars else None
            elif not wait and any(p.calls_host for p in held_jaxprs(eqn)):
                quiet = eqn.replace(params={k: quiet_param(x) for k, x in eqn.params.items()})
        except NotImplementedError:  # a call that gives results and may be made only once
            wait = True
        if wait:
            later.update(eqn.outvars, filter(is_ref, variables_in(eqn.invars)))
        now += [] if wait else [eqn]
        left += [eqn] if wait else [quiet] if quiet is not None else []
    return now, left, later


def values_at_once(xs: Sequence[Any]) -> list | None:
    """Return the values below derivatives; None if they are not known yet."""
    later = any(isinstance(t, StageTrace | BatchTrace) for t in walk_up(current.trace))
    try:
        return None if later else list(map(value_of, xs))
    except TracerError:
        return None


def value_of(x: Any) -> Any:
    """The value below those that know derivatives too; raises where there is none yet."""
    return x.concrete(TracerError, "shard_map", "") if isinstance(x, Tracer) else x


def share_program(programs: Any, jaxpr: Jaxpr) -> Jaxpr:
    """Return the first program that is equal to this one and may be compiled already."""
    known = programs.get("shared")
    return find_first(jaxpr, programs.add("shared", {}) if known is None else known)


def stage_looking(fun: Callable, avals: Sequence, name: str, names: Any, look: Any) -> tuple:
    """Return the closed program of a flat function and its consts. Python may read its values."""
    trace = StageTrace(current.trace, name)
    trace.arg_names, trace.look, trace.replays = names, look, False
    try:
        outs = run_staged(trace, fun, [trace.new_arg(a) for a in avals])
    finally:
        trace.look = None
    jaxpr, consts = trace.finish(outs)
    return close_jaxpr(jaxpr), [put(c) if isinstance(c, np.ndarray) else c for c in consts]
