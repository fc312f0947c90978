"""`custom_root` and `custom_linear_solve`: solvers with derivatives from the solved equation.

The equation is differentiated at its solution (the implicit function theorem), so any solver that
traces is allowed. control/linear.py has the transformations of a linear solve.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft import dtypes
from weft.api.bodies import StagedBody, cast_values, stage_body
from weft.api.custom_rules import custom_jvp
from weft.api.functions import avals_of, check_callable, leaf_names
from weft.api.structures import tuple_structure
from weft.control.linear import linear_solve_p
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr, eval_jaxpr
from weft.core.primitive import Zero
from weft.core.ref import is_ref
from weft.core.source import boundary
from weft.errors import DtypeError, PytreeError, RefError, ShapeError
from weft.passes.discharge import discharge_jaxpr, has_state
from weft.primitives.elementwise import neg
from weft.primitives.layout import instantiate, zeros
from weft.pytrees import PyTreeDef, flatten, structure, unflatten
from weft.transforms.jvp import jvp
from weft.transforms.linearize import linearize
from weft.transforms.transpose import backward_jaxpr


@boundary
def custom_linear_solve(
    matvec: Callable,
    b: Any,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve a linear system by a function of the user, with the derivative of the linear system.

    The solution of `matvec(x) = b` is differentiable in b and in the values that `matvec` closes
    over. Forward mode solves the same system with another right-hand side, reverse mode the
    transposed system; nothing is differentiated through the solver. So the solver may be iterative,
    or a callback.

    Args:
      matvec: a linear function of a pytree like b that returns a pytree like b.
      b: the right-hand side, a pytree of floating-point or complex arrays.
      solve: a function `solve(matvec, b)` that returns the solution, a pytree like b.
      transpose_solve: a function `transpose_solve(vecmat, ct)`, where `vecmat` is the transpose of
        `matvec`. It returns the solution of `vecmat(y) = ct`. Without it reverse mode is an error,
        unless `symmetric`.
      symmetric: if True, `matvec` is its own transpose, and `solve` is used for both systems.
      has_aux: if True, the solvers return a pair (solution, aux); aux has no derivative.

    Returns:
      The solution, a pytree of arrays like b; with `has_aux`, a pair (solution, aux).

    Raises:
      DtypeError, PytreeError, ShapeError: `matvec` or a solver returns a pytree that is not like b.
      TypeError: reverse mode is used without `transpose_solve` and without `symmetric`.

    >>> from weft import grad
    >>> def quotient(b, a):
    ...     return lax.custom_linear_solve(lambda x: a * x, b, lambda f, b: b / a, symmetric=True)
    >>> print(quotient(6.0, 2.0), grad(quotient, argnums=1)(6.0, 2.0))
    3.0 -1.5
    """
    op = "custom_linear_solve"
    for f in (matvec, solve, transpose_solve or solve):
        check_callable(op, f)
    leaves, tree = flatten(b)
    avals = avals_of(op, leaves, structure(((b,), {})), matvec)
    product = stage_pure(op, "matvec", matvec, structure((b,)), avals)
    check_like(op, "matvec", product.out_tree, product.out_avals, tree, avals)
    forward = stage_solver("solve", solve, matvec, tree, avals, has_aux)
    vecmat, backward = None, None
    if transpose_solve is not None or symmetric:
        vecmat = product.jaxpr if symmetric else transpose_of(product)
        transposed = lambda ct: unflatten(tree, vecmat(*product.consts, *flatten(ct)[0]))
        solver = transpose_solve or solve
        backward = stage_solver("transpose_solve", solver, transposed, tree, avals, has_aux)
    again, own = (product.consts, backward.consts) if backward else ([], [])
    parts = (product.consts, again, forward.consts, own)
    outs = linear_solve_p.apply(
        *[c for part in parts for c in part],
        *leaves,
        matvec=product.jaxpr,
        vecmat=vecmat,
        solve=forward.jaxpr,
        transpose_solve=backward.jaxpr if backward else None,
        counts=tuple(map(len, parts)),
    )
    return unflatten(forward.out_tree, outs)


def stage_solver(
    name: str,
    solver: Callable,
    system: Callable,
    tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    has_aux: bool,
) -> StagedBody:
    """A solver of custom_linear_solve, staged as a function of the right-hand side."""
    op = "custom_linear_solve"
    args_tree = tuple_structure(tree)
    body = stage_pure(op, name, functools.partial(solver, system), args_tree, avals)
    x_tree = solution_tree(op, name, body.out_tree, has_aux)
    check_like(op, name, x_tree, body.out_avals[: x_tree.num_leaves], tree, avals)
    return body


def stage_pure(
    op: str, name: str, fun: Callable, args_tree: PyTreeDef, avals: Sequence[ShapedArray]
) -> StagedBody:
    """A staged function whose references, if any, are its own: it is a function of values."""
    body = stage_body(op, fun, args_tree, avals)
    outer = next(filter(is_ref, body.consts), None)
    if outer is not None:
        raise RefError(
            f"{op}: {name} must not use a reference from outside; got a {typeof(outer)}. "
            "Hint: value = r[...] before the call, and use value."
        )
    return body._replace(jaxpr=discharge_jaxpr(body.jaxpr)) if has_state(body.jaxpr) else body


def transpose_of(product: StagedBody) -> Jaxpr:
    """The transpose of a staged linear function, which takes its consts first, as it does."""
    n = len(product.out_avals)
    linear = (False,) * len(product.consts) + (True,) * n
    return backward_jaxpr(product.jaxpr, linear, (True,) * n, (True,) * n)[0]


@boundary
def custom_root(
    f: Callable, initial_guess: Any, solve: Callable, tangent_solve: Callable, has_aux: bool = False
) -> Any:
    """Find a root of a function by a solver of the user, with the derivative of the equation.

    The solution x of `f(x) = 0` is differentiable in the values that `f` closes over, by the
    implicit function theorem: f'(x) dx = -df. Nothing is differentiated through the solver. The
    derivative does not depend on the initial guess and on values that `solve` closes over.

    Args:
      f: a function of a pytree like the initial guess that returns a pytree like it.
      initial_guess: the start of the solver, a pytree of floating-point or complex arrays.
      solve: a function `solve(f, initial_guess)` that returns x, a pytree like the guess.
      tangent_solve: a function `tangent_solve(g, y)`, where `g` is the linear function f'(x). It
        returns dx such that `g(dx) = y`. It must be linear in y, and for reverse mode transposable.
        For scalars it is `lambda g, y: y / g(1.0)`.
      has_aux: if True, `solve` returns a pair (x, aux); aux has no derivative.

    Returns:
      The solution x, a pytree like the initial guess; with `has_aux`, a pair (x, aux).

    Raises:
      DtypeError: the solution is not floating-point or complex.
      PytreeError: with `has_aux`, `solve` does not return a pair.
      ShapeError: `f` does not return arrays of the shapes of the initial guess.

    >>> from weft import grad
    >>> def sqrt(a):
    ...     newton = lambda f, x: x - f(x) / (2 * x)
    ...     solve = lambda f, x: newton(f, newton(f, newton(f, newton(f, x))))
    ...     return lax.custom_root(lambda x: x * x - a, 1.0, solve, lambda g, y: y / g(1.0))
    >>> print(sqrt(4.0), grad(sqrt)(4.0))
    2.0 0.25
    """
    op = "custom_root"
    for fun in (f, solve, tangent_solve):
        check_callable(op, fun)
    leaves, tree = flatten(initial_guess)
    args_tree = structure((initial_guess,))
    avals = avals_of(op, leaves, structure(((initial_guess,), {})), f)
    solver = stage_pure(op, "solve", functools.partial(solve, f), args_tree, avals)
    x_tree = solution_tree(op, "solve", solver.out_tree, has_aux)
    x_avals = solver.out_avals[: len(leaves)]
    check_like(op, "solve", x_tree, x_avals, tree, x_avals)
    for aval in x_avals:
        if not dtypes.is_inexact(aval.dtype):
            raise DtypeError(
                f"{op}: a solution must be of inexact dtype; got {aval} from solve. "
                "Hint: give the initial guess as floats."
            )
    equation = stage_pure(op, "f", f, args_tree, x_avals)
    check_like(op, "f", equation.out_tree, equation.out_avals, tree, x_avals)

    def tangent_system(x: Any, y: Any) -> Any:
        return tangent_solve(derivative_map(equation, flatten(x)[0]), y)

    both = structure((initial_guess,) * 2)
    dx = stage_pure(op, "tangent_solve", tangent_system, both, x_avals * 2)
    check_like(op, "tangent_solve", dx.out_tree, dx.out_avals, tree, x_avals)

    root = make_implicit(solver, equation, dx)
    return unflatten(solver.out_tree, root(equation.consts, solver.consts, dx.consts, leaves))


def make_implicit(solver: StagedBody, equation: StagedBody, tangents: StagedBody) -> Callable:
    """The solver as a function of what the three close over, with its derivative."""
    n, x_avals = len(equation.out_avals), solver.out_avals

    @custom_jvp
    def custom_root(f_consts: list, solve_consts: list, dx_consts: list, guess: list) -> list:
        return solver.jaxpr(*solve_consts, *guess)

    @custom_root.defjvp
    def implicit_jvp(primals: tuple, dots: tuple) -> tuple[list, list]:
        outs = custom_root(*primals)
        f_consts, _, dx_consts, _ = primals
        x = outs[:n]
        moves = [t if dtypes.is_inexact(typeof(t).dtype) else Zero(typeof(t)) for t in dots[0]]
        _, changes = jvp(lambda *consts: equation.jaxpr(*consts, *x), f_consts, moves)
        rhs = cast_values([neg(instantiate(t)) for t in changes], x_avals[:n])
        dx = cast_values(tangents.jaxpr(*dx_consts, *x, *rhs), x_avals[:n])
        return outs, [*dx, *[zeros(typeof(y).to_tangent()) for y in outs[n:]]]

    return custom_root


def derivative_map(body: StagedBody, x: Sequence[Any]) -> Callable:
    """The derivative of a staged function of a pytree at the leaves x, as a function of one."""
    fun = lambda *xs: body.jaxpr(*body.consts, *xs)
    outs, linear, residuals, out_moved = linearize(fun, x)

    def derivative(dx: Any) -> Any:
        moving = iter(eval_jaxpr(linear, residuals, *flatten(dx)[0]))
        dots = [
            next(moving) if m else zeros(typeof(y)) for y, m in zip(outs, out_moved, strict=True)
        ]
        return unflatten(body.out_tree, dots)

    return derivative


def solution_tree(op: str, name: str, out_tree: PyTreeDef, has_aux: bool) -> PyTreeDef:
    """The structure of the solution in what a solver returns."""
    if not has_aux:
        return out_tree
    parts = out_tree.children()
    data = out_tree.node_data()
    if data is None or data[0] is not tuple or len(parts) != 2:
        raise PytreeError(
            f"{op}: with has_aux=True {name} must return a pair (x, aux); got {out_tree}."
        )
    return parts[0]


def check_like(
    op: str,
    name: str,
    out_tree: PyTreeDef,
    out_avals: Sequence[ShapedArray],
    tree: PyTreeDef,
    avals: Sequence[ShapedArray],
) -> None:
    """Raise unless what a function returned has the given structure and types."""
    like = "b" if op == "custom_linear_solve" else "the initial guess"
    if out_tree != tree:
        raise PytreeError(
            f"{op}: {name} must return the structure of {like}, {tree}; got {out_tree}."
        )
    for leaf, got, want in zip(leaf_names("result", tree), out_avals, avals, strict=True):
        if got.shape != want.shape:
            raise ShapeError(
                f"{op}: {name} must return arrays of the shapes of {like}; got {got} at {leaf}, "
                f"where {like} has {want}."
            )
        if got.dtype != want.dtype:
            raise DtypeError(
                f"{op}: {name} must return arrays of the dtypes of {like}; got {got} at {leaf}, "
                f"where {like} has {want}. Hint: convert {like} with .astype(jnp.{got.dtype.name})."
            )
