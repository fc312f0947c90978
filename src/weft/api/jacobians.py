"""Jacobians and Hessians: `jacfwd`, `jacrev`, `hessian`, one derivative for each basis vector.

A Jacobian is a derivative map of api/grad.py mapped over the standard basis.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.functions import FlatFun, avals_of, check_callable
from weft.api.grad import check_argnums, check_inputs, linearized, split_args
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Zero
from weft.core.source import boundary
from weft.errors import DtypeError
from weft.primitives.elementwise import eq, sub
from weft.primitives.layout import broadcasted_iota, convert, literal, reshape, transpose, zeros
from weft.primitives.slicing import slice_in_dim
from weft.pytrees import flatten, unflatten
from weft.transforms.batch import Axis, batch_to_front
from weft.transforms.jvp import jvp as jvp_flat

__all__ = ["hessian", "jacfwd", "jacobian", "jacrev"]


def basis(avals: Sequence[ShapedArray]) -> tuple[list, list[tuple[int, int]]]:
    """For each type, the standard basis of its space stacked to (total, *shape), and its span."""
    total = sum(a.size for a in avals)
    out, spans, start = [], [], 0
    for a in avals:
        part = reshape(identity_columns(total, start, a.size, a.dtype), (total, *a.shape))
        out.append(convert(part, a.dtype, True) if a.weak_type else part)
        spans.append((start, start + a.size))
        start += a.size
    return out, spans


def identity_columns(total: int, start: int, count: int, dtype: np.dtype) -> Any:
    """Of an identity matrix of size `total`, `count` columns from `start` on.

    Small ones are a constant; large ones are computed, or a program would hold and read them.
    """
    if total * count <= 1024:
        return np.eye(total, count, -start, dtype)
    rows, places = (broadcasted_iota(np.int32, (total, count), axis) for axis in (0, 1))
    return convert(eq(sub(rows, literal(start, rows.dtype)), places), dtype)


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
    check_callable("jacfwd", fun, wraps=True)
    check_argnums("jacfwd", argnums)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        partial, picked, chosen = split_args(fun, argnums, args, "jacfwd")
        leaves, in_tree = flatten((picked, {}))
        avals = avals_of("jacfwd", leaves, in_tree, fun)
        check_inputs("jacfwd", fun, avals, in_tree, chosen, holomorphic, False)
        flat = FlatFun(functools.partial(partial, **kwargs), in_tree, "jacfwd", has_aux)
        rows, spans = basis(avals)

        def push(*tangents: Any) -> list:
            outs, dots = jvp_flat(flat, leaves, tangents)
            return [
                zeros(typeof(x)) if type(t) is Zero else t for x, t in zip(outs, dots, strict=True)
            ]

        stacked = batch_to_front(push, rows, [0] * len(rows), Axis(spans[-1][1] if spans else 0))
        tree = []
        for dots in stacked:
            ndim = typeof(dots).ndim
            columns = transpose(dots, (*range(1, ndim), 0))
            blocks = [
                reshape(slice_in_dim(columns, *s, axis=-1), (*columns.shape[:-1], *a.shape))
                for s, a in zip(spans, avals, strict=True)
            ]
            block = unflatten(in_tree, blocks)[0]
            tree.append(block[0] if isinstance(chosen, int) else block)
        result = unflatten(flat.out_tree, tree)
        return (result, flat.aux) if has_aux else result

    return boundary(wrapped, fun)


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
    check_callable("jacrev", fun, wraps=True)
    check_argnums("jacrev", argnums)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        partial, picked, chosen = split_args(fun, argnums, args, "jacrev")
        leaves, in_tree = flatten((picked, {}))
        avals = avals_of("jacrev", leaves, in_tree, fun)
        check_inputs("jacrev", fun, avals, in_tree, chosen, holomorphic, allow_int)
        flat = FlatFun(functools.partial(partial, **kwargs), in_tree, "jacrev", has_aux)
        _, derivative, residuals = linearized(flat, leaves, avals)
        out_avals = derivative.out_avals
        for a in out_avals:
            check_output("jacrev", fun, a, holomorphic)
        rows, spans = basis(out_avals)

        def pull(*cts: Any) -> list:
            grads = derivative.pull(residuals, cts)
            return [
                zeros(a) if not m else g
                for g, m, a in zip(grads, derivative.moved, avals, strict=True)
            ]

        stacked = batch_to_front(pull, rows, [0] * len(rows), Axis(spans[-1][1] if spans else 0))
        tree = []
        for span, a in zip(spans, out_avals, strict=True):
            blocks = [reshape(slice_in_dim(g, *span), (*a.shape, *g.shape[1:])) for g in stacked]
            block = unflatten(in_tree, blocks)[0]
            tree.append(block[0] if isinstance(chosen, int) else block)
        result = unflatten(flat.out_tree, tree)
        return (result, flat.aux) if has_aux else result

    return boundary(wrapped, fun)


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
