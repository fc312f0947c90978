"""Reductions to one number in the bodies of loops, by operations on vectors.

XLA:CPU combines the elements one after the other there, in windows of 32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost
from weft.core.jaxpr import Atom, Eqn, Var
from weft.core.primitive import Primitive
from weft.cpu.elements import is_fused
from weft.cpu.scope import Scope
from weft.cpu.updates import follow_operands
from weft.primitives.layout import fill, reshape
from weft.primitives.slicing import pad, slice
from weft.primitives.tokens import optimization_barrier
from weft.util import JAXLIB

MIN_ELEMENTS = 128  # for fewer, XLA unrolls its loop, which is as fast
HAS_BARRIERS = JAXLIB >= (0, 12)  # XLA 0.10 removes them, and fuses across
MAX_ELEMENTS = 1 << 14 if HAS_BARRIERS else 1 << 13  # for more, XLA has a library for sums
MAX_FUSED = 16  # equations that are computed in the loop of each part, without barriers
MAX_LAST = 16  # elements that are combined one after the other
PARTS = 8  # that are combined in one loop; 2, 4 and 16 take up to 1.3 times as long
MIN_FOR_PARTS = 64  # elements; fewer are divided in FEW_PARTS
FEW_PARTS = 4
KINDS = frozenset(map(np.dtype, "fdiIlL"))


def choose_fold(
    eqn: Eqn, combine: Primitive, identity: Any, scope: Scope
) -> Callable[..., list] | None:
    """Combine all elements of an array in a loop's body, until few are left.

    The array is divided into parts, which are combined element by element. A reduction along an
    axis would do the same, but XLA makes one reduction of several that follow each other.

    Args:
      eqn: the reduction. Its own primitive combines the elements that are left.
      combine: the operation on two arrays.
      identity: the number that does not change the result.
      scope: the program that the reduction is part of.
    """
    out = eqn.outvars[0].aval
    if out.size != 1 or not may_fold(eqn.invars[0].aval, scope):
        return None
    if not HAS_BARRIERS and count_fused(eqn.invars[0], scope) > MAX_FUSED:
        return None

    given = {k: v for k, v in eqn.params.items() if k == "nan"}

    def fold(x: Any) -> list:
        y = optimization_barrier(x)
        if y.ndim > 1:  # else XLA would compute the elements of x by their places in the vector
            y = optimization_barrier(reshape(y, (x.size,)))
        while y.size > MAX_LAST:
            y = optimization_barrier(combine_parts(y, combine, identity))
        (y,) = eqn.primitive.apply(y, **given, axes=(0,))
        return [reshape(y, out.shape)]

    return fold


def may_fold(x: ShapedArray, scope: Scope) -> bool:
    """Return True if the loop that an array is in is one function, and the array is small."""
    if x.dtype not in KINDS or type(x.size) is not int:
        return False
    return MIN_ELEMENTS <= x.size <= MAX_ELEMENTS and is_one_function(scope)


def is_one_function(scope: Scope) -> bool:
    """Return True if XLA compiles the loop that a program is the body of as one function.

    It is several functions if it has products of matrices. XLA's library adds elements up then.
    """
    if not scope.target.loops or scope.target.devices:
        return False
    hard = (Cost.CONTRACTION, Cost.LIBRARY)
    return not any(e.primitive.cost in hard and e.outvars[0].aval.shape for e in scope.program.eqns)


def count_fused(x: Atom, scope: Scope) -> int:
    """Return the number of equations that XLA would compute again for each part of an array."""
    stored = {a for a in scope.program.outvars if type(a) is Var}
    passes = lambda e: is_fused(e) and e.outvars[0] not in stored and e.outvars[0].aval.shape
    return len(follow_operands(x, scope.maker, passes))


def combine_parts(x: Any, combine: Primitive, identity: Any) -> Any:
    """Return a vector that has the elements of the parts of a vector, combined."""
    count = PARTS if x.size >= MIN_FOR_PARTS else FEW_PARTS
    width = x.size // count
    y = slice(x, (0,), (width,))
    for i in range(1, count):
        (y,) = combine.apply(y, slice(x, (i * width,), ((i + 1) * width,)))
    rest = x.size - count * width  # at most as many as a part has
    if rest:
        last = slice(x, (count * width,), (x.size,))
        last = pad(last, fill((), identity, typeof(x).dtype), [(0, width - rest, 0)])
        (y,) = combine.apply(y, last)
    return y
