"""The functions that control flow takes, staged: bodies, branches, conditions, rules.

In the layers below, a body is a closed jaxpr; its first parameters are the values that it closed
over. This file also checks carries and branches, and names the leaf that does not fit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.api.cache_misses import explain_function
from weft.api.functions import FlatFun, argument_origins, leaf_names
from weft.api.programs import is_live, programs_of
from weft.api.structures import call_structure, hide_leaves
from weft.control.cond import join_result_types
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Runs
from weft.core.jaxpr import Eqn, Jaxpr, Literal, held_jaxprs, memo_jaxpr
from weft.core.primitive import Body, Program, join_varying
from weft.core.source import inner_source
from weft.core.stage import close_jaxpr
from weft.core.trace import Tracer, current, is_eager
from weft.errors import DtypeError, PytreeError, ShapeError, ShardingTypeError
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import NO_NAMES, Sharded, entries_of
from weft.options import config, trace_context
from weft.passes.merge import find_staged
from weft.primitives.constant import stage_whole
from weft.primitives.layout import convert, literal
from weft.primitives.reshard import lay_as
from weft.primitives.varying import Varying, axes_of_varying
from weft.pytrees import PyTreeDef, find_mismatches, tree_map
from weft.transforms.batch import mapped_aval
from weft.util import fun_name
from weft.watch.leaks import stage_function
from weft.xla.array import put


class StagedBody(NamedTuple):
    """A staged function: `jaxpr` takes `consts` first, then the leaves of its arguments."""

    jaxpr: Jaxpr
    consts: list
    out_tree: PyTreeDef
    hides: bool = False  # results of float0, which are nodes of `out_tree`

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the leaves of the result."""
        return self.jaxpr.out_avals


def stage_body(
    op: str, fun: Callable, args_tree: PyTreeDef, in_avals: Sequence[ShapedArray]
) -> StagedBody:
    """Stage `fun`, called with the tuple of arguments that `args_tree` is the structure of.

    What a function was staged to is kept with it, unless it closes over traced values.
    """
    programs = programs_of(fun)
    key = ("body", op, args_tree, tuple(in_avals), trace_context())
    body = programs.get(key)
    if body is None or not all(map(is_live, body.consts)):
        if config.explain_cache_misses and not programs and is_eager():
            explain_function(fun)
        in_tree = call_structure(args_tree)
        flat = FlatFun(fun, in_tree, op, float0={})
        names = functools.partial(argument_origins, fun, in_tree, op)
        jaxpr, consts = stage_function(flat, in_avals, fun_name(fun), names)
        # Copy NumPy arrays: they may change later.
        consts = [put(c) if isinstance(c, np.ndarray) else c for c in consts]
        tree = hide_leaves(flat.out_tree, flat.hidden) if flat.hidden else flat.out_tree
        body = StagedBody(close_jaxpr(jaxpr), consts, tree, bool(flat.hidden))
        body = body if op not in LOOPS else enter_loop(op, body)
        if not any(isinstance(c, Tracer) for c in consts):
            programs.add(key, body)
    return body._replace(jaxpr=find_staged(body.jaxpr))


LOOPS = frozenset(("scan", "map", "while_loop", "fori_loop"))


def enter_loop(op: str, body: StagedBody) -> StagedBody:
    """Return the body of a loop; values that it closes over have the types of `types_in_loop`."""
    types_in_loop(op, body.out_avals)
    jaxpr, n = body.jaxpr, len(body.consts)
    avals = types_in_loop(op, jaxpr.in_avals)
    if avals == jaxpr.in_avals:
        return body
    jaxpr = stage_whole(jaxpr, avals, jaxpr.name)
    return body._replace(jaxpr=jaxpr, consts=cast_values(body.consts, avals[:n]))


def types_in_loop(op: str, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """The types of values in a loop: where some axes of the mesh are manual, reduced along none.

    There cotangents are added up in each step, for a loop cannot carry terms over the others.
    """
    found: list[ShapedArray] = []
    if not any(getattr(a, "sharded", None) for a in avals):
        return list(avals)
    for a in avals:
        lies = a.sharded
        names = set(lies.mesh.explicit_axes) if lies and lies.mesh.manual_axes else set()
        if lies is not None and names & lies.unreduced:
            raise ShardingTypeError(
                f"{op}: terms of a sum over a mesh must be added up outside of a loop, or within a "
                f"step; got {a}. Hint: weft.reshard(x, P(...)), without unreduced."
            )
        if lies is not None and names & lies.reduced:
            a = a.update(sharded=lies.update(reduced=lies.reduced - names))
        found.append(a)
    return found


def promote_carry(
    avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
) -> list[ShapedArray]:
    """Return the types that a carry must start with, given a body that returns `out_avals`.

    A weakly typed leaf, such as a Python number, takes the dtype that the body returns if that
    loses no information, and is strongly typed then; the others are unchanged. Weak types make no
    difference otherwise. A leaf that the body makes varying over a mesh, or reduced, may be so from
    the start.
    """
    out = []
    for a, b in zip(avals, out_avals, strict=True):
        if a.weak_type and a.dtype != b.dtype and a.shape == b.shape:
            dtype, _ = dtypes.promote(((a.dtype, True), (b.dtype, b.weak_type)))
            a = a.update(dtype=dtype, weak_type=a.weak_type and dtype == a.dtype)
        lies = None if a.sharded is b.sharded else b.sharded
        if lies is not None and entries_of(a) == entries_of(b) and not lies.mesh.manual_axes:
            terms, whole = (getattr(a.sharded, k, NO_NAMES) for k in ("unreduced", "reduced"))
            whole |= lies.reduced - terms
            a = a.update(sharded=Sharded.of(lies.mesh, lies.entries, terms, whole))
        out.append(a.update(varying=join_varying((a, b))) if b.varying is not a.varying else a)
    return out


def check_carry(
    op: str, fun: Callable, given: tuple[PyTreeDef, Sequence], returned: tuple[PyTreeDef, Sequence]
) -> None:
    """Raise unless a body returns a carry of the structure, shapes and dtypes that it is given."""
    (tree, avals), (out_tree, out_avals) = given, returned
    name = fun_name(fun)
    if tree != out_tree:
        first = next(find_mismatches(tree, out_tree), None)
        apart = (
            first.between("carry", f"the one that {name} returns") if first else (tree, out_tree)
        )
        raise PytreeError(f"{op}: the carry must keep its structure; got {apart}.")
    for leaf, a, b in zip(leaf_names("carry", tree), avals, out_avals, strict=True):
        got = f"got {a} at {leaf} and {b} for it from {name}."
        if a.shape != b.shape:
            raise ShapeError(f"{op}: the carry must keep its shapes; {got}")
        if a.dtype != b.dtype:
            up = dtypes.promote_types(a.dtype, b.dtype) == b.dtype
            fix = f"start with {leaf}.astype(jnp.{b.dtype.name})"
            if not up:
                fix = f"return it as .astype(jnp.{a.dtype.name})"
            raise DtypeError(f"{op}: the carry must keep its dtypes; {got} Hint: {fix}.")
        if a.sharded is not b.sharded:
            spec = PartitionSpec() if b.sharded is None else b.sharded.spec
            raise ShardingTypeError(
                f"{op}: the carry must keep its layout over the mesh; {got} Hint: start with "
                f"weft.reshard({leaf}, {spec})."
            )


def make_arrays(tree: Any) -> Any:
    """A pytree with arrays for numbers: what bodies are given that run without being staged."""
    return tree_map(lambda x: x if isinstance(x, Tracer) else put(x), tree)


def cast_values(xs: Sequence[Any], avals: Sequence[ShapedArray]) -> list:
    """Values converted to the given types where they do not have them."""
    return [x if typeof(x) is a else cast(x, a) for x, a in zip(xs, avals, strict=True)]


def cast(x: Any, aval: ShapedArray) -> Any:
    """A value as one of the given type, which has its shape."""
    if type(x) in (int, float, complex):
        x = literal(x, aval.dtype)
    elif typeof(x) is not aval:
        x = convert(x, aval.dtype, aval.weak_type)
    if aval.varying is not None and typeof(x).varying is not aval.varying:
        x = aval.varying.cast(current.trace, x)
    return lay_as(x, aval.sharded)


# How programs run that can be made to vary.
RUNS = (Runs.ONCE, Runs.AGAIN, Runs.BRANCH, Runs.LOOP)


@memo_jaxpr
def vary_jaxpr(jaxpr: Jaxpr, avals: tuple[ShapedArray, ...]) -> Jaxpr | None:
    """A program for operands that vary over more of a mesh; None where that cannot be.

    It cannot where it holds one that would have to, of a custom rule.
    What was made to vary within it, and varies from the start now, is left unchanged.
    """
    if list(avals) == jaxpr.in_avals:
        return jaxpr
    found = True

    def fun(*args: Any) -> list:
        nonlocal found
        env = dict(zip(jaxpr.invars, args, strict=True))
        read = lambda a: a.read() if type(a) is Literal else env[a]
        around = current.source
        try:
            for eqn in jaxpr.eqns:
                xs, params = list(map(read, eqn.invars)), eqn.params
                current.source = inner_source(eqn.source)
                pairs = zip(xs, eqn.invars, strict=True)
                if held_jaxprs(eqn) and not all(
                    type(a) is Literal or typeof(x) is a.aval for x, a in pairs
                ):
                    inner = vary_params(eqn, list(map(typeof, xs)))
                    found = found and inner is not None
                    if inner is not None:
                        params, types = inner
                        xs = cast_values(xs, types)
                more = eqn.primitive.refers(params).adds
                if more is not None and xs:
                    ys = [more.cast(current.trace, xs[0])]
                else:
                    ys = eqn.primitive.apply(*xs, **params)
                env.update(zip(eqn.outvars, ys, strict=True))
        finally:
            current.source = around
        return list(map(read, jaxpr.outvars))

    program = stage_whole(fun, avals, jaxpr.name)
    return program if found else None


def vary_params(eqn: Eqn, avals: list[ShapedArray]) -> tuple[dict, list] | None:
    """Return the parameters of an equation that holds programs for operands that vary.

    Also the types that the operands must have: a carried operand may have to vary more.
    """
    bodies = eqn.primitive.bodies(eqn.params)
    if any(b.runs is Runs.CONDITION and b.jaxpr is eqn.params.get(b.key) for b in bodies):
        return vary_while(eqn, bodies, avals)
    if any(b.runs not in RUNS or (b.runs is Runs.LOOP and b.turns is None) for b in bodies):
        return None
    (key,) = {b.key for b in bodies}
    carry = bodies[0].carry
    runs = bodies[0].runs
    if runs is Runs.BRANCH:  # the results vary as the choice does
        avals = [a.update(varying=join_varying((a, avals[0]))) for a in avals]
    while True:
        types = [avals[i] for i in bodies[0].operands]
        if runs is Runs.LOOP:
            types = [*types[: carry.stop], *[mapped_aval(a, 0) for a in types[carry.stop :]]]
        programs = [vary_jaxpr(b.jaxpr, tuple(types)) for b in bodies]
        if None in programs:
            return None
        outs = programs[0].out_avals
        more = promote_carry(types[carry.start : carry.stop], outs[: len(carry)])
        if more == types[carry.start : carry.stop]:
            break
        for i, aval in zip(carry, more, strict=True):
            avals[bodies[0].operands[i]] = aval
    if runs is Runs.BRANCH:
        outs = join_result_types([p.out_avals for p in programs], avals[0])
    programs = [cast_results(p, (*more, *outs[len(carry) :])) for p in programs]
    one = programs[0] if isinstance(eqn.params[key], Program) else tuple(programs)
    return {**eqn.params, key: one}, avals


def vary_while(
    eqn: Eqn, bodies: Sequence[Body], avals: list[ShapedArray]
) -> tuple[dict, list] | None:
    """Do as `vary_params` does, for a loop of unknown length: if one value varies more, all do."""
    names_of = lambda a: {*axes_of_varying(a.varying)}
    pairs = zip(avals, eqn.invars, strict=True)
    more = Varying.of(n for a, x in pairs for n in names_of(a) - names_of(x.aval))
    avals = [a.update(varying=more if a.varying is None else a.varying | more) for a in avals]
    programs = [vary_jaxpr(b.jaxpr, tuple(avals[i] for i in b.operands)) for b in bodies]
    if None in programs:
        return None
    places = bodies[0].operands[bodies[0].carry.start : bodies[0].carry.stop]
    programs[0] = cast_results(programs[0], tuple(avals[i] for i in places))
    return eqn.params | {b.key: p for b, p in zip(bodies, programs, strict=True)}, avals


@memo_jaxpr
def cast_results(jaxpr: Jaxpr, outs: tuple[ShapedArray, ...]) -> Jaxpr:
    """A program with results of these types, which vary over more of a mesh."""
    if jaxpr.out_avals == list(outs):
        return jaxpr
    return stage_whole(lambda *xs: cast_values(jaxpr(*xs), outs), jaxpr.in_avals, jaxpr.name)
