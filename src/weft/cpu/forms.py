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
    first = (*describe(eqn, scope), scope.alone, scope.moves, scope.light)
    key: tuple | None = first
    atoms: Sequence[Atom] = eqn.invars
    told = atoms
    found = staged.get(first)
    while found is ASKS:
        key, atoms, told = describe_makers(scope, key, atoms, told)
        found = staged.get(key)
    if found is None:
        found = choose_anew(eqn, scope, staged, first)
    elif type(found) is Reading:
        places: Any = found.atoms
        found = Reading(found.fun, [atoms[i] for i in places])
    return None if found is STAYS else found


def choose_anew(eqn: Eqn, scope: Scope, staged: dict, key: tuple | None) -> Any:
    """Return what computes an equation, staged, or `STAYS`.

    It is entered in the memo `staged` by the first key that determines it: `key`, which tells of
    the equation, or one that also tells how operands are computed, on up to MAX_LEVELS levels. A
    `Reading` is entered with the indices of its atoms among the values that the key tells of.
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
    if any([type(a) is Jaxpr for a in scope.asked]):
        return found  # it depends on the whole program
    asked = {*map(id, scope.asked)}
    atoms: Sequence[Atom] = eqn.invars
    told = atoms
    asking: list[Any] = []  # keys that do not determine it
    while asked:
        if len(asking) == MAX_LEVELS:
            return found
        asking.append(key)
        asked.difference_update(map(id, told))
        key, atoms, told = describe_makers(scope, key, atoms, told)
        if key is None:
            return found
    staged.update(dict.fromkeys(asking, ASKS))
    places = {id(a): i for i, a in enumerate(atoms)}
    if type(found) is not Reading:
        staged[key] = found
    elif all(id(a) in places for a in found.atoms):
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


def describe_makers(
    scope: Scope, known: Any, atoms: Sequence[Atom], made: Sequence[Atom]
) -> tuple[tuple | None, Sequence[Atom], Sequence[Atom]]:
    """Return a key that also tells how some values are computed.

    Args:
      scope: the scope of the equation that the key is for.
      known: the key so far.
      atoms: the values that this key tells of.
      made: those of them that the new key tells the makers of.

    Returns:
      The new key, the values that it tells of, and the operands of the makers. The key is None if
      values are results of an equation that holds programs.
    """
    atoms, operands = [*atoms], list[Atom]()
    key: list[Any] = [known]
    described, makers = scope.described, scope.makers
    for a in made:
        m = None if type(a) is Literal else makers.get(a)
        if m is None:
            key.append(m)
        elif m.primitive.memoize_type:
            operands += m.invars
            atoms += m.invars
            atoms += m.outvars
            found = described.get(id(m))
            if found is None:
                found = described[id(m)] = describe(m, scope)
            key.append(found)
        else:
            return None, atoms, operands
    numbers: dict[int, int] = {}  # which of the values are the same
    key += [numbers.setdefault(id(a), len(numbers)) for a in atoms]
    return tuple(key), atoms, operands


STAYS = object()  # in place of what replaces an equation: nothing does
ASKS = object()  # in place of it: that depends on more than the key tells
# Levels of operations that compute operands, which a choice may depend on: a product reads a
# transpose of a transpose of the result of a kernel.
MAX_LEVELS = 3
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
