"""`while_loop`, `fori_loop`: loops as long as a predicate holds, and between bounds, on pytrees.

What such a loop is, with its rules and its reverse mode, is control/loop.py; loops over arrays are
api/scan.py's, which also runs loops whose bounds are known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api import bodies
from weft.api.functions import avals_of, check_callable
from weft.api.scan import steps_per_turn
from weft.api.structures import has_float0, hide_float0, show_structure
from weft.control.loop import bind_while
from weft.control.loop_bodies import COUNT, TRUTH, add_step_counter
from weft.control.scan import bind_scan
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, memo_jaxpr
from weft.core.primitive import join_varying
from weft.core.source import boundary
from weft.core.trace import current
from weft.errors import DtypeError, ShapeError, TracerBoolConversionError, TracerError
from weft.options import config
from weft.primitives.elementwise import add_p, and_p, lt_p
from weft.primitives.families import check_integer
from weft.primitives.layout import convert, literal
from weft.pytrees import PyTreeDef, flatten, structure, unflatten
from weft.util import fun_name


@boundary
def while_loop(
    cond_fun: Callable,
    body_fun: Callable,
    init_val: Any,
    *,
    max_steps: int | None = None,
    checkpoints: int | None = None,
) -> Any:
    """Repeat a function as long as a predicate holds.

    It is the loop for iterations whose number depends on values: a solver that stops when it has
    converged. Both functions are traced once, whatever the number of steps. This loop in Python
    gives the same result::

        def while_loop(cond_fun, body_fun, init_val):
            val = init_val
            while cond_fun(val):
                val = body_fun(val)
            return val

    The value must keep its structure, its shapes and its dtypes. A value that starts as a Python
    number is weakly typed: it takes the dtype that `body_fun` returns.

    Forward and reverse mode both go through the loop; in JAX reverse mode is an error. Reverse mode
    needs the states of the loop from the last to the first. It stores K = `checkpoints` of them,
    and computes the others again: a loop of up to (K+1)(K+2)/2 steps is walked two more times, one
    of up to about K**3/6 steps three more times. A state is as large as the parts of `init_val`
    that the derivative depends on.

    Under `vmap` with a mapped predicate the loop runs until the predicate is false for all
    elements; an element keeps its value once its predicate is false.

    Args:
      cond_fun: a function `cond_fun(val) -> bool` that returns a scalar bool.
      body_fun: a function `body_fun(val) -> val`.
      init_val: the value to start with, a pytree of arrays and numbers.
      max_steps: the largest number of steps, an int >= 0: the loop stops after it even if the
        predicate still holds. Reverse mode then stores every state, and walks along the loop once
        more only. By default the number of steps has no bound.
      checkpoints: the number of states that reverse mode stores at a time, an int >= 1. The default
        is 64, or all states if `max_steps` is given.

    Returns:
      The first value with a false predicate, a pytree like `init_val`.

    Raises:
      DtypeError: the predicate is not a bool, or `body_fun` returns another dtype.
      PytreeError: `body_fun` returns another structure.
      ShapeError: the predicate is not a scalar; `body_fun` returns another shape; `max_steps` or
        `checkpoints` is too small.

    >>> def root(x):  # Newton's method
    ...     step = lambda y: 0.5 * (y + x / y)
    ...     return lax.while_loop(lambda y: abs(y * y - x) > 1e-3, step, x)
    >>> print(f"{weft.grad(root)(4.0):.4f}")
    0.2500
    >>> print(lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 1, max_steps=3))
    8
    """
    check_callable("while_loop", cond_fun)
    check_callable("while_loop", body_fun)
    bound, slots = (
        None if n is None else check_integer("while_loop", name, n, least)
        for name, n, least in (("max_steps", max_steps, 0), ("checkpoints", checkpoints, 1))
    )
    if config.disable_jit:
        try:
            val, steps = bodies.make_arrays(init_val), 0
            while (bound is None or steps < bound) and cond_fun(val):
                val, steps = body_fun(val), steps + 1
            return val
        except TracerBoolConversionError:  # under vmap, the predicate has many values
            pass
    return bind_loop(cond_fun, body_fun, init_val, bound, slots)


def bind_loop(
    cond_fun: Callable, body_fun: Callable, init_val: Any, bound: int | None, slots: int | None
) -> Any:
    """`while_loop` with its arguments checked: stage both functions and bind the primitive."""
    init, tree = flatten(init_val)
    if has_float0(init):
        init_val = hide_float0(init_val)
        init, tree = flatten(init_val)
    avals = avals_of("while_loop", init, structure(((init_val,), {})), body_fun)
    avals = bodies.types_in_loop("while_loop", avals)
    body, avals = stage_carry("while_loop", body_fun, (init_val,), tree, avals)
    cond = bodies.stage_body("while_loop", cond_fun, structure((init_val,)), avals)
    check_predicate(cond_fun, cond)
    (until, once), consts = (cond.jaxpr, body.jaxpr), [cond.consts, body.consts]
    if varying := cond.out_avals[0].varying:
        (until, once), consts, avals = vary_loop(varying, [until, once], consts, avals)
    start = bodies.cast_values(init, avals)
    if bound is not None:
        start.append(COUNT.dtype.type(0))
        until, once = bound_steps(until, bound), add_step_counter(once, ())
        slots = slots or max(bound - 1, 1)
    params = {"checkpoints": slots}
    outs = bind_while(until, once, consts[0], consts[1], start, params)
    return unflatten(tree, outs[: len(avals)])


def vary_loop(
    varying: Any, programs: list[Jaxpr], consts: list[list], carry: list[ShapedArray]
) -> tuple[list[Jaxpr], list[list], list[ShapedArray]]:
    """A loop that devices of a mesh may leave at different steps: every value in it varies.

    `programs` take their own consts, then the carry, or more, and the last gives the carry.
    """
    mine = lambda a: a.update(varying=a.varying | varying if a.varying else varying)
    spread = [bodies.vary_jaxpr(p, tuple(map(mine, p.in_avals))) for p in programs]
    if not all(spread):  # types then say less than is so
        return programs, consts, carry
    carry = list(map(mine, carry))
    *others, body = spread
    if body.out_avals != carry:
        body = bodies.cast_results(body, tuple(carry))
    own = [bodies.cast_values(cs, list(map(mine, map(typeof, cs)))) for cs in consts]
    return [*others, body], own, carry


def stage_carry(
    op: str, fun: Callable, args: tuple, tree: PyTreeDef, avals: Sequence[ShapedArray]
) -> tuple[bodies.StagedBody, list[ShapedArray]]:
    """Stage a body whose last argument is the carry; return it and the types of the first carry.

    `avals` are the types of all arguments. A weakly typed carry takes the dtype that the body
    returns.
    """
    args_tree, n = structure(args), tree.num_leaves
    avals = list(avals)
    first = len(avals) - n
    while True:
        body = bodies.stage_body(op, fun, args_tree, avals)
        if body.out_tree.num_leaves != n:
            break
        promoted = [*avals[:first], *bodies.promote_carry(avals[first:], body.out_avals)]
        if promoted == avals:
            break
        avals = promoted
    bodies.check_carry(op, fun, (tree, avals[first:]), (body.out_tree, body.out_avals))
    return body, avals[first:]


def check_predicate(cond_fun: Callable, cond: bodies.StagedBody) -> None:
    """Raise unless a predicate gives one truth value."""
    name = fun_name(cond_fun)
    if cond.out_tree != structure(0):
        got = show_structure(cond.out_tree, cond.out_avals)
        raise TypeError(f"while_loop: {name} must return a scalar bool; got {got}.")
    (aval,) = cond.out_avals
    if not dtypes.is_bool(aval.dtype):
        raise DtypeError(
            f"while_loop: {name} must return a scalar bool; got {aval}. Hint: return x != 0."
        )
    if aval.shape:
        raise ShapeError(
            f"while_loop: {name} must return a scalar bool; got {aval}. "
            "Hint: jnp.any(...) or jnp.all(...), or vmap for a loop of each element."
        )


@memo_jaxpr
def bound_steps(cond: Jaxpr, bound: int) -> Jaxpr:
    """A predicate that also wants the last of the carry, a counter, below a bound."""
    i, below, both = Var(COUNT), Var(TRUTH), Var(cond.out_avals[0])
    eqns = [
        *cond.eqns,
        Eqn(lt_p, [i, Literal(COUNT.dtype.type(bound), COUNT)], {}, [below]),
        Eqn(and_p, [cond.outvars[0], below], {}, [both]),
    ]
    return cond.replace(invars=[*cond.invars, i], outvars=[both], eqns=eqns)


# --------------------------------------------------------------------------------------------
# Loops between bounds.


@boundary
def fori_loop(
    lower: Any, upper: Any, body_fun: Callable, init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """Repeat a function for each integer from `lower` to `upper - 1`.

    The function is traced once, whatever the number of steps. This loop in Python gives the same
    result::

        def fori_loop(lower, upper, body_fun, init_val):
            val = init_val
            for i in range(lower, upper):
                val = body_fun(i, val)
            return val

    If both bounds are Python or NumPy integers, the loop is a `scan`, otherwise a `while_loop`.
    Forward and reverse mode go through both. The value must keep its structure, its shapes and its
    dtypes; a value that starts as a Python number takes the dtype that `body_fun` returns.

    Args:
      lower: the first index, a scalar integer. It may be traced.
      upper: the bound, a scalar integer that is not among the indices. It may be traced. If it is
        not above `lower`, the result is `init_val`.
      body_fun: a function `body_fun(i, val) -> val`, where `i` is a traced scalar integer.
      init_val: the value to start with, a pytree of arrays and numbers.
      unroll: the number of steps in one iteration of the compiled loop, an int, or True for all
        steps. It needs bounds that are known while the program is traced. The default is one step.

    Returns:
      The value after the last step, a pytree like `init_val`.

    Raises:
      DtypeError: the bounds differ in dtype, or only one of them is a float; `body_fun` returns
        another dtype.
      ShapeError: a bound is not a scalar.
      ValueError: `unroll` is given, and a bound is traced or an array.

    >>> print(lax.fori_loop(0, 5, lambda i, total: total + i, 0))
    10

    A bound may be traced; the program then serves all bounds:

    >>> power = weft.jit(lambda x, n: lax.fori_loop(0, n, lambda i, y: x * y, 1.0))
    >>> print(power(2.0, 3), power(2.0, 10))
    8.0 1024.0
    """
    check_callable("fori_loop", body_fun)
    if structure((lower, upper)).num_leaves != 2:
        raise TypeError(f"fori_loop: bounds must be integers; got {lower!r}, {upper!r}.")
    lower, upper, aval = common_bounds(lower, upper)
    known = isinstance(lower, int | np.integer) and isinstance(upper, int | np.integer)
    if not known and unroll not in (None, False, 1):
        raise ValueError(
            f"fori_loop: unroll needs bounds that are known now; got unroll={unroll} with bounds "
            f"{typeof(lower)}, {typeof(upper)}. Hint: mark them static in jit (static_argnums)."
        )
    if config.disable_jit:
        try:
            val = bodies.make_arrays(init_val)
            for i in range(operator.index(lower), operator.index(upper)):
                val = body_fun(bodies.make_arrays(i), val)
            return val
        except TracerError:  # bounds that vmap or grad of a traced function does not know
            pass
    init, tree = flatten(init_val)
    if has_float0(init):
        init_val = hide_float0(init_val)
        init, tree = flatten(init_val)
    args = (lower, init_val)
    avals = avals_of("fori_loop", [lower, *init], structure((args, {})), body_fun)
    avals = bodies.types_in_loop("fori_loop", avals[1:])
    body, avals = stage_carry("fori_loop", body_fun, args, tree, [aval, *avals])
    n = len(body.consts)
    jaxpr, consts = body.jaxpr, body.consts
    if varying := join_varying((typeof(lower), typeof(upper))):
        [jaxpr], [consts], avals = vary_loop(varying, [jaxpr], [consts], avals)
        lower, upper = (varying.cast(current.trace, x) for x in (lower, upper))
    start = bodies.cast_values(init, avals)
    if known:
        length = max(int(upper) - int(lower), 0)
        unroll = steps_per_turn(False if unroll is None else unroll, length)
        params = {"length": length, "reverse": False, "unroll": unroll}
        outs = bind_scan(add_index(jaxpr, n), consts, [lower, *start], [], params)
        return unflatten(tree, outs[1:])
    jaxpr = add_bound(jaxpr, n, typeof(upper))
    outs = bind_while(make_bound_test(jaxpr), jaxpr, [], consts, [lower, upper, *start], {})
    return unflatten(tree, outs[2:])


def common_bounds(lower: Any, upper: Any) -> tuple[Any, Any, ShapedArray]:
    """Bounds of one type, and that type; a Python number takes the dtype of the other bound.

    The index is counted from the lower bound, and is weakly typed if that is.
    """
    bounds = [x[()] if isinstance(x, np.ndarray) and not x.shape else x for x in (lower, upper)]
    avals = avals_of("fori_loop", bounds, structure((tuple(bounds), {})), fori_loop)
    for i, aval in enumerate(avals):
        if dtypes.is_bool(aval.dtype):
            known = isinstance(bounds[i], bool | np.bool_)
            bounds[i] = int(bounds[i]) if known else convert(bounds[i], dtypes.default_int(), True)
    low, high = map(typeof, bounds)
    if low.shape or high.shape or dtypes.is_complex(low.dtype) or dtypes.is_complex(high.dtype):
        raise ShapeError(f"fori_loop: bounds must be scalar integers; got {low}, {high}.")
    if not low.weak_type and not high.weak_type and low.dtype != high.dtype:
        raise DtypeError(
            f"fori_loop: bounds must have one dtype; got {low}, {high}. "
            f"Hint: upper.astype(jnp.{low.dtype.name})."
        )
    if dtypes.is_integer(low.dtype) != dtypes.is_integer(high.dtype):
        hint = "int(upper)" if dtypes.is_integer(low.dtype) else "int(lower)"
        raise DtypeError(
            f"fori_loop: bounds must both be integers or both floats; got {low}, {high}. "
            f"Hint: {hint}, or astype(int) of a traced one."
        )
    dtype, _ = dtypes.promote(((low.dtype, low.weak_type), (high.dtype, high.weak_type)))
    aval = ShapedArray((), dtype, low.weak_type and dtype == low.dtype)
    lower, upper = (literal(x, dtype) if type(x) in (int, float) else x for x in bounds)
    if typeof(upper).dtype != dtype:
        (upper,) = bodies.cast_values([upper], [aval])
    return *bodies.cast_values([lower], [aval]), upper, aval


@memo_jaxpr
def add_index(body: Jaxpr, n: int) -> Jaxpr:
    """A body (n consts, i, carry) -> carry that also gives i + 1."""
    i = body.invars[n]
    after, one = Var(i.aval), Literal(literal(1, i.aval.dtype))
    step = Eqn(add_p, [i, one], {}, [after])
    return body.replace(outvars=[after, *body.outvars], eqns=[step, *body.eqns])


@memo_jaxpr
def add_bound(body: Jaxpr, n: int, aval: ShapedArray) -> Jaxpr:
    """Do as `add_index` does, with the upper bound, of type `aval`, second in the carry."""
    body = add_index(body, n)
    bound, (after, *outvars) = Var(aval), body.outvars
    invars = [*body.invars[: n + 1], bound, *body.invars[n + 1 :]]
    return body.replace(invars=invars, outvars=[after, bound, *outvars])


@memo_jaxpr
def make_bound_test(body: Jaxpr) -> Jaxpr:
    """The predicate that the first of the carry of a body is below the second."""
    carry = [Var(a) for a in body.out_avals]
    pred = Var(TRUTH.update(varying=join_varying(body.out_avals[:2])))
    return Jaxpr((), carry, [pred], [Eqn(lt_p, carry[:2], {}, [pred])])
