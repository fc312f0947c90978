"""Formulas: results written as StableHLO by a function, in place of an operation that XLA has."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost
from weft.core.primitive import Primitive
from weft.primitives.elementwise import Elementwise


class Formula(Primitive):
    """An operation that `write(hlo, *operands, *settings)` lowers, with results of types `outs`.

    It is for operations that only StableHLO can express, and for long formulas of `Expr`. A jaxpr
    would show every step of such a formula. It occurs only in programs that are about to be lowered
    for a CPU, so it has no derivative and no batching.
    """

    name = "formula"
    cost = Cost.TRANSCENDENTAL
    multiple_results = True

    def abstract_eval(self, *avals, write, outs, settings, by_element):
        return list(outs)

    def pretty_params(self, params):
        return {"write": params["write"].__name__, "settings": params["settings"]}

    def lower(self, hlo, *values, write, outs, settings, by_element):
        return write(hlo, *values, *settings)


formula_p = Formula()


def apply_formula(
    write: Callable[..., list],
    operands: Sequence[Any],
    outs: Sequence[ShapedArray],
    *settings: Hashable,
    by_element: bool = False,
) -> list:
    """Apply a formula to traced operands.

    Args:
      write: a function of a module; `write(hlo, *operands, *settings)` gives a list of values.
      operands: arrays.
      outs: the types of the results.
      settings: further arguments of `write`.
      by_element: whether only operations on elements at the same place are written.

    Returns:
      A list of the results.
    """
    params = dict(write=write, outs=tuple(outs), settings=settings, by_element=by_element)
    return formula_p.apply(*operands, **params)


def apply_plainly(prim: Primitive, *operands: Any, **params: Hashable) -> list:
    """Apply a primitive in the way that its own lowering writes, without a choice of a form."""
    outs = prim.type_of(tuple(map(typeof, operands)), params)
    settings = prim, tuple(params.items())
    return apply_formula(
        write_plainly, operands, outs, *settings, by_element=isinstance(prim, Elementwise)
    )


def write_plainly(hlo: Any, *args: Any) -> list:
    """Write a primitive by its own lowering."""
    *values, prim, params = args
    return prim.lower(hlo, *values, **dict(params))
