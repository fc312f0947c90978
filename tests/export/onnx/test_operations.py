"""Every row of the conformance suite as an ONNX model, run by onnxruntime, against NumPy.

`python -m tests.export.onnx.test_operations` writes the table of docs/export.md.
"""

import pathlib
import re

import numpy as np
import pytest

from tests.settings import ALL

pytest.importorskip("onnxruntime")
from tests.export.onnx.rows import list_rows, run_row

DOCS = pathlib.Path(__file__).parents[3] / "docs/export.md"
MARK = re.compile(r"(<!-- onnx -->\n).*?(<!-- /onnx -->)", re.DOTALL)

# Primitives that have no form in ONNX, and why.
REASONS = {
    "complex numbers": "complex conj imag real fft",
    "factorizations and triangular systems, which LAPACK computes": (
        "cholesky eigh geqrf hessenberg householder_product lu ormqr qr schur svd "
        "triangular_solve tridiagonal tridiagonal_solve"
    ),
    "formats that are no dtype": "reduce_precision",
}
NOT_IN_ONNX = {name for names in REASONS.values() for name in names.split()}
PARTLY = {
    "bitcast_convert_type": "between dtypes of different widths",
    "mulhi": "of 64-bit integers",
    "scatter-min": "of bools",
    "scatter-max": "of bools",
}


def write_table():
    rows = list_rows()
    names = {row.case.prim.name for row in rows}
    have = {row.case.prim.name for row in rows if not run_row(row)}
    text = (
        f"Of the {len(names)} primitives of the conformance suite, {len(have)} run in onnxruntime "
        "as ONNX and agree with NumPy.\n\n| not in ONNX | primitives |\n|---|---|\n"
    )
    rows = [(why, ", ".join(f"`{n}`" for n in names.split())) for why, names in REASONS.items()]
    rows += [(f"`{name}`", what) for name, what in PARTLY.items()]
    rows += [("callbacks, collectives, `ffi_call`", "they call Python, other devices or kernels")]
    return text + "".join(f"| {a} | {b} |\n" for a, b in rows)


def test_rows_agree_with_numpy():
    """One row in eight; `--all` runs all rows at every dtype.

    A row of complex numbers is an error that names the argument or result; another one that has no
    form in ONNX, an error that names the operation and its line.
    """
    rows = list_rows(ALL)
    chosen = rows if ALL else rows[::8]
    wrong = {row.id: why for row in chosen if (why := run_row(row))}
    for row in chosen:
        why = wrong.get(row.id, "")
        if re.search(r"to_onnx: .* got c(64|128)\[.*\] for ", why):
            del wrong[row.id]
        elif "not in ONNX: to_onnx: " in why:
            assert row.case.prim.name in NOT_IN_ONNX | PARTLY.keys(), why
            assert re.search(r"got [\w-]+.* at \w+\.py:\d+", why), why
            del wrong[row.id]
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in wrong.items())


@pytest.mark.slow
def test_table_of_the_docs():
    assert MARK.search(DOCS.read_text())[0] == f"<!-- onnx -->\n{write_table()}<!-- /onnx -->"


def test_dtypes_have_numbers():
    import onnx

    from weft.export.onnx.kinds import KINDS, wide_dtype

    for dtype in KINDS:
        assert onnx.helper.tensor_dtype_to_np_dtype(
            onnx.helper.np_dtype_to_tensor_dtype(dtype)
        ) == np.dtype(dtype)
        for operator in ("Add", "Max", "Where", "ReduceSum", "TopK"):
            assert wide_dtype(operator, wide_dtype(operator, dtype)) == wide_dtype(operator, dtype)


if __name__ == "__main__":
    table = f"<!-- onnx -->\n{write_table()}<!-- /onnx -->"
    DOCS.write_text(MARK.sub(lambda _: table, DOCS.read_text()))
