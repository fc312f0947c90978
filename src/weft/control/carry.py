"""Loops that carry values: the family of `scan` and `while`, and their bodies as rules need them.

The inputs of a body are consts, the carry, and rows of what the loop reads; its results the carry,
and what the loop stacks. Which of the carry moves, is mapped or is unknown follows from the body: a
mark on an input goes to the results that depend on it, and from the carry around the loop. All is
remembered on the body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import dtypes
from weft.control.call import Holder
from weft.core.jaxpr import Jaxpr, memo_jaxpr
from weft.core.primitive import Axis, mark_moving, tangents_of
from weft.core.trace import use
from weft.passes.dependence import find_dependences
from weft.primitives.layout import batched_at_front, instantiate
from weft.transforms.batch import batch_jaxpr
from weft.transforms.jet import SeriesRule, interleave_body, jet_jaxpr
from weft.transforms.jvp import jvp_jaxpr
from weft.transforms.linearize import split_jaxpr
from weft.util import select_masked


class Loop(Holder, SeriesRule):
    """A family: a body applied in turns to a carry."""

    def groups(self, xs: Sequence[Any], params: dict) -> tuple[list, list, list]:
        """One value for each group of a body's inputs: consts, carry and rows."""
        raise NotImplementedError

    def bind_body(
        self, args: Sequence[Any], body: Jaxpr, operands: Sequence[list], params: dict
    ) -> list:
        """Bind with another body, for these operands in groups.

        The carry grows: the original carry comes first, then the values that the loop condition
        does not read.
        """
        raise NotImplementedError

    def jvp(self, primals, tangents, **params):
        groups, dots = self.groups(primals, params), self.groups(tangents, params)
        sizes, moved = tuple(map(len, groups)), mark_moving([t for group in dots for t in group])
        body, moves, out_moved = jvp_loop(params[self.program], sizes, 1, moved)
        operands = [
            [*xs, *[instantiate(t) for t in select_masked(ts, mask)]]
            for xs, ts, mask in zip(groups, dots, cut_pieces(moves, sizes[:2]), strict=True)
        ]
        outs = self.bind_body(primals, body, operands, params)
        n, last = sizes[1], len(operands[1])
        m = last + len(out_moved) - n
        values = [*outs[:n], *outs[last:m]]
        return values, tangents_of(values, [*outs[n:last], *outs[m:]], out_moved)

    def run_series(self, trace, args, params):
        if trace.deferred:
            return None
        groups = self.groups(args, params)
        sizes = len(groups[0]), len(groups[1]), len(groups[2])
        marks = tuple([trace.owns(x) for group in groups for x in group])
        body, moves, out_moved = jet_loop(params[self.program], trace.order, sizes, marks)
        operands = [*map(trace.open_series, groups, cut_pieces(moves, sizes[:2]))]
        with use(trace.parent):
            values = [trace.split_terms(x)[0] for x in args]
            outs = self.bind_body(values, body, operands, params)
        n, last = sizes[1], len(operands[1])
        carry = trace.close_series(outs[:last], out_moved[:n])
        return [*carry, *trace.close_series(outs[last:], out_moved[n:])]


def cut_pieces(xs: Sequence[Any], sizes: Sequence[int]) -> list[Sequence[Any]]:
    """Split `xs` into pieces of the given sizes and a last piece with the rest."""
    out = []
    for size in sizes:
        out.append(xs[:size])
        xs = xs[size:]
    return [*out, xs]


def follow_carry(
    needs: Sequence[int], marked: Sequence[bool], first: int, count: int
) -> list[bool]:
    """Return the marked inputs of a body after marks have propagated around the loop.

    `needs` has, for each result, a bit mask of the inputs that mark it. The first `count` results
    are carried: they mark the inputs from `first` on.
    """
    bits = sum(1 << i for i, m in enumerate(marked) if m)
    before = -1
    while bits != before:
        before = bits
        for i in range(count):
            if needs[i] & bits:
                bits |= 1 << (first + i)
    return [bool(bits >> i & 1) for i in range(len(marked))]


def grow_carry(
    body: Jaxpr, first: int, count: int, marked: Sequence[bool], verb: Callable, mask: Callable
) -> tuple[Any, tuple[bool, ...]]:
    """Transform a body by `verb(marked, force)` until the marks of its carry stay the same.

    `force` marks results; `mask` reads the marks of the carried results from the transformed body.
    The first marks follow from the equations of the body; programs in it may add more.
    """
    marked = tuple(marked)
    while True:
        carry = marked[first : first + count]
        made = verb(marked, (*carry, *[False] * (len(body.outvars) - count)))
        found = tuple(mask(made))[:count]
        if found == carry:
            return made, marked
        marked = (*marked[:first], *found, *marked[first + count :])


@memo_jaxpr
def jvp_loop(
    body: Jaxpr, sizes: tuple[int, ...], carry: int, moved: tuple[bool, ...]
) -> tuple[Jaxpr, tuple[bool, ...], list[bool]]:
    """Return the derivative of a body, the marks of inputs that move, and the results' marks.

    Its inputs come in groups of `sizes`; the group number `carry` is carried. The derivative takes
    and returns each group, followed by the tangents of the values in it that move.
    """
    first, count = sum(sizes[:carry]), sizes[carry]
    verb, mask = lambda marks, force: jvp_jaxpr(body, marks, force), lambda made: made[1]
    guess = follow_carry(find_dependences(body, False), moved, first, count)
    inexact = [dtypes.is_inexact(a.dtype) for a in body.in_avals]
    guess = [g and x for g, x in zip(guess, inexact, strict=True)]
    made, moves = grow_carry(body, first, count, guess, verb, mask)
    # Values that depend on moving values only through functions without derivative do not move.
    dots = len(moves) + sum(moves[:first]), sum(moves[first : first + count])
    tangents = made[0].outvars[len(body.outvars) :][: dots[1]]
    needs = find_dependences(made[0].replace(outvars=tangents))
    marks = [*[False] * len(moves), *select_masked(moved, moves)]
    settled = iter(follow_carry(needs, marks, *dots)[dots[0] :])
    fewer = [
        m and (next(settled) if first <= i < first + count else True) for i, m in enumerate(moves)
    ]
    if fewer != list(moves):
        made, moves = grow_carry(body, first, count, fewer, verb, mask)
    return interleave_body(made, moves, sizes, count, 1)


@memo_jaxpr
def jet_loop(
    body: Jaxpr, order: int, sizes: tuple[int, int, int], moved: tuple[bool, ...]
) -> tuple[Jaxpr, tuple[bool, ...], list[bool]]:
    """Do as `jvp_loop` does, on power series with `order` more terms for each moving value."""
    verb = lambda marks, force: jet_jaxpr(body, order, marks, force)
    made, moved = grow_carry(body, sizes[0], sizes[1], moved, verb, lambda made: made[1])
    return interleave_body(made, moved, sizes, sizes[1], order)


@memo_jaxpr
def batch_loop(
    body: Jaxpr, first: int, count: int, axis: Axis, dims: tuple[int | None, ...]
) -> tuple[Jaxpr, tuple[bool, ...], list[int | None]]:
    """Return the body mapped over `axis`, the mapped part of the carry, and the results' axes.

    The carry is `count` inputs from `first` on; it is mapped in front. `dims` has all inputs' axes.
    """

    def mapped(marks: tuple[bool, ...], force: tuple[bool, ...]) -> tuple[Jaxpr, list]:
        fronts = [0 if m else None for m in marks[first : first + count]]
        return batch_jaxpr(body, axis, (*dims[:first], *fronts, *dims[first + count :]), force)

    is_mapped = [d is not None for d in dims]
    guess = follow_carry(find_dependences(body, False), is_mapped, first, count)
    mask = lambda made: [d is not None for d in made[1]]
    (jaxpr, out_dims), marks = grow_carry(body, first, count, guess, mapped, mask)
    return jaxpr, tuple(marks[first : first + count]), out_dims


@memo_jaxpr
def split_loop(
    body: Jaxpr, first: int, count: int, unknown: tuple[bool, ...]
) -> tuple[Jaxpr, Jaxpr, tuple[bool, ...], list[bool], list[int | None]]:
    """Do as `split_jaxpr` does, where unknown results of the carry are unknown operands too.

    The carry is `count` inputs from `first` on. The third result is which inputs are unknown.
    """
    guess = follow_carry(find_dependences(body, False), unknown, first, count)
    verb = lambda marks, force: split_jaxpr(body, marks, force)
    made, unknown = grow_carry(body, first, count, guess, verb, lambda made: made[2])
    early, late, out_unknown, sources = made
    return early, late, unknown, out_unknown, sources


def carry_in_front(
    xs: Sequence[Any], dims: Sequence[int | None], mapped: Sequence[bool], axis: Axis
) -> list:
    """Carried values, with the mapped axis in front where the body has it."""
    return [
        batched_at_front(x, d, axis.size) if m else x
        for x, d, m in zip(xs, dims, mapped, strict=True)
    ]
