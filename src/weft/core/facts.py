"""Facts about primitives: small types that passes compare in place of names.

A fact is a class attribute of `Primitive`. Facts and the `element` rule (element.py) are all that a
pass knows of a primitive beside the rules of its class.
"""

from __future__ import annotations

import enum


class Cost(enum.Enum):
    """The work that a primitive does for its results, in classes that differ tenfold and more.

    UNKNOWN: not known beforehand. The primitive holds programs, has an effect or talks to devices.
    FREE: none. Each result is one operand under other indices, or as it is: a view of it.
    JOIN: elements of operands are put side by side, at places that follow from parameters.
    LOOKUP: elements of operands are moved from or to places that other operands say.
    CHEAP: a few machine operations for each element of the result.
    REDUCTION: a few for each element of the operands, which are combined along axes.
    TRANSCENDENTAL: dozens for each element: a transcendental function, a random number, a sort.
    CONTRACTION: products, added up along axes.
    LIBRARY: a factorization, which LAPACK computes: the cube of the size of a matrix.
    """

    UNKNOWN = enum.auto()
    FREE = enum.auto()
    JOIN = enum.auto()
    LOOKUP = enum.auto()
    CHEAP = enum.auto()
    REDUCTION = enum.auto()
    TRANSCENDENTAL = enum.auto()
    CONTRACTION = enum.auto()
    LIBRARY = enum.auto()


# What a compiler computes again within what reads it, rather than keep it in memory.
LIGHT = frozenset((Cost.FREE, Cost.CHEAP))
