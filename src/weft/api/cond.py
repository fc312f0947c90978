"""`cond`, `switch` and `platform_dependent`: what runs is chosen when the program runs.

Predicates, pytrees and the checks of what branches return are here; what a transformation does with
the choice is control/cond.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.bodies import (
    StagedBody,
    cast_results,
    cast_values,
    make_arrays,
    stage_body,
    vary_jaxpr,
)
from weft.api.functions import avals_of, check_callable, leaf_names
from weft.api.structures import call_structure, has_float0, hide_float0
from weft.control.cond import cond_p, join_result_types, take_inputs
from weft.core.aval import ShapedArray, is_valid_value, typeof
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import join_varying
from weft.core.source import boundary
from weft.core.stage import has_tracked_axes
from weft.core.trace import is_concrete
from weft.errors import DtypeError, PytreeError, ShapeError, ShardingTypeError
from weft.mesh.client import default_device
from weft.mesh.spec import PartitionSpec
from weft.options import config
from weft.primitives.checks import check_inside
from weft.primitives.elementwise import clamp, ne
from weft.primitives.layout import convert
from weft.pytrees import find_mismatches, flatten, unflatten
from weft.util import fun_name

_NO_OPERAND = object()


@boundary
def cond(
    pred: Any,
    true_fun: Callable,
    false_fun: Callable,
    *operands: Any,
    operand: Any = _NO_OPERAND,
    linear: Any = None,
) -> Any:
    """Call one of two functions, as a predicate says when the program runs.

    It stands for an `if` whose condition depends on the values of arrays. Both functions are
    traced, and only one runs. Under `vmap` over the predicate both run and the result is selected,
    as with `jnp.where`. Derivatives go through the function that ran.

    Args:
      pred: a scalar bool, or a real number, which is true unless it is zero.
      true_fun: the function that is called if `pred` is true. It takes the operands and returns a
        pytree of arrays; it may close over other values.
      false_fun: the function that is called otherwise. Its result must have the structure of the
        other one, and arrays of the same shapes and dtypes; a weak type may meet a strong one.
      *operands: the arguments of both functions, pytrees of arrays.
      operand: one operand by keyword, in place of `operands`.
      linear: is accepted for compatibility with older versions of JAX, and ignored.

    Returns:
      The result of the function that was called.

    Raises:
      DtypeError: the results differ in dtype, or the predicate is complex.
      PytreeError: the results differ in structure.
      ShapeError: the results differ in shape, or the predicate is not a scalar.
      TypeError: the predicate is not a bool or a number.

    >>> lax.cond(3 > 2, lambda x: x + 1.0, lambda x: x * 2.0, 5.0)
    Array(6., dtype=float32, weak_type=True)
    >>> safe_log = lambda x: lax.cond(x > 0, jnp.log, lambda x: -jnp.inf, x)
    >>> print(weft.vmap(safe_log)(jnp.array([-1.0, 1.0])))
    [-inf   0.]

    The oldest form of JAX, `cond(pred, true_operand, true_fun, false_operand, false_fun)`, gives
    each function an operand of its own:

    >>> print(lax.cond(True, 1.0, lambda x: x + 1.0, 2.0, lambda x: x - 1.0))
    2.0
    """
    operands = merge_operands("lax.cond(pred, true_fun, false_fun, x, y)", operands, operand)
    if not callable(true_fun) and len(operands) == 2 and callable(false_fun):
        x, on_true, (y, on_false) = true_fun, false_fun, operands
        check_callable("cond", on_false)
        return cond(pred, lambda x, y: on_true(x), lambda x, y: on_false(y), x, y)
    check_callable("cond", true_fun)
    check_callable("cond", false_fun)
    index = predicate_index(pred)
    names = [
        f"{which} ({fun_name(f)})"
        for which, f in (("false_fun", false_fun), ("true_fun", true_fun))
    ]
    return bind_choice("cond", index, [false_fun, true_fun], operands, names)


def merge_operands(call: str, operands: tuple, operand: Any) -> tuple:
    """The operands of a call like `call`, given by position or as `operand`."""
    if operand is _NO_OPERAND:
        return operands
    if operands:
        op = call.removeprefix("lax.").partition("(")[0]
        raise TypeError(
            f"{op}: operands must be given by position or as `operand`; got both. Hint: {call}."
        )
    return (operand,)


def predicate_index(pred: Any) -> Any:
    """The index, 0 or 1, of the branch that a predicate chooses."""
    if not is_valid_value(pred):
        raise TypeError(
            f"cond: the predicate must be a bool or a number; got {pred!r} of type "
            f"{type(pred).__name__}."
        )
    aval = typeof(pred)
    if aval.shape:
        raise ShapeError(
            f"cond: the predicate must be a scalar; got {aval}. "
            "Hint: pred.all(), pred.any(), or jnp.where for a choice by element."
        )
    if dtypes.is_complex(aval.dtype):
        raise DtypeError(
            f"cond: the predicate must be a bool or a real number; got {aval}. Hint: pred != 0."
        )
    if isinstance(pred, bool | int | float | np.generic):
        return np.int32(pred != 0)
    if not dtypes.is_bool(aval.dtype):
        pred = ne(pred, 0)
    return convert(pred, np.dtype(np.int32))


@boundary
def switch(
    index: Any,
    branches: Sequence[Callable],
    *operands: Any,
    operand: Any = _NO_OPERAND,
    linear: Any = None,
) -> Any:
    """Call one function of a list, as an index says when the program runs.

    It is `cond` for any number of branches. All functions are traced, and only one runs. Under
    `vmap` over the index all run and the result is selected. Derivatives go through the function
    that ran.

    Args:
      index: a scalar integer. An index below 0 chooses the first branch, one above the last
        position the last branch. Under the option `check_bounds` "all", such an index raises.
      branches: a sequence of functions of the operands. Their results must have one structure, and
        arrays of the same shapes and dtypes.
      *operands: the arguments of the functions, pytrees of arrays.
      operand: one operand by keyword, in place of `operands`.
      linear: is accepted for compatibility with older versions of JAX, and ignored.

    Returns:
      The result of the function that was called.

    Raises:
      DtypeError: the index is not an integer.
      ShapeError: the index is not a scalar.
      ValueError: `branches` is empty.

    >>> lax.switch(1, [lambda x: x + 1.0, lambda x: x * 2.0], 5.0)
    Array(10., dtype=float32, weak_type=True)
    >>> waves = [jnp.sin, jnp.cos, jnp.tanh]
    >>> print(weft.vmap(lambda i: lax.switch(i, waves, 0.0))(jnp.array([0, 1, 7])))
    [0. 1. 0.]
    """
    operands = merge_operands("lax.switch(index, branches, x, y)", operands, operand)
    if not isinstance(branches, Iterable) or isinstance(branches, np.ndarray):
        raise TypeError(f"switch: branches must be a sequence of functions; got {branches!r}.")
    branches = list(branches)
    for f in branches:
        check_callable("switch", f)
    if not branches:
        raise ValueError("switch: there must be at least one branch; got none.")
    index = branch_index(index, len(branches))
    if len(branches) == 1:
        return branches[0](*operands)
    names = [f"branch {i} ({fun_name(f)})" for i, f in enumerate(branches)]
    return bind_choice("switch", index, branches, operands, names)


def branch_index(index: Any, count: int) -> Any:
    """An index held to the range of `count` branches, as an int32."""
    if not is_valid_value(index):
        raise TypeError(
            f"switch: the index must be an integer; got {index!r} of type {type(index).__name__}."
        )
    aval = typeof(index)
    if aval.shape:
        raise ShapeError(f"switch: the index must be a scalar; got {aval}.")
    if not dtypes.is_integer(aval.dtype):
        hint = "lax.cond" if dtypes.is_bool(aval.dtype) else "index.astype(jnp.int32)"
        raise DtypeError(f"switch: the index must be an integer; got {aval}. Hint: {hint}.")
    if config.check_bounds == "all":
        check_inside(f"switch: the index must be in [0, {count}); got {{}}.", index, 0, count)
    if count == 1:
        return np.int32(0)
    if isinstance(index, int | np.generic):
        return np.int32(min(max(int(index), 0), count - 1))
    return clamp(0, convert(index, np.dtype(np.int32)), count - 1)


def bind_choice(
    op: str, index: Any, funs: Sequence[Callable], operands: tuple, names: Sequence[str]
) -> Any:
    """Stage the functions, make their programs alike, and bind `cond`."""
    if config.disable_jit and is_concrete(index):
        return funs[int(index)](*make_arrays(operands))
    leaves, tree = flatten(operands)
    if has_float0(leaves):
        leaves, tree = flatten(hide_float0(operands))
    avals = avals_of(op, leaves, call_structure(tree), funs[0])
    order = range(len(funs))  # of a cond the function for True comes first, and runs first in JAX
    staged = {
        i: stage_body(op, funs[i], tree, avals) for i in (order[::-1] if op == "cond" else order)
    }
    bodies = [staged[i] for i in order]
    check_branches(op, bodies, names)
    branches, consts = share_consts(bodies)
    given = [*consts, *leaves]
    if has_tracked_axes():
        branches, given = unify_varying(branches, index, given)
    outs = cond_p.apply(index, *given, branches=branches)
    return unflatten(bodies[0].out_tree, outs)


def unify_varying(
    branches: tuple[Jaxpr, ...], index: Any, operands: Sequence[Any]
) -> tuple[tuple[Jaxpr, ...], list]:
    """Branches whose results vary alike over a mesh, and operands that vary as the index does.

    Values that all devices share are made varying before the branch, so that their cotangents are
    summed over the devices after it, and not within a branch that only some devices take.
    """
    chosen = typeof(index)
    avals = [typeof(x) for x in operands]
    if chosen.varying is not None:
        apart = [a.update(varying=join_varying((a, chosen))) for a in avals]
        spread = [vary_jaxpr(b, tuple(apart)) for b in branches]
        if all(spread):
            branches, avals = tuple(spread), apart
    outs = join_result_types([b.out_avals for b in branches], chosen)
    if any(b.out_avals != outs for b in branches):
        branches = tuple([cast_results(b, tuple(outs)) for b in branches])
    return branches, cast_values(operands, avals)


def check_branches(op: str, bodies: Sequence[StagedBody], names: Sequence[str]) -> None:
    """Raise unless the branches return one structure and equal types, weak types aside."""
    first = bodies[0]
    for body, name in zip(bodies[1:], names[1:], strict=True):
        if body.out_tree != first.out_tree:
            apart = next(find_mismatches(first.out_tree, body.out_tree)).between(
                f"the result of {names[0]}", f"that of {name}"
            )
            raise PytreeError(f"{op}: branches must return the same structure; got {apart}.")
        for leaf, a, b in zip(
            leaf_names("result", first.out_tree), first.out_avals, body.out_avals, strict=True
        ):
            if a.update(weak_type=False, varying=None) is not b.update(
                weak_type=False, varying=None
            ):
                raise branch_mismatch_error(op, leaf, (names[0], a), (name, b))


def branch_mismatch_error(
    op: str, leaf: str, one: tuple[str, ShapedArray], other: tuple[str, ShapedArray]
) -> Exception:
    """The error for branches that return different types, with the cast to write."""
    (one_name, a), (other_name, b) = one, other
    got = f"got {a} from {one_name} and {b} from {other_name} at {leaf}."
    if a.shape != b.shape:
        return ShapeError(f"{op}: branches must return arrays of equal shapes; {got}")
    if a.dtype == b.dtype:
        spec = PartitionSpec() if a.sharded is None else a.sharded.spec
        return ShardingTypeError(
            f"{op}: branches must return arrays with one layout over the mesh; {got} "
            f"Hint: weft.reshard({leaf}, {spec}) in {other_name}."
        )
    to, where = (
        (a, other_name) if dtypes.promote_types(a.dtype, b.dtype) == a.dtype else (b, one_name)
    )
    return DtypeError(
        f"{op}: branches must return arrays of equal dtypes; {got} "
        f"Hint: {leaf}.astype(jnp.{to.dtype.name}) in {where}."
    )


def share_consts(bodies: Sequence[StagedBody]) -> tuple[tuple[Jaxpr, ...], list]:
    """The programs of bodies, each taking what any of them closed over, and those values."""
    consts = {id(c): c for body in bodies for c in body.consts}
    branches = []
    for body in bodies:
        place = {id(c): i for i, c in enumerate(body.consts)}
        own = range(len(place), len(body.jaxpr.invars))
        given = [place.get(k, typeof(c)) for k, c in consts.items()]
        branches.append(take_inputs(body.jaxpr, (*given, *own)))
    return tuple(branches), list(consts.values())


def platform_dependent(
    *args: Any, default: Callable | None = None, **per_platform: Callable
) -> Any:
    """Call the function for the platform in use.

    It is for programs that have a faster or another form on some kind of device. The platform of
    the default device counts. It is known before the program is traced, so only the chosen function
    is called.

    Args:
      *args: the arguments of the function, pytrees of arrays.
      default: the function for platforms that are not named. By default there is none.
      **per_platform: a function for each platform, by keyword: "cpu", "gpu", "cuda", "rocm", "tpu".

    Returns:
      The result of the function.

    Raises:
      NotImplementedError: the platform has no function, and no default is given.

    >>> lax.platform_dependent(3.0, cpu=lambda x: x + 1.0, tpu=lambda x: x - 1.0)
    4.0
    """
    platform = default_device().platform
    names = [platform, *(("cuda", "rocm") if platform == "gpu" else ())]
    fun = next((per_platform[n] for n in names if n in per_platform), default)
    if fun is None:
        raise NotImplementedError(
            f"platform_dependent: there must be a function for the platform in use, {platform}; "
            f"got {', '.join(sorted(per_platform)) or 'none'}. Hint: default=f."
        )
    check_callable("platform_dependent", fun)
    return fun(*args)
