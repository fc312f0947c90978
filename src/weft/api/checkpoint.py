"""`checkpoint`: derivatives that compute a function's intermediate values again, not keep them.

What is saved for the backward pass can be named, chosen by a policy, and listed. The primitive is
in control/remat.py, the policies are in checkpoint_policies.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.api.arguments import mark_arguments
from weft.api.functions import argument_names, avals_of, check_callable, flatten_call
from weft.api.jit import JitFunction
from weft.control.remat import Name, name_p, remat_p, split_by_names
from weft.core.aval import ShapedArray
from weft.core.jaxpr import Eqn, Jaxpr, Literal, bodies_of, variables_in
from weft.core.source import boundary, source_location
from weft.options import config
from weft.passes.budget import Budget, Choice, choose_values, count_bytes
from weft.passes.dce import dce_jaxpr
from weft.passes.inline import inline_calls
from weft.primitives.constant import Constant
from weft.primitives.families import check_parameter
from weft.pytrees import flatten, tree_map
from weft.run.pipeline import JitSpec
from weft.transforms.jvp import jvp_jaxpr
from weft.transforms.linearize import linearize
from weft.util import alias, fun_name
from weft.watch.leaks import stage_function


def checkpoint(
    fun: Callable | None = None,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable | None = None,
    budget: int | float | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    concrete: bool = False,
) -> Any:
    """Return a function that stores no intermediate values for its derivative, but recomputes them.

    It saves memory for time. Reverse mode of an ordinary function stores every intermediate value
    that the backward pass needs; reverse mode of a checkpointed function stores its arguments only,
    and runs the function once more. If every layer of a network is checkpointed, the backward pass
    holds the inputs of all layers and the intermediate values of one layer, and computes each layer
    twice. Values are the same as without `checkpoint`. `remat` is another name of this function.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays. Without it,
        `checkpoint(...)` returns a decorator.
      prevent_cse: if True, the default, the compiler must not replace the second computation by the
        values of the first, which would need the memory again. It is not needed in the body of a
        `scan`, where it may cost time. A sequence of bools counts as True if one of them is.
      policy: says which intermediate values are stored all the same: one of
        `weft.checkpoint_policies`, or a function `(primitive, *avals, **params) -> bool`. By
        default none are.
      budget: the memory for intermediate values besides the arguments. An int is a number of bytes.
        A float from 0 to 1 is a fraction of what a compiled program stores without `checkpoint`.
        The values to store are chosen such that computing the others again costs the least, within
        0.5 %, by estimates of each operation. Use it around the whole network: the backward pass
        then computes again in stages, and holds one stage at a time. With a budget of 0, or without
        `prevent_cse`, all is one stage. Bytes are counted for the function that is
        differentiated: for one example under `vmap(grad(f))`, for one step in the body of a `scan`.
        None, the default, sets no budget.
      static_argnums: an int or a sequence of ints, the positions of arguments that stay Python
        values. If they are hashable, the function is traced once for each of their values;
        otherwise in each call. By default there are none.
      static_argnames: the names of such arguments, a str or a sequence of strs.
      concrete: must be False; it is accepted for compatibility with JAX.

    Returns:
      A function with the results of `fun`. With a budget it has a method `.plan(*args)`, which
      returns a `MemoryPlan`: the values that are stored, and the cost of the others.

    Raises:
      NotImplementedError: `concrete` is True.
      TypeError: `fun` is not a function, or the budget is not a number.
      ValueError: the budget is negative, or a float above 1; both `policy` and `budget` are given.

    >>> from weft import grad
    >>> print(grad(checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0

    Store the products of matrices, and compute the cheap operations again:

    >>> save_dots = weft.checkpoint_policies.dots_saveable
    >>> layer = lambda w, x: jnp.sum(jnp.sin(w @ x))
    >>> from weft.ad_checkpoint import print_saved_residuals
    >>> print_saved_residuals(checkpoint(lambda x: jnp.sin(jnp.sin(x))), jnp.ones(3))
    f32[3] from the argument x
    >>> print(weft.grad(weft.checkpoint(layer, policy=save_dots))(jnp.zeros((2, 2)), jnp.ones(2)))
    [[1. 1.]
     [1. 1.]]

    Give a budget, and see what is stored within it:

    >>> f = checkpoint(lambda x, w: jnp.sum(jnp.tanh(jnp.exp(x @ w))), budget=0.5)
    >>> plan = f.plan(jnp.ones((8, 4)), jnp.ones((4, 2)))
    >>> plan.bytes, plan.limit, plan.without_budget
    (64, 64, 128)
    """
    if concrete:
        raise NotImplementedError(
            "checkpoint: concrete must be False; got True. Hint: static_argnums marks arguments "
            "that Python code needs the values of."
        )
    if fun is None:
        options: dict[str, Any] = {"policy": policy, "budget": budget}
        options |= {"static_argnums": static_argnums, "static_argnames": static_argnames}
        return functools.partial(checkpoint, prevent_cse=prevent_cse, **options)
    check_callable("checkpoint", fun, wraps=True)
    if policy is not None:
        check_callable("checkpoint policy", policy)
    barrier = read_flags(prevent_cse)
    limit = None if budget is None else check_budget(budget, policy)
    static = mark_arguments(fun, static_argnums, static_argnames, "static_argnums")
    return wrap_checkpointed(fun, static, barrier, policy, limit)


def read_flags(prevent_cse: Any) -> bool:
    """The flag `prevent_cse`, or whether one of several is set."""
    is_set = lambda p: p if isinstance(p, bool) else any(p)
    return check_parameter("checkpoint", "prevent_cse", prevent_cse, "a bool or several", is_set)


def wrap_checkpointed(
    fun: Callable, static: Any, prevent_cse: bool, policy: Callable | None, limit: Budget | None
) -> Callable:
    """The function that `checkpoint` returns, of arguments that it has checked."""
    # staged as jit does it, sharing programs with the jits of the function
    jitted = JitFunction(fun, JitSpec(fun_name(fun)), static, op="checkpoint")
    fixed = {"prevent_cse": prevent_cse, "differentiated": False, "policy": limit or policy}

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if config.disable_jit:
            return fun(*args, **kwargs)
        program, leaves = jitted.find_program(args, kwargs)
        return program.result(remat_p.apply(*program.consts, *leaves, jaxpr=program.jaxpr, **fixed))

    out: Any = boundary(wrapped, fun)
    if limit is not None:
        within: Budget = limit

        def plan(*args: Any, **kwargs: Any) -> MemoryPlan:
            """Return the values that the derivative keeps and recomputes, for such arguments."""
            jaxpr = jitted.find_program(args, kwargs)[0].jaxpr
            return MemoryPlan(choose_residuals(jaxpr, within, prevent_cse))

        out.plan = boundary(plan)
    return out


def choose_residuals(jaxpr: Jaxpr, budget: Budget, stages: bool) -> Choice:
    """Choose the values that reverse mode of a closed jaxpr keeps within a budget."""
    moved = tuple(dtypes.is_inexact(a.dtype) for a in jaxpr.in_avals)
    unknown = (*[False] * len(moved), *[True] * sum(moved))
    early, late, out_unknown = split_by_names(jvp_jaxpr(jaxpr, moved)[0], unknown, True)
    return choose_values(early, out_unknown.count(False), budget, late if stages else None)


def check_budget(budget: Any, policy: Any) -> Budget:
    """The budget of `checkpoint` in its form for programs."""
    if policy is not None:
        raise ValueError(
            f"checkpoint: only one of policy and budget may be given; got both, budget={budget!r}."
        )
    number = not isinstance(budget, (bool, np.bool_)) and isinstance(budget, (Integral, Real))
    if not number or not budget >= 0 or (not isinstance(budget, Integral) and budget > 1):
        raise (ValueError if number else TypeError)(
            "checkpoint: budget must be a number of bytes (an int, at least 0) or a fraction (a "
            f"float from 0 to 1); got {budget!r}. Hint: checkpoint(f, budget=0.5)."
        )
    return Budget(int(budget) if isinstance(budget, Integral) else float(budget))


class KeptValue(NamedTuple):
    """A value that is kept for the backward pass.

    `cost` is the cost of recomputation that it saves, in operations of a matrix product that take
    about the same time.
    """

    aval: ShapedArray
    bytes: int  # of all turns, in the body of a scan
    source: str
    cost: float


class MemoryPlan:
    """The values that `checkpoint` stores within a budget; `print` shows them as a table.

    Arguments, which are stored anyway, do not count.

    Attributes:
      kept: a list with a `KeptValue` for each value that is stored.
      bytes: the bytes of all values that are stored.
      limit: the budget in bytes.
      without_budget: the bytes that a compiled program stores without `checkpoint`.
      cost: the estimated cost of the values that are computed again.
      stages: the number of stages that it is computed in.
      forward_cost: the estimated cost of the whole forward pass.

    >>> f = weft.checkpoint(lambda x: jnp.sum(jnp.tanh(jnp.exp(x))), budget=1.0)
    >>> f.plan(jnp.ones(4)).limit
    32
    """

    def __init__(self, choice: Choice):
        self.kept = [
            KeptValue(v.aval, count_bytes(v, step), describe_origin(step.eqn), cost)  # type: ignore
            for (v, step), cost in zip(choice.kept, choice.costs, strict=True)
        ]
        self.bytes = sum(x.bytes for x in self.kept)
        self.limit, self.without_budget = choice.limit, choice.whole
        self.stages = choice.stages.count
        self.cost, self.forward_cost = choice.cost, choice.forward

    def __repr__(self) -> str:
        share = 100 * self.cost / max(self.forward_cost, 1.0)
        lines = [
            f"kept: {self.bytes:,} bytes of {self.limit:,} (without a budget: "
            f"{self.without_budget:,}); computed again: {share:.1f}% of the forward pass, "
            f"in {self.stages} stage{'s'[: self.stages > 1]}"
        ]
        rows = sorted(self.kept, key=lambda x: -x.cost)
        lines += [f"{x.bytes:>14,}  {x.cost:>9.2g}  {x.aval} {x.source}" for x in rows]
        if rows:
            lines.insert(1, f"{'bytes':>14}  {'cost':>9}  value")
        return "\n".join(lines)


remat = alias(checkpoint, "remat")


def checkpoint_name(x: Any, name: str) -> Any:
    """Give a value a name, so that a policy of `checkpoint` may store it.

    The function returns its argument. The name has a meaning only within a checkpointed function:
    see `checkpoint_policies.save_only_these_names` and its neighbours.

    Args:
      x: an array or a pytree of arrays.
      name: the name, a str. Several values may share a name.

    Returns:
      The same values as `x`.

    Raises:
      TypeError: the name is not a str.

    >>> from weft import checkpoint_policies, grad
    >>> policy = checkpoint_policies.save_only_these_names("angle")
    >>> f = checkpoint(lambda x: jnp.exp(checkpoint_name(jnp.sin(x), "angle")), policy=policy)
    >>> print(grad(f)(0.0))
    1.0
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: name must be a str; got {name!r}.")
    avals_of("checkpoint_name", *flatten(((x,), {})), checkpoint_name)
    return tree_map(lambda leaf: name_p.apply(leaf, name=name)[0], x)


def saved_residuals(fun: Callable, *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """Return the types and the origins of the values that reverse mode of a function stores.

    Use it to see what `checkpoint` saves. Nothing is computed.

    Args:
      fun: a function of pytrees of arrays.
      *args: its arguments, arrays or ShapeDtypeStructs in pytrees.
      **kwargs: its keyword arguments, likewise.

    Returns:
      A list of pairs `(aval, text)`. The arguments come first, then the other values in the order
      of their computation.

    Raises:
      TypeError: `fun` is not a function.

    >>> saved_residuals(checkpoint(lambda x: jnp.sin(jnp.sin(x))), jnp.ones(3))
    [(ShapedArray(float32[3]), 'from the argument x')]
    """
    flat, _, avals = flatten_call("saved_residuals", fun, args, kwargs, structs=True)
    moved = [dtypes.is_inexact(a.dtype) for a in avals]
    jaxpr, _ = stage_function(lambda *xs: linearize(flat, xs, moved)[2], avals, fun_name(fun))
    jaxpr = inline_calls(dce_jaxpr(jaxpr)[0])
    names = zip(jaxpr.invars, argument_names(fun, flat.in_tree), strict=True)
    rows: list[tuple[Any, str]] = [(v, f"from the argument {name}") for v, name in names]
    rows += [(v, "from a constant") for v in jaxpr.constvars]
    rows += [(v, describe_origin(eqn)) for eqn in jaxpr.eqns for v in eqn.outvars]
    literals = [a for a in jaxpr.outvars if type(a) is Literal]
    kept = {*variables_in(jaxpr.outvars)}
    found = [(v.aval, text) for v, text in rows if v in kept]
    return found + [(a.aval, "from a literal") for a in literals]


def describe_origin(eqn: Eqn) -> str:
    """Name the origin of an equation's results: `output of sin from model.py:12:4 (loss)`."""
    if isinstance(eqn.primitive, Name):
        what = f"named {eqn.params['name']!r}"
    elif any(b.names_flow_in for b in bodies_of(eqn)):
        what = f"output of jitted function {eqn.params['name']!r}"
    elif isinstance(eqn.primitive, Constant):
        return "from a constant"
    else:
        what = f"output of {eqn.primitive.name}"
    place = source_location(eqn.source)
    return f"{what} from {place}" if place else what


def print_saved_residuals(fun: Callable, *args: Any, **kwargs: Any) -> None:
    """Print the types and the origins of the values that reverse mode of a function stores.

    Args:
      fun: a function of pytrees of arrays.
      *args: its arguments, arrays or ShapeDtypeStructs in pytrees.
      **kwargs: its keyword arguments, likewise.

    Returns:
      None. A line is printed for each array.

    Raises:
      TypeError: `fun` is not a function.

    >>> print_saved_residuals(checkpoint(lambda x: jnp.sin(jnp.sin(x))), jnp.ones(3))
    f32[3] from the argument x
    """
    for aval, text in saved_residuals(fun, *args, **kwargs):
        print(aval, text)
