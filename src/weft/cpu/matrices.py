"""Factorizations of matrices and solutions of triangular systems, in the fastest way for CPUs.

The kernels are in native/cholesky.cc, lu.cc, pullback.cc, qr.cc and triangular.cc. LAPACK
computes the rest: complex matrices, QR with exchanged columns, eigenvalues and singular values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var
from weft.cpu.calls import call_kernel
from weft.cpu.elements import chooses_by_element
from weft.cpu.formula import apply_formula
from weft.cpu.kernels import call_native
from weft.cpu.rewriting import Reading, Replacement, rewrite_program, stage_replacement
from weft.cpu.scope import MAX_SHORT, Scope, Target, find_repeated
from weft.passes.dce import drop_dead_code
from weft.passes.inline import rename_atoms
from weft.primitives.dot import Precision, dot_general
from weft.primitives.elementwise import add, mul, select
from weft.primitives.factorizations import Lu, lu_pivots_to_permutation_p
from weft.primitives.lapack import KernelCall, call_named
from weft.primitives.layout import convert, full_like
from weft.primitives.linalg import triangular_solve
from weft.primitives.matrices import NAN, Completion, MatrixPrimitive, lower_part, swap, symmetrize
from weft.primitives.small import is_small
from weft.util import is_below, memoize

F32 = np.dtype(np.float32)
# The shorter side of matrices whose QR factorization the kernel computes quicker than LAPACK.
MAX_QR_SIDE = 768
# Equations of a triangular system with more than MAX_SIDES right sides. BLAS takes 80 to 95 % of
# the kernel's time for more.
MAX_EQUATIONS, MAX_SIDES = 128, 64
# Rows of matrices for whose derivative of a Cholesky factorization there is a kernel of its own.
# Many smaller systems are solved side by side, which is quicker.
MIN_PULLED = 33


class KernelCompletion(Completion):
    """Complete results of up to MAX_SHORT elements by kernels, which run on the calling thread.

    Larger results pay for another thread. XLA counts operations to decide that.
    """

    def write_triangle(self, hlo, x, direction):
        if not is_below(x.aval.size, MAX_SHORT + 1):
            return super().write_triangle(hlo, x, direction)
        *_, m, n = x.aval.shape
        how = {"rows": m, "columns": n, "upper": direction == "LE"}
        return call_native(hlo, "weft_triangle", [x], [x.aval], how, {0: 0})[0]

    def mark_failures(self, hlo, info, outs):
        if not all(is_below(y.aval.size, MAX_SHORT + 1) for y in outs):
            return super().mark_failures(hlo, info, outs)
        call = lambda y: KernelCall(hlo, [y, info], [y.aval], info.aval.ndim, {0: 0})
        mark = lambda y: call_named(call(y), "weft_or_nan", {})[0]
        return [mark(y) if y.aval.dtype.kind in NAN else y for y in outs]


KERNEL_COMPLETION = KernelCompletion()


@memoize
def complete_by_kernels(prim: MatrixPrimitive) -> MatrixPrimitive:
    """Return a primitive whose lowering completes the results of LAPACK by kernels."""
    twin = object.__new__(type(prim))  # `copy` would give the primitive itself
    vars(twin).update(vars(prim), completion=KERNEL_COMPLETION)
    return twin


def choose_factors(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Complete short results of LAPACK by kernels."""
    short = any(is_below(v.aval.size, MAX_SHORT + 1) for v in eqn.outvars)
    if not scope.target.kernels or not short or not all(a.aval.size for a in eqn.invars):
        return None
    outs, settings = [v.aval.strong() for v in eqn.outvars], tuple(eqn.params.items())
    return lambda *xs: apply_formula(lower_completed, xs, outs, eqn.primitive, *settings)


def lower_completed(hlo: Any, *args: Any) -> list:
    """Write an operation of LAPACK whose results kernels complete."""
    values = [x for x in args if not isinstance(x, MatrixPrimitive | tuple)]
    prim, *settings = args[len(values) :]
    return complete_by_kernels(prim).lower(hlo, *values, **dict(settings))


def are_of_kernels(x: ShapedArray, scope: Scope) -> bool:
    """Return True if kernels factorize these matrices, or solve with them, quicker than LAPACK."""
    known = type(x.size) is int and x.size > 0
    return scope.target.kernels and known and x.dtype in (np.float32, np.float64)


def choose_cholesky(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Factorize by the kernel, which symmetrizes its operand if the program does so."""
    out = eqn.outvars[0].aval.strong()
    if not are_of_kernels(out, scope) or is_small(out):
        return choose_factors(eqn, scope)
    whole = read_symmetrized(eqn.invars[0], scope)
    how = {"symmetrize": whole is not None}
    factorize = lambda x: call_kernel("weft_cholesky", [x], [out], how)
    return Reading(factorize, eqn.invars if whole is None else [whole])


def symmetrize_in_kernels(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program whose calls of the Cholesky kernel symmetrize their operands.

    It is called before the operations that symmetrize are fused with others, for programs with a
    Cholesky factorization.
    """
    given = (False,) * len(jaxpr.invars)
    return drop_dead_code(rewrite_program(jaxpr, choose_symmetrized, target, given))


def choose_symmetrized(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Return the call of the kernel for a Cholesky factor, and None for other equations."""
    return choose_cholesky(eqn, scope) if eqn.primitive.form is Form.CHOLESKY else None


def read_symmetrized(atom: Atom, scope: Scope) -> Atom | None:
    """Return x if the program computes an operand as `symmetrize(x)`; None if it does not."""
    found = read_operands(lambda x: [symmetrize(x)], [atom], atom, scope)
    return found and found[0]  # type: ignore[return-value]


def read_operands(
    fun: Callable[..., Sequence[Any]], types: Sequence[Atom], atom: Atom, scope: Scope
) -> list[Atom] | None:
    """Return the operands that a program applies a function to, to compute an atom.

    Args:
      fun: a function with one result, which depends on all operands.
      types: atoms of the types of the operands.
      atom: a value of the program before it is rewritten.
      scope: the program.

    Returns:
      The operands, which are also values of the new program. None if the program computes `atom`
      by other operations, or if the new program does not have one of the operands.
    """
    wanted = stage_replacement(fun, types, "read_operands")
    makers = scope.old_makers
    steps = {v: eqn for eqn in wanted.eqns for v in eqn.outvars}
    found: dict[Var, Var] = {}
    pairs = [(wanted.outvars[0], atom)]
    for want, have in pairs:
        want, have = read_number(want, steps), read_number(have, makers)
        if isinstance(want, Literal) or isinstance(have, Literal):
            if not (isinstance(want, Literal) and isinstance(have, Literal)):
                return None
            if want.val != have.val:
                return None
            continue
        if found.setdefault(want, have) is not have:
            return None
        step, maker = steps.get(want), makers.get(have)
        if step is None:  # an operand
            continue
        if maker is None or maker.primitive is not step.primitive or maker.params != step.params:
            return None
        pairs.extend(zip(step.invars, maker.invars, strict=True))
    operands: list[Atom] = [found[v] for v in wanted.invars]
    # a value of the old program may be another variable in the new program
    there = all(x in scope.program.invars or scope.maker(x) is not None for x in operands)
    return operands if there else None


def choose_qr(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Factorize by the kernel, if columns are not exchanged."""
    x, outs = eqn.invars[0].aval, [v.aval.strong() for v in eqn.outvars]
    taken = are_of_kernels(x, scope) and min(x.shape[-2:]) <= MAX_QR_SIDE
    if not taken or eqn.params["pivoting"]:
        return choose_factors(eqn, scope)
    return lambda x: call_kernel("weft_qr", [x], outs)


def choose_lu(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Factorize by the kernel, else find the order of rows by a kernel."""
    prim = eqn.primitive
    assert isinstance(prim, Lu)
    outs = [v.aval.strong() for v in eqn.outvars]
    out, pivots, order = outs
    if are_of_kernels(out, scope) and not is_small(out):
        return lambda x: call_kernel("weft_lu", [x], outs)
    if not scope.target.kernels or not out.size or not is_short_order(pivots, order):
        return None

    def factorize(x: Any) -> list:
        y, swaps = apply_formula(lower_factors, [x], [out, pivots], prim, out, pivots)
        size = order.shape[-1]
        return [y, swaps, *lu_pivots_to_permutation_p.apply(swaps, permutation_size=size)]

    return factorize


def lower_factors(hlo: Any, x: Any, prim: Lu, *outs: ShapedArray) -> list:
    """Write the LU factors of matrices and the pivots."""
    return prim.write_factors(hlo, outs, x)


def is_short_order(pivots: ShapedArray, order: ShapedArray) -> bool:
    """Return True if so few rows are exchanged that a kernel is quicker."""
    work = ShapedArray((*order.shape, pivots.shape[-1]), order.dtype)
    return is_below(work.size, MAX_SHORT + 1)


def choose_permutation(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Exchange the rows by the kernel."""
    pivots, order = eqn.invars[0].aval, eqn.outvars[0].aval.strong()
    if not scope.target.kernels or not pivots.size or not is_short_order(pivots, order):
        return None
    return lambda pivots: call_kernel("weft_permutation", [pivots], [order])


def choose_triangular_solve(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Solve by the kernel; half precision in float32."""
    a, b = (x.aval for x in eqn.invars)
    params = eqn.params
    left = params["left_side"]
    wide = F32 if dtypes.itemsize_bits(b.dtype) == 16 else b.dtype
    taken = are_of_kernels(a.update(dtype=wide), scope) and not is_small(a)
    if not taken or type(b.size) is not int or not b.size:
        return None
    if pull := choose_pullback(eqn, scope):
        return pull
    if a.shape[-1] > MAX_EQUATIONS and b.shape[-1 if left else -2] > MAX_SIDES:
        return None
    how = {"left": left, "lower": params["lower"], "transpose": params["transpose_a"]}
    how["unit"] = params["unit_diagonal"]
    out = ShapedArray(b.shape, wide)

    def solve(a: Any, b: Any) -> list:
        (y,) = call_kernel("weft_trsm", [convert(a, wide), convert(b, wide)], [out], how)
        return [convert(y, eqn.outvars[0].aval.dtype)]

    return solve


def choose_pullback(eqn: Eqn, scope: Scope) -> Reading | None:
    """Compute the cotangent of a matrix, from that of its Cholesky factor, by one kernel.

    The equation is the last one of the transposed derivative of a factor L. With sizes that vary,
    the program sets padded elements to zero between the product and the solutions. Two calls of
    the kernel compute these parts then.
    """
    low, b = eqn.invars
    side = low.aval.shape[-1]
    if low.aval.shape != b.aval.shape or side < MIN_PULLED or not eqn.params["transpose_a"]:
        return None
    if not is_solution(scope.maker(b)):
        return None
    found = read_operands(solve_both_sides, [low, b], eqn.outvars[0], scope)
    if found is None or found[0] is not low:
        return None
    makers = scope.old_makers
    inner: Any = found[1]
    masks = []
    while (maker := makers.get(inner)) and is_masked(maker, makers):
        mask, _, inner = maker.invars
        masks.append(mask)
    found = read_operands(halve_product, [low, b], inner, scope)
    if found is None or found[0] is not low or not all(map(scope.maker, masks)):
        return None
    out, lower = eqn.outvars[0].aval.strong(), is_factor(scope.maker(low))
    symmetric = lower and not masks and is_symmetrized(eqn.outvars[0], scope.program)

    def pull(low: Any, ct: Any, *masks: Any) -> list:
        how = {"product": True, "solve": not masks, "lower": lower, "symmetric": symmetric}
        found = call_kernel("weft_cholesky_pullback", [low, ct], [out], how)
        if not masks:
            return found
        (y,) = found
        for mask in masks:
            y = select(mask, y, full_like(y, 0))
        how |= {"product": False, "solve": True}
        return call_kernel("weft_cholesky_pullback", [low, y], [out], how, {0: 1})

    return Reading(pull, [*found, *reversed(masks)])


def is_symmetrized(x: Var, program: Jaxpr) -> bool:
    """Return True if a program reads a matrix only to halve the sum with its transpose."""
    wanted = stage_replacement(halve_sum, [x], "is_symmetrized")
    known: dict[Var, Atom] = {wanted.invars[0]: x}
    taken: list[Eqn] = []
    read = lambda atoms: [a.val if type(a) is Literal else a for a in atoms]
    for step in wanted.eqns:
        key = step.primitive, step.params, read(rename_atoms(step.invars, known))
        found = [e for e in program.eqns if (e.primitive, e.params, read(e.invars)) == key]
        if len(found) != 1:
            return False
        taken += found
        known.update(zip(step.outvars, found[0].outvars, strict=True))
    others = [a for eqn in program.eqns if eqn not in taken for a in eqn.invars]
    inner = map(id, [*known.values()][:-1])
    return {*inner}.isdisjoint(map(id, (*others, *program.outvars)))


def halve_sum(ct: Any) -> list:
    """Write the transposed derivative of `symmetrize`."""
    half = mul(ct, 0.5)
    return [add(half, swap(half))]


def halve_product(low: Any, ct: Any) -> list:
    """Write the first part of the transposed derivative of a Cholesky factor.

    It is the lower triangle of L^T ct with half of its diagonal.
    """
    batch, rows = tuple(range(low.ndim - 2)), (low.ndim - 2,)
    numbers = (rows, rows), (batch, batch)
    half = mul(dot_general(low, ct, numbers, Precision.HIGHEST), 0.5)
    return [add(lower_part(half, -1), lower_part(half))]


def solve_both_sides(low: Any, x: Any) -> list:
    """Write the second part of the transposed derivative of a Cholesky factor, L^-T x L^-1."""
    inner = triangular_solve(low, x, lower=True, conjugate_a=True)
    return [triangular_solve(low, inner, left_side=True, lower=True, transpose_a=True)]


def read_number(atom: Atom, makers: dict[Var, Eqn]) -> Atom:
    """Return the number that an equation repeats to compute an atom; else the atom."""
    return atom if isinstance(atom, Literal) else find_repeated(atom, makers.get)


def is_solution(maker: Eqn | None) -> bool:
    """Return True if an equation solves triangular systems."""
    if maker is None:
        return False
    kernel = maker.params.get("kernel")
    return maker.primitive.form is Form.TRIANGULAR_SOLVE or kernel == "weft_trsm"


def is_factor(maker: Eqn | None) -> bool:
    """Return True if a kernel computes a Cholesky factor, which is 0 above the diagonal."""
    return maker is not None and maker.params.get("kernel") == "weft_cholesky"


def is_masked(eqn: Eqn, makers: dict[Var, Eqn]) -> bool:
    """Return True if an equation replaces elements of its last operand by zeros."""
    if not chooses_by_element(eqn.primitive) or len(eqn.invars) != 3:
        return False
    number = read_number(eqn.invars[1], makers)
    return type(number) is Literal and number.val == 0
