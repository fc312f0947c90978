"""The values of the expressions of weft/core/element.py, in plain Python: an oracle for rules."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.core.element import Apply, Integer, Number, Place, Read, Reduce, Select


def evaluate(
    expression: Any,
    arrays: Sequence[np.ndarray],
    apply: Callable[[Any, Mapping[str, Any], Sequence[Any]], Any],
    places: Mapping[Place, int] | None = None,
) -> Any:
    """Compute an expression in plain Python.

    Args:
      expression: an expression, or an int, which is itself.
      arrays: the operands.
      apply: computes `apply(primitive, params, args)` of scalars.
      places: the numbers that places stand for.

    An index out of the bounds of its operand is an error.
    """
    known = places or {}
    find = lambda x: evaluate(x, arrays, apply, known)
    match expression:
        case Place():
            return known[expression]
        case Integer():
            left, right = find(expression.left), find(expression.right)
            return expression.operator.value[1](_exactly(left), _exactly(right))
        case Read():
            x, index = arrays[expression.operand], [_exactly(find(i)) for i in expression.index]
            if len(index) != x.ndim or not all(0 <= i < n for i, n in zip(index, x.shape)):
                raise IndexError(f"{expression}: must be inside of {x.shape}; got {index}.")
            return x[tuple(index)]
        case Number():
            return expression.dtype.type(find(expression.value))
        case Apply():
            args = [find(x) for x in expression.args]
            return apply(expression.primitive, expression.params, args)
        case Select():
            return find(expression.yes if find(expression.condition) else expression.no)
        case Reduce():
            total = find(expression.start)
            for at in itertools.product(*[range(_exactly(find(n))) for n in expression.sizes]):
                inner = {**known, **dict(zip(expression.places, at, strict=True))}
                x = evaluate(expression.body, arrays, apply, inner)
                adds = expression.combine is None
                total = np.add(total, x) if adds else apply(expression.combine, {}, [total, x])
            return total
    return expression


def _exactly(x: Any) -> Any:
    """Return a value as an unbounded integer; bools stay bools."""
    return x if isinstance(x, bool | int) else bool(x) if np.asarray(x).dtype == bool else int(x)
