"""The pass that writes roundings to bfloat16 as operations on bits.

XLA:CPU computes in float32, and rounds by a function of 8 elements, so that the whole loop goes by
8 elements at a time. Operations on bits take half the time, and 1 ms longer to compile for each
rounding. Results are the same except for the bits of NaN: where XLA does not round, neither does
this pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Elements
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, memo_jaxpr, variables_in
from weft.core.primitive import Body
from weft.cpu.elements import chooses_by_element
from weft.cpu.formula import apply_formula
from weft.cpu.rewriting import read_results, replace_bodies, restage, running_bodies
from weft.cpu.scope import Scope, Target
from weft.cpu.survey import has_half
from weft.dtypes import bfloat16
from weft.primitives.bits import reduce_precision
from weft.primitives.elementwise import Elementwise, add, div, mul, sub
from weft.primitives.expr import Expr
from weft.primitives.families import OverAxes
from weft.primitives.layout import BroadcastInDim, Reshape, Squeeze, Transpose, convert, literal
from weft.primitives.slicing import Slice

BF16, F32 = np.dtype(bfloat16), np.dtype(np.float32)
U16, U32 = np.dtype(np.uint16), np.dtype(np.uint32)
MIN_ELEMENTS = 1 << 16  # of an array; for smaller ones, operations on bits are not faster
MAX_ROUNDINGS = 64  # of a program, as each takes 1 ms longer to compile
# Operations, by their names in StableHLO. The results of EXACT ones have no more digits than the
# operands, so the low bits are cut off. NaN that ODD ones give may have low bits that a rounding
# would carry into the exponent.
EXACT = frozenset(
    ("abs", "ceil", "clamp", "floor", "maximum", "minimum", "negate", "select", "sign")
)
ODD = frozenset(("convert", "log", "log_plus_one"))
ROUNDED = EXACT.union((
    *("add", "cosine", "divide", "exponential", "exponential_minus_one", "log", "log_plus_one"),
    *("logistic", "multiply", "power", "rsqrt", "sine", "sqrt", "subtract", "tanh"),
))  # fmt: skip
# XLA computes these again in each loop that reads them, rather than storing them.
CHEAP = EXACT.union(("add", "convert", "divide", "multiply", "subtract"))
# Primitives behind which XLA moves a conversion, so that it rounds the operands of these instead.
MOVING = (BroadcastInDim, Reshape, Slice, Squeeze, Transpose)


def choose_power(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Write a power of a large bfloat16 array as products that are rounded one by one."""
    y = eqn.params.get("y", 2)
    if not (makes_half(eqn) and makes_large(eqn)) or y == 0:
        return None
    return lambda x: [multiply_repeatedly(x, y)]


def multiply_repeatedly(x: Any, y: int) -> Any:
    """Return x ** y for a power y that is not 0, by repeated squaring."""
    n, out = abs(y), None
    while n:
        if n & 1:
            out = x if out is None else mul(out, x)
        n >>= 1
        if n:
            x = mul(x, x)
    return div(literal(1, BF16), out) if y < 0 else out


def choose_complement(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Write one minus the square of large bfloat16 as a product of rounded factors."""
    if not (makes_half(eqn) and makes_large(eqn)):
        return None
    one = literal(1, BF16)
    return lambda x: [mul(sub(one, x), add(one, x))]


@memo_jaxpr
def round_to_bfloat16(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program that rounds large arrays by operations on bits.

    Programs with more than MAX_ROUNDINGS of these stay unchanged.
    """
    if not has_half(jaxpr):
        return jaxpr
    made = round_program(jaxpr)
    return made if 0 < count_roundings(made) <= MAX_ROUNDINGS else jaxpr


@memo_jaxpr
def count_roundings(jaxpr: Jaxpr) -> int:
    """Return how many results are rounded by bits in a program and in those that it runs."""
    count = 0
    for eqn in jaxpr.eqns:
        count += eqn.params.get("write") is write_rounding
        count += sum(count_roundings(body.jaxpr) for body in running_bodies(eqn))
    return count


@memo_jaxpr
def round_program(jaxpr: Jaxpr, is_called: bool = False, is_left: bool = False) -> Jaxpr:
    """Return a program that rounds by bits, for any number of roundings.

    Args:
      jaxpr: a program.
      is_called: the program is a function that other programs call, so the uses of its results are
        not known.
      is_left: leave the program unchanged, except for the functions that it calls.
    """
    is_left = is_left or computes_again(jaxpr, is_called)

    def round_body(body: Body) -> Jaxpr:
        if body.names_flow_in:
            return round_program(body.jaxpr, True)
        return round_program(body.jaxpr, False, is_left)

    eqns = [replace_bodies(eqn, round_body) for eqn in jaxpr.eqns]
    if any(new is not old for new, old in zip(eqns, jaxpr.eqns, strict=True)):
        jaxpr = jaxpr.replace(eqns=eqns)
    if is_left or not any(makes_large(eqn) and makes_half(eqn) for eqn in jaxpr.eqns):
        return jaxpr
    return write_rounded(jaxpr, Uses(jaxpr, is_called).only_reduced)


@memo_jaxpr
def computes_again(jaxpr: Jaxpr, is_called: bool) -> bool:
    """Return True if rounding by bits would make XLA compute results again, in some loop.

    The programs of loops and branches are part of the function that they are in.
    """
    inner = (b for eqn in jaxpr.eqns for b in running_bodies(eqn) if not b.names_flow_in)
    own = Uses(jaxpr, is_called).computed_again
    return own or any(computes_again(body.jaxpr, False) for body in inner)


def makes_half(eqn: Eqn) -> bool:
    """Return True if the result of an equation is of bfloat16."""
    return eqn.outvars[0].aval.dtype == BF16 if eqn.outvars else False


def makes_large(eqn: Eqn) -> bool:
    """Return True if an equation has one result, a large array of bfloat16 or float32."""
    if len(eqn.outvars) != 1:
        return False
    aval = eqn.outvars[0].aval
    large = type(aval.size) is int and aval.size >= MIN_ELEMENTS
    return large and aval.dtype in (BF16, F32)


def find_operation(eqn: Eqn) -> str:
    """Return the StableHLO operation that an equation is, of those that matter here; else ""."""
    prim = eqn.primitive
    if prim.elements is Elements.CONVERTED:
        return "convert"
    if chooses_by_element(prim):
        return "select" if len(eqn.invars) == 3 else ""
    plain = isinstance(prim, Elementwise) and not eqn.params
    return prim.operation.removeprefix("stablehlo.") if plain else ""  # type: ignore[attr-defined]


class Uses:
    """The uses of the results of a program's equations.

    Attributes:
      only_reduced: variables that only reductions read, and the variables that these are computed
        from. XLA has a library for both together.
      computed_again: True if a cheap result is read both within loops and outside, so that XLA
        would compute all its operations again in each loop. Also True if a rounded result is passed
        to a function or returned from one, because its uses are then not known.
    """

    def __init__(self, jaxpr: Jaxpr, is_called: bool):
        only: dict[Any, bool] = dict.fromkeys(variables_in(jaxpr.outvars), False)
        outs: set[Any] = {*variables_in(jaxpr.outvars)}
        near, far = set[Any](), {*outs}
        cheap, rounded = set[Any](), set[Any]()
        crossing = {*outs} if is_called else set[Any]()
        for eqn in reversed(jaxpr.eqns):
            name, reads = find_operation(eqn), variables_in(eqn.invars)
            (out, *_) = eqn.outvars or (None,)
            known, moving = name in ROUNDED, name == "convert" or isinstance(eqn.primitive, MOVING)
            into = isinstance(eqn.primitive, OverAxes) and not moving
            if known or name == "convert":
                into = only.get(out, False)
            for x in reads:
                only[x] = only.get(x, True) and into
            if name in CHEAP:
                cheap.add(out)
            if known and makes_large(eqn) and makes_half(eqn):
                rounded.add(out)
            if any(body.names_flow_in for body in running_bodies(eqn)):
                crossing.update(reads)
            if known or (moving and out in near):
                near.update(reads)
            if not known and (not moving or out in far or out not in near):
                far.update(reads)
        self.only_reduced = {x for x, into in only.items() if into}
        self.computed_again = bool(cheap & near & far | rounded & crossing)


def write_rounded(jaxpr: Jaxpr, left: set[Any]) -> Jaxpr:
    """Return a program whose large results are rounded by bits, except for those in `left`."""
    n = len(jaxpr.constvars)
    inputs = [*jaxpr.constvars, *jaxpr.invars]

    exact: dict[Any, Any] = {}  # results before they were rounded
    moved: set[Any] = {*inputs}  # what XLA does not round before a conversion

    def write(eqn: Eqn, values: list) -> Sequence[Any]:
        name, (out, *_) = find_operation(eqn), eqn.outvars or (None,)
        if name == "convert" or isinstance(eqn.primitive, MOVING):
            moved.add(out)
        if makes_large(eqn) and not (out in left and not is_in(eqn.invars[0], exact)):
            half = makes_half(eqn)
            if name == "convert" and half and typeof(values[0]).dtype == F32:
                return [round_bits(values[0], name)]
            if name == "convert" and not half and is_in(eqn.invars[0], exact):
                return [exact[eqn.invars[0]]]
            if name in ROUNDED and half:
                wide = [
                    widen_operand(x, type(a) is Literal or a in moved or a in exact)
                    for x, a in zip(values, eqn.invars, strict=True)
                ]
                exact[out] = eqn.primitive.apply(*wide)[0]
                return [round_bits(exact[out], name)]
        return eqn.primitive.apply(*values, **eqn.params)

    made = restage(
        jaxpr,
        [v.aval for v in inputs],
        lambda *args: dict(zip(inputs, args, strict=True)),
        write,
        lambda env: read_results(jaxpr, env),
    )
    return made.replace(constvars=made.invars[:n], invars=made.invars[n:])


def is_in(atom: Atom, variables: Container) -> bool:
    """Return True if an operand is one of some variables; a literal is none."""
    return type(atom) is not Literal and atom in variables


def widen_operand(x: Any, as_it_is: bool) -> Any:
    """Return an operand of bfloat16 in float32; `as_it_is`, else rounded before."""
    if typeof(x).dtype != BF16:
        return x
    wide = convert(x, F32)
    return wide if as_it_is or not typeof(x).shape else reduce_precision(wide, 8, 7)


def round_bits(x: Any, name: str) -> Any:
    """Return float32 that the operation `name` gave, rounded to bfloat16."""
    how = "cut" if name in EXACT else "any" if name in ODD else "round"
    out = ShapedArray(typeof(x).shape, BF16)
    return apply_formula(write_rounding, [x], [out], how, by_element=True)[0]


def write_rounding(hlo: Any, x: Any, how: str) -> list:
    """Write a rounding of float32 to bfloat16: the upper half of the bits.

    `how` is "cut" where the lower half is zero; "round" for others, halves to even; "any" where the
    bits of NaN would carry.
    """
    x = Expr(hlo, x)
    if how == "any":
        x = x.compare("NE", x).select(x.like(math.nan), x)
    bits = x.bitcast(U32)
    if how != "cut":
        last = bits.apply("shift_right_logical", 16) & 1
        bits = (bits + 32767) + last
    return [bits.apply("shift_right_logical", 16).convert(U16).bitcast(BF16).value]
