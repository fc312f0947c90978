"""Comparison of jaxprs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import typeof, words_of
from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from weft.passes.cse import exact_value
from weft.passes.holes import Hole


def jaxpr_equal(a: Jaxpr | ClosedJaxpr, b: Jaxpr | ClosedJaxpr) -> bool:
    """Return True if two programs are equal up to the names of variables.

    Consts are compared by value. Labels (`Jaxpr.name`) and source lines do not matter.
    """
    return _compare_programs(a, b, set())


def _compare_programs(
    a: Jaxpr | ClosedJaxpr, b: Jaxpr | ClosedJaxpr, known: set[tuple[Jaxpr, Jaxpr]]
) -> bool:
    """Do as `jaxpr_equal` does; `known` are pairs found equal, which are skipped."""
    if not _all_equal(_const_equal, a.consts, b.consts):
        return False
    a, b = a.jaxpr, b.jaxpr
    if a is b or (a, b) in known:
        return True
    ours: dict[Var, Var] = {}  # variables of `a` -> variables of `b`

    def define(x: Var, y: Var) -> bool:
        ours[x] = y
        return x.aval is y.aval

    def equal(x: Any, y: Any) -> bool:
        if type(x) is Literal or type(y) is Literal:
            same_kind = type(x) is type(y) and x.aval is y.aval
            return same_kind and exact_value(x.val) == exact_value(y.val)
        return ours.get(x) is y

    def same_equation(x: Eqn, y: Eqn) -> bool:
        return (
            x.primitive is y.primitive
            and _all_equal(equal, x.invars, y.invars)
            and x.params.keys() == y.params.keys()
            and all(_param_equal(v, y.params[k], known) for k, v in x.params.items())
            and _all_equal(define, x.outvars, y.outvars)
        )

    same = (
        _all_equal(define, a.constvars, b.constvars)
        and _all_equal(define, a.invars, b.invars)
        and _all_equal(same_equation, a.eqns, b.eqns)
        and _all_equal(equal, a.outvars, b.outvars)
    )
    if same:
        known.add((a, b))
    return same


def _all_equal(equal: Callable[[Any, Any], bool], xs: Sequence, ys: Sequence) -> bool:
    return len(xs) == len(ys) and all(map(equal, xs, ys))


def _param_equal(x: Any, y: Any, known: set) -> bool:
    if isinstance(x, Jaxpr | ClosedJaxpr):
        return isinstance(y, Jaxpr | ClosedJaxpr) and _compare_programs(x, y, known)
    if isinstance(x, tuple):
        return type(x) is type(y) and _all_equal(lambda v, w: _param_equal(v, w, known), x, y)
    if hasattr(type(x), "held_array"):
        return type(x) is type(y) and _const_equal(x.held_array(), y.held_array())
    return bool(exact_value(x) == exact_value(y))


def _const_equal(x: Any, y: Any) -> bool:
    """Equal types and bits, so that NaNs are equal and zeros of different sign are not."""
    if x is y:
        return True
    if Hole in (type(x), type(y)):
        return type(x) is type(y) and bool(x == y)
    return typeof(x) is typeof(y) and const_bits(x) == const_bits(y)


def const_bits(x: Any) -> bytes:
    """The elements of an array, of its type here."""
    return np.asarray(words_of(x), typeof(x).physical.dtype).tobytes()
