"""Compare the mathematics of an operation at true sizes and at padded sizes.

The `element` rule of a primitive writes an element of a result as an expression of elements of
operands. If the rule gives the same expression for the symbolic and for the padded types, the
operation computes the right elements on padded arrays, for any padding. A reduction over an axis of
size n may also run over the whole axis in memory, if elements beyond n are neutral. Then the
`Matching` says which operands to fill, along which axes, and with which number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.element import Apply, Expression, Integer, Number, Place, Read, Reduce, Select, walk
from weft.core.primitive import Primitive
from weft.core.trace import ensure_compile_time_eval
from weft.export.dims import Dim
from weft.optimize.fold import is_plain
from weft.padding.contents import (
    ON_HOST,
    Content,
    OrNaN,
    compute_on_host,
    content_of_type,
    find_content,
    is_same_number,
)
from weft.padding.sizes import find_range


class Mismatch(Exception):
    """Raised if an operation computes other elements on padded arrays."""


class Matching:
    """A comparison that collects the fills that make expressions agree: `fills[operand, axis]`.

    `contents` are those of the padding of each operand, for each axis. Padding that is already
    neutral is not filled.
    """

    def __init__(
        self,
        avals: Sequence[ShapedArray],
        shapes: Sequence[Sequence[Any]] = (),
        contents: Sequence[Mapping] | None = None,
        buckets: Mapping[str, int] = {},
    ):
        self.avals = avals
        self.buckets = buckets
        self.shapes = shapes  # the true ones
        self.contents = contents or [{} for _ in avals]
        self.fills: dict[tuple[int, int], Any] = {}
        self.plain: set[tuple[int, int]] = set()  # axes of operands that must not be filled
        self.places: dict[Place, Place] = {}

    def match(self, true: Any, padded: Any, cut: frozenset[Place] = frozenset()) -> None:
        """Compare an expression at true sizes with one at padded sizes.

        `cut` are the places of reductions that run beyond the true size.

        Raises:
          Mismatch: the expressions may differ.
        """
        if not isinstance(true, Expression):
            if type(true) is not type(padded) or isinstance(true, Dim) or true != padded:
                raise Mismatch
            return
        kind: type = type(padded)
        if type(true) is not kind:
            raise Mismatch
        match true:
            case Place():
                if self.places.get(true, true) is not padded:
                    raise Mismatch
            case Number():
                self._match_numbers(true, padded, cut)
            case Reduce():
                self._match_reductions(true, padded, cut)
            case Read():
                self._match_reads(true, padded, cut)
            case Apply():
                self._match_applications(true, padded, cut)
            case Integer():
                if true.operator is not padded.operator:
                    raise Mismatch
                self._match_parts(true, padded, cut)
            case _:
                self._match_parts(true, padded, cut)

    def _match_parts(self, true: Any, padded: Any, cut: frozenset[Place]) -> None:
        if len(true.parts) != len(padded.parts):
            raise Mismatch
        for a, b in zip(true.parts, padded.parts, strict=True):
            self.match(a, b, cut)

    def _match_numbers(self, true: Number, padded: Number, cut: frozenset[Place]) -> None:
        if true.dtype != padded.dtype:
            raise Mismatch
        if isinstance(true.value, Expression | Dim):
            self.match(true.value, padded.value, cut)
        elif not np.array_equal(true.value, padded.value, equal_nan=true.dtype.kind in "fc"):
            raise Mismatch

    def _match_applications(self, true: Apply, padded: Apply, cut: frozenset[Place]) -> None:
        same = true.primitive is padded.primitive and dict(true.params) == dict(padded.params)
        if not same:
            raise Mismatch
        self._match_parts(true, padded, cut)

    def _match_reads(self, true: Read, padded: Read, cut: frozenset[Place]) -> None:
        if true.operand != padded.operand:
            raise Mismatch
        self._match_parts(true, padded, cut)
        for axis, index in enumerate(true.index):
            if isinstance(index, Place) and index in cut:
                continue
            if any(x in cut for x in walk(index)):
                raise Mismatch
            self.plain.add((true.operand, axis))

    def _match_reductions(self, true: Reduce, padded: Reduce, cut: frozenset[Place]) -> None:
        if true.combine is not padded.combine or len(true.sizes) != len(padded.sizes):
            raise Mismatch
        self.match(true.start, padded.start, cut)
        more = set()
        for place, other, n, m in zip(
            true.places, padded.places, true.sizes, padded.sizes, strict=True
        ):
            self.places[place] = other
            if isinstance(n, Dim) and type(m) is int:
                more.add(place)
            else:
                self.match(n, m, cut)
        self.match(true.body, padded.body, cut | more)
        if more:
            self._fill(true, frozenset(more))

    def _fill(self, reduction: Reduce, cut: frozenset[Place]) -> None:
        """Find the numbers that make the terms at places beyond the true sizes change nothing.

        Each read in a term must be at such a place, so that no element that counts meets the fill.
        """
        if cut & {x for x in walk(reduction.start) if isinstance(x, Place)}:
            raise Mismatch
        neutral = find_neutral(reduction)
        reads = [x for x in walk(reduction.body) if type(x) is Read]
        for place in cut:
            for read in reads:
                axes = [a for a, index in enumerate(read.index) if index is place]
                if len(axes) != 1:
                    raise Mismatch
        operands = list(dict.fromkeys(read.operand for read in reads))
        # As few operands as possible are filled, the same ones beyond each true size.
        for filled in ((), *[(k,) for k in operands], operands):
            if all(self._is_neutral(reduction, neutral, place, filled) for place in cut):
                break
        else:
            self._check_filled(reduction, neutral, operands)
        for read in reads:
            if read.operand not in filled:  # its content is relied on, and must stay
                self.plain.update((read.operand, a) for a in range(len(read.index)))
                continue
            fill = neutral.astype(self.avals[read.operand].dtype)
            for axis, index in enumerate(read.index):
                if index in cut:
                    old = self.fills.setdefault((read.operand, axis), fill)
                    if not np.array_equal(old, fill, equal_nan=old.dtype.kind in "fc"):
                        raise Mismatch

    def _is_neutral(
        self, reduction: Reduce, neutral: np.ndarray, place: Place, filled: Sequence[int]
    ) -> bool:
        """Return True if terms beyond the true size of a place are known to be neutral."""
        size = reduction.sizes[reduction.places.index(place)]

        def read(x: Read) -> Content:
            dtype, axis = self.avals[x.operand].dtype, x.index.index(place)
            if x.operand in filled:
                return neutral.astype(dtype)
            found = self.contents[x.operand].get(axis)
            known = found is not None and self.shapes[x.operand][axis] == size
            return found if known else content_of_type(dtype)

        found = find_content(reduction.body, read)
        if isinstance(found, OrNaN):
            return is_same_number(found.content, neutral) and self._has_terms(reduction)
        return isinstance(found, np.ndarray) and is_same_number(found, neutral)

    def _has_terms(self, reduction: Reduce) -> bool:
        """Return True if a reduction is a sum of at least one term, for all true sizes.

        So it is NaN if all its terms are.
        """
        sizes = [n for n in reduction.sizes if isinstance(n, Dim)]
        return reduction.combine is None and all(find_range(n, self.buckets)[0] > 0 for n in sizes)

    def _check_filled(
        self, reduction: Reduce, neutral: np.ndarray, operands: Sequence[int]
    ) -> None:
        """Check that terms are neutral if all operands are filled, by computing one."""
        values = {k: neutral.astype(self.avals[k].dtype) for k in operands}
        found = evaluate_at(reduction.body, values)
        equal_nan = neutral.dtype.kind in "fc"
        if found is None or not np.array_equal(found, neutral, equal_nan=equal_nan):
            raise Mismatch

    def finish(self) -> Mapping[tuple[int, int], Any]:
        """Return the fills.

        Raises:
          Mismatch: an axis to fill is also read by other parts of the expression.
        """
        if self.plain & self.fills.keys():
            raise Mismatch
        return self.fills


def find_neutral(reduction: Reduce) -> Any:
    """Return the start of a reduction, which must be neutral so that it can be the padding.

    Operations of reductions are associative and commutative, and every reduction includes its
    start. So it is enough that the start combined with itself gives itself.
    """
    start = reduction.start
    if type(start) is not Number or isinstance(start.value, Expression | Dim):
        raise Mismatch
    neutral = np.asarray(start.value, start.dtype)
    if reduction.combine is None:
        if neutral != 0:
            raise Mismatch
        return neutral
    twice = compute_number(reduction.combine, {}, neutral, neutral)
    if not np.array_equal(twice, neutral, equal_nan=neutral.dtype.kind in "fc"):
        raise Mismatch
    return neutral


def compute_number(prim: Primitive, params: Mapping, *args: np.ndarray) -> np.ndarray:
    """Return the result of an operation on numbers, by NumPy if possible to avoid compiling."""
    if prim in ON_HOST and all(is_plain(x) for x in args):
        found = compute_on_host(prim, params, *args)
        if found is not None:
            return found
    with ensure_compile_time_eval():
        return np.asarray(prim.apply(*args, **params)[0])


def evaluate_at(expression: Any, values: Mapping[int, Any]) -> Any:
    """Return the value of a term for given values of its reads; None if it is unknown."""
    match expression:
        case Read():
            return values[expression.operand]
        case Number():
            if isinstance(expression.value, Expression | Dim):
                return None
            return np.asarray(expression.value, expression.dtype)
        case Apply():
            args = [evaluate_at(x, values) for x in expression.args]
            if any(x is None for x in args):
                return None
            return compute_number(expression.primitive, expression.params, *args)
        case Select():
            condition = evaluate_at(expression.condition, values)
            if condition is None or condition.dtype != bool:
                return None
            return evaluate_at(expression.yes if condition else expression.no, values)
    return None
