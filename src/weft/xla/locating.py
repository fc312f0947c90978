"""Operations named by the equations they compute, so that a profile leads back to the user's lines.

An operation of the compiled program has as its name the names of what wrote it, joined by "/": that
of a call first where it is in a function. `read_origins` finds the equations.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar

from jaxlib import _jax

from weft.core.jaxpr import Eqn, bodies_of, origin_of
from weft.core.source import path_text, user_code
from weft.xla.hlo import Builder, FrontendAttributes, quote_text

MARK = r' loc\("[^"]*:(\d+)"\)$'  # compiled at its first use


def operation_path(around: str, eqn: Eqn) -> str:
    """Return the name of an operation in profiles: its scopes, and its kind."""
    eqn = origin_of(eqn)
    called = next((b.label for b in bodies_of(eqn) if b.label), eqn.primitive.name)
    scope = [name for name in eqn.source_info.scope if type(name) is not FrontendAttributes]
    name = path_text([*scope, called])
    return f"{around}/{name}" if around else name


class LocatingBuilder(Builder):
    """Names each operation by its primitive and a number, its place in `origins`.

    An entry of `origins` has the equation that wrote the operation, and then those that hold it,
    from the inside out, up to the function of the module that it is in.
    """

    names_all = True
    origins: list[list[Eqn]]
    # While this is a dict, executables are added to it, by the name of their module.
    kept: ClassVar[dict[str, tuple[Any, Sequence]] | None] = None

    def locate(self, start: int, path: str, eqn: Eqn | None = None) -> None:
        assert eqn is not None
        eqn = origin_of(eqn)
        inner = set()
        for i in range(start, len(self.lines)):
            found = re.search(MARK, self.lines[i])
            if found is not None:
                inner.add(int(found[1]))
        for number in inner:
            origin = self.origins[number]
            if origin[-1] is not eqn:
                origin.append(eqn)
        super().locate(start, f"{eqn.primitive.name}:{len(self.origins)}", eqn)
        self.origins.append([eqn])

    def module(self, name: str) -> str:
        # a name of its own, which in a profile tells the program
        number = zlib.crc32("".join(self.functions).encode())
        return super().module(f"{name}.{number:08x}")


def keep_located(loaded: Any, origins: Sequence) -> None:
    """Store an executable with the names of its operations, if programs are being explained."""
    if LocatingBuilder.kept is not None:
        LocatingBuilder.kept[loaded.hlo_modules()[0].name] = loaded, origins


def read_origins(name: str, origins: Sequence[Sequence[Eqn]]) -> list[Eqn]:
    """The equations that a name of an operation stands for, from the inside out."""
    found: list[Eqn] = []
    for part in reversed(name.split("/")):
        number = part.rpartition(":")[2]
        if number.isdecimal() and int(number) < len(origins):
            found += origins[int(number)]
    return found


def write_places(text: str, origins: Sequence[Sequence[Eqn]], name: str) -> str:
    """The text of a located module of a function, with scopes and the user's lines for names.

    They stand as MLIR writes them: `loc("jit(f)/sin"("model.py":12:4))`.
    """

    def write(found: re.Match) -> str:
        eqns = read_origins(found[1], origins)
        path = [f"jit({name})", *[operation_path("", e) for e in reversed(eqns)]]
        inner = next((c for e in eqns if (c := user_code(e.source))), None)
        quoted = quote_text("/".join(path))
        if inner is None:
            return f" loc({quoted})"
        line, column, *_ = _jax.Traceback.code_addr2location(*inner)
        return f" loc({quoted}({quote_text(inner[0].co_filename)}:{line}:{column}))"

    text = re.sub(r"\A(module @\S+?)\.[0-9a-f]{8}(?=\s)", r"\1", text)
    return re.sub(r' loc\("([^"]*)"\)', write, text)
