"""The pass that writes each operation in the way that a CPU computes it quickest.

A module of this folder knows the ways of one family of primitives, by their fact `form`; they are
listed here.
"""

from __future__ import annotations

from weft.core.form import Form
from weft.core.jaxpr import Eqn, Jaxpr
from weft.cpu import (
    attention,
    convolutions,
    extrema,
    functions,
    joins,
    matrices,
    memory,
    products,
    rounding,
    running,
    scatters,
    sorting,
    sparse,
    sums,
    transforms,
    windows,
)
from weft.cpu.rewriting import Choice, Replacement, rewrite_program
from weft.cpu.scope import Scope, Target

FORMS: dict[Form, Choice] = {
    Form.POWER: rounding.choose_power,
    Form.COMPLEMENT: rounding.choose_complement,
    Form.SORT: sorting.choose_sort,
    Form.PARTITION: sorting.choose_partition,
    Form.TOP_K: sorting.choose_top_k,
    Form.PLACES: sorting.choose_places,
    Form.SUM: sums.choose_sum,
    Form.LOGICAL: sums.choose_logical,
    Form.REDUCED_PRODUCT: extrema.choose_reduced_product,
    Form.SUM_OF_NUMBERS: extrema.choose_sum_of_numbers,
    Form.EXTREMUM: extrema.choose_extremum,
    Form.ARG_EXTREMUM: extrema.choose_arg_extremum,
    Form.FACTORS: matrices.choose_factors,
    Form.LU: matrices.choose_lu,
    Form.PIVOTS: matrices.choose_permutation,
    Form.TRIANGULAR_SOLVE: matrices.choose_triangular_solve,
    Form.FFT: transforms.choose_fft,
    Form.KEEP: memory.choose_keep,
    Form.ATTENTION: attention.choose_attention,
    Form.CONVOLUTION: convolutions.choose_convolution,
    Form.PRODUCT: products.choose_product,
    Form.SCATTER: scatters.choose_scatter,
    Form.SPARSE_PRODUCT: sparse.choose_sparse_product,
    Form.RESAMPLE: sparse.choose_resample,
    Form.SELECT_AND_SCATTER: windows.choose_select_and_scatter,
    Form.WINDOWS: windows.choose_windows,
    Form.WINDOW_EXTREMUM: windows.choose_window_extremum,
    Form.FUNCTION: functions.choose_function,
    Form.ZETA: functions.choose_zeta,
    Form.QUOTIENT: functions.choose_quotient,
    Form.REMAINDER: functions.choose_remainder,
    Form.RUNNING: running.choose_running,
    Form.JOIN: joins.choose_join,
    Form.STACK: joins.choose_stack,
    Form.TILE: joins.choose_tile,
    Form.FRAME: joins.choose_frame,
}


def choose_forms(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program of the forms that a CPU computes quickest."""
    target = target._replace(functions=functions.count_functions(jaxpr))
    return rewrite_program(jaxpr, choose_form, target, (True,) * len(jaxpr.invars), True)


def choose_form(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Return what computes an equation quicker; None if it is best as it is.

    A lowering that a library has given to a primitive stays in force.
    """
    form = eqn.primitive.form
    if form is None or "lower" in vars(eqn.primitive):
        return None
    return FORMS[form](eqn, scope)
