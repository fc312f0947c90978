"""Find the elements of the operands that an operation reads for each element of a result.

The answer follows from the `element` rule of the primitive (core/element.py). An expression for one
element is evaluated for all elements at once: a place on an axis is an array of integers, one for
each element of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from weft.core.aval import ShapedArray
from weft.core.element import (
    Apply,
    Integer,
    Number,
    Operator,
    Place,
    Read,
    Reduce,
    Select,
    count_terms,
    walk,
)
from weft.core.facts import Linearity

# Pairs of a result's element and an operand's element that are in memory at a time, about 100 MB.
MAX_PAIRS = 1 << 22

FUNCTIONS: dict[Operator, Callable] = {
    **{op: op.value[1] for op in Operator},
    Operator.AND: np.logical_and,
    Operator.SMALLER: np.minimum,
    Operator.LARGER: np.maximum,
}


class Source(NamedTuple):
    """An operand: its type, and if it depends on inputs that are followed.

    `compute` returns its value; it is None if the value is not known before the program runs.
    """

    aval: ShapedArray
    compute: Callable[[], np.ndarray] | None
    moves: bool


class Grid(NamedTuple):
    """Elements of a result: their numbers, and the integers that the places stand for there."""

    rows: np.ndarray
    places: Mapping[Place, np.ndarray]

    def take(self, chosen: np.ndarray) -> Grid:
        """Return the grid with some of the elements, in the order given."""
        return Grid(self.rows[chosen], {k: v[chosen] for k, v in self.places.items()})


def find_reads(
    places: Sequence[Place], expression: Any, shape: Sequence[int], sources: Sequence[Source]
) -> list[scipy.sparse.csr_array | None]:
    """Return the elements of each operand that the elements of a result are made of.

    Args:
      places: the places of the result's axes in `expression`.
      expression: one element of the result.
      shape: the shape of the result.
      sources: the operands.

    Returns:
      For each operand that moves, a boolean matrix with a row for each element of the result and a
      column for each element of the operand, both in C order; None for the other operands. An
      element that is multiplied by a known zero is left out. Where an index is not known, all
      elements along its axis are taken.
    """
    count = math.prod(shape)
    found: list[list] = [[] for _ in sources]
    step = max(1, MAX_PAIRS // max(1, count_terms(expression)))
    for start in range(0, count, step):
        rows = np.arange(start, min(count, start + step))
        at = np.unravel_index(rows, shape) if shape else ()
        grid = Grid(rows, dict(zip(places, at, strict=True)))
        for operand, of, columns in read_elements(expression, grid, sources):
            found[operand].append((of, columns))
    return [
        make_matrix(pairs, (count, source.aval.size)) if source.moves else None
        for pairs, source in zip(found, sources, strict=True)
    ]


def make_matrix(pairs: Sequence[tuple], shape: tuple[int, int]) -> scipy.sparse.csr_array:
    """Return the boolean matrix that is True at the given pairs of rows and columns."""
    rows = np.concatenate([np.zeros(0, np.int64), *[r for r, _ in pairs]])
    columns = np.concatenate([np.zeros(0, np.int64), *[c for _, c in pairs]])
    return scipy.sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)


def read_elements(
    expression: Any, grid: Grid, sources: Sequence[Source]
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield operands that move, with elements of the result and the elements that they read."""
    if not len(grid.rows):
        return
    match expression:
        case Read():
            if sources[expression.operand].moves:
                yield expression.operand, *locate(expression, grid, sources)
        case Apply():
            yield from read_arguments(expression, grid, sources)
        case Select():
            condition = evaluate(expression.condition, grid, sources)
            if condition is None:
                yield from read_elements(expression.yes, grid, sources)
                yield from read_elements(expression.no, grid, sources)
            else:
                holds = np.broadcast_to(condition, grid.rows.shape).astype(bool)
                yield from read_elements(expression.yes, grid.take(np.flatnonzero(holds)), sources)
                yield from read_elements(expression.no, grid.take(np.flatnonzero(~holds)), sources)
        case Reduce():
            yield from read_elements(expression.start, grid, sources)
            yield from read_elements(
                expression.body, spread_terms(expression, grid, sources), sources
            )


def read_arguments(
    expression: Apply, grid: Grid, sources: Sequence[Source]
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield what a primitive applied to values reads, without products with a known zero."""
    if len(expression.args) > 1 and is_product(expression):
        for factor in expression.args:
            reads = [node for node in walk(factor) if type(node) is Read]
            if any(sources[node.operand].moves for node in reads):
                continue
            value = evaluate(factor, grid, sources)
            if value is not None:
                grid = grid.take(np.flatnonzero(np.broadcast_to(value, grid.rows.shape) != 0))
    for argument in expression.args:
        yield from read_elements(argument, grid, sources)


def is_product(expression: Apply) -> bool:
    """Return True if an operation on scalars is linear in each operand, the others fixed."""
    avals = [ShapedArray((), np.dtype(np.float32))] * len(expression.args)
    labels = expression.primitive.label_axes(avals, avals[:1], **expression.params)
    return labels is not None and labels.linear is Linearity.EACH


def spread_terms(expression: Reduce, grid: Grid, sources: Sequence[Source]) -> Grid:
    """Return the grid of all terms of a reduction: elements of the result times places."""
    if not expression.sizes:
        return grid
    sizes = [evaluate(n, grid, sources) for n in expression.sizes]
    if any(n is None for n in sizes):
        raise NotImplementedError("element: the number of terms must not depend on values.")
    most = [int(np.max(n)) for n in sizes]
    terms = math.prod(most)
    wide = grid.take(np.repeat(np.arange(len(grid.rows)), terms))
    inside = np.ones(len(wide.rows), bool)
    added = {}
    for place, n, at in zip(
        expression.places, sizes, np.unravel_index(np.arange(terms), most), strict=True
    ):
        added[place] = np.tile(at, len(grid.rows))
        if np.ndim(n):
            inside &= added[place] < np.repeat(n, terms)
    wide = Grid(wide.rows, {**wide.places, **added})
    return wide if inside.all() else wide.take(np.flatnonzero(inside))


def locate(
    expression: Read, grid: Grid, sources: Sequence[Source]
) -> tuple[np.ndarray, np.ndarray]:
    """Return elements of the result and the numbers of the elements of the operand they read.

    An index that is not known stands for all along its axis.
    """
    shape = sources[expression.operand].aval.shape
    rows, columns = grid.rows, np.zeros(len(grid.rows), np.int64)
    inside = np.ones(len(rows), bool)
    unknown = []
    stride = math.prod(shape)
    for index, size in zip(expression.index, shape, strict=True):
        stride //= max(1, size)
        at = evaluate(index, grid, sources)
        if at is None:
            unknown.append((size, stride))
        else:
            inside &= (at >= 0) & (at < size)
            columns = columns + at * stride
    if not inside.all():
        rows, columns = rows[inside], columns[inside]
    for size, stride in unknown:
        rows = np.repeat(rows, size)
        columns = (columns[:, None] + stride * np.arange(size)).reshape(-1)
    return rows, columns


def evaluate(expression: Any, grid: Grid, sources: Sequence[Source]) -> Any:
    """Return the value of an expression for each element of a grid, None if it is not known."""
    match expression:
        case Place():
            return grid.places[expression]
        case Integer():
            left = evaluate(expression.left, grid, sources)
            right = evaluate(expression.right, grid, sources)
            if left is None or right is None:
                return None
            return FUNCTIONS[expression.operator](exactly(left), exactly(right))
        case Read():
            compute = sources[expression.operand].compute
            if compute is None:
                return None
            index = [evaluate(i, grid, sources) for i in expression.index]
            if any(i is None for i in index):
                return None
            x = compute()
            if not x.ndim:
                return x
            # Out of bounds is a number that a condition around it throws away.
            within = [np.clip(i, 0, max(0, n - 1)) for i, n in zip(index, x.shape, strict=True)]
            return x[tuple(within)] if x.size else None
        case Number():
            value = evaluate(expression.value, grid, sources)
            return None if value is None else np.asarray(value, expression.dtype)
        case Apply():
            args = [evaluate(x, grid, sources) for x in expression.args]
            if any(x is None for x in args):
                return None
            shape = np.broadcast_shapes(*[np.shape(x) for x in args])
            args = [np.broadcast_to(np.asarray(x), shape) for x in args]
            return np.asarray(expression.primitive.apply(*args, **expression.params)[0])
        case Select():
            parts = (expression.condition, expression.yes, expression.no)
            condition, yes, no = [evaluate(x, grid, sources) for x in parts]
            known = condition is not None and yes is not None and no is not None
            return np.where(condition, yes, no) if known else None
        case Reduce():
            return None
    return expression


def exactly(x: Any) -> Any:
    """Return integers as 64-bit integers, so that indices do not overflow; bools stay unchanged."""
    x = np.asarray(x)
    return x if x.dtype == bool else x.astype(np.int64)
