"""The tables: operations of StableHLO, and primitives that ONNX has operators for, by name."""

from __future__ import annotations

from weft.export.onnx import elementwise, places, products, windows

OPERATIONS = {
    **elementwise.WRITERS, **places.WRITERS, **products.WRITERS, **windows.WRITERS,
}  # fmt: skip
PRIMITIVES = windows.PRIMITIVES
