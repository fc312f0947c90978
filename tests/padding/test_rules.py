"""The conformance column of padding: rows of every primitive, NaN in the padding, and gradients.

Each row has a symbolic size (rows.py). Its padded program runs at a size equal to its bucket, at 1
and at a size between, and equals the operation at the true sizes, which conformance tests compare
with NumPy. Rows are compiled many at a time.
"""

from __future__ import annotations

import collections
import warnings

import numpy as np
import pytest

import weft
from tests.conftest import ALL
from tests.padding.rows import SIZES, Row, list_rows, padded_program
from tests.primitives.cases import all_cases
from weft.errors import ShapeError

TOGETHER = 24  # rows in one program

# Primitives that refuse each of their rows, or that have no row with a size that varies, and why.
REFUSED = {
    "cholesky_update": "rotations go through all rows of the matrix",
    "eig": "the order of eigenvalues is LAPACK's",
    "hessenberg": "the reduction goes through all columns of the matrix",
    "ormqr": "its reflectors are of a matrix of known size",
    "resample": "its tables of places are made for one size",
    "reduce_window": "a program of the user's combines the elements",
    "schur": "the order of eigenvalues is LAPACK's",
    "small_solve": "matrices that are small enough are known to be",
    "tridiagonal": "the reduction goes through all columns of the matrix",
    "tridiagonal_solve": "the elimination goes through all rows",
}
NO_ROW = {"dynamic_update_slice", "iota", "reshape"}  # see programs.py


BLOCKS = 16 if ALL else 1  # the primitives in parts, so that parts can run one at a time
EVERY = sorted({case.prim.name for case in all_cases()})


def find_rows(chosen: set[str]) -> tuple[list[tuple[Row, object]], dict[str, str]]:
    """Return the first rows of each padded primitive, and reasons for those without rows."""
    found, reasons, seen = [], {}, collections.Counter()
    for case in all_cases():
        name = case.prim.name
        if name not in chosen or (seen[name] and not ALL):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # dtypes of rows that need enable_x64
            rows = list_rows(case)[: 2 if ALL else 1]
        for row in rows:
            try:
                found.append((row, padded_program(row)))
                seen[name] += 1
            except ShapeError as error:
                assert "Hint: " in str(error)
                reasons[name] = str(error)
    return found, {k: v for k, v in reasons.items() if not seen[k]}


def is_close(got: np.ndarray, want: np.ndarray) -> bool:
    """Return True if results are equal within rounding; NaN equals NaN."""
    if want.dtype.kind in "iub":
        return np.array_equal(got, want)
    tol = 2e-2 if want.dtype.itemsize == 2 else 5e-4
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
    return np.allclose(got, want, tol, tol * scale, equal_nan=True)


def test_most_primitives_have_a_rule():
    assert len(REFUSED) + len(NO_ROW) <= 0.15 * len(EVERY)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_padded_rows_equal_plain_ones(block):
    chosen = set(EVERY[block::BLOCKS] if ALL else EVERY[1::4])
    rows, refused = find_rows(chosen)
    assert not set(refused) - set(REFUSED), refused
    if ALL:
        assert chosen - {row.case.prim.name for row, _ in rows} <= set(REFUSED) | NO_ROW
    wrong = []
    for start in range(0, len(rows), TOGETHER):
        part = rows[start : start + TOGETHER]
        run = weft.jit(lambda n, xs, part=part: [p(n, *x) for (_, p), x in zip(part, xs)])
        for n in SIZES if ALL else SIZES[1:]:
            inputs = [row.arrays(n) for row, _ in part]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                plain = weft.jit(
                    lambda xs, part=part, n=n: [r.plain(n)(*x) for (r, _), x in zip(part, xs)]
                )(inputs)
            outs = run(np.int32(n), [row.padded(x) for (row, _), x in zip(part, inputs)])
            for (row, _), got, want in zip(part, outs, plain, strict=True):
                for k, (y, z) in enumerate(zip(got, want, strict=True)):
                    z = np.asarray(z)
                    if not is_close(np.asarray(y)[tuple(map(slice, z.shape))], z):
                        wrong.append(f"{row.case.id}{row.shapes}, n = {n}, result {k}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["cholesky_update", "tridiagonal_solve"])
def test_refusals_say_what_is_padded(name):
    case = next(c for c in all_cases() if c.prim.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = list_rows(case)[0]
    with pytest.raises(ShapeError, match=rf"{name}: .* padded along axis .* made by .* Hint: "):
        padded_program(row)
