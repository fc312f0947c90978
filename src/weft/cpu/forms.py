"""The pass that writes each operation in the way that a CPU computes it quickest.

A module of this folder knows the ways of one family of primitives, by their fact `form`; they are
listed here.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Sequence
from typing import Any

from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal
from weft.cpu.rewriting import Choice, Reading, Replacement, rewrite_program, stage_replacement
from weft.cpu.scope import Scope, Target
from weft.cpu.survey import survey_program
from weft.errors import InconclusiveDimensionOperation
from weft.options import trace_context
from weft.passes.dce import drop_dead_code
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
    Form.MEMBERS: "sorting.choose_members",
    Form.SUM: "sums.choose_sum",
    Form.LOGICAL: "sums.choose_logical",
    Form.REDUCED_PRODUCT: "extrema.choose_reduced_product",
    Form.SUM_OF_NUMBERS: "extrema.choose_sum_of_numbers",
    Form.EXTREMUM: "extrema.choose_extremum",
    Form.ARG_EXTREMUM: "extrema.choose_arg_extremum",
    Form.FACTORS: "matrices.choose_factors",
    Form.CHOLESKY: "matrices.choose_cholesky",
    Form.LU: "matrices.choose_lu",
    Form.QR: "matrices.choose_qr",
    Form.PIVOTS: "matrices.choose_permutation",
    Form.TRIANGULAR_SOLVE: "matrices.choose_triangular_solve",
    Form.FFT: "transforms.choose_fft",
    Form.KEEP: "memory.choose_keep",
    Form.ATTENTION: "attention.choose_attention",
    Form.CONVOLUTION: "convolutions.choose_convolution",
    Form.PRODUCT: "products.choose_product",
    Form.SCATTER: "scatters.choose_scatter",
    Form.SLICE: "slices.choose_slice",
    Form.UPDATE: "updates.choose_update",
    Form.SCAN: "blocks.choose_scan",
    Form.SPARSE_PRODUCT: "sparse.choose_sparse_product",
    Form.RESAMPLE: "sparse.choose_resample",
    Form.RESIZE: "sparse.choose_resize",
    Form.SELECT_AND_SCATTER: "windows.choose_select_and_scatter",
    Form.WINDOWS: "windows.choose_windows",
    Form.WINDOW_EXTREMUM: "windows.choose_window_extremum",
    Form.FUNCTION: "functions.choose_function",
    Form.POWER_OF_VALUES: "functions.choose_power_of_values",
    Form.LOG_OF_SUM: "functions.choose_log_of_sum",
    Form.ZETA: "zetas.choose_zeta",
    Form.QUOTIENT: "functions.choose_quotient",
    Form.REMAINDER: "functions.choose_remainder",
    Form.RUNNING: "running.choose_running",
    Form.JOIN: "joins.choose_join",
    Form.STACK: "joins.choose_stack",
    Form.TILE: "joins.choose_tile",
    Form.FRAME: "joins.choose_frame",
}


@functools.cache
def find_choice(form: Form) -> Choice:
    """Return the function that chooses what computes operations of a form."""
    module, name = FORMS[form].split(".")
    return getattr(importlib.import_module(f"weft.cpu.{module}"), name)


def choose_forms(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program of the forms that a CPU computes quickest."""
    found = survey_program(jaxpr)
    if found.products > 1:
        jaxpr = importlib.import_module("weft.cpu.symmetry").transpose_products(jaxpr, target)
    target = target._replace(
        functions=found.functions, folds_nan=found.folds_nan, reduces=found.reduces
    )
    made = rewrite_program(jaxpr, choose_form, target, (True,) * len(jaxpr.invars), True)
    if found.products and target.kernels:
        epilogues = importlib.import_module("weft.cpu.epilogues")
        return epilogues.fuse_epilogues(drop_dead_code(made), target)
    return made


def choose_form(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Return what computes an equation quicker; None if it is best unchanged.

    A lowering that a library has given to a primitive stays in force. A choice that depends on the
    types of operands, on literals and parameters, on which operands are arguments, and perhaps on
    the operations that compute them, is made and staged once. It may read the operands of these
    operations.
    """
    form = eqn.primitive.form
    if form is None or "lower" in vars(eqn.primitive):
        return None
    if not eqn.primitive.memoize_type:  # the key would keep the programs that it holds
        return find_choice(form)(eqn, scope)
    staged = scope.staged
    if staged is None:
        staged = scope.staged = find_memo(scope.target)
    key: tuple | None = (*describe(eqn, scope), scope.alone, scope.moves, scope.light)
    atoms: Sequence[Atom] = eqn.invars
    found = staged.get(key)
    if found is ASKS:
        key, atoms = describe_makers(eqn, scope, key)
        found = staged.get(key)
    if found is None:
        found = choose_anew(eqn, scope, staged, key, atoms)
    elif type(found) is Reading:
        places: Any = found.atoms
        found = Reading(found.fun, [atoms[i] for i in places])
    return None if found is STAYS else found


def choose_anew(
    eqn: Eqn, scope: Scope, staged: dict, key: tuple | None, atoms: Sequence[Atom]
) -> Any:
    """Return what computes an equation, staged, or `STAYS`.

    It is entered in the memo `staged` if `key`, which tells of the values `atoms`, determines it. A
    `Reading` is entered with the indices of its atoms among these.
    """
    scope.asked = []
    found: Any = STAYS
    with contextlib.suppress(InconclusiveDimensionOperation):  # it depends on a symbolic size
        made = find_choice(eqn.primitive.form)(eqn, scope)
        if isinstance(made, Reading):
            body = stage_replacement(made.fun, made.atoms, eqn.primitive.name)
            found = Reading(body, made.atoms)
        elif made is not None:
            found = stage_replacement(made, eqn.invars, eqn.primitive.name)
    if not {*map(id, scope.asked)} <= {*map(id, eqn.invars)}:
        return found  # how operands of operands are computed is in no key
    if scope.asked and atoms is eqn.invars:
        staged[key] = ASKS
        key, atoms = describe_makers(eqn, scope, key)
    places = {id(a): i for i, a in enumerate(atoms)}
    if key is not None and type(found) is not Reading:
        staged[key] = found
    elif key is not None and all(id(a) in places for a in found.atoms):
        numbers: Any = [places[id(a)] for a in found.atoms]
        staged[key] = Reading(found.fun, numbers)
    return found


def describe(eqn: Eqn, scope: Scope) -> tuple:
    """Return the operation of an equation, its parameters, literals and types of operands.

    It is also told which operands are arguments of the compiled function.
    """
    key = [eqn.primitive, *eqn.params.items()]
    arguments = scope.arguments
    for a in eqn.invars:
        key.append(a.aval)
        if type(a) is Literal:
            key += type(a.val), a.val or str(a.val)  # as 0.0 equals -0.0
        else:
            key.append(a in arguments)
    return tuple(key)


def describe_makers(eqn: Eqn, scope: Scope, known: Any) -> tuple[tuple | None, Sequence[Atom]]:
    """Return a key that also tells how the operands are computed, and the values that it tells of.

    `known` is the key for the equation itself. The key is None if other programs compute operands.
    """
    atoms: list[Atom] = [*eqn.invars]
    key: list[Any] = [known]
    described = scope.described
    for a in eqn.invars:
        m = scope.maker(a)
        if m is None:
            key.append(m)
        elif m.primitive.memoize_type:
            atoms += m.invars
            atoms += m.outvars
            found = described.get(id(m))
            if found is None:
                found = described[id(m)] = describe(m, scope)
            key.append(found)
        else:
            return None, atoms
    numbers: dict[int, int] = {}  # which of the values are the same
    key += [numbers.setdefault(id(a), len(numbers)) for a in atoms]
    return tuple(key), atoms


STAYS = object()  # in place of what replaces an equation: nothing does
ASKS = object()  # in place of it: that depends on the operations that compute the operands
MAX_STAGED = 10_000  # replacements for a target
# By target and settings, what replaces equations; by primitive, operands and parameters.
STAGED: dict[tuple, dict[Any, Any]] = keep_cache("forms for CPUs", {})


def find_memo(target: Target) -> dict[Any, Any]:
    """Return the memo of replacements for a target, under the settings that are in force."""
    # all that counts of the number of functions
    target = target._replace(functions=target.functions.bit_length(), reduces=False)
    staged = STAGED.setdefault((target, trace_context()), {})
    if len(staged) > MAX_STAGED:
        staged.clear()
    return staged
