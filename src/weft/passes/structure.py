"""`structure_of`: a program as a key, by which programs written twice are found to be one.

Variables count by their place, programs that equations hold by their own structure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.core.jaxpr import Jaxpr, Literal
from weft.core.primitive import Program


def structure_of(jaxpr: Jaxpr) -> tuple:
    """Equal for programs that compute the same by the same equations; see `key_of`."""
    found = jaxpr.memo.get("structure")
    if found is None:
        inputs = [*jaxpr.constvars, *jaxpr.invars]
        place = {v: i for i, v in enumerate(inputs)}
        read = lambda a: key_of(a.val, a.aval) if type(a) is Literal else place[a]
        rows = []
        for eqn in jaxpr.eqns:
            ins = tuple(map(read, eqn.invars))
            place.update((v, len(place) + k) for k, v in enumerate(eqn.outvars))
            params = tuple((name, key_of(x)) for name, x in eqn.params.items())
            rows.append((eqn.primitive, ins, params, tuple(v.aval for v in eqn.outvars)))
        outs = tuple(map(read, jaxpr.outvars))
        types = tuple(v.aval for v in inputs)
        found = jaxpr.memo["structure"] = (jaxpr.name, types, tuple(rows), outs)
    return found


def key_of(x: Any, *more: Any) -> Any:
    """A parameter as a key: numbers that print differently differ, as 0.0, -0.0 and False do."""
    if isinstance(x, Program):
        return structure_of(x.jaxpr), *more
    if type(x) in (tuple, list):
        return (*map(key_of, x), *more)
    if isinstance(x, bool | int | float | complex | np.generic | np.ndarray):
        return type(x), repr(x) if np.ndim(x) == 0 else x.tobytes(), *more
    return x
