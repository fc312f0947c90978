"""`split_region`: turn a region of a program into a loop over slices of its axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.control.scan import bind_scan
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, variables_in
from weft.core.source import inner_source
from weft.core.stage import stage
from weft.core.trace import current
from weft.footprint.bodies import INDEX_TYPE
from weft.footprint.lines import slice_type
from weft.footprint.regions import Region
from weft.primitives.constant import stage_whole, write_consts
from weft.primitives.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from weft.primitives.elementwise import mul
from weft.primitives.layout import broadcast_in_dim, convert, iota_p, zeros


def split_region(jaxpr: Jaxpr, region: Region, size: int) -> Jaxpr:
    """Return a closed program that computes a region slice by slice.

    Slices have the length `size`. If the length of the axis is not a multiple of `size`, the last
    slice is shorter and comes after the loop.
    """

    def run(*args: Any) -> list:
        env: dict[Var, Any] = dict(zip(jaxpr.invars, args, strict=True))
        around = current.source
        try:
            inside = region.lines
            before = [e for e in jaxpr.eqns if e not in inside and e not in region.after]
            evaluate(env, before)
            run_slices(env, region, size, jaxpr.name)
            evaluate(env, [e for e in jaxpr.eqns if e in region.after])
        finally:
            current.source = around
        return [read(env, a) for a in jaxpr.outvars]

    return write_consts(*stage(run, jaxpr.in_avals, jaxpr.name))


def read(env: dict[Var, Any], atom: Any) -> Any:
    """Return the value of an atom."""
    return atom.read() if type(atom) is Literal else env[atom]


def evaluate(env: dict[Var, Any], eqns: Sequence[Eqn]) -> None:
    """Apply equations without slicing, and add their results to `env`."""
    for eqn in eqns:
        current.source = inner_source(eqn.source)
        outs = eqn.primitive.apply(*[read(env, a) for a in eqn.invars], **eqn.params)
        env.update(zip(eqn.outvars, outs, strict=True))


class Slices:
    """The program that computes one slice of a region.

    Its inputs are the start of the slice, the values that the region reads from outside, the totals
    so far, and the stacked arrays so far. It returns the new totals and stacked arrays.
    """

    def __init__(self, region: Region, name: str):
        made = {v for e in region.lines for v in e.outvars}
        reads = [v for e in region.lines for v in variables_in(e.invars)]
        self.region = region
        self.name = name
        self.free = [v for v in dict.fromkeys(reads) if v not in made]
        self.totals = [*region.totals]
        self.stacked = region.stacked

    @property
    def avals(self) -> list[ShapedArray]:
        """The types of the totals and the stacked arrays."""
        return [total_type(v.aval) for v in self.totals] + [v.aval.strong() for v in self.stacked]

    def start(self) -> list:
        """Return the totals and the stacked arrays before the first slice."""
        numbers = [self.region.totals[v].start for v in self.totals]
        avals = self.avals
        totals = [
            broadcast_in_dim(np.asarray(x, a.dtype), a.shape, ())
            for x, a in zip(numbers, avals, strict=False)
        ]
        return [*totals, *map(zeros, avals[len(totals) :])]

    def run(self, size: int, start: Any, free: Sequence[Any], state: Sequence[Any]) -> list:
        """Return the totals and the stacked arrays after a slice."""
        region = self.region
        given = dict(zip(self.free, free, strict=True))
        cut = {(v, axis): take_slice(given[v], axis, start, size) for v, axis in region.sliced}
        env: dict[Var, Any] = {}
        for eqn, line in region.lines.items():
            current.source = inner_source(eqn.source)
            ins = []
            for a, axis in zip(eqn.invars, line.operands, strict=True):
                if type(a) is Literal:
                    ins.append(a.read())
                elif a in env:
                    ins.append(env[a])
                else:
                    ins.append(given[a] if axis is None else cut[a, axis])
            outs = line.apply(eqn, ins, start, size)
            env.update(zip(eqn.outvars, outs, strict=True))
        n = len(self.totals)
        totals = [
            convert(
                region.totals[v].join(old, convert(env[v], typeof(old).dtype)), typeof(old).dtype
            )
            for v, old in zip(self.totals, state[:n], strict=True)
        ]
        stacked = [
            put_slice(old, convert(env[v], typeof(old).dtype), region.axes[v], start)
            for v, old in zip(self.stacked, state[n:], strict=True)
        ]
        return [*totals, *stacked]

    def loop(self, size: int, free: Sequence[Any], state: Sequence[Any], length: int) -> list:
        """Return the totals and the stacked arrays after `length` slices."""
        n, m = len(free), len(state)

        def body(*args: Any) -> list:
            start = mul(args[-1], np.int32(size))
            return self.run(size, start, args[:n], args[n : n + m])

        avals = [*map(typeof, free), *map(typeof, state), INDEX_TYPE]
        dtype = INDEX_TYPE.dtype
        params = {"dtype": dtype, "shape": (length,), "dimension": 0, "sharding": None}
        places = iota_p.apply(**params)
        how = {"length": length, "reverse": False, "unroll": 1}
        return bind_scan(stage_whole(body, avals, self.name), free, state, places, how)


def run_slices(env: dict[Var, Any], region: Region, size: int, name: str) -> None:
    """Compute a region slice by slice, and add its results to `env`."""
    slices = Slices(region, name)
    count, rest = divmod(region.size, size)
    free = [env[v] for v in slices.free]
    state = slices.loop(size, free, slices.start(), count)
    if rest:
        state = slices.run(rest, np.int32(count * size), free, state)
    for v, x in zip([*slices.totals, *slices.stacked], state, strict=True):
        env[v] = convert(x, v.aval.dtype, v.aval.weak_type)


def total_type(aval: ShapedArray) -> ShapedArray:
    """Return the type of a running total: totals of 16-bit floats are float32."""
    small = aval.dtype.itemsize == 2 and np.dtype(aval.dtype).kind not in "iu"
    return aval.update(dtype=np.dtype(np.float32), weak_type=False) if small else aval.strong()


def take_slice(x: Any, axis: int, start: Any, size: int) -> Any:
    """Return a slice of an array along an axis."""
    aval = typeof(x)
    sizes = slice_type(aval, axis, size).shape
    return dynamic_slice_p.apply(x, *place_slice(aval, axis, start), slice_sizes=sizes)[0]


def put_slice(x: Any, part: Any, axis: int, start: Any) -> Any:
    """Return an array with a slice along an axis replaced."""
    return dynamic_update_slice_p.apply(x, part, *place_slice(typeof(x), axis, start))[0]


def place_slice(aval: ShapedArray, axis: int, start: Any) -> list:
    """Return the index of the first element of a slice."""
    return [start if k == axis else np.int32(0) for k in range(aval.ndim)]
