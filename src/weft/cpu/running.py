"""Running reductions along an axis: a kernel (native/cumulative.cc), or loops of XLA's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.jaxpr import Eqn
from weft.cpu.calls import call_kernel
from weft.cpu.folds import is_one_function
from weft.cpu.formula import apply_formula
from weft.cpu.rewriting import Rewriter
from weft.cpu.scope import Scope
from weft.primitives.constant import stage_whole
from weft.primitives.cumulative import Cumulative, run_by_shifts, running_dtype, shift
from weft.primitives.expr import Expr, scalar
from weft.primitives.layout import convert, reshape
from weft.util import has_symbolic_size, is_below
from weft.xla.lower import lower_jaxpr

BLOCK_SIZE = 16  # elements for each loop step, unless the axis is shorter
MAX_SHIFTED_AXIS = 4  # an axis up to this length is combined in steps of the whole array
# A loop that calls the kernel is not one function. With a running sum of up to 100 elements, it
# takes 1.4 to 2.1 times as long to compile with jaxlib 0.12, and 1.0 to 1.2 to run; of 128 elements
# 0.93 to 1.0 to run, and of 256 elements 0.76.
MAX_LOOP_AXIS, MAX_LOOP_ELEMENTS = 100, 1024
MIN_CUT_AXIS = 256  # an axis with few elements beside it is cut into pieces from this length on


def choose_running(eqn: Eqn, scope: Scope) -> Callable[..., list] | None:
    """Run along an axis by the kernel, or in loops that carry a running value."""
    x, prim, params = eqn.invars[0].aval, cast(Cumulative, eqn.primitive), eqn.params
    axis, reverse = params["axis"], params["reverse"]
    n, wide = x.shape[axis], running_dtype(x.dtype)
    if is_below(n, 2) or (type(x.size) is int and not x.size):
        return None
    if wide != x.dtype:
        return lambda y: [convert(prim.apply(convert(y, wide), **params)[0], x.dtype)]
    row = ShapedArray((math.prod(x.shape[:axis]), n, math.prod(x.shape[axis + 1 :])), x.dtype)
    called = x.dtype in prim.called and scope.target.kernels
    short = type(x.size) is int and n <= MAX_LOOP_AXIS and x.size <= MAX_LOOP_ELEMENTS
    if called and not (short and is_one_function(scope)):
        given = {"kind": prim.name, "reverse": reverse}
        run = lambda y: call_kernel("weft_cumulative", [y], [row], given)
    else:
        run = lambda y: apply_formula(write_loops, [y], [row], prim, reverse, scope.rewriter)
    return lambda y: [reshape(run(reshape(y, row.shape))[0], x.shape)]


def write_loops(hlo: Any, x: Any, prim: Cumulative, reverse: bool, rewriter: Rewriter) -> list:
    """Write the running reduction of an array [rows, n, lanes] along its middle axis."""
    return [RunningLoops(hlo, prim, x.aval.dtype, reverse, rewriter).run(Expr(hlo, x)).value]


def piece_size(n: int) -> int:
    """Return how long to cut the pieces of an axis: about sqrt(n), a divisor if one is near."""
    root = math.isqrt(n - 1) + 1
    return next((size for size in range(root, 3 * root) if n % size == 0), root)


class RunningLoops:
    """Writes the running reduction of an array [rows, n, lanes] along its middle axis.

    It avoids reduce_window: XLA:CPU is slow at it and gives a wrong answer (docs/design).
    """

    def __init__(
        self, hlo: Any, prim: Cumulative, dtype: np.dtype, reverse: bool, rewriter: Rewriter
    ):
        self.hlo = hlo
        self.combine = prim.combine
        self.identity = prim.identity(dtype)
        self.reverse = reverse
        self.rewriter = rewriter

    def run(self, x: Expr) -> Expr:
        """Write the running reduction: in pieces if the axis is long and little runs beside it."""
        rows, n, lanes = x.shape
        if has_symbolic_size(x.shape):
            return self.run_by_loops(x)
        if n <= MAX_SHIFTED_AXIS:
            return run_by_shifts(x, self.combine_values, self.identity, self.reverse)
        if n < MIN_CUT_AXIS or rows * lanes >= BLOCK_SIZE:
            return self.run_by_loops(x)
        size = piece_size(n)
        pieces = -(-n // size)
        x = self.pad_end(x, pieces * size - n)
        x = self.run_by_loops(x.reshape((rows * pieces, size, lanes)))
        last = 0 if self.reverse else size - 1
        totals = x.slice_axis(last, last + 1, 1).reshape((rows, pieces, lanes))
        before = shift(self.run(totals), 1, self.identity, self.reverse)
        before = before.reshape((rows * pieces, lanes))
        x = self.combine_values(before.broadcast(x.shape, (0, 2)), x)
        start = pieces * size - n if self.reverse else 0
        return x.reshape((rows, pieces * size, lanes)).slice_axis(start, start + n, 1)

    def run_by_loops(self, x: Expr) -> Expr:
        """Write two loops: over groups of rows, and within one along the axis.

        The inner loop carries the last values. The last group may begin before the end of the group
        before it, and repeats a part of that.
        """
        hlo = self.hlo
        rows, n, lanes = x.shape
        whole = has_symbolic_size(x.shape) or rows * lanes <= BLOCK_SIZE
        group = rows if whole else -(-BLOCK_SIZE // lanes)
        block = x.aval.update(shape=(group, 1, lanes))
        nothing = Expr(hlo, hlo.constant(self.identity, block))

        def run_group(at: Expr, out: Expr, x: Expr) -> list:
            """Write one group: a step for each position on the axis."""

            def step(i: Expr, at: Expr, value: Expr, out: Expr, x: Expr) -> list:
                zero = scalar(hlo, 0)
                starts = [at, n - 1 - i if self.reverse else i, zero]
                value = self.combine_values(value, x.slice_at(starts, block.shape))
                return [at, value, out.update_at(value, starts), x]

            return self.repeat(n, step, [at, nothing, out, x])[2:]

        out = x.like(self.identity)
        if group == rows:
            return run_group(scalar(hlo, 0), out, x)[0]
        each = lambda i, out, x: run_group(i * group, out, x)
        return self.repeat(-(-rows // group), each, [out, x])[0]

    def repeat(self, count: int, step: Callable, state: Sequence[Expr]) -> list[Expr]:
        """Write a loop: state = step(i, *state) for i from 0 to count - 1."""
        hlo = self.hlo

        def going(i: Any, *state: Any) -> list:
            return [(Expr(hlo, i) < count).value]

        def body(i: Any, *state: Any) -> list:
            at, *values = (Expr(hlo, v) for v in (i, *state))
            return [x.value for x in (at + 1, *step(at, *values))]

        start = [scalar(hlo, 0).value, *[x.value for x in state]]
        return [Expr(hlo, v) for v in hlo.while_loop(start, going, body)[1:]]

    def combine_values(self, x: Expr, y: Expr) -> Expr:
        """Write `combine`, in the forms that are quickest on a CPU."""
        jaxpr = stage_whole(self.combine.apply, [x.aval, y.aval])
        jaxpr = self.rewriter.rewrite(jaxpr)
        return Expr(self.hlo, lower_jaxpr(self.hlo, jaxpr, [x.value, y.value])[0])

    def pad_end(self, x: Expr, count: int) -> Expr:
        """Write `count` identities more, where the run ends."""
        low, high = (count, 0) if self.reverse else (0, count)
        return x.pad((0, low, 0), (0, high, 0), self.identity)
