"""Derivatives of functions on pytrees: `grad`, `vjp`, `jvp`, `linearize` and related functions.

Each function flattens its arguments, calls the function of the same name in transforms/, and
unflattens. Jacobians are in api/jacobians.py.
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
from weft.transforms.jvp import is_nested
from weft.transforms.jvp import jvp as jvp_flat
from weft.transforms.linearize import linearize as linearize_flat
from weft.transforms.transpose import backward
from weft.util import fun_name, wraps
from weft.watch.leaks import stage_function
from weft.xla.array import require_alive

# Derivatives around one in forward mode that has it linearized: they need not differentiate
# tangents that no result needs, which double their work with each.
MIN_LINEARIZED = 4


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
    """A function of only the differentiated positional arguments."""

    flat: FlatFun
    leaves: list
    avals: list[ShapedArray]
    argnums: (
        int | tuple[int, ...]
    )  # an int for one argument, whose derivative is then not in a tuple

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """Return a value for each leaf of the arguments as their pytree."""
        args = unflatten(self.flat.in_tree, leaves)[0]
        return args[0] if isinstance(self.argnums, int) else args


def choose_arguments(
    op: str, fun: Callable, argnums: Any, args: tuple, kwargs: dict, has_aux: bool
) -> ChosenArguments:
    """`fun` with the arguments of a call filled in except for those that `argnums` names."""
    count = len(args)
    single = isinstance(argnums, int | np.integer)
    chosen = (int(argnums),) if single else tuple(int(i) for i in argnums)
    for i in chosen:
        if not -count <= i < count:
            hint = f"argnums={count - 1} is the last one."
            if kwargs:
                hint = "keyword arguments cannot be differentiated; pass them by position."
            elif not count:
                hint = "pass the arguments to differentiate in by position."
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
    """Return the function that computes both the value of `fun` and its gradient.

    It is for training loops, which need the loss and its gradient: the two share the forward pass,
    so the function costs no more than `grad`.

    Args:
      fun: a function that returns a real scalar; with `has_aux`, a pair (scalar, anything).
      argnums: the positional arguments to differentiate in, each a pytree of floating-point or
        complex arrays. An int gives the gradient of that argument, a sequence of ints a tuple of
        gradients. The default is the first argument.
      has_aux: if True, `fun` returns a pair `(value, aux)`; aux is returned unchanged.
      holomorphic: if True, `fun` is complex-differentiable; its inputs and its result must be
        complex.
      allow_int: if True, inputs may be integers; their gradients have the dtype float0.
      reduce_axes: is accepted for compatibility with older versions of JAX, and ignored.

    Returns:
      A function of the arguments of `fun` that returns `(value, gradient)`, or with `has_aux`
      `((value, aux), gradient)`. The gradient has the structure, the shapes and the dtypes of the
      arguments that it is taken in.

    Raises:
      DtypeError: an input is not floating-point or complex and `allow_int` is not given; the result
        is complex without `holomorphic`.
      ShapeError: the result is an array that is not a scalar.
      TypeError: the result is not one array; `argnums` is not an int or a sequence of ints, or
        names an argument that the call does not have.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    >>> def loss(w, x):
    ...     prediction = w * x
    ...     return (prediction - 1.0) ** 2, {"prediction": prediction}
    >>> (value, aux), gradient = weft.value_and_grad(loss, has_aux=True)(2.0, 3.0)
    >>> print(value, aux["prediction"], gradient)
    25.0 6.0 30.0
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
        option = ", or allow_int=True" if op != "jacfwd" else ""  # integers have no tangents
        hint = f" Hint: x.astype(float){option}." if not holomorphic else ""
        raise DtypeError(f"{op}: {problem}; got {a} as {where}.{hint}")


def check_scalar_output(
    op: str, fun: Callable, avals: Sequence[ShapedArray], tree: Any, holomorphic: bool
) -> None:
    """Raise unless a function to differentiate gave one real scalar (complex if holomorphic)."""
    name = fun_name(fun)
    if len(avals) != 1 or tree.num_nodes != 1:
        hint = "has_aux=True for a pair (loss, more), or jacrev."
        if not avals:
            hint = f"end {name} with `return` and the scalar."
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
    """Return the function that computes the gradient of a scalar function, by reverse mode.

    The gradient holds the derivative of the result with respect to every element of an argument.
    It costs a small multiple of one call of `fun`, however many elements there are, and the memory
    of the intermediate values; `checkpoint` reduces the latter. `fun` may use any control flow and
    any functions of weft. Calls may be nested for higher derivatives.

    For a complex input x + iy and a real result f, the gradient is df/dx - i df/dy. A step of
    gradient descent therefore subtracts its conjugate.

    Args:
      fun: a function that returns a real scalar; with `has_aux`, a pair (scalar, anything).
      argnums: the positional arguments to differentiate in, each a pytree of floating-point or
        complex arrays. An int gives the gradient of that argument, a sequence of ints a tuple of
        gradients. The default is the first argument. Keyword arguments are constants.
      has_aux: if True, `fun` returns a pair `(value, aux)`; aux is returned unchanged.
      holomorphic: if True, `fun` is complex-differentiable; its inputs and its result must be
        complex.
      allow_int: if True, inputs may be integers; their gradients have the dtype float0, which has
        no values.
      reduce_axes: is accepted for compatibility with older versions of JAX, and ignored.

    Returns:
      A function of the arguments of `fun`. It returns the gradient, which has the structure, the
      shapes and the dtypes of the argument; with `has_aux`, a pair `(gradient, aux)`.

    Raises:
      DtypeError: an input is not floating-point or complex and `allow_int` is not given; the result
        is complex without `holomorphic`.
      ShapeError: the result is an array that is not a scalar.
      TypeError: the result is not one array; `argnums` is not an int or a sequence of ints, or
        names an argument that the call does not have.

    >>> grad(lambda x: x**3)(2.0)
    Array(12., dtype=float32, weak_type=True)
    >>> params = {"w": jnp.array([1.0, 2.0]), "b": jnp.float32(0.5)}
    >>> weft.grad(lambda p, x: p["w"] @ x + p["b"])(params, jnp.array([3.0, 4.0]))
    {'b': Array(1., dtype=float32), 'w': Array([3., 4.], dtype=float32)}
    >>> print(weft.grad(weft.grad(jnp.sin))(0.5), -jnp.sin(0.5))
    -0.47942555 -0.47942555
    """
    return make_grad("grad", fun, argnums, has_aux, holomorphic, allow_int)


def make_grad(
    op: str, fun: Callable, argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool
) -> Callable[..., Any]:
    """`grad`, for errors of an operation `op`."""
    with_value = make_value_and_grad(op, fun, argnums, has_aux, holomorphic, allow_int)

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
    """Return the value of a function and its pullback, by reverse mode.

    The pullback maps a cotangent of the result to cotangents of the arguments: it multiplies the
    cotangent with the Jacobian from the left. `grad` is the pullback of a scalar function at the
    cotangent 1. Use `vjp` where the result is not a scalar, or where the pullback is needed for
    several cotangents.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays.
      *primals: the arguments at which it is differentiated, pytrees of arrays.
      has_aux: if True, `fun` returns `(outputs, aux)`; only the outputs are differentiated.
      reduce_axes: is accepted for compatibility with older versions of JAX, and ignored.
      saveable_args: bools, a pytree prefix of `primals`. The pullback does not hold an argument
        that is marked False; the caller passes it again by `f_vjp.with_args(*primals)`. By default
        all arguments that it needs are held.
      in_nzs: bools, a pytree prefix of `primals`. Arguments that are marked False are constants;
        their cotangents are zeros. By default all arguments are differentiated.

    Returns:
      `(outputs, f_vjp)`, or `(outputs, f_vjp, aux)` with `has_aux`. `f_vjp(ct)` takes a cotangent
      of the structure, shapes and dtypes of the outputs. It returns a tuple with a cotangent for
      each of `primals`, of the structure and the types of the argument. An integer argument has a
      cotangent of dtype float0. `f_vjp` is a pytree whose leaves are the residuals.

    Raises:
      PytreeError: the pullback is called with a cotangent of another structure than the outputs.
      ShapeError: the pullback is called with a cotangent of another shape or dtype.
      TypeError: the pullback is not called with one argument.

    >>> y, f_vjp = vjp(lambda x: x * x, 3.0)
    >>> f_vjp(1.0)
    (Array(6., dtype=float32, weak_type=True),)
    >>> y, f_vjp = weft.vjp(lambda a, x: a @ x, jnp.ones((2, 3)), jnp.arange(3.0))
    >>> ct_a, ct_x = f_vjp(jnp.array([1.0, 10.0]))
    >>> print(ct_x)
    [11. 11. 11.]
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
    """The result of `vjp`: a function from cotangents of outputs to cotangents of `primals`."""

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
        """Return the pullback, which adds cotangents to references in place of returning them.

        `refs` has an entry for each of `primals`, a pytree prefix of it. A reference of the
        cotangent's type accumulates the cotangent, and the result is None there. None, or
        `weft.ad.GradValue()`, returns the cotangent. `weft.ad.DontWant()` computes none, and the
        result is `weft.ad.DidntWant()`.

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
    """Asks `with_refs` of a pullback to return a cotangent, as None does.

    >>> from weft import ad
    >>> _, f_vjp = weft.vjp(lambda x, y: x * y, 3.0, 2.0)
    >>> f_vjp.with_refs(weft.new_ref(jnp.float32(0)), ad.GradValue())(1.0)
    (None, Array(3., dtype=float32, weak_type=True))
    """


class DontWant:
    """Tells `with_refs` of a pullback that a cotangent is not needed.

    The result has a `DidntWant` in its place.

    >>> from weft import ad
    >>> _, f_vjp = weft.vjp(lambda x, y: x * y, 3.0, 2.0)
    >>> x_bar, y_bar = f_vjp.with_refs(ad.DontWant(), None)(1.0)
    >>> isinstance(x_bar, ad.DidntWant)
    True
    """


class DidntWant:
    """Stands for a cotangent that was refused by `DontWant`.

    >>> from weft import ad
    >>> _, f_vjp = weft.vjp(lambda x: 2 * x, 3.0)
    >>> (x_bar,) = f_vjp.with_refs(ad.DontWant())(1.0)
    >>> isinstance(x_bar, ad.DidntWant)
    True
    """


def deliver(target: Any, ct: Any) -> Any:
    """Return a cotangent for `with_refs`, or None where it is added to a reference."""
    if type(target) is DontWant:
        return DidntWant()
    return add_to_ref(None if type(target) is GradValue else target, ct)


def fwd_and_bwd(
    fun: Callable, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable, Callable]:
    """Return the forward and the backward pass of a function, each jitted once for many calls.

    It is for code that runs the two passes at different times, such as a pipeline of stages. The
    pullback that `vjp` returns would be compiled anew each time it is jitted; these two functions
    are compiled once for each set of types.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays.
      argnums: the positional arguments to differentiate in, an int or a sequence of ints.
      has_aux: if True, `fun` returns `(outputs, aux)`; only the outputs are differentiated.
      jitted: if False, the two functions are not jitted. The default is True.

    Returns:
      A pair `(fwd, bwd)`. `fwd(*args)` returns `(outputs, residuals)`, or with `has_aux`
      `(outputs, residuals, aux)`. `bwd(residuals, ct)` takes a cotangent of the types of the
      outputs. It returns the cotangent of the argument that `argnums` names, or a tuple of them
      if `argnums` is a sequence.

    Raises:
      TypeError: `argnums` is not an int or a sequence of ints.

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
            out.append(Zero(want))  # a cotangent of an integer result is ignored
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
    """Return the value of a function and its directional derivative, by forward mode.

    The derivative is the Jacobian at `primals` times `tangents`. It costs a small multiple of one
    call and no memory for residuals, so it suits functions with few inputs. For many tangents at
    one point use `linearize`.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays.
      primals: a tuple or list with one entry for each argument, the point.
      tangents: a tuple or list with the structure, shapes and dtypes of `primals`, the direction.
        The tangent of an integer or a bool has the dtype float0.
      has_aux: if True, `fun` returns `(outputs, aux)`; only the outputs are differentiated.

    Returns:
      `(outputs, output_tangents)`, or with `has_aux` `(outputs, output_tangents, aux)`. The
      tangents have the structure, the shapes and the dtypes of the outputs.

    Raises:
      PytreeError: the tangents do not have the structure of the primals.
      ShapeError: a tangent has another shape or dtype than its primal.
      TypeError: `primals` or `tangents` is not a tuple or a list.

    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    >>> a, b = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    >>> y, dy = weft.jvp(jnp.dot, (a, b), (jnp.ones(2), jnp.ones(2)))
    >>> print(y, dy)
    11.0 10.0
    """
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise TypeError(
                f"jvp: {name} must be a tuple or list with one entry for each argument; "
                f"got {type(given).__name__}. Hint: jvp(f, (x,), (t,))."
            )
    flat, leaves, avals = flatten_call("jvp", fun, tuple(primals), has_aux=has_aux)
    dots = tangent_leaves("jvp", "tangents", (tuple(tangents), {}), flat.in_tree, avals)
    if is_nested(MIN_LINEARIZED) and AbstractRef not in map(type, avals):
        outs, derivative, residuals = linearize_leaves(flat, leaves, avals)
        out_dots = derivative.push(residuals, dots)
    else:
        outs, out_dots = jvp_flat(flat, leaves, dots, open_jvp())
    value, tangent = flat.result(outs), flat.result([tangent_value(t) for t in out_dots])
    return (value, tangent, flat.aux) if has_aux else (value, tangent)


def tangent_value(t: Any) -> Any:
    """A (co)tangent as users see it: zeros written out, numbers as arrays."""
    return match_type(instantiate(t), t.aval if type(t) is Zero else typeof(t))


@boundary
def linearize(fun: Callable, *primals: Any, has_aux: bool = False, in_nzs: Any = None) -> tuple:
    """Return the value of a function and its derivative at a point, as a linear function.

    The derivative is the same as by `jvp`. The work that does not depend on the tangents is done
    once, so `linearize` is the better choice for many tangents at one point. It needs memory for
    the residuals, as `vjp` does.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays.
      *primals: the arguments at which it is differentiated, pytrees of arrays.
      has_aux: if True, `fun` returns `(outputs, aux)`; only the outputs are differentiated.
      in_nzs: bools, a pytree prefix of `primals`. Arguments that are marked False are constants;
        their tangents count as zero. By default all arguments are differentiated.

    Returns:
      `(outputs, f_jvp)`, or with `has_aux` `(outputs, f_jvp, aux)`. `f_jvp(*tangents)` takes one
      tangent for each of `primals`, of its structure and types, and returns the tangents of the
      outputs. `f_jvp` is a pytree whose leaves are the residuals.

    Raises:
      ShapeError: `f_jvp` is called with a tangent of another shape or dtype than its primal.

    >>> y, f_jvp = linearize(lambda x: x * x, 3.0)
    >>> f_jvp(2.0)
    Array(12., dtype=float32, weak_type=True)
    >>> _, f_jvp = weft.linearize(jnp.sin, jnp.zeros(3))
    >>> weft.vmap(f_jvp)(jnp.eye(3))
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
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
    """Return the transpose of a function that is linear in its arguments.

    For a function x -> A x it is the function y -> A^T y. If a function is known to be linear, its
    transpose costs less than the pullback that `vjp` returns, as nothing is evaluated at a point.
    Complex values are not conjugated.

    Args:
      fun: a linear function of pytrees of arrays.
      *primals: arrays or ShapeDtypeStructs, of the types of the arguments. Their values are not
        used.
      reduce_axes: is accepted for compatibility with older versions of JAX, and ignored.

    Returns:
      A function of one cotangent of the structure and the types of the result of `fun`. It returns
      a tuple with a cotangent for each argument, of the structure and the types of the argument.

    Raises:
      MissingRule: when the transpose is called, if `fun` contains an operation that is not linear.
      ShapeError: the transpose is called with a cotangent of another shape or dtype.

    >>> linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    >>> difference = weft.linear_transpose(lambda x: x[1:] - x[:-1], jnp.zeros(3))
    >>> difference(jnp.array([1.0, 10.0]))
    (Array([-1., -9., 10.], dtype=float32),)
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
