"""Derive what the padding of a value contains, from the contents of the padding of operands.

A content is a number, `FINITE` (numbers that are neither infinite nor NaN), `OrNaN` of one of
these, or None if nothing is known. A value has a content for each padded axis: that of all elements
beyond the true size of this axis. Calls pad their arguments with zeros. An operation that only
reads the padding of its operands for the padding of its result keeps the contents known. Where the
known content already changes nothing, as zeros in a sum, the padding need not be filled.

The sign of 0 is never known. A number is derived only if it does not depend on signs of zeros.

`OrNaN(c)` says: the padding contains c, or all elements of the value are NaN, also those below the
true size. It comes from Cholesky factors, which are NaN if the matrix is not positive definite.

- An operation of `PROPAGATING` keeps it: an element that is computed from NaN is NaN. If no operand
  is NaN, the content follows from c as always. So operands may have failed for different reasons.
- Sums keep 0 or NaN, since sums of NaN are NaN. A sum over padding of `OrNaN(0)` needs no mask if
  it has terms below the true size: if these are NaN, so is the sum. A sum without terms is 0.
- Selections, comparisons, conversions to integers and masks forget it: some elements may not be
  NaN.
- Infinite numbers in a value do not make all of it NaN. So the solution of a triangular system is
  not `OrNaN(0)` along the axis that is solved for: a solution (inf, -inf) has 0 * inf in the
  padding, and its sum of squares is inf.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.element import Apply, Expression, Number, Read, Reduce, Select
from weft.core.primitive import Primitive
from weft.export.dims import Dim
from weft.optimize.fold import EXACT, ignore_dtype, is_plain
from weft.primitives import elementwise as ops
from weft.primitives import transcendental
from weft.primitives.layout import convert_element_type_p


class Finite(enum.Enum):
    """The content of padding whose elements are finite."""

    FINITE = "finite"


@dataclass(frozen=True, eq=False)
class OrNaN:
    """The content of padding that contains `content`, unless all elements of the value are NaN."""

    content: Any


FINITE = Finite.FINITE
Content: TypeAlias = "np.ndarray | Finite | OrNaN | None"

# Operations that NumPy computes as XLA does, up to the sign of 0.
ON_HOST = {**EXACT, ops.max_p: ignore_dtype(np.maximum), ops.min_p: ignore_dtype(np.minimum)}

# Results that are exact on all platforms, up to the sign of 0: `{argument: result}`.
ZERO_TO_ZERO = {0.0: 0.0}
EXACT_POINTS: dict[Primitive, dict[float, float]] = {
    transcendental.exp_p: {0.0: 1.0},
    transcendental.expm1_p: ZERO_TO_ZERO,
    transcendental.log_p: {1.0: 0.0},
    transcendental.log1p_p: ZERO_TO_ZERO,
    transcendental.sqrt_p: {0.0: 0.0, 1.0: 1.0},
    transcendental.rsqrt_p: {1.0: 1.0},
    transcendental.sin_p: ZERO_TO_ZERO,
    transcendental.cos_p: {0.0: 1.0},
    transcendental.tanh_p: ZERO_TO_ZERO,
}

# Operations on floats that return NaN if an operand is NaN, if their parameters are so.
PROPAGATING: dict[Primitive, Callable[[Mapping], bool]] = {
    **dict.fromkeys(
        (ops.add_p, ops.sub_p, ops.mul_p, ops.div_p, ops.neg_p, ops.abs_p, ops.square_p),
        lambda params: True,
    ),
    **dict.fromkeys(EXACT_POINTS, lambda params: True),
    transcendental.integer_pow_p: lambda params: params["y"] != 0,
    convert_element_type_p: lambda params: (
        np.dtype(params["new_dtype"]) in (np.float32, np.float64)
    ),
}


def find_content(expression: Any, read: Callable[[Read], Content]) -> Content:
    """Return the content of the elements that an expression computes.

    Args:
      expression: a value of an `element` rule.
      read: returns the content of the elements that a read of an operand may return.
    """
    match expression:
        case Read():
            return read(expression)
        case Number():
            if isinstance(expression.value, Expression | Dim):
                return FINITE if fits_integers(expression.dtype) else None
            return np.asarray(expression.value, expression.dtype)
        case Apply():
            args = [find_content(x, read) for x in expression.args]
            return apply_to_contents(expression.primitive, expression.params, args)
        case Select():
            condition = find_content(expression.condition, read)
            parts = [find_content(x, read) for x in (expression.yes, expression.no)]
            if isinstance(condition, np.ndarray) and condition.dtype == bool:
                chosen = parts[0 if condition else 1]
                return None if isinstance(chosen, OrNaN) else chosen
            return join_contents(*parts)
        case Reduce():
            body = find_content(expression.body, read)
            if isinstance(body, OrNaN) and expression.combine is not None:
                return None
            term = strip_nan(body)
            return body if isinstance(term, np.ndarray) and is_neutral(expression, term) else None
    return None


def strip_nan(x: Content) -> Any:
    """Return the content of padding if the value is not NaN."""
    return x.content if isinstance(x, OrNaN) else x


def apply_to_contents(prim: Primitive, params: Mapping, args: Sequence[Content]) -> Content:
    """Return the content of the results of an operation on elements."""
    if any(isinstance(x, OrNaN) for x in args):
        found = apply_to_contents(prim, params, [strip_nan(x) for x in args])
        return OrNaN(found) if found is not None and propagates_nan(prim, params) else None
    numbers = [x for x in args if isinstance(x, np.ndarray)]
    if len(numbers) == len(args):
        found = compute_for_signs(prim, params, numbers)
        if found is not None:
            return found
    rule = FINITE_RULES.get(prim)
    return rule(params, args) if rule is not None and all(map(is_finite, args)) else None


def propagates_nan(prim: Primitive, params: Mapping) -> bool:
    """Return True if an operation on elements returns NaN if an operand is NaN."""
    return prim in PROPAGATING and PROPAGATING[prim](params)


def multiply_contents(params: Mapping, args: Sequence[Content]) -> Content:
    """Return 0 if a factor is 0; the other one is finite."""
    return next((x for x in args if isinstance(x, np.ndarray) and x == 0), None)


def convert_content(params: Mapping, args: Sequence[Content]) -> Content:
    """Return the content of a conversion. A finite float64 may be too large for a float32."""
    small = isinstance(args[0], np.ndarray) and bool(abs(args[0]) <= 1)
    return FINITE if small or np.dtype(params["new_dtype"]) == np.float64 else None


def raise_content(params: Mapping, args: Sequence[Content]) -> Content:
    """Return a power of 0 or 1."""
    known = isinstance(args[0], np.ndarray) and args[0] in (0, 1)
    return args[0] if known and params["y"] > 0 else None


def keep_finite(params: Mapping, args: Sequence[Content]) -> Content:
    """Return the content of an operation whose results are finite if its operands are."""
    return FINITE


# The contents of results of operations on finite contents, of any dtype.
FINITE_RULES: dict[Primitive, Callable[[Mapping, Sequence[Content]], Content]] = {
    ops.mul_p: multiply_contents,
    convert_element_type_p: convert_content,
    transcendental.integer_pow_p: raise_content,
    ops.neg_p: keep_finite,
    ops.max_p: keep_finite,
    ops.min_p: keep_finite,
    ops.floor_p: keep_finite,
    ops.ceil_p: keep_finite,
}


def compute_for_signs(
    prim: Primitive, params: Mapping, numbers: Sequence[np.ndarray]
) -> np.ndarray | None:
    """Return the result of an operation on numbers, if it is the same for all signs of zeros."""
    if prim in EXACT_POINTS and numbers[0].dtype.kind == "f":
        result = EXACT_POINTS[prim].get(float(numbers[0]))
        return None if result is None else np.asarray(result, numbers[0].dtype)
    if prim not in ON_HOST or not all(x == 0 or is_plain(x) for x in numbers):
        return None
    signs = [[x, -x] if x == 0 and x.dtype.kind not in "biu" else [x] for x in numbers]
    found = [compute_on_host(prim, params, *xs) for xs in itertools.product(*signs)]
    first = found[0]
    return first if all(x is not None and is_same_number(x, first) for x in found) else None


def compute_on_host(prim: Primitive, params: Mapping, *args: Any) -> np.ndarray | None:
    """Return the result of an operation of `ON_HOST` on numbers; None if NumPy may differ."""
    avals = tuple([ShapedArray((), np.asarray(x).dtype) for x in args])
    dtype = prim.type_of(avals, dict(params))[0].dtype
    with np.errstate(all="ignore"):
        found = ON_HOST[prim](dtype, *[np.asarray(x)[()] for x in args])
    return None if found is None else np.asarray(found, dtype)


def join_contents(a: Content, b: Content) -> Content:
    """Return the content of padding that is made of two contents."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and is_same_number(a, b):
        return a
    return FINITE if is_finite(a) and is_finite(b) else None


def is_constant(x: Any) -> bool:
    """Return True if a content is known now; a traced scalar is not."""
    return x is FINITE or isinstance(x, np.ndarray | OrNaN)


def is_zero(x: Any) -> bool:
    """Return True if a content is 0, of any sign."""
    return isinstance(x, np.ndarray) and bool(x == 0)


def is_finite(x: Content) -> bool:
    """Return True if a content is finite."""
    return x is FINITE or (isinstance(x, np.ndarray) and bool(np.isfinite(x)))


def is_same_number(a: Any, b: Any) -> bool:
    """Return True if two numbers are equal up to the sign of 0, or are both NaN."""
    return a.dtype == b.dtype and bool(a == b or (a != a and b != b))


def is_neutral(reduction: Reduce, body: np.ndarray) -> bool:
    """Return True if all terms equal the start of a reduction, and so does its result."""
    start = reduction.start
    if type(start) is not Number or isinstance(start.value, Expression | Dim):
        return False
    first = np.asarray(start.value, start.dtype)
    if not is_same_number(first, body):
        return False
    if reduction.combine is None:
        return bool(first == 0)
    twice = compute_for_signs(reduction.combine, {}, [first, first])
    return twice is not None and is_same_number(twice, first)


def fits_integers(dtype: np.dtype) -> bool:
    """Return True if a dtype has a finite value for each integer."""
    return dtype.kind in "biu" or dtype in (np.float32, np.float64)


def content_of_type(dtype: np.dtype) -> Content:
    """Return the content of padding of which only the dtype is known."""
    return FINITE if dtype.kind in "biu" else None
