"""Holes: placeholders in a program that was read from text, for things that text cannot hold."""

from __future__ import annotations

from typing import Any

from weft.errors import HoleError
from weft.util import Record


class Hole(Record):
    """A part of a program that its text cannot hold: a function, or an array's values.

    Prints by the same name; what needs it raises HoleError. `fmt` is the format of a debug_print.
    """

    __slots__ = ("__name__", "aval", "fmt", "kind")

    def __init__(self, kind: str, name: str = "", aval: Any = None, fmt: str = ""):
        self.kind, self.__name__, self.aval, self.fmt = kind, name, aval, fmt

    def __call__(self, *_: Any, **__: Any) -> Any:
        what = f"the {self.kind} {self.__name__ or self.aval}"
        raise HoleError(
            f"jaxpr: must not need what its text does not hold; got a use of {what}. "
            f"Hint: weft.jaxpr.parse(text, names={{{self.__name__!r}: ...}})."
            if self.kind != "const"
            else f"jaxpr: its consts must be given; got none for the {self.aval}. "
            "Hint: weft.jaxpr.parse(text, consts=[...])."
        )

    __array__ = __call__

    def __repr__(self) -> str:
        return f"<{self.kind} {self.__name__ or self.aval}>"

    def __reduce__(self) -> tuple:
        return Hole, (self.kind, self.__name__, self.aval, self.fmt)
