"""The transformations: pytrees in, pytrees out. Below this file everything is flat.

Each function flattens, calls its flat counterpart in transforms/, and unflattens. `jit` is in
jitting.py; the checks of what comes in are in flat.py.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import ClosedJaxpr
from weft.core.primitive import Linear, Zero
from weft.core.stage import stage
from weft.errors import DtypeError, ShapeError
from weft.flat import FlatFun, argument_names, as_tuple, avals_of, check_callable
from weft.options import config, named_axes
from weft.primitives.elementwise import convert
from weft.primitives.layout import (
    broadcast_in_dim,
    full,
    instantiate,
    literal,
    moved_to_front,
    reshape,
    transpose,
    zeros,
)
from weft.primitives.slicing import slice_in_dim
from weft.pytrees import (
    PyTreeDef,
    broadcast_prefix,
    flatten,
    flatten_with_path,
    keystr,
    unflatten,
)
from weft.structs import ShapeDtypeStruct
from weft.transforms.batch import Axis, batch
from weft.transforms.jvp import jvp as jvp_flat
from weft.transforms.linearize import linearize as linearize_flat
from weft.transforms.transpose import backward
from weft.util import fun_name

__all__ = [
    "disable_jit",
    "eval_shape",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "make_jaxpr",
    "value_and_grad",
    "vjp",
    "vmap",
]


# --- looking at programs --------------------------------------------------------------------


def make_jaxpr(
    fun: Callable,
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that gives the jaxpr of `fun` at the types of its arguments.

    `axis_env` puts named axes in scope, as [("i", 4)]. With `return_shape`, gives also the pytree
    of the results' ShapeDtypeStructs.

    >>> import weft.numpy as jnp
    >>> make_jaxpr(lambda x: jnp.sin(x) * 3.0)(jnp.ones(8))
    { lambda ; a:f32[8]. let b:f32[8] = sin a; c:f32[8] = mul b 3.0 in (c,) }
    """
    check_callable("make_jaxpr", fun)
    static = as_tuple(static_argnums)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given, dynamic = without_static(fun, static, args)
        leaves, in_tree = flatten((dynamic, kwargs))
        flat = FlatFun(given, in_tree, "make_jaxpr")
        avals = avals_of("make_jaxpr", leaves, in_tree, given)
        names = functools.partial(argument_names, given, in_tree)
        with axes_in_scope(axis_env or ()):
            jaxpr, consts = stage(flat, avals, fun_name(fun), names)
        closed = ClosedJaxpr(jaxpr, consts)
        if not return_shape:
            return closed
        return closed, flat.result([ShapeDtypeStruct.of(a) for a in jaxpr.out_avals])

    wrapped.__name__ = f"make_jaxpr({fun_name(fun)})"
    return wrapped


def without_static(fun: Callable, static: tuple, args: tuple) -> tuple[Callable, tuple]:
    """`fun` with its static arguments filled in, and the others."""
    if not static:
        return fun, args
    fixed = {i % len(args): args[i] for i in static}

    @functools.wraps(fun)
    def given(*others: Any, **kwargs: Any) -> Any:
        rest = iter(others)
        whole = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
        return fun(*whole, **kwargs)

    return given, tuple(x for i, x in enumerate(args) if i not in fixed)


@contextlib.contextmanager
def axes_in_scope(axis_env: Sequence[tuple[Any, int]]) -> Any:
    """Named axes that a traced function may refer to."""
    before = named_axes.value
    named_axes.set_local((*before, *[Axis(size, name) for name, size in axis_env]))
    try:
        yield
    finally:
        named_axes.set_local(before)


def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of `fun(*args, **kwargs)`, computing nothing.

    Arguments may be ShapeDtypeStructs. Gives a pytree of ShapeDtypeStructs.

    >>> eval_shape(lambda x: x @ x, ShapeDtypeStruct((3, 3), np.float32))
    ShapeDtypeStruct(shape=(3, 3), dtype=float32)
    """
    return make_jaxpr(fun, return_shape=True)(*args, **kwargs)[1]


def disable_jit(disable: bool = True) -> Any:
    """A context in which jitted functions run operation by operation, for debugging."""
    return config.scope(disable_jit=disable)


# --- derivatives ----------------------------------------------------------------------------


def split_args(fun: Callable, argnums: Any, args: tuple, op: str) -> tuple[Callable, tuple, Any]:
    """`fun` of the chosen arguments alone, those, and argnums with negatives resolved."""
    count = len(args)
    single = isinstance(argnums, int | np.integer)
    chosen = (int(argnums),) if single else tuple(int(i) for i in argnums)
    for i in chosen:
        if not -count <= i < count:
            raise ValueError(
                f"{op}: argnums must name positional arguments; got {argnums} for a call of "
                f"{fun_name(fun)} with {count}. Hint: keyword arguments cannot be differentiated."
            )
    chosen = tuple(i % count for i in chosen)
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"{op}: argnums must be distinct; got {argnums}.")

    def partial(*picked: Any, **kwargs: Any) -> Any:
        whole = list(args)
        for i, x in zip(chosen, picked, strict=True):
            whole[i] = x
        return fun(*whole, **kwargs)

    partial.__name__ = fun_name(fun)
    return partial, tuple(args[i] for i in chosen), chosen[0] if single else chosen


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

    As `grad`, but the function returns `(value, gradient)`; with `has_aux`,
    `((value, aux), gradient)`.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    return _value_and_grad("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)


def _value_and_grad(
    op: str, fun: Callable, argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool
) -> Callable[..., Any]:
    check_callable(op, fun)
    check_argnums(op, argnums)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        partial, picked, chosen = split_args(fun, argnums, args, op)
        with_kwargs = functools.partial(partial, **kwargs) if kwargs else partial
        leaves, in_tree = flatten((picked, {}))
        flat = FlatFun(with_kwargs, in_tree, op, has_aux)
        avals = avals_of(op, leaves, in_tree, fun)
        check_inputs(op, fun, avals, in_tree, chosen, holomorphic, allow_int)
        moved = [dtypes.is_inexact(a.dtype) for a in avals]
        outs, jaxpr, residuals, out_moved = linearize_flat(flat, leaves, moved)
        check_scalar_output(op, fun, outs, flat.out_tree, holomorphic)
        aval = typeof(outs[0])
        cts = [literal(1, aval.dtype)] if out_moved[0] else []
        linear = [Linear(v.aval) for v in jaxpr.invars]
        grads = iter(backward(jaxpr, residuals, linear, cts))
        result = [
            match_weak(instantiate(next(grads)), a) if m else zeros(a.to_tangent())
            for a, m in zip(avals, moved, strict=True)
        ]
        gradient = unflatten(in_tree, result)[0]
        if isinstance(argnums, int | np.integer):
            gradient = gradient[0]
        value = flat.result(outs)
        return ((value, flat.aux) if has_aux else value), gradient

    return wrapped


def match_weak(x: Any, aval: ShapedArray) -> Any:
    """A (co)tangent as an array of exactly the type `aval`."""
    got = typeof(x)
    if type(x) in (float, int, complex) or isinstance(x, np.generic):
        return full(aval.shape, x, aval.dtype) if not aval.weak_type else weak_full(x, aval)
    return x if got is aval else convert(x, aval.dtype, aval.weak_type)


def weak_full(x: Any, aval: ShapedArray) -> Any:
    """A number as a weakly typed array."""
    return convert(full(aval.shape, x, aval.dtype), aval.dtype, True)


def check_inputs(
    op: str,
    fun: Callable,
    avals: Sequence[ShapedArray],
    tree: PyTreeDef,
    chosen: Any,
    holomorphic: bool,
    allow_int: bool,
) -> None:
    """Raise where an input has a dtype that cannot be differentiated as asked."""
    for i, a in enumerate(avals):
        if holomorphic and not dtypes.is_complex(a.dtype):
            problem = "with holomorphic=True inputs must be complex"
        elif dtypes.is_complex(a.dtype) and not holomorphic and op in ("jacfwd",):
            problem = "inputs must be real; complex ones need holomorphic=True"
        elif not dtypes.is_inexact(a.dtype) and not allow_int and not holomorphic:
            problem = "inputs must be floating-point or complex"
        else:
            continue
        path = flatten_with_path(unflatten(tree, range(tree.num_leaves))[0])[0][i][0]
        which = chosen if isinstance(chosen, int) else chosen[path[0].idx]
        where = f"argument {which}{keystr(tuple(path[1:]))} of {fun_name(fun)}"
        hint = " Hint: x.astype(float), or allow_int=True." if not holomorphic else ""
        raise DtypeError(f"{op}: {problem}; got {a} as {where}.{hint}")


def check_scalar_output(
    op: str, fun: Callable, outs: Sequence[Any], tree: Any, holomorphic: bool
) -> None:
    """Raise unless a function to differentiate gave one real scalar (complex if holomorphic)."""
    name = fun_name(fun)
    if len(outs) != 1 or not tree.num_nodes == 1:
        raise TypeError(
            f"{op}: the function must return one scalar; got {tree} from {name}. "
            "Hint: has_aux=True for a pair (loss, more), or jacrev."
        )
    aval = typeof(outs[0])
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

    For a complex input x + iy the gradient is df/dx - i df/dy.

    >>> grad(lambda x: x**3)(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    with_value = _value_and_grad("grad", fun, argnums, has_aux, holomorphic, allow_int)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = with_value(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def vjp(fun: Callable, *primals: Any, has_aux: bool = False, reduce_axes: Any = ()) -> tuple:
    """`(outputs, f_vjp)`: the value, and the function from cotangents of it to those of `primals`.

    `f_vjp(ct)` returns a tuple with one entry for each of `primals`. With `has_aux`, gives
    `(outputs, f_vjp, aux)`.

    >>> y, f_vjp = vjp(lambda x: x * x, 3.0)
    >>> f_vjp(1.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable("vjp", fun)
    leaves, in_tree = flatten((primals, {}))
    flat = FlatFun(fun, in_tree, "vjp", has_aux)
    avals = avals_of("vjp", leaves, in_tree, fun)
    moved = [dtypes.is_inexact(a.dtype) for a in avals]
    outs, jaxpr, residuals, out_moved = linearize_flat(flat, leaves, moved)
    out_tree, out_avals = flat.out_tree, [typeof(x) for x in outs]
    linear = [Linear(v.aval) for v in jaxpr.invars]

    def f_vjp(*cts: Any) -> tuple:
        if len(cts) != 1:
            raise TypeError(f"vjp: the pullback takes one argument; got {len(cts)}.")
        given = tangent_leaves("vjp", "cotangents", cts[0], out_tree, out_avals)
        given = [c for c, m in zip(given, out_moved, strict=True) if m]
        grads = iter(backward(jaxpr, residuals, linear, given))
        result = [
            match_weak(instantiate(next(grads)), a) if m else zeros(a.to_tangent())
            for a, m in zip(avals, moved, strict=True)
        ]
        return unflatten(in_tree, result)[0]

    f_vjp.__name__ = f"vjp({fun_name(fun)})"
    value = flat.result(outs)
    return (value, f_vjp, flat.aux) if has_aux else (value, f_vjp)


def tangent_leaves(
    op: str, kind: str, tree: Any, treedef: PyTreeDef, avals: Sequence[ShapedArray]
) -> list:
    """The leaves of (co)tangents, checked against the structure and types of the values."""
    leaves, given = flatten(tree)
    what = "primals" if kind == "tangents" else "outputs"
    if given != treedef:
        raise TypeError(
            f"{op}: {kind} must have the structure of the {what}; got {given} for {treedef}."
        )
    paths = [keystr(p) for p, _ in flatten_with_path(tree)[0]]
    out = []
    for x, aval, path in zip(leaves, avals, paths, strict=True):
        want = aval.to_tangent()
        if want.dtype == dtypes.float0:
            if getattr(x, "dtype", None) != dtypes.float0:
                raise TypeError(
                    f"{op}: {kind} of an integer or bool value must be float0; got {typeof(x)} "
                    f"for {aval}{' at ' + path if path else ''}. "
                    f"Hint: np.zeros({aval.shape}, weft.dtypes.float0)."
                )
            out.append(Zero(want))
            continue
        got = typeof(x)
        if got.shape != want.shape or (got.dtype != want.dtype and not got.weak_type):
            raise ShapeError(
                f"{op}: {kind} must have the types of the {what}; got {got} for {aval}"
                f"{' at ' + path if path else ''}."
            )
        out.append(x if got.dtype == want.dtype else convert(x, want.dtype))
    return out


def jvp(
    fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple:
    """`(outputs, output tangents)`: the value and the directional derivative, by forward mode.

    `primals` and `tangents` are tuples with one entry for each argument, of equal structure and
    types; an integer's tangent is float0. With `has_aux`, gives `(outputs, tangents, aux)`.

    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_callable("jvp", fun)
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise TypeError(
                f"jvp: {name} must be a tuple or list with one entry for each argument; "
                f"got {type(given).__name__}. Hint: jvp(f, (x,), (t,))."
            )
    leaves, in_tree = flatten((tuple(primals), {}))
    flat = FlatFun(fun, in_tree, "jvp", has_aux)
    avals = avals_of("jvp", leaves, in_tree, fun)
    dots = tangent_leaves("jvp", "tangents", (tuple(tangents), {}), in_tree, avals)
    outs, out_dots = jvp_flat(flat, leaves, dots)
    value, tangent = flat.result(outs), flat.result([tangent_value(t) for t in out_dots])
    return (value, tangent, flat.aux) if has_aux else (value, tangent)


def tangent_value(t: Any) -> Any:
    """A (co)tangent as users see it: zeros written out, numbers as arrays."""
    t = instantiate(t)
    if type(t) in (float, int, complex) or isinstance(t, np.generic):
        return match_weak(t, typeof(t))
    return t


def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """`(outputs, f_jvp)`: the value, and the derivative at `primals` as a linear function.

    The work that does not depend on the tangents is done once. With `has_aux`, gives
    `(outputs, f_jvp, aux)`.

    >>> y, f_jvp = linearize(lambda x: x * x, 3.0)
    >>> f_jvp(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    check_callable("linearize", fun)
    leaves, in_tree = flatten((primals, {}))
    flat = FlatFun(fun, in_tree, "linearize", has_aux)
    avals = avals_of("linearize", leaves, in_tree, fun)
    moved = [dtypes.is_inexact(a.dtype) for a in avals]
    outs, jaxpr, residuals, out_moved = linearize_flat(flat, leaves, moved)
    out_tree, out_avals = flat.out_tree, [typeof(x) for x in outs]
    closed = ClosedJaxpr(jaxpr, residuals)

    def f_jvp(*tangents: Any) -> Any:
        given = tangent_leaves("linearize", "tangents", (tangents, {}), in_tree, avals)
        dots = iter(closed(*[t for t, m in zip(given, moved, strict=True) if m]))
        result = [
            tangent_value(next(dots) if m else Zero(a.to_tangent()))
            for a, m in zip(out_avals, out_moved, strict=True)
        ]
        return unflatten(out_tree, result)

    f_jvp.__name__ = f"linearize({fun_name(fun)})"
    value = flat.result(outs)
    return (value, f_jvp, flat.aux) if has_aux else (value, f_jvp)


def linear_transpose(fun: Callable, *primals: Any, reduce_axes: Any = ()) -> Callable:
    """The transpose of a function that is linear in its arguments.

    `primals` give the types only, and may be ShapeDtypeStructs. The result takes cotangents of
    `fun`'s output and returns a tuple of cotangents of the arguments.

    >>> linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable("linear_transpose", fun)
    leaves, in_tree = flatten((primals, {}))
    flat = FlatFun(fun, in_tree, "linear_transpose")
    avals = avals_of("linear_transpose", leaves, in_tree, fun)
    for a in avals:
        if not dtypes.is_inexact(a.dtype):
            raise DtypeError(
                f"linear_transpose: arguments must be floating-point or complex; got {a}."
            )
    jaxpr, consts = stage(flat, avals, fun_name(fun))
    out_tree, out_avals = flat.out_tree, jaxpr.out_avals

    def transposed(ct: Any) -> tuple:
        cts = tangent_leaves("linear_transpose", "cotangents", ct, out_tree, out_avals)
        grads = backward(jaxpr, consts, [Linear(a) for a in avals], cts)
        result = [
            match_weak(instantiate(g), a) for g, a in zip(grads, avals, strict=True)
        ]
        return unflatten(in_tree, result)[0]

    return transposed


def basis(leaves: Sequence[Any]) -> tuple[list, list[tuple[int, int]]]:
    """For each leaf, the standard basis of its space stacked to (total, *shape), and its span."""
    sizes = [typeof(x).size for x in leaves]
    total = sum(sizes)
    eye = np.eye(total)
    out, spans, start = [], [], 0
    for x, n in zip(leaves, sizes, strict=True):
        aval = typeof(x)
        part = eye[:, start : start + n].astype(aval.dtype).reshape((total, *aval.shape))
        out.append(part)
        spans.append((start, start + n))
        start += n
    return out, spans


def jacfwd(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of `fun` by forward mode: best where there are fewer inputs than outputs.

    For output shape S and input shape T it has shape S + T; pytrees nest, outputs outside.

    >>> jacfwd(lambda x: x**2)(np.array([1.0, 2.0], np.float32))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable("jacfwd", fun)
    check_argnums("jacfwd", argnums)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        partial, picked, chosen = split_args(fun, argnums, args, "jacfwd")
        leaves, in_tree = flatten((picked, {}))
        avals = avals_of("jacfwd", leaves, in_tree, fun)
        check_inputs("jacfwd", fun, avals, in_tree, chosen, holomorphic, False)
        flat = FlatFun(functools.partial(partial, **kwargs), in_tree, "jacfwd", has_aux)
        rows, spans = basis(leaves)
        total = spans[-1][1] if spans else 0
        outs: list = []

        def push(*tangents: Any) -> list:
            values, dots = jvp_flat(flat, leaves, tangents)
            outs[:] = values
            return [instantiate(t) for t in dots]

        stacked, dims = batch(push, rows, [0] * len(rows), Axis(total))
        columns = [
            _jacobian_rows(y, d, x, total) for y, d, x in zip(stacked, dims, outs, strict=True)
        ]
        tree = [
            unflatten(
                in_tree,
                [
                    reshape(slice_in_dim(c, *s, axis=-1), (*typeof(c).shape[:-1], *a.shape))
                    for s, a in zip(spans, avals, strict=True)
                ],
            )[0]
            for c in columns
        ]
        if isinstance(argnums, int | np.integer):
            tree = [t[0] for t in tree]
        result = unflatten(flat.out_tree, tree)
        return (result, flat.aux) if has_aux else result

    return wrapped


def _jacobian_rows(dots: Any, dim: int | None, out: Any, total: int) -> Any:
    """Tangents for each basis vector, with that axis last."""
    shape = typeof(out).shape
    if dim is None:
        return zeros(ShapedArray((*shape, total), typeof(out).dtype))
    from_front = moved_to_front(dots, dim)
    order = (*range(1, len(shape) + 1), 0)
    return transpose(from_front, order)


def jacrev(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of `fun` by reverse mode: best where there are fewer outputs than inputs.

    For output shape S and input shape T it has shape S + T; pytrees nest, outputs outside.

    >>> jacrev(lambda x: x**2)(np.array([1.0, 2.0], np.float32))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable("jacrev", fun)
    check_argnums("jacrev", argnums)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        partial, picked, chosen = split_args(fun, argnums, args, "jacrev")
        leaves, in_tree = flatten((picked, {}))
        avals = avals_of("jacrev", leaves, in_tree, fun)
        check_inputs("jacrev", fun, avals, in_tree, chosen, holomorphic, allow_int)
        value = vjp(functools.partial(partial, **kwargs), *picked, has_aux=has_aux)
        y, pullback = value[:2]
        outs, out_tree = flatten(y)
        for x in outs:
            check_output("jacrev", fun, typeof(x), holomorphic)
        rows, spans = basis(outs)
        total = spans[-1][1] if spans else 0

        def pull(*cts: Any) -> list:
            return flatten(pullback(unflatten(out_tree, cts)))[0]

        stacked, dims = batch(pull, rows, [0] * len(rows), Axis(total))
        columns = [
            zeros(ShapedArray((total, *typeof(g).shape), typeof(g).dtype))
            if d is None
            else moved_to_front(g, d)
            for g, d in zip(stacked, dims, strict=True)
        ]
        tree = []
        for (start, stop), x in zip(spans, outs, strict=True):
            blocks = [
                reshape(slice_in_dim(c, start, stop), (*typeof(x).shape, *typeof(c).shape[1:]))
                for c in columns
            ]
            block = unflatten(in_tree, blocks)[0]
            tree.append(block[0] if isinstance(argnums, int | np.integer) else block)
        result = unflatten(out_tree, tree)
        return (result, value[2]) if has_aux else result

    return wrapped


def check_output(op: str, fun: Callable, aval: ShapedArray, holomorphic: bool) -> None:
    """Raise where a result's dtype does not fit the derivative asked for."""
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise DtypeError(f"{op}: with holomorphic=True results must be complex; got {aval}.")
    if not holomorphic and not dtypes.is_float(aval.dtype):
        raise DtypeError(f"{op}: results must be real and floating-point; got {aval}.")


jacobian = jacrev


def hessian(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The matrix of second derivatives of `fun`, by forward over reverse mode.

    >>> hessian(lambda x: x[0] * x[1] ** 2)(np.array([1.0, 2.0], np.float32))
    Array([[0., 4.],
           [4., 2.]], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


# --- vmap -----------------------------------------------------------------------------------


def vmap(
    fun: Callable,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[..., Any]:
    """Map `fun` over an axis of its arguments, pushing the loop into its operations.

    Args:
      in_axes: which axis of each argument to map: an int, None (the same for every call), or a
        tuple with one entry an argument, each a pytree prefix of it. Keyword arguments map axis 0.
      out_axes: where the mapped axis goes in the results, as a pytree prefix of them.
      axis_name: a name for the axis, for collectives such as `lax.psum`.
      axis_size: its size, needed where no argument is mapped.

    >>> import weft.numpy as jnp
    >>> vmap(lambda x, y: x @ y, in_axes=(0, None))(jnp.ones((3, 2)), jnp.ones(2))
    Array([2., 2., 2.], dtype=float32)
    """
    check_callable("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    for axes, name in ((in_axes, "in_axes"), (out_axes, "out_axes")):
        bad = [a for a in flatten(axes, is_leaf=lambda a: a is None)[0] if not valid_axis(a)]
        if bad:
            raise TypeError(
                f"vmap: {name} must hold ints and None; got {bad[0]!r} in {axes!r}."
            )

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap: in_axes must have one entry for each positional argument; "
                f"got {len(in_axes)} for {len(args)}."
            )
        leaves, in_tree = flatten((args, kwargs))
        avals = avals_of("vmap", leaves, in_tree, fun)
        prefix = (in_axes, 0) if kwargs else (in_axes, {})
        dims = prefix_axes(prefix, (args, kwargs), "in_axes", "args")
        dims = [normal_axis(d, a, i, fun, in_tree) for i, (d, a) in enumerate(zip(dims, avals, strict=True))]
        size = mapped_size(fun, avals, dims, in_tree, axis_size)
        flat = FlatFun(fun, in_tree, "vmap")
        outs, out_dims = batch(flat, leaves, dims, Axis(size, axis_name))
        wanted = prefix_axes(out_axes, flat.result(outs), "out_axes", "result")
        moved = [
            move_result(y, d, w, size) for y, d, w in zip(outs, out_dims, wanted, strict=True)
        ]
        return flat.result(moved)

    return wrapped


def valid_axis(a: Any) -> bool:
    """Whether `a` is None or an integer."""
    return a is None or (isinstance(a, int | np.integer) and not isinstance(a, bool))


def prefix_axes(prefix: Any, tree: Any, prefix_name: str, name: str) -> list:
    """The axis of each leaf, from a pytree prefix of axes in which None is a leaf."""
    return broadcast_prefix(
        prefix,
        tree,
        is_leaf=lambda a: a is None,
        op="vmap",
        prefix_name=prefix_name,
        full_name=name,
    )


def normal_axis(
    d: int | None, aval: ShapedArray, i: int, fun: Callable, tree: PyTreeDef
) -> int | None:
    """An axis as a non-negative int; an error names the argument that lacks it."""
    if d is None:
        return None
    if not -aval.ndim <= d < aval.ndim:
        where = argument_names(fun, tree)[i]
        raise ValueError(
            f"vmap: in_axes must name an axis of each mapped argument; got axis {d} for {aval} "
            f"as {where} of {fun_name(fun)}. Hint: in_axes=None leaves an argument unmapped."
        )
    return d % aval.ndim


def mapped_size(
    fun: Callable, avals: Sequence[ShapedArray], dims: Sequence, tree: PyTreeDef, given: Any
) -> int:
    """The one size of the mapped axis; an error says which arguments disagree."""
    sizes = {a.shape[d] for a, d in zip(avals, dims, strict=True) if d is not None}
    if given is not None:
        sizes.add(given)
    if not sizes:
        raise ValueError(
            f"vmap: at least one argument must be mapped; got in_axes of None for all of "
            f"{fun_name(fun)}'s. Hint: give axis_size."
        )
    if len(sizes) > 1:
        names = argument_names(fun, tree)
        rows = [
            f"{a.shape[d]} (axis {d} of {n}, {a})"
            for n, a, d in zip(names, avals, dims, strict=True)
            if d is not None
        ]
        rows += [f"{given} (axis_size)"] if given is not None else []
        raise ShapeError(
            f"vmap: mapped axes must have one size; got {', '.join(rows)} in {fun_name(fun)}."
        )
    return sizes.pop()


def move_result(y: Any, dim: int | None, wanted: int | None, size: int) -> Any:
    """A result with its mapped axis where out_axes says."""
    if wanted is None:
        if dim is not None:
            raise ValueError(
                f"vmap: out_axes may be None only for results that are not mapped; got "
                f"{typeof(y)} mapped along axis {dim}."
            )
        return y
    ndim = typeof(y).ndim + (dim is None)
    if not -ndim <= wanted < ndim:
        raise ValueError(
            f"vmap: out_axes must name an axis of the result; got {wanted} for rank {ndim}."
        )
    wanted %= ndim
    if dim is None:
        shape = typeof(y).shape
        kept = [i for i in range(ndim) if i != wanted]
        return broadcast_in_dim(y, (*shape[:wanted], size, *shape[wanted:]), kept)
    if dim == wanted:
        return y
    order = [i for i in range(ndim) if i != dim]
    order.insert(wanted, dim)
    return transpose(y, order)
