"""Common subexpressions: equal computations are done once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, memo_jaxpr
from weft.dtypes import NUMBERS
from weft.passes.dce import has_effects
from weft.passes.rewrite import rewrite_equations

VALUES = (*NUMBERS, np.generic)


@memo_jaxpr
def cse_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program that does equal computations once.

    The pass eliminates common subexpressions, also in the programs that the program holds.
    Equations with side effects are not changed.

    Args:
      jaxpr: a `Jaxpr`.
    Returns:
      An equivalent `Jaxpr`; `jaxpr` itself if nothing changes.

    >>> from weft.passes import cse_jaxpr
    >>> jaxpr = weft.make_jaxpr(lambda x: jnp.sin(x) + jnp.sin(x))(1.0).jaxpr
    >>> print(cse_jaxpr(jaxpr))
    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = add b b in (c,) }
    """
    first: dict[tuple, Sequence[Var]] = {}

    def find_earlier(eqn: Eqn) -> Sequence[Var] | None:
        if has_effects(eqn):
            return None
        atoms = (exact_value(a.val, a.aval) if type(a) is Literal else a for a in eqn.invars)
        params = ((k, exact_value(v)) for k, v in eqn.params.items())
        earlier = first.setdefault((eqn.primitive, *atoms, None, *params), eqn.outvars)
        return None if earlier is eqn.outvars else earlier

    return rewrite_equations(jaxpr, cse_jaxpr, find_earlier)


def exact_value(x: Any, kind: Any = None) -> Any:
    """A stand-in for `x` that is equal only for the same value: 0.0, -0.0, 0 and False differ."""
    if isinstance(x, tuple):
        return (type(x), *map(exact_value, x))
    if isinstance(x, VALUES):
        return type(x), kind, repr(x)
    return x
