"""Operations on the bits of integers, and reinterpretation of bits as another dtype.

Here is also `reduce_precision`, which drops bits of floats. Bitwise and, or, xor and not are
elementwise.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost, Elements
from weft.core.primitive import Axes
from weft.errors import DtypeError, ShapeError
from weft.primitives.elementwise import Elementwise, binary_op, no_derivative, unary_op
from weft.primitives.families import (
    Discrete,
    LinearByElement,
    apply_to_element,
    check_integer,
    check_kind,
)
from weft.primitives.layout import move_to_front
from weft.xla.typing import Array, ArrayLike, DTypeLike


def define_integer_op(name: str, op: str | Callable, operands: int, doc: str) -> Elementwise:
    """A member for integers, which has no derivative."""
    return Elementwise(name, op, [None] * operands, takes="integer", doc=doc)


def write_count_of_bits(hlo: Any, aval: ShapedArray, x: Any) -> Any:
    """Write `population_count`.

    XLA computes integers of fewer than 8 bits in 8, and would count the copies of the sign too.
    """
    width = dtypes.itemsize_bits(aval.dtype)
    if width >= 8:
        return hlo.like("popcnt", x)[0]
    wide = hlo.convert(x, np.dtype(np.uint8))
    own = hlo.like("and", wide, hlo.constant((1 << width) - 1, wide.aval))[0]
    return hlo.convert(hlo.like("popcnt", own)[0], aval.dtype)


shift_left_p = define_integer_op(
    "shift_left",
    "shift_left",
    2,
    """Shift bits to the left: x << y.

    The result is 0 if y is not less than the number of bits.

    >>> jnp.array([1, 2]), 3
    [ 8 16]
    """,
)
shift_right_arithmetic_p = define_integer_op(
    "shift_right_arithmetic",
    "shift_right_arithmetic",
    2,
    """Shift bits to the right: x >> y, with copies of the sign bit.

    It divides by 2 ** y and rounds down.

    >>> jnp.array([-8, 8]), 1
    [-4  4]
    """,
)
shift_right_logical_p = define_integer_op(
    "shift_right_logical",
    "shift_right_logical",
    2,
    """Shift bits to the right, with zeros.

    The bits of a negative number count as those of an unsigned one.

    >>> jnp.array([-8, 8]), 1
    [2147483644          4]
    """,
)
population_count_p = define_integer_op(
    "population_count",
    write_count_of_bits,
    1,
    """Count the bits that are 1.

    >>> jnp.array([7, 8])
    [3 1]
    """,
)
population_count_p.operation = "stablehlo.popcnt"
clz_p = define_integer_op(
    "clz",
    "count_leading_zeros",
    1,
    """Count the leading bits that are 0.

    >>> jnp.array([1, 8])
    [31 28]
    """,
)
mulhi_p = define_integer_op(
    "mulhi",
    "chlo.mulhi",
    2,
    """Return the upper half of the bits of the product x * y.

    >>> jnp.array([2**30]), 8
    [2]
    """,
)
nextafter_p = Elementwise(
    "nextafter",
    "chlo.next_after",
    [no_derivative("nextafter", "x1"), no_derivative("nextafter", "x2")],
    takes="float",
    doc="""Return the next float after x1 in the direction of x2.

    It is x2 if they are equal. The derivative is not defined.

    >>> jnp.float32(1.0), 2.0
    1.0000001
    """,
)


class BitcastConvertType(Discrete):
    """The bits of x read as `new_dtype`.

    Shapes: as x where the widths are equal; to a dtype n times narrower, a last axis of size n is
    added, and to one n times wider, a last axis of size n is taken away. Dtypes: integers and
    floats; any to itself. Not differentiable. Source: StableHLO, bitcast_convert.
    """

    name = "bitcast_convert_type"
    elements = Elements.CHOSEN
    cost = Cost.FREE

    def abstract_eval(self, x, *, new_dtype):
        odd = [d for d in (x.dtype, new_dtype) if dtypes.is_bool(d) or dtypes.is_complex(d)]
        if odd and x.dtype != new_dtype:
            raise DtypeError(
                f"{self.name}: bool and complex stay as they are; got {x} to {new_dtype.name}. "
                "Hint: x.view(dtype)."
            )
        old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
        if old >= new:
            shape = x.shape if old == new else (*x.shape, old // new)
        elif x.shape[-1:] == (new // old,):
            shape = x.shape[:-1]
        else:
            raise ShapeError(
                f"{self.name}: to a dtype {new // old} times as wide, the last axis must be of "
                f"size {new // old}; got {x} to {new_dtype.name}."
            )
        return [ShapedArray(shape, new_dtype)]

    def label_axes(self, avals, outs, **params):
        rank = min(avals[0].ndim, outs[0].ndim)
        row = lambda a: [i if i < rank else None for i in range(a.ndim)]
        return Axes([row(avals[0])], [row(outs[0])])

    def lower(self, hlo, x, *, new_dtype):
        if x.aval.dtype == new_dtype:
            return [x]
        return hlo.op(
            "stablehlo.bitcast_convert", [x], self.abstract_eval(x.aval, new_dtype=new_dtype)
        )

    def batch(self, axis, args, dims, *, new_dtype):
        (x,), (d,) = args, dims
        if d == typeof(x).ndim - 1:  # the last axis may come or go
            x, d = move_to_front(x, d), 0
        return self.apply(x, new_dtype=new_dtype), [d]


bitcast_convert_type_p = BitcastConvertType()


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Return the bits of an array, read as another dtype.

    Args:
      operand: an array of integers or floats.
      new_dtype: an integer or float dtype. If it is n times narrower, the result has one more axis
        of size n; if it is n times wider, the last axis, which must be of size n, is removed.

    Returns:
      An array of the new dtype. It has no derivative.

    Raises:
      ShapeError: the last axis does not fit a wider dtype.

    >>> print(lax.bitcast_convert_type(jnp.float32(1.0), np.int32))
    1065353216
    >>> print(lax.bitcast_convert_type(jnp.float32(1.0), np.int16))
    [    0 16256]
    """
    return bitcast_convert_type_p.apply(
        operand, new_dtype=dtypes.canonicalize(new_dtype, "bitcast_convert_type")
    )[0]


class ReducePrecision(LinearByElement):
    """x rounded to a float with the given numbers of exponent and mantissa bits.

    The tangent and the cotangent are rounded too. Source: StableHLO, reduce_precision.
    """

    name = "reduce_precision"
    cost = Cost.CHEAP
    element = apply_to_element
    elements = Elements.CHOSEN

    def abstract_eval(self, x, *, exponent_bits, mantissa_bits):
        check_kind(self.name, "float", x)
        if exponent_bits < 1 or mantissa_bits < 0:
            raise ShapeError(
                f"{self.name}: exponent_bits must be at least 1 and mantissa_bits at least 0; "
                f"got {exponent_bits} and {mantissa_bits}."
            )
        return [x]

    def lower(self, hlo, x, *, exponent_bits, mantissa_bits):
        return hlo.op(
            "stablehlo.reduce_precision",
            [x],
            [x.aval],
            exponent_bits=f"{exponent_bits} : i32",
            mantissa_bits=f"{mantissa_bits} : i32",
        )

    def transpose(self, cts, x, **params):
        return self.apply(cts[0], **params)


reduce_precision_p = ReducePrecision()


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round each element to a float with fewer bits, in the dtype of the operand.

    It shows the effect of a narrower float without its storage. Tangents and cotangents are rounded
    too.

    Args:
      operand: an array of floats.
      exponent_bits: the number of bits of the exponent, an int >= 1.
      mantissa_bits: the number of bits of the mantissa, an int >= 0.

    Returns:
      An array of the shape and dtype of the operand.

    Raises:
      DtypeError: the operand is not of floats.
      ShapeError: a number of bits is too small.

    >>> print(lax.reduce_precision(jnp.float32(1.1), 5, 10))  # as a float16
    1.0996094
    """
    return reduce_precision_p.apply(
        operand,
        exponent_bits=check_integer("reduce_precision", "exponent_bits", exponent_bits),
        mantissa_bits=check_integer("reduce_precision", "mantissa_bits", mantissa_bits),
    )[0]


shift_left = binary_op(shift_left_p)
shift_right_arithmetic = binary_op(shift_right_arithmetic_p)
shift_right_logical = binary_op(shift_right_logical_p)
population_count = unary_op(population_count_p)
clz = unary_op(clz_p)
mulhi = binary_op(mulhi_p)
nextafter = binary_op(nextafter_p, operands="x1 x2")
