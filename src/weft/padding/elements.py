"""Run operations that have an `element` rule on padded arrays.

If the operation gives the right elements on padded arrays (match.py), it is applied to them
unchanged, or after the padding is filled. Otherwise its `element` rule is evaluated (compute.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.element import Operand, Place
from weft.core.jaxpr import Eqn
from weft.errors import HidingError, MissingRule
from weft.padding.compute import compute_elements
from weft.padding.match import Matching, Mismatch
from weft.padding.sizes import Sizes, refusal


def run_elements(eqn: Eqn, sizes: Sizes, ins: Sequence[Any]) -> list:
    """Return the padded results of an operation with an `element` rule."""
    prim, avals = eqn.primitive, [a.aval for a in eqn.invars]
    outs = [v.aval for v in eqn.outvars]
    rules = []
    try:
        operands = [Operand(k, a) for k, a in enumerate(avals)]
        for n, out in enumerate(outs):
            places = tuple([Place(f"i{k}") for k in range(out.ndim)])
            rules.append((places, prim.element(places, *operands, **eqn.params)[n]))
    except (HidingError, MissingRule) as error:
        raise refusal(eqn, f"has no rule for padded arrays of these types ({error})") from None
    try:
        fills = match_elements(eqn, sizes, rules)
    except Mismatch:
        return compute_elements(eqn, sizes, ins, rules)
    given = list(ins)
    groups: dict[tuple, list[int]] = {}
    for (k, axis), value in fills.items():
        groups.setdefault((k, value.tobytes()), []).append(axis)
    for (k, _), axes in groups.items():
        given[k] = sizes.mask(given[k], avals[k], axes, fills[k, axes[0]])
    return prim.apply(*given, **{k: sizes.substitute(v) for k, v in eqn.params.items()})


def match_elements(
    eqn: Eqn, sizes: Sizes, rules: Sequence[tuple[Sequence[Place], Any]]
) -> Mapping[tuple[int, int], Any]:
    """Return the fills of padding with which the operation gives the right elements.

    Raises:
      Mismatch: no fills make the elements right.
    """
    prim = eqn.primitive
    avals = [sizes.pad_type(a.aval) for a in eqn.invars]
    outs = [sizes.pad_type(v.aval) for v in eqn.outvars]
    params = {k: sizes.substitute(v) for k, v in eqn.params.items()}
    matching = Matching(avals)
    operands = [Operand(k, a) for k, a in enumerate(avals)]
    try:
        types = prim.type_of(tuple(avals), params)
        if [t.shape for t in types] != [t.shape for t in outs]:
            raise Mismatch
        for n, (places, expression) in enumerate(rules):
            matching.match(expression, prim.element(places, *operands, **params)[n])
    except (HidingError, ValueError, TypeError):
        raise Mismatch from None
    return matching.finish()
