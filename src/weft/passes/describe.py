"""Descriptions of programs: equal ones stand for programs that are lowered to the same text.

A description is data of any process, while a jaxpr is made of objects of one. What a description
finds on disk is run/known.py's. Comparison of programs within a process is equal.py's.
"""

from __future__ import annotations

import enum
import functools
import struct
from collections.abc import Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr, Literal, origin_of
from weft.core.primitive import Primitive, programs_in
from weft.core.source import SourceInfo
from weft.passes.equal import const_bits

# The folders of weft that write the text of a program. A program with a primitive or a parameter of
# another folder has no description.
FOLDERS = (
    "control", "core", "cpu", "mesh", "native", "optimize", "options", "parallel", "passes",
    "primitives", "run", "transforms", "util", "watch", "xla",
)  # fmt: skip
PLAIN = frozenset((type(None), bool, int, str, bytes))  # types that repr writes in full
NUMBERS = float, complex, np.generic
FUNCTIONS = FunctionType, MethodType, functools.partial
MAX_CONST = 1 << 16  # bytes of an array within a program that is written


class NotDataError(Exception):
    """Raised for a part of a program that is not known to be the same in another process."""


def describe_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *settings: Any) -> str | None:
    """Return the description of a program, given the values of its constvars and more values.

    It has all that a lowering rule reads: equations with their types, parameters, literals and
    scopes, and the names of programs. Names of variables and places in sources are not part of it.
    None for a program with a part that is not data, such as a function that it calls.
    """
    writer = Writer()
    try:
        writer.write_jaxpr(jaxpr)
        for const in consts:
            writer.write_array(const)
        writer.write(settings)
    except NotDataError:
        return None
    return "\n".join(writer.parts)


class Writer:
    """Writes the lines of a description, `parts`."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.programs: dict[Jaxpr, int] = {}  # a program that is held twice is written once
        self.types: dict[ShapedArray, str] = {}
        self.dtypes: dict[np.dtype, str] = {}
        self.primitives: dict[Primitive, str] = {}

    def write_jaxpr(self, jaxpr: Jaxpr) -> None:
        """Write a program, with numbers for its variables."""
        env: dict[Any, int] = {}
        parts, describe_type = self.parts, self.describe_type

        def define(variables: Sequence[Any]) -> str:
            words = []
            for v in variables:
                env[v] = len(env)
                words.append(describe_type(v.aval))
            return " ".join(words)

        def read(atoms: Sequence[Any]) -> str:
            return " ".join(
                [self.describe_literal(a) if type(a) is Literal else str(env[a]) for a in atoms]
            )

        parts.append(f"{jaxpr.name!r} {define(jaxpr.constvars)}; {define(jaxpr.invars)}")
        for eqn in jaxpr.eqns:
            prim = eqn.primitive
            self.write_primitive(prim)
            operands = read(eqn.invars)
            parts.append(f"{operands}; {define(eqn.outvars)}")
            if eqn.params:
                self.write_params(eqn.params)
            source = origin_of(eqn).source
            if type(source) is SourceInfo:
                parts.append(repr([(type(name).__name__, str(name)) for name in source.scope]))
                parts.append(str(type(eqn.source) is SourceInfo))
        parts.append(f"in {read(jaxpr.outvars)}")

    def write_primitive(self, prim: Primitive) -> None:
        """Write the name of a primitive of weft's own, with its own rules."""
        text = self.primitives.get(prim)
        if text is None:
            kind = type(prim)
            if kind is Primitive or not is_own(kind) or "lower" in vars(prim):
                raise NotDataError
            text = self.primitives[prim] = f"{prim.name} {kind.__module__}.{kind.__qualname__}"
        self.parts.append(text)

    def write_params(self, params: dict[str, Any]) -> None:
        """Write the parameters of an equation.

        Functions beside a program are the rules of its derivatives, which no text is made of.
        """
        holds = None
        for name, value in params.items():
            kind = type(value)
            if kind in PLAIN:
                self.parts.append(f"{name} {value!r}")
                continue
            if kind in FUNCTIONS:
                holds = any(programs_in(params)) if holds is None else holds
                if holds:
                    continue
            self.parts.append(name)
            self.write(value)

    def write(self, value: Any) -> None:
        """Write a value among parameters; raises NotDataError for one that is not data."""
        kind = type(value)
        if kind in PLAIN or (kind is tuple and all(type(x) in PLAIN for x in value)):
            self.parts.append(repr(value))
        elif kind is tuple or kind is list:
            self.parts.append(f"{kind.__name__} {len(value)}")
            for x in value:
                self.write(x)
        elif isinstance(value, Jaxpr):
            self.write_program(value)
        elif isinstance(value, NUMBERS):
            self.parts.append(describe_number(value))
        elif isinstance(value, np.dtype):
            text = self.dtypes.get(value)
            if text is None:
                text = self.dtypes[value] = f"{value.name} {value.str}"
            self.parts.append(text)
        elif isinstance(value, ShapedArray):
            self.parts.append(self.describe_type(value))
        elif isinstance(value, Primitive):
            self.write_primitive(value)
        elif isinstance(value, enum.Enum) and is_own(kind):
            self.parts.append(f"{kind.__qualname__}.{value.name}")
        elif isinstance(value, tuple) and is_own(kind):
            self.parts.append(f"{kind.__module__}.{kind.__qualname__}")
            self.write(tuple(value))
        elif kind is np.ndarray or hasattr(kind, "held_array"):
            self.write_array(value if kind is np.ndarray else value.held_array())
        else:
            raise NotDataError

    def write_program(self, jaxpr: Jaxpr) -> None:
        """Write a program that an equation holds, or its number."""
        number = self.programs.get(jaxpr)
        if number is None:
            self.programs[jaxpr] = len(self.programs)
            self.write_jaxpr(jaxpr)
        else:
            self.parts.append(f"program {number}")

    def write_array(self, x: Any) -> None:
        """Write the type and the elements of an array."""
        aval = typeof(x)
        if aval.nbytes > MAX_CONST:
            raise NotDataError
        self.parts.append(f"{self.describe_type(aval)} {const_bits(x).hex()}")

    def describe_type(self, aval: Any) -> str:
        """Return the text of a type; raises NotDataError if it depends on more than is written."""
        found = self.types.get(aval)
        if found is None:
            plain = type(aval) is ShapedArray and aval.physical is aval
            if not plain or aval.sharded is not None or aval.varying or type(aval.size) is not int:
                raise NotDataError
            found = self.types[aval] = f"{aval.dtype.name}{[*aval.shape]}{'~' * aval.weak_type}"
        return found

    def describe_literal(self, a: Literal) -> str:
        """Return the text of a literal, by its bits."""
        return f"{describe_number(a.val)}:{self.describe_type(a.aval)}"


def describe_number(x: Any) -> str:
    """Return the type and the bits of a number."""
    kind = type(x)
    if kind in (bool, int):
        return repr(x)
    if kind is float:
        return struct.pack("<d", x).hex()
    if kind is complex:
        return struct.pack("<dd", x.real, x.imag).hex()
    if isinstance(x, np.generic) and not x.dtype.hasobject:
        return f"{x.dtype.name} {x.tobytes().hex()}"
    raise NotDataError


def is_own(kind: type) -> bool:
    """Return True for a class that is defined in the folders of FOLDERS."""
    package, _, rest = kind.__module__.partition(".")
    return package == "weft" and rest.partition(".")[0] in FOLDERS
