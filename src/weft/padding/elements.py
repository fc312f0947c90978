"""Run operations that have an `element` rule on padded arrays.

If the operation gives the right elements on padded arrays (match.py), it is applied to them
unchanged, or after the padding is filled. Otherwise its `element` rule is evaluated (compute.py).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.element import Operand, Place, Read
from weft.core.jaxpr import Eqn
from weft.errors import HidingError, MissingRule
from weft.export.dims import Dim
from weft.padding.compute import compute_elements
from weft.padding.contents import (
    FINITE,
    ON_HOST,
    Content,
    compute_for_signs,
    content_of_type,
    find_content,
    is_constant,
)
from weft.padding.match import Matching, Mismatch
from weft.padding.sizes import IDENTITY, NUMBER, Sizes, refusal


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
    known = [sizes.find_known(x) for x in ins]
    for contents in ([list_contents(x, k) for x, k in zip(ins, known, strict=True)], None):
        try:
            fills = match_elements(eqn, sizes, rules, contents)
            break
        except Mismatch:
            if not any(known):
                return compute_elements(eqn, sizes, ins, rules)
    else:
        return compute_elements(eqn, sizes, ins, rules)
    given = list(ins)
    groups: dict[tuple, list[int]] = {}
    for (k, axis), value in fills.items():
        groups.setdefault((k, value.tobytes()), []).append(axis)
    for (k, _), axes in groups.items():
        given[k] = sizes.mask(given[k], avals[k], axes, fills[k, axes[0]])
    found = prim.apply(*given, **{k: sizes.substitute(v) for k, v in eqn.params.items()})
    note_contents(eqn, sizes, rules, given, found)
    return found


def list_contents(x: Any, known: Mapping) -> dict:
    """Return the content along each padded axis of a value, for sums of products.

    A Cholesky factor may be NaN, in the padding too. Then its diagonal is NaN, so that all sums of
    products along its rows or columns are NaN, with the padding or without it.
    """
    if known.get(IDENTITY) is True:
        rank = typeof(x).ndim
        return {rank - 2: FINITE, rank - 1: FINITE}
    return {a: c for a, c in known.items() if type(a) is int and is_constant(c)}


def note_contents(
    eqn: Eqn, sizes: Sizes, rules: Sequence[tuple[Sequence[Place], Any]], ins: Sequence[Any],
    outs: Sequence[Any],
) -> None:  # fmt: skip
    """Note the contents of the padding of results that are computed from padded operands."""
    known = [sizes.find_known(x) for x in ins]
    everywhere = functools.partial(find_everywhere, eqn, ins, known)
    for (places, expression), v, y in zip(rules, eqn.outvars, outs, strict=True):
        facts: dict[int | str, Content] = {}
        content = find_content(expression, everywhere)
        if isinstance(content, np.ndarray):
            facts[NUMBER] = content
        for axis, n in enumerate(v.aval.shape):
            if isinstance(n, Dim):
                read = functools.partial(find_beyond, eqn, ins, known, places[axis], n)
                content = find_content(expression, read)
                if content is not None:
                    facts[axis] = content
        if facts:
            sizes.note(y, facts)


def find_beyond(
    eqn: Eqn, ins: Sequence[Any], known: Sequence[Mapping], place: Place, size: Any, read: Read
) -> Content:
    """Return the content of a read of an operand where a place is beyond its true size."""
    aval, facts = eqn.invars[read.operand].aval, known[read.operand]
    found = find_everywhere(eqn, ins, known, read)
    if isinstance(found, np.ndarray):
        return found
    axis = next((a for a, index in enumerate(read.index) if index is place), None)
    if axis is not None and isinstance(aval.shape[axis], Dim) and aval.shape[axis] == size:
        found = facts.get(axis)
    return found if is_constant(found) else content_of_type(aval.dtype)


def find_everywhere(eqn: Eqn, ins: Sequence[Any], known: Sequence[Mapping], read: Read) -> Content:
    """Return the content of a read of an operand at any place."""
    aval = eqn.invars[read.operand].aval
    found = find_number(ins[read.operand], aval, known[read.operand])
    return content_of_type(aval.dtype) if found is None else found


def find_number(x: Any, aval: ShapedArray, facts: Mapping) -> Content:
    """Return the number that a scalar is, or all elements of an array; None if it is not known."""
    if isinstance(x, int | float | complex | np.generic):
        return np.asarray(x).astype(aval.dtype)
    return facts.get(NUMBER)


def note_number(eqn: Eqn, sizes: Sizes, ins: Sequence[Any], outs: Sequence[Any]) -> None:
    """Note the result of an operation on scalars that are known numbers."""
    if eqn.primitive in ON_HOST and not eqn.outvars[0].aval.shape:
        numbers = [
            find_number(x, a.aval, sizes.find_known(x))
            for x, a in zip(ins, eqn.invars, strict=True)
        ]
        if all(isinstance(x, np.ndarray) for x in numbers):
            found = compute_for_signs(eqn.primitive, eqn.params, numbers)  # type: ignore[arg-type]
            if found is not None:
                sizes.note(outs[0], {NUMBER: found})


def match_elements(
    eqn: Eqn, sizes: Sizes, rules: Sequence[tuple[Sequence[Place], Any]],
    contents: Sequence[Mapping] | None = None,
) -> Mapping[tuple[int, int], Any]:  # fmt: skip
    """Return the fills of padding with which the operation gives the right elements.

    `contents` are those that the padding of each operand has along each axis, as far as known.

    Raises:
      Mismatch: no fills make the elements right.
    """
    prim = eqn.primitive
    avals = [sizes.pad_type(a.aval) for a in eqn.invars]
    outs = [sizes.pad_type(v.aval) for v in eqn.outvars]
    params = {k: sizes.substitute(v) for k, v in eqn.params.items()}
    shapes = [a.aval.shape for a in eqn.invars]
    matching = Matching(avals, shapes, contents, sizes.buckets)
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
