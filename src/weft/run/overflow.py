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
from weft.core.primitive import Primitive
from weft.core.source import describe_maker, inner_source
from weft.core.trace import current
from weft.options import x64_as
from weft.primitives.cumulative import cumprod_p, cumsum_p
from weft.primitives.dot import dot_general_p
from weft.primitives.elementwise import abs_p, add_p, mul_p, neg_p, sub_p
from weft.primitives.layout import convert_element_type_p, reduce_sum_p
from weft.primitives.reduction import reduce_prod_p
from weft.primitives.transcendental import integer_pow_p
from weft.watch.nans import follow_bodies


@memo_jaxpr
def can_overflow(jaxpr: Jaxpr) -> bool:
    """Return True if a program has arithmetic of signed integers, or conversions to them."""
    return any(map(is_checked, jaxpr.eqns)) or any(map(can_overflow, subjaxprs(jaxpr)))


def is_checked(eqn: Eqn) -> bool:
    """Return True if the result of an equation is checked against its value in floats."""
    dtype = getattr(eqn.outvars[0].aval, "dtype", None) if eqn.outvars else None
    if dtype is None or not dtypes.is_integer(dtype) or not dtypes.is_signed(dtype):
        return False
    find_exact, source = EXACT.get(eqn.primitive), eqn.invars[0].aval.dtype if eqn.invars else None
    if find_exact is not truncate_operand:
        return find_exact is not None
    return dtypes.is_float(source) or (dtypes.is_integer(source) and dtypes.is_signed(source))


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
    """Describe the first element that is off, as `2147483648 at [1]`; empty if there is none."""
    got, find_exact = np.asarray(out), EXACT[eqn.primitive]
    converts, wide = find_exact is truncate_operand, find_exact(eqn, operands)
    # what wraps is off by a multiple of 2**bits; 64-bit integers are rounded to 53 bits
    half = 2.0 ** (8 * got.dtype.itemsize - 1)
    with np.errstate(invalid="ignore"):
        error = np.abs(wide - got)
        off = ~(error <= np.abs(wide) * 2.0**-52 if converts else error < half)
    if not off.any():
        return ""
    index = tuple(int(i) for i in np.argwhere(off)[0])
    return f"{wide[index]:.0f}" + (f" at [{', '.join(map(str, index))}]" if index else "")


def truncate_operand(eqn: Eqn, operands: Sequence[Any]) -> np.ndarray:
    """Return the exact result of a conversion to integers."""
    return np.trunc(np.asarray(operands[0]).astype(np.float64))


def compute_in_floats(eqn: Eqn, operands: Sequence[Any]) -> np.ndarray:
    """Return the result that an equation has for the same operands as floats of 64 bits."""
    params = dict(eqn.params)
    if params.get("preferred_element_type") is not None:
        params["preferred_element_type"] = np.dtype(np.float64)
    with x64_as(True):
        floats = [np.asarray(x).astype(np.float64) for x in operands]
        (result,) = eqn.primitive.apply(*floats, **params)
        return np.asarray(result)


SUMS = (add_p, cumsum_p, dot_general_p, reduce_sum_p, sub_p)
PRODUCTS = (abs_p, cumprod_p, integer_pow_p, mul_p, neg_p, reduce_prod_p)
# The operations with checked results, and the functions that compute the exact results.
EXACT: dict[Primitive, Callable[[Eqn, Sequence[Any]], np.ndarray]] = {
    convert_element_type_p: truncate_operand,
    **dict.fromkeys((*SUMS, *PRODUCTS), compute_in_floats),
}
