"""Batching: each value may carry a mapped axis; rules push it into the operations.

`BatchTrace` carries the axis's size and name, so that collectives can refer to it. in_axes and
out_axes on pytrees are api/vmap.py's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr, memo_jaxpr, uses_axis
from weft.core.primitive import Axis, Primitive
from weft.core.ref import AbstractRef, write_error
from weft.core.source import VMAP, describe_maker
from weft.core.trace import Trace, Tracer, current, run_once, walk_up
from weft.options import config, named_axes
from weft.passes.discharge import iter_state
from weft.primitives.constant import stage_whole
from weft.primitives.layout import batched_at_front, zeros
from weft.primitives.reshard import lay_as
from weft.util import memoize
from weft.watch.leaks import check_leaks


@memoize
def mapped_aval(aval: ShapedArray, dim: int) -> ShapedArray:
    """The type of one element along axis `dim`."""
    shape = aval.shape[:dim] + aval.shape[dim + 1 :]
    return aval.update(shape=shape, sharded=aval.sharded and aval.sharded.without_axis(dim))


class BatchTracer(Tracer):
    """A value that `vmap` maps. Its type is the type of one element.

    Attributes:
      value: the array with the mapped axis.
      dim: the mapped axis of `value`, an int.

    >>> from weft.interpreters import batching
    >>> def f(x):
    ...     print(isinstance(x, batching.BatchTracer), x.shape, x.value.shape, x.dim)
    ...     return x
    >>> _ = weft.vmap(f)(jnp.ones((2, 3)))
    True (3,) (2, 3) 0
    """

    __slots__ = ("dim", "source", "value")

    source: Any  # set where no equation says where the value was made
    inner = property(lambda self: self.value)

    def __init__(self, trace: BatchTrace, value: Any, dim: int):
        self.owner = trace
        self.value = value
        self.dim = dim
        aval = getattr(value, "aval", None)  # as `typeof`, without a call in most cases
        if type(aval) is not ShapedArray:
            aval = typeof(value)
        self.aval = mapped_aval(aval, dim)

    def own_origin(self) -> str:
        mapped = f"mapped by vmap along axis {self.dim} of {typeof(self.value)}"
        if hasattr(self, "source"):
            return f"{describe_maker(self.source, 'an operation')}, {mapped}"
        return mapped

    def __repr__(self) -> str:
        return f"{super().__repr__()} along axis {self.dim} of {self.value!r}"


class BatchTrace(Trace):
    """The trace of `vmap`. It applies the batch rules of primitives to whole arrays.

    Attributes:
      parent: the trace under which the batch rules run.
      axis: the mapped axis; it has a `size` and a `name`, which is None by default.

    >>> from weft.interpreters import batching
    >>> def f(x):
    ...     print(isinstance(x._trace, batching.BatchTrace), x._trace.axis)
    ...     return x
    >>> _ = weft.vmap(f)(jnp.ones((2, 3)))
    True Axis(size=2, name=None)
    """

    __slots__ = ("axis", "programs", "replays")

    def __init__(self, parent: Trace, axis: Axis):
        self.parent = parent
        self.programs = parent.programs
        self.replays = parent.replays
        self.live = True
        self.axis = axis

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        values = []
        dims: list[int | None] = []
        mapped = False
        for x in args:
            if type(x) is BatchTracer and x.owner is self:
                values.append(x.value)
                dims.append(x.dim)
                mapped = True
            else:
                values.append(x)
                dims.append(None)
        axis = self.axis
        try:
            current.trace = self.parent
            if not mapped and (axis.name is None or not uses_axis(prim, params, axis.name)):
                if any(type(getattr(x, "aval", None)) is AbstractRef for x in values):
                    refuse_writes(prim, values, params, self)
                return self.parent.process(prim, values, params)  # type: ignore[union-attr]
            outs, out_dims = self.apply_rule(prim, values, dims, params)
        finally:
            current.trace = self
        unwritten = self.parent.parent is None  # type: ignore[union-attr]
        results = []
        for y, d in zip(outs, out_dims):
            if d is not None:
                y = BatchTracer(self, y, d)
                if unwritten:
                    y.source = current.source or current.capture()
            results.append(y)
        return results

    def apply_rule(self, prim: Primitive, values: list, dims: list, params: dict) -> tuple:
        """Apply an operation under the parent; return its results and their mapped axes.

        This is the one place where the trace uses a rule: a trace that applies rules in another way
        overrides it.
        """
        outs, out_dims = prim.batch(self.axis, values, dims, **params)
        if len(outs) != len(out_dims):
            raise ValueError(
                f"{prim.name}: the batch rule must return a mapped axis, or None, for each result; "
                f"got {len(out_dims)} for {len(outs)}."
            )
        return outs, out_dims


def refuse_writes(prim: Primitive, args: Sequence[Any], params: dict, trace: BatchTrace) -> None:
    """Raise where an operation writes to a reference from outside of the mapped function.

    Every element would write the same, but the other elements' writes could come between.
    """
    for i, effect in iter_state(prim, params):
        home = getattr(args[i], "owner", None) or args[i].trace
        if effect.writes and trace not in walk_up(home):
            raise write_error(args[i].aval, trace)


@contextlib.contextmanager
def in_scope(axes: Sequence[Axis]) -> Iterator[None]:
    """With these named axes in scope, within those around."""
    around = named_axes.get_local()
    try:
        named_axes.set_local((*named_axes.value, *axes))
        yield
    finally:
        named_axes.set_local(around)


def batch(
    fun: Callable,
    args: Sequence[Any],
    dims: Sequence[int | None],
    axis: Axis,
    trace: BatchTrace | None = None,
) -> tuple[list, list[int | None]]:
    """Return the results of a flat function mapped over `axis`, and the mapped axis of each.

    `trace` is a new trace under the current one, for a caller that applies rules differently.
    """
    trace = trace or BatchTrace(current.trace, axis)
    boxed = [x if d is None else BatchTracer(trace, x, d) for x, d in zip(args, dims, strict=True)]
    around = named_axes.get_local()
    try:
        try:
            if axis.name is not None:
                named_axes.set_local((*named_axes.value, axis))
            results = run_once(trace, fun, boxed, VMAP)
        finally:
            named_axes.set_local(around)
    finally:  # again, as in `run_once`
        named_axes.set_local(around)
    outs, out_dims = [], []
    for x in results:
        mine = type(x) is BatchTracer and x.owner is trace
        outs.append(x.value if mine else x)
        out_dims.append(x.dim if mine else None)
    if config.check_tracer_leaks:
        boxed = []
        results = []
        x = None
        check_leaks(trace, fun)
    return outs, out_dims


def batch_to_front(
    fun: Callable, args: Sequence[Any], dims: Sequence[int | None], axis: Axis
) -> list:
    """Do as `batch` does, with the mapped axis at the front of every result."""
    outs, out_dims = batch(fun, args, dims, axis)
    return [bring_to_front(y, d, axis.size) for y, d in zip(outs, out_dims, strict=True)]


def bring_to_front(y: Any, dim: int | None, size: int) -> Any:
    """A result with the mapped axis in front, repeated along one if it is not mapped."""
    aval = typeof(y)
    if aval.dtype == dtypes.float0:  # holds nothing, so there is nothing to move
        element = aval if dim is None else mapped_aval(aval, dim)
        return zeros(unmapped_aval(element, size, 0))
    return batched_at_front(y, dim, size)


@memo_jaxpr
def batch_jaxpr(
    jaxpr: Jaxpr, axis: Axis, dims: tuple[int | None, ...], force: tuple[bool, ...] | bool = False
) -> tuple[Jaxpr, list[int | None]]:
    """A closed jaxpr mapped over `axis`; mapped results have the axis in front.

    Also returned: 0 for each mapped result, None for the others; `force` makes results mapped.
    """
    out_dims: list[int | None] = []
    forced = force if isinstance(force, tuple) else (force,) * len(jaxpr.outvars)

    def fun(*args: Any) -> list:
        outs, found = batch(jaxpr, args, dims, axis)
        out_dims[:] = [
            None if d is None and not f else 0 for d, f in zip(found, forced, strict=True)
        ]
        ys = [
            y if o is None else bring_to_front(y, d, axis.size)
            for y, d, o in zip(outs, found, out_dims, strict=True)
        ]
        if axis.split is None:
            return ys
        of = lambda y: axis.split.stack(mapped_aval(typeof(y), 0), 0)
        return [y if o is None else lay_as(y, of(y)) for y, o in zip(ys, out_dims, strict=True)]

    avals = [
        a if d is None else unmapped_aval(a, axis.size, d, axis.split)
        for a, d in zip(jaxpr.in_avals, dims, strict=True)
    ]
    return stage_whole(fun, avals, jaxpr.name), out_dims


def check_repeatable(op: str, jaxprs: Sequence[Jaxpr]) -> None:
    """Raise if programs that will run for every element have effects that must not be repeated."""
    for effect in (e for jaxpr in jaxprs for e in jaxpr.effects if not e.repeatable):
        raise NotImplementedError(
            f"{op}: under vmap with a mapped predicate, what is not chosen is computed too, and so "
            f"must have no effects; got {effect}. Hint: lax.map in place of vmap, or "
            "debug.callback."
        )


def unmapped_aval(aval: ShapedArray, size: int, dim: int, split: Any = None) -> ShapedArray:
    """The type of a stack of `size` values of this type along axis `dim`; `split` as in `Axis`."""
    shape = (*aval.shape[:dim], size, *aval.shape[dim:])
    if split is not None:
        return aval.update(shape=shape, sharded=split.stack(aval, dim))
    return aval.update(shape=shape, sharded=aval.sharded and aval.sharded.with_axis(dim))
