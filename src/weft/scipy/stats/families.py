"""What the functions of all distributions share: arguments, location and scale, exp of logs.

A distribution writes its functions for location 0 and scale 1; `located` and `shifted` make of
each the function that users call. A member of these families is a module of this package.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import weft.numpy as jnp
from weft import dtypes
from weft.core.aval import typeof
from weft.errors import DtypeError
from weft.numpy.fused import fused
from weft.numpy.promotion import NUMBERS, Plan, as_array, as_operand, kind_of, operands, plan_for
from weft.numpy.reductions import widened
from weft.primitives.elementwise import convert
from weft.primitives.layout import full

KINDS = {
    "pdf": "The density",
    "logpdf": "The log of the density",
    "pmf": "The probability",
    "logpmf": "The log of the probability",
    "cdf": "The probability of a value that is not greater",
    "logcdf": "The log of the probability of a value that is not greater",
    "sf": "The probability of a greater value",
    "logsf": "The log of the probability of a greater value",
    "ppf": "The value that is not exceeded with a given probability",
    "isf": "The value that is exceeded with a given probability",
    "entropy": "The entropy, in nats",
}
LOC = inspect.Parameter("loc", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=0)
SCALE = inspect.Parameter("scale", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=1)


def located(fun: Callable) -> Callable:
    """The function of a distribution with `loc` and `scale`, made of the one for 0 and 1."""
    kind = fun.__name__

    def general(*args: Any) -> Any:
        x, *shapes, loc, scale = args
        if kind in ("ppf", "isf"):
            out = fun(x, *shapes)
            out = out if is_number(scale, 1) else out * scale
            out = out if is_number(loc, 0) else out + loc
        else:
            x = x if is_number(loc, 0) else x - loc
            x = x if is_number(scale, 1) else x / scale
            out = fun(x, *shapes)
            if kind in ("pdf", "logpdf") and not is_number(scale, 1):
                out = out - jnp.log(scale) if kind == "logpdf" else out / scale
        return out if is_number(scale, 1) else jnp.where(scale > 0, out, jnp.nan)

    return public(fun, general, (LOC, SCALE))


def shifted(fun: Callable) -> Callable:
    """The function of a distribution with `loc`, made of the one for 0."""

    def general(k: Any, *rest: Any) -> Any:
        *shapes, loc = rest
        if fun.__name__ == "entropy":
            return fun(k, *shapes)
        return fun(k if is_number(loc, 0) else k - loc, *shapes)

    return public(fun, general, (LOC,))


def fixed(fun: Callable) -> Callable:
    """The function of a distribution that has neither location nor scale."""
    return public(fun, fun, ())


def floats(op: str, args: Sequence[Any], shaped: bool = True) -> tuple[list, Plan]:
    """Operands to compute with, and the plan that says what the result is to be.

    They are of the float dtype that they promote to, or of float32 where that has fewer bits; and,
    with `shaped`, of one shape. Python numbers stay.
    """
    args = [as_operand(op, x) for x in args]
    plan = plan_for(op, tuple([kind_of(op, x) for x in args]), inexact=True, shaped=shaped)
    if dtypes.is_complex(plan.dtype):
        listed = ", ".join(str(typeof(x)) for x in args)
        raise DtypeError(f"{op}: operands must be real; got {listed}.")
    wide = widened(plan.dtype)
    xs = operands(op, *args, inexact=True, shaped=shaped)
    return [x if type(x) in NUMBERS else convert(x, wide) for x in xs], plan


def is_number(x: Any, value: int) -> bool:
    """Whether x is a Python number of this value, so that nothing is to be done."""
    return type(x) in NUMBERS and x == value


def public(
    fun: Callable, general: Callable, more: Sequence[inspect.Parameter], name: str = ""
) -> Callable:
    """`general` as users call it: arguments by name, promoted and broadcast; documented.

    It takes the arguments of `fun` and `more`. Floats of 16 bits and fewer are computed with in
    float32.
    """
    name = name or fun.__name__
    signature = inspect.signature(fun)
    signature = signature.replace(parameters=[*signature.parameters.values(), *more])
    home = sys.modules[fun.__module__]
    op = f"{home.__name__.rpartition('.')[2]}.{name}"
    count = len(signature.parameters)
    described = (home.__doc__ or "").strip().replace("The ", "of the ", 1)

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != count:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{op}: {error}.") from None
            bound.apply_defaults()
            args = bound.args
        xs, plan = floats(op, args)
        for i, x in enumerate(xs):
            if type(x) not in NUMBERS:
                xs[i] = as_array(x, op)
            elif i < count - len(more):  # a parameter; loc and scale stay as they are written
                xs[i] = full((), x, widened(plan.dtype))
        return convert(general(*xs), plan.dtype, plan.weak)

    call.__name__ = call.__qualname__ = name
    call.__module__ = fun.__module__
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__doc__ = (
        f"{KINDS[name]} {described}\n\nArguments broadcast together; the result is of "
        f"the float dtype that they promote to.\n"
    )
    out = fused(call, name=op.replace(".", "_"))
    out.general = general
    return out


def exp_of(log: Callable) -> Callable:
    """The pdf, pmf, cdf or sf whose log is a function that `located` or its like made."""

    def general(*args: Any) -> Any:
        return jnp.exp(log.general(*args))  # type: ignore[attr-defined]

    return public(log, general, (), log.__name__.removeprefix("log"))


def within(inside: Any, fun: Callable, x: Any, instead: float, outside: Any) -> Any:
    """fun(x) where `inside`, and `outside` elsewhere, with derivatives of zero; NaN of NaN.

    `instead` is an x that `fun` has a finite derivative at.
    """
    out = jnp.where(inside, fun(jnp.where(inside, x, instead)), outside)
    return jnp.where(jnp.isnan(x), x, out)


def whole(k: Any) -> Any:
    """Whether k is an integer; NaN counts as one, so that it stays."""
    return (jnp.floor(k) == k) | jnp.isnan(k)


def valid(condition: Any, out: Any) -> Any:
    """`out` where the parameters are what they must be, else NaN."""
    return jnp.where(condition, out, jnp.nan)


def quantile(fun: Callable, q: Any) -> Any:
    """fun(q) for q in [0, 1], else NaN; the derivative there is zero."""
    return within((q >= 0) & (q <= 1), fun, q, 0.5, jnp.nan)
