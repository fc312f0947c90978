"""Operations named by the equations they compute, so that a profile leads back to the user's lines.

An operation of the compiled program has as its name the names of what wrote it, joined by "/": that
of a call first where it is in a function. `read_origins` finds the equations.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar

from weft.core.jaxpr import Eqn
from weft.xla.hlo import Builder

MARK = re.compile(r' loc\("[^"]*:(\d+)"\)$')


class LocatingBuilder(Builder):
    """Names each operation by its primitive and a number, its place in `origins`.

    An entry of `origins` has the equation that wrote the operation, and then those that hold it,
    from the inside out, up to the function of the module that it is in.
    """

    origins: list[list[Eqn]]
    # what is compiled is added, by the name of the module, while this is a dict
    kept: ClassVar[dict[str, tuple[Any, Sequence]] | None] = None

    def locate(self, start: int, path: str, eqn: Eqn | None = None) -> None:
        assert eqn is not None
        inner = set()
        for i in range(start, len(self.lines)):
            found = MARK.search(self.lines[i])
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
    """Keep an executable and what its operations are named by, where all are to be explained."""
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
