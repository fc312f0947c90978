"""Random calls of the array API standard, as texts: the generator of test_array_api_random.py.

As the standard's own suite does, it draws shapes without axes or elements, every dtype, operands
that broadcast or are numbers of Python, axes, indices and flags. Calls that the standard leaves
open are not drawn.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

SIGNED, UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
INTEGERS, FLOATS, COMPLEX = SIGNED + UNSIGNED, ["float32", "float64"], ["complex64", "complex128"]
REAL, INEXACT = INTEGERS + FLOATS, FLOATS + COMPLEX
NUMBERS = REAL + COMPLEX
ALL = ["bool", *NUMBERS]

UNARY = {
    "abs negative positive sign square": NUMBERS,
    "conj real imag": COMPLEX,
    "ceil floor round trunc": REAL,
    "bitwise_invert": INTEGERS + ["bool"],
    "logical_not": ["bool"],
    "isfinite isinf isnan": NUMBERS,
    "signbit": FLOATS,
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal sin sinh "
    "sqrt tan tanh": INEXACT,
}
BINARY = {
    "add multiply subtract equal not_equal": NUMBERS,
    "less less_equal greater greater_equal maximum minimum remainder floor_divide": REAL,
    "divide pow": INEXACT,
    "atan2 copysign hypot logaddexp nextafter": FLOATS,
    "bitwise_and bitwise_or bitwise_xor": INTEGERS + ["bool"],
    "bitwise_left_shift bitwise_right_shift": INTEGERS,
    "logical_and logical_or logical_xor": ["bool"],
}
OPERATORS = {
    "+ - * == !=": NUMBERS,
    "< <= > >= % //": REAL,
    "/ **": INEXACT,
    "& | ^": INTEGERS + ["bool"],
    "<< >>": INTEGERS,
}
IN_PLACE = {
    "iadd isub imul": NUMBERS,
    "ifloordiv imod": REAL,
    "itruediv ipow": INEXACT,
    "iand ior ixor": INTEGERS + ["bool"],
    "ilshift irshift": INTEGERS,
}
REDUCTIONS = {
    "all any count_nonzero": ALL,
    "max min": REAL,
    "sum prod": NUMBERS,
    "mean": INEXACT,
    "std var": INEXACT,
}
PAIRS = [(a, b) for kinds in (SIGNED, UNSIGNED, FLOATS + COMPLEX) for a in kinds for b in kinds]


class Draw:
    """Random calls, and the operands that they name."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.arrays: dict[str, np.ndarray] = {}

    def one_of(self, options: Any) -> Any:
        """Return one of a list."""
        return options[self.rng.integers(len(options))]

    def row(self, table: dict[str, list[str]]) -> tuple[str, str]:
        """Return a name from a table, and one of its dtypes."""
        rows = [(name, kinds) for names, kinds in table.items() for name in names.split()]
        name, kinds = self.one_of(rows)
        return name, self.one_of(kinds)

    def shape(self, least: int = 0) -> tuple[int, ...]:
        """Return a shape with at least `least` axes."""
        rank = int(self.rng.integers(least, 4))
        return tuple([int(n) for n in self.rng.choice([0, 1, 2, 3], rank, p=[0.1, 0.2, 0.3, 0.4])])

    def array(self, dtype: str, shape: tuple[int, ...], low: int = -4, high: int = 5) -> str:
        """Return the name of a new operand."""
        x: Any = self.rng.integers(max(low, 0) if dtype[0] in "ub" else low, high, shape)
        if dtype[0] == "b":
            x = x % 2
        if dtype[0] in "fc":
            x = x + self.rng.choice([0, 0.5, 0.25], shape)
        if dtype[0] == "c":
            x = x + 1j * self.rng.integers(-3, 4, shape)
        name = f"x{len(self.arrays)}"
        self.arrays[name] = np.asarray(x).astype(dtype)
        return name

    def number(self, dtype: str) -> str:
        """Return a number of Python that stands beside a dtype."""
        kinds = {"b": ["True"], "u": ["2", "1"], "i": ["2", "-3"], "f": ["2", "0.5", "-1.5"]}
        return self.one_of(kinds.get(dtype[0], ["2", "0.5", "(1+2j)"]))

    def other(self, dtype: str, shape: tuple[int, ...]) -> str:
        """Return an operand that broadcasts with another one; its dtype may differ."""
        if self.rng.random() < 0.2:
            return self.number(dtype)
        dtype = self.one_of([b for a, b in PAIRS if a == dtype] or [dtype])
        kept = shape[int(self.rng.integers(0, len(shape) + 1)) :]
        return self.array(dtype, tuple([1 if self.rng.random() < 0.2 else n for n in kept]))

    def axis(self, rank: int, several: bool = True) -> Any:
        """Return one axis, or None, or several."""
        if not rank or self.rng.random() < 0.3:
            return None
        if several and self.rng.random() < 0.4:
            count = int(self.rng.integers(0, rank + 1))
            return tuple([int(i) for i in self.rng.permutation(rank)[:count]])
        return int(self.rng.integers(-rank, rank))

    def call(self) -> str:
        """Return a random call."""
        return self.one_of(KINDS)(self)


def draw_unary(draw: Draw) -> str:
    """An elementwise function of one operand."""
    name, dtype = draw.row(UNARY)
    return f"np.{name}({draw.array(dtype, draw.shape())})"


def draw_binary(draw: Draw) -> str:
    """An elementwise function, or an operator, of two operands; a shift is not negative."""
    as_operator = draw.rng.random() < 0.5
    name, dtype = draw.row(OPERATORS if as_operator else BINARY)
    shape = draw.shape()
    x = draw.array(dtype, shape)
    y = draw.array(dtype, shape, 0) if "shift" in name or name in "<<>>" else None
    y = y or draw.other(dtype, shape)
    if name in ("//", "%", "floor_divide", "remainder"):
        y = f"({y} * {y} + np.asarray(1, dtype={dtype!r}))" if y[0] == "x" else y
    if as_operator:
        swaps = name in ("+", "-", "*", "/", "&", "|", "^") and draw.rng.random() < 0.2
        x, y = (y, x) if swaps else (x, y)
        return f"({x}) {name} ({y})"
    return f"np.{name}({x}, {y})"


def draw_in_place(draw: Draw) -> str:
    """Draw an in-place operator; the left operand decides the dtype and the shape."""
    name, dtype = draw.row(IN_PLACE)
    shape = draw.shape()
    y = draw.array(dtype, shape[1:], 1) if draw.rng.random() < 0.7 else draw.number(dtype)
    y = "2" if "shift" in name and y[0] != "x" else y
    return f"change({name!r}, {draw.array(dtype, shape)}, {y})"


def draw_reduction(draw: Draw) -> str:
    """A reduction."""
    name, dtype = draw.row(REDUCTIONS)
    shape = draw.shape()
    more = ""
    if name in ("sum", "prod") and draw.rng.random() < 0.3:
        more = f", dtype={draw.one_of([d for d in NUMBERS if np.can_cast(dtype, d)])!r}"
    if name in ("std", "var"):
        more = f", correction={draw.one_of([0, 1, 0.5])}"
    keep, axis = draw.rng.random() < 0.5, draw.axis(len(shape))
    return f"np.{name}({draw.array(dtype, shape)}, axis={axis}, keepdims={keep}{more})"


def draw_along_axis(draw: Draw) -> str:
    """A function along one axis: sorts, running sums, places of extrema, differences."""
    shape, dtype = draw.shape(1), draw.one_of(REAL)
    axis, x = int(draw.rng.integers(-len(shape), len(shape))), draw.array(dtype, shape)
    y = draw.array(dtype, tuple([2 if i == axis % len(shape) else n for i, n in enumerate(shape)]))
    index = draw.array("int64", draw.arrays[y].shape, 0, max(1, shape[axis]))
    return draw.one_of([
        f"np.sort({x}, axis={axis}, stable=True)",
        f"np.argsort({x}, axis={axis}, stable=True)",
        f"np.cumulative_sum({x}, axis={axis}, include_initial={draw.rng.random() < 0.5})",
        f"np.cumulative_prod({x}, axis={axis}, include_initial={draw.rng.random() < 0.5})",
        f"np.argmax({x}, axis={axis}, keepdims={draw.rng.random() < 0.5})",
        f"np.argmin({x}, axis={draw.axis(len(shape), False)})",
        f"np.diff({x}, axis={axis}, n={draw.one_of([0, 1, 2])})",
        f"np.diff({x}, axis={axis}, prepend={y}, append={y})",
        f"np.take_along_axis({x}, {index}, axis={axis})",
        f"np.take({x}, {draw.array('int64', (3,), 0, max(1, shape[axis]))}, axis={axis})",
        f"np.concat([{x}, {y}], axis={axis})",
        f"np.unstack({x}, axis={axis})",
        f"np.repeat({x}, 2, axis={axis})",
        f"np.flip({x}, axis={draw.axis(len(shape))})",
        f"np.roll({x}, {int(draw.rng.integers(-4, 5))}, axis={draw.axis(len(shape), False)})",
    ])  # fmt: skip


def draw_arrangement(draw: Draw) -> str:
    """A function of shapes."""
    shape = draw.shape()
    x, y = (draw.array(draw.one_of(ALL), shape) for _ in range(2))
    rank, at = len(shape), int(draw.rng.integers(0, len(shape) + 1))
    order = tuple([int(i) for i in draw.rng.permutation(rank)])
    wide = draw.array(draw.one_of(ALL), shape[:at] + (1,) + shape[at:])
    found = [
        f"np.reshape({x}, {(-1,) if 0 not in shape else (0, 3)})",
        f"np.permute_dims({x}, {order})",
        f"np.expand_dims({x}, axis={at - rank - 1})",
        f"np.squeeze({wide}, axis={at})",
        f"np.broadcast_to({x}, {(2, *shape)})",
        f"np.broadcast_arrays({x}, {draw.array('bool', shape[at:])})",
        f"np.stack([{x}, {x}], axis={at})",
        f"np.tile({x}, {draw.one_of([(2,), (1, 2), (0,), ()])})",
        f"np.concat([{x}, {x}], axis=None)",
        f"np.where({draw.array('bool', shape[at:])}, {x}, {x})",
        f"np.full_like({x}, {draw.number(draw.arrays[x].dtype.name)})",
        f"np.zeros_like({x}, dtype={draw.one_of(ALL)!r})",
        f"np.ones_like({x})",
        f"np.nonzero({x})" if rank else f"np.count_nonzero({x})",
        f"np.sort(np.unique_values({x}))",
        f"np.unique_counts({x})",
        f"np.unique_inverse({x})",
        f"np.meshgrid({', '.join([draw.array('int32', (n,)) for n in (*shape, 2)])})",
        f"np.isin({x}, {x})",
        f"{x}[{', '.join(draw_entries(draw, shape))}]",
        f"np.asarray({x}, copy=True)",
        f"{x}[{draw.array('bool', shape[:at])}]",
    ]
    if rank:
        found.append(f"np.moveaxis({x}, {order[0]}, {order[-1]})")
    if rank >= 2:
        found += [
            f"np.tril({x}, k={at - 1})", f"np.triu({x}, k={at - 1})", f"np.matrix_transpose({x})",
            f"{x}.mT", f"np.linalg.diagonal({x}, offset={at - 1})",
        ]  # fmt: skip
    casts = [d for d in ALL if draw.arrays[x].dtype.kind != "c" or d[0] in "bc"]
    return draw.one_of([*found, f"np.astype({x}, {draw.one_of(casts)!r})"])


def draw_entries(draw: Draw, shape: tuple[int, ...]) -> list[str]:
    """Entries of an index: integers, slices, None and an Ellipsis."""
    entries: list[str] = []
    for n in shape:
        at = int(draw.rng.integers(-n, n)) if n else 0
        step = draw.one_of([1, 2, -1, -2])
        entries.append(
            str(at) if n and draw.rng.random() < 0.3 else f"{draw.one_of(['', at])}::{step}"
        )
    if draw.rng.random() < 0.4:
        k = int(draw.rng.integers(0, len(entries) + 1))
        entries[k : int(draw.rng.integers(k, len(entries) + 1))] = ["..."]
    if draw.rng.random() < 0.4:
        entries.insert(int(draw.rng.integers(0, len(entries) + 1)), "None")
    return entries or ["()"]


def draw_product(draw: Draw) -> str:
    """A product of vectors and matrices, or a factorization of small matrices that have one."""
    dtype = draw.one_of(NUMBERS)
    n, m, k = (draw.one_of([0, 1, 2, 3]) for _ in range(3))
    stack = draw.shape()[:1]
    new = lambda *shape: draw.array(dtype, shape)
    square = draw.array(draw.one_of(INEXACT), (*stack, n, n))
    hermitian = f"({square} @ np.conj({square}.mT) + 9 * np.eye({n}))"
    return draw.one_of([
        f"np.matmul({new(*stack, n, m)}, {new(m, k)})",
        f"{new(m)} @ {new(*stack, m, k)}",
        f"np.vecdot({new(*stack, m)}, {new(m)})",
        f"np.linalg.vecdot({new(m, n)}, {new(m, n)}, axis=0)",
        f"np.tensordot({new(n, m)}, {new(m, k)}, axes=1)",
        f"np.tensordot({new(n, m)}, {new(n, m)}, axes=((1, 0), (1, 0)))",
        f"np.tensordot({new(n)}, {new(m)}, axes=0)",
        f"np.linalg.outer({new(n)}, {new(m)})",
        f"np.linalg.trace({new(*stack, n, m)}, offset={draw.one_of([0, 1, -1])})",
        f"np.linalg.cross({new(*stack, 3)}, {new(3)})",
        f"np.linalg.matrix_power({hermitian}, {draw.one_of([0, 1, 2, 3])})",
        f"np.linalg.det({hermitian} / 9)",
        f"np.linalg.slogdet({hermitian})",
        f"np.linalg.inv({hermitian})",
        f"np.linalg.solve({hermitian}, {hermitian}[..., :1])",
        f"np.linalg.eigvalsh({hermitian})",
        f"np.linalg.cholesky({hermitian}, upper={draw.rng.random() < 0.5})",
        f"np.linalg.svdvals({hermitian}[..., :1])",
        f"np.linalg.vector_norm({square}, axis={draw.axis(len(stack) + 2)}, "
        f"ord={draw.one_of([0, 1, 2, 3, 'np.inf'])})",
        f"np.linalg.matrix_norm({square}, ord={draw.one_of([1, '-1', 2, 'np.inf', repr('fro')])})",
        f"np.linalg.matrix_rank({hermitian})",
        f"np.linalg.pinv({hermitian})",
    ])  # fmt: skip


def draw_creation(draw: Draw) -> str:
    """An array of no other."""
    dtype = draw.one_of(NUMBERS)
    low, high = int(draw.rng.integers(-3, 3)), int(draw.rng.integers(-3, 9))
    low, high = (abs(low), abs(high)) if dtype[0] == "u" else (low, high)
    count = int(draw.rng.integers(1, 6))
    inexact = draw.one_of(INEXACT)
    return draw.one_of([
        f"np.arange({low}, {high}, {draw.one_of([1, 2, 3])}, dtype={draw.one_of(SIGNED)!r})",
        f"np.arange({high}, {low}, {draw.one_of([-1, -0.5])}, dtype='float64')",
        f"np.arange({count})",
        f"np.arange({count}.0)",
        f"np.linspace({low}, {high}, {count}, dtype={inexact!r}, endpoint={count > 2})",
        f"np.eye({count}, {abs(low)}, k={low}, dtype={dtype!r})",
        f"np.full({(count, abs(low))}, {draw.number(dtype)}, dtype={dtype!r})",
        f"np.full({count}, {draw.one_of(['2', '0.5', 'True', '1j'])})",
        f"np.zeros({draw.shape()})",
        f"np.ones({draw.shape()}, dtype={dtype!r})",
        f"np.result_type({draw.array(dtype, (2,))}, {draw.number(dtype)}) == {dtype!r}",
        f"np.can_cast({dtype!r}, {draw.one_of(ALL)!r})",
        f"np.isdtype(np.dtype({dtype!r}), {draw.one_of(['real floating', 'numeric'])!r})",
        f"np.searchsorted(np.sort({draw.array('float64', (5,))}), {draw.array('float64', (2, 3))}, "
        f"side={draw.one_of(['left', 'right'])!r})",
        f"np.clip({draw.array('float32', (3,))}, {low}, {low + count})",
        f"np.fft.fft({draw.array(inexact, (2, 3))}, n={count}, axis={draw.one_of([0, 1])}, "
        f"norm={draw.one_of(['ortho', 'forward', 'backward'])!r})",
        f"np.fft.irfft({draw.array(draw.one_of(COMPLEX), (2, 3))}, n={count})",
        f"np.fft.fftfreq({count}, d=0.5)",
    ])  # fmt: skip


KINDS: list[Callable[[Draw], str]] = [
    draw_unary, draw_binary, draw_binary, draw_in_place, draw_reduction, draw_along_axis,
    draw_along_axis, draw_arrangement, draw_arrangement, draw_product, draw_creation,
]  # fmt: skip
