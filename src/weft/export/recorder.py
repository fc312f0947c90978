"""A Builder for targets that are not StableHLO: calls are inlined, and regions wait to be written.

`Recorder` is the base of those that make C and ONNX of what lowerings write. Attributes of
operations are texts; `read_numbers` and `read_dims` read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.core.aval import ShapedArray
from weft.xla.hlo import Builder, Value


def read_numbers(text: Any) -> tuple[Any, ...]:
    """Return the integers of an attribute, without the widths in its type; sizes unchanged."""
    if isinstance(text, tuple):
        return text
    text = re.sub(r"array<i\d+:?|: i\d+$|: tensor<.*>$", "", str(text))
    return tuple(map(int, re.findall(r"-?\d+", text)))


def read_dims(text: str) -> dict[str, tuple[int, ...]]:
    """Return the lists of dimension numbers of a gather or a scatter, by name."""
    found = {k: read_numbers(v) for k, v in re.findall(r"(\w+) = (\[[^]]*\]|\d+)", text)}
    return {k: v for k, v in found.items() if v}


class Region(NamedTuple):
    """A block of operations, not written yet."""

    avals: Sequence[ShapedArray]
    write: Callable[..., Sequence[Value]]


class Recorder(Builder):
    """Keeps functions and regions as Python functions that write them."""

    def __init__(self) -> None:
        super().__init__()
        self.written = {}  # no pattern of text fits
        self.bodies: dict[str, Callable] = {}

    def scalar_block(self, name, aval):
        """Return a region of one operation on two scalars."""
        return self.block([aval, aval], lambda x, y: self.like(name, x, y))

    def block(self, avals, write):
        """Return a region."""
        return Region(avals, write)

    def function(self, name, in_avals, write, visibility="private", attrs=((), ()), path=""):
        """Remember a function; each call of it is inlined."""
        name = self.unique(name)
        self.bodies[name] = write
        return name

    def call(self, name, operands, out_avals, discardable=None):
        """Record the operations of a function."""
        around, self.constants = self.constants, {}
        outs = list(self.bodies[name](*operands))
        self.constants = around
        return outs
