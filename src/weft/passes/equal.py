"""Comparison of jaxprs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import typeof
from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from weft.passes.cse import exact_value


def jaxpr_equal(a: Jaxpr | ClosedJaxpr, b: Jaxpr | ClosedJaxpr) -> bool:
    """Whether two programs are the same up to the names of variables: types, equations in order.

    Consts are compared by value. Labels (`Jaxpr.name`) and source lines do not matter.
    """
    if not _all_equal(_const_equal, a.consts, b.consts):
        return False
    a, b = a.jaxpr, b.jaxpr
    if a is b:
        return True
    ours: dict[Var, Var] = {}  # the variables of `a` -> those of `b`

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
            and all(_param_equal(v, y.params[k]) for k, v in x.params.items())
            and _all_equal(define, x.outvars, y.outvars)
        )

    return (
        _all_equal(define, a.constvars, b.constvars)
        and _all_equal(define, a.invars, b.invars)
        and _all_equal(same_equation, a.eqns, b.eqns)
        and _all_equal(equal, a.outvars, b.outvars)
    )


def _all_equal(equal: Callable[[Any, Any], bool], xs: Sequence, ys: Sequence) -> bool:
    return len(xs) == len(ys) and all(map(equal, xs, ys))


def _param_equal(x: Any, y: Any) -> bool:
    if isinstance(x, Jaxpr | ClosedJaxpr):
        return isinstance(y, Jaxpr | ClosedJaxpr) and jaxpr_equal(x, y)
    if isinstance(x, tuple):
        return type(x) is type(y) and _all_equal(_param_equal, x, y)
    return bool(exact_value(x) == exact_value(y))


def _const_equal(x: Any, y: Any) -> bool:
    """Equal types and bits, so that NaNs are equal and zeros of different sign are not."""
    if x is y:
        return True
    return typeof(x) is typeof(y) and np.asarray(x).tobytes() == np.asarray(y).tobytes()
