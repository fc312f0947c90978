"""Lines: the axes along which an operation can be computed slice by slice.

An operation has a line along an axis of its results if a slice of the results depends only on the
same slice of some operands and on all of the other operands. A line names the axis of each operand
and result. Lines are derived from the `element` rule of a primitive. Primitives without this rule,
or with sizes in their parameters, have a rule in this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.element import Apply, Expression, Number, Place, Read, Reduce, describe_elements
from weft.core.facts import Elements
from weft.core.form import Form
from weft.core.jaxpr import Eqn, bodies_of
from weft.core.trace import ensure_compile_time_eval
from weft.errors import HidingError, MissingRule
from weft.primitives import indexing
from weft.primitives.bits import BitcastConvertType
from weft.primitives.elementwise import add
from weft.primitives.fft import FFT
from weft.primitives.layout import BroadcastInDim, Iota, LeadingBatch, Reshape, convert
from weft.primitives.reduction import ArgExtremum
from weft.primitives.slicing import Slice
from weft.primitives.sort import Partition, Sort, TopK


class Total(NamedTuple):
    """A result that is combined from its values for all slices, such as a sum.

    `LAST` is the total of a result that is the same for all slices.

    Attributes:
      combine: a primitive of two operands; None stands for addition.
      start: the neutral element of `combine`.
    """

    combine: Any
    start: Any

    def join(self, x: Any, y: Any) -> Any:
        """Return the combination of the values for two groups of slices."""
        if self is LAST:
            return y
        return add(x, y) if self.combine is None else self.combine.apply(x, y)[0]


LAST = Total("last", 0)


def keep_params(eqn: Eqn, line: Line, size: int) -> dict:
    """Return the parameters of an operation unchanged: they do not depend on sizes."""
    return eqn.params


class Line(NamedTuple):
    """An axis along which an operation can be computed slice by slice.

    Attributes:
      operands: the axis of each operand; None if every slice reads all of it.
      results: the axis of each result, or a `Total`.
      adapt: a function that returns the parameters for slices of a given size.
      shift: `shift(outs, start)` corrects results that depend on the start of the slice. None if
        they do not.
      run: `run(eqn, ins, start, size)` computes a slice, if applying the primitive with adapted
        parameters does not. Otherwise None.
    """

    operands: tuple[int | None, ...]
    results: tuple[int | Total, ...]
    adapt: Callable[[Eqn, Line, int], dict] = keep_params
    shift: Callable[[list, Any], list] | None = None
    run: Callable[[Eqn, Sequence[Any], Any, int], list] | None = None

    def size_in(self, eqn: Eqn) -> int:
        """Return the size of the axis."""
        pairs = zip((*eqn.invars, *eqn.outvars), (*self.operands, *self.results), strict=True)
        return next(a.aval.shape[axis] for a, axis in pairs if type(axis) is int)

    def apply(self, eqn: Eqn, ins: Sequence[Any], start: Any, size: int) -> list:
        """Apply an operation to slices of `size` that begin at `start`."""
        if self.run is not None:
            return self.run(eqn, ins, start, size)
        outs = eqn.primitive.apply(*ins, **self.adapt(eqn, self, size))
        return outs if self.shift is None else self.shift(outs, start)


def find_lines(eqn: Eqn) -> list[Line]:
    """Return the lines of an operation."""
    prim = eqn.primitive
    if prim.effect is not None or bodies_of(eqn):
        return []
    rule = next((RULES[base] for base in type(prim).__mro__ if base in RULES), None)
    rule = rule or FORMS.get(prim.form)
    lines = read_lines(eqn, ADAPT.get(type(prim))) if rule is None else rule(eqn)
    return [line for line in lines if fits(eqn, line)]


def replace_at(xs: Sequence[int], at: int, x: int) -> tuple[int, ...]:
    """Return a tuple with the entry at a position replaced."""
    return (*xs[:at], x, *xs[at + 1 :])


def fits(eqn: Eqn, line: Line) -> bool:
    """Return True if the operation takes slices of size 2, and its results have that size."""
    ins = [slice_type(a.aval, axis, 2) for a, axis in zip(eqn.invars, line.operands, strict=True)]
    outs = [
        slice_type(v.aval, axis, 2) if type(axis) is int else v.aval
        for v, axis in zip(eqn.outvars, line.results, strict=True)
    ]
    try:
        found = eqn.primitive.type_of(tuple(ins), line.adapt(eqn, line, 2))
    except (HidingError, ValueError, TypeError):
        return False
    return [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in outs]


def slice_type(aval: ShapedArray, axis: int | None, size: int) -> ShapedArray:
    """Return the type of a slice along an axis."""
    return aval if axis is None else aval.update(shape=replace_at(aval.shape, axis, size))


# --- lines from the `element` rule -------------------------------------------------------------


class Survey:
    """The reads of an expression, and its loose places.

    A place is loose if it is used other than as the plain index of a read.
    """

    def __init__(self, expression: Any):
        self.reads: list[Read] = []
        self.loose: set[Place] = set()
        self._visit(expression)

    def _visit(self, x: Any) -> None:
        if isinstance(x, Place):
            self.loose.add(x)
        elif isinstance(x, Read):
            self.reads.append(x)
            for index in x.index:
                if not isinstance(index, Place):
                    self._visit(index)
        elif isinstance(x, Expression):
            for part in x.parts:
                self._visit(part)

    def follow(
        self, place: Place, size: int, avals: Sequence[ShapedArray]
    ) -> dict[int, int | None] | None:
        """Return, for each operand, the axis that a place indexes.

        The axis is None for an operand that the place does not index. The result is None if the
        expression is not independent along the place.
        """
        if place in self.loose:
            return None
        found: dict[int, int | None] = {}
        for read in self.reads:
            axes = [a for a, index in enumerate(read.index) if index is place]
            axis = axes[0] if axes else None
            if len(axes) > 1 or found.setdefault(read.operand, axis) != axis:
                return None
            if axis is not None and avals[read.operand].shape[axis] != size:
                return None
        return found


def read_lines(eqn: Eqn, adapt: Callable | None = None) -> list[Line]:
    """Return the lines that follow from the `element` rule of a primitive."""
    avals = [a.aval for a in eqn.invars]
    try:
        described = describe_elements(eqn.primitive, avals, eqn.params)
    except (HidingError, MissingRule, ValueError, TypeError):
        return []
    if not described:
        return []
    more = () if adapt is None else (adapt,)
    every = range(len(avals))
    surveys = [Survey(x) for _, x in described]
    lines = []
    (places, first), *others = described
    for axis, place in enumerate(places):
        size = eqn.outvars[0].aval.shape[axis]
        found = surveys[0].follow(place, size, avals)
        for n, (other, _) in enumerate(others, 1):
            same = axis < len(other) and eqn.outvars[n].aval.shape[axis] == size
            next_found = surveys[n].follow(other[axis], size, avals) if same else None
            if found is None or next_found is None or not agrees(found, next_found):
                found = None
                break
            found = {**found, **next_found}
        if found is not None:
            operands = tuple([found.get(k) for k in every])
            lines.append(Line(operands, (axis,) * len(described), *more))
    if len(described) == 1:
        lines += [
            Line(tuple([found.get(k) for k in every]), (total,), *more)
            for found, total in read_totals(first, surveys[0], avals)
        ]
    return lines


def agrees(found: dict[int, int | None], other: dict[int, int | None]) -> bool:
    """Return True if two results read the operands along the same axes."""
    return all(other[k] == axis for k, axis in found.items() if k in other)


def read_totals(
    expression: Any, survey: Survey, avals: Sequence[ShapedArray]
) -> list[tuple[dict[int, int | None], Total]]:
    """Return the reduced axes along which a reduction can be split, each with its `Total`."""
    while type(expression) is Apply and expression.primitive.elements is Elements.CONVERTED:
        (expression,) = expression.args
    if type(expression) is not Reduce:
        return []
    start = expression.start
    if type(start) is not Number or isinstance(start.value, Expression):
        return []
    number = np.asarray(start.value, start.dtype)
    if not is_neutral(expression.combine, number):
        return []
    found = []
    for place, size in zip(expression.places, expression.sizes, strict=True):
        axes = survey.follow(place, size, avals) if type(size) is int else None
        if axes and any(a is not None for a in axes.values()):
            found.append((axes, Total(expression.combine, number)))
    return found


def is_neutral(combine: Any, number: np.ndarray) -> bool:
    """Return True if the start of a reduction is its neutral element."""
    if combine is None:
        return bool(number == 0)
    with ensure_compile_time_eval():
        twice = np.asarray(combine.apply(number, number)[0])
    return bool(np.array_equal(twice, number, equal_nan=number.dtype.kind in "fc"))


# --- rules of primitives -----------------------------------------------------------------------


def adapt_broadcast(eqn: Eqn, line: Line, size: int) -> dict:
    """Return the parameters of a broadcast whose result is a slice."""
    axis: Any = line.results[0]
    return {**eqn.params, "shape": replace_at(eqn.params["shape"], axis, size)}


def adapt_reshape(eqn: Eqn, line: Line, size: int) -> dict:
    """Return the parameters of a reshape of a slice."""
    axis: Any = line.results[0]
    return {**eqn.params, "new_sizes": replace_at(eqn.params["new_sizes"], axis, size)}


def adapt_slice(eqn: Eqn, line: Line, size: int) -> dict:
    """Return the parameters of a slice along another axis."""
    axis: Any = line.operands[0]
    return {**eqn.params, "limit_indices": replace_at(eqn.params["limit_indices"], axis, size)}


def adapt_gather(eqn: Eqn, line: Line, size: int) -> dict:
    """Return the parameters of a gather with windows as long as the slice."""
    axis, dims = line.operands[0], eqn.params["dimension_numbers"]
    if axis is None or axis in dims.operand_batching_dims:
        return eqn.params
    return {**eqn.params, "slice_sizes": replace_at(eqn.params["slice_sizes"], axis, size)}


def count_lines(eqn: Eqn) -> list[Line]:
    """Return the lines of `iota`. Along its own axis, a slice counts from the slice's start."""
    dtype, dimension = eqn.params["dtype"], eqn.params["dimension"]

    def count_on(outs: list, start: Any) -> list:
        return [add(x, convert(start, dtype)) for x in outs]

    return [
        Line((), (axis,), adapt_broadcast, *([count_on] if axis == dimension else []))
        for axis in range(eqn.outvars[0].aval.ndim)
    ]


def along_other_axes(eqn: Eqn, axes: Sequence[int], dropped: Sequence[int] = ()) -> list[Line]:
    """Return the lines along all axes that an operation does not work along.

    Args:
      eqn: the equation.
      axes: the axes that the operation works along.
      dropped: the axes of operands that the results do not have.
    """
    n, m = len(eqn.invars), len(eqn.outvars)
    return [
        Line((axis,) * n, (axis - sum(d < axis for d in dropped),) * m)
        for axis in range(eqn.invars[0].aval.ndim)
        if axis not in axes
    ]


def batch_lines(eqn: Eqn) -> list[Line]:
    """Return the lines of an operation on matrices: one for each batch axis."""
    rank = eqn.invars[0].aval.ndim - eqn.primitive.core_rank
    return [Line((a,) * len(eqn.invars), (a,) * len(eqn.outvars)) for a in range(rank)]


def lines_before(eqn: Eqn, rank: int) -> list[Line]:
    """Return the lines along the axes in front of the last `rank` axes."""
    ndim = eqn.invars[0].aval.ndim
    return along_other_axes(eqn, range(ndim - rank, ndim))


def bits_lines(eqn: Eqn) -> list[Line]:
    """Return the lines of a bitcast. Between widths, one side has a further last axis."""
    ndim = min(eqn.invars[0].aval.ndim, eqn.outvars[0].aval.ndim)
    return [Line((axis,), (axis,)) for axis in range(ndim)]


ADAPT: dict[type, Callable[[Eqn, Line, int], dict]] = {
    BroadcastInDim: adapt_broadcast,
    Reshape: adapt_reshape,
    Slice: adapt_slice,
    indexing.Gather: adapt_gather,
}
RULES: dict[type, Callable[[Eqn], list[Line]]] = {
    Iota: count_lines,
    LeadingBatch: batch_lines,
    Sort: lambda eqn: along_other_axes(eqn, (eqn.params["dimension"],)),
    TopK: lambda eqn: along_other_axes(eqn, (eqn.params["axis"],)),
    ArgExtremum: lambda eqn: along_other_axes(eqn, eqn.params["axes"], eqn.params["axes"]),
    BitcastConvertType: bits_lines,
    Partition: lambda eqn: along_other_axes(eqn, (eqn.params["axis"],)),
    FFT: lambda eqn: lines_before(eqn, len(eqn.params["fft_lengths"])),
}
# Rules by form, of primitives in later layers.
FORMS: dict[Form, Callable[[Eqn], list[Line]]] = {
    Form.RANKS: lambda eqn: lines_before(eqn, 1),
    Form.MEMBERS: lambda eqn: [Line((0, None), (0,))],
}
