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
    """A function whose derivative keeps its arguments, and computes all else again when needed.

    Memory for time: the backward pass of a network whose every layer is checkpointed holds the
    inputs of the layers and the intermediate values of one, and computes each layer twice. Also
    called `remat`.

    Args:
      fun: takes and returns pytrees of arrays. Without it, `checkpoint(...)` is a decorator.
      prevent_cse: keep the compiler from using the values of the first time for the second, which
        would undo it. Not needed for the body of a scan, where it can cost speed.
      policy: says which intermediate values are saved all the same: one of
        `weft.checkpoint_policies` or a function `(primitive, *avals, **params) -> bool`.
      budget: how much is kept besides the arguments: a number of bytes (an int), or a fraction (a
        float from 0 to 1) of what a compiled program keeps without `checkpoint`, where the compiler
        computes cheap elementwise operations again of itself. The values are chosen such that
        computing the rest again costs the least, within 0.5%, by estimates of each operation.
        Put it around the whole network: the backward pass then computes again in stages, cut where
        little is alive, and turn by turn in a scan, and holds one stage at a time, for which more
        may be computed again. With a budget of 0, or without `prevent_cse`, there is one stage.
        Bytes are of the function as it is differentiated: for one example under `vmap(grad(f))`,
        for one turn in the body of a `scan`. `.plan(*args)` of the result says what is kept. An
        error says the least possible, where results of what may happen only once do not fit.
      static_argnums, static_argnames: arguments that are Python values. If they are hashable, `fun`
        is staged once for each of them, else in each call.
      concrete: must be False; accepted for compatibility with JAX.

    >>> from weft import grad
    >>> print(grad(checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0
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
            """What the derivative keeps and computes again, at arguments like these."""
            jaxpr = jitted.find_program(args, kwargs)[0].jaxpr
            return MemoryPlan(choose_residuals(jaxpr, within, prevent_cse))

        out.plan = boundary(plan)
    return out


def choose_residuals(jaxpr: Jaxpr, budget: Budget, stages: bool) -> Choice:
    """What reverse mode of a closed jaxpr keeps within a budget, with respect to all its inputs."""
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

    `cost` is what would be computed again besides, were it not kept: about the number of operations
    of a matrix product that take as long.
    """

    aval: ShapedArray
    bytes: int  # of all turns, in the body of a scan
    source: str
    cost: float


class MemoryPlan:
    """What `checkpoint` keeps within a budget; `print` shows it as a table.

    `kept`: the values, each a `KeptValue`. `bytes`: theirs together. `limit`: the budget in bytes.
    `without_budget`: what a fraction is of: the bytes that a compiled program keeps without
    `checkpoint`. `cost`: of what is computed again, in so many `stages`, and `forward_cost` of the
    whole forward pass. Arguments, which are kept anyway, do not count.
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
    """`x`, an array or a pytree of arrays, under a name that a policy may save it by.

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
    """What the backward pass of `fun(*args, **kwargs)` keeps: types, and where each is from.

    The arguments come first, then values in the order in which they are computed.
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
    """Where the results of an equation are from: `output of sin from model.py:12:4 (loss)`."""
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
    """Print what the backward pass of `fun(*args, **kwargs)` keeps, a line for each array.

    >>> print_saved_residuals(checkpoint(lambda x: jnp.sin(jnp.sin(x))), jnp.ones(3))
    f32[3] from the argument x
    """
    for aval, text in saved_residuals(fun, *args, **kwargs):
        print(aval, text)
