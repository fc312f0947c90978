"""`vmap`: map a function over an axis of its arguments.

`MappedAxes`, which reads and checks `in_axes` and `out_axes`, serves `pmap` too. What is done along
a mapped axis is transforms/batch.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.api.functions import FlatFun, argument_names, avals_of, check_callable
from weft.api.structures import broadcast_to_structure
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Axis
from weft.core.source import boundary
from weft.core.trace import current, use
from weft.errors import ShapeError, ShardingTypeError, check_hashable, shorten_text
from weft.primitives.families import check_integer
from weft.primitives.layout import broadcast_in_dim, transpose, zeros
from weft.pytrees import PyTreeDef, broadcast_prefix, flatten, is_none, unflatten
from weft.run.rules import open_batch
from weft.transforms.batch import BatchTracer, batch, mapped_aval, unmapped_aval
from weft.util import fun_name, merge, partition


def vmap(
    fun: Callable,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[..., Any]:
    """Return a function that maps `fun` over an axis of its arguments.

    `vmap` turns a function of one example into a function of a batch of examples. The result
    has no loop: each operation of `fun` is replaced by the same operation on arrays with
    one more axis, so that a product of vectors becomes a product of matrices. Inside `fun`, the
    arguments have the shapes of one element. Calls may be nested, and combined with `jit`, `grad`
    and the other transformations.

    Where a branch of `lax.cond` depends on a mapped value, both branches run and the result is
    selected. A `lax.while_loop` with a mapped predicate runs until no element needs another step.

    Args:
      fun: a function of arrays, or of pytrees of arrays, that returns a pytree of arrays.
      in_axes: the axis of each argument to map over. An int is the axis of every array of every
        positional argument; the default is axis 0. A tuple has one entry for each positional
        argument: an int, None for an argument that is the same in every call, or a pytree of ints
        and None that is a prefix of the argument, as `{"w": None, "x": 0}` for a dict. Negative
        axes count from the end. Keyword arguments are always mapped over axis 0.
      out_axes: the position of the mapped axis in the results: an int, 0 by default, or a pytree
        prefix of the result. None is allowed for a result that does not depend on a mapped
        argument; it is then returned once. An unmapped result with an int is repeated.
      axis_name: a name of the mapped axis. Collectives within `fun` use it, as in
        `lax.psum(x, "batch")`. By default the axis has no name.
      axis_size: the size of the mapped axis, an int. It is needed only where no argument is mapped.
      spmd_axis_name: the name of an axis of a device mesh, or a tuple of names. Sharding
        constraints and shard_maps within `fun` split the mapped axis over it. By default the
        mapped axis is not split.

    Returns:
      A function of the arguments of `fun`, whose mapped arguments have one more axis. It returns
      the pytree that `fun` returns, each array with the mapped axis at `out_axes`.

    Raises:
      ShapeError: the mapped axes differ in size.
      TypeError: `in_axes` or `out_axes` holds an entry that is not an int or None.
      ValueError: a tuple `in_axes` has not one entry for each positional argument; an argument
        or a result does not have the axis; no argument is mapped and `axis_size` is not given;
        `out_axes` is None for a result that is mapped.

    >>> vmap(lambda x, y: x @ y, in_axes=(0, None))(jnp.ones((3, 2)), jnp.ones(2))
    Array([2., 2., 2.], dtype=float32)

    Axes may be given as a pytree like the argument. Here the weights are shared, and the examples
    are mapped:

    >>> params = {"w": jnp.array([1.0, 2.0]), "x": jnp.arange(6.0).reshape(3, 2)}
    >>> weft.vmap(lambda p: p["w"] @ p["x"], in_axes=({"w": None, "x": 0},))(params)
    Array([ 2.,  8., 14.], dtype=float32)

    The mapped axis of the result may be another than the first, and `grad` may be mapped to get
    the gradient of each example:

    >>> weft.vmap(lambda x: x * jnp.ones(2), out_axes=1)(jnp.arange(3.0))
    Array([[0., 1., 2.],
           [0., 1., 2.]], dtype=float32)
    >>> weft.vmap(weft.grad(lambda w, x: w * x**2), in_axes=(None, 0))(2.0, jnp.arange(3.0))
    Array([0., 1., 4.], dtype=float32, weak_type=True)

    A named axis is for collectives:

    >>> weft.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    check_callable("vmap", fun, wraps=True)
    check_hashable("vmap", axis_name=axis_name, spmd_axis_name=spmd_axis_name)
    if VMAPPABLE and any(map(is_spec, flatten((in_axes, out_axes), is_none)[0])):
        return boundary(
            VmapOfSpecs(fun, in_axes, out_axes, axis_size, axis_name, spmd_axis_name), fun
        )
    mapped = MappedAxes("vmap", fun, in_axes, out_axes, axis_size)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree, dims, size, split = mapped.read_arguments(args, kwargs)
        flat = FlatFun(fun, in_tree, "vmap")
        axis = Axis(size, axis_name, False, spmd_axis_name or split and split.entries[0], split)
        outs, out_dims = batch(flat, leaves, dims, axis, open_batch(axis))
        return flat.result(mapped.place_results(outs, out_dims, flat.out_tree, size))

    return boundary(wrapped, fun)


# --- classes of the user's own, which say how they are mapped -------------------------------------


class Vmappable(NamedTuple):
    """The handlers that map values of a class: see `interpreters.batching.register_vmappable`."""

    spec_type: type
    to_elt: Callable
    from_elt: Callable


VMAPPABLE: dict[type, Vmappable] = {}


def is_spec(x: Any) -> bool:
    """Return True if an entry of `in_axes` or `out_axes` may be a spec of a registered class."""
    return any(type(x) is handler.spec_type for handler in VMAPPABLE.values())


def is_special(x: Any, axis: Any) -> bool:
    """Return True if handlers map a value. An int may be a spec there, and is an axis otherwise."""
    return is_spec(axis) and (type(x) in VMAPPABLE or type(axis) is not int)


class VmapOfSpecs:
    """A mapped function some of whose arguments or results are of registered classes."""

    def __init__(
        self, fun: Callable, in_axes: Any, out_axes: Any, size: int | None, name: Any, spmd: Any
    ):
        self.fun = fun
        self.in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        self.out_axes = out_axes
        self.size = size
        self.name = name
        self.spmd = spmd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Map ordinary values as `vmap` does; values of special classes are split inside."""
        leaves, tree = flatten(args)
        axes = broadcast_prefix(self.in_axes, args, is_none, op="vmap", names=("in_axes", "args"))
        special = list(map(is_special, leaves, axes))
        plain, values = partition(special, leaves)
        mapped = MappedAxes("vmap", self.fun, tuple(partition(special, axes)[0]), 0, self.size)
        made: list = []
        rest: list = []

        def on_elements(*given: Any, **kwargs: Any) -> list:
            trace = current.trace

            def to_elt(x: Any, spec: Any) -> Any:
                if type(x) in VMAPPABLE:
                    return VMAPPABLE[type(x)].to_elt(to_elt, None, x, spec)
                return x if spec is None else BatchTracer(trace, x, spec % typeof(x).ndim)

            def from_elt(size: int, y: Any, spec: Any) -> Any:
                if type(y) in VMAPPABLE:
                    return VMAPPABLE[type(y)].from_elt(from_elt, size, y, spec)
                mine = type(y) is BatchTracer and y.owner is trace
                with use(trace.parent):
                    value, dim = (y.value, y.dim) if mine else (y, None)
                    return mapped.place_result(value, dim, spec, size)

            specs = partition(special, axes)[1]
            elements = [to_elt(x, s) for x, s in zip(values, specs, strict=True)]
            out = self.fun(*unflatten(tree, merge(special, given, elements)), **kwargs)
            ys, out_tree = flatten(out)
            names = ("out_axes", "result")
            wanted = broadcast_prefix(self.out_axes, out, is_none, op="vmap", names=names)
            marks = list(map(is_special, ys, wanted))
            size = trace.axis.size
            made[:] = [from_elt(size, y, a) for y, a, m in zip(ys, wanted, marks, strict=True) if m]
            rest[:] = [marks, out_tree]
            mapped.out_axes = partition(marks, wanted)[0]
            return partition(marks, ys)[0]

        found, in_tree, dims, size, split = mapped.read_arguments(tuple(plain), kwargs)
        flat = FlatFun(on_elements, in_tree, "vmap")
        axis = Axis(size, self.name, False, self.spmd or split and split.entries[0], split)
        outs, out_dims = batch(flat, found, dims, axis)
        ys = flat.result(mapped.place_results(outs, out_dims, flat.out_tree, size))
        return unflatten(rest[1], merge(rest[0], ys, made))


def find_split(avals: Sequence[ShapedArray], dims: Sequence[int | None]) -> Any:
    """Return how the mapped axis is split over a mesh, as `Axis` takes it."""
    found = None
    for aval, d in zip(avals, dims, strict=True):
        if d is not None and (lies := aval.sharded) is not None and lies.entries[d]:
            one = lies.update(entries=(lies.entries[d],), unreduced=(), reduced=())
            if found not in (None, one):
                raise ShardingTypeError(
                    "vmap: what is mapped must be split alike along the mapped axis; got "
                    f"{found.spec} and {one.spec}. Hint: weft.reshard of one of the arguments."
                )
            found = one
    return found


class MappedArguments(NamedTuple):
    """The leaves of a call, the structure of (args, kwargs), the axis of each, and their size.

    `split`: how the mapped axis is split over a mesh, as `Axis` has it.
    """

    leaves: list
    in_tree: PyTreeDef
    dims: list[int | None]
    size: int
    split: Any


class MappedAxes:
    """Return the mapped axes of a function's arguments and results, checked."""

    def __init__(self, op: str, fun: Callable, in_axes: Any, out_axes: Any, size: int | None):
        self.op = op
        self.fun = fun
        self.in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        self.out_axes = out_axes
        self.size = size if size is None else check_integer(op, "axis_size", size, 0)
        for axes, name in ((self.in_axes, "in_axes"), (out_axes, "out_axes")):
            bad = [a for a in flatten(axes, is_none)[0] if not is_axis(a)]
            if bad:
                got = shorten_text(f"{bad[0]!r} in {axes!r}")
                raise TypeError(f"{op}: {name} must hold ints and None; got {got}.")

    def read_arguments(self, args: tuple, kwargs: dict) -> MappedArguments:
        """Return the mapped values of a call, and their axes."""
        in_axes = self.in_axes
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            named = f", which is given {', '.join(kwargs)} by name" * bool(kwargs)
            hint = " Hint: pass it by position; axis 0 of an argument by name is mapped."
            raise ValueError(
                f"{self.op}: in_axes must have one entry for each positional argument; "
                f"got {len(in_axes)} for the {len(args)} of {fun_name(self.fun)}{named}."
                f"{hint * bool(kwargs)}"
            )
        leaves, in_tree = flatten((args, kwargs))
        dims = self.broadcast_axes(in_axes, args, "in_axes", "args") + [0] * len(flatten(kwargs)[0])
        checked = leaves  # vmap does not check values that are not mapped
        if self.op == "vmap" and None in dims:
            checked = [0 if d is None else x for x, d in zip(leaves, dims, strict=True)]
        avals = avals_of(self.op, checked, in_tree, self.fun)
        dims = [
            self.normalize_axis(d, a, i, in_tree)
            for i, (d, a) in enumerate(zip(dims, avals, strict=True))
        ]
        size = self.mapped_size(avals, dims, in_tree)
        return MappedArguments(leaves, in_tree, dims, size, find_split(avals, dims))

    def place_results(
        self, outs: Sequence[Any], out_dims: Sequence[int | None], tree: PyTreeDef, size: int
    ) -> list:
        """The results, with the mapped axis where `out_axes` says."""
        wanted = self.out_axes_of(tree)
        return [
            self.place_result(y, d, w, size) for y, d, w in zip(outs, out_dims, wanted, strict=True)
        ]

    def out_axes_of(self, tree: PyTreeDef) -> list:
        """Return the axis that `out_axes` says for each leaf of a result of this structure."""
        names = ("out_axes", "result")
        return broadcast_to_structure(self.out_axes, tree, is_none, op=self.op, names=names)

    def broadcast_axes(self, prefix: Any, tree: Any, prefix_name: str, name: str) -> list:
        """Return the axis of each leaf, given a pytree prefix of axes; None counts as a leaf."""
        return broadcast_prefix(prefix, tree, is_none, op=self.op, names=(prefix_name, name))

    def normalize_axis(
        self, d: int | None, aval: ShapedArray, i: int, tree: PyTreeDef
    ) -> int | None:
        """An axis as a non-negative int; an error names the argument that lacks it."""
        if d is None:
            return None
        if not -aval.ndim <= d < aval.ndim:
            where = argument_names(self.fun, tree)[i]
            raise ValueError(
                f"{self.op}: in_axes must name an axis of each mapped argument; got axis {d} for "
                f"{aval} as {where} of {fun_name(self.fun)}. Hint: in_axes=None leaves an argument "
                "unmapped."
            )
        return d % aval.ndim

    def mapped_size(self, avals: Sequence[ShapedArray], dims: Sequence, tree: PyTreeDef) -> int:
        """The one size of the mapped axis; an error says which arguments disagree."""
        sizes = {a.shape[d] for a, d in zip(avals, dims, strict=True) if d is not None}
        if self.size is not None:
            sizes.add(self.size)
        if not sizes:
            raise ValueError(
                f"{self.op}: at least one argument must be mapped; got in_axes of None for all of "
                f"{fun_name(self.fun)}'s. Hint: give axis_size."
            )
        if len(sizes) > 1:
            names = argument_names(self.fun, tree)
            rows = [
                f"{a.shape[d]} (axis {d} of {n}, {a})"
                for n, a, d in zip(names, avals, dims, strict=True)
                if d is not None
            ]
            rows += [f"{self.size} (axis_size)"] if self.size is not None else []
            raise ShapeError(
                f"{self.op}: mapped axes must have one size; got {', '.join(rows)} in "
                f"{fun_name(self.fun)}."
            )
        return sizes.pop()

    def place_result(self, y: Any, dim: int | None, wanted: int | None, size: int) -> Any:
        """A result with its mapped axis where `out_axes` says."""
        if wanted is None:
            if dim is not None:
                raise ValueError(
                    f"{self.op}: out_axes may be None only for results that are not mapped; got "
                    f"{typeof(y)} mapped along axis {dim}."
                )
            return y
        ndim = typeof(y).ndim + (dim is None)
        if not -ndim <= wanted < ndim:
            raise ValueError(
                f"{self.op}: out_axes must name an axis of the result; got {wanted} for rank "
                f"{ndim}."
            )
        wanted %= ndim
        if typeof(y).dtype == dtypes.float0:
            element = typeof(y) if dim is None else mapped_aval(typeof(y), dim)
            return zeros(unmapped_aval(element, size, wanted))
        if dim is None:
            shape = typeof(y).shape
            kept = [i for i in range(ndim) if i != wanted]
            return broadcast_in_dim(y, (*shape[:wanted], size, *shape[wanted:]), kept)
        if dim == wanted:
            return y
        order = [i for i in range(ndim) if i != dim]
        order.insert(wanted, dim)
        return transpose(y, order)


def is_axis(a: Any) -> bool:
    """Return True if `a` is None or an integer."""
    if a is None or type(a) is int:
        return True
    return isinstance(a, int | np.integer) and not isinstance(a, bool)
