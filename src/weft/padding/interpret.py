"""`pad_jaxpr`: turn a program with symbolic sizes into a program on padded arrays.

The padded program takes the true sizes as inputs. Each equation is computed by the first of these
methods that applies:

1. unchanged, if the equation has no symbolic size;
2. by a rule of its primitive (rules.py, matrices.py), or by running its nested programs;
3. by its primitive on padded arrays, if the `element` rule gives the same elements (match.py);
4. from its `element` rule, with the true sizes (compute.py).

If no method applies, an error is raised.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import weft.numpy as jnp
from weft.control.cond import Cond, cond_p
from weft.control.loop import Reversal, While, bind_reversal, bind_while, merge_loops, split_parts
from weft.control.scan import Scan, bind_scan, count_groups
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Runs
from weft.core.jaxpr import Eqn, Jaxpr, Literal, bodies_of, last_uses, memo_jaxpr
from weft.core.source import inner_source
from weft.core.stage import stage
from weft.core.trace import current
from weft.export.dims import Dim, DimAsValue
from weft.nn.attention_parts import AttentionPart
from weft.numpy.members import FindMembers
from weft.numpy.ranks import SelectRanks
from weft.padding.elements import note_number, run_elements
from weft.padding.matrices import MATRIX_RULES
from weft.padding.rules import RULES
from weft.padding.sizes import INDEX, Sizes, choose_elements, is_symbolic, is_symbolic_eqn, refusal
from weft.primitives.constant import stage_whole, write_consts
from weft.primitives.layout import convert
from weft.primitives.sparse import SparseProduct

Buckets: TypeAlias = tuple[tuple[str, int], ...]


@memo_jaxpr
def pad_jaxpr(jaxpr: Jaxpr, buckets: Buckets, zeros: bool = False) -> Any:
    """Return the program on padded arrays.

    Args:
      jaxpr: a closed program. Its symbolic sizes are made of the variables in `buckets`.
      buckets: the name of each variable, with its size in memory.
      zeros: True if all padding of the inputs contains zeros. Else it may contain anything.

    Returns:
      A closed jaxpr. Its inputs are the true size of each variable, an int32 scalar, in the order
      of `buckets`, then the padded inputs of `jaxpr`. Its results are the padded results.

    Raises:
      ShapeError: an operation cannot be computed on padded arrays.
    """
    names = [name for name, _ in buckets]
    shapes = Sizes(dict(buckets), {})

    def run(*args: Any) -> list:
        sizes = Sizes(dict(buckets), dict(zip(names, args[: len(names)], strict=True)))
        given = args[len(names) :]
        for x, v in zip(given, jaxpr.invars if zeros else (), strict=zeros):
            sizes.note_zeros(x, v.aval)
        return run_padded(jaxpr, sizes, given)

    scalar = ShapedArray((), INDEX)
    avals = [scalar] * len(names) + [shapes.pad_type(a) for a in jaxpr.in_avals]
    return write_consts(*stage(run, avals, jaxpr.name))


def run_padded(jaxpr: Jaxpr, sizes: Sizes, args: Sequence[Any]) -> list:
    """Return the padded results of a program under the current trace."""
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    around = current.source
    read = lambda a: read_literal(a, sizes) if isinstance(a, Literal) else env[a]
    try:
        for eqn, dead in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
            current.source = inner_source(eqn.source)
            # A mask that some operation needs is used by later ones too, and computed once.
            outs = run_equation(eqn, sizes, [sizes.find_filled(read(a)) for a in eqn.invars])
            for v, y in zip(eqn.outvars, outs, strict=True):
                env[v] = check_result(eqn, sizes, v.aval, y)
            for v in dead:
                del env[v]
    finally:
        current.source = around
    return [make_strong(read(a), sizes.pad_type(a.aval)) for a in jaxpr.outvars]


def read_literal(atom: Literal, sizes: Sizes) -> Any:
    """Return the value of a literal."""
    return sizes.value(atom.val) if isinstance(atom.val, Dim) else atom.read()


def make_strong(x: Any, aval: ShapedArray) -> Any:
    """Return a value as a type that is not weak."""
    return x if typeof(x) is aval else convert(x, aval.dtype)


def check_result(eqn: Eqn, sizes: Sizes, aval: ShapedArray, y: Any) -> Any:
    """Return a result of an equation, after a check that it has the padded shape of its type."""
    if is_symbolic(aval) and typeof(y).shape != sizes.pad_type(aval).shape:
        raise refusal(eqn, f"the padded result must be {sizes.pad_type(aval)}, not {typeof(y)}")
    return y


def run_equation(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Return the padded results of an equation."""
    prim = eqn.primitive
    if not is_symbolic_eqn(eqn):
        outs = prim.apply(*ins, **eqn.params)
        note_number(eqn, sizes, ins, outs)
        return outs
    rule = find_rule(type(prim))
    if rule is not None:
        found = rule(eqn, sizes, ins)
        if found is not None:
            return found
    bodies = bodies_of(eqn)
    if any(b.on_each_device for b in bodies):
        raise refusal(eqn, "a program of each device of a mesh must have known sizes")
    if bodies and bodies[0].jaxpr is not None and bodies[0].runs in (Runs.ONCE, Runs.AGAIN):
        return run_padded(bodies[0].jaxpr, sizes, [ins[i] for i in bodies[0].operands])
    if prim.effect is not None:
        raise refusal(eqn, "an operation with a side effect must not depend on padded arrays")
    if prim.element is not None:
        return run_elements(eqn, sizes, ins)
    raise refusal(eqn, "has no rule for padded arrays")


def find_rule(kind: type) -> Callable | None:
    """Return the rule of a class of primitives, or of a base class; None if there is none."""
    for base in kind.__mro__:
        if base in ALL_RULES:
            return ALL_RULES[base]
    return None


# --- operations that are written as programs ---------------------------------------------------


def pad_decomposed(write: Callable) -> Callable:
    """Return a rule for a primitive that can be written as a program of other operations.

    `write(prim, params)` returns a function that computes the results from the operands.
    """

    def rule(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
        program = stage_whole(write(eqn.primitive, eqn.params), [a.aval for a in eqn.invars])
        return run_padded(program, sizes, ins)

    return rule


def pad_size(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Return a symbolic size as a number."""
    return [convert(sizes.value(eqn.params["dim"]), eqn.outvars[0].aval.dtype)]


# --- branches and loops -----------------------------------------------------------------------


def as_inputs(jaxpr: Jaxpr, sizes: Sizes, xs: Sequence[Any]) -> list:
    """Return values in the types of the inputs of a padded program."""
    return [make_strong(x, sizes.pad_type(a)) for x, a in zip(xs, jaxpr.in_avals, strict=True)]


def pad_cond(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Return the padded results of a conditional."""
    index, *args = ins
    branches = eqn.params["branches"]
    padded = tuple([pad_jaxpr(b, tuple(sizes.buckets.items())) for b in branches])
    given = as_inputs(branches[0], sizes, args)
    return cond_p.apply(index, *sizes.values.values(), *given, branches=padded)


def pad_while(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Return the padded results of a while loop with a padded carry."""
    cond, body, cond_consts, body_consts, carry = merge_loops(ins, eqn.params)
    buckets, values = tuple(sizes.buckets.items()), [*sizes.values.values()]
    cond_consts, carry = split_at(as_inputs(cond, sizes, [*cond_consts, *carry]), len(cond_consts))
    body_consts, _ = split_at(as_inputs(body, sizes, [*body_consts, *carry]), len(body_consts))
    return bind_while(
        pad_jaxpr(cond, buckets), pad_jaxpr(body, buckets), [*values, *cond_consts],
        [*values, *body_consts], carry, eqn.params,
    )  # fmt: skip


def split_at(xs: list, n: int) -> tuple[list, list]:
    """Return the first n elements of a list, and the others."""
    return xs[:n], xs[n:]


def pad_reversal(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Return the padded results of the derivative of a loop."""
    params, buckets, values = eqn.params, tuple(sizes.buckets.items()), [*sizes.values.values()]
    advance, pull = params["advance_jaxpr"], params["pull_jaxpr"]
    (count,), of_advance, of_pull, xs, ys = split_parts(ins, params, advance)
    given = as_inputs(advance, sizes, [*of_advance, *xs])
    of_advance, xs = split_at(given, len(of_advance))
    given = as_inputs(pull, sizes, [*of_pull, *xs, *ys])
    of_pull, ys = given[: len(of_pull)], given[len(of_pull) + len(xs) :]
    parts = [[*values, *of_advance], [*values, *of_pull], xs, ys]
    return bind_reversal(
        count, pad_jaxpr(advance, buckets), pad_jaxpr(pull, buckets), parts, params["checkpoints"]
    )


def pad_scan(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Return the padded results of a scan.

    If the length is symbolic, the loop runs to its bound. Iterations beyond the true length leave
    the carry unchanged, and their rows of the stacked results are padding.
    """
    params, jaxpr = eqn.params, eqn.params["jaxpr"]
    n, m = count_groups(params)
    buckets, values = tuple(sizes.buckets.items()), [*sizes.values.values()]
    length = params["length"]
    body = pad_jaxpr(jaxpr, buckets)
    rows = [sizes.pad_type(a) for a in jaxpr.in_avals]
    consts, carry = [
        [make_strong(x, a) for x, a in zip(xs, of, strict=True)]
        for xs, of in ((ins[:n], rows[:n]), (ins[n : n + m], rows[n : n + m]))
    ]
    xs = list(ins[n + m :])
    consts = [*values, *consts]
    if not isinstance(length, Dim):
        return bind_scan(body, consts, carry, xs, params)
    if jaxpr.effects:
        raise refusal(eqn, "a scan over a padded axis must have no side effect")

    def step(limit: Any, *args: Any) -> list:
        *given, place = args
        old = given[len(consts) : len(consts) + m]
        outs, goes_on = body(*given), jnp.less(place, limit)
        new = [choose_elements(goes_on, y, x) for y, x in zip(outs[:m], old, strict=True)]
        return [*new, *outs[m:]]

    scalar = ShapedArray((), INDEX)
    stepped = write_consts(*stage(step, [scalar, *body.in_avals, scalar], jaxpr.name))
    steps = sizes.count_places((sizes.bound(length),), 0)
    params = {**params, "length": sizes.bound(length)}
    return bind_scan(stepped, [sizes.value(length), *consts], carry, [*xs, steps], params)


ALL_RULES: dict[type, Callable] = {
    **RULES, **MATRIX_RULES, DimAsValue: pad_size,
    Cond: pad_cond, While: pad_while, Reversal: pad_reversal, Scan: pad_scan,
    FindMembers: pad_decomposed(lambda prim, params: prim.find_plainly),
    SelectRanks: pad_decomposed(lambda prim, params: prim.select_anywhere),
    SparseProduct: pad_decomposed(lambda prim, params: lambda *xs: [prim.compute(*xs, **params)]),
    AttentionPart: pad_decomposed(lambda prim, params: functools.partial(prim.plain, **params)),
}  # fmt: skip
