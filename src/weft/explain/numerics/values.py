"""Values that are computed in a narrow and in a wide type, and operations on both.

The narrow run is the user's program. The wide run follows it: floats of fewer than 64 bits in
float64, complex64 in complex128, float64 in pairs of float64 (paired.py). Integers, booleans and
random keys are not followed: the wide run takes them from the narrow run, and so takes the same
branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Elements, Runs
from weft.core.jaxpr import Eqn, bodies_of
from weft.errors import HidingError, MissingRule
from weft.explain.numerics.paired import compute_pairs
from weft.explain.numerics.pairs import Pair, pair_of
from weft.footprint.lines import find_lines
from weft.primitives.elementwise import Elementwise, add, sub
from weft.primitives.layout import convert, zeros
from weft.primitives.slicing import slice as take_slice
from weft.primitives.tokens import optimization_barrier_p

F64, C128 = np.dtype(np.float64), np.dtype(np.complex128)


class Value(NamedTuple):
    """A value of the narrow run, and its counterpart in the wide run.

    Attributes:
      narrow: the value of the narrow run.
      beside: the value in the wider type; a `Pair` if the narrow value has 64 bits. None if the
        value is exact, or its error is unknown.
      part: the sampled part of a large value, computed from parts of the operands. If nothing else
        reads `beside`, XLA does not compute it.
    """

    narrow: Any
    beside: Any = None
    part: Part | None = None

    def take(self, steps: Sequence[int]) -> Value:
        """Return every n-th element along each axis."""
        if self.part is not None and tuple(self.part.steps) == tuple(steps):
            return self.part.value
        beside = self.beside
        if isinstance(beside, Pair):
            beside = Pair(*[take_steps(x, steps) for x in beside])
        elif beside is not None:
            beside = take_steps(beside, steps)
        return Value(take_steps(self.narrow, steps), beside)


class Part(NamedTuple):
    """Every n-th element of a value along each axis: the step of each axis, and the elements."""

    steps: Sequence[int]
    value: Value


def is_wide(dtype: Any) -> bool:
    """Return True for float64 and complex128, which are followed in pairs."""
    return dtype in (F64, C128)


def is_followed(aval: Any) -> bool:
    """Return True if values of a type are followed in a wider one."""
    return type(aval) is ShapedArray and dtypes.is_inexact(aval.dtype)


def widen_dtype(dtype: Any) -> np.dtype:
    """Return the wide dtype of a float or complex dtype."""
    return C128 if dtypes.is_complex(dtype) else F64


def widen_value(value: Value) -> Any:
    """Return a value in the wide type. A pair is rounded to float64."""
    aval = typeof(value.narrow)
    if value.beside is not None:
        return value.beside.high if is_wide(aval.dtype) else value.beside
    return convert(value.narrow, widen_dtype(aval.dtype)) if is_followed(aval) else value.narrow


def find_error(value: Value) -> Any:
    """Return the wide value minus the narrow one."""
    aval = typeof(value.narrow)
    if value.beside is None:
        return zeros(aval.update(dtype=widen_dtype(aval.dtype), weak_type=False))
    if is_wide(aval.dtype):
        return measure_gap(value.beside, value.narrow)
    return sub(value.beside, convert(value.narrow, widen_dtype(aval.dtype)))


def measure_gap(pair: Pair, narrow: Any) -> Any:
    """Return a pair minus the narrow value; infinities of both count as equal."""
    same = pair.high == narrow
    return add(jnp.where(same, jnp.zeros_like(narrow), sub(pair.high, narrow)), pair.low)


def find_operand(value: Value) -> Any:
    """Return a float as a pair, and any other value as it is.

    The barrier hides constants from XLA, which would simplify sums of them.
    """
    if isinstance(value.beside, Pair):
        return value.beside
    if not is_followed(typeof(value.narrow)):
        return value.narrow
    (wide,) = optimization_barrier_p.apply(widen_value(value))
    return pair_of(wide)


def fill_beside(value: Value) -> Value:
    """Return the value with `beside` set if its type is followed.

    If `beside` was None, it becomes the widened narrow value.
    """
    aval = typeof(value.narrow)
    if not is_followed(aval) or value.beside is not None:
        return value
    wide = widen_value(value)
    return Value(value.narrow, pair_of(wide) if is_wide(aval.dtype) else wide)


def count_arrays(aval: Any) -> int:
    """Return the number of arrays of a value in a flat list: see `recording.flatten_values`."""
    return 1 if not is_followed(aval) else 3 if is_wide(aval.dtype) else 2


class Operation(NamedTuple):
    """An equation that can be computed in the wide type: see `plan_operation`."""

    eqn: Eqn
    paired: bool  # computed in pairs of float64
    params: dict

    def on_part(self, sampling: Sampling) -> Operation:
        """Return the operation on the sampled parts of its operands."""
        eqn = sampling.eqn
        params = eqn.params if self.paired else {k: widen_param(x) for k, x in eqn.params.items()}
        return Operation(eqn, self.paired, params)

    def run_wide(self, operands: Sequence[Any]) -> list:
        """Return the results in the wide type, for operands in the wide type."""
        return self.eqn.primitive.apply(*operands, **self.params)

    def run_beside(self, ins: Sequence[Value], outs: Sequence[Any]) -> list[Value]:
        """Return the results of the narrow run, with their counterparts in the wide run."""
        if not self.paired:
            found = self.run_wide(list(map(widen_value, ins)))
            return [Value(y, w if is_followed(typeof(y)) else None) for y, w in zip(outs, found)]
        operands = list(map(find_operand, ins))
        is_exact = all(v.beside is None for v in ins)
        found = compute_pairs(self.eqn, operands, [v.narrow for v in ins], outs, is_exact)
        values = []
        for y, pair in zip(outs, found, strict=True):
            if pair is None:
                values.append(Value(y))
            elif is_wide(typeof(y).dtype):
                values.append(Value(y, pair))
            else:
                values.append(Value(y, add(pair.high, pair.low)))
        return values


def plan_operation(eqn: Eqn) -> Operation | None:
    """Return how to compute an equation in the wide type.

    Return None if the wide run takes the results of the narrow run. This holds for discrete
    operations (rounding to integers, comparisons), random numbers, host calls, and operations that
    do not exist for the wide type.
    """
    prim = eqn.primitive
    ins, outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    if not any(map(is_followed, outs)) or prim.effect is not None:
        return None
    if prim.elements is Elements.RANDOM or any(b.runs is Runs.HOST for b in bodies_of(eqn)):
        return None
    if isinstance(prim, Elementwise) and not any(prim.derivs):
        return None
    if any(type(a) is not ShapedArray or dtypes.is_extended(a.dtype) for a in ins):
        return None
    if any(is_wide(a.dtype) for a in (*ins, *outs)):
        return Operation(eqn, True, eqn.params)
    params = {key: widen_param(x) for key, x in eqn.params.items()}
    try:
        found = prim.type_of(tuple(map(widen_aval, ins)), params)
    except (TypeError, ValueError, MissingRule):  # no such operation on float64
        return None
    alike = all(f.shape == a.shape for f, a in zip(found, outs, strict=True))
    wide = all(f.dtype == widen_aval(a).dtype for f, a in zip(found, outs, strict=True))
    return Operation(eqn, False, params) if alike and wide else None


def widen_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type of a value in the wide run."""
    if not is_followed(aval):
        return aval
    return aval.update(dtype=widen_dtype(aval.dtype), weak_type=False)


def widen_param(x: Any) -> Any:
    """Return a parameter of an equation for the wide type: a float or complex dtype is widened."""
    is_dtype = isinstance(x, np.dtype) and dtypes.is_inexact(x)
    return widen_dtype(x) if is_dtype else x


# --- samples --------------------------------------------------------------------------------------


class Sampling(NamedTuple):
    """The sampled part of an equation: strided slices of its operands and of its result.

    Attributes:
      eqn: the equation, with the parameters that it has on slices.
      operands: for each operand, the step along each axis.
      result: the step along each axis of the result.
      whole: True if all steps are 1.
    """

    eqn: Eqn
    operands: Sequence[Sequence[int]]
    result: Sequence[int]
    whole: bool


def take_steps(x: Any, steps: Sequence[int]) -> Any:
    """Return every n-th element along each axis."""
    if all(s == 1 for s in steps):
        return x
    shape = typeof(x).shape
    return take_slice(x, [0] * len(shape), shape, steps)


def plan_sampling(eqn: Eqn, limit: int) -> Sampling:
    """Return the part of an equation's first result to sample: at most `limit` elements.

    Slices are along the axes that the operation computes independently. If slicing these axes does
    not make the part small enough, the whole operation is computed and elements of its result are
    sampled.
    """
    avals, outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    none = [[1] * getattr(a, "ndim", 0) for a in avals]
    shape = outs[0].shape
    whole = Sampling(eqn, none, [1] * len(shape), True)
    if outs[0].size <= limit or len(outs) > 1 or any(type(a) is not ShapedArray for a in avals):
        return whole
    lines = {
        line.results[0]: line
        for line in find_lines(eqn)
        if type(line.results[0]) is int and line.shift is None and line.run is None
    }
    left, steps, given, part = outs[0].size, [1] * len(shape), [list(s) for s in none], eqn
    for d, n in enumerate(shape):
        line = lines.get(d)
        if left <= limit or line is None:
            continue
        steps[d] = min(n, -(-left // limit))
        size = -(-n // steps[d])
        left = left // n * size
        part = part.replace(params=line.adapt(part, line, size))
        for row, axis in zip(given, line.operands, strict=True):
            if axis is not None:
                if row[axis] != 1:
                    return whole
                row[axis] = steps[d]
    if left > limit:
        return whole
    sampled = [a.update(shape=shorten_shape(a.shape, s)) for a, s in zip(avals, given)]
    try:
        (out,) = eqn.primitive.type_of(tuple(sampled), part.params)
    except (HidingError, ValueError, TypeError):  # parameters that name the shape
        return whole
    is_part = out.shape == shorten_shape(shape, steps)
    return Sampling(part, given, steps, False) if is_part else whole


def shorten_shape(shape: Sequence[int], steps: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of every n-th element along each axis."""
    return tuple(-(-n // s) for n, s in zip(shape, steps, strict=True))
