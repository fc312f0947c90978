"""Derivatives of functions on pytrees: `grad`, `vjp`, `jvp`, `linearize` and what is made of them.

Each function flattens its arguments, calls what transforms/ has of the name, and unflattens.
Jacobians are in api/jacobians.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.api.functions import FlatFun, avals_of, check_callable, flatten_call
from weft.api.jit import jit
from weft.api.structures import leaf_paths
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Linear, Zero
from weft.core.ref import AbstractRef
from weft.core.source import boundary
from weft.errors import DtypeError, PytreeError, RefError, ShapeError
from weft.mesh.typed import dual_of
from weft.options import config
from weft.passes.discharge import discharge_jaxpr, has_state
from weft.primitives.layout import convert, fill, instantiate, literal
from weft.primitives.refs import add_to_ref
from weft.primitives.reshard import lay_as
from weft.pytrees import (
    Partial,
    PyTreeDef,
    broadcast_prefix,
    flatten,
    flatten_with_path,
    is_none,
    keystr,
    register_pytree_node,
    unflatten,
)
from weft.run.rules import compiles_rules, make_one, open_jvp
from weft.run.tape import LinearMap, Tape, record
from weft.transforms.jvp import jvp as jvp_flat
from weft.transforms.linearize import linearize as linearize_flat
from weft.transforms.transpose import backward
from weft.util import fun_name, wraps
from weft.watch.leaks import stage_function
from weft.xla.array import require_alive


class Derivative:
    """The derivative map of a flat function at a point, without its residuals: both directions.

    `push` takes tangents of all inputs to tangents of all outputs, `pull` cotangents back; inputs
    and outputs that do not move (integers) have float0 ones.
    """

    def __init__(
        self,
        linear: Tape | LinearMap,
        in_avals: Sequence[ShapedArray],
        moved: Sequence[bool],
        out_avals: Sequence[ShapedArray],
        out_moved: Sequence[bool],
    ):
        self.linear = linear  # from the moved inputs to the moved outputs
        self.in_avals = in_avals
        self.moved = moved
        self.out_avals = out_avals
        self.out_moved = out_moved

    @boundary
    def push(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list:
        """Tangents of the outputs."""
        given = [instantiate(t) for t, m in zip(tangents, self.moved, strict=True) if m]
        dots = iter(self.linear.push(residuals, given))
        return [
            tangent_value(next(dots) if m else Zero(a.to_tangent()))
            for a, m in zip(self.out_avals, self.out_moved, strict=True)
        ]

    @boundary
    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list:
        """Cotangents of the inputs."""
        rows = zip(cts, self.out_avals, self.out_moved, strict=True)
        given = [ct if a.sharded is None else lay_as(ct, dual_of(a)) for ct, a, m in rows if m]
        grads = iter(self.linear.pull(residuals, given))
        return [
            match_type(instantiate(next(grads) if m else Zero(a.to_tangent())), a.to_tangent())
            for a, m in zip(self.in_avals, self.moved, strict=True)
        ]


def linearize_leaves(
    flat: FlatFun, leaves: Sequence[Any], avals: Sequence[ShapedArray], in_nzs: Any = None
) -> tuple[list, Derivative, list]:
    """(outputs, derivative, residuals) of a flat function at values of the given types.

    `in_nzs` says which arguments have tangents that are not zero: bools, a pytree prefix of them.
    """
    moved = [dtypes.is_inexact(a.dtype) for a in avals]
    if in_nzs is not None:
        args = unflatten(flat.in_tree, leaves)[0]
        prefix = tuple(in_nzs) if isinstance(in_nzs, list) else in_nzs
        marks = broadcast_prefix(prefix, args, op=flat.op, names=("in_nzs", "primals"))
        moved = [m and bool(mark) for m, mark in zip(moved, marks, strict=True)]
    if AbstractRef in map(type, avals):
        aval: Any = next(a for a in avals if hasattr(a, "inner_aval"))
        raise RefError(
            f"{flat.op}: reverse mode has no derivative with respect to a reference; got {aval} as "
            f"an argument of {fun_name(flat.fun)}. Hint: differentiate in other arguments "
            "(argnums), or in the array: lambda x: f(weft.new_ref(x))."
        )
    linear: Tape | LinearMap
    if compiles_rules():
        outs, linear, residuals, out_moved = record(flat, leaves, moved)
    else:
        outs, jaxpr, residuals, out_moved = linearize_flat(flat, leaves, moved)
        linear = LinearMap(jaxpr)
    out_avals = [typeof(x) for x in outs]
    return outs, Derivative(linear, avals, moved, out_avals, out_moved), residuals


class ChosenArguments(NamedTuple):
    """A function of those positional arguments alone that it is differentiated in."""

    flat: FlatFun
    leaves: list
    avals: list[ShapedArray]
    argnums: (
        int | tuple[int, ...]
    )  # an int for one argument, whose derivative is then not in a tuple

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """What has a leaf for each leaf of the arguments, as their pytree."""
        args = unflatten(self.flat.in_tree, leaves)[0]
        return args[0] if isinstance(self.argnums, int) else args


def choose_arguments(
    op: str, fun: Callable, argnums: Any, args: tuple, kwargs: dict, has_aux: bool
) -> ChosenArguments:
    """`fun` with the arguments of a call filled in but for those that `argnums` names."""
    count = len(args)
    single = isinstance(argnums, int | np.integer)
    chosen = (int(argnums),) if single else tuple(int(i) for i in argnums)
    for i in chosen:
        if not -count <= i < count:
            hint = f"argnums={count - 1} is the last one."
            if kwargs:
                hint = "keyword arguments cannot be differentiated; pass them by position."
            raise TypeError(
                f"{op}: argnums must name positional arguments; got {argnums} for a call of "
                f"{fun_name(fun)} with {count}. Hint: {hint}"
            )
    chosen = tuple(i % count for i in chosen)
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"{op}: argnums must be distinct; got {argnums}.")

    def partial(*picked: Any) -> Any:
        whole = list(args)
        for i, x in zip(chosen, picked, strict=True):
            whole[i] = x
        return fun(*whole, **kwargs)

    partial.__name__ = fun_name(fun)
    leaves, in_tree = flatten((tuple(args[i] for i in chosen), {}))
    avals = avals_of(op, leaves, in_tree, fun)
    flat = FlatFun(partial, in_tree, op, has_aux)
    return ChosenArguments(flat, leaves, avals, chosen[0] if single else chosen)


def check_argnums(op: str, argnums: Any) -> None:
    """Raise unless argnums is an int or a sequence of ints."""
    many = argnums if isinstance(argnums, Sequence) and not isinstance(argnums, str) else (argnums,)
    if not all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in many):
        raise TypeError(f"{op}: argnums must be an int or a tuple of ints; got {argnums!r}.")


def value_and_grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """A function that gives both the value of `fun` and its gradient.

    The parameters `argnums`, `has_aux`, `holomorphic`, `allow_int` and `reduce_axes` are those of
    `grad`; the function returns `(value, gradient)`; with `has_aux`, `((value, aux), gradient)`.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    return make_value_and_grad("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)


def make_value_and_grad(
    op: str, fun: Callable, argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool
) -> Callable[..., Any]:
    check_callable(op, fun, wraps=True)
    check_argnums(op, argnums)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen = choose_arguments(op, fun, argnums, args, kwargs, has_aux)
        check_inputs(fun, chosen, holomorphic, allow_int)
        flat = chosen.flat
        outs, derivative, residuals = linearize_leaves(flat, chosen.leaves, chosen.avals)
        check_scalar_output(op, fun, derivative.out_avals, flat.out_tree, holomorphic)
        dtype = derivative.out_avals[0].dtype
        taped = type(derivative.linear) is Tape
        one = make_one(dtype, config.default_device) if taped else literal(1, dtype)
        gradient = chosen.unflatten(derivative.pull(residuals, [one]))
        value = flat.result(outs)
        return ((value, flat.aux) if has_aux else value), gradient

    return boundary(wrapped, fun)


def match_type(x: Any, aval: ShapedArray) -> Any:
    """A (co)tangent as an array of exactly the type `aval`."""
    got = typeof(x)
    if type(x) in (float, int, complex) or isinstance(x, np.generic):
        made = fill(aval.shape, x, aval.dtype)
        return convert(made, aval.dtype, True) if aval.weak_type else made
    return x if got is aval else convert(x, aval.dtype, aval.weak_type)


def check_inputs(
    fun: Callable, chosen: ChosenArguments, holomorphic: bool, allow_int: bool
) -> None:
    """Raise where an input has a dtype that cannot be differentiated so."""
    op, tree = chosen.flat.op, chosen.flat.in_tree
    for i, a in enumerate(chosen.avals):
        if holomorphic and not dtypes.is_complex(a.dtype):
            problem = "with holomorphic=True inputs must be complex"
        elif dtypes.is_complex(a.dtype) and not holomorphic and op == "jacfwd":
            problem = "inputs must be real; complex ones need holomorphic=True"
        elif not dtypes.is_inexact(a.dtype) and not allow_int and not holomorphic:
            problem = "inputs must be floating-point or complex"
        else:
            continue
        path = leaf_paths(tree)[i][1:]
        nums = chosen.argnums
        which = nums if isinstance(nums, int) else nums[path[0].idx]
        where = f"argument {which}{keystr(tuple(path[1:]))} of {fun_name(fun)}"
        hint = " Hint: x.astype(float), or allow_int=True." if not holomorphic else ""
        raise DtypeError(f"{op}: {problem}; got {a} as {where}.{hint}")


def check_scalar_output(
    op: str, fun: Callable, avals: Sequence[ShapedArray], tree: Any, holomorphic: bool
) -> None:
    """Raise unless a function to differentiate gave one real scalar (complex if holomorphic)."""
    name = fun_name(fun)
    if len(avals) != 1 or tree.num_nodes != 1:
        hint = "has_aux=True for a pair (loss, more), or jacrev."
        if not avals:
            hint = "return loss."
        kind = (tree.node_data() or (type(None),))[0].__name__
        got = "None" if kind == "NoneType" else f"a {kind} of {len(avals)} arrays"
        raise TypeError(
            f"{op}: the function must return one scalar; got {got} from {name}. Hint: {hint}"
        )
    (aval,) = avals
    if aval.shape:
        raise ShapeError(
            f"{op}: the function must return a scalar; got {aval} from {name}. "
            "Hint: sum or mean the result, or jacrev for all its derivatives."
        )
    if holomorphic != dtypes.is_complex(aval.dtype) and (
        holomorphic or not dtypes.is_float(aval.dtype)
    ):
        must = "complex with holomorphic=True" if holomorphic else "real"
        raise DtypeError(
            f"{op}: the function's result must be {must}; got {aval} from {name}."
            + (" Hint: holomorphic=True, or take .real." if not holomorphic else "")
        )
    if not dtypes.is_inexact(aval.dtype):
        raise DtypeError(
            f"{op}: the function must return a floating-point scalar; got {aval} from {name}. "
            "Hint: x.astype(float)."
        )


def grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """The gradient of a scalar function, by reverse mode, as a function of the same arguments.

    Args:
      fun: returns a real scalar; with `has_aux`, a pair (scalar, anything).
      argnums: the positional arguments to differentiate in, each a pytree of arrays. An int gives
        that argument's gradient, a tuple a tuple of gradients.
      holomorphic: `fun` is complex-differentiable, its input and result complex.
      allow_int: integer inputs are allowed; their gradients are float0.
      reduce_axes: accepted for old calls of JAX, and ignored.

    For a complex input x + iy the gradient is df/dx - i df/dy.

    >>> grad(lambda x: x**3)(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    with_value = make_value_and_grad("grad", fun, argnums, has_aux, holomorphic, allow_int)

    @wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = with_value(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


@boundary
def vjp(
    fun: Callable,
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Any = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple:
    """`(outputs, f_vjp)`: the value, and the function from cotangents of it to those of `primals`.

    Args:
      fun: a function of pytrees of arrays.
      primals: the arguments at which it is differentiated.
      has_aux: `fun` returns `(outputs, aux)`, of which only the outputs are differentiated.
      reduce_axes: is ignored.
      saveable_args: bools, a pytree prefix of `primals`. What f_vjp needs of an argument that is
        False is not held by it: the caller passes it by `f_vjp.with_args(*primals)`.
      in_nzs: bools, a pytree prefix of `primals`: False for arguments that are constants here,
        whose cotangents are zeros.

    Returns:
      `(outputs, f_vjp)`, or `(outputs, f_vjp, aux)`. `f_vjp(ct)` returns a tuple with one entry for
      each of `primals`. It is a pytree, whose leaves are the residuals.

    >>> y, f_vjp = vjp(lambda x: x * x, 3.0)
    >>> f_vjp(1.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    flat, leaves, avals = flatten_call("vjp", fun, primals, has_aux=has_aux)
    outs, derivative, residuals = linearize_leaves(flat, leaves, avals, in_nzs)
    out_tree = flat.out_tree
    unsaved: dict[int, int] = {}
    if saveable_args is not True:
        unsaved = find_unsaved(saveable_args, primals, leaves, residuals)
        residuals = [None if i in unsaved else x for i, x in enumerate(residuals)]

    def pullback(residuals: Sequence[Any], *cts: Any) -> tuple:
        if len(cts) != 1:
            hint = " Hint: pullback((ct, ...))." if out_tree.num_leaves > 1 else ""
            raise TypeError(
                "vjp: the pullback takes one argument, of the structure of the output of "
                f"{fun_name(fun)}; got {len(cts)}.{hint}"
            )
        if unsaved and any(residuals[i] is None for i in unsaved):
            raise ValueError(
                "vjp: the pullback needs arguments that saveable_args had it not save; got none. "
                f"Hint: f_vjp.with_args(*primals)(ct), with the arguments of {fun_name(fun)}."
            )
        given = tangent_leaves("vjp", "cotangents", cts[0], out_tree, derivative.out_avals)
        return unflatten(flat.in_tree, derivative.pull(residuals, given))[0]

    pullback.__name__ = f"vjp({fun_name(fun)})"
    f_vjp = Pullback(pullback, residuals)
    pullback.unsaved = unsaved  # type: ignore[attr-defined]
    value = flat.result(outs)
    return (value, f_vjp, flat.aux) if has_aux else (value, f_vjp)


def find_unsaved(
    saveable: Any, primals: tuple, leaves: Sequence[Any], residuals: Sequence[Any]
) -> dict[int, int]:
    """Return which residuals are arguments that are not to be saved, and which leaf each is."""
    marks = broadcast_prefix(saveable, primals, op="vjp", names=("saveable_args", "primals"))
    named = {id(x): i for i, (x, mark) in enumerate(zip(leaves, marks, strict=True)) if not mark}
    return {i: named[id(x)] for i, x in enumerate(residuals) if id(x) in named}


class Pullback(Partial):
    """What `vjp` gives: the function from cotangents of outputs to those of `primals`, a pytree."""

    def with_args(self, *primals: Any) -> Pullback:
        """The pullback with those arguments that `vjp(..., saveable_args=)` had it not hold.

        >>> _, f_vjp = vjp(lambda x, y: x * y, 3.0, 2.0, saveable_args=False)
        >>> f_vjp.with_args(3.0, 2.0)(1.0)
        (Array(2., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
        """
        (residuals,), leaves = self.args, flatten(primals)[0]
        unsaved: dict[int, int] = self.func.unsaved  # type: ignore[attr-defined]
        given = [leaves[unsaved[i]] if i in unsaved else x for i, x in enumerate(residuals)]
        return Pullback(self.func, given)

    def with_refs(self, *refs: Any) -> Callable[..., tuple]:
        """The pullback, which adds cotangents to references in place of returning them.

        `refs` has an entry for each of `primals`, a pytree prefix of it: a reference of the type of
        the cotangent, which is then None in the result; None, or `weft.ad.GradValue()`, to have the
        cotangent returned; or `weft.ad.DontWant()`, for which it is `weft.ad.DidntWant()`.

        >>> _, f_vjp = vjp(lambda x, y: x * y, 3.0, 2.0)
        >>> total = weft.new_ref(jnp.float32(0))
        >>> f_vjp.with_refs(total, None)(1.0)
        (None, Array(3., dtype=float32, weak_type=True))
        >>> total
        Ref(2., dtype=float32)
        """

        def accumulating(*cts: Any) -> tuple:
            grads = self(*cts)
            if len(refs) != len(grads):
                raise TypeError(
                    f"with_refs: there must be one entry for each of primals; got {len(refs)} for "
                    f"{len(grads)}. Hint: None for a cotangent to be returned."
                )
            leaves, tree = flatten(grads)
            targets = broadcast_prefix(refs, grads, is_none, op="with_refs", names=("refs", "ct"))
            return unflatten(tree, list(map(deliver, targets, leaves)))

        return accumulating


class GradValue:
    """Asks `with_refs` to return a cotangent."""


class DontWant:
    """Tells `with_refs` that a cotangent is not wanted."""


class DidntWant:
    """Stands for a cotangent that was not wanted."""


def deliver(target: Any, ct: Any) -> Any:
    """What `with_refs` gives for a cotangent: it, or None where it is added to a reference."""
    if type(target) is DontWant:
        return DidntWant()
    return add_to_ref(None if type(target) is GradValue else target, ct)


def fwd_and_bwd(
    fun: Callable, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable, Callable]:
    """The forward and the backward pass of a function, each jitted once for many calls.

    `fwd(*args)` gives `(outputs, residuals)`, and `aux` last with `has_aux`, where `fun` returns
    `(outputs, aux)`. `bwd(residuals, ct)` gives the cotangents of the arguments that `argnums`
    names: one, or a tuple. What `vjp` gives would be compiled anew where it is jitted. With
    `jitted=False` neither is.

    >>> fwd, bwd = weft.fwd_and_bwd(lambda w, x: w @ x, argnums=0)
    >>> y, residuals = fwd(jnp.ones((2, 2)), jnp.arange(2.0))
    >>> bwd(residuals, jnp.ones(2))
    Array([[0., 1.],
           [0., 1.]], dtype=float32)
    """
    check_callable("fwd_and_bwd", fun)
    check_argnums("fwd_and_bwd", argnums)

    def fwd(*args: Any) -> tuple:
        chosen = choose_arguments("fwd_and_bwd", fun, argnums, args, {}, has_aux)
        picked = unflatten(chosen.flat.in_tree, chosen.leaves)[0]
        return vjp(chosen.flat.fun, *picked, has_aux=has_aux)

    def bwd(residuals: Callable, *cts: Any) -> Any:
        grads = residuals(*cts)
        return grads[0] if isinstance(argnums, int | np.integer) else grads

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


register_pytree_node(
    Pullback,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, given: Pullback(func, *given[0], **given[1]),
)


def tangent_leaves(
    op: str, kind: str, tree: Any, treedef: PyTreeDef, avals: Sequence[ShapedArray]
) -> list:
    """The leaves of (co)tangents, checked against the structure and types of the values."""
    leaves, given = flatten(tree)
    what = "primals" if kind == "tangents" else "outputs"
    if given != treedef:
        raise PytreeError(
            f"{op}: {kind} must have the structure of the {what}; got {given} for {treedef}."
        )
    out: list = []
    for i, (x, aval) in enumerate(zip(leaves, avals, strict=True)):
        want = aval.to_tangent()
        got = typeof(x)
        if type(got) is not type(want):
            raise RefError(
                f"{op}: {kind} of references must be references, and of arrays arrays; got {got} "
                f"for {aval}. Hint: weft.new_ref(t)."
            )
        if got.shape == want.shape and got.dtype == want.dtype:
            if got.sharded is not want.sharded and kind == "tangents":
                x = lay_as(x, want.sharded)
            out.append(Zero(want) if want.dtype == dtypes.float0 else require_alive(x))
            continue
        if want.dtype == dtypes.float0 and kind == "cotangents" and got.shape == want.shape:
            out.append(Zero(want))  # what is handed to an integer result says nothing
            continue
        path = keystr(flatten_with_path(tree)[0][i][0])
        where = f" at {path}" if path else ""
        if want.dtype == dtypes.float0:
            raise DtypeError(
                f"{op}: {kind} of an integer or bool value must be float0; got {got} for "
                f"{aval}{where}. Hint: np.zeros({aval.shape}, weft.dtypes.float0)."
            )
        raise ShapeError(
            f"{op}: {kind} must have the types of the {what}; got {got} for {aval}{where}."
        )
    return out


@boundary
def jvp(
    fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple:
    """`(outputs, output tangents)`: the value and the directional derivative, by forward mode.

    `primals` and `tangents` are tuples with one entry for each argument, of equal structure and
    types; an integer's tangent is float0. With `has_aux`, gives `(outputs, tangents, aux)`.

    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise TypeError(
                f"jvp: {name} must be a tuple or list with one entry for each argument; "
                f"got {type(given).__name__}. Hint: jvp(f, (x,), (t,))."
            )
    flat, leaves, avals = flatten_call("jvp", fun, tuple(primals), has_aux=has_aux)
    dots = tangent_leaves("jvp", "tangents", (tuple(tangents), {}), flat.in_tree, avals)
    outs, out_dots = jvp_flat(flat, leaves, dots, open_jvp())
    value, tangent = flat.result(outs), flat.result([tangent_value(t) for t in out_dots])
    return (value, tangent, flat.aux) if has_aux else (value, tangent)


def tangent_value(t: Any) -> Any:
    """A (co)tangent as users see it: zeros written out, numbers as arrays."""
    return match_type(instantiate(t), t.aval if type(t) is Zero else typeof(t))


@boundary
def linearize(fun: Callable, *primals: Any, has_aux: bool = False, in_nzs: Any = None) -> tuple:
    """`(outputs, f_jvp)`: the value, and the derivative at `primals` as a linear function.

    The work that does not depend on the tangents is done once. `f_jvp` is a pytree, whose leaves
    are what that work left. With `has_aux`, gives `(outputs, f_jvp, aux)`. `in_nzs`, bools and a
    pytree prefix of `primals`, is False for arguments whose tangents count as zero.

    >>> y, f_jvp = linearize(lambda x: x * x, 3.0)
    >>> f_jvp(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    flat, leaves, avals = flatten_call("linearize", fun, primals, has_aux=has_aux)
    outs, derivative, residuals = linearize_leaves(flat, leaves, avals, in_nzs)
    out_tree = flat.out_tree

    def pushforward(residuals: Sequence[Any], *tangents: Any) -> Any:
        given = tangent_leaves("linearize", "tangents", (tangents, {}), flat.in_tree, avals)
        return unflatten(out_tree, derivative.push(residuals, given))

    pushforward.__name__ = f"linearize({fun_name(fun)})"
    f_jvp = Partial(pushforward, residuals)
    value = flat.result(outs)
    return (value, f_jvp, flat.aux) if has_aux else (value, f_jvp)


@boundary
def linear_transpose(fun: Callable, *primals: Any, reduce_axes: Any = ()) -> Callable:
    """The transpose of a function that is linear in its arguments.

    `primals` give the types only, and may be ShapeDtypeStructs. The result takes cotangents of
    `fun`'s output and returns a tuple of cotangents of the arguments. `reduce_axes` is ignored.

    >>> linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    flat, _, avals = flatten_call("linear_transpose", fun, primals, structs=True)
    jaxpr, consts = stage_function(flat, avals, fun_name(fun))
    jaxpr = discharge_jaxpr(jaxpr) if has_state(jaxpr) else jaxpr
    out_tree, out_avals = flat.out_tree, jaxpr.out_avals

    def transposed(ct: Any) -> tuple:
        cts, given = flatten(ct)
        if given != out_tree:
            raise PytreeError(
                "linear_transpose: cotangents must have the structure of the outputs; "
                f"got {given} for {out_tree}."
            )
        for x, want in zip(cts, out_avals, strict=True):
            got = typeof(x)
            if got.shape != want.shape or got.dtype != want.dtype:
                raise ShapeError(
                    "linear_transpose: cotangents must have the types of the outputs; "
                    f"got {got} for {want}."
                )
        grads = backward(jaxpr, consts, [Linear(a) for a in avals], cts)
        result = [match_type(instantiate(g), a) for g, a in zip(grads, avals, strict=True)]
        return unflatten(flat.in_tree, result)[0]

    return transposed
