"""Looking for integers that do not fit their type: which operation wrapped, on which line.

Under `debug_overflow` a program with arithmetic of signed integers runs again, equation by
equation, and each such result is compared with the same operation on floats of 64 bits. Unsigned
integers wrap on purpose, as in random numbers. Divisions and shifts are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import typeof
from weft.core.jaxpr import Eqn, Jaxpr, Literal, held_jaxprs, memo_jaxpr, subjaxprs
from weft.core.source import describe_maker, inner_source
from weft.core.trace import current
from weft.options import x64_as
from weft.watch.nans import follow_bodies

# By name: the operations themselves are in later folders.
ARITHMETIC = frozenset(
    ["abs", "add", "cumprod", "cumsum", "dot_general", "integer_pow", "mul", "neg", "sub"]
) | {"reduce_prod", "reduce_sum"}


@memo_jaxpr
def can_overflow(jaxpr: Jaxpr) -> bool:
    """Whether a program has arithmetic of signed integers, or conversions to them."""
    return any(map(is_checked, jaxpr.eqns)) or any(map(can_overflow, subjaxprs(jaxpr)))


def is_checked(eqn: Eqn) -> bool:
    """Whether the result of an equation is compared with what it is in floats."""
    dtype = getattr(eqn.outvars[0].aval, "dtype", None) if eqn.outvars else None
    if dtype is None or not dtypes.is_integer(dtype) or not dtypes.is_signed(dtype):
        return False
    if eqn.primitive.name == "convert_element_type":
        source = eqn.invars[0].aval.dtype
        return dtypes.is_float(source) or (dtypes.is_integer(source) and dtypes.is_signed(source))
    return eqn.primitive.name in ARITHMETIC


def check_overflow(
    name: str, jaxpr: Jaxpr, args: Sequence[Any], inner: bool, inside: tuple[str, ...] = ()
) -> list:
    """The results of a program, or OverflowError where one of its integers does not fit its type.

    Where not `inner`, the lines of its equations are not the user's.
    """
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    read: Callable[[Any], Any] = lambda atom: atom.read() if type(atom) is Literal else env[atom]
    before = current.source
    around = before or current.capture()
    try:
        for eqn in jaxpr.eqns:
            source = (inner and eqn.source) or around
            current.source = inner_source(eqn.source) if inner else around
            operands = [*map(read, eqn.invars)]
            if any(map(can_overflow, held_jaxprs(eqn))):
                look = lambda body, xs, within: (
                    check_overflow(name, body, xs, inner, (within, *inside)), None
                )  # fmt: skip
                follow_bodies(eqn, operands, look)
            outs = eqn.primitive.apply(*operands, **eqn.params)
            if is_checked(eqn) and (flaw := find_wrapped(eqn, operands, outs[0])):
                op = eqn.primitive.name
                made = describe_maker(source, op if inner else name)
                places = (*inside, name) if inner and eqn.source else inside
                where = f", in {' in '.join(places)}" if places else ""
                raise OverflowError(
                    f"{op}: the result must fit {typeof(outs[0]).dtype} under debug_overflow; got "
                    f"{flaw}, {made}{where}. Hint: floats, or jnp.int64 under weft.enable_x64()."
                )
            env.update(zip(eqn.outvars, outs, strict=True))
    finally:
        current.source = before
    return [*map(read, jaxpr.outvars)]


def find_wrapped(eqn: Eqn, operands: Sequence[Any], out: Any) -> str:
    """The first element that is not what it is in floats, as `2147483648.0 at [1]`; or empty."""
    got = np.asarray(out)
    converts = eqn.primitive.name == "convert_element_type"
    if converts:
        wide = np.trunc(np.asarray(operands[0]).astype(np.float64))
    else:
        params = dict(eqn.params)
        if params.get("preferred_element_type") is not None:
            params["preferred_element_type"] = np.dtype(np.float64)
        with x64_as(True):
            floats = [np.asarray(x).astype(np.float64) for x in operands]
            (result,) = eqn.primitive.apply(*floats, **params)
            wide = np.asarray(result)
    # what wraps is off by a multiple of 2**bits; 64-bit integers are rounded to 53 bits
    half = 2.0 ** (8 * got.dtype.itemsize - 1)
    with np.errstate(invalid="ignore"):
        error = np.abs(wide - got)
        off = ~(error <= np.abs(wide) * 2.0**-52 if converts else error < half)
    if not off.any():
        return ""
    index = tuple(int(i) for i in np.argwhere(off)[0])
    return f"{wide[index]:.0f}" + (f" at [{', '.join(map(str, index))}]" if index else "")
