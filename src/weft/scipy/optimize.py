"""Minima of functions: `minimize`, by quasi-Newton methods with their gradients.

One loop serves both methods, which differ in the curvature information that they store. The line
search evaluates the function once in each iteration, so that no work is wasted under `vmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes, lax
from weft import numpy as jnp
from weft.api.functions import check_callable
from weft.api.grad import grad, value_and_grad
from weft.core.source import boundary
from weft.errors import DtypeError, ShapeError
from weft.numpy.promotion import as_array, as_inexact
from weft.scipy.sparse.linalg import cg
from weft.util import list_public
from weft.xla.typing import ArrayLike

__all__ = ["OptimizeResults", "minimize"]
__dir__ = list_public(__name__)

CONVERGED, OUT_OF_STEPS, NO_DESCENT, NOT_A_NUMBER = range(4)

# Of the strong Wolfe conditions: how much of the slope a step must gain, and may leave.
DECREASE, CURVATURE = 1e-4, 0.9


class OptimizeResults(NamedTuple):
    """The result of `minimize`.

    Attributes:
      x: the minimum that was found, a vector.
      success: True if the gradient at x is small enough; a bool scalar.
      status: 0 success; 1 too many steps; 2 no step lowers the function, which happens at the limit
        of the precision; 3 the function or its gradient is not finite. An integer scalar.
      fun: the value of the function at x.
      jac: the gradient of the function at x.
      hess_inv: an estimate of the inverse Hessian at x, a matrix; None for L-BFGS.
      nfev: the number of evaluations of the function.
      njev: the number of evaluations of the gradient.
      nit: the number of steps.

    >>> from weft.scipy.optimize import minimize
    >>> result = minimize(lambda x: x @ x, jnp.ones(2), method="BFGS")
    >>> print(result.success, result.status)
    True 0
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


@boundary
def minimize(
    fun: Callable,
    x0: ArrayLike,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Minimize a scalar function of a vector from an initial guess, by a quasi-Newton method.

    The gradient comes from automatic differentiation, so `fun` is all that is needed. It works
    under `jit` and `vmap`. The line search looks for steps that meet the strong Wolfe conditions.
    Source: Nocedal and Wright, Numerical Optimization (2006).

    The minimum is differentiable with respect to `args` and to arrays that `fun` closes over, by
    the implicit function theorem: x is taken as the solution of grad(fun)(x) = 0, and a linear
    system with the Hessian is solved by conjugate gradients.

    Args:
      fun: a function `fun(x, *args)` that returns a real scalar and is differentiable.
      x0: the initial guess, a vector of floats.
      args: further arguments of `fun`, a tuple. By default none.
      method: "BFGS", which keeps an n x n matrix, or "L-BFGS", which keeps a few vectors and suits
        many variables. "l-bfgs-experimental-do-not-rely-on-this" is another name of the latter.
      tol: the same as the option `gtol`, which takes precedence. By default 1e-5.
      options: a dict of options, by default empty. Both methods: `maxiter`, the largest number of
        steps (200 n); `gtol`, the bound of the norm of the gradient (1e-5); `norm`, the order of
        this norm (inf). BFGS: `line_search_maxiter`, the largest number of trials of a line search
        (20). L-BFGS: `maxls`, the same (20); `maxcor`, the number of vectors (10); `ftol`, a
        relative decrease that ends the search (0); `maxfun` and `maxgrad`, the largest number of
        evaluations (no limit).

    Returns:
      An `OptimizeResults`; its `x` is a vector with the shape and dtype of `x0` (integers become
      floats). No error is raised if no minimum is found: see `success` and `status`.

    Raises:
      ShapeError: `x0` is not a vector, or `fun` does not return a scalar.
      DtypeError: `x0` is complex, or a dict.
      TypeError: `args` is not a tuple, or an option is unknown.
      ValueError: `method` is another name.

    >>> from weft.scipy.optimize import minimize
    >>> result = minimize(lambda x: jnp.sum((x - jnp.array([1.0, 2.0])) ** 2), jnp.zeros(2),
    ...                   method="BFGS")
    >>> print(result.x.round(4), result.success)
    [1. 2.] True

    The derivative of the minimum with respect to an argument:

    >>> distance = lambda x, a: jnp.sum((x - a) ** 2)
    >>> minimum = lambda a: minimize(distance, jnp.zeros(2), (a,), method="L-BFGS").x
    >>> print(weft.jacobian(minimum)(jnp.array([1.0, 2.0])).round(4))
    [[1. 0.]
     [0. 1.]]
    """
    check_callable("minimize", fun)
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args must be a tuple; got {args!r}. Hint: args=(a,).")
    if isinstance(x0, dict):
        raise DtypeError(
            "minimize: x0 must be a vector; got a dict. Hint: x0, unravel = "
            "weft.flatten_util.ravel_pytree(x0), and unravel(x) in the function."
        )
    x0 = as_inexact("minimize", as_array(x0, "minimize"))
    if x0.ndim != 1:
        raise ShapeError(
            f"minimize: x0 must be a vector; got {x0.aval}. "
            "Hint: flatten_util.ravel_pytree makes one of anything."
        )
    if dtypes.is_complex(x0.dtype):
        raise DtypeError(
            f"minimize: x0 must be real; got {x0.aval}. Hint: minimize over real and imaginary "
            "parts, as in lambda xy: fun(xy[0] + 1j * xy[1])."
        )
    options = read_settings(method, x0.size, tol, options)
    value = lambda x: jnp.asarray(fun(x, *args)).astype(x.dtype)

    def solve(gradient: Callable, x: Any) -> tuple[Any, OptimizeResults]:
        result = descend(value_and_grad(value), x, options)
        return result.x, result

    eps = float(dtypes.finfo(x0.dtype).eps)
    tangents = lambda hessian, y: cg(hessian, y, tol=10 * eps)[0]
    x, result = lax.custom_root(grad(value), x0, solve, tangents, has_aux=True)
    return result._replace(x=x, fun=value(x))


# --- options ----------------------------------------------------------------------------------


class Settings(NamedTuple):
    """The options of both methods; `maxcor` is None for the one that keeps a matrix."""

    maxiter: Any
    gtol: Any = 1e-5
    norm: Any = np.inf
    maxls: int = 20
    maxcor: int | None = None
    ftol: Any = 0.0
    maxfun: Any = None
    maxgrad: Any = None


# For each method: its options, and the settings that they set.
OPTIONS = {
    "bfgs": {"maxiter": "maxiter", "gtol": "gtol", "norm": "norm", "line_search_maxiter": "maxls"},
    "l-bfgs": {name: name for name in Settings._fields},
}


def read_settings(method: Any, n: int, tol: Any, options: Mapping[str, Any] | None) -> Settings:
    """The settings that options of a method say."""
    name = str(method).lower()
    name = "l-bfgs" if name == "l-bfgs-experimental-do-not-rely-on-this" else name
    if name not in OPTIONS:
        raise ValueError(f"minimize: method must be 'BFGS' or 'L-BFGS'; got {method!r}.")
    known = OPTIONS[name]
    given: dict[str, Any] = {"maxcor": 10} if name == "l-bfgs" else {}
    if tol is not None:
        given["gtol"] = tol
    for option, x in (options or {}).items():
        if option not in known:
            raise TypeError(
                f"minimize: options of {method} must be among {', '.join(known)}; got {option!r}."
            )
        if x is not None:
            given[known[option]] = x
    return Settings(**{"maxiter": 200 * n, **given})


# --- the curvature ----------------------------------------------------------------------------


def product(x: Any, y: Any) -> Any:
    """The inner product, with full precision."""
    return jnp.dot(x, y, precision=lax.Precision.HIGHEST)


def update_matrix(H: Any, s: Any, y: Any) -> Any:
    """The inverse Hessian of BFGS after a step s that moved the gradient by y.

    Nocedal and Wright, "Numerical optimization", 2006, eq. 6.17, without products of matrices.
    """
    curvature = product(s, y)
    Hy = product(H, y)
    scale = (curvature + product(y, Hy)) / curvature**2
    crossed = jnp.outer(Hy, s) / curvature
    new = H + scale * jnp.outer(s, s) - crossed - crossed.T
    return jnp.where(curvature > 0, new, H)


class Memory(NamedTuple):
    """The last steps and the changes of the gradient they made, newest last."""

    steps: Any
    changes: Any


def update_memory(memory: Memory, s: Any, y: Any) -> Memory:
    """The memory with a step more, and the oldest gone."""
    keep = product(s, y) <= 0
    latest = Memory(*[jnp.roll(old, -1, axis=0).at[-1].set(x) for old, x in zip(memory, (s, y))])
    return Memory(*[jnp.where(keep, old, new) for old, new in zip(memory, latest)])


def apply_memory(memory: Memory, g: Any) -> Any:
    """The inverse Hessian of a memory times g: the two loops of Nocedal and Wright, alg. 7.4."""
    steps, changes = memory
    count = steps.shape[0]
    curvature = jnp.sum(steps * changes, axis=1)
    rho = jnp.where(curvature > 0, 1 / jnp.where(curvature > 0, curvature, 1), 0)

    def back(k: Any, state: tuple) -> tuple:
        q, shares = state
        i = count - 1 - k
        share = rho[i] * product(steps[i], q)
        return q - share * changes[i], shares.at[i].set(share)

    def forth(i: Any, q: Any) -> Any:
        return q + steps[i] * (shares[i] - rho[i] * product(changes[i], q))

    q, shares = lax.fori_loop(0, count, back, (g, rho))
    square = product(changes[-1], changes[-1])
    scale = jnp.where(rho[-1] > 0, curvature[-1] / jnp.where(square > 0, square, 1), 1)
    return lax.fori_loop(0, count, forth, scale * q)


# --- the line search --------------------------------------------------------------------------


class Point(NamedTuple):
    """A step length, and the function and its slope there."""

    a: Any
    f: Any
    slope: Any


class Search(NamedTuple):
    """The state of a line search.

    `low` is the best point so far that is low enough, `g` the gradient there. Where `bracketed`,
    the minimum is between `low` and `high`; `a` is tried next.
    """

    low: Point
    g: Any
    high: Point
    bracketed: Any
    a: Any
    done: Any
    k: Any


def line_search(
    phi: Callable, start: Point, g: Any, a: Any, maxiter: int
) -> tuple[Point, Any, Any]:
    """Find a point that meets the strong Wolfe conditions, its gradient, and count the trials.

    Nocedal and Wright, algorithms 3.5 and 3.6 in one loop. Near a minimum, where differences of the
    function are rounding errors, the slope decides (Hager and Zhang, 2005, eq. 4.1). If no step
    length suffices, the best one is returned, which may be 0.
    """
    noise = 4 * dtypes.finfo(start.f.dtype).eps * jnp.abs(start.f)

    def body(s: Search) -> Search:
        f, slope, g = phi(s.a)
        p = Point(s.a, f, slope)
        finite = jnp.isfinite(f) & jnp.isfinite(slope)
        enough = f <= start.f + DECREASE * s.a * start.slope
        level = (f <= start.f + noise) & (slope <= (2 * DECREASE - 1) * start.slope)
        enough = finite & (enough | level)
        done = enough & (jnp.abs(slope) <= -CURVATURE * start.slope)
        worse = ~done & (~enough | ((f >= s.low.f) & (s.low.a > 0) & ~level))
        # The minimum is on the side of p where its slope descends.
        ahead = jnp.where(s.bracketed, slope * (s.high.a - s.low.a) < 0, slope < 0)
        high = select_point(worse, p, select_point(ahead, s.high, s.low))
        low, g = select_point(worse, s.low, p), jnp.where(worse, s.g, g)
        bracketed = s.bracketed | worse | ~ahead
        a = jnp.where(bracketed, minimize_cubic(low, high), 2 * s.a)
        return Search(low, g, high, bracketed, a, done, s.k + 1)

    more = lambda s: ~s.done & (s.k < maxiter)
    end = lax.while_loop(more, body, Search(start, g, start, False, a, False, 0))
    return end.low, end.g, end.k


def select_point(pred: Any, x: Point, y: Point) -> Point:
    """x where a condition holds, else y."""
    return Point(*[jnp.where(pred, a, b) for a, b in zip(x, y, strict=True)])


def minimize_cubic(low: Point, high: Point) -> Any:
    """The minimum of the cubic through two points, or their middle where it is not well inside.

    Nocedal and Wright, eq. 3.59.
    """
    width = high.a - low.a
    d = low.slope + high.slope - 3 * (high.f - low.f) / jnp.where(width == 0, 1, width)
    inside = d * d - low.slope * high.slope
    root = jnp.sign(width) * jnp.sqrt(jnp.where(inside > 0, inside, 0))
    bottom = high.slope - low.slope + 2 * root
    share = 1 - (high.slope + root - d) / jnp.where(bottom == 0, 1, bottom)
    # also false where something is not a number
    good = (inside >= 0) & (bottom != 0) & (share >= 0.1) & (share <= 0.9)
    return low.a + width * jnp.where(good, share, 0.5)


# --- the descent ------------------------------------------------------------------------------


class Descent(NamedTuple):
    """The state of a minimization."""

    x: Any
    f: Any
    g: Any
    model: Any
    decrease: Any
    status: Any
    evaluations: Any
    k: Any


def descend(fun: Callable, x: Any, options: Settings) -> OptimizeResults:
    """Minimize by steps along minus the inverse Hessian times the gradient."""
    n, dtype = x.size, x.dtype
    if options.maxcor is None:
        model, along, update = jnp.eye(n, dtype=dtype), product, update_matrix
    else:
        nothing = jnp.zeros((options.maxcor, n), dtype)
        model, along, update = Memory(nothing, nothing), apply_memory, update_memory

    def body(s: Descent) -> Descent:
        p = -along(s.model, s.g)
        slope = product(s.g, p)
        downhill = slope < 0
        p, slope = jnp.where(downhill, p, -s.g), jnp.where(downhill, slope, -product(s.g, s.g))
        # as much as the last step gained, and no more than Newton's step
        first = jnp.minimum(1, 2.02 * s.decrease / -slope)

        def phi(a: Any) -> tuple[Any, Any, Any]:
            f, g = fun(s.x + a * p)
            return f, product(g, p), g

        here = Point(jnp.zeros_like(slope), s.f, slope)
        (a, f, _), g, tried = line_search(phi, here, s.g, first, options.maxls)
        x = s.x + a * p
        moved = jnp.any(x != s.x)
        model = update(s.model, x - s.x, g - s.g)
        gain = s.f - f
        small = gain <= options.ftol * jnp.maximum(jnp.maximum(jnp.abs(s.f), jnp.abs(f)), 1)
        status = jnp.where(
            ~moved,
            NO_DESCENT,
            jnp.where((options.ftol > 0) & small, CONVERGED, find_status(f, g, options)),
        )
        return Descent(x, f, g, model, gain, status, s.evaluations + tried, s.k + 1)

    def more(s: Descent) -> Any:
        going = (s.status == OUT_OF_STEPS) & (s.k < options.maxiter)
        for limit in (options.maxfun, options.maxgrad):
            going = going if limit is None else going & (s.evaluations < limit)
        return going

    f, g = fun(x)
    first = jnp.sqrt(product(g, g)) / 2
    start = Descent(x, f, g, model, first, find_status(f, g, options), 1, 0)
    s = lax.while_loop(more, body, start)
    return OptimizeResults(
        x=s.x, success=s.status == CONVERGED, status=s.status, fun=s.f, jac=s.g,
        hess_inv=s.model if options.maxcor is None else None, nfev=s.evaluations,
        njev=s.evaluations, nit=s.k,
    )  # fmt: skip


def find_status(f: Any, g: Any, options: Settings) -> Any:
    """The status of a place, if no more steps were done."""
    finite = jnp.isfinite(f) & jnp.all(jnp.isfinite(g))
    status = jnp.where(vector_norm(g, options.norm) <= options.gtol, CONVERGED, OUT_OF_STEPS)
    return jnp.where(finite, status, NOT_A_NUMBER)


def vector_norm(g: Any, order: Any) -> Any:
    """The norm of a vector of any order."""
    g = jnp.abs(g)
    if order == np.inf:
        return jnp.max(g, initial=0)
    if order == -np.inf:
        return jnp.min(g)
    return jnp.sum(g**order) ** (1 / order)
