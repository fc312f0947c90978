"""`odeint`: ordinary differential equations by an adaptive Runge-Kutta method, with derivatives.

The method is Dormand and Prince's of order 5(4) with Hairer's dense output (Hairer, Norsett and
Wanner, Solving Ordinary Differential Equations I, II.4-II.6, and their DOPRI5). Derivatives are
derivatives of the exact solution, and solve equations themselves: forward mode adds tangents to the
state, reverse mode integrates the adjoint equation backwards (Chen et al. 2018, arXiv:1806.07366).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft import numpy as jnp
from weft.api.bodies import StagedBody, stage_body
from weft.api.functions import check_callable
from weft.api.grad import vjp
from weft.api.jit import jit
from weft.api.programs import programs_of
from weft.control.custom import custom_vjp_p
from weft.core.aval import ShapedArray, is_valid_value, typeof
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Zero
from weft.core.source import boundary
from weft.core.stage import stage_closed
from weft.core.trace import Tracer
from weft.errors import DtypeError, PytreeError, ShapeError, TracerError
from weft.flatten_util import Unravel, ravel_pytree
from weft.numpy.promotion import as_array
from weft.primitives.layout import convert
from weft.pytrees import flatten, flatten_with_path, keystr, structure, unflatten
from weft.transforms.jvp import jvp
from weft.util import fun_name, list_public, merge, partition

__all__ = [
    "abs2", "fit_4th_order_polynomial", "interp_fit_dopri", "odeint", "ravel_first_arg",
]  # fmt: skip
__dir__ = list_public(__name__)

# Dormand and Prince's tableau: the nodes, the coefficients of the stages, the last row minus the
# row of order 4, and the weights of the dense output.
NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
DENSE = (
    -12715105075 / 11282082432, 0.0, 87487479700 / 32700410799, -10690763975 / 1880347072,
    701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423,
)  # fmt: skip


@boundary
def odeint(
    func: Callable,
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """Solve dy/dt = func(y, t, *args) from y(t[0]) = y0, for y at every time of `t`.

    Differentiable in y0, t, args and what `func` closes over, in forward and reverse mode and
    repeatedly. Derivatives are as accurate as the tolerances say, and reverse mode needs no more
    memory than the result. It solves the equation backwards: where that is unstable, as for strong
    damping over long times, forward mode is the better one.

    The tolerances set how many steps there are, and nothing bounds them by default. An optimizer
    that tries absurd rates, such as a decay 1e9 times too fast, asks for that many: it looks like a
    hang. Set `mxstep` in a fit (1000, say); a trial that needs more gives NaN, which a line search
    turns down.

    Args:
      func: gives the derivative of y, of the structure and shapes of y0.
      y0: y at the first time: a pytree of arrays or numbers, floating-point or complex.
      t: the times, an array of floats that rises or falls.
      *args: pytrees of arrays or numbers, passed on to `func`.
      rtol, atol: a step's error is held below atol + rtol * |y| in the root mean square; an rtol
        below the rounding of y's dtype counts as that.
      mxstep: the most steps, refused ones too, from one time to the next. Where they do not get
        there, and where the equation has no solution that far, y is NaN.
      hmax: the longest step.

    Returns:
      y at the times of `t`, of the structure of y0, each leaf with a leading axis of t's length.

    >>> def decay(y, t, rate):
    ...     return -rate * y
    >>> times = jnp.array([0.0, 1.0, 2.0])
    >>> [f"{y:.4f}" for y in odeint(decay, 1.0, times, 0.5)]
    ['1.0000', '0.6065', '0.3679']
    >>> slope = weft.grad(lambda rate: odeint(decay, 1.0, times, rate)[2])(0.5)
    >>> print(f"{slope:.4f}")
    -0.7358
    """
    check_callable("odeint", func)
    options = [check_number(k, v) for k, v in (("rtol", rtol), ("atol", atol), ("hmax", hmax))]
    steps = check_number("mxstep", mxstep)
    times = check_times(t)
    start, unravel = ravel_state(y0)
    operands = list_operands(args)
    point = ShapedArray((), times.dtype)
    avals = [*unravel.avals, point, *[ShapedArray(x.shape, x.dtype) for x in operands]]
    body = stage_body("odeint", func, structure((y0, 0.0, *args)), avals)
    check_slope(func, unravel, body)
    rounding = float(np.finfo(dtypes.real_dtype(unravel.flat.dtype)).eps)
    tolerances = (max(options[0], rounding), options[1], options[2], steps)
    equation = find_equation(func, body, unravel, avals, tolerances)
    return unravel_each(unravel, equation.solution(start, times, [*body.consts, *operands]))


def list_operands(args: tuple) -> list:
    """The leaves of the further arguments as arrays."""
    for path, x in flatten_with_path(args)[0]:
        if not is_valid_value(x):
            raise TypeError(
                f"odeint: args must be pytrees of arrays or numbers; got {x!r} at args"
                f"{keystr(path)}. Hint: close over it."
            )
    return [as_array(x, "odeint") for x in flatten(args)[0]]


def find_equation(
    func: Callable,
    body: StagedBody,
    unravel: Unravel,
    avals: Sequence[ShapedArray],
    tolerances: tuple,
) -> Equation:
    """The equation of a staged function; kept with the function, so that it is compiled once."""
    programs, key = programs_of(func), ("equation", body.jaxpr, unravel, tolerances)
    equation = programs.get(key)
    if equation is None:
        equation = programs.add(key, Equation(ravel_flow(body, unravel, avals), tolerances))
    return equation


def check_number(name: str, x: Any) -> float:
    """A positive number that is known now."""
    try:
        value = float(x)
    except (TypeError, ValueError, TracerError):
        raise TypeError(f"odeint: {name} must be a number known now; got {x!r}.") from None
    if not value > 0:
        raise ValueError(f"odeint: {name} must be positive; got {x!r}.")
    return value


def check_times(t: Any) -> Any:
    """The times as a vector of floats; where they are known they must go one way."""
    times = jnp.asarray(t) if isinstance(t, list | tuple) else as_array(t, "odeint")
    if times.ndim != 1 or not times.size:
        raise ShapeError(
            f"odeint: t must be a vector of times, of which the first is y0's; got {times.aval}. "
            "Hint: t=jnp.array([t0, t1])"
        )
    if not dtypes.is_float(times.dtype):
        raise DtypeError(
            f"odeint: t must be of floats; got {times.aval}. Hint: t.astype(jnp.float32)"
        )
    if not isinstance(times, Tracer):
        moves = np.diff(np.asarray(times).astype(np.float64))
        if not (np.all(moves >= 0) or np.all(moves <= 0)):
            raise ValueError(f"odeint: t must rise or fall; got {np.asarray(times)}.")
    return times


def ravel_state(y0: Any) -> tuple[Any, Unravel]:
    """The initial value as a vector, and the way back."""
    for path, x in flatten_with_path(y0)[0]:
        if not is_valid_value(x) or not dtypes.is_inexact(typeof(x).dtype):
            got = typeof(x) if is_valid_value(x) else repr(x)
            raise DtypeError(
                f"odeint: y0 must be floating-point or complex; got {got} at y0{keystr(path)}. "
                "Hint: a float, or y0.astype(jnp.float32)."
            )
    if not flatten(y0)[0]:
        raise PytreeError(f"odeint: y0 must hold an array or a number; got {y0!r}.")
    return ravel_pytree(y0)


def check_slope(func: Callable, unravel: Unravel, body: StagedBody) -> None:
    """Raise unless what `func` gives is like y0."""
    if body.out_tree != unravel.tree:
        raise PytreeError(
            f"odeint: {fun_name(func)} must return what is like y0; "
            f"got {body.out_tree} where y0 is {unravel.tree}."
        )
    for got, aval in zip(body.out_avals, unravel.avals, strict=True):
        if got.shape != aval.shape or dtypes.is_complex(got.dtype) > dtypes.is_complex(aval.dtype):
            raise ShapeError(
                f"odeint: {fun_name(func)} must return what is like y0; "
                f"got {got} where y0 has {aval}."
            )


def ravel_flow(body: StagedBody, unravel: Unravel, avals: Sequence[ShapedArray]) -> Jaxpr:
    """The staged function as one of vectors: (y, t, *consts, *args) -> [dy]."""
    count, state = len(body.consts), len(unravel.avals)

    def flow(y: Any, t: Any, *params: Any) -> list:
        leaves = flatten(unravel(y))[0]
        dy = body.jaxpr(*params[:count], *leaves, t, *params[count:])
        return [ravel_pytree([convert(x, unravel.flat.dtype) for x in dy])[0]]

    held = [a.aval for a in body.jaxpr.invars[:count]]
    given = [unravel.flat, avals[state], *held, *avals[state + 1 :]]
    return stage_closed(flow, given, body.jaxpr.name)[0]


def unravel_each(unravel: Unravel, ys: Any) -> Any:
    """The pytree of a stack of vectors."""
    ends = np.cumsum([a.size for a in unravel.avals])[:-1]
    parts = jnp.split(ys, ends, 1) if len(ends) else [ys]
    leaves = [
        convert(x.real if not dtypes.is_complex(a.dtype) else x, a.dtype).reshape(-1, *a.shape)
        for x, a in zip(parts, unravel.avals, strict=True)
    ]
    return unflatten(unravel.tree, leaves)


class Equation:
    """dy/dt = flow(y, t, *params) of a vector, with tolerances; what solves it has derivatives.

    `flow` is a closed jaxpr; `tolerances` are (rtol, atol, hmax, mxstep).
    """

    def __init__(self, flow: Jaxpr, tolerances: tuple[float, float, float, float]):
        self.flow = flow
        self.tolerances = tolerances
        self.run = jit(self.solve)
        # Compiled pullbacks, by the cotangents that are needed.
        self.pulls: dict[tuple, Callable] = {}

    def solution(self, y0: Any, times: Any, params: Sequence[Any]) -> Any:
        """y at every time."""
        return custom_vjp_p.apply(
            y0,
            times,
            *params,
            name="odeint",
            call_jaxpr=self.run,
            fwd=self.forward,
            jvp=self.pushforward,
            num_consts=0,
            symbolic_zeros=True,
            optimize_remat=False,
        )[0]

    def staged_like(self, fun: Callable, *examples: Any) -> Equation:
        """The equation of another flow, to the same tolerances."""
        avals = [ShapedArray(typeof(x).shape, typeof(x).dtype) for x in examples]
        return Equation(stage_closed(fun, avals, self.flow.name)[0], self.tolerances)

    def slope(self, y: Any, t: Any, params: Sequence[Any]) -> Any:
        """dy/dt at a point."""
        return self.flow(y, t, *params)[0]

    # -- values ------------------------------------------------------------------------------------

    def solve(self, y0: Any, times: Any, *params: Any) -> list:
        """y at every time, stacked."""
        if times.shape[0] == 1:
            return [y0[None]]
        # time runs forwards in what follows: where it falls, the slope is turned instead
        sign = jnp.where(times[-1] < times[0], -1.0, 1.0).astype(times.dtype)
        times = sign * times
        turn = sign.astype(dtypes.real_dtype(y0.dtype))

        def fun(y: Any, t: Any) -> Any:
            return turn * self.slope(y, sign * t, params)

        rtol, atol, hmax, mxstep = self.tolerances
        last, first = times[-1], fun(y0, times[0])
        step = initial_step_size(fun, times[0], y0, 4, rtol, atol, first)
        step = jnp.minimum(step, hmax).astype(times.dtype)

        def advance(state: tuple, target: Any) -> tuple[tuple, Any]:
            def going(carry: tuple) -> Any:
                count, (_, t, h, *_) = carry
                return (t < target) & (count < most) & (t + h > t)

            def attempt(carry: tuple) -> tuple:
                count, state = carry
                return count + 1, self.attempt(fun, state, last)

            most = jnp.array(mxstep, np.float32 if np.isinf(mxstep) else np.int32)
            count = jnp.zeros_like(most)
            _, state = lax.while_loop(going, attempt, (count, state))
            return state, jnp.where(state[1] >= target, interpolate_step(state, target), np.nan)

        state = (times[0], times[0], step, y0, y0, first, first, jnp.zeros_like(y0))
        _, ys = lax.scan(advance, state, times[1:])
        return [jnp.concatenate([y0[None], ys])]

    def attempt(self, fun: Callable, state: tuple, last: Any) -> tuple:
        """The state after a step is tried: moved on where its error is small, else unchanged.

        A state is (the time before the last step, the time, the next step's length, y before and
        after the last step, the slopes there, the dense output's own term).
        """
        rtol, atol, hmax, _ = self.tolerances
        _, t, h, _, y, _, f, _ = state
        final = h >= last - t
        h = jnp.where(final, last - t, h)
        new, slopes, error = runge_kutta_step(fun, y, f, t, h.astype(t.dtype))
        ratio = mean_error_ratio(error, rtol, atol, y, new)
        length = optimal_step_size(h, ratio)
        # Only hmax limits the next length, also after the final step.
        length = jnp.minimum(length, hmax).astype(t.dtype)
        good = ratio <= 1.0
        after = (
            t, jnp.where(final, last, t + h), length, y, new, f, slopes[-1],
            h.astype(dtypes.real_dtype(y.dtype)) * weigh_slopes(DENSE, slopes),
        )  # fmt: skip
        kept = [jnp.where(good, a, b) for a, b in zip(after, state, strict=True)]
        return (*kept[:2], length, *kept[3:])

    # -- derivatives -------------------------------------------------------------------------------

    def pushforward(self, primals: Sequence, tangents: Sequence) -> tuple[list, list]:
        """The solution and its tangent: an equation for both together."""
        y0, times, *params = primals
        y_dot, t_dot, *param_dots = tangents
        moved = [type(t) is not Zero for t in param_dots]
        n, k = y0.size, len(params)

        def fun(both: Any, t: Any, *given: Any) -> list:
            dots = merge(moved, [Zero(p.aval) for p in fixed_dots], given[k:])
            point, moves = [both[:n], t, *given[:k]], [both[n:], Zero(typeof(t)), *dots]
            (dy,), (ddot,) = jvp(self.flow, point, moves)
            return [jnp.concatenate([dy, jnp.zeros_like(dy) if type(ddot) is Zero else ddot])]

        fixed_dots, moving_dots = partition(moved, param_dots)
        dot = jnp.zeros_like(y0) if type(y_dot) is Zero else y_dot
        if type(t_dot) is not Zero:  # a later start is the earlier state of the same flow
            dot = dot - t_dot[0] * self.slope(y0, times[0], params)
        start = jnp.concatenate([y0, dot])
        operands = [*params, *moving_dots]
        equation = self.staged_like(fun, start, times[0], *operands)
        ys, dots = jnp.split(equation.solution(start, times, operands), 2, 1)
        if type(t_dot) is not Zero:
            dots = dots + t_dot[:, None] * self.slopes(ys, times, params)
        return [ys], [dots]

    def slopes(self, ys: Any, times: Any, params: Sequence[Any]) -> Any:
        """dy/dt at every time."""
        return lax.map(lambda yt: self.slope(yt[0], yt[1], params), (ys, times))

    def forward(self, primals: Sequence, perturbed: Sequence) -> tuple[list, list, Callable]:
        """The solution, what its pullback needs, and the pullback."""
        y0, times, *params = primals
        ys = self.solution(y0, times, params)  # its derivative, if wanted, is this rule again
        wanted = tuple(perturbed)
        if wanted not in self.pulls:
            self.pulls[wanted] = jit(functools.partial(self.pullback, wanted))

        def pull(residuals: Sequence, cts: Sequence) -> list:
            ys, times, *params = residuals
            zeros = [Zero(typeof(x).to_tangent()) for x in (ys[0], times, *params)]
            if type(cts[0]) is Zero:
                return zeros
            grads = self.pulls[wanted](ys, times, params, cts[0])
            return [z if g is None else g for g, z in zip(grads, zeros, strict=True)]

        return [ys], [ys, times, *params], pull

    def pullback(self, perturbed: tuple, ys: Any, times: Any, params: list, cts: Any) -> list:
        """Cotangents of y0, the times and the params, by the adjoint equation backwards.

        With a = d loss / d y(t), a' = -a df/dy and the cotangent of the params grows by a df/dp.
        y itself is solved backwards along with it, from every time anew. None where not wanted.
        """
        wants_state, wants_times, *wanted = perturbed
        fixed, moving = partition(wanted, params)
        total, unravel = ravel_pytree([jnp.zeros_like(p) for p in moving])
        n = ys.shape[1]

        def fun(state: Any, t: Any, *given: Any) -> list:
            held, moves = given[: len(fixed)], list(given[len(fixed) :])
            flow = lambda y, ps: self.slope(y, t, merge(wanted, held, ps))
            dy, back = vjp(flow, state[:n], moves)
            a_dot, grads = back(-state[n : 2 * n])
            return [ravel_pytree([dy, a_dot, *grads])[0].astype(state.dtype)]

        dtype = jnp.result_type(ys, total) if moving else ys.dtype
        start = jnp.zeros((2 * n + total.size,), dtype)
        equation = self.staged_like(fun, start, times[0], *fixed, *moving)

        def back(carry: tuple, at: tuple) -> tuple:
            a, total = carry
            y, ct, span = at
            a = a + ct
            state = jnp.concatenate([y.astype(dtype), a.astype(dtype), total.astype(dtype)])
            end = equation.solution(state, span, [*fixed, *moving])[1]
            return (cast_like(end[n : 2 * n], a), cast_like(end[2 * n :], total)), None

        spans = jnp.stack([times[1:], times[:-1]], 1)
        adjoint = (jnp.zeros_like(ys[0]), total)
        (a, total), _ = lax.scan(back, adjoint, (ys[1:], cts[1:], spans), reverse=True)
        of_times: Any = None
        if wants_times:
            of_times = jnp.sum((cts * self.slopes(ys, times, params)).real, 1).at[0].set(0.0)
            of_times = of_times.at[0].add(-jnp.sum((a * self.slope(ys[0], times[0], params)).real))
            of_times = of_times.astype(times.dtype)
        grads = merge(wanted, [None] * len(fixed), unravel(total) if moving else [])
        return [a + cts[0] if wants_state else None, of_times, *grads]


def cast_like(x: Any, y: Any) -> Any:
    """`x` in the dtype of `y`; of a complex x for a real y, the real part."""
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(y.dtype):
        x = x.real
    return x.astype(y.dtype)


# --- one step -------------------------------------------------------------------------------------


def weigh_slopes(weights: Sequence[float], slopes: Sequence[Any]) -> Any:
    """The weighted sum of slopes."""
    first, *rest = [w * k for w, k in zip(weights, slopes, strict=True) if w]
    for x in rest:
        first = first + x
    return first


def runge_kutta_step(func: Callable, y0: Any, f0: Any, t0: Any, dt: Any) -> tuple[Any, list, Any]:
    """(y after the step, the slopes on the way, the error's estimate). The last slope is y's."""
    slopes, y = [f0], y0
    h = dt.astype(dtypes.real_dtype(y0.dtype))
    for node, row in zip(NODES, STAGES, strict=True):
        y = y0 + h * weigh_slopes(row, slopes)
        slopes.append(func(y, t0 + node * dt))
    return y, slopes, h * weigh_slopes(ERROR, slopes)


def interpolate_step(state: tuple, t: Any) -> Any:
    """y at a time within the last step."""
    before, after, _, y0, y1, f0, f1, own = state
    h = after - before
    x = jnp.where(h > 0, (t - before) / jnp.where(h > 0, h, 1.0), 1.0)
    h, x = h.astype(dtypes.real_dtype(y0.dtype)), x.astype(dtypes.real_dtype(y0.dtype))
    rise = y1 - y0
    bend = h * f0 - rise
    return y0 + x * (rise + (1 - x) * (bend + x * (rise - h * f1 - bend + (1 - x) * own)))


def norm(x: Any, scale: Any) -> Any:
    """The root mean square of |x| / scale."""
    x = x / scale
    return jnp.sqrt(jnp.mean((x * x.conj()).real))


def mean_error_ratio(error_estimate: Any, rtol: float, atol: float, y0: Any, y1: Any) -> Any:
    """Return the error of a step relative to the tolerance."""
    return norm(error_estimate, atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1)))


def initial_step_size(
    fun: Callable, t0: Any, y0: Any, order: int, rtol: float, atol: float, f0: Any
) -> Any:
    """A first step of about the right length (Hairer, Norsett and Wanner, II.4)."""
    scale = atol + rtol * jnp.abs(y0)
    d0, d1 = norm(y0, scale), norm(f0, scale)
    tiny = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = jnp.where(tiny, 1e-6, 0.01 * d0 / jnp.where(tiny, 1.0, d1))
    f1 = fun(y0 + h0 * f0, t0 + h0.astype(t0.dtype))
    d2 = norm(f1 - f0, scale) / h0
    most = jnp.maximum(d1, d2)
    flat = most <= 1e-15
    h1 = jnp.where(
        flat,
        jnp.maximum(1e-6, h0 * 1e-3),
        (0.01 / jnp.where(flat, 1.0, most)) ** (1.0 / (order + 1)),
    )
    return jnp.minimum(100.0 * h0, h1)


def optimal_step_size(last_step: Any, ratio: Any) -> Any:
    """The length of the step to try next. An error that is not finite shortens it most."""
    wanted = 0.9 * jnp.maximum(ratio, 1e-10) ** (-1.0 / 5.0)
    factor = jnp.where(jnp.isfinite(wanted), wanted, 0.2)
    return last_step * jnp.clip(factor, 0.2, jnp.where(ratio <= 1.0, 10.0, 1.0))


# --- what else is of use to other methods ---------------------------------------------------------


def abs2(x: Any) -> Any:
    """Compute the square of the absolute value of each element.

    No square root is taken, so that the derivative at 0 is finite.

    Args:
      x: a number or an array of any shape; an integer, float or complex dtype.

    Returns:
      An array of the shape of `x`. It has the dtype of `x`, or for complex `x` the float dtype of
      the real part.

    >>> abs2(3 + 4j)
    Array(25., dtype=float32, weak_type=True)
    >>> abs2(jnp.array([-3.0, 2.0]))
    Array([9., 4.], dtype=float32)
    """
    x = jnp.asarray(x)
    return x.real**2 + x.imag**2 if dtypes.is_complex(x.dtype) else x**2


def fit_4th_order_polynomial(
    y0: Any, y1: Any, y_mid: Any, dy0: Any, dy1: Any, dt: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """Compute the polynomial of degree 4 that interpolates the solution within one step.

    The polynomial is a function of the time from 0 to 1 in units of the step. It has the values
    `y0`, `y_mid` and `y1` at 0, 1/2 and 1, and the slopes `dt * dy0` and `dt * dy1` at 0 and 1.

    Args:
      y0: the solution at the start of the step, a float array of any shape.
      y1: the solution at the end of the step, of the shape of `y0`.
      y_mid: the solution at the middle of the step, of the shape of `y0`.
      dy0: the derivative of the solution in time at the start, of the shape of `y0`.
      dy1: the derivative of the solution in time at the end, of the shape of `y0`.
      dt: the length of the step, a scalar.

    Returns:
      A tuple of five coefficients, highest power first, each of the shape of `y0`.

    >>> fit_4th_order_polynomial(0.0, 1.0, 0.0625, 0.0, 4.0, 1.0)  # t**4
    (1.0, 0.0, 0.0, 0.0, 0.0)
    """
    rise, fall = dt * dy0, dt * dy1
    a = 2 * (fall - rise) - 8 * (y0 + y1) + 16 * y_mid
    b = 5 * rise - 3 * fall + 18 * y0 + 14 * y1 - 32 * y_mid
    c = fall - 4 * rise - 11 * y0 - 5 * y1 + 16 * y_mid
    return a, b, c, rise, y0


# The weights of the slopes of a step for the value at its middle.
# Source: L. F. Shampine, Some practical Runge-Kutta formulas, Math. Comp. 46 (1986), 135-150.
MIDDLE = (
    6025192743 / 30085553152 / 2, 0, 51252292925 / 65400821598 / 2, -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2, -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2,
)  # fmt: skip


def interp_fit_dopri(y0: Any, y1: Any, k: Any, dt: Any) -> Any:
    """Compute the polynomial of degree 4 that interpolates one step of Dormand and Prince's method.

    The value at the middle of the step is a weighted sum of the slopes.
    Source: L. F. Shampine, Some practical Runge-Kutta formulas, Math. Comp. 46 (1986), 135-150.

    Args:
      y0: the solution at the start of the step, a float vector of n elements.
      y1: the solution at the end of the step, a float vector of n elements.
      k: the slopes of the seven stages of the step, a float array of shape (7, n).
      dt: the length of the step, a scalar.

    Returns:
      The coefficients, highest power first: a float array of shape (5, n). The polynomial is a
      function of the time from 0 to 1 in units of the step, for use with `jnp.polyval`.

    A step of length 0.5 of a solution whose slope is 2:

    >>> line = interp_fit_dopri(jnp.array([1.0]), jnp.array([2.0]), jnp.full((7, 1), 2.0), 0.5)
    >>> print(line[:, 0])
    [0. 0. 0. 1. 1.]
    """
    y_mid = y0 + dt * weigh_slopes(MIDDLE, k)
    return jnp.stack(fit_4th_order_polynomial(y0, y1, y_mid, k[0], k[-1], dt))


def ravel_first_arg(f: Callable, unravel: Callable, debug_info: Any = None) -> Callable:
    """Return a function of a vector that calls a function of a pytree.

    An integrator can then work on vectors although the user's state is a pytree.

    Args:
      f: a function `f(y, *args)` of a pytree `y`. It returns a pytree of arrays.
      unravel: the function that makes the pytree from the vector: the second result of
        `weft.flatten_util.ravel_pytree`.
      debug_info: ignored. It is accepted for compatibility with JAX.

    Returns:
      A function `flat(vector, *args)`, which returns the result of `f` raveled into a vector.

    >>> from weft.flatten_util import ravel_pytree
    >>> vector, unravel = ravel_pytree({"a": 1.0, "b": jnp.array([2.0, 3.0])})
    >>> flat = ravel_first_arg(lambda y, t: {"a": y["a"] * t, "b": y["b"]}, unravel)
    >>> print(flat(vector, 10.0))
    [10.  2.  3.]
    """

    def flat(y: Any, *args: Any) -> Any:
        return ravel_pytree(f(unravel(y), *args))[0]

    return flat
