"""How sums over axes are lowered: XLA's own way, or on the CPU one that is quicker by far."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.primitives.expr import Expr
from weft.xla.hlo import i64s
from weft.xla.native import are_floats, call_native, has_kernels

_LARGE = 1 << 15  # elements from which on the call of a kernel pays
_MANY = 1 << 18  # from which on it pays to reduce in three steps
_WIDE = 24576  # from which on YNNPACK goes through rows in 2 to 5 times the kernel's time
_FLOATS = np.float32, np.float64
# Of all, of what is not NaN, of ones in its place, which counts it; and the product of rows.
_KINDS = {kind: {"what": i} for i, kind in enumerate(("sum", "numbers", "count", "product"))}
_SHORT = 8  # up to which XLA's loop takes a row at once, and rows side by side
_ROWS = 256  # from which on that shows
# What XLA computes within a loop that adds up short rows, as fast as by itself, if it is not much
_CHEAP = frozenset((
    "abs", "add", "and", "broadcast_in_dim", "compare", "constant", "convert", "divide",
    "exponential", "log", "logistic", "maximum", "minimum", "multiply", "negate", "not", "or",
    "reshape", "rsqrt", "select", "slice", "sqrt", "subtract", "tanh", "transpose",
))  # fmt: skip
_MOST_CHEAP = 16
_APART = frozenset((
    "concatenate", "convolution", "custom_call", "dot_general", "dynamic_slice", "gather",
    "get_tuple_element", "iota", "reduce", "reduce_window", "scatter", "sort", "while",
))  # fmt: skip
_NEAR = 256  # lines that are looked at
_BYTES = {"i1": np.bool_, "i8": np.int8, "ui8": np.uint8}
_SMALL = _BYTES | {"f16": np.float16, "bf16": dtypes.bfloat16}
_FROM_SMALL = re.compile(
    r'(%\w+) = "stablehlo.convert"\((%\w+)\) : \(tensor<[\dx]*x(u?i[18]|b?f16)>'
)
_WORTH = 1 << 12  # bytes from which on it pays to call a kernel for their sum
_COMPARE = re.compile(
    r'"\w+.compare"\((%\w+), (%\w+)\) .*?direction (\w+)>.*? (?!TOTAL)\w+>}>.*?x(u?[if]\d+)>, '
)
_NUMBER = re.compile(r'"stablehlo.(constant.*= dense<[^"[>]+>|broadcast_in_dim.*array<i64>})')
_COMPARED = {dtypes.hlo_name(dtype): dtype for dtype in map(np.dtype, "?bhiqBHIQfd")}


def write_sum(hlo: Any, x: Any, axes: Sequence[int], out: ShapedArray) -> Any:
    """Write the sum over `axes`, which are removed."""
    aval, cell = x.aval, ShapedArray((), x.aval.dtype)
    found = call_sum(hlo, x, axes, out, "sum") or sum_small(hlo, x, axes, out)
    if found is not None:
        return found
    body = None
    is_float = hlo.platform == "cpu" and aval.dtype in _FLOATS
    if is_float and not hlo.devices and (are_few(aval, axes) or are_short(hlo, x, axes)):
        # a + b as YNNPACK does not know it: it takes 7 ms for the 16 rows of (16, 100000),
        # XLA's own loop 0.09; of thousands of rows XLA's takes 10 times as long, but of short
        # ones a fifth to a tenth
        body = hlo.block([cell, cell], lambda a, b: [(Expr(hlo, a) - -Expr(hlo, b)).value])
    body, zero = body or hlo.scalar_block("add", cell), hlo.constant(0, cell)

    def write(x: Any, axes: Sequence[int]) -> Any:
        kept = [n for i, n in enumerate(x.aval.shape) if i not in axes]
        out = ShapedArray(kept, cell.dtype)
        return hlo.op("stablehlo.reduce", [x, zero], [out], [body], dimensions=i64s(axes))[0]

    if is_float and out.size == 1 and out.shape:  # an axis of size 1 costs ten times the time
        alone = Expr(hlo, x).reshape([aval.shape[a] for a in axes]).value
        return Expr(hlo, write(alone, range(len(axes)))).reshape(out.shape).value
    slow = aval.dtype.kind in "iuc"
    return (slow and write_beside(hlo, x, axes, write, deeply=False)) or write(x, axes)


def call_sum(hlo: Any, x: Any, axes: Sequence[int], out: ShapedArray, what: str) -> Any:
    """Write a call of the kernel for `what` of `_KINDS` over `axes`, or give None.

    It is for what a program is called with, XLA may compute all else within its loop, and for
    sums of wide columns. Nor is it quicker for short rows.
    """
    aval = x.aval
    kinds = (*_FLOATS, np.complex64, np.complex128)[: 4 if what in ("sum", "product") else 2]
    kinds += (*_SMALL.values(),) if out.dtype != aval.dtype else ()
    if hlo.platform != "cpu" or not axes or aval.dtype not in kinds or type(aval.size) is not int:
        return None
    _, n, lanes = sizes = sizes_around(aval.shape, axes)
    few = are_few(aval, axes)
    plain = what == "sum" and aval.dtype in _FLOATS  # which XLA is quick at, too
    long = n >= (512 if plain else 128) if lanes == 1 else lanes >= 64
    if (few and what != "sum") or (lanes > 1 and what == "product"):
        return None
    large = aval.size >= (_LARGE if aval.dtype.itemsize > 1 else _WORTH)
    worth = are_near(axes) and long and large and aval.size >= 8 * out.size
    wide = plain and lanes >= _WIDE and not few
    hlo.choices += worth and not wide
    if worth and (wide or is_given(hlo, x)) and has_kernels(hlo):
        return call_reduction(hlo, "weft_sum", [Expr(hlo, x)], sizes, out, _KINDS[what])
    return None


def is_given(hlo: Any, x: Any) -> bool:
    """Whether a program is called with x, or with what was just reshaped to it."""
    reshaped = f'{x.name} = "stablehlo.reshape"(%arg'
    return x.is_argument or any(line.startswith(reshaped) for line in hlo.lines[-2:])


def sum_small(hlo: Any, x: Any, axes: Sequence[int], out: ShapedArray) -> Any:
    """Write the sum of 8 or 16 bits that `x` was converted from, rounded once, or give None."""
    aval, size, wide = x.aval, x.aval.size, x.aval.dtype in _FLOATS
    fits = axes and (wide or aval.dtype in (np.int32, np.uint32))
    if hlo.platform != "cpu" or not fits or type(size) is not int or size < _WORTH:
        return None
    hlo.looks += 1
    rows, n, lanes = sizes_around(aval.shape, axes)
    found = _FROM_SMALL.match("".join(hlo.lines[-1:]))
    hlo.choices += found is not None
    if not found or found[1] != x.name:
        return None
    of_bytes = type(x)(found[2], aval.update(dtype=np.dtype(_SMALL[found[3]])))
    if found[3] not in _BYTES:  # XLA's library is as quick for one row of bfloat16
        fits = aval.dtype == np.float32 and (found[3] == "f16" or rows * lanes > 1)
        return call_sum(hlo, of_bytes, axes, out, "sum") if fits else None
    if wide and n << 8 * (found[3] != "i1") >= 1 << 31:
        return None
    whole = out.update(dtype=np.dtype(np.int32)) if wide else out
    y = call_sum(hlo, of_bytes, axes, whole, "sum")
    if y is None and whole.dtype == np.int32:
        y = call_comparison(hlo, of_bytes, axes, whole, "count")
    if y is None and wide and lanes == 1 and size >= _LARGE and not hlo.devices:
        x = Expr(hlo, of_bytes).convert(np.int32).value
        y = write_sum(hlo, x, axes, whole) if split_row(n, x.aval, rows == 1)[1] else None
    return y and Expr(hlo, y).convert(out.dtype).value


def call_comparison(hlo: Any, x: Any, axes: Sequence[int], out: Any, answer: str) -> Any:
    """Write a call of the kernel that answers if or how often `x`, a comparison, holds; or None.

    It is for arguments, also one and a number, and stops where the answer is known.
    """
    aval, size = x.aval, x.aval.size
    if aval.dtype != np.bool_ or not axes or type(size) is not int or size < _WORTH:
        return None
    _, n, lanes = sizes = sizes_around(aval.shape, axes)
    if not are_near(axes) or (n < 128 if lanes == 1 else lanes < 64) or not has_kernels(hlo):
        return None
    hlo.choices += 1
    makers = dict(line.partition(" = ")[::2] for line in hlo.lines[-_NEAR:])
    found = _COMPARE.match(makers.get(x.name, ""))
    *names, direction, of = found.groups() if found else (x.name, "NE", "i1")
    operands = [] if found else [Expr(hlo, hlo.constant(False, ShapedArray((), aval.dtype)))]
    for name in names if of in _COMPARED else ():
        whole = Expr(hlo, type(x)(name, aval.update(dtype=_COMPARED[of])))
        if name.startswith("%arg"):
            operands.append(whole)
        elif _NUMBER.match(makers.get(name, "")):
            operands.append(whole.slice([0] * aval.ndim, [1] * aval.ndim).reshape(()))
    if len(operands) < 2 or not any(y.shape for y in operands):
        return None
    params = {"direction": direction, "answer": answer}
    return call_reduction(hlo, "weft_compare", operands, sizes, out, params)


def write_inner_products(hlo: Any, x: Any, y: Any, axes: Sequence[int], out: ShapedArray) -> Any:
    """Write a call of the kernel for sums of products along `axes`, or give None.

    XLA multiplies and adds one after the other: of a million in 3 to 4 times the kernel's time.
    """
    aval = x.aval
    if not are_floats(aval, out) or aval.size < _LARGE or not axes or not are_near(axes):
        return None
    sizes = sizes_around(aval.shape, axes)
    if sizes[1] < (512 if sizes[2] == 1 else 16) or 1 < sizes[2] < 64 or not has_kernels(hlo):
        return None
    return call_reduction(hlo, "weft_sum", [Expr(hlo, x), Expr(hlo, y)], sizes, out, _KINDS["sum"])


def write_beside(hlo: Any, x: Any, axes: Sequence[int], write: Callable, deeply: bool) -> Any:
    """Write a reduction of long rows, by `write(x, axes)`, of elements side by side; or give None.

    XLA:CPU combines one after the other, unless they are floats that its library adds or compares.
    `deeply`: also where as many as there are have to be combined in one loop.
    """
    aval = x.aval
    if hlo.platform != "cpu" or hlo.devices or not axes or type(aval.size) is not int:
        return None
    rows, n, lanes = sizes_around(aval.shape, axes)
    if lanes != 1 or aval.size < _LARGE or not are_near(axes):
        return None
    large = aval.dtype.itemsize > 4
    hlo.choices += large
    # of 8 bytes a row at a time is as quick, unless integers are converted to them
    small = not large or (aval.dtype.kind != "c" and not x.is_argument)
    deep, side = split_row(n, aval, rows == 1) if small or rows == 1 else (0, 0)
    if not side:
        side = find_divisor(n, 128, 16) if deeply and n >= 1024 else 0
        deep = n // max(side, 1)
    if not side:
        return None
    y = write(Expr(hlo, x).reshape((aval.size // (deep * side), deep, side)).value, (1,))
    if n > deep * side:
        y = write(Expr(hlo, set_apart(hlo, y)).reshape((1, n // (deep * side), side)).value, (1,))
    kept = [size for i, size in enumerate(aval.shape) if i not in axes]
    return Expr(hlo, write(set_apart(hlo, y), (1,))).reshape(kept).value


def set_apart(hlo: Any, x: Any) -> Any:
    """A value that is computed before what takes it, and not within."""
    return hlo.op("stablehlo.optimization_barrier", [x], [x.aval])[0]


def split_row(n: int, aval: ShapedArray, alone: bool) -> tuple[int, int]:
    """How many elements of each of n to combine at once, and how many of these side by side; or 0.

    Up to 32: of more in a loop XLA computes the operand first, and takes two to four times as long.
    So it does where a third step has to follow, but for one row.
    """
    for deep in range(32 if aval.dtype.itemsize <= 4 else 10, 7, -1):
        side = find_divisor(n // deep, 128, 16) if n % deep == 0 else 0
        if side and (n == deep * side or (alone and n >= _MANY)):
            return deep, side
    return 0, 0


def find_divisor(n: int, most: int, least: int) -> int:
    """The largest divisor of n in a range; 0 where there is none."""
    return next((d for d in range(most, least - 1, -1) if n % d == 0), 0)


def are_near(axes: Sequence[int]) -> bool:
    """Whether axes in order are next to each other."""
    return axes[-1] - axes[0] == len(axes) - 1


def sizes_around(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, int, int]:
    """How many elements there are before axes, along them, and behind them."""
    before, behind = shape[: axes[0]], shape[axes[-1] + 1 :]
    return math.prod(before), math.prod(shape[a] for a in axes), math.prod(behind)


def call_reduction(
    hlo: Any, name: str, xs: Sequence[Expr], sizes: tuple, out: Any, params: dict
) -> Any:
    """Write a call of a kernel that reduces arrays, reshaped to `sizes`, along the second axis."""
    reduced = ShapedArray((sizes[0], sizes[2]), out.dtype)
    values = [(x.reshape(sizes) if x.shape else x).value for x in xs]  # some take a number too
    (y,) = call_native(hlo, name, values, [reduced], params)
    return Expr(hlo, y).reshape(out.shape).value


def are_few(aval: ShapedArray, axes: Sequence[int]) -> bool:
    """Whether what a reduction combines are few rows, and long: YNNPACK takes its time for them."""
    lanes = math.prod(aval.shape[axes[-1] + 1 :]) if axes and type(aval.size) is int else 0
    return lanes >= 8192 and math.prod(aval.shape[a] for a in axes) <= min(256, lanes // 128)


def are_short(hlo: Any, x: Any, axes: Sequence[int]) -> bool:
    """Whether rows are short, and made by little that XLA would compute again and slower in a loop.

    What makes them is read from the program: a formula of a sine in that loop took 3 times as long.
    """
    if not axes or type(x.aval.size) is not int:
        return False
    rows, n, lanes = sizes_around(x.aval.shape, axes)
    if lanes != 1 or not 2 <= n <= _SHORT or rows < _ROWS:
        return False
    hlo.choices += 1
    wanted, count = {x.name}, 0
    for line in reversed(hlo.lines[-_NEAR:]):
        if line.startswith("^"):  # the arguments of a region
            wanted = {v for v in wanted if f"{v}:" not in line}
        outs, _, rest = line.partition(" = ")
        if wanted.isdisjoint(outs.split(", ")):
            continue
        wanted.difference_update(outs.split(", "))
        _, op, rest = rest.split('"', 2)
        op = op.removeprefix("stablehlo.")
        if op in _CHEAP:
            count += 1
            wanted.update(rest[1 : rest.index(")")].split(", "))
        elif op not in _APART:
            return False
    return count <= _MOST_CHEAP and all(not v or v.startswith("%arg") for v in wanted)
