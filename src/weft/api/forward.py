"""Forward mode of what runs operation by operation: the rule of each is one compiled program."""

from __future__ import annotations

from collections.abc import Callable

from weft.api.tape import find_rule
from weft.core.aval import typeof
from weft.core.primitive import Primitive, Zero
from weft.options import x64_cell
from weft.transforms.jvp import JVPTrace, jvp_jaxpr
from weft.xla.eager import compile_program
from weft.xla.run import eqn_jaxpr


class JVPRule:
    """The `jvp` rule of an operation at given types: one compiled program, from the second use on.

    What is applied once would take longer to compile than the operations that the rule is made of.
    """

    __slots__ = ("call", "make", "moved", "used", "zeros")

    def __init__(self, prim: Primitive, params: dict, avals: tuple, given: tuple[bool, ...]):
        self.used = False
        self.call: Callable | None = None
        self.make = prim, params, avals, given

    def apply(self, primals: list, tangents: list) -> tuple[list, list]:
        """Results and their tangents."""
        if self.call is None:
            prim, params, avals, given = self.make
            if not self.used:
                self.used = True
                return prim.jvp(primals, tangents, **params)
            jaxpr, self.moved = jvp_jaxpr(eqn_jaxpr(prim, params, avals), given)
            self.zeros = [Zero(a.to_tangent()) for a in jaxpr.out_avals[: len(self.moved)]]
            self.call = compile_program(jaxpr, f"jvp_{prim.name}")
        found = self.call(*primals, *[t for t in tangents if type(t) is not Zero])
        rest = iter(found[len(self.moved) :])
        pairs = zip(self.moved, self.zeros, strict=True)
        return found[: len(self.moved)], [next(rest) if m else zero for m, zero in pairs]


class CompilingTrace(JVPTrace):
    """Compiles rules. For where `can_tape()`: we compute, and nobody watches single operations."""

    __slots__ = ()

    def apply_rule(self, prim: Primitive, primals: list, tangents: list, params: dict) -> tuple:
        rule = None
        if x64_cell.value is self.x64:
            avals = tuple([typeof(x, prim.name) for x in primals])
            given = tuple([type(t) is not Zero for t in tangents])
            rule = find_rule(JVPRule, prim, params, avals, given)
        if rule is None:
            return prim.jvp(primals, tangents, **params)
        return rule.apply(primals, tangents)
