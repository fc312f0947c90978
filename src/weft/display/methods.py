"""Attaches `pretty_print`, `show`, `_repr_html_`, `structurally_equal` and more to jaxprs.

This file and numpy/methods.py, for arrays, add members to classes of lower layers. So every jaxpr
has these methods, and the layers that make jaxprs do not depend on their implementation.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

from weft import display
from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from weft.passes.equal import jaxpr_equal
from weft.util import LazyMember


def structurally_equal(program: Jaxpr | ClosedJaxpr, other: Jaxpr | ClosedJaxpr) -> bool:
    """Return True if two programs are the same except for the names of their variables.

    Types (weak ones too), the order of equations, parameters, and the values of consts bit for bit
    are compared. Functions are equal if they are one object.

    Args:
      program: a `Jaxpr` or a `ClosedJaxpr`.
      other: the other program.

    Returns:
      A bool.

    >>> make = weft.make_jaxpr(lambda x, y: jnp.sin(x) * y)
    >>> make(1.0, 2.0).structurally_equal(make(3.0, 4.0))
    True
    """
    display.show.require_program("structurally_equal", program, other)
    return jaxpr_equal(program, other)


class DebugInfo(NamedTuple):
    """The origin of a program, and the names of its parameters and results, if known.

    Attributes:
      traced_for: the transformation that traced the program, such as "jit".
      func_src_info: the name of the function.
      arg_names: the names of the arguments, or None.
      result_paths: the paths of the results in their pytree, or None.

    >>> weft.make_jaxpr(lambda x: x + 1)(2.0).debug_info.traced_for
    'jit'
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None


def debug_info(program: Jaxpr | ClosedJaxpr) -> DebugInfo:
    """Return the origin of a program; programs of `make_jaxpr` know the names of arguments."""
    memo = program.jaxpr.memo
    found = memo.get("debug_info")
    if callable(found):
        found = memo["debug_info"] = DebugInfo(*found())
    return found or DebugInfo("jit", program.jaxpr.name)


LazyMember(lambda: display.printing.pretty_print, "pretty_print", (Jaxpr, ClosedJaxpr, Eqn))
LazyMember(lambda: display.show.show, "show", (Jaxpr, ClosedJaxpr))
LazyMember(lambda: display.page.program_html, "_repr_html_", (Jaxpr, ClosedJaxpr))
for _name, _member in (
    ("structurally_equal", structurally_equal),
    ("debug_info", property(debug_info)),
):
    for _cls in (Jaxpr, ClosedJaxpr):
        setattr(_cls, _name, _member)
for _name in ("constvars", "invars", "outvars"):
    setattr(ClosedJaxpr, _name, property(operator.attrgetter(f"jaxpr.{_name}")))
ClosedJaxpr.literals = property(operator.attrgetter("consts"))  # type: ignore[attr-defined]
