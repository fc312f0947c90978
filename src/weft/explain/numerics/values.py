"""Values that are computed in a narrow and in a wide type, and operations on both.

The narrow run is the user's program. The wide run follows it: floats of fewer than 64 bits in
float64, complex64 in complex128. A float64 is followed by its error, a second float64 that is added
to it (Langlois's CENA method). Integers, booleans and random keys are not followed: the wide run
takes them from the narrow run, and so takes the same branches.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.api.callbacks import pure_callback
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost, Elements, Runs
from weft.core.jaxpr import Eqn, bodies_of
from weft.core.primitive import Zero, tangent_zero
from weft.errors import HidingError, MissingRule
from weft.footprint.lines import find_lines
from weft.primitives.elementwise import Elementwise, add, div, mul, sub
from weft.primitives.layout import broadcast_in_dim, convert, instantiate, transpose, zeros
from weft.primitives.reduction import reduce
from weft.primitives.slicing import slice as take_slice
from weft.primitives.tokens import optimization_barrier_p
from weft.transforms.jvp import jvp

F64, C128 = np.dtype(np.float64), np.dtype(np.complex128)
SPLITTER = 2.0**27 + 1  # splits 53 bits in half (Dekker)
MAX_ON_HOST = 4096  # elements; larger arrays are not computed with NumPy
MAX_PRODUCTS = 1 << 18  # in a matrix product; the rounding error of larger ones is unknown


class Value(NamedTuple):
    """A value of the narrow run, and its counterpart in the wide run.

    Attributes:
      narrow: the value of the narrow run.
      beside: the value in the wider type. If the narrow value has 64 bits already, the error of the
        narrow value. None if the value is exact, or its error is unknown.
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
        beside = self.beside if self.beside is None else take_steps(self.beside, steps)
        return Value(take_steps(self.narrow, steps), beside)


class Part(NamedTuple):
    """Every n-th element of a value along each axis: the step of each axis, and the elements."""

    steps: Sequence[int]
    value: Value


def is_wide(dtype: Any) -> bool:
    """Return True for float64 and complex128, which are followed by their errors."""
    return dtype in (F64, C128)


def is_followed(aval: Any) -> bool:
    """Return True if values of a type are followed in a wider one."""
    return type(aval) is ShapedArray and dtypes.is_inexact(aval.dtype)


def widen_dtype(dtype: Any) -> np.dtype:
    """Return the wide dtype of a float or complex dtype."""
    return C128 if dtypes.is_complex(dtype) else F64


def widen_value(value: Value) -> Any:
    """Return a value in the wide type. A float64 plus its error is rounded to float64."""
    aval = typeof(value.narrow)
    if value.beside is not None:
        return add(value.narrow, value.beside) if is_wide(aval.dtype) else value.beside
    return convert(value.narrow, widen_dtype(aval.dtype)) if is_followed(aval) else value.narrow


def find_error(value: Value) -> Any:
    """Return the wide value minus the narrow one."""
    aval = typeof(value.narrow)
    if value.beside is None:
        return zeros(aval.update(dtype=widen_dtype(aval.dtype), weak_type=False))
    if is_wide(aval.dtype):
        return value.beside
    return sub(value.beside, convert(value.narrow, widen_dtype(aval.dtype)))


def fill_beside(value: Value) -> Value:
    """Return the value with `beside` set if its type is followed.

    If `beside` was None, it becomes the widened narrow value, or an error of zero.
    """
    aval = typeof(value.narrow)
    if not is_followed(aval) or value.beside is not None:
        return value
    exact = find_error(value) if is_wide(aval.dtype) else widen_value(value)
    return Value(value.narrow, exact)


class Operation(NamedTuple):
    """An equation that can be computed in the wide type: see `plan_operation`."""

    eqn: Eqn
    paired: bool  # errors are computed, not wide values
    params: dict

    def on_part(self, sampling: Sampling) -> Operation:
        """Return the operation on the sampled parts of its operands."""
        eqn = sampling.eqn
        params = eqn.params if self.paired else {k: widen_param(x) for k, x in eqn.params.items()}
        return Operation(eqn, self.paired, params)

    def run_wide(self, operands: Sequence[Any]) -> list:
        """Return the results in the wide type, for operands in the wide type."""
        return self.eqn.primitive.apply(*operands, **self.params)

    def run_beside(
        self, ins: Sequence[Value], outs: Sequence[Any], in_loop: bool = False
    ) -> list[Value]:
        """Return the results of the narrow run, with their counterparts in the wide run."""
        if not self.paired:
            found = self.run_wide(list(map(widen_value, ins)))
            return [Value(y, w if is_followed(typeof(y)) else None) for y, w in zip(outs, found)]
        roundings = find_roundings(self.eqn, [v.narrow for v in ins], outs, in_loop)
        moved = push_errors(self.eqn, ins)
        values = []
        for y, t, r in zip(outs, moved, roundings, strict=True):
            aval = typeof(y)
            if not is_followed(aval):
                values.append(Value(y))
                continue
            wide = widen_dtype(aval.dtype)
            error = zeros(aval.update(dtype=wide, weak_type=False))
            for part in (t, r):
                if part is not None:
                    error = add(error, convert(part, wide))
            is_pair = is_wide(aval.dtype)
            values.append(Value(y, error if is_pair else add(convert(y, wide), error)))
        return values


def push_errors(eqn: Eqn, ins: Sequence[Value]) -> list:
    """Propagate errors of operands to the results, to first order; None stands for zero."""
    primals = [v.narrow for v in ins]
    dots: list[Any] = []
    for v in ins:
        aval = typeof(v.narrow)
        moves = v.beside is not None
        dots.append(convert(find_error(v), aval.dtype) if moves else tangent_zero(v.narrow))
    _, tangents = jvp(lambda *xs: eqn.primitive.apply(*xs, **eqn.params), primals, dots)
    return [None if type(t) is Zero else instantiate(t) for t in tangents]


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


# --- errors of single operations in float64 -------------------------------------------------------


def add_exactly(x: Any, y: Any, z: Any) -> Any:
    """Return x + y - z, where z is the rounded sum (Knuth)."""
    part = sub(z, x)
    return add(sub(x, sub(z, part)), sub(y, part))


def split_float(x: Any) -> tuple[Any, Any]:
    """Return two floats of 26 bits with the sum x (Dekker)."""
    (scaled,) = optimization_barrier_p.apply(mul(x, SPLITTER))  # no fused multiply-subtract
    high = sub(scaled, sub(scaled, x))
    return high, sub(x, high)


def multiply_exactly(x: Any, y: Any, z: Any) -> Any:
    """Return x * y - z, where z is the rounded product (Dekker)."""
    a, b = split_float(x)
    c, d = split_float(y)
    return add(mul(b, d), add(add(sub(mul(a, c), z), mul(a, d)), mul(b, c)))


def divide_exactly(x: Any, y: Any, z: Any) -> Any:
    """Return x / y - z to first order, where z is the rounded quotient."""
    product = mul(z, y)
    low = multiply_exactly(z, y, product)
    return div(sub(sub(x, product), low), y)


def root_exactly(x: Any, z: Any) -> Any:
    """Return sqrt(x) - z to first order, where z is the rounded root."""
    square = mul(z, z)
    low = multiply_exactly(z, z, square)
    return div(sub(sub(x, square), low), mul(z, 2.0))


def square_exactly(x: Any, z: Any) -> Any:
    """Return x * x - z, where z is the rounded square."""
    return multiply_exactly(x, x, z)


def raise_exactly(x: Any, z: Any, *, y: int) -> Any:
    """Return x ** y - z to first order for a whole y, where z is the rounded power."""
    high, low = x, zeros(typeof(x))
    for _ in range(y - 1):  # the power so far is high + low
        product = mul(high, x)
        low = add(multiply_exactly(high, x, product), mul(low, x))
        high = product
    return add(sub(high, z), low)


def sum_exactly(x: Any, z: Any, *, axes: Sequence[int], low: Any = None) -> Any:
    """Return the sum of x over axes, minus z; the sum is computed with about 106 bits."""

    def join(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, Any]:
        total = add(a[0], b[0])
        return total, add(add(a[1], b[1]), add_exactly(a[0], b[0], total))

    rest = zeros(typeof(x)) if low is None else low
    zero = np.zeros((), F64)
    high, rest = reduce((x, rest), (zero, zero), join, tuple(axes))
    return add(sub(high, z), rest)


def contract_exactly(x: Any, y: Any, z: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    """Return a product of matrices, minus z, computed with about 106 bits if it is small."""
    (of_x, of_y), (batch_x, batch_y) = dimension_numbers
    shapes = typeof(x).shape, typeof(y).shape
    terms = math.prod(shapes[0][d] for d in of_x)
    if typeof(z).size * terms > MAX_PRODUCTS or not terms:
        return None
    free_x = [d for d in range(len(shapes[0])) if d not in (*of_x, *batch_x)]
    free_y = [d for d in range(len(shapes[1])) if d not in (*of_y, *batch_y)]
    whole = (*typeof(z).shape, *[shapes[0][d] for d in of_x])
    n, m, last = len(batch_x), len(free_x), typeof(z).ndim
    contracted = range(last, last + len(of_x))
    at_x = (*range(n), *range(n, n + m), *contracted)
    at_y = (*range(n), *range(n + m, last), *contracted)
    left = broadcast_in_dim(transpose(x, (*batch_x, *free_x, *of_x)), whole, at_x)
    right = broadcast_in_dim(transpose(y, (*batch_y, *free_y, *of_y)), whole, at_y)
    product = mul(left, right)
    low = multiply_exactly(left, right, product)
    return sum_exactly(product, z, axes=tuple(contracted), low=low)


# By primitive: (operands, the rounded result, parameters) -> the exact result minus that.
ROUNDINGS: dict[str, Callable] = {
    "add": add_exactly,
    "sub": lambda x, y, z: add_exactly(x, mul(y, -1.0), z),
    "mul": multiply_exactly,
    "div": divide_exactly,
    "sqrt": root_exactly,
    "square": square_exactly,
    "integer_pow": raise_exactly,
    "reduce_sum": sum_exactly,
    "dot_general": contract_exactly,
}


def find_longer(eqn: Eqn) -> Callable | None:
    """Return NumPy's function for an operation, which supports `longdouble`; None if there is none.

    On x86, `longdouble` has a significand of 64 bits.
    """
    prim = eqn.primitive
    function = getattr(np, prim.name, None)
    is_function = isinstance(prim, Elementwise) and prim.cost is Cost.TRANSCENDENTAL
    return function if is_function and isinstance(function, np.ufunc) else None


def correct_on_host(function: Callable, z: np.ndarray, *xs: np.ndarray) -> np.ndarray:
    """Return `function(*xs) - z`, computed in `longdouble`. `z` is the rounded result."""
    long = [np.asarray(x, np.longdouble) for x in xs]
    with np.errstate(all="ignore"):
        off = function(*long) - np.asarray(z, np.longdouble)
    return np.nan_to_num(off.astype(F64), nan=0.0, posinf=0.0, neginf=0.0)


def find_roundings(
    eqn: Eqn, ins: Sequence[Any], outs: Sequence[Any], in_loop: bool = False
) -> list:
    """Return the exact minus the rounded results of an equation; None for an unknown result.

    Some functions need a call of the host. In loops and for large arrays that would be too slow, so
    their results are unknown there unless there is a rule in `ROUNDINGS`.
    """
    unknown = [None] * len(outs)
    aval = typeof(outs[0])
    if eqn.primitive.elements is Elements.CONVERTED:
        source = typeof(ins[0])
        if not is_followed(source) or dtypes.is_complex(source.dtype) or not is_followed(aval):
            return unknown
        if dtypes.is_complex(aval.dtype):
            return unknown
        return [sub(convert(ins[0], F64), convert(outs[0], F64))]
    rule, longer = ROUNDINGS.get(eqn.primitive.name), find_longer(eqn)
    if aval.dtype != F64 or any(typeof(x).dtype != F64 for x in ins):
        return unknown
    if longer is not None and not in_loop and aval.size <= MAX_ON_HOST:
        call = functools.partial(correct_on_host, longer)
        return [pure_callback(call, aval.update(weak_type=False), outs[0], *ins)]
    if rule is None:
        return unknown
    return [rule(*ins, outs[0], **eqn.params)]
