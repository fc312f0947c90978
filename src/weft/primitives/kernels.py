"""Facts about elementwise primitives: the available kernels and formulas.

The folder of a platform (cpu/) uses them to decide what replaces a compiler's own function.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple

from weft.primitives.expr import Expr


class Called(enum.Enum):
    """The programs where a call of a function's kernel is faster than the compiled function.

    STEP: none. The kernel is for the function as one step of a program that it computes as a whole.
    ALONE: programs of this function only; a compiler fuses others. ALONE_LARGE: as ALONE, for
    arrays that are eight times as large, since compilers vectorize it too. ON_ARGUMENTS: all
    programs, if the operands are arguments of the program. ANYWHERE: all programs.
    """

    STEP = enum.auto()
    ALONE = enum.auto()
    ALONE_LARGE = enum.auto()
    ON_ARGUMENTS = enum.auto()
    ANYWHERE = enum.auto()


class Kernel(NamedTuple):
    """The kernel of an elementwise primitive: its code, and the programs that call it.

    Attributes:
      code: the number of its instruction in native/opcodes.h, which tools/make_opcodes.py writes.
      float32: the programs of float32 that call it; None if it has no such instruction.
      float64: the same, of float64.
    """

    code: int
    float32: Called | None = None
    float64: Called | None = None


class ElementFormula(NamedTuple):
    """A formula that may take the place of a compiler's own function of each element.

    Attributes:
      write: writes the result, from operands of the dtype of the result.
      least: the elements that it pays for, in units of LARGE; 0 if it is for exact results.
      looks: it looks at all elements first, so the array must not be split over devices.
    """

    write: Callable[..., Expr]
    least: int = 1
    looks: bool = False
