"""Every class of error weft raises on purpose. Each has a section in docs/errors.md.

The grammar of a message is `op: what must hold; got what was given.`, then `Hint:` with the fix as
code where there is one. The names JAX's users catch are here with the same place in the hierarchy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxlib._jax import JaxRuntimeError

from weft.util import list_public

__all__ = [
    "CheckError", "ConcretizationTypeError", "DeletedError", "DtypeError",
    "InconclusiveDimensionOperation", "IndexingError", "JAXIndexError", "JAXTypeError",
    "JaxRuntimeError", "JaxprTypeError", "KeyReuseError", "LeakedTracerError", "MissingRule",
    "MutationError", "NonConcreteBooleanIndexError", "ProcessFailureError", "PytreeError",
    "RefError", "ShapeError", "TracerArrayConversionError", "TracerBoolConversionError",
    "TracerError", "TracerIntegerConversionError", "TypePromotionError", "UnboundAxisError",
    "UnexpectedTracerError",
]  # fmt: skip
__dir__ = list_public(__name__)


class ShapeError(TypeError, ValueError):
    """Shapes, axes or sizes of operands do not fit together."""


class DtypeError(TypeError):
    """An operand's dtype is none the operation takes, or a value is of no type weft knows."""


class TypePromotionError(TypeError, ValueError):
    """Two dtypes have no common type under the promotion rules in force."""


class JAXTypeError(TypeError):
    """A value is of a kind that cannot be used in this place (base of the tracer errors)."""


class JAXIndexError(IndexError):
    """An index is of a kind that cannot be used."""


class IndexingError(JAXIndexError, TypeError):
    """An index is malformed, or known to be out of bounds."""


class TracerError(JAXTypeError):
    """A traced value was used where only a concrete one can be."""


class ConcretizationTypeError(TracerError):
    """Python needed the value of a tracer."""


class TracerBoolConversionError(ConcretizationTypeError):
    """`if`, `while`, `and`, `not` on a tracer."""


class TracerIntegerConversionError(TracerError):
    """A tracer where Python needs an integer, as in `range(x)` or `list[x]`."""


class TracerArrayConversionError(TracerError):
    """NumPy called on a tracer."""


class NonConcreteBooleanIndexError(JAXIndexError, TracerError):
    """A boolean mask of unknown content, so a result of unknown size."""


class UnexpectedTracerError(TracerError):
    """A tracer used after, or outside, the function it belongs to."""


class LeakedTracerError(UnexpectedTracerError):
    """A tracer outlived its function, seen by the leak check."""


class UnboundAxisError(NameError):
    """A collective names an axis that is not in scope."""


class InconclusiveDimensionOperation(TypeError):
    """An operation on a symbolic dimension has no definite answer."""


class KeyReuseError(JAXTypeError):
    """A random key was consumed twice."""


class MissingRule(NotImplementedError):
    """A primitive lacks a rule that a transformation needs."""


class MutationError(TypeError):
    """An array was assigned into."""


class RefError(TypeError, ValueError):
    """A reference is passed twice, returned, or written where it cannot be."""


class DeletedError(RuntimeError):
    """An array was used after it was deleted or donated."""


class ProcessFailureError(RuntimeError):
    """Another process of the same program was lost; `failed_devices` are those that it had."""

    def __init__(self, message: str = "", failed_devices: Iterable[Any] = ()):
        super().__init__(message)
        self.failed_devices = set(failed_devices)


class PytreeError(TypeError, ValueError):
    """The structure of a pytree is not the one that was needed."""


class CheckError(TypeError):
    """A jaxpr breaks a rule of the language."""


JaxprTypeError = CheckError


class ParseError(ValueError):
    """The text of a jaxpr does not read; `line` and `column` say where, both from 1."""

    line: int = 0
    column: int = 0

    @classmethod
    def at(cls, must: str, text: str, pos: int, hint: str = "") -> ParseError:
        """The error that says what must hold at a position of a text, and shows the line."""
        before = text[:pos]
        line, start = before.count("\n") + 1, before.rfind("\n") + 1
        row = text[start:].split("\n", 1)[0]
        column = pos - start + 1
        got = "" if "; got" in must else f"; got {row[pos - start :].strip()[:24] or 'the end'!r}"
        around = max(0, column - 60)  # a long line is shown from nearby
        shown, mark = row[around : around + 100], " " * (column - 1 - around) + "^"
        error = cls(
            f"parse: {must}{got}.{' Hint: ' + hint if hint else ''}\n"
            f"At line {line}, column {column}:\n  {shown}\n  {mark}"
        )
        error.line, error.column = line, column
        return error


class HoleError(TypeError):
    """What the text of a jaxpr cannot hold was needed: a Python function, or values of an array."""
