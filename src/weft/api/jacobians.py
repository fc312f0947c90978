"""Jacobians and Hessians: `jacfwd`, `jacrev`, `hessian`, one derivative for each basis vector.

A Jacobian is a derivative map of api/grad.py mapped over the standard basis.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api import grad
from weft.api.functions import check_callable
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Axis, Zero
from weft.core.source import boundary
from weft.errors import DtypeError
from weft.mesh.typed import Sharded
from weft.primitives import layout
from weft.primitives.elementwise import eq, sub
from weft.primitives.reshard import lay_as
from weft.primitives.slicing import slice_in_dim
from weft.run.rules import compiles_rules, open_batch
from weft.transforms.batch import batch, bring_to_front
from weft.transforms.jvp import jvp as jvp_flat
from weft.util import alias, is_below

MAX_HELD = 1025  # elements of an identity matrix, below which a program holds it


def basis(avals: Sequence[ShapedArray]) -> tuple[list, list[tuple[int, int]]]:
    """For each type, the standard basis of its space stacked to (total, *shape), and its span."""
    total = sum(a.size for a in avals)
    out, spans, start = [], [], 0
    for a in avals:
        columns = (total, a.size)  # of the identity matrix, from `start` on
        if is_below(total * a.size, MAX_HELD):
            part = layout.host_constant(np.eye(*columns, -start), a.dtype)
        else:  # computed, or a program would hold and read it
            rows, places = (layout.broadcasted_iota(np.int32, columns, axis) for axis in (0, 1))
            part = eq(sub(rows, layout.literal_size(start, rows)), places)
            part = layout.convert(part, a.dtype)
        part = layout.reshape(part, (total, *a.shape))
        out.append(layout.convert(part, a.dtype, True) if a.weak_type else part)
        spans.append((start, start + a.size))
        start += a.size
    return out, spans


def map_rows(fun: Callable, rows: Sequence[Any]) -> list:
    """The results of a flat function for each row of its arguments, stacked."""
    axis = Axis(sum(typeof(x).shape[0] for x in rows[:1]))
    outs, dims = batch(fun, rows, [0] * len(rows), axis, open_batch(axis))
    return [bring_to_front(y, d, axis.size) for y, d in zip(outs, dims, strict=True)]


def jacfwd(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian of `fun` by forward mode.

    The Jacobian holds the derivative of every element of the result with respect to every element
    of the input. Forward mode computes one column at a time, with one Jacobian-vector product for
    each element of the input; the products are mapped, as by `vmap`. It is the better choice
    where the input has fewer elements than the result; otherwise use `jacrev`. If each result
    depends on few inputs, `sparse_jacobian` needs far fewer products.

    Args:
      fun: a function of arrays, or of pytrees of arrays, that returns a pytree of arrays.
      argnums: the positional arguments to differentiate in. An int gives one Jacobian, a sequence
        of ints a tuple with a Jacobian for each argument. The default is the first argument.
      has_aux: if True, `fun` returns a pair `(result, aux)`; only the result is differentiated.
      holomorphic: if True, `fun` is complex-differentiable and its inputs must be complex. By
        default the inputs must be real.

    Returns:
      A function of the arguments of `fun`. For a result of shape S and an input of shape T the
      Jacobian has shape S + T and the dtype of the result. For pytrees it has the structure of the
      result, and in the place of each array of it the structure of the input. With `has_aux` the
      function returns `(jacobian, aux)`.

    Raises:
      DtypeError: an input is not of a real floating-point dtype (complex if `holomorphic`).
      TypeError: `argnums` is not an int or a sequence of ints, or names an argument that the call
        does not have.

    >>> jacfwd(lambda x: x**2)(np.array([1.0, 2.0], np.float32))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)

    The Jacobian with respect to two arguments is a tuple:

    >>> weft.jacfwd(lambda a, x: a * x, argnums=(0, 1))(2.0, jnp.array([3.0, 4.0]))
    (Array([3., 4.], dtype=float32), Array([[2., 0.],
           [0., 2.]], dtype=float32))
    """
    return make_jacobian("jacfwd", fun, argnums, has_aux, holomorphic, False, forward_blocks)


def jacrev(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian of `fun` by reverse mode.

    The Jacobian holds the derivative of every element of the result with respect to every element
    of the input. Reverse mode computes one row at a time, with one vector-Jacobian product for
    each element of the result; the products are mapped, as by `vmap`. It is the better choice
    where the result has fewer elements than the input; otherwise use `jacfwd`. `jacobian` is
    another name of this function.

    Args:
      fun: a function of arrays, or of pytrees of arrays, that returns a pytree of arrays.
      argnums: the positional arguments to differentiate in. An int gives one Jacobian, a sequence
        of ints a tuple with a Jacobian for each argument. The default is the first argument.
      has_aux: if True, `fun` returns a pair `(result, aux)`; only the result is differentiated.
      holomorphic: if True, `fun` is complex-differentiable and its inputs and results must be
        complex. By default the results must be real.
      allow_int: if True, inputs may be integers; the Jacobian with respect to them is zero
        and has the integer dtype. By default such inputs are refused.

    Returns:
      A function of the arguments of `fun`. For a result of shape S and an input of shape T the
      Jacobian has shape S + T and the dtype of the input. For pytrees it has the structure of the
      result, and in the place of each array of it the structure of the input. With `has_aux` the
      function returns `(jacobian, aux)`.

    Raises:
      DtypeError: an input is an integer without `allow_int`; a result is not real and
        floating-point; with `holomorphic`, an input or a result is not complex.
      TypeError: `argnums` is not an int or a sequence of ints, or names an argument that the call
        does not have.

    >>> jacrev(lambda x: x**2)(np.array([1.0, 2.0], np.float32))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)

    For pytrees, the structure of the result is outside and that of the input inside:

    >>> f = lambda p: {"y": p["a"] * p["b"]}
    >>> weft.jacrev(f)({"a": jnp.float32(2.0), "b": jnp.float32(3.0)})
    {'y': {'a': Array(3., dtype=float32), 'b': Array(2., dtype=float32)}}
    """
    blocks = functools.partial(reverse_blocks, holomorphic=holomorphic)
    return make_jacobian("jacrev", fun, argnums, has_aux, holomorphic, allow_int, blocks)


def make_jacobian(
    op: str,
    fun: Callable,
    argnums: Any,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    compute_blocks: Callable[[grad.ChosenArguments], list[list]],
) -> Callable[..., Any]:
    """The function that `compute_blocks` gives the Jacobian of: for each output, one per input."""
    check_callable(op, fun, wraps=True)
    grad.check_argnums(op, argnums)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen = grad.choose_arguments(op, fun, argnums, args, kwargs, has_aux)
        grad.check_inputs(fun, chosen, holomorphic, allow_int)
        rows = compute_blocks(chosen)
        result = chosen.flat.result([chosen.unflatten(blocks) for blocks in rows])
        return (result, chosen.flat.aux) if has_aux else result

    return boundary(wrapped, fun)


def split_rows(rows: Any, sharded: Sharded | None) -> Any:
    """Return tangents that are stacked along axis 0, each split over a mesh as its primal is."""
    if sharded is None or sharded.unreduced:
        return rows
    return lay_as(rows, Sharded.of(sharded.mesh, ((), *sharded.entries)), force=True)


def forward_blocks(chosen: grad.ChosenArguments) -> list[list]:
    """The blocks of a Jacobian by forward mode."""
    flat, leaves, avals, _ = chosen
    rows, spans = basis(avals)
    rows = [split_rows(r, a.sharded) for r, a in zip(rows, avals, strict=True)]
    taped = grad.linearize_leaves(flat, leaves, avals)[1:] if compiles_rules() else None

    def push(*tangents: Any) -> list:
        if taped:
            return taped[0].push(taped[1], tangents)
        outs, dots = jvp_flat(flat, leaves, tangents)
        return [
            layout.zeros(typeof(x)) if type(t) is Zero else t
            for x, t in zip(outs, dots, strict=True)
        ]

    out = []
    for dots in map_rows(push, rows):
        columns = layout.transpose(dots, (*range(1, typeof(dots).ndim), 0))
        out.append(
            [
                layout.reshape(slice_in_dim(columns, *s, axis=-1), (*columns.shape[:-1], *a.shape))
                for s, a in zip(spans, avals, strict=True)
            ]
        )
    return out


def check_dtype(op: str, what: str, aval: ShapedArray, holomorphic: bool) -> None:
    """Raise unless a type is a float, or complex if `holomorphic`. `what` has it: "results"."""
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise DtypeError(f"{op}: with holomorphic=True {what} must be complex; got {aval}.")
    if not holomorphic and not dtypes.is_float(aval.dtype):
        raise DtypeError(f"{op}: {what} must be real and floating-point; got {aval}.")


def reverse_blocks(chosen: grad.ChosenArguments, holomorphic: bool) -> list[list]:
    """The blocks of a Jacobian by reverse mode."""
    flat, leaves, avals, _ = chosen
    _, derivative, residuals = grad.linearize_leaves(flat, leaves, avals)
    out_avals = derivative.out_avals
    for a in out_avals:
        check_dtype(flat.op, "results", a, holomorphic)
    rows, spans = basis(out_avals)

    def pull(*cts: Any) -> list:
        grads = derivative.pull(residuals, cts)
        triples = zip(grads, derivative.moved, avals, strict=True)
        return [g if moved else layout.zeros(a) for g, moved, a in triples]

    stacked = map_rows(pull, rows)
    return [
        [layout.reshape(slice_in_dim(g, *span), (*a.shape, *g.shape[1:])) for g in stacked]
        for span, a in zip(spans, out_avals, strict=True)
    ]


jacobian = alias(jacrev, "jacobian")


def hessian(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return the function that computes the Hessian of `fun`: the matrix of its second derivatives.

    It is `jacfwd(jacrev(fun))`: forward over reverse mode. The cost is about one gradient for each
    element of the input. For a product of the Hessian with one vector, without the matrix, use
    `jvp` of `grad`; for a Hessian with few entries other than zero, use `sparse_hessian`.

    Args:
      fun: a function of arrays, or of pytrees of arrays. It usually returns a scalar; if it returns
        arrays, the result holds a Hessian for each element of them.
      argnums: the positional arguments to differentiate in. An int gives one Hessian. A sequence of
        ints gives a tuple of tuples, with a block for each pair of arguments. The default is the
        first argument.
      has_aux: if True, `fun` returns a pair `(result, aux)`; only the result is differentiated.
      holomorphic: if True, `fun` is complex-differentiable and its inputs and results must be
        complex. By default they must be real.

    Returns:
      A function of the arguments of `fun`. For a result of shape S and an input of shape T the
      Hessian has shape S + T + T; pytrees nest as for `jacfwd`. With `has_aux` the function
      returns `(hessian, aux)`.

    Raises:
      DtypeError: an input or a result is not of a real floating-point dtype (complex if
        `holomorphic`).
      TypeError: `argnums` is not an int or a sequence of ints, or names an argument that the call
        does not have.

    >>> hessian(lambda x: x[0] * x[1] ** 2)(np.array([1.0, 2.0], np.float32))
    Array([[0., 4.],
           [4., 2.]], dtype=float32)

    The product of a Hessian and a vector does not need the matrix:

    >>> f = lambda x: x[0] * x[1] ** 2
    >>> x, v = jnp.array([1.0, 2.0]), jnp.array([1.0, 0.0])
    >>> weft.jvp(weft.grad(f), (x,), (v,))[1]
    Array([0., 4.], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )
