"""Rows for primitives/elementwise.py. Edge values and derivatives there: test_elementwise.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.primitives.cases import ALL, FLOATS, INEXACT, INTS, NUMBERS, Arg, Case
from weft.primitives import elementwise as ew

SHAPE = (2, 3)
SOME = (((0, 3),), ((),))  # other shapes for one operand
PAIRS = (((0, 3), (0, 3)), ((), ()), ((), SHAPE), (SHAPE, ()))


def unary(
    prim: Any, reference: Callable, low: float = -2.0, high: float = 2.0, **more: Any
) -> Case:
    more = {"dtypes": INEXACT, "also": SOME, **more}
    return Case(prim, [Arg(SHAPE, low, high)], reference, **more)


def binary(prim: Any, reference: Callable, first: Any = (), second: Any = (), **more: Any) -> Case:
    more = {"also": PAIRS, **more}
    return Case(prim, [Arg(SHAPE, *first), Arg(SHAPE, *second)], reference, **more)


CASES = [
    binary(ew.add_p, np.add, dtypes=NUMBERS),
    binary(ew.sub_p, np.subtract, dtypes=NUMBERS),
    binary(ew.mul_p, np.multiply, dtypes=ALL),
    binary(ew.max_p, np.maximum, dtypes=FLOATS + " " + INTS + " bool"),
    unary(ew.exp_p, np.exp),
]
