"""`Expr`: mathematics written as it reads, lowered to StableHLO: `x * y + 1` writes operations.

For lowerings that are formulas: special functions, small matrices, random words. It is not part
of the language and has no derivative: the primitives whose `lower` uses it have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.xla.hlo import i64s


def write_operator(op: str, swapped: bool = False) -> Callable[[Expr, Any], Any]:
    """The method of `Expr` that writes an operation of two operands."""

    def method(self: Expr, other: Any) -> Any:
        if type(other) is not type(self) and not isinstance(other, Number):
            return NotImplemented
        return self.like(other).apply(op, self) if swapped else self.apply(op, other)

    return method


def write_comparison(direction: str) -> Callable[[Expr, Any], Expr]:
    """The method of `Expr` that writes a comparison."""
    return lambda self, other: self.compare(direction, other)


def write_quotient(divide: Callable[[Expr, Any], Any]) -> Callable[[Expr, Any], Any]:
    """Return the method of `Expr` that divides, and leaves all bits of large quotients unchanged.

    XLA:CPU ends a loop at a quotient that is used twice, and writes it to memory, but does not end
    a loop at the operation that follows the quotient here. XLA:GPU takes that operation out.
    """

    def method(self: Expr, other: Any) -> Any:
        out = divide(self, other)
        if out is NotImplemented or out.dtype not in ALL_BITS or not is_large(out.aval):
            return out
        return out.make("reduce_precision", out.aval, **ALL_BITS[out.dtype])

    return method


LARGE = 1 << 12  # with fewer elements, compiling a formula does not pay on CPUs
I32, I64 = map(np.dtype, (np.int32, np.int64))
BF16, F32, F64 = map(np.dtype, ("bfloat16", "float32", "float64"))
ALL_BITS = {
    F32: {"exponent_bits": "8 : i32", "mantissa_bits": "23 : i32"},
    F64: {"exponent_bits": "11 : i32", "mantissa_bits": "52 : i32"},
}


def split_number(x: float) -> tuple[float, float]:
    """x as a sum of two floats of half the bits."""
    bits = np.array(x, np.float64).view(np.uint64) & np.uint64(0xFFFFFFFFF8000000)
    high = float(bits.view(np.float64))
    return high, x - high


def is_large(aval: ShapedArray) -> bool:
    """Return True if a formula pays for an array of this type."""
    return type(aval.size) is int and aval.size >= LARGE


class Expr:
    """A value of the program that `hlo` writes; operators on it write StableHLO operations.

    Numbers take its type; of two shapes, the shorter repeats along the last axes of the longer.
    `eps` is the spacing at 1 of the floats that are wanted, where a formula asks (special/).
    """

    __slots__ = ("eps", "hlo", "value")

    def __init__(self, hlo: Any, value: Any, eps: float = 0.0):
        self.hlo, self.value, self.eps = hlo, value, eps

    @property
    def aval(self) -> ShapedArray:
        return self.value.aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self.value.aval.dtype

    @property
    def finfo(self) -> Any:
        """The limits of the dtype that is computed in."""
        return dtypes.finfo(self.dtype)

    def new(self, value: Any) -> Expr:
        """Return an Expr of another value, with the same accuracy."""
        return type(self)(self.hlo, value, self.eps)

    def exact(self) -> Expr:
        """Return this value, to be computed with the full accuracy of its dtype."""
        return type(self)(self.hlo, self.value, float(self.finfo.eps))

    def like(self, x: Any) -> Expr:
        """`x`, a number or an Expr; a number in this shape and dtype."""
        return x if isinstance(x, Expr) else self.new(self.hlo.constant(x, self.aval))

    # --- elements ---

    def apply(self, op: str, *others: Any) -> Expr:
        """An operation on values of one dtype, which the result has too."""
        operands = [self, *map(self.like, others)]
        shapes = [x.value.aval.shape for x in operands]
        if shapes.count(shapes[0]) < len(shapes):
            shape = max(shapes, key=len)
            operands = [x.broadcast(shape) for x in operands]
        return self.new(self.hlo.like(op, *[x.value for x in operands])[0])

    __add__, __mul__ = write_operator("add"), write_operator("multiply")
    __radd__, __rmul__ = __add__, __mul__
    __sub__, __rsub__ = write_operator("subtract"), write_operator("subtract", swapped=True)
    __truediv__ = write_quotient(write_operator("divide"))
    __rtruediv__ = write_quotient(write_operator("divide", swapped=True))
    __and__, __or__, __xor__ = map(write_operator, ("and", "or", "xor"))
    __lt__, __le__, __gt__, __ge__ = map(write_comparison, ("LT", "LE", "GT", "GE"))

    def __neg__(self) -> Expr:
        return self.apply("negate")

    def __abs__(self) -> Expr:
        return self.apply("abs")

    def __invert__(self) -> Expr:
        return self.apply("not")

    def compare(self, direction: str, other: Any) -> Expr:
        """A comparison, "EQ", "LT" and so on, as truth values."""
        return self.new(self.hlo.compare(direction, self.value, self.like(other).value))

    def select(self, yes: Expr, no: Any) -> Expr:
        """`yes` where this is true, else `no`."""
        mask = self if not self.shape else self.broadcast(yes.shape)
        return mask.make("select", yes.aval, yes, yes.like(no))

    def convert(self, dtype: np.dtype) -> Expr:
        """The same numbers in another dtype."""
        return self.new(self.hlo.convert(self.value, dtype))

    def bitcast(self, dtype: Any, shape: Sequence[int] | None = None) -> Expr:
        """The bits read as another dtype; of another width in another shape."""
        out = self.aval.update(dtype=np.dtype(dtype), shape=shape or self.shape)
        return self.make("bitcast_convert", out)

    def part(self, name: str) -> Expr:
        """The "real" or "imag" part; a real value itself."""
        if not dtypes.is_complex(self.dtype):
            return self
        return self.make(name, self.aval.update(dtype=dtypes.real_dtype(self.dtype)))

    def conjugate(self) -> Expr:
        """The complex conjugate; a real value itself."""
        if not dtypes.is_complex(self.dtype):
            return self
        return self.part("real").make("complex", self.aval, -self.part("imag"))

    def clamp(self, low: float, high: float) -> Expr:
        """x, or the nearer end of an interval that does not contain it."""
        return self.like(low).make("clamp", self.aval, self, self.like(high))

    def power_of_two(self) -> Expr:
        """2**n of a whole number in float64, from -1022 to 1023."""
        bits = self.convert(I32).convert(I64) + 1023
        return bits.apply("shift_left", 52).bitcast(F64)

    def scale(self, n: Expr) -> Expr:
        """x 2**n of a whole number in float64, up to 2000 in size."""
        half = (n * 0.5).apply("round_nearest_even")
        return self * half.power_of_two() * (n - half).power_of_two()

    def split_bits(self) -> tuple[Expr, Expr]:
        """x as a sum of two floats of half the bits, by bits: no compiler can spoil that."""
        bits, mask = (I64, -(1 << 27)) if self.dtype == F64 else (I32, -(1 << 12))
        high = (self.bitcast(bits) & mask).bitcast(self.dtype)
        return high, self - high

    def product_error(self, other: Any, product: Expr) -> Expr:
        """The rounding error of a product with an Expr or a number (Dekker 1971)."""
        parts = other.split_bits() if isinstance(other, Expr) else split_number(other)
        (a, b), (c, d) = self.split_bits(), parts
        return ((a * c - product) + a * d + b * c) + b * d

    def inverse(self) -> Expr:
        """1 / x, to a unit."""
        return 1 / self

    def ratio(self, other: Expr) -> Expr:
        """x / y, where some 40 bits of it are enough."""
        return self / other

    def polynomial(self, coefficients: Sequence[float]) -> Expr:
        """The sum of coefficients[k] x**k, by Horner's rule."""
        out = self.like(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            out = out * self + c
        return out

    # --- shapes ---

    def make(self, op: str, out: ShapedArray, *others: Expr, **attrs: Any) -> Expr:
        """An operation with one result, of the type `out`."""
        operands = [self.value, *[x.value for x in others]]
        return self.new(self.hlo.op("stablehlo." + op, operands, [out], **attrs)[0])

    def broadcast(self, shape: Sequence[int], dims: Sequence[int] | None = None) -> Expr:
        """Repeated to `shape`: axis k is axis dims[k] of it, axis k where `dims` does not say."""
        if self.shape == tuple(shape):
            return self
        dims = range(len(self.shape)) if dims is None else dims
        out = self.aval.update(shape=tuple(shape))
        return self.make("broadcast_in_dim", out, broadcast_dimensions=i64s(dims))

    def reshape(self, shape: Sequence[int]) -> Expr:
        """The same elements under another shape."""
        if self.shape == tuple(shape):
            return self
        return self.make("reshape", self.aval.update(shape=tuple(shape)))

    def transpose(self, order: Sequence[int]) -> Expr:
        """Axis order[k] as axis k."""
        if list(order) == list(range(len(self.shape))):
            return self
        out = self.aval.update(shape=tuple(self.shape[i] for i in order))
        return self.make("transpose", out, permutation=i64s(order))

    def slice(self, starts: Sequence[int], limits: Sequence[int]) -> Expr:
        """The part from `starts` up to `limits`."""
        shape = tuple(b - a for a, b in zip(starts, limits, strict=True))
        if self.shape == shape:
            return self
        return self.make(
            "slice",
            self.aval.update(shape=shape),
            start_indices=i64s(starts),
            limit_indices=i64s(limits),
            strides=i64s([1] * len(shape)),
        )

    def slice_axis(self, start: int, stop: int, axis: int = -1) -> Expr:
        """The part from `start` up to `stop` along one axis."""
        starts, limits = [0] * len(self.shape), list(self.shape)
        starts[axis], limits[axis] = start, stop
        return self.slice(starts, limits)

    def slice_at(self, starts: Sequence[Expr], sizes: Sequence[int]) -> Expr:
        """The part of these sizes at a place known when the program runs."""
        out = self.aval.update(shape=tuple(sizes))
        return self.make("dynamic_slice", out, *starts, slice_sizes=i64s(sizes))

    def update_at(self, part: Expr, starts: Sequence[Expr]) -> Expr:
        """With a part replaced at a place known when the program runs."""
        return self.make("dynamic_update_slice", self.aval, part, *starts)

    def pad(self, lows: Sequence[int], highs: Sequence[int], fill: Any = 0) -> Expr:
        """Pad each axis with `fill`, low and high; a negative count crops."""
        if not any((*lows, *highs)):
            return self
        rows = zip(self.shape, lows, highs, strict=True)
        fill = fill if isinstance(fill, Expr) else scalar(self.hlo, fill, self.dtype)
        return self.make(
            "pad",
            self.aval.update(shape=tuple(n + low + high for n, low, high in rows)),
            fill,
            edge_padding_low=i64s(lows),
            edge_padding_high=i64s(highs),
            interior_padding=i64s([0] * len(lows)),
        )


def scalar(hlo: Any, x: Any, dtype: Any = np.int32) -> Expr:
    """A number; an index where no dtype is given."""
    return Expr(hlo, hlo.constant(x, ShapedArray((), dtype)))


def count_along(hlo: Any, out: ShapedArray, axis: int) -> Expr:
    """0, 1, 2, ... along an axis."""
    return Expr(hlo, hlo.op("stablehlo.iota", [], [out], iota_dimension=f"{axis} : i64")[0])


def concatenate_exprs(parts: Sequence[Expr], axis: int) -> Expr:
    """Values one after another along an axis."""
    first, *rest = parts
    if not rest:
        return first
    # XLA:CPU aborts where elements smaller than a byte do not fill one: join them as bytes
    if dtypes.itemsize_bits(first.dtype) < 8 and dtypes.is_integer(first.dtype):
        wide = [x.convert(np.dtype(np.int8)) for x in parts]
        return concatenate_exprs(wide, axis).convert(first.dtype)
    shape = list(first.shape)
    shape[axis] = sum(x.shape[axis] for x in parts)
    out = first.aval.update(shape=tuple(shape))
    return first.make("concatenate", out, *rest, dimension=f"{axis % len(shape)} : i64")


def write_division(op: str) -> Callable[..., Any]:
    """Return the lowering of `divide` or `remainder`, which never divides integers by zero.

    XLA would divide constants while it compiles, and end the process. x / 0 is -1 and x % 0 is x.
    """

    def write(hlo: Any, aval: ShapedArray, x: Any, y: Any, **params: Any) -> Any:
        x, y = Expr(hlo, x), Expr(hlo, y)
        if not dtypes.is_integer(aval.dtype):
            return x.apply(op, y).value
        if dtypes.is_of_two_bits(aval.dtype):
            whole = dtypes.whole_byte_dtype(aval.dtype)
            x, y = x.convert(whole), y.convert(whole)
            return Expr(hlo, write(hlo, x.aval, x.value, y.value)).convert(aval.dtype).value
        by_zero = y.compare("EQ", 0)
        out = x.apply(op, by_zero.select(y.like(1), y))
        return replace_by_zero(op, x, by_zero, out).value

    return write


def replace_by_zero(op: str, x: Expr, by_zero: Expr, out: Expr) -> Expr:
    """Return the quotient or remainder of integers, with its value for divisions by zero."""
    every_bit = dtypes.iinfo(x.dtype).max if not dtypes.is_signed(x.dtype) else -1
    return by_zero.select(x.like(every_bit) if op == "divide" else x, out)


def write_int32_division(hlo: Any, x: Any, y: Any, op: str) -> list:
    """Write `divide` or `remainder` of int32 with a quotient in float64, which is vectorized.

    The quotient is exact after truncation. Half is added to x, away from 0, because XLA
    multiplies by the reciprocal of a scalar: 248 * 249 / 249 would be a little less than 248.
    """
    x, y = Expr(hlo, x), Expr(hlo, y)
    by_zero = y.compare("EQ", 0)
    wide = x.convert(F64)
    half = x.compare("LT", 0).select(wide.like(-0.5), wide.like(0.5))
    out = ((wide + half) / y.convert(F64)).convert(x.dtype)
    out = y.compare("EQ", -1).select(-x, out)  # which may wrap
    out = out if op == "divide" else x - out * y
    return [replace_by_zero(op, x, by_zero, out).value]


def lower_square(hlo: Any, aval: ShapedArray, x: Any) -> Any:
    """x * x; of complex numbers with (a - b)(a + b), where a**2 - b**2 would cancel or be NaN."""
    if not dtypes.is_complex(aval.dtype):
        return hlo.like("multiply", x, x)[0]
    z = Expr(hlo, x)
    a, b = z.part("real"), z.part("imag")
    product = a * b
    return ((a - b) * (a + b)).make("complex", z.aval, product + product).value


def lower_integer_pow(hlo: Any, aval: ShapedArray, x: Any, *, y: int) -> Any:
    """By repeated squaring: 2 log2(y) multiplications."""
    if y == 0:
        return hlo.constant(1, aval)
    n, square_, out = abs(y), x, None
    while n:
        if n & 1:
            out = square_ if out is None else hlo.like("multiply", out, square_)[0]
        n >>= 1
        if n:
            square_ = lower_square(hlo, aval, square_)
    return hlo.like("divide", hlo.constant(1, aval), out)[0] if y < 0 else out


def order_bits(bits: Expr) -> Expr:
    """Convert the bits of floats, as signed integers, to integers in totalOrder, or back.

    The bits of positive floats are ordered already. The bits of negative floats, except for the
    sign, are in reverse order and are flipped.
    """
    info = dtypes.iinfo(bits.dtype)
    return bits ^ bits.apply("shift_right_arithmetic", info.bits - 1) & int(info.max)


def lower_extremum(op: str, direction: str) -> Callable:
    """Return the lowering of max or min. Complex numbers are ordered by their real parts first."""

    def write(hlo: Any, aval: ShapedArray, x: Any, y: Any) -> Any:
        if dtypes.is_of_two_bits(aval.dtype):
            found = hlo.compare(direction, x, y)
            return hlo.op("stablehlo.select", [found, x, y], [aval])[0]
        if not dtypes.is_complex(aval.dtype):
            return hlo.like(op, x, y)[0]
        x, y = Expr(hlo, x), Expr(hlo, y)
        a, b, c, d = (v.part(name) for name in ("real", "imag") for v in (x, y))
        tie, first = a.compare("EQ", b), a.compare(direction, b)
        found = tie.select(c.compare(direction, d), first).select(x, y)
        for v in (y, x):  # a NaN in either part is the result; a NaN in x wins over one in y
            found = v.compare("NE", v).select(v, found)
        return found.value

    return write


def lower_clamp(hlo: Any, aval: ShapedArray, low: Any, x: Any, high: Any) -> Any:
    """Write min(max(low, x), high)."""
    if dtypes.is_of_two_bits(aval.dtype):
        larger = lower_extremum("maximum", "GT")(hlo, aval, low, x)
        return lower_extremum("minimum", "LT")(hlo, aval, larger, high)
    return hlo.like("clamp", low, x, high)[0]


def lower_sign(hlo: Any, aval: ShapedArray, x: Any) -> Any:
    """Write the sign of a number. StableHLO has no sign of unsigned integers: it is 0 or 1."""
    if dtypes.is_unsigned(aval.dtype):
        return hlo.convert(hlo.compare("NE", x, hlo.constant(0, aval)), aval.dtype)
    return hlo.like("sign", x)[0]
