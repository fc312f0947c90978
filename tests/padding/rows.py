"""The rows of the conformance suite with a size that varies, padded and not.

A row's operands have axes of a few sizes. Each of those sizes in turn becomes a symbol, wherever it
is in shapes and in parameters; if the type rule refuses that, in the shapes only, or along one axis
of one operand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import weft
from tests.primitives.cases import SHORT, Case
from weft.api.grad import vjp
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Jaxpr
from weft.core.stage import stage
from weft.export.dims import Dim, evaluate_size
from weft.export.specs import symbolic_shape
from weft.padding.interpret import pad_jaxpr
from weft.primitives.constant import write_consts

BUCKET = 8
BUCKETS = (("n", BUCKET),)
SIZES = (BUCKET, 1, 5)
# Parameters that are sizes of axes.
OF_SIZES = ("shape", "slice_sizes", "limit_indices", "sizes", "size", "rows", "permutation_size",
            "fft_lengths")  # fmt: skip


class Row(NamedTuple):
    """A row with a symbolic size: `shapes` of the operands, and `params` of the primitive."""

    case: Case
    shapes: tuple[tuple, ...]
    params: dict
    jaxpr: Jaxpr  # values, then gradients
    moved: tuple[bool, ...]

    def dtype(self, k: int) -> np.dtype:
        given = self.case.operands()[k].dtype
        return np.dtype(SHORT[self.case.dtypes.split()[0]] if given is None else given)

    def arrays(self, n: int) -> list[np.ndarray]:
        """Operands of true size."""
        rng, found = self.case.rng(f"padded {n}"), []
        for k, (arg, shape) in enumerate(zip(self.case.operands(), self.shapes, strict=True)):
            shape = tuple([evaluate_size(s, {"n": n}) for s in shape])
            values = None if arg.values is None else np.resize(np.asarray(arg.values), shape)
            made = type(arg)(shape, arg.low, arg.high, arg.dtype, values)
            found.append(made.array(rng, self.dtype(k)))
        return found

    def padded(self, xs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Operands in memory: NaN and the largest numbers in the padding."""
        return [fill_up(x, tuple([evaluate_size(s, {"n": BUCKET}) for s in shape]))
                for x, shape in zip(xs, self.shapes, strict=True)]  # fmt: skip

    def plain(self, n: int) -> Any:
        """The function at a true size."""
        params = replace(self.params, {"n": n})
        return lambda *xs: with_gradients(self.case, params, self.moved, xs)


def fill_up(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array with garbage up to a shape."""
    if x.dtype.kind in "iu":
        garbage: Any = np.iinfo(x.dtype).max
    else:
        garbage = True if x.dtype == bool else np.nan
    found = np.full(shape, garbage, x.dtype)
    found[tuple(map(slice, x.shape))] = x
    return found


def replace(x: Any, sizes: Any) -> Any:
    """A parameter with numbers for symbolic sizes."""
    if isinstance(x, dict):
        return {k: replace(v, sizes) for k, v in x.items()}
    if isinstance(x, tuple):
        parts = [replace(y, sizes) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return evaluate_size(x, sizes) if isinstance(x, Dim) else x


def symbolize(x: Any, size: int, n: Any) -> Any:
    """A parameter with a symbol for each number that is a size."""
    if isinstance(x, tuple):
        parts = [symbolize(y, size, n) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return n if type(x) is int and x == size else x


def with_gradients(case: Case, params: dict, moved: Sequence[bool], xs: Sequence[Any]) -> list:
    """The results, and the gradients of their sum."""

    def run(*xs: Any) -> list:
        return case.prim.apply(*xs, **params) if case.fun is None else case.apply(*xs)

    if not any(moved):
        return run(*xs)
    outs, pull = vjp(run, *xs)
    cts = [weft.numpy.ones(y.shape, y.dtype) if y.dtype.kind in "fc" or y.dtype.name == "bfloat16"
           else np.zeros(y.shape, weft.dtypes.float0) for y in outs]  # fmt: skip
    if any(type(c) is np.ndarray for c in cts):
        return outs
    return [*outs, *[g for g, m in zip(pull(cts), moved, strict=True) if m]]


def variants(case: Case) -> Iterator[tuple[tuple, dict]]:
    """Symbolic shapes and parameters of a row, those with the most symbols first."""
    (n,) = symbolic_shape("n")
    shapes = [a.shape for a in case.operands()]
    sizes = sorted({s for shape in shapes for s in shape if s > 1}, reverse=True)
    for size in sizes:
        whole = tuple([tuple([n if s == size else s for s in shape]) for shape in shapes])
        params = {k: symbolize(v, size, n) if k in OF_SIZES else v for k, v in case.params.items()}
        if params != case.params:
            yield whole, params
        yield whole, case.params
    for k, shape in enumerate(shapes):
        for axis, _ in enumerate(shape):
            one = list(map(list, shapes))
            one[k][axis] = n
            yield tuple(map(tuple, one)), case.params


def make_row(case: Case, shapes: tuple, params: dict) -> Row | None:
    """The row with symbolic sizes; None if the operation does not take them."""
    dtype = SHORT[case.dtypes.split()[0]]
    avals = [
        ShapedArray(shape, np.dtype(dtype if a.dtype is None else a.dtype))
        for shape, a in zip(shapes, case.operands(), strict=True)
    ]
    skips = "jvp" in case.skip.split() or "transpose" in case.skip.split()
    moved = tuple([
        not skips and a.moves and np.dtype(v.dtype).kind in "fc"
        for a, v in zip(case.operands(), avals, strict=True)
    ])  # fmt: skip
    for gradients in (moved, (False,) * len(moved)):
        try:
            run = lambda *xs, g=gradients: with_gradients(case, params, g, xs)
            jaxpr, consts = stage(run, avals)
        except Exception:  # of any rule, that does not take symbolic sizes or such parameters
            continue
        return Row(case, shapes, params, write_consts(jaxpr, consts), gradients)
    return None


def list_rows(case: Case) -> list[Row]:
    """The rows of a case that stage."""
    found = [make_row(case, *v) for v in itertools.islice(variants(case), 6)]
    return [row for row in found if row is not None]


def padded_program(row: Row) -> Any:
    """The padded program of a row. Raises where it is refused."""
    return pad_jaxpr(row.jaxpr, BUCKETS)
