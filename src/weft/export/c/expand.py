"""Expand a program into few kinds of operations: those with an `element` rule, and opaque ones.

A primitive without an `element` rule is what its `lower` writes. `PrimitiveRecorder` is a Builder
that keeps the operations of StableHLO as equations instead of text: an operation on each element as
`Written`, one that moves elements as the primitive with that rule, any other one as `Opaque`.
Calls are inlined; loops and branches become opaque operations that hold programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, python_scalar_aval, typeof
from weft.core.element import Apply
from weft.core.facts import Cost, Runs
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, bodies_of, last_uses
from weft.core.primitive import Primitive
from weft.core.source import inner_source, source_location
from weft.core.stage import stage, stage_closed
from weft.core.trace import current
from weft.export.c.kinds import has_kind
from weft.export.dims import Dim, Size, value_of_size
from weft.export.recorder import Recorder, Region, read_dims, read_numbers
from weft.export.solving import find_scope
from weft.export.specs import read_sizes
from weft.primitives import indexing, slicing
from weft.primitives.constant import Constant, write_consts
from weft.primitives.dynamic_slicing import DynamicUpdateSlice, dynamic_slice_p
from weft.primitives.elementwise import select_n_p
from weft.primitives.layout import (
    broadcast_in_dim_p,
    convert_element_type_p,
    iota_p,
    reshape_p,
    rev_p,
    transpose_p,
)
from weft.xla.hlo import Value

SIZES = re.compile(r"(?:array<i64: |dense<\[)([^>]*)")  # attributes that may have symbolic sizes


class NotInC(Exception):
    """An operation that C cannot compute by itself."""


class Written(Primitive):
    """An operation of StableHLO on each element: `operation`, with the texts of its attributes."""

    name = "written"
    cost = Cost.CHEAP

    def abstract_eval(self, *avals, operation, attrs, dtype):
        shape = next((a.shape for a in avals if a.shape), ())
        return [ShapedArray(shape, dtype)]

    def element(self, i, *operands, **params):
        return [Apply(self, tuple([x.at(i) for x in operands]), params)]

    def lower(self, hlo, *values, operation, attrs, dtype):
        out = ShapedArray(values[0].aval.shape, dtype)
        return hlo.op(operation, values, [out], **dict(attrs))


class Opaque(Primitive):
    """An operation that is not given element by element.

    Params:
      operation: the name of an operation of StableHLO, of a kernel, or "for", "while", "switch".
      attrs: the attributes, pairs of a name and a text or a number.
      outs: the types of the results.
      regions: the programs that it holds.
    """

    name = "opaque"
    memoize_type = False

    def abstract_eval(self, *avals, operation, attrs, outs, regions):
        return list(outs)


written_p, opaque_p = Written(), Opaque()


def apply_opaque(
    operation: str, args: Sequence[Any], outs: Sequence[Any], regions: Sequence = (), **attrs: Any
) -> list:
    """Apply an opaque operation under the current trace."""
    outs = tuple([a.strong() for a in outs])
    pairs = tuple(attrs.items())
    return opaque_p.apply(
        *args, operation=operation, attrs=pairs, outs=outs, regions=tuple(regions)
    )


def read_symbolic(text: Any, scope: Any) -> Any:
    """Return an attribute; as sizes if there are symbolic ones in it."""
    found = SIZES.match(str(text))
    if found is None or not re.search("[A-Za-z]", found[1]):
        return text
    return tuple(read_sizes(found[1].replace("[", "").replace("]", ""), scope))


class PrimitiveRecorder(Recorder):
    """Keeps what lowerings write as equations of the program that is being staged."""

    def __init__(self) -> None:
        super().__init__()
        self.tracers: dict[str, Any] = {}

    # --- values ---

    def hold(self, x: Any) -> Value:
        """Return the value that stands for a traced or a concrete array."""
        out = self.value(typeof(x))
        self.tracers[out.name] = x
        return out

    def find(self, values: Sequence[Value]) -> list:
        """Return the arrays that values stand for."""
        return [self.tracers[v.name] for v in values]

    def constant(self, value: Any, aval: ShapedArray) -> Value:
        """Return a constant."""
        if isinstance(value, Dim):
            return self.spread(self.convert(self.size_value(value), aval.dtype), aval)
        array = np.asarray(dtypes.cast_on_host(value, aval.dtype))
        if array.ndim == 0:
            out = self.hold(array[()])
            if aval.shape:
                return self.spread(out, aval)
            out.scalar = value if not isinstance(value, np.ndarray) else value[()]
            return out
        return self.hold(array)

    def size_value(self, size: Dim) -> Value:
        """Return a symbolic size as a scalar."""
        return self.hold(value_of_size(size))

    def shape_value(self, sizes: Sequence[Size]) -> Value:
        """Return sizes as a vector."""
        aval = python_scalar_aval(0)
        parts = [
            self.size_value(n) if isinstance(n, Dim) else self.constant(n, aval) for n in sizes
        ]
        return self.hold(slicing.concatenate([reshape(x, (1,)) for x in self.find(parts)], 0))

    def spread(self, x: Value, aval: ShapedArray) -> Value:
        """Return a scalar broadcast to a shape."""
        if x.aval.shape == aval.shape:
            return x
        (y,) = self.find([x])
        return self.hold(broadcast(y, aval.shape, ()))

    def convert(self, x: Value, dtype: np.dtype) -> Value:
        """Return a value in another dtype."""
        if x.aval.dtype == dtype:
            return x
        out = convert_element_type_p.apply(*self.find([x]), new_dtype=dtype, weak_type=False)
        return self.hold(out[0])

    # --- operations ---

    def op(self, name, /, operands, out_avals, regions=(), discardable=None, **attrs):
        """Record an operation."""
        xs = self.find(operands)
        name = name.removeprefix("stablehlo.")
        scope = find_scope([*out_avals, *[v.aval for v in operands]])
        if scope is not None:
            attrs = {k: read_symbolic(text, scope) for k, text in attrs.items()}
        move = MOVES.get(name)
        if move is not None:
            return [self.hold(move(xs, out_avals[0], attrs))]
        if name == "optimization_barrier":
            return list(operands)
        if name == "map":
            return self.write_map(operands, out_avals[0], regions[0])
        widths = {a.dtype.itemsize for a in (*out_avals, *[v.aval for v in operands])}
        opaque = name in OPAQUE or (name == "bitcast_convert" and len(widths) > 1)
        if name == "custom_call":
            name, opaque = attrs["call_target_name"].strip('"'), True
        if opaque:
            programs = [self.stage_region(r) for r in regions]
            return list(map(self.hold, apply_opaque(name, xs, out_avals, programs, **attrs)))
        if regions or len(out_avals) != 1 or name in COLLECTIVE:
            raise NotInC(name)
        known = {k: str(v) for k, v in attrs.items()}
        operation = name if name.startswith("chlo.") else "stablehlo." + name
        out = out_avals[0]
        args = [x if typeof(x).shape == out.shape else broadcast(x, out.shape, ()) for x in xs]
        params = dict(operation=operation, attrs=tuple(known.items()), dtype=out.dtype)
        return list(map(self.hold, written_p.apply(*args, **params)))

    def elementwise(self, name, operands, aval):
        """Record an operation on each element."""
        return self.op(name, operands, [aval])

    def write_region(self, region: Any, xs: Sequence[Any]) -> list:
        """Record the operations of a region on arrays; the results."""
        around, self.constants = self.constants, {}
        outs = self.find(region.write(*map(self.hold, xs)))
        self.constants = around
        return outs

    def stage_region(self, region: Any) -> Jaxpr:
        """Return a region as a program of its own."""
        return write_consts(*stage(lambda *xs: self.write_region(region, xs), region.avals))

    def write_map(self, operands, out, region):
        """Record a function of scalars on each element of arrays: an opaque one of scalars."""
        xs = [reshape(x, ()) for x in self.find(operands)]
        (y,) = self.write_region(region, xs)
        return [self.hold(reshape(y, out.shape))]

    def while_loop(self, values, condition, body, ordered=False):
        """Record a loop."""
        avals = [v.aval for v in values]
        if ordered:
            raise NotInC("a loop with effects")
        programs, given = [], []
        for write in (condition, body):
            write_now = lambda *xs, w=write: self.write_region(Region(avals, w), xs)
            jaxpr, consts = stage_closed(write_now, avals)
            programs.append(jaxpr)
            given.append(consts)
        args = [*given[0], *given[1], *self.find(values)]
        counts = len(given[0]), len(given[1])
        return list(map(self.hold, apply_opaque("while", args, avals, programs, counts=counts)))

    def case(self, index, branches, out_avals, ordered=False):
        """Record a choice between branches."""
        if ordered:
            raise NotInC("a branch with effects")
        programs, consts = [], []
        for branch in branches:
            write_now = lambda b=branch: self.write_region(Region([], b), [])
            jaxpr, given = stage(write_now, [])
            programs.append(jaxpr)
            consts.append(given)
        every = [x for xs in consts for x in xs]
        closed, start = [], 0
        for jaxpr, xs in zip(programs, consts, strict=True):
            shared = [Var(typeof(x)) for x in every]
            shared[start : start + len(xs)] = jaxpr.constvars
            closed.append(jaxpr.replace(constvars=[], invars=shared))
            start += len(xs)
        args = [*self.find([index]), *every]
        return list(map(self.hold, apply_opaque("switch", args, out_avals, closed)))

    def host_call(self, function, operands, out_avals, effect=None):
        """Refuse a call of Python."""
        raise NotInC("a call of Python")


def broadcast(x: Any, shape: Sequence[int], dims: Sequence[int]) -> Any:
    """Return an array repeated to a shape."""
    params = dict(shape=tuple(shape), broadcast_dimensions=tuple(dims), sharding=None)
    return broadcast_in_dim_p.apply(x, **params)[0]


def reshape(x: Any, shape: Sequence[int]) -> Any:
    """Return an array under another shape."""
    return reshape_p.apply(x, new_sizes=tuple(shape), dimensions=None, sharding=None)[0]


def gather(xs: Sequence[Any], out: ShapedArray, attrs: dict) -> Any:
    """Return windows of an array; indices are clipped, as StableHLO clips them."""
    dims = read_dims(attrs["dimension_numbers"])
    pick = lambda name: dims.get(name, ())
    numbers = indexing.GatherDimensionNumbers(
        offset_dims=pick("offset_dims"),
        collapsed_slice_dims=pick("collapsed_slice_dims"),
        start_index_map=pick("start_index_map"),
        operand_batching_dims=pick("operand_batching_dims"),
        start_indices_batching_dims=pick("start_indices_batching_dims"),
    )
    sizes = read_numbers(attrs["slice_sizes"])
    return indexing.gather(*xs, numbers, sizes, mode=indexing.GatherScatterMode.CLIP)


def pad(xs: Sequence[Any], out: ShapedArray, attrs: dict) -> Any:
    """Return a padded array."""
    names = "edge_padding_low", "edge_padding_high", "interior_padding"
    rows = [read_numbers(attrs[name]) for name in names]
    return slicing.pad(*xs, list(zip(*rows, strict=True)))


def slice_array(xs: Sequence[Any], out: ShapedArray, attrs: dict) -> Any:
    """Return a part of an array."""
    names = "start_indices", "limit_indices", "strides"
    return slicing.slice(*xs, *[read_numbers(attrs[name]) for name in names])


def select(xs: Sequence[Any], out: ShapedArray, attrs: dict) -> Any:
    """Return the elements of one array or of another."""
    mask, yes, no = xs
    return select_n_p.apply(mask, no, yes)[0]


# Operations of StableHLO that are primitives with an `element` rule, by their names.
MOVES: dict[str, Callable[[Sequence[Any], ShapedArray, dict], Any]] = {
    "broadcast_in_dim": lambda xs, out, attrs: broadcast(
        xs[0], out.shape, read_numbers(attrs["broadcast_dimensions"])
    ),
    "reshape": lambda xs, out, attrs: reshape(xs[0], out.shape),
    "transpose": lambda xs, out, attrs: transpose_p.apply(
        xs[0], permutation=read_numbers(attrs["permutation"])
    )[0],
    "reverse": lambda xs, out, attrs: rev_p.apply(
        xs[0], dimensions=read_numbers(attrs["dimensions"])
    )[0],
    "concatenate": lambda xs, out, attrs: slicing.concatenate(
        xs, read_numbers(attrs["dimension"])[0]
    ),
    "iota": lambda xs, out, attrs: iota_p.apply(
        dtype=out.dtype, shape=out.shape, dimension=read_numbers(attrs["iota_dimension"])[0],
        sharding=None,
    )[0],
    "dynamic_slice": lambda xs, out, attrs: dynamic_slice_p.apply(*xs, slice_sizes=out.shape)[0],
    "gather": gather, "pad": pad, "slice": slice_array, "select": select,
}  # fmt: skip

OPAQUE = frozenset(
    """dynamic_update_slice reduce reduce_window select_and_scatter sort scatter fft
    rng_bit_generator chlo.top_k""".split()  # noqa: SIM905
)
COLLECTIVE = frozenset(
    """all_reduce all_gather all_to_all collective_permute reduce_scatter partition_id
    rng""".split()  # noqa: SIM905
)


# --- programs ---------------------------------------------------------------------------------


def expand_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """Return the closed program that does the same by few kinds of operations."""
    return write_consts(*stage(lambda *xs: expand(jaxpr, xs), jaxpr.in_avals, jaxpr.name))


def expand(jaxpr: Jaxpr, args: Sequence[Any]) -> list:
    """Apply a closed program, by few kinds of operations, under the current trace."""
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    around = current.source
    try:
        for eqn, dead in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
            ins = [a.read() if type(a) is Literal else env[a] for a in eqn.invars]
            current.source = source = inner_source(eqn.source) or around
            try:
                outs = expand_equation(eqn, ins)
            except NotInC as error:
                refuse(eqn, source, error)
            env.update(zip(eqn.outvars, outs, strict=True))
            for v in dead:
                del env[v]
    finally:
        current.source = around
    return [a.read() if type(a) is Literal else env[a] for a in jaxpr.outvars]


def refuse(eqn: Eqn, source: Any, why: Exception) -> NoReturn:
    """Raise the error for an equation that C cannot compute."""
    name = eqn.params.get("operation", eqn.primitive.name)
    within = f" ({why})" if str(why) not in ("", name) else ""
    where = source_location(source)
    raise NotImplementedError(
        f"to_c: a program must be of operations that C can compute by itself; got {name}{within}"
        f"{f' at {where}' if where else ''}. Hint: compute it outside, and pass the result as an "
        "argument."
    ) from None


def expand_equation(eqn: Eqn, ins: Sequence[Any]) -> list:
    """Return the results of an equation, by few kinds of operations."""
    prim, params = eqn.primitive, eqn.params
    for v in (*eqn.invars, *eqn.outvars):
        if not has_kind(v.aval.dtype):
            raise NotInC(str(v.aval))
    if prim.effect is not None:
        raise NotInC("an effect")
    if prim.element is not None and not isinstance(prim, DynamicUpdateSlice):
        return prim.apply(*ins, **params)
    if isinstance(prim, Constant | Opaque):
        return prim.apply(*ins, **params)
    bodies = bodies_of(eqn)
    if bodies and bodies[0].jaxpr is not None:
        body = bodies[0]
        if body.runs in (Runs.ONCE, Runs.AGAIN):
            return expand(body.jaxpr, [ins[k] for k in body.operands])
        if body.runs is Runs.BRANCH:
            branches = [expand_jaxpr(b.jaxpr) for b in bodies]
            return apply_opaque("switch", ins, [v.aval for v in eqn.outvars], branches)
        if body.runs is Runs.LOOP:
            return expand_loop(eqn, bodies, ins)
    hlo = PrimitiveRecorder()
    try:
        outs = prim.lower(hlo, *map(hlo.hold, ins), **params)
    except NotImplementedError as error:
        raise NotInC(str(error).partition(":")[0]) from None
    return hlo.find(outs)


def expand_loop(eqn: Eqn, bodies: Sequence[Any], ins: Sequence[Any]) -> list:
    """Return the results of a loop, whose programs are of few kinds of operations."""
    body, outs = bodies[0], [v.aval for v in eqn.outvars]
    program = expand_jaxpr(body.jaxpr)
    args = [ins[k] for k in body.operands]
    if body.turns is not None:
        counts = body.carry.start, len(body.carry)
        trips = len(body.turns), body.turns.step < 0
        return apply_opaque("for", args, outs, [program], counts=counts, trips=trips)
    condition = next((b for b in bodies if b.runs is Runs.CONDITION), None)
    if condition is None and isinstance(eqn.params.get("length"), Dim):
        counts = body.carry.start, len(body.carry)
        trips = eqn.params["length"], eqn.params["reverse"]
        return apply_opaque("for", args, outs, [program], counts=counts, trips=trips)
    if condition is None:
        raise NotInC("a loop of unknown length")
    given = [ins[k] for k in condition.operands[: -len(body.carry) or None]]
    counts = len(given), body.carry.start
    programs = [expand_jaxpr(condition.jaxpr), program]
    return apply_opaque("while", [*given, *args], outs, programs, counts=counts)


def primitives_in(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """Iterate over the equations of an expanded program and of its nested programs."""
    for eqn in jaxpr.eqns:
        yield eqn
        for region in eqn.params.get("regions", ()):
            yield from primitives_in(region)
