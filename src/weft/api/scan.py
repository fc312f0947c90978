"""`scan`, `map`, `associative_scan`: loops over arrays, on pytrees.

What a scan is, with its rules, is control/scan.py; loops of unknown length are api/while_loop.py's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from weft.api import bodies
from weft.api.functions import avals_of, check_callable, leaf_names
from weft.api.structures import has_float0, hide_float0, stack_float0
from weft.control.jit import jit_p
from weft.control.scan import bind_scan
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Axis
from weft.core.source import boundary
from weft.errors import PytreeError, ShapeError, ShardingTypeError
from weft.options import config
from weft.primitives.cumulative import reduce_running
from weft.primitives.families import check_integer, normalize_axis
from weft.primitives.layout import collapse, reshape, rev
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
    """Carry a value along the first axis of arrays: a loop that compiles once.

    As this, but for a function `f` that is traced once::

        def scan(f, init, xs, length=None):
            carry, ys = init, []
            for x in xs:  # xs=None: [None] * length
                carry, y = f(carry, x)
                ys.append(y)
            return carry, stack(ys)

    Args:
      f: `f(carry, x) -> (carry, y)`; the carry keeps its structure, shapes and dtypes.
      init: the carry to start with, a pytree.
      xs: a pytree of arrays whose first axes are equal; None to go without.
      length: the number of steps, needed where xs has no arrays.
      reverse: go from the last element to the first; ys stay in the order of xs.
      unroll: steps written out in each turn of the loop; True for all of them.

    >>> total, sums = lax.scan(lambda c, x: (c + x, c + x), 0.0, jnp.arange(4.0))
    >>> print(total, sums)
    6.0 [0. 1. 3. 6.]
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
        out_carry_tree, y_tree = pair_trees(f, body.out_tree)
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


def pair_trees(f: Callable, out_tree: PyTreeDef) -> Sequence[PyTreeDef]:
    """The structures of carry and y, of a body that returns a pair of them."""
    children = out_tree.children()
    if len(children) != 2 or out_tree.node_data()[0] not in (tuple, list):
        raise PytreeError(
            f"scan: {fun_name(f)} must return a pair (carry, y); got {out_tree}. "
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
    """Apply a function to each element along the first axis of the arrays `xs`, one after another.

    It takes less memory than `vmap`, and more time; `batch_size` elements at a time are computed by
    `vmap`.

    >>> print(lax.map(lambda x: x + 1, jnp.arange(3)))
    [1 2 3]
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


@boundary
def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes of `elems` along an axis, combined by an associative function.

    `fn(a, b)` is called about 2 log2(n) times on many elements at once: it must be associative and
    elementwise along the axis. The pairing is that of Blelloch, "Prefix sums and their
    applications" (1990), so work is O(n) and depth O(log n). With `reverse` it goes from the end.

    >>> print(lax.associative_scan(jnp.maximum, jnp.array([1, 3, 2, 4])))
    [1 3 3 4]
    """
    check_callable("associative_scan", fn)
    leaves, tree = flatten(elems)
    avals = avals_of("associative_scan", leaves, structure(((elems,), {})), fn)
    if not avals:
        return elems
    axes = [normalize_axis("associative_scan", axis, a.ndim) for a in avals]
    sizes = [a.shape[d] for a, d in zip(avals, axes, strict=True)]
    for name, a, n in zip(leaf_names("elems", tree), avals, sizes, strict=True):
        if n != sizes[0]:
            raise ShapeError(
                f"associative_scan: arrays must be equally long along axis {axis}; "
                f"got {avals[0]} at {leaf_names('elems', tree)[0]} and {a} at {name}."
            )

    def combine(xs: Sequence[Any], ys: Sequence[Any]) -> list:
        out, out_tree = flatten(fn(unflatten(tree, xs), unflatten(tree, ys)))
        if out_tree != tree:
            raise PytreeError(
                f"associative_scan: {fun_name(fn)} must return the structure of elems, {tree}; "
                f"got {out_tree}."
            )
        for name, x, y in zip(leaf_names("elems", tree), xs, out, strict=True):
            if typeof(x).strong() is not typeof(y).strong():
                raise ShapeError(
                    f"associative_scan: {fun_name(fn)} must return the type that it is given; "
                    f"got {typeof(y)} for {typeof(x)} at {name}."
                )
        return out

    flip = (lambda x, d: rev(x, (d,))) if reverse else (lambda x, d: x)
    xs = [flip(x, d) for x, d in zip(leaves, axes, strict=True)]
    ys = reduce_running(combine, xs, axes)
    return unflatten(tree, [flip(y, d) for y, d in zip(ys, axes, strict=True)])
