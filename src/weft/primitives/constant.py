"""An array written into a program, and staging that writes them: programs that need nothing passed.

Programs that a call holds are closed. Where one is transformed by a rule that closes over an array
(a custom derivative, a table of coefficients), the array becomes an equation of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.core.aval import ShapedArray, typeof, words_of
from weft.core.facts import Cost, Elements
from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from weft.core.primitive import Primitive
from weft.core.stage import stage
from weft.core.trace import Tracer
from weft.dtypes import WIDE, cast_on_host
from weft.errors import UnexpectedTracerError
from weft.passes.holes import Hole
from weft.xla.array import put


class Held:
    """An array as a parameter, compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = put(value) if getattr(value, "dtype", None) in WIDE else value

    def __repr__(self) -> str:
        return str(typeof(self.value))

    def held_array(self) -> Any:
        """The array, for the comparison of programs."""
        return self.value


class Constant(Primitive):
    """The array that `held` holds. Source: StableHLO, constant."""

    name = "constant"
    elements = Elements.CHOSEN
    cost = Cost.FREE
    memoize_type = False

    def abstract_eval(self, *, held):
        return [typeof(held.value)]

    def impl(self, *, held):
        if type(held.value) is Hole:
            held.value()
        return [held.value]

    def lower(self, hlo, *, held):
        value = words_of(held.value)
        aval = typeof(value)
        return [hlo.constant(cast_on_host(value, aval.dtype), aval)]

    def read_params(self, params, avals, out_avals):
        held = params["held"]
        return {"held": Held(Hole("array", "", held)) if type(held) is ShapedArray else held}


constant_p = Constant()


def stage_whole(fun: Callable, in_avals: Sequence[ShapedArray], name: str = "") -> Jaxpr:
    """The closed jaxpr of a flat function; arrays that it closes over are equations of it."""
    return write_consts(*stage(fun, in_avals, name))


def write_consts(jaxpr: Jaxpr, consts: Sequence[Any]) -> Jaxpr:
    """A closed jaxpr with `consts` written in."""
    if not consts:
        return jaxpr
    for x in consts:
        if isinstance(x, Tracer):
            raise UnexpectedTracerError(
                f"{jaxpr.name or 'jit'}: a rule in a staged program must not close over traced "
                f"values; got {x.aval} {x.origin()}. Hint: pass it to the function as an argument."
            )
    eqns = [
        Eqn(constant_p, [], {"held": Held(x)}, [v])
        for v, x in zip(jaxpr.constvars, consts, strict=True)
    ]
    return jaxpr.replace(constvars=[], eqns=[*eqns, *jaxpr.eqns])


def close_programs(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a primitive, with closed jaxprs for those ClosedJaxprs, as JAX's are."""

    def close(x: Any) -> Any:
        if type(x) is ClosedJaxpr:
            return write_consts(x.jaxpr, x.consts)
        return tuple(map(close, x)) if isinstance(x, tuple) else x

    return {key: close(x) for key, x in params.items()}
