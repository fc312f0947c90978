"""The pass that writes each operation in the way that a CPU computes it quickest.

A module of this folder knows the ways of one family of primitives, by their fact `form`; they are
listed here.
"""

from __future__ import annotations

import functools
import importlib
import math
from typing import Any

from weft import dtypes
from weft.core.facts import Elements
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, held_jaxprs, memo_jaxpr
from weft.cpu.rewriting import Choice, Reading, Replacement, rewrite_program, stage_replacement
from weft.cpu.scope import Scope, Target
from weft.errors import InconclusiveDimensionOperation
from weft.options import trace_context
from weft.primitives.elementwise import Elementwise
from weft.util import keep_cache

# The module that knows a form, which is imported when a program has one, and the function in it.
FORMS = {
    Form.POWER: "rounding.choose_power",
    Form.COMPLEMENT: "rounding.choose_complement",
    Form.SORT: "sorting.choose_sort",
    Form.PARTITION: "sorting.choose_partition",
    Form.TOP_K: "sorting.choose_top_k",
    Form.PLACES: "sorting.choose_places",
    Form.RANKS: "sorting.choose_ranks",
    Form.SUM: "sums.choose_sum",
    Form.LOGICAL: "sums.choose_logical",
    Form.REDUCED_PRODUCT: "extrema.choose_reduced_product",
    Form.SUM_OF_NUMBERS: "extrema.choose_sum_of_numbers",
    Form.EXTREMUM: "extrema.choose_extremum",
    Form.ARG_EXTREMUM: "extrema.choose_arg_extremum",
    Form.FACTORS: "matrices.choose_factors",
    Form.LU: "matrices.choose_lu",
    Form.PIVOTS: "matrices.choose_permutation",
    Form.TRIANGULAR_SOLVE: "matrices.choose_triangular_solve",
    Form.FFT: "transforms.choose_fft",
    Form.KEEP: "memory.choose_keep",
    Form.ATTENTION: "attention.choose_attention",
    Form.CONVOLUTION: "convolutions.choose_convolution",
    Form.PRODUCT: "products.choose_product",
    Form.SCATTER: "scatters.choose_scatter",
    Form.SPARSE_PRODUCT: "sparse.choose_sparse_product",
    Form.RESAMPLE: "sparse.choose_resample",
    Form.RESIZE: "sparse.choose_resize",
    Form.SELECT_AND_SCATTER: "windows.choose_select_and_scatter",
    Form.WINDOWS: "windows.choose_windows",
    Form.WINDOW_EXTREMUM: "windows.choose_window_extremum",
    Form.FUNCTION: "functions.choose_function",
    Form.EXPONENTIAL: "functions.choose_exponential",
    Form.POWER_OF_VALUES: "functions.choose_power_of_values",
    Form.LOG_OF_SUM: "functions.choose_log_of_sum",
    Form.ZETA: "functions.choose_zeta",
    Form.QUOTIENT: "functions.choose_quotient",
    Form.REMAINDER: "functions.choose_remainder",
    Form.RUNNING: "running.choose_running",
    Form.JOIN: "joins.choose_join",
    Form.STACK: "joins.choose_stack",
    Form.TILE: "joins.choose_tile",
    Form.FRAME: "joins.choose_frame",
}


# The forms of functions of each element that take far longer than a product.
FUNCTIONS = (Form.FUNCTION, Form.EXPONENTIAL, Form.POWER_OF_VALUES, Form.LOG_OF_SUM)


@functools.cache
def find_choice(form: Form) -> Choice:
    """Return the function that chooses what computes operations of a form."""
    module, name = FORMS[form].split(".")
    return getattr(importlib.import_module(f"weft.cpu.{module}"), name)


def choose_forms(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program of the forms that a CPU computes quickest."""
    target = target._replace(functions=count_functions(jaxpr), folds_nan=may_fold_nan(jaxpr))
    return rewrite_program(jaxpr, choose_form, target, (True,) * len(jaxpr.invars), True)


def choose_form(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Return what computes an equation quicker; None if it is best as it is.

    A lowering that a library has given to a primitive stays in force. A choice that depends on the
    types of operands, on literals and parameters, and on which operands are arguments, is made and
    staged once.
    """
    form = eqn.primitive.form
    if form is None or "lower" in vars(eqn.primitive):
        return None
    if not eqn.primitive.memoize_type:  # the key would keep the programs that it holds
        return find_choice(form)(eqn, scope)
    staged = scope.staged
    if staged is None:
        staged = scope.staged = find_memo(scope.target)
    key = (eqn.primitive, *eqn.params.items(), scope.alone, scope.moves, scope.light)
    for a in eqn.invars:
        key += describe_operand(a, scope)
    found = staged.get(key)
    if found is None:
        scope.asked = False
        try:
            found = find_choice(form)(eqn, scope)
            if scope.asked or isinstance(found, Reading):
                return found
            if found is not None:
                found = stage_replacement(found, eqn.invars, eqn.primitive.name)
        except InconclusiveDimensionOperation:  # it depends on a symbolic size
            found = None
        staged[key] = STAYS if found is None else found
    return None if found is STAYS else found


STAYS = object()  # in place of what replaces an equation: nothing does
MAX_STAGED = 10_000  # replacements for a target
# By target and settings, what replaces equations; by primitive, operands and parameters.
STAGED: dict[tuple, dict[tuple, Any]] = keep_cache("forms for CPUs", {})


def find_memo(target: Target) -> dict[tuple, Any]:
    """Return the memo of replacements for a target, under the settings that are in force."""
    # all that counts of the number of functions
    target = target._replace(functions=target.functions.bit_length())
    staged = STAGED.setdefault((target, trace_context()), {})
    if len(staged) > MAX_STAGED:
        staged.clear()
    return staged


def describe_operand(atom: Atom, scope: Scope) -> tuple:
    """Return what choices may depend on of an operand, unless they ask how it is computed."""
    if type(atom) is Literal:
        x = atom.val
        return atom.aval, type(x), x or str(x)  # as 0.0 equals -0.0
    return atom.aval, atom in scope.arguments


@memo_jaxpr
def count_functions(jaxpr: Jaxpr) -> int:
    """Return how many equations of a program, and of those that it holds, may become formulas.

    XLA:CPU compiles a formula in 10 ms. No way of calling one that is written once is any shorter,
    for it copies what is called. So formulas are for larger arrays where there are many.
    """
    count = 0
    for eqn in jaxpr.eqns:
        prim = eqn.primitive
        if prim.form is not None and isinstance(prim, Elementwise) and prim.formulas:
            formula = prim.formulas.get(eqn.outvars[0].aval.dtype)
            count += formula is not None and formula.least > 0
        elif not prim.memoize_type:  # else it holds nothing
            count += sum(map(count_functions, held_jaxprs(eqn)))
    return count


@memo_jaxpr
def may_fold_nan(jaxpr: Jaxpr) -> bool:
    """Return True if numbers in a program, or in one that it holds, may show that a value is NaN.

    That is so for a NaN, for an infinity except where elements are only chosen, for a division by
    0, and for a function of numbers.
    """
    for eqn in jaxpr.eqns:
        prim, numbers = eqn.primitive, [a.val for a in eqn.invars if type(a) is Literal]
        if numbers and dtypes.is_float(eqn.invars[-1].aval.dtype):
            only = len(numbers) == len(eqn.invars) and prim.form in FUNCTIONS
            if only or (prim.form is Form.QUOTIENT and numbers[-1] == 0):
                return True
            new = prim.elements is Elements.NEW
            if any(x != x or (new and abs(x) == math.inf) for x in numbers):
                return True
        if not prim.memoize_type and any(map(may_fold_nan, held_jaxprs(eqn))):
            return True
    return False
