"""Attaches `show`, `_repr_html_` and `structurally_equal` to jaxprs.

With what numpy/methods.py attaches to arrays, this is where a module adds members to classes below
it: whoever holds a jaxpr can look at it, and nothing that makes one has to know how that is done.
"""

from __future__ import annotations

from weft.core.jaxpr import ClosedJaxpr, Jaxpr
from weft.display.page import program_html
from weft.display.show import require_program, show
from weft.passes.equal import jaxpr_equal


def structurally_equal(program: Jaxpr | ClosedJaxpr, other: Jaxpr | ClosedJaxpr) -> bool:
    """Whether two programs are the same but for the names of their variables.

    Types (weak ones too), equations in their order, parameters, and the values of consts bit for
    bit. Functions are equal where they are one object.

    >>> make = weft.make_jaxpr(lambda x, y: jnp.sin(x) * y)
    >>> make(1.0, 2.0).structurally_equal(make(3.0, 4.0))
    True
    """
    require_program("structurally_equal", program, other)
    return jaxpr_equal(program, other)


for _cls in (Jaxpr, ClosedJaxpr):
    for _name, _method in (
        ("show", show),
        ("_repr_html_", program_html),
        ("structurally_equal", structurally_equal),
    ):
        setattr(_cls, _name, _method)
