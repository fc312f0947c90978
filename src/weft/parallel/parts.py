"""What Python may ask of values in a shard_map that is called at once, and not in a larger program.

Its function is staged, as always; where Python prints a value or decides by it, what makes it is
computed from the arguments, on the devices. What is staged is compiled as one program in the end,
so a value that nobody asks for costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import words_of
from weft.core.jaxpr import Jaxpr
from weft.core.stage import StagedTracer, StageTrace, close_jaxpr, run_staged
from weft.core.trace import use
from weft.errors import describe_need
from weft.mesh.spec import PartitionSpec
from weft.options import mesh_in_scope, named_axes
from weft.parallel.shard_map import shard_map_p
from weft.passes.dce import dce_jaxpr, quiet_jaxpr
from weft.passes.merge import find_first
from weft.primitives.constant import stage_whole
from weft.primitives.layout import reshape
from weft.primitives.varying import kind_of
from weft.xla.array import put
from weft.xla.eager import EVAL

# what Python may ask, apart from the text
LOOKS = frozenset(("bool()", "index()", "int()", "float()", "complex()", "format()", "item()"))
LOOKS |= {"tolist()", "numpy"}


class PartsLook:
    """Finds values of a function that shard_map runs, on `args`, as far as it has come.

    `programs` remembers what was run for it, as `share_program` says.
    """

    def __init__(self, args: Sequence[Any], specs: Sequence, params: dict, programs: Any):
        self.args, self.specs, self.params, self.programs = args, tuple(specs), params, programs
        self.around = named_axes.get_local(), mesh_in_scope.get_local()

    def __call__(
        self, x: StagedTracer, op: str = "", error: type[Exception] = TypeError, hint: str = ""
    ) -> Any:
        if op and op not in LOOKS:
            raise error(describe_need(op, x.aval, x.origin(), x.arguments(), hint))
        names, stack = self.compute_parts(x)
        if not op:
            return self.list_parts(names, stack)
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

    def compute_parts(self, x: StagedTracer) -> tuple[list, np.ndarray]:
        """The axes along which a value differs, and what devices along them have, in front."""
        params, trace = self.params, x.owner
        held = list(trace.consts.values())
        jaxpr = Jaxpr([v for v, _ in held], trace.args, [x.variable], list(trace.eqns))
        jaxpr = dce_jaxpr(quiet_jaxpr(close_jaxpr(jaxpr)))[0]
        differs = ("varying", "unreduced") if params["check_vma"] else ("",)
        names = [n for n in params["manual_axes"] if kind_of(x, n) in differs]
        with use(EVAL), shard_map_p.scope(params):
            stacked = lambda *xs: [reshape(y, (1, *y.shape)) for y in jaxpr(*xs)]
            program = stage_whole(stacked, jaxpr.in_avals, "shard_map")
        program = share_program(self.programs, program)
        cells = named_axes, mesh_in_scope
        here = [cell.get_local() for cell in cells]
        try:
            for cell, value in zip(cells, self.around, strict=True):
                cell.set_local(value)
            with use(EVAL):
                (out,) = shard_map_p.apply(
                    *[c for _, c in held],
                    *self.args,
                    jaxpr=program,
                    in_specs=(*[PartitionSpec()] * len(held), *self.specs),
                    out_specs=(PartitionSpec(tuple(names)),),
                    **params,
                )
        finally:
            for cell, value in zip(cells, here, strict=True):
                cell.set_local(value)
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


def share_program(programs: Any, jaxpr: Jaxpr) -> Jaxpr:
    """The first program equal to this one that was given, which knows what was compiled of it."""
    known = programs.get("shared")
    return find_first(jaxpr, programs.add("shared", {}) if known is None else known)


def stage_looking(fun: Callable, avals: Sequence, name: str, names: Any, look: Any) -> tuple:
    """The closed program of a flat function, of whose values Python may ask, and its consts."""
    trace = StageTrace(EVAL, name)
    trace.arg_names, trace.look = names, look
    try:
        outs = run_staged(trace, fun, [trace.new_arg(a) for a in avals])
    finally:
        trace.look = None
    jaxpr, consts = trace.finish(outs)
    return close_jaxpr(jaxpr), [put(c) if isinstance(c, np.ndarray) else c for c in consts]
