"""The facts of a whole program that choices depend on, from one walk along its equations."""

from __future__ import annotations

import math
from typing import NamedTuple

from weft import dtypes
from weft.core.facts import Elements
from weft.core.form import Form
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, held_jaxprs, memo_jaxpr, subjaxprs
from weft.cpu.opcodes import is_instruction
from weft.cpu.scope import CALLED
from weft.primitives.elementwise import Elementwise
from weft.primitives.expr import BF16
from weft.primitives.transcendental import exp_p

NUMBERS = frozenset((float, int))
# The forms of functions of each element that take far longer than a product.
FUNCTIONS = (Form.FUNCTION, Form.POWER_OF_VALUES, Form.LOG_OF_SUM)


class Survey(NamedTuple):
    """The facts of a program, and of the programs that it holds, that choices depend on.

    Attributes:
      functions: how many equations may become formulas. XLA:CPU compiles a formula in 10 ms, and
        copies one that is written once and called. So formulas are for larger arrays where there
        are many.
      shows_nan: numbers may show that a value is NaN.
      folds_nan: such a value may reach a function.
      reduces: there is an operation of a form in `CALLED`, such as a product of matrices, or a sum.
      products: how many equations are products of matrices.
      has_exp: there is an exponential function, as in a softmax.
      has_forms: there is an operation with a form.
      holds: there is an equation that holds programs.
    """

    functions: int
    shows_nan: bool
    folds_nan: bool
    reduces: bool
    products: int
    has_exp: bool
    has_forms: bool
    holds: bool

    @property
    def may_attend(self) -> bool:
        """True if there may be attention, which is two products and a softmax."""
        return self.products > 1 and self.has_exp


@memo_jaxpr
def survey_program(jaxpr: Jaxpr) -> Survey:
    """Return the facts of a program."""
    functions, folds_nan, reduces, products, has_exp = 0, False, False, 0, False
    has_forms = holds = False
    shown: set[Var] = set()  # what may be computed from a value that is known to be NaN
    for eqn in jaxpr.eqns:
        prim = eqn.primitive
        form = prim.form
        if form is not None:  # most have none
            has_forms = True
            if form in CALLED:
                reduces = True
                products += form is Form.PRODUCT
            elif isinstance(prim, Elementwise) and prim.formulas:
                formula = prim.formulas.get(eqn.outvars[0].aval.dtype)
                functions += formula is not None and formula.least > 0
            elif form in FUNCTIONS:
                has_exp = has_exp or is_instruction(prim, exp_p)
        reached = bool(shown) and any([a in shown for a in eqn.invars if type(a) is not Literal])
        shows = False
        for a in eqn.invars:
            if type(a) is Literal and not shows:
                x = a.val  # most are finite, and added or multiplied
                if form is not None or type(x) not in NUMBERS or not -math.inf < x < math.inf:
                    shows = shows_nan(eqn)
        if not prim.memoize_type:  # else it holds nothing
            holds = True
            for held in map(survey_program, held_jaxprs(eqn)):
                functions += held.functions
                shows = shows or held.shows_nan
                reduces = reduces or held.reduces
                products += held.products
                has_exp = has_exp or held.has_exp
                has_forms = has_forms or held.has_forms
            folds_nan = folds_nan or shows or reached
        elif (shows or reached) and form in FUNCTIONS:
            folds_nan = True
        if shows or reached:
            shown.update(eqn.outvars)
    forms = products, has_exp, has_forms
    return Survey(functions, bool(shown), folds_nan, reduces, *forms, holds)


@memo_jaxpr
def has_half(jaxpr: Jaxpr) -> bool:
    """Return True if a program, or one that it holds, has a result of bfloat16."""
    types = {v.aval for eqn in jaxpr.eqns for v in eqn.outvars}
    return BF16 in {a.dtype for a in types} or any(map(has_half, subjaxprs(jaxpr)))


def shows_nan(eqn: Eqn) -> bool:
    """Return True if numbers among the operands of an equation may show that a value is NaN.

    That is so for a NaN, for an infinity except where elements are only chosen, for a division by
    0, and for a function of numbers.
    """
    prim, numbers = eqn.primitive, [a.val for a in eqn.invars if type(a) is Literal]
    if not dtypes.is_inexact(eqn.invars[-1].aval.dtype):
        return False
    if len(numbers) == len(eqn.invars) and prim.form in FUNCTIONS:
        return True
    if prim.form is Form.QUOTIENT and numbers[-1] == 0:
        return True
    new = prim.elements is Elements.NEW
    return any([x != x or (new and abs(x) == math.inf) for x in numbers])
