"""The fields of a row of the conformance suite; cases_*.py in this folder have the rows.

test_conformance.py runs every row through every check that applies to it.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

SHORT = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "c64": np.complex64,
    "c128": np.complex128,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "bool": np.bool_,
}
FLOATS = "f32 f16 bf16"
INTS = "i32 i8 u8 u32"
INEXACT = FLOATS + " c64"
NUMBERS = INEXACT + " " + INTS
ALL = NUMBERS + " bool"


@dataclass(frozen=True)
class Arg:
    """An operand: its shape, and its test values.

    Values are uniform between `low` and `high` (whole numbers for integer dtypes; for complex
    dtypes, each part), or are in `values`. `dtype` is its dtype if it differs from the dtype under
    test.
    """

    shape: tuple[int, ...] = ()
    low: float = -2.0
    high: float = 2.0
    dtype: Any = None
    values: Any = None
    moves: bool = True  # whether derivatives are taken in it, where its dtype has them

    def array(self, rng: np.random.Generator, dtype: Any) -> np.ndarray:
        dtype = np.dtype(dtype if self.dtype is None else self.dtype)
        if self.values is not None:
            return np.asarray(self.values).astype(dtype).reshape(self.shape)
        return random_array(rng, self.shape, dtype, self.low, self.high)


def random_array(
    rng: np.random.Generator, shape: Any, dtype: Any, low: float = -2.0, high: float = 2.0
) -> np.ndarray:
    """Values of a dtype between bounds; unsigned ones are not below 0."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        first = max(int(np.ceil(low)), 0 if dtype.kind == "u" else int(np.ceil(low)))
        return rng.integers(first, max(int(high), first) + 1, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)


@dataclass(frozen=True)
class Case:
    """One row: an operation at given shapes and parameters, with NumPy's result.

    prim: the primitive that the row is for. args: its operands; a bare shape stands for
    `Arg(shape)`. reference: the same in NumPy: gets arrays (float64 or complex128 if the operand is
    inexact,
      otherwise unchanged), returns an array or, for several results, a list. It decides the dtypes
        of
      results: bools and integers are unchanged, inexact ones have the width under test.
    params: the parameters of the primitive. fun: the operation as a function of arrays, if it is
    not `prim.apply(*args, **params)`; it
      may bind other primitives around `prim`. Returns an array or a list.
    dtypes: short names of the tested dtypes; batch and jit are tested at the first. also: further
    operand shapes for tests of values (zero sizes, scalars). tol: tolerance of values in units in
    the last place of the dtype. grad_tol: relative tolerance of derivatives (float64 against
    central differences). skip: checks that do not apply, of `CHECKS`; say why beside the row.
    out_dtype: dtype of the results where the rule above does not give it. weak: True if results of
    weak operands are weak; None: not tested. label: distinguishes rows of one primitive.
    """

    prim: Any
    args: Sequence[Any]
    reference: Callable
    params: dict = field(default_factory=dict)
    fun: Callable | None = None
    dtypes: str = FLOATS
    also: Sequence[Sequence[tuple[int, ...]]] = ()
    tol: float = 4.0
    grad_tol: float = 1e-6
    skip: str = ""
    out_dtype: Any = None
    weak: bool | None = True
    label: str = ""

    @property
    def id(self) -> str:
        return f"{self.prim.name}-{self.label}" if self.label else self.prim.name

    def operands(self, shapes: Sequence[tuple[int, ...]] | None = None) -> list[Arg]:
        """The operands, at other shapes where given."""
        args = [a if isinstance(a, Arg) else Arg(tuple(a)) for a in self.args]
        if shapes is None:
            return args
        return [
            Arg(tuple(s), a.low, a.high, a.dtype, moves=a.moves)
            for a, s in zip(args, shapes, strict=True)
        ]

    def rng(self, stream: str = "") -> np.random.Generator:
        """The same numbers for this row in every run; streams are independent."""
        return np.random.default_rng(zlib.crc32(f"{self.id}{stream}".encode()))

    def arrays(self, dtype: Any, shapes: Any = None) -> list[np.ndarray]:
        """Values for the operands."""
        rng = self.rng()
        return [a.array(rng, dtype) for a in self.operands(shapes)]

    def moved(self, xs: Sequence[Any]) -> list[bool]:
        """Return for each operand True if derivatives are taken in it."""
        pairs = zip(xs, self.operands(), strict=True)
        return [a.moves and np.asarray(x).dtype.kind not in "iub" for x, a in pairs]

    def apply(self, *xs: Any) -> list:
        """The operation under test: always a list."""
        if self.fun is None:
            return self.prim.apply(*xs, **self.params)
        outs = self.fun(*xs)
        return outs if isinstance(outs, list) else list(outs) if type(outs) is tuple else [outs]

    def expected(self, *xs: np.ndarray) -> list[np.ndarray]:
        """Return the reference's results."""
        outs = self.reference(*map(widened, xs))
        return [np.asarray(y) for y in (outs if isinstance(outs, list | tuple) else [outs])]


# The checks of test_conformance.py that a row may skip.
CHECKS = ("value", "weak", "jvp", "transpose", "second", "batch", "jit")


def widened(x: np.ndarray) -> np.ndarray:
    """Return an inexact array in double precision; others unchanged."""
    if x.dtype.kind in "iub":
        return x
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


# Other shapes for one operand and for two, dtypes, and the checks of rows without derivative.
SHAPE = (2, 3)
ONE = (((0, 3),), ((),))  # other shapes for one operand
TWO = (((0, 3), (0, 3)), ((), ()), ((), SHAPE), (SHAPE, ()))
REALS = FLOATS + " " + INTS
COMPLEX = "c64"
FLAT = "jvp transpose second"  # nothing to differentiate


def unary(
    prim: Any, reference: Callable, low: float = -2.0, high: float = 2.0, **more: Any
) -> Case:
    """A row for one operand."""
    return Case(
        prim, [Arg(SHAPE, low, high)], reference, **{"dtypes": INEXACT, "also": ONE, **more}
    )


def binary(prim: Any, reference: Callable, first: Any = (), second: Any = (), **more: Any) -> Case:
    """A row for two operands; `first` and `second` are their bounds."""
    args = [Arg(SHAPE, *first), Arg(SHAPE, *second)]
    return Case(prim, args, reference, **{"also": TWO, **more})


def all_cases() -> list[Case]:
    """The rows of every family."""
    here = Path(__file__).parent
    names = sorted(p.stem for p in here.glob("cases_*.py"))
    return [c for n in names for c in importlib.import_module(f"tests.primitives.{n}").CASES]
