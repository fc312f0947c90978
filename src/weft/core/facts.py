"""Facts about primitives: small types that passes compare in place of names.

A fact is a class attribute of `Primitive`. Facts and the `element` rule (element.py) are all that a
pass knows of a primitive beside the rules of its class.
"""

from __future__ import annotations

import enum


class Elements(enum.Enum):
    """Kinds of elements of a primitive's results: `Primitive.elements`.

    Operands may be of a key dtype (passes/physical.py) only where the member is in `TAKE_KEYS`.
    """

    # Computed from the elements of operands.
    NEW = "new"
    # Elements of operands, from places that follow from the parameters and the indices.
    MOVED = "moved"
    # Elements of operands, from places that may follow from the values of operands.
    PLACED = "placed"
    # Elements of operands, or computed so that none is NaN where no operand has a NaN.
    CHOSEN = "chosen"
    # The elements of the operand in another dtype.
    CONVERTED = "converted"
    # Random numbers or keys, made of the keys that are the first operand, which uses these up.
    RANDOM = "random"
    # True where two elements are equal; keys are equal if all of their words are.
    EQUAL = "equal"
    # True where two elements differ; keys differ if any of their words does.
    UNEQUAL = "unequal"
    # The words of keys, or the keys made of words: the same buffer.
    SAME_WORDS = "same words"


TAKE_KEYS = frozenset(
    (Elements.MOVED, Elements.PLACED, Elements.EQUAL, Elements.UNEQUAL, Elements.SAME_WORDS)
)


class Runs(enum.Enum):
    """The ways to run a nested program; `Body.runs` names the way of a primitive."""

    # Once, on the operands; it gives the primitive's results.
    ONCE = enum.auto()
    # As ONCE, where the same has been computed before, as in rematerialization.
    AGAIN = enum.auto()
    # If the first operand is its place among the primitive's bodies.
    BRANCH = enum.auto()
    # Once for each iteration of a loop.
    LOOP = enum.auto()
    # Before each iteration: its result says if there is one more.
    CONDITION = enum.auto()
    # In Python, while the compiled program runs.
    HOST = enum.auto()
    # In another way, or in no way that the primitive tells.
    UNKNOWN = enum.auto()


class Linearity(enum.Enum):
    """The linearity of an operation in its operands, if it is one operation of XLA: `Axes.linear`.

    XLA adds up the terms of a sum over devices between two operations, so only a single operation
    can be applied to terms.
    """

    # In none.
    NONE = enum.auto()
    # In all operands together, as addition.
    JOINT = enum.auto()
    # In each operand, the others fixed, as multiplication.
    EACH = enum.auto()
    # In the first operand, as division.
    FIRST = enum.auto()


class Cost(enum.Enum):
    """The work that a primitive does for its results, in classes that differ tenfold and more.

    UNKNOWN: not known beforehand. The primitive holds programs, has an effect or talks to devices.
    FREE: none. Each result is one operand under other indices, or unchanged: a view of it.
    JOIN: elements of operands are put side by side, at places that follow from parameters.
    PART: one part of an operand is read or written, at a place that scalars say.
    LOOKUP: elements of operands are moved from or to places that arrays of indices say.
    CHEAP: a few machine operations for each element of the result.
    REDUCTION: a few for each element of the operands, which are combined along axes.
    TRANSCENDENTAL: dozens for each element: a transcendental function, a random number, a sort.
    ITERATIVE: a loop for each element, whose number of iterations depends on the values.
    CONTRACTION: products, added up along axes.
    LIBRARY: a factorization, which LAPACK computes: the cube of the size of a matrix.
    """

    __hash__ = object.__hash__  # by identity; that of `Enum` is in Python
    UNKNOWN = enum.auto()
    FREE = enum.auto()
    JOIN = enum.auto()
    PART = enum.auto()
    LOOKUP = enum.auto()
    CHEAP = enum.auto()
    REDUCTION = enum.auto()
    TRANSCENDENTAL = enum.auto()
    ITERATIVE = enum.auto()
    CONTRACTION = enum.auto()
    LIBRARY = enum.auto()


# What a compiler computes again within what reads it, rather than keep it in memory.
LIGHT = frozenset((Cost.FREE, Cost.CHEAP))
