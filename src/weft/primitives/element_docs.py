"""Documentation of the elementwise functions of `lax`, composed from their primitives' docstrings.

The docstring of such a primitive is its first line, optional remarks, and an example: the operands
after `>>>`, and the result. The text that follows from the type rule is written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray
from weft.errors import DtypeError, ShapeError

DTYPES = {
    "number": "integers, floats or complex numbers",
    "real number": "integers or floats",
    "real": "bools, integers or floats",
    "inexact": "floats or complex numbers",
    "float": "floats",
    "complex": "complex numbers",
    "float32 or float64": "float32 or float64",
    "bool or integer": "bools or integers",
    "integer": "integers",
    "any": "any dtype",
}
RESULTS = {
    "bool": "An array of bools of the shape of the operands.",
    "real": "An array of the shape of the operand. It is real if the operand is complex.",
    "complex": "A complex array of the shape of the operands.",
    "same": "An array of the shape and dtype of the operands.",
}


def describe(name: str, prim: Any, operands: Sequence[str], accuracy: bool = False) -> str:
    """Return the documentation of a function, or its primitive's if that has no example."""
    text, _, example = (prim.__doc__ or "").partition("\n\n    >>> ")
    if not example:
        return prim.__doc__
    given, result = [line.strip() for line in example.strip().splitlines()]
    takes, binary = DTYPES[prim.takes], len(operands) == 2
    of = "any dtype" if prim.takes == "any" else takes
    args = [f"{operands[0]}: an array of {of}, or a number."]
    errors = [] if prim.takes == "any" else [f"DtypeError: an operand is not of {takes}."]
    if binary:
        more = "an array of the same dtype, of the same shape or with axes of size 1,"
        args.append(f"{operands[1]}: {more}")
        args.append("  or a scalar.")
        errors.append("ShapeError: the shapes differ in an axis that is not of size 1.")
    if accuracy:
        args.append("accuracy: a `Tolerance` or an `AccuracyMode`. None is the default of XLA.")
        errors.append("ValueError: `accuracy` is not of these types.")
    call = f"lax.{name}({given})"
    decimals = result.rstrip("]").rpartition(".")[2]
    rounded = prim.takes == "inexact" or len(decimals) == 3
    shown = f"np.asarray({call}).round(3)" if rounded else call
    returns = RESULTS[find_kind(prim, len(operands))]
    parts = [text, block("Args:", args), block("Returns:", [returns])]
    parts.append(block("Raises:", errors) if errors else "")
    parts.append(f">>> print({shown})\n    {result}")
    return "\n\n    ".join(filter(None, parts)) + "\n    "


def find_kind(prim: Any, count: int) -> str:
    """Return the kind of the results of a primitive, a key of `RESULTS`, by its type rule."""
    for dtype in (np.complex64, np.float32, np.int32, np.bool_):
        operand = ShapedArray((), np.dtype(dtype))
        try:
            (out,) = prim.abstract_eval(*[operand] * count)
        except (DtypeError, ShapeError):
            continue
        if out.dtype == operand.dtype:
            return "same"
        return {"b": "bool", "c": "complex"}.get(out.dtype.kind, "real")
    return "same"


def block(title: str, lines: list[str]) -> str:
    """Return a section of documentation."""
    return "\n      ".join([title, *lines])
