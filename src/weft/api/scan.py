"""`scan`, `map`: loops over arrays, on pytrees.

What a scan is, with its rules, is control/scan.py; loops of unknown length are api/while_loop.py's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from weft.api import bodies
from weft.api.functions import avals_of, check_callable, leaf_names
from weft.api.structures import has_float0, hide_float0, show_structure, stack_float0
from weft.control.jit import jit_p
from weft.control.scan import bind_scan
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Axis
from weft.core.source import boundary
from weft.errors import PytreeError, ShapeError, ShardingTypeError
from weft.options import config
from weft.primitives.families import check_integer
from weft.primitives.layout import collapse, reshape
from weft.primitives.slicing import concatenate, index_in_dim, slice_in_dim, stack
from weft.pytrees import PyTreeDef, flatten, structure, tree_map, unflatten
from weft.transforms.batch import batch_jaxpr, mapped_aval
from weft.util import fun_name


@boundary
def scan(
    f: Callable,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Apply a function to the elements of arrays in order, with a carry from step to step.

    It is the loop for recurrences: time series, recurrent networks, steps of a solver. The function
    is traced once, whatever the number of steps, so a long loop compiles as fast as a short one.
    Forward and reverse mode both go through it. This loop in Python gives the same result::

        def scan(f, init, xs, length=None):
            carry, ys = init, []
            for x in xs:  # xs=None: [None] * length
                carry, y = f(carry, x)
                ys.append(y)
            return carry, stack(ys)

    The carry must keep its structure, its shapes and its dtypes from step to step. A carry that
    starts as a Python number is weakly typed: it takes the dtype that `f` returns. Reverse mode
    stores the residuals of every step; `checkpoint` around `f` stores the carries instead.

    Args:
      f: a function `f(carry, x) -> (carry, y)`. `x` has the structure of `xs`, its arrays without
        their first axis. `y` is any pytree of arrays, or None.
      init: the carry of the first step, a pytree of arrays and numbers.
      xs: a pytree of arrays whose first axes are of one length. None, the default, for a loop
        without inputs; `x` is then None.
      length: the number of steps, an int. It is needed only where `xs` has no arrays, and must
        otherwise agree with them. It must be known while the program is traced.
      reverse: if True, the loop goes from the last element to the first. The ys keep the order of
        the xs: `ys[i]` belongs to `xs[i]`.
      unroll: the number of steps in one iteration of the compiled loop, an int. More steps cost
        compile time and may save time where a step is short. True unrolls all steps; 0 and False
        mean one step, the default.

    Returns:
      A pair `(carry, ys)`: the carry after the last step, and the ys of all steps, each array with
      a new first axis of the number of steps.

    Raises:
      DtypeError: `f` returns a carry of another dtype.
      PytreeError: `f` does not return a pair, or a carry of another structure.
      ShapeError: `f` returns a carry of another shape; the first axes of `xs` differ in length, or
        are missing.
      ValueError: neither `length` nor an array in `xs` is given; `unroll` is negative or not an
        int.

    >>> total, sums = lax.scan(lambda c, x: (c + x, c + x), 0.0, jnp.arange(4.0))
    >>> print(total, sums)
    6.0 [0. 1. 3. 6.]

    The carry and the xs may be pytrees. This is Newton's law for a sequence of forces:

    >>> def step(state, force):
    ...     v = state["v"] + 0.5 * force
    ...     x = state["x"] + 0.5 * v
    ...     return {"x": x, "v": v}, x
    >>> final, path = lax.scan(step, {"x": 0.0, "v": 0.0}, jnp.array([1.0, 0.0, 0.0]))
    >>> print(path)
    [0.25 0.5  0.75]

    With `reverse` the loop starts at the end; without `xs` it runs `length` steps:

    >>> print(lax.scan(lambda c, x: (c + x, c + x), 0, jnp.arange(4), reverse=True)[1])
    [6 6 5 3]
    >>> print(lax.scan(lambda c, _: (2 * c, c), 1, length=5)[1])
    [ 1  2  4  8 16]
    """
    check_callable("scan", f)
    carry, carry_tree = flatten(init)
    xs_leaves, xs_tree = flatten(xs)
    if has_float0([*carry, *xs_leaves]):
        length = next((x.shape[0] for x in xs_leaves), length)
        init, xs = hide_float0(init), hide_float0(xs, 1)
        (carry, carry_tree), (xs_leaves, xs_tree) = flatten(init), flatten(xs)
    avals = avals_of("scan", [*carry, *xs_leaves], structure(((init, xs), {})), f)
    avals = bodies.types_in_loop("scan", avals)
    xs_leaves = bodies.cast_values(xs_leaves, avals[len(carry) :])
    avals, x_avals = avals[: len(carry)], avals[len(carry) :]
    length = scan_length("scan", x_avals, xs_tree, length)
    if config.disable_jit and length:
        return scan_in_python(f, init, xs, length, reverse)
    x_avals = [mapped_aval(a, 0) for a in x_avals]
    body, avals, y_tree = stage_scan(f, structure((init, xs)), carry_tree, avals, x_avals, length)
    params = {
        "length": length,
        "reverse": bool(reverse),
        "unroll": steps_per_turn(unroll, length),
        "_split_transpose": bool(_split_transpose),
    }
    outs = bind_scan(body.jaxpr, body.consts, bodies.cast_values(carry, avals), xs_leaves, params)
    return unflatten(carry_tree, outs[: len(avals)]), unflatten(y_tree, outs[len(avals) :])


def stage_scan(
    f: Callable,
    args_tree: PyTreeDef,
    carry_tree: PyTreeDef,
    avals: list,
    x_avals: list,
    length: int,
) -> tuple[bodies.StagedBody, list[ShapedArray], PyTreeDef]:
    """The body, staged; the types that the carry starts with; the structure of y.

    A weakly typed carry takes the dtype that the body gives it.
    """
    while True:
        body = bodies.stage_body("scan", f, args_tree, [*avals, *x_avals])
        out_carry_tree, y_tree = pair_trees(f, body)
        n = out_carry_tree.num_leaves
        promoted = bodies.promote_carry(avals, body.out_avals[:n]) if n == len(avals) else avals
        if promoted == avals:
            break
        avals = promoted
    bodies.check_carry("scan", f, (carry_tree, avals), (out_carry_tree, body.out_avals[:n]))
    return body, avals, stack_float0(y_tree, length) if body.hides else y_tree


def scan_length(op: str, avals: Sequence[ShapedArray], tree: PyTreeDef, length: int | None) -> int:
    """The number of steps, which all the xs and `length` agree on."""
    names = leaf_names("xs", tree)
    for name, aval in zip(names, avals, strict=True):
        if not aval.shape:
            raise ShapeError(
                f"{op}: each array of xs must have an axis to go along; got {aval} at {name}. "
                "Hint: close over what is the same in every step."
            )
        if aval.sharded is not None and aval.sharded.entries[0]:
            spec = aval.sharded.update(entries=((), *aval.sharded.entries[1:]))
            raise ShardingTypeError(
                f"{op}: the first axes of xs must not be split over a mesh; got {aval} at {name}. "
                f"Hint: weft.reshard({name}, {spec.spec if spec else 'P()'})."
            )
    if length is not None:
        length = check_integer(op, "length", length, 0, 2**63 - 1)
    elif not avals:
        if op == "map":
            raise ValueError(
                "map: needs arrays in xs; got none. "
                "Hint: lax.map(lambda i: f(), jnp.arange(10)) for 10 calls."
            )
        raise ValueError(f"{op}: needs arrays in xs, or length; got neither. Hint: length=10.")
    for name, aval in zip(names, avals, strict=True):
        if length is not None and aval.shape[0] != length:
            raise ShapeError(
                f"{op}: the first axes of xs must be as long as length; got {aval} at {name} "
                f"and length={length}."
            )
        if aval.shape[0] != avals[0].shape[0]:
            raise ShapeError(
                f"{op}: the first axes of xs must be equally long; got {avals[0]} at {names[0]} "
                f"and {aval} at {name}."
            )
    return avals[0].shape[0] if length is None else length


def pair_trees(f: Callable, body: bodies.StagedBody) -> Sequence[PyTreeDef]:
    """The structures of carry and y, of a body that returns a pair of them."""
    children = body.out_tree.children()
    if len(children) != 2 or body.out_tree.node_data()[0] not in (tuple, list):
        raise PytreeError(
            f"scan: {fun_name(f)} must return a pair (carry, y); "
            f"got {show_structure(body.out_tree, body.out_avals)}. "
            "Hint: return carry, None."
        )
    return children


def steps_per_turn(unroll: int | bool, length: int) -> int:
    """The number of steps that `unroll` means: all for True, one for 0 and False."""
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    try:
        steps = operator.index(unroll)
    except TypeError:
        steps = -1
    if steps < 0:
        raise ValueError(f"scan: unroll must be a bool or an integer >= 0; got {unroll!r}.")
    return max(steps, 1)


def scan_in_python(f: Callable, carry: Any, xs: Any, length: int, reverse: bool) -> tuple[Any, Any]:
    """The loop step by step in Python, under disable_jit."""
    carry, ys = bodies.make_arrays(carry), []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, index_leaves(xs, i))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, tree_map(lambda *leaves: stack(leaves), *ys)


def index_leaves(xs: Any, i: int) -> Any:
    """The leaves of `xs` at a place along their first axis."""
    return tree_map(lambda x: index_in_dim(x, i, keepdims=False), xs)


@boundary
def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each element along the first axis of arrays, one after another.

    It computes what `vmap` computes with less memory and in more time, as the intermediate values
    of only one element exist at a time. With `batch_size`, it computes a few elements at a time.

    Args:
      f: a function of one element, which has the structure of `xs`; its arrays have no first axis.
        It returns a pytree of arrays.
      xs: a pytree of arrays whose first axes are of one length.
      batch_size: the number of elements that are computed together, by `vmap`; an int >= 1. The
        last batch may be smaller. By default the elements are computed one by one.

    Returns:
      The pytree that `f` returns, each array with a new first axis.

    Raises:
      ShapeError: an array of `xs` has no axis; the first axes differ in length; `batch_size` is
        less than 1.
      ValueError: `xs` holds no arrays.

    >>> print(lax.map(lambda x: x + 1, jnp.arange(3)))
    [1 2 3]
    >>> print(lax.map(lambda p: p[0] * p[1], (jnp.arange(5), jnp.arange(5)), batch_size=2))
    [ 0  1  4  9 16]
    """
    check_callable("map", f)
    leaves, tree = flatten(xs)
    length = None
    if has_float0(leaves):
        length, xs = leaves[0].shape[0], hide_float0(xs, 1)
        leaves, tree = flatten(xs)
    args_tree = structure(((xs,), {}))
    avals = bodies.types_in_loop("map", avals_of("map", leaves, args_tree, f))
    leaves = bodies.cast_values(leaves, avals)
    length = scan_length("map", avals, tree, length)
    size = None if batch_size is None else check_integer("map", "batch_size", batch_size, 1)
    if config.disable_jit and length:
        ys = [f(index_leaves(xs, i)) for i in range(length)]
        return tree_map(lambda *parts: stack(parts), *ys)
    body = bodies.stage_body("map", f, structure((xs,)), [mapped_aval(a, 0) for a in avals])
    jaxpr, consts = body.jaxpr, body.consts
    out_tree = stack_float0(body.out_tree, length) if body.hides else body.out_tree
    if size is None:
        ys = scan_without_carry(jaxpr, consts, leaves, length)
        return unflatten(out_tree, ys)
    dims = (None,) * len(consts) + (0,) * len(leaves)
    count, rest = divmod(length, size)
    done: list = []
    if count or not rest:
        chunks = [
            reshape(slice_in_dim(x, 0, count * size), (count, size, *typeof(x).shape[1:]))
            for x in leaves
        ]
        batched, _ = batch_jaxpr(jaxpr, Axis(size), dims, True)
        done = [collapse(y, 0, 2) for y in scan_without_carry(batched, consts, chunks, count)]
    if rest:
        batched, _ = batch_jaxpr(jaxpr, Axis(rest), dims, True)
        left = [slice_in_dim(x, length - rest, length) for x in leaves]
        last = jit_p.apply(*consts, *left, name=jaxpr.name, jaxpr=batched)
        done = [concatenate(pair, 0) for pair in zip(done, last, strict=True)] if done else last
    return unflatten(out_tree, done)


def scan_without_carry(jaxpr: Jaxpr, consts: Sequence[Any], xs: Sequence[Any], length: int) -> list:
    """A scan that carries nothing."""
    return bind_scan(jaxpr, consts, [], xs, {"length": length, "reverse": False, "unroll": 1})
