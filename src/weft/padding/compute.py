"""Compute the results of an operation from its `element` rule, with sizes known at run time.

Some operations read elements from other indices if arrays are padded. Examples are a concatenation,
a reversal, and a gather that counts from the end. Each read of the `element` rule becomes a slice,
a `take` or a gather.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import weft.lax as lax
import weft.numpy as jnp
from weft.core.aval import ShapedArray, typeof
from weft.core.element import (
    Apply,
    Expression,
    Integer,
    Number,
    Operator,
    Place,
    Read,
    Reduce,
    Select,
    walk,
)
from weft.core.jaxpr import Eqn
from weft.errors import ShapeError
from weft.export.dims import Dim
from weft.padding.sizes import FAR, FUNCTIONS, INDEX, Sizes, find_range, refusal
from weft.primitives.elementwise import div, rem
from weft.primitives.layout import convert, reduce_sum

# Operations that round toward 0. They equal those that round down if no operand is negative.
TOWARD_ZERO = {Operator.DIVIDE: div, Operator.REMAINDER: rem}
MAX_TERMS = 2**26  # terms of a reduction in memory, about 256 MB of float32


class Evaluation:
    """Evaluates expressions of an `element` rule for all elements of a result at once.

    A place stands for an index of the result, and each place has an axis of its own. The value of
    an expression is an array with an axis for each place: of the result's size, or of size 1 if the
    value does not depend on the place. Values that depend on no place may be scalars.
    """

    def __init__(self, eqn: Eqn, sizes: Sizes, operands: Sequence[Any], places: dict[Place, int]):
        self.eqn = eqn
        self.sizes = sizes
        self.operands = operands
        self.places = places  # the size of the axis of each place, in order
        self.axes = {p: i for i, p in enumerate(places)}

    def evaluate(self, x: Any) -> Any:
        """Return the value of an expression at all places."""
        match x:
            case Dim():
                return self.sizes.value(x)
            case Place():
                shape = [1] * len(self.places)
                shape[self.axes[x]] = self.places[x]
                return self.sizes.count_places(shape, self.axes[x])
            case Integer():
                left, right = self.integer(x.left), self.integer(x.right)
                if is_known(left) and is_known(right):
                    found = x.operator.value[1](int(left), int(right))
                    return np.asarray(found, bool if type(found) is bool else INDEX)
                if x.operator in TOWARD_ZERO and self.is_positive(x):
                    return TOWARD_ZERO[x.operator](*self.spread(left, right))
                return FUNCTIONS[x.operator](*self.align(left, right))
            case Number():
                if isinstance(x.value, Expression | Dim):
                    return convert(self.integer(x.value), x.dtype)
                return np.asarray(x.value, x.dtype)
            case Apply():
                args = self.spread(*[self.evaluate(a) for a in x.args])
                return x.primitive.apply(*args, **x.params)[0]
            case Select():
                parts = [self.evaluate(p) for p in x.parts]
                return lax.select(*self.spread(*parts))
            case Read():
                return self.read(x)
            case Reduce():
                return self.reduce(x)
        return np.int32(x)

    def integer(self, x: Any) -> Any:
        """Return the value of an expression that is an index, or a condition."""
        found = self.evaluate(x)
        dtype = typeof(found).dtype
        if dtype in (np.dtype(bool), INDEX):
            return found
        if dtype.itemsize >= 4:  # clip to int32; out of bounds stays out of bounds
            top = np.asarray(FAR, dtype)
            found = jnp.minimum(found, top)
            found = found if dtype.kind == "u" else jnp.maximum(found, -top)
        return convert(found, INDEX)

    def is_positive(self, x: Integer) -> bool:
        """Return True if the left operand is known to be at least 0, and the right one 1."""
        try:
            low, high = [find_range(y, self.sizes.buckets, self.places) for y in (x.left, x.right)]
        except ShapeError:  # an operand depends on values of arrays
            return False
        return low[0] >= 0 and high[0] > 0

    def align(self, *xs: Any) -> list:
        """Return values with one axis for each place, or as scalars if all are."""
        ranks = {typeof(x).ndim for x in xs}
        if len(ranks) == 1:
            return list(xs)
        rank = len(self.places)
        return [jnp.reshape(x, (1,) * rank) if typeof(x).ndim == 0 else x for x in xs]

    def spread(self, *xs: Any) -> list:
        """Return values of equal shapes."""
        return list(jnp.broadcast_arrays(*self.align(*xs)))

    # -- reads ---------------------------------------------------------------------------------

    def read(self, x: Read) -> Any:
        """Return elements of an operand. Elements at indices out of bounds may be anything."""
        operand = self.operands[x.operand]
        shape = typeof(operand).shape
        if not shape:
            return operand
        if 0 in shape:
            return jnp.zeros((), typeof(operand).dtype)
        needed = [sorted({p for p in walk(i) if type(p) is Place}, key=id) for i in x.index]
        every = [p for row in needed for p in row]
        if all(len(row) < 2 for row in needed) and len(every) == len(set(every)):
            return self.read_along_axes(operand, x.index, needed)
        rank = len(self.places)
        at = []
        for index, n in zip(x.index, shape, strict=True):
            found = jnp.clip(self.integer(index), 0, n - 1)
            at.append(jnp.reshape(found, (1,) * rank) if typeof(found).ndim == 0 else found)
        places = jnp.asarray(operand).at[tuple(at)]
        return places.get(mode="promise_in_bounds", wrap_negative_indices=False)

    def read_along_axes(self, operand: Any, indices: Sequence[Any], needed: Sequence[list]) -> Any:
        """Return elements of an operand, for indices that depend on at most one place each."""
        kept, order = [], []
        for axis, (index, row) in enumerate(zip(indices, needed, strict=True)):
            n = typeof(operand).shape[axis]
            size = self.places[row[0]] if row else 1
            at = None if type(index) is Place else self.integer(index)
            if at is None:
                operand = fit_axis(operand, axis, size)
            elif is_known(at):
                at = min(max(int(at), 0), n - 1)
                operand = lax.slice_in_dim(operand, at, at + 1, axis=axis)
            elif typeof(at).ndim == 0:
                operand = lax.dynamic_slice_in_dim(operand, at, 1, axis)  # clips the index
            else:
                at = jnp.clip(jnp.reshape(at, (-1,)), 0, n - 1)
                operand = jnp.take(operand, at, axis=axis, mode="clip")
            if row:
                kept.append(size)
                order.append(self.axes[row[0]])
        operand = jnp.reshape(operand, kept)
        operand = jnp.transpose(operand, np.argsort(order).tolist()) if order else operand
        shape = [1] * len(self.places)
        for size, axis in zip(kept, order, strict=True):
            shape[axis] = size
        return jnp.reshape(operand, shape)

    # -- reductions ----------------------------------------------------------------------------

    def reduce(self, x: Reduce) -> Any:
        """Return the result of a reduction over the true sizes."""
        more = dict(self.places)
        for place, n in zip(x.places, x.sizes, strict=True):
            more[place] = max(0, find_range(n, self.sizes.buckets, self.places)[1])
        if np.prod([float(n) for n in more.values()]) > MAX_TERMS:
            raise refusal(self.eqn, "needs more memory than there is if sizes vary")
        inner = Evaluation(self.eqn, self.sizes, self.operands, more)
        start = self.evaluate(x.start)
        inside: Any = True
        for place, n in zip(x.places, x.sizes, strict=True):
            if type(n) is not int:
                holds = inner.evaluate(place < n)
                inside = holds if inside is True else jnp.logical_and(inside, holds)
        body = inner.evaluate(x.body)
        if inside is not True:
            body = lax.select(*inner.spread(inside, body, inner.lift(start)))
        body = jnp.broadcast_to(
            inner.align(body, np.zeros((1,) * len(more)))[0], tuple(more.values())
        )
        axes = tuple(range(len(self.places), len(more)))
        if x.combine is None:
            return reduce_sum(body, axes)
        combine = lambda a, b: x.combine.apply(a, b)[0]
        if typeof(start).ndim:
            raise refusal(self.eqn, "must start from a number")
        return lax.reduce(body, start, combine, axes)

    def lift(self, x: Any) -> Any:
        """Return a value of the outer evaluation with an axis for each place of this one."""
        missing = len(self.places) - typeof(x).ndim
        return x if typeof(x).ndim == 0 else jnp.reshape(x, (*typeof(x).shape, *[1] * missing))


def is_known(x: Any) -> bool:
    """Return True if an integer is known when the program is made."""
    return isinstance(x, np.generic | np.ndarray | int)


def fit_axis(x: Any, axis: int, size: int) -> Any:
    """Return an array with an axis sliced, or padded with zeros, to a size."""
    n = typeof(x).shape[axis]
    if n > size:
        return lax.slice_in_dim(x, 0, size, axis=axis)
    if n < size:
        shape = list(typeof(x).shape)
        shape[axis] = size - n
        return jnp.concatenate([x, jnp.zeros(shape, typeof(x).dtype)], axis)
    return x


def compute_elements(
    eqn: Eqn, sizes: Sizes, operands: Sequence[Any], rules: Sequence[tuple[Sequence[Place], Any]]
) -> list:
    """Return the padded results of an equation, from its `element` rule at symbolic types."""
    outs = []
    for (places, expression), v in zip(rules, eqn.outvars, strict=True):
        aval: ShapedArray = sizes.pad_type(v.aval)
        run = Evaluation(eqn, sizes, operands, dict(zip(places, aval.shape, strict=True)))
        found = run.evaluate(expression)
        if typeof(found).ndim == 0 and aval.ndim:
            found = jnp.reshape(found, (1,) * aval.ndim)
        found = jnp.broadcast_to(found, aval.shape)
        outs.append(found if typeof(found).dtype == aval.dtype else convert(found, aval.dtype))
    return outs
