"""Fourier transforms, as CPUs compute them quickest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.facts import Elements
from weft.core.jaxpr import Eqn
from weft.cpu.calls import call_kernel
from weft.cpu.rewriting import Reading, Replacement
from weft.cpu.scope import Scope
from weft.primitives.elementwise import complex, gt, mul, sub
from weft.primitives.fft import FftType, fft_p, find_roots, is_smooth
from weft.primitives.layout import (
    broadcasted_iota,
    convert,
    host_constant,
    literal,
    reshape,
    transpose,
)
from weft.primitives.transcendental import cos, sin

INT32, FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)
# A transform in rows pays between these lengths. Shorter transforms are not bound by memory. For
# longer ones, the products of row and column indices overflow 32 bits.
MIN_LENGTH, MAX_LENGTH = 150_000, (1 << 22) - 1
MIN_ROWS = 128
# Rows of multiples of this many elements compete for the same cache lines; where the columns are
# multiples of half of it as well, all three transposes do.
CACHE_PERIOD = 1024

# Points of all rows that the kernel transforms in less time than XLA takes to wake a thread.
MAX_CALLED = 4096
MAX_FACTOR = 7  # of the number of points of a row


def choose_fft(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Transform a short array by a kernel, and a long one in rows."""
    kind, lengths = eqn.params["fft_type"], eqn.params["fft_lengths"]
    if found := call_fft(eqn, scope):
        return found
    rows = count_rows(eqn.invars[0].aval, kind, lengths)
    if scope.target.devices or not rows:
        return None
    return lambda x: [transform_in_rows(x, kind, rows)]


def call_fft(eqn: Eqn, scope: Scope) -> Reading | None:
    """Return the call of the kernel that transforms the rows of a small array.

    It reads real values that are converted to complex ones only for a transform of all points.
    """
    (atom,), out = eqn.invars, eqn.outvars[0].aval
    kind, (*others, n) = eqn.params["fft_type"], eqn.params["fft_lengths"]
    if not scope.target.kernels or others or {type(n), type(out.size)} != {int}:
        return None
    if not 0 < max(out.size, atom.aval.size) <= MAX_CALLED or not is_smooth(n, MAX_FACTOR):
        return None
    real, maker = dtypes.real_dtype(out.dtype), scope.maker(atom)
    if maker is not None and maker.primitive.elements is Elements.CONVERTED and out.dtype != real:
        (given,) = maker.invars
        atom = given if given.aval.dtype == real else atom
    made = ShapedArray((out.size // out.shape[-1], out.shape[-1]), out.dtype)

    def transform(x: Any) -> list:
        operands = [reshape(x, (made.shape[0], x.shape[-1])), host_constant(find_roots(n), real)]
        inverse = {"inverse": kind in (FftType.IFFT, FftType.IRFFT)}
        (y,) = call_kernel("weft_fft", operands, [made], inverse)
        return [reshape(y, out.shape)]

    return Reading(transform, [atom])


def count_rows(aval: ShapedArray, kind: FftType, lengths: Sequence[int]) -> int:
    """Return the best number of rows for one long transform; 0 to leave it unchanged.

    XLA:CPU runs transforms on several threads; each one reads its array log(n) times.
    """
    n = aval.size
    if kind > FftType.IFFT or aval.dtype != np.complex64 or lengths != (n,):
        return 0
    if type(n) is not int or not MIN_LENGTH <= n <= MAX_LENGTH:
        return 0
    rows = next(rows for rows in range(math.isqrt(n), 0, -1) if n % rows == 0)
    apart = (n // rows) % CACHE_PERIOD and math.gcd(rows, n // rows) % (CACHE_PERIOD // 2)
    return rows if rows >= MIN_ROWS and apart else 0


def transform_in_rows(x: Any, kind: FftType, rows: int) -> Any:
    """Transform x by transforms of columns, and then of rows (Bailey, 1990, four steps)."""
    shape, n = x.shape, x.size
    y = transpose(reshape(x, (rows, n // rows)), (1, 0))
    (y,) = fft_p.apply(y, fft_type=kind, fft_lengths=(rows,))
    turns = mul(*(broadcasted_iota(INT32, y.shape, axis) for axis in (0, 1)))
    turns = sub(turns, mul(convert(gt(turns, n // 2), INT32), n))  # of n, to the nearer side
    sign = 2 * np.pi / (-n if kind == FftType.FFT else n)
    angles = mul(convert(turns, FLOAT32), literal(sign, FLOAT32))
    y = transpose(mul(y, complex(cos(angles), sin(angles))), (1, 0))
    (y,) = fft_p.apply(y, fft_type=kind, fft_lengths=(n // rows,))
    return reshape(transpose(y, (1, 0)), shape)
